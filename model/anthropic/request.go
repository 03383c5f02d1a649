package anthropic

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// format is the key of a message's bytes in this wire format.
type format struct{}

var (
	mark      = []byte(`,"cache_control":{"type":"ephemeral"}`)
	wholeTail = []byte(`]}`)
	sseTail   = []byte(`],"stream":true}`)
)

// body is a request's bytes: the head, each message's own bytes, and a tail. It joins nothing. Neighbours of one role stay apart:
// the API takes consecutive user or assistant messages as one, which is documented for the parameter "messages".
func (m *Model) body(req model.Request, stream bool) (httpapi.Body, error) {
	if err := m.can.Admit(req); err != nil {
		return nil, err
	}
	h, err := m.headOf(req)
	if err != nil {
		return nil, err
	}
	last, earlier := marks(req)
	pieces := append(make(httpapi.Body, 0, req.Messages.Len()+6), h)
	for i, msg := range req.Messages.All() {
		if msg.IsZero() {
			continue
		}
		if msg.HasFiles() {
			if err := m.sendable(msg, i); err != nil {
				return nil, err
			}
		}
		b := msg.Encoded(format{}, encode)
		if len(b) == 0 {
			continue
		}
		if len(pieces) == 1 {
			b = b[1:] // the comma
		}
		if (i == last || i == earlier) && markable(msg) {
			end := len(b) - len(`}]}`)
			pieces = append(pieces, b[:end], mark, b[end:])
			continue
		}
		pieces = append(pieces, b)
	}
	if len(pieces) == 1 {
		return nil, errdefs.Validation.Errorf("%s: the conversation says nothing: it needs a message with a text, file or result", m.can.Name)
	}
	if stream {
		return append(pieces, sseTail), nil
	}
	return append(pieces, wholeTail), nil
}

// marks says which messages end with a cache mark: the last one that is not the model's and, when that is far from it, the one
// that ended the request before. The API looks for what it cached at up to 20 blocks before a mark, so a step of many calls would
// miss it.
func marks(req model.Request) (last, earlier int) {
	n := req.Messages.Len()
	if n == 1 && len(req.Tools) == 0 {
		return -1, -1
	}
	last, earlier = -1, -1
	blocks, turn := 0, false // a turn of the model's lies between
	for i := n - 1; i >= 0; i-- {
		msg := req.Messages.At(i)
		switch {
		case msg.Role() == message.RoleAssistant:
			turn = turn || last >= 0
		case last < 0:
			last = i
		case turn:
			if blocks > 16 {
				earlier = i
			}
			return last, earlier
		}
		blocks += msg.Len()
	}
	return last, earlier
}

// markable reports whether a mark may stand at the end of a message's last block. One that is not ours may have a mark already.
func markable(m message.Message) bool {
	for i := range m.Len() { // without Parts: this is done for every call, and costs nothing so
		switch p := m.Part(i).(type) {
		case message.ProviderCall, message.Opaque:
			return false
		case message.Text:
			if p.Extra != "" {
				return false
			}
		}
	}
	return true
}

// head is all that comes before the messages, with what it was made of.
type head struct {
	system   string
	tools    []model.Tool
	settings model.Settings
	output   json.RawMessage
	bytes    []byte
}

// headOf gives the bytes up to the first message. Those of the last request are kept: the steps of a run differ in messages only.
func (m *Model) headOf(req model.Request) ([]byte, error) {
	if h := m.head.Load(); h != nil && h.fits(req) {
		return h.bytes, nil
	}
	b, err := m.encodeHead(req)
	if err != nil {
		return nil, err
	}
	m.head.Store(&head{req.System, req.Tools, req.Settings.Clone(), bytes.Clone(req.Output), b})
	return b, nil
}

// fits reports whether h was made of the same tools, which are read-only and told by identity, and of equal other things.
func (h *head) fits(req model.Request) bool {
	return len(h.tools) == len(req.Tools) && (len(h.tools) == 0 || &h.tools[0] == &req.Tools[0]) &&
		h.settings.Equal(req.Settings) && h.system == req.System && bytes.Equal(h.output, req.Output)
}

func (m *Model) encodeHead(req model.Request) ([]byte, error) {
	b := wire.AppendString([]byte(`{"model":`), m.name)
	limit := req.MaxTokens
	if limit <= 0 {
		limit = m.maxTokens
	}
	b = strconv.AppendInt(append(b, `,"max_tokens":`...), int64(limit), 10)
	if strings.TrimSpace(req.System) != "" {
		b = wire.AppendString(append(b, `,"system":`...), req.System)
	}
	b, err := appendTools(b, req.Tools, req.ToolChoice)
	if err == nil {
		b, err = appendSampling(b, req.Settings)
	}
	if err == nil && len(req.Output) > 0 {
		b = append(b, `,"output_config":{"format":{"type":"json_schema","schema":`...)
		b, err = appendObject(b, req.Output, "the output schema")
		b = append(b, `}}`...)
	}
	if err != nil {
		return nil, errdefs.Validation.Errorf("%s: %w", m.can.Name, err)
	}
	return append(b, `,"messages":[`...), nil
}

func appendTools(b []byte, tools []model.Tool, choice model.ToolChoice) ([]byte, error) {
	if len(tools) == 0 {
		if choice != model.ToolsAuto && choice != model.ToolsNone {
			return b, errdefs.Validation.Errorf("the choice of tool %q needs tools", choice)
		}
		return b, nil // the API takes no choice without tools
	}
	var err error
	b = append(b, `,"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(append(b, `{"name":`...), t.Name)
		if t.Description != "" {
			b = wire.AppendString(append(b, `,"description":`...), t.Description)
		}
		b = append(b, `,"input_schema":`...)
		if len(t.Schema) == 0 {
			b = append(b, `{"type":"object"}`...)
		} else if b, err = appendObject(b, t.Schema, "the schema of tool "+strconv.Quote(t.Name)); err != nil {
			return b, err
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	switch choice {
	case model.ToolsAuto:
	case model.ToolsNone:
		b = append(b, `,"tool_choice":{"type":"none"}`...)
	case model.ToolsRequired:
		b = append(b, `,"tool_choice":{"type":"any"}`...)
	default:
		b = append(wire.AppendString(append(b, `,"tool_choice":{"type":"tool","name":`...), string(choice)), '}')
	}
	return b, nil
}

func appendSampling(b []byte, s model.Settings) ([]byte, error) {
	for _, f := range []struct {
		name  string
		value *float64
	}{{"temperature", s.Temperature}, {"top_p", s.TopP}} {
		if f.value == nil {
			continue
		}
		if math.IsNaN(*f.value) || math.IsInf(*f.value, 0) {
			return b, errdefs.Validation.Errorf("%s is no number", f.name)
		}
		b = append(append(append(b, `,"`...), f.name...), `":`...)
		b = strconv.AppendFloat(b, *f.value, 'g', -1, 64)
	}
	if s.TopK != nil {
		b = strconv.AppendInt(append(b, `,"top_k":`...), int64(*s.TopK), 10)
	}
	for i, stop := range s.Stop {
		if i == 0 {
			b = append(b, `,"stop_sequences":[`...)
		} else {
			b = append(b, ',')
		}
		b = wire.AppendString(b, stop)
	}
	if len(s.Stop) > 0 {
		b = append(b, ']')
	}
	return b, nil
}

// appendObject appends raw, which has to be a JSON object.
func appendObject(b, raw []byte, what string) ([]byte, error) {
	start := len(b)
	b, ok := wire.AppendCompact(b, raw)
	if !ok || b[start] != '{' {
		return b, errdefs.Validation.Errorf("%s is no JSON object", what)
	}
	return b, nil
}
