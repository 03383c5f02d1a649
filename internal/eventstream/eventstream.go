// Package eventstream reads the frames in which AWS sends streams (application/vnd.amazon.eventstream).
//
// A frame is its whole length and the length of its headers (4 bytes each, the high one first), the CRC-32 of these 8 bytes, the headers, a payload, and the CRC-32 of all
// that. So a frame that was damaged or cut off is told from one that is whole, and an end between two frames from one inside.
package eventstream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// MaxPayload and MaxHeaders are the most bytes that a frame may have of each: AWS's own limits.
const (
	MaxPayload = 16 << 20
	MaxHeaders = 128 << 10
)

const (
	prelude = 12 // two lengths and their checksum
	trailer = 4  // the checksum of it all
	first   = 4 << 10
)

// Message is one frame. It lies in the buffer of its Reader, and is valid until the next call of Next.
type Message struct {
	Payload []byte
	headers []byte
}

// Reader reads frames from an [io.Reader]. It asks for no byte more once a frame is whole. It has one buffer, which grows with what has come, never with what a length says
// that will. Not for several goroutines at once.
type Reader struct {
	r   io.Reader
	buf []byte
	at  int // buf[:at] was used
	err error
}

// NewReader reads nothing before the first Next.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Next gives the next frame; io.EOF when the reader ended between two frames, [io.ErrUnexpectedEOF] when it ended inside one, its own error as it came, and otherwise an
// error that says what is wrong with the frame. After an error there is nothing but that error.
func (r *Reader) Next() (Message, error) {
	if r.err == nil {
		var m Message
		if m, r.err = r.next(); r.err == nil {
			return m, nil
		}
	}
	return Message{}, r.err
}

func (r *Reader) next() (m Message, err error) {
	head, err := r.need(prelude)
	if err != nil {
		return m, err
	}
	if crc32.ChecksumIEEE(head[:8]) != binary.BigEndian.Uint32(head[8:]) {
		return m, errors.New("eventstream: the checksum of a frame's beginning is wrong: it was damaged on the way")
	}
	total, headers := int64(binary.BigEndian.Uint32(head)), int64(binary.BigEndian.Uint32(head[4:]))
	payload := total - headers - prelude - trailer
	if headers > MaxHeaders || payload < 0 || payload > MaxPayload {
		return m, fmt.Errorf("eventstream: a frame of %d bytes with headers of %d: want at most %d and a payload of 0 to %d", total, headers, MaxHeaders, MaxPayload)
	}
	frame, err := r.need(int(total))
	if err != nil {
		return m, err
	}
	body := frame[:len(frame)-trailer]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(frame[len(body):]) {
		return m, errors.New("eventstream: the checksum of a frame is wrong: it was damaged on the way")
	}
	m.headers, m.Payload = body[prelude:prelude+headers:prelude+headers], body[prelude+headers:]
	for rest := m.headers; len(rest) > 0; {
		if _, _, _, rest, err = header(rest); err != nil {
			return Message{}, err
		}
	}
	r.at += len(frame)
	return m, nil
}

// need gives the next n bytes without using them up.
func (r *Reader) need(n int) ([]byte, error) {
	for empty := 0; len(r.buf)-r.at < n; {
		r.makeRoom(n)
		c, err := r.r.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+c]
		if c > 0 {
			empty = 0
		}
		if empty++; err == nil && empty > 100 {
			err = io.ErrNoProgress
		}
		if err == nil || len(r.buf)-r.at >= n {
			continue // what the reader has to say besides comes again
		}
		if errors.Is(err, io.EOF) && len(r.buf) > r.at {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return r.buf[r.at : r.at+n], nil
}

// makeRoom makes room to read into: by moving what is left to the front where that frees enough, else by a buffer of twice the size.
func (r *Reader) makeRoom(n int) {
	rest := r.buf[r.at:]
	switch {
	case len(r.buf) < cap(r.buf) && r.at+n <= cap(r.buf):
		return
	case cap(r.buf) > 0 && len(rest) <= cap(r.buf)/2:
		r.buf = r.buf[:copy(r.buf, rest)]
	default:
		r.buf = append(make([]byte, 0, max(first, 2*cap(r.buf))), rest...)
	}
	r.at = 0
}

// Header gives the value of the first header of that name, if it is a text; "" otherwise.
func (m Message) Header(name string) string {
	for rest := m.headers; len(rest) > 0; {
		n, kind, value, next, err := header(rest)
		if err != nil {
			return ""
		}
		if string(n) == name && kind == text {
			return string(value)
		}
		rest = next
	}
	return ""
}

const text = 7

// sizes are the bytes of each kind of value; those of bytes and texts have two bytes with their length before them.
var sizes = [...]int{0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 6: -1, text: -1, 8: 8, 9: 16}

var errHeaders = errors.New("eventstream: the headers of a frame can't be read")

// header cuts the first header off.
func header(b []byte) (name []byte, kind byte, value, rest []byte, err error) {
	n := int(b[0])
	if n == 0 || len(b) < 1+n+1 {
		return nil, 0, nil, nil, errHeaders
	}
	name, kind, b = b[1:1+n], b[1+n], b[2+n:]
	if int(kind) >= len(sizes) {
		return nil, 0, nil, nil, errHeaders
	}
	size := sizes[kind]
	if size < 0 {
		if len(b) < 2 {
			return nil, 0, nil, nil, errHeaders
		}
		size, b = int(binary.BigEndian.Uint16(b)), b[2:]
	}
	if len(b) < size {
		return nil, 0, nil, nil, errHeaders
	}
	return name, kind, b[:size], b[size:], nil
}
