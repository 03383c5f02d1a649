package temporal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

var update = flag.Bool("update", false, "record the histories of this version anew")

// What workers of a version leave behind is gone over by those of all later ones: histories of workflows, and the journal that they refer to, are in a directory for each version of the changelog. Those of a version that is out are
// never changed; what is not out yet is recorded anew with -update, and gets the version's name with it.
const (
	recordings = "testdata/histories"
	unreleased = "unreleased"
)

// recording is a run whose histories are kept. Its engine goes with them: what it asks for, and in which order, is a part of the contract, too.
type recording struct {
	engine func() (engine.Engine, error)
	timing temporal.Timing
	run    func(t *testing.T, m temporal.Member, eng *temporal.Engine, c client.Client, store journal.Store) // nil: it is run once, by agent.Run
}

var recorded = map[string]recording{
	"tools":       {engine: func() (engine.Engine, error) { return loopOf(stepping(3)) }},
	"parallel":    {engine: func() (engine.Engine, error) { return loopOf(both{}, tool.ReadOnly) }},
	"approval":    {engine: func() (engine.Engine, error) { return loopOf(stepping(2), tool.RequiresApproval) }, run: runApproved},
	"graph":       {engine: func() (engine.Engine, error) { return graphed("left", "right") }},
	"script":      {engine: func() (engine.Engine, error) { return scripted(sideBySide) }},
	"interrupted": {engine: func() (engine.Engine, error) { return loopOf(stepping(8)) }, run: runInterrupted},
	"again":       {engine: func() (engine.Engine, error) { return loopOf(stepping(8)) }, timing: temporal.Timing{Events: 60}},
	"run":         {engine: func() (engine.Engine, error) { return loopOf(stepping(1)) }, run: runAsWorkflow},
}

// loopOf is a loop with the tool work, and reads and writes nothing.
func loopOf(mod model.Model, opts ...tool.Option) (engine.Engine, error) {
	type input struct {
		Step int `json:"step"`
	}
	work := func(_ context.Context, in input) (string, error) { return fmt.Sprint("did step ", in.Step), nil }
	return loop.New(loop.Config{Model: mod, Limits: loop.Limits{Repeats: -1}, Tools: []tool.Tool{tool.Func("work", "Works.", work, opts...)}})
}

// both has two tools called at once, and then says that it is done.
type both struct{ stepping }

func (b both) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	for _, m := range req.Messages.All() {
		for range message.Of[message.ToolResult](m) {
			return &model.Response{Message: message.Assistant("done")}, nil
		}
	}
	return &model.Response{Message: message.Assistant("", message.ToolCall{ID: "a", Name: "work", Input: `{"step":1}`}, message.ToolCall{ID: "b", Name: "work", Input: `{"step":2}`})}, nil
}

const sideBySide = `
board.set("first", tool("work", step = 1))
parallel([lambda n = n: tool("work", step = n) for n in range(2, 5)])
`

func scripted(source string) (engine.Engine, error) {
	work := tool.Func("work", "Works.", func(_ context.Context, in struct {
		Step int `json:"step"`
	},
	) (string, error) {
		return fmt.Sprint("did step ", in.Step), nil
	})
	return script.New(script.Config{Source: source, Loop: loop.Config{Tools: []tool.Tool{work}}})
}

// graphed is a graph of a node, and others side by side behind it.
func graphed(beside ...string) (engine.Engine, error) {
	say := graph.Typed(func(_ context.Context, at struct {
		Var string `json:"var"`
	}, _ engine.Snapshot,
	) (journal.Board, error) {
		return journal.Board{Set: journal.Vars{at.Var: "said"}}, nil
	})
	d := graph.Definition{Name: "said", Entry: "begin", Nodes: []graph.Node{{ID: "begin", Type: "say", Config: map[string]any{"var": "first"}}}}
	for _, id := range beside {
		d.Nodes = append(d.Nodes, graph.Node{ID: id, Type: "say", Config: map[string]any{"var": id}})
		d.Edges = append(d.Edges, graph.Edge{From: "begin", To: id}, graph.Edge{From: id, To: graph.End})
	}
	return graph.Compile(d, graph.Kinds{Types: map[string]graph.Type{"say": say}})
}

var request = agent.Request{ContextID: "s", RunID: "run", Message: message.User("go")}

func runApproved(t *testing.T, m temporal.Member, eng *temporal.Engine, _ client.Client, store journal.Store) {
	t.Helper()
	person := asked{came: make(chan string, 9), answer: make(chan bool, 2)}
	person.answer <- true
	person.answer <- false
	completed(agent.Run(t.Context(), m.Agent, eng, request, agent.WithJournal(store), agent.WithEngineHost(person)))(t, agent.StatusCompleted)
}

// nudging is a host that interrupts.
type nudging struct {
	engine.NoopHost
	interrupts chan engine.Interrupt
}

func (n nudging) Interrupts() <-chan engine.Interrupt { return n.interrupts }

// runInterrupted is interrupted in the midst of its path, and resumed.
func runInterrupted(t *testing.T, m temporal.Member, eng *temporal.Engine, _ client.Client, store journal.Store) {
	t.Helper()
	host := nudging{interrupts: make(chan engine.Interrupt, 1)}
	go func() {
		for e, err := range journal.Follow(t.Context(), store, "s", 0) {
			if _, did := e.Data.(journal.ToolFinished); err != nil || did {
				break
			}
		}
		host.interrupts <- engine.Interrupt{Cause: engine.CauseUserCancel, Detail: "for a while"}
	}()
	completed(agent.Run(t.Context(), m.Agent, eng, request, agent.WithJournal(store), agent.WithEngineHost(host)))(t, agent.StatusInterrupted)
	completed(agent.Resume(t.Context(), m.Agent, eng, "s", agent.WithJournal(store)))(t, agent.StatusCompleted)
}

// runAsWorkflow is a run that nobody waits for.
func runAsWorkflow(t *testing.T, m temporal.Member, _ *temporal.Engine, c client.Client, _ journal.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h, err := temporal.Begin(ctx, c, temporal.Order{Agent: m.Agent.ID, Session: "s", Run: "run", Message: request.Message, Queue: "golden"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Wait(ctx); err != nil {
		t.Fatal(err)
	}
}

func completed(res *agent.Result, err error) func(t *testing.T, want agent.Status) {
	return func(t *testing.T, want agent.Status) {
		t.Helper()
		if err != nil || res.Status != want {
			t.Fatalf("%v, %+v", err, res)
		}
	}
}

func (r recording) member(t *testing.T) temporal.Member {
	t.Helper()
	eng, err := r.engine()
	if err != nil {
		t.Fatal(err)
	}
	return temporal.Member{Agent: agent.Agent{ID: "golden", Instructions: "You work."}, Engine: eng}
}

// record runs it on a real server, and keeps the histories and the journal.
func (r recording) record(t *testing.T, dir string) {
	server := devserver.Shared(t)
	c := server.Client(t)
	store, m := journal.Memory(), r.member(t)
	timing := quick
	timing.Events = r.timing.Events
	worksAt(t, c, store, "golden", timing, m)
	eng := temporal.NewEngine(c, m.Engine, temporal.WithQueue("golden"))
	if r.run != nil {
		r.run(t, m, eng, c, store)
	} else {
		completed(agent.Run(t.Context(), m.Agent, eng, request, agent.WithJournal(store)))(t, agent.StatusCompleted)
	}
	if err := errorsOf(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	var session bytes.Buffer
	if err := journal.Export(t.Context(), store, "s", &session); err != nil {
		t.Fatal(err)
	}
	keep(t, filepath.Join(dir, "journal.jsonl"), session.Bytes())
	for i, w := range ended(t, c, server.Namespace) {
		h := new(historypb.History)
		for it := c.GetWorkflowHistory(t.Context(), w.GetExecution().GetWorkflowId(), w.GetExecution().GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
			e, err := it.Next()
			if err != nil {
				t.Fatal(err)
			}
			h.Events = append(h.Events, e)
		}
		b, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		var readable bytes.Buffer
		if err := json.Indent(&readable, b, "", " "); err != nil {
			t.Fatal(err)
		}
		keep(t, filepath.Join(dir, fmt.Sprint(i+1, ".json")), append(readable.Bytes(), '\n'))
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// keep writes a file, without the name of this machine.
func keep(t *testing.T, name string, b []byte) {
	t.Helper()
	if host, err := os.Hostname(); err == nil {
		b = regexp.MustCompile(`\b`+regexp.QuoteMeta(host)+`\b`).ReplaceAll(b, []byte("worker"))
	}
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// ended are the workflows of a namespace, in the order in which they began, once all have ended and are listed so.
func ended(t *testing.T, c client.Client, namespace string) []*workflowpb.WorkflowExecutionInfo {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace})
		if err != nil {
			t.Fatal(err)
		}
		all := list.GetExecutions()
		slices.SortFunc(all, func(a, b *workflowpb.WorkflowExecutionInfo) int {
			return a.GetStartTime().AsTime().Compare(b.GetStartTime().AsTime())
		})
		running := slices.ContainsFunc(all, func(w *workflowpb.WorkflowExecutionInfo) bool {
			return w.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		})
		if !running && len(all) > 0 && all[len(all)-1].GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
			return all
		}
	}
	t.Fatal("a workflow does not end")
	return nil
}

// replay goes over what is kept in a directory with a member, and gives the first error. change changes histories before that; nil: nothing is changed.
func replay(t *testing.T, dir string, m temporal.Member, change func([]byte) []byte) error {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	store := journal.Memory()
	if _, err := journal.Import(t.Context(), store, f, ""); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no histories: %v", dir, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			b = change(b)
		}
		h, err := client.HistoryFromJSON(bytes.NewReader(b), client.HistoryJSONOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := temporal.Replayer(store, m)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), h); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// What was begun by any version goes on with this one.
func TestHistoriesOfAllVersionsAreReplayed(t *testing.T) {
	if *update {
		for name, r := range recorded {
			t.Run("record "+name, func(t *testing.T) { r.record(t, filepath.Join(recordings, unreleased, name)) })
		}
	}
	changes, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	versions := regexp.MustCompile(`(?m)^## \[?v?(\w[\w.-]*)`).FindAllSubmatch(changes, -1)
	if len(versions) == 0 {
		t.Fatal("the changelog has no versions")
	}
	for _, v := range versions {
		version := strings.ToLower(string(v[1]))
		cases, err := os.ReadDir(filepath.Join(recordings, version))
		if err != nil {
			t.Fatalf("version %s has no histories: rename %s to it when it goes out, and record what follows with -update: %v", version, filepath.Join(recordings, unreleased), err)
		}
		for _, c := range cases {
			t.Run(version+"/"+c.Name(), func(t *testing.T) {
				r, known := recorded[c.Name()]
				if !known {
					t.Fatal("nobody knows its engine any more")
				}
				if err := replay(t, filepath.Join(recordings, version, c.Name()), r.member(t), nil); err != nil {
					t.Error(err)
				}
			})
		}
		if version == unreleased && len(cases) != len(recorded) {
			t.Errorf("%d of %d runs are recorded: go test -run %s -update", len(cases), len(recorded), t.Name())
		}
	}
}

// turned is a loop that asks for what is done together in the other order.
type turned struct{ *loop.Engine }

func (e turned) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	run.Steps = turnedSteps{run.Steps}
	return e.Engine.Execute(ctx, run, host, board)
}

type turnedSteps struct{ engine.Steps }

func (s turnedSteps) Do(ctx context.Context, effects ...engine.Effect) ([]journal.Data, error) {
	effects = slices.Clone(effects)
	slices.Reverse(effects)
	out, err := s.Steps.Do(ctx, effects...)
	slices.Reverse(out)
	return out, err
}

func reversed(inner engine.Engine, err error) (engine.Engine, error) {
	return turned{inner.(*loop.Engine)}, err
}

// Goldens that nothing can fail would hold nothing.
func TestReplaysFindWhatIsOtherwise(t *testing.T) {
	dir := func(name string) string { return filepath.Join(recordings, unreleased, name) }
	as := func(name string) temporal.Member { return recorded[name].member(t) }
	other := func(eng engine.Engine, err error) temporal.Member {
		if err != nil {
			t.Fatal(err)
		}
		m := as("tools")
		m.Engine = eng
		return m
	}
	in := func(old, now string) func([]byte) []byte {
		return func(b []byte) []byte {
			if !bytes.Contains(b, []byte(old)) {
				t.Errorf("no history has %s", old)
			}
			return bytes.ReplaceAll(b, []byte(old), []byte(now))
		}
	}
	for name, c := range map[string]struct {
		dir    string
		member temporal.Member
		change func([]byte) []byte
	}{
		"an activity has another name":        {dir("tools"), as("tools"), in(`"pawl.tool"`, `"pawl.tools"`)},
		"a workflow has another name":         {dir("tools"), as("tools"), in(`"pawl.path"`, `"pawl.way"`)},
		"the path asks for something else":    {dir("tools"), other(scripted(sideBySide)), nil},
		"the path asks in another order":      {dir("parallel"), other(reversed(recorded["parallel"].engine())), nil},
		"the script is another one":           {dir("script"), other(scripted(sideBySide + "\ntool(\"work\", step = 9)\n")), nil},
		"the graph is another one":            {dir("graph"), other(graphed("left")), nil},
		"another agent is the member":         {dir("tools"), temporal.Member{Agent: agent.Agent{ID: "another"}, Engine: as("tools").Engine}, nil},
		"what is referred to is another kind": {dir("tools"), as("tools"), in(`"pawl.model"`, `"pawl.step"`)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := replay(t, c.dir, c.member, c.change); err == nil {
				t.Error("the replay finds nothing")
			} else {
				t.Log(err)
			}
		})
	}
}
