package askuser_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// says is an Interactor that gives one answer.
type says askuser.Answer

func (s says) Ask(context.Context, askuser.Question) (askuser.Answer, error) {
	return askuser.Answer(s), nil
}

func ask(t *testing.T, by askuser.Interactor, input string) (tool.Result, error) {
	t.Helper()
	return askuser.New(by).Execute(t.Context(), []byte(input))
}

func TestWhatThePersonSaysIsUnderstood(t *testing.T) {
	const (
		sure   = `{"question":"Sure?","type":"confirm"}`
		colour = `{"question":"Which?","options":[{"label":"Red"},{"label":"Blue","description":"like the sky"},{"label":"Green"}]}`
		two    = `{"question":"Which?","type":"multiselect","max_select":2,"min_select":1,"options":[{"label":"Red"},{"label":"Blue"},{"label":"Green"}]}`
	)
	for name, c := range map[string]struct{ input, said, want string }{
		"yes":                        {sure, " Yes. ", "yes"},
		"no":                         {sure, "n", "no"},
		"own words to a confirm":     {sure, "only on Mondays", "The user says: only on Mondays"},
		"nothing":                    {sure, "", "The user gave no answer."},
		"a default":                  {`{"question":"Sure?","type":"confirm","default":"no"}`, " ", "no"},
		"a label":                    {colour, "blue", "Blue"},
		"a number":                   {colour, "2.", "Blue"},
		"a number that is none":      {colour, "4", "The user says: 4"},
		"two of one":                 {colour, "1, 2", "The user says: 1, 2"},
		"own words to a select":      {colour, "something warm", "The user says: something warm"},
		"some":                       {two, "3, red, 3", "Green, Red"},
		"too many":                   {two, "1,2,3", "The user says: 1,2,3"},
		"none":                       {two, "", "The user gave no answer."},
		"none, which is allowed":     {strings.Replace(two, `"min_select":1,`, "", 1), "", ""},
		"words":                      {`{"question":"Name?"}`, " Ada ", "Ada"},
		"a default for words":        {`{"question":"Name?","default":"Bob"}`, "", "Bob"},
		"other names for the fields": {`{"question":"Which?","kind":"select","choices":[{"label":"a"},{"label":"b"}]}`, "b", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := ask(t, says{Text: c.said}, c.input)
			if err != nil || res.Content != c.want {
				t.Errorf("%q %v, want %q", res.Content, err, c.want)
			}
		})
	}
	for said, want := range map[says]string{
		{Declined: true}:                      "The user did not answer. Go on as you think best, and say what you assumed.",
		{Declined: true, Text: "ask my boss"}: "The user did not answer: ask my boss",
	} {
		if res, err := ask(t, said, sure); err != nil || res.Content != want {
			t.Errorf("%q %v", res.Content, err)
		}
	}
	if res, err := ask(t, askuser.Deny(), sure); err != nil || !strings.Contains(res.Content, "nobody is there") {
		t.Errorf("%q %v", res.Content, err)
	}
}

func TestAQuestionThatMakesNoSenseIsTheModelsMistake(t *testing.T) {
	for input, want := range map[string]string{
		`{"question":" "}`:                                                                                            "question: it is empty",
		`{"question":"?","type":"riddle"}`:                                                                            `type: "riddle"`,
		`{"question":"?","type":"select"}`:                                                                            "needs two or more",
		`{"question":"?","options":[{"label":"a"}]}`:                                                                  "needs two or more",
		`{"question":"?","type":"confirm","options":[{"label":"a"},{"label":"b"}]}`:                                   "has none",
		`{"question":"?","options":[{"label":"a"},{"label":"A "}]}`:                                                   "label 2",
		`{"question":"?","options":[{"label":"a,b"},{"label":"c"}]}`:                                                  "label 1",
		`{"question":"?","options":[{"label":""},{"label":"c"}]}`:                                                     "label 1",
		`{"question":"?","options":[{"label":"a"},{"label":"b"}],"default":"c"}`:                                      "none of the options",
		`{"question":"?","type":"confirm","default":"maybe"}`:                                                         "want yes or no",
		`{"question":"?","options":[{"label":"a"},{"label":"b"}],"min_select":1}`:                                     "only a multiselect",
		`{"question":"?","type":"multiselect","options":[{"label":"a"},{"label":"b"}],"min_select":3}`:                "min_select 3",
		`{"question":"?","type":"multiselect","options":[{"label":"a"},{"label":"b"}],"min_select":2,"max_select":1}`: "the first not above the second",
	} {
		if _, err := ask(t, says{Text: "x"}, input); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", input, err)
		}
	}
}

func TestATerminalAsksUntilItUnderstands(t *testing.T) {
	const input = `{"question":"Which\u001b[31m?","type":"multiselect","min_select":1,"max_select":2,"default":"Red","options":[{"label":"Red","description":"warm"},{"label":"Blue"}]}`
	for typed, want := range map[string]string{
		"purple\n2\nmore": "Blue",
		"\n":              "Red",
		"2":               "Blue", // the end of the input instead of a line break
		"":                "The user did not answer. Go on as you think best, and say what you assumed.",
		"no\nno\nno\n":    "The user says: no",
		"2\r\n":           "Blue",
	} {
		var out bytes.Buffer
		in := strings.NewReader(typed)
		res, err := ask(t, askuser.Terminal(in, &out), input)
		if err != nil || res.Content != want {
			t.Errorf("%q: %q %v", typed, res.Content, err)
		}
		if show := "? Which\uFFFD[31m?\n  1. Red – warm\n  2. Blue (1 to 2 of them; default: Red)\n> "; !strings.HasPrefix(out.String(), show) {
			t.Errorf("shown: %q", out.String())
		}
		if rest, _ := io.ReadAll(in); typed == "purple\n2\nmore" && string(rest) != "more" {
			t.Errorf("%q was left", rest)
		}
	}
	if _, err := ask(t, askuser.Terminal(strings.NewReader("x"), broken{}), input); err == nil {
		t.Error("a terminal that is gone")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestReadingFromATerminalEndsWithTheContext(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	slow, end := io.Pipe() // no file: what it reads can't be stopped
	defer func() { _ = end.Close() }()
	for name, in := range map[string]io.Reader{"a file": r, "another reader": slow} {
		t.Run(name, func(t *testing.T) {
			terminal := askuser.Terminal(in, io.Discard)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := terminal.Ask(ctx, askuser.Question{Kind: askuser.Input, Text: "?"}); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			go func() {
				for _, to := range []io.Writer{w, end}[map[string]int{"a file": 0, "another reader": 1}[name]:][:1] {
					_, _ = io.WriteString(to, "Ada\n")
				}
			}()
			if a, err := terminal.Ask(t.Context(), askuser.Question{Kind: askuser.Input, Text: "?"}); err != nil || a.Text != "Ada" {
				t.Error(a, err)
			}
		})
	}
}

func TestAQuestionOnRecordIsAnsweredFromAnotherProcess(t *testing.T) {
	const colours = `"type":"select","options":[{"label":"Red"},{"label":"Blue"}]`
	for name, c := range map[string]struct {
		input  string
		answer journal.Answered
		want   string
	}{
		"words":         {`{"question":"Name?"}`, journal.Answered{Approved: true, Text: "Ada"}, "Ada"},
		"an option":     {`{"question":"Which?",` + colours + `}`, journal.Answered{Approved: true, Text: "2"}, "Blue"},
		"approved":      {`{"question":"Sure?","type":"confirm"}`, journal.Answered{Approved: true}, "yes"},
		"approved, but": {`{"question":"Sure?","type":"confirm"}`, journal.Answered{Approved: true, Text: "no"}, "no"},
		"rejected":      {`{"question":"Sure?","type":"confirm"}`, journal.Answered{Text: "not now"}, "The user did not answer: not now"},
	} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			after := 0
			note := tool.Func("note", "", func(context.Context, struct{}) (string, error) { after++; return "noted", nil })
			m := scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "ask_user", Input: c.input}, {ID: "c2", Name: "note"}}}, scripted.Text("thanks"))
			eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{askuser.New(nil), note}})
			if err != nil {
				t.Fatal(err)
			}
			ag, with := agent.Agent{ID: "a"}, agent.WithJournal(store)
			res, err := agent.Run(t.Context(), ag, eng, agent.Request{ContextID: "s", Message: message.User("go")}, with)
			if err != nil || res.Status != agent.StatusInterrupted || res.Cause != engine.CauseAwaitingPerson || len(res.Pending) != 1 || after != 0 {
				t.Fatalf("%+v %v", res, err)
			}
			if p := res.Pending[0]; p.ID != "c1" || p.Call != nil || !strings.Contains(p.Prompt, "?") {
				t.Errorf("%+v", p)
			}
			if res, err = agent.Resume(t.Context(), ag, eng, "s", with); err != nil || res.Status != agent.StatusInterrupted || len(res.Pending) != 1 {
				t.Fatalf("without an answer: %+v %v", res, err)
			}
			c.answer.ID = "c1"
			if err := agent.Answer(t.Context(), store, "s", c.answer); err != nil {
				t.Fatal(err)
			}
			res, err = agent.Resume(t.Context(), ag, eng, "s", with)
			if err != nil || res.Text() != "thanks" || after != 1 {
				t.Fatalf("%+v %v", res, err)
			}
			log, err := journal.Open(t.Context(), store, "s")
			if err != nil {
				t.Fatal(err)
			}
			for r := range message.Of[message.ToolResult](log.State().Messages.At(2)) {
				if r.Call == "c1" && r.Content != c.want {
					t.Errorf("the model is told %q, want %q", r.Content, c.want)
				}
			}
			if _, err := agent.Replay(t.Context(), ag, eng, "s", with); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := ask(t, askuser.Journal(), `{"question":"?"}`); err == nil {
		t.Error("there is no run")
	}
}

func Example() {
	store := journal.Memory()
	m := scripted.New(
		scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "ask_user", Input: `{"question": "Which branch?", "options": [{"label": "main"}, {"label": "next"}]}`}}},
		scripted.Text("Deployed."),
	)
	eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{askuser.New(askuser.Journal())}})
	if err != nil {
		panic(err)
	}
	ctx, ag := context.Background(), agent.Agent{ID: "deployer"}
	res, err := agent.Run(ctx, ag, eng, agent.Request{ContextID: "s", Message: message.User("Deploy it.")}, agent.WithJournal(store))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Status, res.Pending[0].Prompt)

	// Days later, in another process.
	if err := agent.Answer(ctx, store, "s", journal.Answered{ID: res.Pending[0].ID, Approved: true, Text: "next"}); err != nil {
		panic(err)
	}
	res, err = agent.Resume(ctx, ag, eng, "s", agent.WithJournal(store))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Status, res.Text())
	// Output:
	// interrupted Which branch?
	//   1. main
	//   2. next
	// completed Deployed.
}
