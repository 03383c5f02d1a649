//go:build unix

package pawl_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/tool"
)

func skillFile(name, fields string) map[string]string {
	return map[string]string{".agents/skills/" + name + "/SKILL.md": "---\nname: " + name + "\ndescription: About " + name + ".\n" + fields + "---\n\nHow to " + name + ".\n"}
}

func together(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// does is a reply with one call.
func does(id, name, input string) message.Message {
	return message.Assistant("", call(id, name, input))
}

func inBash(id, command string) message.Message {
	return does(id, "bash", fmt.Sprintf(`{"command":%q}`, command))
}

// verdicts are what was said of a session's calls, by their ids, and for those that skills refused the reason.
func verdicts(t *testing.T, store journal.Store, session string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for e, err := range store.Read(t.Context(), session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Data.(journal.ToolJudged); ok {
			all[d.Call] = d.Verdict
			const begins, ends = "the active skills allow ", ": until the run ends"
			if i, j := strings.Index(d.Reason, begins), strings.Index(d.Reason, ends); i >= 0 && j > i {
				all[d.Call] += " " + d.Reason[i+len(begins):j]
			}
		}
	}
	return all
}

func TestAnActiveSkillsAllowedToolsAreAllThatMayBeUsed(t *testing.T) {
	for spelling, list := range map[string]string{"a text": "allowed-tools: Read Bash(git status:*)\n", "a list": "allowed-tools:\n  - Read\n  - Bash(git status:*)\n"} {
		t.Run(spelling, func(t *testing.T) {
			dir := world(t, together(
				skillFile("release", list), skillFile("open", ""), skillFile("none", "allowed-tools: []\n"), skillFile("notes", "allowed-tools: Write(notes/**), Task\n"), map[string]string{"a.txt": "a"},
			))
			m := stub{
				inBash("b1", "touch one"),                   // nothing is active
				does("o", "skill", `{"name":"open"}`),       // restricts nothing
				inBash("b2", "touch two"),                   //
				does("r", "Skill", `{"command":"release"}`), // models write it so, too
				inBash("b3", "touch three"),                 // not on the list
				inBash("b4", "git status && touch three"),   // nor is this, as a whole
				inBash("b5", "git status --short > three"),  // it writes
				inBash("b6", "git status || true"),          // on it
				does("w1", "write", `{"file_path":"three","content":""}`),
				does("g", "grep", `{"pattern":"a"}`), // it reads
				does("q", "ask_user", `{"question":"Well?"}`),
				does("t1", "task", `{"agent":"explore","prompt":"x"}`),
				does("x", "other", `{}`),
				does("n", "skill", `{"name":"notes"}`), // both together
				does("w2", "write", `{"file_path":"notes/n","content":""}`),
				does("w3", "write", `{"file_path":"three","content":""}`),
				does("g2", "grep", `{"pattern":"a"}`),
				does("z", "skill", `{"name":"none"}`), // it takes nothing away
				does("g3", "grep", `{"pattern":"a"}`),
				inBash("b7", "touch three"),
				message.Assistant("first"),
				inBash("b8", "touch four"), // in the next run nothing is active
				message.Assistant("second"),
			}
			other := tool.Func("other", "", func(context.Context, struct{}) (string, error) { return "", nil }, tool.ReadOnly)
			rt := serve(t, dir, m, func(o *pawl.Options) {
				o.Tools = []tool.Tool{askuser.New(nil), other}
				o.Host = &counting{}
			})
			for _, prompt := range []string{"go", "go on"} {
				if _, err := rt.Run(t.Context(), pawl.Request{Prompt: prompt, SessionID: "s"}); err != nil {
					t.Fatal(err)
				}
			}
			refused := "deny (release: Read, Bash(git status:*))"
			both := "deny (release: Read, Bash(git status:*); notes: Write(notes/**), Task)"
			want := map[string]string{
				"b1": "allow", "o": "allow", "b2": "allow", "r": "allow", "b3": refused, "b4": refused, "b5": refused, "b6": "allow", "w1": refused, "g": "allow", "q": "allow", "t1": refused, "x": refused,
				"n": "allow", "w2": "allow", "w3": both, "g2": "allow", "z": "allow", "g3": "allow",
				"b7": "deny (release: Read, Bash(git status:*); notes: Write(notes/**), Task; none: none)", "b8": "allow",
			}
			if d := cmp.Diff(want, verdicts(t, rt.Journal(), "s")); d != "" {
				t.Error(d)
			}
			for name, want := range map[string]bool{"one": true, "two": true, "three": false, "four": true, "notes/n": true} {
				if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
					t.Error(name, err)
				}
			}
			if _, err := rt.Replay(t.Context(), "s"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhatASkillAllowsHoldsInTheNextProcessToo(t *testing.T) {
	dir := world(t, together(skillFile("release", "allowed-tools: Read, pay\n"), skillFile("open", "")))
	store := journal.Memory()
	pay := tool.Func("pay", "", func(context.Context, struct{}) (string, error) { return "", nil }, tool.RequiresApproval)
	m := stub{
		does("r", "skill", `{"name":"release"}`), does("p1", "pay", `{}`), inBash("b1", "touch made"), does("p2", "pay", `{}`), inBash("b2", "touch made"), message.Assistant("done"),
	}
	goOn := func(answers string) (*agent.Result, error) {
		t.Helper()
		rt := serve(t, dir, m, func(o *pawl.Options) {
			o.Journal, o.Tools, o.Permissions.Allow = store, []tool.Tool{pay}, []string{"pay"}
		})
		defer func() { _ = rt.Close() }()
		if answers == "" {
			return rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"})
		}
		if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: answers, Approved: true}); err != nil {
			t.Fatal(err)
		}
		return rt.Resume(t.Context(), "s")
	}
	for _, answers := range []string{"", "p1"} {
		if res, err := goOn(answers); res == nil || res.Status != agent.StatusInterrupted {
			t.Fatal(err, res)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, ".agents/skills/release")); err != nil { // what it allowed, nobody knows any more
		t.Fatal(err)
	}
	if res, err := goOn("p2"); err != nil || res.Text() != "done" {
		t.Fatal(err, res)
	}
	want := map[string]string{"r": "allow", "p1": "ask", "b1": "deny (release: Read, pay)", "p2": "ask", "b2": "deny (release: it is not there any more)"}
	if d := cmp.Diff(want, verdicts(t, store, "s")); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("a command ran")
	}
}

func TestAPromptActivatesTheSkillsThatItIsAbout(t *testing.T) {
	dir := world(t, together(
		skillFile("release", "keywords: release, new version\nallowed-tools: Read, pay\n"), skillFile("style", "paths: 'src/**/*.go'\n"), skillFile("build", "paths: Makefile\n"), skillFile("secret", "keywords: release\n"),
		map[string]string{"Makefile": ""},
	))
	store := journal.Memory()
	var asked []model.Request
	m := thinking(func(req model.Request) message.Message {
		asked = append(asked, req)
		switch n := replies(req); n {
		case 0:
			return does("p1", "pay", `{}`)
		case 1, 3:
			return inBash(fmt.Sprint("b", n), "touch made")
		}
		return message.Assistant("done")
	})
	pay := tool.Func("pay", "", func(context.Context, struct{}) (string, error) { return "", nil }, tool.RequiresApproval)
	runtime := func() *pawl.Runtime {
		return serve(t, dir, m, func(o *pawl.Options) {
			o.Journal, o.Tools, o.Permissions.Deny = store, []tool.Tool{pay}, []string{"Skill(secret)"}
		})
	}
	texts := func(req model.Request) (all []string) {
		for _, m := range req.Messages.All() {
			if m.Role() == message.RoleUser {
				all = append(all, m.Text())
			}
		}
		return all
	}
	const full = "This prompt activates a skill.\n\n# Skill release\n\nIts directory, which relative paths are relative to: .agents/skills/release\n\nHow to release.\n\nFrom now on, only these tools may be used, beside those that other active skills allow: Read, pay\n"
	res, err := runtime().Run(t.Context(), pawl.Request{Prompt: "Release it!", SessionID: "s"})
	if res == nil || res.Status != agent.StatusInterrupted {
		t.Fatal(err, res)
	}
	if d := cmp.Diff([]string{full, "Release it!"}, texts(asked[0])); d != "" {
		t.Error(d)
	}
	if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: "p1", Approved: true}); err != nil {
		t.Fatal(err)
	}
	rt := runtime() // another process has the same in front of the model, and the same limits
	if res, err = rt.Resume(t.Context(), "s"); err != nil || res.Text() != "done" {
		t.Fatal(err, res)
	}
	if d := cmp.Diff([]string{full, "Release it!"}, texts(asked[1])); d != "" {
		t.Error(d)
	}
	if _, err := rt.Replay(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	if _, err = rt.Run(t.Context(), pawl.Request{Prompt: "nothing like it", SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"p1": "ask", "b1": "deny (release: Read, pay)", "b3": "allow"} // the next run is free again
	if d := cmp.Diff(want, verdicts(t, store, "s")); d != "" {
		t.Error(d)
	}
	if _, err = rt.Run(t.Context(), pawl.Request{Prompt: "Make a new version of (`./src/x/a.go`), src/b.go, and Makefile. See https://example.com/src/c.go", SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	got := texts(asked[len(asked)-1])
	for i := range got {
		got[i] = strings.SplitN(strings.TrimPrefix(got[i], "This prompt activates a skill.\n\n"), "\n", 2)[0]
	}
	tail := []string{"# Skill build", "This prompt activates the skill release again: its instructions stand above.", "# Skill style"}
	if d := cmp.Diff(append([]string{"# Skill release", "Release it!", "nothing like it"}, append(tail, got[len(got)-1])...), got); d != "" {
		t.Error(d)
	}
	if _, err := rt.Replay(t.Context(), "s"); err != nil {
		t.Error(err)
	}
}

func TestTasksAreBoundByTheSkillsThatAreActiveAboveThem(t *testing.T) {
	dir := world(t, together(
		skillFile("look", "allowed-tools: Read, Task\n"), skillFile("write", "allowed-tools: Write\n"),
		map[string]string{".agents/agents/worker.md": "---\nname: worker\ndescription: Works.\n---\nYou work.\n", "script.yaml": `turns:
  - tool_calls: [{id: t0, name: task, input: {agent: worker, prompt: "first"}}]
  - tool_calls: [{id: s1, name: skill, input: {name: look}}]
  - tool_calls: [{id: t1, name: task, input: {agent: worker, prompt: "second"}}]
  - tool_calls: [{id: b1, name: glob, input: {pattern: "*"}}]
  - text: done
agents:
  worker: {turns: [
    {tool_calls: [{id: k1, name: glob, input: {pattern: "*"}}, {id: k2, name: write, input: {file_path: "made", content: "x"}}]},
    {tool_calls: [{id: k3, name: skill, input: {name: write}}]},
    {tool_calls: [{id: k4, name: write, input: {file_path: "made too", content: "x"}}, {id: k5, name: glob, input: {pattern: "*"}}, {id: k6, name: task, input: {agent: explore, prompt: "x"}}]},
    {text: worked}]}
`},
	))
	t.Chdir(dir)
	m, err := pawl.OpenModel("scripted/script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rt := serve(t, dir, m)
	if text, _ := asks(t, rt, "s", "go"); text != "done" {
		t.Error(text)
	}
	above, own := "deny (look: Read, Task)", "deny (write: Write)"
	for session, want := range map[string]map[string]string{
		"s":    {"t0": "allow", "s1": "allow", "t1": "allow", "b1": "allow"},
		"s/t0": {"k1": "allow", "k2": "allow", "k3": "allow", "k4": "allow", "k5": own, "k6": "invalid"},
		"s/t1": {"k1": "allow", "k2": above, "k3": "allow", "k4": above, "k5": own, "k6": "invalid"},
	} {
		if d := cmp.Diff(want, verdicts(t, rt.Journal(), session)); d != "" {
			t.Error(session, d)
		}
	}
}

func TestATaskIsNotBoundByASkillThatWasActivatedAfterIt(t *testing.T) {
	dir := world(t, skillFile("look", "allowed-tools: Read, opened\n"))
	open := make(chan struct{})
	opened := tool.Func("opened", "", func(context.Context, struct{}) (string, error) { close(open); return "", nil })
	m := thinking(func(req model.Request) message.Message {
		if strings.Contains(req.System, "You wait.") {
			<-open
			return stub{does("k1", "write", `{"file_path":"made","content":""}`), message.Assistant("waited")}[replies(req)]
		}
		return stub{
			does("t", "task", `{"agent":"waiter","prompt":"x","background":true}`), does("s", "skill", `{"name":"look"}`),
			does("o", "opened", `{}`), inBash("b", "true"), message.Assistant("done"), message.Assistant("done"),
		}[replies(req)]
	})
	rt := serve(t, dir, m, func(o *pawl.Options) {
		o.Tools = []tool.Tool{opened}
		o.Subagents = []agent.Subagent{{Agent: agent.Agent{ID: "waiter", Instructions: "You wait."}, Description: "Waits."}}
	})
	if text, _ := asks(t, rt, "s", "go"); text != "done" {
		t.Error(text)
	}
	for session, want := range map[string]map[string]string{
		"s": {"t": "allow", "s": "allow", "o": "allow", "b": "deny (look: Read, opened)"}, "s/t": {"k1": "allow"},
	} {
		if d := cmp.Diff(want, verdicts(t, rt.Journal(), session)); d != "" {
			t.Error(session, d)
		}
	}
}

func TestAProgramHasSkillsOfItsOwn(t *testing.T) {
	dir := world(t, skillFile("release", "allowed-tools: Read\n"))
	greet := project.Skill{Name: "greet", Description: "Greets.", Body: "Say hello.", AllowedTools: []string{"Read"}, Keywords: []string{"greet"}}
	release := project.Skill{Name: "release", Description: "Releases.", Body: "As we do it."}
	var system string
	m := func(req model.Request) message.Message {
		system = req.System
		return stub{does("g", "skill", `{"name":"greet"}`), does("r", "skill", `{"name":"release"}`), does("w", "write", `{"file_path":"made","content":""}`), message.Assistant("done")}[replies(req)]
	}
	with := func(o *pawl.Options) { o.Skills = []project.Skill{release, greet} }
	for name, change := range map[string]func(*pawl.Options){
		"over a project": with, "without one": func(o *pawl.Options) { with(o); o.NoProject = true },
	} {
		rt := serve(t, dir, thinking(m), change)
		if text, _ := asks(t, rt, "s", "go"); text != "done" {
			t.Error(name, text)
		}
		if d := cmp.Diff(map[string]string{"g": "allow", "r": "allow", "w": "deny (greet: Read)"}, verdicts(t, rt.Journal(), "s")); d != "" {
			t.Error(name, d)
		}
		log, err := journal.Open(t.Context(), rt.Journal(), "s")
		if err != nil {
			t.Fatal(err)
		}
		told := fmt.Sprint(string(log.State().Messages.At(2).AppendJSON(nil)), string(log.State().Messages.At(4).AppendJSON(nil)))
		if !strings.Contains(system, "- greet: Greets.\n- release: Releases.") || !strings.Contains(told, "Say hello.") || !strings.Contains(told, "As we do it.") {
			t.Error(name, system, told)
		}
	}
	for _, wrong := range [][]project.Skill{{greet, greet}, {{Name: "Bad Name", Description: "x", Body: "x"}}, {{Name: "x", Body: "x"}}, {{Name: "x", Description: "x"}}, {{Name: "x", Description: "x", Body: "x", AllowedTools: []string{"Bash("}}}} {
		_, err := pawl.New(t.Context(), pawl.Options{Model: stub{}, ProjectRoot: dir, Journal: journal.Memory(), Skills: wrong})
		if !errdefs.Validation.Is(err) && !errdefs.Conflict.Is(err) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

func TestAnAllowedToolThatIsNoRuleAllowsNothingAndIsSaid(t *testing.T) {
	dir := world(t, skillFile("release", "allowed-tools: Read, 'Bash('\n"))
	p, err := project.Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if k, ok := p.Skill("release"); !ok || cmp.Diff([]string{"Read"}, k.AllowedTools) != "" || len(p.Problems) != 1 || !strings.Contains(p.Problems[0].String(), "is no permission rule") {
		t.Errorf("%+v %v", k, p.Problems)
	}
}

func TestAModelIsToldOfSkillsWhenItCanActivateThem(t *testing.T) {
	dir := world(t, together(skillFile("release", ""), map[string]string{"AGENTS.md": "memory"}))
	for name, c := range map[string]struct {
		change func(*pawl.Options)
		told   bool
	}{
		"with the tool":            {func(*pawl.Options) {}, true},
		"without built-in tools":   {func(o *pawl.Options) { o.NoBuiltins = true }, false},
		"with the tool disallowed": {func(o *pawl.Options) { o.Overrides = []byte(`{"disallowedTools": ["skill"]}`) }, false},
		"without, but with the program's own": {func(o *pawl.Options) {
			o.NoBuiltins, o.Skills = true, []project.Skill{{Name: "deploy", Description: "Deploys.", Body: "Do it."}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var system string
			rt := serve(t, dir, thinking(func(req model.Request) message.Message {
				system = req.System
				return message.Assistant("done")
			}), c.change)
			if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "?"}); err != nil {
				t.Fatal(err)
			}
			if told := strings.Contains(system, "About release."); told != c.told || !strings.Contains(system, "memory") {
				t.Error(system)
			}
		})
	}
}
