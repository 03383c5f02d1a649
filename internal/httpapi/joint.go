package httpapi

import (
	"bytes"
	"context"
	"io"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// joint is a small body in one piece, while it is sent: in a room that the next body has when this one is out. The request itself stays for as long as its answer takes, and its pieces are
// all that it needs to be sent again.
type joint struct {
	pieces Body
	begun  atomic.Bool
	room   atomic.Pointer[[]byte] // that the body is in; nil: in none, or in one that is not to be used again
	reader bytes.Reader
	trace  httptrace.ClientTrace
}

// joints are rooms.
var joints = sync.Pool{New: func() any {
	room := make([]byte, 0, joined)
	return &room
}}

// first reads the body, and has its room given back when it was sent in the returned context. A body that is sent anew, by another request, has none.
func (j *joint) first(ctx context.Context) (context.Context, io.ReadCloser) {
	if !j.begun.CompareAndSwap(false, true) {
		body, _ := j.again()
		return ctx, body
	}
	room := joints.Get().(*[]byte)
	*room = (*room)[:0]
	for _, piece := range j.pieces {
		*room = append(*room, piece...)
	}
	j.reader.Reset(*room)
	j.room.Store(room)
	j.trace.WroteRequest = j.wrote
	return httptrace.WithClientTrace(ctx, &j.trace), io.NopCloser(&j.reader)
}

// again reads the body from bytes of its own. Who sends it once more may not be done with the first reader, and says so of neither: then nobody gets the room.
func (j *joint) again() (io.ReadCloser, error) {
	j.room.Store(nil)
	return io.NopCloser(bytes.NewReader(bytes.Join(j.pieces, nil))), nil
}

// wrote is called where a request was written, by who read the body.
func (j *joint) wrote(how httptrace.WroteRequestInfo) {
	if how.Err != nil {
		return
	}
	if room := j.room.Swap(nil); room != nil {
		j.reader.Reset(nil)
		joints.Put(room)
	}
}
