//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// collector is OpenTelemetry's Collector, as internal/collector has it.
type collector struct {
	t          *testing.T
	http, grpc string
	file       string
	end        func()
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	tier.SkipQuick(t, "it needs OpenTelemetry's Collector")
	path := os.Getenv("PAWL_COLLECTOR")
	if path == "" {
		component.Absent(t, "PAWL_COLLECTOR is not set", "run scripts/test, which builds it")
	}
	c := &collector{t: t, file: filepath.Join(t.TempDir(), "otlp.jsonl")}
	cmd := exec.Command(path, c.file)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	c.end = func() {
		if !ended {
			ended = true
			_ = in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(c.end)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var at struct{ HTTP, GRPC string }
	if err := json.Unmarshal(line, &at); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	c.http, c.grpc = at.HTTP, at.GRPC
	return c
}

// taken is a span as the collector has it.
type taken struct {
	service    string
	Trace      string `json:"traceId"`
	Span       string `json:"spanId"`
	Parent     string `json:"parentSpanId"`
	Name       string
	Attributes []attr
	Links      []struct{ TraceID, SpanID string }
}

type attr struct {
	Key   string
	Value struct {
		StringValue string
		IntValue    string
	}
}

func attrOf(all []attr, key string) string {
	for _, a := range all {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// spans ends the collector and gives what came: spans, by their names, and all of it as text.
func (c *collector) spans() (all []taken, text string) {
	c.t.Helper()
	c.end()
	b, err := os.ReadFile(c.file)
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var got struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes []attr }
				ScopeSpans []struct{ Spans []taken }
			}
		}
		if err := json.Unmarshal(line, &got); err != nil {
			c.t.Fatalf("%v: %s", err, line)
		}
		for _, r := range got.ResourceSpans {
			for _, s := range r.ScopeSpans {
				for _, one := range s.Spans {
					one.service = attrOf(r.Resource.Attributes, "service.name")
					all = append(all, one)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b taken) int { return strings.Compare(a.Name, b.Name) }) // which of two begins first is left to chance
	return all, string(b)
}

// tree draws the spans below one.
func tree(all []taken, parent string) string {
	var out strings.Builder
	var below func(parent, lead string)
	below = func(parent, lead string) {
		for _, s := range all {
			if s.Parent == parent {
				out.WriteString(lead + s.service + ": " + s.Name + "\n")
				below(s.Span, lead+"  ")
			}
		}
	}
	below(parent, "")
	return out.String()
}

// measures is an MCP server of somebody else, who traces too: it makes a span in the one that it is told of in _meta, and one in that of the header, and sends them to the same collector.
func measures(t *testing.T, c *collector) string {
	t.Helper()
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(c.http+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "lab"))))
	t.Cleanup(func() {
		if err := provider.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	tracer := provider.Tracer("lab")
	server := sdk.NewServer(&sdk.Implementation{Name: "lab", Version: "1"}, nil)
	type none struct{}
	sdk.AddTool(server, &sdk.Tool{Name: "measure", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, func(ctx context.Context, req *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
		meta := propagation.MapCarrier{}
		for k, v := range req.Params.GetMeta() {
			if text, ok := v.(string); ok {
				meta[k] = text
			}
		}
		for name, from := range map[string]propagation.TextMapCarrier{"tools/call measure": meta, "POST /": propagation.HeaderCarrier(req.Extra.Header)} {
			_, span := tracer.Start(propagation.TraceContext{}.Extract(ctx, from), name, trace.WithSpanKind(trace.SpanKindServer))
			span.End()
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "7"}}}, nil, nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(web.Close)
	return web.URL
}

const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
)

// A run of the program, its subagent, its commands, the MCP servers that it calls, and the process that resumes it, are one trace.
func TestARunIsOneTraceAtACollector(t *testing.T) {
	t.Parallel()
	pawl, c, w := binary(t), newCollector(t), newWorld(t)
	node, _ := npm(t, "@modelcontextprotocol/server-everything")
	script := w.file("s.yaml", `
turns:
  - text: "I look. It is secret-words."
    tool_calls:
      - {id: c1, name: bash, input: {command: "echo $TRACEPARENT > where; echo secret-output"}}
      - {id: c2, name: mcp__lab__measure, input: {}}
      - {id: c3, name: mcp__all__echo, input: {message: hi}}
      - {id: c4, name: task, input: {agent: explore, prompt: look}}
  - tool_calls: [{id: c5, name: bash, input: {command: "touch asked"}}]
  - text: "Done."
agents: {explore: {turns: [{text: "Seen."}]}}
`)
	flags := []string{
		"--dir", w.dir, "--journal", w.journal, "--model", "scripted/" + script, "--no-sandbox", "--allow", "Bash", "--allow", "mcp__lab", "--allow", "mcp__all", "--ask", "Bash(touch:*)",
		"--mcp", "lab=" + measures(t, c), "--mcp", "all=" + node + " " + filepath.Join(filepath.Dir(node), "mcp-server-everything") + " stdio",
	}
	do := func(want int, env []string, args ...string) {
		t.Helper()
		cmd := exec.Command(pawl, args...)
		cmd.Env = append(os.Environ(), append(env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.http, "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test")...)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = nil
		}
		if err != nil || cmd.ProcessState.ExitCode() != want || strings.Contains(string(out), "OpenTelemetry") {
			t.Fatalf("exit %d, %v: want %d\n%s", cmd.ProcessState.ExitCode(), err, want, out)
		}
	}
	do(exitWaiting, []string{"TRACEPARENT=00-" + callersTrace + "-" + callersSpan + "-01"}, append(append([]string{"run", "--session", "s"}, flags...), "secret-prompt")...)
	do(exitCompleted, nil, "approve", "s", "c5", "--journal", w.journal)
	do(exitCompleted, nil, append([]string{"resume"}, append(flags, "s")...)...)
	all, text := c.spans()
	for _, s := range all {
		if s.Trace != callersTrace {
			t.Errorf("%s is in the trace %s", s.Name, s.Trace)
		}
	}
	want := `pawl: invoke_agent pawl
  pawl: ask_person
  pawl: chat SCRIPT
  pawl: chat SCRIPT
  pawl: execute_tool bash
  pawl: execute_tool mcp__all__echo
  pawl: execute_tool mcp__lab__measure
    lab: POST /
    lab: tools/call measure
  pawl: execute_tool task
    pawl: invoke_agent explore
      pawl: chat SCRIPT#explore
  pawl: invoke_agent pawl
    pawl: chat SCRIPT
    pawl: execute_tool bash
`
	got := strings.ReplaceAll(tree(all, callersSpan), script, "SCRIPT")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for name, attrs := range map[string]map[string]string{
		"execute_tool bash":              {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "c1", "pawl.tool.outcome": "ok", "mcp.method.name": ""},
		"execute_tool mcp__all__echo":    {"mcp.method.name": "tools/call", "network.transport": "pipe", "pawl.mcp.server": "all", "gen_ai.tool.name": "mcp__all__echo"},
		"execute_tool mcp__lab__measure": {"mcp.method.name": "tools/call", "network.transport": "tcp", "server.address": "127.0.0.1"},
		"invoke_agent explore":           {"gen_ai.agent.name": "explore", "gen_ai.operation.name": "invoke_agent"},
	} {
		i := slices.IndexFunc(all, func(s taken) bool { return s.Name == name && attrOf(s.Attributes, "gen_ai.tool.call.id") != "c5" })
		if i < 0 {
			t.Fatalf("no %s in\n%s", name, got)
		}
		for k, v := range attrs {
			if attrOf(all[i].Attributes, k) != v {
				t.Errorf("%s: %s = %q, want %q", name, k, attrOf(all[i].Attributes, k), v)
			}
		}
		if name == "execute_tool bash" {
			b, err := os.ReadFile(filepath.Join(w.dir, "where"))
			if said := "00-" + callersTrace + "-" + all[i].Span + "-01"; err != nil || strings.TrimSpace(string(b)) != said {
				t.Errorf("the command was told %q, %v: want %q", b, err, said)
			}
		}
	}
	for _, there := range []string{`"gen_ai.client.operation.duration"`, `"gen_ai.execute_tool.duration"`, `"deployment.environment.name"`, `"service.version"`} {
		if !strings.Contains(text, there) {
			t.Errorf("no %s", there)
		}
	}
	for _, not := range []string{"secret-", "process.command"} {
		if strings.Contains(text, not) {
			t.Errorf("%q was sent, and nobody asked for content", not)
		}
	}
}

func TestContentGoesWhereItIsAskedForAndByGRPC(t *testing.T) {
	c, w := newCollector(t), newWorld(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.grpc)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	t.Setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "EVENT_ONLY")
	if r := w.pawl("run", "--model", "scripted/"+w.file("s.yaml", work), "--dir", w.dir, "--journal", w.journal, "go-secret"); r.code != exitCompleted || strings.Contains(r.err, "OpenTelemetry") {
		t.Fatal(r)
	}
	all, text := c.spans()
	if got, want := tree(all, ""), "mine: invoke_agent pawl\n"; len(all) != 4 || !strings.HasPrefix(got, want) {
		t.Errorf("%d spans: %s", len(all), got)
	}
	for _, there := range []string{"gen_ai.client.inference.operation.details", "go-secret", "gen_ai.client.token.usage"} {
		if !strings.Contains(text, there) {
			t.Errorf("no %s in %d bytes", there, len(text))
		}
	}
}

func TestGraphsAndScriptsAreOneTraceToo(t *testing.T) {
	for kind, text := range map[string]string{
		"script": "parallel([lambda: generate('Write.'), lambda: tool('bash', command = 'echo one')])\nemit(agent('explore', 'look'))\n",
		"graph": `{name: g, entry: split, nodes: [{id: split, type: template, config: {template: "x", output: x}}, {id: a, type: model, config: {prompt: "Hi", output: said}}, {id: b, type: tool, config: {tool: bash, args: {command: "echo one"}}}, {id: join, type: agent, config: {agent: explore, prompt: look, output: seen}}],
 edges: [{from: split, to: a}, {from: split, to: b}, {from: a, to: join}, {from: b, to: join}, {from: join, to: __end__}]}`,
	} {
		t.Run(kind, func(t *testing.T) {
			c, w := newCollector(t), newWorld(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.http)
			script := w.file("s.yaml", "turns: [{text: a poem}]\nagents: {explore: {turns: [{text: Seen.}]}}")
			r := w.pawl("run", "--engine", kind+":"+w.file("engine", text), "--model", "scripted/"+script, "--dir", w.dir, "--journal", w.journal, "--no-sandbox", "--allow", "Bash", "go")
			if r.code != exitCompleted {
				t.Fatalf("%+v", r)
			}
			all, _ := c.spans()
			got := strings.ReplaceAll(tree(all, ""), script, "SCRIPT")
			for _, want := range []string{"pawl: invoke_agent pawl\n", "\n  pawl: chat SCRIPT\n", "\n  pawl: execute_tool bash\n", "pawl: invoke_agent explore\n", "  pawl: chat SCRIPT#explore\n"} {
				if strings.Count(got, want) != 1 {
					t.Errorf("%q is missing in\n%s", want, got)
				}
			}
			for _, s := range all {
				if s.Trace != all[0].Trace {
					t.Errorf("%s is in a trace of its own", s.Name)
				}
			}
		})
	}
}

// The turn of a pack lies in the trace of who asked for it.
func TestATurnOfAPackIsInItsCallersTrace(t *testing.T) {
	c, w := newCollector(t), newWorld(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.http)
	t.Setenv("TRACEPARENT", "00-"+callersTrace+"-"+callersSpan+"-01")
	pack := w.file("flow.json", `{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"}, "prompts": {
"ask": {"id": "ask", "name": "Ask", "version": "1.0.0", "system_template": "You ask."}, "tell": {"id": "tell", "name": "Tell", "version": "1.0.0", "system_template": "You tell."}},
"workflow": {"version": 1, "entry": "start", "states": {"start": {"prompt_task": "ask", "on_event": {"Known": "end"}}, "end": {"prompt_task": "tell"}}}}`)
	script := w.file("s.yaml", `turns: [{tool_calls: [{name: workflow__transition, input: {event: Known, context: "x"}}]}, {text: "It is told."}]`)
	if r := w.pawl("pack", "run", "--workflow", "--model", "scripted/"+script, pack, "go"); r.code != exitCompleted || strings.Contains(r.err, "OpenTelemetry") {
		t.Fatalf("%+v", r)
	}
	all, _ := c.spans()
	want := "pawl: invoke_agent p\n  pawl: chat SCRIPT\n  pawl: chat SCRIPT\n  pawl: execute_tool workflow__transition\n"
	if got := strings.ReplaceAll(tree(all, callersSpan), script, "SCRIPT"); got != want || all[0].Trace != callersTrace {
		t.Errorf("in %s, below the caller's span:\n%s", all[0].Trace, got)
	}
	t.Setenv("OTEL_TRACES_EXPORTER", "zipkin")
	if r := w.pawl("pack", "run", "--workflow", "--model", "scripted/"+script, pack, "go"); r.code != exitUsage || !strings.Contains(r.err, "zipkin") {
		t.Errorf("%+v", r)
	}
}
