package openai

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	httpapi.CloseIdle()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// heard is what a stream said.
type heard struct {
	input           []string // with the call and its tool
	text, reasoning []string
	final           *model.Response
	err             error
}

// play runs a stream decoder over bytes.
func play(ctx context.Context, stream listener, sse string) (h heard) {
	h.final, h.err = stream(ctx, nil, wire.NewEvents(strings.NewReader(sse)), func(r model.StreamResult) error {
		if r.Text != "" {
			h.text = append(h.text, r.Text)
		}
		if r.Reasoning != "" {
			h.reasoning = append(h.reasoning, r.Reasoning)
		}
		if r.Input != "" {
			h.input = append(h.input, fmt.Sprint(r.Call, r.Tool, r.Input))
		}
		return nil
	})
	return h
}

// events makes an event stream of the data of each event.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// parts lists the parts of a message.
func parts(m message.Message) (out []message.Part) {
	for p := range m.Parts() {
		out = append(out, p)
	}
	return out
}

func ptr[T any](v T) *T { return &v }
