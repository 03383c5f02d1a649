package parallel_test

import (
	"flag"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/testkit/parallel"
)

const inner = "PAWL_TEST_INNER"

func TestMain(m *testing.M) {
	if os.Getenv(inner) != "" {
		parallel.RaiseLimit()
	}
	os.Exit(m.Run())
}

// The test runs itself, and compares the limit that the other process has.
func TestRaiseLimit(t *testing.T) {
	if os.Getenv(inner) != "" {
		t.Log("limit", flag.Lookup("test.parallel").Value)
		return
	}
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"the default":           {nil, 4 * runtime.GOMAXPROCS(0)},
		"the flag wins":         {[]string{"-test.parallel=1"}, 1},
		"the flag's own number": {[]string{"-test.parallel=" + strconv.Itoa(runtime.GOMAXPROCS(0))}, runtime.GOMAXPROCS(0)},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], append(c.args, "-test.v", "-test.run=^TestRaiseLimit$")...)
			cmd.Env = append(os.Environ(), inner+"=1")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "limit "+strconv.Itoa(c.want)+"\n") {
				t.Errorf("want %d: %v\n%s", c.want, err, out)
			}
		})
	}
}
