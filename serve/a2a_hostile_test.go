package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
)

// rpc is an answer as it stands on the wire.
type rpc struct {
	JSONRPC string
	ID      json.RawMessage
	Result  json.RawMessage
	Error   *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

func TestWhatIsNoCallIsToldInTheProtocolsForm(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(scripted.Text("Hello.")), serve.Options{MaxBody: 100_000})
	message := `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}`
	call := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":` + params + `}`
	}
	for name, c := range map[string]struct {
		body    string
		version string
		status  int
		code    int
		id      string
		says    string
	}{
		"no JSON":                        {`{"jsonrpc`, "1.0", 200, -32700, "null", ""},
		"a batch":                        {`[` + call("GetTask", `{"id":"x"}`) + `]`, "1.0", 200, -32600, "null", "batches"},
		"a string":                       {`"GetTask"`, "1.0", 200, -32600, "null", ""},
		"another version of JSON-RPC":    {`{"jsonrpc":"1.0","id":7,"method":"GetTask","params":{"id":"x"}}`, "1.0", 200, -32600, "7", ""},
		"no id":                          {`{"jsonrpc":"2.0","method":"GetTask","params":{"id":"x"}}`, "1.0", 200, -32600, "null", "no id"},
		"an id that is a list":           {`{"jsonrpc":"2.0","id":[1],"method":"GetTask","params":{"id":"x"}}`, "1.0", 200, -32600, "null", ""},
		"a method that is a number":      {`{"jsonrpc":"2.0","id":7,"method":3}`, "1.0", 200, -32600, "7", ""},
		"params that are a list":         {call("GetTask", `["x"]`), "1.0", 200, -32602, "7", "params"},
		"no such method":                 {call("DropTables", `{}`), "1.0", 200, -32601, "7", "DropTables"},
		"a method of the other version":  {call("SendMessage", message), "", 200, -32601, "7", "A2A-Version"},
		"and the other way round":        {call("message/send", message), "1.0", 200, -32601, "7", "0.3"},
		"a list in 0.3":                  {call("tasks/list", `{}`), "0.3", 200, -32601, "7", ""},
		"another version of A2A":         {call("GetTask", `{"id":"x"}`), "2.0", 200, -32009, "7", "1.0 or 0.3"},
		"no id of a task":                {call("GetTask", `{}`), "1.0", 200, -32602, "7", "id is missing"},
		"an id of a wrong type":          {call("GetTask", `{"id":5}`), "1.0", 200, -32602, "7", ""},
		"an unknown task":                {call("GetTask", `{"id":"x/../y.z"}`), "1.0", 200, -32001, "7", "x/../y.z"},
		"an endless id":                  {call("GetTask", `{"id":"`+strings.Repeat("x", 90_000)+`"}`), "1.0", 200, -32001, "7", ""},
		"a history of less than nothing": {call("GetTask", `{"id":"x","historyLength":-1}`), "1.0", 200, -32602, "7", "historyLength"},
		"a page without end":             {call("ListTasks", `{"pageSize":1000}`), "1.0", 200, -32602, "7", "pageSize"},
		"a tenant":                       {call("GetTask", `{"id":"x","tenant":"t"}`), "1.0", 200, -32602, "7", "tenant"},
		"a message without an id":        {call("SendMessage", `{"message":{"role":"ROLE_USER","parts":[{"text":"hi"}]}}`), "1.0", 200, -32602, "7", "messageId"},
		"a message without parts":        {call("SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}`), "1.0", 200, -32602, "7", "parts"},
		"a message that says nothing":    {call("SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":" "}]}}`), "1.0", 200, -32602, "7", "nothing is said"},
		"a message of an agent":          {call("SendMessage", strings.Replace(message, "USER", "AGENT", 1)), "1.0", 200, -32602, "7", "role"},
		"a part of two kinds":            {call("SendMessage", strings.Replace(message, `"text":"hi"`, `"text":"hi","url":"http://x"`, 1)), "1.0", 200, -32602, "7", "exactly one"},
		"a file at no address":           {call("SendMessage", strings.Replace(message, `"text":"hi"`, `"url":"file:///etc/passwd","mediaType":"image/png"`, 1)), "1.0", 200, -32602, "7", ""},
		"bytes that are none":            {call("SendMessage", strings.Replace(message, `"text":"hi"`, `"raw":"?","mediaType":"image/png"`, 1)), "1.0", 200, -32602, "7", "raw"},
		"a type that it does not take":   {call("SendMessage", strings.Replace(message, `"text":"hi"`, `"raw":"AAAA","mediaType":"video/mp4"`, 1)), "1.0", 200, -32005, "7", "video/mp4"},
		"a type that it does not give":   {call("SendMessage", strings.Replace(message, `}}`, `},"configuration":{"acceptedOutputModes":["audio/wav"]}}`, 1)), "1.0", 200, -32005, "7", "audio/wav"},
		"a context with a line break":    {call("SendMessage", strings.Replace(message, `"messageId"`, `"contextId":"a\nb","messageId"`, 1)), "1.0", 200, -32602, "7", "contextId"},
		"a webhook inside":               {call("SendMessage", strings.Replace(message, `}}`, `},"configuration":{"taskPushNotificationConfig":{"url":"https://169.254.169.254/latest"}}}`, 1)), "1.0", 200, -32602, "7", "public network"},
		"a webhook without TLS":          {call("SendMessage", strings.Replace(message, `}}`, `},"configuration":{"taskPushNotificationConfig":{"url":"http://client.example/"}}}`, 1)), "1.0", 200, -32602, "7", "https"},
		"a webhook with a password":      {call("SendMessage", strings.Replace(message, `}}`, `},"configuration":{"taskPushNotificationConfig":{"url":"https://u:p@client.example/"}}}`, 1)), "1.0", 200, -32602, "7", "authentication"},
		"a token with a line break":      {call("SendMessage", strings.Replace(message, `}}`, `},"configuration":{"taskPushNotificationConfig":{"url":"https://client.example/","token":"a\r\nX: y"}}}`, 1)), "1.0", 200, -32602, "7", "header"},
		"a config of no task":            {call("CreateTaskPushNotificationConfig", `{"taskId":"x","url":"https://client.example/"}`), "1.0", 200, -32001, "7", ""},
		"no extended card":               {call("GetExtendedAgentCard", `{}`), "1.0", 200, -32004, "7", ""},
		"nor in 0.3":                     {call("agent/getAuthenticatedExtendedCard", `{}`), "0.3", 200, -32007, "7", ""},
		"a huge body":                    {call("SendMessage", strings.Replace(message, "hi", strings.Repeat("x", 100_000), 1)), "1.0", 413, -32600, "null", "limit"},
		"nothing":                        {"", "1.0", 400, -32600, "null", ""},
		"no UTF-8":                       {call("GetTask", "{\"id\":\"\xff\"}"), "1.0", 400, -32600, "null", "UTF-8"},
	} {
		res := p.ask(t.Context(), "POST", "/a2a", c.body, "A2A-Version", c.version)
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		var got rpc
		if err := json.Unmarshal(b, &got); err != nil || res.StatusCode != c.status || got.JSONRPC != "2.0" || string(got.ID) != c.id || got.Result != nil || got.Error == nil || got.Error.Code != c.code || !strings.Contains(got.Error.Message, c.says) {
			t.Errorf("%s: %d %s, want %d, code %d", name, res.StatusCode, clip(string(b)), c.status, c.code)
		}
		if got.Error != nil && c.version == "1.0" && c.code > -32100 && c.code <= -32001 && !strings.Contains(string(got.Error.Data), "google.rpc.ErrorInfo") {
			t.Errorf("%s: its data is %s", name, got.Error.Data)
		}
	}
	for info, err := range p.store.Sessions(t.Context(), journal.Query{}) {
		t.Errorf("something was begun: %+v %v", info, err)
	}
	for _, c := range [][]string{{"GET", "/a2a", "405"}, {"DELETE", "/a2a", "405"}} {
		p.do(http.StatusMethodNotAllowed, &rpc{}, c[0], c[1], "")
	}
	p.do(http.StatusBadRequest, nil, "POST", "/a2a", `{}`, "Content-Type", "", "Content-Type", "text/plain")
}

func TestWhoMayCallByA2A(t *testing.T) {
	token := strings.Repeat("t", 20)
	p := serves(t, journal.Memory(), scripted.New(scripted.Text("Hello.")), serve.Options{Tokens: []string{token}, URL: "https://agent.example/", Card: agent.AgentCard{Name: "n"}})
	body := `{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}`
	for _, header := range []string{"", "Bearer wrong-wrong-wrong-wrong", "Basic " + token} {
		var got rpc
		h := p.do(http.StatusUnauthorized, &got, "POST", "/a2a", body, "Authorization", header, "A2A-Version", "1.0")
		if got.Error == nil || !strings.Contains(got.Error.Message, "token") || h.Get("WWW-Authenticate") == "" {
			t.Errorf("%q: %+v", header, got)
		}
	}
	var got rpc
	p.do(http.StatusForbidden, &got, "POST", "/a2a", body, "Authorization", "Bearer "+token, "Origin", "https://evil.example")
	if got.Error == nil {
		t.Errorf("%+v", got)
	}
	p.do(http.StatusOK, nil, "POST", "/a2a", body, "Authorization", "Bearer "+token)

	res := p.ask(t.Context(), "GET", "/.well-known/agent-card.json", "")
	b, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	card, err := a2a.UnmarshalCard(b)
	if err != nil || card.Name != "n" || card.Interfaces[0].URL != "https://agent.example/a2a" || card.SecuritySchemes["bearer"].HTTP == nil || len(card.SecurityRequirements) != 1 || !card.Capabilities.Streaming || !card.Capabilities.PushNotifications || card.Capabilities.ExtendedAgentCard {
		t.Errorf("%v: %s", err, b)
	}
	var old struct {
		ProtocolVersion, URL, PreferredTransport string
		SecuritySchemes                          map[string]struct{ Type, Scheme string }
		Security                                 []map[string][]string
	}
	if err := json.Unmarshal(b, &old); err != nil || !strings.HasPrefix(old.ProtocolVersion, "0.3") || old.URL != "https://agent.example/a2a" || old.PreferredTransport != "JSONRPC" || old.SecuritySchemes["bearer"].Type != "http" || len(old.Security) != 1 {
		t.Errorf("in 0.3 it is %+v: %v", old, err)
	}
	h := p.do(http.StatusNotModified, nil, "GET", "/.well-known/agent-card.json", "", "If-None-Match", res.Header.Get("ETag"))
	if h.Get("Cache-Control") == "" {
		t.Errorf("%v", h)
	}
}

// A client that goes away leaves nothing behind, and takes nothing away.
func TestAClientThatGoesAway(t *testing.T) {
	g := gate("wait")
	p := peer{serves(t, journal.Memory(), scripted.New(scripted.Turn{Text: "Let me see.", Calls: call("wait")}, scripted.Text("It waited.")), serve.Options{}, g), a2a.V1}
	line, err := a2a.V1.AppendCall(nil, "1", a2a.OpStream, user("m1", "Wait."))
	if err != nil {
		t.Fatal(err)
	}
	d := net.Dialer{}
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(p.http.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(conn, "POST /a2a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\nContent-Length: %d\r\n\r\n%s", len(line), line)
	var seen bytes.Buffer
	for !strings.Contains(seen.String(), "Let ") {
		if _, err := io.CopyN(&seen, conn, 1); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.(*net.TCPConn).SetLinger(0) // a reset
	_ = conn.Close()
	half, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(p.http.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(half, "POST /a2a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(line), line[:len(line)/2])
	_ = half.Close()
	ctx, cancel := context.WithCancel(t.Context())
	<-g.started
	cancel()
	req, _ := http.NewRequestWithContext(ctx, "POST", p.http.URL+"/a2a", bytes.NewReader(line))
	if res, err := p.client.Do(req); err == nil {
		_ = res.Body.Close()
		t.Error("it was answered")
	}
	close(g.goOn)
	if task := p.send(user("m1", "Wait.")); task.Status.State != a2a.StateCompleted || g.runs.Load() != 1 {
		t.Errorf("%+v, and the tool ran %d times", task.Status, g.runs.Load())
	}
}

func TestThereAreAsManyTasksAsMayBe(t *testing.T) {
	g := gate("wait")
	p := peer{serves(t, journal.Memory(), scripted.New(scripted.Turn{Calls: call("wait")}, scripted.Text("It waited.")), serve.Options{MaxRuns: 1}, g), a2a.V1}
	p.send(atOnce(user("m1", "Wait.")))
	res := p.posts(t.Context(), a2a.OpSend, user("m2", "Wait."))
	b, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" || !strings.Contains(string(b), `"error"`) || !strings.Contains(string(b), "as many runs") {
		t.Errorf("%d %s", res.StatusCode, b)
	}
	close(g.goOn)
}

// Who waits for a task is told where it stands when the server stops, and a stream says so, too.
func TestTheServerStopsUnderATask(t *testing.T) {
	g := gate("wait")
	p := peer{serves(t, journal.Memory(), scripted.New(scripted.Turn{Calls: call("wait")}, scripted.Text("It waited.")), serve.Options{}, g), a2a.V1}
	waits := make(chan string)
	go func() {
		res := p.posts(context.Background(), a2a.OpSend, user("m1", "Wait."))
		defer func() { _ = res.Body.Close() }()
		b, _ := io.ReadAll(res.Body)
		waits <- string(b)
	}()
	<-g.started
	task := p.send(atOnce(user("m1", "Wait.")))
	read := p.opens(a2a.OpSubscribe, a2a.SubscribeRequest{ID: task.ID})
	closed := make(chan error)
	go func() { closed <- p.server.Close() }()
	close(g.goOn)
	all := read(0)
	if _, states := told(t, all); states[len(states)-1] != a2a.StateInputRequired && states[len(states)-1] != a2a.StateCompleted {
		t.Errorf("the stream says %v", states)
	}
	if got := <-waits; !strings.Contains(got, string(a2a.StateInputRequired)) && !strings.Contains(got, string(a2a.StateCompleted)) && !strings.Contains(got, "shutting down") { // the last one before it waits
		t.Errorf("who waits is told %s", got)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func FuzzACall(f *testing.F) {
	e, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("Hello."))})
	if err != nil {
		f.Fatal(err)
	}
	s, err := serve.New(serve.Of(agent.Agent{ID: "a"}, e, journal.Memory()), serve.Options{MaxBody: 1 << 16})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	for _, v := range versions {
		for op, params := range map[a2a.Operation]any{
			a2a.OpSend: user("m", "hi"), a2a.OpStream: user("n", "hi"), a2a.OpGet: a2a.GetTaskRequest{ID: "x.y/z"}, a2a.OpCancel: a2a.CancelTaskRequest{ID: "x"},
			a2a.OpSubscribe: a2a.SubscribeRequest{ID: "x"}, a2a.OpCreatePush: a2a.PushConfig{TaskID: "x", URL: "https://192.0.2.1/"}, a2a.OpGetPush: a2a.PushConfigRequest{TaskID: "x", ID: "y"},
			a2a.OpDeletePush: a2a.PushConfigRequest{TaskID: "x", ID: "y"}, a2a.OpListPush: a2a.ListPushConfigsRequest{TaskID: "x"},
		} {
			line, err := v.AppendCall(nil, "1", op, params)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(line, string(v))
		}
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageToken":"e30"}}`), "1.0")
	f.Add([]byte(`[]`), "9.9")
	f.Fuzz(func(t *testing.T, body []byte, version string) {
		if strings.Contains(string(body), "ush") && strings.Contains(string(body), "http") {
			t.Skip("nobody out there is to be told")
		}
		req := httptest.NewRequest("POST", "http://localhost/a2a", bytes.NewReader(body))
		req.Header["Content-Type"], req.Header["A2a-Version"] = []string{"application/json"}, []string{version}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		lines := [][]byte{w.Body.Bytes()}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			lines = nil
			for e := range reads(t, w.Body) {
				lines = append(lines, []byte(e.data))
			}
		}
		for _, line := range lines {
			var got rpc
			if err := json.Unmarshal(line, &got); err != nil || got.JSONRPC != "2.0" || (got.Error == nil) == (got.Result == nil) {
				t.Errorf("%d %s: %v", w.Code, line, err)
			}
			if got.Error != nil && got.Error.Code == a2a.CodeInternal {
				t.Errorf("%s: %s", body, line)
			}
		}
	})
}
