//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Two projects, each with its own server, over one journal: neither shows, continues or touches what is the other's.
func TestAServerOpensTheSessionsOfItsProjectAndNoOther(t *testing.T) {
	t.Parallel()
	path := binary(t)
	w := newWorld(t)
	script := w.file("s.yaml", `turns:
  - {text: "First this.", tool_calls: [{name: write, input: {file_path: out.txt, content: secret}}]}
  - {text: "All is done."}
`)
	dir := map[string]string{"a": t.TempDir(), "b": t.TempDir()}
	starts := func(project string, more ...string) *served {
		return serves(t, path, nil, append([]string{"--model", "scripted/" + script, "--dir", dir[project], "--journal", w.journal, "--ask", "Write"}, more...)...)
	}
	a, b := starts("a"), starts("b")
	if code, text := a.ask("POST", "/v1/runs", `{"prompt":"Do it.","session":"s","wait":true}`, "Idempotency-Key", "k"); code != 202 && code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	id := a.waits("s")
	if _, text := a.ask("GET", "/v1/sessions", ""); !strings.Contains(text, `"session":"s"`) {
		t.Errorf("A lists %s", text)
	}
	if _, text := b.ask("GET", "/v1/sessions", ""); strings.Contains(text, `"s"`) || !strings.Contains(text, `"sessions":[]`) {
		t.Errorf("B lists %s", text)
	}
	for what, c := range map[string]struct {
		method, path, body string
		code               int
		says               string
	}{
		"show":    {"GET", "/v1/sessions/s", "", 404, "no session"},
		"entries": {"GET", "/v1/sessions/s/entries", "", 404, "no session"},
		"events":  {"GET", "/v1/sessions/s/events", "", 404, "no session"},
		"resume":  {"POST", "/v1/sessions/s/resume", "{}", 404, "no session"},
		"answer":  {"POST", "/v1/sessions/s/answers", `{"id":` + quotedJSON(id) + `,"approved":true}`, 404, "no session"},
		"cancel":  {"POST", "/v1/sessions/s/cancel", "{}", 404, "no session"},
		"steer":   {"POST", "/v1/sessions/s/steer", `{"prompt":"x"}`, 404, "no session"},
		"stop":    {"POST", "/v1/sessions/s/interrupt", "{}", 404, "no session"},
		"fork":    {"POST", "/v1/sessions/s/fork", `{}`, 404, "no session"},
		"delete":  {"DELETE", "/v1/sessions/s", "", 404, "no session"},
		"start":   {"POST", "/v1/runs", `{"prompt":"Do it.","session":"s"}`, 409, "a session of another project has that name: choose another name"},
		"again":   {"POST", "/v1/runs", `{"prompt":"Do it.","session":"s"}`, 409, "a session of another project"},
		"chat":    {"POST", "/v1/chat/completions", `{"model":"pawl","metadata":{"session":"s"},"messages":[{"role":"user","content":"yes"}]}`, 409, "a session of another project"},
		"ag-ui":   {"POST", "/ag-ui", `{"threadId":"s","runId":"x","state":{},"tools":[],"context":[],"forwardedProps":{},"messages":[{"id":"1","role":"user","content":"hi"}]}`, 409, "a session of another project"},
	} {
		header := []string{"Idempotency-Key", what}
		if what == "again" { // by the name of A's run
			header[1] = "k"
		}
		code, text := b.ask(c.method, c.path, c.body, header...)
		if code != c.code || !strings.Contains(text, c.says) || strings.Contains(text, "secret") || strings.Contains(text, dir["a"]) {
			t.Errorf("%s: %d %s", what, code, text)
		}
	}
	inA2A := func(s *served, method, params string) string {
		return second(s.ask("POST", "/a2a", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, "A2A-Version", "1.0"))
	}
	if text := inA2A(a, "GetTask", `{"id":"s/k"}`); !strings.Contains(text, `"TASK_STATE_INPUT_REQUIRED"`) {
		t.Errorf("A's task: %s", text)
	}
	for _, method := range []string{"GetTask", "CancelTask", "SubscribeToTask"} {
		if text := inA2A(b, method, `{"id":"s/k"}`); !strings.Contains(text, `-32001`) {
			t.Errorf("%s: %s", method, text)
		}
	}
	if text := inA2A(b, "ListTasks", `{}`); strings.Contains(text, "s/k") || !strings.Contains(text, `"tasks":[]`) {
		t.Errorf("B's tasks: %s", text)
	}
	if text := inA2A(b, "SendMessage", `{"message":{"messageId":"m","contextId":"s","role":"ROLE_USER","parts":[{"text":"yes"}]}}`); !strings.Contains(text, "another project") {
		t.Errorf("a message to it: %s", text)
	}
	said := w.inMCP([]string{"mcp", "serve", "--dir", dir["b"], "--journal", w.journal, "--model", "scripted/" + script, "--tools", "all"},
		`"resources/read","params":{"uri":"pawl://session/s"}`,
		`"tools/call","params":{"name":"ask","arguments":{"session":"s"}}`,
		`"tools/call","params":{"name":"ask","arguments":{"session":"s","prompt":"go on"}}`,
		`"tools/call","params":{"name":"answer","arguments":{"session":"s","id":`+quotedJSON(id)+`,"approved":true}}`,
		`"tools/call","params":{"name":"write","arguments":{"file_path":"out.txt","content":"x"},"_meta":{"pawl/session":"s"}}`)
	for i, want := range []string{"Resource not found", "no unfinished run", "a session of another project has that name", "", "a session of another project has that name"} {
		if !strings.Contains(said[i], want) || !strings.Contains(said[i], `"error"`) && !strings.Contains(said[i], `"isError":true`) || strings.Contains(said[i], "secret") {
			t.Errorf("MCP %d: %s", i, said[i])
		}
	}

	if code, text := a.ask("POST", "/v1/sessions/s/answers", `{"id":`+quotedJSON(id)+`,"approved":true}`); code/100 != 2 {
		t.Fatalf("A's answer: %d %s", code, text)
	}
	for end := time.Now().Add(30 * time.Second); !strings.Contains(second(a.ask("GET", "/v1/sessions/s", "")), `"status":"completed"`); {
		if time.Now().After(end) {
			t.Fatalf("A's run does not end: %s", second(a.ask("GET", "/v1/sessions/s", "")))
		}
		time.Sleep(10 * time.Millisecond) // another process does it
	}
	if text, err := os.ReadFile(filepath.Join(dir["a"], "out.txt")); err != nil || string(text) != "secret" {
		t.Errorf("A has %q, %v", text, err)
	}
	if in, err := os.ReadDir(dir["b"]); err != nil || len(in) > 0 {
		t.Errorf("B has %v, %v", in, err)
	}
}

func second(_ int, text string) string { return text }

func quotedJSON(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// waits gives the question for which a session waits, once it does.
func (s *served) waits(session string) string {
	s.t.Helper()
	for {
		_, text := s.ask("GET", "/v1/sessions/"+session, "")
		var st struct {
			Status  string
			Pending []struct{ ID string }
		}
		if err := json.Unmarshal([]byte(text), &st); err != nil {
			s.t.Fatalf("%v: %s", err, text)
		}
		if len(st.Pending) > 0 && st.Status == "interrupted" {
			return st.Pending[0].ID
		}
		if st.Status == "completed" || st.Status == "failed" {
			s.t.Fatal(text)
		}
		time.Sleep(10 * time.Millisecond) // another process does it
	}
}

// inMCP makes requests of an MCP server at its standard input, one after the other, and gives what it says to each.
func (w world) inMCP(args []string, requests ...string) (answers []string) {
	w.t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan int, 1)
	go func() { done <- program(w.t.Context(), streams{inR, outW, io.Discard}, args) }()
	out := bufio.NewScanner(outR)
	out.Buffer(nil, 1<<20)
	for i, r := range append([]string{`"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`}, requests...) {
		id := fmt.Sprintf(`"id":%d`, i+1)
		go func() { _, _ = io.WriteString(inW, `{"jsonrpc":"2.0",`+id+`,"method":`+r+"}\n") }()
		for out.Scan() && !strings.Contains(out.Text(), id) {
		}
		if i > 0 {
			answers = append(answers, out.Text())
		}
	}
	_ = inW.Close()
	if code := <-done; code != 0 {
		w.t.Errorf("exit %d", code)
	}
	return answers
}
