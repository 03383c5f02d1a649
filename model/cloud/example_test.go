package cloud_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/cloud"
	"github.com/pawl-dev/pawl/model/gemini"
	"github.com/pawl-dev/pawl/model/openai"
)

// canned answers without a network: it says which address it was asked at, and always the same.
type canned string

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	fmt.Println(r.URL)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(c)))}, nil
}

// The clients and the credentials are of the example: without them the models find their own, and the clouds.
func Example() {
	token := func(context.Context) (cloud.Token, error) { return cloud.Token{Value: "an access token"}, nil }
	keys := func(context.Context) (cloud.AWSCredentials, error) {
		return cloud.AWSCredentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "a secret"}, nil
	}
	of := func(answer string) model.Option {
		return model.WithHTTPClient(&http.Client{Transport: canned(answer)})
	}
	claude := of(`{"content":[{"type":"text","text":"Bonjour."}],"stop_reason":"end_turn"}`)
	gpt := of(`{"choices":[{"message":{"role":"assistant","content":"Salut."},"finish_reason":"stop"}]}`)
	flash := of(`{"candidates":[{"content":{"parts":[{"text":"Bonsoir."}]},"finishReason":"STOP"}]}`)

	for _, m := range []model.Model{
		anthropic.New("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", claude, cloud.Bedrock(cloud.AWS{Region: "eu-central-1", Credentials: keys})),
		anthropic.New("claude-sonnet-4-5@20250929", claude, cloud.Vertex(cloud.GCP{Project: "my-project", Token: token})),
		gemini.New("gemini-2.5-flash", flash, cloud.Vertex(cloud.GCP{Project: "my-project", Location: "europe-west1", Token: token})),
		openai.New("my-deployment", gpt, cloud.Azure(cloud.AzureOpenAI{Endpoint: "https://my-resource.openai.azure.com", Token: token})),
	} {
		resp, err := m.Complete(context.Background(), model.Request{Messages: message.NewHistory(message.User("Say hello in French."))})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.Message.Text())
	}
	// Output:
	// https://bedrock-runtime.eu-central-1.amazonaws.com/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke
	// Bonjour.
	// https://aiplatform.googleapis.com/v1/projects/my-project/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict
	// Bonjour.
	// https://europe-west1-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west1/publishers/google/models/gemini-2.5-flash:generateContent
	// Bonsoir.
	// https://my-resource.openai.azure.com/openai/v1/chat/completions
	// Salut.
}
