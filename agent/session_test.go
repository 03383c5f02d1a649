package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// parrot is an engine that says something by itself, without an effect.
func parrot(say func(b *engine.Board)) engine.Func {
	return func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		say(b)
		return b, nil
	}
}

func TestASessionHasWhatAnEngineSaidByItself(t *testing.T) {
	store := disk{journal.Memory()}
	var saw []string
	echo := parrot(func(b *engine.Board) {
		saw = history(b.Channel(engine.MainChannel))
		b.Append(engine.MainChannel, message.Assistant("you said "+b.Channel(engine.MainChannel).Last().Text()))
	})
	run(t, agent.Agent{}, echo, asking("s", "one"), agent.WithJournal(store))
	run(t, agent.Agent{}, echo, asking("s", "two"), agent.WithJournal(store), agent.WithDecider(decider(agent.FinalizeDecision{DiscardOutput: true})))
	run(t, agent.Agent{}, echo, asking("s", "three"), agent.WithJournal(store))
	same(t, "the third run's board", []string{"user: one", "assistant: you said one", "user: two", "user: three"}, saw)
	same(t, "the session", append(saw, "assistant: you said three"), history(state(t, store, "s").Messages))
}

// chatty does effects, and says something besides.
type chatty struct{ engine.Engine }

func (c chatty) Capabilities() engine.Capabilities { return engine.CapabilitiesOf(c.Engine) }

func (c chatty) Execute(ctx context.Context, r engine.Run, h engine.Host, b *engine.Board) (*engine.Board, error) {
	b, err := c.Engine.Execute(ctx, r, h, b)
	b.Append(engine.MainChannel, message.Assistant("and that is all"))
	return b, err
}

func TestWhatAnEngineSaysBesidesItsEffectsIsThereOnceAfterAResumeAndInAReplay(t *testing.T) {
	store := disk{journal.Memory()}
	var w works
	eng := chatty{looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))}
	d := &dyingAt{Store: store, match: func(e journal.Entry) bool { return e.Data.Kind() == "run.finished" }}
	_, _ = agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(d))
	resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store))
	if text := transcript(t, store, "s"); strings.Count(text, "and that is all") != 1 {
		t.Error(text)
	}
	if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store)); err != nil {
		t.Error(err)
	}
}

func TestARunIDIsOfOneRunOfASession(t *testing.T) {
	store := journal.Memory()
	req := asking("s", "go")
	req.RunID = "r"
	run(t, agent.Agent{}, saying(t, "hi"), req, agent.WithJournal(store))
	var log []string
	_, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), req, agent.WithJournal(store), agent.WithCommitter(&archive{to: &log}))
	if !errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), "session s has a run r already") || len(log) > 0 {
		t.Error(err, log)
	}
	if _, err := support(t, new(works).tool("pay")).Run(t.Context(), req, agent.WithJournal(store)); !errdefs.Conflict.Is(err) {
		t.Error("a team:", err)
	}
	req.ContextID = "another session"
	run(t, agent.Agent{}, saying(t, "hi"), req, agent.WithJournal(store))
}

func TestACheckpointIsASessionAndAPositionInIt(t *testing.T) {
	store := journal.Memory()
	parked(t, store)
	seq := state(t, store, "s").Seq
	res := run(t, agent.Agent{}, saying(t, "hi"), agent.Request{}, agent.WithJournal(store), agent.WithResumeFrom(&engine.Checkpoint{Session: "nowhere"}), agent.WithResumeFrom(&engine.Checkpoint{Session: "s", Seq: seq}))
	if res.RunID != "r" || res.Status != agent.StatusCompleted {
		t.Errorf("%+v", res)
	}
	n := len(read(t, store, "s"))
	_, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), agent.Request{}, agent.WithJournal(store), agent.WithResumeFrom(&engine.Checkpoint{Session: "s", Seq: seq}))
	if !errdefs.NotFound.Is(err) || len(read(t, store, "s")) != n {
		t.Error("a finished run was done again:", err)
	}
	if res := run(t, agent.Agent{}, saying(t, "hi"), asking("s", "more"), agent.WithJournal(store), agent.WithResumeFrom(&engine.Checkpoint{Session: "s"}), agent.WithResumeFrom(nil)); res.Status != agent.StatusCompleted {
		t.Errorf("nil starts afresh: %+v", res)
	}
}

func TestAResumeNeedsTheEngineThatTheRunHad(t *testing.T) {
	store := journal.Memory()
	parked(t, store)
	other := describes{Engine: saying(t, "hi"), can: engine.Capabilities{Name: "graph", Resume: true}}
	_, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, other, "s", agent.WithJournal(store))
	if !errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), `by the engine "loop", not "graph"`) {
		t.Error(err)
	}
	if _, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), "s"); !errdefs.NotFound.Is(err) || !strings.Contains(err.Error(), "WithJournal") {
		t.Error(err)
	}
}

// ear hears events, and embeds the rest.
type ear struct {
	engine.NoopHost
	heard []string
}

func (e *ear) Publish(_ context.Context, ev event.Event) error {
	e.heard = append(e.heard, ev.Type())
	return nil
}

func TestAHostThatEmbedsNoopHostHearsItsRuns(t *testing.T) {
	host := &ear{}
	run(t, agent.Agent{}, saying(t, "hi"), asking("s", "go"), agent.WithEngineHost(host))
	if len(host.heard) == 0 || host.heard[len(host.heard)-1] != "run.finished" {
		t.Error(host.heard)
	}
	if run(t, agent.Agent{}, saying(t, "hi"), asking("s", "go"), agent.WithEngineHost(nil)).Status != agent.StatusCompleted {
		t.Error("no host is NoopHost")
	}
}

func TestASeederMayChangeTheBoardThatThereWouldBe(t *testing.T) {
	store := disk{journal.Memory()}
	run(t, agent.Agent{}, saying(t, "hello"), asking("s", "hi"), agent.WithJournal(store))
	seed := func(ctx context.Context, _ agent.RunInfo, _ *agent.Request) (*engine.Board, error) {
		b := agent.DefaultBoard(ctx)
		b.SetVar("mood", "good")
		return b, nil
	}
	var got string
	eng := parrot(func(b *engine.Board) {
		got = fmt.Sprint(history(b.Channel(engine.MainChannel)), b.Var("mood"), b.Var("k"))
	})
	req := asking("s", "and now?")
	req.Inputs = map[string]any{"k": 1}
	run(t, agent.Agent{}, eng, req, agent.WithJournal(store), agent.WithBoardSeed(seed))
	same(t, "the board", "[user: hi assistant: hello user: and now?]good1", got)
	if agent.DefaultBoard(t.Context()) != nil {
		t.Error("there is one outside of a seeder")
	}
}

// replying is a model that is a function.
type replying func(ctx context.Context, n int) (*model.Response, error)

func (f replying) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	n := 0
	for _, m := range req.Messages.All() {
		if m.Role() == message.RoleAssistant {
			n++
		}
	}
	return f(ctx, n)
}

func (f replying) CompleteStream(context.Context, model.Request, model.StreamHandler) error {
	return errdefs.NotAvailable.Errorf("no stream")
}

func TestATaskThatEndsWithItsRunIsNoPromiseForTheNextOne(t *testing.T) {
	store, began := disk{journal.Memory()}, make(chan struct{})
	kid := looping(t, replying(func(ctx context.Context, _ int) (*model.Response, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	lead := looping(t, replying(func(_ context.Context, n int) (*model.Response, error) {
		if n == 0 {
			return &model.Response{Message: message.Assistant("", background("c1", "work"))}, nil
		}
		<-began
		return nil, errdefs.NotAvailable.Errorf("overloaded")
	}), task(t, kid))
	if res := run(t, agent.Agent{}, lead, asking("s", "go"), agent.WithJournal(store)); res.Status != agent.StatusFailed {
		t.Fatalf("%+v", res)
	}
	run(t, agent.Agent{}, saying(t, "", "", "fine"), asking("s", "and now?"), agent.WithJournal(store))
	if text := transcript(t, store, "s"); strings.Count(text, "[task c1 was canceled: the run that it was a part of ended as failed. There is no result.]") != 1 {
		t.Error(text)
	}
}

func TestAQuestionThatAPromptTookThePlaceOfIsNoCrash(t *testing.T) {
	store := disk{journal.Memory()}
	eng := looping(t, script{message.Assistant("", call("q1", "ask_user", `{"question":"Which?"}`)), message.Assistant("fine")}, askuser.New(nil))
	if res := run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store)); res.Status != agent.StatusInterrupted {
		t.Fatalf("%+v", res)
	}
	run(t, agent.Agent{}, eng, asking("s", "never mind"), agent.WithJournal(store))
	if text := transcript(t, store, "s"); !strings.Contains(text, "[q1 Not answered: the person said something else instead.]") || strings.Contains(text, "died") {
		t.Error(text)
	}
	for session, says := range map[string]string{"s": "closed by a later prompt", "nope": "there is no session nope"} {
		if err := agent.Answer(t.Context(), store, session, journal.Answered{ID: "q1", Approved: true, Text: "a"}); !errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), says) {
			t.Error(err)
		}
	}
}

func TestNobodyIsInterruptedByAJournalThatFails(t *testing.T) {
	seen := &watcher{}
	_, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), asking("s", "go"), agent.WithJournal(&dying{Store: journal.Memory(), n: 5}), agent.WithObserver(seen))
	if err == nil {
		t.Fatal("it did not fail")
	}
	same(t, "observers", []string{"start", "end interrupted"}, seen.log)
}

func TestABudgetOfTimeEndsATree(t *testing.T) {
	budget := &engine.Budget{Time: time.Nanosecond}
	res := run(t, agent.Agent{}, saying(t, "hi"), asking("s", "go"), agent.WithBudget(budget))
	if res.Status != agent.StatusFailed || !errdefs.BudgetExceeded.Is(res.Err) || res.Steps != 0 {
		t.Errorf("%+v", res)
	}
}

func TestAHandoffEventAndACheckpointHaveTheJSONOfTheirDocument(t *testing.T) {
	ev, err := json.Marshal(agent.HandoffEvent{ToAgentID: "b", ToolName: "transfer_to_b", ToolCallID: "c", Args: agent.HandoffArgs{Reason: "why", Note: "what"}})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "an event", `{"to_agent_id":"b","tool_name":"transfer_to_b","tool_call_id":"c","args":{"reason":"why","note":"what"}}`, string(ev))
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cp, err := json.Marshal(engine.Checkpoint{ExecID: "r", Step: "tool/c", Iteration: 2, Timestamp: at, OriginalStartedAt: at, Attributes: map[string]string{"k": "v"}, SpecVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "a checkpoint", `{"exec_id":"r","step":"tool/c","iteration":2,"attributes":{"k":"v"},"timestamp":"2026-01-02T03:04:05Z","original_started_at":"2026-01-02T03:04:05Z","spec_version":"1"}`, string(cp))
}

// An answer that can't be meant of its question leaves no trace: it still waits.
func TestAnAnswerThatDoesNotFitIsRefused(t *testing.T) {
	var w works
	d := hook.Asking("pay?")
	asks := hook.Middleware{Name: "asks", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return d, nil }}
	for name, c := range map[string]struct {
		session bool // it may be approved for the session
		answer  journal.Answered
		says    string
	}{
		"no JSON":                {true, journal.Answered{Input: `{`}, "want a JSON object"},
		"no object":              {true, journal.Answered{Input: `"{}"`}, "want a JSON object"},
		"null":                   {true, journal.Answered{Input: `null`}, "want a JSON object"},
		"a rule by itself":       {true, journal.Answered{Rule: "pay"}, "it needs session"},
		"what is asked for once": {false, journal.Answered{Session: true}, "each time"},
	} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			d.Session = c.session
			eng := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
			run(t, agent.Agent{Hooks: []hook.Middleware{asks}}, eng, asking("s", "go"), agent.WithJournal(store))
			c.answer.ID, c.answer.Approved = "c1", true
			if err := agent.Answer(t.Context(), store, "s", c.answer); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), c.says) {
				t.Error(err)
			}
			if all, err := agent.Pending(t.Context(), store, "s"); err != nil || len(all) != 1 {
				t.Error(all, err)
			}
			if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: "c1", Approved: true, Input: `{"x":1}`, Session: c.session}); err != nil {
				t.Error(err)
			}
		})
	}
	store := journal.Memory()
	eng := looping(t, script{message.Assistant("", call("q1", "ask_user", `{"question":"Which?"}`)), message.Assistant("end")}, askuser.New(nil))
	run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store))
	for _, a := range []journal.Answered{{Input: `{}`}, {Session: true}} {
		a.ID, a.Approved = "q1", true
		if err := agent.Answer(t.Context(), store, "s", a); !errdefs.Validation.Is(err) {
			t.Error(err)
		}
	}
}
