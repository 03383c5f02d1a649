package resilience_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
)

// announcing answers at once, uses what was estimated, and says the limits that it is told to.
type announcing struct {
	*fake
	says func(call int) model.Rate
	err  error

	mu sync.Mutex
	n  int
}

func (a *announcing) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	_ = a.begin(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	r := a.says(a.n)
	if a.err != nil {
		return nil, &model.Error{Kind: errdefs.NotAvailable, Rate: r}
	}
	return &model.Response{Message: message.Assistant("ok"), Usage: model.Usage{Input: len(req.Messages.Last().Text())/4 + 4}, Rate: r}, nil
}

func (a *announcing) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := a.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

func announces(says func(call int) model.Rate) *announcing {
	return &announcing{fake: plays(turn{}), says: says}
}

func of(requests model.Quota) func(int) model.Rate {
	return func(int) model.Rate { return model.Rate{Requests: requests} }
}

// every gives the times between calls that are made one after the other, in seconds.
func every(t *testing.T, m *announcing, p resilience.LimiterPolicy, calls, tokens int) (gaps []float64) {
	limited := resilience.NewLimiter(p).Middleware()(m)
	for i := range calls {
		if i%2 == 0 {
			_, _ = limited.Complete(t.Context(), sized(tokens))
		} else {
			_, _ = stream(t.Context(), limited, sized(tokens))
		}
	}
	for i := 1; i < len(m.at); i++ {
		gaps = append(gaps, math.Round((m.at[i]-m.at[i-1]).Seconds()*100)/100)
	}
	return gaps
}

func TestAnAnnouncedLimitCounts(t *testing.T) {
	steps := func(limits ...int) func(int) model.Rate {
		return func(call int) model.Rate {
			return model.Rate{Requests: model.Quota{Limit: limits[min(call, len(limits))-1]}}
		}
	}
	for name, c := range map[string]struct {
		own  int
		says func(int) model.Rate
		want []float64
	}{
		"in place of none":             {0, steps(10), []float64{0, 6, 6}},
		"below one's own":              {600, steps(10), []float64{6, 6, 6}},
		"above one's own it does not":  {10, steps(600), []float64{6, 6, 6}},
		"and is raised again":          {20, steps(10, 600), []float64{6, 3, 3}},
		"and lowered, and raised":      {0, steps(10, 5, 60), []float64{0, 12, 1}},
		"nothing is said":              {10, steps(0), []float64{6, 6, 6}},
		"nothing is said, and known":   {0, steps(0), []float64{0, 0, 0}},
		"what is no limit is not read": {10, steps(-7), []float64{6, 6, 6}},
	} {
		for _, err := range []error{nil, down} { // refusals say it, too
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := announces(c.says)
					m.err = err
					if diff := cmp.Diff(c.want, every(t, m, resilience.LimiterPolicy{Requests: c.own, Burst: -1}, 4, 10)); diff != "" {
						t.Error(diff)
					}
				})
			})
		}
	}
}

func TestAnAnnouncedLimitOfTokensCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := announces(func(int) model.Rate { return model.Rate{Tokens: model.Quota{Limit: 660}} })
		// 60 go at once, once the limit is known; 50 are taken each time, of 10 a second
		if diff := cmp.Diff([]float64{0, 4, 5, 5}, every(t, m, resilience.LimiterPolicy{}, 5, 50)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatRemainsIsAllThatGoesAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		quota model.Quota
		want  []float64
	}{
		"much":                    {model.Quota{Remaining: 1000}, []float64{0, 0, 0}},
		"one":                     {model.Quota{Remaining: 1}, []float64{0, 1, 1}}, // of ten that the burst would allow
		"nothing, and for long":   {model.Quota{Spent: true, Reset: 20 * time.Second}, []float64{20, 20, 20}},
		"nothing, and a year":     {model.Quota{Spent: true, Reset: 365 * 24 * time.Hour}, []float64{60, 60, 60}},
		"nothing, and for ever":   {model.Quota{Spent: true, Reset: math.MaxInt64}, []float64{60, 60, 60}},
		"nothing, until long ago": {model.Quota{Spent: true, Reset: math.MinInt64}, []float64{1, 1, 1}},
		"nothing, and no word":    {model.Quota{Spent: true}, []float64{1, 1, 1}},
		"less than nothing":       {model.Quota{Remaining: math.MinInt}, []float64{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if diff := cmp.Diff(c.want, every(t, announces(of(c.quota)), resilience.LimiterPolicy{Requests: 66}, 4, 10)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// However absurd it is what somebody announces: the next call goes within about two minutes, and when he has said nothing for five all is as it was.
func TestABrokenAnnouncementDoesNoHarm(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := rapid.SampledFrom([]int{math.MinInt, -1, 0, 1, 2, 1000, math.MaxInt})
		quota := rapid.Custom(func(rt *rapid.T) model.Quota {
			return model.Quota{
				Limit: number.Draw(rt, "limit"), Remaining: number.Draw(rt, "remaining"), Spent: rapid.Bool().Draw(rt, "spent"),
				Reset: rapid.SampledFrom([]time.Duration{math.MinInt64, -1, 0, 1, time.Second, time.Hour, math.MaxInt64}).Draw(rt, "reset"),
			}
		})
		said := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) model.Rate {
			return model.Rate{Requests: quota.Draw(rt, "requests"), Tokens: quota.Draw(rt, "tokens")}
		}), 1, 8).Draw(rt, "said")
		own := rapid.SampledFrom([]int{0, 100_000}).Draw(rt, "own")
		inBubble(t, func() {
			m := announces(func(call int) model.Rate {
				if call <= len(said) {
					return said[call-1]
				}
				return model.Rate{}
			})
			limited := resilience.NewLimiter(resilience.LimiterPolicy{Requests: own, Tokens: own}).Middleware()(m)
			call := func() time.Duration {
				began := time.Now()
				if _, err := limited.Complete(context.Background(), sized(1000)); err != nil {
					rt.Fatal(err)
				}
				return time.Since(began)
			}
			for range len(said) + 1 {
				if d := call(); d > 2*time.Minute+10*time.Second {
					rt.Fatalf("held back for %v", d)
				}
			}
			time.Sleep(5*time.Minute + 1)
			if d := call(); d > 6*time.Second {
				rt.Fatalf("held back for %v", d)
			}
			time.Sleep(6 * time.Second)
			for range 5 {
				if d := call(); d > 0 {
					rt.Fatalf("held back for %v by what nobody says any more", d)
				}
			}
		})
	})
}

func TestACancelEndsAWaitThatWasLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := announces(of(model.Quota{Limit: 1, Spent: true, Reset: time.Hour}))
		limited := resilience.NewLimiter(resilience.LimiterPolicy{}).Middleware()(m)
		_, _ = limited.Complete(t.Context(), hi)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := limited.Complete(ctx, hi); err != context.DeadlineExceeded || time.Since(began) != time.Second || m.calls() != 1 { //nolint:errorlint // as it is
			t.Error(err, time.Since(began), m.calls())
		}
	})
}

// Who comes first is served first, and nobody waits over twice as long as a server would make him that serves one after the other at just the limits as they are at each moment, and pauses where the provider says so.
func TestNobodyWaitsLongerThanHisShareWhileLimitsChange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		own := rapid.IntRange(0, 60).Draw(rt, "own")
		type word struct {
			limit int
			spent time.Duration // 0: it is not
		}
		words := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) word {
			w := word{limit: rapid.SampledFrom([]int{0, 5, 10, 30, 60, 200}).Draw(rt, "limit")}
			if rapid.IntRange(0, 5).Draw(rt, "is spent") == 0 {
				w.spent = time.Duration(rapid.IntRange(1, 90).Draw(rt, "reset")) * time.Second
			}
			return w
		}), 1, 40).Draw(rt, "words")
		gaps := rapid.SliceOfN(rapid.IntRange(0, 8000), 2, 40).Draw(rt, "gaps")
		inBubble(t, func() {
			type change struct {
				at    time.Duration
				limit int           // a minute; 0: none
				until time.Duration // closed until then
			}
			began := time.Now()
			now := []change{{0, own, 0}}
			var mu sync.Mutex
			said := 0
			m := announces(func(int) model.Rate {
				mu.Lock()
				defer mu.Unlock()
				w := words[min(said, len(words)-1)]
				said++
				c := now[len(now)-1]
				if c.at = time.Since(began); w.limit > 0 {
					if c.limit = w.limit; own > 0 {
						c.limit = min(own, w.limit)
					}
				}
				q := model.Quota{Limit: w.limit}
				if w.spent > 0 {
					q.Spent, q.Reset = true, w.spent
					c.until = max(c.until, c.at+min(w.spent, time.Minute))
				}
				now = append(now, c)
				return model.Rate{Requests: q}
			})
			limited := resilience.NewLimiter(resilience.LimiterPolicy{Requests: own}).Middleware()(m)
			came, went := make([]time.Duration, len(gaps)), make([]time.Duration, len(gaps))
			var wg sync.WaitGroup
			for i, gap := range gaps {
				time.Sleep(time.Duration(gap) * time.Millisecond)
				came[i] = time.Since(began)
				wg.Go(func() {
					_, _ = limited.Complete(context.Background(), hi)
					mu.Lock()
					defer mu.Unlock()
					went[i] = time.Since(began)
				})
				synctest.Wait()
			}
			wg.Wait()
			if !slices.IsSorted(went) {
				rt.Fatal("not in the order in which they came:", went)
			}
			// served is when one who comes at from is served, after whoever was served before him.
			served := func(from time.Duration) time.Duration {
				at, work := from, 1.0
				for k, c := range now {
					end := time.Duration(math.MaxInt64)
					if k+1 < len(now) {
						end = now[k+1].at
					}
					at = max(at, min(c.until, end))
					if at >= end {
						continue
					}
					if c.limit == 0 {
						return at
					}
					rate := float64(c.limit) / 60
					if need := time.Duration(work / rate * float64(time.Second)); need <= end-at {
						return at + need
					}
					work -= rate * (end - at).Seconds()
					at = end
				}
				return at
			}
			last := time.Duration(0)
			for i := range gaps {
				last = served(max(last, came[i]))
				share, waited := last-came[i], went[i]-came[i]
				if waited > 2*share+time.Millisecond {
					rt.Fatalf("%d waited %v, his share is %v; %+v", i, waited, share, now)
				}
			}
		})
	})
}
