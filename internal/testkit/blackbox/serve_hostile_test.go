package blackbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestServe_HostileClients(t *testing.T) { runRows(t) }

// refused is a row of a request that is refused; the server is healthy afterwards.
func refused(name, doc string, code int, text, method, path, body string, headers ...string) row {
	return row{name, "serve.md: " + doc, "", func(w *world) {
		s := w.serves()
		s.wants(code, []string{text}, method, path, body, headers...)
		s.healthy()
		if r := s.stop(); len(w.sessions()) != 0 {
			w.t.Errorf("it left a session: %v", r)
		}
	}}
}

// unreadable and notFound are the words of the page about two statuses.
const (
	unreadable = "400 for what can't be read"
	notFound   = "404, 409 while a run is under way in the session"
)

var _ = table("TestServe_HostileClients",
	refused("JSON that breaks off", unreadable, 400, `"class":"validation"`, "POST", "/v1/runs", "{"),
	refused("an unknown member", "a request's members, and the parameters of its query, are known by their exact names, and others are refused", 400, `there is no \"nosuch\" here`, "POST", "/v1/runs", `{"prompt": "hi", "nosuch": 1}`),
	refused("a member in other letters", "are known by their exact names", 400, `"class":"validation"`, "POST", "/v1/runs", `{"Prompt": "hi"}`),
	refused("an unknown parameter", "the parameters of its query", 400, `"class":"validation"`, "GET", "/v1/sessions?nosuch=1", ""),
	refused("a limit that is none", "`limit` (100; at most 1000)", 400, `"class":"validation"`, "GET", "/v1/sessions?limit=0", ""),
	refused("a member of another type", unreadable, 400, `"class":"validation"`, "POST", "/v1/runs", `{"prompt": 7}`),
	refused("two objects", unreadable, 400, `"class":"validation"`, "POST", "/v1/runs", `{"prompt": "hi"}{"prompt": "hi"}`),
	refused("nothing said", unreadable, 400, "nothing is said", "POST", "/v1/runs", `{"prompt": ""}`),
	refused("a list for an object", unreadable, 400, `"class":"validation"`, "POST", "/v1/runs", `[]`),
	refused("bytes that are no UTF-8", unreadable, 400, `"class":"validation"`, "POST", "/v1/runs", "{\"prompt\": \"\xff\"}"),
	refused("very deep JSON", unreadable, 400, `"class":"validation"`, "POST", "/v1/runs", strings.Repeat("[", 100_000)),
	refused("another content type", "All requests and answers are JSON", 400, "send application/json", "POST", "/v1/runs", `{"prompt": "hi"}`, "Content-Type", "text/plain"),
	refused("a wrong method", notFound, 404, "see /openapi.json", "PUT", "/v1/runs", ""),
	// Outside of /v1 an unknown route is net/http's plain text, and no {"error": …}.
	refused("an unknown route", notFound, 404, "404 page not found", "GET", "/nosuch", ""),
	refused("an unknown route of the API", notFound, 404, `"class":"not_found"`, "GET", "/v1/nosuch", ""),
	refused("a session that is not there", notFound, 404, `there is no session`, "GET", "/v1/sessions/none", ""),
	refused("a way out of the inspector's files", "its files are under `/inspector/`", 404, "", "GET", "/inspector/..%2f..%2fgo.mod", ""),
	refused("another host's name", "so is a request that names the server otherwise than by an address or `localhost`", 403, `"class":"policy_denied"`, "GET", "/v1/sessions", "", "Host", "evil.example"),
	refused("a page of another site", "Pages of other sites may call only if `--origin` names their site", 403, `"class":"policy_denied"`, "POST", "/v1/runs", `{"prompt": "hi"}`, "Origin", "https://evil.example"),
	refused("answers to nothing", notFound, 404, "", "POST", "/v1/sessions/none/answers", `{"id": "w", "approved": true}`),
	refused("chat completions without messages", "What can't be had is an error that names the parameter", 400, `"param":"messages"`, "POST", "/v1/chat/completions", `{"model": "pawl", "messages": []}`),
	refused("chat completions of another model", "the model is `pawl`", 404, `"error"`, "POST", "/v1/chat/completions", `{"model": "other", "messages": [{"role": "user", "content": "hi"}]}`),
	refused("chat completions with tools", "only what changes nothing", 400, `"param":"tools"`, "POST", "/v1/chat/completions", `{"model": "pawl", "tools": [{"type": "function", "function": {"name": "x"}}], "messages": [{"role": "user", "content": "hi"}]}`),
	refused("chat completions with an unknown parameter", "A parameter that is not in this table is one, too", 400, `"param":"nosuch"`, "POST", "/v1/chat/completions", `{"model": "pawl", "nosuch": 1, "messages": [{"role": "user", "content": "hi"}]}`),
	refused("AG-UI with tools of the client", "`tools` of the client are refused: the agent calls its own", 400, `"class":"validation"`, "POST", "/ag-ui", `{"threadId": "p", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "hi"}], "tools": [{"name": "x", "description": "x", "parameters": {}}], "context": []}`),
	refused("AG-UI that is no JSON", unreadable, 400, `"class":"validation"`, "POST", "/ag-ui", `{`),
	refused("A2A that is no JSON", unreadable, 200, "-32700", "POST", "/a2a", `{`, "A2A-Version", "1.0"),
	refused("A2A of an unknown method", unreadable, 200, "-32601", "POST", "/a2a", `{"jsonrpc": "2.0", "id": 1, "method": "Nosuch", "params": {}}`, "A2A-Version", "1.0"),
	refused("A2A of a task that is not there", unreadable, 200, "-32001", "POST", "/a2a", `{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "none"}}`, "A2A-Version", "1.0"),
	row{"a body over the limit", "serve.md: 413 for what is too long", "", func(w *world) {
		s := w.serves()
		s.wants(413, nil, "POST", "/v1/runs", `{"prompt": "`+strings.Repeat("x", 33<<20)+`"}`)
		s.healthy()
	}},
	row{"clients that are cut off in the middle of a request", "serve.md: A run that was begun here belongs to nobody's connection", "", func(w *world) {
		s := w.serves()
		for _, text := range []string{"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"pro", "GET / HTT", "\x16\x03\x01garbage\r\n\r\n", "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"} {
			conn := s.dial()
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
		s.healthy()
		if s.stop(); len(w.sessions()) != 0 {
			w.t.Error("a half request began a run")
		}
	}},
	row{"a client that leaves its run's events, and a run that goes on", "serve.md: it goes on when its client is gone, and whoever comes back reads it from where he left", "", func(w *world) {
		s := w.waiting()
		res := s.open("GET", "/v1/sessions/s/events", "")
		_ = res.Body.Close()
		w.write("go", "")
		s.follow("/v1/sessions/s/events?run=r", "", func(e event) bool { return e.data["kind"] == "run.finished" })
		s.wants(200, []string{`"status":"completed"`}, "GET", "/v1/sessions/s", "")
	}},
	row{"many clients at once", "serve.md: with `\"wait\": true`, when the run is over or waits for a person, with where the session stands", "", func(w *world) {
		s := w.serves()
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				if a := s.ask("POST", "/v1/runs", `{"prompt": "hi", "wait": true}`); a.code != 200 || a.json("status") != "completed" {
					w.t.Errorf("%d %s", a.code, a.text)
				}
			})
		}
		all.Wait()
		s.healthy()
	}},
	row{"the 65th run at once is refused", "serve.md: runs under way | `--max-runs` | 64; then 429", "", func(w *world) {
		w.write("model.yaml", "turns: [{when: {contains: wait}, delay: 300s, text: Late.}, {text: Done.}]")
		s := w.serves()
		for i := range 64 {
			s.wants(202, nil, "POST", "/v1/runs", fmt.Sprintf(`{"prompt": "wait", "session": "s%d"}`, i))
		}
		s.wants(429, []string{`"error"`}, "POST", "/v1/runs", `{"prompt": "hi", "session": "more"}`)
		s.wants(200, nil, "POST", "/v1/sessions/s0/cancel", `{"wait": true}`)
		s.wants(200, []string{"Done."}, "POST", "/v1/runs", `{"prompt": "hi", "session": "more", "wait": true}`)
	}},
	row{"the 513th connection waits", "serve.md: connections | `--max-conns` | 512; then they wait", "", func(w *world) {
		w.serves().fillConnections(512)
	}},
	row{"a client that is slow to send its head keeps nobody else waiting", "serve.md: whether the server answers", "", func(w *world) {
		s := w.serves("--max-conns", "2")
		conn := s.dial()
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: ")
		s.healthy()
		_, _ = io.WriteString(conn, "localhost\r\nConnection: close\r\n\r\n")
		if b, err := io.ReadAll(conn); err != nil || !strings.Contains(string(b), "200 OK") {
			w.t.Errorf("%v: %s", err, b)
		}
	}},
)

// dial opens a connection by hand. The test's end closes it.
func (s *server) dial() net.Conn {
	s.w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.w.t.Fatal(err)
	}
	s.w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// readHealth asks for the server's health on a connection, which stays open, and reads
// the answer for at most this time.
func readHealth(conn net.Conn, atMost time.Duration) error {
	_ = conn.SetDeadline(time.Now().Add(atMost))
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err
	}
	return readOK(conn)
}

// readOK reads an answer and fails unless its status is 200.
func readOK(conn net.Conn) error {
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// fillConnections opens as many connections as the server's limit admits, and checks that
// one more is not answered until one of them closes.
func (s *server) fillConnections(limit int) {
	s.w.t.Helper()
	var open []net.Conn
	for range limit {
		conn := s.dial()
		if err := readHealth(conn, patience); err != nil {
			s.w.t.Fatalf("connection %d of %d: %v", len(open)+1, limit, err)
		}
		open = append(open, conn)
	}
	more := s.dial()
	if err := readHealth(more, 500*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		s.w.t.Errorf("with %d connections open, one more is not left waiting: %v", limit, err)
	}
	_ = open[0].Close()
	_ = more.SetDeadline(time.Now().Add(patience))
	if err := readOK(more); err != nil {
		s.w.t.Errorf("after a connection closed, the one that waited: %v", err)
	}
}
