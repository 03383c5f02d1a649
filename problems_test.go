//go:build unix

package pawl_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// What was read and has no effect is told once in a session, and again when it is another thing.
func TestARunWarnsOfWhatHasNoEffectOnceInASession(t *testing.T) {
	dir := world(t, together(map[string]string{
		".agents/settings.json": "{\n  \"permission\": {\"deny\": [\"Read(.env)\"]},\n  \"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"prompt\", \"prompt\": \"ok?\"}]}]}\n}",
	}, skillFile("sound", "colour: red\n"), map[string]string{".agents/skills/bad/SKILL.md": "no front matter"}))
	rt := serve(t, dir, thinking(func(model.Request) message.Message { return message.Assistant("done") }))
	key := `.agents/settings.json:2:3: there is no key "permission": it has no effect: did you mean permissions?`
	hook := "hooks of the type prompt are not supported"
	field := `there is no field "colour"`
	has := func(warned []string, what string) int {
		n := 0
		for _, w := range warned {
			n += strings.Count(w, what)
		}
		return n
	}
	for _, session := range []string{"one", "two", ""} {
		_, warned := asks(t, rt, session, "go")
		if !slices.Contains(warned, key) || has(warned, hook) != 1 || has(warned, field) != 1 || has(warned, "bad/SKILL.md") != 1 {
			t.Errorf("%q: %q", session, warned)
		}
	}
	if _, warned := asks(t, rt, "one", "again"); has(warned, key)+has(warned, hook)+has(warned, field) != 0 || has(warned, "bad/SKILL.md") != 1 { // what can't be used each run warns of
		t.Errorf("again: %q", warned)
	}
	lay(t, dir, map[string]string{".agents/settings.json": `{"modell": "x"}`})
	eventually(t, "another problem is told", func() bool {
		_, warned := asks(t, rt, "two", "again")
		return slices.Contains(warned, `.agents/settings.json:1:2: there is no key "modell": it has no effect: did you mean model?`) && has(warned, field) == 0
	})
	if err := rt.EndSession(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	if _, warned := asks(t, rt, "two", "again"); has(warned, "modell") != 1 {
		t.Errorf("a session that comes back: %q", warned)
	}
}

// A run that did not begin has told nobody anything.
func TestARunThatDoesNotBeginLeavesTheWarningsToTheNext(t *testing.T) {
	dir := world(t, map[string]string{".agents/settings.json": `{"modell": "x"}`})
	store := journal.Memory()
	rt := serve(t, dir, thinking(func(model.Request) message.Message { return message.Assistant("done") }), func(o *pawl.Options) { o.Journal = store })
	if _, err := rt.Run(t.Context(), pawl.Request{SessionID: "s"}); err == nil {
		t.Fatal("a run without a prompt")
	}
	if _, warned := asks(t, rt, "s", "go"); len(warned) != 1 || !strings.Contains(warned[0], "modell") {
		t.Errorf("%q", warned)
	}
}

func TestARunWarnsOfRulesAboutToolsThatThereAreNot(t *testing.T) {
	dir := world(t, map[string]string{".agents/settings.json": `{"permissions": {"deny": ["Rread", "deploy_nowhere"], "ask": ["Task"]}, "disallowedTools": ["bsh"]}`})
	rt := serve(t, dir, thinking(func(model.Request) message.Message { return message.Assistant("done") }))
	_, warned := asks(t, rt, "s", "go")
	said := strings.Join(warned, "\n")
	for _, what := range []string{`no tool "Rread"`, `no tool "bsh"`} {
		if strings.Count(said, what) != 1 {
			t.Errorf("%s: %s", what, said)
		}
	}
	if strings.Contains(said, "deploy_nowhere") || strings.Contains(said, "Task") {
		t.Errorf("nothing else was meant: %s", said)
	}
}
