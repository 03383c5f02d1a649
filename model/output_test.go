package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// calling is a model without a native mode for schemas. It says something, begins anew, thinks, and answers by a call.
type calling struct{ schema bool }

func (c calling) Capabilities() model.Capabilities {
	return model.Capabilities{Name: "p/m", Tools: true, Schema: c.schema}
}

func (c calling) Complete(context.Context, model.Request) (*model.Response, error) {
	return &model.Response{Message: message.Assistant("Here:", message.ToolCall{ID: "1", Name: model.OutputTool, Input: `{"n":7}`}), Stop: model.StopTools}, nil
}

func (c calling) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, _ := c.Complete(ctx, req)
	for _, s := range []model.StreamResult{{Text: "He"}, {Void: errors.New("again")}, {Reasoning: "hm"}, {Text: "Here:"}, {Final: true, Response: resp}} {
		if err := cb(s); err != nil {
			return err
		}
	}
	return nil
}

func TestAnAnswerByAToolIsShownWhole(t *testing.T) {
	m := model.OutputByTool(calling{})
	if caps, _ := model.CapabilitiesOf(m); !caps.Schema || caps.Name != "p/m" {
		t.Errorf("%+v", caps)
	}
	var got []model.StreamResult
	err := m.CompleteStream(t.Context(), model.Request{Output: json.RawMessage(`{"type":"object"}`)}, func(s model.StreamResult) error {
		got = append(got, s)
		return nil
	})
	if err != nil || len(got) != 3 || got[0].Void == nil || got[1].Reasoning != "hm" || got[2].Text != `{"n":7}` || got[2].Response.Message.Text() != `{"n":7}` || got[2].Response.Stop != model.StopEnd {
		t.Errorf("%+v %v", got, err)
	}
	resp, err := m.Complete(t.Context(), model.Request{}) // nobody asked for a schema
	if err != nil || len(resp.Message.ToolCalls()) != 1 {
		t.Errorf("%+v %v", resp, err)
	}
	if native := (calling{schema: true}); model.OutputByTool(native) != model.Model(native) {
		t.Error("a model that has a native mode is wrapped")
	}
}

// written is a model that streams the input of its calls, and gives them compact in the end, as providers do.
type written struct {
	calling
	pieces []model.StreamResult
	resp   *model.Response
}

func (w written) CompleteStream(_ context.Context, _ model.Request, cb model.StreamHandler) error {
	for _, s := range append(w.pieces, model.StreamResult{Final: true, Response: w.resp}) {
		if err := cb(s); err != nil {
			return err
		}
	}
	return nil
}

func inputs(call int, tool string, pieces ...string) (out []model.StreamResult) {
	for _, p := range pieces {
		out = append(out, model.StreamResult{Input: p, Tool: tool, Call: call})
	}
	return out
}

func replies(calls ...message.ToolCall) *model.Response {
	return &model.Response{Message: message.Assistant("", calls...), Stop: model.StopTools}
}

func TestAnAnswerByAToolIsShownAsItIsWritten(t *testing.T) {
	const of = model.OutputTool
	answer := func(input string) message.ToolCall { return message.ToolCall{ID: "1", Name: of, Input: input} }
	x := model.Tool{Name: "x", Schema: json.RawMessage(`{"type":"object"}`)}
	other := message.ToolCall{ID: "2", Name: "x", Input: "{}"}
	for name, c := range map[string]struct {
		schema string
		tools  []model.Tool
		pieces []model.StreamResult
		resp   *model.Response
		texts  []string // "void" and "x:INPUT" stand for those
		text   string   // of the reply
	}{
		"an object":                  {`{"type":"object"}`, nil, inputs(0, of, `{"a": `, `"b`, `"}`), replies(answer(`{"a":"b"}`)), []string{`{"a": `, `"b`, `"}`}, `{"a": "b"}`},
		"a value in an object":       {`{"type":"string"}`, nil, inputs(0, of, `{"val`, `ue": "a`, `b"`, `}`), replies(answer(`{"value":"ab"}`)), []string{` "a`, `b"`}, ` "ab"`},
		"no value in it":             {`{"type":"string"}`, nil, inputs(0, of, `{"x`, `":1}`), replies(answer(`{"x":1}`)), []string{`{"x":1}`}, `{"x":1}`},
		"a part of it in pieces":     {`{"type":"object"}`, nil, inputs(0, of, `{"a":`), replies(answer(`{"a":1}`)), []string{`{"a":`, `1}`}, `{"a":1}`},
		"another than was told":      {`{"type":"object"}`, nil, inputs(0, of, `{"a":2`), replies(answer(`{"a":1}`)), []string{`{"a":2`}, `{"a":1}`},
		"no pieces":                  {`{"type":"object"}`, nil, nil, replies(answer(`{"a":1}`)), []string{`{"a":1}`}, `{"a":1}`},
		"two of them":                {`{"type":"object"}`, nil, append(inputs(0, of, `{"a":1}`), inputs(1, of, `{"a":2}`)...), replies(answer(`{"a":1}`), answer(`{"a":2}`)), []string{`{"a":1}`}, `{"a":1}`},
		"begun anew":                 {`{"type":"string"}`, nil, append(append(inputs(0, of, `{"value":"a`), model.StreamResult{Void: errors.New("again")}), inputs(0, of, `{"value":"b"}`)...), replies(answer(`{"value":"b"}`)), []string{`"a`, "void", `"b"`}, `"b"`},
		"cut off":                    {`{"type":"object"}`, nil, inputs(0, of, `{"a": "b`), &model.Response{Message: message.Assistant("", answer(`{"a": "b`)), Stop: model.StopLength}, []string{`{"a": "b`}, `{"a": "b`},
		"with other tools":           {`{"type":"object"}`, []model.Tool{x}, inputs(0, of, `{"a":`, `1}`), replies(answer(`{"a":1}`)), []string{`{"a":1}`}, `{"a":1}`},
		"beside another call, first": {`{"type":"object"}`, []model.Tool{x}, append(inputs(0, of, `{"a":1}`), inputs(1, "x", `{}`)...), replies(answer(`{"a":1}`), other), []string{`0 x:{}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := model.OutputByTool(written{pieces: c.pieces, resp: c.resp})
			var got []string
			var resp *model.Response
			err := m.CompleteStream(t.Context(), model.Request{Output: json.RawMessage(c.schema), Tools: c.tools}, func(s model.StreamResult) error {
				switch {
				case s.Void != nil:
					got = append(got, "void")
				case s.Input != "":
					got = append(got, fmt.Sprintf("%d %s:%s", s.Call, s.Tool, s.Input))
				case s.Text != "":
					got = append(got, s.Text)
				case !s.Final:
					t.Error("an empty piece")
				}
				resp = s.Response
				return nil
			})
			if diff := cmp.Diff(c.texts, got); err != nil || diff != "" || resp.Message.Text() != c.text {
				t.Errorf("%v %q %s", err, resp.Message.Text(), diff)
			}
		})
	}
}

// That a call is held back, and then sent, is told although nothing is said by it.
func TestAnAnswerByAToolIsWaitedFor(t *testing.T) {
	call := message.ToolCall{ID: "c", Name: model.OutputTool, Input: `{"n":1}`}
	m := model.OutputByTool(written{pieces: append([]model.StreamResult{{Held: true, Wait: 3}, {}}, inputs(0, model.OutputTool, `{"n":`, `1}`)...), resp: replies(call)})
	var got []model.StreamResult
	err := m.CompleteStream(t.Context(), model.Request{Output: json.RawMessage(`{"type":"object"}`)}, func(s model.StreamResult) error {
		got = append(got, s)
		return nil
	})
	if err != nil || len(got) < 3 || !got[0].Held || got[0].Wait != 3 || got[1] != (model.StreamResult{}) {
		t.Errorf("%v: %+v", err, got)
	}
}

// heard is a model without a native mode that keeps what it is asked.
type heard struct {
	calling
	asked model.Request
}

func (h *heard) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	h.asked = req
	return h.calling.Complete(ctx, req)
}

// Who answers by a tool is forced to it, unless that would keep the provider's own tools from being used, or is refused because the model thinks.
func TestWhenAnAnswerByAToolIsForced(t *testing.T) {
	const none, required, auto = model.ToolsNone, model.ToolsRequired, model.ToolsAuto
	x := []model.Tool{{Name: "x", Schema: json.RawMessage(`{"type":"object"}`)}}
	search := []model.ProviderTool{{Name: model.WebSearch}}
	for name, c := range map[string]struct {
		req         model.Request
		choice      model.ToolChoice
		tools, runs int // offered besides the answer; and of the provider's
	}{
		"alone":                             {model.Request{}, model.OutputTool, 0, 0},
		"tools":                             {model.Request{Tools: x}, required, 1, 0},
		"tools that are not to be called":   {model.Request{Tools: x, Settings: model.Settings{ToolChoice: none}}, model.OutputTool, 1, 0},
		"the provider's":                    {model.Request{Settings: model.Settings{ProviderTools: search}}, required, 0, 1},
		"the provider's, not to be called":  {model.Request{Settings: model.Settings{ProviderTools: search, ToolChoice: none}}, model.OutputTool, 0, 1},
		"thinking":                          {model.Request{Settings: model.Settings{Reasoning: model.ReasoningLow}}, auto, 0, 0},
		"thinking, with tools":              {model.Request{Tools: x, Settings: model.Settings{Reasoning: model.ReasoningLow, ProviderTools: search}}, auto, 1, 1},
		"thinking, tools not to be called":  {model.Request{Tools: x, Settings: model.Settings{Reasoning: model.ReasoningLow, ProviderTools: search, ToolChoice: none}}, auto, 0, 0},
		"thinking, with a choice of theirs": {model.Request{Tools: x, Settings: model.Settings{Reasoning: model.ReasoningLow, ToolChoice: "x"}}, "x", 1, 0},
		"not thinking":                      {model.Request{Settings: model.Settings{Reasoning: model.ReasoningNone}}, model.OutputTool, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := &heard{}
			c.req.Output = json.RawMessage(`{"type":"object"}`)
			if _, err := model.OutputByTool(h).Complete(t.Context(), c.req); err != nil {
				t.Fatal(err)
			}
			got := h.asked
			if got.ToolChoice != c.choice || len(got.Tools) != c.tools+1 || got.Tools[c.tools].Name != model.OutputTool || len(got.ProviderTools) != c.runs {
				t.Errorf("%q %+v %+v", got.ToolChoice, got.Tools, got.ProviderTools)
			}
		})
	}
}
