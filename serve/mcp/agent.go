package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// answerName is the tool that answers what waits for a person.
const answerName = "answer"

func (s *Server) addAgent() {
	s.sdk.AddTool(&sdk.Tool{
		Name: s.o.Agent, Description: s.o.Description, Annotations: &sdk.ToolAnnotations{Title: "Ask the agent"}, OutputSchema: outcomeSchema,
		InputSchema: json.RawMessage(`{
			"type": "object",
			"additionalProperties": false,
			"properties": {
				"prompt": {"type": "string", "description": "what the agent is to do. Without it, the unfinished run of the session goes on"},
				"session": {"type": "string", "description": "the session to go on in, or the name of a new one; default: a new one, whose name the result has"}
			}
		}`),
	}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var in struct{ Prompt, Session string }
		if err := arguments(req, &in); err != nil {
			return failed(err), nil
		}
		if err := checkSession(in.Session); err != nil {
			return failed(errdefs.Validation.Errorf("%w", err)), nil
		}
		blank := strings.TrimSpace(in.Prompt) == ""
		if blank && in.Session == "" {
			return failed(errdefs.Validation.Errorf("a prompt is needed, or the session whose unfinished run is to go on")), nil
		}
		return s.serve(ctx, req, in.Session, func(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error) {
			if blank {
				return s.rt.Resume(ctx, session, opts...)
			}
			return s.rt.Run(ctx, pawl.Request{Prompt: in.Prompt, SessionID: session}, opts...)
		})
	})
}

func (s *Server) addAnswer() {
	s.sdk.AddTool(&sdk.Tool{
		Name:        answerName,
		Description: "Answer a question that a run waits for a person with, or let a call that it is about run or not, and go on with the run. Ask the person first: this is theirs to decide.",
		Annotations: &sdk.ToolAnnotations{Title: "Answer for a person"},
		InputSchema: json.RawMessage(`{
			"type": "object",
			"additionalProperties": false,
			"required": ["session", "call_id"],
			"properties": {
				"session": {"type": "string", "description": "of the run that waits"},
				"call_id": {"type": "string", "description": "what waits"},
				"approve": {"type": "boolean", "description": "of a call, or a question of yes or no: whether it may"},
				"text": {"type": "string", "description": "the answer to a question; with approve false, why not"}
			}
		}`),
	}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var in struct {
			Session string `json:"session"`
			Call    string `json:"call_id"`
			Approve *bool  `json:"approve"`
			Text    string `json:"text"`
		}
		if err := arguments(req, &in); err != nil {
			return failed(err), nil
		}
		if req.Params.RequestState == "" { // else it was done, and further questions came
			if err := s.decide(ctx, in.Session, in.Call, in.Approve, in.Text); err != nil {
				return failed(err), nil
			}
		}
		return s.serve(ctx, req, in.Session, s.rt.Resume)
	})
}

// decide answers a pending question.
func (s *Server) decide(ctx context.Context, session, call string, approve *bool, text string) error {
	if session == "" || checkSession(session) != nil {
		return errdefs.Validation.Errorf("a session is needed: the one whose run waits")
	}
	all, err := agent.Pending(ctx, s.rt.Journal(), session)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.ID != call {
			continue
		}
		if isYesNo(p.Asked) && approve == nil {
			return errdefs.Validation.Errorf("approve is needed: %s is answered by true or false", call)
		}
		return s.answer(ctx, session, journal.Answered{ID: call, Approved: approve == nil || *approve, Text: text})
	}
	return errdefs.NotFound.Errorf("nothing of the id %q waits in session %q", call, session)
}

// arguments reads those of a call, exactly. A pointer is to a struct.
func arguments(req *sdk.CallToolRequest, to any) error {
	raw := bytes.TrimSpace(req.Params.Arguments)
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(to)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more behind the object")
		}
	}
	if err != nil {
		return errdefs.Validation.Errorf("the arguments of %s are wrong: %w", req.Params.Name, err)
	}
	return nil
}
