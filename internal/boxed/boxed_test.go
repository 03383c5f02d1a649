package boxed_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/boxed"
	"github.com/pawl-dev/pawl/internal/schema"
)

func TestASchemaInAnObjectAdmitsWhatItAdmittedAlone(t *testing.T) {
	for _, c := range []struct{ schema, good, bad string }{
		{`{"type":"string"}`, `"a"`, `1`},
		{`true`, `[1]`, ``},
		{`false`, ``, `1`},
		{`{"anyOf":[{"type":"object"},{"type":"null"}]}`, `null`, `1`},
		{`{"type":"array","items":{"$ref":"#"}}`, `[[],[[]]]`, `[1]`},
		{`{"$ref":"#/$defs/a b","$defs":{"a b":{"type":"integer"}}}`, `1`, `"x"`},
		{`{"type":"array","items":{"$ref":"#/$defs/n"},"$defs":{"n":{"properties":{"$ref":{"type":"string"},"next":{"$ref":"#/$defs/n"}},"required":["$ref"]}}}`, `[{"$ref":"#/x","next":{"$ref":"y"}}]`, `[{"next":{}}]`},
		{`{"type":"array","items":{"$ref":"#/definitions/n"},"definitions":{"n":{"anyOf":[{"type":"integer"},{"$ref":"#"}]}}}`, `[1,[2]]`, `["x"]`},
		{`{"type":"array","prefixItems":[{"type":"integer"},{"$ref":"#/prefixItems/0"}]}`, `[1,2]`, `[1,"x"]`},
		{`{"$id":"urn:x","$ref":"#/$defs/a","$defs":{"a":{"type":"integer"}}}`, `1`, `"x"`},
		{`{"type":"array","items":{"$ref":"#n"},"$defs":{"n":{"$anchor":"n","type":"integer"}}}`, `[1]`, `["x"]`},
	} {
		text, in := boxed.Schema(json.RawMessage(c.schema))
		if !in {
			t.Fatalf("%s is left as it is", c.schema)
		}
		s, err := schema.Compile(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for value, fits := range map[string]bool{c.good: true, c.bad: false} {
			if value == "" {
				continue
			}
			v, err := schema.Parse([]byte(`{"value":` + value + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if faults, err := s.Check(v, false); (len(faults) == 0) != fits || err != nil {
				t.Errorf("%s: %s: %v %v", text, value, faults, err)
			}
		}
	}
	if s, in := boxed.Schema(json.RawMessage(`{"type":"object"}`)); in || string(s) != `{"type":"object"}` {
		t.Errorf("%s", s)
	}
}

func TestTheValueOfAnAnswerWholeAndInPieces(t *testing.T) {
	for answer, want := range map[string]string{
		`{"value":"a"}`:             `"a"`,
		`{"value":12}`:              `12`,
		`{"value":[{"a":"}],\""}]}`: `[{"a":"}],\""}]`,
		` { "value" : {"a":[]} }`:   `{"a":[]}`,
		`{"value":"\\"}`:            `"\\"`,
	} {
		if got := boxed.Value(answer); got != want {
			t.Errorf("%s: %s, want %s", answer, got, want)
		}
		for step := 1; step <= len(answer); step++ {
			var o boxed.Opener
			var got strings.Builder
			for i := 0; i < len(answer); i += step {
				got.WriteString(o.Write(answer[i:min(i+step, len(answer))]))
			}
			if strings.TrimSpace(got.String()) != want {
				t.Errorf("%s in steps of %d: %s, want %s", answer, step, got.String(), want)
			}
		}
	}
	for _, other := range []string{`"a"`, `{"values":1}`, `{"va lue":1}`, `{}`, `[1]`, `{"value":`, `x`} {
		var o boxed.Opener
		if got := o.Write(other) + o.Write(`{"value":1}`); other != `{"value":` && got != "" || boxed.Value(other) != other {
			t.Errorf("%s: %q, %q", other, got, boxed.Value(other))
		}
	}
}
