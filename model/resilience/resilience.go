package resilience

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/tokens"
	"github.com/pawl-dev/pawl/model"
)

// transient are the classes of what may be over in a moment.
var transient = []*errdefs.Class{errdefs.RateLimit, errdefs.NotAvailable, errdefs.Timeout}

// classOf gives each failure of a model a class; nil is a cancel, which is nobody's failure.
func classOf(err error) *errdefs.Class {
	switch c := errdefs.Of(err); {
	case c != nil:
		return c
	case errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return errdefs.Timeout
	}
	return errdefs.NotAvailable
}

// watch looks at what a handler is given.
type watch struct {
	to    model.StreamHandler
	shown bool // words that count
	final bool
	err   error // the handler's own
}

func (w *watch) take(s model.StreamResult) error {
	switch {
	case s.Void != nil:
		w.shown = false
	case s.Text != "" || s.Reasoning != "", s.Input != "" && s.Tool == model.OutputTool: // which is the answer: model.OutputByTool shows it
		w.shown = true
	}
	w.final = w.final || s.Final
	w.err = w.to(s)
	return w.err
}

// stream asks m. Each stream that is no error has its last piece.
func (w *watch) stream(ctx context.Context, m model.Model, req model.Request, take model.StreamHandler) error {
	err := m.CompleteStream(ctx, req, take)
	if err == nil && !w.final {
		return errdefs.NotAvailable.Errorf("resilience: %s: the stream ended before its last piece", nameOf(m))
	}
	return err
}

// done reports whether what the handler has is what it keeps. A nil watch is of a call that shows nothing.
func (w *watch) done(restart bool) bool {
	return w != nil && (w.err != nil || w.final || w.shown && !restart)
}

// void tells the handler that another attempt begins, after a wait.
func (w *watch) void(why error, wait time.Duration) error {
	if w == nil {
		return nil
	}
	return w.take(model.StreamResult{Void: why, Wait: wait})
}

// forwarding makes what m wraps be found.
func forwarding(m, inner model.Model) model.Model { return &wrapper{m, inner} }

type wrapper struct {
	model.Model
	inner model.Model
}

// Unwrap implements model.Wrapper.
func (w *wrapper) Unwrap() model.Model { return w.inner }

func nameOf(m model.Model) string {
	c, _ := model.CapabilitiesOf(m)
	return cmp.Or(c.Name, fmt.Sprintf("%T", m))
}

// estimate is what a request takes of a window, in tokens, without the reply.
func estimate(req model.Request) int {
	n := tokens.Text(req.System) + tokens.In(req.Messages) + len(req.Output)/4
	for _, t := range req.Tools {
		n += tokens.Text(t.Name) + tokens.Text(t.Description) + len(t.Schema)/4
	}
	return n
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
