// Package judged puts a pack's rules around a model: validators judge its replies before anybody sees them, and a turn has so many rounds of tools.
package judged

import (
	"context"
	"errors"
	"hash/maphash"
	"strings"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/pack/guard"
)

// Rules are what a model is held to.
type Rules struct {
	MaxRounds int            // replies with tool calls in a turn: then it has to answer in words
	Guards    []*guard.Guard // of replies
	// Found is told what was found in a reply: what blocks it, or nil, and what is only noted.
	Found func(ctx context.Context, blocked *guard.Violation, noted ...*guard.Violation)
}

// Middleware holds m to the rules.
func (r Rules) Middleware(m model.Model) model.Model { return ruled{m, r} }

// Ask asks m a validator's question.
func Ask(ctx context.Context, m model.Model, q guard.Question) (string, error) {
	resp, err := m.Complete(ctx, model.Request{System: q.System, Messages: message.NewHistory(message.User(q.Prompt))})
	if err != nil {
		return "", err
	}
	return resp.Message.Text(), nil
}

// Round counts the replies with tool calls since a person said something.
func Round(talk message.History) (n int) {
	for i := talk.Len() - 1; i >= 0; i-- {
		switch m := talk.At(i); m.Role() {
		case message.RoleAssistant:
			if len(m.ToolCalls()) > 0 {
				n++
			}
		case message.RoleUser:
			if !ours(m) {
				return n
			}
		}
	}
	return n
}

// ours reports whether the loop said a message, on its own account. A handoff is another agent's beginning.
func ours(m message.Message) bool {
	for p := range m.Parts() {
		if t, ok := p.(message.Text); !ok || t.Provider != "pawl" || strings.Contains(t.Extra, `"handoff"`) {
			return false
		}
	}
	return true
}

// internal reports whether a request is the loop's own, whose answer nobody is shown: it asks for a summary of the transcript.
func internal(req model.Request) bool {
	if req.Messages.Len() == 0 {
		return false
	}
	for p := range req.Messages.Last().Parts() {
		if t, ok := p.(message.Text); ok && t.Provider == "pawl" && strings.Contains(t.Extra, `"summarize"`) {
			return true
		}
	}
	return false
}

// ruled is a model whose replies are judged before anybody sees them.
type ruled struct {
	model.Model
	Rules
}

// choose lets the model answer in words once it has called tools, and makes it when it may call no more.
func (r ruled) choose(req model.Request) model.Request {
	if len(req.Tools) == 0 {
		return req
	}
	switch n := Round(req.Messages); {
	case n >= r.MaxRounds:
		req.ToolChoice = model.ToolsNone
	case n > 0 && req.ToolChoice == model.ToolsRequired:
		req.ToolChoice = model.ToolsAuto
	}
	return req
}

// Unwrap implements model.Wrapper.
func (r ruled) Unwrap() model.Model { return r.Model }

// Complete implements model.Model.
func (r ruled) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	resp, err := r.Model.Complete(ctx, r.choose(req))
	if err != nil || resp == nil || len(r.Guards) == 0 || internal(req) {
		return resp, err
	}
	j := r.judge()
	j.take(resp.Message.Text())
	return j.end(ctx, resp)
}

// CompleteStream implements model.Model.
func (r ruled) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	req = r.choose(req)
	if len(r.Guards) == 0 || internal(req) {
		return r.Model.CompleteStream(ctx, req, cb)
	}
	j := r.judge()
	return r.Model.CompleteStream(ctx, req, func(s model.StreamResult) (err error) {
		if s.Void != nil { // another reply begins
			j = r.judge()
			return cb(s)
		}
		spoke := s.Text != ""
		s.Text = j.take(s.Text)
		if s.Final && s.Response != nil {
			s.Text += j.rest(s.Response.Message.Text())
			shown := j.shown.Len()
			if s.Response, err = j.end(ctx, s.Response); err != nil {
				return err
			}
			s.Text += j.shown.String()[shown:]
		}
		if spoke && s.Text == "" && s.Reasoning == "" && s.Input == "" && !s.Final {
			return nil
		}
		return cb(s)
	})
}

// reply is one that is being judged.
type reply struct {
	ruled
	filter  *guard.Filter
	shown   strings.Builder
	heard   bool
	text    maphash.Hash // of what was heard, to know whether the reply in the end is that
	size    int          // of it
	blocked *guard.Violation
}

func (r ruled) judge() *reply { return &reply{ruled: r, filter: guard.NewFilter(r.Guards...)} }

// take gives what may be shown now that piece has come.
func (j *reply) take(piece string) string {
	if piece == "" || j.blocked != nil {
		return ""
	}
	j.heard = true
	_, _ = j.text.WriteString(piece) // it has no errors
	j.size += len(piece)
	return j.show(j.filter.Write(piece))
}

// rest takes what the reply has besides what was heard: all of it from a model that does not stream. One that is another text than was heard is judged anew, before it is on record.
func (j *reply) rest(text string) string {
	n := min(j.size, len(text))
	if j.blocked != nil || n == j.size && maphash.String(j.text.Seed(), text[:n]) == j.text.Sum64() {
		return j.take(text[n:])
	}
	j.heard, j.filter = true, guard.NewFilter(j.Guards...)
	show, err := j.filter.Write(text)
	more, ok := strings.CutPrefix(show, j.shown.String())
	if !ok { // what was shown can't be taken back
		more = ""
	}
	return j.show(more, err)
}

// show notes what is shown, and says in place of the rest what a violation has to say.
func (j *reply) show(text string, err error) string {
	if errors.As(err, &j.blocked) {
		if before := j.shown.String() + text; before != "" && !strings.HasSuffix(before, " ") && !strings.HasSuffix(before, "\n") {
			text += " "
		}
		text += j.blocked.Message()
	}
	j.shown.WriteString(text)
	return text
}

// end judges the whole reply, and gives it as it may be on record: one that is blocked has what was shown of it, and no calls. Its calls alone say nothing to anybody.
func (j *reply) end(ctx context.Context, resp *model.Response) (*model.Response, error) {
	if j.blocked == nil && (j.heard || len(resp.Message.ToolCalls()) == 0) {
		text, err := j.filter.End(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err() // nobody reply it
		}
		j.show(text, err)
	}
	j.Found(ctx, j.blocked, j.filter.Noted()...)
	if j.blocked == nil {
		return resp, nil
	}
	out := *resp
	out.Message, out.Stop, out.Reason = message.Assistant(j.shown.String()), model.StopFilter, j.blocked.Error()
	return &out, nil
}
