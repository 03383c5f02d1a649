package blackbox

import (
	"io"
	"net"
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

const unreadable = "400 for what can't be read"

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
	refused("a wrong method", "404", 404, "see /openapi.json", "PUT", "/v1/runs", ""),
	// Outside of /v1 an unknown route is net/http's plain text, and no {"error": …}.
	refused("an unknown route", "404", 404, "404 page not found", "GET", "/nosuch", ""),
	refused("an unknown route of the API", "404", 404, `"class":"not_found"`, "GET", "/v1/nosuch", ""),
	refused("a session that is not there", "404", 404, `there is no session`, "GET", "/v1/sessions/none", ""),
	refused("a way out of the inspector's files", "its files are under `/inspector/`", 404, "", "GET", "/inspector/..%2f..%2fgo.mod", ""),
	refused("another host's name", "so is a request that names the server otherwise than by an address or `localhost`", 403, `"class":"policy_denied"`, "GET", "/v1/sessions", "", "Host", "evil.example"),
	refused("a page of another site", "Pages of other sites may call only if `--origin` names their site", 403, `"class":"policy_denied"`, "POST", "/v1/runs", `{"prompt": "hi"}`, "Origin", "https://evil.example"),
	refused("answers to nothing", "404", 404, "", "POST", "/v1/sessions/none/answers", `{"id": "w", "approved": true}`),
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
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				w.t.Fatal(err)
			}
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
	row{"many clients at once", "serve.md: runs under way | `--max-runs` | 64; then 429", "", func(w *world) {
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
	row{"a client that is slow to send its head", "serve.md: 512; then they wait", "", func(w *world) {
		s := w.serves("--max-conns", "4")
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			w.t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: ")
		s.healthy()
		_, _ = io.WriteString(conn, "localhost\r\nConnection: close\r\n\r\n")
		if b, err := io.ReadAll(conn); err != nil || !strings.Contains(string(b), "200 OK") {
			w.t.Errorf("%v: %s", err, b)
		}
	}},
)
