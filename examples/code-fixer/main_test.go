package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/readme"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

func TestMain(m *testing.M) { readme.Main(m, main) }

func TestTheProjectIsFixed(t *testing.T) {
	tier.SkipQuick(t, "it needs a sandbox, and builds a Go module")
	if can := fence.Probe().Writes; !can.Holds {
		component.Absent(t, "no sandbox: "+can.Why, "apt-get install bubblewrap")
	}
	page := readme.Open(t, "examples/code-fixer")
	broken := filepath.Join(page.Dir, "examples/code-fixer/testdata/slug")
	if out, err := goTest(t, broken); err == nil {
		t.Fatalf("nothing is to be fixed: %s", out)
	}
	page.Run()
	fixed, err := filepath.Glob(filepath.Join(page.Dir, "tmp/*/slug"))
	if err != nil || len(fixed) != 1 {
		t.Fatal(fixed, err)
	}
	if out, err := goTest(t, fixed[0]); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// The tests are as they were.
	if out, err := exec.CommandContext(t.Context(), "cmp", filepath.Join(broken, "slug_test.go"), filepath.Join(fixed[0], "slug_test.go")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func goTest(t *testing.T, dir string) (string, error) {
	cmd := exec.CommandContext(t.Context(), "go", "test", "./...")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "--- FAIL: TestOf") {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out), err
}
