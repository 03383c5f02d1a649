package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// members walks data and returns what it saw as "key=value".
func members(data string) (seen []string, err error) {
	m := Object([]byte(data))
	for m.Next() {
		seen = append(seen, string(m.Key)+"="+string(m.Value))
	}
	return seen, m.Err()
}

func elements(data string) (seen []string, err error) {
	e := Array([]byte(data))
	for e.Next() {
		seen = append(seen, string(e.Value))
	}
	return seen, e.Err()
}

func TestObjectWalksMembersInOrder(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     []string
	}{
		{"an empty object has none", ` { } `, nil},
		{"one member", `{"a":1}`, []string{`a=1`}},
		{"white space does not matter", "\n{ \"a\" : [ 1 ] ,\t\"b\"\r:\n\"x y\" } ", []string{`a=[ 1 ]`, `b="x y"`}},
		{"duplicates are all seen", `{"a":1,"a":2}`, []string{`a=1`, `a=2`}},
		{"escapes in names are resolved", `{"\u0061\n\ud83d\ude00":1,"b":2,"\"":3}`, []string{"a\n😀=1", `b=2`, `"=3`}},
		{"invalid UTF-8 in names is replaced", "{\"\xff\":1}", []string{"\ufffd=1"}},
		{"an empty name is a name", `{"":null}`, []string{`=null`}},
		{"values are raw", `{"a":"\u0041","b":1.0,"c":{"d":{}}}`, []string{`a="\u0041"`, `b=1.0`, `c={"d":{}}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := members(test.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestArrayWalksElementsInOrder(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     []string
	}{
		{"an empty array has none", "[\n]", nil},
		{"one element", `[1]`, []string{`1`}},
		{"white space does not matter", ` [ 1 , "a b" , [ 2 ] ] `, []string{`1`, `"a b"`, `[ 2 ]`}},
		{"null is an element", `[null]`, []string{`null`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := elements(test.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrorsNameTheOffsetAndWhatWasExpected(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{``, `wire: offset 0: expected '{', found the end`},
		{`null`, `wire: offset 0: expected '{', found 'n'`},
		{` []`, `wire: offset 1: expected '{', found '['`},
		{`{`, `wire: offset 1: expected '"' to begin a member name, found the end`},
		{`{,`, `wire: offset 1: expected '"' to begin a member name, found ','`},
		{`{"a":1,}`, `wire: offset 7: expected '"' to begin a member name, found '}'`},
		{`{"a" 1}`, `wire: offset 5: expected ':' after a member name, found '1'`},
		{`{"a":}`, `wire: offset 5: expected a value, found '}'`},
		{`{"a":1 "b":2}`, `wire: offset 7: expected ',' or '}' after a member, found '"'`},
		{`{"a":[1 2]}`, `wire: offset 8: expected ',' or ']' after an element, found '2'`},
		{`{"a":{"b":1]}`, `wire: offset 11: expected ',' or '}' after a member, found ']'`},
		{`{"a":trap}`, `wire: offset 5: expected true, found 't'`},
		{`{"a":-x}`, `wire: offset 6: expected a digit, found 'x'`},
		{`{"a":"b`, `wire: offset 7: expected '"' to end a string, found the end`},
		{"{\"a\":\"\n\"}", `wire: offset 6: expected an escaped control character in a string, found '\n'`},
		{`{"a":"\q"}`, `wire: offset 7: expected one of "\/bfnrtu after a backslash, found 'q'`},
		{`{"a":"\u12x4"}`, `wire: offset 10: expected four hexadecimal digits after \u, found 'x'`},
		{"{\"a\":\xe2}", `wire: offset 5: expected a value, found byte 0xe2`},
		{`{} x`, `wire: offset 3: expected nothing after the value, found 'x'`},
		{`{"a":1}{`, `wire: offset 7: expected nothing after the value, found '{'`},
		{`{"a":` + strings.Repeat("[", maxDepth), `wire: offset 10004: expected at most 10000 levels of nesting, found '['`},
	} {
		if _, err := members(test.in); err == nil || err.Error() != test.want {
			t.Errorf("%.40q: got %v, want %s", test.in, err, test.want)
		}
	}
	if _, err := elements(`{}`); err == nil || err.Error() != `wire: offset 0: expected '[', found '{'` {
		t.Errorf("an array over an object: got %v", err)
	}
}

func TestMembersBeforeAFaultAreHandedOut(t *testing.T) {
	got, err := members(`{"a":1,"b":[1,2}`)
	if err == nil || !slices.Equal(got, []string{"a=1"}) {
		t.Errorf("got %q, %v", got, err)
	}
	got, err = elements(`[1,{"a":2},tru]`)
	if err == nil || !slices.Equal(got, []string{"1", `{"a":2}`}) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAFinishedCursorStaysFinished(t *testing.T) {
	for _, data := range []string{`{"a":1}`, `{"a":1,}`, `[1]`, `x`, `{"a":1}{"b":2}`} {
		m := Object([]byte(data))
		for m.Next() {
		}
		err := m.Err()
		if m.Next() || m.Key != nil || m.Value != nil || !errors.Is(m.Err(), err) {
			t.Errorf("%s: the members went on: %s=%s, %v", data, m.Key, m.Value, m.Err())
		}
		e := Array([]byte(data))
		for e.Next() {
		}
		err = e.Err()
		if e.Next() || e.Value != nil || !errors.Is(e.Err(), err) {
			t.Errorf("%s: the elements went on: %s, %v", data, e.Value, e.Err())
		}
	}
}

func TestZeroCursorsAreErrors(t *testing.T) {
	var m Members
	var e Elements
	if m.Next() || e.Next() || m.Err() == nil || e.Err() == nil {
		t.Errorf("got %v, %v", m.Err(), e.Err())
	}
}

func TestAppendingToAValueDoesNotTouchTheData(t *testing.T) {
	data := []byte(`{"a":1,"b":2}`)
	m := Object(data)
	m.Next()
	_ = append(m.Value, "!!!"...)
	_ = append(m.Key, "!!!"...)
	_ = append(Get(data, "a"), "!!!"...)
	_ = append(Get(data[:7]), "!!!"...)
	if string(data) != `{"a":1,"b":2}` {
		t.Errorf("data became %s", data)
	}
}

func TestGetFollowsAPathOfKeys(t *testing.T) {
	const doc = ` {"a":{"b":{"c":[1,2]},"n":null},"a":{"x":1},"s":"t","":0,"k\u0065y":5} `
	for _, test := range []struct {
		name, in string
		path     []string
		want     string // "" for nil
	}{
		{"no path is the whole value", " [1] ", nil, "[1]"},
		{"one key", doc, []string{"s"}, `"t"`},
		{"three keys", doc, []string{"a", "b", "c"}, `[1,2]`},
		{"null is a value", doc, []string{"a", "n"}, `null`},
		{"an empty key is a key", doc, []string{""}, `0`},
		{"an escaped key is found", doc, []string{"key"}, `5`},
		{"the first of duplicates is taken", doc, []string{"a", "b"}, `{"c":[1,2]}`},
		{"a later duplicate is not tried", doc, []string{"a", "x"}, ``},
		{"an absent key", doc, []string{"z"}, ``},
		{"an absent key further down", doc, []string{"a", "b", "z"}, ``},
		{"null on the way", doc, []string{"a", "n", "z"}, ``},
		{"an array on the way", doc, []string{"a", "b", "c", "0"}, ``},
		{"a string on the way", doc, []string{"s", "t"}, ``},
		{"no path into nothing", ``, nil, ``},
		{"no path into malformed data", `[1`, nil, ``},
		{"a fault before the value", `{"x":tru,"a":1}`, []string{"a"}, ``},
		{"a fault after the value", `{"a":1,"x":tru}`, []string{"a"}, ``},
		{"data after the object", `{"a":1} 2`, []string{"a"}, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Get([]byte(test.in), test.path...)
			if string(got) != test.want || (got == nil) != (test.want == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzObject(f *testing.F) {
	for _, s := range slices.Concat(valid, invalid) {
		f.Add([]byte(s))
	}
	f.Add([]byte("{\"\\u0061\":1,\"a\":2,\"\xff\":3,\"\\ud800\":4}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var want map[string]json.RawMessage
		err := json.Unmarshal(data, &want)
		isObject := err == nil && want != nil
		got := map[string]json.RawMessage{}
		first := map[string][]byte{}
		m := Object(data)
		for m.Next() {
			checkValue(t, m.Value)
			key := string(m.Key)
			got[key] = m.Value
			if first[key] == nil {
				first[key] = m.Value
			}
		}
		if (m.Err() == nil) != isObject {
			t.Fatalf("Object(%q) ended with %v, encoding/json with %v", data, m.Err(), err)
		}
		if isObject {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("Object(%q): %s", data, diff)
			}
			for key, value := range first {
				if got := Get(data, key); !bytes.Equal(got, value) {
					t.Fatalf("Get(%q, %q) = %s, want %s", data, key, got, value)
				}
			}
		}

		var list []json.RawMessage
		err = json.Unmarshal(data, &list)
		isArray := err == nil && list != nil
		seen := []json.RawMessage{}
		e := Array(data)
		for e.Next() {
			checkValue(t, e.Value)
			seen = append(seen, e.Value)
		}
		if (e.Err() == nil) != isArray {
			t.Fatalf("Array(%q) ended with %v, encoding/json with %v", data, e.Err(), err)
		}
		if isArray {
			if diff := cmp.Diff(list, seen); diff != "" {
				t.Fatalf("Array(%q): %s", data, diff)
			}
		}
	})
}

// checkValue fails unless value is valid JSON without white space around, as the
// cursors promise even when a later fault ends the walk.
func checkValue(t *testing.T, value []byte) {
	t.Helper()
	if !json.Valid(value) || !bytes.Equal(value, bytes.TrimSpace(value)) {
		t.Fatalf("handed out %q", value)
	}
}

func TestAMemberKnowsWhereItStands(t *testing.T) {
	data := []byte(` { "a" : [ 1 ] , "\u0062":2,"c":{} } `)
	want := []string{`"a" : [ 1 ]`, `"\u0062":2`, `"c":{}`}
	var got []string
	for m := Object(data); m.Next(); {
		start, end := m.Span()
		got = append(got, string(data[start:end]))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFirstIsTheFirstMemberOfAName(t *testing.T) {
	for data, want := range map[string]string{
		`{"b":1,"a":[2],"a":3}`:  `[2]`,
		`{"\u0061":1}`:           `1`,
		`{"a":null}`:             `null`,
		`{"b":{"a":1}}`:          ``,
		`{}`:                     ``,
		`["a"]`:                  ``,
		`"a"`:                    ``,
		``:                       ``,
		` { "b" : 1 , "a" : 2 }`: `2`,
	} {
		if got := string(First([]byte(data), "a")); got != want || got != string(Get([]byte(data), "a")) {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}
