package crashtest

import (
	"os"
	"testing"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// IsChild reports whether this process plays lives for another one.
func IsChild() bool { return os.Getenv(variable) != "" }

// Finding is what an inspection found.
type Finding struct {
	Points, Repeated, Lost int
	Problems               []string
	Err                    error
}

// Inspect is Matrix, or Faults, for scenarios that are meant to fail: a few problems are enough.
func Inspect(t *testing.T, fault *Fault, scenarios ...Scenario) map[string]Finding {
	serve(fault, scenarios)
	out := map[string]Finding{}
	e := effort{all: true, problems: 10}
	if !tier.All() {
		e.problems = 2
	}
	for _, m := range prepare(t, fault, scenarios, e) {
		err := m.inspect(t.Context())
		r := m.report
		out[m.s.Name] = Finding{r.points, r.repeated, r.lost, r.problems, err}
	}
	return out
}

// CanDie says whether there is SIGKILL.
const CanDie = canDie
