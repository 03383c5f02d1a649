package temporal

import (
	"context"
	"errors"
	"slices"
	"time"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// steps are engine.Steps in a workflow: each effect is an activity.
type steps struct {
	*under
	scopes []string
	beside bool // other branches may run beside these steps
}

// under is a path under way, which all its steps share. The coroutines of a workflow run one at a time.
type under struct {
	path     path
	timing   Timing
	live     *living // has activities in this process find the effect as it is
	done     map[journal.Key]journal.Data
	seen     int64             // the newest position that an activity told of
	intr     *engine.Interrupt // what the path was interrupted by
	answered int               // how often the workflow was told of an answer
	again    bool              // the workflow's history is long: it goes on in a new one
}

// errAgain ends a path whose workflow begins anew.
var errAgain = errdefs.Interrupted.Errorf("temporal: the workflow goes on with a new history")

// unread is what a workflow's task panics with when the journal can't be read: it is tried again.
type unread struct{ err error }

func (u unread) Error() string { return "temporal: the journal can't be read: " + u.err.Error() }

// Do has activities perform what is not on record.
func (s *steps) Do(ctx context.Context, effects ...engine.Effect) ([]journal.Data, error) {
	effects = engine.InScopes(s.scopes, s.beside, effects)
	out := make([]journal.Data, len(effects))
	for from, to := 0, 0; from < len(effects); from = to {
		for to = from + 1; to < len(effects) && to-from < together && engine.Together(effects[from], effects[to]); to++ {
		}
		if err := s.group(ctx, effects[from:to], out[from:to]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// together bounds how many effects, or branches of one Branch, run at the same time.
const together = 16

// group performs effects together.
func (s *steps) group(ctx context.Context, effects []engine.Effect, out []journal.Data) error {
	missing := false
	for i, e := range effects {
		out[i] = s.done[e.Key()]
		missing = missing || out[i] == nil
	}
	if !missing {
		return nil
	}
	wf := workflowOf(ctx)
	if err := s.may(ctx, wf); err != nil {
		return err
	}
	futures := make([]workflow.Future, len(effects))
	for i, e := range effects {
		if out[i] == nil {
			futures[i] = s.begin(wf, e)
		}
		if !e.Concurrent() { // the next one is a question beside this one: they are put in order
			if err := s.end(ctx, wf, e, futures[i], &out[i]); err != nil {
				return err
			}
			futures[i] = nil
		}
	}
	errs := make([]error, len(effects))
	for i, e := range effects {
		errs[i] = s.end(ctx, wf, e, futures[i], &out[i])
	}
	return join(errs)
}

// may reports whether anything new may begin.
func (s *steps) may(ctx context.Context, wf workflow.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.intr != nil {
		return engine.InterruptedError{Interrupt: *s.intr}
	}
	info := workflow.GetInfo(wf)
	if info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= s.timing.Events || info.GetCurrentHistorySize() >= s.timing.Bytes {
		s.again = true
	}
	if s.again {
		return errAgain
	}
	return nil
}

// begin starts the activity of an effect.
func (s *steps) begin(wf workflow.Context, e engine.Effect) workflow.Future {
	s.live.put(e)
	key := e.Key()
	name, options := stepActivity, workflow.ActivityOptions{
		StartToCloseTimeout: s.timing.Effect, HeartbeatTimeout: s.timing.Heartbeat, WaitForCancellation: true, Summary: key.String(),
		RetryPolicy: &sdk.RetryPolicy{InitialInterval: s.timing.Again, BackoffCoefficient: 2, MaximumInterval: s.timing.Slowest},
	}
	switch engine.Bare(e).(type) {
	case engine.Generate, engine.Compact:
		name = modelActivity
	case engine.UseTool:
		name = toolActivity
	}
	in := step{
		Session: s.path.Session, Run: s.path.Run, Driver: s.path.Driver, Member: s.path.Member, Key: key, Attrs: s.path.Attrs, Unknown: s.path.Unknown, AskTTL: s.path.AskTTL, Tools: s.path.Tools,
	}
	if _, ok := engine.Bare(e).(engine.Prepare); ok {
		in.System = s.path.System
	}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(wf, options), name, in)
}

// end waits for the activity of an effect, and has a question wait for its answer.
func (s *steps) end(ctx context.Context, wf workflow.Context, e engine.Effect, f workflow.Future, out *journal.Data) error {
	for f != nil {
		var o outcome
		err := f.Get(wf, &o)
		s.live.done(e.Key())
		if err != nil {
			err = s.failed(err)
		}
		if o.data != nil {
			if o.key != e.Key() {
				return errdefs.Conflict.Errorf("temporal: entry %d of session %s is of %v, not of %v: it is not the code that began the run", o.Seq, s.path.Session, o.key, e.Key())
			}
			*out, s.seen = o.data, max(s.seen, o.Seq)
		}
		if err == nil {
			err = o.Error.err()
		}
		if !awaits(err) || *out != nil {
			return err
		}
		told := s.answered
		if err := s.wait(ctx, wf, o.Error.Deadline, func() bool { return s.answered > told }); err != nil {
			return err
		}
		f = s.begin(wf, e)
	}
	return nil
}

// failed is what an activity failed with.
func (s *steps) failed(err error) error {
	var app *sdk.ApplicationError
	if !errors.As(err, &app) && !sdk.IsCanceledError(err) && !sdk.IsTimeoutError(err) {
		panic(unread{err}) // what it gave can't be decoded
	}
	return received(err)
}

// awaits reports whether an effect waits for a person.
func awaits(err error) bool {
	var intr engine.InterruptedError
	return errors.As(err, &intr) && intr.Cause == engine.CauseAwaitingPerson
}

// wait waits until something happened, or until a deadline, as long as the path may go on.
func (s *steps) wait(ctx context.Context, wf workflow.Context, until time.Time, happened func() bool) error {
	over := func() bool { return happened() || s.intr != nil || s.again }
	var err error
	if until.IsZero() {
		err = workflow.Await(wf, over)
	} else {
		_, err = workflow.AwaitWithTimeout(wf, max(until.Sub(workflow.Now(wf)), 0), over)
	}
	if err != nil {
		return ctx.Err()
	}
	if happened() {
		return nil
	}
	return s.may(ctx, wf)
}

// Branch runs the branches as coroutines, each with a workflow context of its own.
func (s *steps) Branch(ctx context.Context, branches ...engine.Branch) error {
	wf := workflowOf(ctx)
	errs := make([]error, len(branches))
	sub := func(wf workflow.Context, i int) (err error) { //nolint:contextcheck // the coroutine's own context, which ctx stands for outside of it
		defer recovered("branch "+branches[i].Scope, &err)
		b := branches[i]
		return b.Run(onPath{wf}, &steps{s.under, append(slices.Clip(s.scopes), b.Scope), s.beside || len(branches) > 1})
	}
	if len(branches) == 1 {
		return sub(wf, 0)
	}
	free, all := workflow.NewSemaphore(wf, together), workflow.NewWaitGroup(wf)
	outside, _ := workflow.NewDisconnectedContext(wf) // all are waited for, also when the run is cancelled
	for i := range branches {
		if err := free.Acquire(outside, 1); err != nil {
			return err
		}
		all.Add(1)
		workflow.Go(wf, func(wf workflow.Context) {
			defer all.Done()
			defer free.Release(1)
			errs[i] = sub(wf, i)
		})
	}
	all.Wait(outside)
	return join(errs)
}

// recovered makes an error of a panic of the path: it fails the run, where a panic in a workflow would have its task tried again for ever.
func recovered(who string, err *error) {
	switch v := recover().(type) {
	case nil:
	case unread:
		panic(v)
	default:
		*err = errdefs.Recovered(who, v)
	}
}

// join gives the one error there is as it is, and joins several.
func join(errs []error) error {
	errs = slices.DeleteFunc(errs, func(e error) bool { return e == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	for _, e := range errs {
		if errors.Is(e, errAgain) { // the path is not over
			return errAgain
		}
	}
	return errors.Join(errs...)
}
