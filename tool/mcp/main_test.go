//go:build unix

package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/internal/testkit/parallel"
	"github.com/pawl-dev/pawl/tool"
)

// serves says that this process is a server, and which.
const serves = "MCP_TEST_SERVES"

func TestMain(m *testing.M) {
	switch kind := os.Getenv(serves); kind {
	case "":
	case "conformance":
		if err := conformance(os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case "client": // of a server, until it is killed
		s := stdioServer("all", "MCP_TEST_PID="+os.Getenv("MCP_TEST_PID"))
		s.Required = true
		if _, err := Connect(context.Background(), []Server{s}, Options{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("connected")
		select {}
	default:
		serve(kind)
		os.Exit(0)
	}
	parallel.RaiseLimit()
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("internal/poll.runtime_pollWait")) // a guard's pipe
}

// newSDKServer is a server with a tool for each thing that a tool can do.
func newSDKServer(o *sdk.ServerOptions) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, o)
	type text struct {
		Text string `json:"text,omitempty"`
	}
	add := func(name string, a *sdk.ToolAnnotations, f func(context.Context, *sdk.CallToolRequest, text) (*sdk.CallToolResult, any, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "does " + name, Annotations: a}, f)
	}
	no := false
	add("echo", &sdk.ToolAnnotations{ReadOnlyHint: true}, func(_ context.Context, _ *sdk.CallToolRequest, in text) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}, &sdk.TextContent{Text: "end"}}}, nil, nil
	})
	add("fail", nil, func(context.Context, *sdk.CallToolRequest, text) (*sdk.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("it went wrong")
	})
	add("parts", nil, func(context.Context, *sdk.CallToolRequest, text) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "look"},
			&sdk.ImageContent{MIMEType: "image/png", Data: []byte("PNG")},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("WAV")},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "mem://a", Text: "inside"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "mem://b", MIMEType: "application/pdf", Blob: []byte("PDF")}},
			&sdk.ResourceLink{URI: "mem://c", Name: "c", Description: "the  third", MIMEType: "text/plain"},
		}}, nil, nil
	})
	s.AddTool(&sdk.Tool{Name: "structured", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"b": "<1>", "a": []int{1, 2}}}, nil
	})
	add("steps", &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no}, func(ctx context.Context, r *sdk.CallToolRequest, _ text) (*sdk.CallToolResult, any, error) {
		for i := range 3 {
			err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: "step"})
			if err != nil {
				return nil, nil, err
			}
		}
		time.Sleep(200 * time.Millisecond) // the library takes results before notifications
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil, nil
	})
	add("hang", nil, func(ctx context.Context, _ *sdk.CallToolRequest, _ text) (*sdk.CallToolResult, any, error) {
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second): // its server waits for it
		}
		if f := os.Getenv("MCP_TEST_CANCELLED"); f != "" {
			_ = os.WriteFile(f, []byte("yes"), 0o600)
		}
		return nil, nil, ctx.Err()
	})
	add("long", nil, func(context.Context, *sdk.CallToolRequest, text) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "BEGIN" + strings.Repeat("x", 1<<20) + "END"}}}, nil, nil
	})
	add("more", nil, func(context.Context, *sdk.CallToolRequest, text) (*sdk.CallToolResult, any, error) {
		add("added", nil, func(context.Context, *sdk.CallToolRequest, text) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{}, nil, nil
		})
		return &sdk.CallToolResult{}, nil, nil
	})
	for _, name := range []string{"die", "die_reading"} {
		add(name, &sdk.ToolAnnotations{ReadOnlyHint: name == "die_reading"}, func(context.Context, *sdk.CallToolRequest, text) (*sdk.CallToolResult, any, error) {
			if f := os.Getenv("MCP_TEST_LIVES"); f != "" {
				if _, err := os.Stat(f); err == nil { // this one died before
					return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "alive"}}}, nil, nil
				}
				_ = os.WriteFile(f, nil, 0o600)
			}
			fmt.Fprintln(os.Stderr, "I die now")
			os.Exit(7)
			return nil, nil, nil
		})
	}
	ask := func(mode string, schema any) func(ctx context.Context, r *sdk.CallToolRequest, _ text) (*sdk.CallToolResult, any, error) {
		return func(ctx context.Context, r *sdk.CallToolRequest, _ text) (*sdk.CallToolResult, any, error) {
			p := &sdk.ElicitParams{Mode: mode, Message: "who are you?", RequestedSchema: schema}
			if mode == "url" {
				p.URL, p.ElicitationID = "https://example.com/login", "e1"
			}
			var res any = r.Params.InputResponses
			if init := r.Session.InitializeParams(); init != nil && init.ProtocolVersion < "2026" {
				one, err := r.Session.Elicit(ctx, p)
				if res = one; err != nil {
					return nil, nil, err
				}
			} else if len(r.Params.InputResponses) == 0 {
				return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": p}}, nil, nil
			}
			b, err := json.Marshal(res)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(b)}}}, nil, err
		}
	}
	form := map[string]any{"type": "object", "required": []string{"name"}, "properties": map[string]any{
		"age": map[string]any{"type": "integer", "default": 30}, "name": map[string]any{"type": "string"}, "colour": map[string]any{"type": "string", "enum": []string{"red", "blue"}},
	}}
	add("ask", &sdk.ToolAnnotations{ReadOnlyHint: true}, ask("form", form))
	add("ask_once", nil, ask("form", form))
	add("ask_url", &sdk.ToolAnnotations{ReadOnlyHint: true}, ask("url", nil))
	add("ask_between", &sdk.ToolAnnotations{ReadOnlyHint: true}, func(_ context.Context, r *sdk.CallToolRequest, _ text) (*sdk.CallToolResult, any, error) {
		if len(r.Params.InputResponses) == 0 {
			one := func(text string) *sdk.ElicitParams {
				return &sdk.ElicitParams{Mode: "form", Message: text, RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"x": map[string]any{"type": "string"}}, "required": []string{"x"}}}
			}
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"b": one("second?"), "a": one("first?"), "c": one("third?")}, RequestState: "state"}, nil, nil
		}
		b, err := json.Marshal(r.Params.InputResponses)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: r.Params.RequestState + string(b)}}}, nil, err
	})
	for i := range 3 {
		s.AddResource(&sdk.Resource{URI: fmt.Sprintf("mem://r%d", i), Name: fmt.Sprintf("r%d", i), MIMEType: "text/plain"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: "text of " + r.Params.URI}, {URI: "mem://blob", MIMEType: "image/png", Blob: []byte("PNG")}}}, nil
		})
	}
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "mem://t/{id}", Name: "t"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	})
	s.AddPrompt(&sdk.Prompt{Name: "greet", Description: "greets", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
			{Role: "user", Content: &sdk.TextContent{Text: "Hello, " + r.Params.Arguments["who"]}},
			{Role: "assistant", Content: &sdk.ImageContent{MIMEType: "image/png", Data: []byte("PNG")}},
		}}, nil
	})
	return s
}

// serve is a server on standard input and output.
func serve(kind string) {
	switch kind {
	case "silent":
		time.Sleep(time.Hour)
	case "gone":
		fmt.Fprintln(os.Stderr, "no such module")
		os.Exit(1)
	case "deaf": // reads nothing after it has introduced itself, and does not end when its input does
		answering(func(m map[string]any) any {
			if m["method"] == "tools/list" {
				return map[string]any{"tools": []any{map[string]any{"name": "t", "inputSchema": map[string]any{"type": "object"}}}}
			}
			return nil
		}, 4)
		time.Sleep(time.Hour)
	case "stubborn":
		ignoreTerm()
		fmt.Println("I am not JSON")
		fmt.Println(`[1, 2]`)
		answering(nil, -1)
		time.Sleep(time.Hour)
	case "endless":
		answering(func(m map[string]any) any {
			if m["method"] == "tools/list" {
				return map[string]any{"tools": []any{}, "nextCursor": "again"}
			}
			return nil
		}, -1)
	case "mute": // to what it does not know
		answering(nil, -1)
	case "huge":
		answering(func(m map[string]any) any {
			if m["method"] == "tools/list" {
				return map[string]any{"tools": []any{map[string]any{"name": "t", "inputSchema": map[string]any{"type": "object"}}}}
			}
			if m["method"] == "tools/call" {
				fmt.Println(`"` + strings.Repeat("x", largestMessage) + `"`)
			}
			return nil
		}, -1)
	case "many": // tools of some 200 tokens each
		answering(func(m map[string]any) any {
			if m["method"] != "tools/list" {
				return nil
			}
			var tools []any
			n, _ := strconv.Atoi(os.Getenv("MCP_TEST_MANY"))
			for i := range n {
				tools = append(tools, map[string]any{"name": fmt.Sprintf("t%02d", i), "description": strings.Repeat("many words ", 60), "inputSchema": map[string]any{"type": "object"}})
			}
			return map[string]any{"tools": tools}
		}, -1)
	case "schemas":
		answering(func(m map[string]any) any {
			if m["method"] != "tools/list" {
				return nil
			}
			var tools []any
			for name, schema := range map[string]any{
				"a_text": "string", "b_number": 5, "c_list": []any{}, "d_text_type": map[string]any{"type": "string"}, "e_types": map[string]any{"type": []any{"object", "null"}}, "f_none": nil, "g_empty": map[string]any{},
				"h_untyped": map[string]any{"properties": map[string]any{"x": map[string]any{"type": "string"}}}, "i_good": map[string]any{"type": "object"}, "j_huge": map[string]any{"type": "object", "description": strings.Repeat("x", longestSchema)},
			} {
				tools = append(tools, map[string]any{"name": name, "description": strings.Repeat("d", 20_000), "inputSchema": schema})
			}
			return map[string]any{"tools": tools}
		}, -1)
	case "crowd":
		answering(func(m map[string]any) any {
			if m["method"] != "tools/list" {
				return nil
			}
			tools := []any{}
			for i := range mostTools + 1 {
				tools = append(tools, map[string]any{"name": fmt.Sprint("t", i), "inputSchema": map[string]any{"type": "object"}})
			}
			return map[string]any{"tools": tools}
		}, -1)
	case "storm": // its list changes all the time
		lists := 0
		answering(func(m map[string]any) any {
			switch m["method"] {
			case "tools/list":
				lists++
				return map[string]any{"tools": []any{map[string]any{"name": "t", "description": fmt.Sprint(lists), "inputSchema": map[string]any{"type": "object"}}}}
			case "tools/call":
				for range 2000 {
					fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				}
				return map[string]any{"content": []any{map[string]any{"type": "text", "text": fmt.Sprint("asked ", lists)}}}
			}
			return nil
		}, -1)
	case "line": // megabytes without an end
		answering(func(m map[string]any) any {
			if m["method"] == "tools/list" {
				return map[string]any{"tools": []any{map[string]any{"name": "t", "inputSchema": map[string]any{"type": "object"}}}}
			}
			if m["method"] == "tools/call" {
				for chunk := strings.Repeat("x", 1<<20); ; {
					if _, err := fmt.Print(chunk); err != nil {
						os.Exit(0)
					}
				}
			}
			return nil
		}, -1)
	case "strange":
		answering(func(m map[string]any) any {
			if m["method"] == "tools/list" {
				schema := func(s string) json.RawMessage { return json.RawMessage(s) }
				return map[string]any{"tools": []any{
					map[string]any{"name": "a.b", "inputSchema": schema(`{"type":"object","properties":{"x":{"type":"string"},"a":{"pattern":"(?!x)"}}}`)},
					map[string]any{"name": "a_b", "inputSchema": schema(`{"type":"object"}`)},
					map[string]any{"name": "A_b", "inputSchema": schema(`{"type":"object"}`)},
					map[string]any{"name": strings.Repeat("long/", 30), "inputSchema": schema(`{"type":"object"}`)},
					map[string]any{"name": "a_b", "inputSchema": schema(`{"type":"object"}`)},
					map[string]any{"name": "resources", "inputSchema": schema(`{"type":"object"}`)},
					map[string]any{"name": "both", "inputSchema": schema(`{"type":"object"}`), "annotations": map[string]any{"readOnlyHint": true, "destructiveHint": true}},
				}}
			}
			return nil
		}, -1)
	default:
		if file := os.Getenv("MCP_TEST_PID"); file != "" {
			child := exec.Command("sleep", "300")
			_ = child.Start()
			_ = os.WriteFile(file, fmt.Appendf(nil, "%d %d", os.Getpid(), child.Process.Pid), 0o600)
		}
		if err := newSDKServer(nil).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

func ignoreTerm() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
}

// answering answers initialize, and what answer knows, of the first most messages.
func answering(answer func(map[string]any) any, most int) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for n := 0; n != most && in.Scan(); n++ {
		var m map[string]any
		if json.Unmarshal(in.Bytes(), &m) != nil || m["id"] == nil {
			continue
		}
		var out any
		if m["method"] == "initialize" {
			out = map[string]any{"protocolVersion": "2025-06-18", "serverInfo": map[string]any{"name": "s", "version": "1"}, "capabilities": map[string]any{"tools": map[string]any{}, "resources": map[string]any{}}}
		} else if answer != nil {
			out = answer(m)
		}
		if m["method"] == "tools/list" && out == nil {
			out = map[string]any{"tools": []any{}}
		}
		reply := map[string]any{"jsonrpc": "2.0", "id": m["id"], "result": out}
		if m["method"] == "server/discover" {
			if os.Getenv(serves) == "mute" {
				continue
			}
			delete(reply, "result")
			reply["error"] = map[string]any{"code": -32601, "message": "no such method"}
		} else if out == nil {
			continue
		}
		b, err := json.Marshal(reply)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(b))
	}
}

// stdioServer is this program as a server.
func stdioServer(kind string, env ...string) Server {
	s := Server{Name: "s", Command: os.Args[0], Env: map[string]string{serves: kind}, Startup: 20 * time.Second}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		s.Env[name] = value
	}
	return s
}

// httpServer is a server over HTTP that can lose its sessions.
type httpServer struct {
	*httptest.Server
	handler atomic.Pointer[http.Handler]
	servers []*sdk.Server
}

func newHTTPServer(t *testing.T, o *sdk.StreamableHTTPOptions, so *sdk.ServerOptions) *httpServer {
	t.Helper()
	h := &httpServer{}
	h.restart(o, so)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*h.handler.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		for _, s := range h.servers { // sessions that were forgotten
			for ss := range s.Sessions() {
				_ = ss.Close()
			}
		}
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

func (h *httpServer) restart(o *sdk.StreamableHTTPOptions, so *sdk.ServerOptions) {
	server := newSDKServer(so)
	h.servers = append(h.servers, server)
	var handler http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, o)
	h.handler.Store(&handler)
}

// connect connects, and closes at the end of the test.
func connect(t *testing.T, servers ...Server) *Client {
	t.Helper()
	c, err := Connect(t.Context(), servers, Options{Tokens: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

func closeClient(t *testing.T, c *Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

// find gives a tool by the end of its name.
func find(t *testing.T, c *Client, name string) tool.Tool {
	t.Helper()
	for _, f := range c.Tools(t.Context()) {
		if f.Definition().Name == "mcp__s__"+name {
			return f
		}
	}
	t.Fatalf("there is no tool %s; warnings: %q", name, c.Warnings())
	return nil
}

func use(t *testing.T, c *Client, name, input string) (tool.Result, error) {
	t.Helper()
	f := find(t, c, name)
	return f.Execute(tool.WithCall(t.Context(), tool.Call{ID: "1", Name: f.Definition().Name}), json.RawMessage(input))
}
