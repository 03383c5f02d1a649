package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/stream"
)

// known finds a run of a session by its name: under way here, or on record; nil when there is none. One that was left by its process goes on. Conflict when it was asked something else than m.
func (r *Runs) known(ctx context.Context, session, id string, m message.Message) (*Run, error) {
	if run := r.Of(session); run != nil && r.id(run) == id {
		begun, err := run.await(ctx)
		switch {
		case begun != nil:
			if err := r.asked(ctx, session, id, m); err != nil {
				return nil, err
			}
			return &Run{Session: session, ID: id, Known: true, from: run.from, going: run.going}, nil
		case !errdefs.Conflict.Is(err): // else somebody else asked for it by its name too, and it is on record
			return nil, err
		}
	}
	var known *Run
	left := false
	for e, err := range r.Journal().Read(ctx, session, 0) {
		if err != nil {
			return nil, err
		}
		if e.Run != id {
			continue
		}
		switch d := e.Data.(type) {
		case journal.RunStarted:
			if known == nil {
				known = &Run{Session: session, ID: id, Known: true, from: stream.Position{Seq: e.Seq - 1}, going: over()}
			}
			left = true
		case journal.Resumed:
			left = true
		case journal.Parked:
			left = d.Cause == string(engine.CauseHostShutdown)
		case journal.RunFinished:
			left = false
		}
	}
	if known == nil {
		return nil, nil
	}
	if err := r.asked(ctx, session, id, m); err != nil {
		return nil, err
	}
	if !left {
		return known, nil
	}
	run, err := r.Resume(ctx, session)
	switch {
	case err == nil:
		known.going = run.going
	case errdefs.Conflict.Is(err), errdefs.NotFound.Is(err): // it lives elsewhere, or another run has taken its place
	default:
		return nil, err
	}
	return known, nil
}

// asked is Conflict when a run that is on record was asked something else than m.
func (r *Runs) asked(ctx context.Context, session, id string, m message.Message) error {
	for e, err := range r.Journal().Read(ctx, session, 0) {
		if err != nil {
			return err
		}
		d, ok := e.Data.(journal.Said)
		if !ok || e.Run != id || e.Key != (journal.Key{}) {
			continue
		}
		was, err := json.Marshal(d.Message)
		if err != nil {
			return err
		}
		if is, err := json.Marshal(m); err != nil || !bytes.Equal(was, is) {
			return errors.Join(err, errdefs.Conflict.Errorf("serve: session %s has a run %s, which was asked something else: give this one another name, or none", session, id))
		}
		return nil
	}
	return nil
}
