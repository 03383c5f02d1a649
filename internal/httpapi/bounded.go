package httpapi

import (
	"compress/gzip"
	"io"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// bounded is a body that fails where it goes on for too long: a server must not fill our memory.
type bounded struct {
	body   io.ReadCloser
	left   int64
	began  time.Time // when the headers were there
	closed atomic.Bool
	// What was read of it to have a look, which comes again.
	first  [1]byte
	peeked int
	err    error
}

// Close closes the body once: who finished a reply and who reads it both do.
func (b *bounded) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	return b.body.Close()
}

// peek gives the first byte, for which it waits; 0 if there is none.
func (b *bounded) peek() byte {
	b.peeked, b.err = io.ReadFull(b.body, b.first[:]) // an error comes again with the next Read
	return b.first[0]
}

func (b *bounded) Read(p []byte) (int, error) {
	switch {
	case b.left <= 0:
		return 0, errdefs.NotAvailable.Errorf("the reply goes on for more than %d MiB", MaxStream>>20)
	case b.peeked > 0 && len(p) > 0:
		b.peeked = 0
		b.left--
		return copy(p, b.first[:]), nil
	case b.err != nil:
		return 0, b.err
	}
	n, err := b.body.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.err = err
	return n, err
}

// ended reports whether a body was read to its end.
func ended(body io.Reader) bool {
	b, ok := body.(*bounded)
	return ok && b.err == io.EOF //nolint:errorlint // as Read gives it
}

// unzipped is a body that came compressed.
type unzipped struct {
	io.ReadCloser
	zip *gzip.Reader
}

func (u *unzipped) Read(p []byte) (n int, err error) {
	if u.zip == nil {
		if u.zip, err = gzip.NewReader(u.ReadCloser); err != nil {
			return 0, err
		}
	}
	return u.zip.Read(p)
}
