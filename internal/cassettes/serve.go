package cassettes

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Server answers as a provider did. Its address, with any path, is a base URL for a client.
type Server struct {
	*httptest.Server
	t testing.TB

	mu  sync.Mutex
	due []Exchange
	got []Request
}

// Request is a request that a Server got.
type Request struct {
	Path   string // with the query
	Header http.Header
	Body   []byte
}

// Serve starts a server on this machine that answers each POST, whatever its path, with the next of the recorded answers. It fails
// the test when it is asked for more than there are, or with another method. It ends with the test.
func Serve(t testing.TB, exchanges []Exchange) *Server {
	t.Helper()
	s := &Server{t: t, due: exchanges}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Requests gives what was asked so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// Anywhere gives a client that brings every call here, whatever host it is for: so a provider can be asked under its real address.
func (s *Server) Anywhere() *http.Client {
	return &http.Client{Transport: detour{s.Listener.Addr().String(), s.Client().Transport}}
}

type detour struct {
	host string
	http.RoundTripper
}

func (d detour) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", d.host
	return d.RoundTripper.RoundTrip(r)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	x, ok := s.next(r, body)
	if !ok {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest) // nobody repeats that
		_, _ = io.WriteString(w, `{"error":{"message":"nothing was recorded for this request"}}`)
		return
	}
	w.Header().Set("Content-Type", x.ContentType)
	w.WriteHeader(x.Status)
	flush := http.NewResponseController(w)
	for _, piece := range pieces(x) {
		if _, err := w.Write(piece); err != nil {
			return
		}
		_ = flush.Flush()
	}
}

// next notes a request and takes the answer to it.
func (s *Server) next(r *http.Request, body []byte) (x Exchange, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, Request{r.URL.RequestURI(), r.Header, body})
	switch {
	case r.Method != http.MethodPost:
		s.t.Errorf("the server was asked with %s %s: it answers POST alone", r.Method, r.URL.Path)
		return x, false
	case len(s.due) == 0:
		s.t.Errorf("the server was asked for more than the %d recorded answers: %s", len(s.got)-1, body)
		return x, false
	}
	x, s.due = s.due[0], s.due[1:]
	return x, true
}

// pieces cuts an event stream behind each event.
func pieces(x Exchange) (out [][]byte) {
	if !x.Streamed() {
		return [][]byte{x.ResponseBody}
	}
	for rest := x.ResponseBody; len(rest) > 0; {
		n := len(rest)
		if i := bytes.Index(rest, []byte("\n\n")); i >= 0 {
			n = i + 2
		}
		out, rest = append(out, rest[:n]), rest[n:]
	}
	return out
}
