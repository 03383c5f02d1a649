package project

import (
	"fmt"
	"slices"
	"strings"
)

// Keep gives p with what its files spoiled as it was in last, the Project before it: a skill, a subagent or a rule whose file is there and can't be used any more, unless another one of the name has come in its
// place. What has no file any more is gone, and so is what a rule keeps from being read now. unusable says of each file that can't be used which one it is, whether it stays as it was, and why. last may be nil; p and last stay as they are.
func (p *Project) Keep(last *Project) (kept *Project, unusable []string) {
	kept = &Project{}
	*kept = *p
	if last == nil {
		last = &Project{}
	}
	tell := func(what, state string, why Problem) {
		unusable = append(unusable, fmt.Sprintf("%s can't be used%s: %s", what, state, why))
	}
	const stays = ", and stays as it was"

	kept.rules = slices.Clone(p.rules)
	for i, r := range kept.rules {
		if r.Reason == "" {
			continue
		}
		state := ""
		if j := slices.IndexFunc(last.rules, func(o rule) bool { return o.File == r.File && o.readable }); j >= 0 && !slices.Contains(p.denied, r.File) {
			kept.rules[i].text, kept.rules[i].readable, state = last.rules[j].text, true, stays
		}
		tell("the rule", state, r.Problem)
	}
	kept.Rules = joinRules(kept.rules)

	kept.Skills = keep(p, "the skill", p.Skills, last.Skills, func(k Skill) definition { return definition{k.Name, k.File, k.Broken, k.Layer} }, tell)
	kept.Subagents = keep(p, "the agent", p.Subagents, last.Subagents, func(a Subagent) definition { return definition{a.Name, a.File, a.Broken, a.Layer} }, tell)
	return kept, unusable
}

// definition is what a skill and a subagent have in common.
type definition struct {
	name, file, broken string
	layer              Layer
}

// below reports whether what a layer defines makes room for what another one does.
func (l Layer) below(other Layer) bool {
	return l != other && (other == LayerProject || l == LayerDefault)
}

// keep gives the definitions of now, with those before in the place of what was spoiled.
func keep[T any](p *Project, what string, now, before []T, of func(T) definition, tell func(what, state string, why Problem)) []T {
	now = slices.Clone(now)
	for _, old := range before {
		was := of(old)
		why, spoiled := p.why(was.file)
		if was.broken != "" || !spoiled || slices.Contains(p.denied, was.file) {
			continue
		}
		if slices.ContainsFunc(now, func(v T) bool { // it is there, or another one is
			is := of(v)
			return is.broken == "" && (is.file == was.file || is.name == was.name && !is.layer.below(was.layer))
		}) {
			continue
		}
		now = slices.DeleteFunc(now, func(v T) bool { // its broken self, and what stood in for it
			is := of(v)
			return is.file == was.file || is.name == was.name
		})
		now = append(now, old)
		tell(what+" "+was.name, ", and stays as it was", why)
	}
	for _, v := range now {
		if is := of(v); is.broken != "" {
			why, ok := p.why(is.file)
			if !ok {
				why = Problem{Place: Place{File: is.file}, Reason: is.broken}
			}
			tell(what+" "+clip(is.name), "", why)
		}
	}
	slices.SortStableFunc(now, func(a, b T) int { return strings.Compare(of(a).name, of(b).name) })
	return now
}

// why is what makes a file unusable, if something is wrong with it: what is found last, since nothing is read behind it.
func (p *Project) why(file string) (Problem, bool) {
	for _, problem := range slices.Backward(p.Problems) {
		if problem.File == file && file != "" {
			return problem, true
		}
	}
	return Problem{}, false
}
