package resilience_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
)

// The input of a call that is being written is no silence, and nothing that was shown.
func TestTheInputOfACallIsLifeButNoWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		m := streamFunc(func(ctx context.Context, cb model.StreamHandler) error {
			n++
			for range 10 {
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return ctx.Err()
				}
				if err := cb(model.StreamResult{Input: "1,", Tool: "x"}); err != nil {
					return err
				}
			}
			if n == 1 {
				return refused(errdefs.NotAvailable, 0)
			}
			return cb(model.StreamResult{Final: true, Response: &model.Response{Message: message.Assistant("", message.ToolCall{ID: "1", Name: "x", Input: "{}"})}})
		})
		limits := resilience.Timeouts(resilience.TimeoutPolicy{First: 2 * time.Second, Idle: 2 * time.Second})
		if s, err := stream(t.Context(), model.Wrap(m, resilience.Retry(resilience.RetryPolicy{}), limits), hi); err != nil || n != 2 || len(s.voids) != 1 {
			t.Error(n, s, err)
		}
	})
}

// The answer by a tool is what model.OutputByTool shows as it is written: it is not taken back unasked.
func TestAnAnswerByAToolIsWords(t *testing.T) {
	for _, restart := range []bool{false, true} {
		n := 0
		m := streamFunc(func(_ context.Context, cb model.StreamHandler) error {
			if n++; n > 1 {
				return cb(model.StreamResult{Final: true, Response: &model.Response{Message: message.Assistant("", message.ToolCall{ID: "1", Name: model.OutputTool, Input: "{}"})}})
			}
			if err := cb(model.StreamResult{Input: `{"a":`, Tool: model.OutputTool}); err != nil {
				return err
			}
			return refused(errdefs.NotAvailable, 0)
		})
		_, err := stream(t.Context(), resilience.Retry(resilience.RetryPolicy{Restart: restart, Rand: func() float64 { return 0 }})(m), hi)
		if want := map[bool]int{false: 1, true: 2}[restart]; n != want || restart != (err == nil) {
			t.Error(restart, n, err)
		}
	}
}
