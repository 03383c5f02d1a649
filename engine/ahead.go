package engine

import (
	"context"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

// Ahead gives steps for one path that only decides between its effects and looks at nothing but their outcomes, as a loop does. What was judged there, and what a call came to, waits for the path's next entries, and goes on record with them, before them and in
// one append; to the record, and to listeners, the effect has taken as much longer. All else of [Steps] holds: whatever acts finds what was done before it on record, but that what is judged one after the other comes together, at the latest with the first call that begins or the
// first question. What a call came to is told before another call begins. Whoever has such steps calls [Settle] when the path ends, however it does. Where an outcome was on record before it got there, under the same driver, it is errdefs.Conflict: such steps are for one process at a time.
//
// Steps that are not Local's own are given back as they are, and branches of these steps are not ahead: there each effect ends on record.
func Ahead(s Steps) Steps {
	l, ok := s.(*local)
	if !ok || l.ahead {
		return s
	}
	a := &struct {
		local
		held [2]journal.Entry // the usual: what came of one effect, and the intent of the next
		by   [1]context.Context
	}{local: local{run: l.run, host: l.host, p: l.p, scopes: l.scopes, beside: l.beside, intr: l.intr, driver: l.driver, ahead: true}}
	a.local.held, a.heldBy = a.held[:0], a.by[:0]
	return &a.local
}

// Settle puts on record what waits in steps of [Ahead], whether or not ctx has ended.
func Settle(ctx context.Context, s Steps) error {
	l, ok := s.(*local)
	if !ok || len(l.held) == 0 {
		return nil
	}
	return l.write(l.without(ctx), l.host)
}

// waits reports whether an outcome may wait for the next append.
func waits(d journal.Data) bool {
	switch d.(type) {
	case journal.ToolJudged, journal.ToolFinished:
		return true
	}
	return false
}

// hold keeps an outcome for the next append. What is told of it is told with the context of its own step.
func (s *local) hold(ctx context.Context, e journal.Entry) {
	s.held, s.heldBy = append(s.held, e), append(s.heldBy, ctx)
}

// first puts on record what waits, unless it may come together with the intent of e. Judgments wait for each other. What a call came to is told before the next one begins, so that who hears it can stop that.
func (s *local) first(ctx context.Context, e Effect, intent bool) error {
	if len(s.held) == 0 {
		return nil
	}
	_, called := s.held[len(s.held)-1].Data.(journal.ToolFinished)
	switch Bare(e).(type) {
	case Judge, UseTool:
		if !called {
			return nil
		}
	default:
		if intent {
			return nil
		}
	}
	return s.write(s.without(ctx), s.host)
}

// begin puts what begins on record, with what waits. Who hears of that may stop what comes next, other than a call: that has begun.
func (s *local) begin(ctx context.Context, e Effect, intents []journal.Entry) error {
	waited := len(s.held) > 0
	switch Bare(e).(type) {
	case Judge:
		return nil // it has no intent, and what waits goes on waiting
	case UseTool:
		waited = false
	}
	if err := s.write(ctx, s.host, intents...); err != nil || !waited {
		return err
	}
	return s.stopped(ctx)
}

// write puts entries on record, behind what waits and in one piece with it, and tells who listens.
func (s *local) write(ctx context.Context, host Host, entries ...journal.Entry) error {
	n, own := len(s.held), entries
	if n > 0 {
		entries = append(s.held, own...)
	}
	if len(entries) == 0 {
		return nil
	}
	if err := s.run.Log.Append(ctx, entries...); err != nil {
		return s.unwritten(ctx, host, entries, own, err)
	}
	if n > 0 {
		copy(own, entries[n:])
		s.held = entries[:0] // before anybody is told, who may end this goroutine
	}
	on := Listening(host)
	for i := range entries {
		by := ctx //nolint:contextcheck // each is told with the context of its own step
		if i < n {
			by = s.heldBy[i]
		}
		if on {
			publish(by, host, event.Event{Entry: entries[i], ParentRun: s.run.ParentRunID})
		}
		if i < n && keepsCheckpoints(host) {
			s.checkpoint(by, host, &entries[i])
		}
	}
	if n > 0 {
		s.drop(entries)
	}
	return nil
}

// unwritten is the error of an append of entries, of which the last are own and those before had waited.
func (s *local) unwritten(ctx context.Context, host Host, entries, own []journal.Entry, err error) error {
	switch {
	case len(own) == len(entries) || ctx.Err() != nil && errdefs.Canceled(err): // then nothing is wrong with the journal, and Settle puts there what waits
		return err
	case len(own) > 0 && (errdefs.Conflict.Is(err) || errdefs.Validation.Is(err)): // which of them is refused, they say by themselves
		if err := s.write(ctx, host); err != nil {
			return err
		}
		return s.write(ctx, host, own...)
	}
	s.drop(entries)
	return err
}

// drop forgets what waited, and what was written with it: it is on record, or can't get there.
func (s *local) drop(entries []journal.Entry) {
	clear(entries)
	clear(s.heldBy)
	s.held, s.heldBy = entries[:0], s.heldBy[:0]
}
