package builtin

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
)

// WithSandbox runs commands in a fence, and has write and edit refuse, with errdefs.PolicyDenied, what the policy doesn't let be written. A policy without a Root has the project directory for one. What of the policy can't be enforced here makes bash fail with
// errdefs.NotAvailable and the reason, before anything runs. A policy in the context of a call ([sandbox.With]) narrows it further, and binds without this option too.
//
// By default, and with Policy{Off: true}, commands may do what this program may.
func WithSandbox(p sandbox.Policy) Option { return func(w *Workspace) { w.policy = p } }

// openFence is called once, when a command is to run; Close closes it. The policy's paths were resolved before, when no command could have replaced them.
func (w *Workspace) openFence() (*sandbox.Fence, error) {
	if w.policyErr != nil {
		return nil, w.policyErr
	}
	f, err := sandbox.Open(w.policy, w.env)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.fences = append(w.fences, f)
	}
	return f, err
}

func (w *Workspace) resolvePolicy() {
	if !w.policy.Off && w.policy.Root == "" {
		w.policy.Root = w.real
	}
	w.policy, w.policyErr = w.policy.Resolve()
}

// fenceNote tells the model what to expect of a fence.
func (w *Workspace) fenceNote() string {
	switch n := w.policy.Network; {
	case w.policy.Off:
		return ""
	case n.All:
		return " Commands run in a sandbox: they can write the project and $TMPDIR only."
	case n.None():
		return " Commands run in a sandbox: they can write the project and $TMPDIR only, and have no network."
	default:
		return " Commands run in a sandbox: they can write the project and $TMPDIR only, and reach only these hosts: " + strings.Join(n.Hosts, ", ") + "."
	}
}

// mayWrite holds a file tool to the policy, and to that of the call's context.
func (w *Workspace) mayWrite(ctx context.Context, p place) error {
	if w.policyErr != nil {
		return w.policyErr
	}
	policy := w.policy
	if inner, ok := sandbox.From(ctx); ok {
		policy = inner.Within(policy)
	}
	dir := w.real
	if p.root == w.out {
		dir = w.outReal
	}
	if policy.MayWrite(filepath.Join(dir, p.rel)) {
		return nil
	}
	return errdefs.PolicyDenied.Errorf("%s may not be written: the sandbox's policy doesn't have it in what can be", p.shown)
}

// longCommand is what one argument may have on every system; a longer command is run from a file.
const longCommand = 100_000

// shell is the command that runs text, and what removes what it needed.
func (w *Workspace) shell(ctx context.Context, text, id string) (cmd *exec.Cmd, cleanUp func(), err error) {
	name, err := exec.LookPath("bash")
	if err != nil {
		if name, err = exec.LookPath("sh"); err != nil {
			return nil, nil, errdefs.NotAvailable.Errorf("prepare the command: %w", err)
		}
	}
	fence, err := w.fence()
	if err != nil {
		return nil, nil, err
	}
	args, cleanUp := []string{"-c", text}, func() {}
	if len(text) > longCommand {
		script := filepath.Join(w.outDir, "command-"+id+".sh")
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			return nil, nil, errdefs.NotAvailable.Errorf("prepare the command: %w", err)
		}
		args, cleanUp = []string{script}, func() { _ = os.Remove(script) }
	}
	if cmd, err = fence.Command(ctx, name, args...); err != nil {
		cleanUp()
		return nil, nil, err
	}
	return cmd, cleanUp, nil
}
