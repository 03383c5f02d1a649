package oracle

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azurecloud "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/google/go-cmp/cmp"
	openaisdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/azure"
	"github.com/openai/openai-go/v3/option"

	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/cloud"
	"github.com/pawl-dev/pawl/model/openai"
)

const gptSays = `{"id":"c","object":"chat.completion","created":1,"model":"gpt-5","choices":[{"index":0,"message":{"role":"assistant","content":"Bonjour"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`

// An application asks Entra ID for a token as Azure's SDK does, but for what that one tells of itself.
func TestAnApplicationAsksForATokenAsAzuresSDKDoes(t *testing.T) {
	const tenant = "11111111-2222-3333-4444-555555555555"
	var all []cloudCall
	var s *httptest.Server
	s = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration") {
			base := s.URL + "/" + tenant
			_, _ = io.WriteString(w, `{"token_endpoint":"`+base+`/oauth2/v2.0/token","authorization_endpoint":"`+base+`/oauth2/v2.0/authorize","issuer":"`+base+`/v2.0"}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		form, err := url.ParseQuery(string(body))
		if err != nil {
			t.Error(err)
		}
		kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		all = append(all, cloudCall{r.Method, r.URL.Path, kind, form})
		_, _ = io.WriteString(w, `{"token_type":"Bearer","expires_in":3599,"access_token":"eyJ-token"}`)
	}))
	defer s.Close()
	credential, err := azidentity.NewClientSecretCredential(tenant, "my-app", "the secret~", &azidentity.ClientSecretCredentialOptions{
		ClientOptions:            azcore.ClientOptions{Transport: s.Client(), Cloud: azurecloud.Configuration{ActiveDirectoryAuthorityHost: s.URL}},
		DisableInstanceDiscovery: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := credential.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://cognitiveservices.azure.com/.default"}})
	if err != nil {
		t.Fatal(err)
	}
	e := &exchange{answer: answering("application/json", []byte(gptSays))}
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/oauth2/") {
			return s.Client().Transport.RoundTrip(r)
		}
		return e.RoundTrip(r)
	})}
	m := openai.New("d", model.WithHTTPClient(client), cloud.Azure(cloud.AzureOpenAI{Endpoint: "https://x.openai.azure.com", Tenant: tenant, Client: "my-app", Secret: "the secret~", Authority: s.URL}))
	if _, err := m.Complete(t.Context(), helloAgain); err != nil {
		t.Fatal(err)
	}
	if got := e.sent.Header.Get("Authorization"); got != "Bearer "+theirs.Token {
		t.Error(got)
	}
	if len(all) != 2 {
		t.Fatalf("%d requests", len(all))
	}
	for name := range all[0].Form {
		if strings.HasPrefix(name, "x-") || name == "client_info" {
			all[0].Form.Del(name)
		}
	}
	all[0].Form.Set("scope", strings.TrimSuffix(all[0].Form.Get("scope"), " openid offline_access profile")) // scopes of a person's login, which it always adds
	if diff := cmp.Diff(all[0], all[1]); diff != "" {
		t.Error(diff)
	}
}

func TestAzureIsAskedAsOpenAIsSDKAsksIt(t *testing.T) {
	for _, version := range []string{"2024-10-21", "2025-04-01-preview"} {
		theirs, ours := &exchange{answer: answering("application/json", []byte(gptSays))}, &exchange{answer: answering("application/json", []byte(gptSays))}
		client := openaisdk.NewClient(option.WithHTTPClient(&http.Client{Transport: theirs}), azure.WithEndpoint("https://x.openai.azure.com", version), azure.WithAPIKey("the-key"))
		if _, err := client.Chat.Completions.New(t.Context(), openaisdk.ChatCompletionNewParams{Model: "my deployment", Messages: []openaisdk.ChatCompletionMessageParamUnion{openaisdk.UserMessage("Hello")}}); err != nil {
			t.Fatal(err)
		}
		m := openai.New("my deployment", model.WithHTTPClient(&http.Client{Transport: ours}), cloud.Azure(cloud.AzureOpenAI{Endpoint: "https://x.openai.azure.com", APIVersion: version, Key: "the-key"}))
		if _, err := m.Complete(t.Context(), helloAgain); err != nil {
			t.Fatal(err)
		}
		if theirs.sent.URL.String() != ours.sent.URL.String() || theirs.sent.Header.Get("Api-Key") != ours.sent.Header.Get("Api-Key") {
			t.Errorf("\ntheirs %s %v\nours   %s %v", theirs.sent.URL, theirs.sent.Header, ours.sent.URL, ours.sent.Header)
		}
	}
}
