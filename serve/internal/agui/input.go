package agui

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/exact"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// Input is a request to run an agent: RunAgentInput. Members that the protocol may get later are let be, as it wants.
type Input struct {
	ThreadID        string            `json:"threadId"`
	RunID           string            `json:"runId"`
	ProtocolVersion string            `json:"protocolVersion"`
	ParentRunID     string            `json:"parentRunId"`
	State           json.RawMessage   `json:"state"`
	Messages        []json.RawMessage `json:"messages"`
	Tools           []json.RawMessage `json:"tools"`
	Context         []struct {
		Description string `json:"description"`
		Value       string `json:"value"`
	} `json:"context"`
	ForwardedProps json.RawMessage `json:"forwardedProps"`
	Resume         []Resume        `json:"resume"`

	// What they say.
	System  string          `json:"-"` // system and developer messages, and the context
	History message.History `json:"-"` // what stands before Last
	Last    message.Message `json:"-"` // the newest message; zero: there is none
	Inputs  journal.Vars    `json:"-"` // the state, and the forwarded props under [Forwarded]
}

// Forwarded is the var that has what the application passes through to the agent.
const Forwarded = "forwardedProps"

// Resume answers an interrupt.
type Resume struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"`
	Payload     json.RawMessage `json:"payload"`
}

type wireMessage struct {
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"toolCalls"`
	ToolCallID string `json:"toolCallId"`
	Error      string `json:"error"`
}

type wirePart struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Source *struct {
		Type  string `json:"type"`
		Value string `json:"value"`
		MIME  string `json:"mimeType"`
	} `json:"source"`
}

// Parse reads a request. What it can't mean is errdefs.Validation, and says where.
func Parse(b []byte) (*Input, error) {
	if t := bytes.TrimLeft(b, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return nil, errdefs.Validation.Errorf("serve: the request is no JSON object")
	}
	in := &Input{}
	err := exact.Unmarshal(b, in)
	if err == nil {
		err = exact.Once(b)
	}
	if err != nil {
		return nil, errdefs.Validation.Errorf("serve: the request can't be read: %w", err)
	}
	if err := in.read(); err != nil {
		return nil, errdefs.Validation.Errorf("serve: %w", err)
	}
	return in, nil
}

func (in *Input) read() error {
	switch {
	case in.ThreadID == "" || in.RunID == "":
		return errors.New("threadId and runId have to name the session and the run")
	case in.Messages == nil:
		return errors.New("messages: it is missing")
	case len(in.Tools) > 0:
		return errors.New("tools: the agent has its own tools, and calls them itself: leave the list empty")
	}
	if err := in.messages(); err != nil {
		return err
	}
	for _, c := range in.Context {
		in.System += "\n\n" + c.Description + ": " + c.Value
	}
	in.System = strings.TrimSpace(in.System)
	for i, r := range in.Resume {
		if r.InterruptID == "" || r.Status != "resolved" && r.Status != "cancelled" {
			return fmt.Errorf("resume[%d]: it needs an interruptId, and the status resolved or cancelled", i)
		}
	}
	return in.vars()
}

// vars are what the run's board begins with.
func (in *Input) vars() error {
	if given(in.State) {
		if err := json.Unmarshal(in.State, &in.Inputs); err != nil || in.State[0] != '{' {
			return fmt.Errorf("state: want an object: its members are the vars of the agent's board: %w", err)
		}
	}
	if !given(in.ForwardedProps) || string(in.ForwardedProps) == "{}" {
		return nil
	}
	var v journal.Vars
	if err := json.Unmarshal([]byte(`{"v":`+string(in.ForwardedProps)+`}`), &v); err != nil {
		return fmt.Errorf("forwardedProps: %w", err)
	}
	if _, taken := in.Inputs[Forwarded]; taken {
		return fmt.Errorf("state: the member %s is what forwardedProps are called in the board: give one of them", Forwarded)
	}
	if in.Inputs == nil {
		in.Inputs = journal.Vars{}
	}
	in.Inputs[Forwarded] = v["v"]
	return nil
}

func given(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

// messages reads the conversation. What is before its last message is made valid for every provider.
func (in *Input) messages() error {
	var all []message.Message
	var system []string
	var results []message.ToolResult
	calls := map[string]string{}
	flush := func() {
		if len(results) > 0 {
			all, results = append(all, message.Results(results...)), nil
		}
	}
	for i, raw := range in.Messages {
		m, err := in.message(raw, calls, &system, &results, flush)
		if err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		if !m.IsZero() {
			all = append(all, m)
		}
	}
	flush()
	in.System = strings.Join(system, "\n\n")
	if len(all) > 0 {
		in.Last, all = all[len(all)-1], all[:len(all)-1]
	}
	in.History = message.Repair(message.NewHistory(all...))
	return nil
}

// message reads one; zero: it is none of a conversation.
func (in *Input) message(raw json.RawMessage, calls map[string]string, system *[]string, results *[]message.ToolResult, flush func()) (next message.Message, err error) {
	var m wireMessage
	if err := exact.Unmarshal(raw, &m); err != nil {
		return next, err
	}
	if m.Role == "reasoning" || m.Role == "activity" { // shown to people, and told to no model
		return next, nil
	}
	parts, err := partsOf(m.Content)
	if err != nil {
		return next, err
	}
	if m.Role != "user" {
		for _, p := range parts {
			if _, ok := p.(message.File); ok && m.Role != "tool" {
				return next, fmt.Errorf("a message of role %s has text only", m.Role)
			}
		}
	}
	if m.Role != "tool" {
		flush()
	}
	said := message.New(message.RoleUser, parts...)
	switch m.Role {
	case "system", "developer":
		*system = append(*system, said.Text())
		return next, nil
	case "user":
		if said.Blank() {
			return next, errors.New("it says nothing")
		}
		next = said
	case "assistant":
		for _, c := range m.ToolCalls {
			if c.ID == "" || c.Function.Name == "" {
				return next, errors.New("a call needs an id, and the function's name")
			}
			calls[c.ID] = c.Function.Name
			parts = append(parts, message.ToolCall{ID: c.ID, Name: c.Function.Name, Input: c.Function.Arguments})
		}
		next = message.New(message.RoleAssistant, parts...)
	case "tool":
		name, ok := calls[m.ToolCallID]
		if !ok {
			return next, fmt.Errorf("it answers the call %q, which no message before it makes", m.ToolCallID)
		}
		res := message.ToolResult{Call: m.ToolCallID, Name: name, Content: said.Text(), IsError: m.Error != ""}
		if m.Error != "" {
			res.Content = strings.TrimSpace(m.Error + "\n" + res.Content)
		}
		for f := range message.Of[message.File](said) {
			res.Files = append(res.Files, f)
		}
		*results = append(*results, res)
		return next, said.CheckFiles()
	default:
		return next, fmt.Errorf("there is no role %q", m.Role)
	}
	return next, next.CheckFiles()
}

func partsOf(v json.RawMessage) (parts []message.Part, err error) {
	if !given(v) {
		return nil, nil
	}
	var text string
	if json.Unmarshal(v, &text) == nil {
		if text != "" {
			parts = append(parts, message.Text{Text: text})
		}
		return parts, nil
	}
	var list []wirePart
	if err := exact.Unmarshal(v, &list); err != nil {
		return nil, fmt.Errorf("the content is neither a text nor a list of parts: %w", err)
	}
	for i, p := range list {
		kind, isFile := map[string]string{"image": "image/png", "audio": "audio/mpeg", "video": "video/mp4", "document": "application/pdf"}[p.Type]
		switch {
		case p.Type == "text":
			parts = append(parts, message.Text{Text: p.Text})
		case isFile && p.Source != nil && p.Source.Type == "data":
			b, err := base64.StdEncoding.DecodeString(p.Source.Value)
			if err != nil {
				return nil, fmt.Errorf("content[%d]: the source: %w", i, err)
			}
			parts = append(parts, message.File{MIME: p.Source.MIME, Data: string(b)})
		case isFile && p.Source != nil && p.Source.Type == "url":
			if p.Source.MIME != "" {
				kind = p.Source.MIME
			}
			parts = append(parts, message.File{MIME: kind, URL: p.Source.Value})
		case isFile:
			return nil, fmt.Errorf("content[%d]: a part of type %q needs a source of type data or url: nothing is kept here", i, p.Type)
		default:
			return nil, fmt.Errorf("content[%d]: there is no part of type %q", i, p.Type)
		}
	}
	return parts, nil
}

// Answer is what a resume says of a question.
func (r Resume) Answer(p journal.Pending, by string) (journal.Answered, error) {
	a := journal.Answered{ID: r.InterruptID, By: by}
	if r.Status == "cancelled" {
		a.Text = "Nobody answered this: it was given up."
		return a, nil
	}
	question := p.Call == nil && !p.Confirm
	var text string
	switch {
	case json.Unmarshal(r.Payload, &a.Approved) == nil && given(r.Payload) && !question:
		return a, nil
	case json.Unmarshal(r.Payload, &text) == nil && given(r.Payload) && question:
		a.Approved, a.Text = true, text
		return a, nil
	}
	var o struct {
		Approved *bool           `json:"approved"`
		Text     string          `json:"text"`
		Input    json.RawMessage `json:"input"`
		Session  bool            `json:"session"`
		Rule     string          `json:"rule"`
	}
	d := json.NewDecoder(bytes.NewReader(r.Payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil || o.Approved == nil && (!question || o.Text == "") {
		return a, errdefs.Validation.Errorf("serve: resume: the payload for %q has to fit the interrupt's responseSchema", r.InterruptID)
	}
	a.Approved = o.Approved == nil || *o.Approved
	a.Text, a.Input, a.Session, a.Rule = o.Text, string(o.Input), o.Session, o.Rule
	return a, nil
}
