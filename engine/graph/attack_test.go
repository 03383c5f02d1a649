package graph_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// wild is a cache that does what it likes.
type wild struct {
	get func() []byte
	put func()
}

func (w wild) Get(context.Context, string) ([]byte, bool, error) { return w.get(), true, nil }

func (w wild) Put(context.Context, string, []byte, time.Duration) error {
	w.put()
	return nil
}

// A cache that panics fails no run, and one that makes up calls puts none into the transcript, where they would have no results.
func TestACacheOfTheProgramMayDoAnything(t *testing.T) {
	calls, err := journal.EncodeData(journal.Board{Set: journal.Vars{"got": "made up"}, Append: map[string][]message.Message{"main": {message.Assistant("", message.ToolCall{ID: "c", Name: "rm", Input: "{}"})}}})
	if err != nil {
		t.Fatal(err)
	}
	nothing, panics := func() {}, func() { panic("boom") }
	for name, c := range map[string]graph.Cache{
		"Get panics": wild{func() []byte { panic("boom") }, nothing},
		"Put panics": wild{func() []byte { return nil }, panics},
		"calls":      wild{func() []byte { return append([]byte(time.Now().UTC().Format(time.RFC3339Nano)+"\n"), calls...) }, nothing},
	} {
		k := talks()
		k.Cache = c
		g := compile(t, `
entry: talk
nodes: [{id: talk, type: model, cache: {}, config: {prompt: hi, output: got}}]
edges: [{from: talk, to: __end__}]
`, k)
		store := journal.Memory()
		if res := run(t, g, store, nil); res.Err != nil || res.LastBoard.Var("got") != "you said hi" {
			t.Errorf("%s: %v, %v", name, res.Err, res.LastBoard.Var("got"))
		}
		same(t, name, []string{"user: go", "user: hi", "assistant: you said hi"}, transcript(t, store))
		replayed(t, g, store)
	}
}

// The time of a node is also that of its questions: who answers later is told so, and the node fails. An answer in time counts, whenever the run goes on.
func TestAQuestionHasTheTimeOfItsNode(t *testing.T) {
	asks := hook.Middleware{Name: "asks", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Asking("may I?"), nil }}
	add := tool.Func("add", "", func(context.Context, struct{}) (string, error) { return "done", nil })
	for name, c := range map[string]struct {
		node string
		ttl  time.Duration
		ends time.Duration // of the question
	}{
		"an approval":             {`{id: n, type: approval, timeout: 1m, config: {prompt: "?", output: ok}}`, 0, time.Minute},
		"an approval, less time":  {`{id: n, type: approval, timeout: 1m, config: {prompt: "?", output: ok}}`, time.Second, time.Second},
		"an approval, more time":  {`{id: n, type: approval, timeout: 1m, config: {prompt: "?", output: ok}}`, time.Hour, time.Minute},
		"a tool":                  {`{id: n, type: tool, timeout: 1m, config: {tool: add}}`, 0, time.Minute},
		"in a graph with a time":  {`{id: n, type: subgraph, timeout: 1m, config: {graph: {entry: a, nodes: [{id: a, type: approval, config: {prompt: "?", output: ok}}], edges: [{from: a, to: __end__}]}}}`, 0, time.Minute},
		"in a graph with its own": {`{id: n, type: subgraph, timeout: 1h, config: {graph: {entry: a, nodes: [{id: a, type: approval, timeout: 1m, config: {prompt: "?", output: ok}}], edges: [{from: a, to: __end__}]}}}`, 0, time.Minute},
	} {
		for late, wait := range map[bool]time.Duration{false: c.ends - 100*time.Millisecond, true: c.ends + 100*time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				g := compile(t, "entry: n\nnodes: ["+c.node+"]\nedges: [{from: n, to: __end__}]", graph.Kinds{Loop: loop.Config{Tools: []tool.Tool{add}, Hooks: []hook.Middleware{asks}}})
				store := journal.Memory()
				res := run(t, g, store, nil, agent.WithAskTTL(c.ttl))
				time.Sleep(wait)
				if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: res.Pending[0].ID, Approved: true}); errdefs.Conflict.Is(err) != late || err != nil && !late {
					t.Errorf("%s, late %v: the answer got %v", name, late, err)
				}
				if name != "a tool" { // whose work has its time as well
					time.Sleep(2 * time.Minute)
				}
				res, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, g, "s", agent.WithJournal(store))
				if err != nil {
					t.Fatal(err)
				}
				if errdefs.Timeout.Is(res.Err) != late || res.Err != nil && !late {
					t.Errorf("%s, late %v: %s, %v", name, late, res.Status, res.Err)
				}
				replayed(t, g, store)
			})
		}
	}
}
