package loop_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
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
