package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

// sampled1 runs a case once and gives its sample, as scorers see it.
func sampled1(t *testing.T, how How, c Case) (Sample, *Report) {
	t.Helper()
	var seen Sample
	look := Named("look", ScorerFunc(func(_ context.Context, s Sample) (Score, error) {
		seen = s
		return Score{Value: 1, Pass: true}, nil
	}))
	c.Name = "c"
	r := done(t, Suite{Cases: []Case{c}, How: how, Scorers: []Scorer{look}})
	return seen, r
}

func TestASampleIsWhatIsOnRecordOfARun(t *testing.T) {
	how := desk(t, scripted.Turn{Text: "Let me look.", Calls: []scripted.Call{{ID: "c1", Name: "Lookup", Input: `{"order":7}`}, {ID: "c2", Name: "lookup", Input: `{"order":"x"}`}, {ID: "c3", Name: "nothing", Input: `{}`}}, Usage: model.Usage{Input: 10, Output: 5}},
		scripted.Turn{Text: "It was shipped.", Usage: model.Usage{Input: 20, Output: 6}}, scripted.Text("You are welcome."))
	s, r := sampled1(t, how, Case{Messages: []message.Message{message.User("Where is 7?"), message.User("Thanks.")}, Vars: map[string]any{"plan": "paid"}})
	if r.Err() != nil || len(s.Turns) != 2 || s.Repeat != 1 || !strings.HasPrefix(s.Session, "eval-") {
		t.Fatalf("%v, %+v", r.Err(), s)
	}
	one, all := s.Turns[0], s.Turn
	if one.Answer != "It was shipped." || all.Answer != "You are welcome." || one.Prompt.Text() != "Where is 7?" || s.Turns[1].Prompt.Text() != "Thanks." {
		t.Errorf("%+v", s)
	}
	if one.Steps != 2 || all.Steps != 3 || one.Usage != (model.Usage{Input: 30, Output: 11}) || all.Usage != one.Usage || one.Status != agent.StatusCompleted || one.Err != nil || one.Vars["plan"] != "paid" || one.Duration <= 0 || all.Duration < one.Duration {
		t.Errorf("%+v", one)
	}
	if r.Usage != all.Usage {
		t.Errorf("the report has %+v", r.Usage)
	}
	var calls []string
	for _, c := range all.Calls {
		calls = append(calls, fmt.Sprint(c.ID, " ", c.Name, c.Input, " ran ", c.Ran, " error ", c.IsError, " ", c.Outcome))
	}
	if d := cmp.Diff([]string{`c1 Lookup{"order":7} ran true error false ok`, `c2 lookup{"order":"x"} ran false error true `, `c3 nothing{} ran false error true `}, calls); d != "" {
		t.Error(d)
	}
	if all.Calls[0].Output != "shipped" || all.Calls[1].Output == "" {
		t.Errorf("%+v", all.Calls)
	}
	var roles []string
	for _, m := range all.Messages {
		roles = append(roles, string(m.Role()))
	}
	if got := strings.Join(roles, " "); got != "user assistant tool assistant user assistant" {
		t.Error(got)
	}
	if at := s.At(0); at.Answer != one.Answer || len(at.Turns) != 1 || at.whole().Steps != 2 {
		t.Errorf("%+v", at)
	}
}

// What the agent did wrong can be scored; what the machinery did is an error.
func TestAnAgentThatFailsIsALowScoreAndAProviderThatFailsIsAnError(t *testing.T) {
	again := []scripted.Turn{}
	for i := range 9 {
		again = append(again, asks(fmt.Sprint("c", i), "lookup", `{"order":7}`))
	}
	limited, err := loop.New(loop.Config{Model: scripted.New(again...), Tools: []tool.Tool{lookup}, Limits: loop.Limits{Steps: 2}})
	if err != nil {
		t.Fatal(err)
	}
	structured, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("no"), scripted.Text("no"), scripted.Text("no"), scripted.Text("no")), Output: []byte(`{"type":"object"}`)})
	if err != nil {
		t.Fatal(err)
	}
	asking, err := loop.New(loop.Config{Model: scripted.New(asks("c1", "lookup", `{"order":7}`)), Tools: []tool.Tool{lookup}, Hooks: []hook.Middleware{{Name: "ask", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) {
		return hook.Asking("May it?"), nil
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		eng  engine.Engine
		want string
	}{
		"it goes round":                   {looping(t, scripted.New(again...), lookup), "low c completed"},
		"a limit":                         {limited, "low c completed"},
		"the model refuses":               {looping(t, scripted.New(scripted.Turn{Stop: model.StopRefusal, Text: "No."})), "low c completed"},
		"no answer that fits":             {structured, "low c completed"},
		"it waits for people":             {asking, "low c completed"},
		"the provider is down":            {looping(t, scripted.New(scripted.Fail(503))), "error c"},
		"too many requests":               {looping(t, scripted.New(scripted.Fail(429))), "error c"},
		"a request that it does not take": {looping(t, scripted.New(scripted.Fail(400))), "error c"},
		"no key":                          {looping(t, scripted.New(scripted.Fail(401))), "error c"},
		"a crash of the model":            {looping(t, broken{}), "error c"},
	} {
		_, r := sampled1(t, Agent(nil, agent.Agent{ID: "a"}, c.eng), Case{Prompt: "x"})
		if got := kinds(r); got != c.want {
			t.Errorf("%s: %s %v", name, got, r.Problems)
		}
	}
	r := done(t, Suite{Cases: prompts("c"), How: Agent(nil, agent.Agent{ID: "a"}, limited), Scorers: []Scorer{ToolCalls(AnyOrder, Uses("lookup")...)}, AnyEnd: true})
	if r.Err() != nil || len(r.Scores) != 1 {
		t.Errorf("any end will do: %v", r.Err())
	}
	left, _ := loop.New(loop.Config{Model: scripted.New(scripted.Turn{Stop: model.StopRefusal, Text: "No."}, scripted.Text("Yes."))})
	s, _ := sampled1(t, Agent(nil, agent.Agent{ID: "a"}, left), Case{Messages: []message.Message{message.User("a"), message.User("b")}})
	if len(s.Turns) != 1 || !errors.Is(s.Err, errdefs.Refused) {
		t.Errorf("a turn that does not complete is the last: %+v", s)
	}
}

type broken struct{ model.Model }

func (broken) Complete(context.Context, model.Request) (*model.Response, error) { panic("oops") }
func (broken) CompleteStream(context.Context, model.Request, model.StreamHandler) error {
	panic("oops")
}

func TestTasksCountInWhatIsSpentAndRepeatedAttemptsDoNotInWhatWasSaid(t *testing.T) {
	child := looping(t, scripted.New(scripted.Turn{Text: "Looks right.", Usage: model.Usage{Output: 100}}))
	task, err := agent.Task(agent.Subagents{{Agent: agent.Agent{ID: "reviewer"}, Engine: child, Description: "reviews"}})
	if err != nil {
		t.Fatal(err)
	}
	m := scripted.New(scripted.Calls(scripted.Call{ID: "c1", Name: "task", Input: `{"agent":"reviewer","prompt":"Look."}`}), scripted.Turn{Text: "Done.", Usage: model.Usage{Output: 10}})
	s, r := sampled1(t, Agent(nil, agent.Agent{ID: "a"}, looping(t, m, task)), Case{Prompt: "x"})
	if r.Err() != nil || s.Usage.Output != 110 || s.Steps != 3 || len(s.Calls) != 1 || s.Calls[0].Name != "task" {
		t.Errorf("%v, %+v", r.Err(), s.Turn)
	}

	tries := 0
	twice := agent.WithDecider(agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
		tries++
		return agent.FinalizeDecision{Revise: tries == 1}, nil
	}))
	eng := looping(t, scripted.New(scripted.Turn{Text: "It was shipped.", Usage: model.Usage{Output: 7}}))
	s, r = sampled1(t, Agent(nil, agent.Agent{ID: "a"}, eng, twice, agent.WithMaxRevise(2)), Case{Prompt: "x"})
	if r.Err() != nil || len(s.Turns) != 1 || s.Usage.Output != 14 || s.Steps != 2 || len(s.Messages) != 2 {
		t.Errorf("%v, %+v", r.Err(), s.Turn)
	}
}

func TestARuntimeAndAConversationRunCases(t *testing.T) {
	rt, err := pawl.New(t.Context(), pawl.Options{Model: scripted.New(asks("c1", "read", `{"file_path":"a.txt"}`), scripted.Text("It says hello.")), ProjectRoot: t.TempDir(), Journal: journal.Memory(), NoProject: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close() }()
	if err := os.WriteFile(filepath.Join(rt.Dir(), "a.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, r := sampled1(t, Runtime(rt), Case{Prompt: "What does a.txt say?"})
	if r.Err() != nil || s.Answer != "It says hello." || len(s.Calls) != 1 || !s.Calls[0].Ran || s.Dir != rt.Dir() {
		t.Errorf("%v, %+v", r.Err(), s)
	}
	if _, err := Read(t.Context(), rt.Journal(), s.Session); err != nil {
		t.Errorf("it is in the Runtime's journal: %v", err)
	}
	down, err := pawl.New(t.Context(), pawl.Options{Model: scripted.New(scripted.Fail(503)), ProjectRoot: t.TempDir(), Journal: journal.Memory(), NoProject: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = down.Close() }()
	if _, r := sampled1(t, Runtime(down), Case{Prompt: "x"}); kinds(r) != "error c" || !strings.Contains(r.Problems[0].Text, "the run is failed") {
		t.Errorf("%v", r.Problems)
	}

	store := journal.Memory()
	how := func(turns ...scripted.Turn) How {
		return Conversation(store, func(_ Case, opts ...pawl.Option) (*pawl.Conversation, error) {
			conv, err := pawl.Open("../testdata/support.pack.json", "chat", append(opts, pawl.WithModel(scripted.New(turns...)))...)
			if err == nil {
				conv.OnTool("lookup_order", func(map[string]any) (any, error) { return "shipped", nil })
			}
			return conv, err
		})
	}
	s, r = sampled1(t, how(asks("c1", "lookup_order", `{"order_id":"7"}`), scripted.Text("It was shipped."), scripted.Text("Bye.")), Case{Messages: []message.Message{message.User("Where is 7?"), message.User("Thanks.")}, Vars: map[string]any{"name": "Ada"}})
	if r.Err() != nil || s.Answer != "Bye." || len(s.Turns) != 2 || len(s.Calls) != 1 || s.Calls[0].Output != "shipped" {
		t.Errorf("%v, %+v", r.Err(), s)
	}
	if again, err := Read(t.Context(), store, s.Session); err != nil || again.Answer != "Bye." {
		t.Errorf("%+v, %v", again, err)
	}
	if _, r := sampled1(t, how(scripted.Text("x")), Case{Prompt: "x"}); kinds(r) != "error c" || !strings.Contains(r.Problems[0].Text, "name") {
		t.Errorf("a variable is missing: %v", r.Problems)
	}
	if _, r := sampled1(t, how(scripted.Fail(503)), Case{Prompt: "x", Vars: map[string]any{"name": "Ada"}}); kinds(r) != "error c" {
		t.Errorf("%v", r.Problems)
	}
}

// What the program itself puts on record is no turn of the model.
func TestWhatTheProgramNotesIsNotAsked(t *testing.T) {
	how := Conversation(nil, func(_ Case, opts ...pawl.Option) (*pawl.Conversation, error) {
		conv, err := pawl.Open("../testdata/support.pack.json", "chat", append(opts, pawl.WithModel(scripted.New(scripted.Text("Hello."), scripted.Text("It was shipped."))))...)
		if err != nil {
			return nil, err
		}
		conv.OnTool("lookup_order", func(map[string]any) (any, error) { return "shipped", nil })
		return conv, errors.Join(conv.AddMessage(t.Context(), message.User("I am Ada.")), conv.AddMessage(t.Context(), message.Assistant("Hello.")))
	})
	s, r := sampled1(t, how, Case{Prompt: "Where is it?", Vars: map[string]any{"name": "Ada"}})
	if r.Err() != nil || len(s.Turns) != 3 || !s.Turns[0].noted() || s.Turns[2].noted() || s.Prompt.Text() != "Where is it?" || s.Answer != "It was shipped." {
		t.Errorf("%v, %+v", r.Err(), s)
	}
	by := scorersIn(t, `{"id":"e","type":"contains","trigger":"every_turn","params":{"patterns":["shipped"]}}`, PackOptions{})[0]
	if sc := one(t, by, s); !sc.Pass || sc.Value != 1 {
		t.Errorf("%+v", sc)
	}
}

// What a pack's validators block, or don't take from a user, is the pack's doing: its message is the answer, and the turn has not completed.
func TestWhatValidatorsBlockIsNoError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.json")
	text := `{"id":"p","name":"P","version":"1.0.0","template_engine":{"version":"v1","syntax":"{{variable}}"},"prompts":{"chat":{"id":"chat","name":"Chat","version":"1.0.0","system_template":"x","validators":[
		{"type":"banned_words","fail_on_violation":true,"message":"Not that.","params":{"words":["bomb"],"direction":"input"}},{"type":"banned_words","fail_on_violation":true,"message":"Not so.","params":{"words":["guarantee"]}}]}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	how := Conversation(nil, func(_ Case, opts ...pawl.Option) (*pawl.Conversation, error) {
		return pawl.Open(path, "chat", append(opts, pawl.WithModel(scripted.New(scripted.Text("guarantee it."))))...)
	})
	for prompt, want := range map[string]string{"How do I build a bomb?": "Not that.", "Is it safe?": "Not so."} {
		r := done(t, Suite{Cases: []Case{{Name: "c", Prompt: prompt, Want: want}}, How: how, Scorers: []Scorer{Exact()}})
		if got := kinds(r); got != "low c completed" {
			t.Errorf("%s: %s %v", prompt, got, r.Problems)
		}
		r = done(t, Suite{Cases: []Case{{Name: "c", Prompt: prompt, Want: want}}, How: how, Scorers: []Scorer{Exact()}, AnyEnd: true})
		if r.Err() != nil || r.Cost == nil != (prompt == "Is it safe?") {
			t.Errorf("%s: %v", prompt, r.Err())
		}
	}
}

// left is a journal with a session of each kind.
func left(t *testing.T) journal.Store {
	t.Helper()
	ctx, store := t.Context(), journal.Memory()
	ask := func(session, text string, eng engine.Engine, opts ...agent.RunOption) {
		t.Helper()
		if _, err := agent.Run(ctx, agent.Agent{ID: "a"}, eng, agent.Request{ContextID: session, Message: message.User(text)}, append(opts, agent.WithJournal(store))...); err != nil {
			t.Fatal(err)
		}
	}
	drop := agent.WithDecider(agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
		return agent.FinalizeDecision{DiscardOutput: true}, nil
	}))
	ask("good", "Where?", looping(t, scripted.New(asks("c1", "lookup", `{"order":7}`), scripted.Text("Shipped.")), lookup))
	ask("failed", "Where?", looping(t, scripted.New(scripted.Fail(503))))
	ask("dropped", "Where?", looping(t, scripted.New(scripted.Text("Half."))), drop)
	two := looping(t, scripted.New(scripted.Text("One."), scripted.Text("Two.")))
	ask("partly", "a", two)
	ask("partly", "b", two, drop)
	// A process that died: what is on record ends in the middle.
	var es []journal.Entry
	for e, err := range store.Read(ctx, "good", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, over := e.Data.(journal.RunFinished); !over {
			es = append(es, journal.Entry{Run: e.Run, Key: e.Key, Time: e.Time, Data: e.Data})
		}
	}
	reply := 0
	for i, e := range es {
		if _, ok := e.Data.(journal.ModelFinished); ok {
			reply = i
		}
	}
	if err := store.Append(ctx, "crashed", 0, es[:reply]...); err != nil {
		t.Fatal(err)
	}
	parked := append(es[:len(es):len(es)], journal.Entry{Run: es[len(es)-1].Run, Data: journal.Parked{Cause: "approval"}})
	if err := store.Append(ctx, "parked", 0, parked...); err != nil {
		t.Fatal(err)
	}
	if err := store.Append(ctx, "empty", 0, journal.Entry{Data: journal.SessionCreated{}}); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestSessionsOnRecordAreSamplesAndThoseThatAreNotOverAreToldApart(t *testing.T) {
	store := left(t)
	finished, others, err := Recorded(t.Context(), store, journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	seen := func(all []Sample) string {
		var out []string
		for _, s := range all {
			out = append(out, fmt.Sprint(s.Session, " ", s.Status, " ", s.Discarded, " ", s.Answer))
		}
		slices.Sort(out) // sessions of one moment come in any order
		return strings.Join(out, "; ")
	}
	if got := seen(finished); got != "failed failed false ; good completed false Shipped.; partly completed true One." {
		t.Error(got)
	}
	if got := seen(others); got != "crashed unfinished false ; dropped completed true ; parked interrupted false Shipped." {
		t.Error(got)
	}
	if _, err := Read(t.Context(), store, "none"); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}

	only, _, err := Recorded(t.Context(), store, journal.Query{Session: "good"})
	if err != nil || len(only) != 1 {
		t.Fatal(err)
	}
	by := []Scorer{ToolCalls(Exactly, Use{Name: "lookup", Args: map[string]any{"order": 7}}), Contains("shipped")}
	fresh := desk(t, asks("c1", "lookup", `{"order":7}`), scripted.Text("Shipped."))
	a, b := done(t, Suite{Samples: only, Scorers: by}), done(t, Suite{Cases: []Case{{Name: "good", Prompt: "Where?"}}, How: fresh, Scorers: by})
	if a.Err() != nil || b.Err() != nil {
		t.Error(a.Err(), b.Err())
	}
	for i := range a.Scores {
		if x, y := a.Scores[i], b.Scores[i]; x.Passed != 1 || x.Scorer != y.Scorer || x.Mean != y.Mean {
			t.Errorf("on record %+v, fresh %+v", x, y)
		}
	}
	all := append(finished, others...)
	if got := kinds(done(t, Suite{Samples: all, Scorers: []Scorer{Named("any", said1)}, Parallel: 1})); !strings.Contains(got, "error failed") || !strings.Contains(got, "error crashed") || !strings.Contains(got, "error parked") || strings.Contains(got, "good") {
		t.Errorf("what is no end is an error: %s", got)
	}
}

var said1 = ScorerFunc(func(context.Context, Sample) (Score, error) { return Score{Value: 1, Pass: true}, nil })
