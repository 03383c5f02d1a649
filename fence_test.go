//go:build unix

package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// says is a model that has the call made that the prompt is, as "TOOL INPUT", and says what came of it.
func says() model.Model {
	return thinking(func(req model.Request) message.Message {
		if req.Messages.Last().Role() == message.RoleTool {
			return message.Assistant(last(req))
		}
		name, input, _ := strings.Cut(req.Messages.Last().Text(), " ")
		if name == "bash" {
			input = fmt.Sprintf(`{"command":%q}`, input)
		}
		return message.Assistant("", call(fmt.Sprintf("c%d", req.Messages.Len()), name, input))
	})
}

// A program whose words say nothing of what it opens: the rules can't see it.
func TestWhatARuleKeepsFromBeingReadNoProgramOpens(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	can := fence.Probe()
	if !can.Inside.Holds {
		component.Absent(t, "a sandbox that hides what lies in the project", can.Inside.Why)
	}
	dir := world(t, map[string]string{
		".env": "s3cr3t", "sub/.env": "s3cr3t", "secret/deep/key": "s3cr3t", "certs/a.pem": "s3cr3t", "open": "0pen",
		"look.sh": "for f in .env sub/.env secret/deep/key certs/a.pem \"$HOME/private\" late/.env; do cat \"$f\"; done; cat open\n",
	})
	home := os.Getenv("HOME")
	elsewhere := t.TempDir()
	lay(t, home, map[string]string{"private": "s3cr3t"})
	lay(t, elsewhere, map[string]string{"x": "s3cr3t"})
	rules := []string{"Read(.env)", "Read(./secret/**)", "Read(certs/*.pem)", "Read(~/private)", "Read(/" + elsewhere + "/**)"}
	policy := pawl.DefaultSandbox()
	rt := func(deny []string) *pawl.Runtime {
		return serve(t, dir, says(), func(o *pawl.Options) {
			o.NoProject, o.Sandbox, o.Permissions = true, &policy, permission.Config{Deny: deny}
		})
	}
	script := fmt.Sprintf("bash sh look.sh; sh -c 'cd %s; cat *'", elsewhere)
	free := rt(nil)
	if text, _ := asks(t, free, "a", script); strings.Count(text, "s3cr3t") != 6 {
		t.Fatalf("it is no way to read them: %s", text)
	}
	bound := rt(rules)
	text, warnings := asks(t, bound, "b", "bash sh look.sh")
	if strings.Contains(text, "s3cr3t") || !strings.Contains(text, "0pen") || len(warnings) > 0 {
		t.Errorf("%s %q", text, warnings)
	}
	if text, _ := asks(t, serve(t, dir, says(), func(o *pawl.Options) {
		o.NoProject, o.Sandbox, o.Permissions = true, &policy, permission.Config{Mode: permission.ModeDontAsk, Deny: rules}
	}), "c", "bash grep -r 3 . ; cat open"); strings.Contains(text, "s3cr3t") || !strings.Contains(text, "0pen") {
		t.Errorf("a search from above: %s", text)
	}
	lay(t, dir, map[string]string{"late/.env": "s3cr3t"})
	if text, _ := asks(t, bound, "b", "bash sh look.sh"); strings.Contains(text, "s3cr3t") || !strings.Contains(text, "0pen") {
		t.Errorf("a file that came later: %s", text)
	}
	if text, _ := asks(t, bound, "b", fmt.Sprintf("bash cat >elsewhere.sh <<'E'\nfor f in %s/*; do read x <$f; echo $x; done\nE\nsh elsewhere.sh", filepath.Dir(elsewhere)+"/"+filepath.Base(elsewhere))); strings.Contains(text, "s3cr3t") {
		t.Errorf("%s", text)
	}
}

// A program whose words say nothing of what it changes.
func TestWhatARuleKeepsFromBeingEditedNoProgramChanges(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	if can := fence.Probe(); !can.Inside.Holds {
		component.Absent(t, "a sandbox that protects what lies in the project", can.Inside.Why)
	}
	const was = "as it was"
	files := map[string]string{"go.mod": was, "sub/go.mod": was, "locks/a": was, "open": was, "change.sh": "for f in go.mod sub/go.mod locks/a locks/new open; do echo changed >\"$f\"; done; cat go.mod\n"}
	dir := world(t, files)
	policy, store := pawl.DefaultSandbox(), journal.Memory()
	rt := func(rules permission.Config) *pawl.Runtime {
		return serve(t, dir, says(), func(o *pawl.Options) {
			o.NoProject, o.Sandbox, o.Permissions, o.Journal = true, &policy, rules, store
		})
	}
	changed := func(names ...string) {
		t.Helper()
		for _, name := range append(names, "go.mod", "sub/go.mod", "locks/a", "locks/new", "open") {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if is := err == nil && string(b) != was; is != slices.Contains(names, name) {
				t.Errorf("%s: %q %v", name, b, err)
			}
		}
	}
	deny := permission.Config{Deny: []string{"Edit(go.mod)", "Write(./locks/**)"}}
	if text, warnings := asks(t, rt(deny), "a", "bash sh change.sh"); !strings.Contains(text, was) || len(warnings) > 0 {
		t.Errorf("%s %q", text, warnings)
	}
	changed("open")
	res, err := rt(permission.Config{Deny: deny.Deny, Ask: []string{"Bash(sh:*)"}}).Run(t.Context(), pawl.Request{Prompt: "bash sh change.sh", SessionID: "s"})
	if res == nil || len(res.Pending) != 1 {
		t.Fatal(res, err)
	}
	approves(t, store, res.Pending[0].ID)
	if res, err = rt(permission.Config{}).Resume(t.Context(), "s"); err != nil || !strings.Contains(res.Text(), was) {
		t.Error("after a resume:", res.Text(), err)
	}
	changed("open")
	if asks(t, rt(permission.Config{}), "b", "bash sh change.sh"); true {
		changed("go.mod", "sub/go.mod", "locks/a", "locks/new", "open") // so it is a way to change them
	}
}

func TestWhatARuleOnRecordKeepsFromBeingReadNoProgramOpensAfterAResume(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	if can := fence.Probe(); !can.Inside.Holds {
		component.Absent(t, "a sandbox that hides what lies in the project", can.Inside.Why)
	}
	dir := world(t, map[string]string{".env": "s3cr3t", "open": "0pen", "look.sh": "for f in .env open; do cat $f; done"})
	store, policy := journal.Memory(), pawl.DefaultSandbox()
	rt := func(rules permission.Config) *pawl.Runtime {
		return serve(t, dir, says(), func(o *pawl.Options) { o.Sandbox, o.Permissions, o.Journal = &policy, rules, store })
	}
	res, err := rt(permission.Config{Deny: []string{"Read(.env)"}, Ask: []string{"Bash(sh:*)"}}).Run(t.Context(), pawl.Request{Prompt: "bash sh look.sh", SessionID: "s"})
	if res == nil || len(res.Pending) != 1 {
		t.Fatal(res, err)
	}
	approves(t, store, res.Pending[0].ID)
	res, err = rt(permission.Config{}).Resume(t.Context(), "s")
	if err != nil || strings.Contains(res.Text(), "s3cr3t") || !strings.Contains(res.Text(), "0pen") {
		t.Error(res.Text(), err)
	}
}

func TestASafetyHookOfTheCallersTakesThePlaceOfTheDefaultOne(t *testing.T) {
	dir := world(t, map[string]string{"a": "x"})
	for name, c := range map[string]struct {
		safety         permission.SafetyHook
		passes, denied string // commands
	}{
		"the default": {nil, "rm a", "rm -r /pawl-has-no-such-directory"},
		"a caller's": {func(_ context.Context, tool string, params map[string]any) error {
			if tool == "bash" && strings.HasPrefix(fmt.Sprint(params["command"]), "rm ") {
				return errors.New("nothing is removed here")
			}
			return nil
		}, "echo one", "rm a"},
		"none": {pawl.NoSafety, "echo one", ""},
	} {
		rt := serve(t, dir, says(), func(o *pawl.Options) { o.NoProject, o.Permissions.Safety = true, c.safety })
		lay(t, dir, map[string]string{"a": "x"})
		if c.denied != "" {
			if text, _ := asks(t, rt, "s", "bash "+c.denied); strings.Contains(text, "(no output)") || strings.Contains(text, "exit code") {
				t.Errorf("%s: %s runs: %s", name, c.denied, text)
			}
			if _, err := os.Stat(filepath.Join(dir, "a")); err != nil {
				t.Errorf("%s: it ran: %v", name, err)
			}
		}
		if text, _ := asks(t, rt, "s", "bash "+c.passes); strings.Contains(text, "denied") || strings.Contains(text, "refused") {
			t.Errorf("%s: %s does not pass: %s", name, c.passes, text)
		}
	}
}

// The server's process is this test binary: see probe.
func TestAnMCPServerIsInTheSameFenceAsCommands(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	if can := fence.Probe(); !can.Hosts.Holds {
		component.Absent(t, "a sandbox with limits to hosts", can.Hosts.Why)
	}
	dir, outside := world(t, map[string]string{".env": "s3cr3t", ".git/config": "kept"}), t.TempDir()
	serving := func(address string) string {
		l, err := net.Listen("tcp4", address+":0")
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("reached")) }))
		s.Listener = l
		s.Start()
		t.Cleanup(s.Close)
		return l.Addr().String()
	}
	listed, other := serving("127.0.0.1"), serving("127.0.0.2")
	t.Setenv("SOME_API_KEY", "s3cr3t")
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	fenced := sandbox.Policy{Network: sandbox.Network{Hosts: []string{"127.0.0.1"}}, Protect: []string{filepath.Join(real, ".git/config")}}
	for name, c := range map[string]struct {
		policy sandbox.Policy
		deny   []string
		want   map[string]string // a call, and what its result begins with
	}{
		"without a fence": {sandbox.Policy{Off: true}, nil, map[string]string{
			`write {"path":"` + outside + `/free"}`: "written", `read {"name":".env"}`: "s3cr3t", `dial {"address":"` + other + `"}`: "connected", `env {"name":"PATH"}`: "/",
		}},
		"in one": {fenced, []string{"Read(.env)"}, map[string]string{
			`write {"path":"` + outside + `/made"}`: "open " + outside, `write {"path":"inside"}`: "written", `write {"path":".git/config"}`: "open .git/config", `env {"name":"SOME_API_KEY"}`: "",
			`read {"name":".env"}`: "open .env", `dial {"address":"` + other + `"}`: "dial tcp", `dial {"address":"` + listed + `"}`: "dial tcp",
			`get {"address":"` + listed + `"}`: "200 OK reached", `get {"address":"` + other + `"}`: "403 Forbidden sandbox: dial " + other,
		}},
	} {
		rt := serve(t, dir, says(), func(o *pawl.Options) {
			o.NoProject, o.NoBuiltins, o.Sandbox = true, true, &c.policy
			o.Permissions = permission.Config{Mode: permission.ModeBypass, Deny: c.deny}
			o.MCP = []mcp.Server{{Name: "probe", Command: os.Args[0], Env: map[string]string{probing: "1"}, Required: true}}
		})
		for input, want := range c.want {
			text, _ := asks(t, rt, "s"+name+strings.ReplaceAll(input, "/", "-"), "mcp__probe__"+input)
			if !strings.HasPrefix(strings.TrimPrefix(text, "[error] "), want) || want == "" && strings.Contains(text, "s3cr3t") {
				t.Errorf("%s: %s: %q", name, input, text)
			}
		}
	}
	if _, err := os.Stat(outside + "/free"); err != nil {
		t.Error("the server writes nothing anywhere:", err)
	}
	if _, err := os.Stat(outside + "/made"); !errors.Is(err, os.ErrNotExist) {
		t.Error("it wrote outside:", err)
	}
}

func TestVariablesOfTheSettingsReachMCPServers(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	dir := world(t, map[string]string{".agents/settings.json": `{"env": {"GREETING": "hello"}}`})
	fences := map[string]*sandbox.Policy{"in the default fence, or in none where there is none": nil, "without a fence": {Off: true}}
	for name, policy := range fences {
		rt := serve(t, dir, says(), func(o *pawl.Options) {
			o.Trusted, o.NoSubagents, o.Sandbox = true, true, policy
			o.MCP = []mcp.Server{{Name: "probe", Command: os.Args[0], Env: map[string]string{probing: "1"}, Required: true}}
		})
		if text, _ := asks(t, rt, "s", `mcp__probe__env {"name":"GREETING"}`); text != "hello" {
			t.Errorf("%s: %q", name, text)
		}
	}
}

func TestAHookOfGitIsNotWrittenUnasked(t *testing.T) {
	fenced := pawl.DefaultSandbox()
	for name, o := range map[string]struct {
		policy *sandbox.Policy
		rules  permission.Config
	}{
		"in a fence":                     {&fenced, permission.Config{}},
		"without one, with edits waved":  {&sandbox.Policy{Off: true}, permission.Config{Mode: permission.ModeAcceptEdits}},
		"with a rule that allows edits":  {&fenced, permission.Config{Allow: []string{"Edit", "Write"}}},
		"without one, with such a rule":  {&sandbox.Policy{Off: true}, permission.Config{Allow: []string{"Write(.git/**)"}}},
		"with a safety check of its own": {&fenced, permission.Config{Safety: pawl.NoSafety}},
	} {
		if can := fence.Probe(); !o.policy.Off && !can.Writes.Holds {
			component.Absent(t, "a sandbox", can.Writes.Why)
		}
		dir := world(t, map[string]string{".git/hooks/sample": "x", ".git/HEAD": "x"})
		rt := serve(t, dir, says(), func(opts *pawl.Options) { opts.NoProject, opts.Sandbox, opts.Permissions = true, o.policy, o.rules })
		write := func(path string) (*agent.Result, error) {
			return rt.Run(t.Context(), pawl.Request{Prompt: fmt.Sprintf(`write {"file_path":%q,"content":"x"}`, path), SessionID: strings.ReplaceAll(path, "/", "-")})
		}
		res, err := write(".git/hooks/pre-commit")
		if res == nil || res.Status != agent.StatusInterrupted {
			t.Errorf("%s: %+v %v", name, res, err)
		}
		if _, err := os.Stat(filepath.Join(dir, ".git/hooks/pre-commit")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: it was written: %v", name, err)
		}
		if res, err := write(".git/hooks-of-mine"); res == nil || res.Status != agent.StatusInterrupted {
			t.Errorf("%s: %+v %v", name, res, err)
		}
		if o.rules.Allow == nil || o.rules.Allow[0] == "Edit" {
			if res, err := write("src/hooks/pre-commit"); err != nil || res.Status != agent.StatusCompleted {
				t.Errorf("%s: another file: %+v %v", name, res, err)
			}
		}
	}
}

// Nobody is asked in vain: what a person approves then happens, and what the tool would refuse is refused at once.
func TestWhatAPersonApprovesOutsideOfTheFenceHappens(t *testing.T) {
	elsewhere := besides(t, map[string]string{"notes": "needle", "deep/more": "needle", "key": "s3cr3t"})
	dir := world(t, map[string]string{".agents/settings.json": "{}", ".git/HEAD": "x", "a": "x"})
	if err := os.Symlink(elsewhere, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	policy, store := pawl.DefaultSandbox(), journal.Memory()
	policy.Hide = []string{filepath.Join(elsewhere, "key")}
	rt := serve(t, dir, says(), func(o *pawl.Options) { o.Sandbox, o.Permissions, o.Journal = &policy, permission.Config{}, store })
	n := 0
	run := func(name string, input in) (res *agent.Result) {
		t.Helper()
		b, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if res, err = rt.Run(t.Context(), pawl.Request{Prompt: name + " " + string(b), SessionID: fmt.Sprint("s", n)}); res == nil {
			t.Fatal(err)
		}
		return res
	}
	approve := func(res *agent.Result) {
		t.Helper()
		if err := agent.Answer(t.Context(), store, fmt.Sprint("s", n), journal.Answered{ID: res.Pending[0].ID, Approved: true}); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(elsewhere, name) }
	for _, c := range []struct {
		name  string
		input in
		want  string
	}{
		{"read", in{"file_path": at("notes")}, "needle"},
		{"grep", in{"pattern": "needle", "path": elsewhere}, at("deep/more")},
		{"glob", in{"pattern": "**/mo*", "path": elsewhere}, at("deep/more")},
		{"glob", in{"pattern": elsewhere + "/**/mo*"}, at("deep/more")},
		{"write", in{"file_path": ".agents/settings.json", "content": `{"respectGitignore": false}`}, "settings.json"},
		{"edit", in{"file_path": ".git/HEAD", "old_string": "x", "new_string": "y"}, "HEAD"},
	} {
		res := run(c.name, c.input)
		if len(res.Pending) != 1 || strings.Contains(res.Text(), c.want) {
			t.Errorf("%s %v: %s %s", c.name, c.input, res.Status, res.Text())
			continue
		}
		approve(res)
		if res, err := rt.Resume(t.Context(), fmt.Sprint("s", n)); err != nil || !strings.Contains(res.Text(), c.want) || strings.Contains(res.Text(), "s3cr3t") {
			t.Errorf("%s %v: %v %s", c.name, c.input, err, res.Text())
		}
	}
	for _, c := range []struct {
		name  string
		input in
		want  string
	}{
		{"read", in{"file_path": at("key")}, "hides it"},
		{"read", in{"file_path": "link/notes"}, "symbolic link to " + elsewhere},
		{"read", in{"file_path": "/proc/self/environ"}, "/proc"},
		{"write", in{"file_path": filepath.Join(os.TempDir(), "pawl-test-new"), "content": "x"}, "can only be read"},
		{"glob", in{"pattern": "*", "path": "link"}, "symbolic link to " + elsewhere},
	} {
		if runtime.GOOS != "linux" && strings.Contains(c.want, "/proc") {
			continue
		}
		if res := run(c.name, c.input); len(res.Pending) > 0 || !strings.Contains(res.Text(), c.want) {
			t.Errorf("%s %v: %s %s", c.name, c.input, res.Status, res.Text())
		}
	}
	// The name said, at the judge and at the tool, is the same place: a directory that becomes a link in between is not followed.
	res := run("read", in{"file_path": at("deep/more")})
	if err := errors.Join(os.Rename(at("deep"), at("was")), os.Mkdir(at("other"), 0o700), os.Symlink(policy.Hide[0], at("other/more")), os.Symlink("other", at("deep"))); err != nil || len(res.Pending) != 1 {
		t.Fatal(err, res.Status, res.Text())
	}
	approve(res)
	if res, err := rt.Resume(t.Context(), fmt.Sprint("s", n)); err != nil || strings.Contains(res.Text(), "s3cr3t") || !strings.Contains(res.Text(), "hides it") {
		t.Error(res.Text(), err)
	}
}

func TestWhatIsTheUsersOwnIsNotWrittenWhereItLiesInTheProject(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	if can := fence.Probe(); !can.Inside.Holds {
		component.Absent(t, "a sandbox that protects what lies in the project", can.Inside.Why)
	}
	t.Run("the project is the home directory", func(t *testing.T) {
		dir := world(t, map[string]string{"a.sh": "mkdir -p .agents; echo {} >.agents/settings.json"})
		t.Setenv("HOME", dir)
		policy := pawl.DefaultSandbox()
		rt := serve(t, dir, says(), func(o *pawl.Options) {
			o.Sandbox, o.Permissions = &policy, permission.Config{Mode: permission.ModeDontAsk}
		})
		asks(t, rt, "s", "bash sh a.sh")
		asks(t, rt, "s", `write {"file_path":".agents/settings.json","content":"{}"}`)
		if _, err := os.Stat(filepath.Join(dir, ".agents/settings.json")); !errors.Is(err, os.ErrNotExist) {
			t.Error("settings of the user were written, and nobody was asked")
		}
	})
	t.Run("the home directory lies in the project", func(t *testing.T) {
		dir := world(t, map[string]string{"home/.agents/settings.json": "{}", "sub/a": "x"})
		t.Setenv("HOME", filepath.Join(dir, "home"))
		t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
		t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
		store, err := sqlite.Open(filepath.Join(dir, "j.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		policy := pawl.DefaultSandbox()
		rt := serve(t, dir, says(), func(o *pawl.Options) {
			o.Sandbox, o.Permissions, o.Journal = &policy, permission.Config{Mode: permission.ModeDontAsk}, store
		})
		for _, name := range []string{"home/.agents/settings.json", "home/.agents/new", "state/pawl/trust.json", "config/pawl/mcp/wiki.json", "j.db", "j.db-wal"} {
			before, _ := os.ReadFile(filepath.Join(dir, name))
			said, _ := asks(t, rt, "s", "bash sh -c 'echo forged >>"+name+"'")
			if again, _ := asks(t, rt, "s", fmt.Sprintf(`write {"file_path":%q,"content":"forged"}`, name)); !strings.Contains(said, "exit code") || !strings.Contains(again, "may not be written") {
				t.Errorf("%s: %s %s", name, said, again)
			}
			if now, _ := os.ReadFile(filepath.Join(dir, name)); strings.Contains(string(now), "forged\n") && !strings.HasPrefix(name, "j.db") || !strings.HasPrefix(name, "j.db") && string(now) != string(before) {
				t.Errorf("%s was written", name)
			}
		}
		if text, _ := asks(t, rt, "s", `write {"file_path":"sub/a","content":"y"}`); !strings.Contains(text, "overwrote") {
			t.Error(text)
		}
	})
}

func TestCommandsCantChangeWhatRunsOutsideOfTheSandboxLater(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	if can := fence.Probe(); !can.Inside.Holds {
		component.Absent(t, "a sandbox that protects what lies in the project", can.Inside.Why)
	}
	git := component.Command(t, "git", "install git")
	dir := world(t, map[string]string{".agents/settings.json": `{"permissions": {"deny": ["Bash(touch denied)"]}}`, "a": "x"})
	if out, err := exec.Command(git, "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	rt := func(write ...string) *pawl.Runtime {
		policy := pawl.DefaultSandbox()
		policy.Write = write
		return serve(t, dir, says(), func(o *pawl.Options) { o.Sandbox = &policy }) // nothing is asked: the sandbox alone keeps them from it
	}
	bound := rt()
	for _, command := range []string{
		"rm .agents/settings.json", "mv .agents elsewhere", "echo '{}' >.agents/settings.json", "mkdir .agents/skills", "echo x >.git/hooks/pre-commit", "echo '[core]' >>.git/config", "git config alias.x '!touch y'",
	} {
		if text, _ := asks(t, bound, "s", "bash "+command+" && echo d''one"); strings.Contains(text, "done") {
			t.Errorf("%s: %s", command, text)
		}
	}
	if text, _ := asks(t, bound, "s", "bash git add a && git -c user.name=x -c user.email=x@example.com commit -qm x && echo d''one"); !strings.Contains(text, "done") {
		t.Errorf("git commit: %s", text)
	}
	if text, _ := asks(t, rt(filepath.Join(dir, ".git", "config")), "s", "bash git config a.b c && echo d''one"); !strings.Contains(text, "done") {
		t.Errorf("it may write git's configuration: %s", text)
	}
}
