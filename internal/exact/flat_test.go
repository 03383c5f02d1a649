package exact_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/exact"
)

type (
	word  string
	shown int

	plain struct {
		Path   string  `json:"path"`
		Again  bool    `json:"again,omitempty"`
		Limit  int     `json:"limit"`
		Small  int8    `json:"small"`
		Least  uint16  `json:"least-of"`
		Share  float64 `json:"share"`
		Rough  float32
		Word   word `json:"word"`
		hidden string
	}
)

func (s *shown) UnmarshalText([]byte) error { *s = 1; return nil }

// What Flat reads is what encoding/json reads, and what it refuses is left to that.
func FuzzFlatReadsAsEncodingJSONDoes(f *testing.F) {
	for _, s := range []string{
		`{"path":"a","again":true,"limit":3}`, `{"path":"\ud83d\ude00 \ud800 \u00e9\n","word":"\"x\""}`, "{\"path\":\"\xff\"}", `{"path":null,"limit":null}`, `{"limit":1.0}`,
		`{"limit":1e2}`, `{"limit":9223372036854775808}`, `{"small":128}`, `{"small":-128}`, `{"least-of":-1}`, `{"least-of":65535}`, `{"share":1e400}`, `{"share":-0.5e-3}`, `{"Rough":3.5}`, `{"rough":3.5}`,
		`{"Path":"a"}`, `{"path":"a","path":"b"}`, `{"path":1}`, `{"again":1}`, `{"unknown":{}}`, ` { } `, `[]`, `null`, `{"path":"a"`, `{"p\u0061th":"a"}`, `{"hidden":"x"}`, `{"share":-0}`, `{"limit":-0}`, `{"limit":01}`, `{"again":nul}`,
		`{"small":[]}`, `{"path":"a"}x`, `{"Rough":1e39}`, `{"share":"1"}`, `{"limit":"1"}`,
	} {
		f.Add([]byte(s))
	}
	flat := exact.FlatOf(reflect.TypeFor[plain]())
	if flat == nil {
		f.Fatal("the type is plain")
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want plain
		err := json.Unmarshal(data, &want)
		if flat.Read(data, reflect.ValueOf(&got).Elem()) && (err != nil || got != want) {
			t.Errorf("%q is read as %+v, and by encoding/json as %+v (%v)", data, got, want, err)
		}
	})
}

func TestFlatReadsMostInputs(t *testing.T) {
	flat := exact.FlatOf(reflect.TypeFor[plain]())
	var got plain
	if !flat.Read([]byte(`{"path":"a\tb","again":true,"limit":-3,"small":7,"least-of":1,"share":0.25,"Rough":2,"word":"w"}`), reflect.ValueOf(&got).Elem()) {
		t.Fatal("it was not read")
	}
	if want := (plain{"a\tb", true, -3, 7, 1, .25, 2, "w", ""}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	input := []byte(`{"path":"abc","limit":12,"share":1.5}`)
	if n := testing.AllocsPerRun(100, func() {
		got = plain{}
		flat.Read(input, reflect.ValueOf(&got).Elem())
	}); n > 1 { // the text
		t.Errorf("%.0f allocations, want 1", n)
	}
}

func TestWhatIsNotPlainIsNotFlat(t *testing.T) {
	for what, of := range map[string]reflect.Type{
		"a list":             reflect.TypeFor[struct{ A []string }](),
		"a struct in it":     reflect.TypeFor[struct{ A struct{} }](),
		"a pointer":          reflect.TypeFor[struct{ A *string }](),
		"an embedded struct": reflect.TypeFor[struct{ plain }](),
		"any":                reflect.TypeFor[struct{ A any }](),
		"a number as text":   reflect.TypeFor[struct{ A json.Number }](),
		"a time":             reflect.TypeFor[struct{ A time.Time }](),
		"its own reader":     reflect.TypeFor[struct{ A shown }](),
		"a string option": reflect.TypeFor[struct {
			A int `json:",string"`
		}](),
		"a left out field": reflect.TypeFor[struct {
			A int `json:"-"`
		}](),
		"a strange name": reflect.TypeFor[struct {
			A int `json:"a.b"`
		}](),
		"a name twice": reflect.TypeFor[struct {
			A int `json:"B"`
			B int
		}](),
		"a map": reflect.TypeFor[map[string]string](),
	} {
		if exact.FlatOf(of) != nil {
			t.Errorf("%s is flat", what)
		}
	}
}
