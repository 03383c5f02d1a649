package temporal

import (
	"context"
	"errors"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// order is what a run that needs nobody to wait for it is begun with.
type order struct {
	Member  string        `json:"member"`
	Request agent.Request `json:"request"`
}

// drive is what the activity is asked for that begins a run, and closes it: agent.Run, but for the path.
type drive struct {
	order
	Ended *ended `json:"ended,omitempty"` // how the path ended; nil: it has not been gone yet
	// Attempt is the one that ended so.
	Attempt int `json:"attempt,omitempty"`
}

// driven is what it gives: a path to be gone, or how the run ended.
type driven struct {
	Path *path `json:"path,omitempty"`
	Done *Done `json:"done,omitempty"`
}

// Done is how a run ended. What it said is in the journal.
type Done struct {
	Session   string       `json:"session"`
	Run       string       `json:"run"`
	Status    agent.Status `json:"status"`
	Cause     engine.Cause `json:"cause,omitempty"`
	Text      string       `json:"text,omitempty"` // the answer, up to 32 KiB of it
	Error     *failure     `json:"error,omitempty"`
	Committed bool         `json:"committed,omitempty"`
}

// run is the workflow of a run as a whole: it is begun, its path gone, and closed, by whichever workers there are.
func (w *Worker) run(wf workflow.Context, o order) (*Done, error) {
	d := drive{order: o}
	for {
		apart, _ := workflow.NewDisconnectedContext(wf) // a run that is cancelled is closed, too
		apart = workflow.WithActivityOptions(apart, workflow.ActivityOptions{
			StartToCloseTimeout: w.timing.Effect, HeartbeatTimeout: w.timing.Heartbeat, Summary: "drive",
			RetryPolicy: &sdk.RetryPolicy{InitialInterval: w.timing.Again, BackoffCoefficient: 2, MaximumInterval: w.timing.Slowest},
		})
		var got driven
		if err := workflow.ExecuteActivity(apart, driveActivity, d).Get(apart, &got); err != nil {
			return nil, application(received(err), false)
		}
		if got.Path == nil {
			return got.Done, nil
		}
		child := workflow.WithChildOptions(wf, workflow.ChildWorkflowOptions{
			WorkflowID: got.Path.id(), ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL, WaitForCancellation: true, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		})
		end := new(ended)
		if err := workflow.ExecuteChildWorkflow(child, pathWorkflow, *got.Path).Get(child, end); err != nil {
			end = &ended{Error: failureOf(received(err))}
		}
		d.Ended, d.Attempt = end, got.Path.Attempt
	}
}

// driving is the activity: it begins the run, or goes on with it, with an engine that leaves the path to a workflow.
func (w *Worker) driving(ctx context.Context, d drive) (*driven, error) {
	ctx, stop := w.beating(ctx)
	defer stop()
	m, ok := w.members[d.Member]
	if !ok {
		return nil, application(w.stranger(d.Member), true)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hand := &handing{Engine: &Engine{inner: m.Engine}, ended: d.Ended, attempt: d.Attempt, cancel: cancel}
	options := append(slices.Clip(m.Options), agent.WithJournal(w.store), agent.WithWait())
	res, err := w.goOn(ctx, m, hand, d, options)
	switch {
	case hand.path != nil && errors.Is(err, engine.ErrLeft):
		return &driven{Path: hand.path}, nil
	case res == nil && err != nil:
		return nil, application(err, passes(err))
	case err != nil && errdefs.NotAvailable.Is(err):
		return nil, application(err, true)
	}
	done := &Done{Session: res.ContextID, Run: res.RunID, Status: res.Status, Cause: res.Cause, Text: clip(res.Text()), Error: failureOf(errors.Join(res.Err, err)), Committed: res.Committed}
	return &driven{Done: done}, nil
}

// goOn begins the run, if it was not begun, resumes it, or reads how it ended.
func (w *Worker) goOn(ctx context.Context, m Member, eng engine.Engine, d drive, options []agent.RunOption) (*agent.Result, error) {
	log, err := journal.Open(ctx, w.store, d.Request.ContextID)
	if err != nil {
		return nil, err
	}
	switch {
	case !log.Ran(d.Request.RunID):
		return agent.Run(ctx, m.Agent, eng, d.Request, options...)
	case log.Run() == d.Request.RunID:
		return agent.Resume(ctx, m.Agent, eng, d.Request.ContextID, options...)
	}
	st := log.State() // it was closed by an attempt of this activity that could not say so
	return &agent.Result{ContextID: d.Request.ContextID, RunID: d.Request.RunID, Status: agent.Status(st.Status), Err: failedAs(st)}, nil
}

func failedAs(st journal.State) error {
	if st.Error == "" {
		return nil
	}
	return (&failure{Text: st.Error, Class: st.Class}).err()
}

// handing is an engine that leaves its path to a workflow, and when that has ended goes over what is on record.
type handing struct {
	*Engine
	ended   *ended
	attempt int
	cancel  context.CancelFunc
	path    *path
}

func (h *handing) Execute(ctx context.Context, run engine.Run, _ engine.Host, board *engine.Board) (*engine.Board, error) {
	if h.ended == nil || h.attempt != run.Attempt {
		p := pathOf(&run)
		h.path = &p
		return board, engine.ErrLeft
	}
	err := h.ended.Error.err()
	if errdefs.Canceled(err) {
		h.cancel()
	}
	return h.walked(ctx, run, board, err)
}

// clip shortens an answer that stands in a history.
func clip(s string) string {
	const most = 32 << 10
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
