package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/journaltest"
	"pgregory.net/rapid"
)

// shelf keeps parts.
type shelf map[string][]byte

func (s shelf) put(hash string, b []byte) { s[hash] = b }

func (s shelf) take(hash string) ([]byte, error) {
	if b, ok := s[hash]; ok {
		return b, nil
	}
	return nil, errMissing
}

// whole cuts data, looks at what comes of it, puts it together again, and gives what was left and what was cut out, in order.
func whole(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, data []byte, threshold int,
) (rest string, out []string) {
	t.Helper()
	s, before := shelf{}, bytes.Clone(data)
	left, refs := cut(data, threshold, s.put)
	for _, r := range refs {
		if r.Size <= threshold || len(s[r.Hash]) != r.Size {
			t.Fatalf("%q: a part of %d bytes, and %d are there", data, r.Size, len(s[r.Hash]))
		}
		out = append(out, string(s[r.Hash]))
	}
	if len(refs) > 0 {
		again, err := parse(format(refs))
		if err != nil || !slices.Equal(again, refs) {
			t.Fatalf("%q: %+v were read as %+v: %v", data, refs, again, err)
		}
	}
	got, err := splice(left, refs, s.take)
	if err != nil || !bytes.Equal(got, before) || !bytes.Equal(data, before) {
		t.Fatalf("%q became %q: %v", before, got, err)
	}
	return string(left), out
}

func TestLongStringsAreCutAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		data, rest string
		parts      []string
	}{
		"nothing":                    {``, ``, nil},
		"no string":                  {`[123456,true]`, `[123456,true]`, nil},
		"at the threshold":           {`"1234"`, `"1234"`, nil},
		"above it":                   {`"12345"`, `""`, []string{"12345"}},
		"a member":                   {`{"a":"12345"}`, `{"a":""}`, []string{"12345"}},
		"a name is kept":             {`{"12345":"x"}`, `{"12345":"x"}`, nil},
		"a name with spaces":         {"{\"12345\" \t\r\n:\"67890\"}", "{\"12345\" \t\r\n:\"\"}", []string{"67890"}},
		"a name in a value":          {`{"a":"\"12345\":"}`, `{"a":""}`, []string{`\"12345\":`}},
		"an escaped quote":           {`["123\"45","x"]`, `["","x"]`, []string{`123\"45`}},
		"a backslash at the end":     {`["12345\\","x"]`, `["","x"]`, []string{`12345\\`}},
		"backslashes and a quote":    {`["\\\\\"\\","x"]`, `["","x"]`, []string{`\\\\\"\\`}},
		"escapes count as they lie":  {`["\u00e9","é"]`, `["","é"]`, []string{`\u00e9`}},
		"many":                       {`["12345","x","67890"]`, `["","x",""]`, []string{"12345", "67890"}},
		"one twice":                  {`["12345","12345"]`, `["",""]`, []string{"12345", "12345"}},
		"empty ones beside it":       {`["","12345",""]`, `["","",""]`, []string{"12345"}},
		"no JSON: no end":            {`["12345`, `["12345`, nil},
		"no JSON: an escaped end":    {`["12345\"`, `["12345\"`, nil},
		"no JSON: an end after some": {`["12345","67890`, `["","67890`, []string{"12345"}},
	} {
		t.Run(name, func(t *testing.T) {
			rest, parts := whole(t, []byte(c.data), 4)
			if rest != c.rest || !slices.Equal(parts, c.parts) {
				t.Errorf("got %s and %q, want %s and %q", rest, parts, c.rest, c.parts)
			}
		})
	}
}

// emptied is v with the strings empty that are longer than n in JSON.
func emptied(v any, n int) any {
	switch v := v.(type) {
	case string:
		if b, _ := json.Marshal(v); len(b)-2 > n {
			return ""
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = emptied(v[i], n)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = emptied(v[k], n)
		}
		return out
	}
	return v
}

// anything is a value that JSON keeps.
func anything(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 4
		if depth == 0 {
			kinds = 2
		}
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune{'"', '\\', 'a', ':', '\n', ' ', '{', '\u2028'})))
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return text.Draw(t, "text")
		case 1:
			return rapid.Float64Range(-10, 10).Draw(t, "number")
		case 2:
			return rapid.SliceOfN(anything(depth-1), 0, 5).Draw(t, "list")
		default:
			return rapid.MapOfN(text, anything(depth-1), 0, 5).Draw(t, "object")
		}
	})
}

func TestOfAnyValueTheLongStringsAreEmptyAndTheRestIsAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, n := anything(3).Draw(t, "value"), rapid.IntRange(0, 12).Draw(t, "threshold")
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "spaced") {
			var b bytes.Buffer
			_ = json.Indent(&b, data, " ", "\t")
			data = b.Bytes()
		}
		rest, _ := whole(t, data, n)
		var got, had any
		if err := errors.Join(json.Unmarshal([]byte(rest), &got), json.Unmarshal(data, &had)); err != nil {
			t.Fatalf("%s: %v", rest, err)
		}
		if diff := cmp.Diff(emptied(had, n), got); diff != "" {
			t.Fatalf("of %s there is %s:\n%s", data, rest, diff)
		}
	})
}

func FuzzCut(f *testing.F) {
	for _, seed := range []string{`{"a":"12345","12345":["\"\\\"12345","\\\\"]}`, `"\`, `"""""`, `["a":"b" :"c"]`, "\x00\xff\"\xff\xff\xff\xff\xff\""} {
		f.Add([]byte(seed), 4)
	}
	f.Fuzz(func(t *testing.T, data []byte, threshold int) {
		whole(t, data, max(threshold, 0))
	})
}

func FuzzParse(f *testing.F) {
	_, refs := cut([]byte(`["12345","67890"]`), 4, shelf{}.put)
	f.Add(format(refs))
	f.Add("1+2:")
	f.Fuzz(func(t *testing.T, text string) {
		if refs, err := parse(text); err == nil && format(refs) != text {
			t.Errorf("%q was read as %+v", text, refs)
		}
	})
}

func TestEveryKindIsWholeAgain(t *testing.T) {
	for _, e := range journaltest.Samples() {
		data, err := journal.EncodeData(e.Data)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 40 {
			whole(t, data, n)
		}
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	s := shelf{}
	rest, refs := cut([]byte(`["12345","","67890"]`), 4, s.put)
	for name, c := range map[string]struct {
		spoil func(refs []Ref, s shelf)
		says  string
	}{
		"a part is missing":     {func(r []Ref, s shelf) { delete(s, r[1].Hash) }, "is missing"},
		"a part is shorter":     {func(r []Ref, s shelf) { s[r[0].Hash] = []byte("1234") }, "has 4 bytes, not 5"},
		"a size is wrong":       {func(r []Ref, _ shelf) { r[0].Size++ }, "has 5 bytes, not 6"},
		"a place is no string":  {func(r []Ref, _ shelf) { r[0].At++ }, "no string is empty"},
		"a place is before it":  {func(r []Ref, _ shelf) { r[0].At = 0 }, "no string is empty"},
		"a place is behind it":  {func(r []Ref, _ shelf) { r[1].At = 1000 }, "no string is empty"},
		"a place is taken":      {func(r []Ref, _ shelf) { r[1].At = r[0].At }, "no string is empty"},
		"the order is reversed": {func(r []Ref, _ shelf) { r[0], r[1] = r[1], r[0] }, "no string is empty"},
	} {
		r, left := slices.Clone(refs), shelf{}
		for hash, b := range s {
			left[hash] = b
		}
		c.spoil(r, left)
		if got, err := splice(rest, r, left.take); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v: want an error that says %q", name, got, err, c.says)
		}
	}
	hash := strings.Repeat("0a", 32)
	for _, text := range []string{
		"", " ", "1", "1+2", "1+2:", ":" + hash, "+:" + hash, "1+0:" + hash, "1+-2:" + hash, "-1+2:" + hash, "01+2:" + hash, "1+2:" + strings.ToUpper(hash),
		"1+2:" + hash[1:], "1+2:" + hash + " ", " 1+2:" + hash, "1+2:" + hash + "  3+4:" + hash, "1+2:" + hash + ",3+4:" + hash, "1+9999999999999:" + hash,
	} {
		if refs, err := parse(text); err == nil {
			t.Errorf("%q was read as %+v", text, refs)
		}
	}
	if refs, err := parse("1+2:" + hash + " 3+4:" + hash); err != nil || len(refs) != 2 {
		t.Errorf("%+v %v", refs, err)
	}
}

func TestPartsAreCountedAndInOrder(t *testing.T) {
	long := func(c string) string { return `"` + strings.Repeat(c, Threshold+1) + `"` }
	a, b := []byte("["+long("a")+","+long("b")+","+long("a")+"]"), []byte("["+long("a")+`,"x"]`)
	said := journal.Said{}.Kind()
	var added, gone Parts
	for _, data := range [][]byte{a, b} {
		rest, refs := added.Cut(said, data)
		if len(rest) > 20 {
			t.Errorf("%d bytes are left", len(rest))
		}
		if err := gone.Count(refs); err != nil {
			t.Error(err)
		}
	}
	got, counted := added.Sorted(), gone.Sorted()
	if len(got) != 2 || len(counted) != 2 || got[0].Hash >= got[1].Hash || got[0].Refs+got[1].Refs != 4 {
		t.Fatalf("%+v, %+v", got, counted)
	}
	for i, p := range got {
		if want := map[byte]int64{'a': 3, 'b': 1}[p.Data[0]]; p.Refs != want || counted[i].Refs != want || counted[i].Hash != p.Hash || len(p.Data) != Threshold+1 {
			t.Errorf("%d times %.1s, counted %d times", p.Refs, p.Data, counted[i].Refs)
		}
	}
	if gone.Count("nonsense") == nil {
		t.Error("nonsense was counted")
	}
}

func TestWhatIsShortOrLookedIntoStaysAndCostsNothing(t *testing.T) {
	short := []byte(`["` + strings.Repeat("x", Threshold-1) + `","` + strings.Repeat("y", Threshold) + `"]`)
	long := []byte(`{"agent":"` + strings.Repeat("x", 2*Threshold) + `"}`)
	var p Parts
	if n := testing.AllocsPerRun(100, func() {
		for kind, data := range map[journal.Kind][]byte{"said": short, "run.started": long} {
			if rest, refs := p.Cut(kind, data); refs != "" || &rest[0] != &data[0] || p.Sorted() != nil {
				t.Error("something was cut")
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
