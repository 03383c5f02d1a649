package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// foreign is a tool that is not made by Func, as those of other people's servers.
type foreign struct{ name, schema string }

func (f foreign) Definition() tool.Definition {
	return tool.Definition{Tool: model.Tool{Name: f.name, Schema: json.RawMessage(f.schema)}}
}

func (f foreign) Execute(context.Context, json.RawMessage) (tool.Result, error) {
	return tool.Result{Content: f.name}, nil
}

func set(t *testing.T, tools ...tool.Tool) tool.Set {
	t.Helper()
	s, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func named(names ...string) (tools []tool.Tool) {
	for _, n := range names {
		tools = append(tools, foreign{name: n})
	}
	return tools
}

func TestASetRefusesToolsThatProvidersWouldNot(t *testing.T) {
	for name, c := range map[string]struct {
		tools []tool.Tool
		want  *errdefs.Class
		text  string
	}{
		"two of one name":                    {named("a", "a"), errdefs.Conflict, `two tools are named "a" and "a"`},
		"two names that differ only in case": {named("Read", "x", "read"), errdefs.Conflict, `two tools are named "Read" and "read"`},
		"no name":                            {named(""), errdefs.Validation, "no name that providers take"},
		"a space":                            {named("a b"), errdefs.Validation, "no name that providers take"},
		"a letter of another alphabet":       {named("é"), errdefs.Validation, "no name that providers take"},
		"a line end":                         {named("a\n"), errdefs.Validation, "no name that providers take"},
		"65 letters":                         {named(strings.Repeat("a", 65)), errdefs.Validation, "no name that providers take"},
		"a schema that is not JSON":          {[]tool.Tool{foreign{"a", `{"type":`}}, errdefs.Validation, `the schema of a is not JSON: {"type":`},
	} {
		_, err := tool.NewSet(c.tools...)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := set(t, named("a", "A_b-9", strings.Repeat("z", 64))...); s.Len() != 3 {
		t.Error(s.Len())
	}
}

func TestASchemaThatDoesNotCompileMeansAnyObject(t *testing.T) {
	for name, schema := range map[string]string{
		"no schema":                "",
		"a wrong type":             `{"type":17}`,
		"a number out of range":    `{"properties":{"a":{"minimum":1e10000000}}}`,
		"a foreign regexp":         `{"properties":{"a":{"pattern":"(?!x)"}}}`,
		"an unknown dialect":       `{"$schema":"https://example.invalid/schema"}`,
		"an array":                 `[]`,
		"a reference without end":  `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#"}}}`,
		"a reference to nothing":   `{"$ref":"#/$defs/none"}`,
		"a reference to elsewhere": `{"properties":{"a":{"$ref":"other.json"}}}`,
	} {
		s := set(t, foreign{"t", schema})
		if got, err := s.Check(message.ToolCall{Name: "t", Input: `{"a":[1]}`}); err != nil || got != `{"a":[1]}` {
			t.Errorf("%s: %s %v", name, got, err)
		}
		for _, input := range []string{`[]`, `"a"`, `{`, ``} {
			if _, err := s.Check(message.ToolCall{Name: "t", Input: input}); !errors.Is(err, errdefs.Validation) {
				t.Errorf("%s takes %s: %v", name, input, err)
			}
		}
	}
}

func TestAForeignSchemaIsChecked(t *testing.T) {
	for name, schema := range map[string]string{
		"of today":        `{"type":"object","required":["a"]}`,
		"of draft 7":      `{"$schema":"http://json-schema.org/draft-07/schema#","required":["a"]}`,
		"with $defs":      `{"$ref":"#/$defs/x","$defs":{"x":{"required":["a"]}}}`,
		"false of itself": `false`,
	} {
		s := set(t, foreign{"t", schema})
		if _, err := s.Check(message.ToolCall{Name: "t", Input: `{}`}); !errors.Is(err, errdefs.Validation) || !strings.HasPrefix(err.Error(), "t: /: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAReferenceIsNeverLoaded(t *testing.T) {
	asked := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked = true
		fmt.Fprint(w, `{"required":["a"]}`)
	}))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(file, []byte(`{"required":["a"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{srv.URL + "/s.json", "file://" + file, file, "/etc/passwd", "../../../../../../" + file} {
		for _, schema := range []string{`{"$ref":"` + ref + `"}`, `{"$schema":"` + ref + `"}`, `{"properties":{"a":{"$dynamicRef":"` + ref + `"}}}`} {
			s := set(t, foreign{"t", schema})
			if _, err := s.Check(message.ToolCall{Name: "t", Input: `{}`}); err != nil {
				t.Errorf("%s was followed: %v", schema, err)
			}
		}
	}
	if asked {
		t.Error("the server was asked")
	}
	defer func() {
		if r := recover(); !strings.Contains(fmt.Sprint(r), "only references inside the schema") {
			t.Error(r)
		}
	}()
	tool.Func("t", "", func(context.Context, struct{}) (string, error) { return "", nil }, tool.WithSchema(json.RawMessage(`{"$ref":"file://`+file+`"}`)))
}

func TestANameInAnotherCaseIsFound(t *testing.T) {
	s := set(t, named("read", "Glob", "ask_user")...)
	for name, want := range map[string]string{"read": "read", "Read": "read", "READ": "read", "glob": "Glob", "Ask_User": "ask_user", "ask-user": "", "": ""} {
		got, def, ok := s.Lookup(name)
		if ok != (want != "") || ok && (def.Name != want || got.Definition().Name != want) {
			t.Errorf("%s: %v %v", name, def.Name, ok)
		}
		if ok && string(def.Schema) != `{"type":"object"}` {
			t.Errorf("%s: a tool without a schema takes an object: %s", name, def.Schema)
		}
	}
}

func TestCheckGivesTheInputAsTheToolIsToGetIt(t *testing.T) {
	f, _ := spy(tool.WithAliases(map[string]string{"q": "query"}))
	s := set(t, f)
	for name, c := range map[string]struct{ call, input, want, err string }{
		"as it was":               {"search", ` {"query": "a"}`, ` {"query": "a"}`, ""},
		"with canonical names":    {"search", `{"q":"<a>"}`, `{"query":"<a>"}`, ""},
		"for a name in any case":  {"Search", `{"q":"a"}`, `{"query":"a"}`, ""},
		"not with both names":     {"search", `{"q":"a","query":"b"}`, "", `search: "q" and "query" are the same`},
		"not when it is wrong":    {"search", `{"q":1}`, "", "search: /query: got number, want string"},
		"not for an unknown tool": {"serach", `{}`, "", `there is no tool "serach"; did you mean search?`},
	} {
		got, err := s.Check(message.ToolCall{Name: c.call, Input: c.input})
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

func TestAnUnknownNameIsAnsweredWithTheNearest(t *testing.T) {
	s := set(t, named("write", "read", "edit", "grep", "web_search")...)
	for name, c := range map[string]struct {
		name    string
		allowed func(string) bool
		want    string
	}{
		"a typing error":            {"raed", nil, `there is no tool "raed"; did you mean read?`},
		"a longer name":             {"read_file", nil, `there is no tool "read_file"; did you mean read?`},
		"a shorter name":            {"Search", nil, `there is no tool "Search"; did you mean web_search?`},
		"nothing near":              {"kubectl", nil, `there is no tool "kubectl"; there are edit, grep, read, web_search, write`},
		"only what is allowed":      {"raed", func(n string) bool { return n == "grep" }, `there is no tool "raed"; there are grep`},
		"nothing allowed":           {"raed", func(string) bool { return false }, `there is no tool "raed": there are no tools`},
		"a name longer than any is": {strings.Repeat("x", 10_000), nil, "there are edit, grep"},
	} {
		err := s.Unknown(c.name, c.allowed)
		if !errors.Is(err, errdefs.NotFound) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestModelsAreToldTheToolsInAStableOrder(t *testing.T) {
	names := []string{"z", "a", "m", "B"}
	s := set(t, named(names...)...)
	var got []string
	for _, m := range s.Models(nil) {
		got = append(got, m.Name)
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Error(diff)
	}
	if a, b := s.Models(nil), s.Models(nil); &a[0] != &b[0] {
		t.Error("another slice at the second call")
	}
	some := s.Models(func(n string) bool { return n == "m" || n == "z" })
	if len(some) != 2 || some[0].Name != "z" || some[1].Name != "m" {
		t.Error(some)
	}
}

func TestTheZeroSetIsEmpty(t *testing.T) {
	var s tool.Set
	if _, _, ok := s.Lookup("a"); ok || s.Len() != 0 || len(s.Models(nil)) != 0 {
		t.Error("something in nothing")
	}
	if _, err := s.Check(message.ToolCall{Name: "a", Input: `{}`}); !errors.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
}

func TestASetServesManyAtOnce(t *testing.T) {
	f, _ := spy(tool.WithAliases(map[string]string{"q": "query"}))
	s := set(t, append(named("a", "b"), f)...)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if got, err := s.Check(message.ToolCall{Name: "Search", Input: `{"q":"x"}`}); err != nil || got != `{"query":"x"}` {
					t.Error(got, err)
				}
				if _, err := s.Check(message.ToolCall{Name: "search", Input: `{"limit":""}`}); err == nil {
					t.Error("no error")
				}
				_, _, _ = s.Lookup("A")
				_ = s.Models(nil)
				_ = s.Unknown("c", nil)
			}
		})
	}
	wg.Wait()
}

func FuzzCheckNeverPanics(f *testing.F) {
	f.Add(`{"q":"a"}`, `{"type":"object"}`)
	f.Add(`{"a":[1e999]}`, `{"properties":{"a":{"items":{"multipleOf":0.1}}}}`)
	f.Add("{\xff}", `{"$ref":"#"}`)
	f.Fuzz(func(t *testing.T, input, schema string) {
		s, err := tool.NewSet(foreign{"t", schema})
		if err != nil {
			return
		}
		_, _ = s.Check(message.ToolCall{Name: "t", Input: input})
		own, _ := spy(tool.WithAliases(map[string]string{"q": "query"}))
		_, _ = own.Execute(t.Context(), json.RawMessage(input))
	})
}
