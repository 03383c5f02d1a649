package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
)

func TestAHostOfFunctionsPassesOnWhatItHasNoFunctionFor(t *testing.T) {
	var called []string
	note := func(what string) error { called = append(called, what); return errdefs.Internal.Errorf("%s", what) }
	inner := engine.HostFuncs{
		PublishFunc:     func(context.Context, event.Event) error { return note("publish") },
		InterruptsFunc:  func() <-chan engine.Interrupt { _ = note("interrupts"); return nil },
		AskUserFunc:     func(context.Context, engine.Prompt) (engine.Reply, error) { return engine.Reply{}, note("ask") },
		CheckpointFunc:  func(context.Context, engine.Checkpoint) error { return note("checkpoint") },
		ReportUsageFunc: func(context.Context, model.Usage) error { return note("usage") },
	}
	for name, h := range map[string]engine.Host{"its own": inner, "over it": engine.HostFuncs{Inner: engine.HostFuncs{Inner: inner}}} {
		called = nil
		if !engine.Listening(h) {
			t.Errorf("%s: it does not listen", name)
		}
		_, err := h.AskUser(t.Context(), engine.Prompt{})
		err = errors.Join(err, h.Publish(t.Context(), event.Event{}), h.Checkpoint(t.Context(), engine.Checkpoint{}), h.ReportUsage(t.Context(), model.Usage{}))
		h.Interrupts()
		same(t, name, []string{"ask", "publish", "checkpoint", "usage", "interrupts"}, called)
		same(t, name+": the errors", "ask\npublish\ncheckpoint\nusage", err.Error())
	}
	if engine.Listening(engine.HostFuncs{}) || engine.Listening(engine.HostFuncs{Inner: engine.HostFuncs{}}) {
		t.Error("nobody listens to a NoopHost")
	}
}

// A run below, behind whatever host of ours, shares the interrupt of the run above: whoever reads it first, both see it.
func TestARunBelowSharesItsInterruptThroughEveryHostOfOurs(t *testing.T) {
	var bus event.Bus
	for name, around := range map[string]func(engine.Host) engine.Host{
		"bare":         func(h engine.Host) engine.Host { return h },
		"a bus":        func(h engine.Host) engine.Host { return engine.Publishing(&bus, h) },
		"functions":    func(h engine.Host) engine.Host { return engine.HostFuncs{Inner: h} },
		"a relay":      func(h engine.Host) engine.Host { return engine.Relay{Host: h, To: nobody{}} },
		"all of these": func(h engine.Host) engine.Host { return engine.HostFuncs{Inner: engine.Publishing(&bus, h)} },
	} {
		t.Run(name, func(t *testing.T) {
			host := &place{interrupts: make(chan engine.Interrupt, 1)}
			below := begun(t, journal.Memory())
			var inner error
			run := begun(t, journal.Memory())
			var above performer
			above = func(ctx context.Context, run engine.Run, h engine.Host, e engine.Effect) (journal.Data, error) {
				host.interrupts <- engine.Interrupt{Cause: engine.CauseUserInput}
				child := engine.Inside{Run: run, Host: h, Key: e.Key(), Performer: above}.Child()
				_, inner = engine.Local(below, around(child), performs(nil)).Do(ctx, use("below", readOnly), use("beside", readOnly))
				return fine(e), nil
			}
			steps := engine.Local(run, host, above)
			if _, err := steps.Do(t.Context(), use("a", writes)); err != nil {
				t.Fatal(err)
			}
			_, outer := steps.Do(t.Context(), use("b", writes))
			if !errdefs.Interrupted.Is(inner) || !errdefs.Interrupted.Is(outer) {
				t.Errorf("below: %v, above: %v: want both to be interrupted", inner, outer)
			}
		})
	}
}

type performer func(ctx context.Context, run engine.Run, host engine.Host, e engine.Effect) (journal.Data, error)

func (f performer) Perform(ctx context.Context, run engine.Run, host engine.Host, e engine.Effect) (journal.Data, error) {
	return f(ctx, run, host, e)
}

// nobody takes events, and does nothing about them.
type nobody struct{}

func (nobody) Publish(context.Context, event.Event) error { return nil }
