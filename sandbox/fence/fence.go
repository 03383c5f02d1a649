// Package fence runs commands inside a fence: what they may write, which hosts they may reach, what they see of the environment and of places with secrets, and how
// much they may use. It says what it can enforce here ([Probe]), and what it can't enforce it refuses: an error with class errdefs.NotAvailable that names the reason
// and the remedy, before anything runs.
//
// A [sandbox.Policy] is data. [Open] makes a [Fence] of it, which makes commands:
//
//	f, err := fence.Open(sandbox.Policy{Root: dir}, nil)
//	defer f.Close()
//	cmd, err := f.Command(ctx, "go", "test", "./...") // an *exec.Cmd
//
// # What holds
//
//   - Writes go to Root, to Write, to the tool caches and to a private temporary directory (TMPDIR), and nowhere else. What they create is no device.
//   - Reads go everywhere but to [Secrets], Hide and HidePatterns; of /dev there are null, zero, full, random, urandom, tty and fd, and with bubblewrap terminals (ptmx, pts) of the command's own.
//     With Landlock alone there are none, since they would be the user's: programs that need one (script, tmux, expect) fail.
//   - The environment has the variables of a list (see [Environ]) and those that Env names.
//   - Network none: no connection leaves. Hosts: connections go through a proxy of ours, which asks [Dial]'s rules.
//   - No Unix socket is opened, so no docker, ssh-agent or D-Bus. Pairs of sockets work.
//   - No new privileges (sudo does nothing), no tracing of or signals to processes outside, no open files but the three standard ones, limits on resources.
//   - Every process of a command is inside, for as long as it lives.
//
// # How
//
// On Linux the program runs itself again: this package's init recognises its own call by an argument 0 and a sealed, in-memory file that only a parent can give it, puts
// Landlock, a seccomp filter and limits on itself, and executes the command. So any program that imports the package, a test too, needs no second binary, and nothing in
// the environment has an effect on it. Other packages' init functions may run before; they should not have side effects. Where bubblewrap is
// installed and works, the helper runs in its namespaces: everything else is mounted read-only, and the network is a private loopback. Capabilities has what that adds.
//
// bubblewrap's program is looked for in the system's own directories, then on PATH. One of PATH is not taken when it lies in the current directory or in a repository, and a policy that lets commands write it, or a
// directory that it lies in, is refused: it runs outside of the fence.
//
// To know, on Linux: processes outside, and their command lines, can be seen in /proc (not their environments, memory and files), unless there is bubblewrap and a kernel before 6.12, where what a command leaves
// running ends with it instead. A command can't signal what another command left running, nor reach its ports, as each command is in a fence of its own. Entries of a directory with
// secrets in it (the home directory, and what it lies in) that are made after Open can't be read. Names can be listed everywhere; it is contents that are hidden. With
// bubblewrap, a command that a signal killed has exit code 128 and the signal's number.
//
// What is hidden is looked for when a command starts. What comes to be while it runs it can read, and so can a command that still runs when somebody outside puts another file in the place of a hidden
// one. A file has a name for each hard link: only those that match are hidden. All of that is so for what ProtectPatterns name, too.
//
// # Caches
//
// Tools keep their caches (Go, npm, yarn, cargo, pip, uv, Gradle, XDG) in a directory for the Root, outside of it, so that builds work. Go takes modules from the user's
// module cache first, without writing there. Settings of the user that may have tokens in them (.npmrc, .netrc) are not seen: name what is needed in Read or Env.
//
// # Elsewhere
//
// On macOS it is Seatbelt, by sandbox-exec. That part was never run on a Mac by its authors: its profile is compared with a text. Elsewhere there is no fence.
package fence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/internal/reach"
)

// Fence makes the commands of one policy. Made by [Open]; safe for concurrent use.
type Fence struct {
	policy  sandbox.Policy
	environ []string // what there is to pass
	caps    Capabilities
	temp    string   // private, with two directories: tmp is TMPDIR, cache that of a policy without a Root
	lock    *os.File // says that temp is in use
	cache   string
	env     []string // set for every command
	sys     system   // what the platform holds

	mu     sync.Mutex // guards what follows
	closed bool
	inner  map[string]*Fence
}

// Open makes a policy ready: it creates the temporary directory and the caches, starts the proxy when Hosts need one, and rehearses a command that does nothing. What
// the policy asks for and can't be had here is an error with class errdefs.NotAvailable that says what, why, and what would help; a policy that makes no sense has
// errdefs.Validation, a path that is not there errdefs.NotFound. environ is what the commands' environment is picked from ([Environ]); nil stands for os.Environ().
//
// Close the fence when its commands are over. What a process leaves behind that was killed before it could, the next Open removes.
func Open(p sandbox.Policy, environ []string) (*Fence, error) {
	if !p.Off {
		sweep()
	}
	return open(p, environ, Probe())
}

// tempPrefix begins the names of temporary directories.
const tempPrefix = "pawl-sandbox-"

func open(p sandbox.Policy, environ []string, caps Capabilities) (_ *Fence, err error) {
	if environ == nil {
		environ = os.Environ()
	}
	f := &Fence{policy: p, environ: slices.Clone(environ), caps: caps, inner: map[string]*Fence{}}
	if p.Off {
		return f, nil
	}
	if err := check(p); err != nil {
		return nil, err
	}
	if err := f.can(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := f.directories(); err != nil {
		return nil, errdefs.NotAvailable.Errorf("sandbox: prepare directories: %w", err)
	}
	if err := f.enforce(); err != nil {
		return nil, errdefs.NotAvailable.Errorf("sandbox: %w", err)
	}
	return f, nil
}

// can says what of the policy can't be enforced here.
func (f *Fence) can() error {
	p := f.policy
	refuse := func(what string, s Status) error {
		if s.Holds {
			return nil
		}
		return errdefs.NotAvailable.Errorf("sandbox: %s can't be enforced here: %s", what, s.Why)
	}
	if err := refuse("where commands write", f.caps.Writes); err != nil {
		return err
	}
	if err := refuse("the network policy", f.caps.Network); err != nil {
		return err
	}
	if len(p.Network.Hosts) > 0 && !p.Network.All {
		if err := refuse("Network.Hosts", f.caps.Hosts); err != nil {
			return err
		}
	}
	if len(p.Protect) > 0 {
		if err := refuse("Protect inside of a directory that may be written", f.caps.Inside); err != nil {
			return err
		}
	}
	_, err := f.look()
	return err
}

func (f *Fence) directories() (err error) {
	if f.temp, err = os.MkdirTemp("", tempPrefix); err != nil {
		return err
	}
	if f.temp, err = filepath.EvalSymlinks(f.temp); err != nil {
		return err
	}
	if f.lock, err = hold(f.temp); err != nil {
		return err
	}
	if err := os.Mkdir(f.tmp(), 0o700); err != nil {
		return err
	}
	switch f.cache = f.policy.Cache; {
	case f.cache != "":
	case f.policy.Root != "" && !temporary(f.policy.Root):
		if f.cache, err = defaultCache(f.policy.Root); err != nil {
			return err
		}
	default:
		f.cache = filepath.Join(f.temp, "cache")
	}
	if err := os.MkdirAll(f.cache, 0o700); err != nil {
		return err
	}
	if f.cache, err = filepath.EvalSymlinks(f.cache); err != nil {
		return err
	}
	environ := Environ(f.policy, f.environ)
	for _, name := range []string{"GOMODCACHE", "GOPATH", "GOENV"} { // they don't pass: ours do
		if value := valueIn(f.environ, name); value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	f.env = append(cacheEnv(f.cache, environ), "TMPDIR="+f.tmp(), "TMP="+f.tmp(), "TEMP="+f.tmp(), "PAWL_SANDBOX="+f.caps.Backend)
	for _, v := range f.policy.Env { // what was asked for by name counts more
		f.env = slices.DeleteFunc(f.env, func(own string) bool { return nameOf(own) == nameOf(v) })
	}
	return nil
}

// rehearse runs a command that does nothing, to see that the fence stands.
func rehearse(cmd *exec.Cmd) error {
	cmd.Env = []string{}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the fence does not stand: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

func (f *Fence) tmp() string { return filepath.Join(f.temp, "tmp") }

// nameOf is the name in "NAME=value", or "NAME".
func nameOf(v string) string {
	name, _, _ := strings.Cut(v, "=")
	return name
}

// writes is everything that may be written.
func (f *Fence) writes() []string {
	return reach.Union(writable(f.policy), []string{f.tmp(), f.cache})
}

// Policy is what the fence was opened with.
func (f *Fence) Policy() sandbox.Policy { return f.policy }

// Command makes a command that will run in the fence, in a session of its own: start it as you like, or with all that it starts through internal/process. A policy in ctx
// narrows the fence's further; ctx is not asked after that.
//
// PAWL_SANDBOX in its environment names the backend. Of the exec.Cmd, Path, Args, ExtraFiles and the members of SysProcAttr that are set are the fence's; Env has what the policy lets pass, and what the caller adds to it
// reaches the command. Files that the caller adds to ExtraFiles don't. What the policy hides is what is there now: start the command soon.
//
// Errors: errdefs.NotFound for a program that is not there; those of [Open]; errdefs.NotAvailable after Close.
func (f *Fence) Command(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	f, err := f.narrowed(ctx)
	if err != nil {
		return nil, err
	}
	var seen view
	if !f.policy.Off {
		if seen, err = f.look(); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errdefs.NotAvailable.Errorf("sandbox: command %s: the fence is closed", name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, errdefs.NotFound.Errorf("sandbox: command: %w", err)
	}
	if f.policy.Off {
		cmd := exec.Command(path, args...) //nolint:gosec // running commands is what it is for
		cmd.Args[0] = name
		cmd.Env = slices.Clone(f.environ)
		return cmd, nil
	}
	cmd, err := f.wrap(path, append([]string{name}, args...), seen, refusedOf(ctx))
	if err != nil {
		return nil, errdefs.NotAvailable.Errorf("sandbox: command %s: %w", name, err)
	}
	cmd.Env = append(Environ(f.policy, f.environ), f.env...)
	return cmd, nil
}

// narrowed is the fence for the policy of ctx. It is kept until Close, as it has a temporary directory, which its commands share.
func (f *Fence) narrowed(ctx context.Context) (*Fence, error) {
	p, ok := sandbox.From(ctx)
	if !ok {
		return f, nil
	}
	p = p.Within(f.policy)
	name, err := json.Marshal(p)
	if err != nil {
		return nil, errdefs.Internal.Errorf("sandbox: policy: %w", err)
	}
	own, err := json.Marshal(f.policy.Within(f.policy)) // in the same form
	if err != nil || string(own) == string(name) {
		return f, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errdefs.NotAvailable.Errorf("sandbox: the fence is closed")
	}
	if in, ok := f.inner[string(name)]; ok {
		return in, nil
	}
	in, err := open(p, f.environ, f.caps)
	if err != nil {
		return nil, err
	}
	f.inner[string(name)] = in
	return in, nil
}

// Close removes the temporary directory and stops the proxy. Processes that still run keep their fence; they lose their connections. Further Closes do nothing.
func (f *Fence) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var errs []error
	for _, in := range f.inner {
		errs = append(errs, in.Close())
	}
	errs = append(errs, f.sys.close())
	if f.temp != "" {
		errs = append(errs, removeAll(f.temp))
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	return errors.Join(errs...)
}

// removeAll removes a tree, with directories in it that may not be written.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	root, e := os.OpenRoot(dir) // a command may have left symbolic links out of it
	if e != nil {
		return errors.Join(err, e)
	}
	defer func() { _ = root.Close() }()
	open := func(path string) { _ = root.Chmod(path, 0o700) }
	open(".")
	walkDirs(root, ".", open)
	return os.RemoveAll(dir)
}

func walkDirs(root *os.Root, dir string, each func(string)) {
	d, err := root.Open(dir)
	if err != nil {
		return
	}
	entries, _ := d.ReadDir(-1)
	_ = d.Close()
	for _, e := range entries {
		if e.IsDir() {
			path := filepath.Join(dir, e.Name())
			each(path)
			walkDirs(root, path, each)
		}
	}
}
