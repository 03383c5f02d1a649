package inspector_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

// asked is an agent whose calls are all asked about, by the hook's decision.
func asked(t *testing.T, store journal.Store, d hook.Decision, tools []tool.Tool, turns ...scripted.Turn) serve.Agent {
	t.Helper()
	e, err := loop.New(loop.Config{Model: scripted.New(turns...), Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	careful := hook.Middleware{Name: "careful", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return d, nil }}
	return serve.Of(agent.Agent{ID: "coder", Hooks: []hook.Middleware{careful}}, e, store)
}

func calls(id, name, input string) scripted.Turn {
	return scripted.Turn{Calls: []scripted.Call{{ID: id, Name: name, Input: input}}}
}

// What somebody who edits a call leaves alone is run as the model wrote it: characters that show nothing, and numbers of more digits than a script's have.
func TestWhatIsNotEditedStays(t *testing.T) {
	inBrowser(t)
	store := journal.Memory()
	type note struct {
		Number int64  `json:"number"`
		Text   string `json:"text"`
	}
	const input = "{\"number\":1234567890123456789,\"text\":\"rtl\u200f mark \u200b and \u202e, \\\"quoted\\\"\"}"
	web := served(t, asked(t, store, hook.Asking("look"),
		[]tool.Tool{tool.Func("note", "Note.", func(_ context.Context, in note) (string, error) { return in.Text, nil })},
		calls("n1", "note", input), scripted.Text("Noted.")), serve.Options{})
	p := browse(t, 1300, 800)
	p.open(web.URL)
	p.into("#words", "go"+enter)
	p.sees("#waiting .card", "look")
	name := value[string](p, `document.querySelector("#title").textContent`)
	p.do(blur())
	p.keys("e")
	p.until(`document.activeElement.name === "input"`)
	want := `{
  "number": 1234567890123456789,
  "text": "rtl\u200f mark \u200b and \u202e, \"quoted\""
}`
	if d := cmp.Diff(want, value[string](p, `document.activeElement.value`)); d != "" {
		t.Errorf("the field, -want +got\n%s", d)
	}
	p.picture("edit")
	p.keys("\t" + enter)
	p.sees("#state", "completed")
	if d := cmp.Diff([]journal.Answered{{ID: "n1", Approved: true, Input: input}}, on[journal.Answered](t, store, name)); d != "" {
		t.Errorf("-want +on record\n%s", d)
	}
	if got := on[journal.ToolFinished](t, store, name); len(got) != 1 || got[0].Content != "rtl\u200f mark \u200b and \u202e, \"quoted\"" {
		t.Errorf("it ran as %+v", got)
	}
}
