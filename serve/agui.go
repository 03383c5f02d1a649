package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/serve/internal/agui"
	"github.com/pawl-dev/pawl/serve/internal/web"
	"github.com/pawl-dev/pawl/stream"
)

// agui runs the agent for a front end that speaks AG-UI: a thread is a session. A run goes on when its client is gone; who asks for it again by its name gets its events again.
func (s *Server) agui(w http.ResponseWriter, r *http.Request) error {
	b, err := web.Body(w, r, s.opts.MaxBody)
	if err != nil {
		return err
	}
	in, err := agui.Parse(b)
	if err != nil {
		return err
	}
	if err := names(in.ThreadID, in.RunID, in.ParentRunID); err != nil {
		return err
	}
	var e *agui.Encoder
	var from stream.Position
	var waits []journal.Pending // that the client has still to answer
	if len(in.Resume) > 0 {
		e, from, waits, err = s.resumed(r.Context(), in)
	} else {
		e, from, err = s.asked(r.Context(), in)
	}
	if err != nil {
		return err
	}
	events := web.Stream(w)
	defer events.Close()
	send := func(all []agui.Event) error {
		for _, v := range all {
			b, err := json.Marshal(v)
			if err == nil {
				err = events.Send("", "", b)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := send(e.Start()); err != nil {
		return nil //nolint:nilerr // the client is gone: the run goes on
	}
	if len(waits) > 0 {
		_ = send(e.Finish(interrupted(waits)))
		return nil
	}
	last, err := s.attend(r.Context(), e, in.ThreadID, from, send)
	if err != nil {
		p := web.ProblemOf(err)
		last = e.Fail(p.Class, p.Message)
	}
	_ = send(last) // a client that is gone has to ask again
	return nil
}

// asked begins the run that a client asks for. In a thread that is on record its newest message is what is new; else the conversation begins with what was before that.
func (s *Server) asked(ctx context.Context, in *agui.Input) (e *agui.Encoder, from stream.Position, err error) {
	if in.Last.Role() != message.RoleUser {
		return nil, from, errdefs.Validation.Errorf("serve: messages: the last one has to be the user's")
	}
	req := pawl.Request{SessionID: in.ThreadID}
	req.Message, req.RunID, req.Inputs = in.Last, in.RunID, in.Inputs
	var opts []agent.RunOption
	if in.System != "" {
		opts = append(opts, instructed("ag-ui", in.System))
	}
	if in.ParentRunID != "" {
		opts = append(opts, agent.WithParentRunID(in.ParentRunID))
	}
	if in.History.Len() > 0 {
		opts = append(opts, agent.WithBoardSeed(func(ctx context.Context, _ agent.RunInfo, ask *agent.Request) (*engine.Board, error) {
			b := agent.DefaultBoard(ctx)
			if b.Channel(engine.MainChannel).Len() > 1 { // what was said before is on record
				return b, nil
			}
			return agent.BoardWith(in.History, ask), nil
		}))
	}
	run, err := s.runs.Start(ctx, req, opts...)
	if err != nil {
		return nil, from, err
	}
	return agui.NewEncoder(in, run.ID), run.From(), nil
}

// resumed answers what the thread's run waits for; it goes on when nothing waits any more.
func (s *Server) resumed(ctx context.Context, in *agui.Input) (e *agui.Encoder, from stream.Position, waits []journal.Pending, err error) {
	waits, err = agent.Pending(ctx, s.runs.Journal(), in.ThreadID)
	if err != nil {
		return nil, from, nil, err
	}
	answers := make([]journal.Answered, 0, len(in.Resume))
	for _, r := range in.Resume {
		i := slices.IndexFunc(waits, func(p journal.Pending) bool { return p.ID == r.InterruptID })
		if i < 0 {
			return nil, from, nil, errdefs.Conflict.Errorf("serve: resume: %q is not pending in thread %s: it was answered, its run was closed by a later one, or it was never asked", r.InterruptID, in.ThreadID)
		}
		a, err := r.Answer(waits[i], "ag-ui")
		if err != nil {
			return nil, from, nil, err
		}
		answers = append(answers, a)
	}
	log, err := journal.Open(ctx, s.runs.Journal(), in.ThreadID)
	if err != nil {
		return nil, from, nil, err
	}
	st := log.State()
	e = agui.NewEncoder(in, st.Run)
	for entry, err := range s.runs.Journal().Read(ctx, in.ThreadID, 0) {
		if err != nil {
			return nil, from, nil, err
		}
		if entry.Seq > st.Seq {
			break
		}
		e.Known(entry)
	}
	for _, a := range answers {
		if err := s.runs.Answer(ctx, in.ThreadID, a); err != nil {
			return nil, from, nil, err
		}
	}
	waits, err = agent.Pending(ctx, s.runs.Journal(), in.ThreadID)
	return e, stream.Position{Seq: st.Seq}, waits, err
}

// attend tells a run until it is over, or the client is gone. It gives the end.
func (s *Server) attend(ctx context.Context, e *agui.Encoder, session string, from stream.Position, send func([]agui.Event) error) ([]agui.Event, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for news, err := range s.runs.Follow(ctx, session, from) {
		if err != nil {
			return nil, err
		}
		for _, v := range news.Events {
			if err := send(e.Tell(v)); err != nil {
				return nil, err
			}
			switch d := e.End.(type) {
			case nil:
				if e.Left != "" {
					return nil, errdefs.NotAvailable.Errorf("serve: the run was left: %s", e.Left)
				}
			case journal.RunFinished:
				s.runs.Settle(ctx, session, v.Run)
				return finished(e, d), nil
			case journal.Parked:
				if d.Cause != string(engine.CauseAwaitingPerson) {
					return e.Fail(errdefs.Interrupted.Error(), fmt.Sprintf("the run was interrupted (%s) and can be resumed", cmp.Or(d.Detail, d.Cause))), nil
				}
				waits, err := agent.Pending(ctx, s.runs.Journal(), session)
				if err != nil {
					return nil, err
				}
				if len(waits) > 0 {
					return e.Finish(interrupted(waits)), nil
				}
				e.End = nil // it was answered meanwhile, and goes on
			}
		}
	}
	return nil, context.Cause(ctx)
}

// finished is the end of a run as it is on record.
func finished(e *agui.Encoder, d journal.RunFinished) []agui.Event {
	switch d.Status {
	case string(agent.StatusCompleted):
		return e.Finish(agui.Outcome{Type: "success"})
	case string(agent.StatusCanceled):
		return e.Finish(agui.Outcome{Type: "cancelled"})
	}
	return e.Fail(cmp.Or(d.Class, d.Status), cmp.Or(d.Error, d.Reason, d.Status))
}

func interrupted(waits []journal.Pending) agui.Outcome {
	o := agui.Outcome{Type: "interrupt"}
	for _, p := range waits {
		o.Interrupts = append(o.Interrupts, agui.InterruptOf(p))
	}
	return o
}
