package httpapi

import (
	"context"
	"io"
	"net"
	"slices"
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
			all := net.Buffers(slices.Clone(pieces)) // which it takes apart
			n, err = all.WriteTo(c.TCPConn)
			l.N -= n
			l.R.(*reader).left = nil
			return n, err
		}
	}
	return c.TCPConn.ReadFrom(r)
}
