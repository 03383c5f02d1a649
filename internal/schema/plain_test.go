package schema_test

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/schema"
)

var plainSchemas = []string{
	`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"},"c":{"type":["null","number"]},"d":{"type":"boolean"}},"required":["a"],"additionalProperties":false}`,
	`{"type":"object","description":"x","properties":{"a":{"type":"array","items":{"type":"string","enum":["x","y é"]}},"o":{"type":"object","properties":{"n":{"type":["integer","string"],"default":3}},"required":["n"]}}}`,
	`{"type":"object","properties":{"a":{"type":["null","string"],"enum":["x"]},"b":{"type":"string","minLength":2}}}`,
	`{"type":["object","null"],"properties":{},"additionalProperties":true}`,
	`{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}}}`,
	`{"type":"object","properties":{"a":{"type":"string"}},"required":["z"]}`,
	`{"type":"object","properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string"}}}`,
}

var plainValues = []string{
	`{"a":"x"}`, `{"a":"x","b":12,"c":null,"d":true}`, `{"a":"x","b":-1.0,"c":1.5}`, `{"b":1}`, `{"a":1}`, `{"a":"x","e":1}`, `{"a":["x","y \u00e9"],"o":{"n":3}}`, `{"a":["z"]}`, `{"o":{}}`, `{"o":{"n":"s"}}`,
	`{"a":null}`, `{}`, ` {} `, `{"a":"x"} x`, `{"a":"x",}`, `null`, `"x"`, `12`, `x`, ``, `{"a":"x","b":1e2}`, `{"a":"x","b":1e999999999}`, `{"a":"x","a":1}`, `{"\u0061":"x"}`, `{"a":"\xff"}`, "{\"a\":\"\xff\"}", `{"a":"x","c":-0.5}`,
	`{"a":"x","b":123456789012345678901234567890}`, `{"a":[[]]}`, `{"a":"xy","b":"x"}`, `{"z":1}`, `{"a":"x","c":01}`,
}

// fits asks the validator.
func fits(s *schema.Schema, value string) bool {
	v, err := schema.Parse([]byte(value))
	if err != nil {
		return false
	}
	faults, err := s.Check(v, false)
	_, object := v.(map[string]any)
	return len(faults) == 0 && err == nil && object
}

func TestWhatIsAcceptedAtASightIsWhatTheValidatorAccepts(t *testing.T) {
	accepted := 0
	for _, text := range plainSchemas {
		s, err := schema.Compile([]byte(text))
		if err != nil {
			t.Fatal(text, err)
		}
		for _, value := range plainValues {
			if s.Accepts([]byte(value)) {
				if accepted++; !fits(s, value) {
					t.Errorf("%s accepts %s", text, value)
				}
			}
		}
	}
	if accepted < 9 {
		t.Errorf("%d were accepted: these are the ordinary ones", accepted)
	}
	for _, text := range plainSchemas[4:] {
		s, err := schema.Compile([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if s.Accepts([]byte(`{"a":"x"}`)) {
			t.Errorf("%s is not plain", text)
		}
	}
}

func FuzzAccepts(f *testing.F) {
	for i := range plainSchemas {
		for _, value := range plainValues {
			f.Add(i, value)
		}
	}
	f.Fuzz(func(t *testing.T, i int, value string) {
		text := plainSchemas[uint(i)%uint(len(plainSchemas))]
		s, err := schema.Compile([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if s.Accepts([]byte(value)) && !fits(s, value) {
			t.Errorf("%s accepts %q", text, value)
		}
	})
}

func TestToAcceptAnOrdinaryValueTakesNoAllocation(t *testing.T) {
	s, err := schema.Compile([]byte(plainSchemas[0]))
	if err != nil {
		t.Fatal(err)
	}
	value := []byte(plainValues[1])
	if n := testing.AllocsPerRun(100, func() {
		if !s.Accepts(value) {
			t.Fatal("it is not accepted")
		}
	}); n > 0 {
		t.Errorf("%.0f allocations", n)
	}
}
