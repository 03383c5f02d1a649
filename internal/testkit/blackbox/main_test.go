package blackbox

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// root is the module's directory, seen from this package.
const root = "../../.."

// binaries is the directory of the programs that TestMain builds.
var binaries string

// TestMain builds the program, the examples and the programs of testdata once. The quick
// tier runs nothing here, so it builds nothing. PAWL_BLACKBOX_BINARIES names a directory
// with programs to test instead, such as those of a release.
func TestMain(m *testing.M) {
	flag.Parse()
	if tier.Quick() || isListing() {
		os.Exit(m.Run())
	}
	if binaries = os.Getenv("PAWL_BLACKBOX_BINARIES"); binaries != "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "pawl-blackbox-")
	if err == nil {
		binaries, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		err = build(binaries, "./cmd/pawl", "./examples/...", "./internal/testkit/blackbox/testdata/programs/...")
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "blackbox: build the programs:", err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// isListing reports whether the test binary only lists its tests.
func isListing() bool {
	list := flag.Lookup("test.list")
	return list != nil && list.Value.String() != ""
}

// build compiles packages of the module into dir, without tables for debuggers.
func build(dir string, packages ...string) error {
	args := append([]string{"build", "-ldflags=-s -w", "-o", dir + string(filepath.Separator)}, packages...)
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// binary gives the path of a built program.
func binary(name string) string { return filepath.Join(binaries, name) }

// beyondQuick skips a test in the quick tier and lets it run beside the others elsewhere.
func beyondQuick(t *testing.T) {
	t.Helper()
	tier.SkipQuick(t, "it runs the built program")
	t.Parallel()
}

// needs skips a test whose real component is absent, or fails it if PAWL_REQUIRE_REAL=1
// says that everything has to be there. It gives the component's path.
func needs(t *testing.T, component string) string {
	t.Helper()
	path, err := exec.LookPath(component)
	if err == nil {
		return path
	}
	if os.Getenv("PAWL_REQUIRE_REAL") == "1" {
		t.Fatalf("%s is not on PATH, and PAWL_REQUIRE_REAL=1. Install it", component)
	}
	t.Skipf("%s is not on PATH. Install it to run this test", component)
	return ""
}
