package temporal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
)

// perform is the activity: one effect, as it is done locally, over the journal that all processes share.
func (w *Worker) perform(ctx context.Context, in step) (*did, error) {
	ctx, stop := w.beating(ctx, func(ctx context.Context) {
		for _, at := range append(slices.Clip(in.Inside), in.place) {
			w.leases.say(ctx, at.Session, at.Driver)
		}
	})
	defer stop()
	ctx = resilience.WithoutRetries(ctx) // Temporal's are instead of those of models
	d, err := whole(func() (*did, error) { return w.effect(ctx, in) })
	if err != nil && ctx.Err() != nil {
		if cause := context.Cause(ctx); sdk.IsCanceledError(cause) { // asked for, by the workflow
			return nil, sdk.NewCanceledError()
		}
		return nil, application(errdefs.NotAvailable.Errorf("temporal: the worker was stopped: %w", err), true)
	}
	return d, err
}

// whole has an activity come to an end, whatever it runs does: Temporal would try one that panics again for ever, and not hear of one whose goroutine ends.
func whole[T any](do func() (T, error)) (out T, err error) {
	err = errdefs.Internal.Errorf("temporal: an effect ended its goroutine without an outcome")
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer recovered("an effect", &err)
		out, err = do()
	}()
	<-over
	if err != nil && !errors.As(err, new(*sdk.ApplicationError)) {
		err = application(err, false)
	}
	return out, err
}

// beating tells Temporal that the process is alive, as long as the activity goes on: not only when a model or a tool has something to say. What ends before it is done ends for a reason of ours: it was cancelled, or it is left
// to another worker.
func (w *Worker) beating(ctx context.Context, also func(ctx context.Context)) (context.Context, func()) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(w.beat())
		defer tick.Stop()
		stops, late := activity.GetWorkerStopChannel(ctx), (<-chan time.Time)(nil)
		for also(inner); ; also(inner) {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-stops:
				stops, late = nil, time.After(w.grace)
			case <-late: // as long as the worker is there it can say so, and nobody has to wait for its silence
				cancel(engine.ErrLeft)
				return
			case <-ctx.Done():
				cause := context.Cause(ctx)
				if !sdk.IsCanceledError(cause) { // another worker has the effect by now: the run is not cancelled
					cause = engine.ErrLeft
				}
				cancel(cause)
				return
			case <-inner.Done():
				return
			}
		}
	})
	return inner, func() { cancel(nil); wg.Wait() }
}

// effect performs one effect of a run. One of a run below is performed within the call that the run is below, and so bound by all that binds the call.
func (w *Worker) effect(ctx context.Context, in step) (*did, error) {
	at := append(slices.Clip(in.Inside), in.place)
	m, ok := w.members[at[0].Member]
	if !ok {
		return nil, application(w.stranger(at[0].Member), true) // another worker may have it
	}
	return w.within(ctx, m, in, at)
}

// within goes into the calls that the effect's run is below, the first of which is of at[0], and performs the effect there.
func (w *Worker) within(ctx context.Context, m Member, in step, at []place) (*did, error) {
	if len(at) == 1 {
		return w.here(ctx, m, in)
	}
	type outcome struct {
		did *did
		err error
	}
	came := make(chan outcome, 1) // of a tool, which may be left behind when ctx ends
	inner := agent.WithTaskEngine(ctx, func(ctx context.Context, sub agent.Subagent, session string, opts []agent.RunOption) (engine.Engine, error) {
		if session != at[1].Session {
			return nil, nil
		}
		var o outcome
		o.did, o.err = w.within(ctx, Member{Agent: sub.Agent, Engine: sub.Engine, Options: opts}, in, at[1:])
		came <- o
		return nil, engine.ErrLeft
	})
	p, partErr := w.part(inner, m, at[0])
	if partErr != nil {
		return nil, partErr
	}
	callErr := p.do(w.call)
	w.calls.get(p.key(), func() (engine.Effect, bool) { return p.found, p.found != nil })
	select {
	case o := <-came:
		return o.did, errors.Join(o.err, ctx.Err())
	default:
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, application(errdefs.Conflict.Errorf("temporal: the call %v of run %s does not come to the task of session %s any more: %w", at[0].Key, at[0].Run, at[1].Session, cmp.Or(callErr, errGone)), false)
}

// call gives a call with runs below, which one effect after the other is done within.
func (w *Worker) call(at aliveKey) engine.Effect {
	if e := w.alive.get(at); e != nil {
		return e
	}
	return w.calls.get(at, func() (engine.Effect, bool) { return nil, false })
}

// errGone is of a call that came to its end.
var errGone = errdefs.Conflict.Errorf("temporal: the call has ended")

// part is a run as the worker does an effect of it.
type part struct {
	*agent.Part
	ctx    context.Context //nolint:containedctx // of the effect, bound as the run is
	member Member
	at     place
	log    *journal.Log
	host   *noting
	heard  *speaking // nil: what it says reaches nobody
	behind *engine.Background
	found  engine.Effect // that was performed
}

// part takes a run up at a place.
func (w *Worker) part(ctx context.Context, m Member, at place) (*part, error) {
	log, err := w.logs.open(ctx, at.Session)
	if err != nil {
		return nil, application(err, true)
	}
	log = log.As(at.Driver)
	options := append(slices.Clip(m.Options), agent.WithAttributes(at.Attrs), agent.WithUnknown(engine.Unknown(at.Unknown)), agent.WithAskTTL(at.AskTTL))
	ctx, of, err := agent.PartOf(ctx, m.Agent, log, at.Run, options...)
	if err != nil {
		return nil, application(err, passes(err))
	}
	if err := at.boundBy(bounds(ctx, &of.Run)); err != nil {
		return nil, application(err, false)
	}
	only := ""
	if at.Behind {
		only = at.Key.ID
	}
	p := &part{Part: of, ctx: ctx, member: m, at: at, log: log, host: &noting{step: at.Key.String()}, behind: engine.BackgroundElsewhere(ctx, only)}
	p.Run.Tools, p.Run.Background = m.gate(at.Tools), p.behind
	of.Run.Values = w.values.get(aliveKey{session: at.Session, run: at.Run, attempt: of.Run.Attempt}, func() (*engine.Values, bool) { return new(engine.Values), true })
	return p, nil
}

func (p *part) key() aliveKey { return aliveKey{p.at.Session, p.at.Run, p.Run.Attempt, p.at.Key} }

// do performs the effect at the place, or the part of a call that goes on in the background.
func (p *part) do(known func(aliveKey) engine.Effect) error {
	performer, _ := p.member.Engine.(engine.Performer)
	if p.at.Behind {
		c, ok := p.member.Engine.(engine.Continuer)
		if !ok {
			return errdefs.NotAvailable.Errorf("temporal: the engine of %s can't go on with calls in the background", p.member.Agent.ID)
		}
		c.GoOn(p.Run, p.to())
		return p.behind.Do(p.ctx)
	}
	e := known(p.key())
	if e == nil {
		var err error
		if e, err = engine.Find(p.ctx, p.member.Engine, p.Run, p.Board, func(k journal.Key) journal.Data { d, _ := p.log.Recorded(k); return d }, p.at.Key); err != nil {
			return err
		}
	}
	p.found = e
	_, err := engine.Local(p.Run, p.to(), p.performer(performer)).Do(p.ctx, e)
	return err
}

// here performs the effect.
func (w *Worker) here(ctx context.Context, m Member, in step) (*did, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	handed := &handed{worker: w, in: in, cancel: cancel}
	p, err := w.part(agent.WithTaskEngine(ctx, handed.task), m, in.place)
	if err != nil {
		return nil, err
	}
	if d, begun := p.log.Recorded(in.Key); d != nil && !in.Behind { // by an attempt of this activity that could not say so
		seq, err := w.find(ctx, in, p.log.Begun(in.Key), begun)
		if err != nil {
			return nil, application(err, true)
		}
		return &did{Seq: seq}, nil
	}
	p.Run.System = in.System
	p.heard = w.speaking(ctx, p)
	err = p.do(w.alive.get)
	p.heard.end(ctx)
	d := &did{Seq: p.host.seq.Load(), Error: failureOf(err), Behind: p.behind.Noted()}
	if done, begun := p.log.Recorded(in.Key); d.Seq == 0 && done != nil && !in.Behind { // another attempt was faster
		seq, findErr := w.find(context.WithoutCancel(ctx), in, p.log.Begun(in.Key), begun)
		if findErr != nil {
			return nil, application(findErr, true)
		}
		d.Seq = seq
	}
	switch {
	case err == nil, d.Seq > 0:
		return d, nil
	case handed.path() != nil:
		d.Below, d.Error = handed.path(), nil
		return d, nil
	case errors.As(err, new(engine.InterruptedError)):
		for _, q := range p.log.State().Pending {
			if q.Key == in.Key {
				d.Error.Deadline = q.Deadline()
			}
		}
		return d, nil
	case p.log.Failed() != nil:
		return nil, application(err, true)
	}
	return nil, application(err, passes(err) && int(activity.GetInfo(ctx).Attempt) <= w.timing.Retries)
}

// find gives the entry that has the outcome of an effect. It stands behind its intent, if it has one.
func (w *Worker) find(ctx context.Context, in step, from int64, begun bool) (int64, error) {
	if !begun {
		from = 0
	}
	intent := begun
	for e, err := range w.store.Read(ctx, in.Session, max(from-1, 0)) {
		switch {
		case err != nil:
			return 0, err
		case e.Run != in.Run || e.Key != in.Key:
		case intent:
			intent = false
		case isNote(e.Data):
		default:
			return e.Seq, nil
		}
	}
	return 0, errdefs.Internal.Errorf("temporal: the outcome of %v is not in the journal of session %s", in.Key, in.Session)
}

// isNote reports whether an entry says that an effect came to nothing.
func isNote(d journal.Data) bool {
	_, note := d.(journal.ModelFailed)
	return note
}

// noting is the host of an effect in a worker: it notes where its outcome is.
type noting struct {
	engine.NoopHost
	step string
	seq  atomic.Int64
}

// Listening reports that nobody listens.
func (*noting) Listening() bool { return false }

// Checkpoint comes after each outcome.
func (n *noting) Checkpoint(_ context.Context, c engine.Checkpoint) error {
	if c.Step == n.step {
		n.seq.Store(c.Seq)
	}
	return nil
}

// passes reports whether an effect that failed may be tried again.
func passes(err error) bool {
	var e *model.Error
	if errors.As(err, &e) && e.Code == "insufficient_quota" { // nothing passes here but somebody's bill
		return false
	}
	return errdefs.RateLimit.Is(err) || errdefs.NotAvailable.Is(err) || errdefs.Timeout.Is(err)
}
