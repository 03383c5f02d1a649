// Package pawl is the front door. [New] makes a [Runtime] that works in a project directory, [OpenModel] a model from a name such as
// "anthropic/claude-sonnet-5-5". All they do is assemble an agent, an engine and a journal; agent.Run does the rest.
//
//	rt, err := pawl.New(ctx, pawl.Options{Model: m, ProjectRoot: "."})
//	if err != nil { ... }
//	defer rt.Close()
//	res, err := rt.Run(ctx, pawl.Request{Prompt: "Why does the build fail?"})
package pawl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/catalog"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool"
	"github.com/pawl-dev/pawl/tool/builtin"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// Options makes a Runtime. Only a model is needed, here or in the settings of the project; an unset field has the default that it names. What stands here counts more than the settings of files; lists add up. A
// Runtime keeps the Options as long as it lives: don't change what they point to. Everything in them that is called (models, tools, hooks, hosts, tracers) is called by several runs at once. What is given here stays the
// caller's to close; what the Runtime opens itself (built-in tools, MCP servers, shell hooks, the journal of the default) it closes.
type Options struct {
	// Model is called for every step. It stays as it is. Default: the model of the project's settings, with the retries that they say; without one New fails.
	Model model.Model
	// ProjectRoot is the directory that tools and commands work in, and whose .agents and AGENTS.md are read; it must exist. Default: the current one.
	ProjectRoot string
	// Workdir is where in it the work is, a directory that is there, relative to it or absolute: AGENTS.md files from ProjectRoot down to there are read. Tools work in ProjectRoot all the same. Another one is
	// errdefs.Validation. Default: ProjectRoot.
	Workdir string
	// NoProject leaves out what .agents and AGENTS.md say, the user's in ~/.agents, too, and the subagents that are always there. Model is needed then.
	NoProject bool
	// Overrides are settings above those of all files, as they could stand in one: a JSON object. See project.WithOverrides.
	Overrides json.RawMessage
	// Trusted lets all settings of the project's files count, whether a person approved them or not. See project.WithTrusted.
	Trusted bool

	// System is the system prompt; the project's rules, skills and memory stand behind it. Default: [DefaultSystem].
	System string
	// Engine makes the engine of the runs, such as a graph, of what the Runtime has assembled: the model, all tools, limits. It is called again whenever the project has changed. Subagents stay loops. Default: loop.New.
	Engine func(cfg loop.Config) (engine.Engine, error)
	// Settings are those of every model call: temperature, output limit and so on. Where they say nothing of Reasoning, the project's settings do; the ProviderTools that those name are there, too, but for what a rule denies or asks about. A
	// subagent with a model of its own has neither. Default: the provider's.
	Settings model.Settings
	// Output is a JSON Schema that the answer of each run has to fit: Result.Text is JSON then. An answer that does not is sent back, twice at most, and then the run fails (errdefs.Validation). Subagents answer in words; Engine finds it in its loop.Config. Default: free text.
	Output json.RawMessage
	// Tools are offered after the built-in ones. Two tools whose names differ at most in case are errdefs.Conflict.
	Tools []tool.Tool
	// MCP are servers whose tools are offered after Tools, before those of the settings' servers, of which they replace those of the same name. One that does not start is a warning of each run; if it is Required, New fails.
	MCP []mcp.Server
	// NoBuiltins leaves out the built-in tools (bash, bash_output, bash_kill, read, write, edit, glob, grep; web_fetch where the sandbox has a network), and with them the project's subagents, and its skills unless
	// there are some in Skills. What is in Tools, Subagents and Skills stays.
	NoBuiltins bool

	// Sandbox is what commands may write, see and reach; its Root is ProjectRoot when unset. It takes the place of that of the settings. What it asks for and this system can't hold is errdefs.NotAvailable. Default:
	// the settings', else [DefaultSandbox], or none where none can be had, and then commands that do more than read, and edits, are asked about.
	Sandbox *sandbox.Policy
	// Permissions say what is asked of people and what is refused, besides the settings' rules; its Dir, Fence and Safety (permission.SafetyIn) are filled in. The file tools reach its Writable, and so do commands, unless
	// Sandbox is given: then what that lets be written counts. Safety = [NoSafety] switches the safety check off. A rule that can't be read is errdefs.Validation.
	Permissions permission.Config
	// ShellHooks are programs of the user's at events of runs and sessions, behind the permissions and before Middleware, besides those of the settings. They run outside of the sandbox. Their notices are warnings.
	ShellHooks []shell.Hook
	// Middleware are hooks in Go, asked in their order behind the permissions and the shell hooks.
	Middleware []hook.Middleware

	// NoSubagents leaves out the project's subagents, those that are always there, too: the tool that gives tasks has those of Subagents only, or is not there.
	NoSubagents bool
	// Skills are there beside the project's; of two with a name these beat those. Needed are Name, Description and Body. Two with the same name are errdefs.Conflict.
	Skills []project.Skill
	// Subagents can be given tasks, too; of two with a name these beat the project's. One without an Engine gets one like the Runtime's, with its model, limits and tools, of which Agent.Tools says what it may use, and the
	// project's rules and memory behind its Instructions; one that brings its own is told what it brings. Two with the same ID are errdefs.Conflict.
	Subagents []agent.Subagent
	// DisableSubagentSummary leaves out what the model is told of a task in the background when it is done.
	DisableSubagentSummary bool

	// Limits end a run as failed, with errdefs.BudgetExceeded. Each task has them for itself. Default: 100 steps.
	Limits loop.Limits
	// Compact says how transcripts are kept within the model's window. Default: on, with the defaults of loop.Compact; &loop.Compact{} is off.
	Compact *loop.Compact
	// Timeout is the time that a run may take, its tasks included; then it fails with errdefs.BudgetExceeded. Default: 0, which is none; less is errdefs.Validation.
	Timeout time.Duration
	// Budget limits calls, tokens, money and time of all runs of the Runtime together. One in money with a model whose price is not known fails the run, before the first call. Default: none.
	Budget *engine.Budget
	// CloseTimeout is how long Close waits for what it cancelled. Default: 0, which is 10 s; less is errdefs.Validation.
	CloseTimeout time.Duration
	// MaxSessions is how many sessions are held in memory, beside those in use. What is too many is the one that was used longest ago: see [Runtime.EndSession]. Default: 0, which is 1000; less is errdefs.Validation.
	MaxSessions int

	// EntryPoint says who is asked. Default: the Host, and where it has nobody the run ends interrupted and waits.
	EntryPoint EntryPoint
	// Host answers questions, interrupts, and listens beside RunStream's caller. Default: nobody.
	Host engine.Host
	// Tracer stands around all runs, and those of subagents, such as a telemetry.Tracer. Default: none.
	Tracer engine.Tracer
	// Prices say what models cost and how large their windows are. Default: catalog.Default().
	Prices *catalog.Catalog
	// OutputDir is where outputs that are too long for the model are kept; it is made if need be, with mode 0700, and stays. ProjectRoot must not lie in it. Default: a temporary directory that goes with Close.
	OutputDir string
	// Journal is where sessions are on record. Default: SQLite in the user's state directory, see [DefaultJournal].
	Journal journal.Store
	// Logger is told what people who run a program may want to know: of hooks, MCP servers, and the loop. Default: nothing is logged.
	Logger *slog.Logger
	// ID is the agent's, in journals, hooks and traces. Default: "pawl".
	ID string
}

// ErrMaxIterations is loop.ErrMaxSteps: errors.Is finds it in the error of a run that reached Options.Limits.Steps. The Result is returned with it.
var ErrMaxIterations = loop.ErrMaxSteps

// DefaultSystem is the system prompt of a Runtime that is given none.
const DefaultSystem = `You are an agent that works in a project directory with the tools you are given.
Look before you change: read the files that matter. Make the smallest change that does what was asked, check that it works, and say in a few sentences what you did and what you found.`

// Runtime runs prompts in a project. Safe for concurrent use; two runs of one session follow each other in the order of their calls.
type Runtime struct {
	opts      Options
	dir       string
	now       atomic.Pointer[assembly] // what the next run is made of
	workspace *builtin.Workspace       // nil: without the built-in tools
	shells    []*shell.Hooks           // of all assemblies, to be closed
	shared    []*shared                // of all assemblies that somebody uses; guarded by mu, as shells are
	endings   sync.WaitGroup           // of what nobody uses any more
	close     []func() error
	closing   sync.Once
	closeErr  error

	guarding sync.Mutex       // guards these
	guards   int              // runs that could change what the project tells models
	guarded  *project.Project // as it was when the first of them began
	release  func() error     // ends the guarding of it

	mu      sync.Mutex
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	closed  bool
	idle    chan struct{}       // closed once Close was called and nobody is inside any more
	watched chan struct{}       // closed when nobody looks at the project any more
	inside  map[*visit]struct{} // runs, those that wait to begin, and sessions that are being ended
	queues  map[string]*queue   // sessions that somebody is in
	held    map[string]*session // sessions that had a run here, and have not ended
	used    int64               // counts their runs
}

// New assembles a Runtime. What it opened is freed by Close; ctx ends only the opening.
//
// It fails with errdefs.Validation where an option or a settings file can't be understood, with NotFound where ProjectRoot is not there, with Conflict where two tools, skills or subagents have one name, and with NotAvailable
// where a sandbox that is asked for can't be had, or an MCP server that is required does not start.
func New(ctx context.Context, o Options) (*Runtime, error) {
	rt := &Runtime{queues: map[string]*queue{}, held: map[string]*session{}, inside: map[*visit]struct{}{}, idle: make(chan struct{}), watched: make(chan struct{})}
	if err := rt.prepare(ctx, o); err != nil {
		if rt.cancel != nil {
			rt.cancel()
		}
		_ = rt.closeHooks() //nolint:contextcheck // nothing began
		_ = rt.free()
		return nil, err
	}
	return rt, nil
}

func (r *Runtime) prepare(ctx context.Context, o Options) (err error) {
	switch {
	case o.Timeout < 0:
		return errdefs.Validation.Errorf("pawl: Options.Timeout is %v: want a time, or 0 for none", o.Timeout)
	case o.CloseTimeout < 0:
		return errdefs.Validation.Errorf("pawl: Options.CloseTimeout is %v: want a time, or 0 for %v", o.CloseTimeout, closeTimeout)
	case o.MaxSessions < 0:
		return errdefs.Validation.Errorf("pawl: Options.MaxSessions is %d: want a number, or 0 for %d", o.MaxSessions, maxSessions)
	case o.NoProject && len(o.Overrides) > 0:
		return errdefs.Validation.Errorf("pawl: Options.Overrides are settings of a project directory, which NoProject leaves out")
	case o.NoProject && o.Model == nil:
		return errdefs.Validation.Errorf("pawl: Options.Model is needed: see pawl.OpenModel")
	}
	if o.Host, err = o.EntryPoint.host(o.Host); err != nil {
		return err
	}
	o.CloseTimeout, o.MaxSessions = cmp.Or(o.CloseTimeout, closeTimeout), cmp.Or(o.MaxSessions, maxSessions)
	if o.ProjectRoot == "" {
		o.ProjectRoot = "."
	}
	if r.dir, err = filepath.Abs(o.ProjectRoot); err != nil {
		return errdefs.Validation.Errorf("pawl: project root %q: %w", o.ProjectRoot, err)
	}
	if err := o.checkWorkdir(r.dir); err != nil {
		return err
	}
	o.System, o.ID = cmp.Or(o.System, DefaultSystem), cmp.Or(o.ID, "pawl")
	if o.Compact == nil {
		o.Compact = &loop.Compact{Enabled: true}
	}
	if !o.NoBuiltins {
		if r.workspace, err = builtin.Open(r.dir, builtin.WithOutputDir(o.OutputDir)); err != nil {
			return err
		}
		r.close = append(r.close, r.workspace.Close)
	}
	r.opts = o
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if o.NoProject {
		close(r.watched)
		a, err := r.assemble(ctx, nil, nil)
		if r.now.Store(a); err != nil {
			return err
		}
		return r.record() //nolint:contextcheck // the store outlives ctx
	}
	next, stop, err := r.open(ctx)
	if err != nil {
		return err
	}
	if err := r.record(); err != nil { //nolint:contextcheck // the store outlives ctx
		stop()
		return err
	}
	go func() {
		defer close(r.watched)
		r.watch(next, stop)
	}()
	return nil
}

// checkWorkdir reports what keeps Workdir from being a directory of the project.
func (o *Options) checkWorkdir(root string) error {
	if o.Workdir == "" {
		return nil
	}
	dir := o.Workdir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return errdefs.Validation.Errorf("pawl: Options.Workdir: %w: make it, or name another", err)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return errdefs.Validation.Errorf("pawl: Options.Workdir: %s is no directory", dir)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return errdefs.Validation.Errorf("pawl: project root: %w", err)
	}
	if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
		return errdefs.Validation.Errorf("pawl: Options.Workdir: %s is not in the project %s: name a directory in it", dir, root)
	}
	return nil
}

// record opens the journal. It is closed last: what the tools still run at Close is put on record.
func (r *Runtime) record() error {
	if r.opts.Journal != nil {
		return nil
	}
	if DefaultJournal() == "" {
		return errdefs.Validation.Errorf("pawl: no place for the journal: neither XDG_STATE_HOME nor HOME is set; set one, or Options.Journal")
	}
	store, err := sqlite.Open(DefaultJournal())
	if err != nil {
		return err
	}
	r.opts.Journal, r.close = store, append([]func() error{store.Close}, r.close...)
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
	Prompt    string // the user's message, when Message isn't set; one of the two is needed
	SessionID string // the session to go on with, or the name of a new one, when ContextID isn't set; "" is a new one named after the run
}

// Run runs a prompt to its end, behind the runs of its session that were asked for before. The error is Result.Err for every status but completed, or what kept the run from beginning; then the Result is nil. After Close it is
// errdefs.NotAvailable; while another process drives the session, Conflict, unless agent.WithWait says to wait. Options of the run beat those of the Runtime.
func (r *Runtime) Run(ctx context.Context, req Request, opts ...agent.RunOption) (*agent.Result, error) {
	req = req.filled()
	return r.serve(ctx, req.ContextID, func(ctx context.Context) (*agent.Result, error) {
		a := r.current()
		defer r.drop(a)
		return agent.Run(ctx, a.agent, a.engine, req.Request, r.runOptions(a, req.ContextID, opts)...)
	})
}

// RunStream runs a prompt while it is ranged over, in the ranging goroutine: the loop body must not run the same session or call Close,
// either would wait for itself. The events are the run's journal entries as they are written (e.Data is one of the types of package journal), and the
// deltas in between (e.Data is nil, e.Delta says which); runs below have theirs in between, with a ParentRun. Breaking out cancels the run and frees everything; what was finished by then is in the journal. A run that does not complete yields its error last.
func (r *Runtime) RunStream(ctx context.Context, req Request, opts ...agent.RunOption) iter.Seq2[event.Event, error] {
	return stream(ctx, r.opts.Host, func(ctx context.Context, h engine.Host) (*agent.Result, error) {
		return r.Run(ctx, req, append(slices.Clip(opts), agent.WithEngineHost(h))...)
	})
}

// Resume goes on with the session's unfinished run; errdefs.NotFound when there is none. What is on record of what the run was not to do binds it besides what the Runtime's options and settings say: deny and
// ask rules, stricter modes, a narrower sandbox. A run that began in a sandbox goes on without one only with Options.Sandbox Off; else that is errdefs.PolicyDenied.
func (r *Runtime) Resume(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error) {
	return r.serve(ctx, session, func(ctx context.Context) (*agent.Result, error) {
		a := r.current()
		defer r.drop(a)
		if err := r.resumes(ctx, a, session); err != nil {
			return nil, err
		}
		eng, err := r.engineOf(ctx, a, session)
		if err != nil {
			return nil, err
		}
		return agent.Resume(ctx, a.agent, eng, session, r.runOptions(a, session, opts)...)
	})
}

// Steer says something to the run under way in a session: see [agent.Steer].
func (r *Runtime) Steer(ctx context.Context, session, text string) error {
	return agent.Steer(ctx, r.opts.Journal, session, message.User(text))
}

// Replay drives the engine through what is on record of a session, with recorded outcomes only, and gives the first difference: see [agent.Replay].
func (r *Runtime) Replay(ctx context.Context, session string) ([]agent.Replayed, error) {
	a := r.current()
	defer r.drop(a)
	eng, err := r.engineOf(ctx, a, session)
	if err != nil {
		return nil, err
	}
	return agent.Replay(ctx, a.agent, eng, session, r.runOptions(a, session, nil)...)
}

// Journal is the store that the Runtime's sessions are in.
func (r *Runtime) Journal() journal.Store { return r.opts.Journal }

// Dir is the project directory, absolute.
func (r *Runtime) Dir() string { return r.dir }

// serve runs f alone in its session, and not after Close.
func (r *Runtime) serve(ctx context.Context, session string, f func(context.Context) (*agent.Result, error)) (*agent.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)() //nolint:contextcheck // Close cancels what runs

	ctx, leave, err := r.enter(ctx, session)
	if err != nil {
		return nil, err
	}
	defer r.trim(context.WithoutCancel(ctx))
	defer leave()
	defer r.guard(ctx)()
	res, err := f(ctx)
	if err == nil {
		err = res.Err
	}
	return res, err
}

// closeTimeout is the default of Options.CloseTimeout.
const closeTimeout = 10 * time.Second

// Close cancels what runs, waits for it, ends the sessions that began here (SessionEnd hooks run), and frees what the Runtime opened. What has not ended after Options.CloseTimeout is left behind, and the error,
// of errdefs.Timeout, names it: it begins nothing more, and can be resumed in another process. A second call gives the first one's error again. It must not be
// called from a tool, a hook or the body of a stream's loop, which it would wait for.
func (r *Runtime) Close() error {
	r.closing.Do(func() {
		r.mu.Lock()
		if r.closed = true; len(r.inside) == 0 {
			close(r.idle)
		}
		r.mu.Unlock()
		r.cancel()
		for _, step := range []func() error{r.wait, r.closeHooks, func() error { return r.within(r.free) }} {
			r.closeErr = errors.Join(r.closeErr, step())
		}
		r.guarding.Lock()
		defer r.guarding.Unlock()
		r.unguard()
	})
	return r.closeErr
}

// wait waits for what runs, as long as Close may take.
func (r *Runtime) wait() error {
	timer := time.NewTimer(r.opts.CloseTimeout)
	defer timer.Stop()
	for _, over := range []<-chan struct{}{r.idle, r.watched} {
		select {
		case <-over:
		case <-timer.C:
			return errdefs.Timeout.Errorf("pawl: close: %s did not end within %v of being cancelled, and is left behind: what ignores its context has to heed it", r.running(), r.opts.CloseTimeout)
		}
	}
	return nil
}

// running names what is inside.
func (r *Runtime) running() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for v := range r.inside {
		if v.session == "" {
			all = append(all, "a run in a session without a name yet")
		} else {
			all = append(all, "a run in session "+v.session)
		}
	}
	if len(all) == 0 {
		return "the reading of the project"
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// within gives f the time that Close may take. What takes longer is left behind: it waits for a tool call that was.
func (r *Runtime) within(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(r.opts.CloseTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errdefs.Timeout.Errorf("pawl: close: a tool call still uses what the Runtime opened, %v after it was cancelled; both are left behind: what ignores its context has to heed it", r.opts.CloseTimeout)
	}
}

func (r *Runtime) free() error {
	err := r.endAll()
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
