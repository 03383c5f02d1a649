package builtin

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/traced"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool"
)

// WithSandbox runs commands in a fence, and has the file tools refuse, with errdefs.PolicyDenied, what the policy doesn't let be written or hides; glob and grep leave that out. A policy without a Root has the project directory for one. What of the policy can't be enforced here makes bash fail with
// errdefs.NotAvailable and the reason, before anything runs. A policy in the context of a call ([sandbox.With]) narrows it further, and binds without this option too.
//
// By default, and with Policy{Off: true}, commands may do what this program may.
func WithSandbox(p sandbox.Policy) Option { return func(w *Workspace) { w.policy = p } }

// openFence is called once, when a command is to run; Close closes it. The policy's paths were resolved before, when no command could have replaced them.
func (w *Workspace) openFence() (*fence.Fence, error) {
	if w.policyErr != nil {
		return nil, w.policyErr
	}
	f, err := fence.Open(w.policy, w.env)
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
	w.policy, w.policyErr = fence.Resolve(w.policy)
}

// ownServers is said where each command has a network of its own, or none.
const ownServers = " A command can't reach a server that another one started: start the server and use it in one command."

// fenceNote tells the model what to expect of a fence.
func (w *Workspace) fenceNote() string {
	can := " Commands run in a sandbox: they can write " + strings.Join(append([]string{"the project"}, w.policy.Write...), ", ") + " and $TMPDIR only"
	switch n := w.policy.Network; {
	case w.policy.Off:
		return ""
	case n.All:
		return can + "."
	case n.None():
		return can + ", and have no network." + ownServers
	default:
		return can + ", and reach only these hosts: " + strings.Join(n.Hosts, ", ") + "." + ownServers
	}
}

// policyFor is the workspace's policy and that of the call's context.
func (w *Workspace) policyFor(ctx context.Context) (sandbox.Policy, error) {
	policy := w.policy
	if inner, ok := sandbox.From(ctx); ok {
		policy = inner.Within(policy)
	}
	return policy, w.policyErr
}

// realPath is where a place is.
func (w *Workspace) realPath(p place) string {
	return filepath.Join(w.area(p.root).real, p.rel)
}

// reading gives a function that holds a file tool to the policy in what it reads.
func (w *Workspace) reading(ctx context.Context) (func(place) bool, error) {
	policy, err := w.policyFor(ctx)
	if err != nil {
		return nil, err
	}
	may := fence.Readable(policy)
	return func(p place) bool { return may(w.realPath(p)) }, nil
}

// mayRead refuses what the policy hides.
func (w *Workspace) mayRead(ctx context.Context, p place) error {
	may, err := w.reading(ctx)
	if err != nil || may(p) {
		return err
	}
	return unreadable(p)
}

func unreadable(p place) error {
	return errdefs.PolicyDenied.Errorf("%s may not be read: the sandbox's policy hides it", p.shown)
}

// mayWrite holds a file tool to the policy, and to that of the call's context.
func (w *Workspace) mayWrite(ctx context.Context, p place) error {
	policy, err := w.policyFor(ctx)
	policy.Protect = slices.DeleteFunc(slices.Clone(policy.Protect), func(path string) bool {
		_, said := within(p.said, path) // who was asked saw the name: a link that leads there is not what they saw
		return said && slices.Contains(w.editable, path)
	})
	if err != nil || fence.MayWrite(policy, w.realPath(p)) {
		return err
	}
	return errdefs.PolicyDenied.Errorf("%s may not be written: the sandbox's policy doesn't have it in what can be", p.shown)
}

// checkRead refuses a path that read, glob or grep would refuse, whatever is approved: before anybody is asked about it.
func (w *Workspace) checkRead() tool.Option {
	return tool.WithCheck(func(ctx context.Context, input json.RawMessage) error {
		var in struct {
			File string `json:"file_path"` // of read
			Path string `json:"path"`
		}
		_ = json.Unmarshal(input, &in) // it was checked
		if in.File+in.Path == "" {
			return nil
		}
		p, err := w.locate(in.File + in.Path)
		if err == nil && in.File != "" { // of a directory that is hidden something may be shown
			err = w.mayRead(ctx, p)
		}
		return onlyDenied(err)
	})
}

// checkWrite is checkRead for write and edit.
func (w *Workspace) checkWrite() tool.Option {
	return tool.WithCheck(func(ctx context.Context, input json.RawMessage) error {
		var in struct {
			File string `json:"file_path"`
		}
		_ = json.Unmarshal(input, &in) // it was checked
		p, err := w.locateToWrite(in.File)
		if err == nil {
			err = w.mayWrite(ctx, p)
		}
		return onlyDenied(err)
	})
}

// onlyDenied leaves other errors to the call: they may have gone by then.
func onlyDenied(err error) error {
	if errdefs.PolicyDenied.Is(err) {
		return err
	}
	return nil
}

// longCommand is what one argument may have on every system; a longer command is run from a file.
const longCommand = 100_000

// shell is the command that runs text, and what removes what it needed.
func (w *Workspace) shell(ctx context.Context, text, id string) (cmd *exec.Cmd, cleanUp func(), err error) {
	name, err := exec.LookPath("bash") // and no other shell: commands are judged as what bash makes of them
	if err != nil {
		return nil, nil, errdefs.NotAvailable.Errorf("prepare the command: %w: install bash", err)
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
	traced.Inject(ctx, func(name, value string) { cmd.Env = append(cmd.Env, strings.ToUpper(name)+"="+value) })
	return cmd, cleanUp, nil
}
