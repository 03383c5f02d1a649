package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

var update = flag.Bool("update", false, "write the golden files")

// promptTokens finds the estimate of what the prompt and the tools take. It counts the schemas of the MCP
// servers' tools. A library that npm picks anew at each installation writes these, so the number varies.
var promptTokens = regexp.MustCompile(`("compact_at":160000,"tokens":)2\d{3}\b`)

// normal replaces what differs from run to run, and nothing else: the project's directory and the test's, ids of sessions and runs (by their number in order of appearance, since what belongs together has to stay so), times of
// entries, and how long calls took. Every other byte is compared.
func normal(dir, text string) string {
	text = strings.ReplaceAll(text, dir, "$DIR")
	if here, err := os.Getwd(); err == nil { // of the script, which names the model
		text = strings.ReplaceAll(text, here, "$PWD")
	}
	text = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`).ReplaceAllString(text, "TIME")
	text = regexp.MustCompile(`,"ms":\d+`).ReplaceAllString(text, "")
	text = promptTokens.ReplaceAllString(text, `$1"TOKENS"`)
	ids := map[string]string{}
	return regexp.MustCompile(`\b[0-9a-z]{26}\b`).ReplaceAllStringFunc(text, func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprint("ID", len(ids)+1)
		}
		return ids[id]
	})
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("%s: -want +got, and go test -update takes it over:\n%s", name, d)
	}
}

func TestAProjectFromEndToEnd(t *testing.T) {
	t.Parallel()
	tier.SkipQuick(t, "it needs Node and npm packages")
	if os.Getenv("PAWL_NPM") == "" {
		component.Absent(t, "PAWL_NPM is not set", "run scripts/test, which installs MCP servers there")
	}
	if can := fence.Probe(); !can.Inside.Holds { // what a run was not to do is on record, and says so
		component.Absent(t, "a sandbox that protects what lies in the project", can.Inside.Why)
	}
	w := newWorld(t)
	var err error
	if w.dir, err = filepath.EvalSymlinks(w.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(w.dir, os.DirFS("testdata/project")); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/project.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if r := w.pawl("trust", w.dir); r.code != exitCompleted {
		t.Fatalf("%+v", r)
	}
	r := w.pawl("run", "--json", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/"+script, "--session", "release", "Make a release.")
	if r.code != exitWaiting { // a person has to agree to rm
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := w.pawl("approve", "--journal", w.journal, "release", "remove"); r.code != exitCompleted {
		t.Errorf("%+v", r)
	}
	resumed := w.pawl("resume", "--json", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/"+script, "release")
	if resumed.code != exitCompleted {
		t.Errorf("exit %d: %s", resumed.code, resumed.err)
	}
	golden(t, "project.run.jsonl", normal(w.dir, r.out+resumed.out))
	journal := w.pawl("sessions", "export", "--journal", w.journal, "release")
	golden(t, "project.journal.jsonl", normal(w.dir, journal.out))
	hooks, err := os.ReadFile(filepath.Join(w.dir, "hooks.log"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "project.hooks.log", string(hooks))
}
