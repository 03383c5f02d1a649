package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/sandbox"
)

// Run executes one run. It returns (res, nil) for every outcome of the run, (nil, err) when it could not begin,
// and (res, err) when a decider, a committer or the journal failed. When the journal fails before the end, nothing more is begun and the run
// stays open: res is interrupted, with engine.CauseJournal, no decider is asked, and Resume goes on once the journal can be written.
func Run(ctx context.Context, ag Agent, eng engine.Engine, req Request, opts ...RunOption) (*Result, error) {
	t := new(turn)
	t.config, t.ag, t.eng, t.req = configure(opts), ag, eng, &req
	if err := guard("the engine", t.admit); err != nil {
		return nil, err
	}
	if req.ContextID == "" && t.resume != nil {
		req.ContextID = t.resume.Session
	}
	if req.ContextID == "" {
		req.ContextID = req.RunID
	}
	ctx = t.within(ctx)
	ctx, cancel, limit := limited(ctx, t.timeout)
	defer cancel()
	if t.limit = limit; limit == nil {
		t.limit = t.config.limit
	}
	t.owner, t.info = "driver-"+name(), RunInfo{t.ag.ID, req.RunID, req.TaskID, req.ContextID}
	if t.relay != nil {
		t.lease = &t.relay.lease
	} else {
		t.lease = &lease{store: t.store, session: req.ContextID, owner: t.owner}
		defer t.lease.release() //nolint:contextcheck // the run's context may have ended by then
	}
	return t.run(ctx)
}

// within puts what binds the run into its context.
func (t *turn) within(ctx context.Context) context.Context {
	t.bounds = t.config.bounds(ctx, &t.ag)
	ctx = engine.WithBounds(ctx, t.bounds)
	if t.sandbox != nil {
		ctx = sandbox.With(ctx, *t.sandbox)
	}
	return ctx
}

// bounds are what binds a run of the agent, and everything below it.
func (c *config) bounds(ctx context.Context, ag *Agent) engine.Bounds {
	own := engine.Bounds{Hooks: append(slices.Clone(ag.Hooks), c.hooks...), Budget: c.budget, Tracers: c.tracers}
	outer, ok := engine.BoundsFrom(ctx)
	if !ok {
		return own
	}
	return below(ctx, outer, own, ag)
}

// below are the bounds of a run that another one started.
func below(ctx context.Context, outer, own engine.Bounds, ag *Agent) engine.Bounds {
	if at, inside := engine.InsideOf(ctx); ag.ID != "" { // a run, and not only its budget
		var above hook.Where
		if inside {
			above = at.Run.Where()
		}
		own.Hooks = append(hook.Below(outer.Hooks, above, ag.ID), own.Hooks...)
	}
	return outer.Child(own)
}

// limited ends ctx after a time, 0 being none; limit is what that end means.
func limited(ctx context.Context, after time.Duration) (_ context.Context, _ context.CancelFunc, limit error) {
	if after <= 0 {
		return ctx, func() {}, nil
	}
	limit = errdefs.BudgetExceeded.Errorf("agent: the time limit of %v was reached: see WithTimeout", after)
	ctx, cancel := context.WithTimeoutCause(ctx, after, limit)
	return ctx, cancel, limit
}

// late gives the limit, when the time was over before anything began.
func late(ctx context.Context, limit, err error) error {
	if limit != nil && errdefs.Canceled(err) && errors.Is(context.Cause(ctx), limit) {
		return limit
	}
	return err
}

// Resume goes on with the session's unfinished run, wherever it died or was parked; NotFound when there is none. The agent, the engine
// and its tools have to be those of the run; what is on record is not done again.
func Resume(ctx context.Context, ag Agent, eng engine.Engine, session string, opts ...RunOption) (*Result, error) {
	return Run(ctx, ag, eng, Request{ContextID: session}, append(slices.Clip(opts), WithResumeFrom(&engine.Checkpoint{Session: session}))...)
}

// driver is who drives the session on record.
func (t *turn) driver() string {
	if engine.CapabilitiesOf(t.eng).Elsewhere {
		return elsewhere + t.info.RunID
	}
	return t.owner
}

// elsewhere begins the names of the drivers of such runs.
const elsewhere = "elsewhere-"

// admitEngine checks what runs and replays need alike.
func (c *config) admitEngine(ag *Agent, eng engine.Engine) error {
	switch {
	case eng == nil:
		return errdefs.Validation.Errorf("agent: an engine is needed")
	case ag.ID == "":
		return errdefs.Validation.Errorf("agent: the agent needs an id")
	}
	can := engine.CapabilitiesOf(eng)
	for _, t := range can.Needs {
		if !c.deps.Has(t) {
			return errdefs.NotFound.Errorf("agent: the engine %s needs a %v among its dependencies: see engine.Provide", engineName(eng), t)
		}
	}
	return nil
}

func engineName(eng engine.Engine) string {
	return cmp.Or(engine.CapabilitiesOf(eng).Name, fmt.Sprintf("%T", eng))
}

// admit checks everything that can be checked before anything runs.
func (t *turn) admit() error {
	c, ag, eng, req := t.config, &t.ag, t.eng, t.req
	if err := c.admitEngine(ag, eng); err != nil {
		return err
	}
	switch {
	case !c.unknown.Valid():
		return errdefs.Validation.Errorf("agent: the policy for calls of unknown outcome is %q: want %s, %s or %s", c.unknown, engine.UnknownReport, engine.UnknownAsk, engine.UnknownRetry)
	case c.timeout < 0:
		return errdefs.Validation.Errorf("agent: the time of the run is %v: want a time, or 0 for no limit", c.timeout)
	case !utf8.ValidString(ag.ID + req.ContextID + req.RunID + req.TaskID):
		return errdefs.Validation.Errorf("agent: an id is no UTF-8: of the agent %q, the context %q, the run %q and the task %q", ag.ID, req.ContextID, req.RunID, req.TaskID)
	case c.askTTL < 0:
		return errdefs.Validation.Errorf("agent: the time for answers is %v: want a time, or 0 for no limit", c.askTTL)
	}
	if c.private && engine.CapabilitiesOf(eng).Elsewhere {
		return errdefs.Validation.Errorf("agent: the engine %s has its effects done by other processes: the run needs the journal that it shares with them, see WithJournal", engineName(eng))
	}
	if c.resume != nil {
		if can := engine.CapabilitiesOf(eng); !can.Resume {
			return errdefs.NotAvailable.Errorf("agent: the engine %s can't resume: one that does all in effects says so by its Capabilities", engineName(eng))
		}
		if req.RunID != "" && c.resume.ExecID != "" && req.RunID != c.resume.ExecID {
			return errdefs.Validation.Errorf("agent: the request is for run %s, the checkpoint is of run %s: leave the request's RunID out", req.RunID, c.resume.ExecID)
		}
		req.RunID = cmp.Or(c.resume.ExecID, req.RunID)
		return nil
	}
	if req.Message.IsZero() || req.Message.Blank() {
		return errdefs.Validation.Errorf("agent: the request has no message, or an empty one")
	}
	if err := journal.Vars(req.Inputs).Check(); err != nil {
		return errdefs.Validation.Errorf("agent: the request's Inputs are journaled: %w; what lives in the process goes to the engine by engine.Provide", err)
	}
	if r := req.Message.Role(); r != message.RoleUser {
		return errdefs.Validation.Errorf("agent: the request's message is in the role %q: make it a user's", r)
	}
	if req.RunID == "" {
		req.RunID = "run-" + name()
	}
	return nil
}

// turn is one Run under way.
type turn struct {
	*config
	ag         Agent
	eng        engine.Engine
	log        *journal.Log
	req        *Request
	bounds     engine.Bounds
	limit      error // what the context ends with when the time of the run is over; nil: there is no limit
	info       RunInfo
	owner      string        // of the lease, and but for engines whose effects are done elsewhere the driver of the session
	spent      journal.Spent // before it was resumed
	completed  bool          // the engine had no error
	began      bool          // it is on record that the run began
	unfinished bool          // it was left to be resumed
	lease      *lease
	record     json.RawMessage // the run's terms, for the record
	trace      string          // the attempt's place in a trace, for the record
}

func (t *turn) run(ctx context.Context) (*Result, error) {
	if err := t.ready(ctx); err != nil {
		return nil, late(ctx, t.limit, err)
	}
	ctx, err := t.agree(ctx)
	if err != nil {
		return nil, err
	}
	first := 1
	if t.resume != nil {
		if first, err = t.recall(ctx); err != nil {
			return nil, late(ctx, t.limit, err)
		}
	}
	var prev *Result
	for attempt := first; ; attempt++ {
		res, again, err := t.attempt(ctx, attempt)
		if res == nil && prev == nil && t.began { // its seeder panicked
			t.observe(func(o Observer) { o.OnRunStart(ctx, t.info, t.req) })
			prev = &Result{LastBoard: t.seedBoard()}
		}
		if res == nil && prev != nil { // a further attempt could not begin: the run fails, and what there was stays
			res = t.result(ctx, prev.LastBoard, err, prev.Attempts)
			res.Messages, res.Artifacts = prev.Messages, prev.Artifacts
			if err = t.log.Failed(); err == nil {
				err = t.finish(ctx, res, FinalizeDecision{}, nil)
			} else {
				t.left(ctx, err)
			}
		}
		if t.resume = nil; again {
			prev = res
			t.observe(func(o Observer) { o.OnRunRevise(ctx, t.info, res, attempt+1) })
			continue
		}
		if over := res == nil || res.Status != StatusInterrupted && !t.unfinished; over && t.relay == nil { // a team's prompt goes on
			t.bounds.Budget.Leave(t.info.RunID)
		}
		if res != nil {
			t.observe(func(o Observer) { o.OnRunEnd(context.WithoutCancel(ctx), t.info, res) })
		} else {
			err = late(ctx, t.limit, err)
		}
		return res, err
	}
}

// recall takes over what is on record of a run that is resumed, and gives the number of its attempt.
func (t *turn) recall(ctx context.Context) (attempt int, err error) {
	st := t.log.State()
	t.spent = st.RunSpent
	if t.bounds.Budget != nil {
		below, err := tasksSpent(ctx, t.store, t.info.ContextID, t.info.RunID)
		if err != nil {
			return 0, err
		}
		t.spent = t.spent.Plus(below)
	}
	t.req.Inputs, t.req.Message = st.Inputs, st.Prompt // a further attempt begins with them
	return st.Attempt, nil
}

// tasksSpent is what a run's finished tasks spent, and those below them: one that is not finished counts itself, and what is below it, when it goes on.
func tasksSpent(ctx context.Context, store journal.Store, session, run string) (sum journal.Spent, err error) {
	below, err := journal.Tasks(ctx, store, session)
	if err != nil {
		return sum, err
	}
	var mine, open []string // sessions of the run's own finished tasks, and of any unfinished one
	spent := map[string]journal.Spent{}
	for _, session := range below {
		log, err := journal.Open(ctx, store, session)
		if err != nil {
			return sum, err
		}
		switch st := log.State(); {
		case st.Run != "":
			open = append(open, session)
		case st.ParentRun == run:
			mine = append(mine, session)
			fallthrough
		default:
			spent[session] = st.Spent
		}
	}
	under := func(session string) func(string) bool {
		return func(above string) bool { return session == above || strings.HasPrefix(session, above+"/") }
	}
	for session, s := range spent {
		if slices.ContainsFunc(mine, under(session)) && !slices.ContainsFunc(open, under(session)) {
			sum = sum.Plus(s)
		}
	}
	return sum, nil
}

// attempt runs the engine once and says whether a decider wants it again.
func (t *turn) attempt(ctx context.Context, n int) (res *Result, again bool, err error) {
	var end error // for those who trace
	run := &engine.Run{
		ID: t.info.RunID, ParentRunID: t.parent, AgentID: t.ag.ID, Session: t.info.ContextID, Attempt: n, System: t.ag.Instructions, Tools: slices.Clone(t.ag.Tools),
		Attributes: t.attributes(n), OutputModes: t.req.outputModes(), Deps: t.deps, Bounds: t.bounds, Values: new(engine.Values), Log: t.log, ResumeFrom: t.resume,
		Unknown: t.unknown, AskTTL: t.askTTL, Trace: t.follows(n),
	}
	ctx, traced := engine.TraceRun(ctx, run)
	defer func() { traced(end) }()
	board, err := t.start(ctx, run)
	if err != nil {
		end = err
		return nil, false, err
	}
	t.bounds.Budget.Enter(t.info.RunID, t.spent)
	seed := board.Channel(engine.MainChannel)
	run.Background = engine.NewBackground(ctx, t.host)
	defer run.Background.End()
	ctx = engine.WithWarnings(ctx, run)
	t.observe(func(o Observer) { o.OnRunStart(ctx, t.info, t.req) })
	last, execErr := t.execute(ctx, run, board)
	t.completed = execErr == nil
	switch intr := (engine.InterruptedError{}); {
	case t.log.Failed() != nil, errdefs.Conflict.Is(execErr), t.isLeft(ctx, execErr): // the run is not over: it goes on later, or elsewhere
		run.Background.Leave()
	case errors.As(execErr, &intr):
		run.Background.Park(ctx, t.host, intr.Interrupt)
	}
	run.Background.End()
	run.Background.Flush(ctx, t.host)
	if last == nil {
		last = board
	}
	res = t.result(ctx, last, execErr, n)
	end = res.Err
	res.Messages, res.Artifacts = t.added(seed, last.Channel(engine.MainChannel)), t.harvest(last)
	if err := t.log.Failed(); err != nil { // the run is not over: to close it would make unknown what a resume can still know
		t.left(ctx, err)
		return res, false, err
	}
	if t.isLeft(ctx, execErr) { // nor is it for the run above, or where the engine has it go on
		t.left(ctx, engine.ErrLeft)
		return res, false, engine.ErrLeft
	}
	res.Committed = res.Status == StatusCompleted // unless a decider says otherwise
	d, err := t.decide(ctx, res)
	end = res.Err
	if err == nil && d.Revise && res.Status == StatusCompleted && n < t.revise {
		res.Committed = false
		return res, true, nil
	}
	res.Committed = err == nil && !d.DiscardOutput && (res.Status == StatusCompleted || d.AcceptOutput)
	return res, false, t.finish(ctx, res, d, err)
}

// follows is the trace of what an attempt follows, in its own session: what goes on is one trace, whichever process goes on.
func (t *turn) follows(n int) string {
	if hop := t.relay != nil && t.relay.behind > 0; hop || n > 1 || t.resume != nil {
		return t.log.State().Trace
	}
	return ""
}

// isLeft reports whether the run above is left unfinished, so that this one has to be, too, or the engine leaves it to others.
func (t *turn) isLeft(ctx context.Context, err error) bool {
	return errors.Is(err, engine.ErrLeft) || ctx.Err() != nil && errors.Is(context.Cause(ctx), engine.ErrLeft)
}

// publish tells the host.
func (t *turn) publish(ctx context.Context, entries ...journal.Entry) {
	for _, e := range entries {
		t.tell(ctx, event.Event{Entry: e})
	}
}

// tell tells the host, if it listens. A listener cannot fail a run.
func (t *turn) tell(ctx context.Context, e event.Event) {
	if engine.Listening(t.host) {
		e.Session, e.ParentRun = t.info.ContextID, t.parent
		_ = guard("the host", func() error { return t.host.Publish(ctx, e) })
	}
}

// execute runs the engine; its panic fails the run, not the process.
func (t *turn) execute(ctx context.Context, run *engine.Run, board *engine.Board) (last *engine.Board, err error) {
	ctx = context.WithValue(ctx, requestKey{}, t.req)
	err = guard("the engine", func() (err error) {
		last, err = t.eng.Execute(ctx, *run, t.host, board)
		return err
	})
	return last, err
}

func (t *turn) observe(f func(Observer)) {
	for _, list := range [][]Observer{t.ag.Observers, t.observers} {
		for _, o := range list {
			_ = guard("an observer", func() error { f(o); return nil })
		}
	}
}

// guard turns a panic into an error.
func guard(who string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errdefs.Recovered(who, p)
		}
	}()
	return f()
}

func name() string { return strings.ToLower(rand.Text()) }
