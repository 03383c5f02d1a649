package cloud_test

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/cloud"
	"github.com/pawl-dev/pawl/model/openai"
)

// azureSpeaks answers as Azure OpenAI does, in both protocols.
func azureSpeaks(w http.ResponseWriter, r seen) {
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/responses") {
		_, _ = io.WriteString(w, `{"id":"r","model":"gpt-5","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Bonjour"}]}],"usage":{"input_tokens":3,"output_tokens":2}}`)
		return
	}
	_, _ = io.WriteString(w, `{"id":"c","model":"gpt-5","choices":[{"index":0,"message":{"role":"assistant","content":"Bonjour"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`)
}

func TestAzureIsAskedByItsPathsAndKeys(t *testing.T) {
	alone(t)
	s := serve(t, azureSpeaks)
	t.Setenv("AZURE_OPENAI_API_KEY", "key-of-the-environment")
	for _, tc := range []struct {
		name string
		m    model.Model
		path string
		key  string
	}{
		{"v1", openai.New("my-deployment", cloud.Azure(cloud.AzureOpenAI{Endpoint: s.URL + "/"})), "/openai/v1/chat/completions", "key-of-the-environment"},
		{"v1, responses", openai.NewResponses("my-deployment", cloud.Azure(cloud.AzureOpenAI{Endpoint: s.URL + "/openai/v1/", Key: "mine"})), "/openai/v1/responses", "mine"},
		{"preview", openai.New("my-deployment", cloud.Azure(cloud.AzureOpenAI{Endpoint: s.URL + "/openai", APIVersion: "preview"})), "/openai/v1/chat/completions?api-version=preview", "key-of-the-environment"},
		{"dated", openai.New("my deployment", cloud.Azure(cloud.AzureOpenAI{Endpoint: s.URL, APIVersion: "2024-10-21"})), "/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21", "key-of-the-environment"},
		{"dated, responses", openai.NewResponses("my-deployment", cloud.Azure(cloud.AzureOpenAI{Endpoint: s.URL, APIVersion: "2025-03-01-preview"})), "/openai/responses?api-version=2025-03-01-preview", "key-of-the-environment"},
		{"a gateway, by options", openai.New("my-deployment", model.WithBaseURL(s.URL+"/gateway/"), model.WithKey("given"), cloud.Azure(cloud.AzureOpenAI{})), "/gateway/openai/v1/chat/completions", "given"},
	} {
		if got, err := said(t, tc.m, false); err != nil || got != "Bonjour" {
			t.Fatalf("%s: %q %v", tc.name, got, err)
		}
		r := s.last()
		if r.RequestURI != tc.path || r.Header.Get("Api-Key") != tc.key || r.Header.Get("Authorization") != "" || !strings.Contains(r.body, `"model":"my`) {
			t.Errorf("%s: %s %v\n%s", tc.name, r.RequestURI, r.Header, r.body)
		}
		if can, _ := model.CapabilitiesOf(tc.m); !strings.HasPrefix(can.Name, "azure/my") {
			t.Error(can.Name)
		}
	}
	t.Setenv("OPENAI_API_VERSION", "2024-06-01")
	t.Setenv("AZURE_OPENAI_ENDPOINT", s.URL)
	if _, err := said(t, openai.New("d", cloud.Azure(cloud.AzureOpenAI{})), false); err != nil || s.last().RequestURI != "/openai/deployments/d/chat/completions?api-version=2024-06-01" {
		t.Error(s.last().RequestURI, err)
	}
}

func TestTheNameOfTheHostIsNotTakenForThePath(t *testing.T) {
	alone(t)
	var asked string
	client := &http.Client{Transport: handler(func(r *http.Request) *http.Response {
		asked = r.URL.String()
		return answer(404, "application/json", `{"error":{"code":"DeploymentNotFound","message":"none"}}`)
	})}
	_, err := said(t, openai.New("d", model.WithHTTPClient(client), cloud.Azure(cloud.AzureOpenAI{Endpoint: "https://openai.example.com/openai/v1", Key: "k"})), false)
	if asked != "https://openai.example.com/openai/v1/chat/completions" || !errdefs.NotFound.Is(err) || !strings.HasPrefix(err.Error(), "azure: HTTP 404: DeploymentNotFound") {
		t.Error(asked, err)
	}
}

func TestAnApplicationAsksEntraIDForTokens(t *testing.T) {
	alone(t)
	s := serve(t, azureSpeaks)
	entra := serve(t, func(w http.ResponseWriter, _ seen) {
		_, _ = io.WriteString(w, `{"token_type":"Bearer","expires_in":3599,"access_token":"eyJ-of-entra"}`)
	})
	t.Setenv("AZURE_AUTHORITY_HOST", entra.URL+"/")
	t.Setenv("AZURE_TENANT_ID", "my-tenant")
	t.Setenv("AZURE_CLIENT_ID", "my-app")
	t.Setenv("AZURE_CLIENT_SECRET", "s3cret~value")
	t.Setenv("AZURE_OPENAI_ENDPOINT", s.URL)
	m := openai.New("d", cloud.Azure(cloud.AzureOpenAI{}))
	for range 2 {
		if _, err := said(t, m, false); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.last(); r.Header.Get("Authorization") != "Bearer eyJ-of-entra" || r.Header.Get("Api-Key") != "" {
		t.Error(r.Header)
	}
	want := url.Values{"grant_type": {"client_credentials"}, "client_id": {"my-app"}, "client_secret": {"s3cret~value"}, "scope": {"https://cognitiveservices.azure.com/.default"}}
	if r := entra.last(); len(entra.requests()) != 1 || r.RequestURI != "/my-tenant/oauth2/v2.0/token" || r.body != want.Encode() {
		t.Error(len(entra.requests()), r.RequestURI, r.body)
	}
	// A refusal is named, without the secret.
	refusing := serve(t, func(w http.ResponseWriter, _ seen) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret s3cret~value provided."}`)
	})
	_, err := said(t, openai.New("d", cloud.Azure(cloud.AzureOpenAI{Authority: refusing.URL, Scope: "https://other/.default"})), false)
	if !errdefs.Unauthorized.Is(err) || !strings.Contains(err.Error(), "invalid_client") || !strings.Contains(err.Error(), "AADSTS7000215") || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
	if r := refusing.last(); !strings.Contains(r.body, url.QueryEscape("https://other/.default")) {
		t.Error(r.body)
	}
}

func TestWhatAzureMissesIsSaid(t *testing.T) {
	alone(t)
	if _, err := said(t, openai.New("d", cloud.Azure(cloud.AzureOpenAI{})), false); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "AZURE_OPENAI_ENDPOINT") {
		t.Error(err)
	}
	if _, err := said(t, openai.New("d", cloud.Azure(cloud.AzureOpenAI{Endpoint: "https://x.openai.azure.com"})), false); !errdefs.Unauthorized.Is(err) || !strings.Contains(err.Error(), "AZURE_OPENAI_API_KEY") {
		t.Error(err)
	}
	s := serve(t, func(w http.ResponseWriter, _ seen) { w.WriteHeader(401) })
	if _, err := said(t, openai.New("d", cloud.Azure(cloud.AzureOpenAI{Endpoint: s.URL, Token: access})), false); !errdefs.Unauthorized.Is(err) || len(s.requests()) != 1 {
		t.Error("a token that was just fetched is not tried again:", err, len(s.requests()))
	}
}

// An address that is none is shown, as nobody else says which of several variables it came from; but never one that may hold a password or a token.
func TestAddressThatIsNone(t *testing.T) {
	alone(t)
	for address, shown := range map[string]bool{"my-resource.openai.azure.com": true, "ftp://host": true, "https://me:hunter2@host": false, "https://host?code=hunter2": false} {
		_, err := said(t, openai.New("d", cloud.Azure(cloud.AzureOpenAI{Endpoint: address, Key: "k"})), false)
		if !errdefs.Validation.Is(err) || strings.Contains(err.Error(), strconv.Quote(address)) != shown || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
