package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawl-dev/pawl/engine/telemetry"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve/mcp"
	"github.com/pawl-dev/pawl/tool"
)

func (p *place) listen(o mcp.HTTP) *httptest.Server {
	p.t.Helper()
	h, err := p.s.Handler(o)
	if err != nil {
		p.t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	p.t.Cleanup(func() { // what runs first: its streams end
		_ = p.s.Close()
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

// post sends a body, with headers "Name: value".
func post(t *testing.T, url, body string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if req.Header.Set(name, value); name == "Host" {
			req.Host = value
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// begin begins a session.
func begin(t *testing.T, url string, headers ...string) (session string) {
	t.Helper()
	res := post(t, url, hello, headers...)
	_, _ = io.Copy(io.Discard, res.Body)
	if session = res.Header.Get("Mcp-Session-Id"); session == "" {
		t.Fatal("no session", res.Status)
	}
	return "Mcp-Session-Id: " + session
}

// answered is the answer with an id, of a stream or of a body.
func answered(t *testing.T, r io.Reader, id string) map[string]any {
	t.Helper()
	in := bufio.NewScanner(r)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		line := strings.TrimPrefix(in.Text(), "data: ")
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) == nil && m["method"] == nil && mustJSON(m["id"]) == id {
			return m
		}
	}
	t.Fatal("no answer to", id)
	return nil
}

func TestClientsOfBothKindsOverHTTP(t *testing.T) {
	for name, stateless := range map[string]bool{"with sessions": false, "stateless": true} {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
				ran := new(atomic.Int64)
				model := scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "pay", Input: `{"sum":5}`}}}, scripted.Text("Done."))
				p := newPlace(t, noProject(model, "", asks(false, ran)), mcp.Options{Tools: mcp.All})
				srv := p.listen(mcp.HTTP{Stateless: stateless, Tokens: []string{"a-token-of-sixteen"}})
				o := &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
				}}
				c, err := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, o).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: &http.Client{Transport: bearer("a-token-of-sixteen")}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(version, err)
				}
				res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{"prompt": "pay", "session": "s"}})
				if err != nil {
					t.Fatal(version, err)
				}
				if stateless && version < "2026" { // there is no way to ask: it waits
					if ran.Load() != 0 || !strings.Contains(mustJSON(res), "waits for a person") {
						t.Errorf("%s: %s", version, mustJSON(res))
					}
				} else if ran.Load() != 1 || !strings.Contains(mustJSON(res), "Done.") {
					t.Errorf("%s: %s", version, mustJSON(res))
				}
				_ = c.Close()
			}
		})
	}
}

type bearer string

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(req)
}

// Whatever is wrong, the answer says so in the protocol's form, and the server goes on.
func TestWhatIsWrongIsRefusedInTheProtocolsForm(t *testing.T) {
	p := newPlace(t, noProject(nil, ""), mcp.Options{})
	srv := p.listen(mcp.HTTP{Tokens: []string{"a-token-of-sixteen"}, MaxBody: 1000, MaxSessions: 3, Origins: []string{"https://good.example"}})
	const token = "Authorization: Bearer a-token-of-sixteen"
	session := begin(t, srv.URL, token)
	_ = begin(t, srv.URL, token, "Origin: https://good.example")
	_ = begin(t, srv.URL, token, "Origin: "+srv.URL)
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + params + `}`
	}
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
		want    string
	}{
		"no token":             {hello, nil, 401, "a token is needed"},
		"a wrong token":        {hello, []string{"Authorization: Bearer nonsense"}, 401, "a token is needed"},
		"another scheme":       {hello, []string{"Authorization: Basic a-token-of-sixteen"}, 401, "a token is needed"},
		"another site":         {hello, []string{token, "Origin: https://evil.example"}, 403, "evil.example"},
		"a site without name":  {hello, []string{token, "Origin: null"}, 403, "null"},
		"a port beside":        {hello, []string{token, "Origin: http://127.0.0.1:1"}, 403, "127.0.0.1:1"},
		"malformed JSON":       {`{"jsonrpc":`, []string{token, session}, 400, "-32700"},
		"nothing":              {``, []string{token, session}, 400, "-32700"},
		"a number":             {`7`, []string{token, session}, 400, "-32600"},
		"no method":            {`{"jsonrpc":"2.0","id":1}`, []string{token, session}, 400, "-32600"},
		"another version":      {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, []string{token, session}, 400, "-32600"},
		"a method of no kind":  {`{"jsonrpc":"2.0","id":1,"method":7}`, []string{token, session}, 400, "-32600"},
		"too long":             {strings.Repeat("x", 2000), []string{token, session}, 413, "longer than 1000"},
		"an unknown session":   {call(`{"name":"ask"}`), []string{token, "Mcp-Session-Id: nobody"}, 404, "session not found"},
		"one session too many": {hello, []string{token}, 503, "there are 3 sessions"},
		"an unknown method":    {`{"jsonrpc":"2.0","id":7,"method":"no/such"}`, []string{token, session}, 400, "no/such"},
		"another content":      {hello, []string{token, session, "Content-Type: text/plain"}, 415, "Content-Type"},
		"an unknown tool":      {call(`{"name":"no_such"}`), []string{token, session}, 200, "no_such"},
		"params of a list":     {call(`[1]`), []string{token, session}, 200, "error"},
		"a name of no kind":    {call(`{"name":7}`), []string{token, session}, 200, "error"},
		"arguments of no kind": {call(`{"name":"ask","arguments":[1]}`), []string{token, session}, 200, "arguments of ask"},
		"a prompt of no kind":  {call(`{"name":"ask","arguments":{"prompt":7}}`), []string{token, session}, 200, "arguments of ask"},
		"no prompt":            {call(`{"name":"ask","arguments":{}}`), []string{token, session}, 200, "prompt is needed"},
		"a session below":      {call(`{"name":"ask","arguments":{"prompt":"p","session":"a/b"}}`), []string{token, session}, 200, "can't have"},
		"a state of nobody's":  {call(`{"name":"ask","arguments":{"prompt":"p"},"requestState":"nobody"}`), []string{token, session}, 200, "no unfinished run"},
		"logging":              {`{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{"level":"info"}}`, []string{token, session}, 200, "-32601"},
		"no such resource":     {`{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"pawl://session/nobody"}}`, []string{token, session}, 200, "Resource not found"},
	} {
		t.Run(name, func(t *testing.T) {
			res := post(t, srv.URL, c.body, c.headers...)
			b, _ := io.ReadAll(res.Body)
			if res.StatusCode != c.status || !strings.Contains(string(b), c.want) {
				t.Errorf("%d %s", res.StatusCode, b)
			}
			if c.status >= 400 {
				var m struct {
					Version string `json:"jsonrpc"`
					Error   struct {
						Code    int
						Message string
					}
				}
				if err := json.Unmarshal(b, &m); err != nil || m.Version != "2.0" || m.Error.Code == 0 || m.Error.Message == "" || res.Header.Get("Content-Type") != "application/json" {
					t.Errorf("no error of JSON-RPC: %s %v", b, err)
				}
			}
			if c.status == 401 && !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Bearer") {
				t.Error(res.Header)
			}
		})
	}
	res := post(t, srv.URL, call(`{"name":"ask","arguments":{"prompt":"p"}}`), token, session)
	if m := answered(t, res.Body, "7"); !strings.Contains(mustJSON(m), "Hello there.") {
		t.Error(m)
	}
}

// Without a token a name that leads here is not taken for this machine's.
func TestAServerWithoutATokenIsAskedByItsOwnNames(t *testing.T) {
	p := newPlace(t, noProject(nil, ""), mcp.Options{})
	srv := p.listen(mcp.HTTP{Hosts: []string{"box.example"}})
	for host, want := range map[string]int{"evil.example": 403, "localhost.evil.example": 403, "localhost:80": 200, "box.example:80": 200, "[::1]": 200} {
		res := post(t, srv.URL, hello, "Host: "+host)
		if b, _ := io.ReadAll(res.Body); res.StatusCode != want || want == 403 && !strings.Contains(string(b), "-32600") {
			t.Errorf("%s: %d %s", host, res.StatusCode, b)
		}
	}
}

func TestNoMoreRequestsAreServedThanMayBe(t *testing.T) {
	f, began := slow(true)
	p := newPlace(t, noProject(nil, permission.ModeBypass, f), mcp.Options{Tools: mcp.All})
	srv := p.listen(mcp.HTTP{MaxRequests: 1})
	session := begin(t, srv.URL)
	first := post(t, srv.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`, session)
	<-began
	if res := post(t, srv.URL, hello); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Error(res.Status)
	}
	_ = first.Body.Close()
}

// Over HTTP a call is in the trace of its request's header, unless it names another one itself.
func TestARunOverHTTPBelongsToTheTraceOfItsRequest(t *testing.T) {
	const request, own = "0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736"
	for meta, want := range map[string]string{``: request, `,"_meta":{"traceparent":"00-` + own + `-00f067aa0ba902b7-01"}`: own} {
		rec := tracetest.NewInMemoryExporter()
		tracer, err := telemetry.New(telemetry.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(rec))})
		if err != nil {
			t.Fatal(err)
		}
		o := noProject(nil, "")
		o.Tracer = tracer
		srv := newPlace(t, o, mcp.Options{}).listen(mcp.HTTP{})
		session := begin(t, srv.URL)
		answered(t, post(t, srv.URL, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"prompt":"hi"}`+meta+`}}`, session, "Traceparent: 00-"+request+"-b7ad6b7169203331-01").Body, "2")
		spans := rec.GetSpans()
		if len(spans) == 0 {
			t.Error("no spans")
		}
		for _, s := range spans {
			if got := s.SpanContext.TraceID().String(); got != want {
				t.Errorf("with %q, %s is in %s, want %s", meta, s.Name, got, want)
			}
		}
	}
}

// A client that goes in mid-stream loses nothing: with sessions the run goes to its end, and the rest of the stream is there for who comes back; without, it is left open. The DELETE of a session leaves it open, too.
func TestAConnectionThatIsClosedInMidStreamLosesNothing(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"prompt":"go","session":"s"},"_meta":{"progressToken":1%s}}}`
	const newest = `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
	for _, how := range []string{"with sessions", "stateless", "of the newest version", "the session is deleted", "it is cancelled"} {
		t.Run(how, func(t *testing.T) {
			began, stopped, end := make(chan struct{}, 10), make(chan struct{}, 10), make(chan struct{})
			var once sync.Once
			defer once.Do(func() { close(end) })
			f := given{tool.Definition{Annotations: tool.Annotations{ReadOnly: true}, Tool: give("slow", `{"type":"object"}`, nil).Definition().Tool}, func(ctx context.Context, _ json.RawMessage) (tool.Result, error) {
				began <- struct{}{}
				select {
				case <-end:
				case <-ctx.Done():
					stopped <- struct{}{}
				}
				return tool.Result{Content: "ok"}, ctx.Err()
			}}
			p := newPlace(t, noProject(scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "slow", Input: `{}`}}}, scripted.Text("Done.")), permission.ModeBypass, f), mcp.Options{})
			stateless := how == "stateless" || how == "of the newest version"
			srv := p.listen(mcp.HTTP{Stateless: stateless})
			var headers []string
			body := strings.Replace(call, "%s", "", 1)
			if how == "of the newest version" {
				headers = []string{"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: ask"}
				body = strings.Replace(call, "%s", newest, 1)
			}
			if !stateless {
				headers = append(headers, begin(t, srv.URL))
			}
			res := post(t, srv.URL, body, headers...)
			last, in := "", bufio.NewScanner(res.Body)
			for in.Scan() && !strings.Contains(in.Text(), "tool slow") {
				if id, ok := strings.CutPrefix(in.Text(), "id: "); ok {
					last = id
				}
			}
			<-began
			switch how {
			case "the session is deleted":
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, srv.URL, nil)
				req.Header.Set("Mcp-Session-Id", strings.TrimPrefix(headers[0], "Mcp-Session-Id: "))
				res, err := http.DefaultClient.Do(req)
				if err != nil || res.StatusCode != http.StatusNoContent {
					t.Fatal(res, err)
				}
				_ = res.Body.Close()
			case "it is cancelled":
				if res := post(t, srv.URL, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, headers...); res.StatusCode != http.StatusAccepted {
					t.Fatal(res.Status)
				}
			default:
				_ = res.Body.Close()
			}
			switch how {
			case "it is cancelled":
				eventually(t, "it is canceled", func() bool { return p.state("s").Status == "canceled" })
			case "with sessions":
				once.Do(func() { close(end) })
				eventually(t, "it completes", func() bool { return p.state("s").Status == "completed" })
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
				req.Header.Set("Accept", "text/event-stream")
				req.Header.Set("Last-Event-ID", last)
				req.Header.Set("Mcp-Session-Id", strings.TrimPrefix(headers[0], "Mcp-Session-Id: "))
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				if m := answered(t, res.Body, "1"); !strings.Contains(mustJSON(m), "Done.") {
					t.Error(m)
				}
				_ = res.Body.Close()
			default:
				<-stopped
				if st := p.state("s"); st.Run == "" {
					t.Error("its run was closed:", st.Status)
				}
				once.Do(func() { close(end) })
				eventually(t, "it goes on", func() bool {
					res, err := p.rt.Resume(t.Context(), "s")
					return err == nil && res.Text() == "Done."
				})
			}
		})
	}
}

func TestLinesThatAreNoMessageAreAnswered(t *testing.T) {
	p := newPlace(t, noProject(nil, ""), mcp.Options{})
	w := p.wire(t.Context())
	for _, c := range [][2]string{{`{"jsonrpc":`, "-32700"}, {`hello`, "-32700"}, {`7`, "-32600"}, {`{"jsonrpc":"2.0"}`, "-32600"}, {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, "-32600"}, {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, "-32600"}, {`[7]`, "-32600"}, {string(bytes.Repeat([]byte("x"), 33<<20)), "more than 32 MiB"}} {
		w.send(c[0])
		if m := w.next(c[1]); m["id"] != nil {
			t.Error(m)
		}
	}
	w.send("")
	w.hello(`{}`)
	w.call(1, "ask", `{"prompt":"hi"}`)
	if res := w.result(1); text(res) != "Hello there." {
		t.Error(res)
	}
}

func FuzzLines(f *testing.F) {
	for _, s := range []string{hello, `[` + hello + `]`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"prompt":"p"}}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `[`, `{}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, "\n\n7"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := newPlace(t, noProject(nil, permission.ModeDontAsk), mcp.Options{})
		out := &writes{}
		if err := p.s.Stdio(t.Context(), strings.NewReader(hello+"\n"+s+"\n"), out); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%q", line)
			}
		}
	})
}

type writes struct {
	mu sync.Mutex
	bytes.Buffer
}

func (w *writes) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Buffer.Write(b)
}

func (w *writes) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Buffer.String()
}
