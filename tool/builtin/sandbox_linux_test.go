package builtin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool"
)

// fenced makes a workspace whose commands run in a fence, with caches of its own.
func fenced(t *testing.T, p sandbox.Policy) *Workspace {
	t.Helper()
	tier.SkipQuick(t, "it starts sandboxes")
	if c := fence.Probe(); !c.Writes.Holds {
		component.Absent(t, "no fence: "+c.Writes.Why, "run on Linux 6.2 or later with Landlock, or install bubblewrap")
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(realDir(t), "cache"))
	return open(t, map[string]string{"sub/f": "here"}, WithSandbox(p))
}

// realDir is a temporary directory without symbolic links in its name.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestInAFenceBashWritesInTheProjectOnly(t *testing.T) {
	outside := realDir(t)
	w := fenced(t, sandbox.Policy{})
	if d := w.Bash().Definition().Description; !strings.Contains(d, "and have no network.") || !strings.HasSuffix(d, "use it in one command.") {
		t.Errorf("the model isn't told: %s", d)
	}
	if got := ok(t, w.Bash(), in{"command": `cat sub/f; pwd; echo new >made && cat made; echo kept >"$TMPDIR/x"`}); got != "here"+w.real+"\nnew" {
		t.Error(got)
	}
	if got := ok(t, w.Bash(), in{"command": `cat "$TMPDIR/x"`}); got != "kept" {
		t.Errorf("the temporary directory is another one for the next command: %s", got)
	}
	res, err := call(t, w.Bash(), in{"command": "echo gone >" + outside + "/made"})
	if err != nil || !res.IsError {
		t.Errorf("%v %v", res, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "made")); err == nil {
		t.Error("it wrote outside")
	}
	if got := ok(t, w.Bash(), in{"command": "wc -c <<'EOF'\n" + strings.Repeat("x", longCommand) + "\nEOF"}); got != "100001" {
		t.Errorf("a long command: %s", got)
	}
}

func TestInAFenceATimeoutKillsAllThatTheCommandStarted(t *testing.T) {
	w, id := fenced(t, sandbox.Policy{}), word()
	res, err := call(t, w.Bash(), in{"command": "echo before; setsid bash -c 'trap \"\" TERM; sleep " + id + "; sleep " + id + "' & wait", "timeout": 1500})
	if err != nil || !strings.Contains(res.Content, "timed out") || !strings.HasPrefix(res.Content, "before") {
		t.Errorf("%v %v", res, err)
	}
	if sleepers(t, id) > 0 {
		t.Error("it lives on")
	}
}

func TestInAFenceAServerGoesOnUntilClose(t *testing.T) {
	w, id := fenced(t, sandbox.Policy{}), word()
	ok(t, w.Bash(), in{"command": "setsid sleep " + id + " >log 2>&1 & echo started"})
	if sleepers(t, id) == 0 {
		t.Error("it ended with the command")
	}
	if err := w.Close(); err != nil || sleepers(t, id) > 0 {
		t.Error("it outlives the workspace", err)
	}
}

func TestAPolicyInTheContextNarrowsTheFence(t *testing.T) {
	w := fenced(t, sandbox.Policy{})
	ctx := sandbox.With(t.Context(), sandbox.Policy{Root: filepath.Join(w.real, "sub")})
	res, err := callWith(t, ctx, w.Bash(), in{"command": "echo a >sub/made; echo b >made; ls . sub"})
	if err != nil || !strings.Contains(res.Content, "\nsub:\nf\nmade") || strings.Contains(res.Content, "\nmade\nsub\n") {
		t.Errorf("%v %v", res, err)
	}
	ctx = sandbox.With(t.Context(), sandbox.Policy{Root: filepath.Dir(w.real), Write: []string{"/"}, Network: sandbox.Network{All: true}, Off: true})
	outside := realDir(t)
	res, err = callWith(t, ctx, w.Bash(), in{"command": "echo a >" + outside + "/made"})
	if err != nil || !res.IsError {
		t.Errorf("a policy in the context widened the fence: %v %v", res, err)
	}
}

func TestAPolicyInTheContextBindsAWorkspaceWithoutAFence(t *testing.T) {
	_ = fenced(t, sandbox.Policy{}) // there are fences
	w := open(t, nil)
	ctx := sandbox.With(t.Context(), sandbox.Policy{})
	res, err := callWith(t, ctx, w.Bash(), in{"command": "echo a >made"})
	if err != nil || !res.IsError {
		t.Errorf("%v %v", res, err)
	}
	if got := ok(t, w.Bash(), in{"command": "echo a >made; cat made"}); got != "a" {
		t.Error(got)
	}
}

func TestAFenceThatCannotBeHadRunsNothing(t *testing.T) {
	dir := realDir(t)
	w := open(t, nil, WithSandbox(sandbox.Policy{Protect: []string{dir}})) // in no writable directory: it makes no sense
	_, err := call(t, w.Bash(), in{"command": "touch made"})
	if err == nil || !strings.Contains(err.Error(), "Protect") {
		t.Error(err)
	}
	t.Setenv("PATH", os.Getenv("PATH"))
	if _, err := os.Stat(filepath.Join(w.Dir(), "made")); err == nil {
		t.Error("the command ran")
	}
	w = open(t, nil, WithSandbox(sandbox.Policy{Write: []string{filepath.Join(dir, "nowhere")}}))
	if _, err = call(t, w.Bash(), in{"command": "touch made"}); !errors.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
}

func TestKeysInTheEnvironmentDoNotReachAFencedCommand(t *testing.T) {
	t.Setenv("SOME_API_KEY", "secret")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("GITHUB_TOKEN", "wanted")
	w := fenced(t, sandbox.Policy{Env: []string{"GITHUB_TOKEN", "COLOR=green"}})
	if got := ok(t, w.Bash(), in{"command": "echo $SOME_API_KEY $AWS_SECRET_ACCESS_KEY $GITHUB_TOKEN $COLOR"}); got != "wanted green" {
		t.Error(got)
	}
}

func TestFileToolsAreHeldToThePolicyToo(t *testing.T) {
	w := open(t, map[string]string{"sub/f": "here", "g": "here", ".git/config": "kept"})
	ctx := sandbox.With(t.Context(), sandbox.Policy{Root: filepath.Join(w.real, "sub")})
	for name, allowed := range map[string]bool{"sub/f": true, "sub/new/file": true, "g": false, "new": false, "new/file": false, "sub/../g": false} {
		_, err := callWith(t, ctx, w.Write(), in{"file_path": name, "content": "changed"})
		if allowed != (err == nil) || err != nil && !errors.Is(err, errdefs.PolicyDenied) {
			t.Errorf("write %s: %v", name, err)
		}
	}
	if _, err := callWith(t, ctx, w.Edit(), in{"file_path": "g", "old_string": "here", "new_string": "changed"}); !errors.Is(err, errdefs.PolicyDenied) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(w.Dir(), "new")); err == nil || content(t, w.Dir(), "g") != "here" {
		t.Error("it was written")
	}
	git := filepath.Join(w.real, ".git")
	fence, err := Open(w.Dir(), WithSandbox(sandbox.Policy{Protect: []string{git}}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fence.Close() }()
	refused(t, fence.Write(), in{"file_path": ".git/config", "content": "x"}, "may not be written")
	ok(t, fence.Write(), in{"file_path": "g", "content": "x"})
}

func TestACommandInTheBackgroundIsInTheFenceToo(t *testing.T) {
	outside := filepath.Join(realDir(t), "made")
	w := fenced(t, sandbox.Policy{})
	ctx := called(t, "s", &book{})
	id := launch(t, ctx, w, "echo x >made; echo x >'"+outside+"'; exit 5")
	if got := output(t, ctx, w, id, "1m"); !strings.Contains(got, "exit code") {
		t.Error(got)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("it wrote outside")
	}
	if content(t, w.Dir(), "made") != "x\n" {
		t.Error("it did not run")
	}
	if err := os.MkdirAll(filepath.Join(w.Dir(), "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	narrow := sandbox.With(ctx, sandbox.Policy{Root: filepath.Join(w.real, "sub")})
	id = launch(t, narrow, w, "echo y >made; echo y >sub/made")
	output(t, ctx, w, id, "1m")
	if content(t, w.Dir(), "made") != "x\n" || content(t, w.Dir(), "sub", "made") != "y\n" {
		t.Error("the policy of the call does not bind it")
	}
}

func TestFileToolsDoNotReadWhatThePolicyHides(t *testing.T) {
	home := realDir(t)
	t.Setenv("HOME", home)
	files := map[string]string{"open": "s3cr3t? no", ".env": "s3cr3t", "a/.env": "s3cr3t", "vault/deep/x": "s3cr3t", "vault/shown/x": "shown: s3cr3t", "key.pem": "s3cr3t"}
	w := open(t, files)
	policy := sandbox.Policy{
		Root: w.real, Hide: []string{filepath.Join(w.real, "vault")}, Read: []string{filepath.Join(w.real, "vault", "shown")},
		HidePatterns: []string{fence.HidePattern(w.real, "**/.env"), fence.HidePattern(filepath.Join(w.real, "key.pem"), "")},
	}
	link(t, ".env", filepath.Join(w.Dir(), "link"))
	link(t, "vault", filepath.Join(w.Dir(), "dir"))
	ctx := sandbox.With(t.Context(), policy)
	for _, name := range []string{".env", "a/.env", "vault/deep/x", "key.pem", "link", "dir/deep/x"} {
		for _, c := range []struct {
			tool  string
			input in
		}{
			{"read", in{"file_path": name}},
			{"grep", in{"pattern": "s3cr3t", "path": name, "output_mode": "content"}},
			{"write", in{"file_path": name, "content": "s3cr3t"}},
			{"write", in{"file_path": name, "content": "other"}},
			{"edit", in{"file_path": name, "old_string": "s3cr4t", "new_string": "x"}}, // what is near it would be shown
			{"edit", in{"file_path": name, "old_string": "s3cr3t", "new_string": "x"}},
		} {
			for _, f := range w.Tools() {
				if f.Definition().Name != c.tool {
					continue
				}
				if res, err := callWith(t, ctx, f, c.input); !errors.Is(err, errdefs.PolicyDenied) || strings.Contains(strings.ReplaceAll(err.Error(), name, ""), "s3cr3t") || res.Content != "" {
					t.Errorf("%s %v: %v %v", c.tool, c.input, res, err)
				}
			}
		}
	}
	if content(t, w.Dir(), ".env") != "s3cr3t" || content(t, w.Dir(), "vault/deep/x") != "s3cr3t" {
		t.Error("a hidden file was changed")
	}
	for f, want := range map[string]string{"grep": "open:1:s3cr3t? no\nvault/shown/x:1:shown: s3cr3t", "glob": "open\nvault/shown/x"} {
		res, err := callWith(t, ctx, map[string]tool.Tool{"grep": w.Grep(), "glob": w.Glob()}[f], map[string]in{"grep": {"pattern": "s3cr3t", "output_mode": "content"}, "glob": {"pattern": "**"}}[f])
		if got := strings.Split(res.Content, "\n"); err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), strings.Split(want, "\n")) {
			t.Errorf("%s: %q %v", f, res.Content, err)
		}
	}
	if res, err := callWith(t, ctx, w.Read(), in{"file_path": "vault/shown/x"}); err != nil || !strings.Contains(res.Content, "shown") {
		t.Error(res, err)
	}
	if got := ok(t, w.Read(), in{"file_path": ".env"}); !strings.Contains(got, "s3cr3t") {
		t.Error("without a policy:", got)
	}
}

// connects is a command that asks the sandbox's proxy for a host, and shows nothing of its answer.
const connects = `exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; printf 'CONNECT other.test:443 HTTP/1.1\r\nHost: x\r\n\r\n' >&3; head -1 <&3 >/dev/null; echo over`

func TestTheModelIsToldWhomACommandCouldNotReach(t *testing.T) {
	if c := fence.Probe(); !c.Hosts.Holds {
		component.Absent(t, "no limits to hosts: "+c.Hosts.Why, "install bubblewrap")
	}
	w := fenced(t, sandbox.Policy{Network: sandbox.Network{Hosts: []string{"example.test"}}})
	want := "over\n(the sandbox refused connections: other.test:443: the host is not allowed: to allow it, add it to sandbox.network.hosts in the settings (Network.Hosts of the policy))"
	if got := ok(t, w.Bash(), in{"command": connects}); got != want {
		t.Errorf("%q", got)
	}
	if got := ok(t, w.Bash(), in{"command": "echo over"}); got != "over" {
		t.Errorf("the next command is told it too: %q", got)
	}
	ctx := called(t, "s", &book{})
	id := launch(t, ctx, w, connects)
	if got := output(t, ctx, w, id, "1m"); !strings.HasPrefix(got, want+"\n[") {
		t.Errorf("%q", got)
	}
}

// guardOf is the process that stops our commands when we die.
func guardOf(t *testing.T) int {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		cmdline, _ := os.ReadFile(name)
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "status"))
		if string(cmdline) == "pawl-guard\x00" && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) && !strings.Contains(string(status), "\nState:\tZ") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("there is no guard")
	return 0
}

func TestACommandInAFenceCannotEndItsGuard(t *testing.T) {
	if c := fence.Probe(); !c.Signals.Holds {
		component.Absent(t, "signals are not kept in: "+c.Signals.Why, "run Linux 6.12 or later, or install bubblewrap")
	}
	w := fenced(t, sandbox.Policy{})
	ctx := called(t, "s", &book{})
	launch(t, ctx, w, "exec sleep 300")
	guard := guardOf(t)
	res, err := call(t, w.Bash(), in{"command": fmt.Sprintf("for s in KILL STOP TERM; do kill -$s %d; done", guard)})
	if err != nil || !res.IsError {
		t.Error(res, err)
	}
	if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", guard)); err != nil || guardOf(t) != guard || strings.Contains(string(state), ") T ") {
		t.Errorf("it is gone, or stands still: %s %v", state, err)
	}
}
