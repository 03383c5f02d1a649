package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// adds is a tool.
var adds = tool.Func("add", "", func(_ context.Context, in struct {
	A int `json:"a"`
	B int `json:"b"`
},
) (string, error) {
	if in.A < 0 {
		return "", errdefs.Validation.Errorf("a is negative")
	}
	return fmt.Sprintf(`{"sum": %d}`, in.A+in.B), nil
})

func TestAWholeGraph(t *testing.T) {
	k := talks()
	k.Loop.Tools = []tool.Tool{adds}
	g := compile(t, `
name: whole
entry: plan
vars: [topic]
nodes:
- {id: plan, type: model, config: {prompt: "plan ${topic}", system: "P", output: plan}}
- {id: research, type: model, config: {prompt: 'call add {"a": 1, "b": 2}', channel: aside, output: found}}
- {id: sum, type: tool, config: {tool: add, args: {a: "${len(topic)}", b: 4}, output: sum, json: true}}
- id: check
  type: script
  config:
    outputs: [enough, rounds]
    source: |
      rounds = vars.get("rounds", 0) + 1
      return {"enough": rounds > 1, "rounds": rounds}
- {id: route, type: router, config: {routes: [{when: enough, to: say}], else: plan}}
- {id: say, type: template, config: {template: "sum ${sum['sum']}, found ${found}, rounds ${rounds}, last ${last.text}", output: said, role: assistant}}
edges:
- {from: plan, to: research}
- {from: plan, to: sum}
- {from: research, to: check}
- {from: sum, to: check}
- {from: check, to: route}
- {from: say, to: __end__}
`, k)
	store := journal.Memory()
	res := run(t, g, store, map[string]any{"topic": "cats"})
	board := completed(t, res)
	want := `sum 8, found you said {"sum": 3}, rounds 2, last P: you said plan cats`
	if res.Text() != want || board.Var("said") != want {
		t.Errorf("%q, %v", res.Text(), board.Var("said"))
	}
	same(t, "the transcript", []string{
		"user: go",
		"user: plan cats", "assistant: P: you said plan cats",
		"user: plan cats", "assistant: P: you said plan cats",
		"assistant: " + want,
	}, transcript(t, store))
	if n := board.Channel("aside").Len(); n != 8 {
		t.Error(said(board.Channel("aside")))
	}
	if res.Usage.Input != 6 {
		t.Errorf("%+v", res.Usage)
	}
	replayed(t, g, store)
}

// Branches of different lengths meet once, where all are there; an edge that leads back is no reason to wait.
func TestBranchesOfDifferentLengthsMeetOnce(t *testing.T) {
	c := &counter{}
	k := graph.Kinds{Funcs: map[string]graph.NodeFunc{}}
	for _, name := range []string{"a", "b", "c1", "c2", "join"} {
		k.Funcs[name] = c.sets(name, 1)
	}
	g := compile(t, `
entry: a
nodes:
- {id: a, type: func, config: {func: a}}
- {id: b, type: func, config: {func: b}}
- {id: c1, type: func, config: {func: c1}}
- {id: c2, type: func, config: {func: c2}}
- {id: join, type: func, config: {func: join}}
edges:
- {from: a, to: b}
- {from: a, to: c1}
- {from: c1, to: c2}
- {from: b, to: join}
- {from: c2, to: join}
- {from: join, to: a, condition: 'visits["join"] < 2'}
- {from: join, to: __end__}
`, k)
	store := journal.Memory()
	completed(t, run(t, g, store, nil))
	once := []string{"a:visit", "wave/1", "b:visit", "c1:visit", "wave/2", "c2:visit", "wave/3", "join:visit", "wave/4"}
	keys := effects(t, store)
	if len(keys) != 2*len(once) || len(c.calls) != 10 {
		t.Fatalf("%q %q", keys, c.calls)
	}
	// b and c1 run side by side.
	if keys[2] == "c1:visit" {
		keys[2], keys[3] = keys[3], keys[2]
	}
	same(t, "the first round", once, keys[:len(once)])
	if keys[len(once)] != "a#2:visit" || keys[len(keys)-1] != "wave/8" {
		t.Error(keys)
	}
}

func TestEdgesFireTogetherOrElseTheOneWithoutACondition(t *testing.T) {
	for n, want := range map[int]string{1: "low", 5: "low high", 9: "high", 20: "other"} {
		g := compile(t, `
entry: begin
vars: [n]
nodes:
- {id: begin, type: script, config: {source: 'return {"way": ""}', outputs: [way]}}
- {id: low, type: template, config: {template: "low", output: low}}
- {id: high, type: template, config: {template: "high", output: high}}
- {id: other, type: template, config: {template: "other", output: other}}
edges:
- {from: begin, to: other}
- {from: begin, to: low, condition: n < 6}
- {from: begin, to: high, condition: n > 4 and n < 10}
- {from: low, to: __end__}
- {from: high, to: __end__}
- {from: other, to: __end__}
`, graph.Kinds{})
		board := completed(t, run(t, g, journal.Memory(), map[string]any{"n": n}))
		var got []string
		for _, name := range []string{"low", "high", "other"} {
			if v, ok := board.Var(name).(string); ok {
				got = append(got, v)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("n = %d: %q, want %s", n, got, want)
		}
	}
}

func TestARouterTakesTheFirstRouteThatHolds(t *testing.T) {
	for n, want := range map[int]any{1: "one", 2: "two", 3: nil} {
		g := compile(t, `
entry: route
vars: [n]
nodes:
- {id: route, type: router, config: {routes: [{when: n < 2, to: one}, {when: n < 3, to: two}, {when: n < 4, to: __end__}]}}
- {id: one, type: template, config: {template: one, output: got}}
- {id: two, type: template, config: {template: two, output: got}}
edges:
- {from: one, to: __end__}
- {from: two, to: __end__}
`, graph.Kinds{})
		if got := completed(t, run(t, g, journal.Memory(), map[string]any{"n": n})).Var("got"); got != want {
			t.Errorf("n = %d: %v, want %v", n, got, want)
		}
		if n > 1 {
			continue
		}
		res := run(t, g, journal.Memory(), map[string]any{"n": 7})
		if !errdefs.Validation.Is(res.Err) || !strings.Contains(res.Err.Error(), "node route: none of its conditions holds") {
			t.Error(res.Err)
		}
	}
}

func TestANodeIsSkipped(t *testing.T) {
	for skip, want := range map[bool]any{true: nil, false: "said"} {
		g := compile(t, `
entry: say
vars: [quiet]
nodes:
- {id: say, type: template, skip_condition: quiet, config: {template: said, output: text}}
edges: [{from: say, to: __end__}]
`, graph.Kinds{})
		if got := completed(t, run(t, g, journal.Memory(), map[string]any{"quiet": skip})).Var("text"); got != want {
			t.Error(skip, got)
		}
	}
}

func TestAGateLetsThroughDivertsOrEndsTheRun(t *testing.T) {
	text := `
entry: gate
vars: [ok]
nodes:
- {id: gate, type: gate, config: {condition: ok, %s}}
- {id: through, type: template, config: {template: through, output: got}}
- {id: aside, type: template, config: {template: aside, output: got}}
edges:
- {from: gate, to: through}
%s
- {from: through, to: __end__}
- {from: aside, to: __end__}
`
	with := compile(t, fmt.Sprintf(text, "else: aside", ""), graph.Kinds{})
	for ok, want := range map[bool]any{true: "through", false: "aside"} {
		if got := completed(t, run(t, with, journal.Memory(), map[string]any{"ok": ok})).Var("got"); got != want {
			t.Error(ok, got)
		}
	}
	without := compile(t, fmt.Sprintf(text, "message: 'no: ${ok}'", "- {from: through, to: aside}"), graph.Kinds{})
	res := run(t, without, journal.Memory(), map[string]any{"ok": false})
	if res.Status != agent.StatusFailed || !errdefs.PolicyDenied.Is(res.Err) || res.Err.Error() != "graph: node gate: no: False" {
		t.Error(res.Status, res.Err)
	}
}

func TestAToolsErrorEndsTheRunUnlessItMayGoOn(t *testing.T) {
	text := `
entry: sum
nodes:
- {id: sum, type: tool, config: {tool: add, args: {a: -1, b: 1}, output: got%s}}
edges: [{from: sum, to: __end__}]
`
	k := graph.Kinds{Loop: loop.Config{Tools: []tool.Tool{adds}}}
	res := run(t, compile(t, fmt.Sprintf(text, ""), k), journal.Memory(), nil)
	if !errdefs.Aborted.Is(res.Err) || !strings.Contains(res.Err.Error(), "a is negative") {
		t.Error(res.Err)
	}
	if got := completed(t, run(t, compile(t, fmt.Sprintf(text, ", on_error: continue"), k), journal.Memory(), nil)).Var("got"); got != "a is negative" {
		t.Error(got)
	}
}

// The agent's gate holds for tool nodes as for models.
func TestAToolNodeGoesThroughTheAgentsGate(t *testing.T) {
	g := compile(t, `
entry: sum
nodes: [{id: sum, type: tool, config: {tool: add, args: {a: 1, b: 1}}}]
edges: [{from: sum, to: __end__}]
`, graph.Kinds{Loop: loop.Config{Tools: []tool.Tool{adds}}})
	res, err := agent.Run(t.Context(), agent.Agent{ID: "a", Tools: []string{}}, g, agent.Request{Message: message.User("go")})
	if err != nil || !errdefs.Aborted.Is(res.Err) {
		t.Error(err, res.Err)
	}
}

func TestApprovalsParkTheRunAndItGoesOnWithTheAnswers(t *testing.T) {
	g := compile(t, `
entry: begin
nodes:
- {id: begin, type: template, config: {template: x, output: x}}
- {id: may, type: approval, config: {prompt: "May I, ${x}?", output: ok, text: why}}
- {id: too, type: approval, config: {prompt: "And I?", output: also}}
- {id: end, type: template, config: {template: "${ok} ${also} ${why}", output: got}}
edges:
- {from: begin, to: may}
- {from: begin, to: too}
- {from: may, to: end}
- {from: too, to: end}
- {from: end, to: __end__}
`, graph.Kinds{})
	store := journal.Memory()
	res := run(t, g, store, nil)
	if res.Status != agent.StatusInterrupted || res.Cause != engine.CauseAwaitingPerson || len(res.Pending) != 2 {
		t.Fatalf("%s %s %+v", res.Status, res.Cause, res.Pending)
	}
	for _, p := range res.Pending {
		if !p.Confirm || p.Call != nil {
			t.Errorf("%+v", p)
		}
		yes := p.Prompt == "May I, x?"
		if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: p.ID, Approved: yes, Text: "because"}); err != nil {
			t.Fatal(err)
		}
	}
	res, err := agent.Resume(t.Context(), agent.Agent{ID: "a", Instructions: "S"}, g, "s", agent.WithJournal(store))
	if err != nil {
		t.Fatal(err)
	}
	if got := completed(t, res).Var("got"); got != "True False because" {
		t.Error(got)
	}
	replayed(t, g, store)
}

func TestASubgraphWorksOnTheSameBoardInAScopeOfItsOwn(t *testing.T) {
	k := talks()
	k.Graphs = map[string]graph.Definition{"inner": parse(t, `
entry: say
nodes:
- {id: say, type: model, config: {prompt: "inner ${topic}", output: heard}}
- {id: more, type: template, config: {template: "${heard}!", output: loud}}
edges:
- {from: say, to: more}
- {from: more, to: __end__}
vars: [topic]
`)}
	g := compile(t, `
entry: sub
vars: [topic]
nodes:
- {id: sub, type: subgraph, config: {graph: inner}}
- {id: end, type: template, config: {template: "${loud} ${heard}", output: got}}
edges:
- {from: sub, to: end}
- {from: end, to: __end__}
`, k)
	store := journal.Memory()
	board := completed(t, run(t, g, store, map[string]any{"topic": "x"}))
	if got := board.Var("got"); got != "you said inner x! you said inner x" {
		t.Error(got)
	}
	same(t, "the transcript", []string{"user: go", "user: inner x", "assistant: you said inner x"}, transcript(t, store))
	same(t, "effects", []string{"sub:say:prepare", "sub:say:model/1", "sub:say:stop/1", "wave/1", "wave/2"}, effects(t, store))
	replayed(t, g, store)
}

func TestAMapRunsAGraphForEachItemAndKeepsTheirOrder(t *testing.T) {
	g := compile(t, `
entry: each
vars: [topics]
nodes:
- id: each
  type: map
  config:
    over: topics
    as: topic
    concurrency: 2
    graph:
      entry: say
      nodes: [{id: say, type: model, config: {prompt: "about ${topic}", output: heard}}]
      edges: [{from: say, to: __end__}]
    result: '"%s: %s" % (topic, heard)'
    output: all
edges: [{from: each, to: __end__}]
`, talks())
	store := journal.Memory()
	board := completed(t, run(t, g, store, map[string]any{"topics": []string{"a", "b", "c"}}))
	same(t, "the list", []any{"a: you said about a", "b: you said about b", "c: you said about c"}, board.Var("all"))
	same(t, "the transcript", []string{
		"user: go", "user: about a", "assistant: you said about a", "user: about b", "assistant: you said about b", "user: about c", "assistant: you said about c",
	}, transcript(t, store))
	if board.Var("topic") != nil || board.Var("heard") != nil {
		t.Error("an item's vars are its own")
	}
	replayed(t, g, store)
	if res := run(t, g, journal.Memory(), map[string]any{"topics": make([]any, 101)}); !errdefs.BudgetExceeded.Is(res.Err) {
		t.Error(res.Err)
	}
	if res := run(t, g, journal.Memory(), map[string]any{"topics": "abc"}); !errdefs.Validation.Is(res.Err) {
		t.Error(res.Err)
	}
}

func TestAnAgentNodeGivesATaskAndAHandoffEndsTheRun(t *testing.T) {
	kid, err := loop.New(loop.Config{Model: echo{}})
	if err != nil {
		t.Fatal(err)
	}
	task, err := agent.Task([]agent.Subagent{{Agent: agent.Agent{ID: "kid"}, Engine: kid}})
	if err != nil {
		t.Fatal(err)
	}
	hs := []agent.Handoff{{ToAgentID: "billing"}}
	k := graph.Kinds{Loop: loop.Config{Tools: append(agent.HandoffTools(t.Context(), nil, hs), task)}}
	g := compile(t, `
entry: ask
nodes:
- {id: ask, type: agent, config: {agent: kid, prompt: "do ${last.text}", output: did}}
- {id: over, type: handoff, config: {tool: transfer_to_billing, note: "${did}"}}
edges:
- {from: ask, to: over}
- {from: over, to: __end__}
`, k)
	store := journal.Memory()
	res := run(t, g, store, nil, agent.WithDecider(agent.HandoffDecider(hs)))
	board := completed(t, res)
	if board.Var("did") != "you said do go" {
		t.Error(board.Var("did"))
	}
	ev, ok := agent.HandoffFromResult(res)
	if !ok || ev.ToAgentID != "billing" || ev.Args.Note != "you said do go" {
		t.Errorf("%+v, %v", ev, ok)
	}
	same(t, "the transcript", []string{"user: go", `assistant: [transfer_to_billing {"note":"you said do go"}]`, "tool: <Handoff initiated to billing>"}, transcript(t, store))
	// A further run of the session gives a task of its own.
	completed(t, run(t, g, store, nil, agent.WithDecider(agent.HandoffDecider(hs))))
	below, err := journal.Tasks(t.Context(), store, "s")
	if err != nil || len(below) != 2 {
		t.Error(below, err)
	}
	replayed(t, g, store)
}

func TestATypedNodeGetsItsConfig(t *testing.T) {
	type config struct {
		Text  string   `json:"text"`
		Times int      `json:"times"`
		Also  []string `json:"also"`
	}
	own := graph.Typed(func(_ context.Context, c config, b engine.Snapshot) (journal.Board, error) {
		return journal.Board{Set: journal.Vars{"got": strings.Repeat(c.Text, c.Times) + strings.Join(c.Also, "") + b.Vars["x"].(string)}}, nil
	})
	k := graph.Kinds{Types: map[string]graph.Type{"repeat": own}}
	g := compile(t, `
entry: r
vars: [x, got]
nodes: [{id: r, type: repeat, config: {text: ab, times: 2, also: [c, d]}}]
edges: [{from: r, to: __end__}]
`, k)
	if got := completed(t, run(t, g, journal.Memory(), map[string]any{"x": "!"})).Var("got"); got != "ababcd!" {
		t.Error(got)
	}
	_, err := graph.Compile(parse(t, `
entry: r
nodes: [{id: r, type: repeat, config: {text: 1, time: 2, also: c}}]
edges: [{from: r, to: __end__}]
`), k)
	if err == nil {
		t.Fatal("the config is wrong")
	}
	for _, want := range []string{
		"nodes[0].config.text: a number where a text has to stand", `nodes[0].config.time: unknown field "time": did you mean times?`, "nodes[0].config.also: a text where a list has to stand",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
}

func TestAModelNodesReplyIsReadByItsSchema(t *testing.T) {
	text := `
entry: m
nodes: [{id: m, type: model, config: {prompt: 'json %s', schema: {type: object, properties: {n: {type: integer}}, required: [n]}, output: got}}]
edges: [{from: m, to: __end__}]
`
	got := completed(t, run(t, compile(t, fmt.Sprintf(text, `{"n": 3, "x": 1.5}`), talks()), journal.Memory(), nil)).Var("got")
	same(t, "the var", map[string]any{"n": 3, "x": 1.5}, got.(map[string]any))
	for reply, want := range map[string]string{"{}": "does not fit its schema", "no": "is no JSON"} {
		if res := run(t, compile(t, fmt.Sprintf(text, reply), talks()), journal.Memory(), nil); !errdefs.Validation.Is(res.Err) || !strings.Contains(res.Err.Error(), want) {
			t.Error(reply, res.Err)
		}
	}
}

func TestLimitsEndARun(t *testing.T) {
	circle := compile(t, `
entry: a
limits: {nodes: 7}
nodes: [{id: a, type: script, config: {source: "return {}", outputs: [x]}}]
edges:
- {from: a, to: a, condition: 1 < 2}
- {from: a, to: __end__}
`, graph.Kinds{})
	store := journal.Memory()
	if res := run(t, circle, store, nil); !errdefs.BudgetExceeded.Is(res.Err) || !strings.Contains(res.Err.Error(), "limit of 7 visits") || len(effects(t, store)) != 7 {
		t.Error(res.Err, effects(t, store))
	}
	wide := graph.Definition{Name: "wide", Entry: "a", Nodes: []graph.Node{{ID: "a", Type: "template", Config: map[string]any{"template": "x", "output": "x"}}}}
	for i := range 11 {
		id := fmt.Sprint("b", i)
		wide.Nodes = append(wide.Nodes, graph.Node{ID: id, Type: "template", Config: map[string]any{"template": "x", "output": id}})
		wide.Edges = append(wide.Edges, graph.Edge{From: "a", To: id}, graph.Edge{From: id, To: graph.End})
	}
	for branches, class := range map[int]*errdefs.Class{0: errdefs.BudgetExceeded, 11: nil} {
		wide.Limits.Branches = branches
		g, err := graph.Compile(wide, graph.Kinds{})
		if err != nil {
			t.Fatal(err)
		}
		res := run(t, g, journal.Memory(), nil)
		if errdefs.Of(res.Err) != class {
			t.Error(branches, res.Err)
		}
		if class == nil && res.LastBoard.Var("b10") != "x" {
			t.Error("a branch is lost")
		}
	}
}

func TestAnErrorNamesTheNodeAndKeepsWhatWasSaid(t *testing.T) {
	fails := func(context.Context, engine.Snapshot) (journal.Board, error) {
		return journal.Board{}, errdefs.NotFound.Errorf("nothing there")
	}
	k := talks()
	k.Funcs = map[string]graph.NodeFunc{"fails": fails}
	g := compile(t, `
entry: say
nodes:
- {id: say, type: model, config: {prompt: hello}}
- {id: talk, type: model, config: {prompt: more}}
- {id: sub, type: subgraph, config: {graph: {entry: deep, nodes: [{id: deep, type: func, config: {func: fails}}], edges: [{from: deep, to: __end__}]}}}
edges:
- {from: say, to: talk}
- {from: say, to: sub}
- {from: talk, to: __end__}
- {from: sub, to: __end__}
`, k)
	store := journal.Memory()
	res := run(t, g, store, nil)
	if res.Status != agent.StatusFailed || !errdefs.NotFound.Is(res.Err) || res.Err.Error() != "graph: node sub:deep: nothing there" {
		t.Error(res.Status, res.Err)
	}
	want := []string{"user: go", "user: hello", "assistant: you said hello", "user: more", "assistant: you said more"}
	same(t, "the transcript", want, transcript(t, store))
	replayed(t, g, store)
}

// A model node may have a loop of its own: other tools, and hooks that the others don't have.
func TestAModelNodeMayHaveALoopOfItsOwn(t *testing.T) {
	heard := ""
	k := talks()
	k.Loops = map[string]loop.Config{"own": {Model: echo{}, Tools: []tool.Tool{adds}, Hooks: []hook.Middleware{{Name: "listens", PostGeneration: func(_ context.Context, g *hook.Generation) error {
		heard += g.Response.Message.Text()
		return nil
	}}}}}
	const def = `
entry: a
nodes:
- {id: a, type: model, config: {prompt: 'call add {"a": 1, "b": 2}', output: a}}
- {id: b, type: model, config: {prompt: 'call add {"a": 1, "b": 2}', output: b, loop: own, tools: [add]}}
edges: [{from: a, to: b}, {from: b, to: __end__}]
`
	g := compile(t, def, k)
	store := journal.Memory()
	board := completed(t, run(t, g, store, nil))
	if a, b := fmt.Sprint(board.Var("a")), fmt.Sprint(board.Var("b")); strings.Contains(a, `{"sum": 3}`) || !strings.Contains(b, `{"sum": 3}`) || heard != b {
		t.Errorf("%q, %q, the hook heard %q", a, b, heard)
	}
	replayed(t, g, store)
	d, err := graph.Parse("t", []byte(strings.Replace(def, "loop: own", "loop: onw", 1)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = graph.Compile(d, k)
	if want := `nodes[1].config.loop: there is no loop "onw": did you mean own?`; err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	k.Absent = true
	if _, err := graph.Compile(d, k); err != nil {
		t.Error(err)
	}
}

// What a function warns of is heard when the next one begins, not only at the end.
func TestAWarningOfAFunctionIsHeardAtTheNextEffect(t *testing.T) {
	var heard []string
	host := engine.HostFuncs{PublishFunc: func(_ context.Context, e event.Event) error {
		if e.Delta == event.Warning {
			heard = append(heard, e.Text)
		}
		return nil
	}}
	k := graph.Kinds{Funcs: map[string]graph.NodeFunc{
		"warns": func(ctx context.Context, _ engine.Snapshot) (journal.Board, error) {
			engine.Warn(ctx, "look out")
			return journal.Board{}, nil
		},
		"looks": func(context.Context, engine.Snapshot) (journal.Board, error) {
			return journal.Board{Set: journal.Vars{"heard": slices.Clone(heard)}}, nil
		},
	}}
	g := compile(t, `
entry: a
vars: [heard]
nodes: [{id: a, type: func, config: {func: warns}}, {id: b, type: func, config: {func: looks}}]
edges: [{from: a, to: b}, {from: b, to: __end__}]
`, k)
	same(t, "heard by then", []string{"look out"}, completed(t, run(t, g, journal.Memory(), nil, agent.WithEngineHost(host))).Var("heard"))
}

const choosing = `
entry: when
nodes:
- {id: when, type: approval, config: {prompt: "When?", choices: [now, tonight, next week], output: ok, text: time}}
edges: [{from: when, to: __end__}]
`

// Each answer comes to another process: one that is none of the choices is asked again, under a name of its own.
func TestAnAnswerThatIsNoneOfTheChoicesIsAskedAgain(t *testing.T) {
	list := "\n  1. now\n  2. tonight\n  3. next week"
	for name, c := range map[string]struct {
		answers []journal.Answered
		ok      bool
		text    string
	}{
		"a choice":              {[]journal.Answered{{Approved: true, Text: "Tonight"}}, true, "tonight"},
		"a number":              {[]journal.Answered{{Approved: true, Text: "3."}}, true, "next week"},
		"none, then one":        {[]journal.Answered{{Approved: true, Text: "later"}, {Approved: true, Text: "1"}}, true, "now"},
		"a bare yes, then a no": {[]journal.Answered{{Approved: true}, {Text: "never"}}, false, "never"},
	} {
		store := journal.Memory()
		res := run(t, compile(t, choosing, graph.Kinds{}), store, nil)
		seen := map[string]bool{}
		for i, a := range c.answers {
			want := "When?" + list
			if i > 0 {
				want = fmt.Sprintf("%q is none of the choices: answer by one of them, or by its number. When?", c.answers[i-1].Text) + list
			}
			if len(res.Pending) != 1 || res.Pending[0].Confirm || res.Pending[0].Prompt != want || seen[res.Pending[0].ID] {
				t.Fatalf("%s: %s, %+v", name, res.Status, res.Pending)
			}
			a.ID = res.Pending[0].ID
			seen[a.ID] = true
			if err := agent.Answer(t.Context(), store, "s", a); err != nil {
				t.Fatal(err)
			}
			var err error
			if res, err = agent.Resume(t.Context(), agent.Agent{ID: "a", Instructions: "S"}, compile(t, choosing, graph.Kinds{}), "s", agent.WithJournal(store)); err != nil {
				t.Fatal(err)
			}
		}
		if board := completed(t, res); board.Var("ok") != c.ok || board.Var("time") != c.text {
			t.Errorf("%s: %v, %v", name, board.Var("ok"), board.Var("time"))
		}
		replayed(t, compile(t, choosing, graph.Kinds{}), store)
	}
	asked := 0
	host := engine.HostFuncs{AskUserFunc: func(_ context.Context, p engine.Prompt) (engine.Reply, error) {
		asked++
		return engine.Reply{Answered: journal.Answered{ID: p.ID, Approved: true, Text: "some day"}}, nil
	}}
	if res := run(t, compile(t, choosing, graph.Kinds{}), journal.Memory(), nil, agent.WithEngineHost(host)); !errdefs.Validation.Is(res.Err) || res.Err.Error() != `graph: node when: "some day" is none of the choices` || asked != 10 {
		t.Error(res.Err, asked)
	}
}

// many is a graph with so many nodes of a kind side by side.
func many(n, concurrency int, node func(i int) graph.Node) graph.Definition {
	d := graph.Definition{
		Name: "many", Entry: "begin", Limits: graph.Limits{Branches: n, Concurrency: concurrency},
		Nodes: []graph.Node{{ID: "begin", Type: "template", Config: map[string]any{"template": "x", "output": "x"}}},
	}
	for i := range n {
		one := node(i)
		one.ID = fmt.Sprint("n", i)
		d.Nodes = append(d.Nodes, one)
		d.Edges = append(d.Edges, graph.Edge{From: "begin", To: one.ID}, graph.Edge{From: one.ID, To: graph.End})
	}
	return d
}

func TestSoManyNodesRunAtATime(t *testing.T) {
	for _, c := range []struct{ nodes, concurrency, most int }{{20, 0, 16}, {20, 1, 1}, {20, 3, 3}, {5, 5, 5}, {5, 16, 5}} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			now, most := 0, 0
			k := graph.Kinds{Funcs: map[string]graph.NodeFunc{"f": func(context.Context, engine.Snapshot) (journal.Board, error) {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				now--
				return journal.Board{Append: map[string][]message.Message{"aside": {message.Assistant("done")}}}, nil
			}}}
			g, err := graph.Compile(many(c.nodes, c.concurrency, func(int) graph.Node { return graph.Node{Type: "func", Config: map[string]any{"func": "f"}} }), k)
			if err != nil {
				t.Fatal(err)
			}
			store := journal.Memory()
			if n := completed(t, run(t, g, store, nil)).Channel("aside").Len(); n != c.nodes || most != c.most {
				t.Errorf("%+v: %d ran, %d at a time", c, n, most)
			}
			replayed(t, g, store)
		})
	}
}

// Of nodes that don't begin together, those behind one that failed don't begin, and those behind one that waits do: all questions are pending at once.
func TestWhatComesBehindAFailureDoesNotBegin(t *testing.T) {
	var ran []string
	k := graph.Kinds{Funcs: map[string]graph.NodeFunc{
		"fails": func(context.Context, engine.Snapshot) (journal.Board, error) {
			ran = append(ran, "fails")
			return journal.Board{}, errdefs.NotFound.Errorf("nothing there")
		},
		"works": func(context.Context, engine.Snapshot) (journal.Board, error) {
			ran = append(ran, "works")
			return journal.Board{}, nil
		},
	}}
	asks := graph.Node{Type: "approval", Config: map[string]any{"prompt": "?", "output": "ok"}}
	calls := func(f string) graph.Node { return graph.Node{Type: "func", Config: map[string]any{"func": f}} }
	for name, c := range map[string]struct {
		nodes   []graph.Node
		ran     []string
		status  agent.Status
		pending int
	}{
		"a failure":                          {[]graph.Node{calls("works"), calls("fails"), calls("works")}, []string{"works", "fails"}, agent.StatusFailed, 0},
		"questions":                          {[]graph.Node{asks, calls("works"), asks}, []string{"works"}, agent.StatusInterrupted, 2},
		"a question, a failure":              {[]graph.Node{asks, calls("fails"), asks}, []string{"fails"}, agent.StatusFailed, 0},
		"only what waits at last":            {[]graph.Node{calls("works"), asks}, []string{"works"}, agent.StatusInterrupted, 1},
		"together, a question and a failure": {[]graph.Node{asks, calls("fails")}, []string{"fails"}, agent.StatusFailed, 0},
	} {
		ran = nil
		concurrency := 1
		if strings.HasPrefix(name, "together") {
			concurrency = 0
		}
		g, err := graph.Compile(many(len(c.nodes), concurrency, func(i int) graph.Node { return c.nodes[i] }), k)
		if err != nil {
			t.Fatal(err)
		}
		store := journal.Memory()
		res := run(t, g, store, nil)
		same(t, name+": what ran", c.ran, ran)
		if res.Status != c.status || c.pending != len(res.Pending) {
			t.Errorf("%s: %s (%v), pending: %+v", name, res.Status, res.Err, res.Pending)
		}
		replayed(t, g, store)
		if c.pending == 0 {
			continue
		}
		for _, p := range res.Pending {
			if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: p.ID, Approved: true}); err != nil {
				t.Fatal(err)
			}
		}
		if res, err = agent.Resume(t.Context(), agent.Agent{ID: "a", Instructions: "S"}, g, "s", agent.WithJournal(store)); err != nil {
			t.Fatal(err)
		}
		completed(t, res)
		same(t, name+": what ran in the end", c.ran, ran)
		replayed(t, g, store)
	}
}

// A graph that only computes ends when the run is cancelled, also within another one, where nothing is put on record on the way.
func TestACancelEndsAGraphThatOnlyComputes(t *testing.T) {
	g := compile(t, `
entry: sub
nodes:
- id: sub
  type: subgraph
  config:
    graph:
      entry: a
      limits: {nodes: 2000000}
      nodes: [{id: a, type: template, config: {template: x, output: x}}]
      edges: [{from: a, to: a, condition: 1 < 2}, {from: a, to: __end__}]
edges: [{from: sub, to: __end__}]
`, graph.Kinds{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	res, err := agent.Run(ctx, agent.Agent{ID: "a"}, g, agent.Request{Message: message.User("go")})
	if err != nil || res.Status == agent.StatusCompleted || !errors.Is(res.Err, context.DeadlineExceeded) {
		t.Error(res, err)
	}
}

// settled is echo that says which of the provider's tools it was given.
type settled struct{ echo }

func (settled) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	var names []string
	for _, t := range req.ProviderTools {
		names = append(names, t.Name)
	}
	return &model.Response{Message: message.Assistant(fmt.Sprint(names))}, nil
}

func TestANodesToolsBoundThoseOfTheProvider(t *testing.T) {
	k := talks()
	k.Loop.Model, k.Loop.Settings.ProviderTools = settled{}, []model.ProviderTool{{Name: model.WebSearch}, {Name: model.WebFetch}}
	g := compile(t, `
name: bounds
entry: a
nodes:
- {id: a, type: model, config: {output: all}}
- {id: b, type: model, config: {output: none, tools: []}}
- {id: c, type: model, config: {output: one, tools: [Web_Fetch]}}
edges:
- {from: a, to: b}
- {from: b, to: c}
- {from: c, to: __end__}
`, k)
	board := completed(t, run(t, g, journal.Memory(), nil))
	if all, none, one := board.Var("all"), board.Var("none"), board.Var("one"); all != "[web_search web_fetch]" || none != "[]" || one != "[web_fetch]" {
		t.Error(all, none, one)
	}
}
