package script_test

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
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a model that answers what it was asked last, and notes the requests. What begins with "!" it fails with, with "use NAME INPUT" it calls a tool.
type echo struct {
	mu    sync.Mutex
	asked []model.Request
	name  string
}

func (e *echo) Capabilities() model.Capabilities {
	return model.Capabilities{Name: e.name, Tools: true, Schema: true, ProviderTools: []string{model.WebSearch, model.WebFetch}}
}

func (e *echo) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, req)
	last := req.Messages.Last()
	said := last.Text()
	resp := &model.Response{Message: message.Assistant(e.name + " heard " + said), Stop: model.StopEnd, Usage: model.Usage{Input: 10, Output: 5}}
	if why, ok := strings.CutPrefix(said, "!"); ok {
		return nil, errdefs.NotAvailable.Errorf("%s is away: %s", e.name, why)
	}
	if use, ok := strings.CutPrefix(said, "use "); ok {
		name, input, _ := strings.Cut(use, " ")
		resp.Message, resp.Stop = message.Assistant("", message.ToolCall{ID: "c1", Name: name, Input: input}), model.StopTools
	}
	if json, ok := strings.CutPrefix(said, "give "); ok {
		resp.Message = message.Assistant(json)
	}
	if last.Role() == message.RoleTool {
		resp.Message = message.Assistant("done")
	}
	return resp, nil
}

func (e *echo) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := e.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

func (e *echo) calls() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

// world is what a script can reach, and what it did there.
type world struct {
	model *echo
	mu    sync.Mutex
	done  []string
	tools []tool.Tool
	host  engine.Host
	store journal.Store
	agent agent.Agent
	opts  []agent.RunOption
	cfg   script.Config
}

type sayInput struct {
	Text string `json:"text"`
	N    int    `json:"n,omitempty"`
}

func newWorld() *world {
	w := &world{model: &echo{name: "m"}, store: journal.Memory(), agent: agent.Agent{ID: "a", Instructions: "Be good."}}
	note := func(what string) func(context.Context, sayInput) (string, error) {
		return func(_ context.Context, in sayInput) (string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.done = append(w.done, strings.TrimSpace(what+" "+in.Text))
			switch in.Text {
			case "away":
				return "half", errdefs.NotAvailable.Errorf("the printer is away")
			case "wrong":
				return "", fmt.Errorf("that is wrong")
			}
			return what + "ed " + in.Text, nil
		}
	}
	w.tools = []tool.Tool{
		tool.Func("print", "", note("print")), tool.Func("look", "", note("look"), tool.ReadOnly), tool.Func("put", "", note("put"), tool.Idempotent),
		tool.Func("careful", "", note("careful"), tool.RequiresApproval),
		tool.Func("data", "", func(context.Context, struct{}) (string, error) { return `{"z": 1, "a": [1, 2.5, null]}`, nil }, tool.ReadOnly),
	}
	return w
}

func (w *world) engine(t testing.TB, source string) *script.Engine {
	t.Helper()
	cfg := w.cfg
	cfg.Name, cfg.Source = "test.star", source
	if cfg.Loop.Model == nil && w.model != nil {
		cfg.Loop.Model = w.model
	}
	cfg.Loop.Tools = w.tools
	if cfg.Models == nil {
		cfg.Models = func(name string) (model.Model, error) {
			if name == "none" {
				return nil, errdefs.NotFound.Errorf("no such model")
			}
			return &echo{name: name}, nil
		}
	}
	eng, err := script.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return eng
}

func (w *world) options() []agent.RunOption {
	return append([]agent.RunOption{agent.WithJournal(w.store), agent.WithEngineHost(w.host)}, w.opts...)
}

func (w *world) run(t testing.TB, source string) *agent.Result {
	t.Helper()
	res, err := agent.Run(t.Context(), w.agent, w.engine(t, source), agent.Request{ContextID: "s", RunID: "r", Message: message.User("Go."), Inputs: map[string]any{"topic": "cats", "n": int64(7)}}, w.options()...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (w *world) resume(t testing.TB, source string) *agent.Result {
	t.Helper()
	res, err := agent.Resume(t.Context(), w.agent, w.engine(t, source), "s", w.options()...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// replays fails unless a replay of the session finds no difference and does nothing.
func (w *world) replays(t testing.TB, source string) {
	t.Helper()
	before, calls := len(w.done), w.model.calls()
	if _, err := agent.Replay(t.Context(), w.agent, w.engine(t, source), "s", agent.WithJournal(w.store)); err != nil {
		t.Errorf("the replay differs: %v", err)
	}
	if len(w.done) != before || w.model.calls() != calls {
		t.Error("the replay did something")
	}
}

func (w *world) transcript(t testing.TB) (out []string) {
	t.Helper()
	log, err := journal.Open(t.Context(), w.store, "s")
	if err != nil {
		t.Fatal(err)
	}
	return told(log.State().Messages)
}

func told(h message.History) (out []string) {
	for _, m := range h.All() {
		line := string(m.Role()) + ": " + m.Text()
		for _, c := range m.ToolCalls() {
			line += "[" + c.Name + " " + c.Input + "]"
		}
		for r := range message.Of[message.ToolResult](m) {
			line += "[" + r.Content + "]"
		}
		out = append(out, line)
	}
	return out
}

func same(t testing.TB, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

func completed(t testing.TB, res *agent.Result) {
	t.Helper()
	if res.Status != agent.StatusCompleted {
		t.Fatalf("the run is %s: %v", res.Status, res.Err)
	}
}
