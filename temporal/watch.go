package temporal

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/stream"
)

// watch stands by a run that workers do, for its host: what gets on record is published, usage is reported, questions are asked, and what interrupts the host interrupts the run. The tasks below it are
// watched with it.
type watch struct {
	engine      *Engine
	run         *engine.Run
	host        engine.Host
	interrupted func() *engine.Interrupt
	said        bool  // the run was told of the interrupt
	ends        error // what the host ends the run with: a limit that it says was reached, or a question that it can't put

	sessions map[string]*watched
	from     int64 // the offset of the run's own session in the stream
	events   chan stream.News
	all      sync.WaitGroup

	questions []question // to be asked, one after the other; the first is being asked
	replies   chan reply
	withdraw  context.CancelFunc // of the first
}

// watched is a session: the run's own, or that of a task below it.
type watched struct {
	log    *journal.Log
	parent string          // the run that the task is of
	at     stream.Position // that the host was told of
}

type question struct {
	session string
	journal.Pending
}

type reply struct {
	engine.Reply
	err       error
	withdrawn bool // the question, before there was an answer
}

// lookEvery is how often the host is asked for an interrupt.
const lookEvery = 50 * time.Millisecond

func (e *Engine) watch(run *engine.Run, host engine.Host) *watch {
	return &watch{
		engine: e, run: run, host: host, interrupted: engine.Interruptions(*run, host),
		sessions: map[string]*watched{}, events: make(chan stream.News), replies: make(chan reply, 1),
	}
}

// await waits for the workflow. When ctx ends it is cancelled, and waited for: tools stop by it. All is told from here, the run's own goroutine; only questions, which may take days, are asked from another one.
func (w *watch) await(ctx context.Context, wf client.WorkflowRun) (*ended, error) {
	apart := context.WithoutCancel(ctx)
	inner, stop := context.WithCancel(apart)
	defer w.all.Wait()
	defer stop()
	end, over := new(ended), make(chan error, 1)
	w.all.Go(func() { over <- wf.Get(inner, end) })
	if w.run.ResumeFrom != nil { // what waits in the workflow may have its answer by now
		w.insist(inner, func() error { return poke(inner, w.engine.client, w.run.Log.Store(), w.run.Session) })
	}
	w.take(inner, w.run.Log, w.run.ParentRunID, stream.Position{Seq: w.run.Log.Seq(), Offset: w.from})
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	asks, stopAsking := context.WithCancel(ctx)
	defer stopAsking()
	done := ctx.Done()
	var looks <-chan time.Time // whether somebody heeds the cancel
	for {
		w.ask(asks)
		select {
		case n := <-w.events:
			w.tell(apart, n)
			w.heed(inner, n.Events[0].Entry)
			if w.ends != nil {
				w.interrupt(inner, wf, engine.Interrupt{Cause: engine.CauseCustom, Detail: w.ends.Error()})
			}
		case r := <-w.replies:
			w.replied(inner, wf, r)
		case err := <-over:
			w.rest(apart)
			switch {
			case ctx.Err() != nil:
				return end, ctx.Err()
			case w.ends != nil:
				return end, w.ends
			}
			return end, received(err)
		case <-done:
			if errors.Is(context.Cause(ctx), engine.ErrLeft) { // it goes on without us
				return end, ctx.Err()
			}
			done = nil
			w.insist(inner, func() error { return w.engine.client.CancelWorkflow(inner, wf.GetID(), "") })
			looks = time.After(heededWithin)
		case <-looks:
			if w.unheeded(inner, wf) {
				w.rest(apart)
				return end, ctx.Err()
			}
			looks = time.After(time.Second)
		case <-tick.C:
			if i := w.interrupted(); i != nil {
				w.interrupt(inner, wf, *i)
			}
		}
	}
}

// insist tells the service something, again and again until it has it, or there is nobody to hear it any more.
func (w *watch) insist(ctx context.Context, tell func() error) {
	w.all.Go(func() {
		for gone := new(serviceerror.NotFound); ctx.Err() == nil; {
			if err := tell(); err == nil || errors.As(err, &gone) {
				return
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	})
}

// take watches a session from a position on, and the unfinished tasks below it; what waits there for a person is asked again.
func (w *watch) take(ctx context.Context, log *journal.Log, parent string, from stream.Position) {
	if w.sessions[log.Session()] != nil {
		return
	}
	w.sessions[log.Session()] = &watched{log, parent, from}
	w.all.Go(func() { w.follow(ctx, log.Session(), from) })
	w.pending(ctx, log)
	st := log.State()
	for _, call := range st.Unfinished() {
		if below, err := journal.Open(ctx, log.Store(), journal.TaskSession(log.Session(), call)); err == nil && below.Seq() > 0 {
			w.take(ctx, below, st.Run, stream.Position{Seq: below.Seq()})
		}
	}
}

// heed does what an entry asks for.
func (w *watch) heed(ctx context.Context, e journal.Entry) {
	log := w.sessions[e.Session].log
	switch d := e.Data.(type) {
	case journal.Asked:
		w.pending(ctx, log)
	case journal.Answered: // by whoever was asked here, or by somebody else
		w.answered(ctx, log, d.ID)
	case journal.TaskStarted:
		if below, err := journal.Open(ctx, log.Store(), d.Session); err == nil {
			w.take(ctx, below, e.Run, stream.Position{})
		}
	}
}

// answered tells the workflow that waits for an answer that it is there. Nobody is asked any more.
func (w *watch) answered(ctx context.Context, log *journal.Log, id string) {
	is := func(q question) bool { return q.session == log.Session() && q.ID == id }
	if len(w.questions) > 0 && w.withdraw != nil { // the first is being asked
		if is(w.questions[0]) {
			w.withdraw()
		}
		w.questions = append(w.questions[:1], slices.DeleteFunc(w.questions[1:], is)...)
	} else {
		w.questions = slices.DeleteFunc(w.questions, is)
	}
	if err := log.Refresh(ctx); err != nil {
		return
	}
	st := log.State()
	w.insist(ctx, func() error {
		return w.engine.client.SignalWorkflow(ctx, pathID(log.Session(), st.Run, st.Attempt), "", answeredSignal, id)
	})
}

// follow gives what gets on record, and what is said. A journal that can't be read for a while is followed again from where it was.
func (w *watch) follow(ctx context.Context, session string, at stream.Position) {
	for ctx.Err() == nil {
		wait := time.Duration(0)
		for n, err := range w.news(ctx, session, at) {
			if err != nil {
				wait = time.Second
				break
			}
			select {
			case w.events <- n:
				at = n.At
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// rest tells what is there by the end.
func (w *watch) rest(ctx context.Context) {
	for _, session := range slices.Sorted(maps.Keys(w.sessions)) {
		for n, err := range w.there(ctx, session, w.sessions[session].at) {
			if err != nil {
				break // it is not told, and nothing else
			}
			w.tell(ctx, n)
		}
	}
}

// interrupt tells the run of its interrupt, once.
func (w *watch) interrupt(ctx context.Context, wf client.WorkflowRun, i engine.Interrupt) {
	if w.said {
		return
	}
	w.said = true
	w.insist(ctx, func() error {
		return w.engine.client.SignalWorkflow(ctx, wf.GetID(), "", interruptSignal, interruption{string(i.Cause), i.Detail})
	})
}

// tell tells the host what happened in a session.
func (w *watch) tell(ctx context.Context, n stream.News) {
	s := w.sessions[n.Events[0].Session]
	before := s.at.Seq
	s.at = n.At
	for _, e := range n.Events {
		if e.Run != w.run.ID && e.Session == w.run.Session || e.Data != nil && e.Seq <= before {
			continue
		}
		if engine.Listening(w.host) {
			e.ParentRun = s.parent
			engine.Publish(ctx, w.host, e)
		}
		if e.Data != nil {
			w.outcome(ctx, e.Entry)
		}
	}
}

// outcome tells the host of an outcome.
func (w *watch) outcome(ctx context.Context, e journal.Entry) {
	defer func() { _ = recover() }() // a host fails no run
	switch d := e.Data.(type) {
	case journal.ModelFinished:
		if err := w.host.ReportUsage(ctx, d.Usage); errdefs.BudgetExceeded.Is(err) && w.ends == nil {
			w.ends = err
		}
	case journal.ModelStarted, journal.ToolStarted, journal.Asked, journal.ModelFailed:
		return
	}
	if e.Key == (journal.Key{}) {
		return
	}
	_ = w.host.Checkpoint(ctx, engine.Checkpoint{
		ExecID: e.Run, Step: e.Key.String(), Session: e.Session, Attributes: w.run.Attributes, Seq: e.Seq, Timestamp: e.Time,
	})
}

// pending takes up the questions that wait in a session.
func (w *watch) pending(ctx context.Context, log *journal.Log) {
	if err := log.Refresh(ctx); err != nil {
		return
	}
	for _, p := range log.State().Pending {
		if !slices.ContainsFunc(w.questions, func(q question) bool { return q.session == log.Session() && q.ID == p.ID }) {
			w.questions = append(w.questions, question{log.Session(), p})
		}
	}
}

// ask puts the first question to whoever is there, unless that is done already.
func (w *watch) ask(ctx context.Context) {
	if w.withdraw != nil || len(w.questions) == 0 || ctx.Err() != nil {
		return
	}
	inner, cancel := context.WithCancel(ctx)
	w.withdraw = cancel
	q := w.questions[0]
	w.all.Go(func() {
		var r reply
		defer func() {
			if v := recover(); v != nil {
				r.err = errdefs.Recovered(q.Key.String(), v)
			}
			r.withdrawn = inner.Err() != nil
			w.replies <- r
		}()
		r.Reply, r.err = w.host.AskUser(inner, engine.Prompt{Asked: q.Asked})
	})
}

// replied puts an answer on record; the workflow that waits for it is told when it comes back from there. Where nobody is there the run is parked.
func (w *watch) replied(ctx context.Context, wf client.WorkflowRun, r reply) {
	q := w.questions[0]
	w.questions = w.questions[1:]
	w.withdraw()
	w.withdraw = nil
	log := w.sessions[q.session].log
	switch {
	case r.err == nil:
		if err := log.Answer(ctx, r.To(q.Asked)); err != nil && !errdefs.Conflict.Is(err) { // one answer wins; the journal can't be written now
			w.questions = append(w.questions, q)
		}
	case errdefs.NotAvailable.Is(r.err):
		w.interrupt(ctx, wf, engine.Interrupt{Cause: engine.CauseAwaitingPerson, Detail: q.ID})
	case !r.withdrawn && w.ends == nil: // as it fails a run that is done here
		w.ends = r.err
		w.interrupt(ctx, wf, engine.Interrupt{Cause: engine.CauseCustom, Detail: r.err.Error()})
	}
}
