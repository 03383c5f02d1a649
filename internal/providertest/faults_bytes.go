package providertest

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

func zipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// encodings: nothing is asked to be compressed, what comes so all the same is read, anything else is an error that says so, and no bomb fills the memory.
func (p Provider) encodings(t *testing.T) {
	stream, body, good := p.fixture(t, "calls.sse"), p.fixture(t, "calls.json"), p.complete(t, "calls")
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, c call) {
		if how := c.header.Get("Accept-Encoding"); how != "" {
			t.Errorf("Accept-Encoding %q", how)
		}
		w.Header().Set("Content-Encoding", "gzip")
		if p.Read(t, c.path, c.header, c.body).Stream {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write(zipped(t, stream))
			return
		}
		_, _ = w.Write(zipped(t, body))
	})
	got, err := p.model(s).Complete(t.Context(), hi())
	if err != nil {
		t.Fatal(err)
	}
	p.same(t, good, got)
	if _, got, err = hear(t, p.model(s)); err != nil {
		t.Fatal(err)
	}
	p.same(t, good, got)

	for _, how := range []string{"br", "x-\xff"} {
		for _, kind := range []string{"application/json", "text/event-stream"} {
			a := typed(kind, zipped(t, body))
			a.header.Set("Content-Encoding", how)
			_, err := p.over(a).Complete(t.Context(), hi())
			failed(t, err, "content_encoding")
			_, _, err = hear(t, p.over(a))
			failed(t, err, "content_encoding")
		}
	}
	_, err = p.over(typed("application/json", zipped(t, body))).Complete(t.Context(), hi())
	failed(t, err, "malformed_reply")
	_, _, err = hear(t, p.over(sse(zipped(t, stream))))
	failed(t, err, "truncated_stream", "malformed_reply")

	if sample() {
		return
	}
	bomb := zipped(t, bytes.Repeat([]byte(" "), 2*httpapi.MaxBody))
	s = serve(t, func(w http.ResponseWriter, _ *http.Request, c call) {
		w.Header().Set("Content-Encoding", "gzip")
		if p.Read(t, c.path, c.header, c.body).Stream {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = w.Write(bomb)
	})
	takes(t, 8*httpapi.MaxBody, func() {
		_, err := p.model(s).Complete(t.Context(), hi())
		failed(t, err, "reply_too_large")
	})
	takes(t, 8*wire.MaxEvent, func() {
		_, _, err := hear(t, p.model(s))
		failed(t, err, "truncated_stream")
	})
}

// takes fails t when f allocates more than so many bytes, all in all.
func takes(t *testing.T, most uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > most {
		t.Errorf("%d bytes were allocated, want at most %d", n, most)
	}
}

func (p Provider) headers(t *testing.T) {
	body, good := p.fixture(t, "calls.json"), p.complete(t, "calls")
	for size, ok := range map[int]bool{1 << 20: true, 11 << 20: false} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) {
			w.Header().Set("X-Request-Id", strings.Repeat("x", size))
			whole(w, http.StatusOK, body)
		})
		got, err := p.model(s).Complete(t.Context(), hi())
		if !ok {
			failed(t, err, "connection")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		p.same(t, good, got)
	}
	a := answer{status: 400, header: http.Header{"X-Request-Id": {strings.Repeat("x", 1<<20)}}, body: strings.NewReader(`{"error":{"message":"` + strings.Repeat("m", 1<<20) + `"}}`)}
	_, err := p.over(a).Complete(t.Context(), hi())
	if n := len(modelError(t, err).Error()); n > 20<<10 {
		t.Errorf("an error of %d bytes", n)
	}
}

// sizes: what is large and legal is taken, at a cost in proportion; what goes on without end is not read to its end.
func (p Provider) sizes(t *testing.T) {
	for _, size := range []int{300 << 10, 10 << 20} {
		if sample() && size > 1<<20 {
			continue
		}
		long := []byte(strings.Repeat("wör ld\\n", size/8))
		stream := bytes.ReplaceAll(p.fixture(t, "text.sse"), []byte("wörld "), long)
		body := bytes.ReplaceAll(p.fixture(t, "text.json"), []byte("wörld "), long)
		var want, got *model.Response
		var err error
		takes(t, 1<<20+20*uint64(len(body)), func() { want, err = p.over(typed("application/json", body)).Complete(t.Context(), hi()) })
		if err != nil {
			t.Fatal(err)
		}
		takes(t, 1<<20+20*uint64(len(stream)), func() { _, got, err = hear(t, p.over(sse(stream))) })
		if err != nil {
			t.Fatal(err)
		}
		if want.Message.Text() != got.Message.Text() || len(got.Message.Text()) < size {
			t.Errorf("%d and %d bytes of text", len(want.Message.Text()), len(got.Message.Text()))
		}
	}
	if sample() {
		return
	}
	for name, beginning := range map[string]string{"a line without end": "data: ", "a comment without end": ": "} {
		r := &endless{first: beginning, piece: bytes.Repeat([]byte("x"), 1<<16)}
		a := sse(nil)
		a.body = r
		takes(t, 8*wire.MaxEvent, func() {
			_, _, err := hear(t, p.over(a))
			failed(t, err, "truncated_stream")
		})
		if r.read > wire.MaxEvent+1<<20 {
			t.Errorf("%s: %d bytes were read", name, r.read)
		}
	}
	r := &endless{first: `{"x":"`, piece: bytes.Repeat([]byte("x"), 1<<16)}
	a := typed("application/json", nil)
	a.body = r
	takes(t, 8*httpapi.MaxBody, func() {
		_, err := p.over(a).Complete(t.Context(), hi())
		failed(t, err, "reply_too_large")
	})
	if r.read > httpapi.MaxBody+1<<20 {
		t.Errorf("%d bytes were read", r.read)
	}
}

// endless is a body that begins with first and goes on with piece.
type endless struct {
	first string
	piece []byte
	read  int
}

func (e *endless) Read(b []byte) (n int, err error) {
	if e.first != "" {
		n = copy(b, e.first)
		e.first = e.first[n:]
	} else {
		n = copy(b, e.piece)
	}
	e.read += n
	return n, nil
}
