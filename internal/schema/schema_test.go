package schema_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/schema"
)

func check(t *testing.T, text, value string, choices bool) []string {
	t.Helper()
	s, err := schema.Compile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := schema.Parse([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	faults, err := s.Check(v, choices)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range faults {
		out = append(out, strings.Join(f.At, "/")+" by "+strings.Join(f.In, "/")+": "+f.Why())
	}
	slices.Sort(out)
	return out
}

func TestEveryFaultHasItsPlaceInTheValueAndInTheSchema(t *testing.T) {
	got := check(t, `{"properties": {"$a": {"type": "string"}, "b": {"$ref": "#/$defs/x~1y"}}, "$defs": {"x/y": {"minimum": 3}}, "required": ["c"]}`, `{"$a": 1, "b": 2}`, false)
	want := []string{" by : missing property 'c'", "$a by properties/$a: got number, want string", "b by $defs/x/y: minimum: got 2, want 3"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAChoiceIsOneFaultOrAllOfItsAlternatives(t *testing.T) {
	text := `{"oneOf": [{"type": "string"}, {"type": "number"}]}`
	if got := check(t, text, `true`, true); len(got) != 1 {
		t.Errorf("%q", got)
	}
	if got := check(t, text, `true`, false); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

func TestNothingIsLoadedAndNothingTakesForEver(t *testing.T) {
	for _, text := range []string{`{"$ref": "file:///etc/hostname"}`, `{"$ref": "#"}`, `{"minimum": 1e999999999}`, `{`} {
		if _, err := schema.Compile([]byte(text)); err == nil {
			t.Errorf("%s compiles", text)
		}
	}
	if _, err := schema.Parse([]byte(`{"a": [1e-999999999]}`)); err == nil || !strings.Contains(err.Error(), "out of range") {
		t.Error(err)
	}
	if schema.Bounded(json.Number(strings.Repeat("9", 2000))) || !schema.Bounded("12.5e300") {
		t.Error("bounds")
	}
}
