package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// Times of an effect.
const (
	farewell = 1500 * time.Millisecond // for telling the agent of a cancel
	parting  = 2 * time.Second         // how long an interrupted run waits for the end of a task, before it leaves it at work
	glance   = 200 * time.Millisecond  // between two looks for an interrupt
	patience = 8                       // how often a broken connection is made anew without any event in between
)

// send sends a message. Outcome: journal.Board, with the task's id, or the answer.
type send struct {
	N       int
	Agent   string
	Task    string // that the message goes on with; "" for a new one
	Context string
	Parts   []a2a.Part
	Answer  *message.Message // of a person, which goes into the transcript with it; nil: what is sent stands there
	line    *line
}

// Key is "send/N".
func (s send) Key() journal.Key { return journal.Key{Op: "send", ID: strconv.Itoa(s.N)} }

// Intent tells listeners that the agent works.
func (s send) Intent() journal.Data { return journal.ModelStarted{Model: s.Agent} }

// Lost asks to be done again, with the same message id.
func (send) Lost() journal.Data { return nil }

// Concurrent is false: it writes to the main channel.
func (send) Concurrent() bool { return false }

// watch follows a task until it ends or waits. Outcome: journal.Board.
type watch struct {
	N       int
	Agent   string
	Task    string
	Context string
	line    *line
}

// Key is "watch/N".
func (w watch) Key() journal.Key { return journal.Key{Op: "watch", ID: strconv.Itoa(w.N)} }

// Intent tells listeners that the agent works.
func (w watch) Intent() journal.Data { return journal.ModelStarted{Model: w.Agent} }

// Lost asks to be done again.
func (watch) Lost() journal.Data { return nil }

// Concurrent is false: it writes to the main channel.
func (watch) Concurrent() bool { return false }

// line is the stream that send opened and watch reads on, in one process. Elsewhere, and after a crash, watch makes its own. nil works.
type line struct {
	here bool // the path runs in this process, so that it cancels the task itself
	// interrupt gives the run's interrupt; nil where the path is elsewhere, and looks for it itself
	interrupt func() *engine.Interrupt
	first     *a2a.Event
	next      func() (a2a.Event, error, bool)
	stop      func()
	cancel    context.CancelCauseFunc
}

// open begins a stream that outlives ctx: what ends it is cut, or close.
func (l *line) open(ctx context.Context, stream func(ctx context.Context) iter.Seq2[a2a.Event, error]) {
	l.close()
	ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	l.next, l.stop = iter.Pull2(stream(ctx))
}

func (l *line) close() {
	if l.stop != nil {
		l.cancel(nil)
		l.stop()
	}
	l.first, l.next, l.stop, l.cancel = nil, nil, nil, nil
}

// messageID is the same however often the effect is done, and wherever.
func messageID(run *engine.Run, key journal.Key) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q", run.Session, run.ID, run.Attempt, key.String()))
	return "pawl-" + hex.EncodeToString(sum[:16])
}

// allows says whether a budget lets a message be sent, and how long may be waited for what comes of it; 0: for ever.
func allows(b *engine.Budget) (time.Duration, error) {
	at := b.Left()
	if at.Tokens >= 0 || at.CostMicros >= 0 {
		return 0, errdefs.Validation.Errorf("remote: the budget limits tokens or money, and an agent elsewhere does not tell what it takes: limit calls and time instead")
	}
	if at.Time == 0 {
		return 0, outOfTime()
	}
	return max(at.Time, 0), nil
}

func outOfTime() error {
	return errdefs.BudgetExceeded.Errorf("remote: the budget's time is used up")
}

// limited is ctx within a budget's time.
func limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, d, outOfTime())
}

func (e *Engine) send(ctx context.Context, run *engine.Run, host engine.Host, key journal.Key, s send) (journal.Data, error) {
	d, err := allows(run.Bounds.Budget)
	if err != nil {
		return nil, err
	}
	if err := run.Bounds.Budget.Call(); err != nil {
		return nil, err
	}
	ctx, cancel := limited(ctx, d)
	defer cancel()
	l := s.line
	if l == nil {
		l = &line{}
		defer l.close()
	}
	none := 0
	req := a2a.SendRequest{
		Message:       a2a.Message{ID: messageID(run, key), TaskID: s.Task, ContextID: s.Context, Role: a2a.RoleUser, Parts: s.Parts},
		Configuration: a2a.SendConfig{AcceptedOutputModes: run.OutputModes, HistoryLength: &none},
	}
	ev, err := e.begin(ctx, l, req)
	if err != nil {
		return nil, ended(ctx, err)
	}
	out := journal.Board{}
	if s.Answer != nil {
		out.Append = map[string][]message.Message{engine.MainChannel: {*s.Answer}}
	}
	if ev.Message != nil {
		l.close()
		to := engine.DeltasOf(run, host, key, 0)
		to.Emit(ctx, event.TextDelta, "", text(ev.Message.Parts))
		return answered(out, memory{e.client.URL(), ev.ContextID(), ""}, said(ev.Message.Parts)), nil
	}
	if s.Task != "" && ev.TaskID() != s.Task {
		return nil, errdefs.Internal.Errorf("remote: the agent %s answered with the task %.60q, the message went to %.60q", e.name, ev.TaskID(), s.Task)
	}
	out.Set = journal.Vars{VarTask: ev.TaskID(), VarContext: cmp.Or(ev.ContextID(), s.Context), VarState: string(cmp.Or(ev.State(), a2a.StateSubmitted))}
	l.first = &ev
	return out, nil
}

// begin sends a message and gives the first thing that the agent says. Once ctx has ended it still waits for a moment: whose task it is has to
// be known, to cancel it.
func (e *Engine) begin(ctx context.Context, l *line, req a2a.SendRequest) (a2a.Event, error) {
	if !e.client.Card().Capabilities.Streaming {
		req.Configuration.ReturnImmediately = true
		longer, cut := context.WithCancelCause(context.WithoutCancel(ctx))
		defer cut(nil)
		defer soon(ctx, cut)()
		return e.client.Send(longer, req)
	}
	l.open(ctx, func(ctx context.Context) iter.Seq2[a2a.Event, error] { return e.client.Stream(ctx, req) })
	defer soon(ctx, l.cancel)()
	ev, err, more := l.next()
	if err == nil && !more {
		err = errdefs.NotAvailable.Errorf("remote: the agent %s ended its answer before it had begun", e.name)
	}
	if err != nil {
		l.close()
	}
	return ev, err
}

// soon has cut called a moment after ctx has ended, unless stop is called before that.
func soon(ctx context.Context, cut context.CancelCauseFunc) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		time.AfterFunc(farewell/2, func() { cut(context.Cause(ctx)) })
	})
}

// ended is err, or what ended ctx: then that is why.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); errdefs.Of(cause) == errdefs.BudgetExceeded {
		return cause
	}
	return ctx.Err()
}

// cancel tells the agent that nobody waits for the task any more. Whether it heard changes nothing here.
func (e *Engine) cancel(ctx context.Context, task string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	_, _ = e.client.Cancel(ctx, task)
}

var errInterrupted = errors.New("remote: the run is interrupted")

func (e *Engine) watch(outer context.Context, run *engine.Run, host engine.Host, key journal.Key, w watch) (journal.Data, error) {
	d, err := allows(run.Bounds.Budget)
	if err != nil {
		return nil, err
	}
	within, cancel := limited(outer, d)
	defer cancel()
	ctx, cut := context.WithCancelCause(within)
	defer cut(nil)
	l := w.line
	if l == nil {
		l = &line{}
	}
	interrupt := l.interrupt
	if interrupt == nil {
		interrupt = engine.Interruptions(*run, host)
	}
	over := make(chan struct{})
	gone := make(chan struct{})
	go func() { // looks for an interrupt: the stream can't
		defer close(gone)
		await(over, interrupt, func() { cut(errInterrupted) })
	}()
	t := &tracker{engine: e, task: w.Task, context: w.Context, deltas: engine.DeltasOf(run, host, key, 0)}
	err = t.follow(ctx, l)
	l.close()
	close(over)
	<-gone
	switch {
	case err == nil:
		return t.outcome(), nil
	case errors.Is(context.Cause(ctx), errInterrupted) && within.Err() == nil:
		return nil, engine.InterruptedError{Interrupt: *interrupt()}
	}
	if !l.here && within.Err() != nil && (outer.Err() == nil || left(outer)) {
		e.cancel(outer, w.Task) // nobody else does: the path is elsewhere
	}
	return nil, ended(within, err)
}

// await calls leave when there has been an interrupt for a while, unless over comes first.
func await(over <-chan struct{}, interrupt func() *engine.Interrupt, leave func()) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for waited := time.Duration(0); waited < parting; {
		select {
		case <-over:
			return
		case <-tick.C:
			if interrupt() != nil {
				waited += glance
			}
		}
	}
	leave()
	<-over
}
