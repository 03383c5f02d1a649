package temporal

import (
	"context"
	"errors"

	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
)

// ended is how a path ended.
type ended struct {
	Seq   int64    `json:"seq"` // the journal's position by which it ended
	Error *failure `json:"error,omitempty"`
}

// walk is the workflow: the engine's own path, on these steps. How the run ended is its result; an error fails it.
func (w *Worker) walk(wf workflow.Context, p path) (*ended, error) {
	wf = withReferences(wf, w.store, p.Session)
	if p.Began.IsZero() {
		p.Began = workflow.Now(wf)
	}
	u := &under{path: p, timing: w.timing, live: w.alive.of(p)}
	defer u.live.end()
	u.behind.wf, u.behind.cancel = workflow.WithCancel(wf)
	var rec record
	at := recorded{p.Run, p.Attempt, p.Upto, limits{w.timing.Events, w.timing.Bytes}}
	if err := workflow.SideEffect(wf, func(workflow.Context) any { return at }).Get(&rec); err != nil {
		panic(unread{err})
	}
	u.done, u.seen, u.limits = rec.done, p.Upto, rec.at.Limits
	u.listen(wf)
	err := w.walks(wf, p, u, &rec)
	u.endBehind(wf, err)
	if u.again && errors.Is(err, errAgain) {
		u.hear(wf)
		if u.intr != nil { // while others came to their ends
			return &ended{Seq: u.seen, Error: failureOf(engine.InterruptedError{Interrupt: *u.intr})}, nil
		}
		p = u.path
		p.Upto = u.seen
		return nil, workflow.NewContinueAsNewError(wf, pathWorkflow, p)
	}
	if err != nil && u.intr == nil && wf.Err() != nil {
		return nil, wf.Err()
	}
	end := &ended{Seq: u.seen, Error: failureOf(err)}
	if err != nil && end.Error.Interrupt == nil {
		return nil, application(err, false)
	}
	return end, nil
}

// walks runs the engine.
func (w *Worker) walks(wf workflow.Context, p path, u *under, rec *record) (err error) {
	m, ok := w.members[p.Member]
	if !ok {
		panic(unread{w.stranger(p.Member)}) // another worker may have it
	}
	defer recovered("the engine", &err)
	board := engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: rec.seed.Seed}, Vars: rec.seed.Started.Inputs}.With(rec.seed.Seeded))
	run := engine.Run{
		ID: p.Run, ParentRunID: p.Parent, AgentID: m.Agent.ID, Session: p.Session, Attempt: p.Attempt, System: p.System, Tools: m.gate(p.Tools),
		Attributes: p.Attrs, OutputModes: p.Modes, Unknown: engine.Unknown(p.Unknown), AskTTL: p.AskTTL, Steps: &steps{under: u},
	}
	if p.Resumes {
		run.ResumeFrom = &engine.Checkpoint{ExecID: p.Run, Session: p.Session, Seq: p.Upto, SpecVersion: rec.seed.Started.Version}
	}
	var ctx context.Context = onPath{wf: wf, began: p.Began}
	if !p.Until.IsZero() {
		limited, cancel, late := onPath{wf: wf, began: p.Began}.until(p.Until)
		defer cancel()
		defer func() {
			if err != nil && late() {
				err = errdefs.BudgetExceeded.Errorf("temporal: the time of the run was up at %s", p.Until.Format("2006-01-02 15:04:05 MST"))
			}
		}()
		ctx = limited
	}
	_, err = m.Engine.Execute(ctx, run, engine.NoopHost{}, board)
	return err
}

// hear has all that was said be taken before a workflow goes on in a new one, which would not have it: the coroutine that listens runs before one that is begun now.
func (u *under) hear(wf workflow.Context) {
	apart, _ := workflow.NewDisconnectedContext(wf)
	heard := false
	workflow.Go(apart, func(workflow.Context) { heard = true })
	_ = workflow.Await(apart, func() bool { return heard })
}

// listen takes what is said to the workflow from outside.
func (u *under) listen(wf workflow.Context) {
	interrupts, answers := workflow.GetSignalChannel(wf, interruptSignal), workflow.GetSignalChannel(wf, answeredSignal)
	sel := workflow.NewNamedSelector(wf, "signals")
	sel.AddReceive(interrupts, func(c workflow.ReceiveChannel, _ bool) {
		var i interruption
		if c.ReceiveAsync(&i) && u.intr == nil {
			intr := i.interrupt()
			u.intr = &intr
		}
	})
	sel.AddReceive(answers, func(c workflow.ReceiveChannel, _ bool) {
		if c.ReceiveAsync(nil) {
			u.answered++
		}
	})
	workflow.Go(wf, func(wf workflow.Context) {
		for wf.Err() == nil {
			sel.Select(wf)
		}
	})
}
