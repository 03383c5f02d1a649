package pawl

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox"
)

// DefaultSandbox is the policy of a Runtime that is given none: commands may write the project and a temporary directory of their own, and reach the network. Secrets can't be read, as
// far as the system can keep them: see sandbox.Secrets and sandbox.Probe.
func DefaultSandbox() sandbox.Policy { return sandbox.Policy{Network: sandbox.Network{All: true}} }

// NoSafety is a safety hook that lets everything through.
func NoSafety(context.Context, string, map[string]any) error { return nil }

// fence decides what commands run in, where can holds. unfenced says why they run without a sandbox although none was switched off.
func (o *Options) fence(dir string, s project.Settings, can sandbox.Capabilities) (policy sandbox.Policy, unfenced string, err error) {
	policy, asked := DefaultSandbox(), "Options.Sandbox"
	switch {
	case o.Sandbox != nil:
		policy = *o.Sandbox
	case s.SandboxSet || len(s.Directories) > 0:
		policy, asked = s.Sandbox, "the settings' sandbox"
	}
	if policy.Off {
		return policy, "", nil
	}
	if policy.Root == "" {
		policy.Root = dir
	}
	for name := range s.Env {
		policy.Env = append(slices.Clip(policy.Env), name)
	}
	slices.Sort(policy.Env)
	if policy, err = policy.Resolve(); err != nil {
		return policy, "", errdefs.Validation.Errorf("pawl: %s: %w", asked, err)
	}
	switch {
	case can.Writes.Holds:
	case o.Sandbox != nil || s.SandboxSet:
		return policy, "", errdefs.NotAvailable.Errorf("pawl: %s: there is no sandbox here: %s", asked, can.Writes.Why)
	default:
		policy.Off, unfenced = true, "commands run without a sandbox, so those that do more than read, and edits, are asked about: "+can.Writes.Why
	}
	return policy, unfenced, nil
}

// Permissions are what a Runtime of these options goes by in a project, as [project.Load] read it (nil with NoProject): the rules of the settings and of the options, the mode, whether there is a fence. For
// programs that show a policy: nothing is started. waiting says in a sentence what of the project waits for approval, "" when nothing does. It fails as [New] does where the sandbox that is asked for
// can't be had.
func Permissions(o Options, p *project.Project) (_ hook.Permissions, waiting string, err error) {
	dir, err := filepath.Abs(cmp.Or(o.ProjectRoot, "."))
	if err != nil {
		return hook.Permissions{}, "", errdefs.Validation.Errorf("pawl: project root %q: %w", o.ProjectRoot, err)
	}
	var s project.Settings
	if p != nil {
		s = p.Settings
	}
	policy, _, err := o.fence(dir, s, sandbox.Probe())
	if err != nil {
		return hook.Permissions{}, "", err
	}
	return o.permissions(dir, s, !policy.Off), waits(p), nil
}

// permissions decide what is asked of people. readable are directories besides the project's that may be read unasked.
func (o *Options) permissions(dir string, s project.Settings, fenced bool, readable ...string) hook.Permissions {
	p := o.Permissions
	p.Mode = cmp.Or(p.Mode, s.Permissions.Mode, hook.ModeDefault)
	p.Rules = slices.Concat(s.Permissions.Rules, p.Rules)
	for _, name := range s.DisallowedTools { // for tasks, too
		p.Rules = append(p.Rules, hook.Rule{Verdict: hook.Deny, Text: name, Place: "disallowedTools"})
	}
	if p.Dir == "" {
		p.Dir = dir
	}
	if p.Fence = fenced; p.Safety == nil {
		p.Safety = hook.SafetyIn(p.Dir)
	}
	p.Readable = slices.Concat(p.Readable, s.Permissions.Readable, readable)
	return p
}
