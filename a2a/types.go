package a2a

import (
	"encoding/json"
	"time"
)

// A TaskState is where a task stands. The values are those of 1.0; 0.3 has other spellings, which its codec translates.
type TaskState string

// The states.
const (
	StateUnspecified   TaskState = "TASK_STATE_UNSPECIFIED"
	StateSubmitted     TaskState = "TASK_STATE_SUBMITTED"
	StateWorking       TaskState = "TASK_STATE_WORKING"
	StateCompleted     TaskState = "TASK_STATE_COMPLETED"
	StateFailed        TaskState = "TASK_STATE_FAILED"
	StateCanceled      TaskState = "TASK_STATE_CANCELED"
	StateInputRequired TaskState = "TASK_STATE_INPUT_REQUIRED" // the agent waits for an answer
	StateRejected      TaskState = "TASK_STATE_REJECTED"
	StateAuthRequired  TaskState = "TASK_STATE_AUTH_REQUIRED" // the agent waits for credentials
)

// states are all states, with the spelling of 0.3. A state's index is its number in the protocol's buffer definition.
var states = []struct {
	state TaskState
	v03   string
}{
	{StateUnspecified, "unknown"},
	{StateSubmitted, "submitted"},
	{StateWorking, "working"},
	{StateCompleted, "completed"},
	{StateFailed, "failed"},
	{StateCanceled, "canceled"},
	{StateInputRequired, "input-required"},
	{StateRejected, "rejected"},
	{StateAuthRequired, "auth-required"},
}

// Terminal reports whether nothing more comes of a task in this state: it takes no message, and its streams are over.
func (s TaskState) Terminal() bool {
	return s == StateCompleted || s == StateFailed || s == StateCanceled || s == StateRejected
}

// Waits reports whether a task in this state goes on only when the client sends something.
func (s TaskState) Waits() bool { return s == StateInputRequired || s == StateAuthRequired }

// A Role is who speaks.
type Role string

// The roles.
const (
	RoleUser  Role = "ROLE_USER"  // the client
	RoleAgent Role = "ROLE_AGENT" // the server
)

// A Message is one thing said.
type Message struct {
	ID               string         `json:"messageId"` // made by whoever speaks
	ContextID        string         `json:"contextId,omitempty"`
	TaskID           string         `json:"taskId,omitempty"` // of a task that exists: clients can't choose the id of a new one
	Role             Role           `json:"role"`
	Parts            []Part         `json:"parts"`
	Metadata         map[string]any `json:"metadata,omitempty"`
	Extensions       []string       `json:"extensions,omitempty"`
	ReferenceTaskIDs []string       `json:"referenceTaskIds,omitempty"`
}

// A PartKind says which field of a Part holds its content.
type PartKind string

// The kinds of parts, named as the member of 1.0 that holds the content.
const (
	PartText PartKind = "text"
	PartRaw  PartKind = "raw"
	PartURL  PartKind = "url"
	PartData PartKind = "data"
)

// A Part is a piece of a message or an artifact. Make one with [Text], [Raw], [URL] or [Data].
type Part struct {
	Kind      PartKind
	Text      string          // PartText
	Raw       []byte          // PartRaw: a file's bytes
	URL       string          // PartURL: where a file is
	Data      json.RawMessage // PartData: any JSON value
	Filename  string          // 0.3 has it for files only
	MediaType string          // 0.3 has it for files only
	Metadata  map[string]any
}

// Text makes a part of text.
func Text(text string) Part { return Part{Kind: PartText, Text: text} }

// Raw makes a part that holds a file. raw belongs to the part from then on.
func Raw(mediaType, filename string, raw []byte) Part {
	return Part{Kind: PartRaw, Raw: raw, MediaType: mediaType, Filename: filename}
}

// URL makes a part that says where a file is.
func URL(mediaType, filename, url string) Part {
	return Part{Kind: PartURL, URL: url, MediaType: mediaType, Filename: filename}
}

// Data makes a part of JSON, which belongs to the part from then on.
func Data(value json.RawMessage) Part { return Part{Kind: PartData, Data: value} }

// A Task is work that a server does, with what came of it so far.
type Task struct {
	ID        string         `json:"id"` // made by the server
	ContextID string         `json:"contextId,omitempty"`
	Status    TaskStatus     `json:"status"`
	Artifacts []Artifact     `json:"artifacts,omitempty"`
	History   []Message      `json:"history,omitempty"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

// A TaskStatus is a task's state, since when, and what the agent says to it.
type TaskStatus struct {
	State     TaskState
	Message   *Message
	Timestamp time.Time // zero: not said. Written in UTC with milliseconds, as the specification wants it
}

// An Artifact is something that a task made.
type Artifact struct {
	ID          string         `json:"artifactId"` // unique in its task
	Name        string         `json:"name,omitempty"`
	Description string         `json:"description,omitempty"`
	Parts       []Part         `json:"parts"`
	Metadata    map[string]any `json:"metadata,omitempty"`
	Extensions  []string       `json:"extensions,omitempty"`
}

// A StatusUpdate tells that a task's status changed.
type StatusUpdate struct {
	TaskID    string         `json:"taskId"`
	ContextID string         `json:"contextId"`
	Status    TaskStatus     `json:"status"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

// An ArtifactUpdate brings an artifact, or a piece of one.
type ArtifactUpdate struct {
	TaskID    string         `json:"taskId"`
	ContextID string         `json:"contextId"`
	Artifact  Artifact       `json:"artifact"`
	Append    bool           `json:"append,omitempty"`    // its parts go behind those of the artifact with the same id
	LastChunk bool           `json:"lastChunk,omitempty"` // nothing more comes of this artifact
	Metadata  map[string]any `json:"metadata,omitempty"`
}

// An Event is one of a stream, the result of [OpSend] (a Task or a Message), and the body of a push notification. Exactly one field is set.
type Event struct {
	Task     *Task           `json:"task,omitempty"`
	Message  *Message        `json:"message,omitempty"`
	Status   *StatusUpdate   `json:"statusUpdate,omitempty"`
	Artifact *ArtifactUpdate `json:"artifactUpdate,omitempty"`
}

// TaskID is the task that the event is of; "" for a message outside of any.
func (e Event) TaskID() string {
	switch {
	case e.Task != nil:
		return e.Task.ID
	case e.Status != nil:
		return e.Status.TaskID
	case e.Artifact != nil:
		return e.Artifact.TaskID
	case e.Message != nil:
		return e.Message.TaskID
	}
	return ""
}

// ContextID is the conversation that the event is of; "" if it doesn't say.
func (e Event) ContextID() string {
	switch {
	case e.Task != nil:
		return e.Task.ContextID
	case e.Status != nil:
		return e.Status.ContextID
	case e.Artifact != nil:
		return e.Artifact.ContextID
	case e.Message != nil:
		return e.Message.ContextID
	}
	return ""
}

// State is the task's state as the event tells it; "" for an event that does not.
func (e Event) State() TaskState {
	switch {
	case e.Task != nil:
		return e.Task.Status.State
	case e.Status != nil:
		return e.Status.Status.State
	}
	return ""
}
