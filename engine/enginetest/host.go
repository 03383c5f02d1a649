package enginetest

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
)

// HostFactory makes a host. heard, which may be nil, says how many events have reached whoever listens.
type HostFactory func(t *testing.T) (h engine.Host, heard func() int)

// HostTrait is what a host is like.
type HostTrait int

// Attended is a host with somebody who answers: else its AskUser has to say that nobody is there.
const Attended HostTrait = iota

// Host checks a host against the contract of [engine.Host]. Run it with -race.
func Host(t *testing.T, factory HostFactory, traits ...HostTrait) {
	t.Helper()
	ctx := func(t *testing.T) context.Context { return t.Context() }
	ended := func(t *testing.T) context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return ctx
	}
	question := engine.Prompt{Asked: journal.Asked{ID: "q", Prompt: "may it?"}}
	for name, run := range map[string]func(t *testing.T, h engine.Host, heard func() int){
		"what is published reaches somebody exactly when it says so": func(t *testing.T, h engine.Host, heard func() int) {
			listens := engine.Listening(h)
			before := 0
			if heard != nil {
				before = heard()
			}
			soon(t, "Publish", func() { _ = h.Publish(ctx(t), published()) })
			if heard != nil && listens != (heard() > before) {
				t.Errorf("Listening says %v, and an event reached somebody: %v", listens, heard() > before)
			}
			if engine.Listening(h) != listens {
				t.Errorf("Listening said %v, and then %v, though nobody came or went", listens, !listens)
			}
		},
		"the channel of interrupts stays the same": func(t *testing.T, h engine.Host, _ func() int) {
			var first, second <-chan engine.Interrupt
			soon(t, "Interrupts", func() { first, second = h.Interrupts(), h.Interrupts() })
			if first != second {
				t.Error("Interrupts gave two channels: a run that asks again would miss what went into the first")
			}
		},
		"a question that nobody is there for is not available": func(t *testing.T, h engine.Host, _ func() int) {
			if len(traits) > 0 {
				return
			}
			soon(t, "AskUser", func() {
				if r, err := h.AskUser(ctx(t), question); !errdefs.NotAvailable.Is(err) {
					t.Errorf("AskUser gave %+v and the error %v, want one of class not_available, on which the run parks", r, err)
				}
			})
		},
		"nothing waits once the context has ended": func(t *testing.T, h engine.Host, _ func() int) {
			for what, f := range methods(ended(t), h) {
				soon(t, what, func() { _ = f() })
			}
			soon(t, "AskUser", func() {
				if r, err := h.AskUser(ended(t), question); err == nil && len(traits) == 0 {
					t.Errorf("AskUser gave %+v, though nobody is there", r)
				}
			})
		},
		"an unlimited budget lets a call through": func(t *testing.T, h engine.Host, _ func() int) {
			soon(t, "ReportUsage", func() {
				if err := h.ReportUsage(ctx(t), model.Usage{Input: 1}); errdefs.BudgetExceeded.Is(err) {
					t.Errorf("a first call with one token used the budget up: %v; give the suite a host without a limit", err)
				}
			})
		},
		"what it is given stays as it was": func(t *testing.T, h engine.Host, _ func() int) {
			c, e := checkpoint("r", 1), published()
			was := maps.Clone(c.Attributes)
			_ = h.Checkpoint(ctx(t), c)
			_ = h.Publish(ctx(t), e)
			if !maps.Equal(was, c.Attributes) {
				t.Errorf("Checkpoint changed the run's attributes to %v, they were %v", c.Attributes, was)
			}
		},
		"its methods may be called at the same time": func(t *testing.T, h engine.Host, _ func() int) {
			var wg sync.WaitGroup
			all := methods(ended(t), h)
			publish := all["Publish"]
			delete(all, "Publish") // that is called from one goroutine at a time
			wg.Go(func() {
				for range 100 {
					_ = publish()
				}
			})
			all["AskUser"] = func() error { _, err := h.AskUser(ended(t), question); return err }
			for _, f := range all {
				for range 4 {
					wg.Go(func() {
						for range 25 {
							_ = f()
						}
					})
				}
			}
			soon(t, "calls at the same time", wg.Wait)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, heard := factory(t)
			run(t, h, heard)
		})
	}
}

// methods are the calls that give nothing but an error.
func methods(ctx context.Context, h engine.Host) map[string]func() error {
	return map[string]func() error{
		"Publish":     func() error { return h.Publish(ctx, published()) },
		"Checkpoint":  func() error { return h.Checkpoint(ctx, checkpoint("r", 1)) },
		"ReportUsage": func() error { return h.ReportUsage(ctx, model.Usage{Input: 10, Output: 5}) },
		"Interrupts":  func() error { h.Interrupts(); return nil },
		"Listening":   func() error { engine.Listening(h); return nil },
	}
}

func published() event.Event {
	return event.Event{Entry: journal.Entry{Seq: 1, Session: "s", Run: "r", Key: journal.Key{Op: "model", ID: "1"}, Data: journal.ModelStarted{Model: "m"}}}
}

// soon fails unless f returns in time.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	late := time.NewTimer(prompt)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		t.Fatalf("%s did not return within %v", what, prompt)
	}
}
