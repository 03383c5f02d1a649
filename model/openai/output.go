package openai

import (
	"github.com/pawl-dev/pawl/internal/boxed"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// OpenAI takes schemas of objects only. One of something else is put into an object, and what the model answers is taken out of it again: nobody else sees a difference.

// unboxed wraps the handler of a stream whose answer is in a box.
func unboxed(req *model.Request, cb model.StreamHandler) model.StreamHandler {
	if !boxed.Needed(req.Output) {
		return cb
	}
	var box boxed.Opener
	return func(s model.StreamResult) error {
		s.Text = box.Write(s.Text)
		if s.Final {
			if s.Response = unbox(s.Response); !box.Found() {
				s.Text = s.Response.Message.Text() // it came at once, or is in no box
			}
		}
		if s.Text == "" && s.Reasoning == "" && s.Input == "" && !s.Final {
			return nil
		}
		return cb(s)
	}
}

// unbox gives a reply whose text is the value in it, as far as it goes; a text that is in no box stays.
func unbox(resp *model.Response) *model.Response {
	var box boxed.Opener
	text := box.Write(resp.Message.Text())
	if !box.Found() {
		return resp
	}
	var parts []message.Part
	first := true
	for p := range resp.Message.Parts() {
		if t, ok := p.(message.Text); ok {
			if !first {
				continue
			}
			first, t.Text = false, text
			p = t
		}
		parts = append(parts, p)
	}
	out := *resp
	out.Message = message.New(message.RoleAssistant, parts...)
	return &out
}
