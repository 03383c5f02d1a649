package httpapi

import (
	"context"
	"io"
	"net"
	"sync"
)

// dial gives connections that a body's pieces are written to from where they lie. TLS has to copy them, and so is not spared anything.
func dial(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			return conn{tcp}, err
		}
		return c, err
	}
}

// conn writes a body's pieces in one system call: through a plain connection net/http would copy them to a buffer that it makes for each request.
type conn struct{ *net.TCPConn }

// ReadFrom is what net/http has a body sent by: it gives a reader that ends where the body does.
func (c conn) ReadFrom(r io.Reader) (n int64, err error) {
	if l, ok := r.(*io.LimitedReader); ok {
		if pieces, ok := Pieces(l.R); ok && pieces.Len() == l.N {
			n, err = writeAll(c.TCPConn, pieces)
			l.N -= n
			l.R.(*reader).left = nil
			return n, err
		}
	}
	return c.TCPConn.ReadFrom(r)
}

// writing is room for the list of what is written, which net takes apart as it goes.
type writing struct {
	room [][]byte
	left net.Buffers // the end of it
}

var writings = sync.Pool{New: func() any { return new(writing) }}

// longest is the most pieces whose room is used again.
const longest = 4 << 10

// writeAll writes pieces in one system call where that is possible.
func writeAll(c *net.TCPConn, pieces Body) (int64, error) {
	w := writings.Get().(*writing)
	w.room = append(w.room[:0], pieces...)
	w.left = w.room
	n, err := w.left.WriteTo(c)
	clear(w.room) // what was not written
	if w.left = nil; cap(w.room) <= longest {
		writings.Put(w)
	}
	return n, err
}
