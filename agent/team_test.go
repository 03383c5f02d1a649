package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// persona is a stub model that plays its replies from each user message on: agents of a team share a transcript.
type persona []message.Message

func (p persona) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	n := 0
	for _, m := range slices.Backward(at(req.Messages)) {
		if m.Role() == message.RoleUser {
			break
		}
		if m.Role() == message.RoleAssistant {
			n++
		}
	}
	return &model.Response{Message: p[min(n, len(p)-1)]}, nil
}

func (p persona) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := p.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

// member plays a persona that may hand over.
func member(t testing.TB, id string, p persona, hs []agent.Handoff, tools ...tool.Tool) agent.Member {
	t.Helper()
	tools = append(tools, agent.HandoffTools(context.Background(), nil, hs)...)
	return agent.Member{Agent: agent.Agent{ID: id, Instructions: "You are " + id + "."}, Engine: looping(t, p, tools...), Handoffs: hs}
}

func team(t testing.TB, hops int, ms ...agent.Member) *agent.Team {
	t.Helper()
	tm, err := agent.NewTeam(agent.TeamConfig{Members: ms, MaxHops: hops})
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

func over(id, target, args string) message.Message {
	return message.Assistant("", call(id, "transfer_to_"+target, args))
}

// support is a desk that passes to billing, and billing to the cashier, who pays.
func support(t testing.TB, pay tool.Tool) *agent.Team {
	return team(t, 0,
		member(t, "desk", persona{message.Assistant("", call("p", "pay", `{}`)), over("h", "billing", `{"reason":"a refund","note":"order 12"}`)}, to("billing"), pay),
		member(t, "billing", persona{message.Assistant("", call("p", "pay", `{}`)), over("h", "cashier", `{}`)}, to("cashier", "desk"), pay),
		member(t, "cashier", persona{message.Assistant("", call("p", "pay", `{}`)), message.Assistant("end")}, to("desk"), pay),
	)
}

func TestATeamHandsOneConversationOverUntilSomebodyAnswers(t *testing.T) {
	var w works
	store, seen := journal.Memory(), &watcher{}
	tm := support(t, w.tool("pay"))
	req := agent.Request{TaskID: "task", ContextID: "s", RunID: "r", Message: message.User("refund me"), Inputs: map[string]any{"k": "v"}}
	var runs []string
	note := hook.Middleware{Name: "note", PreGeneration: func(_ context.Context, g *hook.Generation) error {
		runs = append(runs, g.Agent+" "+g.Run+" "+g.System)
		return nil
	}}
	res, err := tm.Run(t.Context(), req, agent.WithJournal(store), agent.WithObserver(seen), agent.WithHooks(note))
	if err != nil || res.Status != agent.StatusCompleted || res.Text() != "end" || res.RunID != "r-hop-2" || res.ContextID != "s" || res.TaskID != "task" || res.LastBoard.Var("k") != "v" {
		t.Fatalf("%+v %v", res, err)
	}
	same(t, "path", []string{"desk", "billing", "cashier"}, res.State[agent.StateTeamPath].([]string))
	same(t, "runs", []string{"desk r You are desk.", "billing r-hop-1 You are billing.", "cashier r-hop-2 You are cashier."}, runs)
	same(t, "observers", []string{"start", "end completed", "start", "end completed", "start", "end completed"}, seen.log)
	same(t, "one transcript", []string{
		"user: refund me", "assistant:  <p pay>", "tool:  [p pay did p]", "assistant:  <h transfer_to_billing>", "tool:  [h Handoff initiated to billing]",
		"user: The agent desk handed this conversation over to you.\nIts reason: a refund\nIts note: order 12\nGo on from here, and answer the person.",
		"assistant:  <p_1_1 pay>", "tool:  [p_1_1 pay did p_1_1]", "assistant:  <h_2_1 transfer_to_cashier>", "tool:  [h_2_1 Handoff initiated to cashier]",
		"user: The agent billing handed this conversation over to you.\nGo on from here, and answer the person.",
		"assistant:  <p_1_1_1 pay>", "tool:  [p_1_1_1 pay did p_1_1_1]", "assistant: end",
	}, history(state(t, store, "s").Messages))
	var parents, by []string
	for _, e := range read(t, store, "s") {
		switch d := e.Data.(type) {
		case journal.RunStarted:
			parents = append(parents, e.Run+" of "+d.ParentRun)
		case journal.Said:
			by = append(by, d.By)
		}
	}
	same(t, "parents", []string{"r of ", "r-hop-1 of r", "r-hop-2 of r-hop-1"}, parents)
	same(t, "who said it", []string{"", "pawl", "pawl"}, by)
	if _, err := tm.Resume(t.Context(), "s", agent.WithJournal(store)); !errdefs.NotFound.Is(err) {
		t.Error("nothing is left to do:", err)
	}
	replayed, err := tm.Replay(t.Context(), "s", agent.WithJournal(store))
	if err != nil || len(replayed) != 3 {
		t.Error(replayed, err)
	}

	seen.log = nil
	res, err = tm.Run(t.Context(), asking("s", "thanks"), agent.WithJournal(store), agent.WithObserver(seen))
	if err != nil || res.Text() != "end" {
		t.Fatalf("%+v %v", res, err)
	}
	same(t, "the next prompt goes to who has the conversation", []string{"cashier"}, res.State[agent.StateTeamPath].([]string))
	same(t, "and to nobody else", []string{"start", "end completed"}, seen.log)
}

func TestATeamWithoutAJournalAndASession(t *testing.T) {
	var w works
	res, err := support(t, w.tool("pay")).Run(t.Context(), agent.Request{Message: message.User("refund me")})
	if err != nil || res.Text() != "end" || res.ContextID+"-hop-2" != res.RunID || !strings.HasPrefix(res.RunID, "run-") {
		t.Errorf("%+v %v", res, err)
	}
	if total, _ := w.total(); total != 3 {
		t.Error(total)
	}
}

func TestATeamGoesInCirclesAsFarAsItMay(t *testing.T) {
	p := func(target string) persona { return persona{over("h", target, `{}`), message.Assistant("you do it")} }
	tm := team(t, 3, member(t, "a", p("b"), to("b")), member(t, "b", p("a"), to("a")))
	store := journal.Memory()
	res, err := tm.Run(t.Context(), agent.Request{ContextID: "s", RunID: "r", Message: message.User("go")}, agent.WithJournal(store))
	if !errdefs.BudgetExceeded.Is(err) || !strings.Contains(err.Error(), "the limit of 3 handoffs for one prompt is reached: a → b → a → b → a: ") || res == nil || res.RunID != "r-hop-3" {
		t.Fatalf("%+v %v", res, err)
	}
	n := len(read(t, store, "s"))
	res, again := tm.Resume(t.Context(), "s", agent.WithJournal(disk{store}))
	if res != nil || again == nil || again.Error() != err.Error() || len(read(t, store, "s")) != n {
		t.Error("a resume does not go further:", res, again)
	}
	res, err = tm.Run(t.Context(), asking("s", "go"), agent.WithJournal(store))
	if !errdefs.BudgetExceeded.Is(err) || !strings.Contains(err.Error(), "a → b → a → b → a: ") || res == nil {
		t.Error("another prompt has as many again, from the one who has the conversation:", err)
	}
	round := team(t, 0, member(t, "a", p("b"), to("b")), member(t, "b", persona{message.Assistant("mine")}, to("a")))
	if res, err := round.Run(t.Context(), asking("s2", "go")); err != nil || res.Text() != "mine" {
		t.Error(res, err)
	}
}

func TestATeamThatCannotWorkIsRefusedWhenItIsMade(t *testing.T) {
	eng := saying(t, "hi")
	a, b := agent.Member{Agent: agent.Agent{ID: "a"}, Engine: eng}, agent.Member{Agent: agent.Agent{ID: "b"}, Engine: eng}
	with := func(m agent.Member, hs ...agent.Handoff) agent.Member { m.Handoffs = hs; return m }
	gated := with(a, to("b")...)
	gated.Agent.Tools = []string{"read"}
	admits := gated
	admits.Agent.Tools = []string{"Transfer_To_B"}
	for name, c := range map[string]struct {
		cfg   agent.TeamConfig
		class *errdefs.Class
		says  string
	}{
		"nobody":             {agent.TeamConfig{}, errdefs.Validation, "no members"},
		"no id":              {agent.TeamConfig{Members: []agent.Member{a, {Engine: eng}}}, errdefs.Validation, "member 2 needs an id"},
		"no engine":          {agent.TeamConfig{Members: []agent.Member{{Agent: agent.Agent{ID: "c"}}}}, errdefs.Validation, "c needs an engine"},
		"one id twice":       {agent.TeamConfig{Members: []agent.Member{a, b, a}}, errdefs.Validation, "two members have the id a"},
		"an entry from afar": {agent.TeamConfig{Members: []agent.Member{a, b}, Entry: "c"}, errdefs.Validation, `"c" is no member: want one of a, b`},
		"a target from afar": {agent.TeamConfig{Members: []agent.Member{with(a, to("b", "c")...), b}}, errdefs.Validation, `a hands over to "c", who is no member`},
		"no target":          {agent.TeamConfig{Members: []agent.Member{with(a, agent.Handoff{}), b}}, errdefs.Validation, "who is no member"},
		"itself":             {agent.TeamConfig{Members: []agent.Member{with(a, to("a")...)}}, errdefs.Validation, "to itself"},
		"one tool twice":     {agent.TeamConfig{Members: []agent.Member{with(a, to("b", "b")...), b}}, errdefs.Conflict, "same tool name"},
		"no tool's name":     {agent.TeamConfig{Members: []agent.Member{with(a, agent.Handoff{ToAgentID: "b", ToolName: "to b"}), b}}, errdefs.Validation, "to b"},
		"a gate before it":   {agent.TeamConfig{Members: []agent.Member{gated, b}}, errdefs.Validation, "its Tools don't admit transfer_to_b"},
		"less than no hops":  {agent.TeamConfig{Members: []agent.Member{a}, MaxHops: -1}, errdefs.Validation, "MaxHops"},
		"a gate that admits": {agent.TeamConfig{Members: []agent.Member{admits, b}}, nil, ""},
		"all that is due":    {agent.TeamConfig{Members: []agent.Member{a, b}, Entry: "b"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tm, err := agent.NewTeam(c.cfg)
			if c.class == nil && (err != nil || tm == nil) || c.class != nil && (!errors.Is(err, c.class) || !strings.Contains(err.Error(), c.says) || tm != nil) {
				t.Error(tm, err)
			}
		})
	}
}

func TestAPromptGoesToWhoHasTheConversation(t *testing.T) {
	answer := func(id string) agent.Member { return member(t, id, persona{message.Assistant("I am " + id)}, nil) }
	a := member(t, "a", persona{over("h", "b", `{}`)}, to("b"))
	fails := agent.Member{Agent: agent.Agent{ID: "b"}, Engine: engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		return b, errdefs.NotAvailable.Errorf("down")
	})}
	both := team(t, 0, a, answer("b"))
	tells := func(t *testing.T, tm *agent.Team, store journal.Store, session, want string) {
		t.Helper()
		if res, err := tm.Run(t.Context(), asking(session, "who?"), agent.WithJournal(store)); err != nil || res.Text() != want {
			t.Errorf("%+v %v, want %s", res, err, want)
		}
	}
	t.Run("the one whose run failed keeps it", func(t *testing.T) {
		store := journal.Memory()
		res, err := team(t, 0, a, fails).Run(t.Context(), asking("s", "go"), agent.WithJournal(store))
		if err != nil || res.Status != agent.StatusFailed {
			t.Fatal(res, err)
		}
		tells(t, both, store, "s", "I am b")
	})
	t.Run("one who was handed it and never ran has it", func(t *testing.T) {
		store := journal.Memory()
		run(t, a.Agent, a.Engine, asking("s", "go"), agent.WithJournal(store), agent.WithDecider(agent.HandoffDecider(a.Handoffs)))
		tells(t, both, store, "s", "I am b")
	})
	t.Run("and in a fork, where there is nothing to resume", func(t *testing.T) {
		store := journal.Memory()
		run(t, a.Agent, a.Engine, asking("s", "go"), agent.WithJournal(store), agent.WithDecider(agent.HandoffDecider(a.Handoffs)))
		fork, err := journal.Fork(t.Context(), store, "s", 0, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := both.Resume(t.Context(), fork, agent.WithJournal(store)); !errdefs.NotFound.Is(err) {
			t.Error(err)
		}
		tells(t, both, store, fork, "I am b")
	})
	t.Run("in a session of somebody else's the entry takes it", func(t *testing.T) {
		store := journal.Memory()
		run(t, agent.Agent{ID: "x"}, saying(t, "hi"), asking("s", "go"), agent.WithJournal(store))
		tells(t, team(t, 0, answer("c"), answer("d")), store, "s", "I am c")
	})
	t.Run("who is no member any more can't be found", func(t *testing.T) {
		store := journal.Memory()
		run(t, a.Agent, a.Engine, asking("s", "go"), agent.WithJournal(store), agent.WithDecider(agent.HandoffDecider(a.Handoffs)))
		alone := team(t, 0, answer("a"))
		for _, err := range []error{second(alone.Run(t.Context(), asking("s", "go"), agent.WithJournal(store))), second(alone.Resume(t.Context(), "s", agent.WithJournal(store)))} {
			if !errdefs.NotFound.Is(err) || !strings.Contains(err.Error(), "session s is with b, who is no member") {
				t.Error(err)
			}
		}
		other := journal.Memory()
		parked(t, other) // by an agent of another name
		if err := second(team(t, 0, answer("c")).Resume(t.Context(), "s", agent.WithJournal(other))); !errdefs.NotFound.Is(err) {
			t.Error(err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestATeamsRunThatStopsIsResumedWithItsAgent(t *testing.T) {
	host := &myHost{interrupts: make(chan engine.Interrupt, 1)}
	stop := tool.Func("pay", "", func(ctx context.Context, _ struct{}) (string, error) {
		if strings.HasPrefix(tool.FromContext(ctx).ID, "p_1") {
			host.interrupts <- engine.Interrupt{Cause: engine.CauseHostShutdown}
		}
		return "paid", nil
	})
	tm, store := support(t, stop), journal.Memory()
	req := asking("s", "go")
	req.RunID = "r"
	res, err := tm.Run(t.Context(), req, agent.WithJournal(store), agent.WithEngineHost(host))
	if err != nil || res.Status != agent.StatusInterrupted || res.RunID != "r-hop-1" {
		t.Fatalf("%+v %v", res, err)
	}
	res, err = tm.Resume(t.Context(), "s", agent.WithJournal(disk{store}))
	if err != nil || res.Text() != "end" || res.RunID != "r-hop-2" {
		t.Fatalf("%+v %v", res, err)
	}
	same(t, "path", []string{"desk", "billing", "cashier"}, res.State[agent.StateTeamPath].([]string))
	cp := agent.WithResumeFrom(&engine.Checkpoint{ExecID: "r", Session: "s"})
	if _, err := tm.Run(t.Context(), req, agent.WithJournal(store), cp); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}

func TestNobodyComesBetweenTwoRunsOfATeam(t *testing.T) {
	for name, live := range map[string]bool{"while its driver lives": true, "and who was taken for dead does nothing more": false} {
		t.Run(name, func(t *testing.T) {
			var w works
			tm, store := support(t, w.tool("pay")), journal.Memory()
			if !live {
				store = stale{store}
			}
			var other error
			var did *agent.Result
			first := true
			between := &onEnd{do: func() {
				if first {
					first = false
					did, other = tm.Resume(t.Context(), "s", agent.WithJournal(store))
				}
			}}
			res, err := tm.Run(t.Context(), asking("s", "go"), agent.WithJournal(store), agent.WithObserver(between))
			if live {
				if !errdefs.Conflict.Is(other) || err != nil || res.Text() != "end" {
					t.Error(other, err)
				}
			} else if other != nil || did.Text() != "end" || !errdefs.Conflict.Is(err) || res == nil || res.RunID == did.RunID || res.Text() != "" {
				t.Errorf("%+v %v; %+v %v", did, other, res, err)
			}
			if total, most := w.total(); total != 3 || most != 1 {
				t.Errorf("%d calls ran, one of them %d times", total, most)
			}
		})
	}
}

func TestWhoWaitsForTheSessionGoesToWhoHasItThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, waits := journal.Memory(), make(chan string, 1)
		var tm *agent.Team
		first := true
		pay := tool.Func("pay", "", func(context.Context, struct{}) (string, error) {
			if first {
				first = false
				go func() {
					res, err := tm.Run(context.Background(), asking("s", "and me?"), agent.WithJournal(store), agent.WithWait())
					waits <- fmt.Sprint(res.State[agent.StateTeamPath], err)
				}()
				synctest.Wait() // it waits
			}
			return "paid", nil
		})
		tm = support(t, pay)
		if res, err := tm.Run(t.Context(), asking("s", "go"), agent.WithJournal(store)); err != nil || res.Text() != "end" {
			t.Errorf("%+v %v", res, err)
		}
		same(t, "the one who waited", "[cashier] <nil>", <-waits)
	})
}

func TestARevisedRunIsOneStepOfTheWay(t *testing.T) {
	var w works
	host, seen := &myHost{interrupts: make(chan engine.Interrupt, 1)}, 0
	stops := hook.Middleware{Name: "stops", PreGeneration: func(_ context.Context, g *hook.Generation) error {
		if strings.HasSuffix(g.Run, "-hop-2") {
			if seen++; seen == 2 {
				host.interrupts <- engine.Interrupt{Cause: engine.CauseHostShutdown}
			}
		}
		return nil
	}}
	twice := agent.DeciderFunc(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
		return agent.FinalizeDecision{Revise: res.Attempts < 2}, nil
	})
	tm, store := support(t, w.tool("pay")), journal.Memory()
	with := []agent.RunOption{agent.WithJournal(store), agent.WithDecider(twice), agent.WithMaxRevise(2), agent.WithHooks(stops), agent.WithEngineHost(host)}
	res, err := tm.Run(t.Context(), asking("s", "go"), with...)
	if err != nil || res.Status != agent.StatusInterrupted || !strings.HasSuffix(res.RunID, "-hop-2") || res.Attempts != 2 {
		t.Fatalf("%+v %v", res, err)
	}
	res, err = tm.Resume(t.Context(), "s", with...)
	if err != nil || res.Text() != "end" || res.Attempts != 2 {
		t.Fatalf("%+v %v", res, err)
	}
	same(t, "path", []string{"desk", "billing", "cashier"}, res.State[agent.StateTeamPath].([]string))
}

// onEnd does something behind each first run of a prompt.
type onEnd struct {
	agent.BaseObserver
	do func()
}

func (o *onEnd) OnRunEnd(_ context.Context, _ agent.RunInfo, res *agent.Result) {
	if !strings.Contains(res.RunID, "-hop-") {
		o.do()
	}
}

func TestTheTimeOfAPromptIsThatOfAllItsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := tool.Func("pay", "", func(ctx context.Context, _ struct{}) (string, error) {
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(40 * time.Second):
				return "paid", nil
			}
		})
		began := time.Now()
		res, err := support(t, slow).Run(t.Context(), asking("s", "go"), agent.WithTimeout(time.Minute))
		if err != nil || res.Status != agent.StatusFailed || !errdefs.BudgetExceeded.Is(res.Err) || !strings.Contains(res.Err.Error(), "limit of 1m0s") || !strings.HasSuffix(res.RunID, "-hop-1") || time.Since(began) != time.Minute {
			t.Errorf("%+v %v after %v", res, err, time.Since(began))
		}
	})
}

func TestTheTimeOfAPromptIsThatOfItsWaitToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.Memory()
		hold, done := driven(t, store)
		synctest.Wait()
		var w works
		time.AfterFunc(2*time.Minute, func() { close(hold) })
		tm, began := support(t, w.tool("pay")), time.Now()
		res, err := tm.Run(t.Context(), asking("s", "go"), agent.WithJournal(store), agent.WithWait(), agent.WithTimeout(time.Minute))
		if res != nil || !errdefs.BudgetExceeded.Is(err) || !strings.Contains(err.Error(), "limit of 1m0s") || time.Since(began) != time.Minute {
			t.Errorf("%+v %v after %v", res, err, time.Since(began))
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// crashed is a session of support's whose process died before an entry that matches.
func crashed(t *testing.T, tm *agent.Team, match func(string, journal.Entry) bool, opts ...agent.RunOption) disk {
	t.Helper()
	store := disk{journal.Memory()}
	broken := &failsOnce{Store: store, match: match}
	req := agent.Request{TaskID: "vip", ContextID: "s", RunID: "r", Message: message.User("go")}
	if res, err := tm.Run(t.Context(), req, append(opts, agent.WithJournal(broken))...); !errdefs.NotAvailable.Is(err) {
		t.Fatalf("%+v %v", res, err)
	}
	return store
}

func TestASeederIsNotAskedForAHopThatIsResumed(t *testing.T) {
	var w works
	var asked []string
	seed := agent.WithBoardSeed(func(_ context.Context, info agent.RunInfo, req *agent.Request) (*engine.Board, error) {
		asked = append(asked, info.RunID)
		return agent.BoardWith(message.NewHistory(message.User("memory")), req), nil
	})
	tm := support(t, w.tool("pay"))
	store := crashed(t, tm, func(_ string, e journal.Entry) bool { return e.Run == "r-hop-1" && finished("p_1_1")(e) }, seed)
	res, err := tm.Resume(t.Context(), "s", twice(agent.WithJournal(store), seed)...)
	if err != nil || res.Text() != "end" || res.Attempts != 2 {
		t.Fatalf("%+v %v", res, err)
	}
	same(t, "asked", []string{"r"}, asked)
	same(t, "the transcript's beginning", []string{"user: memory", "user: go"}, history(state(t, store, "s").Messages)[:2])
}

func TestAHandoffsFilterSeesTheSameRequestAfterACrash(t *testing.T) {
	vips := func(id string) []agent.Handoff {
		hs := to(id)
		hs[0].Filter = func(_ context.Context, req *agent.Request) bool { return req.TaskID == "vip" }
		return hs
	}
	passes := func(id, next string) agent.Member {
		return member(t, id, persona{over("h", next, `{}`)}, vips(next))
	}
	tm := team(t, 0, passes("a", "b"), passes("b", "c"), member(t, "c", persona{message.Assistant("I am c")}, nil))
	starts := func(_ string, e journal.Entry) bool { return e.Data.Kind() == "tool.started" }
	for name, match := range map[string]func(string, journal.Entry) bool{"before the handoff": starts, "behind it": closes, "before the run behind it": begins("r-hop-1")} {
		res, err := tm.Resume(t.Context(), "s", agent.WithJournal(crashed(t, tm, match)))
		if err != nil || res.Text() != "I am c" || res.TaskID != "vip" {
			t.Errorf("%s: %+v %v", name, res, err)
		}
	}
}

func TestTheBudgetOfAPromptGoesOnAfterACrashBetweenItsRuns(t *testing.T) {
	for name, c := range map[string]struct {
		calls int64 // of the 6 that the prompt takes
		same  bool  // it is resumed in the process that began it
		fails bool
	}{
		"enough":                     {6, false, false},
		"too little":                 {5, false, true},
		"enough, in one process":     {6, true, false},
		"too little, in one process": {5, true, true},
	} {
		for at, match := range map[string]func(string, journal.Entry) bool{"between the runs": begins("r-hop-1"), "in the second run": func(_ string, e journal.Entry) bool { return finished("p_1_1")(e) }} {
			t.Run(name+", "+at, func(t *testing.T) {
				var w works
				tm, b := support(t, w.tool("pay", tool.Idempotent)), &engine.Budget{Calls: c.calls}
				store := crashed(t, tm, match, agent.WithBudget(b))
				if !c.same {
					b = &engine.Budget{Calls: c.calls}
				}
				res, err := tm.Resume(t.Context(), "s", agent.WithJournal(store), agent.WithBudget(b))
				if err != nil || c.fails != errdefs.BudgetExceeded.Is(res.Err) || !c.fails && res.Text() != "end" || b.Left().Calls != 0 {
					t.Errorf("%+v %v, %d calls left", res, err, b.Left().Calls)
				}
				if n := state(t, store, "s").Spent.Steps; int64(n) != c.calls {
					t.Errorf("%d calls were made", n)
				}
			})
		}
	}
}

func TestACallWithoutAResultHandsNothingOver(t *testing.T) {
	hs := to("b")
	hs[0].OnInvoke = func(context.Context, agent.HandoffArgs) error {
		t.Error("it was invoked")
		return nil
	}
	a := agent.Member{Agent: agent.Agent{ID: "a"}, Handoffs: hs, Engine: engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		b.Append(engine.MainChannel, over("h", "b", `{}`))
		return b, nil
	})}
	store := journal.Memory()
	res, err := team(t, 0, a, member(t, "b", persona{message.Assistant("I am b")}, nil)).Run(t.Context(), asking("s", "go"), agent.WithJournal(store))
	if _, handed := agent.HandoffFromResult(res); err != nil || handed || len(began(t, store, "s")) != 1 || len(last[journal.RunFinished](t, store, "s").Handoff) > 0 {
		t.Errorf("%+v %v, runs %v", res, err, began(t, store, "s"))
	}
}

func TestARunIDLikeThatOfAHopIsAPromptOfItsOwn(t *testing.T) {
	var w works
	tm := support(t, w.tool("pay"))
	store := crashed(t, tm, begins("r-hop-1"))
	broken := &failsOnce{Store: store, match: begins("r-hop-1-hop-1")}
	if err := second(tm.Run(t.Context(), agent.Request{ContextID: "s", RunID: "r-hop-1", Message: message.User("another")}, agent.WithJournal(broken))); !errdefs.NotAvailable.Is(err) {
		t.Fatal(err)
	}
	res, err := tm.Resume(t.Context(), "s", agent.WithJournal(store))
	if err != nil || res.Text() != "end" {
		t.Fatalf("%+v %v", res, err)
	}
	same(t, "path", []string{"billing", "cashier"}, res.State[agent.StateTeamPath].([]string))
	same(t, "runs", []string{"r", "r-hop-1", "r-hop-1-hop-1"}, began(t, store, "s"))
}

func TestASeederMakesTheBoardOfAPromptsFirstRunOnly(t *testing.T) {
	var w works
	store, seeded := journal.Memory(), 0
	seed := func(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
		seeded++
		return agent.BoardWith(message.NewHistory(message.User("memory")), req), nil
	}
	res, err := support(t, w.tool("pay")).Run(t.Context(), asking("s", "go"), agent.WithJournal(store), agent.WithBoardSeed(seed))
	if err != nil || seeded != 1 || history(res.LastBoard.Channel(engine.MainChannel))[0] != "user: memory" {
		t.Error(err, seeded, history(res.LastBoard.Channel(engine.MainChannel)))
	}
}

func TestAFilterHoldsForATeamWhoseEnginesHaveAllTools(t *testing.T) {
	hs := to("b")
	hs[0].Filter = func(_ context.Context, req *agent.Request) bool { return req.TaskID == "vip" }
	tm := team(t, 0, member(t, "a", persona{over("h", "b", `{}`), message.Assistant("I am a")}, hs), member(t, "b", persona{message.Assistant("I am b")}, nil))
	for task, want := range map[string]string{"vip": "I am b", "": "I am a"} {
		req := agent.Request{TaskID: task, Message: message.User("go")}
		res, err := tm.Run(t.Context(), req)
		if err != nil || res.Text() != want {
			t.Errorf("%+v %v", res, err)
		}
		if task == "" && !strings.Contains(fmt.Sprint(lines(res.Messages...)), "not open to this request") {
			t.Error("the model was told that it went through:", lines(res.Messages...))
		}
	}
}

func TestATeamKilledAtAnyAppendRepeatsNothingAndGoesOnWithTheRightAgent(t *testing.T) {
	points := 0
	killed := true
	for n := 1; killed; n++ {
		for _, after := range []bool{false, true} {
			if killed = killTeam(t, 1, n, after, 0, false); t.Failed() {
				t.Fatalf("killed at append %d, after=%v", n, after)
			}
			if !killed {
				break
			}
			points++
			for m := 1 + n%7; !testing.Short() && killTeam(t, 2, n, after, m, m%2 == 0); m += 7 {
				if points++; t.Failed() {
					t.Fatalf("killed at append %d, after=%v, and at %d of the next life, after=%v", n, after, m, m%2 == 0)
				}
			}
		}
	}
	if points < 60 {
		t.Error("only", points)
	}
	t.Logf("%d kill points", points)
}

// killTeam plays a team that dies at append n, and in its second life at append m; then it is let live. It reports whether it died that often.
func killTeam(t *testing.T, deaths, n int, after bool, m int, after2 bool) bool {
	t.Helper()
	var w works
	tm, store := support(t, w.tool("pay")), disk{journal.Memory()} // a team remembers nothing: it may as well be of another process
	live := func(s journal.Store) (*agent.Result, error) {
		if state(t, store, "s").Seq <= 1 {
			return tm.Run(t.Context(), agent.Request{ContextID: "s", RunID: "r", Message: message.User("go")}, agent.WithJournal(s))
		}
		return tm.Resume(t.Context(), "s", agent.WithJournal(s))
	}
	lives := []*dying{{Store: store, n: n, after: after}, {Store: store, n: m, after: after2}}[:deaths]
	for _, d := range lives {
		if _, err := live(d); !d.dead {
			return false
		} else if err == nil {
			t.Error("a run whose store died says nothing of it")
		}
	}
	res, err := live(store)
	if errdefs.NotFound.Is(err) { // it died behind its last append
		res, err = nil, nil
	}
	if err != nil || res != nil && (res.Err != nil || res.Text() != "end" || !slices.Equal(res.State[agent.StateTeamPath].([]string), []string{"desk", "billing", "cashier"})) {
		t.Errorf("it can't go on: %v %+v", err, res)
		return true
	}
	var began, said []string
	unknown := 0
	for _, e := range read(t, store, "s") {
		switch d := e.Data.(type) {
		case journal.RunStarted:
			began = append(began, e.Run+" "+d.Agent)
		case journal.Said:
			said = append(said, d.By)
		case journal.ToolFinished:
			if d.Outcome == journal.OutcomeUnknown {
				unknown++
			}
		}
	}
	same(t, "runs", []string{"r desk", "r-hop-1 billing", "r-hop-2 cashier"}, began)
	same(t, "words", []string{"", "pawl", "pawl"}, said)
	if ran, most := w.total(); most > 1 || ran > 3 || ran+unknown < 3 || unknown > deaths {
		t.Errorf("%d calls ran, one of them %d times, %d are unknown", ran, most, unknown)
	}
	st := state(t, store, "s")
	if text := fmt.Sprint(history(st.Messages)); st.Run != "" || st.Status != "completed" || strings.Contains(text, "Not run") {
		t.Errorf("%q %q %s", st.Run, st.Status, text)
	}
	if res != nil {
		same(t, "the fold and the board", history(res.LastBoard.Channel(engine.MainChannel)), history(st.Messages))
	}
	if _, err := tm.Replay(t.Context(), "s", agent.WithJournal(store)); err != nil {
		t.Error(err)
	}
	return true
}
