package pawl_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Models at clouds are found by their names, and by what is in the environment for the clouds' own tools.
func TestModelsAtCloudsAreOpenedByName(t *testing.T) {
	var asked *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked = r; r.URL.Path == "/token" {
			_, _ = io.WriteString(w, `{"access_token":"ya29.of-the-login","expires_in":3599}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"content":[{"type":"text","text":"Bonjour"}],"stop_reason":"end_turn",
			"candidates":[{"content":{"parts":[{"text":"Bonjour"}]},"finishReason":"STOP"}],
			"choices":[{"message":{"role":"assistant","content":"Bonjour"},"finish_reason":"stop"}],
			"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Bonjour"}]}]}`)
	}))
	defer s.Close()
	t.Setenv("HOME", t.TempDir())
	login, err := json.Marshal(map[string]string{"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r", "token_uri": s.URL + "/token"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "login.json")
	if err := os.WriteFile(file, login, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "a secret", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_BEARER_TOKEN_BEDROCK": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": s.URL,
		"GOOGLE_APPLICATION_CREDENTIALS": file, "GOOGLE_CLOUD_PROJECT": "my-project", "GOOGLE_CLOUD_LOCATION": "",
		"AZURE_OPENAI_ENDPOINT": s.URL, "AZURE_OPENAI_API_KEY": "the-key", "OPENAI_API_VERSION": "",
	} {
		t.Setenv(name, value)
	}
	for _, tc := range []struct{ name, path, header, value string }{
		{"bedrock/eu.anthropic.claude-haiku-4-5-20251001-v1:0", "/model/eu.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke", "Authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"},
		{"vertex/claude-haiku-4-5@20251001", "/v1/projects/my-project/locations/global/publishers/anthropic/models/claude-haiku-4-5@20251001:rawPredict", "Authorization", "Bearer ya29.of-the-login"},
		{"vertex/gemini-3.8-flash", "/v1/projects/my-project/locations/global/publishers/google/models/gemini-3.8-flash:generateContent", "Authorization", "Bearer ya29.of-the-login"},
		{"azure/my-deployment", "/openai/v1/chat/completions", "Api-Key", "the-key"},
		{"azure-responses/my-deployment", "/openai/v1/responses", "Api-Key", "the-key"},
	} {
		m, err := pawl.OpenModel(tc.name, model.WithBaseURL(s.URL)) // as --base-url gives it
		if err != nil {
			t.Fatal(err)
		}
		if can, _ := model.CapabilitiesOf(m); can.Name != tc.name { // a resume opens it by this name
			t.Errorf("%s calls itself %s", tc.name, can.Name)
		}
		if missing, err := pawl.Key(tc.name); err != nil || missing != nil {
			t.Error(missing, err)
		}
		r, err := m.Complete(t.Context(), model.Request{Messages: message.NewHistory(message.User("Hello"))})
		if err != nil || r.Message.Text() != "Bonjour" {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if asked.RequestURI != tc.path || !strings.HasPrefix(asked.Header.Get(tc.header), tc.value) {
			t.Errorf("%s: %s %v", tc.name, asked.RequestURI, asked.Header)
		}
	}
	t.Setenv("AZURE_OPENAI_API_KEY", "")
	t.Setenv("AZURE_TENANT_ID", "")
	t.Setenv("AZURE_CLIENT_SECRET", "")
	if missing, err := pawl.Key("azure/my-deployment"); err != nil || missing != nil {
		t.Error("an application of Entra ID may be in the place of a key:", missing, err)
	}
	m, err := pawl.OpenModel("azure/my-deployment")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Complete(t.Context(), model.Request{Messages: message.NewHistory(message.User("Hello"))}); !errdefs.Unauthorized.Is(err) || !strings.Contains(err.Error(), "azure: no_credentials: no Azure credentials: set AZURE_OPENAI_API_KEY") {
		t.Error(err)
	}
}
