package fence

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/sandbox"
)

// kinds are the fences that can be had here: each alone, and both together.
func kinds(t testing.TB) map[string]Capabilities {
	t.Helper()
	tier.SkipQuick(t, "it starts sandboxes")
	yes, no := Status{Holds: true}, func(why string, args ...any) Status { return Status{Why: fmt.Sprintf(why, args...)} }
	out := map[string]Capabilities{}
	abi := landlockABI()
	if abi >= oldestABI {
		out["landlock"] = capabilitiesOf(abi, "", errors.New("the test doesn't want it"), yes, no)
	} else {
		component.Absent(t, fmt.Sprintf("Landlock has level %d", abi), "run Linux 6.2 or later with landlock in lsm=")
	}
	if path, err := tryBubblewrap(); err == nil {
		out["bubblewrap"] = capabilitiesOf(0, path, nil, yes, no)
		out["both"] = capabilitiesOf(abi, path, nil, yes, no)
	} else {
		component.Absent(t, "bubblewrap doesn't work: "+err.Error(), "install the package bubblewrap and allow user namespaces")
	}
	return out
}

// each runs a test with every kind of fence.
func each(t *testing.T, test func(t *testing.T, caps Capabilities)) {
	for name, caps := range kinds(t) {
		t.Run(name, func(t *testing.T) { test(t, caps) })
	}
}

// place is a project with something outside, and a home.
type place struct {
	t             testing.TB
	in, out, home string
	env           []string
}

func newPlace(t testing.TB) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, in: filepath.Join(dir, "in"), out: filepath.Join(dir, "out"), home: filepath.Join(dir, "home")}
	p.lay(p.in+"/mine", "mine")
	p.lay(p.out+"/file", "untouched")
	p.lay(p.out+"/dir/file", "untouched")
	p.lay(p.home+"/.ssh/id", "secret")
	p.lay(p.home+"/.docker/config.json", "secret")
	p.lay(p.home+"/.docker/other", "open")
	p.lay(p.home+"/notes", "open")
	if s, ok := t.(interface{ Setenv(name, value string) }); ok {
		s.Setenv("HOME", p.home)
		s.Setenv("XDG_CACHE_HOME", p.home+"/.cache")
	}
	p.env = append(os.Environ(), "IN="+p.in, "OUT="+p.out, fmt.Sprintf("OWNER=%d", os.Getpid()))
	return p
}

func (p *place) lay(path, content string) {
	p.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		p.t.Fatal(err)
	}
}

// names are the variables that tests give to commands.
var names = []string{"IN", "OUT", "OWNER", "FD", "VICTIM", "VICTIM_ADDRESS", "TCP", "UDP", "UNIX", "ABSTRACT", "DATAGRAM", "OTHER", "SANDBOX_TEST_ATTACK"}

// fence opens a policy over the project.
func (p *place) fence(caps Capabilities, policy sandbox.Policy) *Fence {
	p.t.Helper()
	if policy.Root == "" && !policy.Off {
		policy.Root = p.in
	}
	if !policy.Off {
		tier.SkipQuick(p.t, "it starts sandboxes")
	}
	policy.Env = append(policy.Env, names...)
	f, err := open(policy, p.env, caps)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := f.Close(); err != nil {
			p.t.Error(err)
		}
	})
	return f
}

// run runs a shell command and gives its output.
func (p *place) run(f *Fence, script string, extra ...*os.File) (string, error) {
	p.t.Helper()
	cmd, err := f.Command(p.t.Context(), "sh", "-c", script)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.output(cmd, extra...)
}

func (p *place) attack(f *Fence, what string) (string, error) {
	p.t.Helper()
	cmd, err := f.Command(p.t.Context(), os.Args[0])
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, "SANDBOX_TEST_ATTACK="+what)
	return p.output(cmd)
}

func (p *place) output(cmd *exec.Cmd, extra ...*os.File) (string, error) {
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p.in, &out, &out, time.Minute
	cmd.ExtraFiles = append(cmd.ExtraFiles, extra...)
	err := cmd.Run()
	return strings.TrimSpace(out.String()), err
}

// state is what is in a tree: names, kinds, contents, and if asked for modes.
func (p *place) state(dir string, modes bool) map[string]string {
	p.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		s := info.Mode().Type().String()
		if modes {
			s = info.Mode().String()
		}
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			s += " " + string(b)
		}
		out[path] = s
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}
