package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/tool"
)

// sync brings what may change, the project's tools and skills, up to date. Clients that listen are told.
func (s *Server) sync() {
	defs, skills := []tool.Definition(nil), s.offeredSkills()
	if s.o.Tools != nil {
		defs = s.rt.Tools()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(defs) != len(s.last) || len(defs) > 0 && &defs[0] != &s.last[0] {
		s.last = defs
		var names []string
		for _, d := range defs {
			if s.o.Tools(d) && s.addTool(d) {
				names = append(names, d.Name)
			}
		}
		s.sdk.RemoveTools(slices.DeleteFunc(s.names, func(n string) bool { return slices.Contains(names, n) })...)
		s.names = names
	}
	s.syncSkills(skills)
}

// addTool offers one of the Runtime's tools; it reports whether it could.
func (s *Server) addTool(d tool.Definition) bool {
	if d.Name == s.o.Agent && !s.o.NoAgent || d.Name == answerName && !s.o.NoAnswer {
		s.o.Logger.Warn("a tool is left out: the server has one of that name", "tool", d.Name)
		return false
	}
	schema := d.Schema
	if len(bytes.TrimSpace(schema)) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	var is struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(schema, &is) != nil || is.Type != "object" {
		s.o.Logger.Warn("a tool is left out: its input is no object", "tool", d.Name)
		return false
	}
	s.sdk.AddTool(&sdk.Tool{Name: d.Name, Description: d.Description, InputSchema: schema, Annotations: annotations(d.Annotations)}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return s.use(ctx, req, d.Name)
	})
	return true
}

// annotations are ours in the protocol's words. What a tool that writes does not say stays unsaid: clients take such a tool to be destructive.
func annotations(a tool.Annotations) *sdk.ToolAnnotations {
	out := &sdk.ToolAnnotations{ReadOnlyHint: a.ReadOnly, IdempotentHint: a.Idempotent, OpenWorldHint: &a.OpenWorld}
	if a.ReadOnly || a.Destructive {
		out.DestructiveHint = &a.Destructive
	}
	return out
}

// sessionKey is where a call of a tool says in its _meta which session it is to be in, and its result which it was in.
const sessionKey = "pawl/session"

// use makes one call of a tool, as a run.
func (s *Server) use(ctx context.Context, req *sdk.CallToolRequest, name string) (*sdk.CallToolResult, error) {
	session, _ := req.Params.Meta[sessionKey].(string)
	if err := checkSession(session); err != nil {
		return failed(errdefs.Validation.Errorf("%w", err)), nil
	}
	if state := req.Params.RequestState; state != "" {
		if err := s.asked(ctx, state, name); err != nil {
			return failed(err), nil
		}
	}
	return s.serve(ctx, req, session, func(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error) {
		res, err := s.rt.UseTool(ctx, session, name, json.RawMessage(req.Params.Arguments), opts...)
		if session == "" && res != nil && res.Status != agent.StatusInterrupted {
			s.endSession(ctx, res.ContextID)
		}
		return res, err
	})
}

// endSession ends a session that was one call's own: nobody else knows of it, and what the call left running in the background would run on unseen.
func (s *Server) endSession(ctx context.Context, session string) {
	if err := s.rt.EndSession(context.WithoutCancel(ctx), session); err != nil && !errdefs.Conflict.Is(err) && s.o.Logger != nil {
		s.o.Logger.Warn("the session of a call did not end well", "session", session, "error", err)
	}
}

// checkSession refuses names that can't be a session of somebody's own: a "/" is for those of tasks, below their run.
func checkSession(name string) error {
	if len(name) > 200 {
		return fmt.Errorf("the session's name has %d bytes: 200 is the most", len(name))
	}
	for _, r := range name {
		if r < ' ' || r == 0x7f || r == '/' || r == '\uFFFD' {
			return fmt.Errorf("the session's name %q has a character that it can't have: %q", name, r)
		}
	}
	return nil
}
