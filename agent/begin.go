package agent

import (
	"cmp"
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

// fits checks the request against the session, and completes it from there.
func (t *turn) fits() error {
	if t.resume != nil {
		return t.resumes()
	}
	if req := t.req; t.log.Ran(req.RunID) {
		return errdefs.Conflict.Errorf("agent: session %s has a run %s already: give another RunID, or none; an unfinished run goes on with Resume", req.ContextID, req.RunID)
	}
	return nil
}

// resumes checks whether the run that is asked for is there to be resumed.
func (t *turn) resumes() error {
	st, req := t.log.State(), t.req
	from := *t.resume // the caller's stays as it is
	from.ExecID, from.Session, from.Seq = cmp.Or(req.RunID, st.Run), req.ContextID, cmp.Or(from.Seq, st.Seq)
	if st.Run != "" {
		from.SpecVersion = cmp.Or(st.Version, from.SpecVersion)
	}
	switch can := engine.CapabilitiesOf(t.eng); {
	case st.Seq < from.Seq:
		return errdefs.Conflict.Errorf("agent: the checkpoint is at entry %d of session %s, which has %d here: it is of another journal", from.Seq, req.ContextID, st.Seq)
	case st.Run == "":
		return t.nothingToResume(req.ContextID)
	case st.Run != from.ExecID:
		return errdefs.NotFound.Errorf("agent: session %s has no unfinished run %s: it has %s", req.ContextID, from.ExecID, st.Run)
	case st.Agent != t.ag.ID:
		return errdefs.Conflict.Errorf("agent: the unfinished run of session %s is of agent %q, not %q: resume it with that one", req.ContextID, st.Agent, t.ag.ID)
	case st.Engine != "" && st.Engine != can.Name:
		return errdefs.Conflict.Errorf("agent: the unfinished run of session %s is driven by the engine %q, not %q: resume it with that one", req.ContextID, st.Engine, can.Name)
	}
	if r, ok := t.eng.(engine.Resumer); ok {
		if err := guard("the engine", func() error { return r.CanResume(from) }); err != nil {
			return err
		}
	}
	t.resume, req.RunID, req.TaskID = &from, from.ExecID, cmp.Or(req.TaskID, st.Task)
	t.info.RunID, t.info.TaskID = req.RunID, req.TaskID
	return nil
}

func (c *config) nothingToResume(session string) error {
	if c.private {
		return errdefs.NotFound.Errorf("agent: session %s has no unfinished run: no journal was given, see WithJournal", session)
	}
	return errdefs.NotFound.Errorf("agent: session %s has no unfinished run", session)
}

// ready opens the session, leases it, if it is there, and reads it to its end: what is decided from here on holds until the run has begun.
func (t *turn) ready(ctx context.Context) error {
	if t.log == nil {
		log, err := t.opening(ctx, t.req.ContextID)
		if err != nil {
			return err
		}
		if t.log = log; t.opened != nil {
			t.opened(log)
		}
	}
	if t.log.Seq() > 0 {
		if t.resume != nil {
			t.info.RunID = cmp.Or(t.req.RunID, t.log.Run())
		}
		if err := t.own(ctx); err != nil {
			return err
		}
		if err := t.log.Refresh(ctx); err != nil {
			return err
		}
	}
	if t.behind > 0 && t.log.Seq() != t.behind {
		return errBegun
	}
	return t.fits()
}

// opening gives the session; the runs of a team's prompt share one log.
func (c *config) opening(ctx context.Context, session string) (*journal.Log, error) {
	if c.relay != nil {
		return c.relay.log, nil
	}
	return c.open(ctx, c.store, session)
}

// errBegun is of a session in which somebody else began a run.
var errBegun = errdefs.Conflict.Errorf("agent: somebody else began a run in the session")

// start begins an attempt, or goes on with one.
func (t *turn) start(ctx context.Context, run *engine.Run) (*engine.Board, error) {
	t.trace = run.Trace
	board, err := t.takeUp(ctx, run.Attempt)
	if err == nil {
		for _, text := range t.warnings {
			t.tell(ctx, event.Event{Entry: journal.Entry{Run: t.info.RunID}, Delta: event.Warning, Text: text})
		}
		t.warnings = nil
	}
	return board, err
}

// takeUp journals the beginning and makes the board from it: nothing happens before the user's message is durable.
func (t *turn) takeUp(ctx context.Context, n int) (*engine.Board, error) {
	if t.resume != nil {
		return t.goOn(ctx)
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

// goOn journals that the run is resumed, and makes the board that it began with.
func (t *turn) goOn(ctx context.Context) (*engine.Board, error) {
	resumed := []journal.Entry{{Run: t.info.RunID, Data: journal.Resumed{Owner: t.driver(), Terms: t.record}}}
	if err := t.log.Drive(ctx, t.driver(), resumed...); err != nil {
		return nil, err
	}
	board := t.seedBoard()
	t.publish(ctx, resumed...)
	return board, nil
}

// seedBoard is the board that the unfinished run began with, as it is on record.
func (t *turn) seedBoard() *engine.Board {
	st := t.log.State()
	return newBoard(st.Seed, st.Inputs, st.Seeded)
}

// errMeanwhile is of a beginning that was made for a session which has got further.
var errMeanwhile = errdefs.Conflict.Errorf("agent: the session has got further")

// begin begins an attempt, once. A new session is made first, and leased, so that no driver finds a run in it that seems to be nobody's. What a seeder made holds for
// the transcript that it saw only.
func (t *turn) begin(ctx context.Context, n int) (*engine.Board, error) {
	seen := t.log.Seq()
	begin := t.beginning(seen, n)
	board, rest, broken := t.seeded(ctx, n, &begin)
	if broken != nil && (n > 1 || !errors.As(broken, new(*errdefs.Panic))) {
		return nil, broken
	}
	var closing []string // the tasks of an unfinished run whose place this one takes
	closed := t.log.Run()
	if closed != "" && n == 1 {
		closing = tasksOn(t.log)
	}
	// When a seeder panicked, what the user said is kept, and so is the stack.
	if err := t.fence(ctx, n, seen, board != nil, begin); err != nil {
		return nil, errors.Join(broken, err)
	}
	if t.publish(ctx, begin...); broken != nil {
		t.began = true
		return nil, broken
	}
	t.warnOfClosed(ctx)
	if err := t.abandon(ctx, above{t.log, closed, t.driver()}, closing); err != nil {
		t.tell(ctx, event.Event{Entry: journal.Entry{Run: t.info.RunID}, Delta: event.Warning, Text: fmt.Sprintf("tasks of the run that this prompt closes were not ended: %v", err)})
	}
	seed := t.log.Transcript()
	if board == nil {
		return newBoard(seed, t.req.Inputs, rest), nil
	}
	board.SetChannel(engine.MainChannel, seed) // the seeder's, made valid as the journal has it
	return board, nil
}

// beginning is what goes on record when attempt n begins, before what a seeder makes.
func (t *turn) beginning(seen int64, n int) []journal.Entry {
	can := engine.CapabilitiesOf(t.eng)
	if can.OpenWorld && t.untrusted == "" { // what it answers is a stranger's
		t.untrusted = "the agent " + t.ag.ID + ", which runs elsewhere"
	}
	begin := make([]journal.Entry, 0, 4) // all that it may have
	if seen == 0 {
		begin = append(begin, journal.Entry{Data: journal.SessionCreated{}})
	}
	begin = append(begin, journal.Entry{Run: t.info.RunID, Data: journal.RunStarted{
		Agent: t.ag.ID, User: t.attrs["user.id"], Task: t.req.TaskID, Owner: t.driver(), Attempt: n, Inputs: t.req.Inputs, ParentRun: t.parent,
		Engine: can.Name, Model: can.Model, Version: can.Version, Dir: t.dir, Trace: t.trace, Terms: t.record, Untrusted: t.untrusted,
	}})
	if n == 1 {
		begin = append(begin, journal.Entry{Run: t.info.RunID, Data: journal.Said{Message: t.req.Message, By: t.by()}})
	}
	return begin
}

// seeded adds what a seeder makes of the first board, if there is one: the board, and how it differs from the ordinary one. A nil board is the ordinary one, with that difference.
func (t *turn) seeded(ctx context.Context, n int, begin *[]journal.Entry) (board *engine.Board, rest journal.Board, broken error) {
	switch {
	case t.seed != nil:
		return t.newlySeeded(ctx, n, begin)
	case n > 1: // a seeder that this process does not have may have made it
		rest = t.reseed(begin)
	}
	return nil, rest, nil
}

func (t *turn) newlySeeded(ctx context.Context, n int, begin *[]journal.Entry) (board *engine.Board, rest journal.Board, broken error) {
	ordinary := t.log.State().With(*begin...).Messages
	if board, broken = t.askSeeder(ctx, n, ordinary); board == nil {
		return nil, rest, broken
	}
	rest = journal.Diff(engine.Snapshot{Vars: t.req.Inputs}, beside(board.Snapshot()))
	if err := rest.Check(); err != nil {
		return nil, rest, fmt.Errorf("agent: seed board (attempt %d): %w", n, err)
	}
	*begin = append(*begin, journal.Entry{Run: t.info.RunID, Data: journal.Seeded{Edit: message.Diff(ordinary, board.Channel(engine.MainChannel)), Board: rest}})
	return board, rest, nil
}

// reseed has a further attempt begin with what is on record of the first board.
func (t *turn) reseed(begin *[]journal.Entry) journal.Board {
	st := t.log.State()
	if !st.Seeded.IsZero() {
		*begin = append(*begin, journal.Entry{Run: t.info.RunID, Data: journal.Seeded{Edit: message.Edit{To: st.Seed.Len()}, Board: st.Seeded}})
	}
	return st.Seeded
}

// fence takes the session over. It is errMeanwhile when it was seen to its entry seen, has got further, and that matters.
func (t *turn) fence(ctx context.Context, n int, seen int64, matters bool, begin []journal.Entry) error {
	if seen == 0 && !t.private {
		matters = true
		err := t.log.Append(ctx, begin[:1]...)
		if errdefs.Conflict.Is(err) {
			if again := t.log.Refresh(ctx); again != nil || t.log.Seq() > 0 {
				return meanwhile(again)
			}
			return err // the name is taken by a session that the store does not show: see journal.Within
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
		err := t.log.DriveBehind(ctx, t.driver(), t.relay.behind, begin...)
		if err == nil {
			t.relay.behind = 0 // a further attempt stands behind the first
		}
		return err
	case t.behind > 0:
		err := t.log.DriveBehind(ctx, t.driver(), t.behind, begin...)
		if errdefs.Conflict.Is(err) {
			return errBegun
		}
		if err == nil {
			t.behind = 0
		}
		return err
	case !matters:
		return t.log.Drive(ctx, t.driver(), begin...)
	}
	err := t.log.DriveBehind(ctx, t.driver(), seen, begin...)
	if !errdefs.Conflict.Is(err) {
		return err
	}
	if refresh := t.log.Refresh(ctx); refresh != nil {
		return refresh
	}
	if t.log.Seq() == seen || n > 1 && t.log.Driver() != t.driver() {
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

// askSeeder asks the caller's seeder.
func (t *turn) askSeeder(ctx context.Context, n int, ordinary message.History) (board *engine.Board, err error) {
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
