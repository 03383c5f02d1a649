package fence

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/lazy"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/internal/reach"
)

// The files that a helper is given.
const (
	planFD = 3 + iota // sealed: its plan
	exeFD             // this program
	hubFD             // where it sends the listener of its network; only with Hosts
)

// helperName begins argument 0 of a helper; its plan's token follows.
const helperName = "pawl-sandbox:"

// oldestABI is the first level of Landlock that keeps files from being truncated.
const oldestABI = 3

// plan is what a helper does to itself. It is the same for all commands of a fence.
type plan struct {
	Token    string
	ABI      int      // 0: no Landlock
	Read     []string // what may be read and executed, with all below
	Write    []string
	Devices  []string
	Families []uint16 // of sockets that may be made
	Hub      bool     // send a listener
	Limits   sandbox.Limits
}

// keptCapabilities are what root keeps: those that let it work with other users' files and become another user.
var keptCapabilities = map[int]string{
	unix.CAP_CHOWN: "CAP_CHOWN", unix.CAP_DAC_OVERRIDE: "CAP_DAC_OVERRIDE", unix.CAP_FOWNER: "CAP_FOWNER", unix.CAP_FSETID: "CAP_FSETID",
	unix.CAP_SETGID: "CAP_SETGID", unix.CAP_SETUID: "CAP_SETUID",
}

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// terminals are devices only where there is a /dev of the command's own: elsewhere they are the person's, too.
const terminals = "/dev/pts"

// probe is what can be enforced here.
func probe() Capabilities { return probed.Of(makeProbe) }

var probed lazy.Value[Capabilities]

func makeProbe() Capabilities {
	no := func(why string, args ...any) Status { return Status{Why: fmt.Sprintf(why, args...)} }
	yes := Status{Holds: true}
	abi := landlockABI()
	bwrap, err := tryBubblewrap()
	return capabilitiesOf(abi, bwrap, err, yes, no)
}

func capabilitiesOf(abi int, bwrap string, bwrapErr error, yes Status, no func(string, ...any) Status) Capabilities {
	c := Capabilities{Backend: "none", ABI: abi}
	if filterArch == 0 {
		why := no("there is no system call filter for %s: amd64 and arm64 have one", runtime.GOARCH)
		c.Writes, c.Metadata, c.Inside, c.Network, c.Loopback, c.Hosts, c.Signals, c.Limits = why, why, why, why, why, why, why, why
		return c
	}
	if bwrap != "" {
		c.bwrap = bwrap
		c.Backend, c.Writes, c.Metadata, c.Inside, c.Network, c.Loopback, c.Hosts, c.Signals, c.Limits = "bubblewrap", yes, yes, yes, yes, yes, yes, yes, yes
		return c
	}
	why := no("it needs bubblewrap, which can't be used: %v; install the package bubblewrap, and allow unprivileged user namespaces", bwrapErr)
	c.Metadata, c.Inside, c.Loopback, c.Hosts = why, why, why, why
	if abi < oldestABI {
		kernel := no("the kernel has Landlock level %d and %d is needed (Linux 6.2, with landlock in its list of security modules); bubblewrap would do too, but: %v", abi, oldestABI, bwrapErr)
		c.Writes, c.Network, c.Signals, c.Limits = kernel, kernel, kernel, kernel
		return c
	}
	c.Backend, c.Writes, c.Network, c.Signals, c.Limits = "landlock", yes, yes, yes, yes
	if abi < scopesABI {
		c.Signals = no("the kernel has Landlock level %d and %d is needed (Linux 6.12)", abi, scopesABI)
	}
	return c
}

// systemPrograms are the system's own directories for programs, NixOS's too.
var systemPrograms = []string{"/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin", "/run/current-system/sw/bin"}

// tryBubblewrap gives the path of a bubblewrap that works.
func tryBubblewrap() (string, error) {
	path, err := findBubblewrap(systemPrograms, os.Getenv("PATH"))
	if err != nil {
		return "", err
	}
	cmd := exec.Command(path, append(namespaces(landlockABI(), true), "--", path, "--version")...) //nolint:gosec // no command can have put it there
	cmd.Env = []string{}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return path, nil
}

// findBubblewrap gives the path of bubblewrap, without symbolic links. It will run outside of any fence, so it must not be a command's work: the system's own directories come first, and of those of a PATH, in
// which one of a project may be, none counts that is not absolute or lies in a project. What a policy lets be written is looked at when there is one.
func findBubblewrap(system []string, path string) (string, error) {
	err := errors.New("bwrap is neither in the system's directories nor on PATH")
	for i, dir := range slices.Concat(system, filepath.SplitList(path)) {
		program := filepath.Join(dir, "bwrap")
		if _, e := exec.LookPath(program); e != nil || !filepath.IsAbs(dir) {
			continue
		}
		real, e := filepath.EvalSymlinks(program)
		if e != nil {
			continue
		}
		if of := cmp.Or(projectOf(dir), projectOf(real)); of != "" && i >= len(system) {
			err = fmt.Errorf("%s is not used: it is on PATH by %s, which looks like a project, where a command may have written it", program, of)
			continue
		}
		return real, nil
	}
	return "", err
}

// projectOf is the directory that looks like a project's in which dir lies, by its name or where links lead: the current one, or one with a repository; "" for none.
func projectOf(dir string) string {
	names := []string{dir}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		names = append(names, real)
	}
	here, _ := os.Stat(".")
	for _, at := range names {
		for ; at != filepath.Dir(at); at = filepath.Dir(at) {
			if info, err := os.Stat(at); err == nil && os.SameFile(info, here) { //nolint:gosec // names are looked at, nothing is done with them
				return at
			}
			if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil { //nolint:gosec // the same
				return at
			}
		}
	}
	return ""
}

// replaceable says why a program that runs outside of the fence can't be trusted with its commands: one of them could put another one in its place.
func (f *Fence) replaceable(program string) error {
	for path := program; path != filepath.Dir(path); path = filepath.Dir(path) {
		for _, dir := range f.writes() {
			if reach.Inside(dir, path) && unix.Access(path, unix.W_OK) == nil {
				return fmt.Errorf("commands may write %s, and so replace %s, which makes the fence: leave that out of what they may write, or install the package bubblewrap elsewhere", path, program)
			}
		}
	}
	return nil
}

// namespaces are bubblewrap's flags for every fence.
func namespaces(abi int, closedNetwork bool) []string {
	args := []string{"--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-ipc"}
	if closedNetwork {
		args = append(args, "--unshare-net")
	}
	if abi < scopesABI { // else Landlock keeps them apart, and what a command leaves running may live on
		args = append(args, "--unshare-pid", "--proc", "/proc", "--remount-ro", "/proc")
	}
	args = append(args, "--cap-drop", "ALL")
	if os.Geteuid() == 0 {
		for _, name := range keptCapabilities {
			args = append(args, "--cap-add", name)
		}
	}
	return args
}

// system is what a fence holds on Linux.
type system struct {
	token string
	plan  *os.File   // for commands that start now
	plans []*os.File // all there were: one may belong to a command that is about to start
	of    []string   // what plan hides, outside of what may be written
	exe   *os.File
	bwrap []string // bubblewrap and its flags, without those for files
	hub   *hub
}

func (s *system) close() error {
	var errs []error
	for _, f := range append(slices.Clone(s.plans), s.exe) {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	if s.hub != nil {
		errs = append(errs, s.hub.close())
	}
	return errors.Join(errs...)
}

func (f *Fence) enforce() (err error) {
	p, s := f.policy, &f.sys
	s.token = rand.Text()
	hosts := !p.Network.All && len(p.Network.Hosts) > 0
	if f.caps.Backend == "bubblewrap" {
		if err := f.replaceable(f.caps.bwrap); err != nil {
			return err
		}
		s.bwrap = append([]string{f.caps.bwrap}, namespaces(f.caps.ABI, !p.Network.All)...)
	}
	if s.exe, err = os.Open("/proc/self/exe"); err != nil {
		return fmt.Errorf("open this program: %w", err)
	}
	if hosts {
		if s.hub, err = newHub(Dial(p)); err != nil {
			return fmt.Errorf("start the proxy: %w", err)
		}
	}
	seen, err := f.look()
	if err != nil {
		return err
	}
	cmd, err := f.wrap("", nil, seen, nil) // a helper that does all but execute a command
	if err != nil {
		return err
	}
	return rehearse(cmd)
}

// draw has a plan that hides what is seen now. What lies in what may be written is hidden by mounts alone.
func (f *Fence) draw(v view) (err error) {
	p, s := f.policy, &f.sys
	var outside []string
	for _, path := range v.hidden {
		if !slices.ContainsFunc(writable(p), func(dir string) bool { return reach.Inside(dir, path) }) {
			outside = append(outside, path)
		}
	}
	for _, pat := range hiding(p) { // what is to come there
		if pat.rest == "" && !slices.ContainsFunc(writable(p), func(dir string) bool { return reach.Inside(dir, pat.dir) || reach.Inside(pat.dir, dir) }) {
			outside = append(outside, pat.dir)
		}
	}
	if outside = reach.Union(outside, nil); s.plan != nil && slices.Equal(s.of, outside) {
		return nil
	}
	plan := plan{
		Token: s.token, ABI: f.caps.ABI, Read: readable(reach.Union(concealed(p, places()), outside), v.read), Write: f.writes(), Devices: devices, Hub: s.hub != nil, Limits: p.Limits.OrDefault(),
	}
	if p.Network.All || f.caps.Loopback.Holds {
		plan.Families = []uint16{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	}
	if f.caps.Backend == "bubblewrap" {
		plan.Write, plan.Devices = append(plan.Write, "/dev/shm"), append(slices.Clip(devices), terminals) // its own
	}
	if s.plan, err = sealed(plan); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	s.plans, s.of = append(s.plans, s.plan), outside
	return nil
}

// wrap makes the command that becomes args, which can't see what v hides; what its network refuses is noted in refused. An empty path only rehearses. f.mu is held, or nobody else has f.
func (f *Fence) wrap(path string, args []string, v view, refused *Refused) (*exec.Cmd, error) {
	s := &f.sys
	if err := f.draw(v); err != nil {
		return nil, err
	}
	own := []string{helperName + s.token}
	if s.hub != nil {
		own[0] += "." + strconv.FormatUint(s.hub.number(refused), 10)
	}
	if path != "" {
		own = append(append(own, path), args...)
	}
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: own, ExtraFiles: []*os.File{s.plan, s.exe}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if s.hub != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, s.hub.give)
	}
	if s.bwrap != nil { // it takes no argument 0 apart from the path
		flags := append(slices.Clone(s.bwrap), f.mounts(v)...)
		if len(flags) > mostFlags {
			return nil, fmt.Errorf("there is too much to hide or protect: bubblewrap takes %d arguments: name directories, not files", mostFlags)
		}
		cmd.Path, cmd.Args = s.bwrap[0], slices.Concat(flags, []string{"--", fmt.Sprintf("/proc/self/fd/%d", exeFD)}, own)
	}
	return cmd, nil
}

// mostFlags is how many arguments bubblewrap takes, with room for what follows them.
const mostFlags = 8900

// sealed is a file in memory that nobody can change any more.
func sealed(p plan) (*os.File, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("pawl-sandbox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "plan")
	if _, err = f.Write(b); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// readable lists what covers everything but what is hidden and the devices. Landlock only knows what is allowed, so of a directory with something hidden in it each of the
// other entries is listed. Symbolic links are left out: what they lead to is listed where it is.
func readable(hidden, exceptions []string) []string {
	out := slices.Clone(exceptions)
	hidden = append([]string{"/dev"}, hidden...)
	var walk func(dir string)
	walk = func(dir string) {
		if slices.Contains(hidden, dir) {
			return
		}
		below := map[string]bool{} // the entries that lead to something hidden
		for _, h := range hidden {
			if rel, err := filepath.Rel(dir, h); err == nil && filepath.IsLocal(rel) {
				first, _, _ := strings.Cut(rel, "/")
				below[first] = true
			}
		}
		if len(below) == 0 {
			out = append(out, dir)
			return
		}
		entries, _ := os.ReadDir(dir) // what we can't list a command can't read either, but for what leads on
		for _, e := range entries {
			if e.Type()&os.ModeSymlink == 0 && !below[e.Name()] {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
		for name := range below {
			walk(filepath.Join(dir, name))
		}
	}
	walk("/")
	slices.Sort(out)
	return slices.Compact(out)
}

// mounts are bubblewrap's flags for what is written, hidden and protected, outer directories first.
func (f *Fence) mounts(v view) []string {
	type mount struct {
		path string
		args []string
	}
	var mounts []mount
	var readOnly []string
	writes := f.writes()
	for _, w := range writes {
		mounts = append(mounts, mount{w, []string{"--bind", w, w}})
	}
	keep := func(path string) { // what is mounted can't be renamed, to put another one in its place
		for dir := filepath.Dir(path); !slices.Contains(writes, dir); dir = filepath.Dir(dir) {
			mounts = append(mounts, mount{dir, []string{"--bind", dir, dir}})
		}
	}
	for _, h := range v.hidden {
		if info, err := os.Stat(h); err == nil && info.IsDir() {
			mounts = append(mounts, mount{h, []string{"--tmpfs", h}})
			readOnly = append(readOnly, "--remount-ro", h)
		} else {
			mounts = append(mounts, mount{h, []string{"--ro-bind", "/dev/null", h}})
		}
	}
	for _, h := range v.held {
		if slices.ContainsFunc(writes, func(dir string) bool { return dir != h && reach.Inside(dir, h) }) && !covered(v.hidden, filepath.Dir(h)) {
			keep(h)
		}
	}
	for _, r := range v.read {
		mounts = append(mounts, mount{r, []string{"--ro-bind", r, r}})
	}
	for _, p := range v.kept {
		if !covered(v.hidden, p) { // what is hidden is not shown again
			mounts = append(mounts, mount{p, []string{"--ro-bind", p, p}})
			if slices.Contains(f.policy.Protect, p) {
				keep(p)
			}
		}
	}
	slices.SortStableFunc(mounts, func(a, b mount) int { return strings.Count(a.path, "/") - strings.Count(b.path, "/") })
	var args []string
	for i, m := range mounts {
		if !slices.ContainsFunc(mounts[:i], func(o mount) bool { return slices.Equal(o.args, m.args) }) {
			args = append(args, m.args...)
		}
	}
	return append(args, readOnly...)
}
