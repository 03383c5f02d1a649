package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
)

func TestWhatIsTriedAgainIsAQuestionOfTheClass(t *testing.T) {
	quota := &model.Error{Provider: "p", Kind: errdefs.RateLimit, Code: "insufficient_quota"}
	for name, c := range map[string]struct {
		err   error
		on    []*errdefs.Class
		calls int
	}{
		"rate limit":          {err: refused(errdefs.RateLimit, 0), calls: 4},
		"not available":       {err: refused(errdefs.NotAvailable, 0), calls: 4},
		"timeout":             {err: refused(errdefs.Timeout, 0), calls: 4},
		"wrapped":             {err: fmt.Errorf("x: %w", refused(errdefs.Timeout, 0)), calls: 4},
		"no class":            {err: errors.New("the line is dead"), calls: 4},
		"a client's deadline": {err: context.DeadlineExceeded, calls: 4},
		"a client's cancel":   {err: context.Canceled, calls: 1},
		"validation":          {err: refused(errdefs.Validation, 0), calls: 1},
		"unauthorized":        {err: refused(errdefs.Unauthorized, 0), calls: 1},
		"overflow":            {err: refused(errdefs.Overflow, 0), calls: 1},
		"a used up quota":     {err: quota, calls: 1},
		"what the caller says": {
			err: refused(errdefs.Conflict, 0), on: []*errdefs.Class{errdefs.Conflict}, calls: 4,
		},
		"and nothing else": {err: refused(errdefs.RateLimit, 0), on: []*errdefs.Class{}, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, ask asking) {
				synctest.Test(t, func(t *testing.T) {
					m := plays(fails(c.err))
					_, err := ask(t.Context(), model.Wrap(m, resilience.Retry(resilience.RetryPolicy{On: c.on})))
					if !errors.Is(err, c.err) || errdefs.Of(err) != errdefs.Of(c.err) || m.calls() != c.calls {
						t.Errorf("%d calls, want %d: %v", m.calls(), c.calls, err)
					}
					if told := strings.Contains(err.Error(), "gave up after 4 attempts"); told != (c.calls == 4) {
						t.Error(err)
					}
				})
			})
		})
	}
}

// Whoever waits is told for how long, before.
func TestARetrySaysHowLongItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := plays(fails(refused(errdefs.RateLimit, 7*time.Second)), says("a"))
		began := time.Now()
		s, err := stream(t.Context(), model.Wrap(m, resilience.Retry(resilience.RetryPolicy{Rand: func() float64 { return 0 }})), model.Request{})
		if err != nil || len(s.waits) != 1 || s.waits[0] != 7*time.Second || time.Since(began) != s.waits[0] {
			t.Error(err, s.waits, time.Since(began))
		}
	})
}

func TestARetryGivesTheReply(t *testing.T) {
	both(t, func(t *testing.T, ask asking) {
		synctest.Test(t, func(t *testing.T) {
			m := plays(fails(refused(errdefs.RateLimit, 0)), turn{cut: true, err: refused(errdefs.NotAvailable, 0)}, says("a b"))
			resp, err := ask(model.WithAttempt(t.Context(), 5), model.Wrap(m, resilience.Retry(resilience.RetryPolicy{})))
			if err != nil || resp.Message.Text() != "a b" {
				t.Fatal(resp, err)
			}
			if diff := cmp.Diff([]int{5, 6, 7}, m.attempts); diff != "" {
				t.Error(diff)
			}
			if c, ok := model.CapabilitiesOf(model.Wrap(m, resilience.Retry(resilience.RetryPolicy{}))); !ok || !reflect.DeepEqual(c, m.can) {
				t.Error("the capabilities are the model's")
			}
			if _, ok := model.CapabilitiesOf(resilience.Retry(resilience.RetryPolicy{})(struct{ model.Model }{m})); ok {
				t.Error("and none where it has none")
			}
		})
	})
}

// Models are compared, and are keys of maps: a wrapper is equal to itself, and panics nobody.
func TestWrappersCanBeCompared(t *testing.T) {
	for _, m := range []model.Model{plays(says("x")), streamFunc(nil)} {
		for name, w := range map[string]model.Middleware{
			"retry": resilience.Retry(resilience.RetryPolicy{}), "timeouts": resilience.Timeouts(resilience.TimeoutPolicy{}), "breaker": resilience.Breaker(resilience.BreakerPolicy{}),
			"limiter": resilience.NewLimiter(resilience.LimiterPolicy{}).Middleware(), "fallback": func(m model.Model) model.Model { return resilience.Fallback(resilience.FallbackPolicy{}, m) },
		} {
			a, b := w(m), w(m)
			if same := a; same != a || a == b {
				t.Error(name)
			}
		}
	}
}

func TestAStreamWithoutItsLastPieceIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := plays(turn{cut: true}, says("a b"))
		s, err := stream(t.Context(), model.Wrap(m, resilience.Retry(resilience.RetryPolicy{})), hi)
		if err != nil || s.text != "a b" || len(s.voids) != 1 || !strings.Contains(s.voids[0], "p/a: the stream ended") {
			t.Errorf("%+v %v", s, err)
		}
		if _, err := stream(t.Context(), model.Wrap(plays(turn{words: "a", cut: true}), resilience.Retry(resilience.RetryPolicy{})), hi); !errdefs.NotAvailable.Is(err) {
			t.Error(err)
		}
	})
}

func TestHowLongItWaits(t *testing.T) {
	at := func(ms ...int) (ds []time.Duration) {
		for _, n := range ms {
			ds = append(ds, time.Duration(n)*time.Millisecond)
		}
		return ds
	}
	for name, c := range map[string]struct {
		p    resilience.RetryPolicy
		err  error
		want []time.Duration
	}{
		"by chance, up to the double":  {resilience.RetryPolicy{Rand: middle}, refused(errdefs.NotAvailable, 0), at(0, 250, 750, 1750)},
		"and not over the most":        {resilience.RetryPolicy{Rand: middle, Wait: time.Second, MaxWait: 2 * time.Second}, refused(errdefs.NotAvailable, 0), at(0, 500, 1500, 2500)},
		"as the provider says, and on": {resilience.RetryPolicy{Rand: middle, Attempts: 3}, refused(errdefs.RateLimit, 7*time.Second), at(0, 7250, 14750)},
		"but not for ever":             {resilience.RetryPolicy{Rand: none, Attempts: 2}, refused(errdefs.RateLimit, time.Hour), at(0, 60000)},
		"or as long as may be":         {resilience.RetryPolicy{Rand: none, Attempts: 2, MaxRetryAfter: time.Second}, refused(errdefs.RateLimit, time.Hour), at(0, 1000)},
		"or not at all":                {resilience.RetryPolicy{Rand: none, Attempts: 2, MaxRetryAfter: -1}, refused(errdefs.RateLimit, time.Hour), at(0, 0)},
		"not beyond the total":         {resilience.RetryPolicy{Rand: none}, refused(errdefs.RateLimit, 50*time.Second), at(0, 50000, 100000)},
		"another total":                {resilience.RetryPolicy{Rand: none, Total: time.Second}, refused(errdefs.RateLimit, 600*time.Millisecond), at(0, 600)},
		"no total":                     {resilience.RetryPolicy{Rand: none, Total: -1, Attempts: 5}, refused(errdefs.RateLimit, time.Minute), at(0, 60000, 120000, 180000, 240000)},
		"for ever and a bit":           {resilience.RetryPolicy{Rand: middle, MaxRetryAfter: math.MaxInt64}, refused(errdefs.RateLimit, math.MaxInt64), at(0)},
		"once":                         {resilience.RetryPolicy{Attempts: 1}, refused(errdefs.RateLimit, 0), at(0)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := plays(fails(c.err))
				_, err := model.Wrap(m, resilience.Retry(c.p)).Complete(t.Context(), hi)
				if diff := cmp.Diff(c.want, m.at); diff != "" || !errors.Is(err, c.err) {
					t.Error(err, diff)
				}
			})
		})
	}
}

func TestWaitsLieBetweenNothingAndTheDouble(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := resilience.RetryPolicy{
			Attempts: rapid.IntRange(1, 40).Draw(rt, "attempts"), Total: -1, Budget: &resilience.RetryBudget{Burst: 100},
			Wait: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(rt, "wait")), MaxWait: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(rt, "most")),
			Rand: func() float64 { return rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(rt, "chance") },
		}
		inBubble(t, func() {
			m := plays(fails(refused(errdefs.NotAvailable, 0)))
			_, _ = model.Wrap(m, resilience.Retry(p)).Complete(context.Background(), hi)
			if m.calls() != p.Attempts {
				rt.Fatalf("%d calls", m.calls())
			}
			for i := 1; i < len(m.at); i++ {
				if d := m.at[i] - m.at[i-1]; d < 0 || d > p.MaxWait || float64(d) > float64(p.Wait)*math.Exp2(float64(i-1)) {
					rt.Fatalf("wait %d is %v", i, d)
				}
			}
		})
	})
}

// inBubble runs f with a clock of its own, for checks that draw.
func inBubble(t *testing.T, f func()) {
	synctest.Test(t, func(*testing.T) { f() })
}

func TestNothingIsAskedAgainOnceWordsWereShown(t *testing.T) {
	for name, c := range map[string]struct {
		turns []turn
		can   bool
		calls int
		taken int
		text  string
	}{
		"words, and no way back":  {turns: []turn{{words: "one two", err: refused(errdefs.NotAvailable, 0)}, says("a b")}, calls: 1, text: "one two"},
		"nothing was shown":       {turns: []turn{fails(refused(errdefs.NotAvailable, 0)), says("a b")}, calls: 2, text: "a b"},
		"words that can be taken": {turns: []turn{{words: "one two", err: refused(errdefs.NotAvailable, 0)}, says("a b")}, can: true, calls: 2, taken: 7, text: "a b"},
		"twice":                   {turns: []turn{{words: "1", err: refused(errdefs.NotAvailable, 0)}, {words: "22", cut: true}, says("a b")}, can: true, calls: 3, taken: 3, text: "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := plays(c.turns...)
				s, err := stream(t.Context(), model.Wrap(m, resilience.Retry(resilience.RetryPolicy{Restart: c.can})), hi)
				if m.calls() != c.calls || s.taken != c.taken || s.text != c.text || len(s.voids) != c.calls-1 || (err == nil) != (c.text == "a b") {
					t.Errorf("%d calls, %+v, %v", m.calls(), s, err)
				}
			})
		})
	}
}

func TestReasoningIsShownToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		m := streamFunc(func(_ context.Context, cb model.StreamHandler) error {
			n++
			if err := cb(model.StreamResult{}); err != nil { // says nothing
				return err
			}
			if n == 2 {
				if err := cb(model.StreamResult{Reasoning: "hm"}); err != nil {
					return err
				}
			}
			return refused(errdefs.NotAvailable, 0)
		})
		if _, err := stream(t.Context(), resilience.Retry(resilience.RetryPolicy{})(m), hi); n != 2 || !errdefs.NotAvailable.Is(err) {
			t.Error(n, err)
		}
	})
}

// streamFunc is a model that is one function.
type streamFunc func(context.Context, model.StreamHandler) error

func (f streamFunc) Complete(ctx context.Context, _ model.Request) (resp *model.Response, err error) {
	return resp, f(ctx, func(s model.StreamResult) error { resp = s.Response; return nil })
}

func (f streamFunc) CompleteStream(ctx context.Context, _ model.Request, cb model.StreamHandler) error {
	return f(ctx, cb)
}

func TestAHandlersErrorIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := refused(errdefs.RateLimit, 0)
		m := plays(says("a b"))
		stack := model.Wrap(resilience.Fallback(resilience.FallbackPolicy{Restart: true}, m, m), resilience.Retry(resilience.RetryPolicy{Restart: true}), resilience.Timeouts(resilience.TimeoutPolicy{}))
		for _, at := range []string{"a ", "b", ""} {
			before := m.calls()
			if err := stack.CompleteStream(t.Context(), hi, func(s model.StreamResult) error {
				if s.Text == at {
					return own
				}
				return nil
			}); err != own || m.calls() != before+1 { //nolint:errorlint // it is the very same
				t.Errorf("at %q: %v, %d calls", at, err, m.calls()-before)
			}
		}
		bad := plays(fails(refused(errdefs.NotAvailable, 0)))
		if err := resilience.Retry(resilience.RetryPolicy{})(bad).CompleteStream(t.Context(), hi, func(model.StreamResult) error { return own }); err != own || bad.calls() != 1 { //nolint:errorlint // it is the very same
			t.Error("of a Void:", err, bad.calls())
		}
	})
}

func TestACancelEndsAWaitAtOnceAndIsNotTriedAgain(t *testing.T) {
	both(t, func(t *testing.T, ask asking) {
		for name, m := range map[string]*fake{"while it waits": plays(fails(refused(errdefs.RateLimit, 30*time.Second))), "while it asks": plays(turn{hangs: true})} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					began := time.Now()
					time.AfterFunc(time.Second, cancel)
					_, err := ask(ctx, model.Wrap(m, resilience.Retry(resilience.RetryPolicy{On: []*errdefs.Class{errdefs.RateLimit}})))
					if !errors.Is(err, context.Canceled) || errdefs.Of(err) != nil || time.Since(began) != time.Second || m.calls() != 1 {
						t.Error(err, time.Since(began), m.calls())
					}
				})
			})
		}
	})
}

// However calls, failures and time fall together, an outage brings no more retries than the budget has.
func TestRetriesKeepToTheBudget(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := &resilience.RetryBudget{
			Burst: rapid.Float64Range(1, 10).Draw(rt, "burst"), Ratio: rapid.Float64Range(0.01, 0.5).Draw(rt, "ratio"), PerMinute: rapid.Float64Range(0.1, 30).Draw(rt, "per minute"),
		}
		inBubble(t, func() {
			m := plays(fails(refused(errdefs.NotAvailable, 0)))
			retry := resilience.Retry(resilience.RetryPolicy{Budget: b})
			began := time.Now()
			n := rapid.IntRange(1, 60).Draw(rt, "calls")
			for i := range n {
				time.Sleep(time.Duration(rapid.IntRange(0, 3000).Draw(rt, "gap")) * time.Millisecond)
				_, err := retry(m).Complete(context.Background(), hi) // each in a wrapper of its own
				retries := float64(m.calls() - i - 1)
				if most := b.Burst + b.Ratio*float64(i+1) + b.PerMinute*time.Since(began).Minutes(); retries > most+1e-6 {
					rt.Fatalf("%v retries of %v", retries, most)
				}
				if !errdefs.NotAvailable.Is(err) {
					rt.Fatal(err)
				}
			}
		})
	})
}

func TestTheBudgetIsAsItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := plays(fails(refused(errdefs.NotAvailable, 0)))
		retry := model.Wrap(m, resilience.Retry(resilience.RetryPolicy{Rand: none}))
		call := func(retries int, says string) {
			t.Helper()
			before := m.calls()
			_, err := retry.Complete(t.Context(), hi)
			if got := m.calls() - before - 1; got != retries || !strings.Contains(err.Error(), says) {
				t.Errorf("%d retries, want %d: %v", got, retries, err)
			}
		}
		for _, idle := range []time.Duration{0, time.Hour} { // no more than the burst is saved up
			time.Sleep(idle)
			for range 7 { // 20, and a fifth for each but the first, which finds it full
				call(3, "gave up after 4 attempts in 0s: p: HTTP 503")
			}
			call(0, "p: HTTP 503") // 20 + 1.2 - 21 were left, and a fifth more
		}
		call(0, "p: HTTP 503")
		call(0, "p: HTTP 503")
		time.Sleep(time.Second) // 0.8, and a sixth
		call(1, "gave up after 2 attempts in 0s (the retry budget is spent): p: HTTP 503")
		time.Sleep(6 * time.Second)
		call(1, "spent")
	})
}

// Where somebody else tries again, nothing is tried again here.
func TestARetryLeavesItToTheCaller(t *testing.T) {
	tries := 0
	m := model.Wrap(failing(func() error { tries++; return &model.Error{Kind: errdefs.RateLimit} }), resilience.Retry(resilience.RetryPolicy{}))
	if _, err := m.Complete(resilience.WithoutRetries(t.Context()), model.Request{}); !errdefs.RateLimit.Is(err) || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

type failing func() error

func (f failing) Complete(context.Context, model.Request) (*model.Response, error) { return nil, f() }

func (f failing) CompleteStream(context.Context, model.Request, model.StreamHandler) error {
	return f()
}
