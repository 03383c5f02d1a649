package blackbox

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestMCPLogin(t *testing.T) { runRows(t) }

var _ = table("TestMCPLogin",
	row{"a client registers by itself and keeps the tokens", "The tokens are kept in a file that only you can read, for runs that have that server", "pawl mcp login, pawl mcp --url, pawl mcp --no-browser", func(w *world) { w.login("registered") }},
	row{"--client-id names a client of one's own", "`--client-id ID` names a client of your own, whose secret is read from `PAWL_MCP_CLIENT_SECRET`; without it one registers by itself", "pawl mcp --client-id", func(w *world) {
		w.env = append(w.env, "PAWL_MCP_CLIENT_SECRET=a-secret")
		w.login("mine", "--client-id", "mine")
	}},
)

// login logs in to a server that wants OAuth, as this client.
func (w *world) login(client string, flags ...string) {
	w.t.Helper()
	auth := newAuthorization(w.t)
	p := w.start(append(append([]string{"mcp", "login", "--no-browser", "--url", auth.url + "/mcp"}, flags...), "wiki")...)
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/authorize\?\S+`)
	said := func() string { return p.out.String() + p.errs.String() }
	w.until("the address is shown", func() bool { return address.MatchString(said()) || p.over() })
	at, err := url.Parse(address.FindString(said()))
	if err != nil || at.Query().Get("client_id") != client || at.Query().Get("code_challenge_method") != "S256" {
		w.t.Fatalf("%v: %s", err, said())
	}
	back := at.Query().Get("redirect_uri") + "?" + url.Values{"code": {"the-code"}, "state": {at.Query().Get("state")}}.Encode()
	res, err := http.Get(back)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = res.Body.Close()
	if r := p.wait(); r.code != 0 {
		w.t.Fatal(r)
	}
	found := 0
	_ = filepath.WalkDir(filepath.Join(w.home, "config", "pawl", "mcp"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(w.read(path), "an-access-token") {
			return err
		}
		found++
		if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
			w.t.Errorf("%s has the mode %v: %v", path, info.Mode(), err)
		}
		return nil
	})
	if found != 1 || auth.form.Get("code") != "the-code" || auth.form.Get("code_verifier") == "" {
		w.t.Errorf("%d files have the token, the request had %v", found, auth.form)
	}
}

// authorization is a server of MCP and of OAuth.
type authorization struct {
	url  string
	form url.Values // of the request for tokens
}

func newAuthorization(t *testing.T) *authorization {
	t.Helper()
	a := &authorization{}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	a.url = server.URL
	says := func(path string, status int, v object) {
		mux.HandleFunc(path, func(rw http.ResponseWriter, r *http.Request) {
			if r.ParseForm() == nil && path == "/token" {
				a.form = r.PostForm
			}
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(status)
			_ = json.NewEncoder(rw).Encode(v)
		})
	}
	mux.HandleFunc("/mcp", func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer an-access-token" {
			greet(rw, r)
			return
		}
		rw.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+a.url+`/.well-known/oauth-protected-resource/mcp"`)
		rw.WriteHeader(http.StatusUnauthorized)
	})
	says("/.well-known/oauth-protected-resource/mcp", 200, object{"resource": a.url + "/mcp", "authorization_servers": []string{a.url}})
	says("/.well-known/oauth-authorization-server", 200, object{
		"issuer": a.url, "authorization_endpoint": a.url + "/authorize", "token_endpoint": a.url + "/token",
		"registration_endpoint": a.url + "/register", "response_types_supported": []string{"code"},
		"code_challenge_methods_supported": []string{"S256"}, "grant_types_supported": []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_methods_supported": []string{"none", "client_secret_post"},
	})
	says("/register", 201, object{"client_id": "registered", "token_endpoint_auth_method": "none", "redirect_uris": []string{"http://127.0.0.1/callback"}})
	says("/token", 200, object{"access_token": "an-access-token", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "a-refresh-token"})
	return a
}

// greet answers the first request of MCP.
func greet(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		rw.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var call object
	if json.NewDecoder(r.Body).Decode(&call) != nil || call["id"] == nil {
		rw.WriteHeader(http.StatusAccepted)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(object{"jsonrpc": "2.0", "id": call["id"], "result": object{
		"protocolVersion": "2025-06-18", "capabilities": object{}, "serverInfo": object{"name": "wiki", "version": "1"},
	}})
}
