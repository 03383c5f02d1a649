package temporal

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

// watch stands by a run that workers do, for its host: what gets on record is published, usage is reported, questions are asked, and what interrupts the host interrupts the run.
type watch struct {
	engine      *Engine
	run         *engine.Run
	host        engine.Host
	interrupted func() *engine.Interrupt
	seq         int64 // that the host was told of
	said        bool  // the run was told of the interrupt
	limit       error // a limit that the host said was reached
}

// lookEvery is how often the journal is looked at for news.
const lookEvery = 50 * time.Millisecond

// await waits for the workflow. When ctx ends it is cancelled, and waited for: tools stop by it.
func (w *watch) await(ctx context.Context, wf client.WorkflowRun) (*ended, error) {
	apart := context.WithoutCancel(ctx)
	end, over := new(ended), make(chan error, 1)
	waiting, stop := context.WithCancel(apart)
	defer stop()
	go func() { over <- wf.Get(waiting, end) }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	done := ctx.Done()
	for {
		select {
		case err := <-over:
			if w.look(apart); ctx.Err() != nil {
				return end, ctx.Err()
			}
			if w.limit != nil {
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
			if i := w.interrupted(); i != nil && !w.said {
				w.said = true
				w.interrupt(apart, wf, *i)
			}
			w.look(apart)
			w.asks(ctx, wf)
			if w.limit != nil && !w.said {
				w.said = true
				w.interrupt(apart, wf, engine.Interrupt{Cause: engine.CauseCustom, Detail: w.limit.Error()})
			}
		}
	}
}

func (w *watch) interrupt(ctx context.Context, wf client.WorkflowRun, i engine.Interrupt) {
	_ = w.engine.client.SignalWorkflow(ctx, wf.GetID(), "", interruptSignal, interruption{string(i.Cause), i.Detail})
}

// look tells the host what has got on record.
func (w *watch) look(ctx context.Context) {
	for e, err := range w.run.Log.Store().Read(ctx, w.run.Session, w.seq) {
		if err != nil {
			return // the next look sees it
		}
		w.seq = e.Seq
		if e.Run != w.run.ID {
			continue
		}
		if engine.Listening(w.host) {
			engine.Publish(ctx, w.host, event.Event{Entry: e, ParentRun: w.run.ParentRunID})
		}
		w.outcome(ctx, e)
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
		case errdefs.NotAvailable.Is(err) && !w.said:
			w.said = true
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
