package journaltest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/journaltest"
)

func TestMemoryIsAStore(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journal.Store { return journal.Memory() })
}

// What the broken ones of its kind are made from is none itself.
func TestAStoreWithAShelfIsAStore(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journal.Store { return newShelved(&shelved{}) })
}

func TestSamplesHaveEveryKindOnce(t *testing.T) {
	seen := map[journal.Kind]bool{}
	for _, e := range journaltest.Samples() {
		if seen[e.Data.Kind()] {
			t.Errorf("%s twice", e.Data.Kind())
		}
		seen[e.Data.Kind()] = true
	}
	for _, k := range journal.Kinds() {
		if !seen[k] {
			t.Errorf("no sample of %s", k)
		}
	}
}

// chosen names the broken store that a re-executed test binary has to fail on.
const chosen = "PAWL_BROKEN_STORE"

func TestTheSuiteFailsOnBrokenStores(t *testing.T) {
	if os.Getenv(chosen) != "" {
		t.Skip("this is the inner run")
	}
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run="+b.pattern(), "-test.timeout=2m")
			cmd.Env = append(os.Environ(), chosen+"="+name)
			out, err := cmd.CombinedOutput()
			if _, failed := err.(*exec.ExitError); !failed { //nolint:errorlint // Run gives it bare
				t.Fatalf("the suite passed: %v\n%s", err, out)
			}
			for _, want := range b.fails {
				if !strings.Contains(string(out), "--- FAIL: TestOnABrokenStore/"+strings.ReplaceAll(want, " ", "_")) {
					t.Errorf("%q did not fail:\n%s", want, out)
				}
			}
			if strings.Contains(string(out), "panic: ") {
				t.Errorf("the suite panicked:\n%s", out)
			}
		})
	}
}

func TestOnABrokenStore(t *testing.T) {
	b, ok := broken[os.Getenv(chosen)]
	if !ok {
		t.Skip("run by TestTheSuiteFailsOnBrokenStores")
	}
	if b.durable == nil {
		journaltest.Run(t, func(*testing.T) journal.Store { return b.open() })
		return
	}
	journaltest.RunDurable(t, b.durable())
}
