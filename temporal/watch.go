package temporal

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/temporal/stream"
)

// watch stands by a run that workers do, for its host: what gets on record is published, usage is reported, questions are asked, and what interrupts the host interrupts the run.
type watch struct {
	engine      *Engine
	run         *engine.Run
	host        engine.Host
	interrupted func() *engine.Interrupt
	at          stream.Position // that the host was told of
	said        bool            // the run was told of the interrupt
	limit       error           // a limit that the host said was reached
}

// lookEvery is how often the host is asked for an interrupt.
const lookEvery = 50 * time.Millisecond

// await waits for the workflow. When ctx ends it is cancelled, and waited for: tools stop by it. Everything is told from here, the run's own goroutine.
func (w *watch) await(ctx context.Context, wf client.WorkflowRun) (*ended, error) {
	apart := context.WithoutCancel(ctx)
	inner, stop := context.WithCancel(apart)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	end, over := new(ended), make(chan error, 1)
	all.Go(func() { over <- wf.Get(inner, end) })
	events := make(chan stream.News)
	all.Go(func() { w.follow(inner, w.at, events) })
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	w.asks(ctx, wf) // what was asked before is asked again
	done := ctx.Done()
	for {
		select {
		case n := <-events:
			w.tell(apart, n)
			if _, asked := n.Events[0].Data.(journal.Asked); asked {
				w.asks(ctx, wf)
			}
			if w.limit != nil {
				w.interrupt(apart, wf, engine.Interrupt{Cause: engine.CauseCustom, Detail: w.limit.Error()})
			}
		case err := <-over:
			w.rest(apart)
			switch {
			case ctx.Err() != nil:
				return end, ctx.Err()
			case w.limit != nil:
				return end, w.limit
			}
			return end, received(err)
		case <-done:
			if errors.Is(context.Cause(ctx), engine.ErrLeft) { // it goes on without us
				return end, ctx.Err()
			}
			done = nil
			_ = w.engine.client.CancelWorkflow(apart, wf.GetID(), "")
		case <-tick.C:
			if i := w.interrupted(); i != nil {
				w.interrupt(apart, wf, *i)
			}
		}
	}
}

// follow gives what gets on record, and what is said. A journal that can't be read for a while is followed again from where it was.
func (w *watch) follow(ctx context.Context, at stream.Position, events chan<- stream.News) {
	for ctx.Err() == nil {
		wait := time.Duration(0)
		for n, err := range w.news(ctx, at) {
			if err != nil {
				wait = time.Second
				break
			}
			select {
			case events <- n:
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
	for n, err := range w.there(ctx) {
		if err != nil {
			return // it is not told, and nothing else
		}
		w.tell(ctx, n)
	}
}

// interrupt tells the run of its interrupt, once.
func (w *watch) interrupt(ctx context.Context, wf client.WorkflowRun, i engine.Interrupt) {
	if w.said {
		return
	}
	w.said = true
	_ = w.engine.client.SignalWorkflow(ctx, wf.GetID(), "", interruptSignal, interruption{string(i.Cause), i.Detail})
}

// tell tells the host what happened.
func (w *watch) tell(ctx context.Context, n stream.News) {
	w.at = n.At
	for _, e := range n.Events {
		if e.Run != w.run.ID {
			continue
		}
		if engine.Listening(w.host) {
			e.ParentRun = w.run.ParentRunID
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
		if err := w.host.ReportUsage(ctx, d.Usage); errdefs.BudgetExceeded.Is(err) && w.limit == nil {
			w.limit = err
		}
	case journal.ModelStarted, journal.ToolStarted, journal.Asked, journal.ModelFailed:
		return
	}
	if e.Key == (journal.Key{}) {
		return
	}
	_ = w.host.Checkpoint(ctx, engine.Checkpoint{
		ExecID: w.run.ID, Step: e.Key.String(), Session: w.run.Session, Attributes: w.run.Attributes, Seq: e.Seq, Timestamp: e.Time,
	})
}

// asks puts questions that wait to whoever is there; nobody parks the run.
func (w *watch) asks(ctx context.Context, wf client.WorkflowRun) {
	if err := w.run.Log.Refresh(ctx); err != nil {
		return
	}
	for _, p := range w.run.Log.State().Pending {
		reply, err := w.ask(ctx, p)
		switch {
		case err == nil:
			err = w.run.Log.Answer(ctx, reply.To(p.Asked))
			if err == nil || errdefs.Conflict.Is(err) {
				_ = w.engine.client.SignalWorkflow(ctx, wf.GetID(), "", answeredSignal, p.ID)
			}
		case errdefs.NotAvailable.Is(err):
			w.interrupt(ctx, wf, engine.Interrupt{Cause: engine.CauseAwaitingPerson, Detail: p.ID})
		}
	}
}

func (w *watch) ask(ctx context.Context, p journal.Pending) (reply engine.Reply, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errdefs.Recovered("the host", v)
		}
	}()
	return w.host.AskUser(ctx, engine.Prompt{Asked: p.Asked})
}
