package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Command is a model that is a program: for each call it is started, reads the conversation from its standard input, as JSON, and writes what comes next to its standard output.
type Command []string

// conversation is what the program reads.
type conversation struct {
	System   string       `json:"system,omitempty"`
	Tools    []model.Tool `json:"tools,omitempty"`
	Messages []turn       `json:"messages"`
}

// turn is a message: of the user, of the assistant, who may call tools, or of tools with their results. It is also what the program writes.
type turn struct {
	Role    message.Role `json:"role,omitempty"`
	Text    string       `json:"text,omitempty"`
	Calls   []call       `json:"calls,omitempty"`
	Results []result     `json:"results,omitempty"`
}

type call struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type result struct {
	Name    string `json:"name"`
	Content string `json:"content"`
	Error   bool   `json:"error,omitempty"`
}

// Capabilities implements [model.Describer]: what it doesn't name is refused before the program starts.
func (c Command) Capabilities() model.Capabilities {
	return model.Capabilities{Name: "command/" + c[0], Provider: "command", Tools: true}
}

// Complete implements [model.Model].
func (c Command) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	return c.ask(ctx, req)
}

// CompleteStream implements [model.Model]: it has nothing to say before all is said.
func (c Command) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	res, err := c.ask(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: res})
}

func (c Command) ask(ctx context.Context, req model.Request) (*model.Response, error) {
	if err := c.Capabilities().Admit(req); err != nil {
		return nil, err
	}
	in, err := json.Marshal(conversation{req.System, req.Tools, turnsOf(req.Messages)})
	if err != nil {
		return nil, err
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, c[0], c[1:]...) //nolint:gosec // whoever makes the model says which program it is
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err() // the run is canceled: no failure of the model
		}
		return nil, &model.Error{Provider: "command", Kind: errdefs.NotAvailable, Message: said.String(), Err: err} // may pass: retries are for whoever wraps the model
	}
	var next turn
	if err := json.Unmarshal(out.Bytes(), &next); err != nil {
		return nil, &model.Error{Provider: "command", Kind: errdefs.Internal, Message: fmt.Sprintf("%q is no turn", out.String()), Err: err}
	}
	return next.response(req.Messages.Len()), nil
}

// response makes a reply of what the program wrote. The ids of calls tell them apart in the conversation.
func (t turn) response(at int) *model.Response {
	var calls []message.ToolCall
	for i, c := range t.Calls {
		calls = append(calls, message.ToolCall{ID: fmt.Sprintf("call_%d_%d", at, i), Name: c.Name, Input: string(c.Input)})
	}
	res := &model.Response{Message: message.Assistant(t.Text, calls...), Stop: model.StopEnd}
	if len(calls) > 0 {
		res.Stop = model.StopTools
	}
	return res
}

func turnsOf(h message.History) (turns []turn) {
	for _, m := range h.All() {
		t := turn{Role: m.Role(), Text: m.Text()}
		for c := range message.Of[message.ToolCall](m) {
			t.Calls = append(t.Calls, call{c.Name, json.RawMessage(c.Input)})
		}
		for r := range message.Of[message.ToolResult](m) {
			t.Results = append(t.Results, result{r.Name, r.Content, r.IsError})
		}
		turns = append(turns, t)
	}
	return turns
}
