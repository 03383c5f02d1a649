package agent

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/sandbox"
)

// RunOption shapes one Run.
type RunOption func(*config)

type config struct {
	seed       Seeder
	host       engine.Host
	store      journal.Store
	deps       *engine.Dependencies
	attrs      map[string]string
	observers  []Observer
	deciders   []Decider
	committers []Committer
	hooks      []hook.Middleware
	tracers    []engine.Tracer
	revise     int
	parent     string
	resume     *engine.Checkpoint
	budget     *engine.Budget
	sandbox    *sandbox.Policy
	warnings   []string
	terms      func(recorded json.RawMessage) (Terms, error)
	timeout    time.Duration
	dir        string
	wait       bool
	unknown    engine.Unknown
	askTTL     time.Duration
	artifacts  []string
	relay      *relay             // of a team's runs
	untrusted  string             // journal.State.Untrusted of the run that this one is a task of
	behind     int64              // the run begins right behind this entry of the session, or not at all; 0: anywhere
	limit      error              // what the context's end means, when a caller of ours set it: see turn
	private    bool               // the store is this run's own
	opened     func(*journal.Log) // is told of the log that the run is driven with; may be nil
	open       func(context.Context, journal.Store, string) (*journal.Log, error)
}

func configure(opts []RunOption) *config {
	c := &config{host: engine.NoopHost{}, open: journal.Open}
	for _, o := range opts {
		if o != nil {
			o(c)
		}
	}
	if c.host == nil {
		c.host = engine.NoopHost{}
	}
	if c.store == nil {
		c.store, c.private = journal.Memory(), true
	}
	return c
}

// WithBoardSeed replaces the first board.
func WithBoardSeed(s Seeder) RunOption { return func(c *config) { c.seed = s } }

// WithEngineHost says where; the engine gets it as it is. Default, and for nil: engine.NoopHost.
func WithEngineHost(h engine.Host) RunOption { return func(c *config) { c.host = h } }

// WithWarning has the host told something when the run begins or goes on: each text that is not empty as an event.Warning of its own.
func WithWarning(texts ...string) RunOption {
	return func(c *config) {
		c.warnings = slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" })
	}
}

// WithSandbox narrows what commands of the run, and of the runs below it, may reach: tools find the policy in their context (sandbox.From), and bash heeds it. It
// never widens what a run above, or a tool's own fence, says. It is not on record: a Resume gives it again.
func WithSandbox(p sandbox.Policy) RunOption { return func(c *config) { c.sandbox = &p } }

// WithJournal keeps the session in s, under the request's ContextID. Default: journal.Memory, for this run only.
func WithJournal(s journal.Store) RunOption { return func(c *config) { c.store = s } }

// WithOpen has open open the run's session, in the place of [journal.Open]: for who keeps the Log of the run before, and gives a [journal.Log.Reopen] of it, so that a session is not read anew for each run.
func WithOpen(open func(ctx context.Context, s journal.Store, session string) (*journal.Log, error)) RunOption {
	return func(c *config) { c.open = open }
}

// WithDependencies hands clients to the engine.
func WithDependencies(d *engine.Dependencies) RunOption { return func(c *config) { c.deps = d } }

// WithAttributes adds attributes; they can't override identity (agent.id, run.id, task.id, conversation.id, agent.attempt). "user.id" is the user
// whose run it is.
func WithAttributes(m map[string]string) RunOption {
	return func(c *config) {
		if c.attrs == nil {
			c.attrs = make(map[string]string, len(m))
		}
		maps.Copy(c.attrs, m)
	}
}

// WithObserver adds an observer, after the agent's.
func WithObserver(o Observer) RunOption {
	return func(c *config) { c.observers = append(c.observers, o) }
}

// WithDecider adds a decider, after the agent's.
func WithDecider(d Decider) RunOption { return func(c *config) { c.deciders = append(c.deciders, d) } }

// WithCommitter adds a committer.
func WithCommitter(x Committer) RunOption {
	return func(c *config) { c.committers = append(c.committers, x) }
}

// WithHooks adds hooks, after the agent's.
func WithHooks(h ...hook.Middleware) RunOption {
	return func(c *config) { c.hooks = append(c.hooks, h...) }
}

// WithTracer has t stand around the run, its effects, and the runs below, which need not be given it again.
func WithTracer(t engine.Tracer) RunOption {
	return func(c *config) {
		if t != nil {
			c.tracers = append(c.tracers, t)
		}
	}
}

// WithMaxRevise allows up to n attempts; below 2 none is repeated. A further attempt runs its tools again.
func WithMaxRevise(n int) RunOption { return func(c *config) { c.revise = n } }

// WithParentRunID says which run started this one, for correlation only; bounds are inherited by context whether it is set or not.
func WithParentRunID(id string) RunOption { return func(c *config) { c.parent = id } }

// WithResumeFrom goes on with an unfinished run: a checkpoint is a session and a position in it. What is on record behind the position is not done again either; to
// go another way from there, [journal.Fork] the session. NotAvailable when the engine can't resume, Conflict when the journal does not reach the position.
func WithResumeFrom(cp *engine.Checkpoint) RunOption { return func(c *config) { c.resume = cp } }

// WithBudget limits this run and everything below it.
func WithBudget(b *engine.Budget) RunOption { return func(c *config) { c.budget = b } }

// WithTimeout limits the time of this run, all attempts together. When it is over the run ends as failed with errdefs.BudgetExceeded; the caller's own
// context ending gives canceled. 0: no limit.
func WithTimeout(d time.Duration) RunOption { return func(c *config) { c.timeout = d } }

// WithWait waits while another live driver has the session, as long as the context lasts. Without it that is errdefs.Conflict: at once where the store knows
// that he lives, else when he renews his lease, which takes 3 s. For the lease of a driver who is gone (10 s at most) every run waits.
func WithWait() RunOption { return func(c *config) { c.wait = true } }

// WithUnknown says what is done about tool calls that had begun when the process before died, and are neither read-only nor idempotent.
// Default: engine.UnknownReport.
func WithUnknown(u engine.Unknown) RunOption { return func(c *config) { c.unknown = u } }

// WithAskTTL limits how long the run's questions to people can be answered, from when they were asked. After that an answer gets errdefs.Conflict, and
// a run that waits, or is resumed, takes it for a no. 0, the default: for ever.
func WithAskTTL(d time.Duration) RunOption { return func(c *config) { c.askTTL = d } }

// WithDir notes in the journal which directory the run works in.
func WithDir(dir string) RunOption { return func(c *config) { c.dir = dir } }
