package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a stub model. It answers by how far the transcript is, so that it needs no state of its own and goes on wherever a run is resumed.
type script []message.Message

func (s script) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	n := 0
	for _, m := range req.Messages.All() {
		if m.Role() == message.RoleAssistant {
			n++
		}
	}
	if n >= len(s) {
		return &model.Response{Message: message.Assistant("done")}, nil
	}
	return &model.Response{Message: s[n], Usage: model.Usage{Input: 10, Output: 5}}, nil
}

func (s script) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := s.Complete(ctx, req)
	if err != nil {
		return err
	}
	for word := range strings.SplitAfterSeq(resp.Message.Text(), " ") {
		if err := cb(model.StreamResult{Text: word}); err != nil {
			return err
		}
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

func call(id, name, input string) message.ToolCall {
	return message.ToolCall{ID: id, Name: name, Input: input}
}

func looping(t testing.TB, m model.Model, tools ...tool.Tool) *loop.Engine {
	t.Helper()
	eng, err := loop.New(loop.Config{Model: m, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	return eng
}

func saying(t testing.TB, texts ...string) *loop.Engine {
	var s script
	for _, text := range texts {
		s = append(s, message.Assistant(text))
	}
	return looping(t, s)
}

func asking(session, text string) agent.Request {
	return agent.Request{ContextID: session, Message: message.User(text)}
}

// run runs to the end and fails the test when it could not begin.
func run(t testing.TB, ag agent.Agent, eng engine.Engine, req agent.Request, opts ...agent.RunOption) *agent.Result {
	t.Helper()
	if ag.ID == "" {
		ag.ID = "a"
	}
	res, err := agent.Run(t.Context(), ag, eng, req, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func resume(t testing.TB, ag agent.Agent, eng engine.Engine, session string, opts ...agent.RunOption) *agent.Result {
	t.Helper()
	if ag.ID == "" {
		ag.ID = "a"
	}
	res, err := agent.Resume(t.Context(), ag, eng, session, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func state(t testing.TB, s journal.Store, session string) journal.State {
	t.Helper()
	log, err := journal.Open(context.Background(), s, session)
	if err != nil {
		t.Fatal(err)
	}
	return log.State()
}

func read(t testing.TB, s journal.Store, session string) (es []journal.Entry) {
	t.Helper()
	for e, err := range s.Read(context.Background(), session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		es = append(es, e)
	}
	return es
}

func kinds(es []journal.Entry) (out []string) {
	for _, e := range es {
		line := string(e.Data.Kind())
		if e.Key != (journal.Key{}) {
			line += " " + e.Key.String()
		}
		out = append(out, line)
	}
	return out
}

// last gives the session's last entry of a type.
func last[D journal.Data](t testing.TB, s journal.Store, session string) (d D) {
	t.Helper()
	for _, e := range read(t, s, session) {
		if x, ok := e.Data.(D); ok {
			d = x
		}
	}
	return d
}

// lines shows messages, a line each.
func lines(ms ...message.Message) []string {
	out := make([]string, 0, len(ms))
	for _, m := range ms {
		var b strings.Builder
		fmt.Fprintf(&b, "%s: %s", m.Role(), m.Text())
		for p := range m.Parts() {
			switch p := p.(type) {
			case message.ToolCall:
				fmt.Fprintf(&b, " <%s %s>", p.ID, p.Name)
			case message.ToolResult:
				fmt.Fprintf(&b, " [%s %s]", p.Call, p.Content)
			}
		}
		out = append(out, b.String())
	}
	return out
}

func history(h message.History) []string {
	var ms []message.Message
	for _, m := range h.All() {
		ms = append(ms, m)
	}
	return lines(ms...)
}

func same(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// works is a tool that writes, and counts its runs by call.
type works struct {
	mu   sync.Mutex
	runs map[string]int // by idempotency key
}

func (w *works) tool(name string, opts ...tool.Option) tool.Tool {
	return tool.Func(name, "", func(ctx context.Context, _ struct{}) (string, error) {
		c := tool.FromContext(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.runs == nil {
			w.runs = map[string]int{}
		}
		w.runs[c.Key]++
		return name + " did " + c.ID, nil
	}, opts...)
}

// total is how often it ran, and most how often with one key.
func (w *works) total() (total, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.runs {
		total, most = total+n, max(most, n)
	}
	return total, most
}
