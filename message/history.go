package message

import (
	"iter"
	"slices"
	"sync/atomic"
)

// History is an immutable sequence of messages. The zero History is empty. Safe for concurrent use.
type History struct {
	s   []Message
	tip *atomic.Int64 // how much of the backing array is taken; shared by all that view it; nil: a view that may not grow in place
}

// NewHistory copies ms.
func NewHistory(ms ...Message) History { return History{}.Append(ms...) }

// Append gives h followed by ms; h itself stays as it was. Amortised O(len(ms)) for whoever appends first;
// a second append to the same h is a fork and copies one word a message.
func (h History) Append(ms ...Message) History {
	n, k := len(h.s), len(ms)
	if k == 0 {
		return h
	}
	if h.tip != nil && n+k <= cap(h.s) && h.tip.CompareAndSwap(int64(n), int64(n+k)) {
		s := h.s[:n+k]
		copy(s[n:], ms)
		return History{s, h.tip}
	}
	s := make([]Message, n+k, max(8, 2*(n+k)))
	copy(s[copy(s, h.s):], ms)
	tip := new(atomic.Int64)
	tip.Store(int64(n + k))
	return History{s, tip}
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

// Slice is the part from i up to j, in O(1). Appending to it never disturbs h.
func (h History) Slice(i, j int) History { return History{s: h.s[i:j:j]} }

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
