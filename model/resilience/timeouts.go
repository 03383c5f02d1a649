package resilience

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// TimeoutPolicy says how long a model may be silent. The defaults are long: some models think for minutes before they say
// anything, and a provider may send the input of a tool call in one piece, as Gemini does. Negative is no limit.
type TimeoutPolicy struct {
	First time.Duration // until the first piece; of a model that does not stream, until the whole reply. 0: 5 minutes
	Idle  time.Duration // between two pieces, without the time that the handler takes. 0: 10 minutes, in which a model writes a file of some 100 kB
}

// Timeouts ends a call with errdefs.Timeout when the model is silent for too long. Complete is made as a stream, so that both limits hold for it, too. The
// model has to heed its context, as providers do: a call that doesn't is not left behind, but waited for. Stand it inside of
// [Retry] and of a limiter, whose waits would be silence.
func Timeouts(p TimeoutPolicy) model.Middleware {
	p.First, p.Idle = orDefault(p.First, 5*time.Minute), orDefault(p.Idle, 10*time.Minute)
	return func(m model.Model) model.Model { return forwarding(&timed{m, p}, m) }
}

type timed struct {
	model.Model
	TimeoutPolicy
}

// Complete implements model.Model.
func (t *timed) Complete(ctx context.Context, req model.Request) (resp *model.Response, err error) {
	err = t.CompleteStream(ctx, req, func(s model.StreamResult) error {
		if s.Final {
			resp = s.Response
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// CompleteStream implements model.Model.
func (t *timed) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	c := clock{fire: cancel}
	c.start(t.First)
	defer c.stop()
	w := watch{to: cb}
	what, limit := "nothing", t.First
	err := w.stream(call, t.Model, req, func(s model.StreamResult) error {
		if !c.stop() { // too late, if only just
			cancel()
			return context.Canceled
		}
		if err := w.take(s); err != nil || s.Final {
			return err
		}
		what, limit = "nothing more", t.Idle
		c.start(t.Idle)
		return nil
	})
	if err == nil || ctx.Err() != nil || call.Err() == nil {
		return err
	}
	return errdefs.Timeout.Errorf("resilience: %s said %s for %v", nameOf(t.Model), what, limit)
}

// clock calls fire when it was started and not stopped in time. One timer serves a whole stream.
type clock struct {
	timer *time.Timer
	fire  func()
	on    bool
}

// start starts the clock; a limit below 0 is none.
func (c *clock) start(d time.Duration) {
	switch c.on = d >= 0; {
	case !c.on:
	case c.timer == nil:
		c.timer = time.AfterFunc(d, c.fire)
	default:
		c.timer.Reset(d)
	}
}

// stop reports whether the clock had not fired.
func (c *clock) stop() bool {
	if !c.on {
		return true
	}
	c.on = false
	return c.timer.Stop()
}
