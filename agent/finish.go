package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// What a run leaves in Result.State.
const (
	StateRunID          = "run_id"          // the run's id
	StateFinalizeReason = "finalize_reason" // why a decider decided, or [CommitFailed]
)

// CommitFailed is the finalize reason of a run that a committer failed to store. The run stays open: Resume asks the deciders and the committers again.
const CommitFailed = "commit_failed"

// added is what a run's engine put behind its seed, or behind what the PreGeneration hooks made of the seed: that is not the run's own.
func (t *turn) added(seed, last message.History) []message.Message {
	if said, ok := t.log.State().Said(); ok {
		return said
	}
	if d, _ := t.log.Recorded(engine.Prepare{}.Key()); d != nil {
		if p, ok := d.(journal.Prepared); ok {
			if e := message.Diff(seed.Edit(p.Edit), last); len(e.Head) == 0 && e.From == 0 && e.To > 0 {
				return e.Tail
			}
		}
	}
	e := message.Diff(seed, last)
	if e.From == e.To { // nothing of the seed was kept
		return append(slices.Clip(e.Head), e.Tail...)
	}
	return e.Tail
}

// result says how the run ended.
func (t *turn) result(ctx context.Context, last *engine.Board, err error, n int) *Result {
	st := t.log.State()
	res := &Result{
		TaskID: t.req.TaskID, ContextID: t.info.ContextID, RunID: t.info.RunID, Attempts: n, Err: err, LastBoard: last,
		State: map[string]any{StateRunID: t.info.RunID}, Usage: st.RunSpent.Usage, Cost: st.RunSpent.Cost(), Steps: st.RunSpent.Steps,
	}
	var intr engine.InterruptedError
	failed := t.log.Failed()
	switch {
	case failed != nil: // whatever the engine made of it
		res.Status, res.Cause, res.Pending, res.Err = StatusInterrupted, engine.CauseJournal, st.Pending, failed
	case t.isLeft(ctx, err):
		res.Status, res.Cause, res.Err = StatusInterrupted, engine.CauseJournal, engine.ErrLeft
	case err == nil:
		res.Status = StatusCompleted
	case t.limit != nil && errdefs.Canceled(err) && errors.Is(context.Cause(ctx), t.limit):
		res.Status, res.Err = StatusFailed, t.limit
	case errors.As(err, &intr):
		res.Status, res.Cause, res.Pending = StatusInterrupted, intr.Cause, t.pending(ctx, st)
		t.observe(func(o Observer) { o.OnInterrupt(ctx, t.info, intr.Interrupt) })
	case errdefs.Interrupted.Is(err):
		res.Status, res.Cause, res.Pending = StatusInterrupted, engine.CauseCustom, t.pending(ctx, st)
	case errdefs.Canceled(err) && ctx.Err() != nil: // the caller's context, not one that an engine or a client made
		res.Status = StatusCanceled
	case errdefs.Aborted.Is(err):
		res.Status = StatusAborted
	default:
		res.Status = StatusFailed
	}
	return res
}

// pending is what waits for a person, here and in the tasks below.
func (t *turn) pending(ctx context.Context, st journal.State) []journal.Pending {
	all, err := pending(context.WithoutCancel(ctx), t.log)
	if err != nil { // what is known here is better than nothing
		return st.Pending
	}
	return seenFrom(all)
}

// decide asks every decider, in order. The first error ends it: then nothing is committed.
func (t *turn) decide(ctx context.Context, res *Result) (all FinalizeDecision, err error) {
	ctx = context.WithoutCancel(ctx) // a run that was cancelled is judged too
	for _, d := range append(slices.Clone(t.ag.Deciders), t.deciders...) {
		if d == nil {
			continue
		}
		var one FinalizeDecision
		err = guard("a decider", func() (err error) {
			one, err = d.BeforeFinalize(ctx, t.info, t.req, res)
			return err
		})
		if err != nil {
			delete(res.State, HandoffStateKey) // a run that is not judged hands nothing over
			if errors.As(err, new(*errdefs.Panic)) && res.Status == StatusCompleted {
				res.Status, res.Err = StatusFailed, err
			}
			return all, err
		}
		all.AcceptOutput, all.DiscardOutput, all.Revise = all.AcceptOutput || one.AcceptOutput, all.DiscardOutput || one.DiscardOutput, all.Revise || one.Revise
		if all.Reason == "" {
			all.Reason = one.Reason
		}
		maps.Copy(res.State, one.State)
	}
	if all.Reason != "" {
		res.State[StateFinalizeReason] = all.Reason
	}
	return all, nil
}

// finish commits and closes the run in the journal, or leaves it open when it was interrupted or a committer failed. failed is the deciders' error. What is committed comes
// before the end is on record: a process that dies in between is resumed, and commits again, under the same run id.
func (t *turn) finish(ctx context.Context, res *Result, d FinalizeDecision, failed error) error {
	ctx = context.WithoutCancel(ctx)
	undone, err := t.commit(ctx, res)
	if err != nil {
		t.left(ctx, err)
		return either(failed, err)
	}
	end := t.end(res, d, failed, undone)
	_, t.unfinished = end.(journal.Parked)
	if !t.unfinished {
		if err := t.abandon(ctx, above{t.log, t.info.RunID, t.driver()}, tasksOn(t.log)); err != nil { // before the end is on record: a process that dies in between is resumed
			res.Committed = false
			t.left(ctx, err)
			return either(failed, err)
		}
	}
	var entry []journal.Entry
	if !t.unfinished && !d.DiscardOutput {
		if err := t.reportCanceled(ctx, res); err != nil {
			res.Committed = false
			t.left(ctx, err)
			return either(failed, err)
		}
		entry = t.unrecorded(res)
	}
	entry = append(entry, journal.Entry{Run: t.info.RunID, Data: end})
	if err := t.log.Append(ctx, entry...); err != nil {
		res.Committed = false
		t.left(ctx, err)
		return either(failed, err)
	}
	t.publish(ctx, entry...)
	return either(failed, undone)
}

// reportCanceled tells the next run of what went on in the background and ended with this one: its model was promised a result.
func (t *turn) reportCanceled(ctx context.Context, res *Result) error {
	for _, c := range t.log.Background() {
		text := fmt.Sprintf("[%s %s was canceled: the run that it was a part of ended as %s. There is no result.]", c.Name, c.ID, res.Status)
		err := t.log.Report(ctx, t.info.RunID, c.ID, false, engine.Tell{Text: text, Why: engine.WhyResult}.Message())
		if err != nil && (!errdefs.Conflict.Is(err) || t.log.Failed() != nil) { // it got on record at the last moment
			return err
		}
	}
	return nil
}

// unrecorded is what the engine put behind the transcript by itself, without an effect: a session has all that a run said.
func (t *turn) unrecorded(res *Result) []journal.Entry {
	then, now := t.log.Transcript(), res.LastBoard.Channel(engine.MainChannel)
	if now.Len() <= then.Len() {
		return nil
	}
	for i, m := range then.All() {
		if n := now.At(i); m != n && !bytes.Equal(m.AppendJSON(nil), n.AppendJSON(nil)) {
			return nil // the engine has another view of it, and its effects have what was said
		}
	}
	said := now.Slice(then.Len(), now.Len()).Messages()
	return []journal.Entry{{Run: t.info.RunID, Data: journal.Board{Append: map[string][]message.Message{engine.MainChannel: said}}}}
}

// end is what is on record of how the run ended: a Parked when it is to be resumed.
func (t *turn) end(res *Result, d FinalizeDecision, failed, undone error) journal.Data {
	stack := ""
	if all := errors.Join(res.Err, failed, undone); all != nil {
		if p := (*errdefs.Panic)(nil); errors.As(all, &p) {
			stack = p.Stack
		}
	}
	if undone != nil {
		return journal.Parked{Cause: string(engine.CauseCommit), Detail: undone.Error(), Stack: stack}
	}
	if res.Status == StatusInterrupted && !d.DiscardOutput && !d.AcceptOutput {
		var intr engine.InterruptedError
		_ = errors.As(res.Err, &intr)
		return journal.Parked{Cause: string(res.Cause), Detail: intr.Detail, Stack: stack}
	}
	end := journal.RunFinished{
		Status: string(res.Status), Reason: d.Reason, Committed: res.Committed, Discarded: d.DiscardOutput, Handoff: handedOver(res),
		After: t.completed && res.Status != StatusCompleted, Stack: stack,
	}
	if res.Err != nil {
		end.Error, end.Class = res.Err.Error(), class(res)
	}
	return end
}

// either keeps an error that is alone as it is.
func either(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Join(a, b)
}

// left tells who listens that the run is over here, although its end is not on record.
func (t *turn) left(ctx context.Context, err error) {
	t.tell(context.WithoutCancel(ctx), event.Event{Entry: journal.Entry{Run: t.info.RunID}, Delta: event.RunLeft, Text: err.Error()})
}

func class(res *Result) string {
	if res.Status == StatusCanceled {
		return "canceled"
	}
	if c := errdefs.Of(res.Err); c != nil {
		return c.Error()
	}
	return errdefs.Internal.Error()
}

// commit has the committers store what is kept, one after the other. undone is why one of them did not; err that this process has no say any more.
func (t *turn) commit(ctx context.Context, res *Result) (undone, err error) {
	if !res.Committed || len(t.committers) == 0 {
		return nil, nil
	}
	if err := t.log.Refresh(ctx); err != nil {
		return nil, err
	}
	if now := t.log.Driver(); now != t.driver() {
		res.Committed = false
		return nil, errdefs.Conflict.Errorf("agent: run %s of session %s was taken over by %s, which commits it", t.info.RunID, t.info.ContextID, now)
	}
	for _, x := range t.committers {
		if x == nil {
			continue
		}
		if err := guard("a committer", func() error { return x.Commit(ctx, t.info, res) }); err != nil {
			res.Committed, res.State[StateFinalizeReason] = false, CommitFailed
			return err, nil
		}
	}
	return nil, nil
}
