// Package tier tells a test which tier of the suite is running.
//
// There are three. docs/testing.md says what each one costs and how to run it:
//
//   - quick: go test -short. Nothing has to be installed, and nothing is waited for.
//   - middle: go test, and scripts/test, which adds the race detector and installs the real
//     components. Large matrices are sampled.
//   - all: scripts/test --all, which sets PAWL_TESTS=all. Nothing is sampled.
package tier

import (
	"os"
	"testing"
)

// variable names the environment variable that selects the whole suite.
const variable = "PAWL_TESTS"

// Quick reports whether only the quick tests run.
func Quick() bool { return testing.Short() }

// All reports whether the whole suite runs, so that a test samples nothing.
func All() bool { return !testing.Short() && os.Getenv(variable) == "all" }

// SkipQuick skips a test that the quick tier has no time or no component for.
func SkipQuick(t testing.TB, reason string) {
	t.Helper()
	if Quick() {
		t.Skip("not in the quick tier: " + reason + ". Run go test without -short")
	}
}

// SkipUnlessAll skips a test that only the whole suite has time for.
func SkipUnlessAll(t testing.TB, reason string) {
	t.Helper()
	if !All() {
		t.Skip("only with " + variable + "=all: " + reason)
	}
}
