package resilience_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
)

func TestADeltaCostsNothing(t *testing.T) {
	pieces := 0
	whole := &model.Response{Message: message.Assistant("x"), Usage: model.Usage{Input: 1}}
	m := streamFunc(func(_ context.Context, cb model.StreamHandler) error {
		for range pieces {
			if err := cb(model.StreamResult{Text: "word "}); err != nil {
				return err
			}
		}
		return cb(model.StreamResult{Final: true, Response: whole})
	})
	limiter := resilience.NewLimiter(resilience.LimiterPolicy{Requests: 1e9, Tokens: 1e9})
	stack := resilience.Fallback(resilience.FallbackPolicy{}, model.Wrap(m,
		resilience.Retry(resilience.RetryPolicy{}), resilience.Breaker(resilience.BreakerPolicy{}), limiter.Middleware(), resilience.Timeouts(resilience.TimeoutPolicy{First: time.Hour, Idle: time.Hour})))
	cost := func(n int) float64 {
		pieces = n
		return testing.AllocsPerRun(100, func() {
			if err := stack.CompleteStream(t.Context(), hi, func(model.StreamResult) error { return nil }); err != nil {
				t.Fatal(err)
			}
		})
	}
	one, many := cost(1), cost(1001)
	t.Logf("a call through all of them allocates %.0f times", one)
	if many > one {
		t.Errorf("1000 deltas allocate %.0f times", many-one)
	}
	if one > 40 {
		t.Errorf("a call allocates %.0f times", one)
	}
}
