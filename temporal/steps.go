package temporal

import (
	"context"
	"errors"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
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
	limits   limits
	live     *living // has activities in this process find the effect as it is
	done     map[journal.Key]journal.Data
	seen     int64             // the newest position that an activity told of
	intr     *engine.Interrupt // what the path was interrupted by
	answered int               // how often the workflow was told of an answer
	again    bool              // the workflow's history is long: it goes on in a new one
	behind   behind
}

// errAgain ends a path whose workflow begins anew.
var errAgain = errdefs.Interrupted.Errorf("temporal: the workflow goes on with a new history")

// unread is what a workflow's task panics with when the journal can't be read, or the worker has not what the run needs: it is tried again, by any worker.
type unread struct{ err error }

func (u unread) Error() string { return "temporal: the run can't go on here, now: " + u.err.Error() }

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

// together bounds how many effects, or branches of one Branch, run at the same time. Histories depend on it.
const together = 16

// group performs effects together, those that may run side by side as coroutines.
func (s *steps) group(ctx context.Context, effects []engine.Effect, out []journal.Data) error {
	var missing []int
	for i, e := range effects {
		if out[i] = s.done[e.Key()]; out[i] == nil {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	wf := workflowOf(ctx)
	if err := s.may(ctx, wf); err != nil {
		return err
	}
	if len(missing) > 1 && effects[0].Concurrent() {
		return aside(wf, len(missing), func(wf workflow.Context, i int) (err error) {
			at := missing[i]
			out[at], err = s.perform(wf, effects[at])
			return err
		})
	}
	for _, at := range missing {
		var err error
		if out[at], err = s.perform(wf, effects[at]); err != nil {
			return err
		}
	}
	return nil
}

// may reports whether anything new may begin.
func (s *steps) may(ctx context.Context, wf workflow.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.goesOn(wf)
}

// patience is how many times as long a history may get while calls go on in the background: before a workflow goes on in a new one these are waited for, and one may wait for what the path does next.
const patience = 5

func (u *under) goesOn(wf workflow.Context) error {
	if u.intr != nil {
		return engine.InterruptedError{Interrupt: *u.intr}
	}
	info := workflow.GetInfo(wf)
	long := func(times int) bool {
		return info.GetCurrentHistoryLength() >= times*u.limits.Events || info.GetCurrentHistorySize() >= times*u.limits.Bytes
	}
	if len(u.behind.running) == 0 && (info.GetContinueAsNewSuggested() || long(1)) || long(patience) {
		u.again = true
	}
	if u.again {
		return errAgain
	}
	return nil
}

// perform has an effect done by activities.
func (s *steps) perform(wf workflow.Context, e engine.Effect) (journal.Data, error) {
	name, bare := stepActivity, engine.Bare(e)
	switch bare.(type) {
	case engine.Generate, engine.Compact:
		name = modelActivity
	case engine.UseTool:
		name = toolActivity
	}
	in := step{place: s.path.place, Inside: s.path.Inside}
	in.Key = e.Key()
	if _, ok := bare.(engine.Prepare); ok {
		in.System = s.path.System
	}
	if p, ok := bare.(engine.Pausing); ok { // a timer of the workflow: no worker waits
		if err := workflow.Sleep(wf, max(p.PausesUntil().Sub(workflow.Now(wf)), 0)); err != nil {
			return nil, context.Canceled
		}
	}
	s.live.put(e)
	defer s.live.done(in.Key)
	return s.through(wf, name, in)
}

// through has activities do something until it has an outcome, or an error: a run that it leaves to a workflow is done by one, an answer that it needs is waited for, and so are calls in the background.
func (u *under) through(wf workflow.Context, name string, in step) (journal.Data, error) {
	options := workflow.ActivityOptions{
		StartToCloseTimeout: u.timing.Effect, HeartbeatTimeout: u.timing.Heartbeat, WaitForCancellation: true, Summary: clip(in.Key.String(), mostSummary),
		RetryPolicy: &sdk.RetryPolicy{InitialInterval: u.timing.Again, BackoffCoefficient: 2, MaximumInterval: u.timing.Slowest},
	}
	for look := lookFirst; ; look = min(2*look, lookLast) {
		told, over := u.answered, u.behind.over // what happens from here on may not have been seen
		in.Driver = u.path.Driver
		var o outcome
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(wf, options), name, in).Get(wf, &o)
		if err != nil {
			err = failed(err)
		}
		if o.data != nil {
			if o.key != in.Key {
				return nil, errdefs.Conflict.Errorf("temporal: entry %d of session %s is of %v, not of %v: it is not the code that began the run", o.Seq, u.path.Session, o.key, in.Key)
			}
			u.seen = max(u.seen, o.Seq)
		}
		for _, call := range o.Behind {
			u.beginBehind(call)
		}
		if err == nil {
			err = o.Error.err()
		}
		intr := engine.InterruptedError{}
		switch {
		case o.Below != nil:
			in.Closes = u.below(wf, *o.Below)
			if wf.Err() != nil { // what is below is closed all the same
				wf, _ = workflow.NewDisconnectedContext(wf)
			}
			continue
		case o.data != nil || !errors.As(err, &intr):
			return o.data, err
		case intr.Cause == engine.CauseAwaitingPerson:
			err = u.wait(wf, o.Error.Deadline, look, func() bool { return u.answered > told })
		case intr.Cause == engine.CauseBackground:
			err = u.wait(wf, time.Time{}, look, func() bool { return u.behind.over > over || u.answered > told })
			if err == nil {
				err = u.behind.failed
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// failed is what an activity failed with.
func failed(err error) error {
	var app *sdk.ApplicationError
	if !errors.As(err, &app) && !sdk.IsCanceledError(err) && !sdk.IsTimeoutError(err) {
		panic(unread{err}) // what it gave can't be decoded
	}
	return received(err)
}

// What is waited for is in the journal, and whoever puts it there tells the workflow. One that was not told looks by itself, after a minute first, and then ever more seldom.
const (
	lookFirst = time.Minute
	lookLast  = time.Hour
)

// wait waits until something happened, or until it is time to look whether it has, as long as the path may go on.
func (u *under) wait(wf workflow.Context, deadline time.Time, look time.Duration, happened func() bool) error {
	if !deadline.IsZero() {
		look = min(look, max(deadline.Sub(workflow.Now(wf)), 0))
	}
	if _, err := workflow.AwaitWithTimeout(wf, look, func() bool { return happened() || u.intr != nil || u.again }); err != nil {
		return context.Canceled
	}
	if u.intr != nil && happened() {
		return nil
	}
	return u.goesOn(wf) // also when there is nothing else: who waits for months looks often
}

// below has a run below done by a workflow of its own, and gives how its path ended. It is interrupted, and cancelled, with this one.
func (u *under) below(wf workflow.Context, p path) *closed {
	c := &closed{Session: p.Session, Run: p.Run, Attempt: p.Attempt}
	apart, _ := workflow.NewDisconnectedContext(wf)
	for {
		f := child(wf, p)
		if err := f.GetChildWorkflowExecution().Get(apart, nil); sdk.IsWorkflowExecutionAlreadyStartedError(err) { // one of an earlier workflow is about to end
			if err := workflow.Sleep(wf, time.Second); err != nil {
				c.Error = failureOf(context.Canceled)
				return c
			}
			continue
		}
		for told := false; !f.IsReady(); told = true {
			if err := workflow.Await(apart, func() bool { return f.IsReady() || u.intr != nil && !told }); err == nil && u.intr != nil && !f.IsReady() {
				f.SignalChildWorkflow(apart, interruptSignal, interruption{string(u.intr.Cause), u.intr.Detail})
			}
		}
		if err := f.Get(apart, &c.ended); err != nil {
			c.Error = failureOf(received(err))
		}
		return c
	}
}

// child begins the workflow of a path below.
func child(wf workflow.Context, p path) workflow.ChildWorkflowFuture {
	wf = workflow.WithChildOptions(wf, workflow.ChildWorkflowOptions{
		WorkflowID: p.id(), ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL, WaitForCancellation: true, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	})
	return workflow.ExecuteChildWorkflow(wf, pathWorkflow, p)
}

// Branch runs the branches as coroutines, each with a workflow context of its own.
func (s *steps) Branch(ctx context.Context, branches ...engine.Branch) error {
	on, _ := ctx.(onPath)
	return aside(workflowOf(ctx), len(branches), func(wf workflow.Context, i int) error { //nolint:contextcheck // the coroutine's own context, which ctx stands for outside of it
		b := branches[i]
		return b.Run(onPath{wf, on.began, on.late}, &steps{s.under, append(slices.Clip(s.scopes), b.Scope), s.beside || len(branches) > 1})
	})
}

// aside runs jobs as coroutines, in order and so many together, and waits for all. One job runs in this one.
func aside(wf workflow.Context, n int, job func(wf workflow.Context, i int) error) error {
	errs := make([]error, n)
	sub := func(wf workflow.Context, i int) (err error) {
		defer recovered("a branch", &err)
		return job(wf, i)
	}
	if n == 1 {
		return sub(wf, 0)
	}
	free, all := workflow.NewSemaphore(wf, together), workflow.NewWaitGroup(wf)
	apart, _ := workflow.NewDisconnectedContext(wf) // all are waited for, also when the run is cancelled
	for i := range n {
		if err := free.Acquire(apart, 1); err != nil {
			return err
		}
		all.Add(1)
		workflow.Go(wf, func(wf workflow.Context) {
			defer all.Done()
			defer free.Release(1)
			errs[i] = sub(wf, i)
		})
	}
	all.Wait(apart)
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
