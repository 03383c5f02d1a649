package openai

import (
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

// itemWriter writes the items of an assistant message. Neighbouring texts may be parts of one item.
type itemWriter struct {
	dst []byte
	// The message item that is open: what it has of content parts that are no text, each at its place; texts stand where null is.
	open     bool
	template wire.Elements
	first    bool // no content part was written yet
	// Where a run of reasoning at the end of what was written begins; -1 when something else is there.
	reasoning int
}

// appendResponsesAssistant appends an assistant message as items. Parts that this wire made become the items that they were.
func appendResponsesAssistant(dst []byte, m message.Message) []byte {
	w := itemWriter{dst: dst, reasoning: -1}
	for i := range m.Len() {
		switch p := m.Part(i).(type) {
		case message.Text:
			w.text(p)
		case message.Reasoning:
			w.reason(p)
		case message.ToolCall:
			w.call(p)
		case message.ProviderCall:
			w.opaque(p.Opaque)
		case message.Opaque:
			w.opaque(p)
		}
	}
	w.close()
	if w.reasoning >= 0 {
		w.dst = w.dst[:w.reasoning] // reasoning without the item that it led to is refused
	}
	return w.dst
}

// opaque writes an item that this wire made as it was.
func (w *itemWriter) opaque(o message.Opaque) {
	if o.Provider == responses {
		w.begin()
		w.dst = append(append(w.dst, ','), o.JSON...)
	}
}

// begin readies the writer for an item that isn't reasoning.
func (w *itemWriter) begin() {
	w.close()
	w.reasoning = -1
}

// foreign readies the writer for an item that the provider never gave. What was thought before it led to another one, whose id the
// provider looks for: with this one in its place it refuses the request, without the thoughts it takes it.
func (w *itemWriter) foreign() {
	w.close()
	if w.reasoning >= 0 {
		w.dst = w.dst[:w.reasoning]
	}
	w.reasoning = -1
}

func (w *itemWriter) text(t message.Text) {
	extra := extraOf(t.Origin, responses)
	if t.Provider != responses || extra == "" { // what anybody else said, in the form that needs no id
		if t.Text != "" {
			w.foreign()
			w.dst = append(wire.AppendString(append(w.dst, `,{"type":"message","role":"assistant","content":`...), t.Text), '}')
		}
		return
	}
	if item := note(extra, noteItem); item != nil || !w.open {
		w.begin()
		w.dst = append(w.dst, `,{"type":"message","role":"assistant"`...)
		w.dst = appendMembers(w.dst, item, "type", "role", "content")
		w.dst = append(w.dst, `,"content":[`...)
		w.open, w.first, w.template = true, true, *wire.Array(wire.Get(item, "content"))
	}
	w.others()
	w.comma()
	w.dst = wire.AppendString(append(w.dst, `{"type":"output_text","text":`...), t.Text)
	w.dst = append(appendExtra(w.dst, extra, "type", "text"), '}')
}

// others writes the content parts up to the place of the next text.
func (w *itemWriter) others() {
	for w.template.Next() && !wire.IsNull(w.template.Value) {
		w.comma()
		w.dst = append(w.dst, w.template.Value...)
	}
}

func (w *itemWriter) comma() {
	if !w.first {
		w.dst = append(w.dst, ',')
	}
	w.first = false
}

// close ends the open message item. Where texts were taken out of it, their places are passed over.
func (w *itemWriter) close() {
	if !w.open {
		return
	}
	for w.template.Next() {
		if !wire.IsNull(w.template.Value) {
			w.comma()
			w.dst = append(w.dst, w.template.Value...)
		}
	}
	w.dst = append(w.dst, "]}"...)
	w.open = false
}

// reason writes a reasoning item. One without encrypted content says nothing to a provider that stores nothing: it would be looked up
// by its id and not be found. Open models give their reasoning as content, which needs no store.
func (w *itemWriter) reason(r message.Reasoning) {
	extra := extraOf(r.Origin, responses)
	summary, content := note(extra, "summary"), note(extra, "content")
	if r.Provider != responses || r.Signature == "" && (wire.IsNull(content) || string(content) == "[]") {
		return
	}
	w.close()
	if w.reasoning < 0 {
		w.reasoning = len(w.dst)
	}
	if summary == nil && content == nil || joinReasoning(summary, content) != r.Text { // nothing was kept, or somebody changed the text
		summary, content = summaryOf(r.Text), nil
	} else if summary == nil {
		summary = summaryOf("")
	}
	w.dst = append(w.dst, `,{"type":"reasoning","summary":`...)
	w.dst = append(w.dst, summary...)
	if content != nil {
		w.dst = append(append(w.dst, `,"content":`...), content...)
	}
	if r.Signature != "" {
		w.dst = wire.AppendString(append(w.dst, `,"encrypted_content":`...), r.Signature)
	}
	w.dst = append(appendExtra(w.dst, extra, "type", "summary", "content"), '}')
}

// summaryOf makes a summary of one piece, none for no text.
func summaryOf(text string) []byte {
	if text == "" {
		return []byte("[]")
	}
	return append(wire.AppendString([]byte(`[{"type":"summary_text","text":`), text), "}]"...)
}

func (w *itemWriter) call(c message.ToolCall) {
	if c.Provider != responses {
		w.foreign()
	} else {
		w.begin()
	}
	extra := extraOf(c.Origin, responses)
	w.dst = wire.AppendWord(append(w.dst, `,{"type":"function_call","call_id":`...), c.ID, longestCallID)
	w.dst = wire.AppendWord(append(w.dst, `,"name":`...), c.Name, longestName)
	w.dst = wire.AppendString(append(w.dst, `,"arguments":`...), arguments(c, extra))
	w.dst = append(appendExtra(w.dst, extra, "type", "call_id", "name", "arguments"), '}')
}
