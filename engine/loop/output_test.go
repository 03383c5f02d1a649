package loop_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

const person = `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"]}`

// An answer that does not fit is sent back with what is wrong of it, twice.
func TestAnAnswerThatDoesNotFitItsSchemaIsSentBack(t *testing.T) {
	const back = "user: Your answer does not fit the JSON Schema that it has to have: "
	const alone = ". Answer again, with the JSON alone."
	for name, c := range map[string]struct {
		model *stub
		want  []string
		err   string
	}{
		"it fits":       {plays(says(`{"name":"Ada"}`)), []string{`assistant: {"name":"Ada"}`}, ""},
		"the second":    {plays(says(`Ada`), says(`{"name":"Ada"}`)), []string{"assistant: Ada", back + "it is no JSON: invalid character 'A' looking for beginning of value" + alone, `assistant: {"name":"Ada"}`}, ""},
		"the third":     {plays(says(`{"age":"x"}`), says(`{"name":7}`), says(`{"name":"Ada"}`)), []string{`assistant: {"age":"x"}`, back + "/: missing property 'name'; /age: got string, want integer" + alone, `assistant: {"name":7}`, back + "/name: got number, want string" + alone, `assistant: {"name":"Ada"}`}, ""},
		"none":          {plays(times(4, says(`{}`))...), nil, "the answer does not fit its schema, after it was sent back 2 times: /: missing property 'name'"},
		"one in pieces": {plays(ends(model.StopLength, `{"name":`), says(`"Ada"}`)), []string{`assistant: {"name":`, goOn, `assistant: "Ada"}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := play{cfg: loop.Config{Model: open{c.model}, Output: json.RawMessage(person)}}.do(t)
			if c.err != "" {
				wantErr(t, d.err, errdefs.Validation, c.err)
				if c.model.calls() != 3 {
					t.Errorf("%d calls", c.model.calls())
				}
				return
			}
			if diff := cmp.Diff(c.want, d.since()); diff != "" || d.err != nil {
				t.Error(d.err, diff)
			}
		})
	}
}

// A model without a native mode answers by a tool, and nobody else sees a difference.
func TestAModelWithoutANativeModeAnswersByATool(t *testing.T) {
	x := constant("x")
	for name, c := range map[string]struct {
		schema string
		tools  []tool.Tool
		model  *stub
		want   []string
		choice model.ToolChoice
		given  string // the tool's schema
	}{
		"alone":           {person, nil, plays(uses(call("1", "final_answer", `{"name":"Ada"}`))), []string{`assistant: {"name":"Ada"}`}, "final_answer", person},
		"a text":          {`{"type":"string"}`, nil, plays(uses(call("1", "final_answer", `{"value":"Ada"}`))), []string{`assistant: "Ada"`}, "final_answer", `{"type":"object","properties":{"value":{"type":"string"}},"required":["value"],"additionalProperties":false}`},
		"behind a tool":   {person, []tool.Tool{x}, plays(uses(call("1", "x", `{}`)), uses(call("2", "final_answer", `{"name":"Ada"}`))), []string{"assistant:  <1 x {}>", "tool:  [1 ok]", `assistant: {"name":"Ada"}`}, model.ToolsRequired, person},
		"beside a tool":   {person, []tool.Tool{x}, plays(uses(call("0", "final_answer", `{"name":"?"}`), call("1", "x", `{}`)), uses(call("2", "final_answer", `{"name":"Ada"}`))), []string{"assistant:  <1 x {}>", "tool:  [1 ok]", `assistant: {"name":"Ada"}`}, model.ToolsRequired, person},
		"words beside it": {person, nil, plays(ends(model.StopTools, "Here you are.", call("1", "final_answer", `{"name":"Ada"}`))), []string{`assistant: {"name":"Ada"}`}, "final_answer", person},
		"words alone":     {person, nil, plays(says(`{"name":"Ada"}`)), []string{`assistant: {"name":"Ada"}`}, "final_answer", person},
		"two of them":     {person, nil, plays(uses(call("1", "final_answer", `{"name":"Ada"}`), call("2", "final_answer", `{"name":"Bob"}`))), []string{`assistant: {"name":"Ada"}`}, "final_answer", person},
		"one that is sent back": {
			person, nil, plays(uses(call("1", "final_answer", `{"name":7}`)), uses(call("2", "final_answer", `{"name":"Ada"}`))),
			[]string{`assistant: {"name":7}`, "user: Your answer does not fit the JSON Schema that it has to have: /name: got number, want string. Answer again, with the JSON alone.", `assistant: {"name":"Ada"}`},
			"final_answer", person,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := play{cfg: loop.Config{Model: c.model, Tools: c.tools, Output: json.RawMessage(c.schema)}}.do(t)
			if diff := cmp.Diff(c.want, d.since()); diff != "" || d.err != nil {
				t.Error(d.err, diff)
			}
			req := c.model.asked[0]
			if last := req.Tools[len(req.Tools)-1]; len(req.Output) > 0 || req.ToolChoice != c.choice || len(req.Tools) != len(c.tools)+1 || last.Name != model.OutputTool || string(last.Schema) != c.given {
				t.Errorf("%+v", req)
			}
			if n := len(c.model.asked); n > 1 && &c.model.asked[n-1].Tools[0] != &req.Tools[0] {
				t.Error("the tools are made anew with each call: so would the request's head")
			}
		})
	}
	if _, err := loop.New(loop.Config{Model: plays(), Tools: []tool.Tool{constant("final_answer")}, Output: json.RawMessage(person)}); !errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), "final_answer") {
		t.Errorf("a tool of that name: %v", err)
	}
}

// What a stop hook knows of an answer beyond its schema is counted with what its schema says, and is on record.
func TestAHookSendsAnAnswerBackAsOneThatDoesNotFit(t *testing.T) {
	odd := hook.Middleware{Name: "odd", PostGeneration: func(_ context.Context, g *hook.Generation) error {
		if strings.Contains(g.Response.Message.Text(), "odd") {
			g.Again(loop.Misfit("it is odd"))
		}
		return nil
	}}
	const back = "user: Your answer does not fit the JSON Schema that it has to have: it is odd. Answer again, with the JSON alone."
	m := plays(says(`{"name":"odd"}`), says(`{"name":7}`), says(`{"name":"Ada"}`))
	d := play{cfg: loop.Config{Model: open{m}, Output: json.RawMessage(person), Hooks: []hook.Middleware{odd}}}.do(t)
	if got := d.since(); d.err != nil || len(got) != 5 || got[1] != back {
		t.Error(d.err, got)
	}
	for _, replies := range [][]reply{
		{says(`{"name":"odd"}`), says(`{"name":7}`), says(`{"name":"odd"}`), says(`{"name":"Ada"}`)},
		{says(`{"name":"odd"}`), says(`{"name":"odd"}`), says(`{"name":7}`), says(`{"name":"Ada"}`)},
		{says(`{"name":"odd"}`), says(`{"name":"odd"}`), says(`{"name":"odd"}`), says(`{"name":"Ada"}`)},
	} {
		m := plays(replies...)
		d := play{cfg: loop.Config{Model: open{m}, Output: json.RawMessage(person), Hooks: []hook.Middleware{odd}}}.do(t)
		wantErr(t, d.err, errdefs.Validation, "after it was sent back 2 times")
		if m.calls() != 3 {
			t.Errorf("%d calls", m.calls())
		}
	}
}

// Each answer that is sent back costs a call, which counts.
func TestWhatIsSentBackCountsInUsage(t *testing.T) {
	d := play{cfg: loop.Config{Model: open{plays(says(`{}`), says(`{}`), says(`{"name":"Ada"}`))}, Output: json.RawMessage(person)}}.do(t)
	if got := d.log.State().RunSpent.Usage; d.err != nil || got.Input != 30 || got.Output != 15 {
		t.Error(d.err, got)
	}
	d = play{cfg: loop.Config{Model: open{plays(says(`{}`), says(`{"name":"Ada"}`))}, Output: json.RawMessage(person), Limits: loop.Limits{Tokens: 15}}}.do(t)
	wantErr(t, d.err, errdefs.BudgetExceeded, "used 15 tokens")
}

// The limit that cut an answer off would do so again.
func TestAnAnswerThatWasCutOffIsNotSentBack(t *testing.T) {
	m := plays(ends(model.StopLength, `{"name":`), says(`{"name":"Ada"}`), says(`{"name":"Ada"}`))
	d := play{cfg: loop.Config{Model: open{m}, Output: json.RawMessage(person)}}.do(t)
	wantErr(t, d.err, errdefs.Truncated, "cut off at the output limit")
	if m.calls() != 2 {
		t.Errorf("%d calls", m.calls())
	}
	m = plays(ends(model.StopLength, "", call("1", "final_answer", `{"name":`)), uses(call("2", "final_answer", `{"name":"Ada"}`)))
	wantErr(t, play{cfg: loop.Config{Model: m, Output: json.RawMessage(person)}}.do(t).err, errdefs.Truncated, "cut off at the output limit")
	for _, stop := range []model.StopReason{model.StopRefusal, model.StopFilter} {
		m := plays(ends(stop, `I can't`), says(`{"name":"Ada"}`))
		wantErr(t, play{cfg: loop.Config{Model: open{m}, Output: json.RawMessage(person)}}.do(t).err, errdefs.Refused, "")
		if m.calls() != 1 {
			t.Errorf("%s: %d calls", stop, m.calls())
		}
	}
}

// Schemas of every shape hold, or are refused before anything is asked.
func TestSchemasOfEveryShape(t *testing.T) {
	const tree = `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"below":{"type":"array","items":{"$ref":"#/$defs/n"}}},"additionalProperties":false}}}`
	huge := `{"type":"object","properties":{` + strings.Repeat(`"x":{"type":"string"},`, 20_000) + `"n":{"type":"integer"}},"required":["n"]}`
	for _, c := range []struct{ schema, good, bad string }{
		{`true`, `[1]`, `[1`},
		{`{}`, `null`, `nul`},
		{`{"type":["string","null"]}`, `null`, `1`},
		{`{"anyOf":[{"type":"object","required":["a"]},{"type":"array"}]}`, `[]`, `{}`},
		{`{"enum":["a","b"]}`, `"b"`, `"c"`},
		{`{"const":1}`, `1.0`, `2`},
		{tree, `{"below":[{"below":[]}]}`, `{"below":[{"above":1}]}`},
		{huge, `{"n":12345678901234567890123}`, `{"n":1.5}`},
		{`{"type":"number"}`, `1e300`, `1e999999`},
		{`{"type":"number"}`, `-0`, `NaN`},
		{`{"type":"string"}`, `"a"`, `"a" "b"`},
		{`{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"a":"x","a":1}`, `{"a":1,"a":"x"}`}, // the last one counts, as it does for who reads it
	} {
		for _, native := range []bool{true, false} {
			// A model that answers by a tool may answer in words as well, and is held to the same.
			m := plays(says(c.bad), says(c.good))
			var of model.Model = m
			if native {
				of = open{m}
			}
			d := play{cfg: loop.Config{Model: of, Output: json.RawMessage(c.schema)}}.do(t)
			if d.err != nil || m.calls() != 2 {
				t.Errorf("%.80s: %d calls, %v", c.schema, m.calls(), d.err)
			}
		}
	}
	d := play{cfg: loop.Config{Model: open{plays(times(3, says(`1`))...)}, Output: json.RawMessage(`false`)}}.do(t)
	wantErr(t, d.err, errdefs.Validation, "")
	for _, none := range []string{`{"type":"text"}`, `{`, `[]`, `"object"`, `null`, `1`, `{"$ref":"#"}`, `{"$ref":"#/$defs/none"}`, `{"$ref":"https://example.com/s"}`, `{"pattern":"("}`, `{"minimum":1e999999}`} {
		if _, err := loop.New(loop.Config{Model: plays(), Output: json.RawMessage(none)}); !errdefs.Validation.Is(err) {
			t.Errorf("%s: %v", none, err)
		}
	}
}
