package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// runner begins a run, or goes on with one.
type runner func(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error)

// serve runs something for a call: it tells how far it is, puts questions to the client, and makes the call's result. A call that comes again with answers goes on with the run that they are for.
func (s *Server) serve(ctx context.Context, req *sdk.CallToolRequest, session string, begin runner) (*sdk.CallToolResult, error) {
	leave := s.enter()
	if leave == nil {
		return failed(errdefs.NotAvailable.Errorf("the server is being closed")), nil
	}
	defer leave()
	ctx, done := s.runs(ctx, req)
	defer done()
	h := &host{s: s, req: req, asked: map[string]engine.Prompt{}, session: session}
	if req.Params.RequestState != "" {
		if session = req.Params.RequestState; checkSession(session) != nil || !asksInCalls(req) {
			return failed(errdefs.Validation.Errorf("the request's state is not one that this server gave")), nil
		}
		if err := s.answers(ctx, session, req.Params.InputResponses); err != nil {
			return failed(err), nil
		}
		begin = s.rt.Resume
		h.session = session
	}
	res, err := begin(ctx, session, agent.WithEngineHost(h))
	if res == nil {
		return failed(err), nil
	}
	if questions := h.questions(res); len(questions) > 0 {
		return &sdk.CallToolResult{InputRequests: questions, RequestState: res.ContextID}, nil
	}
	return s.result(res, req.Params.Name), nil
}

// host is where a call's run happens: at a client.
type host struct {
	engine.NoopHost
	s   *Server
	req *sdk.CallToolRequest

	mu      sync.Mutex
	session string
	asked   map[string]engine.Prompt // that nobody could be asked then
	steps   int
	told    float64
}

// Listening reports whether the client wants to know how far a call is.
func (h *host) Listening() bool { return h.req.Params.GetProgressToken() != nil }

// Publish tells the client of steps, of tools, and of what a tool writes.
func (h *host) Publish(ctx context.Context, e event.Event) error {
	if text := h.progress(e); text != "" {
		h.told++
		return h.req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: h.req.Params.GetProgressToken(), Progress: h.told, Message: text})
	}
	return nil
}

// longestProgress is how much of what a tool writes, or is given, a notification has, in bytes.
const longestProgress = 500

func (h *host) progress(e event.Event) string {
	switch d := e.Data.(type) {
	case journal.RunStarted:
		if d.ParentRun == "" {
			return fmt.Sprintf("run %s in session %s", e.Run, e.Session)
		}
		return "task of " + d.Agent
	case journal.Resumed:
		return fmt.Sprintf("run %s in session %s goes on", e.Run, e.Session)
	case journal.ModelStarted:
		h.steps++
		return fmt.Sprintf("step %d", h.steps)
	case journal.ToolStarted:
		return short("tool " + d.Call.Name + " " + d.Call.Input)
	case journal.ToolFinished:
		return fmt.Sprintf("tool %s: %s", d.Name, d.Outcome)
	case nil:
		switch e.Delta {
		case event.ToolOutput, event.Warning:
			return short(strings.TrimRight(e.Text, "\n"))
		case event.Retry:
			return short("the model is called again: " + e.Text)
		}
	}
	return ""
}

func short(s string) string {
	if len(s) > longestProgress {
		s = s[:longestProgress] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// outcome is what a run came to, as structured content.
type outcome struct {
	Session string     `json:"session"`
	Run     string     `json:"run"`
	Status  string     `json:"status"`
	Text    string     `json:"text"`
	Usage   usage      `json:"usage"`
	Pending []question `json:"pending,omitempty"`
	Error   *failure   `json:"error,omitempty"`
}

type usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_tokens"`
	CacheWrite int `json:"cache_write_tokens"`
	Reasoning  int `json:"reasoning_tokens"`
}

// question is what waits for a person.
type question struct {
	ID     string `json:"call_id"`
	Prompt string `json:"prompt,omitempty"`
	Name   string `json:"name,omitempty"`
	Input  string `json:"input,omitempty"`
}

type failure struct {
	Class string `json:"class"`
	Text  string `json:"text"`
}

var outcomeSchema = json.RawMessage(`{
	"type": "object",
	"required": ["session", "run", "status", "text", "usage"],
	"properties": {
		"session": {"type": "string", "description": "go on in it by naming it"},
		"run": {"type": "string"},
		"status": {"type": "string", "enum": ["completed", "interrupted", "canceled", "aborted", "failed"], "description": "interrupted: it waits for a person, or was left unfinished"},
		"text": {"type": "string"},
		"usage": {"type": "object", "properties": {
			"input_tokens": {"type": "integer"}, "output_tokens": {"type": "integer"}, "cache_read_tokens": {"type": "integer"}, "cache_write_tokens": {"type": "integer"}, "reasoning_tokens": {"type": "integer"}}},
		"pending": {"type": "array", "items": {"type": "object", "required": ["call_id"], "properties": {
			"call_id": {"type": "string"}, "prompt": {"type": "string"}, "name": {"type": "string"}, "input": {"type": "string"}}}},
		"error": {"type": "object", "properties": {"class": {"type": "string"}, "text": {"type": "string"}}}
	}
}`)

// result makes the result of a call of a run's. Where the run was one tool call and is over, it is that tool's.
func (s *Server) result(res *agent.Result, called string) *sdk.CallToolResult {
	out := &sdk.CallToolResult{Meta: sdk.Meta{sessionKey: res.ContextID, "pawl/run": res.RunID, "pawl/status": string(res.Status)}, Content: []sdk.Content{}}
	if r, ok := toolResult(res); ok {
		out.Content, out.IsError = contents(r.Content, r.Files), r.IsError
		return out
	}
	o := outcome{Session: res.ContextID, Run: res.RunID, Status: string(res.Status), Text: strings.ToValidUTF8(res.Text(), "\uFFFD"), Usage: usage{res.Usage.Input, res.Usage.Output, res.Usage.CacheRead, res.Usage.CacheWrite, res.Usage.Reasoning}}
	for _, p := range res.Pending {
		q := question{ID: p.ID, Prompt: p.Prompt}
		if p.Call != nil {
			q.Name, q.Input = p.Call.Name, p.Call.Input
		}
		o.Pending = append(o.Pending, q)
	}
	said := o.Text
	switch {
	case len(o.Pending) > 0:
		said = s.waits(res.ContextID, o.Pending)
	case res.Err != nil:
		o.Error = failureOf(res.Err)
		said = join(said, fmt.Sprintf("The run is %s: %s. Session %s can be continued.", res.Status, o.Error.Text, res.ContextID))
		out.IsError = true
	}
	out.Content = contents(said, nil)
	if called == s.o.Agent || called == answerName {
		out.StructuredContent = o
	}
	return out
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n\n" + b
}

func failureOf(err error) *failure {
	f := &failure{Class: "internal", Text: strings.ToValidUTF8(err.Error(), "\uFFFD")}
	if c := errdefs.Of(err); c != nil {
		f.Class = c.Error()
	} else if errdefs.Canceled(err) {
		f.Class = "canceled"
	}
	return f
}

// waits says what a run waits for, and how to answer.
func (s *Server) waits(session string, all []question) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The run in session %s waits for a person:\n", session)
	for _, q := range all {
		fmt.Fprintf(&b, "- %s: %s", q.ID, cmp.Or(q.Prompt, "may this run?"))
		if q.Name != "" {
			fmt.Fprintf(&b, " (%s %s)", q.Name, q.Input)
		}
		b.WriteString("\n")
	}
	if s.o.NoAnswer {
		b.WriteString("A person answers with pawl approve, reject or answer; then ask again in this session, without a prompt.")
	} else {
		fmt.Fprintf(&b, "Ask the person. Then call the tool %s with this session, the call_id and what the person said.", answerName)
	}
	return b.String()
}

// failed is the result of a call that ran nothing, or whose run is not known.
func failed(err error) *sdk.CallToolResult {
	f := failureOf(err)
	return &sdk.CallToolResult{IsError: true, Content: contents(f.Text, nil), Meta: sdk.Meta{"pawl/error": f.Class}}
}

// toolResult is that of a run which was one tool call.
func toolResult(res *agent.Result) (message.ToolResult, bool) {
	if res.Status != agent.StatusCompleted || len(res.Messages) == 0 || !pawl.UsedTool(res) {
		return message.ToolResult{}, false
	}
	for r := range message.Of[message.ToolResult](res.Messages[len(res.Messages)-1]) {
		return r, true
	}
	return message.ToolResult{}, false
}
