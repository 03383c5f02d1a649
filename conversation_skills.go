package pawl

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/tool"
)

// packSkills are the skills of a conversation's pack, as they were when it was opened; nil: it has none. They work as those of a Runtime do.
type packSkills struct {
	all    *project.Project
	listed string   // what a prompt says of those that the model may get
	loaded string   // what every prompt has of those that are preloaded
	always []string // those
	tool   tool.Tool
	dir    string
}

// loadSkills makes the skills of some scopes of a pack. Where there are none, it is nil.
func loadSkills(p *pack.Pack, scopes []string) (map[string]*packSkills, error) {
	all := map[string]*packSkills{}
	for _, scope := range scopes {
		in := p.SkillsIn(scope)
		if len(in) == 0 && scope != "" && scope != "none" {
			return nil, errdefs.Validation.Errorf("pawl: workflow: there are no skills of the pack in %s, which a state has: name a path that the pack's skills lead to, or none", scope)
		}
		s, err := skillsOf(p, in)
		if err != nil {
			return nil, err
		}
		all[scope] = s
	}
	return all, nil
}

// skillsOf gives nil for no skills.
func skillsOf(p *pack.Pack, loaded []pack.LoadedSkill) (*packSkills, error) {
	if len(loaded) == 0 {
		return nil, nil
	}
	s := &packSkills{all: &project.Project{}, dir: filepath.Dir(p.File)}
	var listed []project.Skill
	var texts []string
	for _, k := range loaded {
		own := project.Skill{Name: k.Name, Description: k.Description, AllowedTools: k.AllowedTools, Compatibility: k.Compatibility, Keywords: k.Keywords, Body: k.Instructions}
		if k.Dir != "" {
			var err error
			own.Dir = filepath.Join(s.dir, filepath.FromSlash(k.Dir))
			if own, err = own.Below(s.dir); err != nil {
				return nil, err
			}
		}
		s.all.Skills = append(s.all.Skills, own)
		if k.Preload {
			s.always, texts = append(s.always, k.Name), append(texts, strings.TrimSpace(own.Instructions()))
		} else {
			listed = append(listed, own)
		}
	}
	s.listed, s.loaded = (&project.Project{Skills: listed}).Prompt(), strings.Join(texts, "\n\n")
	s.tool, _ = s.all.SkillFilesTool()
	return s, nil
}

// told is what a prompt says of the skills: the same in each turn.
func (s *packSkills) told(p *pack.Prompt) string {
	if s == nil {
		return ""
	}
	parts := []string{s.listed, s.loaded}
	if !p.OffersSkills() {
		parts = parts[1:]
	}
	return strings.Join(slices.DeleteFunc(parts, func(text string) bool { return text == "" }), "\n\n")
}

// offered is the tool for skills, where the prompt's policy lets the model have it.
func (s *packSkills) offered(p *pack.Prompt) []tool.Tool {
	if s == nil || !p.OffersSkills() {
		return nil
	}
	return []tool.Tool{s.tool}
}

// hooks hold the turns of a prompt to what its active skills allow. With states, one that is not there is another state's.
func (s *packSkills) hooks(p *pack.Prompt, store journal.Store, handoffs []agent.Handoff, states bool) []hook.Middleware {
	if s == nil {
		return nil
	}
	of := &skills{
		journal: func() journal.Store { return store }, project: s.all, dir: s.dir, alone: true, elsewhere: states, always: s.always,
		tool: tool.Definition{Tool: model.Tool{Name: project.SkillToolName}}, offered: p.OffersSkills(),
		allow: func(rules ...string) (func(*hook.ToolUse) bool, error) {
			names := append([]string{project.SkillToolName, pack.TransitionTool, pack.ArtifactTool}, rules...) // a skill keeps nobody where he is
			for _, h := range handoffs {
				if slices.Contains(rules, h.ToAgentID) {
					names = append(names, agent.HandoffTool(h).Definition().Name)
				}
			}
			return func(u *hook.ToolUse) bool { return slices.Contains(names, u.Tool.Name) }, nil
		},
	}
	return of.hooks()
}
