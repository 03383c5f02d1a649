package tier_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// The test runs itself once per tier, and looks at which of its two subtests were skipped.
func TestTiers(t *testing.T) {
	if os.Getenv("PAWL_TEST_INNER") == "1" {
		t.Run("beyond quick", func(t *testing.T) { tier.SkipQuick(t, "it waits") })
		t.Run("only all", func(t *testing.T) { tier.SkipUnlessAll(t, "it tries everything") })
		return
	}
	for _, tc := range []struct {
		name, short, tests string
		beyondQuick, all   string // the outcomes of the two subtests
	}{
		{"quick", "true", "", "SKIP", "SKIP"},
		{"quick wins over all", "true", "all", "SKIP", "SKIP"},
		{"middle", "false", "", "PASS", "SKIP"},
		{"all", "false", "all", "PASS", "PASS"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestTiers$", "-test.v", "-test.short="+tc.short)
			cmd.Env = append(os.Environ(), "PAWL_TEST_INNER=1", "PAWL_TESTS="+tc.tests)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range []string{
				"--- " + tc.beyondQuick + ": TestTiers/beyond_quick",
				"--- " + tc.all + ": TestTiers/only_all",
			} {
				if !strings.Contains(string(out), want) {
					t.Errorf("the output lacks %q:\n%s", want, out)
				}
			}
		})
	}
}
