package blackbox

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// server is a pawl serve, or pawl mcp serve, of its own process.
type server struct {
	*process
	url    string
	client *http.Client
	header http.Header // sent with each request
}

// answer is what a server answered.
type answer struct {
	code   int
	header http.Header
	text   string
}

// json gives what lies behind members of the answer.
func (a answer) json(path ...any) any {
	var v any
	_ = json.Unmarshal([]byte(a.text), &v)
	return at(v, path...)
}

// chats is the script that servers play: it writes if it is asked to.
const chats = `turns:
- {when: {contains: write}, text: "I write.", tool_calls: [{id: w, name: write, input: {file_path: effects, content: one}}], usage: {input_tokens: 10, output_tokens: 5}}
- {when: {contains: wait}, tool_calls: [{id: s, name: bash, input: {command: "touch began; until test -e go; do sleep 0.02; done"}}]}
- {when: {contains: fail}, error: {status: 401}}
- {text: "Done."}
- {text: "Done again."}
- {text: "Done for good."}
`

// serves starts pawl serve on a free address and waits until it listens.
func (w *world) serves(flags ...string) *server {
	w.t.Helper()
	if !w.has("model.yaml")() {
		w.write("model.yaml", chats)
	}
	args := append([]string{"serve", "--json", "--addr", "127.0.0.1:0", "--model", "scripted/model.yaml", "--no-sandbox"}, flags...)
	s := &server{process: w.start(args...), header: http.Header{}}
	var ready struct{ Type, URL, Dir string }
	w.until("the server listens", func() bool {
		if s.over() {
			w.t.Fatalf("the server ended: %v", s.wait())
		}
		return json.Unmarshal([]byte(s.out.String()), &ready) == nil
	})
	if ready.Type != "serving" || ready.Dir != w.dir {
		w.t.Errorf("%v", ready)
	}
	s.connect(ready.URL)
	return s
}

// connect makes the client of a server's address.
func (s *server) connect(url string) {
	transport := &http.Transport{}
	s.url, s.client = url, &http.Client{Transport: transport, Timeout: patience}
	s.w.t.Cleanup(transport.CloseIdleConnections)
}

// open sends a request. A body is JSON; headers are names and values in turn.
func (s *server) open(method, path, body string, headers ...string) *http.Response {
	s.w.t.Helper()
	req, err := http.NewRequestWithContext(s.w.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.w.t.Fatal(err)
	}
	req.Header = s.header.Clone()
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.client.Do(req)
	if err != nil {
		s.w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res
}

// ask sends a request and reads the answer.
func (s *server) ask(method, path, body string, headers ...string) answer {
	s.w.t.Helper()
	res := s.open(method, path, body, headers...)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{res.StatusCode, res.Header, string(b)}
}

// wants asks, and fails the test unless the answer has this status and these texts.
func (s *server) wants(code int, texts []string, method, path, body string, headers ...string) answer {
	s.w.t.Helper()
	a := s.ask(method, path, body, headers...)
	if a.code != code {
		s.w.t.Errorf("%s %s: status %d, want %d: %s", method, path, a.code, code, a.text)
	}
	for _, text := range texts {
		if !strings.Contains(a.text, text) {
			s.w.t.Errorf("%s %s: the answer lacks %q: %s", method, path, text, a.text)
		}
	}
	return a
}

// event is a server-sent event.
type event struct {
	id   string
	data object
}

// follow reads events until one is enough, or they end.
func (s *server) follow(path, last string, enough func(event) bool) (all []event) {
	s.w.t.Helper()
	res := s.open("GET", path, "", "Last-Event-ID", last)
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != 200 && res.StatusCode != 204 {
		s.w.t.Fatalf("GET %s: status %d", path, res.StatusCode)
	}
	return readEvents(s.w.t, res.Body, enough)
}

// readEvents reads server-sent events until one is enough, or they end.
func readEvents(t *testing.T, from io.Reader, enough func(event) bool) (all []event) {
	t.Helper()
	var e event
	text := bufio.NewScanner(from)
	text.Buffer(nil, 1<<22)
	for text.Scan() {
		if id, ok := strings.CutPrefix(text.Text(), "id: "); ok {
			e.id = id
		}
		data, ok := strings.CutPrefix(text.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		e.data = nil
		if err := json.Unmarshal([]byte(data), &e.data); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if all = append(all, e); enough != nil && enough(e) {
			break
		}
	}
	return all
}

// kinds gives the kinds, or types, of events.
func kinds(all []event) (names []string) {
	for _, e := range all {
		for _, member := range []string{"kind", "type"} {
			if name, ok := e.data[member].(string); ok {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// stop ends a server as a service does, and checks that it ends well.
func (s *server) stop() result {
	s.w.t.Helper()
	s.signal(syscall.SIGTERM)
	r := s.wait()
	if r.code != 0 {
		s.w.t.Errorf("told to stop, it ended with %d: %s", r.code, r.err)
	}
	return r
}

// healthy checks that a server still answers.
func (s *server) healthy() {
	s.w.t.Helper()
	s.wants(200, []string{"ok"}, "GET", "/healthz", "")
}

func TestServe_Flags(t *testing.T) { runRows(t) }

// token is long enough.
const token = "a-secret-of-this-server"

var _ = table("TestServe_Flags",
	row{"--addr is where it listens", "`--addr HOST:PORT` is where it listens (`127.0.0.1:7295`); port 0 is a free one", "pawl serve, pawl serve --addr", func(w *world) {
		s := w.serves()
		if !strings.HasPrefix(s.url, "http://127.0.0.1:") {
			w.t.Error(s.url)
		}
		s.healthy()
		if r := s.stop(); !strings.Contains(r.err, "stopped") || strings.Count(r.out, "\n") != 1 {
			w.t.Error(r)
		}
	}},
	row{"--token is what clients have to send", "`--token TOKEN`, or `@FILE`, is what clients have to send, 16 characters or more; default: `$PAWL_TOKEN`", "pawl serve --token", func(w *world) {
		w.write("token", token+"\n")
		for _, value := range []string{token, "@token"} {
			s := w.serves("--token", value)
			s.wants(401, []string{`"class":"unauthorized"`}, "GET", "/v1/sessions", "")
			s.wants(401, nil, "GET", "/v1/sessions", "", "Authorization", "Bearer another-secret-of-it")
			s.wants(200, nil, "GET", "/v1/sessions", "", "Authorization", "Bearer "+token)
			for _, open := range []string{"/", "/healthz", "/openapi.json", "/.well-known/agent-card.json"} {
				s.wants(200, nil, "GET", open, "")
			}
			for _, closed := range []string{"/a2a", "/v1/chat/completions", "/ag-ui", "/v1/runs"} {
				s.wants(401, nil, "POST", closed, "{}")
			}
			s.stop()
		}
	}},
	row{"PAWL_TOKEN is one, too, and is kept from commands", "default: `$PAWL_TOKEN`", "pawl serve --token", func(w *world) {
		w.env = append(w.env, "PAWL_TOKEN="+token)
		w.write("model.yaml", `turns: [{tool_calls: [{name: bash, input: {command: "env > effects"}}]}, {text: Done.}]`)
		s := w.serves("--permission-mode", "bypassPermissions")
		s.wants(401, nil, "GET", "/v1/sessions", "")
		s.wants(200, []string{"Done."}, "POST", "/v1/runs", `{"prompt": "go", "wait": true}`, "Authorization", "Bearer "+token)
		if env := w.read("effects"); !strings.Contains(env, "PATH=") || strings.Contains(env, token) {
			w.t.Error(env)
		}
	}},
	row{"--origin lets pages of another site call", "`--origin URL` lets pages of another site call (repeat)", "pawl serve --origin", func(w *world) {
		s := w.serves("--origin", "https://chat.example")
		a := s.wants(200, nil, "POST", "/v1/runs", `{"prompt": "hi", "wait": true}`, "Origin", "https://chat.example")
		if a.header.Get("Access-Control-Allow-Origin") != "https://chat.example" {
			w.t.Errorf("%v", a.header)
		}
		s.wants(403, nil, "POST", "/v1/runs", `{"prompt": "hi"}`, "Origin", "https://evil.example")
	}},
	row{"--host is a name that it is asked by", "`--host NAME` is a name that the server is asked by when there is no token (repeat)", "pawl serve --host", func(w *world) {
		s := w.serves("--host", "agent.internal")
		s.wants(200, nil, "GET", "/v1/sessions", "", "Host", "agent.internal")
		s.wants(200, nil, "GET", "/v1/sessions", "", "Host", "localhost")
		s.wants(403, []string{"is not a name of this server"}, "GET", "/v1/sessions", "", "Host", "evil.example")
	}},
	row{"--resume goes on with what was left", "`--resume` goes on with the runs of this project that servers, or other programs, which died or were shut down have left", "pawl serve --resume", func(w *world) {
		s := w.serves("--permission-mode", "bypassPermissions")
		s.wants(202, nil, "POST", "/v1/runs", `{"prompt": "wait", "session": "left"}`)
		w.until("the call runs", w.has("began"))
		s.end()
		w.write("go", "")
		again := w.serves("--permission-mode", "bypassPermissions", "--resume")
		w.until("the run is completed", func() bool { return again.ask("GET", "/v1/sessions/left", "").json("status") == "completed" })
		if r := again.stop(); !strings.Contains(r.err, "going on with what was left: left\n") {
			w.t.Error(r)
		}
	}},
	row{"--url stands in its A2A card", "`--url URL` is where others reach the server: it stands in its A2A card", "pawl serve --url", func(w *world) {
		s := w.serves("--url", "https://agent.example/pawl")
		s.wants(200, []string{`"url":"https://agent.example/pawl/a2a"`}, "GET", "/.well-known/agent-card.json", "")
	}},
	row{"--artifact has A2A clients get a channel", "`--artifact CHANNEL` is a channel of a graph's board that A2A clients get as an artifact", "pawl serve --artifact", func(w *world) {
		w.write("flow.yaml", "entry: say\nnodes: [{id: say, type: template, config: {template: \"A draft.\", role: assistant, channel: drafts}}]\nedges: [{from: say, to: __end__}]\n")
		s := w.serves("--engine", "graph:flow.yaml", "--artifact", "drafts")
		s.wants(200, []string{`"artifactId":"board/drafts"`, "A draft."}, "POST", "/a2a", v1Send("m1", "go"), "A2A-Version", "1.0")
	}},
	row{"--push-host may be sent notifications", "`--push-host HOST` may be sent A2A notifications although it is not of the public network, and by http", "pawl serve --push-host", func(w *world) { w.pushes() }},
	row{"--max-runs refuses more", "`--max-runs N`, `--max-conns N`, `--max-body N` and `--grace D` are [limits] (64, 512, 32 MiB, 10 s)", "pawl serve --max-runs", func(w *world) {
		s := w.serves("--max-runs", "1", "--permission-mode", "bypassPermissions")
		s.wants(202, nil, "POST", "/v1/runs", `{"prompt": "wait", "session": "a"}`)
		s.wants(429, nil, "POST", "/v1/runs", `{"prompt": "hi", "session": "b"}`)
		w.write("go", "")
	}},
	row{"--max-conns has more wait", "`--max-runs N`, `--max-conns N`, `--max-body N` and `--grace D` are [limits] (64, 512, 32 MiB, 10 s)", "pawl serve --max-conns", func(w *world) {
		w.serves("--max-conns", "2").fillConnections(2)
	}},
	row{"--max-body refuses more", "`--max-body N` and `--grace D` are [limits] (64, 512, 32 MiB, 10 s)", "pawl serve --max-body", func(w *world) {
		s := w.serves("--max-body", "1000")
		s.wants(413, nil, "POST", "/v1/runs", `{"prompt": "`+strings.Repeat("x", 2000)+`"}`)
		s.wants(200, nil, "POST", "/v1/runs", `{"prompt": "hi", "wait": true}`)
	}},
	row{"--grace lets go of what does not end, and it can be resumed", "serve.md: what has not come to it in time is let go of, as if the process had died. All of it can be resumed", "pawl serve --grace", func(w *world) {
		s := w.serves("--grace", "100ms", "--permission-mode", "bypassPermissions")
		s.wants(202, nil, "POST", "/v1/runs", `{"prompt": "wait", "session": "left"}`)
		w.until("the call runs", w.has("began"))
		s.stop()
		w.write("go", "")
		if r := w.pawl("resume", "left", "--no-sandbox", "--permission-mode", "bypassPermissions"); r.code != 0 || r.out != "Done.\n" {
			w.t.Error(r)
		}
	}},
)

func TestServe_Inspector(t *testing.T) { runRows(t) }

var _ = table("TestServe_Inspector",
	row{"the page needs no token and runs no code of others", "serve.md: It needs no token; what it shows does", "/", func(w *world) {
		s := w.serves("--token", token)
		a := s.wants(200, []string{"<!doctype html>"}, "GET", "/", "")
		policy := a.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, want) {
				w.t.Errorf("the policy lacks %q: %s", want, policy)
			}
		}
		for _, m := range regexp.MustCompile(`(?:src|href)="(/inspector/[^"]+)"`).FindAllStringSubmatch(a.text, -1) {
			s.wants(200, nil, "GET", m[1], "")
		}
	}},
	row{"the API describes itself", "serve.md: `GET /openapi.json` describes each, with examples (OpenAPI 3.1)", "GET /openapi.json, GET /healthz", func(w *world) {
		s := w.serves()
		a := s.wants(200, []string{`"3.1.0"`}, "GET", "/openapi.json", "")
		paths, _ := a.json("paths").(object)
		for _, route := range []string{"/v1/runs", "/v1/sessions", "/v1/sessions/{session}/events", "/v1/chat/completions", "/ag-ui"} {
			if paths[route] == nil {
				w.t.Errorf("it does not describe %s", route)
			}
		}
		s.healthy()
	}},
)
