package component_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/component"
)

// The test runs itself, as a test that needs what isn't there.
func TestWhatIsAbsentSkipsAndFailsWhenItIsRequired(t *testing.T) {
	if os.Getenv("PAWL_TEST_INNER") == "1" {
		component.Command(t, "no-such-program", "write it yourself")
		t.Fatal("it went on")
	}
	for require, want := range map[string]string{"": "--- SKIP", "1": "--- FAIL"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestWhatIsAbsent", "-test.v")
		cmd.Env = append(os.Environ(), "PAWL_TEST_INNER=1", "PAWL_REQUIRE_REAL="+require)
		out, err := cmd.CombinedOutput()
		if (err != nil) != (require == "1") || !strings.Contains(string(out), want) || !strings.Contains(string(out), "write it yourself") {
			t.Errorf("PAWL_REQUIRE_REAL=%q: %v\n%s", require, err, out)
		}
	}
	if component.Command(t, "go", "install Go") == "" {
		t.Error("what is there has a path")
	}
}
