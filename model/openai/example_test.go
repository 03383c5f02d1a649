package openai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/openai"
)

// answer is a transport that answers by itself, so that the example needs no network.
type answer string

func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

func Example() {
	const stream = `data: {"model":"gpt-5","choices":[{"index":0,"delta":{"content":"Hello "}}]}

data: {"model":"gpt-5","choices":[{"index":0,"delta":{"content":"there."},"finish_reason":"stop"}]}

data: {"model":"gpt-5","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}

data: [DONE]

`
	m := openai.New("gpt-5", model.WithKey("sk-…"), model.WithHTTPClient(&http.Client{Transport: answer(stream)}))
	req := model.Request{System: "Be brief.", Messages: message.NewHistory(message.User("Hi!"))}
	err := m.CompleteStream(context.Background(), req, func(r model.StreamResult) error {
		if r.Final {
			fmt.Println(r.Response.Stop, r.Response.Usage.Total())
			return nil
		}
		fmt.Printf("%q\n", r.Text)
		return nil
	})
	fmt.Println(err)
	// Output:
	// "Hello "
	// "there."
	// end_turn 12
	// <nil>
}

func ExampleVendor() {
	ollama := openai.Vendor{Name: "ollama", BaseURL: "http://localhost:11434/v1"}
	deepseek := openai.Vendor{Name: "deepseek", BaseURL: "https://api.deepseek.com", Env: []string{"DEEPSEEK_API_KEY"}}
	fmt.Println(ollama.New("llama3").Capabilities().Name)
	fmt.Println(deepseek.New("deepseek-v4-pro").Capabilities().Name)
	// Output:
	// ollama/llama3
	// deepseek/deepseek-v4-pro
}
