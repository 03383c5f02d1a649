package gemini_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/gemini"
)

func Example() {
	// A server on this machine in place of Google's.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"candidates":[{"content":{"parts":[{"text":"Lis"}]}}]}`, "\r\n\r\n")
		fmt.Fprint(w, `data: {"candidates":[{"content":{"parts":[{"text":"bon."}]},"finishReason":"STOP"}],`+
			`"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2}}`, "\r\n\r\n")
	}))
	defer server.Close()

	m := gemini.New("gemini-2.5-flash", model.WithKey("key"), model.WithBaseURL(server.URL))
	req := model.Request{Messages: message.NewHistory(message.User("The capital of Portugal?"))}
	err := m.CompleteStream(context.Background(), req, func(r model.StreamResult) error {
		if r.Final {
			fmt.Println("|", r.Response.Stop, r.Response.Usage.Total())
			return nil
		}
		fmt.Print(r.Text)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: Lisbon.| end_turn 10
}
