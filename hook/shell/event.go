package shell

import (
	"bytes"
	"encoding/json"
)

// EventType names what a shell hook is told of. There are these seven.
type EventType string

// The events. Those of sessions come from whoever runs them, by [Hooks.Fire]; a Runtime (package pawl) does. The others come from [Hooks.Middleware].
const (
	PreToolUse    EventType = "PreToolUse"    // a tool is about to run; the hook may refuse it, have a person asked, or change its input
	PostToolUse   EventType = "PostToolUse"   // a tool ran, well or not; the hook may change what the model is told
	SessionStart  EventType = "SessionStart"  // a session begins, or is taken up again
	SessionEnd    EventType = "SessionEnd"    // a session is over
	Stop          EventType = "Stop"          // the model stops; the hook may send it back to work
	SubagentStart EventType = "SubagentStart" // a run below begins
	SubagentStop  EventType = "SubagentStop"  // a run below stops; the hook may send it back to work
)

// events are all of them, in the order of a session.
var events = []EventType{SessionStart, PreToolUse, PostToolUse, SubagentStart, SubagentStop, Stop, SessionEnd}

// matches reports whether the event has something that a matcher is compared with.
func (e EventType) matches() bool { return e != Stop }

func (e EventType) tool() bool { return e == PreToolUse || e == PostToolUse }

// Payload is what an event says, beside whose run it is: one of the five types below. Its JSON is part of what a hook reads.
type Payload interface {
	// of reports whether events of a type say this.
	of(EventType) bool
	// key is what a matcher is compared with.
	key() string
}

// ToolUsePayload is of PreToolUse.
type ToolUsePayload struct {
	Name  string          `json:"tool_name"`
	Input json.RawMessage `json:"tool_input"` // valid by the tool's schema
	ID    string          `json:"tool_use_id"`
}

// ToolResultPayload is of PostToolUse. The result is in it twice: as an object (tool_response) and as text (tool_result).
type ToolResultPayload struct {
	ToolUsePayload
	Response ToolResponse `json:"tool_response"`
	Result   string       `json:"tool_result"`
	IsError  bool         `json:"is_error"`
	Error    string       `json:"error,omitempty"` // the result of a tool that failed
	Millis   int64        `json:"duration_ms"`
}

// ToolResponse is a result as an object.
type ToolResponse struct {
	Content string `json:"content"`
	IsError bool   `json:"is_error"`
	Files   int    `json:"files,omitempty"` // how many, beside the text
}

// SessionPayload is of SessionStart, with a source, and of SessionEnd, with a reason.
type SessionPayload struct {
	Source string `json:"source,omitempty"` // "startup", "resume", "clear", "compact" or "fork"
	Reason string `json:"reason,omitempty"` // "clear", "logout", "prompt_input_exit" or "other"
	Model  string `json:"model,omitempty"`
}

// StopPayload is of Stop.
type StopPayload struct {
	Active bool   `json:"stop_hook_active"`       // a hook sent the model back in this run already
	Last   string `json:"last_assistant_message"` // its text
}

// SubagentPayload is of SubagentStart, and with a Stop of SubagentStop.
type SubagentPayload struct {
	Type string       `json:"agent_type"`           // the agent's name in the project: "explore"
	ID   string       `json:"agent_id"`             // of this one: its session
	Name string       `json:"agent_name,omitempty"` // for people
	Stop *StopPayload `json:"-"`                    // its members stand beside the others
}

// MarshalJSON puts the members of Stop beside the others.
func (p SubagentPayload) MarshalJSON() ([]byte, error) {
	type bare SubagentPayload // without this method
	return encode(struct {
		bare
		*StopPayload
	}{bare(p), p.Stop})
}

func (ToolUsePayload) of(e EventType) bool    { return e == PreToolUse }
func (ToolResultPayload) of(e EventType) bool { return e == PostToolUse }
func (StopPayload) of(e EventType) bool       { return e == Stop }
func (p SessionPayload) of(e EventType) bool {
	return e == SessionStart && p.Reason == "" || e == SessionEnd && p.Source == ""
}

func (p SubagentPayload) of(e EventType) bool {
	return e == SubagentStart && p.Stop == nil || e == SubagentStop && p.Stop != nil
}

func (p ToolUsePayload) key() string  { return p.Name }
func (p SessionPayload) key() string  { return p.Source + p.Reason } // there is one of them
func (StopPayload) key() string       { return "" }
func (p SubagentPayload) key() string { return p.Type }

// encode leaves <, > and & as they are: patterns are compared with it.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
