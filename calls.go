package pawl

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/tool"
)

// calls are the settings of model calls: the program's, with what the project's settings say where the program says nothing. A tool that the provider runs asks nobody before a call, so one that some rule denies, or has people asked about, is left
// out; without says so.
func (o *Options) calls(s project.Settings, rules permission.Config) (calls model.Settings, without []string) {
	calls = o.Settings
	calls.Reasoning = cmp.Or(calls.Reasoning, s.Reasoning)
	calls.ProviderTools = slices.Clone(calls.ProviderTools)
	for _, name := range s.ProviderTools {
		if !slices.ContainsFunc(calls.ProviderTools, func(t model.ProviderTool) bool { return t.Name == name }) {
			calls.ProviderTools = append(calls.ProviderTools, model.ProviderTool{Name: name})
		}
	}
	calls.ProviderTools = slices.DeleteFunc(calls.ProviderTools, func(t model.ProviderTool) bool {
		rule, barred := about(rules, t.Name)
		if barred {
			without = append(without, fmt.Sprintf("the provider's tool %s is left out: %s is about it, and the provider runs it without asking", t.Name, rule))
		}
		return barred
	})
	return calls, without
}

// toolNames are those of tools, and of those that the provider runs.
func (o *Options) toolNames(tools []tool.Tool) []string {
	names := namesOf(tools)
	for _, t := range o.Settings.ProviderTools {
		names = append(names, t.Name)
	}
	return names
}

// about finds a rule that denies a tool's calls, or some of them, or has people asked about them.
func about(p permission.Config, name string) (rule string, ok bool) {
	for _, r := range p.Rules {
		if r.Verdict != hook.Allow && permission.RuleNames(r.Text, name) {
			return fmt.Sprintf("the rule %q (%s)", r.Text, cmp.Or(r.Place, r.Verdict.String())), true
		}
	}
	for _, text := range slices.Concat(p.Deny, p.Ask) {
		if permission.RuleNames(text, name) {
			return fmt.Sprintf("the rule %q", text), true
		}
	}
	return "", false
}
