package temporal

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/stream"
)

// Queue is the task queue that workers and engines meet at, unless they are told of another.
const Queue = "pawl"

// Member is an agent that workers have, with all that is not data: its engine with models, tools and keys, its hooks.
type Member struct {
	Agent   agent.Agent
	Engine  engine.Engine     // which is a Performer too, as loop, graph and script are
	Options []agent.RunOption // hooks, budgets, dependencies, a sandbox: what binds each of its runs
	// Subagents are those of the engine's [agent.Task] tool, whose runs are to be workflows of their own, below that of the run that gives the task. The run of another one is a part of the call's activity, and ends on one worker. One that is a member too, with the
	// same engine, may have Subagents of its own.
	Subagents agent.Subagents
}

// Timing is how long things may take. Zero values are the defaults.
type Timing struct {
	Effect    time.Duration // one effect, in one attempt. Default 24 h
	Heartbeat time.Duration // how long nothing may be heard of a process that is at an effect, before another one takes it up. Default 30 s
	Again     time.Duration // before an effect is tried again; each time twice that, up to Slowest. Default 1 s
	Slowest   time.Duration // Default 1 min
	Retries   int           // how often a model call is tried again for a reason that may pass. Default 10; -1: never
	// Events and Bytes are how long a workflow's history may get before the path goes on with a new one; they count for those that begin from then on. Defaults 8,000 events and 4 MiB: Temporal warns at 10,000 and 10 MiB, and ends workflows at 51,200 and 50 MiB. While calls go on in the background a history may get five times as long: one of them may wait for what the path does next.
	Events, Bytes int
}

func (t Timing) orDefaults() Timing {
	t.Effect, t.Heartbeat, t.Again, t.Slowest = cmp.Or(t.Effect, 24*time.Hour), cmp.Or(t.Heartbeat, 30*time.Second), cmp.Or(t.Again, time.Second), cmp.Or(t.Slowest, time.Minute)
	t.Retries, t.Events, t.Bytes = cmp.Or(t.Retries, 10), cmp.Or(t.Events, 8_000), cmp.Or(t.Bytes, 4<<20)
	return t
}

// beat is how often a worker says that it is at an effect, and looks whether the effect is still wanted.
func (w *Worker) beat() time.Duration { return min(w.timing.Heartbeat/6, 5*time.Second) }

// Config is what a Worker is made of.
type Config struct {
	Client  client.Client
	Store   journal.Store // shared by all workers, and by those who begin runs
	Members []Member
	Teams   []Team         // whose members are members of the worker, too
	Queue   string         // default [Queue]
	Timing  Timing         // the same in all workers of a queue
	Options worker.Options // Temporal's own: how much is done at the same time (pollers are 8 by default, for activities and for workflows), DeadlockDetectionTimeout is 8 s by default: what a script may reckon between two effects; and in WorkerStopTimeout how long Run waits at its end for what is under way, before it leaves that to others
	Log     *slog.Logger
	Ready   func() // called by Run once the worker works
	// Stream gets what effects say while they go on, for those who look: the same as theirs ([WithStream]). nil: nobody does, and models are not asked to stream.
	Stream stream.Store
}

// Worker does what runs ask for.
type Worker struct {
	client  client.Client
	store   journal.Store
	members map[string]Member
	teams   map[string]Team
	timing  Timing
	log     *slog.Logger
	alive   alive
	calls   latest[engine.Effect]  // with runs below
	values  latest[*engine.Values] // what hooks of a run share in this process
	logs    logs
	leases  leases
	stream  *stream.Writer // nil: none
	inner   worker.Worker
	ready   func()
	grace   time.Duration
}

// leaving is how long what is left to others may take to be left: commands are killed, and tools that ignore it have their time.
const leaving = 10 * time.Second

// reckons is how long a path may reckon between two effects, a script above all. With Temporal's own second for it, one that takes longer would be begun anew for ever; Temporal gives a workflow's task 10 s.
const reckons = 8 * time.Second

// NewWorker makes a worker, and starts nothing.
func NewWorker(c Config) (*Worker, error) {
	w := &Worker{client: c.Client, store: c.Store, members: map[string]Member{}, teams: map[string]Team{}, timing: c.Timing.orDefaults(), log: cmp.Or(c.Log, slog.Default()), ready: c.Ready}
	w.logs.store, w.leases.store = c.Store, c.Store
	if c.Options.DeadlockDetectionTimeout == 0 {
		c.Options.DeadlockDetectionTimeout = reckons
	}
	if c.Options.MaxHeartbeatThrottleInterval == 0 { // by default a cancellation would come as late as most of Timing.Heartbeat
		c.Options.MaxHeartbeatThrottleInterval = w.beat()
	}
	if c.Stream != nil {
		w.stream = stream.NewWriter(c.Stream, stream.Batching{}, w.log)
	}
	switch {
	case c.Client == nil:
		return nil, errdefs.Validation.Errorf("temporal: a worker needs a client")
	case c.Store == nil:
		return nil, errdefs.Validation.Errorf("temporal: a worker needs the journal that all processes share")
	case len(c.Members)+len(c.Teams) == 0:
		return nil, errdefs.Validation.Errorf("temporal: a worker needs members: the agents whose runs it does")
	}
	if err := w.enlist(c); err != nil {
		return nil, err
	}
	w.grace = c.Options.WorkerStopTimeout
	c.Options.WorkerStopTimeout += leaving
	w.inner = worker.New(c.Client, cmp.Or(c.Queue, Queue), polling(c.Options))
	w.workflows(w.inner)
	w.inner.RegisterActivityWithOptions(w.driving, activity.RegisterOptions{Name: driveActivity})
	w.inner.RegisterActivityWithOptions(w.answering, activity.RegisterOptions{Name: answerActivity})
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

// Run works until ctx ends, and then lets go of what it is at: others take it up.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.inner.Start(); err != nil {
		return errdefs.NotAvailable.Errorf("temporal: the worker can't start: %w", err)
	}
	if w.ready != nil {
		w.ready()
	}
	<-ctx.Done()
	w.inner.Stop()
	w.silence(ctx)
	return nil
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
