package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// leaving is an engine whose work is done elsewhere: it begins nothing, and leaves its run.
type leaving struct{ engine.Func }

func (leaving) Capabilities() engine.Capabilities {
	return engine.Capabilities{Name: "elsewhere", Resume: true, Elsewhere: true}
}

func leaves() leaving {
	return leaving{func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		return b, engine.ErrLeft
	}}
}

// A run that is left to others is unfinished on record, and they have it as its driver has, bound as there.
func TestARunIsTakenUpInPart(t *testing.T) {
	store := journal.Memory()
	ag := agent.Agent{ID: "a", Instructions: "Work.", Tools: []string{"read"}, Hooks: []hook.Middleware{{Name: "agent's"}}}
	opts := []agent.RunOption{agent.WithHooks(hook.Middleware{Name: "run's"}), agent.WithBudget(&engine.Budget{Calls: 5}), agent.WithAttributes(map[string]string{"user.id": "ada"})}
	res, err := agent.Run(t.Context(), ag, leaves(), agent.Request{ContextID: "s", RunID: "r", TaskID: "task", Message: message.User("go"), Inputs: map[string]any{"n": "1"}}, append(opts, agent.WithJournal(store))...)
	if !errors.Is(err, engine.ErrLeft) {
		t.Fatal(res, err)
	}
	log, err := journal.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	if st := log.State(); st.Run != "r" || st.Driver != "elsewhere-r" {
		t.Fatalf("it is driven by %q, unfinished: %q", st.Driver, st.Run)
	}
	ctx, part, err := agent.PartOf(t.Context(), ag, log.As("elsewhere-r"), "r", opts...)
	if err != nil {
		t.Fatal(err)
	}
	b, bound := engine.BoundsFrom(ctx)
	if !bound || len(b.Hooks) != 2 || b.Budget == nil || b.Hooks[0].Name != "agent's" {
		t.Errorf("bound by %+v", b)
	}
	run := part.Run
	if run.ID != "r" || run.AgentID != "a" || run.System != "Work." || len(run.Tools) != 1 || run.Attributes["user.id"] != "ada" || run.Attributes["task.id"] != "task" || run.Attempt != 1 || len(run.Bounds.Hooks) != 2 {
		t.Errorf("%+v", run)
	}
	if h := part.Board.Channel(engine.MainChannel); h.Len() != 1 || part.Board.Var("n") != "1" {
		t.Errorf("the board has %d messages, and %v", h.Len(), part.Board.Var("n"))
	}
	if _, _, err := agent.PartOf(t.Context(), ag, log, "another"); !errdefs.NotFound.Is(err) {
		t.Errorf("another run: %v", err)
	}
	if _, _, err := agent.PartOf(t.Context(), agent.Agent{ID: "b"}, log, "r"); !errdefs.Conflict.Is(err) {
		t.Errorf("another agent: %v", err)
	}
	if err := log.As("elsewhere-r").Append(t.Context(), journal.Entry{Run: "r", Data: journal.Said{Message: message.Assistant("mine")}}); err != nil {
		t.Errorf("who acts for the driver can't write: %v", err)
	}
	if err := log.As("another").Append(t.Context(), journal.Entry{Run: "r", Data: journal.Said{Message: message.Assistant("mine")}}); !errdefs.Conflict.Is(err) {
		t.Errorf("who acts for another one writes: %v", err)
	}
}

// A place may have the runs of tasks driven by engines of its own, or leave them, and the call with them.
func TestAPlaceHasTasksDoneElsewhere(t *testing.T) {
	store := journal.Memory()
	kid := looping(t, script{message.Assistant("never")})
	eng := looping(t, script{message.Assistant("", gives("c1", "do it")), message.Assistant("end")}, task(t, kid))
	leave := true
	ctx := agent.WithTaskEngine(t.Context(), func(ctx context.Context, sub agent.Subagent, session string, opts []agent.RunOption) (engine.Engine, error) {
		if at, ok := engine.InsideOf(ctx); !ok || at.Run.Session != "s" || sub.Agent.ID != "kid" || session != "s/c1" || len(opts) == 0 {
			t.Errorf("asked for %s, in %s", sub.Agent.ID, session)
		}
		if leave {
			return nil, engine.ErrLeft
		}
		return looping(t, script{message.Assistant("another did it")}), nil
	})
	res, err := agent.Run(ctx, agent.Agent{ID: "a"}, eng, agent.Request{ContextID: "s", RunID: "r", Message: message.User("go")}, agent.WithJournal(store))
	if err != nil || res.Status != agent.StatusInterrupted || res.Cause != engine.CauseJournal {
		t.Fatalf("left: %v, %+v", err, res)
	}
	leave = false
	res, err = agent.Resume(ctx, agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store))
	if err != nil || res.Text() != "end" {
		t.Fatal(err, res)
	}
	if got := engine.Answer(state(t, store, "s/c1").Messages.Messages()); got != "another did it" {
		t.Errorf("the task: %q", got)
	}
}

func TestWhatIsDoneElsewhereNeedsASharedJournal(t *testing.T) {
	if res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, leaves(), agent.Request{Message: message.User("go")}); !errdefs.Validation.Is(err) {
		t.Errorf("%v, %+v", err, res)
	}
}
