package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/testkit/parallel"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
)

// bin has both programs.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pawl-worker-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	bin = dir
	parallel.RaiseLimit()
	code := pgtest.Main(m)
	devserver.Stop()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// build builds the programs, once.
var build = sync.OnceValue(func() error {
	for dir, pkg := range map[string]string{"../../..": "./cmd/pawl", ".": "."} {
		cmd := exec.Command("go", "build", "-o", bin+string(filepath.Separator), pkg)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	return nil
})

// world is a project, a user without keys, a journal in PostgreSQL, and a service with a namespace of its own.
type world struct {
	t         *testing.T
	dir, home string
	journal   string
	server    *devserver.Server
}

// newWorld has the user's settings name a script as the model, so that workers and those who begin runs have the same.
func newWorld(t *testing.T, script string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), home: t.TempDir(), server: devserver.Shared(t), journal: database(t)}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	model := "scripted/" + w.file("script.yaml", script)
	w.settings(map[string]any{"model": model})
	return w
}

// database is the address of a new database, as a URL.
func database(t *testing.T) string {
	q := url.Values{}
	for pair := range strings.FieldsSeq(pgtest.DSN(t)) {
		name, value, _ := strings.Cut(pair, "=")
		q.Set(name, value)
	}
	return "postgres:///" + q.Get("dbname") + "?" + q.Encode()
}

func (w *world) settings(all map[string]any) {
	w.t.Helper()
	b, err := json.Marshal(all)
	if err == nil {
		err = os.MkdirAll(filepath.Join(w.home, ".agents"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(w.home, ".agents", "settings.json"), b, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// file writes one of the project.
func (w *world) file(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// engine is --engine for the world's service.
func (w *world) engine(how ...string) string {
	q := "namespace=" + w.server.Namespace
	for _, h := range how {
		q = "engine=" + url.QueryEscape(h) + "&" + q
	}
	return "temporal://" + w.server.Address + "?" + q
}

func (w *world) env() []string {
	return append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "HOME="+w.home, "XDG_STATE_HOME="+filepath.Join(w.home, "state"), "NO_COLOR=1",
		"ANTHROPIC_API_KEY=", "OPENAI_API_KEY=", "GEMINI_API_KEY=", "GOOGLE_API_KEY=", "TEMPORAL_CONFIG_FILE="+os.DevNull)
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
	cmd.Dir, cmd.Env = w.dir, w.env()
	return cmd
}

// ran is what a command line gave.
type ran struct {
	code     int
	out, err string
	stderr   *output // also while it runs
}

// output is what a process has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// pawl runs one to its end.
func (w *world) pawl(args ...string) ran {
	w.t.Helper()
	r, wait := w.begin(args...)
	wait()
	return *r
}

// begin starts one, which wait waits for.
func (w *world) begin(args ...string) (r *ran, wait func()) {
	w.t.Helper()
	_, r, wait = w.start(args...)
	return r, wait
}

func (w *world) start(args ...string) (cmd *exec.Cmd, r *ran, wait func()) {
	w.t.Helper()
	var out, errs output
	cmd = w.command(append([]string{"pawl"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	r = &ran{stderr: &errs}
	return cmd, r, func() {
		w.t.Helper()
		timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		_ = cmd.Wait()
		r.code, r.out, r.err = cmd.ProcessState.ExitCode(), out.String(), errs.String()
	}
}

// run begins a run on Temporal, and waits for it.
func (w *world) run(args ...string) ran {
	w.t.Helper()
	return w.pawl(append([]string{"run", "--engine", w.engine(), "--journal", w.journal}, args...)...)
}

// laborer is a process of pawl worker.
type laborer struct {
	*exec.Cmd
	ready map[string]any
	errs  *bytes.Buffer
}

// works starts one, which ends with the test.
func (w *world) works(args ...string) *laborer {
	w.t.Helper()
	k := &laborer{Cmd: w.command(append([]string{"pawl", "worker", "--json", "--address", w.server.Address, "--namespace", w.server.Namespace, "--journal", w.journal}, args...)...), errs: new(bytes.Buffer)}
	k.Stderr = k.errs
	out, err := k.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := k.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if k.ProcessState == nil {
			_ = k.Process.Kill()
			_ = k.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &k.ready)
	}
	if err != nil || k.ready["type"] != "worker.ready" {
		_ = k.Wait()
		w.t.Fatalf("%v: %s\n%s", err, line, k.errs)
	}
	return k
}

// waitFor waits for a file that a command makes.
func (w *world) waitFor(name string) {
	w.t.Helper()
	w.until("there is no "+name, func() bool {
		_, err := os.Stat(filepath.Join(w.dir, name))
		return err == nil
	})
}

// until waits for a condition that other processes bring about, which can only be polled.
func (w *world) until(failure string, condition func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); {
		if time.Now().After(deadline) {
			w.t.Fatal(failure)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (w *world) read(name string) string {
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Error(err)
	}
	return string(b)
}

// lines are those of --json, but for what is shown as it comes: in their order, each session's together.
func lines(t *testing.T, out string) (all []map[string]any) {
	t.Helper()
	for text := range strings.Lines(out) {
		var l map[string]any
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if kind := l["type"].(string); !strings.HasSuffix(kind, ".delta") && kind != "tool.output" {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b map[string]any) int { return strings.Compare(a["session"].(string), b["session"].(string)) })
	return all
}

// shown is what --json has of each session as it comes: words of models, output of commands.
func shown(t *testing.T, out string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for text := range strings.Lines(out) {
		var l struct{ Type, Session, Text string }
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(l.Type, ".delta") || l.Type == "tool.output" {
			all[l.Session] += l.Text
		}
	}
	return all
}

// normal is text without what differs from run to run: ids, by their order of appearance, and times.
func normal(v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	text := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`).ReplaceAllString(string(b), "TIME")
	ids := map[string]string{}
	return regexp.MustCompile(`\b[0-9a-z]{26}\b`).ReplaceAllStringFunc(text, func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprint("ID", len(ids)+1)
		}
		return ids[id]
	})
}
