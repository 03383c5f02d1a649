package openai

import (
	"encoding/json"
	"testing"
)

// A schema that is sent as a strict one is closed, however deep: each of its objects has all of its properties required and no further ones, and there is no word in it that strict mode does not know.
func FuzzStrictSchema(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, `{"type":"object","properties":{},"additionalProperties":false,"$defs":{"x":{"type":"array","items":{"$ref":"#/$defs/x"}}}}`,
		`{"type":"object","additionalProperties":false,"properties":{"a":{"anyOf":[{"type":"null"},{"type":"object"}]}},"required":["a"]}`, `{"type":"object","type":"string"}`, `{"type":"object","additionalProperties":false,"required":5,"properties":null}`, `{"type":"object","additionalProperties":false,"properties":{"a":{"enum":[{"pattern":"x"}]}},"required":["a"]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !strictSchema(b) {
			return
		}
		var top map[string]any
		if err := json.Unmarshal(b, &top); err != nil || top["type"] != "object" {
			t.Fatalf("%q: %v", b, err)
		}
		var walk func(v any)
		walk = func(v any) {
			s, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("%q: %v is no schema", b, v)
			}
			properties, _ := s["properties"].(map[string]any)
			if s["type"] == "object" || properties != nil {
				if s["additionalProperties"] != false {
					t.Fatalf("%q: %v is open", b, s)
				}
				required, _ := s["required"].([]any)
				for name := range properties {
					found := false
					for _, r := range required {
						found = found || r == name
					}
					if !found {
						t.Fatalf("%q: %q is not required", b, name)
					}
				}
			}
			for name, v := range s {
				switch name {
				case "properties", "$defs", "definitions":
					for _, below := range v.(map[string]any) {
						walk(below)
					}
				case "items":
					walk(v)
				case "anyOf":
					for _, below := range v.([]any) {
						walk(below)
					}
				case "pattern", "minimum", "format", "oneOf", "allOf", "not", "default":
					t.Fatalf("%q: %s", b, name)
				}
			}
		}
		walk(any(top))
	})
}
