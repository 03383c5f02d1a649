package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestAFlagThatNamesNoMCPServerIsWrongUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for flag, want := range map[string]string{"x": "want NAME=COMMAND or NAME=URL", "a b=c": "the name", "a=ftp": ""} {
		r := w.pawl("run", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/none.yaml", "--mcp", flag, "go")
		if r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", flag, r)
		}
	}
}

func TestALoginNeedsAServerWithAnAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agents(`{"mcpServers": {"files": {"command": "x"}, "here": {"url": "http://127.0.0.1:1/${PAWL_TEST_PATH:-mcp}"}, "unset": {"url": "${PAWL_TEST_UNSET}"}}}`)
	for want, args := range map[string][]string{
		"no server wiki is configured": {"wiki"}, "want the name of one server": {}, "begins with http": {"--url", "ftp://x", "wiki"}, "server wiki: connect": {"--url", "http://127.0.0.1:1/mcp", "wiki"},
		"server here: connect: ": {"--trust", "here"}, "only a server with a URL": {"--trust", "files"}, "${PAWL_TEST_UNSET} is not set": {"--trust", "unset"},
	} {
		r := w.pawl(append([]string{"mcp", "login", "--no-browser", "--dir", w.dir}, args...)...)
		if r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if r := w.pawl("mcp", "login", "--dir", w.dir, "here"); r.code != exitWaiting || !strings.Contains(r.err, "pawl trust") {
		t.Errorf("%+v", r)
	}
}

// agents writes the project's settings.
func (w world) agents(settings string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Join(w.dir, ".agents"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	w.file(".agents/settings.json", settings)
}

// noteServer is an MCP server with two tools.
func noteServer(t *testing.T) string {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	type none struct{}
	nothing := func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{}, nil, nil
	}
	sdk.AddTool(server, &sdk.Tool{Name: "add", Description: "Add a\nnote.\x1b[2J"}, nothing)
	sdk.AddTool(server, &sdk.Tool{Name: "read", Description: "Read it.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, nothing)
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h.URL
}

func TestTheListOfMCPServersSaysHowEachIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agents(`{"mcpServers": {
  "notes": {"url": "` + noteServer(t) + `", "headers": {"X-Token": "${PAWL_TEST_TOKEN}"}, "defer": true},
  "gone": {"command": "/no/such/program", "args": ["--key", "${PAWL_TEST_TOKEN}"], "env": {"A": "secret-2"}, "required": true}}}`)
	list := func(code int, flags ...string) (out []map[string]any) {
		t.Helper()
		r := w.pawl(append([]string{"mcp", "list", "--json", "--dir", w.dir}, flags...)...)
		if r.code != code || r.err != "" || strings.Contains(r.out+r.err, "secret-") {
			t.Fatalf("%+v", r)
		}
		for line := range strings.Lines(r.out) {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			out = append(out, m)
		}
		return out
	}
	for _, m := range list(0) {
		if m["state"] != "waiting" || m["layer"] != "project" || !strings.Contains(fmt.Sprint(m["reason"]), "pawl trust") || len(m["tools"].([]any)) != 0 {
			t.Errorf("nobody has approved it: %v", m)
		}
	}
	if m := list(exitFailed, "--trust", "--mcp", "web=http://ann:secret-3@127.0.0.1:1/mcp?key=secret-4")[0]; m["url"] != "http://…@127.0.0.1:1/mcp?…" || m["state"] != "failed" || m["reason"] == "" {
		t.Error(m)
	}
	all := list(exitFailed, "--trust", "--mcp", "more=/no/program with args")
	if len(all) != 3 {
		t.Fatal(all)
	}
	if m := all[0]; m["name"] != "more" || m["layer"] != "flag" || m["state"] != "failed" || m["transport"] != "stdio" || m["command"] != "/no/program" {
		t.Error(m)
	}
	if m := all[1]; m["name"] != "gone" || m["state"] != "failed" || !strings.Contains(fmt.Sprint(m["reason"]), "start: ") || m["required"] != true || !strings.HasSuffix(fmt.Sprint(m["place"]), ".agents/settings.json:3:3") {
		t.Error(m)
	}
	m := all[2]
	want := []any{
		map[string]any{"name": "mcp__notes__add", "description": "Add a\nnote.\x1b[2J", "read_only": false, "deferred": true},
		map[string]any{"name": "mcp__notes__read", "description": "Read it.", "read_only": true, "deferred": true},
	}
	if diff := cmp.Diff(want, m["tools"]); diff != "" || m["state"] != "connected" || m["transport"] != "http" || m["reason"] != nil {
		t.Error(m, diff)
	}
	r := w.pawl("mcp", "list", "--dir", w.dir, "--trust")
	for _, want := range []string{"gone  failed  (project, ", "notes  connected  (project, ", "\n  mcp__notes__add [found by search] Add a note.", "\n  mcp__notes__read [read-only] [found by search] Read it."} {
		if r.code != exitFailed || !strings.Contains(r.out, want) {
			t.Errorf("no %q in %+v", want, r)
		}
	}
	if strings.Contains(r.out, "\x1b") {
		t.Errorf("a server steers the terminal: %q", r.out)
	}
	w.agents(`{"mcpServers": {"notes": {"url": "` + noteServer(t) + `"}}}`)
	if r := w.pawl("mcp", "list", "--dir", w.dir, "--trust"); r.code != 0 || !strings.Contains(r.out, "notes  connected") {
		t.Errorf("%+v", r)
	}
	w.agents(`{}`)
	if r := w.pawl("mcp", "list", "--dir", w.dir); r.code != 0 || r.out != "" || !strings.Contains(r.err, "no MCP server is configured") {
		t.Errorf("%+v", r)
	}
	w.agents(`{"mcpServers": {"a": {}}}`)
	if r := w.pawl("mcp", "list", "--dir", w.dir); r.code != exitUsage || !strings.Contains(r.err, "neither a command nor a URL") {
		t.Errorf("%+v", r)
	}
}

func TestTheDoctorLooksAtMCPServers(t *testing.T) {
	w := newWorld(t)
	t.Chdir(w.dir)
	w.agents(`{"mcpServers": {"gone": {"command": "/no/such/program"}}}`)
	if r := w.pawl("doctor"); r.code != 0 || !strings.Contains(r.out, "missing  MCP server gone: it waits for approval") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("trust"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("doctor"); r.code != exitFailed || r.err != "" || !strings.Contains(r.out, "missing  MCP server gone: start: ") {
		t.Errorf("%+v", r)
	}
	w.agents(`{"mcpServers": {"notes": {"url": "` + noteServer(t) + `"}}}`)
	if r := w.pawl("trust"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("doctor"); r.code != 0 || !strings.Contains(r.out, "ok       MCP server notes: http http://127.0.0.1:") || !strings.Contains(r.out, ", 2 tools\n") {
		t.Errorf("%+v", r)
	}
}

// A server's question waits on record, for whatever process answers it.
func TestAQuestionOfAnMCPServerIsAnsweredByAnotherProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	type none struct{}
	sdk.AddTool(server, &sdk.Tool{Name: "size", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, r *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
		if len(r.Params.InputResponses) == 0 {
			form := map[string]any{"type": "object", "required": []string{"size"}, "properties": map[string]any{"size": map[string]any{"type": "string", "enum": []string{"small", "large"}}}}
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": &sdk.ElicitParams{Mode: "form", Message: "Which size?", RequestedSchema: form}}}, nil, nil
		}
		b, err := json.Marshal(r.Params.InputResponses)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(b)}}}, nil, err
	})
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	defer h.Close()
	defer h.CloseClientConnections()
	script := w.file("script.yaml", "turns:\n  - tool_calls: [{id: c1, name: mcp__shop__size, input: {}}]\n  - {text: Thank you.}\n")
	more := []string{"--journal", w.journal, "--dir", w.dir, "--model", "scripted/" + script, "--mcp", "shop=" + h.URL, "--allow", "mcp__shop"}
	r := w.pawl(append([]string{"run", "--session", "s", "go"}, more...)...)
	if r.code != exitWaiting || !strings.Contains(r.err, "The MCP server shop asks: Which size?") {
		t.Fatalf("%+v", r)
	}
	found := regexp.MustCompile(`pawl answer .*s (\S+) `).FindStringSubmatch(r.err)
	if found == nil {
		t.Fatalf("it is not said how it is answered: %s", r.err)
	}
	if r := w.pawl("answer", "--journal", w.journal, "s", found[1], "large"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl(append([]string{"resume", "s"}, more...)...); r.code != 0 || r.out != "Thank you.\n" {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("sessions", "show", "--journal", w.journal, "s"); !strings.Contains(r.out, `"size":"large"`) {
		t.Errorf("%+v", r)
	}
}
