//go:build unix

package mcp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
)

// bank gives tokens to clients that log in by themselves: each counts for one request of a session's beginning, or for long.
type bank struct {
	*httptest.Server
	issuer string // in its metadata, behind its address
	modern bool   // it says who its authorization server is
	check  func(r *http.Request) error
	life   int
	given  int
	wrong  []error
}

func newBank(t *testing.T, b *bank) *bank {
	t.Helper()
	resource := newHTTPServer(t, nil, nil)
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer t") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		(*resource.handler.Load()).ServeHTTP(w, r)
	})
	if b.modern {
		mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 200, map[string]any{"resource": b.URL + "/mcp", "authorization_servers": []string{b.URL}})
		})
	}
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		issuer := b.URL + b.issuer
		if strings.HasPrefix(b.issuer, "http") {
			issuer = b.issuer
		}
		answer(w, 200, map[string]any{
			"issuer": issuer, "token_endpoint": b.URL + "/token", "authorization_endpoint": b.URL + "/authorize", "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
		})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		err := r.ParseForm()
		if err == nil && r.Form.Get("grant_type") != GrantClientCredentials {
			err = fmt.Errorf("the grant %q", r.Form.Get("grant_type"))
		}
		if err == nil {
			err = b.check(r)
		}
		if err != nil {
			b.wrong = append(b.wrong, err)
			answer(w, 401, map[string]any{"error": "invalid_client"})
			return
		}
		b.given++
		answer(w, 200, map[string]any{"access_token": fmt.Sprint("t", b.given), "token_type": "Bearer", "expires_in": b.life})
	})
	b.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b
}

func pemOf(t *testing.T, key any) string {
	t.Helper()
	b, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b}))
}

func TestAClientMayLogInByItself(t *testing.T) {
	t.Parallel()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var address string
	seen := map[string]bool{}
	signed := func(verify func(sum, sig []byte) bool) func(*http.Request) error {
		return func(r *http.Request) error {
			parts := strings.Split(r.Form.Get("client_assertion"), ".")
			if len(parts) != 3 || r.Form.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" || r.Header.Get("Authorization") != "" || r.Form.Has("client_secret") {
				return fmt.Errorf("%v", r.Form)
			}
			sig, _ := base64.RawURLEncoding.DecodeString(parts[2])
			sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
			var claims struct {
				Iss, Sub, Aud, Jti string
				Iat, Exp           int64
			}
			body, _ := base64.RawURLEncoding.DecodeString(parts[1])
			if err := json.Unmarshal(body, &claims); err != nil || claims.Iss != "me" || claims.Sub != "me" || claims.Aud != address+"/issuer" || claims.Exp-claims.Iat != 300 || seen[claims.Jti] {
				return fmt.Errorf("%s", body)
			}
			if seen[claims.Jti] = true; !verify(sum[:], sig) {
				return errors.New("the signature")
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		id    OAuth
		check func(*http.Request) error
	}{
		"with a secret": {OAuth{ClientSecret: "s"}, func(r *http.Request) error {
			if id, secret, _ := r.BasicAuth(); id != "me" || secret != "s" {
				return errors.New("the secret")
			}
			return nil
		}},
		"with a key of P-256": {OAuth{PrivateKey: pemOf(t, ec)}, signed(func(sum, sig []byte) bool {
			return len(sig) == 64 && ecdsa.Verify(&ec.PublicKey, sum, new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
		})},
		"with an RSA key": {OAuth{PrivateKey: pemOf(t, rs)}, signed(func(sum, sig []byte) bool {
			return rsa.VerifyPKCS1v15(&rs.PublicKey, 5, sum, sig) == nil // 5: SHA-256
		})},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t, &bank{check: c.check, life: 1, issuer: "/issuer"}) // each token is over at once
			address = b.URL
			c.id.ClientID, c.id.Grant = "me", GrantClientCredentials
			tokens := t.TempDir()
			client, err := Connect(t.Context(), []Server{{Name: "s", URL: b.URL + "/mcp", OAuth: c.id, Required: true}}, Options{Tokens: tokens})
			if err != nil {
				t.Fatal(err, b.wrong)
			}
			defer closeClient(t, client)
			before := b.given
			if got, err := use(t, client, "echo", `{"text":"a"}`); err != nil || got.Content != "a\nend" || len(b.wrong) > 0 {
				t.Error(got, err, b.wrong)
			}
			if b.given == before {
				t.Error("a token that is over is used again")
			}
			if files, _ := os.ReadDir(tokens); len(files) > 0 {
				t.Error("it is kept:", files)
			}
		})
	}
}

func TestAClientThatCanNotLogInByItselfIsRefused(t *testing.T) {
	t.Parallel()
	b := newBank(t, &bank{check: func(*http.Request) error { return errors.New("no") }})
	s := Server{Name: "s", URL: b.URL + "/mcp", OAuth: OAuth{ClientID: "me", ClientSecret: "s", Grant: GrantClientCredentials}, Required: true}
	if _, err := Connect(t.Context(), []Server{s}, Options{}); err == nil || !strings.Contains(err.Error(), "401") {
		t.Error(err)
	}
	if err := Login(t.Context(), s, Options{Open: visit}); !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), "by itself") {
		t.Error(err)
	}
	s.OAuth.ClientSecret, s.OAuth.PrivateKey = "", "not PEM"
	if _, err := Connect(t.Context(), []Server{s}, Options{}); err == nil {
		t.Error("no error")
	}
	for want, id := range map[string]OAuth{
		`the grant "password"`: {ClientID: "a", Grant: "password"}, "needs a client ID": {Grant: GrantClientCredentials}, "and a secret or a private key": {ClientID: "a", Grant: GrantClientCredentials, ClientSecret: "a", PrivateKey: "b"},
		"a private key is for": {PrivateKey: "b"},
	} {
		if err := (Server{Name: "s", URL: "http://x", OAuth: id}).Check(); !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), want) {
			t.Error(want, err)
		}
	}
}

// Metadata names the issuer that was asked for. Only an older server may name another one, and only one of its own origin.
func TestMetadataOfAnotherIssuerIsNotUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		issuer string
		modern bool
		want   bool
	}{
		"the one that was asked":           {"", true, true},
		"an older server's path":           {"/oauth", false, true},
		"a path, of one that knows better": {"/oauth", true, false},
		"another origin":                   {"http://127.0.0.1:9/oauth", false, false},
	} {
		b := newBank(t, &bank{check: func(*http.Request) error { return nil }, life: 3600, issuer: c.issuer, modern: c.modern})
		s := Server{Name: "s", URL: b.URL + "/mcp", OAuth: OAuth{ClientID: "me", ClientSecret: "s", Grant: GrantClientCredentials}, Required: true}
		client, err := Connect(t.Context(), []Server{s}, Options{})
		if (err == nil) != c.want || err != nil && !strings.Contains(err.Error(), "does not match issuer") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			closeClient(t, client)
		}
	}
}
