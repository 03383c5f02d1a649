package anthropic_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
)

// canned is a server that always says the same.
type canned string

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(c)))}, nil
}

func Example() {
	client := &http.Client{Transport: canned(`data: {"type":"message_start","message":{"model":"claude-sonnet-4-5-20250929","usage":{"input_tokens":12}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Paris"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"."}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}

data: {"type":"message_stop"}

`)}
	// In earnest: anthropic.New("claude-sonnet-4-5"), with the key in ANTHROPIC_API_KEY.
	m := anthropic.New("claude-sonnet-4-5", model.WithKey("k"), model.WithHTTPClient(client))

	err := m.CompleteStream(context.Background(), model.Request{
		System:   "Answer in one word.",
		Messages: message.NewHistory(message.User("What is the capital of France?")),
	}, func(r model.StreamResult) error {
		if r.Final {
			fmt.Printf("\n%s: %s, %d tokens in, %d out\n", r.Response.Model, r.Response.Stop, r.Response.Usage.Input, r.Response.Usage.Output)
			return nil
		}
		fmt.Print(r.Text)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// Paris.
	// claude-sonnet-4-5-20250929: end_turn, 12 tokens in, 3 out
}
