package resilience_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
)

func TestHowLongAModelMayBeSilent(t *testing.T) {
	short := resilience.TimeoutPolicy{First: 10 * time.Second, Idle: 3 * time.Second}
	for name, c := range map[string]struct {
		p     resilience.TimeoutPolicy
		turn  turn
		after time.Duration
		says  string // "": it is no error
	}{
		"at the beginning":              {short, turn{hangs: true}, 10 * time.Second, "p/a said nothing for 10s"},
		"in the middle":                 {short, turn{words: "a b", gap: time.Second, hangs: true}, 5 * time.Second, "p/a said nothing more for 3s"},
		"never":                         {short, turn{words: "a b c d e f g h", gap: 2 * time.Second}, 18 * time.Second, ""},
		"by default, at the beginning":  {resilience.TimeoutPolicy{}, turn{hangs: true}, 5 * time.Minute, "nothing for 5m"},
		"by default, in the middle":     {resilience.TimeoutPolicy{}, turn{words: "a", hangs: true}, 10 * time.Minute, "nothing more for 10m"},
		"no limit at the beginning":     {resilience.TimeoutPolicy{First: -1, Idle: time.Second}, turn{words: "a", gap: time.Hour}, time.Hour + time.Second, "nothing more for 1s"},
		"no limit in the middle":        {resilience.TimeoutPolicy{First: time.Second, Idle: -1}, turn{words: "a ", gap: 900 * time.Millisecond}, 2700 * time.Millisecond, ""},
		"a failure in time is that one": {short, turn{words: "a", gap: time.Second, err: refused(errdefs.RateLimit, 0)}, time.Second, "HTTP 429"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, ask asking) {
				synctest.Test(t, func(t *testing.T) {
					m := plays(c.turn)
					began := time.Now()
					resp, err := ask(t.Context(), resilience.Timeouts(c.p)(m))
					if time.Since(began) != c.after {
						t.Errorf("after %v, want %v", time.Since(began), c.after)
					}
					switch {
					case c.says == "":
						if err != nil || resp.Message.Text() != c.turn.words {
							t.Error(resp, err)
						}
					case err == nil || !strings.Contains(err.Error(), c.says):
						t.Error(err)
					case errdefs.Timeout.Is(err) != (c.turn.err == nil) || errdefs.Canceled(err):
						t.Error("class", errdefs.Of(err), err)
					}
				})
			})
		})
	}
}

func TestTheTimeThatAHandlerTakesIsNotTheModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := resilience.Timeouts(resilience.TimeoutPolicy{First: time.Second, Idle: time.Second})(plays(says("a b c")))
		if err := m.CompleteStream(t.Context(), hi, func(model.StreamResult) error { time.Sleep(time.Minute); return nil }); err != nil {
			t.Error(err)
		}
	})
}

func TestACancelIsNoTimeout(t *testing.T) {
	both(t, func(t *testing.T, ask asking) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := ask(ctx, resilience.Timeouts(resilience.TimeoutPolicy{})(plays(turn{hangs: true}))); !errors.Is(err, context.DeadlineExceeded) || errdefs.Of(err) != nil {
				t.Error(err)
			}
		})
	})
}

// A piece that comes in the moment in which the time is over is not shown: the attempt is over.
func TestAPieceThatIsTooLateIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var after error
		m := streamFunc(func(_ context.Context, cb model.StreamHandler) error { // heeds no context
			time.Sleep(2 * time.Second)
			after = cb(model.StreamResult{Text: "late"})
			return after
		})
		s, err := stream(t.Context(), resilience.Timeouts(resilience.TimeoutPolicy{First: time.Second})(m), hi)
		if after == nil || s.text != "" || !errdefs.Timeout.Is(err) {
			t.Error(s, after, err)
		}
	})
}

func TestSilenceIsTriedAgainUnlessWordsWereShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := resilience.Timeouts(resilience.TimeoutPolicy{First: time.Second, Idle: time.Second})
		m := plays(turn{hangs: true}, says("a b"))
		if s, err := stream(t.Context(), model.Wrap(m, resilience.Retry(resilience.RetryPolicy{}), limits), hi); err != nil || s.text != "a b" || m.calls() != 2 {
			t.Error(s, err)
		}
		m = plays(turn{words: "a", hangs: true}, says("a b"))
		if s, err := stream(t.Context(), model.Wrap(m, resilience.Retry(resilience.RetryPolicy{}), limits), hi); !errdefs.Timeout.Is(err) || s.text != "a" || m.calls() != 1 {
			t.Error(s, err)
		}
	})
}
