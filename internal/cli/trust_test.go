package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/project"
)

func TestAProjectWhoseSettingsNobodyApprovedDoesNotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.Mkdir(filepath.Join(w.dir, ".agents"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.file(".agents/settings.json", `{"env": {"GREETING": "hello"}, "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}}`)
	script := w.file("s.yaml", `turns: [{tool_calls: [{name: bash, input: {command: "echo $GREETING >said"}}]}, {text: "Done."}]`)
	run := func(flags ...string) ran {
		args := append([]string{"run", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/" + script, "go"}, unfenced()...)
		return w.pawl(append(args, flags...)...)
	}
	said := func() string {
		b, _ := os.ReadFile(filepath.Join(w.dir, "said"))
		return strings.TrimSpace(string(b))
	}
	r := run()
	if r.code != exitWaiting || !strings.Contains(r.err, "hooks.SessionStart") || !strings.Contains(r.err, "touch hooked") || !strings.Contains(r.err, "pawl trust "+quoted(w.dir)) || said() != "" {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("trust", "--list", w.dir); r.code != 0 || !strings.Contains(r.out, "env.GREETING") || strings.Contains(r.out, "Approved.") {
		t.Errorf("%+v", r)
	}
	if r := run("--trust"); r.code != exitCompleted || said() != "hello" {
		t.Errorf("%+v %q", r, said())
	}
	if r := run(); r.code != exitWaiting {
		t.Errorf("--trust was remembered: %+v", r)
	}
	if r := w.pawl("trust", w.dir); r.code != 0 || !strings.HasSuffix(r.out, "Approved.\n") {
		t.Errorf("%+v", r)
	}
	if r := run(); r.code != exitCompleted {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("trust", w.dir); r.code != 0 || !strings.Contains(r.out, "Nothing in") {
		t.Errorf("%+v", r)
	}
	w.file(".agents/settings.json", `{"env": {"GREETING": "changed"}}`)
	if r := run(); r.code != exitWaiting {
		t.Errorf("a change needs no approval: %+v", r)
	}
	w.file(".agents/settings.json", `{"env": `)
	if r := run(); r.code != exitUsage || !strings.Contains(r.err, "settings.json:1:") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("trust", "--revoke", w.dir); r.code != exitUsage {
		t.Errorf("%+v", r)
	}
}

func TestADenyRuleThatAModelDeletesBindsInTheNextProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.Mkdir(filepath.Join(w.dir, ".agents"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.file(".agents/settings.json", `{"permissions": {"deny": ["Bash(touch denied)"]}}`)
	deletes := w.file("deletes.yaml", `turns: [{tool_calls: [{name: bash, input: {command: "rm .agents/settings.json"}}]}, {tool_calls: [{name: bash, input: {command: "touch denied"}}]}, {text: "Done."}]`)
	tries := w.file("tries.yaml", `turns: [{tool_calls: [{name: bash, input: {command: "touch denied"}}]}, {text: "Done."}]`)
	run := func(script string) ran {
		return w.pawl("run", "--dir", w.dir, "--journal", w.journal, "--no-sandbox", "--permission-mode", "bypassPermissions", "--model", "scripted/"+script, "go")
	}
	there := func(name string) bool { _, err := os.Stat(filepath.Join(w.dir, name)); return err == nil }
	if r := run(deletes); r.code != exitCompleted || there(".agents/settings.json") || there("denied") {
		t.Fatalf("%+v", r)
	}
	if r := run(tries); r.code != exitCompleted || there("denied") || !strings.Contains(r.err, "1 restrictions are no longer in this project's files") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("trust", w.dir); r.code != 0 || !strings.Contains(r.out, `.agents/settings.json (as it was): no longer permissions.deny "Bash(touch denied)"`) {
		t.Errorf("%+v", r)
	}
	if r := run(tries); r.code != exitCompleted || !there("denied") {
		t.Errorf("%+v", r)
	}
}

func TestTheModelOfTheSettingsRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := w.file("s.yaml", `turns: [{text: "From the settings."}]`)
	if err := os.Mkdir(filepath.Join(w.dir, ".agents"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.file(".agents/settings.json", `{"model": "scripted/`+script+`"}`)
	if r := w.pawl("run", "--dir", w.dir, "--journal", w.journal, "go"); r.code != exitWaiting || !strings.Contains(r.err, `model "scripted/`+script) {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("trust", w.dir); r.code != exitCompleted {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("run", "--dir", w.dir, "--journal", w.journal, "go"); r.code != exitCompleted || r.out != "From the settings.\n" {
		t.Errorf("%+v", r)
	}
}

func TestAModelOfTheSettingsIsRelativeToTheProjectAndThatOfAFlagToWhereOneIs(t *testing.T) {
	w := newWorld(t)
	if err := os.Mkdir(filepath.Join(w.dir, ".agents"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.file("s.yaml", `turns: [{text: "The project's."}]`)
	w.file(".agents/settings.json", `{"model": "scripted/s.yaml"}`)
	if r := w.pawl("trust", w.dir); r.code != exitCompleted {
		t.Errorf("%+v", r)
	}
	here := t.TempDir()
	if err := os.WriteFile(filepath.Join(here, "s.yaml"), []byte(`turns: [{text: "Of here."}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(here)
	if r := w.pawl("run", "--dir", w.dir, "--journal", w.journal, "go"); r.code != exitCompleted || r.out != "The project's.\n" {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("run", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/s.yaml", "go"); r.code != exitCompleted || r.out != "Of here.\n" {
		t.Errorf("%+v", r)
	}
}

func TestARunInASubdirectoryKnowsItsMemory(t *testing.T) {
	w := newWorld(t)
	sub := filepath.Join(w.dir, "sub")
	for _, dir := range []string{".agents", "sub"} {
		if err := os.Mkdir(filepath.Join(w.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.file("AGENTS.md", "Of the root.")
	w.file("sub/AGENTS.md", "Of the subdirectory.")
	script := w.file("s.yaml", "turns: [{text: done}]")
	for dir, want := range map[string]bool{w.dir: false, sub: true} {
		t.Chdir(dir)
		if r := w.pawl("run", "--journal", w.journal, "--model", "scripted/"+script, "--session", filepath.Base(dir), "go"); r.code != exitCompleted {
			t.Fatalf("%+v", r)
		}
		r := w.pawl("sessions", "export", "--journal", w.journal, filepath.Base(dir))
		if !strings.Contains(r.out, "Of the root.") || strings.Contains(r.out, "Of the subdirectory.") != want {
			t.Errorf("%s: %s", dir, r.out)
		}
	}
}

// What a person mistyped forbids nothing, and has to be told where a run, an approval and a judgment are made of it.
func TestWhatHasNoEffectIsNamedWhereverItIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.Mkdir(filepath.Join(w.dir, ".agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.file(".agents/settings.json", "{\n  \"permission\": {\"deny\": [\"Read(.env)\"]},\n  \"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"prompt\", \"prompt\": \"ok?\"}]}]}\n}")
	key := "warning: .agents/settings.json:2:3: there is no key \"permission\": it has no effect: did you mean permissions?\n"
	hook := "hooks of the type prompt are not supported, only command is: this one does not run\n"
	script := w.file("s.yaml", "turns: [{text: Done.}]")
	for _, args := range [][]string{
		{"run", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/" + script, "go"},
		{"trust", w.dir},
		{"trust", "--list", w.dir},
		{"permissions", "check", "--dir", w.dir, "read", `{"file_path": ".env"}`},
	} {
		if r := w.pawl(args...); r.code != 0 || strings.Count(r.err, key) != 1 || strings.Count(r.err, hook) != 1 || strings.Contains(r.out, "there is no key") {
			t.Errorf("%v: %+v", args[0], r)
		}
	}
	lines, _ := w.run("turns: [{text: Done.}]", "go")
	if warned := find(lines, "warning"); warned == nil || !strings.Contains(key, warned["text"].(string)) {
		t.Errorf("%v", warned)
	}
}

// Whoever approves again sees what he has not approved before, as somebody wrote it.
func TestTrustShowsWhatIsNewAsItIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.Mkdir(filepath.Join(w.dir, ".agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	const hooks = `"hooks": {"PostToolUse": [{"matcher": "edit|write", "hooks": [{"type": "command", "command": "gofmt -l .", "timeout": 10}]}]}`
	const said = `{"matcher":"edit|write","hooks":[{"type":"command","command":"gofmt -l .","timeout":10}]}`
	w.file(".agents/settings.json", "{\n"+hooks+",\n"+`"env": {"A": "1"}, "permissions": {"allow": ["Bash(make:*)"]}}`)
	if r := w.pawl("trust", w.dir); r.code != 0 || !strings.Contains(r.out, ": hooks.PostToolUse "+said+"\n") || strings.Contains(r.out, "new") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("doctor", "--dir", w.dir); !strings.Contains(r.out, "ok       setting hooks.PostToolUse: "+said+" (project, .agents/settings.json:2)\n") {
		t.Errorf("%+v", r)
	}
	w.file(".agents/settings.json", "{\n"+hooks+",\n"+`"env": {"A": "2"}, "permissions": {"allow": ["Bash(go:*)"]}}`)
	want := "  .agents/settings.json:2: hooks.PostToolUse " + said + `
  .agents/settings.json:3:14: changed: env.A "2"
  .agents/settings.json:3:46: new: permissions.allow "Bash(go:*)"
  .agents/settings.json: gone: permissions.allow "Bash(make:*)"
(new, changed and gone: since what was approved last)
`
	if r := w.pawl("trust", "--list", w.dir); r.code != 0 || !strings.HasSuffix(r.out, " want:\n"+want) {
		t.Errorf("%s\nwant\n%s", r.out, want)
	}
	lines, r := w.run("turns: [{text: Done.}]", "go")
	if r.code != exitWaiting || !strings.Contains(r.err, want) {
		t.Errorf("%+v", r)
	}
	if failed, _ := lines[len(lines)-1]["error"].(map[string]any); failed["class"] != "policy_denied" {
		t.Errorf("%v", failed)
	}
}

func TestADirectoryThatIsNotThereIsNamedAsItWasGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	none, file := filepath.Join(w.dir, "none"), w.file("file", "")
	for _, c := range []struct{ said, want string }{
		{w.pawl("trust", none).err, "pawl: trust " + none + ": there is no such directory\n"},
		{w.pawl("trust", file).err, "pawl: trust " + file + ": it is not a directory\n"},
		{w.pawl("doctor", "--dir", none).err, "pawl: --dir " + none + ": there is no such directory\n"},
	} {
		if c.said != c.want {
			t.Errorf("%q, want %q", c.said, c.want)
		}
	}
}

// A text that tools may have changed is named, for a person to look at the file; what it is kept by is of no use to him.
func TestTrustNamesTextThatToolsMayHaveChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.MkdirAll(filepath.Join(w.dir, ".agents/rules"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.file(".agents/rules/1.md", "One.")
	p, err := project.Load(t.Context(), w.dir)
	if err == nil {
		err = project.Guard(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.file(".agents/rules/1.md", "Two.")
	const want = " want:\n  .agents/rules/1.md: its text, which was changed while tools could write it with nobody asked\n"
	if r := w.pawl("trust", "--list", w.dir); r.code != 0 || !strings.HasSuffix(r.out, want) || r.err != "" {
		t.Errorf("%+v", r)
	}
}
