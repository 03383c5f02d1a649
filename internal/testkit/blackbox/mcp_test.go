package blackbox

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestMCPServe(t *testing.T) { runRows(t) }

// mcpClient speaks with pawl mcp serve over its standard input and output.
type mcpClient struct {
	*process
	in  io.WriteCloser
	out *bufio.Scanner
	id  int
}

// speaks starts pawl mcp serve and says hello.
func (w *world) speaks(flags ...string) *mcpClient {
	w.t.Helper()
	w.write("model.yaml", chats)
	cmd := w.command(binary("pawl"), append([]string{"mcp", "serve", "--model", "scripted/model.yaml", "--no-sandbox"}, flags...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	read, write := io.Pipe()
	p := &process{w: w, cmd: cmd, out: &output{}, errs: &output{}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = write, p.errs
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
		_ = write.Close()
	}()
	w.t.Cleanup(func() { _ = read.Close(); p.end() })
	c := &mcpClient{process: p, in: in, out: bufio.NewScanner(read)}
	c.out.Buffer(nil, 1<<22)
	hello := c.call("initialize", `{"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}`)
	if at(hello, "result", "serverInfo", "name") != "pawl" || at(hello, "result", "protocolVersion") != "2025-06-18" {
		w.t.Errorf("%v", hello)
	}
	c.say(`{"jsonrpc": "2.0", "method": "notifications/initialized"}`)
	return c
}

// bound kills the program if nothing happens for a long time. The caller calls what it
// returns when something did.
func (c *mcpClient) bound() (stop func() bool) {
	return time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() }).Stop
}

// say writes a line.
func (c *mcpClient) say(line string) {
	c.w.t.Helper()
	defer c.bound()()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.w.t.Fatalf("%v: %s", err, c.errs)
	}
}

// next reads the next message.
func (c *mcpClient) next() object {
	c.w.t.Helper()
	defer c.bound()()
	if !c.out.Scan() {
		c.w.t.Fatalf("there is no further message: %v %s", c.out.Err(), c.errs)
	}
	var o object
	if err := json.Unmarshal(c.out.Bytes(), &o); err != nil {
		c.w.t.Fatalf("standard output has what is no message: %s", c.out.Text())
	}
	return o
}

// refuses sends a line, and fails the test unless its answer is this error.
func (c *mcpClient) refuses(line string, id any, code float64, text string) {
	c.w.t.Helper()
	c.say(line)
	o := c.next()
	message, _ := at(o, "error", "message").(string)
	if got, has := o["id"]; !has || got != id || at(o, "error", "code") != code || !strings.Contains(message, text) {
		c.w.t.Errorf("%.40q is answered by %v, want id %v, code %v and %q", line, o, id, code, text)
	}
}

// call sends a request and gives its answer.
func (c *mcpClient) call(method, params string) object {
	c.w.t.Helper()
	c.id++
	c.say(fmt.Sprintf(`{"jsonrpc": "2.0", "id": %d, "method": %q, "params": %s}`, c.id, method, params))
	for {
		if o := c.next(); o["id"] == float64(c.id) {
			return o
		}
	}
}

// tool calls a tool and gives its result.
func (c *mcpClient) tool(name, input string) any {
	c.w.t.Helper()
	return c.call("tools/call", fmt.Sprintf(`{"name": %q, "arguments": %s}`, name, input))["result"]
}

// tools gives the names of the tools.
func (c *mcpClient) tools() (names []string) {
	c.w.t.Helper()
	list, _ := at(c.call("tools/list", "{}"), "result", "tools").([]any)
	for _, tool := range list {
		name, _ := at(tool, "name").(string)
		names = append(names, name)
	}
	return names
}

// listens starts pawl mcp serve by HTTP.
func (w *world) listens(flags ...string) *server {
	w.t.Helper()
	w.write("model.yaml", chats)
	args := append([]string{"mcp", "serve", "--http", "127.0.0.1:0", "--model", "scripted/model.yaml", "--no-sandbox"}, flags...)
	s := &server{process: w.start(args...), header: map[string][]string{"Accept": {"application/json, text/event-stream"}}}
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	w.until("the server listens", func() bool { return address.MatchString(s.errs.String()) || s.over() })
	s.connect(address.FindString(s.errs.String()))
	return s
}

// hello is the first request of MCP.
const hello = `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}`

// mcpText gives the texts of a tool's result.
func mcpText(result any) string { return asJSON(at(result, "content")) }

var _ = table("TestMCPServe",
	row{"ask is a run of the agent", "mcp.md: The result is the answer, and as structured content `session`, `run`, `status`, `text`, `usage`, `pending`, `error`", "pawl mcp serve", func(w *world) {
		c := w.speaks()
		got := c.tool("ask", `{"prompt": "hi", "session": "s"}`)
		if at(got, "structuredContent", "status") != "completed" || at(got, "structuredContent", "session") != "s" || at(got, "content", 0, "text") != "Done." || at(got, "_meta", "pawl/session") != "s" {
			w.t.Errorf("%v", got)
		}
		if again := c.tool("ask", `{"prompt": "more", "session": "s"}`); at(again, "content", 0, "text") != "Done again." {
			w.t.Errorf("%v", again)
		}
		if text := at(c.call("resources/read", `{"uri": "pawl://session/s"}`), "result", "contents", 0, "text"); !strings.Contains(fmt.Sprint(text), "assistant: Done again.") {
			w.t.Errorf("%v", text)
		}
	}},
	row{"answer answers what waits", "mcp.md: answers what waits for a person: `session`, `call_id`, and `approve` or `text`; then the run goes on", "", func(w *world) {
		c := w.speaks()
		if got := c.tool("ask", `{"prompt": "write", "session": "s"}`); at(got, "structuredContent", "status") != "interrupted" || at(got, "structuredContent", "pending", 0, "call_id") != "w" {
			w.t.Errorf("%v", got)
		}
		w.wants("effects", "")
		got := c.tool("answer", `{"session": "s", "call_id": "w", "approve": true}`)
		if w.wants("effects", "one"); at(got, "structuredContent", "status") != "completed" {
			w.t.Errorf("%v", got)
		}
	}},
	row{"tools of the project are runs", "mcp.md: A call of a tool is a run.", "pawl mcp --tools", func(w *world) {
		c := w.speaks("--tools", "all")
		if got := mcpText(c.tool("glob", `{"pattern": "go.*"}`)); !strings.Contains(got, "go.mod") {
			w.t.Error(got)
		}
		if got := c.tool("write", `{"file_path": "effects", "content": "one"}`); at(got, "_meta", "pawl/status") != "interrupted" {
			w.t.Errorf("%v", got)
		}
		if w.wants("effects", ""); len(w.sessions()) != 2 {
			w.t.Errorf("%v", w.sessions())
		}
	}},
	row{"--tools says which are offered", "`--tools none|read|all|NAMES` is which of the project's tools are offered (`read`: those that change nothing)", "pawl mcp --tools", func(w *world) {
		for flag, want := range map[string]string{"none": "answer ask", "read": "answer ask glob grep read web_fetch", "grep,write": "answer ask grep write"} {
			if got := strings.Join(w.speaks("--tools", flag).tools(), " "); got != want {
				w.t.Errorf("--tools %s: %s, want %s", flag, got, want)
			}
		}
	}},
	row{"--no-agent and --no-answer leave out", "`--no-agent` leaves out the agent, `--no-answer` the tool by which clients answer what waits for a person", "pawl mcp --no-agent, pawl mcp --no-answer", func(w *world) {
		if got := strings.Join(w.speaks("--no-agent", "--no-answer").tools(), " "); got != "glob grep read web_fetch" {
			w.t.Error(got)
		}
	}},
	row{"skills are prompts", "mcp.md: the project's [skills], with the argument `task`", "", func(w *world) {
		w.write(".agents/skills/release/SKILL.md", "---\nname: release\ndescription: Makes a release.\n---\nTag the commit.\n")
		c := w.speaks()
		if got := asJSON(at(c.call("prompts/list", "{}"), "result", "prompts")); !strings.Contains(got, `"name":"release"`) {
			w.t.Error(got)
		}
		if got := asJSON(c.call("prompts/get", `{"name": "release", "arguments": {"task": "now"}}`)["result"]); !strings.Contains(got, "Tag the commit.") {
			w.t.Error(got)
		}
	}},
	row{"what is no request is told, and the next one is answered", "mcp.md: A request has at most 8 MiB, a line of standard input 32 MiB", "", func(w *world) {
		c := w.speaks()
		c.refuses("garbage", nil, -32700, "this is no JSON")
		c.refuses("[]", nil, -32700, "it is empty")
		c.refuses(`{"jsonrpc": "2.0", "id": 900}`, nil, -32600, "it has no method")
		c.refuses(`{"jsonrpc": "2.0", "id": 901, "method": "nosuch"}`, 901.0, -32601, "nosuch")
		padded := func(size int) string {
			return `{"jsonrpc": "2.0", "id": 902, "method": "nosuch"` + strings.Repeat(" ", size) + "}"
		}
		c.refuses(padded(31<<20), 902.0, -32601, "nosuch")
		c.refuses(padded(32<<20), nil, -32600, "a message of more than 32 MiB")
		if got := c.tool("nosuch", "{}"); got != nil && at(got, "isError") != true {
			w.t.Errorf("%v", got)
		}
		if got := c.tool("ask", `{"nosuch": 1}`); at(got, "isError") == nil && got != nil {
			w.t.Errorf("%v", got)
		}
		if got := c.tool("ask", `{"prompt": "hi"}`); at(got, "structuredContent", "status") != "completed" {
			w.t.Errorf("%v", got)
		}
	}},
	row{"the end of standard input ends it", "until standard input ends or it is told to stop (exit 0)", "pawl mcp serve", func(w *world) {
		c := w.speaks()
		_ = c.in.Close()
		if r := c.wait(); r.code != 0 {
			w.t.Error(r)
		}
	}},
	row{"--http serves at /mcp", "`--http HOST:PORT` serves by streamable HTTP, at `/mcp`, instead of standard input and output; port 0 is a free one, and standard error says which", "pawl mcp --http", func(w *world) {
		s := w.listens()
		a := s.wants(200, []string{`"protocolVersion":"2025-06-18"`}, "POST", "/mcp", hello)
		session := a.header.Get("Mcp-Session-Id")
		if session == "" {
			w.t.Fatalf("%v", a.header)
		}
		s.wants(202, nil, "POST", "/mcp", `{"jsonrpc": "2.0", "method": "notifications/initialized"}`, "Mcp-Session-Id", session)
		s.wants(200, []string{"Done."}, "POST", "/mcp", `{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "ask", "arguments": {"prompt": "hi"}}}`, "Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-06-18")
		s.wants(404, nil, "POST", "/mcp", `{"jsonrpc": "2.0", "id": 3, "method": "tools/list"}`, "Mcp-Session-Id", "no-such-session")
		s.stop()
	}},
	row{"--stateless keeps no sessions", "`--stateless` keeps no sessions of the protocol", "pawl mcp --stateless", func(w *world) {
		s := w.listens("--stateless")
		if a := s.wants(200, nil, "POST", "/mcp", hello); a.header.Get("Mcp-Session-Id") != "" {
			w.t.Errorf("%v", a.header)
		}
		s.wants(200, []string{"Done."}, "POST", "/mcp", `{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "ask", "arguments": {"prompt": "hi"}}}`, "Mcp-Protocol-Version", "2025-06-18")
	}},
	row{"--token is wanted from every client", "`--token TOKEN`, or `@FILE`, or `PAWL_TOKEN` is what clients have to send (`Authorization: Bearer TOKEN`), 16 characters or more", "pawl mcp --token", func(w *world) {
		s := w.listens("--token", token)
		s.wants(401, nil, "POST", "/mcp", hello)
		s.wants(200, nil, "POST", "/mcp", hello, "Authorization", "Bearer "+token)
	}},
	row{"--origin and --host admit others", "`--origin URL` lets pages of another site call, `--host NAME` is a further name of the server's (repeat)", "pawl mcp --origin, pawl mcp --host", func(w *world) {
		s := w.listens("--origin", "https://chat.example", "--host", "agent.internal")
		s.wants(200, nil, "POST", "/mcp", hello, "Origin", "https://chat.example")
		s.wants(403, nil, "POST", "/mcp", hello, "Origin", "https://evil.example")
		s.wants(200, nil, "POST", "/mcp", hello, "Host", "agent.internal")
		s.wants(403, nil, "POST", "/mcp", hello, "Host", "evil.example")
	}},
	row{"what is no request by HTTP is refused", "mcp.md: A request has at most 8 MiB", "", func(w *world) {
		s := w.listens()
		for _, body := range []string{"{", "[]", `{"jsonrpc": "2.0"}`, strings.Repeat("[", 100_000)} {
			if a := s.ask("POST", "/mcp", body); a.code/100 != 4 {
				w.t.Errorf("%.20s: %d %s", body, a.code, a.text)
			}
		}
		if a := s.ask("POST", "/mcp", `{"x": "`+strings.Repeat("x", 9<<20)+`"}`); a.code != 413 {
			w.t.Errorf("a large body: %d %s", a.code, a.text)
		}
		s.wants(404, nil, "GET", "/nosuch", "")
		s.wants(200, nil, "POST", "/mcp", hello)
	}},
)
