package engine_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// throughJSON is what a host that keeps boards does to them.
func throughJSON(t *testing.T, s engine.Snapshot) engine.Snapshot {
	t.Helper()
	b, err := json.Marshal(engine.Checkpoint{ExecID: "r", Board: &s})
	if err != nil {
		t.Fatal(err)
	}
	var c engine.Checkpoint
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return *c.Board
}

func TestVarsComeBackWithTheirTypes(t *testing.T) {
	call := message.Assistant("a <b> & c", message.ToolCall{ID: "c", Name: "t", Input: `{"a":"<&>\u2028"}`})
	for name, v := range map[string]any{
		"nil": nil, "true": true, "a text": "a <b> & \" \u2028", "no UTF-8": "a\xff", "an int": 3, "a long int": math.MaxInt64, "a negative int": -7,
		"an int64": int64(3), "a whole float": 3.0, "a float": 0.1, "a huge float": 1e300, "a tiny float": 5e-324, "minus nothing": math.Copysign(0, -1),
		"bytes": []byte{0, 1, 255}, "no bytes": []byte(nil), "a time": time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), "a duration": time.Minute,
		"raw JSON": json.RawMessage(`{"a": [1,2.0,"<"]}`), "no raw JSON": json.RawMessage(nil), "usage": model.Usage{Input: 1, Output: 2, CacheRead: 3},
		"texts": []string{"a", ""}, "no texts": []string(nil), "a map of texts": map[string]string{"a": "b"},
		"a list": []any{1, 2.0, "x", nil, []any{int64(4)}}, "an empty list": []any{}, "no list": []any(nil),
		"a map": map[string]any{"a": 1, "b": map[string]any{"c": []byte("d")}}, "an empty map": map[string]any{}, "no map": map[string]any(nil),
		"a map that looks like ours": map[string]any{"$int64": 1.0}, "a map with a dollar": map[string]any{"$int64": 1, "b": 2},
	} {
		got := throughJSON(t, engine.Snapshot{Vars: map[string]any{"v": v}}).Vars["v"]
		if !reflect.DeepEqual(got, v) {
			t.Errorf("%s: %#v came back as %#v", name, v, got)
		}
	}
	s := throughJSON(t, engine.Snapshot{
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
		"a struct": struct{ A int }{1}, "a pointer": new(int), "a channel": make(chan int), "an int32": int32(1), "a list of ints": []int{1},
		"no number": math.NaN(), "infinity": math.Inf(1), "what contains itself": around, "deep inside": []any{map[string]any{"a": uint(1)}},
		"a text of a list that is no UTF-8": []string{"\xff"}, "a name that is no UTF-8": map[string]any{"\xff": 1},
	} {
		_, err := engine.Snapshot{Vars: map[string]any{"it": v}}.MarshalJSON()
		if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), `"it"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{`[`, `{"vars":{"a":{"$tomorrow":1}}}`, `{"vars":{"a":99999999999999999999}}`, `{"vars":{"a":1.5e999}}`, `{"vars":{"a":{"$list":[{"$none":0}],"b":{"$none":0}}}}`} {
		if err := new(engine.Snapshot).UnmarshalJSON([]byte(bad)); !errdefs.Validation.Is(err) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestABoardGoesThroughJSON(t *testing.T) {
	b := engine.NewBoard(engine.Snapshot{Vars: map[string]any{"n": 1}})
	b.Append("main", message.User("hello"))
	j, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "as JSON", `{"channels":{"main":[{"role":"user","parts":[{"type":"text","text":"hello"}]}]},"vars":{"n":1}}`, string(j))
	again := engine.NewBoard(engine.Snapshot{Vars: map[string]any{"old": true}})
	if err := json.Unmarshal(j, again); err != nil {
		t.Fatal(err)
	}
	again.SetVar("n", again.Var("n").(int)+1)
	if b.Var("n") != 1 || again.Var("n") != 2 || again.Var("old") != nil || again.Channel("main").Last().Text() != "hello" {
		t.Errorf("%v", again.Snapshot())
	}
}

func FuzzVarsGoRoundTrip(f *testing.F) {
	for _, s := range []string{`1`, `1.0`, `{"$int64":3}`, `[{"$bytes":"AA=="},null]`, `{"$map":{"$text":"x"}}`, `{"$message":{"role":"user","parts":[]}}`, `{"$list":null}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, v string) {
		var s engine.Snapshot
		if s.UnmarshalJSON([]byte(`{"vars":{"v":`+v+`}}`)) != nil {
			return
		}
		once, err := s.MarshalJSON()
		if err != nil {
			return // a role that is none, text that is no UTF-8: read by chance, not written by us
		}
		var again engine.Snapshot
		if err := again.UnmarshalJSON(once); err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		if twice, err := again.MarshalJSON(); err != nil || string(twice) != string(once) {
			t.Fatalf("%s became %s: %v", once, twice, err)
		}
	})
}
