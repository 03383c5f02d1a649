package pack_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/pack"
)

// packWith is a small pack with one prompt, c, of these members.
func packWith(t *testing.T, prompt, top map[string]any) []byte {
	t.Helper()
	p := map[string]any{"id": "c", "name": "C", "version": "1.0.0", "system_template": "x"}
	for k, v := range prompt {
		p[k] = v
	}
	m := map[string]any{
		"id": "t", "name": "T", "version": "1.0.0", "template_engine": map[string]any{"version": "v1", "syntax": "{{variable}}"},
		"prompts": map[string]any{"c": p},
	}
	for k, v := range top {
		m[k] = v
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A small file that would take hours to check is refused instead.
func TestAFileThatMultipliesIsRefusedInTime(t *testing.T) {
	fragments := map[string]any{"f020000": "x"}
	for i := range 20000 {
		fragments[fmt.Sprintf("f%06d", i)] = fmt.Sprintf("{{fragments.f%06d}}", i+1)
	}
	defs := map[string]any{"a0": map[string]any{"type": "object"}}
	for i := 1; i <= 60; i++ {
		below := map[string]any{"$ref": fmt.Sprintf("#/$defs/a%d", i-1)}
		defs[fmt.Sprintf("a%d", i)] = map[string]any{"allOf": []any{below, below}}
	}
	schema := map[string]any{"type": "object", "$defs": defs, "$ref": "#/$defs/a60"}
	words := []any{}
	for i := range 9000 { // each of these letters is 18 others, by Unicode's tables
		words = append(words, fmt.Sprint(i)+strings.Repeat("\ufdfa", 190))
	}
	validator := func(kind string, params map[string]any) map[string]any {
		return map[string]any{"validators": []any{map[string]any{"type": kind, "params": params}}}
	}
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"fragments in fragments": {packWith(t, map[string]any{"system_template": "{{fragments.f000000}}"}, map[string]any{"fragments": fragments}), "nested more than 100 deep"},
		"a tool's schema":        {packWith(t, nil, map[string]any{"tools": map[string]any{"a": map[string]any{"name": "a", "description": "A.", "parameters": schema}}}), "it checks one value by more than"},
		"a validator's schema":   {packWith(t, validator("json_schema", map[string]any{"schema": schema}), nil), "it checks one value by more than"},
		"words":                  {packWith(t, validator("banned_words", map[string]any{"words": words}), nil), "together they have more than"},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan []pack.Problem, 1)
			go func() {
				problems, _ := pack.Validate(tc.data)
				done <- problems
			}()
			select {
			case problems := <-done:
				if len(problems) == 0 || !strings.Contains(fmt.Sprint(problems), tc.want) {
					t.Errorf("got %v, want %q", problems[:min(3, len(problems))], tc.want)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it takes too long")
			}
		})
	}
}

func TestAPointerToNothingIsNoValue(t *testing.T) {
	p, err := pack.Parse(packWith(t, map[string]any{"system_template": "At {{when}}.", "variables": []any{map[string]any{"name": "when", "type": "string", "required": false, "default": "noon"}}}, nil))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Render("c", map[string]any{"when": (*time.Time)(nil)}); got != "At noon." || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAFilesTypeIsReadInAnyCase(t *testing.T) {
	p, err := pack.Parse(packWith(t, map[string]any{"media": map[string]any{
		"enabled": true, "supported_types": []any{"image", "document"}, "image": map[string]any{"allowed_formats": []any{"png"}}, "document": map[string]any{"max_size_mb": 50},
	}}, nil))
	if err != nil {
		t.Fatal(err)
	}
	for mime, admitted := range map[string]bool{"image/gif": false, "Image/GIF": false, " image/gif": false, "IMAGE/png": true, " image/png ": true} {
		if err := p.Prompts["c"].Admit(message.New(message.RoleUser, message.File{MIME: mime, Data: "x"})); (err == nil) != admitted {
			t.Errorf("%q: %v", mime, err)
		}
	}
}
