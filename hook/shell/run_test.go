//go:build unix

package shell_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool"
)

func TestTheModelHearsWhatASessionStartHookSaysOnce(t *testing.T) {
	t.Parallel()
	b := shells(t,
		shell.Hook{Event: shell.SessionStart, Command: "echo branch: main"},
		shell.Hook{Event: shell.SessionStart, Command: says(`{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"deploys are frozen"}}`)},
		shell.Hook{Event: shell.SessionStart, Command: "echo resumed", Selector: shell.Selector{Tool: "resume"}})
	o, err := b.Fire(t.Context(), shell.SessionStart, where, shell.SessionPayload{Source: "startup"})
	if want := (shell.Outcome{Context: "branch: main\ndeploys are frozen"}); o != want || err != nil {
		t.Error(o, err)
	}
	prepare := func(session string) (texts []string) {
		g := &hook.Generation{Where: hook.Where{Session: session}, Messages: message.NewHistory(message.User("old"), message.Assistant("yes"), message.User("new"))}
		if err := hook.Prepare(t.Context(), []hook.Middleware{b.Middleware()}, g); err != nil {
			t.Error(err)
		}
		for _, m := range g.Messages.All() {
			texts = append(texts, string(m.Role())+": "+m.Text())
		}
		return texts
	}
	plain := []string{"user: old", "assistant: yes", "user: new"}
	if diff := cmp.Diff(plain, prepare("other")); diff != "" {
		t.Error("another session:", diff)
	}
	want := slices.Insert(slices.Clone(plain), 2, "user: From the hooks of this project:\nbranch: main\ndeploys are frozen")
	if diff := cmp.Diff(want, prepare("s1")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(plain, prepare("s1")); diff != "" {
		t.Error("the second time:", diff)
	}
}

func TestHooksOfOneEventRunAtTheSameTimeAndAnswerInOrder(t *testing.T) {
	t.Parallel()
	meet := func(mine, other, then string) shell.Hook {
		return pre("touch " + mine + "; until [ -e " + other + " ]; do sleep 0.01; done; " + then)
	}
	b := shells(t,
		meet("a", "b", "until [ -e b.done ]; do sleep 0.01; done; echo first >&2; exit 2"),
		meet("b", "a", "echo second >&2; touch b.done; exit 2"))
	if d := b.judge(t, use("c", "ls")); d != hook.Denied("first") {
		t.Error(d)
	}
}

func TestManyHooksOfOneEventAreAllAsked(t *testing.T) {
	t.Parallel()
	var hooks []shell.Hook
	for i := range 20 {
		hooks = append(hooks, pre(fmt.Sprintf("echo %d >> ran", i)))
	}
	b := shells(t, append(hooks, pre("exit 2"))...)
	if d := b.judge(t, use("c", "ls")); d.Verdict != hook.Deny {
		t.Error(d)
	}
	if n := len(strings.Fields(b.read(t, "ran"))); n != 20 {
		t.Error(n, "ran")
	}
}

func TestIdenticalHooksRunOnce(t *testing.T) {
	t.Parallel()
	h := pre("echo ran >> ran")
	same, slow, env, exe, once := h, h, h, h, h
	same.Name, same.Selector.Tool, same.StatusMessage = "other", "bash", "…"
	slow.Timeout = time.Hour
	env.Env = map[string]string{"A": "1"}
	exe.Command, exe.Args = "sh", []string{"-c", h.Command}
	once.Once = true
	for name, c := range map[string]struct {
		hooks []shell.Hook
		times int
	}{
		"one":                     {[]shell.Hook{h}, 1},
		"the same":                {[]shell.Hook{h, h, same}, 1},
		"another timeout":         {[]shell.Hook{h, slow}, 2},
		"another environment":     {[]shell.Hook{h, env, env}, 2},
		"without a shell":         {[]shell.Hook{h, exe, exe}, 2},
		"once":                    {[]shell.Hook{h, once, once}, 2},
		"the default, said aloud": {[]shell.Hook{h, {Event: shell.PreToolUse, Command: h.Command, Timeout: 10 * time.Minute}}, 1},
	} {
		b := shells(t, c.hooks...)
		b.judge(t, use("c", "ls"))
		if n := len(strings.Fields(b.read(t, "ran"))); n != c.times {
			t.Errorf("%s: ran %d times, want %d", name, n, c.times)
		}
	}
}

func TestACommandWithoutAnEnvironmentHasThatOfTheOptions(t *testing.T) {
	t.Parallel()
	o := shell.Options{Env: []string{"SAID=by the options "}, Command: func(_ context.Context, name string, args ...string) (*exec.Cmd, error) {
		return exec.Command(name, args...), nil
	}}
	b := shellsWith(t, o, pre(`echo "$SAID$CLAUDE_PROJECT_DIR" >&2; exit 2`))
	if d := hook.Judge(t.Context(), []hook.Middleware{b.Middleware()}, use("c", "ls"), nil); d.Reason != "by the options "+b.dir {
		t.Error(d)
	}
}

func TestAOnceHookRunsOnceInASession(t *testing.T) {
	t.Parallel()
	one, two := pre("echo one >> ran"), pre("echo two >> ran")
	one.Once, two.Once = true, true
	b := shells(t, one, two) // of the same matcher: two hooks all the same
	in := func(session, run, call string) {
		u := use(call, "ls")
		u.Session, u.Run = session, run
		b.judge(t, u)
	}
	ran := func() int { return len(strings.Fields(b.read(t, "ran"))) }
	for _, c := range []struct {
		session, run, call string
		want               int
	}{
		{"s1", "r1", "c1", 2},
		{"s1", "r1", "c2", 2},
		{"s1", "r2", "c3", 2},
		{"s2", "r3", "c1", 4},
		{"", "r4", "c1", 6}, // no session: a run
		{"", "r4", "c2", 6},
		{"", "r5", "c1", 8},
		{"", "", "c1", 10}, // nor that: always
		{"", "", "c1", 12},
	} {
		if in(c.session, c.run, c.call); ran() != c.want {
			t.Errorf("%+v: ran %d times", c, ran())
		}
	}
	if _, err := b.Fire(t.Context(), shell.SessionEnd, where, shell.SessionPayload{Reason: "clear"}); err != nil {
		t.Error(err)
	}
	if in("s1", "r6", "c9"); ran() != 14 {
		t.Error("after the session's end:", ran())
	}
	in("s1/c9", "r7", "k") // of a task
	if in("s2", "r8", "c"); ran() != 16 {
		t.Error(ran())
	}
	b.Forget(func(session string) bool { return strings.HasPrefix(session, "s1") })
	in("s1", "r9", "c10")
	in("s1/c9", "r7", "k2")
	if in("s2", "r8", "c2"); ran() != 20 {
		t.Error("forgotten:", ran())
	}
}

func TestOnceHooksDoNotTakeEachOthersTurn(t *testing.T) {
	t.Parallel()
	hooks := []shell.Hook{pre("echo one >> ran"), pre("echo two >> ran"), pre("echo three >> ran")}
	for i, tool := range []string{"bash", "read", ""} {
		hooks[i].Once, hooks[i].Selector.Tool = true, tool
	}
	again := hooks[0]
	again.Selector.Tool = "edit" // the same command: it has had its turn
	b := shells(t, append(hooks, again)...)
	for i, tool := range []string{"bash", "read", "edit"} {
		u := use(fmt.Sprint("c", i), "ls")
		u.Call.Name = tool
		b.judge(t, u)
	}
	lines := strings.Fields(b.read(t, "ran"))
	slices.Sort(lines)
	if diff := cmp.Diff([]string{"one", "three", "two"}, lines); diff != "" {
		t.Error(diff)
	}
}

func TestAOnceHookThatGaveNoAnswerHasNotRun(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{"killed": "echo x >> ran; kill -9 $$", "failed": "echo x >> ran; exit 1"} {
		h := pre(command)
		h.Once = true
		b := shells(t, h)
		b.judge(t, use("c1", "ls"))
		b.judge(t, use("c2", "ls"))
		if n := len(strings.Fields(b.read(t, "ran"))); n != 2 {
			t.Errorf("%s: ran %d times", name, n)
		}
	}
}

func TestAOnceHookIsHeardToTheEndOfItsCall(t *testing.T) {
	t.Parallel()
	h := pre("echo sure >&2; exit 2")
	h.Once, h.Command = true, says(`{"decision":"ask","reason":"the first time?"}`)
	changes := pre(`grep -q '"ls"' && printf '{"hookSpecificOutput":{"updatedInput":{"command":"ls -l"}}}'; exit 0`)
	b := shells(t, h, changes)
	if d := b.judge(t, use("c1", "ls")); d.Verdict != hook.Ask || d.Input == "" {
		t.Error("a rewrite must not get round it:", d)
	}
	if d := b.judge(t, use("c2", "pwd")); d.Verdict != hook.Continue {
		t.Error(d)
	}
}

// word is a number of seconds to sleep, five minutes and a fraction that occurs in no other process.
func word() string { return fmt.Sprintf("300.%015d", rand.Int64N(1e15)) }

// sleepers counts the living processes whose command line has a word.
func sleepers(t *testing.T, word string) (n int) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-ww", "-eo", "stat=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "Z") && strings.Contains(line, word) {
			n++
		}
	}
	return n
}

// hostile are hooks that don't end; %s is a word.
var hostile = map[string]string{
	"itself":                      `exec sleep %s`,
	"a grandchild":                `sh -c "sh -c 'sleep %s; true'; true"; true`,
	"deaf to SIGTERM":             `trap "" TERM; sleep %s; sleep %[1]s; sleep %[1]s`,
	"in a session of its own":     `setsid sh -c 'trap "" TERM; sleep %s; sleep %[1]s' & wait`,
	"a daemon of another session": `setsid sh -c 'setsid sleep %s >/dev/null 2>&1 & exit'; sleep %[1]s`,
	"output without end":          `sleep %s & yes "so much to say"`,
	"errors without end":          `sleep %s & yes "so much to say" >&2`,
	"binary without end":          `sleep %s & cat /dev/zero`,
	"input that is never read":    `exec 0<&-; sleep %s`,
}

func TestAHookThatIsNotDoneInTimeDeniesAndIsKilledWithAllThatItStarted(t *testing.T) {
	for name, command := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := word()
			h := pre(fmt.Sprintf(command, id))
			h.Timeout = 500 * time.Millisecond
			b := shells(t, h)
			want := hook.Denied("The hook h did not give its answer, so the call is refused: it was not done after 500ms and was killed: make it faster, or give it a longer timeout")
			if diff := cmp.Diff(want, b.judge(t, use("c", "ls"))); diff != "" {
				t.Error(diff)
			}
			if n := sleepers(t, id); n > 0 {
				t.Error(n, "processes live on")
			}
			if w := b.notices(shell.NoticeWarning); len(w) != 1 || !strings.Contains(w[0], "not done after 500ms") {
				t.Error(w)
			}
		})
	}
}

func TestACancelledContextEndsTheHookAndIsTheError(t *testing.T) {
	for name, command := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := word()
			h := pre(fmt.Sprintf(command, id))
			h.StatusMessage = "judging"
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, err := shell.New(shell.Options{Dir: t.TempDir(), Notify: func(_ context.Context, n shell.Notice) {
				if n.Kind == shell.NoticeStatus {
					cancel()
				}
			}}, h)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close(context.Background()) }()
			if d, err := s.Middleware().PreToolUse(ctx, use("c", "ls")); !errors.Is(err, context.Canceled) || d != (hook.Decision{}) {
				t.Error(d, err)
			}
			if n := sleepers(t, id); n > 0 {
				t.Error(n, "processes live on")
			}
		})
	}
}

func TestEveryPointGivesTheErrorOfItsContext(t *testing.T) {
	t.Parallel()
	var hooks []shell.Hook
	for _, e := range []shell.EventType{shell.PreToolUse, shell.PostToolUse, shell.Stop, shell.SessionEnd} {
		hooks = append(hooks, shell.Hook{Event: e, Command: "touch ran"})
	}
	b := shells(t, hooks...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := b.Middleware()
	u := use("c", "ls")
	u.Result = &tool.Result{}
	_, pre := m.PreToolUse(ctx, u)
	_, end := b.Fire(ctx, shell.SessionEnd, where, shell.SessionPayload{Reason: "other"})
	for i, err := range []error{pre, m.PostToolUse(ctx, u), m.PostGeneration(ctx, generation("")), end} {
		if !errors.Is(err, context.Canceled) {
			t.Error(i, err)
		}
	}
	if _, err := os.Stat(filepath.Join(b.dir, "ran")); err == nil {
		t.Error("a hook ran")
	}
	other := post("true")
	other.Selector.Tool = "read"
	b = shells(t, other)
	u.Result = &tool.Result{Content: "what came until the cancel"}
	if err := b.Middleware().PostToolUse(ctx, u); err != nil {
		t.Error("no hook is for it, and its result is withheld:", err)
	}
}

func TestAHookHasATimeoutOfItsOwn(t *testing.T) {
	t.Parallel()
	dir, warned := t.TempDir(), ""
	slow, patient := pre("sleep "+word()), pre("until [ -e late ]; do sleep 0.01; done; echo no >&2; exit 2")
	slow.Timeout = 100 * time.Millisecond
	s, err := shell.New(shell.Options{Dir: dir, Notify: func(_ context.Context, n shell.Notice) {
		warned = n.Text
		if err := os.WriteFile(filepath.Join(dir, "late"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}}, patient, slow)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	if d := hook.Judge(t.Context(), []hook.Middleware{s.Middleware()}, use("c", "ls"), nil); d != hook.Denied("no") || !strings.Contains(warned, "100ms") {
		t.Error("the patient one has its time:", d, warned)
	}
}

func TestOutputInAnyShapeIsSurvived(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		want    hook.Verdict
		warns   string
	}{
		"much of it":                  {"head -c 5000000 /dev/zero | tr '\\0' x", hook.Continue, ""},
		"much on stderr":              {"head -c 5000000 /dev/zero | tr '\\0' x >&2; exit 2", hook.Deny, ""},
		"binary":                      {"head -c 10000 /dev/urandom >&2; printf '\\377\\376\\0\\1'", hook.Continue, ""},
		"binary as a reason":          {"printf 'a\\377\\0b' >&2; exit 2", hook.Deny, ""},
		"input that is not read":      {"exit 0", hook.Continue, ""},
		"input that is closed":        {"exec 0<&-; exit 2", hook.Deny, ""},
		"pipes held by a grandchild":  {"sleep %s & exit 2", hook.Deny, "left behind"},
		"in a session of its own":     {"setsid sleep %s & exit 0", hook.Continue, "left behind"},
		"by one that ignores SIGTERM": {"(trap '' TERM; sleep %s; sleep %[1]s) & exit 2", hook.Deny, "left behind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := word()
			if strings.Contains(c.command, "%s") {
				c.command = fmt.Sprintf(c.command, id)
			}
			b := shells(t, pre(c.command))
			u := use("c", strings.Repeat("long ", 1<<18)) // more than a pipe holds
			d := b.judge(t, u)
			if d.Verdict != c.want || len(d.Reason) > 40_100 || !strings.Contains(strings.Join(b.notices(shell.NoticeWarning), ""), c.warns) {
				t.Error(d.Verdict, len(d.Reason), b.notices(shell.NoticeWarning))
			}
			if strings.Contains(d.Reason, "\x00") || name == "binary as a reason" && d.Reason != "a\uFFFDb" {
				t.Errorf("%q", d.Reason)
			}
			if n := sleepers(t, id); n > 0 {
				t.Error(n, "processes live on")
			}
		})
	}
}

func TestAHookInTheBackgroundHoldsNothingUpAndIsWaitedForByClose(t *testing.T) {
	t.Parallel()
	h := pre("until [ -e go ]; do sleep 0.01; done; touch ended; echo no >&2; exit 2")
	h.Async = true
	b := shells(t, h)
	if d := b.judge(t, use("c", "ls")); d != (hook.Decision{}) {
		t.Error(d)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "ended")); err != nil {
		t.Error("Close did not wait")
	}
	if w := b.notices(shell.NoticeWarning); len(w) != 1 || !strings.Contains(w[0], "comes too late") {
		t.Error(w)
	}
}

func TestCloseKillsWhatItCannotWaitFor(t *testing.T) {
	t.Parallel()
	id := word()
	h := pre("trap '' TERM; sleep " + id + "; sleep " + id)
	h.Async = true
	b := shells(t, h)
	b.judge(t, use("c", "ls"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := sleepers(t, id); n > 0 {
		t.Error(n, "processes live on")
	}
	if w := b.notices(shell.NoticeWarning); len(w) != 1 || !strings.Contains(w[0], "was killed") {
		t.Error(w)
	}
}

func TestCloseStopsWhatHooksLeftBehind(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("processes can be found by their environment only where there is /proc")
	}
	id := word()
	b := shells(t, pre("sleep "+id+" >/dev/null 2>&1 & exit 0"))
	b.judge(t, use("c", "ls"))
	if n := sleepers(t, id); n != 1 {
		t.Error(n, "live before")
	}
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if n := sleepers(t, id); n > 0 {
		t.Error(n, "live on")
	}
}

func TestAfterCloseCallsAreRefused(t *testing.T) {
	t.Parallel()
	b := shells(t, pre("exit 0"), shell.Hook{Event: shell.SessionStart, Command: "true"})
	_ = b.Close(context.Background())
	if d := b.judge(t, use("c", "ls")); d.Verdict != hook.Deny || !strings.Contains(d.Reason, "closed") {
		t.Error(d)
	}
	if _, err := b.Fire(t.Context(), shell.SessionStart, where, shell.SessionPayload{Source: "startup"}); !errdefs.NotAvailable.Is(err) {
		t.Error(err)
	}
}

func TestAHookThatIsUnderWayAtCloseDenies(t *testing.T) {
	t.Parallel()
	h := pre("sleep " + word())
	h.StatusMessage = "judging"
	began := make(chan struct{})
	s, err := shell.New(shell.Options{Dir: t.TempDir(), Notify: func(_ context.Context, n shell.Notice) {
		if n.Kind == shell.NoticeStatus {
			close(began)
		}
	}}, h)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan hook.Decision)
	go func() {
		got <- hook.Judge(context.Background(), []hook.Middleware{s.Middleware()}, use("c", "ls"), nil)
	}()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.Close(ctx)
	if d := <-got; d.Verdict != hook.Deny || !strings.Contains(d.Reason, "closed") {
		t.Error(d)
	}
}

func TestTheBackgroundHasAnEnd(t *testing.T) {
	t.Parallel()
	h := pre("echo x >> began; until [ -e go ]; do sleep 0.01; done")
	h.Async = true
	b := shells(t, h)
	for i := range 16 {
		b.judge(t, use(fmt.Sprint("c", i), "ls"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := b.Middleware().PreToolUse(ctx, use("c16", "ls")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("the next one waits:", err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Middleware().PreToolUse(t.Context(), use("c17", "ls")); err != nil {
		t.Error(err)
	}
	_ = b.Close(context.Background())
	if n := len(strings.Fields(b.read(t, "began"))); n != 17 {
		t.Error(n)
	}
}

func TestAHookThatCannotBeStartedDenies(t *testing.T) {
	t.Parallel()
	b := shells(t, shell.Hook{Event: shell.PreToolUse, Name: "h", Command: "no-such-program-here", Args: []string{}})
	if d := b.judge(t, use("c", "ls")); d.Verdict != hook.Deny || !strings.Contains(d.Reason, "could not be started") {
		t.Error(d)
	}
	b = shells(t, pre("exit 0"))
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	if d := b.judge(t, use("c", "ls")); d.Verdict != hook.Deny || !strings.Contains(d.Reason, "could not be started") {
		t.Error("its directory is gone:", d)
	}
}

func TestAHookRunsInWhatTheCallerMakesItsProcessOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fence, err := fence.Open(sandbox.Policy{Root: dir}, os.Environ())
	if errdefs.NotAvailable.Is(err) {
		component.Absent(t, "there is no sandbox: "+err.Error(), "run it where Landlock or Seatbelt is")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fence.Close() }()
	outside := filepath.Join(t.TempDir(), "made")
	s, err := shell.New(shell.Options{Dir: dir, Command: fence.Command},
		shell.Hook{Event: shell.PreToolUse, Command: "echo in >made; echo out >'" + outside + "' || { echo fenced >&2; exit 2; }"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	d := hook.Judge(t.Context(), []hook.Middleware{s.Middleware()}, &hook.ToolUse{Call: message.ToolCall{ID: "c", Name: "bash", Input: "{}"}}, nil)
	if d.Verdict != hook.Deny || !strings.Contains(d.Reason, "fenced") {
		t.Error(d)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("it wrote outside")
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
}
