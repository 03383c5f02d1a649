package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func schema(s string) json.RawMessage { return json.RawMessage(s) }

// before is a request of a conversation, after one that may come behind it.
func before() model.Request {
	return model.Request{
		CacheKey: "k", System: "Be brief.", Tools: []model.Tool{{Name: "read", Description: "Reads.", Schema: schema(`{"type":"object"}`)}, {Name: "bash"}},
		Messages: message.NewHistory(message.User("one"), message.Assistant("two", message.ToolCall{ID: "c", Name: "read", Input: `{"a": 1}`}), message.Results(message.ToolResult{Call: "c", Content: "three"})),
	}
}

func with(change func(r *model.Request)) model.Request {
	r := before()
	change(&r)
	return r
}

func TestARequestHasToBeginWithTheOneBeforeIt(t *testing.T) {
	for name, c := range map[string]struct {
		after model.Request
		want  []string // of the error; none: there is none
	}{
		"the same again, in other messages": {before(), nil},
		"the next step": {with(func(r *model.Request) {
			r.Messages = r.Messages.Append(message.Assistant("four"), message.User("five"))
		}), nil},
		"an earlier position":            {with(func(r *model.Request) { r.Messages = r.Messages.Slice(0, 1) }), nil},
		"another conversation":           {with(func(r *model.Request) { r.CacheKey, r.System = "l", "Be long." }), nil},
		"nobody says which conversation": {with(func(r *model.Request) { r.CacheKey, r.System = "", "Be long." }), nil},
		"settings are no part of it":     {with(func(r *model.Request) { r.MaxTokens, r.ToolChoice = 7, model.ToolsNone }), nil},
		"the system prompt":              {with(func(r *model.Request) { r.System = "It is 10:07. Be brief." }), []string{`the system prompt: it was "Be brief." and is "It is 10:07. Be brief."`}},
		"far into the system prompt": {with(func(r *model.Request) { r.System = "Be brief, please." }), []string{
			`the system prompt: it was "Be brief." and is "Be brief, please."`,
		}},
		"the tools' order": {with(func(r *model.Request) { r.Tools = []model.Tool{r.Tools[1], r.Tools[0]} }), []string{`tool 1: it was "read" and is "bash"`}},
		"a tool's words":   {with(func(r *model.Request) { r.Tools[0].Description = "Read." }), []string{`tool 1, "read": its description: it was "Reads." and is "Read."`}},
		"a tool's schema":  {with(func(r *model.Request) { r.Tools[0].Schema = schema(`{}`) }), []string{`tool 1, "read": its schema`}},
		"a tool less":      {with(func(r *model.Request) { r.Tools = r.Tools[:1] }), []string{`tool 2, "bash", is gone`}},
		"a tool more":      {with(func(r *model.Request) { r.Tools = append(r.Tools, model.Tool{Name: "new"}) }), []string{`tool 3, "new", is new`}},
		"a tool of the provider's": {with(func(r *model.Request) {
			r.ProviderTools = []model.ProviderTool{{Name: "web_search", Options: schema(`{"a":1}`)}}
		}), []string{
			`the tools that the provider runs: it was "[]" and is "[{web_search {\"a\":1}}]"`,
		}},
		"the schema of the answer": {with(func(r *model.Request) { r.Output = schema(`{}`) }), []string{
			`the schema of the answer: it was "" and is "{}"`,
		}},
		"an early message": {with(func(r *model.Request) {
			r.Messages = message.NewHistory(message.User("One")).Append(r.Messages.Slice(1, 3).Messages()...)
		}), []string{"message 1 of 3", `one`, `One`, "conversation k", "hook.Generation.Moved", "moves: true"}},
		"a message put in": {with(func(r *model.Request) {
			r.Messages = message.NewHistory(message.User("zero")).Append(r.Messages.Messages()...)
		}), []string{"message 1 of 3"}},
		"a call's input": {with(func(r *model.Request) {
			r.Messages = message.NewHistory(r.Messages.At(0), message.Assistant("two", message.ToolCall{ID: "c", Name: "read", Input: `{"a":2}`}))
		}), []string{"message 2 of 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			for way, ask := range map[string]func(*Model, model.Request) error{
				"whole": func(m *Model, r model.Request) error { _, err := m.Complete(t.Context(), r); return err },
				"as a stream": func(m *Model, r model.Request) error {
					return m.CompleteStream(t.Context(), r, func(model.StreamResult) error { return nil })
				},
			} {
				m := New(Text("1"), Text("2"), Text("3"))
				if err := ask(m, before()); err != nil {
					t.Fatal(way, err)
				}
				err := ask(m, c.after)
				if (err != nil) != (c.want != nil) || err != nil && !errors.Is(err, errdefs.Validation) {
					t.Fatalf("%s: %v, want %q", way, err, c.want)
				}
				for _, w := range c.want {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%s: %v does not say %q", way, err, w)
					}
				}
				if err := ask(m, before()); err != nil {
					t.Errorf("%s: what was refused counts as asked: %v", way, err)
				}
				if err := ask(New(Text("1")), c.after); err != nil && c.after.Messages.Len() < 2 {
					t.Errorf("%s: another model remembers it: %v", way, err)
				}
			}
		})
	}
}

func TestAScriptMaySayThatBeginningsMove(t *testing.T) {
	s, err := Parse("s", []byte("moves: true\nturns: [{text: a}, {text: b}]\nagents:\n  child: {turns: [{text: c}, {text: d}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*Model{"the agent's": s.Model(), "a child's": s.Model().For("child")} {
		for _, system := range []string{"a", "b"} {
			if _, err := m.Complete(t.Context(), model.Request{CacheKey: "k", System: system, Messages: message.NewHistory(message.User("Hi"))}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Only so many conversations are remembered: those that were asked for last.
func TestTheLatestConversationsAreRemembered(t *testing.T) {
	m := New(Text("1"))
	ask := func(key int, system string) error {
		_, err := m.Complete(t.Context(), model.Request{CacheKey: fmt.Sprint("k", key), System: system, Messages: message.NewHistory(message.User("Hi"))})
		return err
	}
	for i := range mostKept {
		if err := ask(i, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(ask(0, "a"), ask(mostKept, "a"), ask(1, "b")); err != nil { // 0 was asked for again, so 1 is the one that is forgotten
		t.Fatal(err)
	}
	if err := ask(0, "b"); !errdefs.Validation.Is(err) {
		t.Errorf("conversation 0 was forgotten: %v", err)
	}
	if len(m.sent.last) != mostKept || len(m.sent.keys) != mostKept {
		t.Errorf("%d conversations under %d keys, want %d", len(m.sent.last), len(m.sent.keys), mostKept)
	}
}
