package journal_test

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// throughJSON is what a host that keeps boards does to them.
func throughJSON(t *testing.T, s journal.Snapshot) journal.Snapshot {
	t.Helper()
	b, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	var again journal.Snapshot
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return again
}

func TestVarsComeBackWithTheirTypes(t *testing.T) {
	call := message.Assistant("a <b> & c", message.ToolCall{ID: "c", Name: "t", Input: `{"a":"<&>\u2028"}`})
	for name, v := range map[string]any{
		"nil": nil, "true": true, "a text": "a <b> & \" \u2028", "no UTF-8": "a\xff", "an int": 3, "a long int": math.MaxInt64, "a negative int": -7,
		"an int64": int64(3), "a whole float": 3.0, "a float": 0.1, "a huge float": 1e300, "a tiny float": 5e-324, "minus nothing": math.Copysign(0, -1),
		"a JSON number": json.Number("1.50"), "ints": []int{1, -2}, "floats": []float64{1, 0.5}, "bytes": []byte{0, 1, 255}, "no bytes": []byte(nil), "a time": time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), "a duration": time.Minute,
		"raw JSON": json.RawMessage(`{"a": [1,2.0,"<"]}`), "no raw JSON": json.RawMessage(nil), "usage": model.Usage{Input: 1, Output: 2, CacheRead: 3},
		"texts": []string{"a", ""}, "no texts": []string(nil), "a map of texts": map[string]string{"a": "b"},
		"a list": []any{1, 2.0, "x", nil, []any{int64(4)}}, "an empty list": []any{}, "no list": []any(nil),
		"a map": map[string]any{"a": 1, "b": map[string]any{"c": []byte("d")}}, "an empty map": map[string]any{}, "no map": map[string]any(nil),
		"a map that looks like ours": map[string]any{"$int64": 1.0}, "a map with a dollar": map[string]any{"$int64": 1, "b": 2},
	} {
		got := throughJSON(t, journal.Snapshot{Vars: map[string]any{"v": v}}).Vars["v"]
		if !reflect.DeepEqual(got, v) {
			t.Errorf("%s: %#v came back as %#v", name, v, got)
		}
	}
	s := throughJSON(t, journal.Snapshot{
		Channels: map[string]message.History{"main": message.NewHistory(message.User("u"), call), "none": {}},
		Vars:     map[string]any{"m": call, "ms": []message.Message{message.User("u"), call}},
	})
	want := string(call.AppendJSON(nil))
	ms, _ := s.Vars["ms"].([]message.Message)
	m, _ := s.Vars["m"].(message.Message)
	if len(ms) != 2 || string(ms[1].AppendJSON(nil)) != want || string(m.AppendJSON(nil)) != want {
		t.Errorf("the messages among the vars came back as %v", s.Vars)
	}
	if main := s.Channels["main"]; main.Len() != 2 || string(main.At(1).AppendJSON(nil)) != want {
		t.Errorf("the channel came back as %s", main.At(1).AppendJSON(nil))
	}
	if _, ok := s.Channels["none"]; !ok {
		t.Error("an empty channel is gone")
	}
}

func TestAVarThatWouldNotComeBackIsRefused(t *testing.T) {
	around := map[string]any{}
	around["again"] = []any{around}
	for name, v := range map[string]any{
		"a struct": struct{ A int }{1}, "a pointer": new(int), "a channel": make(chan int), "an int32": int32(1), "a list of int32": []int32{1},
		"no number": math.NaN(), "infinity": math.Inf(1), "what contains itself": around, "deep inside": []any{map[string]any{"a": uint(1)}},
		"a text of a list that is no UTF-8": []string{"\xff"}, "a name that is no UTF-8": map[string]any{"\xff": 1},
	} {
		_, err := journal.Snapshot{Vars: map[string]any{"it": v}}.MarshalJSON()
		if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), `"it"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{`[`, `{"vars":{"a":{"$tomorrow":1}}}`, `{"vars":{"a":-}}`, `{"vars":{"a":1.5e999}}`, `{"vars":{"a":{"$list":[{"$none":0}],"b":{"$none":0}}}}`} {
		if err := new(journal.Snapshot).UnmarshalJSON([]byte(bad)); !errdefs.Validation.Is(err) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestAChannelWhoseNameWouldNotComeBackIsRefused(t *testing.T) {
	h := message.NewHistory(message.User("a"))
	named := func(name string) journal.Snapshot {
		return journal.Snapshot{Channels: map[string]message.History{name: h}}
	}
	for what, c := range map[string]struct {
		board journal.Board
		class *errdefs.Class
	}{
		"a new one":       {journal.Diff(journal.Snapshot{}, named("\xff")), errdefs.Validation},
		"one that shrank": {journal.Diff(named("\xff"), journal.Snapshot{}), errdefs.Validation},
		"a text":          {journal.Diff(journal.Snapshot{}, named("\ufffd")), nil},
		"a var":           {journal.Board{Set: journal.Vars{"it": make(chan int)}}, errdefs.Validation},
	} {
		if err := c.board.Check(); (err != nil) != (c.class != nil) || err != nil && !c.class.Is(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzVarsGoRoundTrip(f *testing.F) {
	for _, s := range []string{`1`, `1.0`, `{"$int64":3}`, `[{"$bytes":"AA=="},null]`, `{"$map":{"$text":"x"}}`, `{"$message":{"role":"user","parts":[]}}`, `{"$list":null}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, v string) {
		var s journal.Snapshot
		if s.UnmarshalJSON([]byte(`{"vars":{"v":`+v+`}}`)) != nil {
			return
		}
		once, err := s.MarshalJSON()
		if err != nil {
			return // a role that is none, text that is no UTF-8: read by chance, not written by us
		}
		var again journal.Snapshot
		if err := again.UnmarshalJSON(once); err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		if twice, err := again.MarshalJSON(); err != nil || string(twice) != string(once) {
			t.Fatalf("%s became %s: %v", once, twice, err)
		}
	})
}

// anyBoard draws boards that share messages and vars with each other, as those of one run do.
func anyBoard(pool []message.Message) *rapid.Generator[journal.Snapshot] {
	history := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pool), 0, 6), func(ms []message.Message) message.History { return message.NewHistory(ms...) })
	value := rapid.SampledFrom([]any{nil, 1, 1.0, "1", int64(1), []any{1, []any{2}}, []any{}, []any(nil), map[string]any{"a": []any{1}}, map[string]any{}, []byte("x"), pool[0], pool[:2], []string{"a"}})
	return rapid.Custom(func(t *rapid.T) (s journal.Snapshot) {
		s.Channels = rapid.MapOfN(rapid.SampledFrom([]string{"main", "a", "b"}), history, 0, 3).Draw(t, "channels")
		s.Vars = rapid.MapOfN(rapid.SampledFrom([]string{"x", "y", "z"}), value, 0, 3).Draw(t, "vars")
		return s
	})
}

func TestADifferenceMakesOneBoardOfAnother(t *testing.T) {
	pool := []message.Message{message.User("a"), message.Assistant("b"), message.User("c"), message.User("a")}
	one := func(t *testing.T, s journal.Snapshot) string { // empty channels are as good as none
		s.Channels = maps.Clone(s.Channels)
		maps.DeleteFunc(s.Channels, func(_ string, h message.History) bool { return h.Len() == 0 })
		if len(s.Vars) == 0 {
			s.Vars = nil
		}
		j, err := s.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return string(j)
	}
	rapid.Check(t, func(r *rapid.T) {
		before, after := anyBoard(pool).Draw(r, "before"), anyBoard(pool).Draw(r, "after")
		was, want := one(t, before), one(t, after)
		d := journal.Diff(before, after)
		if got := one(t, before.With(d)); got != want {
			r.Fatalf("%+v makes %s, want %s", d, got, want)
		}
		b, err := journal.EncodeData(d)
		if err != nil {
			r.Fatal(err)
		}
		again, err := journal.DecodeData("board", b)
		if err != nil {
			r.Fatal(err)
		}
		if got := one(t, before.With(again.(journal.Board))); got != want {
			r.Fatalf("read again, %s makes %s, want %s", b, got, want)
		}
		if one(t, before) != was || one(t, after) != want {
			r.Fatal("a board changed")
		}
		if d := journal.Diff(after, after); !d.IsZero() {
			r.Fatalf("from itself it differs by %+v", d)
		}
	})
}

func TestADifferenceHasOnlyWhatDiffers(t *testing.T) {
	long := make([]any, 100_000)
	h := message.NewHistory()
	for range 10_000 {
		h = h.Append(message.User("old"))
	}
	before := journal.Snapshot{Channels: map[string]message.History{"main": h, "same": h}, Vars: journal.Vars{"long": long, "n": 1, "gone": true}}
	after := journal.Snapshot{Channels: map[string]message.History{"main": h.Append(message.User("new")), "same": h}, Vars: journal.Vars{"long": long, "n": 2}}
	b, err := journal.EncodeData(journal.Diff(before, after))
	if want := `{"append":{"main":[{"role":"user","parts":[{"type":"text","text":"new"}]}]},"set":{"n":2},"delete":["gone"]}`; err != nil || string(b) != want {
		t.Errorf("%.500s, %v", b, err)
	}
	few := testing.AllocsPerRun(10, func() {
		_ = journal.Diff(journal.Snapshot{Channels: map[string]message.History{"main": h.Slice(0, 1)}}, journal.Snapshot{Channels: map[string]message.History{"main": h.Slice(0, 2)}, Vars: journal.Vars{}})
	})
	if many := testing.AllocsPerRun(10, func() { _ = journal.Diff(before, after) }); many > few+5 {
		t.Errorf("%v allocations, %v for a small board", many, few)
	}
}
