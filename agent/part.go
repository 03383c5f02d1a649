package agent

import (
	"context"
	"slices"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// Part is a run as it is seen by a process that does some of its effects, and does not drive it: see [PartOf].
type Part struct {
	Run   engine.Run
	Board *engine.Board // that the run began with
}

// PartOf gives the unfinished run of a session to a process that does effects of it for its driver, as an engine has it whose Capabilities say Elsewhere: with the agent and options that the driver has,
// bound as there. log is to be that driver's ([journal.Log.As]), and read to its end. In the context that comes back is what binds the run. The options' host, observers, deciders, committers and seeder take no part. A
// budget binds by what is on record of the run and its tasks, and by what is spent through this Part: what several runs share is not counted together.
//
// NotFound when the session has no such run, Conflict when it is another agent's.
func PartOf(ctx context.Context, ag Agent, log *journal.Log, run string, opts ...RunOption) (context.Context, *Part, error) {
	t := &turn{config: configure(opts), ag: ag, log: log, req: &Request{ContextID: log.Session()}}
	st := log.State()
	switch {
	case st.Run == "" || st.Run != run:
		return ctx, nil, errdefs.NotFound.Errorf("agent: session %s has no unfinished run %s", log.Session(), run)
	case st.Agent != ag.ID:
		return ctx, nil, errdefs.Conflict.Errorf("agent: run %s of session %s is of agent %q, not %q", run, log.Session(), st.Agent, ag.ID)
	}
	t.store, t.private = log.Store(), false
	t.info = RunInfo{AgentID: ag.ID, RunID: run, TaskID: st.Task, ContextID: log.Session()}
	t.resume = &engine.Checkpoint{ExecID: run, Session: log.Session()}
	if _, err := t.recall(ctx); err != nil {
		return ctx, nil, err
	}
	if t.budget != nil {
		t.budget = t.budget.Anew(st.Started)
	}
	ctx = t.within(ctx)
	ctx, err := t.agree(ctx)
	if err != nil {
		return ctx, nil, err
	}
	t.bounds.Budget.Enter(run, t.spent)
	part := &Part{Board: t.seedBoard(), Run: engine.Run{
		ID: run, ParentRunID: st.ParentRun, AgentID: ag.ID, Session: log.Session(), Attempt: st.Attempt, System: ag.Instructions, Tools: slices.Clone(ag.Tools),
		Attributes: t.attributes(st.Attempt), Deps: t.deps, Bounds: t.bounds, Values: new(engine.Values), Log: log, Unknown: t.unknown, AskTTL: t.askTTL, Trace: st.Trace,
	}}
	return engine.WithWarnings(ctx, &part.Run), part, nil
}
