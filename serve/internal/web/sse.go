package web

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"time"
)

// beat is how often an event stream without events says that it is still there, so that no proxy in between takes it for dead.
const beat = 15 * time.Second

// Events is a stream of server-sent events. Safe for concurrent use. Its handler is [Patient].
type Events struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	rc   *http.ResponseController
	buf  bytes.Buffer
	err  error
	stop chan struct{}
	done sync.WaitGroup
}

// Stream begins one. Close has to be called before the handler returns.
func Stream(w http.ResponseWriter) *Events {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	e := &Events{w: w, rc: http.NewResponseController(w), stop: make(chan struct{})}
	_ = e.rc.SetReadDeadline(time.Time{}) // it was for the request
	w.WriteHeader(http.StatusOK)
	_ = e.write(func(b *bytes.Buffer) { b.WriteString(":\n\n") }) // a proxy that waits for a first byte has it
	e.done.Go(func() {
		t := time.NewTicker(beat)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				_ = e.write(func(b *bytes.Buffer) { b.WriteString(":\n\n") })
			case <-e.stop:
				return
			}
		}
	})
	return e
}

// Send sends an event; id and name may be "". It returns the first error of writing, and does nothing after that.
func (e *Events) Send(id, name string, data []byte) error {
	return e.write(func(b *bytes.Buffer) {
		if id != "" {
			b.WriteString("id: " + oneLine(id) + "\n")
		}
		if name != "" {
			b.WriteString("event: " + oneLine(name) + "\n")
		}
		for len(data) > 0 {
			line := data
			if n := bytes.IndexAny(data, "\r\n"); n >= 0 {
				line = data[:n]
				if data[n] == '\r' && n+1 < len(data) && data[n+1] == '\n' {
					n++
				}
				data = data[n+1:]
			} else {
				data = nil
			}
			b.WriteString("data: ")
			b.Write(line)
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	})
}

func oneLine(s string) string { return strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(s) }

func (e *Events) write(what func(*bytes.Buffer)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	e.buf.Reset()
	what(&e.buf)
	if _, e.err = e.w.Write(e.buf.Bytes()); e.err == nil {
		e.err = e.rc.Flush()
	}
	return e.err
}

// Close ends the stream's own work. What was sent is sent.
func (e *Events) Close() {
	close(e.stop)
	e.done.Wait()
}
