package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAProjectIsTheNearestDirectoryWithASignAndTheHomeDirectoryIsNoneForWhatIsBelow(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	for _, dir := range []string{".agents", "scratch/deep", "work/.agents", "work/sub/.git", "work/other/deep", "code/deep"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "code/go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for here, want := range map[string]string{
		"": "", "scratch": "scratch", "scratch/deep": "scratch/deep", "work": "work", "work/sub": "work/sub", "work/other/deep": "work", "code/deep": "code",
	} {
		t.Chdir(filepath.Join(home, here))
		if got, err := projectRoot(""); err != nil || got != filepath.Join(home, want) {
			t.Errorf("%q: %q %v, want %q", here, got, err, want)
		}
	}
	if err := os.Mkdir(filepath.Join(home, ".git"), 0o755); err != nil { // a project of its own, in which much is
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(home, "scratch"))
	if got, err := projectRoot(""); err != nil || got != home {
		t.Errorf("%q %v", got, err)
	}
}

// What a project forbids binds who works in a directory of it, also when a command makes that a project.
func TestACommandLiftsNothingByMakingADirectoryAProject(t *testing.T) {
	for name, sign := range map[string]string{"go.mod": "echo module x >go.mod", ".git": "git init -q", ".agents": "mkdir .agents"} {
		w := newWorld(t)
		for _, dir := range []string{".agents", "sub"} {
			if err := os.Mkdir(filepath.Join(w.dir, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		w.file(".agents/settings.json", `{"permissions": {"deny": ["Bash(touch:*)"]}}`)
		touch := w.file("touch.yaml", `turns: [{tool_calls: [{name: bash, input: {command: "touch MARK"}}]}, {text: "Done."}]`)
		plant := w.file("plant.yaml", `turns: [{tool_calls: [{name: bash, input: {command: "cd `+quoted(filepath.Join(w.dir, "sub"))+` && `+sign+`"}}]}, {text: "Done."}]`)
		t.Chdir(filepath.Join(w.dir, "sub"))
		run := func(script string) {
			r := w.pawl("run", "--journal", w.journal, "--no-sandbox", "--permission-mode", "bypassPermissions", "--model", "scripted/"+script, "go")
			if r.code != exitCompleted {
				t.Fatalf("%+v", r)
			}
			for _, mark := range []string{"MARK", "sub/MARK"} {
				if _, err := os.Stat(filepath.Join(w.dir, mark)); err == nil {
					t.Errorf("%s: %s is there", name, mark)
				}
			}
		}
		run(touch)
		run(plant)
		if root, err := projectRoot(""); err != nil || filepath.Base(root) != "sub" {
			t.Errorf("%s: the project is %s, %v", name, root, err)
		}
		run(touch)
	}
}
