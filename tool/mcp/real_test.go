//go:build unix

package mcp

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

// installed is a program of npm packages, which scripts/test installs into the directory that PAWL_NPM names.
func installed(t *testing.T, name string) string {
	t.Helper()
	const how = "run scripts/test, which installs it"
	dir := os.Getenv("PAWL_NPM")
	if dir == "" {
		component.Absent(t, "PAWL_NPM is not set", how)
	}
	path := filepath.Join(dir, "node_modules", ".bin", name)
	if _, err := os.Stat(path); err != nil {
		component.Absent(t, name+" is not in PAWL_NPM", how)
	}
	return path
}

// node is the Node that the packages need.
func node(t *testing.T) string { return installed(t, "node") }

func TestTheEverythingServerOverStandardInputAndOutput(t *testing.T) {
	t.Parallel()
	everything(t, Server{Name: "s", Command: node(t), Args: []string{installed(t, "mcp-server-everything"), "stdio"}})
}

func TestTheEverythingServerOverHTTP(t *testing.T) {
	t.Parallel()
	for kind, path := range map[string]string{"streamableHttp": "/mcp", "sse": "/sse"} {
		t.Run(kind, func(t *testing.T) {
			s := Server{Name: "s", URL: listening(t, kind) + path, SSE: kind == "sse"}
			c := everything(t, s)
			if kind == "sse" {
				return
			}
			// A session that ended behind our back.
			live := c.servers[0].current()
			req, err := newDelete(t.Context(), s.URL, live.ID())
			if err != nil {
				t.Fatal(err)
			}
			if err := req(); err != nil {
				t.Fatal(err)
			}
			if got, err := use(t, c, "echo", `{"message":"again"}`); err != nil || got.Content != "Echo: again" {
				t.Error(got, err)
			}
			if c.servers[0].current() == live {
				t.Error("the session has not changed")
			}
		})
	}
}

// listening starts the server on a free port.
func listening(t *testing.T, kind string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	cmd := exec.Command(node(t), installed(t, "mcp-server-everything"), kind)
	cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for in := bufio.NewScanner(errs); in.Scan(); { // it must be able to write
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	eventually(t, "it listens", func() bool {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return "http://" + addr
}

func everything(t *testing.T, s Server) *Client {
	c := connect(t, s)
	for _, x := range []struct{ tool, input, want string }{
		{"echo", `{"message":"hello"}`, "Echo: hello"},
		{"get-sum", `{"a":2,"b":3}`, "The sum of 2 and 3 is 5."},
		{"get-structured-content", `{"location":"Chicago"}`, `"temperature"`},
		{"get-resource-links", `{"count":2}`, "[resource demo://resource/"},
	} {
		got, err := use(t, c, x.tool, x.input)
		if err != nil || got.IsError || !strings.Contains(got.Content, x.want) {
			t.Errorf("%s: %+v %v", x.tool, got, err)
		}
	}
	if got, err := use(t, c, "get-tiny-image", `{}`); err != nil || len(got.Files) != 1 || got.Files[0].MIME != "image/png" || !strings.HasPrefix(got.Files[0].Data, "\x89PNG") {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := use(t, c, "get-sum", `{"a":"x"}`); err == nil && !got.IsError {
		t.Error("wrong input:", got)
	}
	if got, err := use(t, c, "resources", `{}`); err != nil || !strings.Contains(got.Content, "demo://resource/") {
		t.Errorf("%+v %v", got, err)
	}
	if p, err := c.Prompts(t.Context()); err != nil || len(p) == 0 {
		t.Error(p, err)
	}
	said, err := c.Prompt(t.Context(), "s", "simple-prompt", nil)
	if err != nil || len(said) == 0 {
		t.Error(said, err)
	}
	out := &shown{}
	f := find(t, c, "trigger-long-running-operation")
	if res, err := f.Execute(toolCall(t.Context(), f.Definition().Name, out), rawJSON(`{"duration":1,"steps":4}`)); err != nil || !strings.Contains(res.Content, "completed") || !strings.Contains(out.String(), "1/4\n2/4\n") {
		t.Errorf("%+v %v %q", res, err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := f.Execute(ctx, rawJSON(`{"duration":60,"steps":4}`)); err == nil {
		t.Error("it was cancelled")
	}
	if len(c.Warnings()) > 0 {
		t.Error(c.Warnings())
	}
	return c
}

func TestTheFilesystemServerInAFence(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	program := installed(t, "mcp-server-filesystem")
	policy := sandbox.Policy{Root: dir, Network: sandbox.Network{All: true}}
	fence, err := fence.Open(policy, nil)
	if err != nil {
		component.Absent(t, "no sandbox: "+err.Error(), "install bubblewrap, or use a kernel with Landlock")
	}
	defer func() { _ = fence.Close() }()
	c, err := Connect(sandbox.With(t.Context(), policy), []Server{{Name: "s", Command: node(t), Args: []string{program, dir, outside}, Required: true}}, Options{Command: fence.Command, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(t, c)
	write := func(dir string) string {
		got, err := use(t, c, "write_file", fmt.Sprintf(`{"path":%q,"content":"hello"}`, filepath.Join(dir, "a.txt")))
		if err != nil {
			t.Error(err)
		}
		return got.Content
	}
	if got := write(dir); !strings.Contains(got, "Successfully wrote") {
		t.Error(got)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(b) != "hello" {
		t.Error(string(b), err)
	}
	if got := write(outside); strings.Contains(got, "Successfully wrote") {
		t.Error("what the server allows, the fence does not:", got)
	}
	if got, err := use(t, c, "read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "a.txt"))); err != nil || !strings.Contains(got.Content, "hello") {
		t.Error(got, err)
	}
	if d := find(t, c, "read_text_file").Definition(); !d.ReadOnly || find(t, c, "write_file").Definition().ReadOnly {
		t.Errorf("%+v", d)
	}
}
