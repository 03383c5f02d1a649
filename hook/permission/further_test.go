package permission_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
)

func TestASafetyCheckKnowsFurtherDirectories(t *testing.T) {
	home(t)
	one, further := permission.SafetyIn("/src/project"), permission.SafetyIn("/src/project", "/data", "/src", "/src/project/sub", "/tmp/scratch")
	for command, want := range map[string]hook.Verdict{
		"cp x /data/": hook.Continue, "echo x >/data/y": hook.Continue, "rm -rf /data/y": hook.Continue, "cd /data && rm -rf y": hook.Continue, "cp x /src/": hook.Continue, "rm -rf /src/other/x": hook.Continue,
		"rm -rf /data": hook.Ask, "rm -rf /data/*": hook.Ask, "rm -rf /data/.git": hook.Ask, "rm -rf /src": hook.Ask, "rm -rf .git": hook.Ask, "rm -rf /src/project": hook.Ask, "rm -rf /src/project/sub/.git": hook.Ask,
		"rm -rf /database": hook.Deny, "echo x >/dat": hook.Deny, "rm -rf /data/../etc": hook.Deny, "rm -rf /": hook.Deny,
		"cp x /tmp/": hook.Continue, "echo x >/tmp/y": hook.Continue,
	} {
		if got, why := verdict(further, command); got != want {
			t.Errorf("%s: %v %s", command, got, why)
		}
	}
	for _, command := range []string{"cp x /data/", "echo x >/data/y", "rm -rf /src/other/x"} {
		if got, why := verdict(one, command); got != hook.Deny {
			t.Errorf("without: %s: %v %s", command, got, why)
		}
	}
}

func TestFurtherDirectoriesAreJudgedAsTheProjectIs(t *testing.T) {
	dir, data, other := project(t), t.TempDir(), t.TempDir()
	for link, to := range map[string]string{filepath.Join(data, "out"): other, filepath.Join(dir, "way"): data} {
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
	}
	at := func(name string) map[string]any { return map[string]any{"file_path": filepath.Join(data, name)} }
	for _, c := range []struct {
		name                string
		input               any
		fenced, open, plain hook.Verdict // with a fence, without one, and where the directory may only be read
	}{
		{"read", at("x"), hook.Allow, hook.Allow, hook.Allow},
		{"edit", at("x"), hook.Allow, hook.Ask, hook.Ask},
		{"write", at("new"), hook.Allow, hook.Ask, hook.Ask},
		{"write", map[string]any{"file_path": "way/new"}, hook.Ask, hook.Ask, hook.Ask}, // which the tool would refuse: a link leads out of the project
		{"read", at("out/x"), hook.Ask, hook.Ask, hook.Ask},
		{"write", at("out/x"), hook.Ask, hook.Ask, hook.Ask},
		{"write", at("../x"), hook.Ask, hook.Ask, hook.Ask},
		{"write", at(".git/hooks/pre-commit"), hook.Ask, hook.Ask, hook.Ask},
		{"write", at(".vscode/tasks.json"), hook.Ask, hook.Ask, hook.Ask},
		{"bash", map[string]any{"command": "cat " + data + "/x"}, hook.Allow, hook.Allow, hook.Allow},
	} {
		for p, want := range map[*permission.Config]hook.Verdict{
			{Dir: dir, Writable: []string{data}, Fence: true}: c.fenced, {Dir: dir, Writable: []string{data}}: c.open, {Dir: dir, Readable: []string{data}}: c.plain,
		} {
			if got := judged(t, judging(t, *p), useOf(c.name, c.input)); got.Verdict != want {
				t.Errorf("%s %v, %+v: %v %s", c.name, c.input, p, got.Verdict, got.Reason)
			}
		}
	}
	for name, input := range map[string]any{"edit": at("x"), "bash": map[string]any{"command": "tee " + data + "/x"}} {
		m := judging(t, permission.Config{Dir: dir, Writable: []string{data}, Mode: permission.ModeAcceptEdits, Allow: []string{"Bash(tee:*)"}})
		if got := judged(t, m, useOf(name, input)); got.Verdict != hook.Allow {
			t.Errorf("%s in mode acceptEdits: %v %s", name, got.Verdict, got.Reason)
		}
	}
	m := judging(t, permission.Config{Dir: dir, Writable: []string{filepath.Join(dir, "way")}, Fence: true})
	if got := judged(t, m, useOf("write", at("new"))); got.Verdict != hook.Allow {
		t.Errorf("by the name that the link leads to: %v", got.Verdict)
	}
}

func TestALinkToAFurtherDirectoryIsNotFollowedAnew(t *testing.T) {
	dir, data, other := project(t), t.TempDir(), t.TempDir()
	link := filepath.Join(dir, "way")
	if err := os.Symlink(data, link); err != nil {
		t.Skip(err)
	}
	m := judging(t, permission.Config{Dir: dir, Writable: []string{link}, Fence: true})
	use := useOf("write", map[string]any{"file_path": "way/new"})
	if got := judged(t, m, use); got.Verdict != hook.Allow {
		t.Fatal(got)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	if got := judged(t, m, use); got.Verdict != hook.Ask {
		t.Error("it leads elsewhere since:", got)
	}
}
