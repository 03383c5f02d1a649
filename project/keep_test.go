package project_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeepHasWhatIsSpoiledAsItWasAndNothingElse(t *testing.T) {
	const skillFile, agentFile = ".agents/skills/x/SKILL.md", ".agents/agents/file.md"
	skill := func(description string) string { return "---\nname: x\ndescription: " + description + "\n---\n" }
	agent := func(description, more string) string {
		return "---\nname: x\ndescription: " + description + "\n" + more + "---\nGo."
	}
	for name, c := range map[string]struct {
		change       func(w *world)
		skill, agent string // what is there of each
		told         []string
	}{
		"nothing changed":      {func(*world) {}, "one", "one", nil},
		"they are gone":        {func(w *world) { w.remove(skillFile); w.remove(agentFile) }, "", "", nil},
		"the directory is not": {func(w *world) { w.remove(skillFile); w.put(".agents/skills/x/other.txt", "") }, "", "one", []string{"the skill x can't be used: .agents/skills/x: it has no SKILL.md"}},
		"something is unknown": {func(w *world) { w.put(skillFile, "---\nname: x\ndescription: two\nwhat: x\n---\n") }, "two", "one", nil},
		"they are spoiled": {
			func(w *world) { w.put(skillFile, "two"); w.put(agentFile, agent("two", "maxTurns: x\n")) }, "one", "one",
			[]string{"the skill x can't be used, and stays as it was: " + skillFile + ":1:1: it has no front matter", "the agent x can't be used, and stays as it was: " + agentFile + `:4:1: maxTurns is "x"`},
		},
		"the user's don't stand in for them": {
			func(w *world) {
				w.put("~/"+skillFile, skill("the user's"))
				w.put("~/.agents/agents/x.md", agent("the user's", ""))
				w.put(skillFile, "two")
				w.put(agentFile, "two")
			}, "one", "one", []string{"the skill x can't be used, and stays", "the agent x can't be used, and stays"},
		},
		"another file has the name": {func(w *world) { w.put(agentFile, "two"); w.put(".agents/agents/new.md", agent("new", "")) }, "one", "new", []string{"the agent file can't be used: " + agentFile + ":1:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(skillFile, skill("one"))
			w.put(agentFile, agent("one", ""))
			before := w.load()
			c.change(w)
			p := w.load()
			skills, agents := len(p.Skills), len(p.Subagents)
			kept, told := p.Keep(before)
			k, _ := kept.Skill("x")
			a, _ := kept.Subagent("x")
			if k.Description != c.skill || a.Description != c.agent {
				t.Errorf("%q, %q", k.Description, a.Description)
			}
			if len(told) != len(c.told) {
				t.Fatalf("%q", told)
			}
			for i, want := range c.told {
				if !strings.HasPrefix(told[i], want) {
					t.Errorf("%q, want %q", told[i], want)
				}
			}
			if len(p.Skills) != skills || len(p.Subagents) != agents {
				t.Error("the Project itself has changed")
			}
			if again, _ := p.Keep(kept); len(again.Skills) != len(kept.Skills) || len(again.Subagents) != len(kept.Subagents) {
				t.Errorf("what was kept is kept on: %+v", again)
			}
		})
	}
}

func TestKeepHasASpoiledRuleInItsPlace(t *testing.T) {
	w := newWorld(t)
	for _, n := range []string{"1", "2", "3"} {
		w.put(".agents/rules/"+n+"-r.md", "rule "+n)
	}
	before := w.load()
	w.put(".agents/rules/2-r.md", "\xff")
	w.put(".agents/rules/3-r.md", "rule three")
	p := w.load()
	kept, told := p.Keep(before)
	if kept.Rules != "rule 1\n\nrule 2\n\nrule three" || len(told) != 1 || p.Rules != "rule 1\n\nrule three" {
		t.Errorf("%q %q %q", kept.Rules, told, p.Rules)
	}
	if kept, told = p.Keep(nil); kept.Rules != p.Rules || len(told) != 1 || !strings.Contains(told[0], "the rule can't be used: .agents/rules/2-r.md: ") {
		t.Errorf("%q %q", kept.Rules, told)
	}
	w.remove(".agents/rules/2-r.md")
	if kept, told = w.load().Keep(before); kept.Rules != "rule 1\n\nrule three" || told != nil {
		t.Errorf("%q %q", kept.Rules, told)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.root, filepath.FromSlash(name))); err != nil {
		w.t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(w.root, filepath.FromSlash(filepath.Dir(name)))) // when nothing else is in it
}
