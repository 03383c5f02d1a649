package a2a

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/pawl-dev/pawl/internal/exact"
)

// The shapes of 0.3. Each has a member kind, where it may stand in place of others.
type (
	message03 struct {
		Kind             string         `json:"kind"`
		ID               string         `json:"messageId"`
		ContextID        string         `json:"contextId,omitempty"`
		TaskID           string         `json:"taskId,omitempty"`
		Role             string         `json:"role"`
		Parts            []part03       `json:"parts"`
		Metadata         map[string]any `json:"metadata,omitempty"`
		Extensions       []string       `json:"extensions,omitempty"`
		ReferenceTaskIDs []string       `json:"referenceTaskIds,omitempty"`
	}
	part03 struct {
		Kind     string          `json:"kind"`
		Text     *string         `json:"text,omitempty"`
		File     *file03         `json:"file,omitempty"`
		Data     json.RawMessage `json:"data,omitempty"`
		Metadata map[string]any  `json:"metadata,omitempty"`
	}
	file03 struct {
		Name     string  `json:"name,omitempty"`
		MimeType string  `json:"mimeType,omitempty"`
		Bytes    *string `json:"bytes,omitempty"`
		URI      *string `json:"uri,omitempty"`
	}
	status03 = statusJSON[string, message03]
	task03   struct {
		Kind      string         `json:"kind"`
		ID        string         `json:"id"`
		ContextID string         `json:"contextId"`
		Status    *status03      `json:"status"`
		Artifacts []artifact03   `json:"artifacts,omitempty"`
		History   []message03    `json:"history,omitempty"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	artifact03 struct {
		ID          string         `json:"artifactId"`
		Name        string         `json:"name,omitempty"`
		Description string         `json:"description,omitempty"`
		Parts       []part03       `json:"parts"`
		Metadata    map[string]any `json:"metadata,omitempty"`
		Extensions  []string       `json:"extensions,omitempty"`
	}
	statusUpdate03 struct {
		Kind      string         `json:"kind"`
		TaskID    string         `json:"taskId"`
		ContextID string         `json:"contextId"`
		Status    *status03      `json:"status"`
		Final     bool           `json:"final"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	artifactUpdate03 struct {
		Kind      string         `json:"kind"`
		TaskID    string         `json:"taskId"`
		ContextID string         `json:"contextId"`
		Artifact  artifact03     `json:"artifact"`
		Append    bool           `json:"append,omitempty"`
		LastChunk bool           `json:"lastChunk,omitempty"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	send03 struct {
		Message       message03      `json:"message"`
		Configuration *config03      `json:"configuration,omitempty"`
		Metadata      map[string]any `json:"metadata,omitempty"`
	}
	config03 struct {
		AcceptedOutputModes []string `json:"acceptedOutputModes,omitempty"`
		HistoryLength       *int     `json:"historyLength,omitempty"`
		Push                *push03  `json:"pushNotificationConfig,omitempty"`
		Blocking            *bool    `json:"blocking,omitempty"`
	}
	push03 struct {
		ID             string  `json:"id,omitempty"`
		URL            string  `json:"url"`
		Token          string  `json:"token,omitempty"`
		Authentication *auth03 `json:"authentication,omitempty"`
	}
	auth03 struct {
		Schemes     []string `json:"schemes"`
		Credentials string   `json:"credentials,omitempty"`
	}
	taskPush03 struct {
		TaskID string `json:"taskId"`
		Config push03 `json:"pushNotificationConfig"`
	}
	taskID03 struct {
		ID            string         `json:"id"`
		HistoryLength *int           `json:"historyLength,omitempty"`
		ConfigID      string         `json:"pushNotificationConfigId,omitempty"`
		Metadata      map[string]any `json:"metadata,omitempty"`
	}
)

// to03 gives a value of ours in the shape of 0.3.
func to03(value any) (any, error) {
	switch x := value.(type) {
	case *Message:
		return messageTo03(*x)
	case Message:
		return messageTo03(x)
	case *Task:
		return taskTo03(*x)
	case Task:
		return taskTo03(x)
	case *Artifact:
		return artifactTo03(*x)
	case Artifact:
		return artifactTo03(x)
	case *StatusUpdate:
		return statusUpdateTo03(*x)
	case StatusUpdate:
		return statusUpdateTo03(x)
	case *ArtifactUpdate:
		return artifactUpdateTo03(*x)
	case ArtifactUpdate:
		return artifactUpdateTo03(x)
	case *Event:
		return eventTo03(*x)
	case Event:
		return eventTo03(x)
	case *AgentCard:
		return cardTo03(*x)
	case AgentCard:
		return cardTo03(x)
	case *SendRequest:
		return sendTo03(*x)
	case SendRequest:
		return sendTo03(x)
	}
	return requestTo03(value)
}

// requestTo03 has what is short.
func requestTo03(value any) (any, error) {
	switch x := value.(type) {
	case *GetTaskRequest:
		return taskID03{ID: x.ID, HistoryLength: x.HistoryLength}, nil
	case GetTaskRequest:
		return taskID03{ID: x.ID, HistoryLength: x.HistoryLength}, nil
	case *CancelTaskRequest:
		return taskID03{ID: x.ID, Metadata: x.Metadata}, nil
	case CancelTaskRequest:
		return taskID03{ID: x.ID, Metadata: x.Metadata}, nil
	case *SubscribeRequest:
		return taskID03{ID: x.ID}, nil
	case SubscribeRequest:
		return taskID03{ID: x.ID}, nil
	case *PushConfig:
		return taskPush03{x.TaskID, *pushTo03(x)}, nil
	case PushConfig:
		return taskPush03{x.TaskID, *pushTo03(&x)}, nil
	case *PushConfigRequest:
		return taskID03{ID: x.TaskID, ConfigID: x.ID}, nil
	case PushConfigRequest:
		return taskID03{ID: x.TaskID, ConfigID: x.ID}, nil
	case *ListPushConfigsRequest:
		return taskID03{ID: x.TaskID}, nil
	case ListPushConfigsRequest:
		return taskID03{ID: x.TaskID}, nil
	case *ListPushConfigsResponse:
		return pushesTo03(x.Configs), nil
	case ListPushConfigsResponse:
		return pushesTo03(x.Configs), nil
	case *ExtendedCardRequest, ExtendedCardRequest:
		return struct{}{}, nil
	}
	return nil, Errorf(CodeUnsupportedOperation, "0.3 has no %T", value)
}

// from03 reads what has the shape of 0.3 into a value of ours.
func from03(data []byte, value any) error {
	switch x := value.(type) {
	case *Message:
		return read03(data, x, messageFrom03)
	case *Task:
		return read03(data, x, taskFrom03)
	case *Artifact:
		return read03(data, x, artifactFrom03)
	case *StatusUpdate:
		return read03(data, x, statusUpdateFrom03)
	case *ArtifactUpdate:
		return read03(data, x, artifactUpdateFrom03)
	case *Event:
		return eventFrom03(data, x)
	case *AgentCard:
		return read03(data, x, cardFrom03)
	case *SendRequest:
		return read03(data, x, sendFrom03)
	case *GetTaskRequest:
		return read03(data, x, func(r taskID03) (GetTaskRequest, error) {
			return GetTaskRequest{ID: r.ID, HistoryLength: r.HistoryLength}, nil
		})
	case *CancelTaskRequest:
		return read03(data, x, func(r taskID03) (CancelTaskRequest, error) {
			return CancelTaskRequest{ID: r.ID, Metadata: r.Metadata}, nil
		})
	case *SubscribeRequest:
		return read03(data, x, func(r taskID03) (SubscribeRequest, error) { return SubscribeRequest{ID: r.ID}, nil })
	case *PushConfig:
		return read03(data, x, taskPushFrom03)
	case *PushConfigRequest:
		return read03(data, x, func(r taskID03) (PushConfigRequest, error) {
			if r.ConfigID == "" {
				r.ConfigID = r.ID
			}
			return PushConfigRequest{TaskID: r.ID, ID: r.ConfigID}, nil
		})
	case *ListPushConfigsRequest:
		return read03(data, x, func(r taskID03) (ListPushConfigsRequest, error) { return ListPushConfigsRequest{TaskID: r.ID}, nil })
	case *ListPushConfigsResponse:
		return read03(data, x, func(list []taskPush03) (ListPushConfigsResponse, error) {
			configs, err := each(list, taskPushFrom03)
			return ListPushConfigsResponse{Configs: configs}, err
		})
	case *ExtendedCardRequest:
		return nil // it has no parameters
	}
	return fmt.Errorf("0.3 has no %T", value)
}

// read03 reads data as a shape of 0.3 and gives what convert makes of it.
func read03[Old, New any](data []byte, to *New, convert func(Old) (New, error)) error {
	var old Old
	if err := exact.Unmarshal(data, &old); err != nil {
		return err
	}
	var err error
	*to, err = convert(old)
	return err
}

// each converts a list; one that is empty or absent stays absent.
func each[From, To any](list []From, convert func(From) (To, error)) ([]To, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make([]To, len(list))
	for i := range list {
		var err error
		if out[i], err = convert(list[i]); err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return out, nil
}

// kind refuses a value that says it is another one; that it says nothing is let pass.
func kind(have, want string) error {
	if have != "" && have != want {
		return fmt.Errorf("kind is %.40q, not %q", have, want)
	}
	return nil
}

func messageTo03(m Message) (message03, error) {
	parts, err := each(m.Parts, partTo03)
	role := "user"
	if m.Role == RoleAgent {
		role = "agent"
	}
	return message03{"message", m.ID, m.ContextID, m.TaskID, role, filled(parts), m.Metadata, m.Extensions, m.ReferenceTaskIDs}, err
}

func messageFrom03(m message03) (Message, error) {
	out := Message{ID: m.ID, ContextID: m.ContextID, TaskID: m.TaskID, Metadata: m.Metadata, Extensions: m.Extensions, ReferenceTaskIDs: m.ReferenceTaskIDs}
	switch m.Role {
	case "user":
		out.Role = RoleUser
	case "agent":
		out.Role = RoleAgent
	default:
		return out, fmt.Errorf("%.40q is no role: it is user or agent", m.Role)
	}
	var err error
	if out.Parts, err = each(m.Parts, partFrom03); err != nil {
		return out, fmt.Errorf("parts%w", err)
	}
	return out, kind(m.Kind, "message")
}

// wrapped marks a data part whose value is no object, which 0.3 has no place for: it stands in an object as its member value. Implementations
// that translate between the versions use this mark.
const wrapped = "data_part_compat"

func partTo03(p Part) (part03, error) {
	out := part03{Metadata: p.Metadata}
	switch p.Kind {
	case PartText:
		out.Kind, out.Text = "text", &p.Text
	case PartRaw:
		raw := base64.StdEncoding.EncodeToString(p.Raw)
		out.Kind, out.File = "file", &file03{Name: p.Filename, MimeType: p.MediaType, Bytes: &raw}
	case PartURL:
		out.Kind, out.File = "file", &file03{Name: p.Filename, MimeType: p.MediaType, URI: &p.URL}
	case PartData:
		out.Kind, out.Data = "data", p.Data
		var object map[string]json.RawMessage
		if json.Unmarshal(p.Data, &object) != nil || object == nil {
			value := p.Data
			if value == nil {
				value = json.RawMessage("null")
			}
			out.Data = append(append([]byte(`{"value":`), value...), '}')
			out.Metadata = maps.Clone(p.Metadata)
			if out.Metadata == nil {
				out.Metadata = map[string]any{}
			}
			out.Metadata[wrapped] = true
		}
	default:
		return out, fmt.Errorf("a part of kind %q: make parts by Text, Raw, URL or Data", p.Kind)
	}
	return out, nil
}

func partFrom03(p part03) (Part, error) {
	out := Part{Metadata: p.Metadata}
	switch {
	case p.Kind == "text" && p.Text != nil:
		out.Kind, out.Text = PartText, *p.Text
	case p.Kind == "file" && p.File != nil && p.File.Bytes != nil:
		raw, err := unbase64(*p.File.Bytes)
		if err != nil {
			return out, fmt.Errorf("file.bytes: %w", err)
		}
		out.Kind, out.Raw, out.Filename, out.MediaType = PartRaw, raw, p.File.Name, p.File.MimeType
	case p.Kind == "file" && p.File != nil && p.File.URI != nil:
		out.Kind, out.URL, out.Filename, out.MediaType = PartURL, *p.File.URI, p.File.Name, p.File.MimeType
	case p.Kind == "data" && p.Data != nil:
		out.Kind, out.Data = PartData, p.Data
		if p.Metadata[wrapped] == true {
			var inner map[string]json.RawMessage
			if err := json.Unmarshal(p.Data, &inner); err == nil && inner["value"] != nil {
				out.Data = inner["value"]
				out.Metadata = maps.Clone(p.Metadata)
				if delete(out.Metadata, wrapped); len(out.Metadata) == 0 {
					out.Metadata = nil
				}
			}
		}
	default:
		return out, fmt.Errorf("a part of kind %.40q without its content: there are text, file (bytes or uri) and data", p.Kind)
	}
	return out, nil
}

func statusTo03(s TaskStatus) (*status03, error) {
	out := &status03{State: "unknown", Timestamp: timestamp(s.Timestamp)}
	for _, known := range states {
		if known.state == s.State {
			out.State = known.v03
		}
	}
	if s.Message != nil {
		m, err := messageTo03(*s.Message)
		if err != nil {
			return nil, err
		}
		out.Message = &m
	}
	return out, nil
}

func statusFrom03(s *status03) (TaskStatus, error) {
	var out TaskStatus
	if s == nil {
		return out, nil // validate says that it is missing
	}
	for _, known := range states {
		if known.v03 == s.State {
			out.State = known.state
		}
	}
	if out.State == "" {
		return out, fmt.Errorf("status: %.40q is no state of a task", s.State)
	}
	if s.Message != nil {
		m, err := messageFrom03(*s.Message)
		if err != nil {
			return out, fmt.Errorf("status.message: %w", err)
		}
		out.Message = &m
	}
	var err error
	out.Timestamp, err = untimestamp(s.Timestamp)
	return out, err
}

func taskTo03(t Task) (task03, error) {
	status, err := statusTo03(t.Status)
	if err != nil {
		return task03{}, err
	}
	artifacts, err := each(t.Artifacts, artifactTo03)
	if err != nil {
		return task03{}, err
	}
	history, err := each(t.History, messageTo03)
	return task03{"task", t.ID, t.ContextID, status, artifacts, history, t.Metadata}, err
}

func taskFrom03(t task03) (Task, error) {
	out := Task{ID: t.ID, ContextID: t.ContextID, Metadata: t.Metadata}
	var err error
	if out.Status, err = statusFrom03(t.Status); err != nil {
		return out, err
	}
	if out.Artifacts, err = each(t.Artifacts, artifactFrom03); err != nil {
		return out, fmt.Errorf("artifacts%w", err)
	}
	if out.History, err = each(t.History, messageFrom03); err != nil {
		return out, fmt.Errorf("history%w", err)
	}
	return out, kind(t.Kind, "task")
}

func artifactTo03(a Artifact) (artifact03, error) {
	parts, err := each(a.Parts, partTo03)
	return artifact03{a.ID, a.Name, a.Description, filled(parts), a.Metadata, a.Extensions}, err
}

func artifactFrom03(a artifact03) (Artifact, error) {
	parts, err := each(a.Parts, partFrom03)
	if err != nil {
		return Artifact{}, fmt.Errorf("parts%w", err)
	}
	return Artifact{a.ID, a.Name, a.Description, parts, a.Metadata, a.Extensions}, nil
}

// A stream of 0.3 is over after an update that is final: when its task has ended, or waits for somebody.
func statusUpdateTo03(u StatusUpdate) (statusUpdate03, error) {
	status, err := statusTo03(u.Status)
	final := u.Status.State.Terminal() || u.Status.State.Waits()
	return statusUpdate03{"status-update", u.TaskID, u.ContextID, status, final, u.Metadata}, err
}

func statusUpdateFrom03(u statusUpdate03) (StatusUpdate, error) {
	status, err := statusFrom03(u.Status)
	return StatusUpdate{u.TaskID, u.ContextID, status, u.Metadata}, first(err, kind(u.Kind, "status-update"))
}

func artifactUpdateTo03(u ArtifactUpdate) (artifactUpdate03, error) {
	artifact, err := artifactTo03(u.Artifact)
	return artifactUpdate03{"artifact-update", u.TaskID, u.ContextID, artifact, u.Append, u.LastChunk, u.Metadata}, err
}

func artifactUpdateFrom03(u artifactUpdate03) (ArtifactUpdate, error) {
	artifact, err := artifactFrom03(u.Artifact)
	return ArtifactUpdate{u.TaskID, u.ContextID, artifact, u.Append, u.LastChunk, u.Metadata}, first(err, kind(u.Kind, "artifact-update"))
}

func eventTo03(e Event) (any, error) {
	switch {
	case e.Task != nil:
		return taskTo03(*e.Task)
	case e.Message != nil:
		return messageTo03(*e.Message)
	case e.Status != nil:
		return statusUpdateTo03(*e.Status)
	case e.Artifact != nil:
		return artifactUpdateTo03(*e.Artifact)
	}
	return nil, fmt.Errorf("an event with nothing in it")
}

func eventFrom03(data []byte, e *Event) error {
	var probe struct {
		Kind string `json:"kind"`
	}
	if err := exact.Unmarshal(data, &probe); err != nil {
		return err
	}
	*e = Event{}
	switch probe.Kind {
	case "task":
		e.Task = new(Task)
		return read03(data, e.Task, taskFrom03)
	case "message":
		e.Message = new(Message)
		return read03(data, e.Message, messageFrom03)
	case "status-update":
		e.Status = new(StatusUpdate)
		return read03(data, e.Status, statusUpdateFrom03)
	case "artifact-update":
		e.Artifact = new(ArtifactUpdate)
		return read03(data, e.Artifact, artifactUpdateFrom03)
	}
	return fmt.Errorf("kind %.40q is none of task, message, status-update and artifact-update", probe.Kind)
}

func sendTo03(r SendRequest) (send03, error) {
	m, err := messageTo03(r.Message)
	c := r.Configuration
	blocking := !c.ReturnImmediately
	return send03{m, &config03{c.AcceptedOutputModes, c.HistoryLength, pushTo03(c.Push), &blocking}, r.Metadata}, err
}

func sendFrom03(r send03) (SendRequest, error) {
	m, err := messageFrom03(r.Message)
	out := SendRequest{Message: m, Metadata: r.Metadata}
	if c := r.Configuration; c != nil {
		out.Configuration = SendConfig{AcceptedOutputModes: c.AcceptedOutputModes, HistoryLength: c.HistoryLength, ReturnImmediately: c.Blocking != nil && !*c.Blocking}
		if c.Push != nil {
			push := pushFrom03("", *c.Push)
			out.Configuration.Push = &push
		}
	}
	if err != nil {
		return out, fmt.Errorf("message: %w", err)
	}
	return out, nil
}

func pushTo03(p *PushConfig) *push03 {
	if p == nil {
		return nil
	}
	out := &push03{ID: p.ID, URL: p.URL, Token: p.Token}
	if a := p.Authentication; a != nil {
		out.Authentication = &auth03{[]string{a.Scheme}, a.Credentials}
	}
	return out
}

func pushFrom03(task string, p push03) PushConfig {
	out := PushConfig{ID: p.ID, TaskID: task, URL: p.URL, Token: p.Token}
	if a := p.Authentication; a != nil && len(a.Schemes) > 0 {
		out.Authentication = &Authentication{a.Schemes[0], a.Credentials}
	}
	return out
}

func taskPushFrom03(p taskPush03) (PushConfig, error) { return pushFrom03(p.TaskID, p.Config), nil }

func pushesTo03(configs []PushConfig) []taskPush03 {
	out := make([]taskPush03, len(configs))
	for i := range configs {
		out[i] = taskPush03{configs[i].TaskID, *pushTo03(&configs[i])}
	}
	return out
}
