package star_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/star"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func TestValuesGoToStarlarkAndBack(t *testing.T) {
	m := message.Assistant("hello", message.ToolCall{ID: "c1", Name: "look", Input: `{"x":1}`})
	at := time.Date(2026, 11, 22, 15, 4, 5, 600, time.FixedZone("", 3600))
	for _, c := range []struct {
		name string
		in   any
		says string // in Starlark
		out  any
	}{
		{"nothing", nil, `None`, nil},
		{"a bool", true, `True`, true},
		{"an int", 7, `7`, 7},
		{"the largest int", math.MaxInt64, `9223372036854775807`, math.MaxInt64},
		{"an int64", int64(-7), `-7`, -7},
		{"a float that is whole", 2.0, `2.0`, 2.0},
		{"a text", "ä\"", `"ä\""`, "ä\""},
		{"bytes", []byte{0, 255}, `b"\x00\xff"`, []byte{0, 255}},
		{"a list", []any{1, "a", nil, []any{}}, `[1, "a", None, []]`, []any{1, "a", nil, []any{}}},
		{"strings", []string{"a", "b"}, `["a", "b"]`, []any{"a", "b"}},
		{"ints", []int{1, 2}, `[1, 2]`, []any{1, 2}},
		{"floats", []float64{1, 2}, `[1.0, 2.0]`, []any{1.0, 2.0}},
		{"a dict in the order of its keys", map[string]any{"b": 1, "a": map[string]any{}}, `{"a": {}, "b": 1}`, map[string]any{"a": map[string]any{}, "b": 1}},
		{"texts", map[string]string{"b": "1", "a": "2"}, `{"a": "2", "b": "1"}`, map[string]any{"a": "2", "b": "1"}},
		{"JSON", json.RawMessage(`{"b":[1,2.5,1e3],"a":null}`), `{"a": None, "b": [1, 2.5, 1000.0]}`, map[string]any{"a": nil, "b": []any{1, 2.5, 1000.0}}},
		{"a number", json.Number("12"), `12`, 12},
		{"a time", at, `"2026-11-22T15:04:05.0000006+01:00"`, "2026-11-22T15:04:05.0000006+01:00"},
		{"a duration", 1500 * time.Millisecond, `1.5`, 1.5},
		{"a message", m, `message(assistant: hello (and 1 other parts))`, m},
		{"messages", []message.Message{m}, `[message(assistant: hello (and 1 other parts))]`, []any{m}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := star.To(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if got := v.String(); got != c.says {
				t.Errorf("in Starlark %s, want %s", got, c.says)
			}
			out, err := star.From(v)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.out, out, messages); d != "" {
				t.Error(d)
			}
			if err := (journal.Vars{"v": out}).Check(); err != nil {
				t.Error("it can't be kept:", err)
			}
			back, err := star.Back(v, c.in)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.in, back, messages); d != "" {
				t.Error("untouched:", d)
			}
		})
	}
}

var messages = cmp.Comparer(func(a, b message.Message) bool { return a == b })

func TestWhatWasTouchedComesBackAsItIs(t *testing.T) {
	for in, touched := range map[any]starlark.Value{
		int64(1):           starlark.MakeInt(2),
		2 * time.Second:    starlark.MakeInt(2),
		json.Number("1.0"): starlark.MakeInt(1),
	} {
		back, err := star.Back(touched, in)
		want, _ := star.From(touched)
		if err != nil || back != want {
			t.Errorf("%v: %T %v, %v", in, back, back, err)
		}
	}
	u := model.Usage{Input: 1}
	v, _ := star.To(u)
	if back, err := star.Back(v, u); err != nil || back != u {
		t.Error(back, err)
	}
	other, _ := star.To(model.Usage{Input: 2})
	if back, err := star.Back(other, u); !errdefs.Validation.Is(err) {
		t.Error("a struct has no place on a board:", back, err)
	}
}

func TestWhatHasNoPlaceIsAnErrorWithItsPath(t *testing.T) {
	self := starlark.NewList(nil)
	_ = self.Append(self)
	bomb := starlark.NewList([]starlark.Value{starlark.None})
	for range 60 {
		bomb = starlark.NewList([]starlark.Value{bomb, bomb})
	}
	dict := func(k, v starlark.Value) starlark.Value {
		d := starlark.NewDict(1)
		_ = d.SetKey(k, v)
		return d
	}
	text := func(s string) starlark.Value { return starlark.String(s) }
	for want, v := range map[string]starlark.Value{
		"a.b[1]: the int is too large":       dict(text("a"), dict(text("b"), starlark.Tuple{starlark.None, starlark.MakeUint64(math.MaxUint64)})),
		"a: the float +Inf is no number":     dict(text("a"), starlark.Float(math.Inf(1))),
		"a key of the dict is a int":         dict(starlark.MakeInt(1), starlark.None),
		"a builtin_function_or_method can't": starlark.Universe["len"],
		"or contains itself":                 self,
		"too large, with all":                bomb,
		"a struct can't be kept":             star.NewStruct(nil),
	} {
		out, err := star.From(v)
		if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v, %v", want, out, err)
		}
	}
	nest := any(1)
	for range 102 {
		nest = []any{nest}
	}
	for want, v := range map[string]any{
		"a[0]: a chan int is no value": map[string]any{"a": []any{make(chan int)}},
		"nests deeper than 100":        nest,
		"a: unexpected EOF":            map[string]any{"a": json.RawMessage(`{`)},
		"more behind the JSON value":   json.RawMessage(`1 2`),
		"behind the JSON value":        json.RawMessage(`{}}`),
		"no value of Go":               starlark.None,
	} {
		out, err := star.To(v)
		if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v, %v", want, out, err)
		}
	}
}
