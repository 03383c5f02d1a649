package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
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

// sized is a request that is estimated at so many tokens.
func sized(tokens int) model.Request {
	return model.Request{Messages: message.NewHistory(message.User(strings.Repeat("word", tokens-4)))}
}

// served answers at once, takes what was estimated, and notes who was served when.
type served struct {
	*fake
	use func(estimate int) model.Usage
	err error

	mu    sync.Mutex
	order []int
	at    []time.Duration
}

func (s *served) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(req.Messages.Last().Text())/4 + 4
	s.order, s.at = append(s.order, n), append(s.at, time.Since(s.made))
	u := model.Usage{Input: n}
	if s.use != nil {
		u = s.use(n)
	}
	return &model.Response{Message: message.Assistant("ok"), Usage: u}, s.err
}

func serves() *served { return &served{fake: plays(says("x"))} }

func TestNoMinuteHasMoreThanTheLimits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		requests, tokens := rapid.IntRange(1, 120).Draw(rt, "requests"), rapid.IntRange(1000, 5000).Draw(rt, "tokens")
		idle := time.Duration(rapid.IntRange(0, 200).Draw(rt, "idle")) * time.Second // in the middle
		sizes := rapid.SliceOfN(rapid.IntRange(5, 80), 2, 150).Draw(rt, "sizes")
		inBubble(t, func() {
			m := serves()
			l := resilience.NewLimiter(resilience.LimiterPolicy{Requests: requests, Tokens: tokens})
			agents := []model.Model{l.Middleware()(m), l.Middleware()(m)} // they share it
			for i, n := range sizes {
				if i == len(sizes)/2 {
					time.Sleep(idle)
				}
				if _, err := agents[i%2].Complete(context.Background(), sized(n)); err != nil {
					rt.Fatal(err)
				}
			}
			for i := range m.at {
				inTokens, inRequests := 0, 0
				for k := i; k < len(m.at) && m.at[k] < m.at[i]+time.Minute; k++ {
					inTokens, inRequests = inTokens+m.order[k], inRequests+1
				}
				if inRequests > requests || inTokens > tokens {
					rt.Fatalf("%d of %d requests, %d of %d tokens in the minute from %v", inRequests, requests, inTokens, tokens, m.at[i])
				}
			}
			last := (m.at[len(m.at)-1] - idle).Minutes() // nor is it slower than it has to be
			sum := 0
			for _, n := range sizes {
				sum += n
			}
			if most := 1.1*max(float64(len(sizes)-1)/float64(requests), float64(sum)/float64(tokens)) + 1e-6; last > most {
				rt.Fatalf("%v minutes, want %v", last, most)
			}
		})
	})
}

// Who comes first is served first, and nobody waits over twice as long as it takes to serve those before him and himself at the limits, whoever gives up.
func TestNobodyWaitsLongerThanHisShare(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		policy := resilience.LimiterPolicy{Requests: rapid.IntRange(1, 100).Draw(rt, "requests"), Tokens: rapid.IntRange(100, 5000).Draw(rt, "tokens")}
		type who struct {
			size  int
			gap   time.Duration
			leave time.Duration // 0: never
		}
		crowd := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) who {
			w := who{size: rapid.IntRange(5, 1000).Draw(rt, "size"), gap: time.Duration(rapid.IntRange(0, 2000).Draw(rt, "gap")) * time.Millisecond}
			if rapid.IntRange(0, 4).Draw(rt, "leaves") == 0 {
				w.leave = time.Duration(rapid.IntRange(1, 60_000).Draw(rt, "leave")) * time.Millisecond
			}
			return w
		}), 2, 60).Draw(rt, "crowd")
		inBubble(t, func() {
			m := serves()
			l := resilience.NewLimiter(policy)
			type outcome struct {
				came, went time.Duration
				err        error
			}
			out := make([]outcome, len(crowd))
			began := time.Now()
			var wg sync.WaitGroup
			for i, w := range crowd {
				time.Sleep(w.gap)
				out[i].came = time.Since(began)
				wg.Go(func() {
					ctx := context.Background()
					if w.leave > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, w.leave)
						defer cancel()
					}
					_, out[i].err = l.Middleware()(m).Complete(ctx, sized(w.size))
					out[i].went = time.Since(began)
				})
				synctest.Wait()
			}
			wg.Wait()
			var went []time.Duration // of those who were served
			var sizes []int
			requests, tokens := 0.0, 0.0 // when a server that does one thing after the other at just the limits is done with all so far, in minutes
			for i, o := range out {
				if o.err != nil {
					if !errors.Is(o.err, context.DeadlineExceeded) || o.went-o.came != crowd[i].leave {
						rt.Fatal("gave up", o)
					}
					continue
				}
				went, sizes = append(went, o.went), append(sizes, crowd[i].size)
				came := o.came.Minutes()
				requests = max(requests, came) + 1/float64(policy.Requests)
				tokens = max(tokens, came) + float64(crowd[i].size)/float64(policy.Tokens)
				share := max(requests, tokens) - came
				if waited := (o.went - o.came).Minutes(); waited > 2*share {
					rt.Fatalf("%d waited %v minutes, his share is %v", i, waited, share)
				}
			}
			if !slices.IsSorted(went) { // two who are served at the same moment have no order
				rt.Fatal("not in the order in which they came:", went)
			}
			slices.Sort(sizes)
			if diff := cmp.Diff(sizes, slices.Sorted(slices.Values(m.order))); diff != "" {
				rt.Fatal("others were served:", diff)
			}
		})
	})
}

func TestTheEstimateIsCorrectedByTheUsage(t *testing.T) {
	const second = 10 // tokens, at 660 a minute
	for name, c := range map[string]struct {
		use  func(int) model.Usage
		err  error
		p    resilience.LimiterPolicy
		next time.Duration // when the next call of the same size is let through
	}{
		"it was right":         {next: 4 * time.Second},
		"it was more":          {use: func(n int) model.Usage { return model.Usage{Input: n, Output: 5 * second} }, next: 9 * time.Second},
		"it was less":          {use: func(n int) model.Usage { return model.Usage{Input: n - 2*second} }, next: 2 * time.Second},
		"nobody counted":       {use: func(int) model.Usage { return model.Usage{} }, next: 4 * time.Second},
		"it failed":            {err: down, next: 4 * time.Second},
		"not all of it counts": {p: resilience.LimiterPolicy{Count: func(u model.Usage) int { return u.Input }}, use: func(int) model.Usage { return model.Usage{CacheRead: 1e6, Input: 20} }, next: time.Second},
		"not before he says":   {err: refused(errdefs.RateLimit, 20*time.Second), next: 20 * time.Second},
		"within reason":        {err: refused(errdefs.RateLimit, time.Hour), next: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := serves()
				m.use, m.err = c.use, c.err
				c.p.Tokens = 660
				limited := resilience.NewLimiter(c.p).Middleware()(m)
				for range 2 { // 60 are there, 50 are taken: 40 are missing
					_, _ = limited.Complete(t.Context(), sized(5*second))
				}
				if got := m.at[1]; got.Round(time.Millisecond) != c.next {
					t.Errorf("after %v, want %v", got, c.next)
				}
			})
		})
	}
}

func TestWhoWaitsHearsOfACorrection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := resilience.NewLimiter(resilience.LimiterPolicy{Tokens: 660})
		m := plays(turn{words: "a", gap: time.Second, usage: model.Usage{Input: 5}}, says("b"))
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if _, err := stream(t.Context(), l.Middleware()(m), sized(55)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if diff := cmp.Diff([]time.Duration{0, 2 * time.Second}, m.at); diff != "" {
			t.Error(diff)
		}
	})
}

func TestALargeRequestIsLetThroughAndPaidFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serves()
		limited := resilience.NewLimiter(resilience.LimiterPolicy{Tokens: 660}).Middleware()(m)
		for _, n := range []int{660, 10, 10} {
			_, _ = limited.Complete(t.Context(), sized(n))
		}
		for i, want := range []time.Duration{0, 61 * time.Second, 62 * time.Second} {
			if m.at[i].Round(time.Millisecond) != want {
				t.Error(m.at)
			}
		}
	})
}

func TestWithoutLimitsNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serves()
		limited := resilience.NewLimiter(resilience.LimiterPolicy{}).Middleware()(m)
		for range 1000 {
			_, _ = limited.Complete(t.Context(), sized(1000))
		}
		if slices.Max(m.at) != 0 {
			t.Error(m.at)
		}
	})
}

func TestAnotherBurst(t *testing.T) {
	for burst, want := range map[time.Duration]int{-1: 1, 0: 10, time.Minute: 55} {
		synctest.Test(t, func(t *testing.T) {
			m := serves()
			limited := resilience.NewLimiter(resilience.LimiterPolicy{Requests: 110, Burst: burst}).Middleware()(m)
			for range 110 {
				_, _ = limited.Complete(t.Context(), hi)
			}
			n := 0
			for n < len(m.at) && m.at[n] == 0 {
				n++
			}
			if n != want {
				t.Errorf("%v: %d at once, want %d", burst, n, want)
			}
			if got := m.at[109].Minutes(); math.Abs(got-float64(110-n)/110*(1+max(0, orSix(burst)).Minutes())) > 1e-3 {
				t.Errorf("%v: all in %v minutes", burst, got)
			}
		})
	}
}

func orSix(burst time.Duration) time.Duration {
	if burst == 0 {
		return 6 * time.Second
	}
	return burst
}

func TestACancelledCallIsNotLetThrough(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := serves()
	if _, err := resilience.NewLimiter(resilience.LimiterPolicy{}).Middleware()(m).Complete(ctx, hi); !errors.Is(err, context.Canceled) || len(m.at) > 0 {
		t.Error(err)
	}
}

// Who streams hears that a call is held back, once that takes a second, and that it is sent then; of a shorter wait he hears nothing.
func TestWhoStreamsHearsThatACallIsHeldBack(t *testing.T) {
	for perMinute, want := range map[int][]string{
		20: {"1: held, 2s more", "3: sent", "3: x"}, // a request each 3 s
		75: {"1: x"},
	} {
		inBubble(t, func() {
			l := resilience.NewLimiter(resilience.LimiterPolicy{Requests: perMinute, Burst: -1})
			m := model.Wrap(plays(says("x")), l.Middleware())
			if _, err := m.Complete(context.Background(), hi); err != nil {
				t.Error(err)
			}
			began := time.Now()
			var got []string
			err := m.CompleteStream(context.Background(), hi, func(s model.StreamResult) error {
				what := s.Text
				switch {
				case s.Held:
					what = fmt.Sprintf("held, %v more", s.Wait.Round(time.Second))
				case s.Final && s.Text == "":
					return nil
				case s.Text == "":
					what = "sent"
				}
				got = append(got, fmt.Sprintf("%d: %s", int(time.Since(began).Round(time.Second)/time.Second), what))
				return nil
			})
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d a minute: %q, %v: want %q", perMinute, got, err, want)
			}
		})
	}
}

// Behind others nobody knows how long it takes, and a handler that wants no more ends the wait, with its own error and its place given up.
func TestAHandlerMayEndTheWait(t *testing.T) {
	inBubble(t, func() {
		l := resilience.NewLimiter(resilience.LimiterPolicy{Requests: 1, Burst: -1})
		m := model.Wrap(plays(says("x")), l.Middleware())
		if _, err := m.Complete(context.Background(), hi); err != nil {
			t.Error(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = m.Complete(context.Background(), hi) })
		synctest.Wait()
		began, enough := time.Now(), errors.New("enough")
		if err := m.CompleteStream(context.Background(), hi, func(s model.StreamResult) error {
			if !s.Held || s.Wait != 0 {
				t.Errorf("%+v", s)
			}
			return enough
		}); !errors.Is(err, enough) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		wg.Wait()
		if took := time.Since(began); took > time.Minute+time.Second {
			t.Errorf("the one before it took %v", took)
		}
	})
}
