package anthropic_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/cassette"
)

// streams is a server that answers with files of testdata, in order. It is asked only when the cassette is recorded.
type streams []string

func (s *streams) RoundTrip(*http.Request) (*http.Response, error) {
	b, err := os.ReadFile(filepath.Join("testdata", (*s)[0]))
	*s = (*s)[1:]
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(b)))}, err
}

// The cassette holds every byte of both requests: a round of tools changes nothing of what was sent before.
func TestARoundOfToolsIsSentAsItWasRecorded(t *testing.T) {
	c := cassette.NewHTTP(t, filepath.Join("testdata", "tool_round.cassette"), &streams{"calls.sse", "text.sse"})
	m := anthropic.New("test-model", model.WithKey("key-of-the-test"), model.WithHTTPClient(c))
	req := model.Request{
		System: "Look before you answer.", Messages: message.NewHistory(message.User("What is in go.mod?")), Settings: model.Settings{MaxTokens: 100},
		Tools: []model.Tool{{Name: "read", Description: "Reads a file.", Schema: []byte(`{"type":"object","properties":{"file_path":{"type":"string"}}}`)}},
	}
	hear := func() (heard string, said message.Message) {
		if err := m.CompleteStream(t.Context(), req, func(p model.StreamResult) error {
			if heard += p.Text; p.Final {
				said = p.Response.Message
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return heard, said
	}
	first, said := hear()
	var results []message.ToolResult
	for _, call := range said.ToolCalls() {
		results = append(results, message.ToolResult{Call: call.ID, Name: call.Name, Content: "module x\n"})
	}
	req.Messages = req.Messages.Append(said, message.Results(results...))
	second, _ := hear()
	if d := cmp.Diff([]string{"Let me look.", "Hello, wörld 👋! <b>&amp;</b>"}, []string{first, second}); d != "" || len(results) != 2 {
		t.Errorf("%d calls (-want +got):\n%s", len(results), d)
	}
}
