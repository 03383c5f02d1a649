package a2aserver

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/serve/internal/web"
	"github.com/pawl-dev/pawl/stream"
)

// lookEvery is how long there may be no end to be seen of a task before somebody looks whether it is worked on at all: the process that did may have died.
const lookEvery = 5 * time.Second

// errEnough ends a follower whose listener has it all.
var errEnough = errors.New("enough")

// follow tells of a task from where it was read to, until it rests. rested says that it does already, which is not told. What is said of a model call that is under way is told from its beginning. tell's error ends it and comes back.
func (s *Server) follow(ctx context.Context, r *reading, rested bool, tell func(a2a.Event) error) error {
	var failed error
	r.tell = func(e a2a.Event) {
		if failed == nil {
			if failed = tell(e); failed == nil && e.Status != nil && e.Status.Status.State.Terminal() {
				failed = errEnough
			}
		}
	}
	defer func() { r.tell = nil }()
	at := stream.Position{Seq: r.seq}
	for ctx.Err() == nil {
		look, cancel := context.WithTimeout(ctx, lookEvery)
		before := r.seq
		err := s.news(look, r, &at, &failed)
		cancel()
		switch {
		case errors.Is(failed, errEnough):
			return nil
		case failed != nil:
			return failed
		case err != nil && look.Err() == nil:
			return err
		}
		if rested = rested && r.seq == before; rested { // nothing has come of it
			continue
		}
		now, _, err := s.stands(ctx, r)
		if err != nil {
			return err
		}
		if more, err := s.more(ctx, r); err != nil || more || !rests(now.State) {
			if err != nil {
				return err
			}
			continue
		}
		return tell(a2a.Event{Status: &a2a.StatusUpdate{TaskID: r.id(), ContextID: r.session, Status: now}})
	}
	return context.Cause(ctx)
}

// news reads what comes of a task, until it was left or its listener has enough.
func (s *Server) news(ctx context.Context, r *reading, at *stream.Position, failed *error) error {
	for n, err := range s.runs.Follow(ctx, r.session, *at) {
		if err != nil {
			return err
		}
		*at = n.At
		for _, e := range n.Events {
			if e.Data == nil {
				r.delta(e)
				if e.Delta == event.RunLeft && e.Run == r.run {
					return nil
				}
				continue
			}
			r.entry(e.Entry)
			if _, left := e.Data.(journal.Parked); left && e.Run == r.run {
				return nil
			}
		}
		if *failed != nil {
			return nil
		}
	}
	return nil
}

// settle waits until a task rests.
func (s *Server) settle(ctx context.Context, r *reading) (*reading, error) {
	for run := s.runs.Of(r.session); run != nil; run = s.runs.Of(r.session) {
		select {
		case <-run.Done():
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
	}
	now, err := s.read(ctx, r.place)
	if err != nil || now == nil {
		return r, err
	}
	now, st, _, err := s.look(ctx, now)
	if err != nil || rests(st.State) {
		return now, err
	}
	return now, s.follow(ctx, now, false, func(a2a.Event) error { return nil })
}

// streams answers a call with a task as it was read, and with what comes of it. wait says that a task which rests is to be followed, too.
func (c *call) streams(r *reading, wait bool, history *int) error {
	st := a2a.TaskStatus{State: a2a.StateWorking, Timestamp: r.at}
	if !r.early {
		var err error
		if r, st, _, err = c.s.look(c.context(), r); err != nil {
			return err
		}
	}
	task := r.task(st, history)
	events := web.Stream(c.w)
	defer events.Close()
	send := func(e a2a.Event) error {
		if e.State().Terminal() { // who is told of the end can begin another task in its context
			c.s.runs.Settle(c.context(), r.session, r.run)
		}
		line, err := c.version.AppendResult(nil, c.id, e)
		if err != nil {
			return err
		}
		return events.Send("", "", line)
	}
	if send(a2a.Event{Task: task}) != nil {
		return nil //nolint:nilerr // the client is gone
	}
	rested := rests(st.State)
	if st.State.Terminal() || rested && !wait {
		return nil
	}
	switch err := c.s.follow(c.context(), r, rested, send); {
	case err == nil:
	case c.context().Err() == nil:
		_ = events.Send("", "", c.version.AppendError(nil, c.id, a2a.ErrorOf(err)))
	case errdefs.NotAvailable.Is(context.Cause(c.context())): // the server stops, and says how it leaves the task
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.context()), time.Second)
		defer cancel()
		if now, err := c.s.read(ctx, r.place); err == nil && now != nil {
			if now, st, _, err := c.s.look(ctx, now); err == nil && rests(st.State) {
				_ = send(a2a.Event{Status: &a2a.StatusUpdate{TaskID: now.id(), ContextID: now.session, Status: st}})
			}
		}
	}
	return nil
}

// subscribe follows a task. One that is over has nothing to follow: in 0.3, where that is no error, it is told and that is all.
func (c *call) subscribe() (any, error) {
	var in a2a.SubscribeRequest
	if err := c.read(&in, &in.Tenant); err != nil {
		return nil, err
	}
	r, err := c.s.find(c.context(), in.ID)
	if err != nil {
		return nil, err
	}
	if r.over != "" && c.version != a2a.V03 {
		return nil, a2a.Errorf(a2a.CodeUnsupportedOperation, "task %s is over (%s): get it to see what came of it", r.id(), r.over)
	}
	return nil, c.streams(r, true, nil)
}
