package mcp

import (
	"context"
	"encoding/json"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// inCalls is the version of the protocol from which on questions to a client are a part of a call's result, and the answers of the call that follows it.
const inCalls = "2026-07-28"

// elicits reports whether the client can put questions to a person; in a form of the protocol's.
func elicits(req *sdk.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}

// asksInCalls reports whether the client is asked by a call's result.
func asksInCalls(req *sdk.CallToolRequest) bool {
	return elicits(req) && req.ProtocolVersion() >= inCalls
}

// AskUser puts a question to the client while the run goes on, in versions of the protocol that let a server ask. Else nobody is there: the run waits.
func (h *host) AskUser(ctx context.Context, p engine.Prompt) (engine.Reply, error) {
	nobody := errdefs.NotAvailable.Errorf("mcp: the client can't be asked")
	if !elicits(h.req) {
		return engine.Reply{}, nobody
	}
	if asksInCalls(h.req) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asked[p.ID] = p // a form is not on record
		return engine.Reply{}, nobody
	}
	res, err := h.req.Session.Elicit(ctx, form(p))
	if err != nil {
		if ctx.Err() != nil {
			return engine.Reply{}, ctx.Err()
		}
		h.s.o.Logger.Warn("a question could not be put to the client", "question", p.ID, "error", err)
		return engine.Reply{}, nobody
	}
	a, ok := answerOf(p, res)
	if !ok {
		return engine.Reply{}, nobody
	}
	return engine.Reply{Answered: a}, nil
}

// questions are those of a run that waits, for a client that answers by calling again. A person who has dismissed one of them is asked no more: the call says what waits, as it does where nobody can be asked.
func (h *host) questions(res *agent.Result) sdk.InputRequestMap {
	if len(res.Pending) == 0 || !asksInCalls(h.req) {
		return nil
	}
	if slices.ContainsFunc(res.Pending, h.dismissed) {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	out := sdk.InputRequestMap{}
	for _, p := range res.Pending {
		q, ok := h.asked[p.ID]
		if !ok {
			q = engine.Prompt{Asked: p.Asked}
		}
		out[p.ID] = form(q)
	}
	return out
}

// asked refuses a state of which a call of a tool did not ask: by a tool that is offered nobody answers what another run waits for.
func (s *Server) asked(ctx context.Context, session, tool string) error {
	wrong := errdefs.Validation.Errorf("the request's state is not of a call of %s", tool)
	log, err := journal.Open(ctx, s.rt.Journal(), session)
	if err != nil {
		return err
	}
	if log.State().Engine != pawl.ToolEngine {
		return wrong
	}
	all, err := agent.Pending(ctx, s.rt.Journal(), session)
	if slices.ContainsFunc(all, func(p journal.Pending) bool { return p.Call != nil && p.Call.Name != tool }) {
		return wrong
	}
	return err
}

// dismissed reports whether this call of the client's came with the word that the person closed the question.
func (h *host) dismissed(p journal.Pending) bool {
	res, ok := h.req.Params.InputResponses[p.ID].(*sdk.ElicitResult)
	return ok && res.Action == "cancel"
}

// answers puts on record what a client answered. An answer that comes too late is none: the run goes on with the first.
func (s *Server) answers(ctx context.Context, session string, all sdk.InputResponseMap) error {
	pending, err := agent.Pending(ctx, s.rt.Journal(), session)
	if err != nil {
		return err
	}
	for _, p := range pending {
		res, ok := all[p.ID].(*sdk.ElicitResult)
		if !ok {
			continue
		}
		a, ok := answerOf(engine.Prompt{Asked: p.Asked}, res)
		if !ok {
			continue // it still waits
		}
		if err := s.answer(ctx, session, a); err != nil && !errdefs.Conflict.Is(err) {
			return err
		}
	}
	return nil
}

func (s *Server) answer(ctx context.Context, session string, a journal.Answered) error {
	a.By = "mcp"
	return agent.Answer(ctx, s.rt.Journal(), session, a)
}

// isYesNo reports whether a question is answered by yes or no.
func isYesNo(a journal.Asked) bool { return a.Call != nil || a.Confirm }

// form is a question in the protocol's form: of one field, but for one that has a form of its own.
func form(p engine.Prompt) *sdk.ElicitParams {
	out := &sdk.ElicitParams{Mode: "form", Message: p.Prompt}
	if out.Message == "" {
		out.Message = "May this run?"
	}
	if p.Call != nil {
		out.Message += "\n" + p.Call.Name + " " + p.Call.Input
	}
	object := func(name string, field any, more map[string]any) map[string]any {
		fields := map[string]any{name: field}
		for k, v := range more {
			fields[k] = v
		}
		return map[string]any{"type": "object", "properties": fields, "required": []string{name}}
	}
	switch {
	case isYesNo(p.Asked):
		out.RequestedSchema = object("approve", map[string]any{"type": "boolean", "title": "Yes?"}, map[string]any{"reason": map[string]any{"type": "string", "title": "Why not", "description": "what the agent is told when it may not"}})
	case isForm(p.Schema):
		out.RequestedSchema = json.RawMessage(p.Schema)
	case isField(p.Schema):
		out.RequestedSchema = object("answer", json.RawMessage(p.Schema), nil)
	default:
		out.RequestedSchema = object("answer", map[string]any{"type": "string", "title": "Answer"}, nil)
	}
	return out
}

// isForm reports whether a schema is one that the protocol has for forms: an object of fields.
func isForm(schema []byte) bool {
	var is struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &is) != nil || is.Type != "object" || len(is.Properties) == 0 {
		return false
	}
	for _, field := range is.Properties {
		if !isField(field) {
			return false
		}
	}
	return true
}

func isField(schema []byte) bool {
	var is struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
	}
	return json.Unmarshal(schema, &is) == nil && is.Properties == nil && slices.Contains([]string{"string", "number", "integer", "boolean", "array"}, is.Type)
}

// answerOf is what a person answered; ok is false when nobody did.
func answerOf(p engine.Prompt, res *sdk.ElicitResult) (a journal.Answered, ok bool) {
	a.ID = p.ID
	text := func(name string) string {
		switch v := res.Content[name].(type) {
		case nil:
			return ""
		case string:
			return v
		default:
			b, _ := json.Marshal(v)
			return string(b)
		}
	}
	switch {
	case res.Action == "decline":
		a.Text = "the person declined to answer"
		return a, true
	case res.Action != "accept":
		return a, false
	case isYesNo(p.Asked):
		if a.Approved, _ = res.Content["approve"].(bool); !a.Approved {
			a.Text = text("reason")
		}
		return a, true
	}
	a.Approved = true
	if _, one := res.Content["answer"]; one && !isForm(p.Schema) {
		a.Text = text("answer")
		return a, true
	}
	b, err := json.Marshal(res.Content)
	a.Text = string(b)
	return a, err == nil
}
