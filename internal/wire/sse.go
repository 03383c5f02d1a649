package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"
)

// MaxEvent is the most bytes that one server-sent event may take: 64 MiB for all
// its lines together, comments and line ends included. A longer one ends the
// stream with an error.
const MaxEvent = 64 << 20

const (
	firstBuffer   = 4 << 10
	largeBuffer   = 32 << 10 // as much as is read at once
	maxEmptyReads = 100      // in a row, as bufio has it
)

// Events reads server-sent events from an [io.Reader], as the HTML standard
// defines them. See [NewEvents].
//
// Lines end with LF, CRLF or CR, in any mixture; a byte order mark at the start
// is skipped. Comments and fields other than event and data are skipped, id and
// retry too: connecting again is not the business of this type. So are events
// without a data field; one whose data field is empty has empty data. Data is
// UTF-8: what isn't becomes U+FFFD.
//
// In two things it differs from the standard. An event still without its blank
// line when the reader ends with [io.EOF] is delivered, for there are providers
// that end their streams so, even in the middle of a line; when the reader ends
// with another error, the event is dropped. And an event has a size limit,
// [MaxEvent].
//
// Next returns an event as soon as its blank line was read and asks the reader
// for no byte more. Where more waits than was asked for, more is asked for the
// next time, up to 32 KiB. The buffers grow with that and with the longest event,
// and are used again: beyond that, nothing is allocated. An Events must not be
// used by several goroutines at once.
type Events struct {
	r      io.Reader
	buf    []byte
	at     int  // buf[:at] was used
	lf, cr int  // there is no LF in buf[at:lf], and no CR in buf[at:cr]
	skipLF bool // the last line ended with CR: an LF next belongs to it
	begun  bool // the first line, where a byte order mark may be, was passed
	more   bool // the last read got all that it asked for, which was a lot
	ended  bool // no more is to be read
	err    error

	limit int  // MaxEvent except in tests
	size  int  // the lines of this event so far
	found bool // it has data
	name  held
	data  held

	spare []byte // the buffer to begin with
}

// held is the value of a field. It lies in the buffer until bytes there are to move,
// which few events live to see, and then in a room of its own, which is used again.
type held struct {
	value, room []byte
	kept        bool // value is room
}

func (h *held) set(value []byte) { h.value, h.kept = value, false }

func (h *held) keep() {
	if !h.kept {
		h.room = append(h.room[:0], h.value...)
		h.value, h.kept = h.room, true
	}
}

// empty is h without its value, and without a room that is too large to be kept.
func (h held) empty() held {
	if cap(h.room) > largeBuffer {
		h.room = nil
	}
	return held{room: h.room}
}

// NewEvents returns the events of r. It reads nothing before the first Next.
func NewEvents(r io.Reader) *Events {
	e := spare.Get().(*Events)
	e.r = r
	return e
}

// spare are Events whose buffers may be used again.
var spare = sync.Pool{New: func() any { return (&Events{spare: make([]byte, 0, firstBuffer)}).fresh() }}

func (e *Events) fresh() *Events {
	if n := cap(e.buf); n > cap(e.spare) && n <= largeBuffer {
		e.spare = e.buf
	}
	*e = Events{limit: MaxEvent, spare: e.spare, buf: e.spare[:0], name: e.name.empty(), data: e.data.empty()}
	return e
}

// Release ends the use of e, whose buffers may then be those of other events: what
// Data and Name gave is not valid any more, and e must not be used. It need not be
// called.
func (e *Events) Release() {
	spare.Put(e.fresh())
}

// Next moves to the next event that has data. It returns false at the end of the
// reader and at an error.
func (e *Events) Next() bool {
	e.reset()
	for {
		line, ok := e.line()
		switch {
		case !ok && e.size+len(e.buf)-e.at > e.limit:
			return e.fail()
		case !ok && e.fill():
		case !ok:
			e.reset() // what there is of an event was cut off by an error
			return false
		case len(line) > 0:
			if e.size += len(line) + 1; e.size > e.limit {
				return e.fail()
			}
			e.field(line)
		case e.found:
			if !utf8.Valid(e.data.value) {
				e.data.set(bytes.ToValidUTF8(e.data.value, []byte("\uFFFD")))
			}
			return true
		default:
			e.reset()
		}
	}
}

// Name returns the event field of the current event, empty if there was none. It
// is valid until the next call of Next.
func (e *Events) Name() []byte { return e.name.value }

// Data returns the data fields of the current event, joined by newlines. It is
// valid until the next call of Next.
func (e *Events) Data() []byte { return e.data.value }

// Err returns, once Next returned false, the error that ended the events: that of
// the reader as it came, [io.ErrNoProgress] for a reader that keeps returning
// nothing, or that an event was larger than [MaxEvent]. It is nil when the reader
// ended with [io.EOF].
func (e *Events) Err() error { return e.err }

// reset forgets the fields of the current event.
func (e *Events) reset() {
	e.size, e.found = 0, false
	e.name.set(nil)
	e.data.set(nil)
}

// fail ends the stream for an event over the limit. It returns false for Next to
// pass on.
func (e *Events) fail() bool {
	e.reset()
	e.ended, e.buf, e.at, e.lf, e.cr = true, nil, 0, 0, 0
	e.err = fmt.Errorf("wire: a server-sent event is larger than %d bytes", e.limit)
	return false
}

// field takes one line that is not blank.
func (e *Events) field(line []byte) {
	name, value := line, line[len(line):]
	if i := bytes.IndexByte(line, ':'); i >= 0 {
		name, value = line[:i], line[i+1:]
	}
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		if !e.found {
			e.data.set(value)
			e.found = true
			return
		}
		e.data.keep()
		e.data.room = append(append(e.data.room, '\n'), value...)
		e.data.value = e.data.room
	case "event":
		e.name.set(value)
	}
}

// line returns the next line without its end; false when the end has not been
// read yet. The line is valid until the next fill.
func (e *Events) line() ([]byte, bool) {
	// A CR ends its line at once. Whether an LF comes with it is looked at only
	// here, when the next line is due: waiting for it would hold an event back.
	if e.skipLF && e.at < len(e.buf) {
		e.skipLF = false
		if e.buf[e.at] == '\n' {
			e.at++
		}
	}
	// Where the next ones are is kept: each byte is looked at once for either,
	// whichever of them is rare.
	e.lf = next(e.buf, max(e.at, e.lf), '\n')
	e.cr = next(e.buf, max(e.at, e.cr), '\r')
	end := min(e.lf, e.cr)
	if end == len(e.buf) {
		return nil, false
	}
	line := e.buf[e.at:end]
	e.skipLF = end == e.cr
	e.at = end + 1
	if !e.begun {
		e.begun = true
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line, true
}

// next returns the offset of the first c from b[i] on; len(b) if there is none.
func next(b []byte, i int, c byte) int {
	if i == len(b) || b[i] == c { // it was found before
		return i
	}
	return search(b, i, c)
}

func search(b []byte, i int, c byte) int {
	if n := bytes.IndexByte(b[i:], c); n >= 0 {
		return i + n
	}
	return len(b)
}

// fill reads more into the buffer; false when there is no more.
func (e *Events) fill() bool {
	if e.ended {
		return false
	}
	e.makeRoom()
	for range maxEmptyReads {
		room := e.buf[len(e.buf):cap(e.buf)]
		n, err := e.r.Read(room)
		if n < 0 || n > len(room) {
			n, err = 0, errors.New("wire: the reader returned a count out of range")
		}
		e.buf = e.buf[:len(e.buf)+n]
		e.more = n == len(room) && n > cap(e.buf)/2
		switch {
		case errors.Is(err, io.EOF):
			// Whatever the last bytes are, these end the line and the event.
			e.ended = true
			e.buf = append(e.buf, "\n\n"...)
			return true
		case err != nil:
			e.ended, e.err = true, err
			return n > 0
		case n > 0:
			return true
		}
	}
	e.ended, e.err = true, io.ErrNoProgress
	return false
}

// makeRoom makes room to read into. It moves what is left in the buffer to the
// front, or to a buffer of twice the size when that would free less than half of
// it, so that each byte is moved a bounded number of times on average; or to a
// larger one when more is waiting.
func (e *Events) makeRoom() {
	rest, size := e.buf[e.at:], cap(e.buf)
	if len(e.buf) < size && len(rest) > 0 {
		return
	}
	e.name.keep()
	e.data.keep()
	switch {
	case len(rest) > size/2:
		size *= 2
	case e.more && size < largeBuffer:
		size = min(4*size, largeBuffer)
	}
	to := e.buf[:0]
	if size = max(size, firstBuffer); size > cap(to) {
		to = make([]byte, 0, size)
	}
	e.buf = append(to, rest...)
	e.lf, e.cr = max(0, e.lf-e.at), max(0, e.cr-e.at)
	e.at = 0
}
