package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// hiccup is a store that fails at append number n and at no other: a disk that has room for the next entry, a connection that was cut once.
type hiccup struct {
	journal.Store
	n       int
	written bool // the entries are there all the same: the answer was lost
	on      func()

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
	if h.failed = errdefs.NotAvailable.Errorf("store: append: the disk is full"); h.on != nil {
		h.on()
	}
	return h.failed
}

// A task whose journal failed once is neither told to the model as failed nor left behind: the run above stops too, and both go on. Nor is a question
// that a tool could not put.
func TestATaskWhoseJournalFailedStopsTheRunAbove(t *testing.T) {
	for name, in := range map[string]func(id, prompt string) message.ToolCall{"foreground": gives, "background": background} {
		for _, written := range []bool{false, true} {
			for n, more := 1, true; more; n++ {
				store := &hiccup{Store: journal.Memory(), n: n, written: written}
				var w works
				kid := looping(t, script{message.Assistant("", call("p1", "pay", `{}`), call("p2", "ask_user", `{"question":"Sure?"}`)), message.Assistant("paid it")},
					w.tool("pay"), askuser.New(nil))
				eng := looping(t, script{message.Assistant("", in("c1", "pay"), call("c2", "pay", `{}`)), message.Assistant("end"), message.Assistant("end")}, task(t, kid), w.tool("pay"))
				host := agent.WithEngineHost(&there{reply: journal.Answered{ID: "p2", Approved: true, Text: "yes"}})
				_, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store), host)
				if more = store.failed != nil; more && !errors.Is(err, store.failed) {
					t.Fatalf("%s, append %d, written=%v: the run says %v", name, n, written, err)
				}
				if state(t, store, "s").Seq <= 1 {
					continue // nothing had begun
				}
				if state(t, store, "s").Run != "" {
					resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store), host)
				}
				text := strings.Join(append(history(state(t, store, "s").Messages), history(state(t, store, "s/c1").Messages)...), "\n")
				total, most := w.total()
				// The parent's journal may fail after the task recorded the start of its payment, and
				// before the payment. The task then records that the payment did not run.
				undone := strings.Count(text, "is unknown") + strings.Count(text, "Not run: the run ended before its turn came.")
				if strings.Contains(text, "disk is full") || strings.Count(text, "[p2 yes]") != 1 || strings.Count(text, "assistant: end") == 0 || most != 1 ||
					total+undone < 2 || state(t, store, "s/c1").Status != "completed" {
					t.Fatalf("%s, append %d, written=%v: %d payments\n%s", name, n, written, total, text)
				}
			}
		}
	}
}

// What goes on in the background of a run whose journal fails stays open, too.
func TestATaskInTheBackgroundStaysOpenWithTheRunAbove(t *testing.T) {
	begun, broke := make(chan struct{}), make(chan struct{})
	store := &hiccup{on: func() { close(broke) }, Store: watching{journal.Memory(), func(session string, e journal.Entry) {
		if _, ok := e.Data.(journal.ToolStarted); ok && session == "s/c1" {
			close(begun)
		}
	}}}
	hold := tool.Func("hold", "", func(context.Context, struct{}) (string, error) { <-broke; return "held", nil })
	trip := tool.Func("trip", "", func(context.Context, struct{}) (string, error) {
		<-begun
		store.mu.Lock()
		defer store.mu.Unlock()
		if store.failed == nil {
			store.n = 1 // the next append: this call's result
		}
		return "tripped", nil
	}, tool.Idempotent)
	kid := looping(t, script{message.Assistant("", call("k1", "hold", `{}`)), message.Assistant("held on")}, hold)
	eng := looping(t, script{message.Assistant("", background("c1", "hold")), message.Assistant("", call("c2", "trip", `{}`)), message.Assistant("end"), message.Assistant("end")}, task(t, kid), trip)
	if _, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store)); store.failed == nil || !errors.Is(err, store.failed) {
		t.Fatal(err)
	}
	res := resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store))
	if text := strings.Join(history(state(t, store, "s").Messages), "\n"); res.Text() != "end" || !strings.Contains(text, "Output: held on") || state(t, store, "s/c1").Status != "completed" {
		t.Errorf("the task is %q\n%s", state(t, store, "s/c1").Status, text)
	}
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
					if st := log.State(); st.Run == "" && st.Seq > 1 && (res == nil || res.Status != agent.StatusCompleted || !written) {
						t.Fatalf("the run was closed: %s, %s", st.Status, st.Class)
					}
					if res != nil && (res.Committed || res.Status == agent.StatusInterrupted && (res.Cause != engine.CauseJournal || res.Err == nil)) {
						t.Errorf("%+v", res)
					}
					if log.Seq() <= 1 { // not even the user's message is there
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
	store := &hiccup{Store: journal.Memory(), n: 8} // of the loop's appends: the first tool's outcome
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
