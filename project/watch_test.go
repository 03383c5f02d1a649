package project_test

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/project"
)

// watching pulls what Watch yields, and fails a test that gets nothing for too long.
type watching struct {
	*world
	next   func() (*project.Project, error, bool)
	cancel context.CancelFunc
}

func watch(w *world, opts ...project.Option) *watching {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	next, stop := iter.Pull2(project.Watch(ctx, w.root, w.options(opts...)...))
	w.t.Cleanup(func() { stop(); cancel() })
	return &watching{w, next, cancel}
}

// until takes what is yielded until it is as wanted: a slow disk may show something in between.
func (w *watching) until(what string, ok func(*project.Project, error) bool) {
	w.t.Helper()
	for {
		p, err, more := w.next()
		if !more {
			w.t.Fatalf("%s is never seen", what)
		}
		if ok(p, err) {
			return
		}
	}
}

func (w *watching) memory(want string) {
	w.t.Helper()
	w.until(want, func(p *project.Project, err error) bool { return err == nil && p.Memory == want })
}

// replace writes a file as editors do: another one, which then takes its name.
func (w *world) replace(name, text string) {
	w.t.Helper()
	w.put(name+"~", text)
	path := filepath.Join(w.root, filepath.FromSlash(name))
	if err := os.Rename(path+"~", path); err != nil {
		w.t.Fatal(err)
	}
}

func TestWatchYieldsWhatIsThereAndEachChange(t *testing.T) {
	w := watch(newWorld(t))
	w.memory("")
	w.put("AGENTS.md", "one")
	w.memory("one")
	w.replace("AGENTS.md", "two")
	w.memory("two")
	w.replace("AGENTS.md", "three")
	w.memory("three")
	if err := os.Remove(filepath.Join(w.root, "AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	w.memory("")
}

func TestWatchSeesDirectoriesThatComeIntoBeingLater(t *testing.T) {
	w := watch(newWorld(t))
	w.memory("")
	for name, text := range map[string]string{"rules/1-a.md": "a rule", "skills/group/s/SKILL.md": "---\nname: s\ndescription: d\n---\n", "agents/x.md": "---\nname: x\ndescription: d\n---\nGo."} {
		w.put(".agents/"+name, text)
	}
	w.until("all of .agents", func(p *project.Project, err error) bool {
		if err != nil || p.Rules != "a rule" {
			return false
		}
		_, skill := p.Skill("s")
		_, agent := p.Subagent("x")
		return skill && agent
	})
	w.replace(".agents/rules/1-a.md", "another rule")
	w.until("the rule", func(p *project.Project, err error) bool { return err == nil && p.Rules == "another rule" })
	w.put("~/.agents/settings.json", `{"model": "a/b"}`)
	w.until("the user's settings", func(p *project.Project, err error) bool { return err == nil && p.Settings.Model == "a/b" })
}

func TestWatchSeesADirectoryThatTakesAnothersPlace(t *testing.T) {
	world := newWorld(t)
	world.put(".agents/rules/a.md", "old")
	world.put("new/rules/a.md", "new")
	w := watch(world)
	w.until("the old", func(p *project.Project, err error) bool { return err == nil && p.Rules == "old" })
	for _, r := range [][2]string{{".agents", "old"}, {"new", ".agents"}} {
		if err := os.Rename(filepath.Join(w.root, r[0]), filepath.Join(w.root, r[1])); err != nil {
			t.Fatal(err)
		}
	}
	w.until("the new", func(p *project.Project, err error) bool { return err == nil && p.Rules == "new" })
	w.put(".agents/rules/a.md", "newer")
	w.until("the newer", func(p *project.Project, err error) bool { return err == nil && p.Rules == "newer" })
}

func TestWatchSeesWhatIsIncludedAndWhatALinkLeadsTo(t *testing.T) {
	world := newWorld(t)
	world.put("AGENTS.md", "@docs/deep/a.md")
	world.put("shared/settings.json", `{"model": "a/1"}`)
	world.link("../shared/settings.json", ".agents/settings.json")
	w := watch(world)
	w.memory("@docs/deep/a.md")
	w.put("docs/deep/a.md", "there")
	w.memory("there")
	w.put("shared/settings.json", `{"model": "a/2"}`)
	w.until("the link's", func(p *project.Project, err error) bool { return err == nil && p.Settings.Model == "a/2" })
}

func TestWatchYieldsAnErrorForBrokenSettingsAndThenTheNextGoodProject(t *testing.T) {
	world := newWorld(t)
	world.put(".agents/settings.json", `{"model": "a/1"}`)
	w := watch(world)
	w.until("the first", func(p *project.Project, err error) bool { return err == nil })
	w.replace(".agents/settings.json", `{"model": `)
	w.until("the error", func(p *project.Project, err error) bool {
		return p == nil && err != nil && strings.Contains(err.Error(), ".agents/settings.json:1:")
	})
	w.replace(".agents/settings.json", `{"model": "a/2"}`)
	w.until("the next good one", func(p *project.Project, err error) bool { return err == nil && p.Settings.Model == "a/2" })
}

func TestWatchSeesAnApproval(t *testing.T) {
	world := newWorld(t)
	world.put(".agents/settings.json", `{"env": {"A": "1"}}`)
	w := watch(world)
	w.until("what waits", func(p *project.Project, err error) bool { return err == nil && len(p.Untrusted()) == 1 })
	if err := project.Approve(world.load()); err != nil {
		t.Fatal(err)
	}
	w.until("what counts", func(p *project.Project, err error) bool { return err == nil && p.Settings.Env["A"] == "1" })
}

func TestWatchYieldsNothingForFilesThatDontMatter(t *testing.T) {
	w := watch(newWorld(t))
	w.memory("")
	w.put("main.go", "package main")
	w.put("~/notes.txt", "x")
	w.replace("AGENTS.md", "one") // at once: an empty file in between would be a change, too
	p, err, _ := w.next()
	if err != nil || p.Memory != "one" {
		t.Errorf("%v %v", p, err)
	}
}

func TestManyChangesAtOnceAreOneProject(t *testing.T) {
	w := watch(newWorld(t))
	w.memory("")
	for range 50 {
		w.put("AGENTS.md", "many")
		w.put("AGENTS.md", "more")
	}
	w.put("AGENTS.md", "the last")
	count := 0
	w.until("the last", func(p *project.Project, err error) bool { count++; return err == nil && p.Memory == "the last" })
	if count > 10 { // of 101 changes
		t.Errorf("%d projects", count)
	}
}

func TestWatchEndsWithItsContextAndWithItsLoop(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	for p, err := range project.Watch(ctx, w.root, w.options()...) {
		if p == nil || err != nil {
			t.Error(err)
		}
		cancel()
	}
	for _, err := range project.Watch(t.Context(), w.root, w.options()...) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	for p, err := range project.Watch(ctx, w.root, w.options()...) {
		t.Errorf("%v %v", p, err)
	}
}

func TestWatchWaitsForAProjectThatIsNotThereYet(t *testing.T) {
	world := newWorld(t)
	if err := os.Remove(world.root); err != nil {
		t.Fatal(err)
	}
	w := watch(world)
	if _, err, _ := w.next(); err == nil {
		t.Error("it is there")
	}
	w.put("AGENTS.md", "now")
	w.memory("now")
}
