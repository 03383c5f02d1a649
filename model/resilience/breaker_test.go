package resilience_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
)

var down = refused(errdefs.NotAvailable, 0)

func times(n int, t turn) []turn { return slices.Repeat([]turn{t}, n) }

// left reports whether a model was left alone.
func left(err error) bool {
	var e *model.Error
	return errors.As(err, &e) && e.Code == "circuit_open" && errdefs.NotAvailable.Is(err)
}

func TestAModelThatFailsTooOftenIsLeftAlone(t *testing.T) {
	both(t, func(t *testing.T, ask asking) {
		synctest.Test(t, func(t *testing.T) {
			m := plays(append(times(6, fails(down)), says("a b"))...)
			b := resilience.Breaker(resilience.BreakerPolicy{})(m)
			call := func() error { _, err := ask(t.Context(), b); return err }
			want := func(open bool, calls int, what string) {
				t.Helper()
				if err := call(); left(err) != open || m.calls() != calls {
					t.Errorf("%s: %v, %d calls", what, err, m.calls())
				}
			}
			for i := range 5 {
				want(false, i+1, "it fails")
			}
			time.Sleep(10 * time.Second)
			want(true, 5, "it is left alone")
			var e *model.Error
			if err := call(); !errors.As(err, &e) || e.RetryAfter != 20*time.Second || !strings.Contains(err.Error(), "p/a failed too often: it is left alone for 20s") {
				t.Error(err)
			}
			time.Sleep(20 * time.Second)
			want(false, 6, "the probe fails")
			want(true, 6, "and the time begins anew")
			time.Sleep(30 * time.Second)
			want(false, 7, "the probe is answered")
			want(false, 8, "and so are all")
			m.turns = []turn{fails(down)}
			for i := range 5 {
				want(false, 9+i, "what was before is forgotten")
			}
			want(true, 13, "again")
		})
	})
}

func TestWhatOpensACircuit(t *testing.T) {
	for name, c := range map[string]struct {
		p     resilience.BreakerPolicy
		turns []turn
		gap   time.Duration
		calls int // of 20
	}{
		"five of ten":               {turns: append(times(5, says("a")), fails(down)), calls: 10},
		"one of three, for ever":    {turns: slices.Repeat([]turn{fails(down), says("a"), says("a")}, 7), calls: 20},
		"failures that are old":     {turns: []turn{fails(down)}, gap: 16 * time.Second, calls: 20},
		"failures in a minute":      {turns: []turn{fails(down)}, gap: 15 * time.Second, calls: 5 + 7},
		"requests that were wrong":  {turns: []turn{fails(refused(errdefs.Validation, 0))}, calls: 20},
		"what the caller says":      {p: resilience.BreakerPolicy{On: []*errdefs.Class{errdefs.Validation}, Failures: 2}, turns: []turn{fails(refused(errdefs.Validation, 0))}, calls: 2},
		"more failures than calls":  {p: resilience.BreakerPolicy{Failures: 12}, turns: []turn{fails(down)}, calls: 12},
		"a window of its own":       {p: resilience.BreakerPolicy{Window: 10 * time.Second}, turns: []turn{fails(down)}, gap: 3 * time.Second, calls: 20},
		"nothing":                   {p: resilience.BreakerPolicy{Failures: -1}, turns: []turn{fails(down)}, calls: 20},
		"a stream that was cut off": {turns: []turn{{words: "a", cut: true, err: down}}, calls: 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := plays(c.turns...)
				b := resilience.Breaker(c.p)(m)
				for i := range 20 {
					if i > 0 {
						time.Sleep(c.gap)
					}
					_, _ = stream(t.Context(), b, hi)
				}
				if m.calls() != c.calls {
					t.Errorf("%d calls, want %d", m.calls(), c.calls)
				}
			})
		})
	}
}

func TestOneProbeIsLetThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := plays(append(times(5, fails(down)), turn{hangs: true}, turn{gap: time.Second, words: "a"})...)
		b := resilience.Breaker(resilience.BreakerPolicy{})(m)
		for range 5 {
			_, _ = b.Complete(t.Context(), hi)
		}
		time.Sleep(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		var first error
		go func() { _, first = b.Complete(ctx, hi) }()
		synctest.Wait()
		if _, err := b.Complete(t.Context(), hi); !left(err) || m.calls() != 6 {
			t.Error("two probes:", err)
		}
		cancel()
		synctest.Wait()
		if !errors.Is(first, context.Canceled) {
			t.Error(first)
		}
		done := make(chan error)
		go func() { _, err := b.Complete(t.Context(), hi); done <- err }() // a probe that was cancelled says nothing: the next one finds out
		synctest.Wait()
		if _, err := b.Complete(t.Context(), hi); !left(err) || m.calls() != 7 {
			t.Error("two probes:", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := b.Complete(t.Context(), hi); err != nil {
			t.Error(err)
		}
	})
}

// A probe that never ends does not leave the model alone for ever, nor does everybody rush in.
func TestAProbeThatHangsIsFollowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := plays(append(times(5, fails(down)), turn{hangs: true}, turn{hangs: true}, says("a"))...)
		b := resilience.Breaker(resilience.BreakerPolicy{})(m)
		for range 5 {
			_, _ = b.Complete(t.Context(), hi)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var hanging sync.WaitGroup
		for i := range 3 {
			time.Sleep(30 * time.Second)
			for range 20 {
				hanging.Go(func() { _, _ = b.Complete(ctx, hi) })
			}
			synctest.Wait()
			if want := 6 + i; i < 2 && m.calls() != want {
				t.Errorf("%d calls, want %d", m.calls(), want)
			}
		}
		if _, err := b.Complete(t.Context(), hi); err != nil {
			t.Error("the third probe was answered:", err)
		}
		cancel()
		hanging.Wait()
	})
}

func TestCallsThatBeganBeforeSayNothingOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := turn{gap: 20 * time.Second, words: ""} // 40 s in all
		m := plays(append(append(times(5, slow), times(5, fails(down))...), turn{gap: time.Minute, words: "a"})...)
		b := resilience.Breaker(resilience.BreakerPolicy{})(m)
		done := make(chan error, 5)
		for range 5 { // they will be answered when the circuit is open, and has a probe
			go func() { _, err := b.Complete(t.Context(), hi); done <- err }()
			synctest.Wait()
		}
		for range 5 {
			_, _ = b.Complete(t.Context(), hi)
		}
		time.Sleep(35 * time.Second)
		go func() { _, err := b.Complete(t.Context(), hi); done <- err }()
		for range 5 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if _, err := b.Complete(t.Context(), hi); !left(err) {
			t.Error("only the probe may close it:", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := b.Complete(t.Context(), hi); err != nil {
			t.Error(err)
		}
	})
}

func TestACallThatWasGivenUpIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := plays(append(times(10, turn{hangs: true}), turn{words: "a", err: down})...)
		b := resilience.Breaker(resilience.BreakerPolicy{})(m)
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, _ = b.Complete(ctx, hi)
			cancel()
		}
		for range 10 {
			_ = b.CompleteStream(t.Context(), hi, func(model.StreamResult) error { return down })
		}
		if m.calls() != 20 {
			t.Error(m.calls())
		}
	})
}
