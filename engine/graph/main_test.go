package graph_test

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
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a model that says what it was asked: it goes by the transcript alone, so branches may ask it in any order.
type echo struct{}

func (echo) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	text := req.Messages.Last().Text()
	if strings.HasPrefix(text, "call ") && req.Messages.Last().Role() == message.RoleUser {
		name, input, _ := strings.Cut(strings.TrimPrefix(text, "call "), " ")
		return &model.Response{Message: message.Assistant("", message.ToolCall{ID: "c", Name: name, Input: input}), Stop: model.StopTools, Usage: model.Usage{Input: 1, Output: 1}}, nil
	}
	if req.Messages.Last().Role() == message.RoleTool {
		for r := range message.Of[message.ToolResult](req.Messages.Last()) {
			text = r.Content
		}
	}
	if strings.HasPrefix(text, "json ") {
		return &model.Response{Message: message.Assistant(strings.TrimPrefix(text, "json ")), Stop: model.StopEnd}, nil
	}
	said := "you said " + text
	if req.System != "" && req.System != "S" {
		said = req.System + ": " + said
	}
	return &model.Response{Message: message.Assistant(said), Stop: model.StopEnd, Usage: model.Usage{Input: 1, Output: 1}}, nil
}

func (e echo) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := e.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

// parse reads a definition from YAML.
func parse(t testing.TB, text string) graph.Definition {
	t.Helper()
	d, err := graph.Parse("test.yaml", []byte(strings.ReplaceAll(text, "\t", "  ")))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func compile(t testing.TB, text string, k graph.Kinds) *graph.Engine {
	t.Helper()
	g, err := graph.Compile(parse(t, text), k)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// talks are kinds with the model echo.
func talks() graph.Kinds { return graph.Kinds{Loop: loop.Config{Model: echo{}}} }

// run runs a graph from a prompt, as agent.Run does.
func run(t testing.TB, eng engine.Engine, store journal.Store, inputs map[string]any, opts ...agent.RunOption) *agent.Result {
	t.Helper()
	res, err := agent.Run(t.Context(), agent.Agent{ID: "a", Instructions: "S"}, eng, agent.Request{ContextID: "s", Message: message.User("go"), Inputs: inputs}, append(opts, agent.WithJournal(store))...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func completed(t testing.TB, res *agent.Result) *engine.Board {
	t.Helper()
	if res.Status != agent.StatusCompleted {
		t.Fatalf("%s: %v", res.Status, res.Err)
	}
	return res.LastBoard
}

// replayed fails unless the session goes as it went, effect by effect.
func replayed(t testing.TB, eng engine.Engine, store journal.Store) {
	t.Helper()
	if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a", Instructions: "S"}, eng, "s", agent.WithJournal(store)); err != nil {
		t.Error(err)
	}
}

// transcript is a session's, a line a message.
func transcript(t testing.TB, store journal.Store) (lines []string) {
	t.Helper()
	log, err := journal.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	return said(log.State().Messages)
}

func said(h message.History) (lines []string) {
	for _, m := range h.All() {
		line := string(m.Role()) + ": " + m.Text()
		for _, c := range m.ToolCalls() {
			line += fmt.Sprintf("[%s %s]", c.Name, c.Input)
		}
		for r := range message.Of[message.ToolResult](m) {
			line += "<" + r.Content + ">"
		}
		lines = append(lines, line)
	}
	return lines
}

// effects are the keys with an outcome on record, in order.
func effects(t testing.TB, store journal.Store) (keys []string) {
	t.Helper()
	all, err := journal.Attempts(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		for _, e := range a.Effects {
			if e.Done > 0 {
				keys = append(keys, e.Key.String())
			}
		}
	}
	return keys
}

func same(t testing.TB, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// counter makes functions that note their calls and set a var.
type counter struct {
	mu    sync.Mutex
	calls []string
}

func (c *counter) sets(name string, value any) graph.NodeFunc {
	return func(context.Context, engine.Snapshot) (journal.Board, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls = append(c.calls, name)
		return journal.Board{Set: journal.Vars{name: value}}, nil
	}
}
