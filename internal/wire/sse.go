package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"
	"unicode/utf8"
)

// MaxEvent is the most bytes that one server-sent event may take: 64 MiB for all
// its lines together, comments and line ends included. A longer one ends the
// stream with an error.
const MaxEvent = 64 << 20

const (
	firstBuffer   = 4 << 10
	maxEmptyReads = 100 // in a row, as bufio has it
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
// for no byte more. Two buffers, of the bytes and of the data of one event, grow
// with the longest event and are used again: beyond that, nothing is allocated.
// An Events must not be used by several goroutines at once.
type Events struct {
	r      io.Reader
	buf    []byte
	at     int  // buf[:at] was used
	seen   int  // there is no line end in buf[at:seen]
	skipLF bool // the last line ended with CR: an LF next belongs to it
	begun  bool // the first line, where a byte order mark may be, was passed
	ended  bool // no more is to be read
	err    error

	limit int // MaxEvent except in tests
	size  int // the lines of this event so far
	found bool
	name  []byte
	data  []byte

	room *room
}

// room is what the buffers begin with.
type room struct {
	buf  [firstBuffer]byte
	data [512]byte
	name [48]byte
}

// NewEvents returns the events of r. It reads nothing before the first Next.
func NewEvents(r io.Reader) *Events {
	e := spare.Get().(*Events)
	e.r = r
	return e
}

// spare are Events whose buffers may be used again.
var spare = sync.Pool{New: func() any { return (&Events{room: new(room)}).fresh() }}

func (e *Events) fresh() *Events {
	*e = Events{limit: MaxEvent, room: e.room}
	e.buf, e.data, e.name = e.room.buf[:0], e.room.data[:0], e.room.name[:0]
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
			if !utf8.Valid(e.data) {
				e.data = bytes.ToValidUTF8(e.data, []byte("\uFFFD"))
			}
			return true
		default:
			e.reset()
		}
	}
}

// Name returns the event field of the current event, empty if there was none. It
// is valid until the next call of Next.
func (e *Events) Name() []byte { return e.name }

// Data returns the data fields of the current event, joined by newlines. It is
// valid until the next call of Next.
func (e *Events) Data() []byte { return e.data }

// Err returns, once Next returned false, the error that ended the events: that of
// the reader as it came, [io.ErrNoProgress] for a reader that keeps returning
// nothing, or that an event was larger than [MaxEvent]. It is nil when the reader
// ended with [io.EOF].
func (e *Events) Err() error { return e.err }

// reset forgets the fields of the current event.
func (e *Events) reset() {
	e.size, e.found = 0, false
	e.name, e.data = e.name[:0], e.data[:0]
}

// fail ends the stream for an event over the limit. It returns false for Next to
// pass on.
func (e *Events) fail() bool {
	e.reset()
	e.ended, e.buf, e.at, e.seen = true, nil, 0, 0
	e.err = fmt.Errorf("wire: a server-sent event is larger than %d bytes", e.limit)
	return false
}

// field takes one line that is not blank.
func (e *Events) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		if e.found {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		e.found = true
	case "event":
		e.name = append(e.name[:0], value...)
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
	end := lineEnd(e.buf, max(e.at, e.seen))
	e.seen = end
	if end == len(e.buf) {
		return nil, false
	}
	line := e.buf[e.at:end]
	e.skipLF = e.buf[end] == '\r'
	e.at = end + 1
	if !e.begun {
		e.begun = true
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line, true
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
// it: so each byte is moved a bounded number of times on average.
func (e *Events) makeRoom() {
	rest := e.buf[e.at:]
	switch {
	case len(rest) == 0 && cap(e.buf) > 0:
		e.buf = e.buf[:0]
	case len(e.buf) < cap(e.buf):
		return
	case len(rest) <= cap(e.buf)/2 && cap(e.buf) > 0:
		e.buf = e.buf[:copy(e.buf, rest)]
	default:
		e.buf = append(make([]byte, 0, max(firstBuffer, 2*cap(e.buf))), rest...)
	}
	e.seen = max(0, e.seen-e.at)
	e.at = 0
}

// lineEnd returns the offset of the first CR or LF from b[i] on; len(b) if there
// is none. One pass for both keeps the time linear, whichever of them is rare.
func lineEnd(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if found := below(x^'\n'*ones, 1) | below(x^'\r'*ones, 1); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(b) && b[i] != '\n' && b[i] != '\r' {
		i++
	}
	return i
}
