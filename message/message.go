package message

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
)

// Role says who speaks.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // one message holds the results of all calls of the assistant message before it
)

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return r == RoleUser || r == RoleAssistant || r == RoleTool }

// Message is one immutable utterance. It is one word big: copy it. The zero Message is no message. Two Messages are == when they
// are the same utterance, not when they say the same. Safe for concurrent use.
type Message struct{ b *body }

type body struct {
	role  Role
	has   facts
	parts []Part
	memo  atomic.Pointer[memo]
	first memo // room for the first of them
	taken atomic.Bool
}

type memo struct {
	format any
	bytes  []byte
	next   *memo
}

// New makes a message of parts, which it copies.
func New(role Role, parts ...Part) Message {
	b := bodyOf(role, len(parts))
	for i, p := range parts {
		b.parts[i] = p
		switch p := p.(type) {
		case File:
			b.has |= hasFiles
		case ToolResult:
			if len(p.Files) > 0 {
				b.has |= hasFiles
			}
		case Text:
			if p.Extra != "" {
				b.has |= hasExtra
			}
		}
	}
	return Message{b}
}

// bodyOf makes room for n parts; with few of them, as there are in most messages, all is in one piece.
func bodyOf(role Role, n int) *body {
	switch n {
	case 1:
		b := &struct {
			body
			room [1]Part
		}{body: body{role: role}}
		b.parts = b.room[:]
		return &b.body
	case 2:
		b := &struct {
			body
			room [2]Part
		}{body: body{role: role}}
		b.parts = b.room[:]
		return &b.body
	}
	return &body{role: role, parts: make([]Part, n)}
}

// User is a user's text.
func User(text string) Message { return New(RoleUser, Text{Text: text}) }

// Assistant is a model's text (left out when empty) and the calls that it makes.
func Assistant(text string, calls ...ToolCall) Message {
	var room [4]Part
	parts := room[:0]
	if text != "" {
		parts = append(parts, Text{Text: text})
	}
	for _, c := range calls {
		parts = append(parts, c)
	}
	return New(RoleAssistant, parts...)
}

// Results is the tool message that answers an assistant message: all of its results, in the order of its calls.
func Results(rs ...ToolResult) Message {
	b := bodyOf(RoleTool, len(rs))
	for i, r := range rs {
		if b.parts[i] = r; len(r.Files) > 0 {
			b.has |= hasFiles
		}
	}
	return Message{b}
}

// IsZero reports whether m is no message.
func (m Message) IsZero() bool { return m.b == nil }

// Role says who speaks; "" for the zero Message.
func (m Message) Role() Role {
	if m.b == nil {
		return ""
	}
	return m.b.role
}

// Len is the number of parts.
func (m Message) Len() int {
	if m.b == nil {
		return 0
	}
	return len(m.b.parts)
}

// Part gives part i; it panics out of range.
func (m Message) Part(i int) Part { return m.b.parts[i] }

// Parts yields the parts in order.
func (m Message) Parts() iter.Seq[Part] {
	if m.b == nil {
		return func(func(Part) bool) {}
	}
	return slices.Values(m.b.parts)
}

// Of yields the parts of one type: for call := range message.Of[message.ToolCall](m).
func Of[P Part](m Message) iter.Seq[P] {
	return func(yield func(P) bool) {
		for p := range m.Parts() {
			if p, ok := p.(P); ok && !yield(p) {
				return
			}
		}
	}
}

// HasFiles reports whether a part of m, or a result in it, is a file. It looks at nothing: it was noted when m was made.
func (m Message) HasFiles() bool { return m.b != nil && m.b.has&hasFiles != 0 }

// HasExtra reports whether a Text of m has an [Origin] with an Extra. It looks at nothing, as HasFiles.
func (m Message) HasExtra() bool { return m.b != nil && m.b.has&hasExtra != 0 }

func (m Message) facts() facts {
	if m.b == nil {
		return hasZero
	}
	return m.b.has
}

// Text joins the text parts.
func (m Message) Text() string {
	if m.b == nil {
		return ""
	}
	var only string
	var n int
	for _, p := range m.b.parts {
		if t, ok := p.(Text); ok {
			only = t.Text
			n++
		}
	}
	if n < 2 {
		return only
	}
	var b strings.Builder
	for t := range Of[Text](m) {
		b.WriteString(t.Text)
	}
	return b.String()
}

// ToolCalls lists the calls in m, in the model's order; nil when there are none.
func (m Message) ToolCalls() []ToolCall {
	if m.b == nil {
		return nil
	}
	var n int
	for _, p := range m.b.parts {
		if _, ok := p.(ToolCall); ok {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	calls := make([]ToolCall, 0, n)
	for _, p := range m.b.parts {
		if c, ok := p.(ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

// String is the message for people who debug: its role and its text, and how many other parts it has.
func (m Message) String() string {
	text, other := m.Text(), 0
	for i := range m.Len() {
		if _, ok := m.Part(i).(Text); !ok {
			other++
		}
	}
	s := string(m.Role()) + ": " + text
	if other > 0 {
		s += fmt.Sprintf(" (and %d other parts)", other)
	}
	return s
}

// Blank reports whether m says nothing that a provider would take back: no call, no file, no part of a provider's own, and no
// text but white space. Reasoning alone is blank: providers refuse it as a whole turn.
func (m Message) Blank() bool {
	for i := range m.Len() {
		switch p := m.Part(i).(type) {
		case Text:
			if strings.TrimSpace(p.Text) != "" {
				return false
			}
		case Reasoning:
		default:
			return false
		}
	}
	return true
}

// Encoded gives m in a wire format, encoding it at most a few times in its life (once, when unshared) and remembering the bytes on
// the message. format is a comparable key, one for each wire format. What encode gives may depend on m alone, never on its
// neighbours: roles that merge, cache marks and commas are the joiner's, so forks, compaction, repair and injected messages
// re-use every byte, and nothing is ever invalidated. The bytes are read-only. It panics on the zero Message.
func (m Message) Encoded(format any, encode func(Message) []byte) []byte {
	b, ok := m.kept(format)
	if !ok {
		b = m.keep(format, encode(m))
	}
	return slices.Clip(b)
}

// kept gives m in a wire format if it was encoded before.
func (m Message) kept(format any) ([]byte, bool) {
	for e := m.b.memo.Load(); e != nil; e = e.next {
		if e.format == format {
			return e.bytes, true
		}
	}
	return nil, false
}

// keep remembers m in a wire format.
func (m Message) keep(format any, bytes []byte) []byte {
	var e *memo
	if m.b.taken.CompareAndSwap(false, true) { // most messages are only ever encoded once
		e = &m.b.first
	} else {
		e = new(memo)
	}
	head := m.b.memo.Load()
	e.format, e.bytes, e.next = format, bytes, head
	m.b.memo.CompareAndSwap(head, e) // a lost race costs one more encoding, never a wrong one
	return bytes
}
