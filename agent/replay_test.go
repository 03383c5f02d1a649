package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// What must not take part in a replay fails the test when it does.
func TestAReplayTouchesNothing(t *testing.T) {
	var w works
	store := disk{journal.Memory()}
	replies := script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}
	for range 2 {
		run(t, agent.Agent{}, looping(t, replies, w.tool("pay")), asking("s", "go"), agent.WithJournal(store))
	}
	n := len(read(t, store, "s"))
	bad := hook.Middleware{Name: "bad", PreGeneration: func(context.Context, *hook.Generation) error { return errors.New("a hook ran") }}
	decides := agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
		t.Error("a decider was asked")
		return agent.FinalizeDecision{}, nil
	})
	// no reply is left for the model, and there are no tools
	got, err := agent.Replay(t.Context(), agent.Agent{ID: "a", Hooks: []hook.Middleware{bad}, Deciders: []agent.Decider{decides}}, saying(t), "s", agent.WithJournal(store))
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].RunID = ""
	}
	// the second prompt finds the script played and is answered at once
	same(t, "what was replayed", []agent.Replayed{{Attempt: 1, Effects: 6, Status: "completed"}, {Attempt: 1, Effects: 3, Status: "completed"}}, got)
	if total, _ := w.total(); total != 1 || len(read(t, store, "s")) != n {
		t.Errorf("%d calls, %d entries", total, len(read(t, store, "s")))
	}
}

func TestAReplayThatCannotBeOrDiffersSaysSo(t *testing.T) {
	store := disk{journal.Memory()}
	run(t, agent.Agent{}, saying(t, "hello"), asking("s", "go"), agent.WithJournal(store))
	resumes := engine.Capabilities{Name: "other", Resume: true}
	other := func(f func() (*engine.Board, error)) engine.Engine {
		return describes{can: resumes, Engine: engine.Func(func(context.Context, engine.Run, engine.Host, *engine.Board) (*engine.Board, error) { return f() })}
	}
	for name, c := range map[string]struct {
		eng     engine.Engine
		session string
		class   *errdefs.Class
	}{
		"no engine":         {nil, "s", errdefs.Validation},
		"no session":        {saying(t), "none", errdefs.NotFound},
		"one that can't":    {engine.Func(func(context.Context, engine.Run, engine.Host, *engine.Board) (*engine.Board, error) { return nil, nil }), "s", errdefs.NotAvailable},
		"other code":        {other(func() (*engine.Board, error) { return nil, nil }), "s", errdefs.Conflict},
		"code that panics":  {other(func() (*engine.Board, error) { panic("oh") }), "s", errdefs.Conflict},
		"code that refuses": {other(func() (*engine.Board, error) { return nil, errdefs.Refused.Errorf("no") }), "s", errdefs.Conflict},
	} {
		if got, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, c.eng, c.session, agent.WithJournal(store)); !c.class.Is(err) || len(got) != 0 {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := agent.Replay(ctx, agent.Agent{ID: "a"}, saying(t), "s", agent.WithJournal(store)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// What is on record hides much of what another definition would do.
func TestAReplayIsByWhatTheRunBeganWith(t *testing.T) {
	store := disk{journal.Memory()}
	by := func(name, version string) engine.Engine {
		return describes{can: engine.Capabilities{Name: name, Version: version, Resume: true}, Engine: engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
			return b, nil
		})}
	}
	run(t, agent.Agent{}, by("graph:g", "1"), asking("s", "go"), agent.WithJournal(store))
	for want, eng := range map[string]engine.Engine{
		"": by("graph:g", "1"), `driven by the engine "graph:g", not "graph:h"`: by("graph:h", "1"), "went by another definition or program of the engine graph:g": by("graph:g", "2"),
	} {
		got, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store))
		if want == "" && err != nil || want != "" && (!errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), want) || len(got) != 0) {
			t.Errorf("%q: %v %v", want, got, err)
		}
	}
}

func TestAReplayEndsWhereARunWasCutShortBetweenItsAttempts(t *testing.T) {
	for name, c := range map[string]struct {
		stop   func(cancel context.CancelCauseFunc)
		opts   []agent.RunOption
		status agent.Status
	}{
		"canceled":         {func(cancel context.CancelCauseFunc) { cancel(nil) }, nil, agent.StatusCanceled},
		"its seeder fails": {func(context.CancelCauseFunc) {}, []agent.RunOption{agent.WithBoardSeed(once())}, agent.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			store := disk{journal.Memory()}
			stops := agent.WithDecider(agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
				c.stop(cancel)
				return agent.FinalizeDecision{Revise: true}, nil
			}))
			eng := saying(t, "hi")
			res, err := agent.Run(ctx, agent.Agent{ID: "a"}, eng, asking("s", "go"), append(c.opts, agent.WithJournal(store), stops, agent.WithMaxRevise(3))...)
			if err != nil || res.Status != c.status {
				t.Fatalf("%+v %v", res, err)
			}
			if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store)); err != nil {
				t.Error(err)
			}
		})
	}
}
