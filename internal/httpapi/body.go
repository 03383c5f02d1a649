package httpapi

import "io"

// Body is a request's bytes in pieces: what was encoded before is sent from where it lies, and nothing is joined or copied but
// into the socket.
type Body [][]byte

// Room is an empty body with room for what a request of so many messages has, as a rule: a piece for each, or one for many where they are many ([message.History.Encoded]), besides cache marks, a beginning and an end.
func Room(messages int) Body {
	if messages > 48 {
		messages = 8 + messages/32
	}
	return make(Body, 0, messages+7)
}

// Len is the number of bytes.
func (b Body) Len() (n int64) {
	for _, piece := range b {
		n += int64(len(piece))
	}
	return n
}

// Reader reads the body from its beginning. Each Reader is its own.
func (b Body) Reader() io.ReadCloser { return &reader{left: b} }

// joined is up to which size pieces are sent as one: what fits into the transport's buffer of 4 KB with the headers.
const joined = 4<<10 - 512

// Content is what is sent. A small body is joined: net/http writes what it knows to be in memory in one piece with the headers, where anything else costs a
// packet more than the few bytes cost to copy. A larger one takes two packets either way, and joined another copy of it.
func (b Body) Content() Content {
	n := b.Len()
	if n > joined {
		return Content{n, func() (io.ReadCloser, error) { return b.Reader(), nil }, nil}
	}
	j := &joint{pieces: b}
	return Content{n, j.again, j}
}

// Pieces gives the body that r reads, if it is a Reader of one that nobody has read from: so a round tripper can change a request without joining
// its bytes.
func Pieces(r io.Reader) (Body, bool) {
	own, ok := r.(*reader)
	if !ok || own.at > 0 {
		return nil, false
	}
	return own.left, true
}

type reader struct {
	left Body
	at   int // in left[0]
}

func (r *reader) Read(p []byte) (n int, err error) {
	for n < len(p) && len(r.left) > 0 {
		c := copy(p[n:], r.left[0][r.at:])
		n, r.at = n+c, r.at+c
		if r.at == len(r.left[0]) {
			r.left, r.at = r.left[1:], 0
		}
	}
	if n == 0 && len(r.left) == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// WriteTo spares the transport its copy buffer.
func (r *reader) WriteTo(w io.Writer) (n int64, err error) {
	for len(r.left) > 0 {
		c, err := w.Write(r.left[0][r.at:])
		n += int64(c)
		if err != nil {
			return n, err
		}
		r.left, r.at = r.left[1:], 0
	}
	return n, nil
}

func (r *reader) Close() error { return nil }
