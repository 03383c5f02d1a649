// Package component says what happens to a test of a real component (a shell, a server, a browser) where that component is absent: it
// skips and says how to get it, or fails when PAWL_REQUIRE_REAL=1 says that everything has to be there, as scripts/test does.
package component

import (
	"os"
	"os/exec"
	"testing"
)

// Command gives the path of a program; how says how to get it.
func Command(t testing.TB, name, how string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Absent(t, name+" is not on PATH", how)
	}
	return path
}

// Absent ends the test: what it needs is not here.
func Absent(t testing.TB, what, how string) {
	t.Helper()
	if Required() {
		t.Fatalf("%s, and PAWL_REQUIRE_REAL=1: %s", what, how)
	}
	t.Skipf("%s: %s", what, how)
}

// Required reports whether every component has to be here.
func Required() bool { return os.Getenv("PAWL_REQUIRE_REAL") == "1" }
