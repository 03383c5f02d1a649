package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

// content is a body in the document.
type content map[string]struct {
	Schema json.RawMessage
	Event  struct {
		Ref string `json:"$ref"`
	} `json:"x-event"`
	Example  json.RawMessage
	Examples map[string]struct{ Value json.RawMessage }
}

type operation struct {
	ID          string `json:"operationId"`
	Parameters  []struct{ Name, In string }
	RequestBody *struct{ Content content }
	Responses   map[string]struct{ Content content }
}

// described is the document that a server gives: its operations, by method and path, and the schemas in it.
func described(t *testing.T) (ops map[string]operation, schema func(pointer string) *jsonschema.Schema, text []byte) {
	t.Helper()
	p := serves(t, journal.Memory(), scripted.New(scripted.Text("x")), serve.Options{Tokens: []string{locked}})
	res := p.ask(t.Context(), "GET", "/openapi.json", "") // without a token: there is nothing of anybody's in it
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.StatusCode, err)
	}
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &doc); err != nil || !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Fatal(doc.OpenAPI, err)
	}
	ops = map[string]operation{}
	for path, item := range doc.Paths {
		for method, raw := range item {
			if method == "parameters" {
				continue
			}
			var op operation
			if err := json.Unmarshal(raw, &op); err != nil {
				t.Fatal(path, method, err)
			}
			ops[strings.ToUpper(method)+" "+path] = op
		}
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", tree); err != nil {
		t.Fatal(err)
	}
	return ops, func(pointer string) *jsonschema.Schema {
		t.Helper()
		s, err := c.Compile("openapi.json" + pointer)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}, text
}

// at is where something stands in the document.
func at(path ...string) string {
	var b strings.Builder
	b.WriteByte('#')
	for _, p := range path {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(p))
	}
	return b.String()
}

var pattern = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) (/.*)$`)

// Every route is in the document, and the other way round; the manual has them all.
func TestTheDocumentHasTheRoutes(t *testing.T) {
	ops, _, _ := described(t)
	routes := map[string]bool{}
	for _, f := range sources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 1 {
				if lit, ok := call.Args[0].(*ast.BasicLit); ok {
					if s, err := strconv.Unquote(lit.Value); err == nil && pattern.MatchString(s) {
						routes[s] = true
					}
				}
			}
			return true
		})
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(routes)), slices.Sorted(maps.Keys(ops))); d != "" {
		t.Errorf("routes, and what the document has:\n%s", d)
	}
	if len(routes) < 15 {
		t.Errorf("only %d routes were found", len(routes))
	}
	page, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for route, op := range ops {
		if op.ID == "" || ids[op.ID] {
			t.Errorf("%s: its operationId is %q", route, op.ID)
		}
		ids[op.ID] = true
		if !strings.Contains(string(page), "`"+route+"`") {
			t.Errorf("docs/serve.md does not have %s", route)
		}
	}
}

func sources(t *testing.T) (all []*ast.File) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

// What a handler reads of a request, and what it tells, is what the document says that there is.
func TestTheDocumentHasWhatIsReadAndTold(t *testing.T) {
	ops, schema, _ := described(t)
	handlers, types := map[string]string{}, map[string]*ast.StructType{}
	reads := map[string]*ast.StructType{} // by handler
	for _, f := range sources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if len(n.Args) == 2 {
					lit, isLit := n.Args[0].(*ast.BasicLit)
					h, isMethod := n.Args[1].(*ast.SelectorExpr)
					if isLit && isMethod {
						s, _ := strconv.Unquote(lit.Value)
						handlers[s] = h.Sel.Name
					}
				}
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					types[n.Name.Name] = s
				}
			case *ast.FuncDecl:
				ast.Inspect(n, func(v ast.Node) bool {
					if spec, ok := v.(*ast.ValueSpec); ok && len(spec.Names) == 1 && spec.Names[0].Name == "in" {
						switch of := spec.Type.(type) {
						case *ast.StructType:
							reads[n.Name.Name] = of
						case *ast.Ident:
							reads[n.Name.Name] = types[of.Name]
						}
					}
					return true
				})
			}
			return true
		})
	}
	var members func(s *ast.StructType) []string
	members = func(s *ast.StructType) (all []string) {
		for _, f := range s.Fields.List {
			if f.Tag == nil {
				all = append(all, members(types[f.Type.(*ast.Ident).Name])...)
				continue
			}
			tag, _ := strconv.Unquote(f.Tag.Value)
			name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			all = append(all, name)
		}
		return all
	}
	checked := 0
	for route, op := range ops {
		s := reads[handlers[route]]
		if s == nil {
			continue
		}
		checked++
		method, path, _ := strings.Cut(route, " ")
		of := schema(at("paths", path, strings.ToLower(method), "requestBody", "content", "application/json", "schema"))
		for of.Ref != nil {
			of = of.Ref
		}
		want := members(s)
		slices.Sort(want)
		if d := cmp.Diff(want, slices.Sorted(maps.Keys(of.Properties))); d != "" {
			t.Errorf("%s (%s) reads, and the document has:\n%s", route, op.ID, d)
		}
	}
	for name, of := range map[string]string{"started": "Started", "info": "Info", "state": "State", "file": "File"} {
		s := *types[name]
		own := &ast.StructType{Fields: &ast.FieldList{}}
		for _, f := range s.Fields.List {
			if f.Tag != nil { // what is embedded has a schema of its own
				own.Fields.List = append(own.Fields.List, f)
			}
		}
		want := members(own)
		slices.Sort(want)
		if d := cmp.Diff(want, slices.Sorted(maps.Keys(schema("#/components/schemas/"+of).Properties))); d != "" {
			t.Errorf("%s is told, and the document has in %s:\n%s", name, of, d)
		}
	}
	if checked < 7 {
		t.Errorf("only %d handlers were found that read a request", checked)
	}
}

// Every example of the document is sent, and what comes back is what the document says.
func TestTheExamplesOfTheDocumentWork(t *testing.T) {
	ops, schema, _ := described(t)
	asks := hook.Middleware{Name: "asks", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Asking("May it?"), nil }}
	serving := func(turns ...scripted.Turn) *place {
		g := gated1()
		e, err := loop.New(loop.Config{Model: scripted.New(append(turns, scripted.Text("Two."), scripted.Text("Three."))...), Tools: []tool.Tool{look(), g.tool}})
		if err != nil {
			t.Fatal(err)
		}
		return open(t, serve.Of(agent.Agent{ID: "a", Hooks: []hook.Middleware{asks}}, e, journal.Memory()), serve.Options{})
	}
	sent := map[string]bool{}
	// send sends a request of the document and holds the answer to it.
	send := func(p *place, route, example string, status int, path string, header ...string) []byte {
		t.Helper()
		op, ok := ops[route]
		if !ok {
			t.Fatalf("no operation %s", route)
		}
		method, template, _ := strings.Cut(route, " ")
		var body string
		if op.RequestBody != nil {
			c := op.RequestBody.Content["application/json"]
			raw := c.Example
			if example != "" {
				raw = c.Examples[example].Value
			}
			if raw == nil {
				t.Fatalf("%s has no example %q", route, example)
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema(at("paths", template, strings.ToLower(method), "requestBody", "content", "application/json", "schema")).Validate(value); err != nil {
				t.Errorf("%s: the example %q is not what its schema says: %v", route, example, err)
			}
			body = string(raw)
			if route == "POST /v1/sessions/{session}/answers" {
				body = strings.Replace(body, `"ID"`, fmt.Sprintf("%q", header[0]), 1)
				header = header[1:]
			}
		}
		sent[route+" "+example] = true
		res := p.ask(t.Context(), method, path, body, header...)
		defer func() { _ = res.Body.Close() }()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != status {
			t.Fatalf("%s: %d %v %s\nwant %d", route, res.StatusCode, err, clip(string(b)), status)
		}
		code := strconv.Itoa(status)
		answer, ok := op.Responses[code]
		if !ok && status >= 400 {
			code = "default"
			answer, ok = op.Responses[code]
		}
		if !ok {
			t.Fatalf("%s: the document has no answer %d", route, status)
		}
		kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
		if len(b) == 0 && len(answer.Content) == 0 {
			return nil
		}
		of, ok := answer.Content[kind]
		if !ok {
			t.Fatalf("%s %d: the document has no content of type %q", route, status, kind)
		}
		valid := func(where string, text []byte) {
			t.Helper()
			var value any = string(text)
			if kind != "text/plain" {
				if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err != nil {
					t.Fatal(err)
				}
			}
			if err := schema(where).Validate(value); err != nil {
				t.Errorf("%s %d: %v\nin %s", route, status, err, clip(string(text)))
			}
		}
		if kind != "text/event-stream" {
			valid(at("paths", template, strings.ToLower(method), "responses", code, "content", kind, "schema"), b)
			return b
		}
		n := 0
		for event := range strings.SplitSeq(string(b), "\n\n") {
			if _, data, ok := strings.Cut(event, "data: "); ok && data != "[DONE]" {
				n++
				valid(of.Event.Ref, []byte(data))
			}
		}
		if n < 3 {
			t.Errorf("%s: only %d events", route, n)
		}
		return b
	}
	asking := scripted.Turn{Text: "Let me.", Reasoning: "Hm.", Calls: []scripted.Call{{ID: "c1", Name: "look", Input: `{}`}}}
	p := serving()
	send(p, "GET /healthz", "", 200, "/healthz")
	send(p, "GET /openapi.json", "", 200, "/openapi.json")
	send(p, "GET /v1/models", "", 200, "/v1/models")
	send(p, "GET /v1/models/{model}", "", 200, "/v1/models/pawl")
	send(p, "GET /v1/models/{model}", "", 404, "/v1/models/none")
	send(p, "POST /v1/runs", "wait", 200, "/v1/runs")
	send(p, "POST /v1/runs", "begin", 202, "/v1/runs")
	send(p, "GET /v1/sessions/{session}/events", "", 200, "/v1/sessions/sums/events?run=six")
	send(p, "GET /v1/sessions/{session}/events", "", 204, "/v1/sessions/sums/events?run=six&after=1000000")
	send(p, "POST /v1/runs", "begin", 200, "/v1/runs")
	send(p, "POST /v1/runs", "files", 200, "/v1/runs")
	send(p, "GET /v1/sessions", "", 200, "/v1/sessions?limit=1")
	send(p, "GET /v1/sessions", "", 400, "/v1/sessions?limit=x")
	send(p, "GET /v1/sessions/{session}", "", 200, "/v1/sessions/sums")
	send(p, "GET /v1/sessions/{session}/entries", "", 200, "/v1/sessions/sums/entries")
	send(p, "POST /v1/sessions/{session}/fork", "only", 201, "/v1/sessions/sums/fork")
	send(p, "POST /v1/sessions/{session}/fork", "ask", 200, "/v1/sessions/sums/fork")
	send(p, "POST /v1/sessions/{session}/cancel", "", 409, "/v1/sessions/sums/cancel")
	send(p, "DELETE /v1/sessions/{session}", "", 204, "/v1/sessions/sums")
	send(p, "GET /v1/sessions/{session}", "", 404, "/v1/sessions/sums")
	send(serving(), "POST /v1/chat/completions", "whole", 200, "/v1/chat/completions")
	send(serving(asking), "POST /v1/chat/completions", "stream", 200, "/v1/chat/completions")
	send(serving(asking), "POST /ag-ui", "", 200, "/ag-ui")

	p = serving(asking)
	b := send(p, "POST /v1/runs", "wait", 200, "/v1/runs")
	var st struct{ Pending []journal.Pending }
	if err := json.Unmarshal(b, &st); err != nil || len(st.Pending) != 1 {
		t.Fatalf("%v: %s", err, b)
	}
	send(p, "POST /v1/sessions/{session}/answers", "", 204, "/v1/sessions/sums/answers", st.Pending[0].ID)
	send(p, "GET /v1/sessions/{session}/entries", "", 200, "/v1/sessions/sums/entries")

	p = serving(scripted.Turn{Text: "Wait.", Calls: callOf("wait")})
	send(p, "POST /v1/runs", "begin", 202, "/v1/runs")
	for e, err := range journal.Follow(t.Context(), p.store, "sums", 0) { // it asks, and is left
		if _, ok := e.Data.(journal.Parked); ok || err != nil {
			break
		}
	}
	b = send(p, "POST /v1/sessions/{session}/resume", "", 200, "/v1/sessions/sums/resume")
	if err := json.Unmarshal(b, &st); err != nil || len(st.Pending) != 1 {
		t.Fatalf("%v: %s", err, b)
	}
	p.do(http.StatusNoContent, nil, "POST", "/v1/sessions/sums/answers", fmt.Sprintf(`{"id":%q,"approved":true}`, st.Pending[0].ID))
	for e, err := range journal.Follow(t.Context(), p.store, "sums", 0) {
		if _, ok := e.Data.(journal.ToolStarted); ok || err != nil {
			break
		}
	}
	send(p, "POST /v1/sessions/{session}/steer", "", 204, "/v1/sessions/sums/steer")
	send(p, "POST /v1/sessions/{session}/cancel", "", 200, "/v1/sessions/sums/cancel")

	turns := []scripted.Turn{}
	for range 50 {
		turns = append(turns, scripted.Turn{Text: "On.", Calls: callOf("look"), Delay: 20 * time.Millisecond})
	}
	p = serves(t, journal.Memory(), scripted.New(turns...), serve.Options{}, look())
	send(p, "POST /v1/runs", "begin", 202, "/v1/runs")
	send(p, "POST /v1/sessions/{session}/interrupt", "", 200, "/v1/sessions/sums/interrupt")

	for route, op := range ops {
		if op.RequestBody == nil {
			if !sent[route+" "] {
				t.Errorf("%s was not asked", route)
			}
			continue
		}
		c := op.RequestBody.Content["application/json"]
		names := slices.Collect(maps.Keys(c.Examples))
		if c.Example != nil {
			names = append(names, "")
		}
		if len(names) == 0 {
			t.Errorf("%s has no example", route)
		}
		for _, name := range names {
			if !sent[route+" "+name] {
				t.Errorf("the example %q of %s was not sent", name, route)
			}
		}
	}
}

// The kinds of entries and of deltas are those that there are.
func TestTheDocumentHasTheKindsOfEntries(t *testing.T) {
	_, _, text := described(t)
	var doc struct {
		Components struct {
			Schemas struct {
				Entry struct {
					Properties struct {
						Kind struct{ Enum []journal.Kind }
					}
				}
				Delta struct {
					Properties struct {
						Kind struct{ Enum []event.Delta }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	got, want := doc.Components.Schemas.Entry.Properties.Kind.Enum, slices.Clone(journal.Kinds())
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]event.Delta{event.TextDelta, event.ReasoningDelta, event.ToolOutput, event.Retry, event.Waiting, event.Warning, event.RunLeft}, doc.Components.Schemas.Delta.Properties.Kind.Enum); d != "" {
		t.Error(d)
	}
}

// The document is one by OpenAPI's own schema.
func TestTheDocumentIsOpenAPI(t *testing.T) {
	_, _, text := described(t)
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got := node(t, "openapi.mjs", []string{"@seriousme/openapi-schema-validator"}, file)
	said(t, got["document"], `{"valid":true,"version":"3.1"}`)
	said(t, got["broken"], `{"valid":false}`)
}
