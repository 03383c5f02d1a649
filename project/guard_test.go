package project_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/project"
)

func TestTextThatToolsMayHaveChangedCountsOnceItIsApproved(t *testing.T) {
	w := newWorld(t)
	lay(w, map[string]string{
		".agents/rules/1.md": "rule-one", ".agents/rules/2.md": "other",
		".agents/skills/s/SKILL.md": "---\nname: s\ndescription: skill-one\n---\nDo it.\n", ".agents/agents/a.md": "---\nname: a\ndescription: agent-one\n---\nYou are a.\n",
	})
	changed := func() {
		lay(w, map[string]string{
			".agents/rules/1.md": "rule-two", ".agents/rules/3.md": "rule-two",
			".agents/skills/s/SKILL.md": "---\nname: s\ndescription: skill-two\n---\nDo it.\n", ".agents/agents/b.md": "---\nname: b\ndescription: agent-two\n---\nYou are b.\n",
		})
	}
	told := func() string {
		p := w.load()
		text := p.Prompt()
		for _, a := range p.Subagents {
			if a.Broken == "" {
				text += a.Description
			}
		}
		return text
	}
	before := w.load()
	if err := project.Guard(before); err != nil {
		t.Fatal(err)
	}
	if err := project.Unguard(t.Context(), before); err != nil || len(w.load().Untrusted()) > 0 {
		t.Fatal(err, "nothing was changed")
	}
	if err := project.Guard(before); err != nil {
		t.Fatal(err)
	}
	changed()
	p := w.load()
	if text := told(); strings.Contains(text, "two") || !strings.Contains(text, "agent-one") || !strings.Contains(text, "other") || !p.Guarded() {
		t.Error("while they are at work:", text)
	}
	if err := project.Unguard(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if text := told(); strings.Contains(text, "two") || len(w.load().Untrusted()) != 4 {
		t.Error("and behind it:", text, w.load().Untrusted())
	}
	if err := project.Guard(w.load()); err != nil { // another run begins, and ends
		t.Fatal(err)
	}
	if err := project.Unguard(t.Context(), w.load()); err != nil {
		t.Fatal(err)
	}
	for _, v := range w.load().Untrusted() {
		if v.State != project.StateChanged || v.Key != "text" {
			t.Error(v)
		}
	}
	if err := project.Approve(w.load()); err != nil {
		t.Fatal(err)
	}
	if text := told(); strings.Count(text, "two") != 4 || w.load().Guarded() {
		t.Error("approved:", text)
	}
	lay(w, map[string]string{".agents/rules/1.md": "rule-three"})
	if text := told(); !strings.Contains(text, "three") {
		t.Error("a person's own change, while nobody is at work:", text)
	}
}

func TestWhatAProcessThatDiedMayHaveChangedIsLeftOut(t *testing.T) {
	w := newWorld(t)
	lay(w, map[string]string{".agents/rules/1.md": "rule-one"})
	if err := project.Guard(w.load()); err != nil {
		t.Fatal(err)
	}
	w.processDied() // and nobody unguards
	lay(w, map[string]string{".agents/rules/1.md": "rule-two"})
	if text := w.load().Prompt(); strings.Contains(text, "two") {
		t.Error(text)
	}
	if err := project.Guard(w.load()); err != nil {
		t.Fatal(err)
	}
	if text := w.load().Prompt(); strings.Contains(text, "two") {
		t.Error("another process took the change for what was there:", text)
	}
	lay(w, map[string]string{".agents/rules/1.md": "rule-one"})
	if text := w.load().Prompt(); !strings.Contains(text, "one") || len(w.load().Untrusted()) > 0 {
		t.Error("put back:", text)
	}
}

func lay(w *world, files map[string]string) {
	for name, text := range files {
		w.put(name, text)
	}
}

// processDied has the guard on record be one of a process that is gone.
func (w *world) processDied() {
	w.t.Helper()
	gone := exec.Command(os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		w.t.Fatal(err)
	}
	b, err := os.ReadFile(w.trust)
	if err != nil {
		w.t.Fatal(err)
	}
	text := strings.Replace(string(b), fmt.Sprintf(`"process": %d`, os.Getpid()), fmt.Sprintf(`"process": %d`, gone.Process.Pid), 1)
	if text == string(b) {
		w.t.Fatal("there is no guard: ", text)
	}
	if err := os.WriteFile(w.trust, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}
