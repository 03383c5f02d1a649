package blackbox

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestServe_ChatCompletions(t *testing.T) { runRows(t) }

const hiToPawl = `{"model": "pawl", "messages": [{"role": "user", "content": "hi"}]}`

var _ = table("TestServe_ChatCompletions",
	row{"the agent is the one model", "serve.md: The agent is the one model that is listed, `pawl`", "GET /v1/models, GET /v1/models/{model}", func(w *world) {
		s := w.serves()
		if a := s.wants(200, nil, "GET", "/v1/models", ""); a.json("data", 0, "id") != "pawl" || a.json("data", 1) != nil {
			w.t.Error(a.text)
		}
		s.wants(200, []string{`"id":"pawl"`}, "GET", "/v1/models/pawl", "")
		s.wants(404, nil, "GET", "/v1/models/other", "")
	}},
	row{"an answer is whole", "serve.md: `finish_reason` is `stop`, `length` or `content_filter`", "POST /v1/chat/completions", func(w *world) {
		a := w.serves().wants(200, nil, "POST", "/v1/chat/completions", hiToPawl)
		if a.json("choices", 0, "message", "content") != "Done." || a.json("choices", 0, "finish_reason") != "stop" || a.json("object") != "chat.completion" {
			w.t.Error(a.text)
		}
		if a.header.Get("X-Pawl-Session") == "" || a.header.Get("X-Should-Retry") != "false" {
			w.t.Errorf("%v", a.header)
		}
	}},
	row{"an answer is streamed", "serve.md: Streamed pieces joined are the whole answer", "POST /v1/chat/completions", func(w *world) {
		a := w.serves().wants(200, []string{"data: [DONE]"}, "POST", "/v1/chat/completions", strings.Replace(hiToPawl, `"model"`, `"stream": true, "model"`, 1))
		var text strings.Builder
		var reason any
		for _, e := range readEvents(w.t, strings.NewReader(a.text), nil) {
			piece, _ := at(e.data, "choices", 0, "delta", "content").(string)
			text.WriteString(piece)
			if r := at(e.data, "choices", 0, "finish_reason"); r != nil {
				reason = r
			}
		}
		if text.String() != "Done." || reason != "stop" {
			w.t.Errorf("%q, %v", &text, reason)
		}
	}},
	row{"a session goes on where the client names it", "serve.md: A client that sends that header, or `metadata.session`, has its session go on", "POST /v1/chat/completions", func(w *world) {
		s := w.serves()
		s.wants(200, []string{"Done."}, "POST", "/v1/chat/completions", hiToPawl, "X-Pawl-Session", "mine")
		s.wants(200, []string{"Done again."}, "POST", "/v1/chat/completions", hiToPawl, "X-Pawl-Session", "mine")
	}},
	row{"a question is answered by the next message", "serve.md: In a session that the client names its next message answers: `yes` or `y` approves", "POST /v1/chat/completions", func(w *world) {
		s := w.serves()
		s.wants(200, nil, "POST", "/v1/chat/completions", strings.Replace(hiToPawl, `"hi"`, `"write"`, 1), "X-Pawl-Session", "mine")
		w.wants("effects", "")
		s.wants(200, []string{"Done."}, "POST", "/v1/chat/completions", strings.Replace(hiToPawl, `"hi"`, `"yes"`, 1), "X-Pawl-Session", "mine")
		w.wants("effects", "one")
	}},
	row{"a run that fails is a server's error", "serve.md: it is 502 (`server_error`, whose code is the class), whatever the model's provider said", "POST /v1/chat/completions", func(w *world) {
		a := w.serves().wants(502, nil, "POST", "/v1/chat/completions", strings.Replace(hiToPawl, `"hi"`, `"fail"`, 1))
		if a.json("error", "type") != "server_error" || a.json("error", "code") != "unauthorized" {
			w.t.Error(a.text)
		}
	}},
	row{"a client that goes away cancels its run", "serve.md: A client that goes away wants its answer no more: the run is cancelled, which is on record", "", func(w *world) {
		onUnix(w.t)
		s := w.serves("--permission-mode", "bypassPermissions")
		res := s.open("POST", "/v1/chat/completions", `{"model": "pawl", "stream": true, "messages": [{"role": "user", "content": "wait"}]}`, "X-Pawl-Session", "mine")
		w.until("the call runs", w.has("began"))
		_ = res.Body.Close()
		w.until("the run is canceled", func() bool { return s.ask("GET", "/v1/sessions/mine", "").json("status") == "canceled" })
	}},
)

func TestServe_AGUI(t *testing.T) { runRows(t) }

// agui is a request of AG-UI.
func agui(thread, run, prompt, more string) string {
	messages := "[]"
	if prompt != "" {
		messages = fmt.Sprintf(`[{"id": "1", "role": "user", "content": %q}]`, prompt)
	}
	return fmt.Sprintf(`{"threadId": %q, "runId": %q, "messages": %s, "tools": [], "context": []%s}`, thread, run, messages, more)
}

// aguiEvents posts a request and gives its events.
func (s *server) aguiEvents(body string) []event {
	s.w.t.Helper()
	return readEvents(s.w.t, strings.NewReader(s.wants(200, nil, "POST", "/ag-ui", body).text), nil)
}

var _ = table("TestServe_AGUI",
	row{"a run has its events in order", "serve.md: `STEP_STARTED`, `STEP_FINISHED`", "POST /ag-ui", func(w *world) {
		all := w.serves().aguiEvents(agui("page", "r", "hi", ""))
		want := []string{"RUN_STARTED", "STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STEP_FINISHED", "RUN_FINISHED"}
		if got := kinds(all); !slices.Equal(slices.Compact(got), want) || at(all[len(all)-1].data, "outcome", "type") != "success" {
			w.t.Error(got)
		}
	}},
	row{"a run that is on record is not begun again", "serve.md: one that is on record is not begun again, its events come again", "POST /ag-ui", func(w *world) {
		s := w.serves("--permission-mode", "bypassPermissions")
		s.aguiEvents(agui("page", "r", "write", ""))
		w.write("effects", "changed")
		if got := kinds(s.aguiEvents(agui("page", "r", "write", ""))); !slices.Contains(got, "TOOL_CALL_RESULT") {
			w.t.Error(got)
		}
		w.wants("effects", "changed")
	}},
	row{"an interrupt is resumed", "serve.md: An `interrupt` has what waits for a person, each with its `id` and a `responseSchema`; a `resume` answers", "POST /ag-ui", func(w *world) {
		s := w.serves()
		first := s.aguiEvents(agui("page", "r1", "write", ""))
		end := first[len(first)-1].data
		id := at(end, "outcome", "interrupts", 0, "id")
		if at(end, "outcome", "type") != "interrupt" || id == nil || at(end, "outcome", "interrupts", 0, "responseSchema") == nil {
			w.t.Fatalf("%v", end)
		}
		w.wants("effects", "")
		second := s.aguiEvents(agui("page", "r2", "", fmt.Sprintf(`, "resume": [{"interruptId": %q, "status": "resolved", "payload": {"approved": true}}]`, id)))
		w.wants("effects", "one")
		if got := kinds(second); !slices.Contains(got, "TOOL_CALL_RESULT") || got[len(got)-1] != "RUN_FINISHED" {
			w.t.Error(got)
		}
	}},
	row{"a run that fails ends with its class", "serve.md: `RUN_ERROR`, whose `code` is the class", "POST /ag-ui", func(w *world) {
		all := w.serves().aguiEvents(agui("page", "r", "fail", ""))
		if end := all[len(all)-1].data; end["type"] != "RUN_ERROR" || end["code"] != "unauthorized" {
			w.t.Errorf("%v", end)
		}
	}},
)

func TestServe_A2A(t *testing.T) { runRows(t) }

// v1Send is a call of SendMessage of A2A 1.0.
func v1Send(id, text string) string {
	return v1("SendMessage", fmt.Sprintf(`{"message": {"messageId": %q, "contextId": "ctx", "role": "ROLE_USER", "parts": [{"text": %q}]}}`, id, text))
}

// v1 is a call of A2A by JSON-RPC.
func v1(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": %q, "params": %s}`, method, params)
}

// v03Message is a message of A2A 0.3.
func v03Message(id, text, more string) string {
	return fmt.Sprintf(`{"message": {"kind": "message", "messageId": %q, "role": "user", "parts": [{"kind": "text", "text": %q}]%s}}`, id, text, more)
}

// a2a posts a call in version 1.0.
func (s *server) a2a(method, params string) answer {
	s.w.t.Helper()
	return s.wants(200, nil, "POST", "/a2a", v1(method, params), "A2A-Version", "1.0")
}

var _ = table("TestServe_A2A",
	row{"the card says where both versions are", "a2a.md: the card is at `/.well-known/agent-card.json`, for everybody", "POST /a2a, GET /.well-known/agent-card.json", func(w *world) {
		s := w.serves()
		a := s.wants(200, nil, "GET", "/.well-known/agent-card.json", "")
		if a.json("supportedInterfaces", 0, "protocolVersion") != "1.0" || a.json("supportedInterfaces", 1, "protocolVersion") != "0.3" || a.json("url") != s.url+"/a2a" || a.json("capabilities", "streaming") != true {
			w.t.Error(a.text)
		}
	}},
	row{"1.0 answers a message with a task", "a2a.md: in 1.0 (with the header `A2A-Version: 1.0`)", "", func(w *world) {
		a := w.serves().a2a("SendMessage", `{"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}`)
		if a.json("result", "task", "status", "state") != "TASK_STATE_COMPLETED" || a.json("result", "task", "artifacts", 0, "parts", 0, "text") != "Done." {
			w.t.Error(a.text)
		}
	}},
	row{"1.0 streams", "a2a.md: artifact `answer`", "", func(w *world) {
		all := readEvents(w.t, strings.NewReader(w.serves().a2a("SendStreamingMessage", `{"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}`).text), nil)
		if at(all[0].data, "result", "task", "status", "state") == nil || at(all[len(all)-1].data, "result", "statusUpdate", "status", "state") != "TASK_STATE_COMPLETED" {
			w.t.Errorf("%v", all)
		}
	}},
	row{"the same message again is the same task", "a2a.md: the same message again (`messageId`, and what it says)", "", func(w *world) {
		s := w.serves("--permission-mode", "bypassPermissions")
		send := func() any {
			return s.wants(200, nil, "POST", "/a2a", v1Send("m1", "write"), "A2A-Version", "1.0").json("result", "task", "id")
		}
		first := send()
		w.write("effects", "changed")
		if second := send(); first == nil || first != second {
			w.t.Errorf("%v, then %v", first, second)
		}
		w.wants("effects", "changed")
	}},
	row{"a question is answered by a message to the task", "a2a.md: The answer is a message to the task. Text answers the first question", "", func(w *world) {
		s := w.serves()
		a := s.wants(200, nil, "POST", "/a2a", v1Send("m1", "write"), "A2A-Version", "1.0")
		id := a.json("result", "task", "id")
		if a.json("result", "task", "status", "state") != "TASK_STATE_INPUT_REQUIRED" || a.json("result", "task", "status", "message", "parts", 1, "data", "type") != "approval" {
			w.t.Fatal(a.text)
		}
		b := s.a2a("SendMessage", fmt.Sprintf(`{"message": {"messageId": "m2", "contextId": "ctx", "taskId": %q, "role": "ROLE_USER", "parts": [{"text": "yes"}]}}`, id))
		if w.wants("effects", "one"); b.json("result", "task", "status", "state") != "TASK_STATE_COMPLETED" {
			w.t.Error(b.text)
		}
	}},
	row{"tasks are got, listed and canceled", "a2a.md: `ListTasks` has the tasks of all sessions", "", func(w *world) {
		s := w.serves()
		id, _ := s.wants(200, nil, "POST", "/a2a", v1Send("m1", "write"), "A2A-Version", "1.0").json("result", "task", "id").(string)
		if a := s.a2a("GetTask", fmt.Sprintf(`{"id": %q}`, id)); a.json("result", "id") != id {
			w.t.Error(a.text)
		}
		if a := s.a2a("ListTasks", "{}"); a.json("result", "tasks", 0, "id") != id {
			w.t.Error(a.text)
		}
		if a := s.a2a("CancelTask", fmt.Sprintf(`{"id": %q}`, id)); a.json("result", "status", "state") != "TASK_STATE_CANCELED" {
			w.t.Error(a.text)
		}
		w.wants("effects", "")
	}},
	row{"a failure has the class and no key", "a2a.md: A failure's message is the class and the text, with the class once more in its metadata (`pawl.dev/class`)", "", func(w *world) {
		a := w.serves().wants(200, nil, "POST", "/a2a", v1Send("m1", "fail"), "A2A-Version", "1.0")
		if a.json("result", "task", "status", "state") != "TASK_STATE_FAILED" || !strings.Contains(a.text, `"pawl.dev/class":"unauthorized"`) {
			w.t.Error(a.text)
		}
	}},
	row{"0.3 answers a message with a task", "a2a.md: in 0.3 (without it)", "", func(w *world) {
		a := w.serves().wants(200, nil, "POST", "/a2a", v1("message/send", v03Message("m1", "hi", "")))
		if a.json("result", "kind") != "task" || a.json("result", "status", "state") != "completed" || a.json("result", "artifacts", 0, "parts", 0, "text") != "Done." {
			w.t.Error(a.text)
		}
	}},
	row{"0.3 streams to a final event", "a2a.md: in 0.3 (without it)", "", func(w *world) {
		all := readEvents(w.t, strings.NewReader(w.serves().wants(200, nil, "POST", "/a2a", v1("message/stream", v03Message("m1", "hi", ""))).text), nil)
		if end := all[len(all)-1].data; at(end, "result", "kind") != "status-update" || at(end, "result", "final") != true {
			w.t.Errorf("%v", all)
		}
	}},
	row{"0.3 answers a question", "a2a.md: All methods of both versions are there but the extended card", "", func(w *world) {
		s := w.serves()
		a := s.wants(200, nil, "POST", "/a2a", v1("message/send", v03Message("m1", "write", "")))
		more := fmt.Sprintf(`, "taskId": %q, "contextId": %q`, a.json("result", "id"), a.json("result", "contextId"))
		b := s.wants(200, nil, "POST", "/a2a", v1("message/send", v03Message("m2", "no, not now", more)))
		if w.wants("effects", ""); a.json("result", "status", "state") != "input-required" || b.json("result", "status", "state") != "completed" {
			w.t.Errorf("%s\n%s", a.text, b.text)
		}
		if c := s.wants(200, nil, "POST", "/a2a", v1("tasks/get", fmt.Sprintf(`{"id": %q}`, a.json("result", "id")))); c.json("result", "status", "state") != "completed" {
			w.t.Error(c.text)
		}
	}},
)

// pushes has a task's notifications sent to a host that --push-host names, and to no
// other one.
func (w *world) pushes() {
	w.t.Helper()
	told := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		told <- string(b)
	}))
	w.t.Cleanup(receiver.Close)
	s := w.serves("--push-host", "127.0.0.1")
	send := func(id, url string) string {
		config := fmt.Sprintf(`, "configuration": {"pushNotificationConfig": {"url": %q}}`, url)
		return v1("message/send", strings.TrimSuffix(v03Message(id, "hi", ""), "}")+config+"}")
	}
	other := strings.Replace(receiver.URL, "127.0.0.1", "127.0.0.2", 1)
	for url, why := range map[string]string{
		other: "notifications are sent by https",
		strings.Replace(other, "http:", "https:", 1): "is not an address of the public network",
	} {
		s.wants(200, []string{"-32602", why}, "POST", "/a2a", send("refused", url))
	}
	s.wants(200, []string{`"completed"`}, "POST", "/a2a", send("m1", receiver.URL))
	select {
	case text := <-told:
		if !strings.Contains(text, `"kind":"task"`) {
			w.t.Error(text)
		}
	case <-time.After(patience):
		w.t.Errorf("no notification came in %v", patience)
	}
}
