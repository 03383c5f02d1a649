package model

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"

	"github.com/pawl-dev/pawl/internal/boxed"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

// OutputTool is the name of the tool that a model answers by where it has no native mode for [Request.Output]: see [OutputByTool].
const OutputTool = "final_answer"

// OutputByTool has a model without a native mode for [Request.Output] answer by calling a tool whose input has that schema: a Middleware. The call is given as the reply's text, as it is written, so that nobody else sees a difference. When the model calls other tools
// beside it, those come first, and it is asked again. The call is forced, unless the request asks for reasoning, which providers refuse together with that. A reply in words is left as it is: whoever asked for a schema checks. A model that says that it has a native mode, or doesn't say what it can, is left alone.
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
		schema, inner := boxed.Schema(req.Output)
		answer := Tool{Name: OutputTool, Description: "Give the final answer, once everything else is done. Call it alone.", Schema: schema}
		o = &offered{req.Tools, req.Output, append(req.Tools[:len(req.Tools):len(req.Tools)], answer), inner}
		b.last.Store(o)
	}
	thinks := req.Reasoning != ReasoningDefault && req.Reasoning != ReasoningNone
	others := len(req.Tools)+len(req.ProviderTools) > 0
	switch req.Tools, req.Output = o.all, nil; {
	case thinks && req.ToolChoice == ToolsNone: // the answer is all that it may call
		req.Tools, req.ProviderTools, req.ToolChoice = o.all[len(o.tools):], nil, ToolsAuto
	case thinks && req.ToolChoice == ToolsAuto: // providers refuse to force a call on a model that thinks
	case req.ToolChoice == ToolsNone, !others:
		req.ToolChoice = OutputTool
	case req.ToolChoice == ToolsAuto:
		req.ToolChoice = ToolsRequired
	}
	return req, o
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
	return boxed.Value(input)
}

// Complete implements [Model].
func (b *byTool) Complete(ctx context.Context, req Request) (*Response, error) {
	req, o := b.with(req)
	resp, err := b.Model.Complete(ctx, req)
	return o.given(resp), err
}

// CompleteStream implements [Model]. What a model says beside the answer is not shown; reasoning is. The answer is shown as it comes where the model has no other tool to
// call; where it has, whether a call is the answer is known in the end only.
func (b *byTool) CompleteStream(ctx context.Context, req Request, cb StreamHandler) error {
	alone := len(req.Tools) == 0 || req.ToolChoice == ToolsNone
	req, o := b.with(req)
	if o == nil {
		return b.Model.CompleteStream(ctx, req, cb)
	}
	said := answer{of: o, call: -1}
	return b.Model.CompleteStream(ctx, req, func(s StreamResult) error {
		spoke := s.Text != "" || s.Input != ""
		s.Text = ""
		switch {
		case s.Void != nil:
			said = answer{of: o, call: -1}
		case s.Input != "" && s.Tool == OutputTool:
			if piece := said.piece(s); alone {
				s.Text = piece
			} else {
				said.shown = said.shown[:0]
			}
			s.Input, s.Tool, s.Call = "", "", 0
		case s.Input != "":
			s.Call -= said.calls // which are no calls for anybody else
		}
		if s.Final && s.Response != nil {
			more := ""
			s.Response, more = said.whole(o.given(s.Response))
			s.Text += more
		}
		if spoke && s.Text == "" && s.Reasoning == "" && s.Input == "" && !s.Final {
			return nil
		}
		return cb(s)
	})
}

// answer is what of one was shown as it came.
type answer struct {
	of    *offered
	call  int // which of the reply's calls it is: the first one to the tool; -1 before
	last  int // the last one to it
	calls int // how many there were
	box   boxed.Opener
	shown []byte
}

// piece gives what of a piece of a call to [OutputTool] is the answer.
func (a *answer) piece(s StreamResult) (text string) {
	if a.call < 0 {
		a.call, a.last, a.calls = s.Call, s.Call, 1
	} else if s.Call != a.last {
		a.last, a.calls = s.Call, a.calls+1
	}
	if s.Call != a.call {
		return ""
	}
	if text = s.Input; a.of.inner {
		text = a.box.Write(text)
	}
	a.shown = append(a.shown, text...)
	return text
}

// whole gives the reply, whose text is what was shown, white space and all, and what of it was not shown yet.
func (a *answer) whole(resp *Response) (_ *Response, rest string) {
	text := resp.Message.Text()
	if len(a.shown) == 0 {
		return resp, text
	}
	if rest, ok := strings.CutPrefix(text, string(a.shown)); ok {
		return resp, rest
	}
	compact, ok := wire.AppendCompact(nil, a.shown)
	if !ok || string(compact) != text {
		return resp, "" // it is another one than was told, and that can't be taken back
	}
	var parts []message.Part
	for p := range resp.Message.Parts() {
		if t, ok := p.(message.Text); ok {
			t.Text = string(a.shown)
			p = t
		}
		parts = append(parts, p)
	}
	out := *resp
	out.Message = message.New(message.RoleAssistant, parts...)
	return &out, ""
}
