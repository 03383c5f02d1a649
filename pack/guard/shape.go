package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/schema"
)

// pattern refuses texts that a regular expression does not match, or that it matches.
type pattern struct {
	re   *regexp.Regexp
	want bool
}

func newRegex(p Params) (Rule, error) {
	r := p.Read()
	text := r.Text("pattern")
	rule := &pattern{want: r.Flag("expect_match", true)}
	if text == "" {
		r.Missing("pattern", "give a regular expression, such as ^[A-Z]")
	}
	var err error
	if rule.re, err = regexp.Compile(text); err != nil {
		r.fault("pattern", err.Error(), "write it in RE2 syntax, which has no lookaround and no backreferences")
	}
	return rule, r.Err()
}

func (p *pattern) Judge(_ context.Context, text string) (string, error) {
	switch p.re.MatchString(text) {
	case p.want:
		return "", nil
	case true:
		return fmt.Sprintf("it matches %s", p.re), nil
	}
	return fmt.Sprintf("it does not match %s", p.re), nil
}

// fields refuses texts that lack one of some fields: of a JSON object (dotted paths lead into it), or names that an ordinary text has to mention, in any case.
type fields struct{ names []string }

func newFields(p Params) (Rule, error) {
	r := p.Read()
	f := &fields{r.Texts("fields", "required_fields")}
	if len(f.names) == 0 {
		r.Missing("fields", "list the fields, such as [\"order_id\"]")
	}
	return f, r.Err()
}

func (f *fields) Judge(_ context.Context, text string) (string, error) {
	var object map[string]any
	has := func(name string) bool { return at(object, name) }
	if err := json.Unmarshal([]byte(unwrapped(text)), &object); err != nil || object == nil {
		mentions := folded(text)
		has = func(name string) bool { return strings.Contains(mentions, folded(name)) }
	}
	missing := slices.DeleteFunc(slices.Clone(f.names), has)
	if len(missing) == 0 {
		return "", nil
	}
	return "it lacks " + strings.Join(missing, ", "), nil
}

// at reports whether an object has a member, by its name or a dotted path.
func at(object map[string]any, path string) bool {
	if v, ok := object[path]; ok {
		return v != nil
	}
	for i, c := range path {
		if c == '.' {
			if below, ok := object[path[:i]].(map[string]any); ok && at(below, path[i+1:]) {
				return true
			}
		}
	}
	return false
}

func folded(text string) string {
	var b strings.Builder
	f := newFolder()
	for _, c := range text {
		f.keys(c, func(k rune) { b.WriteRune(k) })
	}
	return b.String()
}

// shape refuses texts that are no JSON of a schema.
type shape struct {
	schema           *schema.Schema
	wrapped, extract bool
}

func newSchema(p Params) (Rule, error) {
	r := p.Read()
	object := r.Object("schema")
	s := &shape{wrapped: r.Flag("allow_wrapped", false), extract: r.Flag("extract_json", false)}
	if object == nil {
		r.Missing("schema", "give a JSON Schema, such as {\"type\": \"object\"}")
		return s, r.Err()
	}
	text, err := json.Marshal(object)
	if err == nil {
		s.schema, err = schema.Compile(text)
	}
	if err != nil {
		r.fault("schema", "it is no JSON Schema: "+err.Error(), "correct it")
	}
	return s, r.Err()
}

func (s *shape) Judge(_ context.Context, text string) (string, error) {
	if s.wrapped {
		text = unwrapped(text)
	}
	if s.extract {
		text = extracted(text)
	}
	v, err := schema.Parse([]byte(text))
	if err != nil {
		return "it is no JSON", nil
	}
	faults, err := s.schema.Check(v, false)
	if err != nil || len(faults) == 0 {
		return "", err
	}
	var all []string
	for _, f := range faults[:min(5, len(faults))] {
		all = append(all, "/"+strings.Join(f.At, "/")+": "+f.Why())
	}
	slices.Sort(all)
	return "it does not fit the schema: " + strings.Join(all, "; "), nil
}

// unwrapped takes away a Markdown fence around the whole text.
func unwrapped(text string) string {
	t := strings.TrimSpace(text)
	inner, fenced := strings.CutPrefix(t, "```")
	if !fenced {
		return text
	}
	inner, fenced = strings.CutSuffix(inner, "```")
	info, inner, lines := strings.Cut(inner, "\n")
	if !fenced || !lines || strings.ContainsAny(info, "{[") {
		return text
	}
	return inner
}

// extracted is the first JSON object or list that stands in the text, or all of it when there is none. It tries at most 100 places.
func extracted(text string) string {
	at := 0
	for range 100 {
		i := strings.IndexAny(text[at:], "{[")
		if i < 0 {
			break
		}
		at += i
		var v json.RawMessage
		if json.NewDecoder(strings.NewReader(text[at:])).Decode(&v) == nil {
			return string(v)
		}
		at++
	}
	return text
}
