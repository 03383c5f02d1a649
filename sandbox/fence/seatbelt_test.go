package fence

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/sandbox"
)

var update = flag.Bool("update", false, "write the golden files")

// The profile was never run on a Mac by its authors. This keeps it from changing unseen.
func TestTheProfileForMacOS(t *testing.T) {
	p := sandbox.Policy{Root: "/Users/me/project", Protect: []string{"/Users/me/project/.git/hooks"}, Read: []string{"/Users/me/.ssh/known_hosts"}}
	v := view{hidden: []string{"/Users/me/.ssh", `/Users/me/a "b" \c`, "/Users/me/project/a/b/secret"}, held: []string{"/Users/me/project/a/b/secret"}, read: p.Read, kept: append([]string{"/Users/me/project/go.mod"}, p.Protect...)}
	writes := []string{"/Users/me/project", "/private/var/folders/x/tmp"}
	for name, got := range map[string]string{
		"none":  seatbelt(p, v, writes, 0),
		"hosts": seatbelt(sandbox.Policy{Network: sandbox.Network{Hosts: []string{"a.com"}}}, v, writes, 4711),
		"all":   seatbelt(sandbox.Policy{Network: sandbox.Network{All: true}}, view{}, nil, 0),
	} {
		file := filepath.Join("testdata", "seatbelt-"+name+".sb")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTheShellSetsLimitsWhereNoHelperDoes(t *testing.T) {
	out, err := exec.Command("sh", "-c", limitsScript(sandbox.Limits{CPU: time.Minute, Files: 1 << 40, FileSize: 1 << 20}), "sh", "sh", "-c", `ulimit -c; ulimit -t; ulimit -f; echo "$@"`, "x", "a b").CombinedOutput()
	if string(out) != "0\n60\n2048\na b\n" || err != nil {
		t.Errorf("%q %v", out, err)
	}
}
