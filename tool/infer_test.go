package tool_test

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/schema"
	"github.com/pawl-dev/pawl/tool"
)

type base struct {
	ID int `json:"id"`
}

type everything struct {
	base
	At    time.Time             `json:"at" jsonschema:"when"`
	Due   *time.Time            `json:"due"`
	From  netip.Addr            `json:"from"`
	Any   json.RawMessage       `json:"any"`
	Maybe *json.RawMessage      `json:"maybe"`
	Big   *big.Int              `json:"big"`
	Rat   *big.Rat              `json:"rat"`
	Small int8                  `json:"small,omitempty"`
	By    map[string]base       `json:"by,omitempty"`
	Hosts map[string]netip.Addr `json:"hosts,omitempty"`
	Bytes []byte                `json:"bytes,omitempty"`
	Skip  string                `json:"-"`
}

// What the schema of a type admits, the type reads; what the type can't read of these, the schema refuses.
func TestASchemaAdmitsWhatItsTypeReads(t *testing.T) {
	text, err := tool.SchemaOf[everything]()
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	const least = `"id":1,"at":"2026-01-02T03:04:05Z","from":"::1","any":[1,{}]`
	for value, fits := range map[string]bool{
		`{` + least + `}`: true,
		`{` + least + `,"due":"2026-01-02T03:04:05Z","maybe":{"a":1},"big":123456789012345678901234567890,"rat":"1/3","small":-128,"by":{"x":{"id":2}},"hosts":{"a":"10.0.0.1"},"bytes":"aGk="}`: true,
		`{` + least + `,"maybe":7}`:                    true,
		`{` + least + `,"small":128}`:                  false,
		`{` + least + `,"big":"12"}`:                   false,
		`{` + least + `,"by":{"x":{}}}`:                false,
		`{` + least + `,"hosts":{"a":[10,0,0,1]}}`:     false,
		`{` + least + `,"more":1}`:                     false,
		`{` + least + `,"Skip":"x"}`:                   false,
		`{` + least + `,"due":null}`:                   false,
		`{"id":1,"at":7,"from":"::1","any":1}`:         false,
		`{"id":1,"at":"2026-01-02T03:04:05Z","any":1}`: false,
	} {
		v, err := schema.Parse([]byte(value))
		if err != nil {
			t.Fatal(err)
		}
		faults, err := s.Check(v, false)
		if err != nil || (len(faults) == 0) != fits {
			t.Errorf("%s: %s %v", value, schema.Problems(faults, 5), err)
		}
		if fits {
			var into everything
			if err := json.Unmarshal([]byte(value), &into); err != nil {
				t.Errorf("%s: %v", value, err)
			}
		}
	}
	type loop struct{ Next *loop }
	for name, of := range map[string]func() (json.RawMessage, error){
		"a channel": tool.SchemaOf[chan int], "a function in a list": tool.SchemaOf[[]func()], "a type in itself": tool.SchemaOf[loop], "keys that are no texts": tool.SchemaOf[map[[2]int]string],
	} {
		if s, err := of(); !errdefs.Validation.Is(err) {
			t.Errorf("%s: %s %v", name, s, err)
		}
	}
}
