package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheDoctorSaysWhereEachSettingComesFromAndWhetherItCounts(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	w := newWorld(t)
	for _, dir := range []string{filepath.Join(home, ".agents"), filepath.Join(w.dir, ".agents")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, ".agents/settings.json"), []byte(`{
  "model": "anthropic/one",
  "env": {"MY_TOKEN": "top-secret-1"},
  "permissions": {"deny": ["Bash(git push:*)"]}
}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.file(".agents/settings.json", `{
  "model": "anthropic/two",
  "permissions": {"deny": ["Bash(git push:*)", "Read(.env)"], "allow": ["Bash(make:*)"]},
  "env": {"THEIR_TOKEN": "top-secret-2"},
  "mcp": {"servers": {"wiki": {"url": "http://ann:top-secret-3@127.0.0.1:1/mcp?key=top-secret-4", "headers": {"Authorization": "top-secret-5"}}}},
  "modell": "x",
  "respectGitignore": true
}`)
	doctor := func(code int, flags ...string) string {
		t.Helper()
		r := w.pawl(append([]string{"doctor", "--dir", w.dir}, flags...)...)
		if r.code != code || r.err != "" || strings.Contains(r.out, "top-secret") {
			t.Fatalf("%+v", r)
		}
		return r.out
	}
	said := doctor(0) // a thing that waits, or has no effect, has not failed
	for _, want := range []string{
		"ok       setting permissions.defaultMode: \"default\" (default)\n",
		"ok       setting model: \"anthropic/one\" (user, ~/.agents/settings.json:2:12), overridden\n",
		"ok       setting model: \"anthropic/two\" (project, .agents/settings.json:2:12)\n",
		"ok       setting env.MY_TOKEN: \"…\" (user, ~/.agents/settings.json:3:23)\n",
		"ok       setting permissions.deny: \"Bash(git push:*)\" (project, .agents/settings.json:3:28), repeated\n",
		"ok       setting permissions.deny: \"Read(.env)\" (project, .agents/settings.json:3:48)\n",
		"waiting  setting permissions.allow: \"Bash(make:*)\" (project, .agents/settings.json:3:73), waiting for approval: see pawl trust " + quoted(w.dir) + "\n",
		"waiting  setting env.THEIR_TOKEN: \"…\"",
		"waiting  setting mcp.servers.wiki: {\"url\":\"http://127.0.0.1:1/mcp?…\"",
		"problem  settings: .agents/settings.json:6:3: there is no key \"modell\": it has no effect: did you mean model?\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
	states := map[string]string{}
	for line := range strings.Lines(doctor(0, "--json")) {
		var f struct {
			Name, Text, Layer, Place, State string
			OK                              *bool
			Value                           any
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Name == "" || f.Text == "" || f.OK == nil {
			t.Fatalf("%v %s", err, line)
		}
		if f.Layer == "project" || f.State == "problem" {
			value, _ := f.Value.(string)
			states[strings.TrimPrefix(f.Name, "setting ")+" "+value] = f.State + " " + f.Place
		}
	}
	for name, want := range map[string]string{
		"model anthropic/two": "active .agents/settings.json:2:12", "permissions.deny Bash(git push:*)": "repeated .agents/settings.json:3:28",
		"permissions.allow Bash(make:*)": "waiting .agents/settings.json:3:73", "settings ": "problem .agents/settings.json:6:3", "env.THEIR_TOKEN …": "waiting .agents/settings.json:4:26",
	} {
		if states[name] != want {
			t.Errorf("%s: %q, want %q", name, states[name], want)
		}
	}
	if r := w.pawl("trust", w.dir); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if said := doctor(exitFailed); strings.Contains(said, "waiting") || !strings.Contains(said, "127.0.0.1:1/mcp?…\": ") || !strings.Contains(said, "ok       setting permissions.allow: \"Bash(make:*)\"") {
		t.Error(said)
	}
	w.file(".agents/settings.json", `{"permissions": {"deny": "x"}}`)
	if said := doctor(exitUsage); !strings.Contains(said, "problem  settings: project: .agents/settings.json:1:26: ") {
		t.Error(said)
	}
	if r := w.pawl("doctor", "--dir", filepath.Join(w.dir, "none")); r.code != exitUsage || !strings.Contains(r.err, "no such directory") {
		t.Errorf("%+v", r)
	}
}

// What the files forbade when a run was here counts, and is shown, until somebody approves that it is gone.
func TestTheDoctorSaysWhatIsNoLongerInTheFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.Mkdir(filepath.Join(w.dir, ".agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.file(".agents/settings.json", `{"permissions": {"deny": ["Read(.env)"]}}`)
	if _, r := w.run("turns: [{text: x}]", "go"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	w.file(".agents/settings.json", `{}`)
	if r := w.pawl("doctor", "--dir", w.dir); r.code != 0 || !strings.Contains(r.out, "removed  setting permissions.deny: \"Read(.env)\" (project, .agents/settings.json") || !strings.Contains(r.out, "counts until that is approved: see pawl trust "+quoted(w.dir)) {
		t.Errorf("%+v", r)
	}
	if r := w.checks("read", `{"file_path":".env"}`); !strings.HasPrefix(r.out, "deny ") || !strings.Contains(r.err, "1 restrictions are no longer in this project's files") {
		t.Errorf("%+v", r)
	}
}

// A rule or a limit that names no tool guards nothing: the doctor finds it, and what may be meant.
func TestTheDoctorFindsToolsThatThereAreNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.MkdirAll(filepath.Join(w.dir, ".agents/agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.file(".agents/settings.json", "{\"permissions\": {\n\"deny\": [\"Bsh\", \"Task(explore)\", \"Skill(x)\", \"tool_search\", \"AskUserQuestion\", \"WebSearch\", \"mcp__x__y\", \"BashOutput\"],\n\"ask\": [\"Terraform\"]}}")
	w.file(".agents/agents/a.md", "---\nname: a\ndescription: x\ntools: raed, Grep\n---\nDo.\n")
	r := w.pawl("doctor", "--dir", w.dir)
	for _, want := range []string{
		"problem  settings: .agents/settings.json:2:10: there is no tool \"Bsh\": the rule \"Bsh\" has no effect: did you mean bash?\n",
		"problem  settings: .agents/agents/a.md:4:1: there is no tool \"raed\": its name in tools has no effect: did you mean read?\n",
		"note     settings: .agents/settings.json:3:9: there is no tool \"Terraform\": the rule \"Terraform\" has no effect in runs of pawl; a program of your own may have one\n",
	} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("%q is missing in %+v", want, r)
		}
	}
	if strings.Count(r.out, "there is no tool") != 3 {
		t.Error(r.out)
	}
}
