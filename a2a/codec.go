package a2a

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/exact"
)

// Marshal gives the JSON of a value as the version has it. value is one of the types that the operations name, or a pointer to one. What 0.3
// has no place for is left out: tenants, a file name or media type beside text and data, flows of device codes.
func (v Version) Marshal(value any) ([]byte, error) {
	if v == V03 {
		old, err := to03(value)
		if err != nil {
			return nil, err
		}
		value = old
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, errdefs.Validation.Errorf("a2a: write %T: %w", value, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Unmarshal reads JSON of the version into a value, a pointer to one of the types that the operations name, and checks that what the version
// requires is there. Members that are not known are left alone. An error is of [errdefs.Validation] and says where; value is undefined then.
func (v Version) Unmarshal(data []byte, value any) error {
	var err error
	if v == V03 {
		err = from03(data, value)
	} else {
		err = exact.Unmarshal(data, value)
	}
	if err == nil {
		err = validate(value)
	}
	if err != nil {
		return errdefs.Validation.Errorf("a2a: %s: %w", strings.TrimPrefix(fmt.Sprintf("%T", value), "*a2a."), err)
	}
	return nil
}

// UnmarshalCard reads a card of either version: one that has supportedInterfaces is of 1.0.
func UnmarshalCard(data []byte) (AgentCard, error) {
	var probe struct {
		Interfaces []json.RawMessage `json:"supportedInterfaces"`
	}
	var card AgentCard
	if err := json.Unmarshal(data, &probe); err != nil {
		return card, errdefs.Validation.Errorf("a2a: AgentCard: %w", err)
	}
	version := V03
	if len(probe.Interfaces) > 0 {
		version = V1
	}
	err := version.Unmarshal(data, &card)
	return card, err
}

// MarshalCard gives a card that clients of either version read: the members of 1.0, and, if one of its interfaces is of 0.3, those of 0.3
// beside them; a security scheme has the members of both. So what a server shows does not depend on who asks.
func MarshalCard(card AgentCard) ([]byte, error) {
	now, err := V1.Marshal(card)
	if err != nil {
		return nil, err
	}
	if _, ok := old03(card.Interfaces); !ok {
		return now, nil
	}
	before, err := V03.Marshal(card)
	if err != nil {
		return nil, err
	}
	var both, first any
	if err := json.Unmarshal(now, &both); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(before, &first); err != nil {
		return nil, err
	}
	merge(both, first)
	return json.Marshal(both)
}

// merge puts into to what only from has, in objects in it too, and in lists of one length.
func merge(to, from any) {
	switch to := to.(type) {
	case map[string]any:
		from, _ := from.(map[string]any)
		for key, value := range from {
			if have, ok := to[key]; ok {
				merge(have, value)
			} else {
				to[key] = value
			}
		}
	case []any:
		if from, _ := from.([]any); len(from) == len(to) {
			for i := range to {
				merge(to[i], from[i])
			}
		}
	}
}

// UnmarshalJSON takes the name of a state or its number, as readers of protocol buffers do.
func (s *TaskState) UnmarshalJSON(data []byte) error {
	for n, known := range states {
		if string(data) == fmt.Sprint(n) || string(data) == `"`+string(known.state)+`"` {
			*s = known.state
			return nil
		}
	}
	return fmt.Errorf("%.40s is no state of a task", data)
}

// UnmarshalJSON takes the name of a role or its number, as readers of protocol buffers do.
func (r *Role) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case "1", `"ROLE_USER"`:
		*r = RoleUser
	case "2", `"ROLE_AGENT"`:
		*r = RoleAgent
	default:
		return fmt.Errorf("%.40s is no role: it is ROLE_USER or ROLE_AGENT", data)
	}
	return nil
}

// partJSON is a part as 1.0 has it.
type partJSON struct {
	Text      *string         `json:"text,omitempty"`
	Raw       *string         `json:"raw,omitempty"`
	URL       *string         `json:"url,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	Metadata  map[string]any  `json:"metadata,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
}

// MarshalJSON gives the part as 1.0 has it.
func (p Part) MarshalJSON() ([]byte, error) {
	out := partJSON{Metadata: p.Metadata, Filename: p.Filename, MediaType: p.MediaType}
	switch p.Kind {
	case PartText:
		out.Text = &p.Text
	case PartRaw:
		raw := base64.StdEncoding.EncodeToString(p.Raw)
		out.Raw = &raw
	case PartURL:
		out.URL = &p.URL
	case PartData:
		if out.Data = p.Data; p.Data == nil {
			out.Data = json.RawMessage("null")
		}
	default:
		return nil, fmt.Errorf("a part of kind %q: make parts by Text, Raw, URL or Data", p.Kind)
	}
	return plain(out)
}

// UnmarshalJSON reads a part of 1.0.
func (p *Part) UnmarshalJSON(data []byte) error {
	var in partJSON
	if err := exact.Unmarshal(data, &in); err != nil {
		return err
	}
	*p = Part{Metadata: in.Metadata, Filename: in.Filename, MediaType: in.MediaType}
	n := 0
	if in.Text != nil {
		p.Kind, p.Text = PartText, *in.Text
		n++
	}
	if in.Raw != nil {
		raw, err := unbase64(*in.Raw)
		if err != nil {
			return fmt.Errorf("raw: %w", err)
		}
		p.Kind, p.Raw = PartRaw, raw
		n++
	}
	if in.URL != nil {
		p.Kind, p.URL = PartURL, *in.URL
		n++
	}
	// A null is data where nothing else is: of the other members it says that they are absent.
	if in.Data != nil && (n == 0 || string(in.Data) != "null") {
		p.Kind, p.Data = PartData, in.Data
		n++
	}
	if n != 1 {
		return fmt.Errorf("a part has exactly one of text, raw, url and data, not %d of them", n)
	}
	return nil
}

// unbase64 takes what protocol buffers take: either alphabet, padded or not.
func unbase64(text string) ([]byte, error) {
	text = strings.TrimRight(text, "=")
	if strings.ContainsAny(text, "-_") {
		return base64.RawURLEncoding.DecodeString(text)
	}
	return base64.RawStdEncoding.DecodeString(text)
}

// statusJSON is a status as either version has it, with the types of its members.
type statusJSON[State, M any] struct {
	State     State  `json:"state,omitempty"`
	Message   *M     `json:"message,omitempty"`
	Timestamp string `json:"timestamp,omitempty"`
}

// MarshalJSON gives the status as 1.0 has it.
func (s TaskStatus) MarshalJSON() ([]byte, error) {
	return plain(statusJSON[TaskState, Message]{s.State, s.Message, timestamp(s.Timestamp)})
}

// UnmarshalJSON reads a status of 1.0. Writers of protocol buffers leave out a state that is not specified.
func (s *TaskStatus) UnmarshalJSON(data []byte) error {
	in := statusJSON[TaskState, Message]{State: StateUnspecified}
	if err := exact.Unmarshal(data, &in); err != nil {
		return err
	}
	at, err := untimestamp(in.Timestamp)
	*s = TaskStatus{in.State, in.Message, at}
	return err
}

func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// untimestamp reads what the specification has, and what is sent all the same: offsets, and no zone at all, which is taken as UTC.
func untimestamp(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		if t, err = time.Parse("2006-01-02T15:04:05.999999999", text); err != nil {
			return t, fmt.Errorf("timestamp %.40q is not of ISO 8601", text)
		}
	}
	return t.UTC(), nil
}

// listJSON is a ListTasksRequest as 1.0 has it.
type listJSON struct {
	Tenant               string    `json:"tenant,omitempty"`
	ContextID            string    `json:"contextId,omitempty"`
	Status               TaskState `json:"status,omitempty"`
	PageSize             *int      `json:"pageSize,omitempty"`
	PageToken            string    `json:"pageToken,omitempty"`
	HistoryLength        *int      `json:"historyLength,omitempty"`
	StatusTimestampAfter string    `json:"statusTimestampAfter,omitempty"`
	IncludeArtifacts     bool      `json:"includeArtifacts,omitempty"`
}

// MarshalJSON gives the request as 1.0 has it.
func (r ListTasksRequest) MarshalJSON() ([]byte, error) {
	return plain(listJSON{r.Tenant, r.ContextID, r.Status, r.PageSize, r.PageToken, r.HistoryLength, timestamp(r.StatusTimestampAfter), r.IncludeArtifacts})
}

// UnmarshalJSON reads a request of 1.0. A status that is not specified is none.
func (r *ListTasksRequest) UnmarshalJSON(data []byte) error {
	var in listJSON
	if err := exact.Unmarshal(data, &in); err != nil {
		return err
	}
	if in.Status == StateUnspecified {
		in.Status = ""
	}
	after, err := untimestamp(in.StatusTimestampAfter)
	*r = ListTasksRequest{in.Tenant, in.ContextID, in.Status, in.PageSize, in.PageToken, in.HistoryLength, after, in.IncludeArtifacts}
	return err
}

// MarshalJSON gives the requirement as 1.0 has it.
func (r SecurityRequirement) MarshalJSON() ([]byte, error) {
	type list struct {
		List []string `json:"list,omitempty"`
	}
	out := struct {
		Schemes map[string]list `json:"schemes"`
	}{map[string]list{}}
	for name, scopes := range r {
		out.Schemes[name] = list{scopes}
	}
	return plain(out)
}

// UnmarshalJSON reads a requirement of 1.0.
func (r *SecurityRequirement) UnmarshalJSON(data []byte) error {
	var in struct {
		Schemes map[string]struct {
			List []string `json:"list"`
		} `json:"schemes"`
	}
	if err := exact.Unmarshal(data, &in); err != nil {
		return err
	}
	*r = SecurityRequirement{}
	for name, scopes := range in.Schemes {
		(*r)[name] = append([]string{}, scopes.List...)
	}
	return nil
}

// MarshalJSON gives the message as 1.0 has it. Lists that the protocol requires are written when they are empty, too; so below.
func (m Message) MarshalJSON() ([]byte, error) {
	type bare Message
	m.Parts = filled(m.Parts)
	return plain(bare(m))
}

// MarshalJSON gives the artifact as 1.0 has it.
func (a Artifact) MarshalJSON() ([]byte, error) {
	type bare Artifact
	a.Parts = filled(a.Parts)
	return plain(bare(a))
}

// MarshalJSON gives the page as 1.0 has it.
func (r ListTasksResponse) MarshalJSON() ([]byte, error) {
	type bare ListTasksResponse
	r.Tasks = filled(r.Tasks)
	return plain(bare(r))
}

// MarshalJSON gives the card as 1.0 has it.
func (c AgentCard) MarshalJSON() ([]byte, error) {
	type bare AgentCard
	c.Interfaces, c.Skills = filled(c.Interfaces), filled(c.Skills)
	c.DefaultInputModes, c.DefaultOutputModes = filled(c.DefaultInputModes), filled(c.DefaultOutputModes)
	return plain(bare(c))
}

// MarshalJSON gives the skill as 1.0 has it.
func (s Skill) MarshalJSON() ([]byte, error) {
	type bare Skill
	s.Tags = filled(s.Tags)
	return plain(bare(s))
}

func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// plain is json.Marshal without escapes for HTML.
func plain(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return b.Bytes(), err
}
