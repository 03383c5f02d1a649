package project_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/project"
)

func TestMemoryGoesFromTheRootToTheWorkingDirectory(t *testing.T) {
	w := newWorld(t)
	w.put("AGENTS.md", "Of the root.\n")
	w.put("a/AGENTS.md", "Of a.\n")
	w.put("a/b/AGENTS.md", "Of b.\n")
	w.put("other/AGENTS.md", "Of another.\n")
	const want = "Of the root.\n\n### a/AGENTS.md\n\nOf a.\n\n### a/b/AGENTS.md\n\nOf b."
	for _, dir := range []string{"a/b", filepath.Join(w.root, "a", "b")} {
		p := w.load(project.WithWorkdir(dir))
		if d := cmp.Diff(want, p.Memory); d != "" {
			t.Error(d)
		}
		wantNoProblem(t, p)
	}
	if p := w.load(); p.Memory != "Of the root." || p.Prompt() != "## Memory\n\nOf the root." {
		t.Errorf("%q", p.Prompt())
	}
	p := w.load(project.WithWorkdir(w.home))
	wantProblem(t, p, "is not in the project")
}

func TestALineThatIsAPathIsReplacedByTheFile(t *testing.T) {
	w := newWorld(t)
	w.put("AGENTS.md", "Before.\n@docs/style.md\n  @docs/my notes.md  \nAfter @docs/style.md.\n- @docs/style.md\n@LICENSE\n")
	w.put("docs/style.md", "Style.\r\n@deep/er.md\r\n")
	w.put("docs/deep/er.md", "Deeper.")
	w.put("docs/my notes.md", "Notes.\n")
	w.put("LICENSE", "A licence.")
	p := w.load()
	wantNoProblem(t, p)
	if d := cmp.Diff("Before.\nStyle.\nDeeper.\nNotes.\nAfter @docs/style.md.\n- @docs/style.md\nA licence.", p.Memory); d != "" {
		t.Error(d)
	}
}

func TestProseThatBeginsWithAnAtSignIsHarmless(t *testing.T) {
	w := newWorld(t)
	const text = "@alice knows the parser.\n@bob\n@org/team\n@\n@@x\n@ docs\n@types/node is pinned.\n@docs\n    @indented.md"
	w.put("AGENTS.md", text)
	w.put("docs/x.md", "")
	p := w.load()
	wantNoProblem(t, p)
	if d := cmp.Diff(text, p.Memory); d != "" {
		t.Error(d)
	}
}

func TestInCodeBlocksNothingIsIncluded(t *testing.T) {
	w := newWorld(t)
	const text = "```\n@x.md\n~~~\n@x.md\n```\n~~~~ js\n@x.md\n~~~\n@x.md\n~~~~\n````\n```\n@x.md\n````\n``` not a`fence\n"
	w.put("AGENTS.md", text+"@x.md\n```\n@x.md")
	w.put("x.md", "X")
	p := w.load()
	wantNoProblem(t, p)
	if d := cmp.Diff(text+"X\n```\n@x.md", p.Memory); d != "" {
		t.Error(d)
	}
}

func TestAnIncludeThatCantBeStaysAndIsAProblem(t *testing.T) {
	w := newWorld(t)
	w.put("~/secret.md", "secret")
	w.put("../outside.md", "secret")
	w.put("big.md", strings.Repeat("x", 1<<20+1))
	w.put("latin.md", "caf\xe9")
	w.put("nul.md", "a\x00b")
	w.put("dir.md/x", "")
	w.put("loop.md", "@loop2.md")
	w.put("loop2.md", "@./loop.md")
	w.link(filepath.Join(w.home, "secret.md"), "link.md")
	w.link(w.home, "linked")
	w.link("loop.md", "inside.md")
	lines := []string{
		"@missing.md", "@../outside.md", "@~/secret.md", "@" + filepath.ToSlash(filepath.Join(w.home, "secret.md")), "@link.md", "@linked/secret.md", "@big.md", "@latin.md", "@nul.md", "@dir.md",
		"@docs/../../outside.md", "@AGENTS.md", "@" + strings.Repeat("n", 300) + ".md",
	}
	w.put("AGENTS.md", strings.Join(lines, "\n")+"\n@inside.md")
	p := w.load()
	if strings.Contains(p.Memory, "secret\n") || !strings.HasPrefix(p.Memory, strings.Join(lines, "\n")) || !strings.HasSuffix(p.Memory, "\n@./loop.md") {
		t.Errorf("%q", p.Memory)
	}
	for i, reason := range []string{"there is no such file", "outside", "outside", "outside", "symbolic link", "symbolic link", "1 MiB", "UTF-8", "UTF-8", "directory", "outside", "itself", "can't be read"} {
		wantProblem(t, p, fmt.Sprintf("AGENTS.md:%d:1: @", i+1), reason)
	}
	wantProblem(t, p, "loop2.md:1:1: @./loop.md is not included: it includes itself in the end")
}

func TestAFileIsIncludedOnceHoweverManyAskForIt(t *testing.T) {
	w := newWorld(t)
	w.put("AGENTS.md", "@a.md\n@b.md\n@a.md")
	w.put("a.md", "A\n@c.md")
	w.put("b.md", "B\n@c.md")
	w.put("c.md", "C")
	p := w.load()
	wantNoProblem(t, p)
	if p.Memory != "A\nC\nB\n@c.md\n@a.md" {
		t.Errorf("%q", p.Memory)
	}
}

func TestAMemoryFileByTwoNamesCountsOnce(t *testing.T) {
	w := newWorld(t)
	w.put("AGENTS.md", "Once.")
	w.put("sub/AGENTS.md", "Sub.")
	w.put("sub/CLAUDE.md", "@AGENTS.md\nMore.")
	w.link("AGENTS.md", "CLAUDE.md")
	w.put(".agents/settings.json", `{"compat": true}`)
	if p := w.load(project.WithWorkdir("sub")); p.Memory != "Once.\n\n### sub/AGENTS.md\n\nSub.\n\n### sub/CLAUDE.md\n\n@AGENTS.md\nMore." {
		t.Errorf("%q", p.Memory)
	}
}

func TestIncludesGoEightDeep(t *testing.T) {
	w := newWorld(t)
	w.put("AGENTS.md", "@1.md")
	for i := 1; i <= 9; i++ {
		w.put(fmt.Sprintf("%d.md", i), fmt.Sprintf("depth %d\n@%d.md", i, i+1))
	}
	p := w.load()
	wantProblem(t, p, "8.md:2:1: @9.md is not included: it is more than 8 includes deep")
	if !strings.HasSuffix(p.Memory, "depth 8\n@9.md") {
		t.Errorf("%q", p.Memory)
	}
}

func TestAllMemoryTogetherHasALimit(t *testing.T) {
	w := newWorld(t)
	var lines []string
	for i := range 6 {
		w.put(fmt.Sprintf("%d.md", i), strings.Repeat("x", 900<<10))
		lines = append(lines, fmt.Sprintf("@%d.md", i))
	}
	w.put("AGENTS.md", strings.Join(lines, "\n"))
	p := w.load()
	if len(p.Memory) > 4<<20 {
		t.Errorf("%d bytes", len(p.Memory))
	}
	wantProblem(t, p, "AGENTS.md:5:1: @4.md is not included: all memory together is larger than 4 MiB")
}

func TestHostileMemoryTakesLittleTime(t *testing.T) {
	for name, text := range map[string]string{
		"a line of 10 MB":   strings.Repeat("x", 10<<20),
		"many at signs":     strings.Repeat("@a\n", 300_000),
		"many missing":      strings.Repeat("@a.md\n", 150_000),
		"many fences":       strings.Repeat("```\n", 250_000),
		"itself many times": strings.Repeat("@AGENTS.md\n", 90_000),
		"an endless fence":  strings.Repeat("`", 1<<20),
	} {
		w := newWorld(t)
		w.put("AGENTS.md", text)
		began := time.Now()
		p := w.load()
		if took := time.Since(began); took > time.Minute || len(p.Problems) > 600 {
			t.Errorf("%s: %v, %d problems", name, took, len(p.Problems))
		}
	}
}

func TestAMemoryFileThatCantBeReadIsAProblemAndTheRestCounts(t *testing.T) {
	w := newWorld(t)
	w.put("AGENTS.md/x", "")
	w.put("sub/AGENTS.md", "Sub.")
	p := w.load(project.WithWorkdir("sub"))
	wantProblem(t, p, "AGENTS.md: it is a directory")
	if p.Memory != "### sub/AGENTS.md\n\nSub." {
		t.Errorf("%q", p.Memory)
	}
}

func TestRulesComeInTheOrderOfTheirNumbers(t *testing.T) {
	w := newWorld(t)
	for name, text := range map[string]string{
		"10-ten.md": "ten", "2-two.md": "two\r\nmore\n\n", "010-b.md": "ten b", "zoo.md": "zoo", "alpha.md": "alpha", "x-1.md": "x", "1.5-odd.md": "odd", "empty.md": " \n",
		"0-zero.md": "zero", "99999999999999999999999-huge.md": "huge", "notes.txt": "no", "sub/1-deep.md": "no",
	} {
		w.put(".agents/rules/"+name, text)
	}
	p := w.load()
	wantNoProblem(t, p)
	const want = "zero\n\ntwo\nmore\n\nten b\n\nten\n\nhuge\n\nodd\n\nalpha\n\nx\n\nzoo"
	if d := cmp.Diff("## Project Rules\n\n"+want, p.Prompt()); d != "" {
		t.Error(d)
	}
}

func TestABrokenRuleIsAProblemAndTheRestCounts(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/rules/1-bad.md", "\xff")
	w.put(".agents/rules/2-good.md", "good")
	w.link("/etc/passwd", ".agents/rules/3-link.md")
	p := w.load()
	wantProblem(t, p, ".agents/rules/1-bad.md: line 1 is no UTF-8 text")
	wantProblem(t, p, ".agents/rules/3-link.md: a symbolic link leads out of the project")
	if p.Rules != "good" {
		t.Errorf("%q", p.Rules)
	}
}

func TestThePromptIsTheSameBytesEachTime(t *testing.T) {
	w := newWorld(t)
	w.put("AGENTS.md", "Memory.")
	for _, n := range []string{"b", "a", "c"} {
		w.put(".agents/rules/"+n+".md", "rule "+n)
		w.put(".agents/skills/"+n+"/SKILL.md", "---\nname: "+n+"\ndescription: does\n  "+n+"\n---\nbody of "+n)
	}
	first := w.load().Prompt()
	for range 5 {
		if again := w.load().Prompt(); again != first {
			t.Fatal(cmp.Diff(first, again))
		}
	}
	want := "## Project Rules\n\nrule a\n\nrule b\n\nrule c\n\n## Skills\n\nWhen a task fits one of these, get its instructions with the tool skill before you begin.\n\n- a: does a\n- b: does b\n- c: does c\n\n## Memory\n\nMemory."
	if d := cmp.Diff(want, first); d != "" {
		t.Error(d)
	}
}

func FuzzMemory(f *testing.F) {
	for _, s := range []string{"@a.md", "```\n@a.md\n```", "@../x\n@\n@a", "~~~\n@a.md", "@a.md\n@AGENTS.md\n@link.md"} {
		f.Add([]byte(s), []byte("inner\n@AGENTS.md"))
	}
	w := newWorld(f)
	w.put("~/secret.md", "a secret of the user")
	w.link(filepath.Join(w.home, "secret.md"), "link.md")
	f.Fuzz(func(t *testing.T, main, inner []byte) {
		for name, b := range map[string][]byte{"AGENTS.md": main, "a.md": inner} {
			if err := os.WriteFile(filepath.Join(w.root, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p, err := project.Load(t.Context(), w.root, w.options()...)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(p.Memory, "a secret of the user") {
			t.Errorf("it is out: %q", main)
		}
		if len(p.Memory) > len(main)+len(inner) {
			t.Errorf("%d bytes of %d and %d", len(p.Memory), len(main), len(inner))
		}
	})
}
