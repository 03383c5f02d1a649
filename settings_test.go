//go:build unix

package pawl_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

// Each row is a key of the settings, and a call that comes out otherwise with it.
func TestKeysOfTheSettingsHaveAnEffectInARuntime(t *testing.T) {
	can := fence.Probe()
	if !can.Writes.Holds && !tier.Quick() {
		component.Absent(t, "a sandbox", can.Writes.Why)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("reached")) }))
	t.Cleanup(server.Close)
	outside := besides(t, nil)
	dial := `bash exec 3<>/dev/tcp/` + strings.ReplaceAll(server.Listener.Addr().String(), ":", "/") + " && echo reac''hed"
	fetch := fmt.Sprintf(`web_fetch {"url":%q}`, server.URL)
	guard := `"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo guarded >&2; exit 2"}]}]}`
	for _, c := range []struct {
		key, without, with string // what the settings file has
		call               string
		wantout, want      string // what the result has, without the key and with it
		needs              fence.Status
	}{
		{"respectGitignore", ``, `"respectGitignore": false`, `grep {"pattern":"needle"}`, "no matches", "out.log", fence.Status{Holds: true}},
		{"disableAllHooks", guard, guard + `, "disableAllHooks": true`, "bash echo do''ne", "guarded", "done", fence.Status{Holds: true}},
		{"compat", ``, `"compat": true`, "bash echo do''ne", "done", "denied by the rule Bash(echo:*)", fence.Status{Holds: true}},
		{"env", ``, `"env": {"GREETING": "hello"}`, "bash echo got-$GREETING-", "got--", "got-hello-", fence.Status{Holds: true}},
		{"disallowedTools", ``, `"disallowedTools": ["glob"]`, `glob {"pattern":"a*"}`, "a.txt", "glob", fence.Status{Holds: true}},
		{"sandbox.enabled", ``, `"sandbox": {"enabled": false}`, "bash sh -c 'echo x >$0/x && echo do''ne' " + outside, "exit code", "done", fence.Status{Holds: true}},
		{"sandbox.hide", ``, `"sandbox": {"hide": ["~/notes"]}`, "bash cat ~/notes/a", "private", "exit code", fence.Status{Holds: true}},
		{"sandbox.protect", ``, `"sandbox": {"protect": ["kept"]}`, "bash touch kept/x && echo do''ne", "done", "exit code", can.Inside},
		{"sandbox.read", ``, `"sandbox": {"read": ["~/.ssh"]}`, "bash cat ~/.ssh/hosts", "exit code", "known", fence.Status{Holds: true}},
		{"sandbox.env", ``, `"sandbox": {"env": ["SOME_API_KEY"]}`, "bash echo got-$SOME_API_KEY-", "got--", "got-s3cr3t-", fence.Status{Holds: true}},
		{"sandbox.env with a value", ``, `"sandbox": {"env": ["GREETING=hello"]}`, "bash echo got-$GREETING-", "got--", "got-hello-", fence.Status{Holds: true}},
		{"sandbox.write", ``, fmt.Sprintf(`"sandbox": {"write": [%q]}`, outside), "bash sh -c 'echo x >$0/y && echo do''ne' " + outside, "exit code", "done", fence.Status{Holds: true}},
		{"sandbox.network.all", ``, `"sandbox": {"network": {"all": false}}`, dial, "reached", "exit code", can.Hosts},
		{"sandbox.network.hosts", ``, `"sandbox": {"network": {"hosts": ["127.0.0.1"]}}`, fetch, "127.0.0.1", "reached", fence.Status{Holds: true}},
		{"sandbox.network.hosts where not all", `"sandbox": {"network": {"all": false, "hosts": ["127.0.0.2"]}}`, `"sandbox": {"network": {"all": false, "hosts": ["127.0.0.1"]}}`, fetch, "127.0.0.1", "reached", can.Hosts},
		{"sandbox.limits.cpu", ``, `"sandbox": {"limits": {"cpu": "77s"}}`, "bash echo got-$(ulimit -t)-", "got-", "got-77-", fence.Status{Holds: true}},
		{"sandbox.limits.files", ``, `"sandbox": {"limits": {"files": 77}}`, "bash echo got-$(ulimit -n)-", "got-", "got-77-", fence.Status{Holds: true}},
		{"sandbox.limits.fileSize", ``, `"sandbox": {"limits": {"fileSize": 78848}}`, "bash head -c 80000 /dev/zero >big; wc -c <big", "80000", "78848", fence.Status{Holds: true}},
		{"sandbox.limits.processes", ``, `"sandbox": {"limits": {"processes": 777}}`, "bash echo got-$(ulimit -u)-", "got-", "got-777-", fence.Status{Holds: true}},
	} {
		t.Run(c.key, func(t *testing.T) {
			if strings.HasPrefix(c.key, "sandbox.") {
				tier.SkipQuick(t, "it starts sandboxes")
			}
			if !c.needs.Holds {
				component.Absent(t, "a sandbox for "+c.key, c.needs.Why)
			}
			t.Setenv("SOME_API_KEY", "s3cr3t")
			got := map[string]string{}
			for _, settings := range []string{c.without, c.with} {
				dir := world(t, map[string]string{
					".agents/settings.json": "{" + settings + "}", ".claude/settings.json": `{"permissions": {"deny": ["Bash(echo:*)"]}}`,
					".gitignore": "*.log", "out.log": "needle", "a.txt": "x", "kept/a": "x",
				})
				lay(t, os.Getenv("HOME"), map[string]string{"notes/a": "private", ".ssh/hosts": "known"})
				rt := serve(t, dir, says(), func(o *pawl.Options) {
					if o.Trusted, o.Permissions.Safety = true, pawl.NoSafety; !tier.Quick() { // safety would refuse what the sandbox is to refuse
						o.Sandbox = nil
					}
				})
				res, err := rt.Run(t.Context(), pawl.Request{Prompt: c.call})
				if err != nil {
					t.Fatal(err)
				}
				got[settings] = res.Text()
			}
			if out, with := got[c.without], got[c.with]; !strings.Contains(out, c.wantout) || !strings.Contains(with, c.want) || strings.Contains(out, c.want) {
				t.Errorf("without: %q\nwith: %q", out, with)
			}
		})
	}
}

func TestFileToolsDoNotReachWhatOnlyCommandsMayWrite(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	if can := fence.Probe(); !can.Writes.Holds {
		component.Absent(t, "a sandbox", can.Writes.Why)
	}
	outside := besides(t, nil)
	rt := serve(t, world(t, map[string]string{".agents/settings.json": fmt.Sprintf(`{"sandbox": {"write": [%q]}}`, outside)}), says(), func(o *pawl.Options) { o.Sandbox, o.Trusted = nil, true })
	for name, c := range map[string]struct {
		input any
		want  string
	}{
		"bash": {"echo x >" + filepath.Join(outside, "x") + " && echo do''ne", "done"}, "write": {in{"file_path": filepath.Join(outside, "y"), "content": "x"}, "outside of the project directory"},
	} {
		if res := once(t, rt, name, c.input); !strings.Contains(res.Text(), c.want) {
			t.Errorf("%s: %s", name, res.Text())
		}
	}
}
