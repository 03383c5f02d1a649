package pawl

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// DefaultSandbox is the policy of a Runtime that is given none: commands may write the project and a temporary directory of their own, and reach the network. Secrets can't be read, as
// far as the system can keep them: see fence.Secrets and fence.Probe.
func DefaultSandbox() sandbox.Policy { return sandbox.Policy{Network: sandbox.Network{All: true}} }

// NoSafety is a safety hook that lets everything through.
func NoSafety(context.Context, string, map[string]any) error { return nil }

// fencing is what commands run in.
type fencing struct {
	policy   sandbox.Policy
	holds    bool     // it keeps all that was asked for, so they run unasked
	warning  string   // why it doesn't, although none was switched off
	editable []string // what commands are kept from, and people are asked about when file tools change it
}

// fence decides what commands run in, where can holds. hide and protect are what rules keep from being read, and changed.
func (o *Options) fence(dir string, s project.Settings, hide, protect []string, can fence.Capabilities) (fencing, error) {
	policy, asked := DefaultSandbox(), "Options.Sandbox"
	switch {
	case o.Sandbox != nil:
		policy = *o.Sandbox
	case s.SandboxSet || len(s.Directories) > 0:
		policy, asked = s.Sandbox, "the settings' sandbox"
	}
	if o.Sandbox == nil {
		policy.Write = slices.Concat(policy.Write, o.Permissions.Writable)
	}
	if policy.Off {
		return fencing{policy: policy}, nil
	}
	if policy.Root == "" {
		policy.Root = dir
	}
	for name := range s.Env {
		policy.Env = append(slices.Clip(policy.Env), name)
	}
	slices.Sort(policy.Env)
	policy, err := fence.Resolve(policy)
	if err != nil {
		return fencing{}, errdefs.Validation.Errorf("pawl: %s: %w", asked, err)
	}
	switch {
	case can.Writes.Holds:
	case o.Sandbox != nil || s.SandboxSet:
		return fencing{}, errdefs.NotAvailable.Errorf("pawl: %s: there is no sandbox here: %s", asked, can.Writes.Why)
	default:
		policy.Off = true
		return fencing{policy: policy, warning: "commands run without a sandbox, so those that do more than read, and edits, are asked about: " + can.Writes.Why}, nil
	}
	var editable []string
	if can.Inside.Holds {
		editable = protectSettings(&policy)
	}
	own, journal, err := o.ownFiles(policy)
	if err != nil {
		return fencing{}, err
	}
	if can.Inside.Holds {
		policy.Protect = append(slices.Clip(policy.Protect), own...)
	}
	f, err := keeping(policy, hide, append(slices.Clip(protect), journal...), can)
	if f.editable = editable; err == nil && len(own) > 0 && !can.Inside.Holds {
		f.holds = false
		f.warning = join(f.warning, "commands may write "+own[0]+", which is the user's own, and the sandbox can't keep them from it here, so those that do more than read, and edits, are asked about: "+can.Inside.Why)
	}
	return f, err
}

// ownFiles keeps commands from what is Pawl's and the user's own, where that lies in what they may write: the user's settings, which need no approval, what was approved, the tokens of logins and the journal. What is not
// there yet is made, so that it can be protected. journal are patterns for the files of the journal that the program gave.
func (o *Options) ownFiles(p sandbox.Policy) (own, journal []string, err error) {
	within := func(path string) (string, bool) {
		real := fence.Resolved(path)
		return real, slices.ContainsFunc(append([]string{p.Root}, p.Write...), func(dir string) bool {
			rel, err := filepath.Rel(dir, real)
			return err == nil && filepath.IsLocal(rel) && rel != "."
		})
	}
	all := []string{filepath.Dir(project.DefaultTrustFile()), filepath.Dir(DefaultJournal()), mcp.DefaultTokens()}
	if home, err := os.UserHomeDir(); err == nil {
		all = append(all, filepath.Join(home, ".agents"))
	}
	for _, dir := range all {
		real, writable := within(dir)
		if !filepath.IsAbs(dir) || !writable || slices.Contains(p.Protect, real) || slices.Contains(own, real) {
			continue
		}
		if err := os.MkdirAll(real, 0o700); err != nil {
			return nil, nil, errdefs.NotAvailable.Errorf("pawl: commands may write where the user's own settings and approvals lie, and %s can't be made to be protected: %w", real, err)
		}
		own = append(own, real)
	}
	if s, ok := o.Journal.(interface{ Path() string }); ok {
		if real, writable := within(s.Path()); writable {
			journal = append(journal, fence.HidePattern(filepath.Dir(real), filepath.Base(fence.HidePattern(real, ""))+"*"))
		}
	}
	return own, journal, nil
}

// keeping hides what rules keep from being read, and protects what they keep from being changed, as far as the sandbox can keep programs from it.
func keeping(policy sandbox.Policy, hide, protect []string, can fence.Capabilities) (fencing, error) {
	hidden, protected := len(policy.HidePatterns), len(policy.ProtectPatterns)
	policy.HidePatterns = slices.Concat(policy.HidePatterns, hide)
	policy.ProtectPatterns = slices.Concat(policy.ProtectPatterns, protect)
	policy, err := fence.Resolve(policy)
	if err != nil || can.Inside.Holds {
		return fencing{policy: policy, holds: err == nil}, err
	}
	outside := func(patterns []string) []string {
		return slices.DeleteFunc(slices.Clone(patterns), func(text string) bool { return fence.MatchesInside(policy, text) })
	}
	hide, protect = policy.HidePatterns[hidden:], policy.ProtectPatterns[protected:]
	f := fencing{policy: policy, holds: len(outside(hide)) == len(hide) && len(outside(protect)) == len(protect)}
	f.policy.HidePatterns = append(policy.HidePatterns[:hidden:hidden], outside(hide)...)
	f.policy.ProtectPatterns = append(policy.ProtectPatterns[:protected:protected], outside(protect)...)
	if !f.holds {
		f.warning = "rules deny reading or editing in the project, which the sandbox can't keep programs from here, so commands that do more than read, and edits, are asked about: " + can.Inside.Why
	}
	return f, nil
}

// protectSettings keeps commands from changing what in the project, and in the other directories that they may write, decides what runs outside of the sandbox later, unless the policy names it as what they may write. It
// gives what the policy did not protect itself.
func protectSettings(p *sandbox.Policy) (added []string) {
	for _, dir := range append([]string{p.Root}, p.Write...) {
		for _, path := range fence.Settings(dir) {
			if i := slices.Index(p.Write, path); i >= 0 {
				p.Write = slices.Delete(slices.Clone(p.Write), i, i+1) // it lies in dir: what is mounted can't be replaced
			} else if !slices.Contains(p.Protect, path) {
				p.Protect, added = append(slices.Clip(p.Protect), path), append(added, path)
			}
		}
	}
	return added
}

// Permissions are what a Runtime of these options goes by in a project, as [project.Load] read it (nil with NoProject): the rules of the settings and of the options, the mode, whether there is a fence. For
// programs that show a policy: nothing is started. waiting says in a sentence what of the project waits for approval, "" when nothing does. It fails as [New] does where the sandbox that is asked for
// can't be had.
func Permissions(o Options, p *project.Project) (_ permission.Config, waiting string, err error) {
	dir, err := filepath.Abs(cmp.Or(o.ProjectRoot, "."))
	if err != nil {
		return permission.Config{}, "", errdefs.Validation.Errorf("pawl: project root %q: %w", o.ProjectRoot, err)
	}
	var s project.Settings
	if p != nil {
		s = p.Settings
	}
	rules, _, err := o.bounds(dir, s)
	return rules, waits(p), err
}

// bounds are what binds calls in a project: what is asked of people and refused, and what commands run in.
func (o *Options) bounds(dir string, s project.Settings) (permission.Config, fencing, error) {
	rules := o.permissions(dir, s)
	hide, protect, err := permission.Kept(rules)
	if err != nil {
		return rules, fencing{}, err
	}
	f, err := o.fence(dir, s, hide, protect, fence.Probe())
	rules.Fence, rules.Kept = f.holds, f.holds
	rules.Offline = f.holds && !f.policy.Off && !f.policy.Network.All && len(f.policy.Network.Hosts) == 0
	if err == nil {
		o.widen(&rules, f.policy, o.further(s))
	}
	return rules, f, err
}

// further are the directories besides the project that the program and the settings name.
func (o *Options) further(s project.Settings) []string {
	return slices.Concat(o.Permissions.Writable, s.Directories)
}

// widen has rules be about further directories: what a person is asked about, what the safety check says and what the policy lets be written are to agree on them. The policy is the program's own where it gave one.
func (o *Options) widen(rules *permission.Config, policy sandbox.Policy, further []string) {
	written := slices.Clone(policy.Write)
	rules.Writable = nil
	for _, dir := range further {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil && !fence.MayWrite(policy, real) {
			rules.Readable = append(slices.Clip(rules.Readable), dir)
			continue
		}
		rules.Writable, written = append(slices.Clip(rules.Writable), dir), append(written, dir)
	}
	if o.Permissions.Safety == nil {
		rules.Safety = permission.SafetyIn(rules.Dir, written...)
	}
}

// permissions are the program's and the settings', but for the fence, and for directories besides the project.
func (o *Options) permissions(dir string, s project.Settings) permission.Config {
	p := o.Permissions
	p.Mode = cmp.Or(p.Mode, s.Permissions.Mode, permission.ModeDefault)
	p.Taint = cmp.Or(p.Taint, s.Permissions.Taint, permission.TaintOff)
	p.Rules = slices.Concat(s.Permissions.Rules, p.Rules)
	for _, name := range s.DisallowedTools { // for tasks, too
		p.Rules = append(p.Rules, permission.Rule{Verdict: hook.Deny, Text: name, Place: "disallowedTools"})
	}
	if p.Dir == "" {
		p.Dir = dir
	}
	if p.Safety == nil {
		p.Safety = permission.SafetyIn(p.Dir)
	}
	return p
}
