package graph_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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

// upper is a function that notes its calls: it sets and deletes vars, and says something, by the var n.
func upper(calls *[]any) graph.NodeFunc {
	var mu sync.Mutex
	return func(_ context.Context, b engine.Snapshot) (journal.Board, error) {
		mu.Lock()
		defer mu.Unlock()
		*calls = append(*calls, b.Vars["n"])
		return journal.Board{
			Append: map[string][]message.Message{"main": {message.Assistant(fmt.Sprint("about ", b.Vars["n"]))}},
			Set:    journal.Vars{"got": fmt.Sprint("of ", b.Vars["n"]), "same": "always"}, Delete: []string{"gone"},
		}, nil
	}
}

// rounds visits work with n = 1, 2, 1, 2, 1; what it set is spoilt behind each visit, and noted.
const rounds = `
name: rounds
entry: next
vars: [n, got, same, gone]
nodes:
- id: next
  type: script
  config:
    outputs: [n, seen, same, gone, got]
    source: |
      seen = vars.get("seen", []) + [vars.get("got", "")]
      return {"n": [1, 2, 1, 2, 1, 0][visits["next"] - 1], "seen": seen, "same": "spoilt", "gone": "there", "got": ""}
- {id: work, type: func, cache: {key: n}, config: {func: work}}
edges:
- {from: next, to: work, condition: n > 0}
- {from: next, to: __end__}
- {from: work, to: next}
`

func TestAVisitWithTheKeyOfAnEarlierOneTakesItsOutcome(t *testing.T) {
	var calls []any
	g := compile(t, rounds, graph.Kinds{Funcs: map[string]graph.NodeFunc{"work": upper(&calls)}})
	store := journal.Memory()
	board := completed(t, run(t, g, store, nil))
	same(t, "calls", []any{1, 2}, calls)
	same(t, "what each visit gave", []any{"", "of 1", "of 2", "of 1", "of 2", "of 1"}, board.Var("seen"))
	same(t, "the transcript", []string{"user: go", "assistant: about 1", "assistant: about 2", "assistant: about 1", "assistant: about 2", "assistant: about 1"}, transcript(t, store))
	var own []string
	for _, key := range effects(t, store) {
		if !strings.HasPrefix(key, "wave/") {
			own = append(own, key)
		}
	}
	same(t, "effects", []string{
		"work:cache/look", "work:visit", "work:cache/keep", "work#2:cache/look", "work#2:visit", "work#2:cache/keep", "work#3:cache/look", "work#4:cache/look", "work#5:cache/look",
	}, own)
	replayed(t, g, store)
}

// What a visit set counts, also what stood there before: the difference alone would leave the value of another visit.
func TestAHitRestoresWhatTheVisitSetAndNotWhatItChanged(t *testing.T) {
	g := compile(t, `
entry: ask
vars: [n]
nodes:
- {id: ask, type: model, cache: {key: 'visits["ask"] % 2'}, config: {prompt: 'json "${["a", "a", "b", "", ""][visits["ask"] - 1]}"', schema: {type: string}, output: got}}
- {id: seen, type: script, config: {outputs: [seen], source: 'return {"seen": vars.get("seen", []) + [got]}'}}
- {id: spoil, type: script, config: {outputs: [got], source: 'return {"got": "x"}'}}
edges:
- {from: ask, to: seen}
- {from: seen, to: ask, condition: 'visits["ask"] == 1'}
- {from: seen, to: spoil, condition: 'visits["ask"] in (2, 3)'}
- {from: spoil, to: ask}
- {from: seen, to: __end__}
`, talks())
	same(t, "what was seen", []any{"a", "a", "a", "a"}, completed(t, run(t, g, journal.Memory(), nil)).Var("seen"))
}

// dies is a store that takes so many entries, and no more.
type dies struct {
	journal.Store
	mu   sync.Mutex
	left int
}

func (d *dies) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left -= len(entries); d.left < 0 {
		return errdefs.NotAvailable.Errorf("the process is gone")
	}
	return d.Store.Append(ctx, session, after, entries...)
}

// pairs has two items side by side, and two more behind them that are the same.
const pairs = `
name: pairs
entry: each
nodes:
- id: each
  type: map
  config:
    over: "[1, 2, 1, 2]"
    as: n
    concurrency: 2
    graph: {entry: work, vars: [got], nodes: [{id: work, type: func, cache: {key: n}, config: {func: work}}], edges: [{from: work, to: __end__}]}
    result: got
    output: all
edges: [{from: each, to: __end__}]
`

func TestACacheComesToTheSameWhereverTheProcessDied(t *testing.T) {
	type outcome struct {
		Lines, Effects []string
		Vars           journal.Vars
	}
	// play runs a graph until so many entries are there, and then on with another engine. It gives nil when there was nothing to go on with.
	play := func(t *testing.T, text string, entries int) (out *outcome, calls []any, died bool) {
		k := graph.Kinds{Funcs: map[string]graph.NodeFunc{"work": upper(&calls)}}
		store, left := journal.Memory(), entries
		res, err := agent.Run(t.Context(), agent.Agent{ID: "a", Instructions: "S"}, compile(t, text, k), agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(&dies{Store: store, left: left}))
		if died = err != nil || res.Status != agent.StatusCompleted; died {
			res, err = agent.Resume(t.Context(), agent.Agent{ID: "a", Instructions: "S"}, compile(t, text, k), "s", agent.WithJournal(store))
			if errdefs.NotFound.Is(err) {
				return nil, calls, true
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		board := completed(t, res)
		replayed(t, compile(t, text, k), store)
		keys := effects(t, store)
		slices.Sort(keys)
		return &outcome{transcript(t, store), keys, board.Snapshot().Vars}, calls, died
	}
	for name, c := range map[string]struct {
		text   string
		most   int // calls, with one that was under way when the process died, or two
		points int
	}{"one after the other": {rounds, 3, 15}, "side by side": {pairs, 4, 8}} {
		want, calls, _ := play(t, c.text, 1000)
		if len(calls) != 2 {
			t.Errorf("%s: %v", name, calls)
		}
		resumed := 0
		for n := 1; ; n++ {
			got, calls, died := play(t, c.text, n)
			if !died {
				break
			}
			if got == nil {
				continue
			}
			resumed++
			same(t, fmt.Sprintf("%s, after %d entries", name, n), want, got)
			if len(calls) > c.most {
				t.Errorf("%s, after %d entries: %v", name, n, calls)
			}
		}
		if resumed < c.points {
			t.Error(name, resumed)
		}
	}
}

// rich is a model whose replies have what a transcript may have once only.
type rich struct{ echo }

func (r rich) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	resp, err := r.echo.Complete(ctx, req)
	if err == nil {
		own := message.Origin{Provider: "some", Extra: `{"id":"x"}`}
		resp.Message = message.New(message.RoleAssistant, message.Reasoning{Text: "hm", Origin: own}, message.Text{Text: resp.Message.Text(), Origin: own}, message.Opaque{Provider: "some", JSON: `{"id":"y"}`})
	}
	return resp, err
}

func TestAModelsAnswerIsSaidAgainInPlainWords(t *testing.T) {
	g := compile(t, `
entry: each
nodes:
- id: each
  type: map
  config:
    over: '["a", "b", "a"]'
    as: topic
    concurrency: 1
    graph:
      entry: say
      nodes: [{id: say, type: model, cache: {}, config: {prompt: "about ${topic}", output: heard}}]
      edges: [{from: say, to: __end__}]
    result: heard
    output: all
edges: [{from: each, to: __end__}]
`, graph.Kinds{Loop: loop.Config{Model: rich{}}})
	store := journal.Memory()
	res := run(t, g, store, nil)
	board := completed(t, res)
	same(t, "the list", []any{"you said about a", "you said about b", "you said about a"}, board.Var("all"))
	said := []string{"user: about a", "assistant: you said about a", "user: about b", "assistant: you said about b", "user: about a", "assistant: you said about a"}
	same(t, "the transcript", append([]string{"user: go"}, said...), transcript(t, store))
	if res.Usage.Input != 2 {
		t.Errorf("the model was asked %d times", res.Usage.Input)
	}
	if last := board.Channel("main").Last(); last.Len() != 1 || !reflect.DeepEqual(last.Part(0), message.Part(message.Text{Text: "you said about a"})) {
		t.Errorf("%#v", last.Part(0))
	}
	replayed(t, g, store)
}

// Unless it has a key of its own, a model node depends on all that the model is asked: also on what stands on the channel.
func TestWhatAModelIsAskedIsItsKey(t *testing.T) {
	text := `
entry: say
vars: [p]
nodes: [{id: say, type: model, cache: {%s}, config: {prompt: "${p}", output: heard}}]
edges: [{from: say, to: __end__}]
`
	for name, c := range map[string]struct {
		cache  string
		change func(k *graph.Kinds, a *agent.Agent, inputs map[string]any, r *agent.Request)
		hit    bool
	}{
		"the same":           {"", func(*graph.Kinds, *agent.Agent, map[string]any, *agent.Request) {}, true},
		"another prompt":     {"", func(_ *graph.Kinds, _ *agent.Agent, inputs map[string]any, _ *agent.Request) { inputs["p"] = "other" }, false},
		"other instructions": {"", func(_ *graph.Kinds, a *agent.Agent, _ map[string]any, _ *agent.Request) { a.Instructions = "T" }, false},
		"another transcript": {"", func(_ *graph.Kinds, _ *agent.Agent, _ map[string]any, r *agent.Request) {
			r.Message = message.User("stop")
		}, false},
		"another tool": {"", func(k *graph.Kinds, _ *agent.Agent, _ map[string]any, _ *agent.Request) {
			k.Loop.Tools = []tool.Tool{adds}
		}, false},
		"another model":             {"", func(k *graph.Kinds, _ *agent.Agent, _ map[string]any, _ *agent.Request) { k.Loop.Model = named{} }, false},
		"another model, with a key": {`key: "1"`, func(k *graph.Kinds, _ *agent.Agent, _ map[string]any, _ *agent.Request) { k.Loop.Model = named{} }, false},
		"another transcript, with a key": {"key: p", func(_ *graph.Kinds, _ *agent.Agent, _ map[string]any, r *agent.Request) {
			r.Message = message.User("stop")
		}, true},
	} {
		k, a, inputs, r := talks(), agent.Agent{ID: "a", Instructions: "S"}, map[string]any{"p": "hello"}, agent.Request{Message: message.User("go")}
		k.Cache = graph.MemoryCache(1 << 20)
		for n := range 2 {
			if n > 0 {
				c.change(&k, &a, inputs, &r)
			}
			r.Inputs = inputs
			res, err := agent.Run(t.Context(), a, compile(t, fmt.Sprintf(text, c.cache), k), r)
			if err != nil {
				t.Fatal(err)
			}
			completed(t, res)
			if hit := res.Usage.Input == 0; hit != (n > 0 && c.hit) {
				t.Errorf("%s, run %d: a hit is %v", name, n, hit)
			}
		}
	}
}

// named is echo with a name.
type named struct{ echo }

func (named) Capabilities() model.Capabilities {
	return model.Capabilities{Name: "some/other", Tools: true}
}

func TestAnOutcomeIsOfUseForItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for ttl, want := range map[string]int{"3s": 2, "10s": 1, "1s": 3} {
			var calls []any
			k := graph.Kinds{Funcs: map[string]graph.NodeFunc{"work": upper(&calls), "pause": func(context.Context, engine.Snapshot) (journal.Board, error) {
				time.Sleep(2 * time.Second)
				return journal.Board{}, nil
			}}}
			g := compile(t, `
entry: work
nodes:
- {id: work, type: func, cache: {key: "1", ttl: `+ttl+`}, config: {func: work}}
- {id: pause, type: func, config: {func: pause}}
edges: [{from: work, to: pause}, {from: pause, to: work, condition: 'visits["work"] < 3'}, {from: pause, to: __end__}]
`, k)
			store := journal.Memory()
			if completed(t, run(t, g, store, nil)); len(calls) != want {
				t.Errorf("%s: %d calls, want %d", ttl, len(calls), want)
			}
			replayed(t, g, store)
		}
	})
}

// odd is a cache that does not work.
type odd struct {
	value    []byte
	get, put error
}

func (o odd) Get(context.Context, string) ([]byte, bool, error) {
	return o.value, o.value != nil, o.get
}

func (o odd) Put(context.Context, string, []byte, time.Duration) error { return o.put }

func TestACacheOfTheProgramServesItsRunsAndFailsNone(t *testing.T) {
	text := `
entry: work
vars: [n]
nodes: [{id: work, type: func, cache: {key: n}, config: {func: work}}]
edges: [{from: work, to: __end__}]
`
	var calls []any
	k := graph.Kinds{Funcs: map[string]graph.NodeFunc{"work": upper(&calls)}, Cache: graph.MemoryCache(1 << 20)}
	for _, n := range []int{1, 2, 1, 2} {
		g := compile(t, text, k)
		store := journal.Memory()
		if got := completed(t, run(t, g, store, map[string]any{"n": n})).Var("got"); got != fmt.Sprint("of ", n) {
			t.Error(got)
		}
		empty := k
		empty.Cache = nil
		replayed(t, compile(t, text, empty), store) // what was found is on record
	}
	same(t, "calls", []any{1, 2}, calls)
	for name, c := range map[string]struct {
		cache graph.Cache
		warn  string
	}{
		"it can't be read":    {odd{get: errors.New("no route")}, "node work: the cache can't be read, so the work is done: no route"},
		"it can't be written": {odd{put: errors.New("no room")}, "an outcome can't be put into the cache: no room"},
		"it gives rubbish":    {odd{value: []byte("rubbish")}, "the cache can't be read"},
		"it gives an edit":    {odd{value: []byte("2026-01-02T03:04:05Z\n" + `{"edit":{"main":{"from":0,"to":0}}}`)}, "changes what stands on a channel"},
	} {
		var warned []string
		host := engine.HostFuncs{PublishFunc: func(_ context.Context, e event.Event) error {
			if e.Delta == event.Warning {
				warned = append(warned, e.Text)
			}
			return nil
		}}
		calls = nil
		k.Cache = c.cache
		board := completed(t, run(t, compile(t, text, k), journal.Memory(), map[string]any{"n": 1}, agent.WithEngineHost(host)))
		if len(calls) != 1 || board.Var("got") != "of 1" || len(warned) != 1 || !strings.Contains(warned[0], c.warn) {
			t.Errorf("%s: %v %q", name, calls, warned)
		}
	}
}

func TestWhatFailedIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		g := compile(t, `
entry: work
vars: [tries]
nodes: [{id: work, type: func, cache: {key: "1"}, retry: {attempts: 3}, config: {func: work}}]
edges: [{from: work, to: work, condition: 'visits["work"] < 3'}, {from: work, to: __end__}]
`, graph.Kinds{Funcs: map[string]graph.NodeFunc{"work": fails(1, errdefs.Timeout, &at)}})
		store := journal.Memory()
		if board := completed(t, run(t, g, store, nil)); board.Var("tries") != 2 || len(at) != 2 {
			t.Error(board.Var("tries"), at)
		}
		same(t, "effects", []string{
			"work:cache/look", "work:visit", "work:~2:cache/look", "work:~2:visit", "work:~2:cache/keep", "wave/1", "work#2:cache/look", "wave/2", "work#3:cache/look", "wave/3",
		}, effects(t, store))
		replayed(t, g, store)
	})
	bad := tool.Func("bad", "", func(context.Context, struct{}) (string, error) { return "", errdefs.NotFound.Errorf("nothing") }, tool.ReadOnly)
	g := compile(t, `
entry: look
nodes: [{id: look, type: tool, cache: {}, config: {tool: bad, on_error: continue, output: got}}]
edges: [{from: look, to: look, condition: 'visits["look"] < 2'}, {from: look, to: __end__}]
`, graph.Kinds{Loop: loop.Config{Tools: []tool.Tool{bad}}})
	store := journal.Memory()
	completed(t, run(t, g, store, nil))
	if keys := effects(t, store); !slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, "look#2:tool/") }) || slices.Contains(keys, "look:cache/keep") {
		t.Error(keys)
	}
}

// reads is a tool that only reads, and counts.
func reads(n *int, opts ...tool.Option) tool.Tool {
	return tool.Func("read", "", func(_ context.Context, in struct {
		Path string `json:"path"`
	},
	) (string, error) {
		*n++
		return fmt.Sprintf("%s, the %d. time", in.Path, *n), nil
	}, append(opts, tool.ReadOnly)...)
}

const looking = `
entry: look
vars: [path]
nodes: [{id: look, type: tool, cache: {}, config: {tool: read, args: {path: "${path}"}, output: got, on_error: continue}}]
edges: [{from: look, to: look, condition: 'visits["look"] < 2'}, {from: look, to: __end__}]
`

// Hooks judge each call, whatever is kept; one that somebody is asked about, or that is refused, is neither taken from the cache nor kept.
func TestNoApprovalAndNoJudgementIsSkippedByACache(t *testing.T) {
	judged, verdict := 0, hook.Decision{}
	watch := hook.Middleware{Name: "watch", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) {
		judged++
		if judged%2 == 0 { // the second visit's
			return verdict, nil
		}
		return hook.Decision{}, nil
	}}
	for name, c := range map[string]struct {
		verdict hook.Decision
		got     string
		asked   int
		reads   int
	}{
		"let through": {hook.Decision{}, "a, the 1. time", 0, 1},
		"changed":     {hook.Decision{Verdict: hook.Allow, Input: `{"path":"b"}`}, "b, the 2. time", 0, 2},
		"refused":     {hook.Denied("not now"), "not now", 0, 1},
		"with a word": {hook.Decision{Context: "mind this"}, "a, the 2. time\nmind this", 0, 2},
		"to be asked": {hook.Asking("may I?"), "a, the 2. time", 1, 2},
	} {
		n, asked := 0, 0
		judged, verdict = 0, c.verdict
		host := engine.HostFuncs{AskUserFunc: func(_ context.Context, p engine.Prompt) (engine.Reply, error) {
			asked++
			return engine.Reply{Answered: journal.Answered{ID: p.ID, Approved: true}}, nil
		}}
		g := compile(t, looking, graph.Kinds{Loop: loop.Config{Tools: []tool.Tool{reads(&n)}, Hooks: []hook.Middleware{watch}}})
		store := journal.Memory()
		board := completed(t, run(t, g, store, map[string]any{"path": "a"}, agent.WithEngineHost(host)))
		if got := board.Var("got"); got != c.got || asked != c.asked || n != c.reads || judged < 2 { // what a hook changes is judged again
			t.Errorf("%s: %v, asked %d times, judged %d times, read %d times", name, got, asked, judged, n)
		}
		replayed(t, g, store)
	}
	n, asked := 0, 0
	host := engine.HostFuncs{AskUserFunc: func(_ context.Context, p engine.Prompt) (engine.Reply, error) {
		asked++
		return engine.Reply{Answered: journal.Answered{ID: p.ID, Approved: true}}, nil
	}}
	g := compile(t, looking, graph.Kinds{Loop: loop.Config{Tools: []tool.Tool{reads(&n, tool.RequiresApproval)}}})
	if completed(t, run(t, g, journal.Memory(), map[string]any{"path": "a"}, agent.WithEngineHost(host))); asked != 2 || n != 2 {
		t.Errorf("a tool that has to be approved: asked %d times, read %d times", asked, n)
	}
}

// A gate that was shut while the run waited holds for what would be taken from a cache, too.
func TestAGateHoldsForWhatIsKept(t *testing.T) {
	n := 0
	k := graph.Kinds{Loop: loop.Config{Tools: []tool.Tool{reads(&n)}}, Cache: graph.MemoryCache(1 << 20)}
	completed(t, run(t, compile(t, looking, k), journal.Memory(), map[string]any{"path": "a"}))
	g := compile(t, looking, k)
	host := engine.NoopHost{}
	perform := func(tools []string) journal.Visited {
		var found journal.Visited
		steps := engine.StepsFunc(func(ctx context.Context, effects ...engine.Effect) ([]journal.Data, error) {
			e := effects[0]
			r := engine.Run{ID: "r", Attempt: 1}
			if e.Key().ID == "look" {
				r.Tools = tools
			}
			d, err := g.Perform(ctx, r, host, e)
			if v, ok := d.(journal.Visited); ok && found.Node == "" {
				found = v
			}
			return []journal.Data{d}, err
		})
		board := engine.NewBoard(engine.Snapshot{Vars: journal.Vars{"path": "a"}})
		if _, err := g.Execute(t.Context(), engine.Run{ID: "r", Attempt: 1, Steps: steps}, host, board); err != nil {
			t.Fatal(err)
		}
		return found
	}
	if open, shut := perform(nil), perform([]string{"other"}); !open.Cached || shut.Cached || shut.Node != "look" {
		t.Errorf("%+v, %+v", open, shut)
	}
}

// What a model came to by tools is not kept: each call is judged, and what the tool gives may have changed.
func TestWhatAModelCameToByToolsIsNotKept(t *testing.T) {
	k := talks()
	k.Loop.Tools = []tool.Tool{adds}
	g := compile(t, `
entry: sum
nodes: [{id: sum, type: model, cache: {key: "1"}, config: {prompt: 'call add {"a": 1, "b": 2}', output: got}}]
edges: [{from: sum, to: sum, condition: 'visits["sum"] < 2'}, {from: sum, to: __end__}]
`, k)
	store := journal.Memory()
	if res := run(t, g, store, nil); completed(t, res).Var("got") != `you said {"sum": 3}` || res.Usage.Input != 4 {
		t.Errorf("%v, %+v", res.LastBoard.Var("got"), res.Usage)
	}
	if keys := effects(t, store); slices.Contains(keys, "sum:cache/keep") {
		t.Error(keys)
	}
}

// What the work came to in time is kept, though the time is over by then.
func TestWhatWasDoneInTimeIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := func(ctx context.Context, _ engine.Snapshot) (journal.Board, error) {
			<-ctx.Done()
			return journal.Board{Set: journal.Vars{"x": 1}}, nil
		}
		g := compile(t, `
entry: work
nodes: [{id: work, type: func, timeout: 2s, cache: {key: "1"}, config: {func: late}}]
edges: [{from: work, to: __end__}]
`, graph.Kinds{Funcs: map[string]graph.NodeFunc{"late": late}})
		if got := completed(t, run(t, g, journal.Memory(), nil)).Var("x"); got != 1 {
			t.Error(got)
		}
	})
}

func TestVisitsSideBySideEachDoTheirWork(t *testing.T) {
	var calls []any
	g := compile(t, `
entry: each
nodes:
- id: each
  type: map
  config:
    over: "[n % 3 for n in range(30)]"
    as: n
    graph: {entry: work, nodes: [{id: work, type: func, cache: {key: n}, config: {func: work}}], edges: [{from: work, to: __end__}]}
edges: [{from: each, to: __end__}]
`, graph.Kinds{Funcs: map[string]graph.NodeFunc{"work": upper(&calls)}})
	store := journal.Memory()
	completed(t, run(t, g, store, nil))
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprint("assistant: about ", i%3))
	}
	same(t, "the transcript", append([]string{"user: go"}, want...), transcript(t, store))
	if len(calls) < 3 || len(calls) > 30 {
		t.Error(calls)
	}
	replayed(t, g, store)
}

func TestTheMemoryOfACacheIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := graph.MemoryCache(2000) // of entries of 500 bytes and 200 more, two
		put := func(key string, size int, ttl time.Duration) {
			if err := c.Put(ctx, key, make([]byte, size), ttl); err != nil {
				t.Error(err)
			}
		}
		has := func(want string) {
			t.Helper()
			got := ""
			for _, key := range []string{"a", "b", "c", "d"} {
				if _, ok, err := c.Get(ctx, key); ok {
					got += key
				} else if err != nil {
					t.Error(err)
				}
			}
			if got != want {
				t.Errorf("it has %q, want %q", got, want)
			}
		}
		has("")
		put("a", 500, 0)
		put("b", 500, 0)
		has("ab")
		_, _, _ = c.Get(ctx, "a")
		put("c", 500, 0)
		has("ac")
		put("a", 600, 0) // in place of what it was
		has("ac")
		put("d", 2000, 0) // never fits
		has("ac")
		put("a", 2000, 0) // and what it took the place of is gone
		has("c")
		put("b", 1, time.Second)
		has("bc")
		time.Sleep(time.Second)
		has("c")
		for i := range 100 {
			put(fmt.Sprint(i), 500, 0)
		}
		has("")
	})
	none := graph.MemoryCache(0)
	if err := none.Put(t.Context(), "a", nil, 0); err != nil {
		t.Error(err)
	}
	if _, ok, _ := none.Get(t.Context(), "a"); ok {
		t.Error("there is no room")
	}
}
