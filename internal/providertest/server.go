package providertest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/httpapi"
)

// patience is how long a test waits for what has to happen at once.
const patience = 10 * time.Second

// call is one request that a server got.
type call struct {
	method string
	path   string
	header http.Header
	body   []byte
}

// speaks reports whether a call has a prompt: one that uploads or deletes a file has none.
func (c call) speaks() bool {
	return len(c.body) > 0 && strings.HasPrefix(c.header.Get("Content-Type"), "application/json")
}

// server is a stub provider that keeps what it was asked. What it is asked is one conversation: each request has to begin with the one before it, else the test fails.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	calls  []call
	prompt []byte // of the last request that had one
}

// serve starts a server that answers every call with answer; it ends with the test.
func serve(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, c call)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client went away
		}
		c := call{r.Method, r.URL.RequestURI(), r.Header, body}
		s.mu.Lock()
		if c.speaks() {
			if s.prompt != nil {
				if place := moved(s.prompt, body); place != "" {
					t.Errorf("the beginning of request %d moved, so that the provider's cache would be of no use: %s", len(s.calls)+1, place)
				}
			}
			s.prompt = body
		}
		s.calls = append(s.calls, c)
		s.mu.Unlock()
		answer(w, r, c)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		httpapi.CloseIdle()
	})
	return s
}

// seen gives the calls so far.
func (s *server) seen() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// whole answers with a JSON body.
func whole(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// stream answers with an event stream that arrives in the given pieces.
func stream(w http.ResponseWriter, pieces [][]byte) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	for _, p := range pieces {
		if _, err := w.Write(p); err != nil {
			return
		}
		_ = flush.Flush()
	}
}

// events cuts an event stream behind each blank line.
func events(sse []byte) (out [][]byte) {
	for len(bytes.TrimSpace(sse)) > 0 {
		event, rest, _ := bytes.Cut(sse, []byte("\n\n"))
		out = append(out, append(bytes.Clone(event), "\n\n"...))
		sse = rest
	}
	return out
}
