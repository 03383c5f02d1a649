package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

func schemaOf[In any](t *testing.T) string {
	t.Helper()
	return string(tool.Func("t", "", func(context.Context, In) (string, error) { return "", nil }).Definition().Schema)
}

func TestTheSchemaIsInferredFromTheInput(t *testing.T) {
	type nested struct {
		ID int `json:"id" jsonschema:"which one"`
	}
	const rest = `,"additionalProperties":false}`
	for name, c := range map[string]struct{ got, want string }{
		"a field is required": {
			schemaOf[struct {
				A string `json:"a"`
			}](t), `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]` + rest,
		},
		"omitempty makes a field optional": {
			schemaOf[struct {
				A string `json:"a,omitempty"`
			}](t), `{"type":"object","properties":{"a":{"type":"string"}}` + rest,
		},
		"a pointer is optional and not nullable": {
			schemaOf[struct {
				A *int    `json:"a"`
				B *nested `json:"b"`
			}](t), `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"object","properties":{"id":{"type":"integer","description":"which one"}},"required":["id"],"additionalProperties":false}}` + rest,
		},
		"a slice is required and not nullable": {
			schemaOf[struct {
				A []string `json:"a"`
			}](t), `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}},"required":["a"]` + rest,
		},
		"a description comes from the tag": {
			schemaOf[struct {
				A bool `json:"a" jsonschema:"is it so, or not"`
			}](t), `{"type":"object","properties":{"a":{"type":"boolean","description":"is it so, or not"}},"required":["a"]` + rest,
		},
		"structs nest": {
			schemaOf[struct {
				N []nested `json:"n"`
			}](t), `{"type":"object","properties":{"n":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer","description":"which one"}},"required":["id"],"additionalProperties":false}}},"required":["n"]` + rest,
		},
		"a map takes any members":       {schemaOf[map[string]any](t), `{"type":"object","additionalProperties":true}`},
		"a map may say what they are":   {schemaOf[map[string][]int](t), `{"type":"object","additionalProperties":{"type":"array","items":{"type":"integer"}}}`},
		"no fields are an empty object": {schemaOf[struct{}](t), `{"type":"object"` + rest},
		"bytes are base64 as encoding/json has it, and raw JSON is anything": {
			schemaOf[struct {
				B []byte          `json:"b"`
				R json.RawMessage `json:"r"`
			}](t), `{"type":"object","properties":{"b":{"type":"string","contentEncoding":"base64"},"r":true},"required":["b","r"]` + rest,
		},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

type search struct {
	Query string   `json:"query"`
	Limit int      `json:"limit,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	In    []struct {
		Dir string `json:"dir"`
	} `json:"in,omitempty"`
}

// spy is a tool that remembers what reached it.
func spy(opts ...tool.Option) (tool.Tool, *[]search) {
	var got []search
	return tool.Func("search", "", func(_ context.Context, in search) (string, error) {
		got = append(got, in)
		return "done", nil
	}, opts...), &got
}

func TestWrongInputNeverReachesTheFunction(t *testing.T) {
	for name, c := range map[string]struct{ input, want string }{
		"a missing member":            {`{}`, "tool search: /: missing property 'query'"},
		"a wrong type":                {`{"query":1}`, "tool search: /query: got number, want string"},
		"null for a slice":            {`{"query":"a","tags":null}`, "tool search: /tags: got null, want array"},
		"a fraction for an integer":   {`{"query":"a","limit":1.5}`, "tool search: /limit: got number, want integer"},
		"a member too many":           {`{"query":"a","q":1}`, "tool search: /: additional properties 'q' not allowed"},
		"every problem with its path": {`{"limit":"x","in":[{"dir":"a"},{"dir":2},{}]}`, "tool search: /: missing property 'query'; /in/1/dir: got number, want string; /in/2: missing property 'dir'; /limit: got string, want integer"},
		"an array":                    {`["a"]`, `tool search: the input must be a JSON object, not ["a"]`},
		"null":                        {`null`, "tool search: the input must be a JSON object, not null"},
		"a second value":              {`{"query":"a"} {}`, `tool search: the input is not valid JSON (invalid character after top-level value): {"query":"a"} {}`},
		"malformed JSON is quoted":    {`{"query": rm -rf}`, `tool search: the input is not valid JSON (invalid character 'r' looking for beginning of value): {"query": rm -rf}`},
	} {
		f, got := spy()
		_, err := f.Execute(t.Context(), json.RawMessage(c.input))
		if !errors.Is(err, errdefs.Validation) || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if len(*got) > 0 {
			t.Errorf("%s reached the function: %+v", name, *got)
		}
	}
}

func TestANumberBeyondAllMeasureIsRefusedAtOnce(t *testing.T) {
	ran := false
	f := tool.Func("t", "", func(context.Context, map[string]any) (string, error) { ran = true; return "", nil },
		tool.WithSchema(json.RawMessage(`{"properties":{"a":{"multipleOf":0.1},"b":{"type":"integer"}}}`)))
	for _, n := range []string{"1e10000000", "-1E+99999999999999999999", "1e-10000000", "1" + strings.Repeat("0", 100_000)} {
		for _, input := range []string{`{"a":` + n + `}`, `{"b":` + n + `}`, `{"c":[{"d":` + n + `}]}`} {
			if _, err := f.Execute(t.Context(), json.RawMessage(input)); !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), "out of range") || ran {
				t.Errorf("%.40s: %v", input, err)
			}
		}
	}
}

func TestNothingIsAnInput(t *testing.T) {
	f, _ := spy()
	for _, input := range []string{"", " ", `{"query":`} {
		if _, err := f.Execute(t.Context(), json.RawMessage(input)); !errors.Is(err, errdefs.Validation) {
			t.Errorf("%q: %v", input, err)
		}
	}
}

func TestWhatIsSaidOfAHugeInputIsShort(t *testing.T) {
	long := strings.Repeat("ü", 1<<20)
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`{"dir":%d}`, i))
	}
	for name, input := range map[string]string{
		"malformed":          `{"query":"` + long,
		"no object":          `"` + long + `"`,
		"a long member name": `{"query":"a","` + long + `":1}`,
		"many problems":      `{"query":"a","in":[` + strings.Join(many, ",") + `]}`,
		"invalid UTF-8":      "{\xff" + long,
	} {
		f, _ := spy()
		_, err := f.Execute(t.Context(), json.RawMessage(input))
		if err == nil || len(err.Error()) > 3000 || strings.ToValidUTF8(err.Error(), "") != err.Error() {
			t.Errorf("%s: %d bytes", name, len(fmt.Sprint(err)))
		}
	}
}

func TestProblemsAreAlwaysToldInTheSameOrder(t *testing.T) {
	f, _ := spy()
	input := json.RawMessage(`{"a":1,"limit":"x","tags":1,"in":2,"query":3}`)
	_, first := f.Execute(t.Context(), input)
	for range 50 {
		if _, err := f.Execute(t.Context(), input); err.Error() != first.Error() {
			t.Fatalf("%v, then %v", first, err)
		}
	}
}

func TestIntegersMayBeWrittenAsModelsWriteThem(t *testing.T) {
	f, got := spy()
	for _, n := range []string{"20", "20.0", "2e1"} {
		if _, err := f.Execute(t.Context(), json.RawMessage(`{"query":"1.0 <b>","limit":`+n+`}`)); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
	want := search{Query: "1.0 <b>", Limit: 20}
	if diff := cmp.Diff([]search{want, want, want}, *got); diff != "" {
		t.Error(diff)
	}
}

func TestAnAliasIsReplacedBeforeTheCheck(t *testing.T) {
	alias := tool.WithAliases(map[string]string{"q": "query", "max": "limit"})
	for name, c := range map[string]struct {
		input string
		want  search
		err   string
	}{
		"the alias":                     {input: `{"q":"a","max":2}`, want: search{Query: "a", Limit: 2}},
		"the name":                      {input: `{"query":"a"}`, want: search{Query: "a"}},
		"both":                          {input: `{"q":"a","query":"a"}`, err: `"q" and "query" are the same: give one of them`},
		"an alias as a value":           {input: `{"query":"q"}`, want: search{Query: "q"}},
		"a wrong type behind the alias": {input: `{"q":1}`, err: "/query: got number, want string"},
		"another member":                {input: `{"q":"a","x":1}`, err: "additional properties 'x' not allowed"},
		"malformed":                     {input: `{"q":`, err: "not valid JSON"},
	} {
		f, got := spy(alias)
		_, err := f.Execute(t.Context(), json.RawMessage(c.input))
		if c.err != "" {
			if !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), c.err) || len(*got) > 0 {
				t.Errorf("%s: %v, %v", name, err, *got)
			}
			continue
		}
		if diff := cmp.Diff([]search{c.want}, *got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestInputThatAnotherToolWasCheckedForIsChecked(t *testing.T) {
	f, got := spy()
	outer := tool.WithCall(t.Context(), tool.Call{ID: "1", Name: "outer"})
	if _, err := f.Execute(outer, json.RawMessage(`{"quarry":1}`)); !errors.Is(err, errdefs.Validation) || len(*got) > 0 {
		t.Errorf("%v, %v", err, *got)
	}
	own := tool.WithCall(t.Context(), tool.Call{ID: "1", Name: "Search"})
	if _, err := f.Execute(own, json.RawMessage(`{"query":"a"}`)); err != nil {
		t.Error(err)
	}
}

func TestWhatAFunctionGivesIsShownToTheModel(t *testing.T) {
	file := message.File{MIME: "image/png", Data: "x"}
	boom := errors.New("boom")
	show := func(f tool.Tool) (tool.Result, error) { return f.Execute(t.Context(), json.RawMessage(`{}`)) }
	for name, c := range map[string]struct {
		f    tool.Tool
		want tool.Result
		err  error
	}{
		"a string as it is": {tool.Func("t", "", func(context.Context, struct{}) (string, error) { return "a <b>\n", nil }), tool.Result{Content: "a <b>\n"}, nil},
		"a result whole": {tool.Func("t", "", func(context.Context, struct{}) (tool.Result, error) {
			return tool.Result{Content: "a", Files: []message.File{file}, IsError: true}, nil
		}), tool.Result{Content: "a", Files: []message.File{file}, IsError: true}, nil},
		"a struct as JSON, not for HTML": {tool.Func("t", "", func(context.Context, struct{}) (map[string]string, error) { return map[string]string{"a": "<&>"}, nil }), tool.Result{Content: `{"a":"<&>"}`}, nil},
		"nil as nothing":                 {tool.Func("t", "", func(context.Context, struct{}) (any, error) { return nil, nil }), tool.Result{}, nil},
		"an error as it is":              {tool.Func("t", "", func(context.Context, struct{}) (string, error) { return "lost", boom }), tool.Result{}, boom},
		"a result that has an error too": {tool.Func("t", "", func(context.Context, struct{}) (tool.Result, error) { return tool.Result{Content: "so far"}, boom }), tool.Result{Content: "so far"}, boom},
	} {
		got, err := show(c.f)
		if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, c.err) {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestFuncPanicsOnAMistakeInTheProgram(t *testing.T) {
	panics := func(name, want string, f func()) {
		defer func() {
			if r := fmt.Sprint(recover()); !strings.Contains(r, "tool: Func t: ") || !strings.Contains(r, want) {
				t.Errorf("%s: %s", name, r)
			}
		}()
		f()
	}
	panics("a string", "JSON object", func() { tool.Func("t", "", func(context.Context, string) (string, error) { return "", nil }) })
	panics("a slice", "JSON object", func() { tool.Func("t", "", func(context.Context, []int) (string, error) { return "", nil }) })
	panics("a pointer", "JSON object", func() { tool.Func("t", "", func(context.Context, *search) (string, error) { return "", nil }) })
	panics("a channel", "", func() { tool.Func("t", "", func(context.Context, chan int) (string, error) { return "", nil }) })
	panics("a function in it", "", func() {
		tool.Func("t", "", func(context.Context, struct{ F func() }) (string, error) { return "", nil })
	})
	panics("a schema that is none", "schema", func() {
		tool.Func("t", "", func(context.Context, struct{}) (string, error) { return "", nil }, tool.WithSchema(json.RawMessage(`{"type":5}`)))
	})
}

func TestACallIsFoundInTheContext(t *testing.T) {
	none := tool.FromContext(t.Context())
	if none.ID != "" || none.Output == nil || none.Errors == nil {
		t.Errorf("%+v", none)
	}
	var out strings.Builder
	c := tool.FromContext(tool.WithCall(t.Context(), tool.Call{ID: "1", Name: "n", Key: "k", Output: &out}))
	if c.ID != "1" || c.Key != "k" || c.Output != &out || c.Errors == nil {
		t.Errorf("%+v", c)
	}
}

func TestAnnotationsSayWhatMayRunWhen(t *testing.T) {
	for name, c := range map[string]struct {
		a                      tool.Annotations
		concurrent, repeatable bool
	}{
		"one that says nothing":        {},
		"read-only":                    {tool.Annotations{ReadOnly: true}, true, true},
		"read-only but alone":          {tool.Annotations{ReadOnly: true, Sequential: true}, false, true},
		"idempotent":                   {tool.Annotations{Idempotent: true}, false, true},
		"destructive and open-worlded": {tool.Annotations{Destructive: true, OpenWorld: true}, false, false},
	} {
		if c.a.Concurrent() != c.concurrent || c.a.Repeatable() != c.repeatable {
			t.Errorf("%s: %v %v", name, c.a.Concurrent(), c.a.Repeatable())
		}
	}
	def := tool.Func("t", "", func(context.Context, struct{}) (string, error) { return "", nil },
		tool.ReadOnly, tool.Idempotent, tool.Destructive, tool.OpenWorld, tool.Sequential).Definition()
	if want := (tool.Annotations{ReadOnly: true, Idempotent: true, Destructive: true, OpenWorld: true, Sequential: true}); def.Annotations != want {
		t.Errorf("%+v", def.Annotations)
	}
}
