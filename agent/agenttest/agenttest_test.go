package agenttest_test

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/agenttest"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var handoffs = []agent.Handoff{{ToAgentID: "billing"}, {ToAgentID: "tech"}}

func TestOurDecidersAreDeciders(t *testing.T) {
	for name, d := range map[string]agent.Decider{
		"BaseDecider":              agent.BaseDecider{},
		"DeciderFunc":              agent.DeciderFunc(agent.BaseDecider{}.BeforeFinalize),
		"DiscardOnInterruptCauses": agent.NewDiscardOnInterruptCauses("barge-in", engine.CauseUserInput, engine.CauseUserCancel),
		"its zero value":           &agent.DiscardOnInterruptCauses{},
		"HandoffDecider":           agent.HandoffDecider(handoffs),
		"HandoffDecider of none":   agent.HandoffDecider(nil),
	} {
		t.Run(name, func(t *testing.T) { agenttest.Decider(t, func(*testing.T) agent.Decider { return d }) })
	}
}

func TestOurHandoffDeciderFindsHandoffs(t *testing.T) {
	agenttest.HandoffDecider(t, func(_ *testing.T, hs []agent.Handoff) agent.Decider { return agent.HandoffDecider(hs) })
}

func TestOurObserversAreObservers(t *testing.T) {
	agenttest.Observer(t, func(*testing.T) agent.Observer { return agent.BaseObserver{} })
}

// remembers is a seeder that has a history of its own.
func remembers(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
	call := message.ToolCall{ID: "c0", Name: "look", Input: "{}"}
	return agent.BoardWith(message.NewHistory(
		message.User("hello"), message.Assistant("", call), message.Results(message.ToolResult{Call: "c0", Name: "look", Content: "ok"}), message.Assistant("hello"),
	), req), nil
}

func TestASeederWithBoardWithIsASeeder(t *testing.T) {
	agenttest.Seeder(t, func(*testing.T) agent.Seeder { return remembers })
}

// archive is a committer; its other fields are defects.
type archive struct {
	again, quiet, marks bool

	mu     sync.Mutex
	runs   map[string]int
	broken bool
}

func (a *archive) Commit(ctx context.Context, info agent.RunInfo, res *agent.Result) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch err := ctx.Err(); {
	case a.broken && a.quiet:
		return nil
	case a.broken:
		return errdefs.NotAvailable.Errorf("archive: commit: the disk is full")
	case err != nil:
		return err
	}
	if a.marks {
		res.State["archived"] = true
	}
	if a.runs[info.RunID]++; !a.again {
		a.runs[info.RunID] = 1
	}
	return nil
}

func (a *archive) committing() agenttest.Committing {
	a.runs = map[string]int{}
	return agenttest.Committing{
		Committer: a,
		Stored: func(_ context.Context, run string) (int, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.runs[run], nil
		},
		Break: func() { a.broken = true },
	}
}

func TestAnArchiveIsACommitter(t *testing.T) {
	agenttest.Committer(t, func(*testing.T) agenttest.Committing { return (&archive{}).committing() })
}

// Defect 2 of broken_test.go, where it would be: history that a seeder brought is not the run's, however it ends.
func TestOnlyWhatTheRunSaidIsNew(t *testing.T) {
	seed := func(context.Context, agent.RunInfo, *agent.Request) (*engine.Board, error) {
		b := engine.NewBoard(engine.Snapshot{})
		b.Append(engine.MainChannel, message.User("hello"), message.Assistant("said long ago"))
		return b, nil
	}
	for _, says := range []string{"", "new"} {
		eng := engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
			if says != "" {
				b.Append(engine.MainChannel, message.Assistant(says))
			}
			return b, nil
		})
		res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, agent.Request{Message: message.User("go")}, agent.WithBoardSeed(seed))
		if err != nil || res.Text() != says {
			t.Errorf("%v: the run said %q, want %q", err, res.Text(), says)
		}
	}
}
