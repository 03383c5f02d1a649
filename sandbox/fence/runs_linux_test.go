package fence

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
)

func TestCommandsOfAFenceRunAtOnce(t *testing.T) {
	p := newPlace(t)
	f := p.fence(Probe(), sandbox.Policy{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			ctx := t.Context()
			if i%2 == 1 {
				ctx = sandbox.With(ctx, sandbox.Policy{})
			}
			cmd, err := f.Command(ctx, "sh", "-c", fmt.Sprintf("echo x >%s/made%d", p.in, i))
			if err != nil {
				t.Error(err)
				return
			}
			if out, err := p.output(cmd); (err == nil) != (i%2 == 0) {
				t.Errorf("%d: %s %v", i, out, err)
			}
		})
	}
	wg.Wait()
	if _, err := f.Command(t.Context(), "no-such-program"); !errors.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
}

func TestExitCodesComeThrough(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		f := p.fence(caps, sandbox.Policy{})
		var exit *exec.ExitError
		if _, err := p.run(f, "exit 7"); !errors.As(err, &exit) || exit.ExitCode() != 7 {
			t.Error(err)
		}
		_, err := p.run(f, "kill -SEGV $$")
		if !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGSEGV) && exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGSEGV {
			t.Error(err)
		}
	})
}

func TestTheSamePolicyInTheContextIsTheSameFence(t *testing.T) {
	p := newPlace(t)
	policy := sandbox.Policy{Root: p.in, Write: []string{p.out}, Network: sandbox.Network{Hosts: nil}}
	f := p.fence(Probe(), policy)
	same, err := f.narrowed(sandbox.With(t.Context(), f.Policy()))
	if same != f || err != nil {
		t.Error(err)
	}
	one, err := f.narrowed(sandbox.With(t.Context(), sandbox.Policy{Root: p.in}))
	if err != nil || one == f {
		t.Fatal(err)
	}
	if two, err := f.narrowed(sandbox.With(t.Context(), sandbox.Policy{Root: p.in})); two != one || err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(one.temp); err == nil {
		t.Error("the inner one's directory is still there")
	}
}

func TestTheCachesOfATemporaryProjectGoWithTheFence(t *testing.T) {
	p := newPlace(t) // a project of its own, which stays where it is while the directory for temporary files is another one
	for name, c := range map[string]struct {
		temp  string
		stays bool
	}{"a project elsewhere": {p.out, true}, "one among the temporary files": {p.in, false}} {
		t.Setenv("TMPDIR", c.temp)
		f, err := Open(sandbox.Policy{Root: p.in}, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := os.Stat(f.cache); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(f.cache); (err == nil) != c.stays {
			t.Errorf("%s: afterwards its caches are: %v", name, err)
		}
	}
}
