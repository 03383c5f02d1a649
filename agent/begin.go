package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// fits checks the request against the session.
func (c *config) fits(log *journal.Log, ag Agent, eng engine.Engine, req *Request) error {
	st := log.State()
	if c.resume == nil {
		if log.Ran(req.RunID) {
			return errdefs.Conflict.Errorf("agent: session %s has a run %s already: give another RunID, or none; an unfinished run goes on with Resume", req.ContextID, req.RunID)
		}
		return nil
	}
	if req.RunID == "" {
		req.RunID = st.Run
	}
	if req.TaskID == "" {
		req.TaskID = st.Task
	}
	switch can := engine.CapabilitiesOf(eng); {
	case st.Run == "":
		return c.nothingToResume(req.ContextID)
	case st.Run != req.RunID:
		return errdefs.NotFound.Errorf("agent: session %s has no unfinished run %s: it has %s", req.ContextID, req.RunID, st.Run)
	case st.Agent != ag.ID:
		return errdefs.Conflict.Errorf("agent: the unfinished run of session %s is of agent %q, not %q: resume it with that one", req.ContextID, st.Agent, ag.ID)
	case st.Engine != "" && st.Engine != can.Name:
		return errdefs.Conflict.Errorf("agent: the unfinished run of session %s is driven by the engine %q, not %q: resume it with that one", req.ContextID, st.Engine, can.Name)
	}
	return nil
}

func (c *config) nothingToResume(session string) error {
	if c.private {
		return errdefs.NotFound.Errorf("agent: session %s has no unfinished run: no journal was given, see WithJournal", session)
	}
	return errdefs.NotFound.Errorf("agent: session %s has no unfinished run", session)
}

// ready leases the session, if it is there, and reads it to its end: what is decided from here on holds until the run has begun.
func (t *turn) ready(ctx context.Context) error {
	if t.log.Seq() == 0 {
		return nil
	}
	if err := t.own(ctx); err != nil {
		return err
	}
	if err := t.log.Refresh(ctx); err != nil {
		return err
	}
	if t.behind > 0 && t.log.Seq() != t.behind {
		return errBegun
	}
	return t.fits(t.log, t.ag, t.eng, t.req)
}

// errBegun is of a session in which somebody else began a run.
var errBegun = errdefs.Conflict.Errorf("agent: somebody else began a run in the session")

// start journals the beginning and makes the board from it: nothing happens before the user's message is durable.
func (t *turn) start(ctx context.Context, n int) (*engine.Board, error) {
	if t.resume != nil {
		resumed := []journal.Entry{{Run: t.info.RunID, Data: journal.Resumed{Owner: t.owner}}}
		if err := t.log.Drive(ctx, t.owner, resumed...); err != nil {
			return nil, err
		}
		st := t.log.State()
		t.publish(ctx, resumed...)
		return newBoard(st.Seed, st.Inputs, st.Seeded), nil
	}
	for {
		board, err := t.begin(ctx, n)
		if !errors.Is(err, errMeanwhile) {
			return board, err
		}
		if n > 1 { // the run is ours still: people said something
			continue
		}
		if err := t.ready(ctx); err != nil {
			return nil, err
		}
	}
}

// errMeanwhile is of a beginning that was made for a session which has got further.
var errMeanwhile = errdefs.Conflict.Errorf("agent: the session has got further")

// begin begins an attempt, once. A new session is made first, and leased, so that no driver finds a run in it that seems to be nobody's. What a seeder made holds for
// the transcript that it saw only.
func (t *turn) begin(ctx context.Context, n int) (*engine.Board, error) {
	can, st := engine.CapabilitiesOf(t.eng), t.log.State()
	var begin []journal.Entry
	if st.Seq == 0 {
		begin = append(begin, journal.Entry{Data: journal.SessionCreated{}})
	}
	begin = append(begin, journal.Entry{Run: t.info.RunID, Data: journal.RunStarted{
		Agent: t.ag.ID, User: t.attrs["user.id"], Task: t.req.TaskID, Owner: t.owner, Attempt: n, Inputs: t.req.Inputs, ParentRun: t.parent,
		Engine: can.Name, Model: can.Model, Dir: t.dir,
	}})
	if n == 1 {
		begin = append(begin, journal.Entry{Run: t.info.RunID, Data: journal.Said{Message: t.req.Message, By: t.by()}})
	}
	var ordinary message.History
	if t.seed != nil {
		ordinary = st.With(begin...).Messages
	}
	board, broken := t.seeded(ctx, n, ordinary)
	rest := journal.Board{}
	switch {
	case board != nil:
		rest = journal.Diff(engine.Snapshot{Vars: t.req.Inputs}, beside(board.Snapshot()))
		if err := rest.Check(); err != nil {
			return nil, fmt.Errorf("agent: seed board (attempt %d): %w", n, err)
		}
		begin = append(begin, journal.Entry{Run: t.info.RunID, Data: journal.Seeded{Edit: message.Diff(ordinary, board.Channel(engine.MainChannel)), Board: rest}})
	case broken == nil && n > 1 && t.seed == nil && !st.Seeded.IsZero(): // a seeder that this process does not have made it
		rest = st.Seeded
		begin = append(begin, journal.Entry{Run: t.info.RunID, Data: journal.Seeded{Edit: message.Edit{To: st.Seed.Len()}, Board: rest}})
	}
	if broken != nil && (n > 1 || !errors.As(broken, new(*errdefs.Panic))) {
		return nil, broken
	}
	// When a seeder panicked, what the user said is kept, and so is the stack.
	if err := t.fence(ctx, n, st.Seq, board != nil, begin); err != nil {
		return nil, errors.Join(broken, err)
	}
	if t.publish(ctx, begin...); broken != nil {
		t.began = true
		return nil, broken
	}
	t.warnOfClosed(ctx)
	seed := t.log.State().Messages
	if board == nil {
		return newBoard(seed, t.req.Inputs, rest), nil
	}
	board.SetChannel(engine.MainChannel, seed) // the seeder's, made valid as the journal has it
	return board, nil
}

// fence takes the session over. It is errMeanwhile when it was seen to its entry seen, has got further, and that matters.
func (t *turn) fence(ctx context.Context, n int, seen int64, matters bool, begin []journal.Entry) error {
	if seen == 0 && !t.private {
		matters = true
		err := t.log.Append(ctx, begin[:1]...)
		if errdefs.Conflict.Is(err) {
			return meanwhile(t.log.Refresh(ctx))
		}
		if err == nil {
			err = t.own(ctx)
		}
		if err == nil {
			err = t.log.Refresh(ctx)
		}
		if err != nil {
			return err
		}
		seen, begin = 1, begin[1:]
	}
	switch {
	case t.relay != nil && t.relay.behind > 0: // a hop begins where the run before it left the session
		err := t.log.DriveBehind(ctx, t.owner, t.relay.behind, begin...)
		if err == nil {
			t.relay.behind = 0 // a further attempt stands behind the first
		}
		return err
	case t.behind > 0:
		err := t.log.DriveBehind(ctx, t.owner, t.behind, begin...)
		if errdefs.Conflict.Is(err) {
			return errBegun
		}
		if err == nil {
			t.behind = 0
		}
		return err
	case !matters:
		return t.log.Drive(ctx, t.owner, begin...)
	}
	err := t.log.DriveBehind(ctx, t.owner, seen, begin...)
	if !errdefs.Conflict.Is(err) {
		return err
	}
	if refresh := t.log.Refresh(ctx); refresh != nil {
		return refresh
	}
	if t.log.Seq() == seen || n > 1 && t.log.State().Driver != t.owner {
		return err
	}
	return errMeanwhile
}

func meanwhile(err error) error {
	if err != nil {
		return err
	}
	return errMeanwhile
}

// warnOfClosed tells who listens that this run took the place of one that was unfinished, and what is given up with it.
func (t *turn) warnOfClosed(ctx context.Context) {
	closed := t.log.State().Closed
	if closed.Run == "" {
		return
	}
	text := "this prompt closes the unfinished run " + closed.Run
	for i, p := range closed.Pending {
		text += []string{", which waited for: ", ", "}[min(i, 1)] + p.ID
	}
	t.tell(ctx, event.Event{Entry: journal.Entry{Run: t.info.RunID}, Delta: event.Warning, Text: text})
}

// newBoard makes the board that a run begins with, from what is on record.
func newBoard(h message.History, vars journal.Vars, seeded journal.Board) *engine.Board {
	return engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: h}, Vars: vars}.With(seeded))
}

// beside is the board without the transcript, which is on record by itself.
func beside(s engine.Snapshot) engine.Snapshot {
	s.Channels = maps.Clone(s.Channels)
	delete(s.Channels, engine.MainChannel)
	return s
}

// seeded asks the caller's seeder, if there is one.
func (t *turn) seeded(ctx context.Context, n int, ordinary message.History) (board *engine.Board, err error) {
	if t.seed == nil {
		return nil, nil
	}
	ctx = context.WithValue(ctx, defaultBoardKey{}, newBoard(ordinary, t.req.Inputs, journal.Board{}))
	err = guard("the seeder", func() (err error) {
		board, err = t.seed(ctx, t.info, t.req)
		return err
	})
	if err == nil && board == nil {
		err = errdefs.Validation.Errorf("it gave no board")
	}
	if err != nil {
		return nil, fmt.Errorf("agent: seed board (attempt %d): %w", n, err)
	}
	return board, nil
}
