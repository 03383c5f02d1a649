package message

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// A request has all in it that was said before, so what it costs must not grow with the number of messages: each as a piece of its own would be found, listed and handed to the system again in every turn.
// So messages of a long History are encoded side by side, each behind the one before it, and what lies side by side is one piece. A message's bytes stay where they are, whoever sends them: a fork or an
// edit finds them lying there. Histories that go on from each other remember which pieces they have, and where each message ends in them, so that a turn looks at new messages only.

const (
	// alone is how many messages are kept each by itself, in as much room as it takes: short conversations are many, and get no room for what never comes. Once there are more, those are copied, so that they lie side by side, too.
	alone = 48
	// least and most are the sizes of blocks, each twice as large as the one before: a conversation has no more free room than it uses.
	least, most = 4 << 10, 32 << 10
	// large is what is kept by itself at any length: as a piece it costs little beside its bytes, and they would have to be copied.
	large = most / 8
)

// Encoded appends what [Message.Encoded] gives of the messages from i up to j, in order, to pieces: several messages are one piece where their bytes lie side by side. What is appended has no empty pieces,
// and begins and ends where messages do; the zero Message gives nothing. The bytes are read-only. A turn that asks for all messages costs what is new since the last one, and for the rest about a piece for every 32 KB;
// of a [History.Slice], and of a short History, each message is looked at. It panics out of range, and encodes as [Message.Encoded] does.
func (h History) Encoded(pieces [][]byte, i, j int, format any, encode func(Message) []byte) [][]byte {
	part := h.s[i:j:len(h.s)] // not h.s[i:j]: as in Slice
	if h.line == nil || len(h.s) <= alone {
		for _, m := range part {
			if m.IsZero() {
				continue
			}
			if b := m.Encoded(format, encode); len(b) > 0 {
				pieces = append(pieces, b)
			}
		}
		return pieces
	}
	joined := h.line.in(format)
	joined.mu.Lock()
	defer joined.mu.Unlock()
	joined.extend(h.s[:j], encode)
	return joined.cut(pieces, i, j)
}

// line is what the Histories have in common that go on from each other.
type line struct {
	taken  atomic.Int64 // how many messages the longest of them has: only it can be gone on from, any other is forked
	joined atomic.Pointer[joined]
}

// take reports whether a History of n messages is the longest, and if so makes it longer.
func (l *line) take(n, k int) bool {
	return l != nil && l.taken.CompareAndSwap(int64(n), int64(n+k))
}

// fork begins a line with n messages of another one, and k more.
func (l *line) fork(n, k int) *line {
	fork := new(line)
	fork.taken.Store(int64(n + k))
	if l == nil {
		return fork
	}
	for j := l.joined.Load(); j != nil; j = j.next {
		fork.joined.Store(j.fork(n, fork.joined.Load()))
	}
	return fork
}

// in gives what is joined in a format.
func (l *line) in(format any) *joined {
	for {
		head := l.joined.Load()
		for j := head; j != nil; j = j.next {
			if j.format == format {
				return j
			}
		}
		if j := (&joined{format: format, next: head, room: new(room)}); l.joined.CompareAndSwap(head, j) {
			return j
		}
	}
}

// joined is where the bytes of a line's first messages are, in one format.
type joined struct {
	format any
	next   *joined
	room   *room // shared with forks

	mu     sync.Mutex
	pieces []piece
	ends   []int // of each message, counted in bytes from the first one's beginning
}

type piece struct {
	from  int // how many bytes are before it
	bytes []byte
}

// extend joins those of ms that are not.
func (j *joined) extend(ms []Message, encode func(Message) []byte) {
	if j.ends == nil {
		j.ends, j.pieces = make([]int, 0, 2*len(ms)), make([]piece, 0, 8)
	}
	for k := len(j.ends); k < len(ms); k++ {
		end := j.end(k)
		if m := ms[k]; !m.IsZero() {
			b, kept := m.kept(j.format)
			switch {
			case !kept:
				b = m.keep(j.format, j.room.place(encode(m)))
			case k < alone:
				b = j.room.place(b)
			}
			j.add(end, b)
			end += len(b)
		}
		j.ends = append(j.ends, end)
	}
}

// end is where the first n messages end.
func (j *joined) end(n int) int {
	if n == 0 {
		return 0
	}
	return j.ends[n-1]
}

// add adds what comes after so many bytes.
func (j *joined) add(from int, b []byte) {
	if len(b) == 0 {
		return
	}
	if n := len(j.pieces); n > 0 {
		if last := &j.pieces[n-1]; beside(last.bytes, b) {
			last.bytes = last.bytes[:len(last.bytes)+len(b)]
			return
		}
	}
	j.pieces = append(j.pieces, piece{from, b})
}

// beside reports whether b begins in memory where a ends, in one block.
func beside(a, b []byte) bool { return len(a) < cap(a) && &a[:len(a)+1][len(a)] == &b[0] }

// cut appends the bytes of messages from i up to k.
func (j *joined) cut(pieces [][]byte, i, k int) [][]byte {
	from, to := j.end(i), j.end(k)
	if from == to {
		return pieces
	}
	for p := sort.Search(len(j.pieces), func(p int) bool { return j.pieces[p].from+len(j.pieces[p].bytes) > from }); p < len(j.pieces) && j.pieces[p].from < to; p++ {
		at, b := j.pieces[p].from, j.pieces[p].bytes
		pieces = append(pieces, slices.Clip(b[max(from-at, 0):min(to-at, len(b))]))
	}
	return pieces
}

// fork is j for a line that has its first n messages.
func (j *joined) fork(n int, next *joined) *joined {
	j.mu.Lock()
	defer j.mu.Unlock()
	n = min(n, len(j.ends))
	f := &joined{format: j.format, next: next, room: j.room, ends: j.ends[:n:n]}
	from := 0
	for _, b := range j.cut(nil, 0, n) {
		f.pieces = append(f.pieces, piece{from, b})
		from += len(b)
	}
	return f
}

// room is where bytes are placed side by side.
type room struct {
	mu    sync.Mutex
	block []byte
}

// place copies b behind what was placed before it, and gives a slice that goes on to the end of its block. What is large stays where it is.
func (r *room) place(b []byte) []byte {
	if len(b) == 0 || len(b) > large {
		return b
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(b) > cap(r.block)-len(r.block) {
		r.block = make([]byte, 0, min(max(2*cap(r.block), least), most))
	}
	n := len(r.block)
	r.block = append(r.block, b...)
	return r.block[n:]
}
