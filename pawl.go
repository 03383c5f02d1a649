// Package pawl is the front door. [New] makes a [Runtime] that works in a project directory, [OpenModel] a model from a name such as
// "anthropic/claude-sonnet-5-5". All they do is assemble an agent, an engine and a journal; agent.Run does the rest.
//
//	rt, err := pawl.New(ctx, pawl.Options{Model: m, ProjectRoot: "."})
//	if err != nil { ... }
//	defer rt.Close()
//	res, err := rt.Run(ctx, pawl.Request{Prompt: "Why does the build fail?"})
package pawl

import (
	"context"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/catalog"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool"
	"github.com/pawl-dev/pawl/tool/builtin"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// Options makes a Runtime. An unset field has the default given here.
type Options struct {
	Model       model.Model      // required
	ProjectRoot string           // the directory that the built-in tools work in: the current one
	System      string           // the system prompt: [DefaultSystem]
	Settings    model.Settings   // of every model call
	Tools       []tool.Tool      // offered after the built-in ones
	MCP         []mcp.Server     // whose tools are offered after those; what goes wrong with one is a warning of the run, unless it is Required
	NoBuiltins  bool             // leave out the built-in tools (bash, bash_output, bash_kill, read, write, edit, glob, grep)
	Sandbox     *sandbox.Policy  // what commands may reach; its Root is ProjectRoot when unset: [DefaultSandbox], or none where none can be had, and then commands and edits are asked about
	Permissions hook.Permissions // what is asked of people and what is refused; its Dir, Fence and Safety (hook.SafetyIn) are filled in. Safety = [NoSafety] switches the safety check off
	Middleware  []hook.Middleware
	Limits      loop.Limits
	Timeout     time.Duration    // of a run: 0 is none
	Budget      *engine.Budget   // of all runs of the Runtime together: none
	Host        engine.Host      // who answers questions, interrupts, and listens beside RunStream's caller: nobody
	Prices      *catalog.Catalog // what models cost: catalog.Default()
	OutputDir   string           // where outputs that are too long for the model are kept: a temporary directory that goes with Close
	Journal     journal.Store    // SQLite in the user's state directory; see [DefaultJournal]
	Logger      *slog.Logger     // nothing is logged
	ID          string           // the agent's id: "pawl"
}

// DefaultSystem is the system prompt of a Runtime that is given none.
const DefaultSystem = `You are an agent that works in a project directory with the tools you are given.
Look before you change: read the files that matter. Make the smallest change that does what was asked, check that it works, and say in a few sentences what you did and what you found.`

// Runtime runs prompts in a project. Safe for concurrent use; two runs of one session follow each other in the order of their calls.
type Runtime struct {
	agent    agent.Agent
	config   loop.Config // without the tools of MCP servers
	mcp      *mcp.Client // nil: there are none
	opts     Options
	dir      string
	close    []func() error
	closing  sync.Once
	closeErr error
	policy   sandbox.Policy
	unfenced string // why commands run without a sandbox

	mu      sync.Mutex
	engine  *loop.Engine    // see current
	warned  int             // warnings of MCP servers that were told
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup
	closed  bool
	queues  map[string]*queue // sessions with runs
}

// New assembles a Runtime. What it opened is freed by Close; ctx ending does not close it.
func New(ctx context.Context, o Options) (*Runtime, error) {
	rt := &Runtime{queues: map[string]*queue{}}
	if err := rt.assemble(ctx, o); err != nil {
		_ = rt.free()
		return nil, err
	}
	return rt, nil
}

func (r *Runtime) assemble(ctx context.Context, o Options) (err error) {
	if o.Model == nil {
		return errdefs.Validation.Errorf("pawl: Options.Model is needed: see pawl.OpenModel")
	}
	if o.Timeout < 0 {
		return errdefs.Validation.Errorf("pawl: Options.Timeout is %v: want a time, or 0 for none", o.Timeout)
	}
	if o.Host == nil {
		o.Host = engine.NoopHost{}
	}
	if o.ProjectRoot == "" {
		o.ProjectRoot = "."
	}
	if r.dir, err = filepath.Abs(o.ProjectRoot); err != nil {
		return errdefs.Validation.Errorf("pawl: project root %q: %w", o.ProjectRoot, err)
	}
	policy, unfenced, err := o.fence(r.dir, sandbox.Probe())
	if err != nil {
		return err
	}
	r.policy, r.unfenced = policy, unfenced
	if o.Journal == nil { // before the tools: what they still run at Close is put on record
		if DefaultJournal() == "" {
			return errdefs.Validation.Errorf("pawl: no place for the journal: neither XDG_STATE_HOME nor HOME is set; set one, or Options.Journal")
		}
		store, err := sqlite.Open(DefaultJournal()) //nolint:contextcheck // a local file: opening it does not wait
		if err != nil {
			return err
		}
		r.close = append(r.close, store.Close)
		o.Journal = store
	}
	var readable []string
	tools := slices.Clone(o.Tools)
	if !o.NoBuiltins {
		ws, err := builtin.Open(r.dir, builtin.WithEnv(withoutKeys(os.Environ())), builtin.WithOutputDir(o.OutputDir), builtin.WithSandbox(policy))
		if err != nil {
			return err
		}
		r.close = append(r.close, ws.Close)
		readable = append(readable, ws.OutputDir())
		tools = append(ws.Tools(), tools...)
	}
	permission, err := o.permission(r.dir, !policy.Off, readable...)
	if err != nil {
		return err
	}
	if o.System == "" {
		o.System = DefaultSystem
	}
	if o.ID == "" {
		o.ID = "pawl"
	}
	if err := r.connect(ctx, o); err != nil {
		return err
	}
	r.config = loop.Config{Model: o.Model, Settings: o.Settings, Tools: tools, Limits: o.Limits, Prices: o.Prices, Logger: o.Logger}
	config := r.config
	if r.mcp != nil {
		config.Tools = append(slices.Clip(tools), r.mcp.Tools(ctx)...)
	}
	if r.engine, err = loop.New(config); err != nil {
		return err
	}
	r.opts, r.agent = o, agent.Agent{ID: o.ID, Instructions: o.System, Hooks: append([]hook.Middleware{permission}, o.Middleware...)}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return nil
}

// DefaultJournal is the file of the journal that Options.Journal stands for when unset: pawl/journal.db in $XDG_STATE_HOME, or in ~/.local/state. "" when there is no home directory.
func DefaultJournal() string {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "pawl", "journal.db")
}

// Request is one run: agent.Request, or just Prompt and SessionID.
type Request struct {
	agent.Request
	Prompt    string // the user's message, when Message isn't set
	SessionID string // the session, when ContextID isn't set; "" is a new one
}

// Run runs a prompt to its end. The error is Result.Err for every status but completed, or what kept the run from beginning; then the Result is nil.
func (r *Runtime) Run(ctx context.Context, req Request, opts ...agent.RunOption) (*agent.Result, error) {
	req = req.filled()
	return r.serve(ctx, req.ContextID, func(ctx context.Context) (*agent.Result, error) {
		return agent.Run(ctx, r.agent, r.current(ctx), req.Request, r.options(opts)...)
	})
}

// RunStream runs a prompt while it is ranged over, in the ranging goroutine: the loop body must not run the same session or call Close,
// either would wait for itself. The events are the run's journal entries as they are written, and the
// deltas in between. Breaking out cancels the run and frees everything; what was finished by then is in the journal. A run that does not complete yields its error last.
func (r *Runtime) RunStream(ctx context.Context, req Request, opts ...agent.RunOption) iter.Seq2[event.Event, error] {
	return stream(ctx, r.opts.Host, func(ctx context.Context, h engine.Host) (*agent.Result, error) {
		return r.Run(ctx, req, append(slices.Clip(opts), agent.WithEngineHost(h))...)
	})
}

// Resume goes on with the session's unfinished run; errdefs.NotFound when there is none.
func (r *Runtime) Resume(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error) {
	return r.serve(ctx, session, func(ctx context.Context) (*agent.Result, error) {
		return agent.Resume(ctx, r.agent, r.current(ctx), session, r.options(opts)...)
	})
}

// Steer says something to the run under way in a session: see [agent.Steer].
func (r *Runtime) Steer(ctx context.Context, session, text string) error {
	return agent.Steer(ctx, r.opts.Journal, session, message.User(text))
}

// Replay drives the engine through what is on record of a session, with recorded outcomes only, and gives the first difference: see [agent.Replay].
func (r *Runtime) Replay(ctx context.Context, session string) ([]agent.Replayed, error) {
	return agent.Replay(ctx, r.agent, r.current(ctx), session, r.options(nil)...)
}

// Journal is the store that the Runtime's sessions are in.
func (r *Runtime) Journal() journal.Store { return r.opts.Journal }

// Dir is the project directory, absolute.
func (r *Runtime) Dir() string { return r.dir }

func (r *Runtime) options(more []agent.RunOption) []agent.RunOption {
	opts := []agent.RunOption{agent.WithEngineHost(r.opts.Host), agent.WithJournal(r.opts.Journal), agent.WithDir(r.dir), agent.WithTimeout(r.opts.Timeout), agent.WithWarning(r.warning())}
	if r.opts.Budget != nil {
		opts = append(opts, agent.WithBudget(r.opts.Budget))
	}
	if !r.policy.Off {
		opts = append(opts, agent.WithSandbox(r.policy)) // for tools of the caller's own, and those of subagents
	}
	return append(opts, more...)
}

// serve runs f alone in its session, and not after Close.
func (r *Runtime) serve(ctx context.Context, session string, f func(context.Context) (*agent.Result, error)) (*agent.Result, error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, errdefs.NotAvailable.Errorf("pawl: the Runtime is closed")
	}
	r.running.Add(1)
	r.mu.Unlock()
	defer r.running.Done()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)() //nolint:contextcheck // Close cancels what runs

	leave, err := r.enter(ctx, session)
	if err != nil {
		return nil, err
	}
	defer leave()
	res, err := f(context.WithValue(ctx, inside{r, session}, true))
	if err == nil {
		err = res.Err
	}
	return res, err
}

// Close cancels what runs, waits for it, and frees what the Runtime opened. A second call gives the first one's error again. It must not be
// called from a tool, a hook or the body of a stream's loop, which it would wait for.
func (r *Runtime) Close() error {
	r.closing.Do(func() {
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
		r.cancel()
		r.running.Wait()
		r.closeErr = r.free()
	})
	return r.closeErr
}

func (r *Runtime) free() (err error) {
	for _, f := range slices.Backward(r.close) {
		if e := f(); e != nil && err == nil {
			err = e
		}
	}
	return err
}

func (r Request) filled() Request {
	if r.Message.IsZero() && r.Prompt != "" {
		r.Message = message.User(r.Prompt)
	}
	if r.ContextID == "" {
		r.ContextID = r.SessionID
	}
	return r
}
