package message

import (
	"iter"
	"slices"
)

// History is an immutable sequence of messages. The zero History is empty. Safe for concurrent use.
type History struct {
	s    []Message
	line *line // shared by all that go on from each other; nil: a view that none goes on from
	has  facts
}

// facts are what a message of a History may have, so that nobody looks through all of it for what is hardly ever there.
type facts uint8

const (
	hasZero facts = 1 << iota // the zero Message is in it
	hasFiles
	hasExtra
)

// NewHistory copies ms.
func NewHistory(ms ...Message) History { return History{}.Append(ms...) }

// Append gives h followed by ms; h itself stays as it was. Amortised O(len(ms)) for whoever appends first;
// a second append to the same h is a fork and copies one word a message.
func (h History) Append(ms ...Message) History {
	n, k := len(h.s), len(ms)
	if k == 0 {
		return h
	}
	for _, m := range ms {
		h.has |= m.facts()
	}
	first := h.line.take(n, k)
	if first && n+k <= cap(h.s) {
		h.s = h.s[:n+k]
		copy(h.s[n:], ms)
		return h
	}
	s := make([]Message, n+k, max(8, 2*(n+k)))
	copy(s[copy(s, h.s):], ms)
	if !first {
		h.line = h.line.fork(n, k)
	}
	return History{s, h.line, h.has}
}

// Len is the number of messages.
func (h History) Len() int { return len(h.s) }

// At gives message i; it panics out of range.
func (h History) At(i int) Message { return h.s[i] }

// Last gives the last message, or the zero Message.
func (h History) Last() Message {
	if len(h.s) == 0 {
		return Message{}
	}
	return h.s[len(h.s)-1]
}

// Slice is the part from i up to j, in O(1). Appending to it never disturbs h. It panics out of range.
func (h History) Slice(i, j int) History {
	own := h.s[:len(h.s):len(h.s)] // behind it there may be messages of others
	return History{s: own[i:j:j], has: h.has}
}

// HasZero reports whether the zero Message may be in h. It looks at nothing, and false is certain; so with the two below. A part that [History.Slice] gives may have it from what was cut off.
func (h History) HasZero() bool { return h.has&hasZero != 0 }

// HasFiles reports whether a message of h may have a file, as [Message.HasFiles] says.
func (h History) HasFiles() bool { return h.has&hasFiles != 0 }

// HasExtra reports whether a message of h may have an Extra, as [Message.HasExtra] says.
func (h History) HasExtra() bool { return h.has&hasExtra != 0 }

// Messages are the messages in order, as a slice of the caller's own.
func (h History) Messages() []Message { return slices.Clone(h.s) }

// All yields the messages in order, with their positions.
func (h History) All() iter.Seq2[int, Message] { return slices.All(h.s) }

// Edit is how a hook or a compaction changed a History, small enough to journal: Head, then old[From:To], then Tail.
type Edit struct {
	Head []Message `json:"head,omitempty"`
	From int       `json:"from"`
	To   int       `json:"to"`
	Tail []Message `json:"tail,omitempty"`
}

// Edit applies e. The messages that it keeps are the same messages, with their encodings. From and To are clamped to h.
func (h History) Edit(e Edit) History {
	to := min(max(e.To, 0), h.Len())
	from := min(max(e.From, 0), to)
	if from == 0 && len(e.Head) == 0 && to == h.Len() {
		return h.Append(e.Tail...)
	}
	return NewHistory(e.Head...).Append(h.s[from:to]...).Append(e.Tail...)
}

// Diff finds the Edit that makes after of before, by identity of messages, never by their content: what is kept is the run of
// before's messages that begins at the first message of after which is also in before.
func Diff(before, after History) Edit {
	if n := before.Len(); n <= after.Len() && (n == 0 || before.s[0] == after.s[0] && before.s[n-1] == after.s[n-1]) {
		if n == 0 || &before.s[0] == &after.s[0] || slices.Equal(before.s, after.s[:n]) { // the ordinary case: nothing changed, or something was added behind
			return Edit{To: n, Tail: slices.Clip(after.s[n:])}
		}
	}
	at := make(map[Message]int, before.Len())
	for j := before.Len() - 1; j >= 0; j-- {
		at[before.s[j]] = j
	}
	i, j := after.Len(), before.Len()
	for k, m := range after.s {
		if p, ok := at[m]; ok {
			i, j = k, p
			break
		}
	}
	n := 0
	for i+n < after.Len() && j+n < before.Len() && after.s[i+n] == before.s[j+n] {
		n++
	}
	return Edit{Head: after.s[:i:i], From: j, To: j + n, Tail: slices.Clip(after.s[i+n:])}
}
