package temporal

import (
	"cmp"
	"context"
	"maps"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/stream"
)

// Engine has runs done by workers. Safe for concurrent use.
type Engine struct {
	client client.Client
	inner  engine.Engine
	queue  string
	stream stream.Store
}

// EngineOption shapes an Engine.
type EngineOption func(*Engine)

// WithQueue names the task queue that the workers are at. Default: [Queue].
func WithQueue(name string) EngineOption { return func(e *Engine) { e.queue = name } }

// WithStream has listeners told what effects say while they go on, as of a run that is done here. It is the Stream of the workers' [Config]. Who begins to listen while nobody does hears entries, and what is said behind the next one.
func WithStream(s stream.Store) EngineOption { return func(e *Engine) { e.stream = s } }

// NewEngine has runs done by the workers that have the run's agent, by the agent's ID, with an engine such as inner. Here inner does nothing: it goes over what is on record, to say how the run ended.
func NewEngine(c client.Client, inner engine.Engine, opts ...EngineOption) *Engine {
	e := &Engine{client: c, inner: inner, queue: Queue}
	for _, o := range opts {
		o(e)
	}
	return e
}

// Capabilities are those of the engine that the workers have, under a name of their own: a run that workers do is not to be resumed by a process that does it itself.
func (e *Engine) Capabilities() engine.Capabilities {
	can := engine.CapabilitiesOf(e.inner)
	can.Name, can.Resume, can.Elsewhere, can.Needs = "temporal:"+cmp.Or(can.Name, "engine"), true, true, nil
	return can
}

// CanResume asks the engine that the workers have.
func (e *Engine) CanResume(cp engine.Checkpoint) error {
	if r, ok := e.inner.(engine.Resumer); ok {
		return r.CanResume(cp)
	}
	return nil
}

// Execute begins the run's workflow, or goes on with it, and waits for its end.
func (e *Engine) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	switch {
	case run.Steps != nil: // a replay
		return e.inner.Execute(ctx, run, host, board)
	case run.Log == nil:
		return board, errdefs.Validation.Errorf("temporal: a run needs the journal that its workers share: see agent.WithJournal")
	}
	if cp := run.ResumeFrom; cp != nil && cp.ExecID != "" && cp.ExecID != run.ID {
		return board, errdefs.Validation.Errorf("temporal: run %s can't go on from a checkpoint of run %s", run.ID, cp.ExecID)
	}
	if err := ctx.Err(); err != nil {
		return board, err
	}
	p := pathOf(ctx, &run)
	if err := p.fits(); err != nil {
		return board, err
	}
	seen := e.watch(&run, host)
	if i := seen.interrupted(); i != nil {
		return board, engine.InterruptedError{Interrupt: *i}
	}
	seen.from = seen.offset(ctx)
	wf, err := e.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: p.id(), TaskQueue: e.queue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, pathWorkflow, p)
	if err != nil {
		return board, unreachable(ctx, err)
	}
	end, err := seen.await(ctx, wf)
	if readErr := refreshed(ctx, run.Log); readErr != nil {
		return board, readErr
	}
	if err == nil {
		err = end.Error.err()
	}
	return e.walked(ctx, run, board, err)
}

// refreshed reads a log to its end. What a run came to while the database was away is worth a wait.
func refreshed(ctx context.Context, log *journal.Log) error {
	for until := time.Now().Add(readWithin); ; {
		err := log.Refresh(context.WithoutCancel(ctx))
		if err == nil || !errdefs.NotAvailable.Is(err) || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// pathOf is the path of a run that goes on from here.
func pathOf(ctx context.Context, run *engine.Run) path {
	b := bounds(ctx, run)
	p := path{
		place: place{
			Session: run.Session, Run: run.ID, Driver: run.Log.Driver(), Member: run.AgentID, Attrs: maps.Clone(run.Attributes), Unknown: string(run.Unknown), AskTTL: run.AskTTL, Bound: &b,
		},
		Attempt: run.Attempt, Upto: run.Log.Seq(), System: run.System, Modes: run.OutputModes, Parent: run.ParentRunID, Resumes: run.ResumeFrom != nil,
	}
	if b == (bound{}) {
		p.Bound = nil
	}
	if run.Tools != nil {
		p.Tools = &run.Tools
	}
	return p
}

// walked goes over what is on record, to have the board as the path left it. err is how the path ended, which stands where the record ends.
func (e *Engine) walked(ctx context.Context, run engine.Run, board *engine.Board, err error) (*engine.Board, error) {
	log := run.Log
	apart := run
	apart.Log, apart.Background, apart.ResumeFrom = nil, nil, nil
	apart.Steps = engine.OnRecord(func(k journal.Key) journal.Data { d, _ := log.Recorded(k); return d }, func(engine.Effect) error {
		return cmp.Or(err, error(errEnds))
	})
	last, walkErr := e.inner.Execute(context.WithoutCancel(ctx), apart, engine.NoopHost{}, board)
	if last == nil {
		last = board
	}
	if err == nil && walkErr != nil {
		return last, errdefs.Conflict.Errorf("temporal: the path that completed does not end the same way here: is the engine the one that the workers have? %w", walkErr)
	}
	return last, err
}

// errEnds is of a path that asks for more than is on record of a run that completed.
var errEnds = errdefs.Conflict.Errorf("temporal: an effect is not on record")

func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errdefs.NotAvailable.Errorf("temporal: the workflow can't be begun: %w", err)
}
