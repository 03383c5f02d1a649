//go:build unix

package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/tool"
)

// book is a record of commands, as an engine keeps it.
type book struct {
	life context.Context
	fail error

	mu   sync.Mutex
	said []string
	open []tool.Command
}

func (b *book) Started(_ context.Context, c tool.Command) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said, b.open = append(b.said, "started "+c.Text), append(b.open, c)
	return b.fail
}

func (b *book) Ended(_ context.Context, c tool.Command, e tool.CommandEnd) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, fmt.Sprintf("%s %s %d %s", e.Reason, c.Text, e.Code, e.Signal))
	return nil
}

func (b *book) Open() []tool.Command {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

func (b *book) Lifetime() context.Context { return b.life }

func (b *book) has() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.said...)
}

// called is the context of a call of a session.
func called(t *testing.T, session string, b *book) context.Context {
	t.Helper()
	if b.life == nil {
		b.life = context.Background()
	}
	return tool.WithCall(t.Context(), tool.Call{Session: session, Commands: b})
}

var commandID = regexp.MustCompile(`bg-[0-9a-zA-Z_-]+`)

// launch starts a command in the background, which has to work.
func launch(t *testing.T, ctx context.Context, w *Workspace, text string) (id string) {
	t.Helper()
	res, err := callWith(t, ctx, w.Bash(), in{"command": text, "background": true})
	if err != nil || res.IsError {
		t.Fatal(err, res)
	}
	return commandID.FindString(res.Content)
}

func output(t *testing.T, ctx context.Context, w *Workspace, id, wait string) string {
	t.Helper()
	input := in{"id": id}
	if wait != "" {
		input["wait"] = wait
	}
	res, err := callWith(t, ctx, w.BashOutput(), input)
	if err != nil {
		t.Fatal(err)
	}
	return res.Content
}

// eventually waits for what another process does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in 20 s: %s", what)
		}
	}
}

func TestABackgroundCommandIsSeenAndKilled(t *testing.T) {
	t.Parallel()
	w, b := open(t, nil), &book{}
	ctx := called(t, "s", b)
	id := launch(t, ctx, w, "echo one; sleep 300; echo two")
	var seen string
	eventually(t, "the first line", func() bool {
		seen += output(t, ctx, w, id, "")
		return strings.Contains(seen, "one\n["+id+" runs since")
	})
	if got := output(t, ctx, w, id, ""); strings.Contains(got, "one") || !strings.Contains(got, "(no new output)") {
		t.Errorf("what was seen comes again: %s", got)
	}
	res, err := callWith(t, ctx, w.BashKill(), in{"id": id})
	if err != nil || !strings.HasPrefix(res.Content, id+" was killed after") {
		t.Error(res, err)
	}
	if res, err = callWith(t, ctx, w.BashKill(), in{"id": id}); err != nil || !strings.HasPrefix(res.Content, id+" was killed after") {
		t.Error("once more:", res, err)
	}
	text := "echo one; sleep 300; echo two"
	if d := cmp.Diff([]string{"started " + text, "killed " + text + " 0 "}, b.has()); d != "" {
		t.Error(d)
	}
}

func TestTheEndOfABackgroundCommandIsTold(t *testing.T) {
	t.Parallel()
	w, b := open(t, nil), &book{}
	ctx := called(t, "s", b)
	for text, want := range map[string]string{
		"echo out; exit 3":            "out\n[ID ended with exit code 3 after TIME]",
		"echo err >&2; exit 4":        "err\n[ID ended with exit code 4 after TIME]",
		"kill -SEGV $$":               "(no new output)\n[ID was killed by the signal SIGSEGV after TIME]",
		`printf 'a\0b\377c'`:          "a\ufffdb\ufffdc\n[ID ended with exit code 0 after TIME]",
		"sleep 300 & echo $!; exit 0": "PID\n[ID ended with exit code 0 after TIME]", // it holds the output
	} {
		id := launch(t, ctx, w, text)
		got := output(t, ctx, w, id, "1m")
		got = regexp.MustCompile(`after \S+\]`).ReplaceAllString(strings.ReplaceAll(got, id, "ID"), "after TIME]")
		if got = regexp.MustCompile(`^\d+\n`).ReplaceAllString(got, "PID\n"); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	res, err := callWith(t, ctx, w.Bash(), in{"command": "sleep 300", "background": true, "timeout": 200})
	if err != nil {
		t.Fatal(err)
	}
	if got := output(t, ctx, w, commandID.FindString(res.Content), "1m"); !strings.Contains(got, "timed out after") {
		t.Error(got)
	}
	if n := len(b.has()); n != 12 {
		t.Error(n, b.has())
	}
	list, err := callWith(t, ctx, w.BashOutput(), in{})
	if err != nil || strings.Count(list.Content, "\nbg-") != 6 || !strings.Contains(list.Content, "exit 3") {
		t.Error(list.Content, err)
	}
}

func TestBackgroundCommandsAreOfTheirSession(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	a, b := called(t, "a", &book{}), called(t, "b", &book{})
	id := launch(t, a, w, "sleep 300")
	for _, f := range []tool.Tool{w.BashOutput(), w.BashKill()} {
		if _, err := callWith(t, b, f, in{"id": id}); !errors.Is(err, errdefs.NotFound) || !strings.Contains(err.Error(), "there are: none") {
			t.Error(err)
		}
	}
	other := launch(t, b, w, "sleep 300")
	w.EndSession("a")
	if got := output(t, a, w, id, ""); !strings.Contains(got, "was stopped") {
		t.Error(got)
	}
	if got := output(t, b, w, other, ""); !strings.Contains(got, "runs since") {
		t.Error(got)
	}
	w.EndSession("nobody's")
	if got := w.Running(); len(got) != 1 || !got["b"] {
		t.Error(got)
	}
	w.Forget(func(session string) bool { return session == "b" })
	if _, err := callWith(t, b, w.BashOutput(), in{"id": other}); !errors.Is(err, errdefs.NotFound) || len(w.Running()) != 0 {
		t.Error(err, w.Running())
	}
	if got := output(t, a, w, id, ""); !strings.Contains(got, "was stopped") {
		t.Error(got)
	}
}

func TestASessionHasEightBackgroundCommandsAtMost(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ctx := called(t, "s", &book{})
	var first string
	for i := range mostRunning {
		if id := launch(t, ctx, w, "sleep 300"); i == 0 {
			first = id
		}
	}
	_, err := callWith(t, ctx, w.Bash(), in{"command": "touch ninth", "background": true})
	if !errors.Is(err, errdefs.BudgetExceeded) || !strings.Contains(err.Error(), first+" (sleep 300)") {
		t.Error(err)
	}
	launch(t, called(t, "another", &book{}), w, "true")
	if _, err := callWith(t, ctx, w.BashKill(), in{"id": first}); err != nil {
		t.Error(err)
	}
	for range mostRemembered + 4 { // those that are over are forgotten, the oldest first, with their files
		output(t, ctx, w, launch(t, ctx, w, "true"), "1m")
	}
	list, err := callWith(t, ctx, w.BashOutput(), in{})
	if n := strings.Count(list.Content, "\nbg-"); err != nil || n != mostRemembered || strings.Count(list.Content, "sleep 300") != mostRunning-1 {
		t.Error(n, err, list.Content)
	}
	if files, err := os.ReadDir(w.OutputDir()); err != nil || len(files) != mostRemembered+1 {
		t.Error(len(files), err)
	}
	if _, err := os.Stat(filepath.Join(w.Dir(), "ninth")); err == nil {
		t.Error("the ninth ran")
	}
}

func TestWhatCannotBePutOnRecordIsNotStarted(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	_, err := callWith(t, called(t, "s", &book{fail: errors.New("the disk is full")}), w.Bash(), in{"command": "touch made", "background": true})
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Error(err)
	}
	if list := ok(t, w.BashOutput(), in{}); list != "background commands: none" {
		t.Error(list)
	}
	if files, err := os.ReadDir(w.OutputDir()); err != nil || len(files) != 0 {
		t.Error(files, err)
	}
	time.Sleep(50 * time.Millisecond) // what must not happen would have by then
	if _, err := os.Stat(filepath.Join(w.Dir(), "made")); err == nil {
		t.Error("it ran")
	}
}

func TestABackgroundCommandThatCannotStartIsOver(t *testing.T) {
	t.Parallel()
	w, b := open(t, nil), &book{}
	if err := os.Mkdir(filepath.Join(w.Dir(), "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(w.Dir(), "sub")
	ctx := called(t, "s", b)
	b2 := &removing{book: b, dir: dir}
	_, err := callWith(t, tool.WithCall(ctx, tool.Call{Session: "s", Commands: b2}), w.Bash(), in{"command": "true", "background": true, "workdir": "sub"})
	if !errors.Is(err, errdefs.NotAvailable) {
		t.Error(err)
	}
	if d := cmp.Diff([]string{"started true", "failed true 0 "}, b.has()); d != "" {
		t.Error(d)
	}
}

// removing takes the directory away at the last moment.
type removing struct {
	*book
	dir string
}

func (r *removing) Started(ctx context.Context, c tool.Command) error {
	return errors.Join(r.book.Started(ctx, c), os.Remove(r.dir))
}

func TestABackgroundCommandEndsWithTheRunOfItsTask(t *testing.T) {
	t.Parallel()
	life, end := context.WithCancel(t.Context())
	w, b := open(t, nil), &book{life: life}
	ctx := called(t, "s", b)
	id := launch(t, ctx, w, "trap '' TERM; sleep 300 & echo ready; while :; do sleep 1; done")
	end()
	if got := output(t, ctx, w, id, "1m"); !strings.Contains(got, "was stopped after") {
		t.Error(got)
	}
	if said := b.has(); !strings.HasPrefix(said[1], "stopped trap") {
		t.Error(said)
	}
}

func TestACancelledCallLeavesItsBackgroundCommand(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ctx, cancel := context.WithCancel(called(t, "s", &book{}))
	id := launch(t, ctx, w, "sleep 300")
	cancel()
	time.Sleep(50 * time.Millisecond) // what must not happen would have by then
	if got := output(t, called(t, "s", &book{}), w, id, ""); !strings.Contains(got, "runs since") {
		t.Error(got)
	}
	ctx, cancel = context.WithTimeout(called(t, "s", &book{}), 100*time.Millisecond)
	defer cancel()
	if _, err := callWith(t, ctx, w.BashOutput(), in{"id": id, "wait": "5m"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestCloseStopsBackgroundCommands(t *testing.T) {
	t.Parallel()
	w, b := open(t, nil), &book{}
	ctx := called(t, "s", b)
	launch(t, ctx, w, "(setsid sleep 301 & echo $! >>pids); (sleep 301 & echo $! >>pids); echo $$ >>pids; exec sleep 301")
	var pids []string
	eventually(t, "three pids", func() bool {
		text, _ := os.ReadFile(filepath.Join(w.Dir(), "pids"))
		pids = strings.Fields(string(text))
		return len(pids) == 3
	})
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		if runs(n) {
			t.Errorf("%d lives", n)
		}
	}
	if said := b.has(); len(said) != 2 || !strings.HasPrefix(said[1], "stopped ") {
		t.Error("Close came back before the end was on record:", said)
	}
	if _, err := callWith(t, ctx, w.Bash(), in{"command": "true", "background": true}); !errors.Is(err, errdefs.NotAvailable) {
		t.Error(err)
	}
}

// runs reports whether a process is there that isn't only waiting to be reaped.
func runs(pid int) bool {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return len(out) > 0 && out[0] != 'Z'
}

const backgroundDies = "BUILTIN_TEST_BACKGROUND_DIES"

// The process that is killed is another run of this test.
func TestBackgroundCommandsDieWithTheProcessThatIsKilled(t *testing.T) {
	t.Parallel()
	const text = "(setsid sleep 302 & echo $! >>pids); (sleep 302 & echo $! >>pids); echo $$ >>pids; exec sleep 302"
	if dir := os.Getenv(backgroundDies); dir != "" {
		w, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		launch(t, called(t, "s", &book{}), w, text)
		select {}
	}
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestBackgroundCommandsDieWithTheProcessThatIsKilled$")
	child.Env = append(os.Environ(), backgroundDies+"="+dir)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []string
	eventually(t, "three pids", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "pids"))
		pids = strings.Fields(string(text))
		return len(pids) == 3
	})
	if err := child.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	for _, pid := range pids {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat("/proc/self/stat"); err != nil && pid == pids[0] {
			continue // in a session of its own: without /proc nobody knows of it
		}
		eventually(t, "the death of "+pid, func() bool { return !runs(n) })
	}
}

func TestTheEndOfALongBackgroundOutputIsKept(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	ctx := called(t, "s", &book{})
	id := launch(t, ctx, w, "seq 1 3000000") // 22.9 MB
	got := output(t, ctx, w, id, "5m")
	file := fileOf(t, w)
	kept := content(t, file)
	if len(kept) > keptMost || len(kept) < keptMost/2-10 || !strings.HasSuffix(kept, "2999999\n3000000\n") || strings.HasPrefix(kept, "1\n") {
		t.Errorf("%d bytes: %.20q … %q", len(kept), kept, kept[len(kept)-20:])
	}
	first, _, _ := strings.Cut(kept, "\n")
	if !regexp.MustCompile(`^\[\d+ bytes that were not read are gone: the last 10 MB are kept\]\n` + first + "\n").MatchString(got) {
		t.Errorf("%.200s", got)
	}
	if !strings.Contains(got, "bytes are left out; they are in "+file) || !strings.Contains(got, "\n3000000\n["+id) || len(got) > outputLimit {
		t.Errorf("%d bytes … %s", len(got), got[len(got)-200:])
	}
	lost, err := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(got))
	if err != nil || lost+len(kept) != 22888896 {
		t.Error(lost, len(kept), err)
	}
}

// fileOf is the one file of outputs.
func fileOf(t *testing.T, w *Workspace) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.OutputDir(), "bash-*.txt"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	return files[0]
}

func TestABackgroundCommandIsNamedAfterItsCall(t *testing.T) {
	t.Parallel()
	w, b := open(t, nil), &book{life: context.Background()}
	for i, want := range []string{"bg-c1", "bg-tooluse_9xYz", "bg-"} {
		call := tool.Call{ID: []string{"c1", "a/very.long/id/of/a/tooluse_9xYz", "…"}[i], Name: "bash", Session: "s", Commands: b}
		res, err := callWith(t, tool.WithCall(t.Context(), call), w.Bash(), in{"command": "true", "background": true})
		if err != nil || !strings.HasPrefix(res.Content, want) {
			t.Error(res, err)
		}
		again, err := callWith(t, tool.WithCall(t.Context(), call), w.Bash(), in{"command": "true", "background": true})
		if err != nil || commandID.FindString(again.Content) == commandID.FindString(res.Content) {
			t.Error("run again:", again, err)
		}
	}
}
