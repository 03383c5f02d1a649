package pack_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/pack"
)

// skilled writes a pack with these skills and the files of a text: lines "== name", then content. A line "-> target" is a link.
func skilled(t *testing.T, skills, files string) string {
	t.Helper()
	dir := t.TempDir()
	pack := filepath.Join(dir, "p", "test.pack.json")
	put := func(name, text string) {
		name = filepath.Join(dir, "p", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(filepath.FromSlash(strings.TrimSpace(target)), name)
		} else {
			err = os.WriteFile(name, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("test.pack.json", strings.Replace(string(minimal(`"system_template": "x", "tools": ["look"]`)), `"prompts"`, `"tools": {"look": {"name": "look", "description": "Look."}}, "skills": `+skills+`, "prompts"`, 1))
	for _, f := range strings.Split(files, "== ")[1:] {
		name, text, _ := strings.Cut(f, "\n")
		put(name, text)
	}
	return pack
}

const refunds = "== skills/refunds/SKILL.md\n---\nname: refunds\ndescription: How refunds go.\n---\nAsk for {{the}} receipt.\n"

func TestTheSkillsOfAPackAreThoseThatItsEntriesLeadTo(t *testing.T) {
	const more = refunds + "== skills/eu/vat/SKILL.md\n---\nname: vat\ndescription: VAT\nallowed-tools: look, agent\ncompatibility: a calculator\nkeywords: tax\n---\n== skills/eu/vat/notes/x.txt\n== skills/README.md\nRead me.\n== skills/.hidden/SKILL.md\nbroken\n"
	r := pack.LoadedSkill{Name: "refunds", Description: "How refunds go.", Instructions: "Ask for {{the}} receipt.", Dir: "skills/refunds", File: "skills/refunds/SKILL.md"}
	pre := r
	pre.Preload = true
	vat := pack.LoadedSkill{Name: "vat", Description: "VAT", AllowedTools: []string{"look"}, Compatibility: "a calculator", Keywords: []string{"tax"}, Dir: "skills/eu/vat", File: "skills/eu/vat/SKILL.md"}
	tone := pack.LoadedSkill{Name: "Tone of voice", Description: "How we speak", Instructions: "Be {{kind}}."}
	for name, c := range map[string]struct {
		skills, files string
		want          []pack.LoadedSkill
	}{
		"none":             {`[]`, more, nil},
		"a directory":      {`["skills/refunds"]`, more, []pack.LoadedSkill{r}},
		"its SKILL.md":     {`[{"path": "./skills/refunds/SKILL.md", "preload": true}]`, more, []pack.LoadedSkill{pre}},
		"directories":      {`["./skills/"]`, more, []pack.LoadedSkill{r, vat}},
		"the pack's own":   {`["."]`, more, []pack.LoadedSkill{r, vat}},
		"one of them more": {`["skills", {"path": "skills/refunds", "preload": true}, "skills/refunds"]`, more, []pack.LoadedSkill{pre, vat}},
		"in the pack":      {`["skills/refunds", {"name": "Tone of voice", "description": "How we speak", "instructions": "Be {{kind}}."}]`, more, []pack.LoadedSkill{tone, r}},
		"a package":        {`["@acme/skills"]`, more, nil},
		"a file": {
			`["skills/returns.md"]`, "== skills/returns.md\n\uFEFF---\nname: sending-back\ndescription: d\n---\nBody\n",
			[]pack.LoadedSkill{{Name: "sending-back", Description: "d", Instructions: "Body", File: "skills/returns.md"}},
		},
		"a link within": {`["skills/refunds"]`, strings.ReplaceAll(refunds, "== skills", "== real") + "== skills/refunds\n-> ../real/refunds", []pack.LoadedSkill{r}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := pack.Load(skilled(t, c.skills, c.files))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, p.LoadedSkills()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestASkillThatCantBeUsedIsAProblemWithItsPathAndReason(t *testing.T) {
	const head = "---\nname: refunds\ndescription: d\n---\n"
	for name, c := range map[string]struct{ skills, files, want string }{
		"missing":               {`["skills/refunds"]`, "", `skills[0]: there is no skills/refunds: paths are relative to the pack's file`},
		"above":                 {`[{"path": "../skills"}]`, "== ../skills/refunds/SKILL.md\n" + head, `skills[0]: ../skills leads out of the pack's directory`},
		"above, in the middle":  {`["a/../../skills"]`, "", `skills[0]: a/../../skills leads out of the pack's directory`},
		"absolute":              {`["/etc"]`, "", `skills[0]: /etc leads out of the pack's directory`},
		"a link out":            {`["skills"]`, "== ../away/SKILL.md\n" + head + "== skills\n-> ../away", `skills[0]: skills: a link leads out of the pack's directory`},
		"a link out, below":     {`["skills"]`, "== ../away/SKILL.md\n" + head + "== skills/refunds\n-> ../../away", `skills[0]: skills/refunds: a link leads out of the pack's directory`},
		"a file that leads out": {`["skills"]`, "== ../SKILL.md\n" + head + "== skills/refunds/SKILL.md\n-> ../../../SKILL.md", `skills[0]: skills/refunds/SKILL.md: a link leads out of the pack's directory`},
		"a link to nothing":     {`["skills"]`, "== skills/refunds\n-> nothing", `skills[0]: skills/refunds can't be read: no such file`},
		"nothing in it":         {`["skills"]`, "== skills/a/x.md\nx", `skills[0]: there is no SKILL.md in skills, or in a directory of it`},
		"too deep":              {`["."]`, "== 1/2/3/4/5/refunds/SKILL.md\n" + head, `skills[0]: there is no SKILL.md in ., or in a directory of it`},
		"its case":              {`["skills"]`, "== skills/refunds/skill.md\n" + head, `skills[0]: skills/refunds/skill.md: its name is not SKILL.md: rename it`},
		"no front matter":       {`["skills"]`, "== skills/refunds/SKILL.md\nhello", `skills[0]: skills/refunds/SKILL.md:1:1: it has no front matter`},
		"bad front matter":      {`["skills"]`, "== skills/refunds/SKILL.md\n---\nname: [\n---\n", `skills[0]: skills/refunds/SKILL.md:2`},
		"no description":        {`["skills"]`, "== skills/refunds/SKILL.md\n---\nname: refunds\n---\n", `skills[0]: skills/refunds/SKILL.md: it has no description`},
		"another name":          {`["skills"]`, "== skills/returns/SKILL.md\n" + head, `skills[0]: skills/returns/SKILL.md:2:1: its name "refunds" is not that of its directory, "returns"`},
		"a directory":           {`["skills"]`, "== skills/refunds/SKILL.md/x\n", `skills[0]: skills/refunds/SKILL.md can't be read: it is no ordinary file`},
		"no text":               {`["skills"]`, "== skills/refunds/SKILL.md\n" + head + "\x00", `skills[0]: skills/refunds/SKILL.md can't be read: it is no UTF-8 text`},
		"too large":             {`["skills"]`, "== skills/refunds/SKILL.md\n" + head + strings.Repeat("x", 1<<20), `skills[0]: skills/refunds/SKILL.md can't be read: it has more than 1048576 bytes`},
		"two of a name":         {`["a", "b"]`, "== a/refunds/SKILL.md\n" + head + "== b/refunds/SKILL.md\n" + head, `skills[1]: b/refunds/SKILL.md has the name "refunds", as a/refunds/SKILL.md has: rename one`},
		"a name of the pack's":  {`[{"name": "refunds", "description": "d", "instructions": "i"}, "a"]`, "== a/refunds/SKILL.md\n" + head, `skills[1]: a/refunds/SKILL.md has the name "refunds", as skills[0] has: rename one`},
	} {
		t.Run(name, func(t *testing.T) {
			file := skilled(t, c.skills, c.files)
			if name == "its case" {
				if _, err := os.Stat(filepath.Join(filepath.Dir(file), "skills/refunds/SKILL.md")); err == nil {
					t.Skip("names have no case here")
				}
			}
			_, err := pack.Load(file)
			var wrong *pack.Error
			if !errors.As(err, &wrong) || !errdefs.Validation.Is(err) || len(wrong.Problems) != 1 || wrong.File != file {
				t.Fatalf("%v", err)
			}
			if p := wrong.Problems[0]; !strings.HasPrefix(p.String(), c.want) || p.Line == 0 || p.Column == 0 || p.Remedy == "" {
				t.Errorf("%s\nwant %s", p, c.want)
			}
		})
	}
}

// One look tells everything: several files of a directory, and what is wrong with the pack itself.
func TestAllThatIsWrongWithSkillsIsToldAtOnce(t *testing.T) {
	file := skilled(t, `["skills", "none", ""]`, "== skills/a/SKILL.md\nx\n== skills/b/SKILL.md\nx\n")
	_, err := pack.Load(file)
	var wrong *pack.Error
	if !errors.As(err, &wrong) || len(wrong.Problems) != 4 {
		t.Fatal(err)
	}
	var paths []string
	for _, p := range wrong.Problems {
		paths = append(paths, p.Path)
	}
	if d := cmp.Diff([]string{"skills[0]", "skills[0]", "skills[1]", "skills[2]"}, paths); d != "" {
		t.Error(d, err)
	}
}

func TestWhatOfASkillHasNoEffectIsWarnedOf(t *testing.T) {
	p, err := pack.Load(skilled(t, `["skills", "@acme/x"]`, "== skills/refunds/SKILL.md\n---\nname: refunds\ndescription: d\nallowed-tools: look Bash(git:*)\npaths: '*.go'\ncontext: fork\n---\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range p.Warnings {
		got = append(got, w.String()[:strings.Index(w.String(), " (line")])
	}
	if d := cmp.Diff([]string{
		`skills[0]: skills/refunds/SKILL.md:6:1: there is no field "context": it has no effect: remove it`,
		`skills[0]: skills/refunds/SKILL.md:5:1: paths has no effect: conversations have no project with files: use keywords`,
		`skills[0]: skills/refunds/SKILL.md:4:1: "Bash(git:*)" is no tool of the pack, and allows nothing: name one of the pack's tools or agents`,
		`skills[1]: it has no effect: packages of skills can't be fetched: name a directory or a file`,
	}, got); d != "" {
		t.Error(d)
	}
	if tools := p.LoadedSkills()[0].AllowedTools; fmt.Sprint(tools) != "[look]" {
		t.Error(tools)
	}
}

func TestAToolOfAPackWithSkillsIsNotCalledSkill(t *testing.T) {
	with := func(skills string) []byte {
		return []byte(strings.Replace(string(minimal(`"system_template": "x"`)), `"prompts"`, `"tools": {"skill": {"name": "skill", "description": "d"}}, "skills": `+skills+`, "prompts"`, 1))
	}
	problems, _ := pack.Validate(with(`["x"]`))
	if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), "tools.skill: it has the name of the tool that gives the pack's skills: give it another name") {
		t.Error(problems)
	}
	for _, skills := range []string{`[]`, `["@acme/x"]`} {
		if problems, _ := pack.Validate(with(skills)); len(problems) > 0 {
			t.Error(skills, problems)
		}
	}
}

func TestABlocklistMayNameTheToolForSkills(t *testing.T) {
	const one = `"skills": [{"name": "a", "description": "b", "instructions": "c"}], "prompts"`
	check := func(prompt, root, want string) {
		t.Helper()
		problems, _ := pack.Validate([]byte(strings.Replace(string(minimal(prompt)), `"prompts"`, root, 1)))
		if got := fmt.Sprint(problems); len(problems) > 1 || !strings.Contains(got, want) || (want == "") != (len(problems) == 0) {
			t.Errorf("%s %s: %v", prompt, root, problems)
		}
	}
	blocked := `"system_template": "x", "tool_policy": {"blocklist": ["skill"]}`
	check(blocked, one, "")
	check(blocked, `"prompts"`, `blocklist[0]: there is no tool "skill" in the pack`)
	check(`"system_template": "x", "tools": ["skill"]`, one, "every prompt has it unless its blocklist names it")
	check(`"system_template": "x", "tool_policy": {"tool_choice": "required"}`, one, "")
	check(`"system_template": "x", "tool_policy": {"tool_choice": "required", "blocklist": ["skill"]}`, one, "a call is required")
}

// A pack is kept by its content, its skills are not: what they are now counts.
func TestAnEditedSkillIsSeenByTheNextLoad(t *testing.T) {
	file := skilled(t, `["skills"]`, refunds)
	at := filepath.Join(filepath.Dir(file), "skills/refunds/SKILL.md")
	first, err := pack.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte("---\nname: refunds\ndescription: New.\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := pack.Load(file)
	if err != nil || second.LoadedSkills()[0].Description != "New." || first.LoadedSkills()[0].Description != "How refunds go." || first.Prompts["chat"] != second.Prompts["chat"] {
		t.Errorf("%v, %v, %v", err, first.LoadedSkills(), second.LoadedSkills())
	}
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	if _, err := pack.Load(file); err == nil {
		t.Error("it is gone, and there is no problem")
	}
	if err := os.WriteFile(at, []byte("---\nname: refunds\ndescription: Back.\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := pack.Load(file); err != nil || p.LoadedSkills()[0].Description != "Back." || len(p.Warnings) > 0 {
		t.Error(err)
	}
}

func TestAPackThatIsNoFileHasTheSkillsThatStandInIt(t *testing.T) {
	data := []byte(strings.Replace(string(minimal(`"system_template": "x"`)), `"prompts"`, `"skills": ["a", {"name": "b", "description": "c", "instructions": "d"}], "prompts"`, 1))
	for range 2 { // it is kept, too
		p, err := pack.Parse(data)
		if err != nil || len(p.LoadedSkills()) != 1 || p.LoadedSkills()[0].Name != "b" {
			t.Fatal(err, p)
		}
		if len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0].String(), "skills[0]: it has no effect: paths start at the pack's file, and this pack is in none") {
			t.Error(p.Warnings)
		}
	}
}

func ExamplePack_LoadedSkills() {
	p, err := pack.Load("testdata/full.pack.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, k := range p.LoadedSkills() {
		fmt.Printf("%s: %s (%q)\n", k.Name, k.Description, k.Dir)
	}
	// Output:
	// escalation: When stuck ("")
	// orders: How orders are looked up and changed. ("skills/orders")
}
