package model

import (
	"bytes"
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/pawl-dev/pawl/message"
)

// OutputTool is the name of the tool that a model answers by where it has no native mode for [Request.Output]: see [OutputByTool].
const OutputTool = "final_answer"

// OutputByTool has a model without a native mode for [Request.Output] answer by calling a tool whose input has that schema: a Middleware. The call is given as the reply's text, so that nobody else sees a difference. When the model calls other tools
// beside it, those come first, and it is asked again. A reply in words is left as it is: whoever asked for a schema checks. A model that says that it has a native mode, or doesn't say what it can, is left alone.
//
// A schema that is not of an object is put into one, as its member value.
func OutputByTool(m Model) Model {
	can, ok := CapabilitiesOf(m)
	if !ok || can.Schema || !can.Tools {
		return m
	}
	return &byTool{Model: m}
}

type byTool struct {
	Model
	last atomic.Pointer[offered]
}

// offered is what a request had, with the tools that were made of it: they stay the same slice while that is the same, as the head of a request is kept by it.
type offered struct {
	tools  []Tool
	output json.RawMessage
	all    []Tool
	inner  bool // the schema is put into an object
}

// Capabilities has a Schema.
func (b *byTool) Capabilities() Capabilities {
	c, _ := CapabilitiesOf(b.Model)
	c.Schema = true
	return c
}

// Unwrap gives the model that is asked.
func (b *byTool) Unwrap() Model { return b.Model }

func (b *byTool) with(req Request) (Request, *offered) {
	if len(req.Output) == 0 {
		return req, nil
	}
	o := b.last.Load()
	if o == nil || len(o.tools) != len(req.Tools) || len(req.Tools) > 0 && &o.tools[0] != &req.Tools[0] || !bytes.Equal(o.output, req.Output) {
		schema, inner := asObject(req.Output)
		answer := Tool{Name: OutputTool, Description: "Give the final answer, once everything else is done. Call it alone.", Schema: schema}
		o = &offered{req.Tools, req.Output, append(req.Tools[:len(req.Tools):len(req.Tools)], answer), inner}
		b.last.Store(o)
	}
	none := len(req.Tools) == 0 || req.ToolChoice == ToolsNone
	if req.Tools, req.Output = o.all, nil; none {
		req.ToolChoice = OutputTool
	} else if req.ToolChoice == ToolsAuto {
		req.ToolChoice = ToolsRequired
	}
	return req, o
}

// asObject makes a schema of an object of one that may not be.
func asObject(schema json.RawMessage) (_ json.RawMessage, inner bool) {
	var is struct{ Type any }
	if json.Unmarshal(schema, &is) == nil && is.Type == "object" {
		return schema, false
	}
	b := append([]byte(`{"type":"object","properties":{"value":`), schema...)
	return append(b, `},"required":["value"],"additionalProperties":false}`...), true
}

// given is a reply with the call as its text.
func (o *offered) given(resp *Response) *Response {
	if o == nil || resp == nil {
		return resp
	}
	calls := resp.Message.ToolCalls()
	others, answers := 0, 0
	for _, c := range calls {
		if c.Name == OutputTool {
			answers++
		} else {
			others++
		}
	}
	if answers == 0 {
		return resp
	}
	out := *resp
	var parts []message.Part
	for p := range resp.Message.Parts() {
		switch c := p.(type) {
		case message.ToolCall:
			switch {
			case c.Name != OutputTool:
				parts = append(parts, p)
			case others == 0 && answers > 0:
				answers = 0 // the first counts
				parts = append(parts, message.Text{Text: o.value(c.Input)})
			}
		case message.Text:
			if others > 0 { // what is said beside the answer is none of it
				parts = append(parts, p)
			}
		default:
			parts = append(parts, p)
		}
	}
	if out.Message = message.New(message.RoleAssistant, parts...); others == 0 && out.Stop == StopTools {
		out.Stop = StopEnd
	}
	return &out
}

func (o *offered) value(input string) string {
	if !o.inner {
		return input
	}
	var in struct{ Value json.RawMessage }
	if json.Unmarshal([]byte(input), &in) != nil || in.Value == nil {
		return input
	}
	return string(in.Value)
}

// Complete implements [Model].
func (b *byTool) Complete(ctx context.Context, req Request) (*Response, error) {
	req, o := b.with(req)
	resp, err := b.Model.Complete(ctx, req)
	return o.given(resp), err
}

// CompleteStream implements [Model]. What a model says beside the answer is not shown; reasoning is.
func (b *byTool) CompleteStream(ctx context.Context, req Request, cb StreamHandler) error {
	req, o := b.with(req)
	if o == nil {
		return b.Model.CompleteStream(ctx, req, cb)
	}
	return b.Model.CompleteStream(ctx, req, func(s StreamResult) error {
		s.Text = ""
		if s.Final {
			if s.Response = o.given(s.Response); s.Response != nil {
				s.Text = s.Response.Message.Text()
			}
		}
		if s.Text == "" && s.Reasoning == "" && !s.Final && s.Void == nil {
			return nil
		}
		return cb(s)
	})
}
