package pawl_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
)

// A pack's skills lie beside it. The model is told their names, and gets the rest when it asks for it.
func ExampleOpen_skills() {
	m := scripted.New(
		scripted.Calls(scripted.Call{ID: "1", Name: "skill", Input: `{"name":"refunds"}`}),
		scripted.Calls(scripted.Call{ID: "2", Name: "skill", Input: `{"name":"refunds","file":"references/limits.md"}`}),
		scripted.Text("You get it back."),
	)
	conv, err := pawl.Open("testdata/skills.pack.json", "chat", pawl.WithModel(m))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conv.Close() }()
	for e, err := range conv.Stream(context.Background(), "I want my money back.") {
		if err != nil {
			fmt.Println(err)
			return
		}
		if done, ok := e.Data.(journal.ToolFinished); ok {
			fmt.Println(done.Content)
		}
	}
	// Output:
	// # Skill refunds
	//
	// Its directory, which relative paths are relative to: skills/refunds
	//
	// Ask for the order. What may be paid back is in references/limits.md.
	//
	// Support files in that directory:
	// - references/limits.md
	//
	// Up to 50 Euro, within 30 days.
}

// withSkills writes a pack with skills, and files beside it by their names.
func withSkills(t *testing.T, members, skills string, files map[string]string) string {
	t.Helper()
	file := packOf(t, members, `"skills": `+skills+`, `)
	for name, text := range files {
		at := filepath.Join(filepath.Dir(file), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

func skillMD(name, rest, body string) map[string]string {
	return map[string]string{"skills/" + name + "/SKILL.md": "---\nname: " + name + "\ndescription: About " + name + ".\n" + rest + "---\n" + body + "\n"}
}

func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		for name, text := range m {
			out[name] = text
		}
	}
	return out
}

// offered are the names of the tools of each request.
func (a *heeding) offered() (all []string) {
	for _, r := range a.asked() {
		var names []string
		for _, t := range r.Tools {
			names = append(names, t.Name)
		}
		all = append(all, strings.Join(names, " "))
	}
	return all
}

const skillsOf = "Be brief.\n\n## Skills\n\nWhen a task fits one of these, get its instructions with the tool skill before you begin.\n\n"

func TestSkillsAreListedInOrderAndTheSameInEachTurn(t *testing.T) {
	m := listening(scripted.Text("1"), scripted.Text("2"))
	c := converse(t, withSkills(t, plain, `["skills", {"name": "manners", "description": "How to\nspeak", "instructions": "Be kind."}]`, merged(skillMD("zoo", "", "z"), skillMD("ant", "", "a"))), m)
	send(t, c, "a")
	c.SetVar("x", 1)
	send(t, c, "b")
	want := skillsOf + "- ant: About ant.\n- manners: How to speak\n- zoo: About zoo."
	wantLines(t, m.systems(), want, want)
	wantLines(t, m.offered(), "skill", "skill")
}

func TestAPackWithoutSkillsHasNoneOfIt(t *testing.T) {
	for name, file := range map[string]string{"none": packOf(t, plain), "empty": withSkills(t, plain, `[]`, nil), "a package": withSkills(t, plain, `["@acme/x"]`, nil)} {
		m := listening(scripted.Text("1"))
		send(t, converse(t, file, m), "a")
		wantLines(t, m.systems(), "Be brief.")
		if got := m.offered(); got[0] != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestASkillIsReadWithItsFilesAndNothingElse(t *testing.T) {
	m := listening(scripted.Calls(
		callOf("1", "skill", `{"name":"ant"}`), callOf("2", "skill", `{"name":"ant","file":"references/a.md"}`), callOf("3", "skill", `{"name":"ant","file":"references/../../../test.pack.json"}`),
		callOf("4", "skill", `{"name":"ant","file":"notes.md"}`), callOf("5", "skill", `{"name":"amt"}`), callOf("6", "skill", `{"name":"manners"}`), callOf("7", "skill", `{"name":"manners","file":"references/a.md"}`),
		callOf("8", "skill", `{"name":"ant","file":"references/away.md"}`), callOf("9", "skill", `{"name":"ant","file":"references/big.md"}`), callOf("10", "skill", `{"name":"ant","file":"SKILL.md"}`),
	), scripted.Text("done"))
	file := withSkills(t, plain, `["skills", {"name": "manners", "description": "d", "instructions": "Say {{name}}."}]`, merged(skillMD("ant", "compatibility: paper\n", "Ask {{name}}, {{fragments.none}}."),
		map[string]string{"skills/ant/references/a.md": "Text of {{a}}.", "skills/ant/notes.md": "secret", "skills/ant/references/big.md": strings.Repeat("x", 200<<10)}))
	if err := os.Symlink("../../../test.pack.json", filepath.Join(filepath.Dir(file), "skills/ant/references/away.md")); err != nil {
		t.Fatal(err)
	}
	c := converse(t, file, m)
	send(t, c, "a")
	got := outcomes(t, c)
	for i, want := range []string{
		"# Skill ant\n\nIts directory, which relative paths are relative to: skills/ant\n\nIt needs: paper\n\nAsk {{name}}, {{fragments.none}}.\n\nSupport files in that directory:\n- references/a.md\n- references/big.md\n",
		"Text of {{a}}.", `the skill ant has no file "../../test.pack.json"`, `the skill ant has no file "notes.md". Its files are: references/a.md, references/big.md`, `there is no skill "amt", did you mean ant?`,
		"# Skill manners\n\nSay {{name}}.\n", `the skill manners has no file "references/a.md". Its files are: none`, "a symbolic link leads out of the skill", "it is larger than 100 KiB", `has no file "SKILL.md"`,
	} {
		if text := got[fmt.Sprint(i+1)]; !strings.Contains(text, want) {
			t.Errorf("%d: %s\nwant %s", i+1, text, want)
		}
	}
}

func TestAPreloadedSkillIsInThePromptAtOnce(t *testing.T) {
	m := listening(scripted.Text("1"))
	c := converse(t, withSkills(t, plain, `["skills", {"path": "skills/bee", "preload": true}]`, merged(skillMD("ant", "", "a"), skillMD("bee", "keywords: honey\n", "Say {{name}}."))), m)
	send(t, c, "honey")
	wantLines(t, m.systems(), skillsOf+"- ant: About ant.\n\n# Skill bee\n\nIts directory, which relative paths are relative to: skills/bee\n\nSay {{name}}.")
	if got := transcript(t, c); len(got) != 2 {
		t.Errorf("it is told twice: %s", got)
	}
}

func TestABlocklistTakesTheSkillsAwayAndLeavesWhatIsPreloaded(t *testing.T) {
	for name, policy := range map[string]string{"blocklist": `"blocklist": ["skill"]`, "none": `"tool_choice": "none"`} {
		m := listening(scripted.Text("1"))
		c := converse(t, withSkills(t, plain+`, "tool_policy": {`+policy+`}`, `["skills", {"path": "skills/bee", "preload": true}]`, merged(skillMD("ant", "keywords: ant\n", "a"), skillMD("bee", "", "Be kind."))), m)
		send(t, c, "an ant")
		wantLines(t, m.systems(), "Be brief.\n\n# Skill bee\n\nIts directory, which relative paths are relative to: skills/bee\n\nBe kind.")
		if got := m.offered(); got[0] != "" || len(transcript(t, c)) != 2 {
			t.Errorf("%s: %s %s", name, got, transcript(t, c))
		}
	}
}

// outcomes are what became of the calls, by their ids.
func outcomes(t *testing.T, c *pawl.Conversation) map[string]string {
	t.Helper()
	h, err := c.Messages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range h.All() {
		for r := range message.Of[message.ToolResult](m) {
			out[r.Call] = r.Content
		}
	}
	return out
}

func handling(c *pawl.Conversation) *pawl.Conversation {
	for _, name := range []string{"look", "pay"} {
		c.OnTool(name, func(map[string]any) (any, error) { return name + " ran", nil })
	}
	return c
}

func wantOutcomes(t *testing.T, c *pawl.Conversation, want map[string]string) {
	t.Helper()
	got := outcomes(t, c)
	for id, text := range want {
		if !strings.Contains(got[id], text) {
			t.Errorf("call %s: %q, want %q", id, got[id], text)
		}
	}
}

const notAllowed = "is not among what the active skills allow (ant: look)"

func TestWhatAnActiveSkillAllowsIsAllThatATurnMayUse(t *testing.T) {
	only := skillMD("ant", "allowed-tools: look\n", "a")
	file := withSkills(t, looks, `["skills"]`, merged(only, skillMD("bee", "", "b"), map[string]string{"skills/ant/references/a.md": "A"}))
	c := handling(converse(t, file, scripted.New(
		scripted.Calls(callOf("1", "pay", `{}`)), scripted.Calls(callOf("2", "skill", `{"name":"ant","file":"references/a.md"}`)), scripted.Calls(callOf("3", "pay", `{}`)),
		scripted.Calls(callOf("4", "skill", `{"name":"ant"}`)), scripted.Calls(callOf("5", "pay", `{}`), callOf("6", "look", `{"city":"Bern"}`), callOf("7", "skill", `{"name":"bee"}`)), scripted.Text("done"),
		scripted.Calls(callOf("8", "pay", `{}`)), scripted.Text("done"),
	)))
	send(t, c, "a")
	send(t, c, "b") // the skill was of the turn before
	wantOutcomes(t, c, map[string]string{"1": "pay ran", "2": "A", "3": "pay ran", "4": "From now on, only these tools may be used", "5": notAllowed, "6": "look ran", "7": "# Skill bee", "8": "pay ran"})
}

func TestAPreloadedSkillBindsFromTheBeginning(t *testing.T) {
	file := withSkills(t, looks, `[{"path": "skills/ant", "preload": true}, "skills"]`, merged(skillMD("ant", "allowed-tools: look\n", "a"), skillMD("cat", "allowed-tools: pay\n", "c")))
	c := handling(converse(t, file, scripted.New(
		scripted.Calls(callOf("1", "pay", `{}`), callOf("2", "look", `{"city":"Bern"}`)), scripted.Calls(callOf("3", "skill", `{"name":"cat"}`)), scripted.Calls(callOf("4", "pay", `{}`)), scripted.Text("done"),
		scripted.Calls(callOf("5", "pay", `{}`)), scripted.Text("done"),
	)))
	send(t, c, "a")
	send(t, c, "b")
	wantOutcomes(t, c, map[string]string{"1": notAllowed, "2": "look ran", "3": "# Skill cat", "4": "pay ran", "5": notAllowed})
}

// A skill gives nothing that the prompt has not: what it allows is what of the prompt's own tools stays.
func TestASkillGrantsNoTool(t *testing.T) {
	m := listening(scripted.Calls(callOf("1", "skill", `{"name":"ant"}`)), scripted.Calls(callOf("2", "pay", `{}`)), scripted.Text("done"))
	c := converse(t, withSkills(t, `"system_template": "Be brief.", "tools": ["look"]`, `["skills"]`, skillMD("ant", "allowed-tools: pay, look\n", "a")), m)
	c.OnTool("look", func(map[string]any) (any, error) { return "look ran", nil })
	c.OnTool("pay", func(map[string]any) (any, error) { t.Error("it was paid"); return nil, nil })
	send(t, c, "a")
	if got := m.offered(); got[1] != "look skill" || strings.Contains(outcomes(t, c)["2"], "ran") {
		t.Errorf("%s %v", got, outcomes(t, c))
	}
}

// What is active is on record: it binds in the process that goes on with the turn.
func TestASkillThatIsActiveBindsInTheProcessThatGoesOn(t *testing.T) {
	file := withSkills(t, looks, `["skills"]`, merged(skillMD("ant", "allowed-tools: look\n", "a")))
	store := journal.Memory()
	script := []scripted.Turn{scripted.Calls(callOf("1", "skill", `{"name":"ant"}`)), scripted.Calls(callOf("2", "look", `{"city":"Bern"}`)), scripted.Calls(callOf("3", "pay", `{}`)), scripted.Text("done")}
	asks := func(c *pawl.Conversation) *pawl.Conversation {
		handling(c).OnToolAsync("look", func(map[string]any) pawl.Pending { return pawl.Pending{Reason: "see"} }, func(map[string]any) (any, error) { return "look ran", nil })
		return c
	}
	first := asks(converse(t, file, scripted.New(script...), pawl.WithJournal(store), pawl.WithSession("s")))
	if resp := send(t, first, "a"); resp.Status != agent.StatusInterrupted {
		t.Fatalf("the turn is %s", resp.Status)
	}
	second, err := pawl.Resume(t.Context(), "s", file, "chat", pawl.WithJournal(store), pawl.WithModel(scripted.New(script...)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	asks(second)
	if err := second.ResolveTool(t.Context(), "2"); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Continue(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantOutcomes(t, second, map[string]string{"2": "look ran", "3": notAllowed})
}

// A person is not asked about a call that an active skill refuses.
func TestNobodyIsAskedAboutWhatASkillRefuses(t *testing.T) {
	c := handling(converse(t, withSkills(t, looks, `[{"path": "skills", "preload": true}]`, skillMD("ant", "allowed-tools: look\n", "a")), scripted.New(scripted.Calls(callOf("1", "pay", `{"amount":500}`)), scripted.Text("done"))))
	c.OnToolAsync("pay", large, func(map[string]any) (any, error) { return "pay ran", nil })
	if resp := send(t, c, "a"); resp.Status != agent.StatusCompleted {
		t.Errorf("the turn is %s", resp.Status)
	}
	wantOutcomes(t, c, map[string]string{"1": notAllowed})
}

func TestKeywordsActivateASkill(t *testing.T) {
	file := withSkills(t, looks, `["skills"]`, skillMD("ant", "keywords: ants\nallowed-tools: look\n", "Count {{them}}."))
	c := handling(converse(t, file, scripted.New(scripted.Calls(callOf("1", "pay", `{}`)), scripted.Text("done"), scripted.Calls(callOf("2", "pay", `{}`)), scripted.Text("done"))))
	send(t, c, "Where are the ANTS?")
	if got := transcript(t, c); !strings.HasPrefix(got[0], "user: This prompt activates a skill.\n\n# Skill ant") || !strings.Contains(got[0], "Count {{them}}.") || got[1] != "user: Where are the ANTS?" {
		t.Errorf("%s", got)
	}
	send(t, c, "And the bees?")
	wantOutcomes(t, c, map[string]string{"1": notAllowed, "2": "pay ran"})
}

func TestAnAgentOfThePackIsAToolThatASkillMayAllow(t *testing.T) {
	const agents = `"agents": {"entry": "chat", "members": {"chat": {"description": "c"}, "other": {"description": "o"}}}, `
	for _, allowed := range []string{"look", "other"} {
		file := withSkills(t, `"system_template": "Be brief."}, "other": {"id": "other", "name": "Other", "version": "1.0.0", "system_template": "Other."`, `[{"path": "skills/ant", "preload": true}], `+strings.TrimSuffix(agents, ", "),
			skillMD("ant", "allowed-tools: "+allowed+"\n", "a"))
		m := listening(scripted.Calls(callOf("1", "transfer_to_other", `{}`)), scripted.Text("done"), scripted.Text("done"))
		resp := send(t, converse(t, file, m), "a")
		systems := m.systems()
		if handed := strings.HasPrefix(systems[len(systems)-1], "Other.\n\n# Skill ant"); handed != (allowed == "other") {
			t.Errorf("%s: %v %s", allowed, systems, resp.Text())
		}
	}
}

func TestAnEditedSkillIsSeenByTheNextOpen(t *testing.T) {
	file := withSkills(t, plain, `["skills"]`, skillMD("ant", "", "a"))
	m := listening(scripted.Text("1"), scripted.Text("2"), scripted.Text("3"))
	first := converse(t, file, m)
	send(t, first, "a")
	at := filepath.Join(filepath.Dir(file), "skills/ant/SKILL.md")
	if err := os.WriteFile(at, []byte("---\nname: ant\ndescription: Another.\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	send(t, first, "b") // it goes on as it began
	send(t, converse(t, file, m), "c")
	wantLines(t, m.systems(), skillsOf+"- ant: About ant.", skillsOf+"- ant: About ant.", skillsOf+"- ant: Another.")
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	if _, err := pawl.Open(file, "chat", pawl.WithModel(m)); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "skills[0]: there is no SKILL.md in skills") {
		t.Error(err)
	}
}

func TestAForkHasTheSkillsToo(t *testing.T) {
	m := listening(scripted.Text("1"), scripted.Text("2"))
	c := converse(t, withSkills(t, plain, `["skills"]`, skillMD("ant", "", "a")), m)
	send(t, c, "a")
	fork, err := c.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fork.Close() }()
	send(t, fork, "b")
	if systems := m.systems(); systems[0] != systems[1] || !slices.Equal(m.offered(), []string{"skill", "skill"}) {
		t.Errorf("%s", systems)
	}
}
