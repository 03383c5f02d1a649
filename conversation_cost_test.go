package pawl_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// A Send does not copy what was said before: late in a long conversation it makes as many allocations as early, and they are larger by a word or two for each message between at most, which is a fork of the transcript.
func TestDefectASendCostsItsWholeHistory(t *testing.T) {
	const early, late, messages, words = 50, 500, 4, 2.5 * 8
	file := packOf(t, looks+banned)
	turns := 0
	c := handled(converse(t, file, byFunc(func(_ context.Context, req model.Request) (*model.Response, error) {
		if req.Messages.Last().Role() == message.RoleUser {
			turns++
			return &model.Response{Message: message.Assistant("", call(fmt.Sprint("c", turns), "look", `{"city":"x"}`))}, nil
		}
		return &model.Response{Message: message.Assistant("It is there.")}, nil
	})))
	for name, take := range map[string]func(*pawl.Conversation) error{
		"send": func(c *pawl.Conversation) error { _, err := c.Send(t.Context(), "x"); return err },
		"stream": func(c *pawl.Conversation) error {
			for _, err := range c.Stream(t.Context(), "x") {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := c.Fork(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			var allocs, bytes []float64
			for range late {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if err := take(f); err != nil {
					t.Fatal(err)
				}
				runtime.ReadMemStats(&after)
				allocs, bytes = append(allocs, float64(after.Mallocs-before.Mallocs)), append(bytes, float64(after.TotalAlloc-before.TotalAlloc))
			}
			if first, last := lower(allocs, early-10), lower(allocs, late-10); last > 1.2*first {
				t.Errorf("%.0f allocations in turn %d, %.0f in turn %d", first, early, last, late)
			}
			if first, last := lower(bytes, early-10), lower(bytes, late-10); last > 1.2*first+words*messages*(late-early) {
				t.Errorf("%.0f bytes in turn %d, %.0f in turn %d", first, early, last, late)
			}
		})
	}
}
