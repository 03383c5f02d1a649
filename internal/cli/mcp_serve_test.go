//go:build unix

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/serve/mcp"
)

// npm gives the Node and a package that scripts/test installs.
func npm(t *testing.T, name string) (node, dir string) {
	t.Helper()
	tier.SkipQuick(t, "it needs Node and npm packages")
	root := os.Getenv("PAWL_NPM")
	if root == "" {
		component.Absent(t, "PAWL_NPM is not set", "run scripts/test, which installs "+name)
	}
	root, err := filepath.Abs(filepath.Join(root, "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	node, dir = filepath.Join(root, ".bin", "node"), filepath.Join(root, filepath.FromSlash(name))
	for _, path := range []string{node, dir} {
		if _, err := os.Stat(path); err != nil {
			component.Absent(t, err.Error(), "run scripts/test")
		}
	}
	return node, dir
}

// mcpArgs are those of a server whose agent writes a file, about which a person is asked.
func (w world) mcpArgs(more ...string) []string {
	w.file("a.txt", "the text of a")
	script := w.file("mcp.yaml", "turns:\n  - {text: Let me write., tool_calls: [{id: c1, name: write, input: {file_path: b.txt, content: written}}]}\n  - {text: It is written.}\n")
	return append([]string{"mcp", "serve", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/" + script, "--ask", "Write"}, more...)
}

// listens starts a server by HTTP, and gives its address.
func (w world) listens(path string, env []string, more ...string) (*exec.Cmd, string) {
	w.t.Helper()
	cmd := exec.Command(path, w.mcpArgs(append([]string{"--http", "127.0.0.1:0"}, more...)...)...)
	cmd.Env = append(os.Environ(), env...)
	errs, err := cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	in := bufio.NewScanner(errs)
	for in.Scan() {
		if _, url, ok := strings.Cut(in.Text(), "serving MCP at "); ok {
			go func() { // it must be able to write
				for in.Scan() {
					w.t.Log(in.Text())
				}
			}()
			w.t.Cleanup(func() { _ = cmd.Process.Kill() })
			return cmd, url
		}
		w.t.Log(in.Text())
	}
	w.t.Fatal("it does not listen")
	return nil, ""
}

// The official SDK of another language is the client of the program as it is built, by each way.
func TestAForeignClientUsesTheAgentAndItsTools(t *testing.T) {
	t.Parallel()
	node, dir := npm(t, "@modelcontextprotocol/sdk")
	path := binary(t)
	for _, how := range []string{"stdio", "http"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			args := []string{"testdata/mcp_client.mjs", dir, how}
			if how == "stdio" {
				args = append(args, append([]string{path}, w.mcpArgs()...)...)
			} else {
				_, url := w.listens(path, []string{"PAWL_TOKEN=a-token-of-sixteen"})
				args = append(args, url, "a-token-of-sixteen")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, args...)
			cmd.Stderr = os.Stderr
			said, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			var got struct {
				Tools, Progress  []string
				Asked            string
				Ask, Read, Wrong struct {
					Content    []struct{ Text string }
					IsError    bool
					Structured map[string]any `json:"structuredContent"`
				}
				Session struct{ Contents []struct{ Text string } }
				Server  struct{ Name string }
			}
			if err := json.Unmarshal(said, &got); err != nil {
				t.Fatal(err, string(said))
			}
			if !slices.Contains(got.Tools, "ask") || !slices.Contains(got.Tools, "read") || slices.Contains(got.Tools, "bash") || got.Server.Name != "pawl" {
				t.Error(got.Tools, got.Server)
			}
			if !strings.Contains(got.Asked, "b.txt") || got.Ask.Content[0].Text != "It is written." || got.Ask.Structured["status"] != "completed" || got.Ask.Structured["session"] != "npm-"+how {
				t.Errorf("%q %+v", got.Asked, got.Ask)
			}
			if b, err := os.ReadFile(filepath.Join(w.dir, "b.txt")); err != nil || string(b) != "written" {
				t.Error(string(b), err)
			}
			if p := strings.Join(got.Progress, "\n"); !strings.Contains(p, "step 2") || !strings.Contains(p, "tool write") {
				t.Error(p)
			}
			if got.Read.IsError || !strings.Contains(got.Read.Content[0].Text, "the text of a") || !got.Wrong.IsError || !strings.Contains(got.Session.Contents[0].Text, "It is written.") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Told to stop, or left by its client, in the middle of a run: exit 0, and the run goes on with pawl resume.
func TestAServerThatEndsInTheMiddleOfARunLeavesItToBeResumed(t *testing.T) {
	t.Parallel()
	path := binary(t)
	for _, how := range []string{"SIGTERM", "end of input", "SIGTERM, http"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			script := w.file("s.yaml", "turns:\n  - {text: First., tool_calls: [{id: c1, name: read, input: {file_path: a.txt}}]}\n  - {delay: 2s, text: At last.}\n")
			const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"prompt":"go","session":"s"}}}`
			const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
			args := w.mcpArgs("--model", "scripted/"+script, "--permission-mode", "bypassPermissions")
			var cmd *exec.Cmd
			var in io.WriteCloser
			if strings.HasSuffix(how, "http") {
				var url string
				cmd, url = w.listens(path, nil, "--model", "scripted/"+script, "--permission-mode", "bypassPermissions", "--stateless")
				go func() {
					req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(call))
					req.Header.Set("Content-Type", "application/json")
					req.Header.Set("Accept", "application/json, text/event-stream")
					if res, err := http.DefaultClient.Do(req); err == nil {
						_, _ = io.Copy(io.Discard, res.Body)
						_ = res.Body.Close()
					}
				}()
			} else {
				cmd = exec.Command(path, args...)
				var err error
				if in, err = cmd.StdinPipe(); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(in, hello+"\n"+call+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			for end := time.Now().Add(20 * time.Second); !strings.Contains(w.pawl("sessions", "export", "--journal", w.journal, "s").out, `"tool.finished"`); {
				if time.Now().After(end) {
					t.Fatal("it does not begin")
				}
				time.Sleep(20 * time.Millisecond) // another process
			}
			if in != nil && how == "end of input" {
				_ = in.Close()
			} else {
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
			if err := cmd.Wait(); err != nil {
				t.Error("exit:", err)
			}
			if r := w.pawl("sessions", "list", "--json", "--journal", w.journal); !strings.Contains(r.out, `"unfinished"`) {
				t.Error(r.out)
			}
			r := w.pawl("resume", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/"+script, "--permission-mode", "bypassPermissions", "s")
			if r.code != 0 || !strings.Contains(r.out, "At last.") {
				t.Errorf("%d %s %s", r.code, r.out, r.err)
			}
			if n := strings.Count(w.pawl("sessions", "export", "--journal", w.journal, "s").out, `"kind":"tool.started"`); n != 1 {
				t.Errorf("the tool ran %d times", n)
			}
		})
	}
}

// A call of a tool that waits is answered and finished from another process, without a model.
func TestACallThatWaitsIsAnsweredAndResumedByTheProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	line := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write","arguments":{"file_path":"c.txt","content":"x"},"_meta":{"pawl/session":"mine"}}}` + "\n"
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- program(t.Context(), streams{inR, outW, io.Discard}, w.mcpArgs("--tools", "write", "--no-agent", "--no-answer"))
	}()
	go func() { _, _ = io.WriteString(inW, line) }()
	out := bufio.NewScanner(outR)
	for out.Scan() && !strings.Contains(out.Text(), `"id":2`) {
	}
	if !strings.Contains(out.Text(), "waits for a person") || !strings.Contains(out.Text(), "pawl approve") {
		t.Error(out.Text())
	}
	_ = inW.Close()
	if code := <-done; code != 0 {
		t.Error(code)
	}
	id := regexp.MustCompile(`- ([^:]+): `).FindStringSubmatch(out.Text())
	if id == nil {
		t.Fatal(out.Text())
	}
	r := w.pawl("approve", "--journal", w.journal, "mine", id[1])
	if r.code != 0 || strings.Contains(r.err, "--engine") {
		t.Fatal(r)
	}
	if r := w.pawl("resume", "--journal", w.journal, "--dir", w.dir, "mine"); r.code != 0 {
		t.Error(r)
	}
	if b, err := os.ReadFile(filepath.Join(w.dir, "c.txt")); err != nil || string(b) != "x" {
		t.Error(string(b), err)
	}
	if r := w.pawl("replay", "--journal", w.journal, "mine"); r.code != 0 {
		t.Error(r)
	}
}

// Who may not come in, and sends no more of what he began to, holds his connection no longer than others.
func TestARefusedClientIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := new(mcp.Server).Handler(mcp.HTTP{Tokens: []string{"0123456789abcdef"}})
		if err != nil {
			t.Fatal(err)
		}
		here, there := net.Pipe()
		l, srv := make(oneConn, 1), bounded(h)
		l <- there
		ended := make(chan error, 1)
		go func() { ended <- srv.Serve(l) }()
		defer func() {
			_ = srv.Close()
			if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		}()
		if _, err := io.WriteString(here, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := io.ReadAll(here); err != nil || time.Since(began) > time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// oneConn is a listener of a connection that is there.
type oneConn chan net.Conn

func (o oneConn) Accept() (net.Conn, error) {
	if c, ok := <-o; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (o oneConn) Close() error { close(o); return nil }

func (oneConn) Addr() net.Addr { return &net.TCPAddr{} }

func TestWrongUseOfMCPServe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for want, args := range map[string][]string{
		"a token is needed":     {"--http", "0.0.0.0:0"},
		"others can reach":      {"--http", ":0"},
		"16 characters or more": {"--http", "127.0.0.1:0", "--token", "short"},
		"want HOST:PORT":        {"--http", "7296"},
		"go with --http":        {"--stateless"},
		"there is no such tool": {"--tools", "nothing"},
		"want none, read, all":  {"--tools", "read,nothing"},
		"no such directory":     {"--dir", "/no/such"},
		"unknown flag":          {"--nothing"},
		"unknown command":       {"more"},
		"--token @/no/such":     {"--http", "127.0.0.1:0", "--token", "@/no/such"},
	} {
		if r := w.pawl(w.mcpArgs(args...)...); r.code != exitUsage || !strings.Contains(r.err, want) || r.out != "" {
			t.Errorf("%v: %d %s%s", args, r.code, r.out, r.err)
		}
	}
}
