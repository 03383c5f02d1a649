package blackbox

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience bounds every wait. It is long, so that a busy machine fails no test. A command may
// take twice as long: one of them compiles Go's library in a sandbox.
const patience = 90 * time.Second

// world is a place of its own to run programs in: a home, a project and no keys.
type world struct {
	t       *testing.T
	home    string
	dir     string // the project, and the current directory of commands
	temp    string
	journal string // the file of the default journal
	env     []string
}

// result is what one command gave.
type result struct {
	code     int
	out, err string
}

// newWorld makes an empty project and home.
func newWorld(t *testing.T) *world {
	t.Helper()
	base, err := os.MkdirTemp("", "pawl-world-")
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err != nil {
		t.Fatal(err)
	}
	return newWorldAt(t, base)
}

// newWorldAt is newWorld in this directory, which the test's end removes.
func newWorldAt(t *testing.T, base string) *world {
	t.Helper()
	t.Cleanup(func() { removeAll(t, base) })
	w := &world{t: t, home: filepath.Join(base, "home"), dir: filepath.Join(base, "project"), temp: filepath.Join(base, "tmp")}
	for _, dir := range []string{w.home, w.dir, w.temp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.journal = filepath.Join(w.home, "state", "pawl", "journal.db")
	w.env = []string{
		"HOME=" + w.home, "XDG_STATE_HOME=" + filepath.Join(w.home, "state"), "TMPDIR=" + w.temp,
		"XDG_CACHE_HOME=" + filepath.Join(w.home, "cache"), "XDG_CONFIG_HOME=" + filepath.Join(w.home, "config"),
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC", "TERM=xterm",
	}
	for _, name := range []string{"SystemRoot", "GOCACHE", "GOROOT", "GOTOOLCHAIN"} {
		if value, ok := os.LookupEnv(name); ok {
			w.env = append(w.env, name+"="+value)
		}
	}
	w.write("go.mod", "module sample\n\ngo 1.21\n") // the sign of a project
	return w
}

// removeAll removes a directory that a process which was killed may still write to.
func removeAll(t *testing.T, dir string) {
	var err error
	for range 50 {
		if err = os.RemoveAll(dir); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Log(err)
}

// write makes a file of the project and gives its path.
func (w *world) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if filepath.IsAbs(name) {
		path = name
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// read gives the text of a file of the project, "" if there is none.
func (w *world) read(name string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if filepath.IsAbs(name) {
		path = name
	}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return string(b)
}

// wants fails the test unless a file of the project has this text, "" for no file.
func (w *world) wants(name, text string) {
	w.t.Helper()
	if got := w.read(name); got != text {
		w.t.Errorf("%s has %q, want %q", name, got, text)
	}
}

// command makes a command in the project, with the world's environment.
func (w *world) command(path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), path, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.dir, w.env, 10*time.Second
	return cmd
}

// run runs a command to its end.
func (w *world) run(cmd *exec.Cmd) result {
	w.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	stuck := time.AfterFunc(2*patience, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !stuck.Stop() {
		w.t.Fatalf("%v did not end in %v\nstdout: %s\nstderr: %s", cmd.Args[1:], 2*patience, &out, &errs)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("%v: %v\n%s", cmd.Args, err, &errs)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// pawl runs a command line of the program.
func (w *world) pawl(args ...string) result { return w.pawlWith("", args...) }

// pawlWith runs a command line of the program with this standard input.
func (w *world) pawlWith(stdin string, args ...string) result {
	w.t.Helper()
	cmd := w.command(binary("pawl"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	return w.run(cmd)
}

// ok is pawl for a command that has to succeed.
func (w *world) ok(args ...string) result {
	w.t.Helper()
	r := w.pawl(args...)
	if r.code != 0 {
		w.t.Fatalf("pawl %v: %v", args, r)
	}
	return r
}

// free are the flags by which nothing is asked and no sandbox is needed.
var free = []string{"--model", "scripted/model.yaml", "--no-sandbox", "--permission-mode", "bypassPermissions"}

// plays runs a script of the deterministic model, unasked and without a sandbox.
func (w *world) plays(script string, args ...string) result {
	w.t.Helper()
	w.write("model.yaml", script)
	return w.pawl(append(append([]string{"run"}, free...), args...)...)
}

// lines runs a script with --json and gives its checked lines.
func (w *world) lines(script string, args ...string) (lines, result) {
	w.t.Helper()
	r := w.plays(script, append([]string{"--json"}, args...)...)
	return decode(w.t, r.out), r
}

// until waits for a condition that another process brings about.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not in %v: %s", patience, what)
		}
	}
}

// onUnix skips a test on systems where an agent runs no commands.
func onUnix(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("an agent runs no commands on Windows")
	}
}
