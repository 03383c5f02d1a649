package pawl

import (
	"context"
	"iter"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
)

// stream makes a run a range: no channel, no goroutine, and a delta costs no allocation.
func stream(ctx context.Context, host engine.Host, run func(context.Context, engine.Host) (*agent.Result, error)) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		open := true
		var broken any // a panic of the caller's loop body passes through tools and models unseen, and goes on from here
		_, err := run(ctx, &streamHost{Host: host, publish: func(e event.Event) {
			defer func() {
				if p := recover(); p != nil {
					broken, open = p, false
				}
				if !open {
					cancel()
				}
			}()
			open = open && yield(e, nil)
		}})
		if broken != nil {
			panic(broken)
		}
		if open && err != nil {
			yield(event.Event{}, err)
		}
	}
}

// streamHost is the caller's host, with the ranging loop as a listener more.
type streamHost struct {
	engine.Host
	publish func(event.Event)
}

func (h *streamHost) Listening() bool { return true }

func (h *streamHost) Publish(ctx context.Context, e event.Event) error {
	h.publish(e)
	if engine.Listening(h.Host) {
		return h.Host.Publish(ctx, e)
	}
	return nil
}
