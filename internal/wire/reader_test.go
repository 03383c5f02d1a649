package wire

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestAReaderWalksWhatIsNestedWhereItStands(t *testing.T) {
	const doc = ` {"a":1, "b" : { "c":"x" , "d":[ 1,{"e":null},[] ] },"f\u0067":true,"a":2} `
	var seen []string
	r := Read([]byte(doc))
	for key := range r.Object {
		switch string(key) {
		case "b":
			from := r.Offset()
			for key := range r.Object {
				name := "b." + string(key)
				for i := range r.Array {
					for range r.Object {
						seen = append(seen, name+"{"+string(r.Value()))
					}
					if i == 0 {
						seen = append(seen, name+"["+string(r.Value()))
					}
				}
			}
			seen = append(seen, doc[from:r.Offset()])
		default:
			seen = append(seen, string(key)+"="+string(r.Value()))
		}
	}
	want := []string{"a=1", "b.d[1", "b.d{null", `{ "c":"x" , "d":[ 1,{"e":null},[] ] }`, "fg=true", "a=2"}
	if !slices.Equal(seen, want) || r.Err() != nil {
		t.Errorf("got %q, %v, want %q", seen, r.Err(), want)
	}
}

func TestAReaderGoesOnBehindWhatABodyLeft(t *testing.T) {
	r := Read([]byte(`{"a":{"x":1,"y":{"z":[2]}},"b":[1,[2],3],"c":4,"d":5}`))
	var seen []string
	for key := range r.Object {
		seen = append(seen, string(key))
		for range r.Object {
			break
		}
		for range r.Array {
			break
		}
		if string(key) == "c" {
			break
		}
	}
	if !slices.Equal(seen, []string{"a", "b", "c"}) || r.Err() != nil {
		t.Errorf("got %q, %v", seen, r.Err())
	}
}

// readAll reads the members of an object as [members] does.
func readAll(data string) (seen []string, err error) {
	r := Read([]byte(data))
	for key := range r.Object {
		if value := r.Value(); value != nil {
			seen = append(seen, string(key)+"="+string(value))
		}
	}
	return seen, r.Err()
}

func TestAReaderSaysTheSameAsAWalk(t *testing.T) {
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	for _, s := range slices.Concat(valid, invalid, []string{`{} x`, `{"a":1}{`, `{"a":1 "b":2}`, `{"a":[1 2]}`, "{\"\xff\":1}", `{"a":` + strings.Repeat("[", maxDepth)}) {
		want, wantErr := members(s)
		got, err := readAll(s)
		if !slices.Equal(got, want) || text(err) != text(wantErr) {
			t.Errorf("%.60q: got %.60q, %v, want %.60q, %v", s, got, err, want, wantErr)
		}
	}
}

func TestAReaderThatReadNothingHasAnError(t *testing.T) {
	for _, s := range []string{``, ` `, `{}`} {
		r := Read([]byte(s))
		if r.Err() == nil {
			t.Errorf("%q: no error", s)
		}
	}
	r := Read([]byte(` 7 `))
	if string(r.Value()) != "7" || r.Err() != nil {
		t.Errorf("got %v", r.Err())
	}
}

func TestAReaderNestsAsDeepAsTheStandardLibrary(t *testing.T) {
	var walk func(r *Reader)
	walk = func(r *Reader) {
		for range r.Array {
			walk(r)
		}
	}
	for _, depth := range []int{maxDepth - 1, maxDepth, maxDepth + 1} {
		data := []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		r := Read(data)
		walk(&r)
		if got, want := r.Err() == nil, json.Valid(data); got != want {
			t.Errorf("%d levels: %v", depth, r.Err())
		}
	}
}

// tree reads everything, as encoding/json does: a member that comes again takes the place of the one before.
func tree(r *Reader) any {
	from := r.Offset()
	object := map[string]any{}
	for key := range r.Object {
		name := string(key)
		object[name] = tree(r)
	}
	if r.Offset() > from {
		return object
	}
	list := []any{}
	for range r.Array {
		list = append(list, tree(r))
	}
	if r.Offset() > from {
		return list
	}
	var value any
	_ = json.Unmarshal(r.Value(), &value)
	return value
}

// some reads what the bits of choice say, and leaves the rest.
func some(r *Reader, choice *uint64) {
	bit := func() bool {
		*choice = *choice>>1 | *choice<<63
		return *choice&1 == 1
	}
	if bit() {
		for range r.Object {
			if some(r, choice); bit() {
				break
			}
		}
		for range r.Array {
			if some(r, choice); bit() {
				break
			}
		}
	} else if bit() {
		r.Value()
	}
}

func FuzzReader(f *testing.F) {
	for i, s := range slices.Concat(valid, invalid) {
		f.Add([]byte(s), uint64(i)*0x9E3779B97F4A7C15)
	}
	f.Fuzz(func(t *testing.T, data []byte, choice uint64) {
		var want any
		err := json.Unmarshal(data, &want)
		object, isObject := want.(map[string]any)
		r := Read(data)
		if got := tree(&r); len(data) > 0 && skipSpace(data, 0) < len(data) && data[skipSpace(data, 0)] == '{' {
			if (r.Err() == nil) != (err == nil) {
				t.Fatalf("%q ended with %v, encoding/json with %v", data, r.Err(), err)
			}
			if isObject && !reflect.DeepEqual(got, any(object)) {
				t.Fatalf("%q: got %v, want %v", data, got, want)
			}
		} else if r.Err() == nil {
			t.Fatalf("%q is taken for an object", data)
		}
		// Whatever is read of it and whatever is left: the same bytes are JSON.
		r = Read(data)
		for range r.Object {
			some(&r, &choice)
		}
		if (r.Err() == nil) != isObject {
			t.Fatalf("%q, in part, ended with %v, encoding/json with %v", data, r.Err(), err)
		}
	})
}
