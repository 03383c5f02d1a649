package crashtest

import "testing"

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
	for i := range scenarios {
		s := &scenarios[i]
		r, err := inspect(t.Context(), pattern(t.Name()), t.TempDir(), fault, s, effort{all: true, enough: 10})
		out[s.Name] = Finding{r.points, r.repeated, r.lost, r.problems, err}
	}
	return out
}

// CanDie says whether there is SIGKILL.
const CanDie = canDie
