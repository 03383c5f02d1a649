package project_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/project"
)

const secret = "s3cr3t"

// told is all that a model may be told of a project.
func told(p *project.Project) string {
	all := p.Prompt()
	for _, k := range p.Skills {
		all += k.Description + k.Body
	}
	for _, a := range p.Subagents {
		all += a.Description + a.Instructions
	}
	return all
}

func TestNothingIsReadThatADenyRuleNames(t *testing.T) {
	const denies = `{"permissions": {"deny": ["Read(.env)"]}}`
	for who, forbid := range map[string]func(w *world) []project.Option{
		"the project":        func(w *world) []project.Option { w.put(".agents/settings.json", denies); return nil },
		"the local settings": func(w *world) []project.Option { w.put(".agents/settings.local.json", denies); return nil },
		"the user":           func(w *world) []project.Option { w.put("~/.agents/settings.json", denies); return nil },
		"the sandbox": func(w *world) []project.Option {
			w.put(".agents/settings.json", `{"sandbox": {"hide": [".env"]}}`)
			return nil
		},
		"the overrides": func(*world) []project.Option { return []project.Option{project.WithOverrides([]byte(denies))} },
		"the program": func(*world) []project.Option {
			return []project.Option{project.WithPermissions(permission.Config{Deny: []string{"Read(./.env)"}})}
		},
		"the program's rules": func(*world) []project.Option {
			return []project.Option{project.WithPermissions(permission.Config{Rules: []permission.Rule{permission.DenyRule("Read(*.env)")}})}
		},
		"what was there before": func(w *world) []project.Option {
			w.put(".agents/settings.json", denies)
			w.pin()
			w.put(".agents/settings.json", `{}`)
			return nil
		},
	} {
		for file, make := range map[string]func(w *world){
			"AGENTS.md:2:1: @.env":        func(w *world) { w.put("AGENTS.md", "# It\n@.env\n") },
			"AGENTS.md:1:1: @a.txt":       func(w *world) { w.put("AGENTS.md", "@a.txt\n"); w.link(".env", "a.txt") },
			"b.md:1:1: @./.env":           func(w *world) { w.put("AGENTS.md", "@b.md\n"); w.put("b.md", "@./.env\n") },
			"AGENTS.md: ":                 func(w *world) { w.link(".env", "AGENTS.md") },
			".agents/rules/1-a.md: ":      func(w *world) { w.link("../../.env", ".agents/rules/1-a.md") },
			".agents/skills/s/SKILL.md: ": func(w *world) { w.link("../../../.env", ".agents/skills/s/SKILL.md") },
			".agents/agents/a.md: ":       func(w *world) { w.link("../../.env", ".agents/agents/a.md") },
		} {
			t.Run(who+" "+file, func(t *testing.T) {
				w := newWorld(t)
				w.put(".env", "---\nname: s\ndescription: "+secret+"\n---\n"+secret)
				make(w)
				if p := w.load(); !strings.Contains(told(p), secret) {
					t.Fatalf("nobody denies it, and it is not read: %v", p.Problems)
				}
				p := w.load(forbid(w)...)
				if strings.Contains(told(p), secret) {
					t.Error("it is read")
				}
				wantProblem(t, p, file, "it may not be read, by a deny rule for Read")
			})
		}
	}
}

func TestWhatADenyRuleDoesNotNameIsReadAsBefore(t *testing.T) {
	w := newWorld(t)
	w.put("AGENTS.md", "One.\n@docs/a.md\n")
	w.put("docs/a.md", "Two.")
	w.put("~/.agents/skills/s/SKILL.md", "---\nname: s\ndescription: Three.\n---\n")
	w.put("~/.agents/settings.json", `{"permissions": {"deny": ["Read(.env)", "Read(./other/**)", "Edit(AGENTS.md)", "Read(~/.agents/**)"], "ask": ["Read(docs/**)"]}}`)
	p := w.load(project.WithPermissions(permission.Config{Allow: []string{"Read"}, Ask: []string{"Read(AGENTS.md)"}}))
	if text := told(p); !strings.Contains(text, "One.") || !strings.Contains(text, "Two.") || !strings.Contains(text, "Three.") {
		t.Errorf("%s %v", text, p.Problems)
	}
	if _, err := w.try(project.WithPermissions(permission.Config{Deny: []string{"Read("}})); err == nil || !strings.Contains(err.Error(), "Read(") {
		t.Error(err)
	}
}

func TestWhatMayNotBeReadAnyMoreIsNotKept(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/rules/1-a.md", secret)
	w.put(".agents/rules/2-b.md", "stays")
	w.put(".agents/skills/s/SKILL.md", "---\nname: s\ndescription: "+secret+"\n---\n")
	w.put(".agents/agents/a.md", "---\nname: s\ndescription: "+secret+"\n---\n"+secret)
	before := w.load()
	w.put(".agents/settings.json", `{"permissions": {"deny": ["Read(1-a.md)", "Read(SKILL.md)", "Read(.agents/agents/**)"]}}`)
	kept, unusable := w.load().Keep(before)
	if strings.Contains(told(kept), secret) || !strings.Contains(told(kept), "stays") || len(unusable) != 3 {
		t.Errorf("%s %q", told(kept), unusable)
	}
}
