//go:build unix

package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// authority is a server with its authorization server.
type authority struct {
	*httptest.Server
	mu        sync.Mutex
	access    string // the one token that is taken
	refresh   string
	seq       int
	life      int // seconds
	challenge map[string]string
	grants    []string
	deny      bool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{life: 3600, challenge: map[string]string{}}
	resource := newHTTPServer(t, nil, nil)
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		ok := a.access != "" && r.Header.Get("Authorization") == "Bearer "+a.access
		a.mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+a.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		(*resource.handler.Load()).ServeHTTP(w, r)
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"resource": a.URL + "/mcp", "authorization_servers": []string{a.URL}, "scopes_supported": []string{"read"}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{
			"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token", "registration_endpoint": a.URL + "/register",
			"code_challenge_methods_supported": []string{"S256"}, "response_types_supported": []string{"code"}, "token_endpoint_auth_methods_supported": []string{"none"},
		})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		_ = json.NewDecoder(r.Body).Decode(&in)
		in["client_id"], in["token_endpoint_auth_method"] = "registered", "none"
		answer(w, 201, in)
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		back, _ := url.Parse(q.Get("redirect_uri"))
		out := url.Values{"state": {q.Get("state")}}
		a.mu.Lock()
		if a.deny {
			out.Set("error", "access_denied")
		} else {
			a.seq++
			code := fmt.Sprintf("code%d", a.seq)
			a.challenge[code] = q.Get("code_challenge")
			out.Set("code", code)
		}
		a.mu.Unlock()
		back.RawQuery = out.Encode()
		http.Redirect(w, r, back.String(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.grants = append(a.grants, r.Form.Get("grant_type"))
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		want, known := a.challenge[r.Form.Get("code")]
		if r.Form.Get("client_id") != "registered" ||
			r.Form.Get("grant_type") == "authorization_code" && (!known || base64.RawURLEncoding.EncodeToString(sum[:]) != want) ||
			r.Form.Get("grant_type") == "refresh_token" && (a.refresh == "" || r.Form.Get("refresh_token") != a.refresh) {
			answer(w, 400, map[string]any{"error": "invalid_grant"})
			return
		}
		a.seq++
		a.access, a.refresh = fmt.Sprintf("access%d", a.seq), fmt.Sprintf("refresh%d", a.seq)
		answer(w, 200, map[string]any{"access_token": a.access, "refresh_token": a.refresh, "token_type": "Bearer", "expires_in": a.life})
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

func (a *authority) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func TestALoginIsKeptAndRefreshed(t *testing.T) {
	t.Parallel()
	a, tokens := newAuthority(t), filepath.Join(t.TempDir(), "new")
	s := Server{Name: "s", URL: a.URL + "/mcp", Required: true}
	works := func(what string) {
		t.Helper()
		c, err := Connect(t.Context(), []Server{s}, Options{Tokens: tokens})
		if err != nil {
			t.Fatal(what, err)
		}
		defer closeClient(t, c)
		if got, err := use(t, c, "echo", `{"text":"a"}`); err != nil || got.Content != "a\nend" || len(c.Warnings()) > 0 {
			t.Error(what, got, err, c.Warnings())
		}
	}
	if _, err := Connect(t.Context(), []Server{s}, Options{Tokens: tokens}); !errors.Is(err, errdefs.Unauthorized) || !strings.Contains(err.Error(), "pawl mcp login") {
		t.Fatal(err)
	}
	a.set(func() { a.life = 1 }) // it is over at once
	if err := Login(t.Context(), s, Options{Tokens: tokens, Open: visit}); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(tokens, "*"))
	if len(files) != 1 {
		t.Fatal(files)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if info, err := os.Stat(tokens); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
	a.set(func() { a.life = 3600 })
	works("after its time")
	works("as it was kept")
	if got := strings.Join(a.grants[len(a.grants)-1:], " "); got != "refresh_token" {
		t.Error(a.grants)
	}
	n := len(a.grants)
	a.set(func() { a.access = "revoked" })
	works("refused before its time")
	if len(a.grants) != n+1 {
		t.Error(a.grants)
	}

	c, err := Connect(t.Context(), []Server{s}, Options{Tokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(t, c)
	a.set(func() { a.access, a.refresh = "", "" })
	if _, err := use(t, c, "fail", `{}`); !errors.Is(err, errdefs.Unauthorized) || !strings.Contains(err.Error(), "pawl mcp login") {
		t.Error("a login that is over:", err)
	}
	if err := Login(t.Context(), s, Options{Tokens: tokens, Open: visit}); err != nil {
		t.Fatal(err)
	}
	if got, err := use(t, c, "echo", `{}`); err != nil {
		t.Error("another process has logged in:", got, err)
	}

	if err := os.Chmod(files[0], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Connect(t.Context(), []Server{s}, Options{Tokens: tokens}); !errors.Is(err, errdefs.Unauthorized) {
		t.Error("others can read it:", err)
	}
}

func TestATokenGoesToItsServerOnly(t *testing.T) {
	t.Parallel()
	a, tokens := newAuthority(t), t.TempDir()
	s := Server{Name: "s", URL: a.URL + "/mcp"}
	if err := Login(t.Context(), s, Options{Tokens: tokens, Open: visit}); err != nil {
		t.Fatal(err)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("it has the token")
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer other.Close()
	if _, err := Connect(t.Context(), []Server{{Name: "s", URL: other.URL, Required: true}}, Options{Tokens: tokens}); err == nil {
		t.Error("no error")
	}
}

func TestALoginWaitsForItsOwnCallback(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := Server{Name: "s", URL: a.URL + "/mcp"}
	open := func(ctx context.Context, address string) error {
		u, _ := url.Parse(address)
		back := u.Query().Get("redirect_uri")
		if !strings.HasPrefix(back, "http://127.0.0.1:") {
			t.Error(back)
		}
		for _, stranger := range []string{back + "?code=x&state=y", back + "?error=no", strings.TrimSuffix(back, callbackURL) + "/other?state=" + u.Query().Get("state")} {
			resp, err := http.Get(stranger)
			if err != nil || resp.StatusCode != http.StatusBadRequest {
				t.Error(stranger, resp, err)
				continue
			}
			_ = resp.Body.Close()
		}
		return visit(ctx, address)
	}
	if err := Login(t.Context(), s, Options{Tokens: t.TempDir(), Open: open}); err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
	a.set(func() { a.deny = true })
	if err := Login(t.Context(), s, Options{Tokens: t.TempDir(), Open: visit}); err == nil || !strings.Contains(err.Error(), "the login was refused: access_denied") {
		t.Error(err)
	}
}

func TestALoginEndsWithItsContext(t *testing.T) {
	t.Parallel()
	a, tokens := newAuthority(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var back string
	began := time.Now()
	err := Login(ctx, Server{Name: "s", URL: a.URL + "/mcp"}, Options{Tokens: tokens, Open: func(_ context.Context, address string) error {
		u, _ := url.Parse(address)
		back = u.Query().Get("redirect_uri")
		cancel() // the person gives up
		return nil
	}})
	if !errors.Is(err, context.Canceled) || time.Since(began) > 5*time.Second {
		t.Error(err, time.Since(began))
	}
	if resp, err := http.Get(back); err == nil {
		_ = resp.Body.Close()
		t.Error("somebody listens still")
	}
	if files, _ := os.ReadDir(tokens); len(files) > 0 {
		t.Error(files)
	}
}

func TestAServerWithoutALoginSaysSo(t *testing.T) {
	t.Parallel()
	h := newHTTPServer(t, nil, nil)
	if err := Login(t.Context(), Server{Name: "s", URL: h.URL}, Options{Tokens: t.TempDir(), Open: visit}); !errors.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
	if err := Login(t.Context(), Server{Name: "s", Command: "x"}, Options{Open: visit}); !errors.Is(err, errdefs.Validation) {
		t.Error(err)
	}
}
