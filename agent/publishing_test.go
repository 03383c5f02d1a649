package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// stretch runs f with a host that publishes, and gives the subjects of what the bus got, without the steps, each with its type.
func stretch(t *testing.T, f func(agent.RunOption)) (seen []string) {
	t.Helper()
	var bus event.Bus
	sub := bus.Subscribe(t.Context(), nil, event.Policy{Buffer: 1000})
	f(agent.WithEngineHost(engine.Publishing(&bus, nil)))
	bus.Close()
	for e := range sub.Events() {
		if s := e.Subject(); !strings.Contains(s, ".step.") && !strings.Contains(s, ".note.") {
			_, last, _ := strings.Cut(strings.TrimPrefix(s, "agent.run."), ".")
			seen = append(seen, last+" "+e.Type())
		}
	}
	return seen
}

// What tears down at the end of a run must be told of it, on every exit, once, and last.
func TestEveryExitOfARunIsSeenToEndOnce(t *testing.T) {
	ends := func(err error) engine.Engine {
		return engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
			return b, err
		})
	}
	revise := agent.WithDecider(agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
		return agent.FinalizeDecision{Revise: true}, nil
	}))
	fails := agent.WithDecider(agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
		return agent.FinalizeDecision{}, errors.New("oops")
	}))
	var cancel context.CancelFunc // of the case
	canceled := engine.Func(func(ctx context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		cancel()
		return b, ctx.Err()
	})
	start, end := "start run.started", "end run.finished"
	for name, c := range map[string]struct {
		eng  engine.Engine
		opts []agent.RunOption
		want []string
	}{
		"completed":                    {ends(nil), nil, []string{start, end}},
		"failed":                       {ends(errors.New("oops")), nil, []string{start, end}},
		"aborted":                      {ends(errdefs.Aborted.Errorf("no")), nil, []string{start, end}},
		"out of budget":                {ends(errdefs.BudgetExceeded.Errorf("no")), nil, []string{start, end}},
		"canceled":                     {canceled, nil, []string{start, end}},
		"panicked":                     {engine.Func(nil), nil, []string{start, end}},
		"parked":                       {ends(engine.InterruptedError{}), nil, []string{start, "end parked"}},
		"a decider failed":             {ends(nil), []agent.RunOption{fails}, []string{start, end}},
		"done again":                   {ends(nil), []agent.RunOption{revise, agent.WithMaxRevise(3)}, []string{start, "attempt run.started", "attempt run.started", end}},
		"a later attempt has no board": {ends(nil), []agent.RunOption{revise, agent.WithMaxRevise(3), agent.WithBoardSeed(once())}, []string{start, end}},
		"it could not begin":           {ends(nil), []agent.RunOption{agent.WithJournal(&dying{Store: journal.Memory(), n: 1})}, nil},
		"it could not begin either":    {ends(nil), []agent.RunOption{agent.WithJournal(&dying{Store: journal.Memory(), n: 2})}, nil},
		"the journal broke at the end": {ends(nil), []agent.RunOption{agent.WithJournal(&dying{Store: journal.Memory(), n: 3})}, []string{start, "end run.left"}},
	} {
		t.Run(name, func(t *testing.T) {
			var ctx context.Context
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			got := stretch(t, func(o agent.RunOption) {
				_, _ = agent.Run(ctx, agent.Agent{ID: "a"}, c.eng, asking("s", "go"), append(c.opts, o)...)
			})
			same(t, "seen", c.want, got)
		})
	}
}

func TestAResumeIsAStretchOfItsOwn(t *testing.T) {
	store := journal.Memory()
	var w works
	eng := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay", tool.RequiresApproval))
	got := stretch(t, func(o agent.RunOption) {
		run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store), o)
		log, err := journal.Open(t.Context(), store, "s")
		if err == nil {
			err = log.Answer(t.Context(), journal.Answered{ID: log.State().Pending[0].ID, Approved: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store), o)
	})
	same(t, "seen", []string{"start run.started", "end parked", "start resumed", "stream.-.model.2.delta text.delta", "end run.finished"}, got)
}

func TestAResumeThatComesTooLateIsNotSeenToBegin(t *testing.T) {
	store := stale{journal.Memory()}
	parked(t, store)
	var w works
	eng := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
	race := &overtaken{Store: store, do: func() { resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store)) }}
	got := stretch(t, func(o agent.RunOption) {
		if _, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(race), o); !errdefs.NotFound.Is(err) {
			t.Error(err)
		}
	})
	same(t, "seen", []string(nil), got)
}
