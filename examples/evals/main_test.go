package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/eval"
	"github.com/pawl-dev/pawl/internal/readme"
)

func TestMain(m *testing.M) { readme.Main(m, main) }

func TestTheTableHasWhatTheMailsAskFor(t *testing.T) {
	kept, err := os.ReadFile("baseline.json")
	if err != nil {
		t.Fatal(err)
	}
	page := readme.Open(t, "examples/evals")
	page.Run()
	files, err := filepath.Glob(filepath.Join(page.Dir, "tmp/*/tickets.csv"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	const tickets = "shipping,7,Wants to know where the parcel is.\nbilling,9,Wants the money back for a broken clock.\n"
	if b, err := os.ReadFile(files[0]); err != nil || string(b) != tickets {
		t.Errorf("%q %v", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(page.Dir, "examples/evals/baseline.json")); err != nil || string(b) != string(kept) {
		t.Errorf("nothing has changed, and the baseline is another one: %v\n%s", err, b)
	}
	if b, err := os.ReadFile(filepath.Join(filepath.Dir(files[0]), "mails.md")); err != nil || !strings.HasPrefix(string(b), "# mails\n\n3 cases, 30 samples") {
		t.Errorf("%q %v", b, err)
	}
}

// The evals fail where the agent got worse, in the cases in which it did, whoever says so: the table, or the judge. What only the agent says is as good as before.
func TestAWorseModelFailsItsCases(t *testing.T) {
	report := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMails$", "-test.v", "-model", "scripted/examples/evals/cheaper.yaml")
	cmd.Env = append(os.Environ(), eval.ReportEnv+"="+report)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("it passes:\n%s", out)
	}
	for _, want := range []string{"--- FAIL: TestMails/mails/late", "--- FAIL: TestMails/mails/broken", "--- PASS: TestMails/mails/thanks"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	page, err := os.ReadFile(filepath.Join(report, "mails.md"))
	if err != nil || !strings.Contains(string(page), "the table has nothing, not shipping 7") {
		t.Errorf("%v\n%s", err, page)
	}
}
