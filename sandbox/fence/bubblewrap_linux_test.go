package fence

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/sandbox"
)

// What makes the fence runs outside of it: a command must not be able to say what that is.
func TestBubblewrapIsNoProgramOfAProject(t *testing.T) {
	p := newPlace(t)
	program := func(path string) {
		p.lay(path, "#!/bin/sh\n")
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	system, project, elsewhere := p.out+"/system", p.in+"/.venv/bin", p.out+"/elsewhere"
	program(project + "/bwrap")
	program(elsewhere + "/bwrap")
	p.lay(p.in+"/.git/HEAD", "")
	if err := errors.Join(os.Symlink(elsewhere, p.in+"/link"), os.Symlink(project, p.out+"/to-project"), os.Symlink(project+"/bwrap", p.home+"/bwrap")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":                               "neither",
		project:                          "looks like a project",
		p.in + "/link":                   "looks like a project", // a command can have it lead elsewhere
		p.out + "/to-project":            "looks like a project",
		p.home:                           "looks like a project",
		".venv/bin":                      "neither",
		project + ":" + elsewhere:        elsewhere + "/bwrap",
		elsewhere:                        elsewhere + "/bwrap",
		p.out + "/nothing:" + elsewhere:  elsewhere + "/bwrap",
		":.:" + p.in + "/link:" + system: "looks like a project",
	} {
		got, err := findBubblewrap([]string{system}, path)
		if err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s %v", path, got, err)
		}
	}
	t.Chdir(elsewhere)
	if got, err := findBubblewrap([]string{system}, elsewhere); err == nil {
		t.Errorf("of the current directory: %s", got)
	}
	program(system + "/bwrap")
	if got, err := findBubblewrap([]string{system}, elsewhere+":"+project); got != system+"/bwrap" || err != nil {
		t.Errorf("the system's comes first: %s %v", got, err)
	}
}

func TestAFenceThatItsCommandsCouldReplaceIsRefused(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	path, err := tryBubblewrap()
	if err != nil {
		component.Absent(t, "bubblewrap doesn't work: "+err.Error(), "install the package bubblewrap and allow user namespaces")
	}
	p := newPlace(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p.lay(p.in+"/tools/bin/bwrap", string(b))
	p.lay(p.in+"/src/x", "")
	if err := os.Chmod(p.in+"/tools/bin/bwrap", 0o755); err != nil {
		t.Fatal(err)
	}
	caps := Probe()
	caps.bwrap = p.in + "/tools/bin/bwrap"
	for name, policy := range map[string]sandbox.Policy{
		"the project has it": {Root: p.in}, "its directory": {Root: p.in + "/tools/bin"}, "the program itself": {Root: p.in + "/src", Write: []string{p.in + "/tools/bin/bwrap"}}, "one of all around": {Root: p.in + "/src", Write: []string{filepath.Dir(p.in)}},
	} {
		f, err := open(policy, p.env, caps)
		if err == nil {
			_ = f.Close()
		}
		if !errors.Is(err, errdefs.NotAvailable) || !strings.Contains(err.Error(), "replace "+caps.bwrap) || !strings.Contains(err.Error(), "leave that out") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if out, err := p.run(p.fence(caps, sandbox.Policy{Root: p.in + "/src"}), "echo runs"); out != "runs" || err != nil {
		t.Errorf("it can't be written, so it makes the fence: %s %v", out, err)
	}
}
