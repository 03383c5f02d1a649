package temporal

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// Order asks workers for a run that nobody needs to wait for. It stands in the workflow's history, at most 512 KiB of it as JSON: give files by an ID or a URL.
type Order struct {
	Agent      string               `json:"agent"`             // the ID of a member, or of a team
	Session    string               `json:"session,omitempty"` // default: the run's ID
	Run        string               `json:"run,omitempty"`     // default: a new one. Two orders of one session and run are one
	Task       string               `json:"task,omitempty"`
	Message    message.Message      `json:"message,omitzero"` // none: the session's unfinished run goes on
	Inputs     map[string]any       `json:"inputs,omitempty"`
	Config     *agent.RequestConfig `json:"configuration,omitempty"`
	Attributes map[string]string    `json:"attributes,omitempty"` // as of agent.WithAttributes: user.id, say
	Queue      string               `json:"-"`                    // default: [Queue]
}

// Done is how a run ended. All that was said is in the journal.
type Done struct {
	Session   string       `json:"session"`
	Run       string       `json:"run"` // of a team that of the last agent, which is not the Handle's
	Status    agent.Status `json:"status"`
	Cause     engine.Cause `json:"cause,omitempty"` // of one that was interrupted: it goes on when it is ordered again, without a message
	Text      string       `json:"text,omitempty"`  // the answer, up to 32 KiB of it
	Error     *failure     `json:"error,omitempty"` // see [Done.Err]
	Committed bool         `json:"committed,omitempty"`
}

// Err is what the run failed with, of the same class as in the worker; nil when it did not.
func (d *Done) Err() error { return d.Error.err() }

// ends is how the workflow ends: as the run does.
func (d *Done) ends() (*Done, error) {
	switch d.Status {
	case agent.StatusCompleted, agent.StatusInterrupted:
		return d, nil
	case agent.StatusCanceled:
		return nil, sdk.NewCanceledError(d)
	}
	f := d.Error
	if f == nil {
		f = &failure{Text: "the run ended as " + string(d.Status)}
	}
	return nil, sdk.NewApplicationErrorWithOptions(f.Text, typeOf(f), sdk.ApplicationErrorOptions{NonRetryable: true, Details: []any{f, d}})
}

// doneIn is how a run ended whose workflow ended with err; nil when err says nothing of that.
func doneIn(err error) *Done {
	var app *sdk.ApplicationError
	var canceled *sdk.CanceledError
	d := new(Done)
	switch {
	case errors.As(err, &canceled) && canceled.HasDetails() && canceled.Details(d) == nil:
		return d
	case errors.As(err, &app) && app.HasDetails() && app.Details(new(failure), d) == nil && d.Run != "":
		return d
	}
	return nil
}

// Handle is a run that workers do, wherever it was begun. It holds no state: any program can make one. Safe for concurrent use.
type Handle struct {
	Session, Run string
	client       client.Client
}

// Begin has workers do a run. It returns when the Temporal service has the order: from then on the run needs nobody. Ordered twice it is one run.
//
// Where no worker is, or none that has the agent, the run waits until there is one: Begin does not look, and the workers' logs say so. One that finds the session at work waits for its turn.
//
// Validation: the order has no agent, no message and not both session and run, or is too large. NotAvailable: the service can't be reached.
func Begin(ctx context.Context, c client.Client, o Order) (*Handle, error) {
	switch {
	case o.Agent == "":
		return nil, errdefs.Validation.Errorf("temporal: the order names no agent")
	case o.Message.IsZero() && (o.Session == "" || o.Run == ""):
		return nil, errdefs.Validation.Errorf("temporal: the order has no message: name the session and the run that is to go on")
	}
	o.Run = cmp.Or(o.Run, "run-"+strings.ToLower(rand.Text()))
	o.Session = cmp.Or(o.Session, o.Run)
	if err := crosses("the order", o); err != nil {
		return nil, err
	}
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: runID(o.Session, o.Run), TaskQueue: cmp.Or(o.Queue, Queue), WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, runWorkflow, o)
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	return Attach(c, o.Session, o.Run), nil
}

// Attach is the Handle of a run that was begun before.
func Attach(c client.Client, session, run string) *Handle { return &Handle{session, run, c} }

// Wait waits until the run has ended, or was interrupted. A question to a person ends nothing: the run waits for its Answer, and agent.Pending says what is asked. A run that failed is a [Done] with an error in it; an error of Wait's own is about the waiting, or a run that could not begin: Conflict when the session has another unfinished run, say.
func (h *Handle) Wait(ctx context.Context) (*Done, error) {
	d := new(Done)
	if err := h.client.GetWorkflow(ctx, runID(h.Session, h.Run), "").Get(ctx, d); err != nil {
		if d := doneIn(err); d != nil {
			return d, nil
		}
		return nil, h.failed(ctx, err)
	}
	return d, nil
}

// Answer answers what waits for a person in the session or below it: its ID is that of agent.Pending. It returns when the answer is on record. Conflict: nothing waits for it any more. NotFound: the run is over.
func (h *Handle) Answer(ctx context.Context, a journal.Answered) error {
	if err := crosses("the answer", a); err != nil {
		return err
	}
	up, err := h.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: runID(h.Session, h.Run), UpdateName: answerUpdate, Args: []any{a}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = up.Get(ctx, nil)
	}
	return h.failed(ctx, err)
}

// Interrupt stops the run at its next step, so that it can go on later. It returns when the service has the interrupt.
func (h *Handle) Interrupt(ctx context.Context, i engine.Interrupt) error {
	return h.failed(ctx, h.client.SignalWorkflow(ctx, runID(h.Session, h.Run), "", interruptSignal, interruption{string(i.Cause), i.Detail}))
}

// Cancel ends the run: tools under way are cancelled, and what is below is, too. It returns when the service has the request; there is no error for a run that is over.
func (h *Handle) Cancel(ctx context.Context) error {
	return h.failed(ctx, h.client.CancelWorkflow(ctx, runID(h.Session, h.Run), ""))
}

// failed gives what the service says a class.
func (h *Handle) failed(ctx context.Context, err error) error {
	var none *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &none):
		return errdefs.NotFound.Errorf("temporal: no run %s of session %s is under way: %w", h.Run, h.Session, err)
	}
	if err = received(err); errdefs.Of(err) == nil && !errdefs.Canceled(err) {
		return errdefs.NotAvailable.Errorf("temporal: %w", err)
	}
	return err
}

// poke tells the workflows of a session, and of the unfinished tasks below it, to look at the journal again.
func poke(ctx context.Context, c client.Client, store journal.Store, session string) error {
	log, err := journal.Open(ctx, store, session)
	if err != nil {
		return err
	}
	st := log.State()
	if st.Run == "" {
		return nil
	}
	var gone *serviceerror.NotFound
	if err := c.SignalWorkflow(ctx, pathID(session, st.Run, st.Attempt), "", answeredSignal, session); err != nil && !errors.As(err, &gone) {
		return errdefs.NotAvailable.Errorf("temporal: the workflow of session %s can't be told: %w", session, err)
	}
	for _, call := range st.Unfinished() {
		if err := poke(ctx, c, store, journal.TaskSession(session, call)); err != nil {
			return err
		}
	}
	return nil
}
