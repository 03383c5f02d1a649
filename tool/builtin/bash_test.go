//go:build unix

package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/traced"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool"
)

func TestBashShowsOutputAndHowTheCommandEnded(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"sub/f": ""})
	for name, c := range map[string]struct {
		command, want string
		failed        bool
	}{
		"output":                      {"echo hello", "hello", false},
		"none":                        {"true", "(no output)", false},
		"output of a failure":         {"echo out; echo err >&2; sleep 0.1; exit 3", "", true},
		"a failure without output":    {"exit 1", "(no output)\nexit code: 1", true},
		"an unknown command":          {"no-such-command-here 2>/dev/null", "(no output)\nexit code: 127", true},
		"a signal":                    {"echo a; kill -SEGV $$", "a\nkilled by signal: SIGSEGV", true},
		"an exit code of a signal":    {"{ bash -c 'kill -9 $$'; } 2>/dev/null; exit 137", "(no output)\nexit code: 137", true},
		"several lines":               {"for i in 1 2; do\n  echo $i\ndone\n", "1\n2", false},
		"a heredoc":                   {"cat <<'EOF'\na $b\n\"c\"\nEOF\n", "a $b\n\"c\"", false},
		"pipes and substitution":      {"echo $(printf 'b\\na\\n' | sort | head -1) && { true || false; } > /dev/null", "a", false},
		"a carriage return":           {"printf '%s' 'a\rb'", "a\rb", false},
		"control characters":          {"printf '%s' '\x1b[31m\x07\x01'", "\x1b[31m\x07\x01", false},
		"no terminal":                 {"(: </dev/tty) 2>/dev/null || echo none; [ $(ps -o sid= -p $$) = $$ ] && echo session", "none\nsession", false},
		"an empty standard input":     {"cat; read x; echo $?", "1", false},
		"invalid UTF-8":               {`printf 'caf\xe9 \xff\xfe ok'`, "caf\uFFFD \uFFFD ok", false},
		"NUL":                         {`printf 'a\0b'`, "a\uFFFDb", false},
		"a rune in two pieces":        {`printf '\xe6\x97'; sleep 0.1; printf '\xa5'`, "日", false},
		"half a rune at the end":      {`printf 'a\xe6\x97'`, "a\uFFFD", false},
		"the project as directory":    {"ls", "sub", false},
		"a line end more":             {"printf 'a\\n\\n'", "a\n", false},
		"quotes that are not closed":  {"echo 'a", "", true},
		"the variables of the caller": {"echo $HOME", os.Getenv("HOME"), false},
	} {
		res, err := call(t, w.Bash(), in{"command": c.command, "description": "a test"})
		if err != nil || res.IsError != c.failed || c.want != "" && res.Content != c.want {
			t.Errorf("%s: %q %v", name, res.Content, err)
		}
	}
	res, _ := call(t, w.Bash(), in{"command": "echo out; echo err >&2; exit 3"})
	if !strings.HasSuffix(res.Content, "\nexit code: 3") || !strings.Contains(res.Content, "out\n") || !strings.Contains(res.Content, "err\n") {
		t.Errorf("what a failed command wrote is lost: %q", res.Content)
	}
}

func TestBothStreamsAreShownInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	out, errs := &acknowledged{dir: w.Dir()}, &acknowledged{dir: w.Dir()}
	ctx := tool.WithCall(t.Context(), tool.Call{ID: "1", Name: "bash", Output: out, Errors: errs})
	const command = `seen() { until test -e "$1"; do sleep 0.01; done; }
		for i in 1 2 3; do echo out $i; seen "out $i"; echo err $i >&2; seen "err $i"; done; printf '\xff'`
	res, err := callWith(t, ctx, w.Bash(), in{"command": command})
	if err != nil || res.Content != "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n\uFFFD" {
		t.Errorf("%q %v", res.Content, err)
	}
	if out.String() != "out 1\nout 2\nout 3\n\xff" || errs.String() != "err 1\nerr 2\nerr 3\n" {
		t.Errorf("live: %q, %q", out.String(), errs.String())
	}
}

// acknowledged makes an empty file, named as the text, for each text that is written to it.
type acknowledged struct {
	strings.Builder
	dir string
}

func (a *acknowledged) Write(b []byte) (int, error) {
	_, _ = a.Builder.Write(b)
	if name := strings.TrimSpace(string(b)); utf8.ValidString(name) {
		return len(b), os.WriteFile(filepath.Join(a.dir, name), nil, 0o600)
	}
	return len(b), nil
}

// until calls back when what was written so far contains text.
type until struct {
	mu   sync.Mutex
	text string
	seen bytes.Buffer
	then func()
}

func (u *until) Write(b []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen.Write(b)
	if u.then != nil && strings.Contains(u.seen.String(), u.text) {
		u.then()
		u.then = nil
	}
	return len(b), nil
}

func TestOutputIsShownWhileTheCommandRuns(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	live := &until{text: "first", then: func() {
		if err := os.WriteFile(filepath.Join(w.Dir(), "seen"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}}
	ctx := tool.WithCall(t.Context(), tool.Call{ID: "1", Name: "bash", Output: live})
	res, err := callWith(t, ctx, w.Bash(), in{"command": "echo first; until [ -e seen ]; do sleep 0.01; done; echo second", "timeout": "30s"})
	if err != nil || res.Content != "first\nsecond" {
		t.Errorf("%q %v", res.Content, err)
	}
}

func TestATimeoutIsInMillisecondsOrHasAUnit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`120000`: "2m0s", `1500.5`: "1.5005s", `1e3`: "1s", `"2m"`: "2m0s", `"1500ms"`: "1.5s", `"90s"`: "1m30s", `"1h"`: "maximum", `600000`: "10m0s", `"10m"`: "10m0s",
		`600001`: "more than the maximum of 10 minutes (600000 ms)", `1e300`: "maximum", `0`: "not more than 0", `-5`: "not more than 0", `"-1s"`: "not more than 0",
		`"5000"`: "5s", `" 5s "`: "5s", `"soon"`: "neither a number of milliseconds nor a time with a unit", `""`: "neither", `"NaN"`: "not more", `"Inf"`: "maximum",
	} {
		var p period
		err := p.UnmarshalJSON([]byte(text))
		if got := fmt.Sprint(time.Duration(p), err); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	w := open(t, nil)
	refused(t, w.Bash(), in{"command": "true", "timeout": 3_600_000}, "more than the maximum of 10 minutes")
	refused(t, w.Bash(), in{"command": "true", "timeout": true}, "/timeout")
	refused(t, w.Bash(), in{"command": " \n"}, "the command is empty")
	refused(t, w.Bash(), in{"command": "echo a\x00b"}, "NUL")
	if got := bashDefault.String(); got != "2m0s" {
		t.Error(got)
	}
}

// sleepers counts the living processes whose command line has a word. Those that wait to be reaped have none.
func sleepers(t *testing.T, word string) int {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-ww", "-eo", "stat=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "Z") && strings.Contains(line, word) {
			n++
		}
	}
	return n
}

// gone waits until no such process lives, up to a deadline.
func gone(t *testing.T, word string, within time.Duration) bool {
	t.Helper()
	for end := time.Now().Add(within); ; {
		if sleepers(t, word) == 0 {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// word is a number of seconds to sleep, five minutes and a fraction that occurs in no other process.
func word() string {
	n, _ := strconv.ParseUint(randomID()[:12], 16, 64)
	return fmt.Sprintf("300.%015d", n)
}

func TestATimeoutKillsAllThatTheCommandStarted(t *testing.T) {
	for name, command := range map[string]string{
		"the command itself":               `exec sleep %s`,
		"a child":                          `sleep %s; echo never`,
		"a grandchild":                     `bash -c "bash -c 'sleep %s; true'; true"; true`,
		"one in the background":            `sleep %s & wait`,
		"one that ignores SIGTERM":         `bash -c 'trap "" TERM; sleep %s; sleep %[1]s; sleep %[1]s'`,
		"a grandchild that ignores it":     `bash -c 'trap "" TERM; (trap "" TERM; sleep %s) & wait; sleep %[1]s'; true`,
		"a stopped one":                    `bash -c 'kill -STOP $$; sleep %s'; sleep %[1]s`,
		"one in a session of its own":      `setsid bash -c 'trap "" TERM; sleep %s; sleep %[1]s' & wait`,
		"a daemon":                         `setsid bash -c 'setsid sleep %s >/dev/null 2>&1 & exit' ; sleep %[1]s`,
		"a daemon without an environment":  `env -i setsid sleep %s & wait`,
		"another group with other output":  `set -m; sleep %s >/dev/null 2>&1 & wait`,
		"a crowd":                          `for i in $(seq 50); do sleep %s & done; wait`,
		"one that goes on making new ones": `trap "" TERM; while true; do sleep %s & sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, id := open(t, nil), word()
			began := time.Now()
			res, err := call(t, w.Bash(), in{"command": "echo before; " + fmt.Sprintf(command, id), "timeout": 1000})
			took := time.Since(began)
			if err != nil || !res.IsError || !strings.HasPrefix(res.Content, "before\n") ||
				!strings.HasSuffix(res.Content, "\ntimed out after 1s: the command and everything it started was killed") {
				t.Errorf("%q %v", res.Content, err)
			}
			if took > time.Second+4*time.Second {
				t.Errorf("it took %v", took)
			}
			if n := sleepers(t, id); n > 0 {
				t.Errorf("%d processes live on", n)
			}
		})
	}
}

func TestAGrandchildThatIgnoresSIGTERMIsGoneTwoSecondsAfterTheTimeout(t *testing.T) { // alone, because it measures time
	w, id := open(t, nil), word()
	timedOut := time.Now().Add(500 * time.Millisecond) // or a little later
	res, err := call(t, w.Bash(), in{"command": fmt.Sprintf(`bash -c 'trap "" TERM; sleep %s; sleep %[1]s'; true`, id), "timeout": 500})
	if err != nil || !strings.Contains(res.Content, "timed out after 500ms") {
		t.Fatal(res, err)
	}
	if !gone(t, id, 2*time.Second-time.Since(timedOut)) {
		t.Error("it lives")
	}
}

func TestAVeryShortTimeoutReturnsSoon(t *testing.T) { // alone, because it measures time
	w := open(t, nil)
	began := time.Now()
	res, err := call(t, w.Bash(), in{"command": "sleep 4; echo never", "timeout": 100})
	if err != nil || !strings.HasSuffix(res.Content, "was killed (a timeout without a unit is in milliseconds)") || time.Since(began) > 2*time.Second {
		t.Errorf("%q %v after %v", res.Content, err, time.Since(began))
	}
}

func TestACancelKillsTheCommandAndKeepsItsOutput(t *testing.T) {
	t.Parallel()
	w, id := open(t, nil), word()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx = tool.WithCall(ctx, tool.Call{ID: "1", Name: "bash", Output: &until{text: "ready", then: cancel}})
	began := time.Now()
	res, err := callWith(t, ctx, w.Bash(), in{"command": "sleep " + id + " & setsid sleep " + id + " & echo ready; wait"})
	if !errors.Is(err, context.Canceled) || !res.IsError || res.Content != "ready\ncanceled: the command and everything it started was killed" {
		t.Errorf("%q %v", res.Content, err)
	}
	if n := sleepers(t, id); n > 0 || time.Since(began) > 4*time.Second {
		t.Errorf("%d processes live on after %v", n, time.Since(began))
	}
}

func TestBackgroundProcessesThatHoldTheOutputAreStopped(t *testing.T) {
	for name, command := range map[string]string{
		"in the group":                `sleep %s &`,
		"deaf to SIGTERM":             `(trap "" TERM; sleep %s; sleep %[1]s) &`,
		"in a session of their own":   `setsid sleep %s &`,
		"holding only standard error": `sleep %s >/dev/null &`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, id := open(t, nil), word()
			began := time.Now()
			res, err := call(t, w.Bash(), in{"command": fmt.Sprintf(command, id) + " echo done"})
			if err != nil || res.IsError || !strings.HasPrefix(res.Content, "done\n(background processes that still held the output were stopped") {
				t.Errorf("%q %v", res.Content, err)
			}
			if n := sleepers(t, id); n > 0 || time.Since(began) > 4*time.Second {
				t.Errorf("%d processes live on after %v", n, time.Since(began))
			}
		})
	}
}

func TestABackgroundProcessThatEndsSoonIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	if got := ok(t, w.Bash(), in{"command": "(sleep 0.1; echo later) & echo now"}); got != "now\nlater" {
		t.Error(got)
	}
}

func TestAServerThatWritesElsewhereGoesOnUntilClose(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("processes can be found by their environment only where there is /proc")
	}
	w, id := open(t, nil), word()
	for _, command := range []string{"sleep %s >log 2>&1 &", "setsid sleep %s >log 2>&1 &", "nohup bash -c 'trap \"\" TERM; sleep %s; sleep %[1]s' >log 2>&1 &"} {
		if got := ok(t, w.Bash(), in{"command": fmt.Sprintf(command, id) + " echo started"}); got != "started" {
			t.Error(got)
		}
	}
	for began := time.Now(); sleepers(t, id) < 3; time.Sleep(10 * time.Millisecond) { // the shells are told to go on before they begin what is behind &
		if time.Since(began) > 20*time.Second {
			t.Fatalf("only %d live", sleepers(t, id))
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if sleepers(t, id) > 0 {
		t.Error("they outlive the workspace")
	}
}

func TestCloseStopsWhatRuns(t *testing.T) {
	t.Parallel()
	w, id := open(t, nil), word()
	ctx := tool.WithCall(t.Context(), tool.Call{ID: "1", Name: "bash", Output: &until{text: "ready", then: func() {
		go func() { _ = w.Close() }()
	}}})
	res, err := callWith(t, ctx, w.Bash(), in{"command": "echo ready; sleep " + id})
	if !errors.Is(err, errdefs.NotAvailable) || errdefs.Canceled(err) || !strings.HasPrefix(res.Content, "ready\n") {
		t.Errorf("%q %v", res.Content, err)
	}
	if err := w.Close(); err != nil || sleepers(t, id) > 0 {
		t.Error(err, sleepers(t, id))
	}
}

func TestAWorkspaceInACommandOfAnotherIsStoppedWithIt(t *testing.T) {
	t.Parallel()
	outer := open(t, nil)
	inner := open(t, nil, WithEnv(append(os.Environ(), process.Mark+"="+outer.id+".x")))
	id := word()
	ok(t, inner.Bash(), in{"command": "setsid sleep " + id + " >/dev/null 2>&1 & true"})
	for sleepers(t, id) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	process.StopMarked(outer.id)
	if !gone(t, id, 3*time.Second) {
		t.Error("it lives")
	}
}

func TestManyCommandsLeaveNothingBehind(t *testing.T) { // alone, because it counts descriptors
	w := open(t, nil)
	fds := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("open files can be counted only where there is /proc")
		}
		return len(entries)
	}
	before, id := fds(), word()
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			switch i % 4 {
			case 0:
				_, _ = call(t, w.Bash(), in{"command": "echo a; exit 1 # " + id})
			case 1:
				_, _ = call(t, w.Bash(), in{"command": "sleep " + id, "timeout": 50})
			case 2:
				_, _ = call(t, w.Bash(), in{"command": "sleep " + id + " & true"})
			case 3:
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				_, _ = callWith(t, ctx, w.Bash(), in{"command": "sleep " + id})
			}
		})
	}
	wg.Wait()
	if n := sleepers(t, id); n > 0 {
		t.Errorf("%d processes live on", n)
	}
	var children []int
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err != nil || pid <= 0 {
			break
		}
		children = append(children, pid)
	}
	if len(children) > 0 {
		t.Errorf("children that nobody reaped: %v", children)
	}
	if after := fds(); after > before {
		t.Errorf("%d files open before, %d after", before, after)
	}
}

func TestLongOutputIsShortenedAndKept(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	got := ok(t, w.Bash(), in{"command": "seq 1 100000"})
	whole := new(strings.Builder)
	for i := range 100_000 {
		fmt.Fprintln(whole, i+1)
	}
	lines := strings.Split(got, "\n")
	note := -1
	for i, l := range lines {
		if strings.HasPrefix(l, "[") {
			note = i
		}
	}
	if len(got) > 21_000 || note < 0 || lines[0] != "1" || lines[len(lines)-1] != "100000" {
		t.Fatalf("%d bytes: %.200s … %s", len(got), got, lines[len(lines)-1])
	}
	var left, total int
	var path string
	if _, err := fmt.Sscanf(lines[note], "[%d bytes are left out; the whole output (%d bytes) is in %s look", &left, &total, &path); err != nil {
		t.Fatal(lines[note], err)
	}
	path = strings.TrimSuffix(path, ":")
	if shown := len(got) - len(lines[note]) - 1; total != whole.Len() || left+shown+1 != total {
		t.Errorf("of %d bytes %d are shown and %d are left out", total, shown, left)
	}
	if diff := cmp.Diff(whole.String(), content(t, path)); diff != "" {
		t.Error("the kept output is another one")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if got := ok(t, w.Read(), in{"file_path": path, "offset": 50_000, "limit": 1}); !strings.HasPrefix(got, " 50000\t50000\n") {
		t.Error(got)
	}
	if got := ok(t, w.Grep(), in{"path": path, "pattern": "^77777$", "output_mode": "content"}); got != path+":77777:77777" {
		t.Error(got)
	}
}

func TestOutputUpToTheLimitIsShownWhole(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	for n, want := range map[int]int{outputLimit: outputLimit, outputLimit + 1: 0} {
		got := ok(t, w.Bash(), in{"command": fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", n)})
		if want != 0 && len(got) != want || want == 0 && (len(got) > 21_000 || !strings.Contains(got, "10001 bytes are left out")) {
			t.Errorf("of %d bytes %d are shown: %.300s", n, len(got), got[outputEnds:])
		}
	}
	if entries, err := os.ReadDir(w.outDir); err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
}

func TestALineOfAnyLengthIsKept(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	got := ok(t, w.Bash(), in{"command": "echo first; head -c 3000000 /dev/zero | tr '\\0' y; echo; echo last; printf 'aé%.0s' $(seq 20000)"})
	if !strings.HasPrefix(got, "first\nyyy") || !strings.HasSuffix(got, "aé") || strings.ToValidUTF8(got, "") != got || strings.Contains(got, "\uFFFD") || len(got) > 21_000 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestEndlessOutputStaysWithinBounds(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	id := randomID()
	c := &capture{w: w, id: id}
	block := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	for range 110 {
		c.add(block)
	}
	if n := cap(c.head) + cap(c.tail); n > 4<<20 {
		t.Errorf("it holds %d bytes", n)
	}
	got := c.finish()
	if !strings.Contains(got, "the first 100000000 of 115343360 bytes of the output are in "+c.path()) {
		t.Errorf("%.300s", got[outputEnds-100:])
	}
	if info, err := os.Stat(c.path()); err != nil || info.Size() != outputKept {
		t.Error(info.Size(), err)
	}
}

func TestOutputThatCannotBeKeptIsSaid(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	if err := os.RemoveAll(w.outDir); err != nil {
		t.Fatal(err)
	}
	got := ok(t, w.Bash(), in{"command": "seq 1 100000"})
	if !strings.Contains(got, "they could not be kept: ") || !strings.HasSuffix(got, "\n100000") {
		t.Errorf("%.300s", got[outputEnds-100:])
	}
}

func TestACommandRunsWhereItIsTold(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"a/b/f": "", "file": ""})
	link(t, "a/b", filepath.Join(w.Dir(), "l"))
	for workdir, want := range map[string]string{"": "", "a/b": "/a/b", ".": "", "l": "/a/b", w.Dir() + "/a": "/a"} {
		if got := ok(t, w.Bash(), in{"command": "pwd; echo $PWD", "workdir": workdir}); got != w.real+want+"\n"+w.real+want {
			t.Errorf("%s: %s", workdir, got)
		}
	}
	if got := ok(t, w.Bash(), in{"command": "pwd", "working_directory": "a"}); got != w.real+"/a" {
		t.Error(got)
	}
	refused(t, w.Bash(), in{"command": "pwd", "workdir": "a", "working_directory": "a"}, "are the same: give one of them")
	refused(t, w.Bash(), in{"command": "pwd", "workdir": ".."}, "outside of the project")
	refused(t, w.Bash(), in{"command": "pwd", "workdir": "file"}, "file is no directory to run in")
	refused(t, w.Bash(), in{"command": "pwd", "workdir": "a/c"}, "does not exist")
}

func TestACommandGetsTheEnvironmentOfTheWorkspace(t *testing.T) {
	t.Parallel()
	w := open(t, nil, WithEnv([]string{"PATH=" + os.Getenv("PATH"), "COLOR=green", "HOME=/nowhere"}))
	got := ok(t, w.Bash(), in{"command": "echo $COLOR $HOME $SECRET; env | cut -d= -f1 | sort"})
	if want := "green /nowhere\nCOLOR\nHOME\nPATH\nPAWL_CALL\nPWD\nSHLVL\n_"; got != want {
		t.Errorf("%s", got)
	}
	none := open(t, nil, WithEnv(nil))
	if got := ok(t, none.Bash(), in{"command": "echo $HOME"}); got != "(no output)" && got != "" {
		t.Errorf("no environment is not the default one: %q", got)
	}
}

func TestAVeryLongCommandRuns(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	text := strings.Repeat("0123456789abcde\n", 20_000) // 320 kB, more than an argument may have
	ok(t, w.Bash(), in{"command": "cat > f <<'EOF'\n" + text + "EOF\n"})
	if content(t, w.Dir(), "f") != text {
		t.Error("another text")
	}
	if entries, err := os.ReadDir(w.outDir); err != nil || len(entries) > 0 {
		t.Errorf("the script stayed: %v %v", entries, err)
	}
}

func TestWithoutAShellTheToolIsNotAvailable(t *testing.T) {
	w := open(t, nil)
	t.Setenv("PATH", t.TempDir())
	if err := refusal(t, w.Bash(), in{"command": "true"}, "bash: prepare the command"); !errors.Is(err, errdefs.NotAvailable) {
		t.Error(err)
	}
}

// What another shell makes of a command is not what was judged: sh takes "&>" for two things, and "$'" for none.
func TestNoOtherShellServesWhereThereIsNoBash(t *testing.T) {
	sh := component.Command(t, "sh", "install a POSIX shell")
	w, bin := open(t, nil), t.TempDir()
	link(t, sh, filepath.Join(bin, "sh"))
	t.Setenv("PATH", bin)
	for _, input := range []in{{"command": "echo a >made"}, {"command": "echo a >made", "background": true}} {
		if err := refusal(t, w.Bash(), input, "install bash"); !errors.Is(err, errdefs.NotAvailable) {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(w.Dir(), "made")); err == nil {
		t.Error("it ran")
	}
}

// traces is somebody who traces.
type traces struct{}

func (traces) Inject(_ context.Context, set func(name, value string)) {
	set(traced.Parent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
}
func (traces) Note(context.Context, string, string) {}

func TestACommandIsToldToWhichSpanItBelongs(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]sandbox.Policy{"fenced": {}, "unfenced": {Off: true}} {
		t.Run(name, func(t *testing.T) {
			w := open(t, nil, WithEnv([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nowhere", "TRACEPARENT=inherited"}), WithSandbox(policy))
			out, err := w.Bash().Execute(traced.With(context.Background(), traces{}), json.RawMessage(`{"command":"echo ${TRACEPARENT-none} ${TRACESTATE-none}"}`))
			if errdefs.NotAvailable.Is(err) && name == "fenced" {
				t.Skip(err)
			}
			if want := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 none"; err != nil || strings.TrimSpace(out.Content) != want {
				t.Errorf("%q, %v: want %q", out.Content, err, want)
			}
		})
	}
}
