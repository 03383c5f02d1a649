package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// hiccup is a store that fails at append number n and at no other: a disk that has room for the next entry, a connection that was cut once.
type hiccup struct {
	journal.Store
	n       int
	written bool // the entries are there all the same: the answer was lost

	mu     sync.Mutex
	failed error
}

func (h *hiccup) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n--; h.n != 0 {
		return h.Store.Append(ctx, session, after, entries...)
	}
	if h.written {
		if err := h.Store.Append(ctx, session, after, entries...); err != nil {
			return err
		}
	}
	h.failed = errdefs.NotAvailable.Errorf("store: append: the disk is full")
	return h.failed
}

// A run whose journal failed once can say less than it knows, for ever, if it goes on or is closed. So it does neither.
func TestARunWhoseJournalFailedStaysOpenAndIsResumed(t *testing.T) {
	revise := func() []agent.RunOption {
		return []agent.RunOption{agent.WithMaxRevise(2), agent.WithDecider(decider(agent.FinalizeDecision{Revise: true}))}
	}
	replies := script{message.Assistant("", call("c1", "pay", `{}`), call("c2", "pay", `{}`)), message.Assistant("end")}
	for name, c := range map[string]struct {
		opts func() []agent.RunOption
		pays int
	}{
		"once":  {func() []agent.RunOption { return nil }, 2},
		"twice": {revise, 4},
	} {
		for _, written := range []bool{false, true} {
			for n, more := 1, true; more; n++ {
				t.Run(fmt.Sprint(name, n, written), func(t *testing.T) {
					store := &hiccup{Store: journal.Memory(), n: n, written: written}
					var w works
					seen, eng := &watcher{}, looping(t, replies, w.tool("pay"))
					opts := append(c.opts(), agent.WithJournal(store), agent.WithObserver(seen))
					res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), opts...)
					if more = store.failed != nil; !more {
						return
					}
					if !errdefs.NotAvailable.Is(err) || !strings.Contains(err.Error(), "the disk is full") {
						t.Fatalf("the error is lost: %v", err)
					}
					before, _ := w.total()
					log, err := journal.Open(t.Context(), store, "s")
					if err != nil {
						t.Fatal(err)
					}
					if st := log.State(); st.Run == "" && st.Seq > 0 && (res == nil || res.Status != agent.StatusCompleted || !written) {
						t.Fatalf("the run was closed: %s, %s", st.Status, st.Class)
					}
					if res != nil && (res.Committed || res.Status == agent.StatusInterrupted && (res.Cause != engine.CauseJournal || res.Err == nil)) {
						t.Errorf("%+v", res)
					}
					if log.Seq() == 0 { // not even the user's message is there
						if before > 0 {
							t.Error("a tool ran")
						}
						return
					}
					if log.State().Run != "" {
						res, err = agent.Resume(t.Context(), agent.Agent{ID: "a"}, eng, "s", opts...)
						if err != nil || res.Status != agent.StatusCompleted || res.Text() != "end" {
							t.Fatalf("%+v %v", res, err)
						}
					}
					st, unknown := state(t, store, "s"), 0
					for _, e := range read(t, store, "s") {
						if d, ok := e.Data.(journal.ToolFinished); ok && d.Outcome == journal.OutcomeUnknown {
							unknown++
						}
					}
					if total, most := w.total(); st.Status != "completed" || most > 1 || unknown > 1 || total > c.pays || total+unknown < c.pays {
						t.Errorf("%s: %d calls ran, one of them %d times, and %d are unknown", st.Status, total, most, unknown)
					}
				})
			}
		}
	}
}

// An engine that goes on although an outcome could not be written finds that nothing begins any more.
func TestAnEngineCannotGoOnWhenItsJournalFailed(t *testing.T) {
	store := &hiccup{Store: journal.Memory(), n: 7} // of the loop's appends: the first tool's outcome
	var w works
	stubborn := engine.Func(func(ctx context.Context, run engine.Run, host engine.Host, b *engine.Board) (*engine.Board, error) {
		eng := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
		steps := engine.Local(run, host, eng)
		_ = eng.Converse(ctx, steps, run, b)
		_, err := steps.Do(ctx, engine.UseTool{Call: journal.Called{ID: "c2", Name: "pay", Input: `{}`}})
		if !errdefs.NotAvailable.Is(err) {
			t.Errorf("it goes on: %v", err)
		}
		return b, nil // it is content
	})
	res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, stubborn, asking("s", "go"), agent.WithJournal(store))
	if err == nil || res.Status != agent.StatusInterrupted || state(t, store, "s").Run == "" {
		t.Errorf("%+v %v", res, err)
	}
	if total, _ := w.total(); total != 1 {
		t.Errorf("%d calls ran", total)
	}
}
