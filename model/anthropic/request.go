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

// inlineFormat is that of the same where no files are kept.
type inlineFormat struct{}

var (
	mark      = []byte(`,"cache_control":{"type":"ephemeral"}`)
	wholeTail = []byte(`]}`)
	sseTail   = []byte(`],"stream":true}`)
)

// body is a request's bytes: the head, the messages' own bytes, and a tail. It joins nothing. Neighbours of one role stay apart:
// the API takes consecutive user or assistant messages as one, which is documented for the parameter "messages".
func (m *Model) body(req model.Request, stream bool) (httpapi.Body, error) {
	h, err := m.headOf(req)
	if err != nil {
		return nil, err
	}
	pieces, err := m.appendMessages(append(httpapi.Room(req.Messages.Len()), h.bytes), req)
	if err != nil {
		return nil, err
	}
	if stream {
		return append(pieces, sseTail), nil
	}
	return append(pieces, wholeTail), nil
}

// appendMessages appends the messages' own bytes, and the cache marks.
func (m *Model) appendMessages(pieces httpapi.Body, req model.Request) (httpapi.Body, error) {
	h := req.Messages
	if h.HasFiles() {
		if err := m.sendable(h); err != nil {
			return nil, err
		}
	}
	before, at := len(pieces), 0
	last, earlier := marks(req)
	for _, i := range [...]int{earlier, last} {
		if i < 0 || !markable(h.At(i)) {
			continue
		}
		pieces = h.Encoded(pieces, at, i, m.format, m.encode)
		n := len(pieces)
		pieces = h.Encoded(pieces, i, i+1, m.format, m.encode)
		if at = i + 1; len(pieces) > n {
			b := pieces[n]
			end := len(b) - len(`}]}`)
			pieces = append(pieces[:n], b[:end], mark, b[end:])
		}
	}
	pieces = h.Encoded(pieces, at, h.Len(), m.format, m.encode)
	if len(pieces) == before {
		return nil, errdefs.Validation.Errorf("%s: the conversation says nothing: it needs a message with a text, file or result", m.can.Name)
	}
	pieces[before] = pieces[before][1:] // the comma
	return pieces, nil
}

// encodeInline is encode for a server that keeps no files.
func encodeInline(m message.Message) []byte {
	if m.HasFiles() {
		m = httpapi.Inline(m)
	}
	return encode(m)
}

// marks says which messages end with a cache mark: the last one that is not the model's and, when that is far from it, the one
// that ended the request before. The API looks for what it cached at up to 20 blocks before a mark, so a step of many calls would
// miss it.
func marks(req model.Request) (last, earlier int) {
	n := req.Messages.Len()
	if n == 1 && len(req.Tools)+len(req.ProviderTools) == 0 {
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

// marksItself reports whether a message has a mark of the caller's own. Marks that last longer have to come before those that don't, and there is no more room than for four: so none of ours stands before it.
func marksItself(h message.History) bool {
	if !h.HasExtra() {
		return false
	}
	for k := range h.Len() {
		msg := h.At(k)
		if !msg.HasExtra() {
			continue
		}
		for i := range msg.Len() {
			if t, ok := msg.Part(i).(message.Text); ok && t.Extra != "" && t.Provider == provider && strings.Contains(t.Extra, `"cache_control"`) {
				return true
			}
		}
	}
	return false
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
	marked   bool // it ends with a cache mark of its own: other conversations have the same one, and this one has it still after a compaction

	bytes    []byte
	from, to int // which of the bytes are left out when tokens are counted: limits and sampling
}

// headOf gives what comes before the first message, if the request can be answered. That of the last request is kept: the steps of a run differ in messages only.
func (m *Model) headOf(req model.Request) (*head, error) {
	if err := m.can.Admit(req); err != nil {
		return nil, err
	}
	last, _ := marks(req)
	marked := last >= 0 && !marksItself(req.Messages)
	if h := m.head.Load(); h != nil && h.marked == marked && h.fits(req) {
		return h, nil
	}
	h, err := m.encodeHead(req, marked)
	if err != nil {
		return nil, errdefs.Validation.Errorf("%s: %w", m.can.Name, err)
	}
	m.head.Store(h)
	return h, nil
}

// fits reports whether h was made of the same tools, which are read-only and told by identity, and of equal other things.
func (h *head) fits(req model.Request) bool {
	return len(h.tools) == len(req.Tools) && (len(h.tools) == 0 || &h.tools[0] == &req.Tools[0]) &&
		h.settings.Equal(req.Settings) && h.system == req.System && bytes.Equal(h.output, req.Output)
}

func (m *Model) encodeHead(req model.Request, marked bool) (*head, error) {
	t, err := m.family.thinking(req.Settings)
	if err != nil {
		return nil, err
	}
	h := &head{system: req.System, tools: req.Tools, settings: req.Clone(), output: bytes.Clone(req.Output), marked: marked}
	b := wire.AppendString([]byte(`{"model":`), m.name)
	h.from = len(b)
	b = strconv.AppendInt(append(b, `,"max_tokens":`...), int64(t.limit), 10)
	if b, err = appendSampling(b, req.Settings); err != nil {
		return nil, err
	}
	h.to = len(b)
	if strings.TrimSpace(req.System) != "" { // a block, for the mark's sake: it stands behind the tools, and so for both
		b = wire.AppendString(append(b, `,"system":[{"type":"text","text":`...), req.System)
		if marked {
			b, marked = append(b, mark...), false
		}
		b = append(b, `}]`...)
	}
	if b, err = m.family.appendTools(b, req.Tools, req.ProviderTools, req.ToolChoice, marked); err != nil {
		return nil, err
	}
	b = t.append(b)
	if b, err = m.appendOutput(b, t.effort, req.Output); err != nil {
		return nil, err
	}
	h.bytes = append(b, `,"messages":[`...)
	return h, nil
}

// appendOutput appends how much effort the reply is worth, and the schema that it has to follow.
func (m *Model) appendOutput(b []byte, effort string, schema json.RawMessage) (_ []byte, err error) {
	if effort == "" && len(schema) == 0 {
		return b, nil
	}
	b = append(b, `,"output_config":{`...)
	if effort != "" {
		b = append(append(append(b, `"effort":"`...), effort...), '"')
	}
	if len(schema) > 0 {
		b = append(next(b), `"format":{"type":"json_schema","schema":`...)
		n := len(b)
		if b, err = appendObject(b, schema, "the output schema"); err != nil {
			return b, err
		}
		if o := m.outputOf(schema); o.native {
			b = append(b[:n], o.bytes...)
		}
		b = append(b, '}')
	}
	return append(b, '}'), nil
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
