package project_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/project"
)

const release = `---
name: release
description: >-
  Makes a release. Use it when
  somebody asks for one.
license: MIT
compatibility: git 2.40, and the network
metadata:
  author: me
  version: 1.0
allowed-tools: Bash(git add:*) Read
---

# Steps

1. Tag it.
`

func TestOfASkillThePromptHasNameAndDescriptionAndTheToolTheRest(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/skills/release/SKILL.md", release)
	w.put(".agents/skills/release/scripts/tag.sh", "git tag")
	w.put(".agents/skills/release/references/api/x.md", "")
	w.put(".agents/skills/release/assets/logo.svg", "")
	w.put(".agents/skills/release/other.txt", "")
	p := w.load()
	wantNoProblem(t, p)
	if s := p.Prompt(); !strings.Contains(s, "\n- release: Makes a release. Use it when somebody asks for one.") || strings.Contains(s, "Tag it") {
		t.Errorf("%q", s)
	}
	k, ok := p.Skill("release")
	if d := cmp.Diff([]string{"Bash(git add:*)", "Read"}, k.AllowedTools); d != "" || !ok || k.License != "MIT" || k.Compatibility != "git 2.40, and the network" || k.Metadata["version"] != "1.0" || k.Layer != project.LayerProject {
		t.Errorf("%s %+v", d, k)
	}
	tool, ok := p.SkillTool()
	if !ok || tool.Definition().Name != "skill" || !tool.Definition().ReadOnly {
		t.Fatalf("%v", ok)
	}
	res, err := tool.Execute(t.Context(), json.RawMessage(`{"name": "release"}`))
	want := "# Skill release\n\nIts directory, which relative paths are relative to: .agents/skills/release\n\nIt needs: git 2.40, and the network\n\n# Steps\n\n1. Tag it.\n\nSupport files in that directory:\n- scripts/tag.sh\n- references/api/x.md\n- assets/logo.svg\n\nFrom now on, only these tools may be used, beside those that other active skills allow: Bash(git add:*), Read\n"
	if d := cmp.Diff(want, res.Content); d != "" || err != nil {
		t.Error(d, err)
	}
	if _, err = tool.Execute(t.Context(), json.RawMessage(`{"name": "relaese"}`)); err == nil || !strings.Contains(err.Error(), "did you mean release?") {
		t.Error(err)
	}
}

func TestWhatASkillNeedsIsOneLineForTheModel(t *testing.T) {
	k := project.Skill{Name: "x", Body: "Do it.", Compatibility: "git,\n  and\n# jq", License: "MIT", Metadata: map[string]string{"author": "me"}}
	if got, want := k.Instructions(), "# Skill x\n\nIt needs: git, and # jq\n\nDo it.\n"; got != want {
		t.Errorf("%q", got)
	}
	k.Compatibility = ""
	if got, want := k.Instructions(), "# Skill x\n\nDo it.\n"; got != want {
		t.Errorf("%q", got)
	}
}

func TestAllowedToolsAreReadInEitherSpelling(t *testing.T) {
	for text, want := range map[string][]string{
		`Read Bash(git add:*)`:                {"Read", "Bash(git add:*)"},
		`Read, Bash(git add:*), Grep`:         {"Read", "Bash(git add:*)", "Grep"},
		`[Read, "Bash(git add:*)"]`:           {"Read", "Bash(git add:*)"},
		"\n  - Read\n  - Bash(git add, -f:*)": {"Read", "Bash(git add, -f:*)"},
		``:                                    {},
	} {
		w := newWorld(t)
		w.put(".agents/skills/x/SKILL.md", "---\nname: x\ndescription: y\nallowed-tools: "+text+"\n---\n")
		p := w.load()
		wantNoProblem(t, p)
		if k, _ := p.Skill("x"); !cmp.Equal(want, k.AllowedTools) {
			t.Errorf("%q: %q", text, k.AllowedTools)
		}
	}
}

func TestABrokenSkillIsListedWithItsReason(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no front matter":         {"# Do it", "SKILL.md:1:1: it has no front matter"},
		"no end":                  {"---\nname: x\n", "SKILL.md:1:1: its front matter has no end"},
		"no YAML":                 {"---\nname: x\ndescription: Use it: now\n---\n", "SKILL.md:3:14: its front matter is no YAML"},
		"no name":                 {"---\ndescription: y\n---\n", "it has no name: add the line name: x"},
		"no description":          {"---\nname: x\n---\n", "it has no description"},
		"an empty description":    {"---\nname: x\ndescription: ' '\n---\n", "SKILL.md:3:1: its description is empty"},
		"a long description":      {"---\nname: x\ndescription: " + strings.Repeat("ä", 1025) + "\n---\n", "longer than 1024 characters"},
		"another name":            {"---\nname: y\ndescription: z\n---\n", `its name "y" is not that of its directory, "x"`},
		"a name with a rule":      {"---\nname: x(*)\ndescription: z\n---\n", `"x(*)" is no name for a skill`},
		"capital letters":         {"---\nname: X\ndescription: z\n---\n", `"X" is no name for a skill`},
		"double dashes":           {"---\nname: x--y\ndescription: z\n---\n", "is no name for a skill"},
		"a field twice":           {"---\nname: x\nname: x\ndescription: y\n---\n", `SKILL.md:3:1: its front matter is no YAML: mapping key "name" already defined`},
		"a list for a text":       {"---\nname: x\ndescription: [a]\n---\n", "description is no text"},
		"no list of fields":       {"---\n- name\n---\n", "is no list of fields"},
		"an alias":                {"---\nname: x\ndescription: &a y\nlicense: *a\n---\n", "description is no text"},
		"nested deeply":           {"---\nname: " + strings.Repeat("[", 8000) + "\n---\n", "nested too deeply"},
		"aliases of aliases":      {"---\nname: " + strings.Repeat("&a ", 5000) + "\n---\n", "nested too deeply"},
		"a large front matter":    {"---\nname: x\ndescription: y\nlicense: " + strings.Repeat("z", 20<<10) + "\n---\n", "larger than 16 KiB"},
		"a line of 10 MB":         {strings.Repeat("x", 10<<20), "larger than 1 MiB"},
		"no UTF-8":                {"---\nname: \xff\n---\n", "no UTF-8"},
		"a pattern that is wrong": {"---\nname: x\ndescription: y\npaths: 'src/[.go'\n---\n", "is no pattern of paths"},
		"an empty file":           {"", "it has no front matter"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(".agents/skills/x/SKILL.md", c.text)
			w.put(".agents/skills/good/SKILL.md", "---\nname: good\ndescription: works\n---\n")
			began := time.Now()
			p := w.load()
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it takes %v", took)
			}
			wantProblem(t, p, ".agents/skills/x/", c.want)
			if len(p.Skills) != 2 || p.Skills[1].Name != "x" || p.Skills[1].Broken == "" {
				t.Errorf("%+v", p.Skills)
			}
			if _, ok := p.Skill("x"); ok || strings.Contains(p.Prompt(), "- x") || !strings.Contains(p.Prompt(), "- good: works") {
				t.Errorf("%q", p.Prompt())
			}
		})
	}
}

func TestWhatIsNoSkillIsListedToo(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/skills/flat.md", "---\nname: flat\n---\n")
	w.put(".agents/skills/empty/notes.txt", "")
	w.put(".agents/skills/small/skill.md", "")
	w.put(".agents/skills/group/deep/SKILL.md", "---\nname: deep\ndescription: y\n---\n")
	w.link(w.home, ".agents/skills/away")
	w.link("../../real", ".agents/skills/linked")
	w.put("real/SKILL.md", "---\nname: linked\ndescription: y\n---\n")
	p := w.load()
	wantProblem(t, p, ".agents/skills/flat.md: a skill is a directory with a SKILL.md: move it to .agents/skills/flat/SKILL.md")
	wantProblem(t, p, ".agents/skills/empty: it has no SKILL.md")
	wantProblem(t, p, ".agents/skills/away: a symbolic link leads out of the project")
	var got []string
	for _, k := range p.Skills {
		if k.Broken == "" {
			got = append(got, k.Name)
		}
	}
	if d := cmp.Diff([]string{"deep", "linked"}, got); d != "" || len(p.Skills) != 6 {
		t.Errorf("%s %+v", d, p.Skills)
	}
}

func TestAnUnknownFieldOfASkillHasNoEffectAndIsAProblem(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/skills/x/SKILL.md", "---\nname: x\ndescription: y\ncontext: fork\nallowed_tools: Bash\n---\n")
	p := w.load()
	wantProblem(t, p, `.agents/skills/x/SKILL.md:4:1: there is no field "context": it has no effect`)
	wantProblem(t, p, `SKILL.md:5:1: there is no field "allowed_tools"`, "did you mean allowed-tools?")
	if _, ok := p.Skill("x"); !ok {
		t.Error("it is gone")
	}
}

func TestTheProjectsSkillBeatsTheUsersOfItsName(t *testing.T) {
	w := newWorld(t)
	w.put("~/.agents/skills/x/SKILL.md", "---\nname: x\ndescription: the user's\n---\n")
	w.put("~/.agents/skills/mine/SKILL.md", "---\nname: mine\ndescription: the user's\n---\nBody.")
	w.put("~/.agents/skills/mine/scripts/a.sh", "")
	w.put(".agents/skills/x/SKILL.md", "---\nname: x\ndescription: the project's\n---\n")
	p := w.load()
	wantProblem(t, p, "~/.agents/skills/x/SKILL.md: there is another skill x, which counts: .agents/skills/x/SKILL.md")
	if k, _ := p.Skill("x"); k.Description != "the project's" {
		t.Errorf("%+v", k)
	}
	tool, _ := p.SkillTool()
	res, err := tool.Execute(t.Context(), json.RawMessage(`{"skill": "mine"}`))
	if err != nil || !strings.Contains(res.Content, filepath.Join(w.home, ".agents", "skills", "mine")) || !strings.Contains(res.Content, "- scripts/a.sh") {
		t.Errorf("%v %q", err, res.Content)
	}
	w.put(".agents/skills/x/SKILL.md", "broken")
	if k, _ := w.load().Skill("x"); k.Description != "the user's" {
		t.Errorf("a broken one takes the place of one that works: %+v", k)
	}
}

func TestASkillThatBecomesALinkAfterwardsShowsNothingOfElsewhere(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/skills/x/SKILL.md", "---\nname: x\ndescription: y\n---\n")
	w.put("~/scripts/secret.sh", "")
	p := w.load()
	if err := os.RemoveAll(filepath.Join(w.root, ".agents/skills/x")); err != nil {
		t.Fatal(err)
	}
	w.link(w.home, ".agents/skills/x")
	if files := p.Skills[0].Files(); len(files) != 0 {
		t.Errorf("%v", files)
	}
}

func TestSkillsAreMatchedByKeywordsAndPaths(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/skills/none/SKILL.md", "---\nname: none\ndescription: y\n---\n")
	w.put(".agents/skills/test/SKILL.md", "---\nname: test\ndescription: y\nkeywords: test, unit test, C++, 発表\n---\n")
	w.put(".agents/skills/go/SKILL.md", "---\nname: go\ndescription: y\npaths: ['**/*.go', 'cmd/{a,b}/**']\n---\n")
	p := w.load()
	wantNoProblem(t, p)
	for _, c := range []struct {
		prompt string
		paths  []string
		want   string
	}{
		{"", nil, ""},
		{"Say hello.", []string{"README.md"}, ""},
		{"Run the TEST, please", nil, "test"},
		{"the latest tests", nil, ""},
		{"write C++", nil, "test"},
		{"明日の発表を作る", nil, "test"},
		{"Fix it", []string{"main.go"}, "go"},
		{"test it", []string{"a/b/c.go"}, "go test"},
		{"Fix it", []string{"cmd/b/x/y.txt"}, "go"},
		{"Fix it", []string{"cmd/c/y.txt"}, ""},
	} {
		var got []string
		for _, k := range p.Match(c.prompt, c.paths) {
			got = append(got, k.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestWithoutASkillThereIsNoTool(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/skills/x/SKILL.md", "broken")
	if _, ok := w.load().SkillTool(); ok {
		t.Error("there is one")
	}
}

func FuzzFrontMatter(f *testing.F) {
	f.Add([]byte(release))
	f.Add([]byte("---\nname: x\ndescription: &a [*a]\n---\n"))
	w := newWorld(f)
	w.put(".agents/skills/release/SKILL.md", "")
	w.put(".agents/agents/a.md", "")
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, name := range []string{".agents/skills/release/SKILL.md", ".agents/agents/a.md"} {
			if err := os.WriteFile(filepath.Join(w.root, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p, err := project.Load(t.Context(), w.root, w.options()...)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Skills) != 1 || len(p.Subagents) < 3 {
			t.Errorf("%+v %+v", p.Skills, p.Subagents)
		}
		for _, k := range p.Skills {
			if k.Broken == "" && (k.Name != "release" || strings.TrimSpace(k.Description) == "") {
				t.Errorf("%+v", k)
			}
		}
	})
}
