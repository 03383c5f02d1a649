package temporal

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// Queue is the task queue that workers and engines meet at, unless they are told of another.
const Queue = "pawl"

// Member is an agent that workers have, with all that is not data: its engine with models, tools and keys, its hooks.
type Member struct {
	Agent   agent.Agent
	Engine  engine.Engine     // which is a Performer too, as loop, graph and script are
	Options []agent.RunOption // hooks, budgets, dependencies, a sandbox: what binds each of its runs
}

// Timing is how long things may take. Zero values are the defaults.
type Timing struct {
	Effect    time.Duration // one effect, in one attempt. Default 24 h
	Heartbeat time.Duration // how long nothing may be heard of a process that is at an effect, before another one takes it up. Default 30 s
	Again     time.Duration // before an effect is tried again; each time twice that, up to Slowest. Default 1 s
	Slowest   time.Duration // Default 1 min
	Retries   int           // how often a model call is tried again for a reason that may pass. Default 10; -1: never
	// Events and Bytes are how long a workflow's history may get before the path goes on with a new one; they count for those that begin from then on. Defaults 8,000 events and 4 MiB: Temporal warns at 10,000 and 10 MiB, and ends workflows at 51,200 and 50 MiB.
	Events, Bytes int
}

func (t Timing) orDefaults() Timing {
	t.Effect, t.Heartbeat, t.Again, t.Slowest = cmp.Or(t.Effect, 24*time.Hour), cmp.Or(t.Heartbeat, 30*time.Second), cmp.Or(t.Again, time.Second), cmp.Or(t.Slowest, time.Minute)
	t.Retries, t.Events, t.Bytes = cmp.Or(t.Retries, 10), cmp.Or(t.Events, 8_000), cmp.Or(t.Bytes, 4<<20)
	return t
}

// Config is what a Worker is made of.
type Config struct {
	Client  client.Client
	Store   journal.Store // shared by all workers, and by those who begin runs
	Members []Member
	Queue   string         // default [Queue]
	Timing  Timing         // the same in all workers of a queue
	Options worker.Options // Temporal's own: how much is done at the same time. Pollers are 8 by default, for activities and for workflows
	Log     *slog.Logger
}

// Worker does what runs ask for.
type Worker struct {
	store   journal.Store
	members map[string]Member
	timing  Timing
	log     *slog.Logger
	alive   alive
	logs    logs
	inner   worker.Worker
}

// NewWorker makes a worker, and starts nothing.
func NewWorker(c Config) (*Worker, error) {
	w := &Worker{store: c.Store, members: map[string]Member{}, timing: c.Timing.orDefaults(), log: cmp.Or(c.Log, slog.Default())}
	w.logs.store = c.Store
	switch {
	case c.Client == nil:
		return nil, errdefs.Validation.Errorf("temporal: a worker needs a client")
	case c.Store == nil:
		return nil, errdefs.Validation.Errorf("temporal: a worker needs the journal that all processes share")
	case len(c.Members) == 0:
		return nil, errdefs.Validation.Errorf("temporal: a worker needs members: the agents whose runs it does")
	}
	for _, m := range c.Members {
		if err := m.check(); err != nil {
			return nil, err
		}
		if _, twice := w.members[m.Agent.ID]; twice {
			return nil, errdefs.Conflict.Errorf("temporal: two members have the ID %s", m.Agent.ID)
		}
		w.members[m.Agent.ID] = m
	}
	w.inner = worker.New(c.Client, cmp.Or(c.Queue, Queue), polling(c.Options))
	w.workflows(w.inner)
	w.inner.RegisterActivityWithOptions(w.driving, activity.RegisterOptions{Name: driveActivity})
	for _, name := range []string{modelActivity, toolActivity, stepActivity} {
		w.inner.RegisterActivityWithOptions(w.perform, activity.RegisterOptions{Name: name})
	}
	return w, nil
}

// workflows registers what runs as a workflow.
func (w *Worker) workflows(r interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
},
) {
	r.RegisterWorkflowWithOptions(w.run, workflow.RegisterOptions{Name: runWorkflow})
	r.RegisterWorkflowWithOptions(w.walk, workflow.RegisterOptions{Name: pathWorkflow})
}

func (m Member) check() error {
	switch _, performs := m.Engine.(engine.Performer); {
	case m.Agent.ID == "":
		return errdefs.Validation.Errorf("temporal: a member's agent has no ID")
	case m.Engine == nil:
		return errdefs.Validation.Errorf("temporal: the member %s has no engine", m.Agent.ID)
	case !performs:
		return errdefs.NotAvailable.Errorf("temporal: the engine of %s does its work by itself: one that performs effects is needed, as loop, graph and script are", m.Agent.ID)
	case !engine.CapabilitiesOf(m.Engine).Resume:
		return errdefs.NotAvailable.Errorf("temporal: the engine of %s can't resume", m.Agent.ID)
	}
	return nil
}

// gate is what of the agent's tools a caller admits. Its nil admits all.
func (m Member) gate(caller *[]string) []string {
	switch {
	case caller == nil:
		return slices.Clone(m.Agent.Tools)
	case m.Agent.Tools == nil:
		return append([]string{}, *caller...)
	}
	both := []string{}
	for _, name := range m.Agent.Tools {
		if slices.ContainsFunc(*caller, func(other string) bool { return strings.EqualFold(name, other) }) {
			both = append(both, name)
		}
	}
	return both
}

func (w *Worker) stranger(id string) error {
	var names []string
	for name := range w.members {
		names = append(names, name)
	}
	slices.Sort(names)
	return errdefs.NotFound.Errorf("temporal: the worker has no member %q; it has: %s", id, strings.Join(names, ", "))
}

// Run works until ctx ends, and then lets go of what it is at: others take it up.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.inner.Start(); err != nil {
		return errdefs.NotAvailable.Errorf("temporal: the worker can't start: %w", err)
	}
	<-ctx.Done()
	w.inner.Stop()
	return nil
}

// perform is the activity: one effect, as it is done locally, over the journal that all processes share.
func (w *Worker) perform(ctx context.Context, in step) (*did, error) {
	ctx, stop := w.beating(ctx)
	defer stop()
	d, err := w.effect(ctx, in)
	if err != nil && ctx.Err() != nil {
		if cause := context.Cause(ctx); sdk.IsCanceledError(cause) { // asked for, by the workflow
			return nil, sdk.NewCanceledError()
		}
		return nil, application(errdefs.NotAvailable.Errorf("temporal: the worker was stopped: %w", err), true)
	}
	return d, err
}

// beating tells Temporal that the process is alive, as long as the activity goes on: not only when a model or a tool has something to say.
func (w *Worker) beating(ctx context.Context) (context.Context, func()) {
	inner, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(w.timing.Heartbeat / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-ctx.Done():
				if !sdk.IsCanceledError(context.Cause(ctx)) { // the worker stops, or another one has the effect by now: the run is not cancelled
					cancel(engine.ErrLeft)
				}
				return
			case <-inner.Done():
				return
			}
		}
	})
	return inner, func() { cancel(nil); wg.Wait() }
}

// effect performs one effect.
func (w *Worker) effect(ctx context.Context, in step) (*did, error) {
	m, ok := w.members[in.Member]
	if !ok {
		return nil, application(w.stranger(in.Member), true) // another worker may have it
	}
	log, err := w.logs.open(ctx, in.Session)
	if err != nil {
		return nil, application(err, true)
	}
	log = log.As(in.Driver)
	if d, begun := log.Recorded(in.Key); d != nil && log.Run() == in.Run { // by an attempt of this activity that could not say so
		seq, err := w.find(ctx, in, log.Begun(in.Key), begun)
		if err != nil {
			return nil, application(err, true)
		}
		return &did{Seq: seq}, nil
	}
	options := append(slices.Clip(m.Options), agent.WithAttributes(in.Attrs), agent.WithUnknown(engine.Unknown(in.Unknown)), agent.WithAskTTL(in.AskTTL))
	ctx, part, err := agent.PartOf(ctx, m.Agent, log, in.Run, options...)
	if err != nil {
		return nil, application(err, false)
	}
	part.Run.System, part.Run.Tools = in.System, m.gate(in.Tools)
	e := w.alive.get(in.Session, in.Run, part.Run.Attempt, in.Key)
	if e == nil {
		e, err = engine.Find(ctx, m.Engine, part.Run, part.Board, func(k journal.Key) journal.Data { d, _ := log.Recorded(k); return d }, in.Key)
		if err != nil {
			return nil, application(err, false)
		}
	}
	host := &noting{step: in.Key.String()}
	_, err = engine.Local(part.Run, host, m.Engine.(engine.Performer)).Do(ctx, e)
	d := &did{Seq: host.seq.Load(), Error: failureOf(err)}
	if done, begun := log.Recorded(in.Key); d.Seq == 0 && done != nil { // another attempt was faster
		seq, findErr := w.find(context.WithoutCancel(ctx), in, log.Begun(in.Key), begun)
		if findErr != nil {
			return nil, application(findErr, true)
		}
		d.Seq = seq
	}
	switch {
	case err == nil, d.Seq > 0:
		return d, nil
	case errors.As(err, new(engine.InterruptedError)):
		for _, p := range log.State().Pending {
			if p.Key == in.Key {
				d.Error.Deadline = p.Deadline()
			}
		}
		return d, nil
	case log.Failed() != nil:
		return nil, application(err, true)
	}
	return nil, application(err, passes(err))
}

// find gives the entry that has the outcome of an effect. It stands behind its intent, if it has one.
func (w *Worker) find(ctx context.Context, in step, from int64, begun bool) (int64, error) {
	if !begun {
		from = 0
	}
	intent := begun
	for e, err := range w.store.Read(ctx, in.Session, max(from-1, 0)) {
		switch {
		case err != nil:
			return 0, err
		case e.Run != in.Run || e.Key != in.Key:
		case intent:
			intent = false
		case isNote(e.Data):
		default:
			return e.Seq, nil
		}
	}
	return 0, errdefs.Internal.Errorf("temporal: the outcome of %v is not in the journal of session %s", in.Key, in.Session)
}

// isNote reports whether an entry says that an effect came to nothing.
func isNote(d journal.Data) bool {
	_, note := d.(journal.ModelFailed)
	return note
}

// noting is the host of an effect in a worker: it notes where its outcome is.
type noting struct {
	engine.NoopHost
	step string
	seq  atomic.Int64
}

// Listening reports that nobody listens.
func (*noting) Listening() bool { return false }

// Checkpoint comes after each outcome.
func (n *noting) Checkpoint(_ context.Context, c engine.Checkpoint) error {
	if c.Step == n.step {
		n.seq.Store(c.Seq)
	}
	return nil
}

// passes reports whether an effect that failed may be tried again.
func passes(err error) bool {
	return errdefs.RateLimit.Is(err) || errdefs.NotAvailable.Is(err) || errdefs.Timeout.Is(err)
}

// logs are the sessions that the worker has read, the last ones that were needed.
type logs struct {
	store journal.Store
	mu    sync.Mutex
	all   map[string]*journal.Log
	order []string // the last one needed last
}

// mostLogs is how many sessions a worker keeps in memory.
const mostLogs = 256

// open gives a session, read to its end.
func (l *logs) open(ctx context.Context, session string) (*journal.Log, error) {
	l.mu.Lock()
	log := l.all[session]
	l.mu.Unlock()
	if log == nil {
		opened, err := journal.Open(ctx, l.store, session)
		if err != nil {
			return nil, err
		}
		l.keep(session, opened)
		return opened, nil
	}
	return log, log.Refresh(ctx)
}

func (l *logs) keep(session string, log *journal.Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]*journal.Log{}
	}
	if _, there := l.all[session]; !there {
		l.order = append(l.order, session)
	}
	l.all[session] = log
	if len(l.order) > mostLogs {
		delete(l.all, l.order[0])
		l.order = slices.Delete(l.order, 0, 1)
	}
}
