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

// body is a message. There are many in a program's memory, and most have one or two parts, in one of the roles, and are encoded in one format: these take 96 bytes.
type body struct {
	memo  atomic.Pointer[memo] // encodings, but for the first
	first encoding             // as taken says
	room  [2]Part              // for few parts
	more  *more                // for what has no room here; nil: all has
	taken atomic.Uint32        // of first: free, being written, there
	role  uint8                // of roles
	parts uint8                // in room
	has   facts
}

// more is what a body has that few have: more parts, or a role that is none.
type more struct {
	parts []Part
	role  Role
}

type encoding struct {
	format any
	bytes  []byte
}

type memo struct {
	encoding
	next *memo
}

// What body.taken says.
const (
	free uint32 = iota
	writing
	there
)

// roles by what a body has for them.
var roles = [...]Role{"", RoleUser, RoleAssistant, RoleTool}

// New makes a message of parts, which it copies.
func New(role Role, parts ...Part) Message {
	b, own := bodyOf(role, len(parts))
	for i, p := range parts {
		own[i] = p
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

// bodyOf makes a body with room for n parts, which it gives.
func bodyOf(role Role, n int) (b *body, parts []Part) {
	code := slices.Index(roles[:], role)
	if n <= len(b.room) && code >= 0 {
		b = &body{role: uint8(code), parts: uint8(n)} //nolint:gosec // there are few
		return b, b.room[:n]
	}
	both := &struct {
		body
		more
	}{more: more{make([]Part, n), role}}
	both.body.more = &both.more
	return &both.body, both.more.parts
}

// all are the parts.
func (b *body) all() []Part {
	if b.more != nil {
		return b.more.parts
	}
	return b.room[:b.parts]
}

func (b *body) speaks() Role {
	if b.more != nil {
		return b.more.role
	}
	return roles[b.role]
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
	b, own := bodyOf(RoleTool, len(rs))
	for i, r := range rs {
		if own[i] = r; len(r.Files) > 0 {
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
	return m.b.speaks()
}

// Len is the number of parts.
func (m Message) Len() int {
	if m.b == nil {
		return 0
	}
	return len(m.b.all())
}

// Part gives part i; it panics out of range.
func (m Message) Part(i int) Part { return m.b.all()[i] }

// Parts yields the parts in order.
func (m Message) Parts() iter.Seq[Part] {
	if m.b == nil {
		return func(func(Part) bool) {}
	}
	return slices.Values(m.b.all())
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
	for _, p := range m.b.all() {
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
	for _, p := range m.b.all() {
		if _, ok := p.(ToolCall); ok {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	calls := make([]ToolCall, 0, n)
	for _, p := range m.b.all() {
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
	b := m.b
	if b.taken.Load() == there && b.first.format == format {
		return b.first.bytes, true
	}
	for e := b.memo.Load(); e != nil; e = e.next {
		if e.format == format {
			return e.bytes, true
		}
	}
	return nil, false
}

// keep remembers m in a wire format.
func (m Message) keep(format any, bytes []byte) []byte {
	b, one := m.b, encoding{format, bytes}
	if b.taken.CompareAndSwap(free, writing) { // most messages are only ever encoded once
		b.first = one
		b.taken.Store(there)
		return bytes
	}
	head := b.memo.Load()
	b.memo.CompareAndSwap(head, &memo{one, head}) // a lost race costs one more encoding, never a wrong one
	return bytes
}
