package pack

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/errdefs"
)

// Render puts vars into a prompt's template, once: what a value has in braces stays as it is. See [Prompt.Render].
func (p *Pack) Render(prompt string, vars map[string]any) (string, error) {
	pr, err := p.Prompt(prompt)
	if err != nil {
		return "", err
	}
	return pr.Render("", vars)
}

// Render makes the system prompt for a model (its name, with or without provider/; "" for no one in particular), of the pack's template and its override for that model.
//
// Vars are values by name. One that is not there, or nil, has its default, and without one is the empty text. An error, errdefs.Validation, names everything at once: required variables without
// a value, places in the template that nothing fills, values that are not of their variable's type or break its validation. Variables that the template doesn't use, and the pack doesn't know, are
// left alone. A value that is no text stands there as JSON has it.
func (p *Prompt) Render(model string, vars map[string]any) (string, error) {
	t := p.template
	if name, ok := p.override(model); ok && p.overrides[name] != nil {
		t = p.overrides[name]
	}
	var wrong []error
	values := map[string]any{}
	for name, v := range vars {
		v, err := plain(v)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
			v = absent{}
		}
		if v != nil {
			values[name] = v
		}
	}
	for _, v := range p.Variables {
		value, given := values[v.Name]
		switch {
		case given:
			if err := v.check(value); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", v.Name, err))
			}
		case v.Default != nil:
			values[v.Name] = v.Default
		default:
			if v.Required {
				wrong = append(wrong, fmt.Errorf("%s is required and has no value: %s", v.Name, meant(v.Name, unknown(vars, p.Variables), "set it")))
			}
			values[v.Name] = absent{}
		}
	}
	var b strings.Builder
	for _, piece := range t {
		if piece.name == "" {
			b.WriteString(piece.text)
			continue
		}
		value, ok := values[piece.name]
		if !ok {
			wrong = append(wrong, fmt.Errorf("{{%s}} has no value: %s", piece.text, meant(piece.name, slices.Sorted(maps.Keys(values)), "set "+piece.name)))
			continue
		}
		at, err := follow(value, piece.path)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("{{%s}} has no value: %w", piece.text, err))
			continue
		}
		b.WriteString(text(at))
	}
	if len(wrong) > 0 {
		return "", errdefs.Validation.Errorf("pack: render %s: %w", p.ID, &renderError{wrong})
	}
	return b.String(), nil
}

// VariableNames are the names of all variables that a value can be given for: those that the prompt declares, in their order, and behind them those that only its templates have, or its overrides for models.
func (p *Prompt) VariableNames() []string {
	names := variables(p)
	of := func(t template) {
		for _, piece := range t {
			if piece.name != "" && !slices.Contains(names, piece.name) {
				names = append(names, piece.name)
			}
		}
	}
	of(p.template)
	for _, model := range slices.Sorted(maps.Keys(p.overrides)) {
		of(p.overrides[model])
	}
	return names
}

// renderError is everything that is wrong, each once, in one line.
type renderError struct{ all []error }

func (e *renderError) Error() string {
	var texts []string
	for _, err := range e.all {
		if !slices.Contains(texts, err.Error()) {
			texts = append(texts, err.Error())
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}

// unknown are the names that are set and not declared: one of them may be a variable's, misspelt.
func unknown(vars map[string]any, declared []Variable) []string {
	var out []string
	for name := range vars {
		if !slices.ContainsFunc(declared, func(v Variable) bool { return v.Name == name }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// absent is the value of a variable that has none, and of one whose own can't be used: it is empty, wherever a place leads into it.
type absent struct{}

// types are those of variables; values of another are not checked.
var types = []string{"string", "number", "integer", "boolean", "array", "object"}

// check says what is wrong with a value. It does not repeat it: a value may be a secret.
func (v Variable) check(value any) error {
	if _, ok := value.(absent); ok {
		return nil
	}
	number, isNumber := numeric(value)
	s, isText := value.(string)
	fits := true
	switch v.Type {
	case "string":
		fits = isText
	case "number":
		fits = isNumber
	case "integer":
		fits = isNumber && number == math.Trunc(number)
	case "boolean":
		_, fits = value.(bool)
	case "array":
		_, fits = value.([]any)
	case "object":
		_, fits = value.(map[string]any)
	}
	if !fits {
		return fmt.Errorf("want %s, got %s", article(v.Type), article(typeOf(value)))
	}
	rules := v.Validation
	if rules == nil {
		return nil
	}
	if isText {
		n := utf8.RuneCountInString(s)
		switch {
		case rules.MinLength != nil && n < *rules.MinLength:
			return fmt.Errorf("it has %d characters: want %d or more", n, *rules.MinLength)
		case rules.MaxLength != nil && n > *rules.MaxLength:
			return fmt.Errorf("it has %d characters: want %d or less", n, *rules.MaxLength)
		}
		if v.pattern != nil && !v.pattern.MatchString(s) {
			return fmt.Errorf("it does not match %s", v.pattern)
		}
	}
	if isNumber {
		switch {
		case rules.Minimum != nil && number < *rules.Minimum:
			return fmt.Errorf("want %v or more", *rules.Minimum)
		case rules.Maximum != nil && number > *rules.Maximum:
			return fmt.Errorf("want %v or less", *rules.Maximum)
		}
	}
	if rules.Enum != nil && !slices.ContainsFunc(rules.Enum, func(e any) bool { return equal(e, value) }) {
		var all []string
		for _, e := range rules.Enum {
			all = append(all, quoted(e))
		}
		return fmt.Errorf("it is none of %s", strings.Join(all[:min(20, len(all))], ", "))
	}
	return nil
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

func equal(a, b any) bool {
	if x, ok := numeric(a); ok {
		y, ok := numeric(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

func numeric(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// plain gives a value of any Go type as JSON would have it: string, bool, int, float64, []any, map[string]any or nil.
func plain(v any) (any, error) {
	switch v := v.(type) {
	case nil, string, bool, int:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v is no number that can be written", v)
		}
		return v, nil
	case encoding.TextMarshaler:
		if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && p.IsNil() { // as JSON has it; its method may not bear it
			return nil, nil //nolint:nilnil // no value, and that is right
		}
		b, err := v.MarshalText()
		return string(b), err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("its value can't be written: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	return numbers(out), nil
}

// numbers makes an int of each integer, and a float64 of each other number.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.Atoi(v.String()); err == nil {
			return i
		}
		f, _ := v.Float64() // json has seen that it is one
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = numbers(v[name])
		}
	}
	return v
}

// follow leads into a value.
func follow(value any, path []any) (any, error) {
	if _, ok := value.(absent); ok {
		return nil, nil //nolint:nilnil // nothing, and that is right
	}
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			name := fmt.Sprint(step)
			below, ok := v[name]
			if !ok {
				return nil, fmt.Errorf("there is no %s in it: %s", name, meant(name, slices.Sorted(maps.Keys(v)), "set it"))
			}
			value = below
		case []any:
			i, ok := step.(int)
			if name, is := step.(string); is {
				n, err := strconv.Atoi(name)
				i, ok = n, err == nil
			}
			if !ok || i < 0 || i >= len(v) {
				return nil, fmt.Errorf("its list has %d elements, and no %v", len(v), step)
			}
			value = v[i]
		default:
			return nil, fmt.Errorf("there is no %v in %s", step, article(typeOf(value)))
		}
	}
	return value, nil
}

// text is a value as it stands in a prompt.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return ""
	}
	return quoted(v)
}

// quoted is a value as JSON.
func quoted(v any) string {
	if f, ok := v.(float64); ok && math.Abs(f) < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
