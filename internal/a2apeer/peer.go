// Package a2apeer runs agents of the official A2A SDK, for tests: what they send is what others send.
package a2apeer

import (
	"bufio"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

//go:embed agent.mjs
var script []byte

// Start runs an agent, of the SDK for A2A "1" (which speaks 1.0) or "03", until the test ends, and gives its address. What it does is the
// first word of a message: see agent.mjs.
func Start(t testing.TB, sdk string) (url string) {
	t.Helper()
	tier.SkipQuick(t, "it runs an agent of the official SDK")
	const how = "run scripts/test, which installs it"
	modules := filepath.Join(os.Getenv("PAWL_NPM"), "node_modules")
	if os.Getenv("PAWL_NPM") == "" {
		component.Absent(t, "PAWL_NPM is not set", how)
	}
	if _, err := os.Stat(filepath.Join(modules, "a2a-sdk-"+sdk)); err != nil { //nolint:gosec // of whoever runs the tests; so below
		component.Absent(t, "the A2A SDK is not in PAWL_NPM", how)
	}
	file := filepath.Join(t.TempDir(), "agent.mjs")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(modules, ".bin", "node")
	if _, err := os.Stat(node); err != nil { //nolint:gosec // as above
		node = component.Command(t, "node", "install Node")
	}
	cmd := exec.Command(node, file, modules, sdk) //nolint:gosec // ours
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // it ends with its input
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the agent did not begin: %v", err)
	}
	return strings.TrimSpace(line)
}
