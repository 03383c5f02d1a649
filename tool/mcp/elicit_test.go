//go:build unix

package mcp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
)

// runs has an agent call one tool of the server.
func runs(t *testing.T, c *Client, name string, host engine.Host, store journal.Store) (*agent.Result, agent.Agent, *loop.Engine) {
	t.Helper()
	m := scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "mcp__s__" + name, Input: `{}`}}}, scripted.Text("thanks"))
	eng, err := loop.New(loop.Config{Model: m, Tools: c.Tools(t.Context())})
	if err != nil {
		t.Fatal(err)
	}
	ag := agent.Agent{ID: "a"}
	res, err := agent.Run(t.Context(), ag, eng, agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(host))
	if err != nil {
		t.Fatal(err)
	}
	return res, ag, eng
}

// outcome is what the model was told of the call.
func outcome(t *testing.T, store journal.Store) string {
	t.Helper()
	log, err := journal.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	for r := range message.Of[message.ToolResult](log.State().Messages.At(2)) {
		return r.Content
	}
	t.Fatal("no result")
	return ""
}

// answers is a person.
func answers(asked *[]string, say ...string) engine.Host {
	return engine.HostFuncs{AskUserFunc: func(_ context.Context, p engine.Prompt) (engine.Reply, error) {
		*asked = append(*asked, p.Prompt)
		var r engine.Reply
		r.ID = p.ID
		if len(say) > 0 && say[0] != "NO" {
			r.Approved, r.Text, say = true, say[0], say[1:]
		}
		return r, nil
	}}
}

func TestAServersQuestionIsAskedFieldByField(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s Server) {
		for name, c := range map[string]struct {
			tool  string
			say   []string
			want  string
			asked int
		}{
			"every field":          {"ask", []string{"Ann", "41", "2"}, `"content":{"age":41,"colour":"blue","name":"Ann"}`, 3},
			"defaults, or nothing": {"ask", []string{"Ann", "", ""}, `"content":{"age":30,"name":"Ann"}`, 3},
			"what makes no sense":  {"ask", []string{"Ann", "old", "42", "red"}, `"content":{"age":42,"colour":"red","name":"Ann"}`, 4},
			"a no":                 {"ask", []string{"NO"}, `"action":"decline"`, 1},
			"an address":           {"ask_url", []string{"yes"}, `"action":"accept"`, 1},
			"once":                 {"ask_once", []string{"Ann", "", ""}, `"name":"Ann"`, 3},
			"several in one order": {"ask_between", []string{"1", "2", "3"}, `"content":{"x":"2"}`, 3},
		} {
			var asked []string
			store := journal.Memory()
			res, _, _ := runs(t, connect(t, s), c.tool, answers(&asked, c.say...), store)
			if got := outcome(t, store); res.Status != agent.StatusCompleted || !strings.Contains(got, c.want) || len(asked) != c.asked {
				t.Errorf("%s: %v %s\n%q", name, res.Status, got, asked)
			}
			if len(asked) > 0 && !strings.HasPrefix(asked[0], "The MCP server s asks: ") {
				t.Errorf("%s: %q", name, asked)
			}
			if c.tool == "ask_between" && strings.Contains(t.Name(), "process") && len(asked) == 3 && (!strings.Contains(asked[0], "first?") || !strings.Contains(asked[1], "second?")) {
				t.Error(asked)
			}
		}
	})
}

func TestWithNobodyThereARunParksAndGoesOnWithTheAnswer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s Server) {
		c, store := connect(t, s), journal.Memory()
		res, ag, eng := runs(t, c, "ask", engine.NoopHost{}, store)
		for i, say := range []string{"Ann", "41", "red"} {
			if res.Status != agent.StatusInterrupted || len(res.Pending) != 1 {
				t.Fatalf("%+v", res)
			}
			if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: res.Pending[0].ID, Approved: true, Text: say}); err != nil {
				t.Fatal(i, err)
			}
			var err error
			if res, err = agent.Resume(t.Context(), ag, eng, "s", agent.WithJournal(store)); err != nil {
				t.Fatal(err)
			}
		}
		if got := outcome(t, store); res.Status != agent.StatusCompleted || !strings.Contains(got, `{"age":41,"colour":"red","name":"Ann"}`) {
			t.Error(res.Status, got)
		}
	})
}

func TestACallThatMayNotRunAgainDoesNotWaitForAPerson(t *testing.T) {
	t.Parallel()
	c, store := connect(t, stdioServer("all")), journal.Memory()
	res, _, _ := runs(t, c, "ask_once", engine.NoopHost{}, store)
	if got := outcome(t, store); res.Status != agent.StatusCompleted || !strings.Contains(got, `"action":"cancel"`) || len(c.Warnings()) != 1 {
		t.Error(res.Status, got, c.Warnings())
	}
}

func TestOutsideOfARunNobodyAnswers(t *testing.T) {
	t.Parallel()
	got, err := use(t, connect(t, stdioServer("all")), "ask", `{}`)
	if err != nil || !strings.Contains(got.Content, `"action":"cancel"`) {
		t.Error(got, err)
	}
}

func TestAnAnswerIsReadAsTheFieldWantsIt(t *testing.T) {
	t.Parallel()
	fields := func(p string) field {
		t.Helper()
		all, err := fieldsOf(map[string]any{"properties": map[string]any{"f": rawJSON(p)}})
		if err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	for _, c := range []struct {
		property, text string
		want           any
	}{
		{`{"type":"string"}`, " a b ", "a b"},
		{`{"type":"boolean"}`, "", true},
		{`{"type":"boolean","default":false}`, "", false},
		{`{"type":"boolean"}`, "No.", false},
		{`{"type":"integer"}`, "1.5", nil},
		{`{"type":"number"}`, "NaN", nil}, // JSON has no word for it
		{`{"type":"number"}`, "-inf", nil},
		{`{"type":"number"}`, "1.5", 1.5},
		{`{"type":"number"}`, "x", nil},
		{`{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]}`, "green", "g"},
		{`{"type":"string","enum":["r","g"]}`, "3", nil},
		{`{"type":"string","oneOf":[{"const":"r","title":"Red"}]}`, "1", "r"},
		{`{"type":"array","items":{"type":"string","enum":["a","b"]}}`, "b, 1", []any{"b", "a"}},
		{`{"type":"array","items":{"anyOf":[{"const":"r","title":"Red"}]}}`, "red", []any{"r"}},
		{`{"type":"array","items":{"type":"string","enum":["a","b"]}}`, "c", nil},
	} {
		got, given, err := fields(c.property).read(c.text)
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != (c.want == nil) || given != (c.want != nil) {
			t.Error(c.property, c.text, diff, err)
		}
	}
	want := "f – F: d\n  1. r – Red\n  2. g (one of them; default: \"r\")"
	if got := fmt.Sprint(fields(`{"type":"string","title":"F","description":"d","default":"r","enum":["r","g"],"enumNames":["Red"]}`)); got != want {
		t.Error(got)
	}
}
