package builtin

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool"
)

// Workspace is a project directory with the tools for it. Made by [Open]; safe for concurrent use.
type Workspace struct {
	*core
	env       []string
	gitignore bool
	dirs      []string // what WithDirectories was given
	further   []area   // of them, those that are there
	outside   bool     // WithOutside
	world     area     // all of the file system, with outside
	editable  []string // what the file tools write although the policy protects it
	tools     []tool.Tool
	policy    sandbox.Policy
	policyErr error
	fence     func() (*fence.Fence, error) // the fence of commands; once
}

// core is what a workspace shares with those that [Workspace.With] makes of it.
type core struct {
	dir, real       string // as given (absolute), and without symbolic links
	outDir, outReal string
	root, out       *os.Root
	ownOut          bool        // the output directory is ours to remove
	id              string      // marks the processes that our commands start
	started         atomic.Bool // a command was started, so that marked processes may be alive
	background      *background
	writing         sync.Mutex // an edit reads first and then replaces

	life   context.Context // ends with Close; not a caller's, so it has its place here
	end    context.CancelFunc
	mu     sync.Mutex // guards done, fences and opened, and calls.Add against calls.Wait
	done   bool
	calls  sync.WaitGroup
	fences []*fence.Fence
	opened []area // those that some workspace has or had besides the project
	close  func() error
}

// Option changes what [Open] makes.
type Option func(*Workspace)

// WithOutputDir keeps long outputs in dir, which is created with mode 0700 and stays after Close. By default they are in a fresh
// temporary directory, which Close removes. The project directory must not lie inside dir.
func WithOutputDir(dir string) Option { return func(w *Workspace) { w.outDir = dir } }

// WithEnv sets the environment of commands, as "NAME=value". The default is os.Environ() at the time of Open. Two names are added
// for each command: PWD, and PAWL_CALL, which marks the processes that it starts; and in a trace TRACEPARENT, and TRACESTATE if there is one, which say where it lies in it.
func WithEnv(env []string) Option {
	return func(w *Workspace) { w.env = append([]string{}, env...) }
}

// WithGitignore says whether glob and grep leave out what .gitignore files name. On by default. The directory .git is always left
// out.
func WithGitignore(on bool) Option { return func(w *Workspace) { w.gitignore = on } }

// WithDirectories lets the file tools reach into further directories, too, which exist, and bash start in them. A relative one is one of the project. Their files are named, and shown, by
// absolute paths; no symbolic link leads out of one, nor from the project into one. With [WithSandbox] the policy has to let them be written, too. What is no directory that can be opened has no effect.
func WithDirectories(dirs ...string) Option {
	return func(w *Workspace) { w.dirs = slices.Clone(dirs) }
}

// WithOutside lets read, glob and grep reach all files that this program may read, but what the policy hides ([WithSandbox]) and /proc: for callers whose hooks judge what lies outside of the project, as
// permission.New does. A symbolic link still leads out of no directory: a path has to name what lies outside. Nothing outside is written.
func WithOutside() Option { return func(w *Workspace) { w.outside = true } }

// WithEditable has write and edit change these files, and what lies in these directories, although the policy protects them: for callers whose hooks ask about them, while commands are kept from them.
// They are absolute and without symbolic links.
func WithEditable(paths ...string) Option {
	return func(w *Workspace) { w.editable = slices.Clone(paths) }
}

// Open opens a project directory for the tools. It fails when dir is not a directory. Close frees it.
func Open(dir string, opts ...Option) (*Workspace, error) {
	w := &Workspace{core: &core{id: randomID()}, gitignore: true, policy: sandbox.Policy{Off: true}}
	for _, o := range opts {
		o(w)
	}
	if w.env == nil {
		w.env = os.Environ()
	}
	if err := w.open(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errdefs.NotFound.Errorf("builtin: open %s: %w", dir, err)
		}
		return nil, errdefs.Validation.Errorf("builtin: open %s: %w", dir, err)
	}
	w.life, w.end = context.WithCancel(context.Background())
	w.close = sync.OnceValue(w.free)
	w.background = &background{core: w.core}
	w.ready()
	return w, nil
}

// ready makes the tools for the options.
func (w *Workspace) ready() {
	w.resolvePolicy()
	w.reach()
	w.fence = sync.OnceValues(w.openFence)
	w.tools = []tool.Tool{w.newBash(), w.newRead(), w.newWrite(), w.newEdit(), w.newGlob(), w.newGrep(), w.newBashOutput(), w.newBashKill()}
}

// With gives a workspace with other options over the same directory. [WithOutputDir] changes nothing: outputs, commands in the background and files under edit are the same in both, and the Close of
// either closes both.
func (w *Workspace) With(opts ...Option) *Workspace {
	other := &Workspace{core: &core{}, env: w.env, gitignore: w.gitignore, dirs: w.dirs, outside: w.outside, editable: w.editable, policy: w.policy}
	for _, o := range opts {
		o(other)
	}
	other.core = w.core
	other.ready()
	return other
}

func (w *Workspace) open(dir string) (err error) {
	if w.dir, w.real, err = bothNames(dir); err != nil {
		return err
	}
	if w.root, err = os.OpenRoot(w.real); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.closeRoots())
		}
	}()
	if w.outDir == "" {
		w.outDir, err = os.MkdirTemp("", "pawl-output-")
		w.ownOut = err == nil
	} else {
		err = os.MkdirAll(w.outDir, 0o700)
	}
	if err != nil {
		return err
	}
	if w.outDir, w.outReal, err = bothNames(w.outDir); err != nil {
		return err
	}
	if _, inside := within(w.real, w.outReal); inside {
		return errdefs.Validation.Errorf("the project lies inside the output directory %s: choose another one", w.outDir)
	}
	w.out, err = os.OpenRoot(w.outReal)
	return err
}

// reach opens the further directories, and all there is. What lies in the project by its real name needs no Root of its own.
func (w *Workspace) reach() {
	if top := filepath.VolumeName(w.real) + string(filepath.Separator); w.outside {
		w.world, _ = w.openArea(top, top)
	}
	for _, dir := range w.dirs {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(w.dir, dir)
		}
		abs, real, err := bothNames(dir)
		if err != nil {
			continue
		}
		if _, in := within(real, w.real); in {
			continue
		}
		if a, ok := w.openArea(abs, real); ok {
			w.further = append(w.further, a)
		}
	}
}

// openArea opens a directory, or finds it among those that are open: a workspace is made for each change of the settings. Close closes them all.
func (w *core) openArea(dir, real string) (area, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return area{}, false
	}
	now, err := os.Stat(real)
	if err != nil {
		return area{}, false
	}
	for _, a := range w.opened {
		if then, err := a.root.Stat("."); err == nil && a.dir == dir && a.real == real && os.SameFile(now, then) {
			return a, true
		}
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return area{}, false
	}
	a := area{dir, real, root}
	w.opened = append(w.opened, a)
	return a, true
}

// bothNames gives a directory's absolute name, and that without symbolic links.
func bothNames(dir string) (abs, resolved string, err error) {
	if abs, err = filepath.Abs(dir); err != nil {
		return "", "", err
	}
	resolved, err = filepath.EvalSymlinks(abs)
	return abs, resolved, err
}

// Dir is the project directory, absolute, as it was given.
func (w *Workspace) Dir() string { return w.dir }

// OutputDir is where long outputs are kept, absolute.
func (w *Workspace) OutputDir() string { return w.outDir }

// directoriesNote tells the model where else the file tools reach.
func (w *Workspace) directoriesNote() string {
	var dirs []string
	for _, a := range w.further {
		dirs = append(dirs, a.dir)
	}
	if len(dirs) == 0 {
		return ""
	}
	return " Besides the project it reaches, by absolute paths: " + strings.Join(dirs, ", ") + "."
}

// outsideNote tells it that other files can be read.
func (w *Workspace) outsideNote() string {
	if w.world.root == nil {
		return ""
	}
	return " Files elsewhere can be named, too: whether they may be read is asked."
}

// Tools gives bash, read, write, edit, glob, grep, bash_output and bash_kill, in this order.
func (w *Workspace) Tools() []tool.Tool { return slices.Clone(w.tools) }

// Close stops the commands that still run, those in the background too, waits for all calls, stops the processes that earlier commands left running
// (where there is /proc) and removes the temporary output directory. Later calls of the tools fail with errdefs.NotAvailable.
// Further Closes do nothing and return the same error.
func (w *Workspace) Close() error { return w.close() }

func (w *core) free() error {
	w.mu.Lock()
	w.done = true
	w.mu.Unlock()
	w.end()
	w.calls.Wait()
	w.background.running.Wait()
	if w.started.Load() {
		process.StopMarked(w.id)
	}
	var errs []error
	for _, f := range w.fences { // nobody opens one any more
		errs = append(errs, f.Close())
	}
	return errors.Join(append(errs, w.closeRoots())...)
}

func (w *core) closeRoots() error {
	var errs []error
	roots := []*os.Root{w.root, w.out}
	for _, a := range w.opened { // nobody opens one any more
		roots = append(roots, a.root)
	}
	for _, r := range roots {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	if w.ownOut {
		errs = append(errs, os.RemoveAll(w.outDir))
	}
	return errors.Join(errs...)
}

// guarded makes a call of a tool end with the workspace, and Close wait for the call.
func guarded[In any](w *Workspace, name string, fn func(context.Context, In) (tool.Result, error)) func(context.Context, In) (tool.Result, error) {
	return func(ctx context.Context, in In) (tool.Result, error) {
		w.mu.Lock()
		if w.done {
			w.mu.Unlock()
			return tool.Result{}, errdefs.NotAvailable.Errorf("%s: the workspace %s is closed", name, w.dir)
		}
		w.calls.Add(1)
		w.mu.Unlock()
		defer w.calls.Done()
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(w.life, cancel)() //nolint:contextcheck // a second end of the call, besides the caller's
		var res tool.Result
		err := own.Err()
		if err == nil {
			res, err = fn(own, in)
		}
		switch {
		case err == nil:
			return res, nil
		case own.Err() != nil && ctx.Err() == nil:
			return res, errdefs.NotAvailable.Errorf("%s: the workspace %s was closed meanwhile", name, w.dir)
		}
		return res, fmt.Errorf("%s: %w", name, err)
	}
}

func randomID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
