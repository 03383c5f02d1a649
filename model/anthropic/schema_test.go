package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func TestASchemaIsSaidInTheSubsetThatTheAPITakes(t *testing.T) {
	m := New("claude-sonnet-4-5")
	for in, want := range map[string]string{
		`{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}`: `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
		`{"type":"object","properties":{}}`:                                                                      `{"type":"object","properties":{},"additionalProperties":false}`,
		`{"type":"integer","minimum":0,"maximum":255,"description":"A byte."}`:                                   `{"type":"integer","description":"A byte. (minimum: 0, maximum: 255)"}`,
		`{"type":"string","pattern":"^a$","minLength":1,"format":"regex"}`:                                       `{"type":"string","description":"(pattern: \"^a$\", minLength: 1, format: \"regex\")"}`,
		`{"type":"string","format":"date-time"}`:                                                                 `{"type":"string","format":"date-time"}`,
		`{"type":"array","items":{"type":"number"},"minItems":1}`:                                                `{"type":"array","items":{"type":"number"},"minItems":1}`,
		`{"type":"array","items":{"type":"number"},"minItems":2,"uniqueItems":true}`:                             `{"type":"array","items":{"type":"number"},"description":"(minItems: 2, uniqueItems: true)"}`,
		`{"oneOf":[{"type":"null"},{"const":3}],"$comment":"x"}`:                                                 `{"anyOf":[{"type":"null"},{"const":3}]}`,
		`{"enum":["a",1,null]}`:                                                                                  `{"enum":["a",1,null]}`,
		`{"type":["string","null"]}`:                                                                             `{"type":["string","null"]}`,
		`{"type":"array","items":{"$ref":"#/$defs/p","title":"x"},"$defs":{"p":{"type":"integer","minimum":1}}}`: `{"type":"array","items":{"$ref":"#/$defs/p"},"$defs":{"p":{"type":"integer","description":"(minimum: 1)"}}}`,
	} {
		o := m.outputOf(json.RawMessage(in))
		if !o.native || string(o.bytes) != want {
			t.Errorf("%s: %v %s", in, o.native, o.bytes)
		}
	}
	many := func(n int, schema string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"p%d":%s,`, i, schema)
		}
		return `{"type":"object","properties":{` + strings.TrimSuffix(b.String(), ",") + `}}`
	}
	for name, in := range map[string]string{
		"any value":              `{}`,
		"any value, in words":    `{"description":"x"}`,
		"true":                   `true`,
		"any members":            `{"type":"object"}`,
		"members of any name":    `{"type":"object","additionalProperties":{"type":"string"}}`,
		"any elements":           `{"type":"array"}`,
		"any element inside":     `{"type":"array","items":true}`,
		"a tuple":                `{"type":"array","prefixItems":[{"type":"string"}],"items":false}`,
		"not":                    `{"type":"string","not":{"const":"a"}}`,
		"a list in an enum":      `{"enum":[["a"]]}`,
		"a reference to itself":  `{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}}}`,
		"in a circle":            `{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/b"}},"b":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/a"}]}}}`,
		"a reference elsewhere":  `{"type":"array","items":{"$ref":"https://example.com/s"}}`,
		"to nowhere":             `{"type":"array","items":{"$ref":"#/$defs/a"}}`,
		"beside a reference":     `{"type":"array","items":{"$ref":"#/$defs/a","minimum":3},"$defs":{"a":{"type":"integer"}}}`,
		"25 optional properties": many(25, `{"type":"string"}`),
		"17 unions":              many(17, `{"type":["string","null"]}`),
		"very deep":              strings.Repeat(`{"type":"array","items":`, 60) + `{"type":"null"}` + strings.Repeat("}", 60),
	} {
		if o := m.outputOf(json.RawMessage(in)); o.native {
			t.Errorf("%s: %s", name, o.bytes)
		}
	}
	var doubling strings.Builder // what multiplies is looked at once
	for i := range 20 {
		fmt.Fprintf(&doubling, `"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}},"required":["a","b"]},`, i, i+1, i+1)
	}
	if o := m.outputOf(json.RawMessage(`{"type":"array","items":{"$ref":"#/$defs/d0"},"$defs":{` + doubling.String() + `"d20":{"type":"null"}}}`)); !o.native {
		t.Error("it can be said")
	}
}

func TestWhatTheAPITakesNoSchemaOfIsAnsweredByATool(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","additionalProperties":{"type":"integer"}}`)
	var bodies []string
	for _, streamed := range []bool{false, true} {
		client := &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(body))
			answer := `{"type":"message","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t1","name":"final_answer","input":{"a":1}}]}`
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer))}, nil
		})}
		m := New("claude-sonnet-4-5", model.WithKey("k"), model.WithHTTPClient(client))
		req := model.Request{Messages: message.NewHistory(message.User("Count.")), Output: schema}
		resp, err := m.Complete(context.Background(), req)
		if streamed {
			err = m.CompleteStream(context.Background(), req, func(s model.StreamResult) error { resp = s.Response; return nil })
		}
		if err != nil || resp.Message.Text() != `{"a":1}` || resp.Stop != model.StopEnd {
			t.Fatal(resp, err)
		}
	}
	for _, b := range bodies {
		if strings.Contains(b, "output_config") || !strings.Contains(b, `"name":"final_answer"`) || !strings.Contains(b, `"tool_choice":{"type":"tool","name":"final_answer"}`) {
			t.Error(b)
		}
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Some models always think, and the API refuses to force a call on them: they may answer by the tool. What the caller chose stays.
func TestAModelThatAlwaysThinksIsNotForcedToAnswerByATool(t *testing.T) {
	x := []model.Tool{{Name: "x"}}
	for name, c := range map[string]struct {
		model string
		req   model.Request
		want  string // the choice
		tools int
	}{
		"alone":                     {"claude-opus-5-5", model.Request{}, "", 1},
		"with tools":                {"claude-opus-5-5", model.Request{Tools: x}, "", 2},
		"that are not to be used":   {"claude-opus-5-5", model.Request{Tools: x, Settings: model.Settings{ToolChoice: model.ToolsNone}}, "", 1},
		"a choice of the caller's":  {"claude-opus-5-5", model.Request{Tools: x, Settings: model.Settings{ToolChoice: model.ToolsRequired}}, `{"type":"any"}`, 2},
		"one that can be forced":    {"claude-sonnet-4-6", model.Request{Tools: x}, `{"type":"any"}`, 2},
		"one that is told to think": {"claude-sonnet-4-6", model.Request{Tools: x, Settings: model.Settings{Reasoning: model.ReasoningLow}}, "", 2},
	} {
		var body []byte
		client := &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
			body, _ = io.ReadAll(r.Body)
			answer := `{"type":"message","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t1","name":"final_answer","input":{"a":1}}]}`
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer))}, nil
		})}
		c.req.Messages, c.req.Output = message.NewHistory(message.User("Count.")), json.RawMessage(`{"type":"object","additionalProperties":{"type":"integer"}}`)
		resp, err := New(c.model, model.WithKey("k"), model.WithHTTPClient(client)).Complete(t.Context(), c.req)
		if err != nil || resp.Message.Text() != `{"a":1}` {
			t.Fatal(name, resp, err)
		}
		var got struct {
			Tools  []json.RawMessage `json:"tools"`
			Choice json.RawMessage   `json:"tool_choice"`
		}
		if err := json.Unmarshal(body, &got); err != nil || string(got.Choice) != c.want || len(got.Tools) != c.tools {
			t.Errorf("%s: %s %v", name, body, err)
		}
	}
}
