package temporal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// drive is what the activity is asked for that begins a run, and closes it: agent.Run, but for the path.
type drive struct {
	Order
	Closes *closed `json:"closes,omitempty"` // how the path ended; nil: it has not been gone yet
}

// driven is what it gives: a path to be gone, or how the run ended.
type driven struct {
	Path *path `json:"path,omitempty"`
	Done *Done `json:"done,omitempty"`
}

// run is the workflow of a run as a whole: it is begun, its path gone, and closed, by whichever workers there are.
func (w *Worker) run(wf workflow.Context, o Order) (*Done, error) {
	u := &under{timing: w.timing} // what the run is told goes to the path that it is at
	u.listen(wf)
	apart, _ := workflow.NewDisconnectedContext(wf) // a run that is cancelled is closed, too
	apart = workflow.WithActivityOptions(apart, workflow.ActivityOptions{
		StartToCloseTimeout: w.timing.Effect, HeartbeatTimeout: w.timing.Heartbeat, Summary: "drive",
		RetryPolicy: &sdk.RetryPolicy{InitialInterval: w.timing.Again, BackoffCoefficient: 2, MaximumInterval: w.timing.Slowest},
	})
	if err := workflow.SetUpdateHandler(wf, answerUpdate, func(wf workflow.Context, a journal.Answered) error {
		wf = workflow.WithActivityOptions(wf, workflow.ActivityOptions{
			StartToCloseTimeout: readWithin, RetryPolicy: &sdk.RetryPolicy{InitialInterval: w.timing.Again, BackoffCoefficient: 2, MaximumInterval: w.timing.Slowest}, Summary: clip("answer "+a.ID, mostSummary),
		})
		return workflow.ExecuteActivity(wf, answerActivity, answer{Session: o.Session, Answered: a}).Get(wf, nil)
	}); err != nil {
		return nil, application(err, false)
	}
	for d := (drive{Order: o}); ; {
		var got driven
		if err := workflow.ExecuteActivity(apart, driveActivity, d).Get(apart, &got); err != nil {
			return nil, application(received(err), false)
		}
		if got.Path == nil {
			_ = workflow.Await(apart, func() bool { return workflow.AllHandlersFinished(apart) })
			return got.Done.ends()
		}
		d.Closes = u.below(wf, *got.Path)
	}
}

// driving is the activity: it begins the run, or goes on with it, with an engine that leaves the path to a workflow.
func (w *Worker) driving(ctx context.Context, d drive) (*driven, error) {
	return whole(func() (*driven, error) { return w.drives(ctx, d) })
}

func (w *Worker) drives(ctx context.Context, d drive) (*driven, error) {
	ctx, stop := w.beating(ctx, func(context.Context) {}) // agent.Run leases the session itself
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hand := &handed{worker: w, in: step{Closes: d.Closes}, cancel: cancel}
	r, err := w.runnerOf(d.Order, hand)
	if err != nil {
		return nil, err
	}
	res, err := w.goOn(ctx, r, d)
	switch {
	case hand.path() != nil && errors.Is(err, engine.ErrLeft):
		return &driven{Path: hand.path()}, nil
	case res == nil && err != nil:
		return nil, application(err, passes(err) || errors.Is(err, engine.ErrLeft))
	case err != nil && errdefs.NotAvailable.Is(err):
		return nil, application(err, true)
	}
	done := &Done{Session: res.ContextID, Run: res.RunID, Status: res.Status, Cause: res.Cause, Text: clip(res.Text(), mostText), Error: failureOf(errors.Join(res.Err, err)), Committed: res.Committed}
	return &driven{Done: done}, nil
}

// mostText is how much of an answer stands in a history.
const mostText = 32 << 10

// runner begins and resumes the runs of an agent, or the prompts of a team.
type runner struct {
	run    func(ctx context.Context, req agent.Request) (*agent.Result, error)
	resume func(ctx context.Context, session string) (*agent.Result, error)
}

func (w *Worker) runnerOf(o Order, hand *handed) (r runner, err error) {
	also := []agent.RunOption{agent.WithJournal(w.store), agent.WithWait(), agent.WithAttributes(o.Attributes)}
	if t, ok := w.teams[o.Agent]; ok {
		cfg := t.Config
		cfg.Members = slices.Clone(cfg.Members)
		for i, m := range cfg.Members {
			cfg.Members[i].Engine = hand.engine(m.Engine, nil)
		}
		team, err := agent.NewTeam(cfg)
		options := append(slices.Clip(t.Options), also...)
		return runner{
			func(ctx context.Context, req agent.Request) (*agent.Result, error) {
				return team.Run(ctx, req, options...)
			},
			func(ctx context.Context, session string) (*agent.Result, error) {
				return team.Resume(ctx, session, options...)
			},
		}, err
	}
	m, ok := w.members[o.Agent]
	if !ok {
		return r, application(w.stranger(o.Agent), true) // another worker may have it
	}
	eng, options := hand.engine(m.Engine, nil), append(slices.Clip(m.Options), also...)
	return runner{
		func(ctx context.Context, req agent.Request) (*agent.Result, error) {
			return agent.Run(ctx, m.Agent, eng, req, options...)
		},
		func(ctx context.Context, session string) (*agent.Result, error) {
			return agent.Resume(ctx, m.Agent, eng, session, options...)
		},
	}, nil
}

// goOn begins the run, if it was not begun, resumes it, or reads how it ended.
func (w *Worker) goOn(ctx context.Context, r runner, d drive) (*agent.Result, error) {
	log, err := journal.Open(ctx, w.store, d.Session)
	if err != nil {
		return nil, err
	}
	if d.Closes != nil {
		w.leases.end(ctx, d.Session, log.Driver()) // a team leases the session under a name of its own
	}
	switch {
	case !log.Ran(d.Run):
		return r.run(ctx, agent.Request{ContextID: d.Session, RunID: d.Run, TaskID: d.Task, Message: d.Message, Inputs: d.Inputs, Config: d.Config})
	case w.ofOrder(d.Order, log.Run()):
		return r.resume(ctx, d.Session)
	}
	all, err := journal.Attempts(ctx, w.store, d.Session)
	if err != nil {
		return nil, err
	}
	at := len(all) - 1
	for at > 0 && !w.ofOrder(d.Order, all[at].Run) { // the session has gone on, with other orders
		at--
	}
	if _, team := w.teams[d.Agent]; team && at == len(all)-1 { // between two runs of its prompt, perhaps
		if res, err := r.resume(ctx, d.Session); !errdefs.NotFound.Is(err) {
			return res, err
		}
	}
	return closedAs(d.Order, all[at]), nil
}

// ofOrder reports whether a run is the order's: that of an agent, or one of those of a team's prompt.
func (w *Worker) ofOrder(o Order, run string) bool {
	ordered := o.Run
	if _, team := w.teams[o.Agent]; team {
		ordered, _, _ = strings.Cut(ordered, "-hop-")
		run, _, _ = strings.Cut(run, "-hop-")
	}
	return run == ordered
}

// closedAs is how a run ended that was closed before: by an attempt of the activity that could not say so, or for an order that is given again.
func closedAs(o Order, a journal.Attempt) *agent.Result {
	res := &agent.Result{ContextID: o.Session, RunID: o.Run, Status: agent.StatusInterrupted}
	if end, ok := a.End.(journal.RunFinished); ok {
		res.Status, res.Committed = agent.Status(end.Status), end.Committed
		if end.Error != "" {
			res.Err = (&failure{Text: end.Error, Class: end.Class}).err()
		}
	}
	if a.Last.Len() > 0 {
		res.Messages = []message.Message{a.Last.Last()}
	}
	return res
}

// answer is what the activity is asked for that puts an answer on record.
type answer struct {
	Session  string           `json:"session"`
	Answered journal.Answered `json:"answered"`
}

// answering is the activity: it puts the answer on record, and tells the workflows that may wait for it.
func (w *Worker) answering(ctx context.Context, a answer) error {
	err := agent.Answer(ctx, w.store, a.Session, a.Answered)
	if err == nil || errdefs.Conflict.Is(err) { // an attempt of this activity may have answered, and died
		err = errors.Join(err, poke(ctx, w.client, w.store, a.Session))
	}
	if err != nil {
		return application(err, passes(err))
	}
	return nil
}

// handed makes engines that leave their paths to workflows: see [handing].
type handed struct {
	worker *Worker
	in     step // whose effect it is
	cancel context.CancelFunc

	mu   sync.Mutex
	left *path
}

// path is the path that was left to a workflow; nil when none was.
func (h *handed) path() *path {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.left
}

// task is an agent.TaskEngine: it has the runs of the effect's own tasks done by workflows.
func (h *handed) task(ctx context.Context, sub agent.Subagent, _ string, _ []agent.RunOption) (engine.Engine, error) {
	at, ok := engine.InsideOf(ctx)
	if !ok || at.Run.Session != h.in.Session {
		return nil, nil
	}
	if m, ok := h.worker.members[sub.Agent.ID]; !ok || !same(m.Engine, sub.Engine) {
		return nil, nil
	}
	return h.engine(sub.Engine, append(slices.Clip(h.in.Inside), h.in.place)), nil
}

func (h *handed) engine(inner engine.Engine, inside []place) engine.Engine {
	return &handing{&Engine{inner: inner}, h, inside}
}

// handing is an engine that leaves its path to a workflow, and when that has ended goes over what is on record.
type handing struct {
	*Engine
	to     *handed
	inside []place // the calls that the run is below
}

func (h *handing) Execute(ctx context.Context, run engine.Run, _ engine.Host, board *engine.Board) (*engine.Board, error) {
	if c := h.to.in.Closes; c != nil && c.Session == run.Session && c.Run == run.ID && c.Attempt == run.Attempt {
		h.to.in.Closes = nil // resumed, it has a path again
		err := c.Error.err()
		if errdefs.Canceled(err) {
			h.to.cancel()
		}
		return h.walked(ctx, run, board, err)
	}
	p := pathOf(ctx, &run)
	p.Inside = h.inside
	if until, ok := ctx.Deadline(); ok && until.Before(activity.GetInfo(ctx).Deadline) { // and not the activity's own
		p.Until = until
	}
	if err := p.fits(); err != nil {
		return board, err
	}
	h.to.mu.Lock()
	defer h.to.mu.Unlock()
	if h.to.left != nil {
		return board, errdefs.NotAvailable.Errorf("temporal: a call can have one run below at a time")
	}
	h.to.left = &p
	return board, engine.ErrLeft
}
