package pawl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

// terms are what binds a run, as it is on record: its modes, all of which bind, the rules that refuse or ask, and what its commands may reach. A run that goes on is bound by them and by what the Runtime
// has now. What lets more happen (allow rules, looser modes) is not in them: whoever goes on gives it.
type terms struct {
	Modes []permission.Mode `json:"modes"`
	Deny  []string          `json:"deny,omitempty"`
	Ask   []string          `json:"ask,omitempty"`
	Taint permission.Taint  `json:"taint,omitempty"` // "" when it is off
	// Sandbox is nil when there was none. Its Root is "" when that is the project; Env, Limits and Cache are not on record.
	Sandbox *sandbox.Policy `json:"sandbox,omitempty"`
}

// terms is what a run of an assembly tells package agent: see [agent.WithTerms].
func (r *Runtime) terms(a *assembly) func(json.RawMessage) (agent.Terms, error) {
	return func(recorded json.RawMessage) (out agent.Terms, err error) {
		now := a.terms(r.dir)
		if recorded != nil {
			var then terms
			dec := json.NewDecoder(bytes.NewReader(recorded))
			dec.DisallowUnknownFields() // it may forbid something
			if err := dec.Decode(&then); err != nil {
				return out, errdefs.Validation.Errorf("pawl: what is on record of the run's permissions can't be read: %w; go on with it by the release that began it", err)
			}
			if now, out, err = r.narrow(a, now, then); err != nil {
				return out, err
			}
		}
		out.Record, err = json.Marshal(now)
		return out, err
	}
}

// terms are those of a run that begins now.
func (a *assembly) terms(dir string) terms {
	p := a.permissions
	t := terms{Modes: []permission.Mode{p.Mode}, Deny: slices.Clone(p.Deny), Ask: slices.Clone(p.Ask)}
	if p.Taint.On() {
		t.Taint = p.Taint
	}
	for _, r := range p.Rules {
		switch r.Verdict {
		case hook.Deny:
			t.Deny = append(t.Deny, r.Text)
		case hook.Ask:
			t.Ask = append(t.Ask, r.Text)
		}
	}
	if !a.policy.Off {
		t.Sandbox = onRecord(a.policy, dir)
	}
	return t
}

func onRecord(p sandbox.Policy, dir string) *sandbox.Policy {
	if real, err := filepath.EvalSymlinks(dir); err == nil && real == p.Root {
		p.Root = ""
	}
	return &sandbox.Policy{Root: p.Root, Write: p.Write, Protect: p.Protect, Hide: p.Hide, Read: p.Read, Network: p.Network}
}

// narrow binds a run that goes on by what is on record of it, where that is stricter than what the Runtime has now.
func (r *Runtime) narrow(a *assembly, now, then terms) (both terms, out agent.Terms, err error) {
	own := now.Modes[0]
	modes := slices.DeleteFunc(slices.Clone(then.Modes), func(m permission.Mode) bool {
		return !own.Looser(m) && (own != permission.ModePlan || m != permission.ModeDontAsk) // of these two each forbids what the other doesn't
	})
	deny, ask := without(then.Deny, now.Deny), without(then.Ask, now.Ask)
	var said []string
	for _, m := range modes {
		said = append(said, "mode "+string(m))
	}
	p := a.permissions
	p.Rules = slices.Clip(p.Rules)
	for _, list := range []struct {
		verdict hook.Verdict
		rules   []string
	}{{hook.Deny, deny}, {hook.Ask, ask}} {
		for _, text := range list.rules {
			p.Rules = append(p.Rules, permission.Rule{Verdict: list.verdict, Text: text, Place: "on record of the run"})
			said = append(said, list.verdict.String()+" "+text)
		}
	}
	both = terms{Modes: append(now.Modes, modes...), Deny: append(now.Deny, deny...), Ask: append(now.Ask, ask...), Taint: now.Taint, Sandbox: now.Sandbox}
	stricter := now.Taint.Looser(then.Taint)
	if stricter {
		p.Taint, both.Taint = then.Taint, then.Taint
		said = append(said, "taint "+string(then.Taint))
	}
	policy, changed := a.policy, false
	if then.Sandbox != nil {
		if policy, changed, err = r.fenceAgain(policy, *then.Sandbox); err != nil {
			return both, out, err
		}
		if changed {
			both.Sandbox = onRecord(policy, r.dir)
			said = append(said, "its narrower sandbox")
		}
	}
	if len(deny) > 0 && !policy.Off {
		hide, protect, err := permission.Kept(p)
		if err != nil {
			return both, out, fmt.Errorf("pawl: the rules that are on record of the run: %w", err)
		}
		f, err := keeping(policy, without(hide, policy.HidePatterns), without(protect, policy.ProtectPatterns), fence.Probe())
		if err != nil {
			return both, out, err
		}
		policy, changed, p.Fence, p.Kept = f.policy, true, p.Fence && f.holds, p.Fence && f.holds
	}
	if changed {
		out.Sandbox = &policy
	}
	if len(modes) == 0 && (stricter || len(deny)+len(ask) > 0) {
		modes = []permission.Mode{own}
	}
	for _, p.Mode = range modes { // beside the judge that there is: the strictest of them counts
		m, err := permission.New(p)
		if err != nil {
			return both, out, fmt.Errorf("pawl: the permissions that are on record of the run: %w", err)
		}
		out.Hooks = append(out.Hooks, m)
	}
	if len(said) > 0 {
		out.Warning = "what the run began with binds it still: " + strings.Join(said, ", ")
	}
	return both, out, nil
}

// without are those of a list that another one doesn't have.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

// fenceAgain is the policy of now within that on record. A run that began in a sandbox goes on without one only when the caller says so.
func (r *Runtime) fenceAgain(now, then sandbox.Policy) (_ sandbox.Policy, narrower bool, err error) {
	if now.Off {
		if r.opts.Sandbox != nil && r.opts.Sandbox.Off {
			return now, false, nil
		}
		return now, false, errdefs.PolicyDenied.Errorf("pawl: the run began in a sandbox, and now there is none: see pawl doctor and the settings; to go on without one, say so by Options.Sandbox (--no-sandbox)")
	}
	if then.Root == "" {
		then.Root = now.Root
	}
	then.Env, then.Limits, then.Cache = now.Env, now.Limits, now.Cache
	gone := func(path string) bool { _, err := os.Lstat(path); return err != nil } // what is not there can't be protected
	then.Protect, then.Hide = slices.DeleteFunc(then.Protect, gone), slices.DeleteFunc(then.Hide, gone)
	p := now.Within(then)
	p.Protect = slices.DeleteFunc(p.Protect, func(path string) bool { // what can't be written any more needs none
		return !slices.ContainsFunc(append(slices.Clone(p.Write), p.Root), func(dir string) bool {
			rel, err := filepath.Rel(dir, path)
			return dir != "" && err == nil && filepath.IsLocal(rel)
		})
	})
	return p, !reflect.DeepEqual(p, now.Within(now)), nil
}
