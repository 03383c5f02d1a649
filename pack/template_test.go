package pack_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/pack"
)

// prompt is a prompt with a template and variables (JSON objects).
func prompt(t testing.TB, template string, variables ...string) *pack.Prompt {
	t.Helper()
	text, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, fmt.Sprintf(`"system_template": %s, "variables": [%s]`, text, strings.Join(variables, ", ")))
}

type vars = map[string]any

func Example() {
	p, err := pack.Parse([]byte(`{
		"id": "support", "name": "Support", "version": "1.0.0",
		"template_engine": {"version": "v1", "syntax": "{{variable}}"},
		"fragments": {"tone": "Be kind."},
		"prompts": {"chat": {
			"id": "chat", "name": "Chat", "version": "1.0.0",
			"system_template": "You help {{name}} of {{user.city}}. {{fragments.tone}}",
			"variables": [{"name": "name", "type": "string", "required": true}]
		}}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Render("chat", map[string]any{"name": "Ada", "user": map[string]any{"city": "London"}}))
	fmt.Println(p.Render("chat", map[string]any{"names": "Ada"}))
	// Output:
	// You help Ada of London. Be kind. <nil>
	//  pack: render chat: name is required and has no value: did you mean names?; {{user.city}} has no value: set user
}

func TestWhatStandsInPlaceOfAPlaceholder(t *testing.T) {
	type person struct {
		Name string `json:"name"`
		Born time.Time
	}
	all := vars{
		"s": "text", "i": 42, "big": int64(1) << 60, "f": 0.5, "whole": 3.0, "huge": 1e30, "b": true, "none": nil, "empty": "",
		"list": []any{"a", 2.5, map[string]any{"k": "<v>"}}, "strings": []string{"x", "y"}, "ints": []int{1, 2}, "m": map[string]int{"one": 1, "a-b": 2, "0": 3}, "p": person{"Ada", time.Date(1815, 12, 10, 0, 0, 0, 0, time.UTC)},
		"when": time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), "pp": &person{Name: "Bob"}, "u8": uint8(7), "f32": float32(0.25),
	}
	for template, want := range map[string]string{
		"plain":                       "plain",
		"{{s}}{{s}}":                  "texttext",
		"{{ s }}, {{\ts\n}}":          "text, text",
		"{{i}} {{big}} {{u8}}":        "42 1152921504606846976 7",
		"{{f}} {{whole}} {{huge}}":    "0.5 3 1e+30",
		"{{f32}}":                     "0.25",
		"{{b}}":                       "true",
		"[{{empty}}]":                 "[]",
		"{{list}}":                    `["a",2.5,{"k":"<v>"}]`,
		"{{list[0]}} {{list[2].k}}":   "a <v>",
		"{{list.1}} {{ list[1] }}":    "2.5 2.5",
		"{{strings[1]}} {{strings}}":  `y ["x","y"]`,
		"{{ints[0]}}":                 "1",
		"{{m.one}} {{m.a-b}} {{m.0}}": "1 2 3",
		"{{p.name}} {{p.Born}}":       "Ada 1815-12-10T00:00:00Z",
		"{{pp.name}}":                 "Bob",
		"{{when}}":                    "2026-01-31T12:00:00Z",
		"a } b }} c { d":              "a } b }} c { d",
		`{"a": {"b": {{i}}}}`:         `{"a": {"b": 42}}`,
		"{{s}}}":                      "text}",
		"ä{{s}}日":                     "ätext日",
	} {
		if got, err := prompt(t, template).Render("", all); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", template, got, err, want)
		}
	}
}

func TestAPlaceThatNothingFillsIsAnErrorThatNamesIt(t *testing.T) {
	for _, c := range []struct {
		template string
		vars     vars
		want     string
	}{
		{"{{naem}}", vars{"name": "Ada"}, "{{naem}} has no value: did you mean name?"},
		{"{{x}}", vars{}, "{{x}} has no value: set x"},
		{"{{x}}", vars{"x": nil}, "{{x}} has no value: set x"},
		{"{{ x.y }}", vars{"x": vars{"yy": 1}}, "{{x.y}} has no value: there is no y in it: did you mean yy?"},
		{"{{x.y}}", vars{"x": "text"}, "{{x.y}} has no value: there is no y in a string"},
		{"{{x[2]}}", vars{"x": []int{1, 2}}, "{{x[2]}} has no value: its list has 2 elements, and no 2"},
		{"{{x.y}}", vars{"x": []int{1}}, "{{x.y}} has no value: its list has 1 elements, and no y"},
		{"{{x[0]}}", vars{"x": vars{"0": "a"}}, ""},
		{"{{a}} {{b}} {{a}}", vars{}, "{{a}} has no value: set a; {{b}} has no value: set b"},
		{"{{x}}", vars{"x": func() {}}, "x: its value can't be written"},
		{"{{x}}", vars{"x": math.NaN()}, "x: NaN is no number that can be written"},
	} {
		got, err := prompt(t, c.template).Render("", c.vars)
		if c.want == "" {
			if err != nil {
				t.Errorf("%q: %v", c.template, err)
			}
			continue
		}
		if got != "" || err == nil || !errors.Is(err, errdefs.Validation) || !strings.HasSuffix(strings.SplitAfter(err.Error(), "render chat: ")[1], c.want) && !strings.Contains(err.Error(), c.want+": json") {
			t.Errorf("%q: %q, %v, want %s", c.template, got, err, c.want)
		}
	}
}

func TestVariablesAreWhatTheyAreDeclaredToBe(t *testing.T) {
	v := func(more string) string { return `{"name": "v", "required": false, ` + more + `}` }
	for _, c := range []struct {
		variable string
		good     []any
		bad      map[string]any // by what is said
	}{
		{v(`"type": "string"`), []any{"", "x", nil}, map[string]any{"want a string, got a number": 5, "want a string, got true or false": true, "want a string, got a list": []string{"a"}}},
		{v(`"type": "number"`), []any{5, 5.5, int64(7), json.Number("3")}, map[string]any{"want a number, got a string": "not-a-number", "want a number, got an object": vars{}}},
		{v(`"type": "integer"`), []any{5, 5.0}, map[string]any{"want an integer, got a number": 5.5}},
		{v(`"type": "boolean"`), []any{true}, map[string]any{"want true or false, got a string": "true"}},
		{v(`"type": "array"`), []any{[]any{}, []int{1}}, map[string]any{"want a list, got a string": "a,b"}},
		{v(`"type": "object"`), []any{vars{}, struct{ A int }{1}}, map[string]any{"want an object, got a list": []any{}}},
		{v(`"type": "date"`), []any{"x", 5, true}, nil},
		{v(`"type": "string", "validation": {"pattern": "^[a-z]+$", "min_length": 2, "max_length": 3, "enum": ["ab", "äöü", "abc", "a1"]}`), []any{"ab", "abc"}, map[string]any{
			"it has 1 characters: want 2 or more": "a", "it has 4 characters: want 3 or less": "abcd", "it does not match ^[a-z]+$": "a1", `it is none of "ab", "äöü", "abc", "a1"`: "xy",
		}},
		{v(`"type": "string", "validation": {"max_length": 3}`), []any{"äöü"}, nil},
		{v(`"type": "number", "validation": {"minimum": 1, "maximum": 5, "enum": [1, 2.5, 5]}`), []any{1, 2.5, 5.0}, map[string]any{"want 1 or more": 0.5, "want 5 or less": 6, "it is none of 1, 2.5, 5": 2}},
		{v(`"type": "array", "validation": {"enum": [["a", 1], []]}`), []any{[]any{"a", 1}, []string{}}, map[string]any{`it is none of ["a",1], []`: []any{"a"}}},
	} {
		p := prompt(t, "[{{v}}]", c.variable)
		for _, value := range c.good {
			if _, err := p.Render("", vars{"v": value}); err != nil {
				t.Errorf("%s: %v: %v", c.variable, value, err)
			}
		}
		for want, value := range c.bad {
			if got, err := p.Render("", vars{"v": value}); got != "" || err == nil || !strings.HasSuffix(err.Error(), "v: "+want) {
				t.Errorf("%s: %v: %q, %v, want %s", c.variable, value, got, err, want)
			}
		}
	}
}

func TestDefaultsAndRequired(t *testing.T) {
	p := prompt(t, "{{a}}|{{b}}|{{c}}|{{d.e}}|{{f[1]}}", `{"name": "a", "type": "string", "required": true}`, `{"name": "b", "type": "number", "required": false, "default": 1.50}`,
		`{"name": "c", "type": "string", "required": false}`, `{"name": "d", "type": "object", "required": false}`, `{"name": "f", "type": "array", "required": false, "default": [1, "two"]}`)
	for want, v := range map[string]vars{
		"x|1.5|||two":     {"a": "x"},
		"|2|c|5|2":        {"a": "", "b": 2, "c": "c", "d": vars{"e": 5}, "f": []int{1, 2}},
		"y|1.5|||two":     {"a": "y", "b": nil},
		"z|1.5|more||two": {"a": "z", "c": "more", "unknown": "left alone"},
	} {
		if got, err := p.Render("", v); got != want || err != nil {
			t.Errorf("%v: %q, %v, want %q", v, got, err, want)
		}
	}
	if _, err := p.Render("", vars{"A": "x"}); err == nil || !strings.Contains(err.Error(), "a is required and has no value: did you mean A?") {
		t.Error(err)
	}
	if _, err := p.Render("", nil); err == nil || !strings.HasSuffix(err.Error(), "a is required and has no value: set it") {
		t.Error(err)
	}
	// A required variable is one even where the template does not have it.
	if _, err := prompt(t, "x", `{"name": "a", "type": "string", "required": true}`).Render("", nil); err == nil {
		t.Error("nothing is missing")
	}
}

func TestAValueIsNotRepeatedInAnError(t *testing.T) {
	p := prompt(t, "{{token}}", `{"name": "token", "type": "string", "required": true, "validation": {"pattern": "^tok-", "enum": ["tok-a"]}}`)
	for _, value := range []any{"S3CR3T", "tok-S3CR3T", []string{"S3CR3T"}} {
		if _, err := p.Render("", vars{"token": value}); err == nil || strings.Contains(err.Error(), "S3CR3T") {
			t.Error(err)
		}
	}
}

func TestFragmentsAreAPartOfTheTemplate(t *testing.T) {
	data := strings.Replace(string(minimal(`"system_template": "{{fragments.a}} {{ fragments.a }} {{fragments.with-hyphen.and.points}}"`)), `"prompts"`,
		`"fragments": {"a": "A {{x}} {{fragments.b}}", "b": "B {{x}}", "with-hyphen.and.points": "!"}, "prompts"`, 1)
	p, err := pack.Parse([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Render("chat", vars{"x": "{{fragments.b}}", "fragments": "no"}); got != "A {{fragments.b}} B {{fragments.b}} A {{fragments.b}} B {{fragments.b}} !" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Whatever the template and the values are: no panic; what is rendered has the values as they are, and none of the template's places.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"{{v}}", "a {{ v }} b", "{{v.a[0]}}", "{{fragments.f}}", "{{v", "}}{{v}}{{", "{{{v}}}", "{{v}}}}", "{{#if v}}x{{/if}}", "{{v.}}{{v[}}{{v[1}}"} {
		f.Add(s, "{{v}}")
	}
	f.Fuzz(func(t *testing.T, template, v string) {
		text, err := json.Marshal(template)
		if err != nil {
			return
		}
		data := strings.Replace(string(minimal(`"system_template": `+string(text))), `"prompts"`, `"fragments": {"f": "[{{v}}]"}, "prompts"`, 1)
		p, err := pack.Parse([]byte(data))
		if err != nil {
			return
		}
		got, err := p.Render("chat", vars{"v": v})
		if err != nil {
			if got != "" || !errors.Is(err, errdefs.Validation) {
				t.Errorf("%q, %v", got, err)
			}
			return
		}
		parts := strings.Split(template, "{{")
		want := parts[0]
		for _, part := range parts[1:] {
			inner, rest, closed := strings.Cut(part, "}}")
			switch strings.TrimSpace(inner) {
			case "v":
				want += v + rest
			case "fragments.f":
				want += "[" + v + "]" + rest
			default:
				t.Fatalf("%q was rendered: %q", template, got)
			}
			if !closed {
				t.Fatalf("%q was rendered: %q", template, got)
			}
		}
		if want = strings.ToValidUTF8(want, "\uFFFD"); strings.ToValidUTF8(got, "\uFFFD") != want && strings.ToValidUTF8(template, "") == template {
			t.Errorf("%q with %q: %q, want %q", template, v, got, want)
		}
	})
}

// Whatever the bytes are: no panic; either a pack, or problems with path and reason and a place in the text; and a pack that loads is one by the schema.
func FuzzLoader(f *testing.F) {
	f.Add(minimal(`"system_template": "x"`))
	f.Add(minimal(`"system_template": "{{a}}", "validators": [{"type": "regex", "params": {"pattern": "("}}], "tool_policy": {"max_rounds": 1e3}`))
	f.Add([]byte(`{"id": "a", "id": 1e999}`))
	f.Add([]byte("{\n// no\n}"))
	f.Add([]byte(`{"skills": [""], "agents": {"entry": 1}, "workflow": {"states": {"a": {}}}, "prompts": {"a": null, "b": []}, "tools": {"t": {"parameters": {"required": [1]}}}}`))
	ours := compile(f, pack.Schema())
	f.Fuzz(func(t *testing.T, data []byte) {
		problems, warnings := pack.Validate(data)
		for _, p := range append(problems, warnings...) {
			if p.Path == "" || p.Reason == "" || p.Line < 1 || p.Line > 1+strings.Count(string(data), "\n") || p.Column < 1 || strings.Contains(p.String(), "\n") {
				t.Errorf("%+v", p)
			}
		}
		p, err := pack.Parse(data)
		if (err == nil) != (len(problems) == 0) {
			t.Fatalf("%v, %v", err, problems)
		}
		if err != nil {
			return
		}
		doc := value(t, data)
		delete(doc.(map[string]any), "compositions")
		if err := ours.Validate(doc); err != nil && p.Agents == nil {
			t.Errorf("%q is loaded, and the schema refuses it: %v", data, err)
		}
		for name := range p.Prompts {
			_, _ = p.Render(name, nil)
		}
	})
}
