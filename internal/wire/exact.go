package wire

import (
	"bytes"
	"sync"
)

// scratch is room for what is then copied.
type scratch [4 << 10]byte

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// Exact gives what f appends, in a slice of just that size: for bytes that are kept for long, of which size is a generous estimate. What may be over 4 KB is written where it stays: there a copy would cost more than it saves.
// It is nil when there is nothing.
func Exact(size int, f func(b []byte) []byte) []byte {
	if size > len(scratch{}) {
		return f(make([]byte, 0, size))
	}
	room := scratches.Get().(*scratch)
	defer scratches.Put(room)
	return bytes.Clone(f(room[:0]))
}
