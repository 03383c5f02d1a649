package cloud_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/cloud"
	"github.com/pawl-dev/pawl/model/gemini"
)

const geminiSays = `{"candidates":[{"content":{"role":"model","parts":[{"text":"Bonjour"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}`

// speak answers as Vertex AI does, in the form of whom it is asked for.
func speak(w http.ResponseWriter, r seen) {
	whole, pieces := geminiSays, []string{geminiSays}
	if strings.Contains(r.URL.Path, "/anthropic/") {
		whole, pieces = claude, events
	}
	if !strings.Contains(r.URL.Path, ":stream") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range pieces {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", strings.ReplaceAll(e, "\n", " "))
	}
}

var access = func(context.Context) (cloud.Token, error) { return cloud.Token{Value: "ya29.access-token"}, nil }

func TestVertexIsAskedAsGoogleWantsIt(t *testing.T) {
	alone(t)
	s := serve(t, speak)
	on := cloud.Vertex(cloud.GCP{Project: "my-project", Location: "europe-west1", Token: access, BaseURL: s.URL})
	claudeModel := anthropic.New("claude-sonnet-4-5@20250929", on, model.WithHeader("anthropic-beta", "one"))
	geminiModel := gemini.New("gemini-2.5-flash", on)
	const under = "/v1/projects/my-project/locations/europe-west1/publishers/"
	for _, tc := range []struct {
		m          model.Model
		stream     bool
		path, body string
	}{
		{claudeModel, false, under + "anthropic/models/claude-sonnet-4-5@20250929:rawPredict", `{"anthropic_version":"vertex-2023-10-16","max_tokens":32000,"system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}]}`},
		{claudeModel, true, under + "anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict", `{"anthropic_version":"vertex-2023-10-16","max_tokens":32000,"system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}],"stream":true}`},
		{geminiModel, false, under + "google/models/gemini-2.5-flash:generateContent", ""},
		{geminiModel, true, under + "google/models/gemini-2.5-flash:streamGenerateContent?alt=sse", ""},
	} {
		if got, err := said(t, tc.m, tc.stream); err != nil || got != "Bonjour" {
			t.Fatal(got, err)
		}
		r := s.last()
		if r.RequestURI != tc.path || r.Header.Get("Authorization") != "Bearer ya29.access-token" || tc.body != "" && r.body != tc.body || !json.Valid([]byte(r.body)) {
			t.Errorf("%s %s\n%s", r.RequestURI, r.Header.Get("Authorization"), r.body)
		}
		if r.Header.Get("X-Goog-Api-Key") != "" || r.Header.Get("Anthropic-Version") != "" {
			t.Error(r.Header)
		}
	}
	if r := s.requests()[0]; r.Header.Get("Anthropic-Beta") != "one" {
		t.Error(r.Header)
	}
	for m, name := range map[model.Model]string{claudeModel: "vertex/claude-sonnet-4-5@20250929", geminiModel: "vertex/gemini-2.5-flash"} {
		if can, _ := model.CapabilitiesOf(m); can.Name != name {
			t.Error(can.Name)
		}
	}
}

func TestALocationHasItsHost(t *testing.T) {
	alone(t)
	t.Setenv("GOOGLE_CLOUD_PROJECT", "of-the-environment")
	for location, want := range map[string]string{
		"": "aiplatform.googleapis.com/v1/projects/of-the-environment/locations/global", "global": "aiplatform.googleapis.com/v1/projects/of-the-environment/locations/global",
		"us-east5": "us-east5-aiplatform.googleapis.com/v1/projects/of-the-environment/locations/us-east5", "eu": "aiplatform.eu.rep.googleapis.com/v1/projects/of-the-environment/locations/eu",
	} {
		var asked string
		client := &http.Client{Transport: handler(func(r *http.Request) *http.Response {
			asked = r.URL.Scheme + "://" + r.URL.Host + r.URL.Path
			return answer(200, "application/json", geminiSays)
		})}
		t.Setenv("GOOGLE_CLOUD_LOCATION", location)
		if _, err := said(t, gemini.New("gemini-x", model.WithHTTPClient(client), cloud.Vertex(cloud.GCP{Token: access})), false); err != nil || asked != "https://"+want+"/publishers/google/models/gemini-x:generateContent" {
			t.Errorf("%q: %s %v", location, asked, err)
		}
	}
	t.Setenv("GOOGLE_CLOUD_LOCATION", "evil.example/")
	if _, err := said(t, gemini.New("gemini-x", cloud.Vertex(cloud.GCP{Token: access})), false); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "GOOGLE_CLOUD_LOCATION") {
		t.Error(err)
	}
	t.Setenv("GOOGLE_CLOUD_LOCATION", "")
	t.Setenv("GOOGLE_CLOUD_PROJECT", "")
	if _, err := said(t, gemini.New("gemini-x", cloud.Vertex(cloud.GCP{Token: access})), false); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "GOOGLE_CLOUD_PROJECT") {
		t.Error(err)
	}
	if _, err := said(t, gemini.New("gemini-x", model.WithKey("AIza"), cloud.Vertex(cloud.GCP{Token: access})), false); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "access tokens") {
		t.Error(err)
	}
	if _, err := said(t, gemini.New("tunedModels/x", cloud.Vertex(cloud.GCP{Token: access, Project: "p"})), false); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}

// account is the JSON of a service account that asks uri, and its key.
func account(t *testing.T, uri string, pkcs1 bool) ([]byte, *rsa.PrivateKey) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if !pkcs1 {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		block = &pem.Block{Type: "PRIVATE KEY", Bytes: der}
	}
	return []byte(jsonOf(map[string]string{
		"type": "service_account", "project_id": "of-the-account", "client_email": "robot@example.iam.gserviceaccount.com", "private_key": string(pem.EncodeToMemory(block)), "private_key_id": "key-1", "token_uri": uri,
	})), key
}

func TestAServiceAccountAsksWithATokenThatItSigned(t *testing.T) {
	alone(t)
	for _, pkcs1 := range []bool{false, true} {
		var key *rsa.PrivateKey
		tokens := serve(t, func(w http.ResponseWriter, r seen) {
			form, err := url.ParseQuery(r.body)
			if err != nil || form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || len(form) != 2 || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
				t.Error(r.body, err)
			}
			parts := strings.Split(form.Get("assertion"), ".")
			if len(parts) != 3 {
				t.Fatal(form)
			}
			var decoded [3][]byte
			for i := range parts {
				if decoded[i], err = base64.RawURLEncoding.DecodeString(parts[i]); err != nil {
					t.Error(err)
				}
			}
			sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
			if err := rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], decoded[2]); err != nil {
				t.Error(err)
			}
			var claims struct {
				Iss, Scope, Aud string
				Iat, Exp        int64
			}
			if err := json.Unmarshal(decoded[1], &claims); err != nil || string(decoded[0]) != `{"alg":"RS256","typ":"JWT","kid":"key-1"}` {
				t.Errorf("%s %s", decoded[0], decoded[1])
			}
			if claims.Iss != "robot@example.iam.gserviceaccount.com" || claims.Scope != "https://www.googleapis.com/auth/cloud-platform" || !strings.HasSuffix(claims.Aud, "/token") || claims.Exp-claims.Iat != 3600 || time.Since(time.Unix(claims.Iat, 0)).Abs() > time.Minute {
				t.Errorf("%+v", claims)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"ya29.of-the-account","expires_in":3599,"token_type":"Bearer"}`)
		})
		s := serve(t, speak)
		var data []byte
		data, key = account(t, tokens.URL+"/token", pkcs1)
		file := filepath.Join(t.TempDir(), "key.json")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
		m := gemini.New("gemini-x", cloud.Vertex(cloud.GCP{BaseURL: s.URL}))
		for range 3 {
			if _, err := said(t, m, true); err != nil {
				t.Fatal(err)
			}
		}
		if r := s.last(); r.Header.Get("Authorization") != "Bearer ya29.of-the-account" || !strings.Contains(r.RequestURI, "/projects/of-the-account/") || len(tokens.requests()) != 1 {
			t.Error(r.RequestURI, r.Header, len(tokens.requests()))
		}
	}
}

func TestAUsersLoginIsRefreshed(t *testing.T) {
	home := alone(t)
	tokens := serve(t, func(w http.ResponseWriter, _ seen) {
		_, _ = io.WriteString(w, `{"access_token":"ya29.of-the-user","expires_in":"3599"}`)
	})
	s := serve(t, speak)
	dir := filepath.Join(home, ".config", "gcloud")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	login := jsonOf(map[string]string{"type": "authorized_user", "client_id": "id", "client_secret": "the-client-secret", "refresh_token": "1//refresh-me", "quota_project_id": "billed", "token_uri": tokens.URL})
	if err := os.WriteFile(filepath.Join(dir, "application_default_credentials.json"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := said(t, gemini.New("gemini-x", cloud.Vertex(cloud.GCP{BaseURL: s.URL})), false); err != nil {
		t.Fatal(err)
	}
	if got := tokens.last().body; got != "client_id=id&client_secret=the-client-secret&grant_type=refresh_token&refresh_token=1%2F%2Frefresh-me" {
		t.Error(got)
	}
	if r := s.last(); r.Header.Get("Authorization") != "Bearer ya29.of-the-user" || r.Header.Get("X-Goog-User-Project") != "billed" || !strings.Contains(r.RequestURI, "/projects/billed/") {
		t.Error(r.RequestURI, r.Header)
	}
}

func TestAMachineAtGoogleAsksItsMetadataServer(t *testing.T) {
	alone(t)
	s := serve(t, speak)
	metadata := serve(t, func(w http.ResponseWriter, r seen) {
		if r.Header.Get("Metadata-Flavor") != "Google" {
			t.Error(r.Header)
		}
		w.Header().Set("Metadata-Flavor", "Google")
		switch r.URL.Path {
		case "/computeMetadata/v1/instance/service-accounts/default/token":
			_, _ = io.WriteString(w, `{"access_token":"ya29.of-the-machine","expires_in":3000}`)
		case "/computeMetadata/v1/project/project-id":
			_, _ = io.WriteString(w, "of-the-machine\n")
		}
	})
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(metadata.URL, "http://"))
	if _, err := said(t, gemini.New("gemini-x", cloud.Vertex(cloud.GCP{BaseURL: s.URL})), false); err != nil {
		t.Fatal(err)
	}
	if r := s.last(); r.Header.Get("Authorization") != "Bearer ya29.of-the-machine" || !strings.Contains(r.RequestURI, "/projects/of-the-machine/") {
		t.Error(r.RequestURI, r.Header)
	}
	// Somebody else's web server is none.
	other := serve(t, func(w http.ResponseWriter, _ seen) {
		_, _ = io.WriteString(w, `{"access_token":"ya29.of-nobody","expires_in":3000}`)
	})
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(other.URL, "http://"))
	if _, err := said(t, gemini.New("gemini-x", cloud.Vertex(cloud.GCP{BaseURL: s.URL})), false); !errdefs.Unauthorized.Is(err) || !strings.Contains(err.Error(), "gcloud auth application-default login") {
		t.Error(err)
	}
}

func TestCredentialsThatCantBeUsedSaySo(t *testing.T) {
	alone(t)
	good, _ := account(t, "https://oauth2.googleapis.com/token", false)
	refusing := serve(t, func(w http.ResponseWriter, r seen) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant","error_description":"Bad Request: `+r.FormValue("x")+`1//refresh-me"}`)
	})
	login := func(uri string) string {
		return jsonOf(map[string]string{"type": "authorized_user", "client_id": "id", "client_secret": "the-client-secret", "refresh_token": "1//refresh-me", "token_uri": uri})
	}
	for what, tc := range map[string]struct {
		json  string
		class *errdefs.Class
		want  string
	}{
		"no JSON":               {`{"private_key":"very secret"`, errdefs.Validation, "no JSON"},
		"another kind":          {`{"type":"external_account"}`, errdefs.Validation, `"external_account"`},
		"no key":                {`{"type":"service_account","client_email":"x","private_key":"very secret"}`, errdefs.Validation, "no"},
		"no email":              {strings.Replace(string(good), "client_email", "mail", 1), errdefs.Validation, "client_email"},
		"a refused login":       {login(refusing.URL), errdefs.Unauthorized, "gcloud auth application-default login"},
		"a server without TLS":  {login("http://tokens.example/token"), errdefs.Validation, "https://"},
		"nobody there":          {login("http://127.0.0.1:1/token"), errdefs.NotAvailable, "127.0.0.1:1 gave no token"},
		"a server with nothing": {login(serve(t, func(w http.ResponseWriter, _ seen) { _, _ = io.WriteString(w, `{}`) }).URL), errdefs.NotAvailable, "has none"},
		"a server in trouble":   {login(serve(t, func(w http.ResponseWriter, _ seen) { w.WriteHeader(503) }).URL), errdefs.NotAvailable, "HTTP 503"},
	} {
		_, err := said(t, gemini.New("gemini-x", cloud.Vertex(cloud.GCP{Project: "p", Credentials: []byte(tc.json)})), false)
		if !tc.class.Is(err) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "refresh-me") {
			t.Errorf("%s: %v", what, err)
		}
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file.json")
	if _, err := said(t, gemini.New("gemini-x", cloud.Vertex(cloud.GCP{Project: "p"})), false); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "GOOGLE_APPLICATION_CREDENTIALS: open /no/such/file.json") {
		t.Error(err)
	}
	boom := func(context.Context) (cloud.Token, error) { return cloud.Token{}, errors.New("no login") }
	if _, err := said(t, gemini.New("gemini-x", cloud.Vertex(cloud.GCP{Project: "p", Token: boom})), false); !errdefs.Unauthorized.Is(err) || !strings.Contains(err.Error(), "no login") {
		t.Error(err)
	}
}

func TestAnErrorOfGooglesHasItsClassAndNoToken(t *testing.T) {
	alone(t)
	s := serve(t, func(w http.ResponseWriter, r seen) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"code":429,"message":"Quota exceeded for `+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+`","status":"RESOURCE_EXHAUSTED"}}`)
	})
	on := cloud.Vertex(cloud.GCP{Project: "p", Token: access, BaseURL: s.URL})
	for _, m := range []model.Model{gemini.New("gemini-x", on), anthropic.New("claude-x", on)} {
		if _, err := said(t, m, true); !errdefs.RateLimit.Is(err) || strings.Contains(err.Error(), "ya29") || !strings.HasPrefix(err.Error(), "vertex: HTTP 429: RESOURCE_EXHAUSTED: Quota exceeded") {
			t.Error(err)
		}
	}
}
