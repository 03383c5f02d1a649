package agenttest

import (
	"context"
	"testing"

	"github.com/pawl-dev/pawl/agent"
)

// Committing is a committer, and a way to look behind it.
type Committing struct {
	Committer agent.Committer
	Stored    func(ctx context.Context, runID string) (int, error) // how often a run is stored
	Break     func()                                               // makes what it stores in fail; nil: it can't fail
}

// Committer checks a committer: a run is stored once, however often it is committed, and what can't be stored is an error.
func Committer(t *testing.T, factory func(t *testing.T) Committing) {
	t.Helper()
	stored := func(t *testing.T, c Committing, run string, want int) {
		t.Helper()
		if n, err := c.Stored(t.Context(), run); err != nil || n != want {
			t.Errorf("the run %s is stored %d times (%v), want %d", run, n, err, want)
		}
	}
	commit := func(ctx context.Context, c Committing, run string) error {
		info, _, res := given(agent.StatusCompleted)
		info.RunID, res.RunID = run, run
		return c.Committer.Commit(ctx, info, res)
	}
	for name, run := range map[string]func(t *testing.T, c Committing){
		"a run is stored once, however often it is committed": func(t *testing.T, c Committing) {
			stored(t, c, "run-1", 0)
			for range 3 {
				if err := commit(t.Context(), c, "run-1"); err != nil {
					t.Errorf("a commit of a run that may be stored already: %v", err)
				}
				stored(t, c, "run-1", 1)
			}
			if err := commit(t.Context(), c, "run-2"); err != nil {
				t.Error(err)
			}
			stored(t, c, "run-1", 1)
			stored(t, c, "run-2", 1)
		},
		"an error surfaces": func(t *testing.T, c Committing) {
			if c.Break == nil {
				return
			}
			c.Break()
			soon(t, "Commit", func() {
				if commit(t.Context(), c, "run-1") == nil {
					t.Error("Commit gave no error, and nothing can be stored: the run counts as committed")
				}
			})
		},
		"it changes nothing that it is given": func(t *testing.T, c Committing) {
			info, req, res := given(agent.StatusCompleted)
			stays(t, "Commit", req, res, func() { _ = c.Committer.Commit(t.Context(), info, res) })
		},
		"it stores a partial run, when a decider accepted it": func(t *testing.T, c Committing) {
			info, _, res := given(agent.StatusInterrupted)
			res.Committed = true
			if err := c.Committer.Commit(t.Context(), info, res); err != nil {
				t.Error(err)
			}
			stored(t, c, info.RunID, 1)
		},
		"it takes the least that a run gives": func(t *testing.T, c Committing) {
			soon(t, "Commit", func() {
				_ = c.Committer.Commit(t.Context(), agent.RunInfo{RunID: "run-0"}, &agent.Result{RunID: "run-0", Status: agent.StatusCompleted, Committed: true})
			})
		},
		"it returns when the context has ended": func(t *testing.T, c Committing) {
			soon(t, "Commit", func() {
				if err := commit(ended(t), c, "run-1"); err != nil {
					return
				}
				if n, _ := c.Stored(t.Context(), "run-1"); n != 1 {
					t.Errorf("Commit gave no error, and the run is stored %d times", n)
				}
			})
		},
		"runs are committed at the same time, the same one too": func(t *testing.T, c Committing) {
			names := []string{"run-1", "run-2", "run-3", "run-4"}
			atOnce(t, "Commit", func(i int) {
				if err := commit(t.Context(), c, names[i%len(names)]); err != nil {
					t.Errorf("commit: %v", err)
				}
			})
			for _, name := range names {
				stored(t, c, name, 1)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, factory(t)) })
	}
}
