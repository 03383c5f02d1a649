package star

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// deepest is how far values nest: what vars of a journal do.
const deepest = 100

// To makes a Starlark value of one that journal.Vars takes. The value is fresh: a script may change it, and v stays as it is.
//
//	nil, bool, string, float64, []byte    None, bool, string, float, bytes
//	int, int64                            int
//	[]any, []string, []int, []float64     list
//	map[string]any, map[string]string     dict, in the order of its keys
//	message.Message, []message.Message    message (role, text, calls), list of these
//	model.Usage                           struct (input, output, cache_read, cache_write, reasoning)
//	json.RawMessage, json.Number          what the JSON says; an object's keys in their order
//	time.Time, time.Duration              its text in RFC 3339 with its offset; a float of seconds
//
// A value of any other type, and one that nests deeper than 100, is errdefs.Validation with the path of what is wrong.
func To(v any) (starlark.Value, error) { return to(v, "", 0) }

func to(v any, path string, depth int) (starlark.Value, error) {
	if depth > deepest {
		return nil, wrong(path, "it nests deeper than %d", deepest)
	}
	switch v := v.(type) {
	case nil:
		return starlark.None, nil
	case starlark.Value:
		return nil, wrong(path, "a %T is no value of Go", v)
	case bool:
		return starlark.Bool(v), nil
	case string:
		return starlark.String(v), nil
	case int:
		return starlark.MakeInt(v), nil
	case int64:
		return starlark.MakeInt64(v), nil
	case float64:
		return starlark.Float(v), nil
	case []byte:
		return starlark.Bytes(v), nil
	case time.Time:
		return starlark.String(v.Format(time.RFC3339Nano)), nil
	case time.Duration:
		return starlark.Float(v.Seconds()), nil
	case message.Message:
		return Message{v}, nil
	case model.Usage:
		return NewStruct(starlark.StringDict{
			"input": starlark.MakeInt(v.Input), "output": starlark.MakeInt(v.Output), "cache_read": starlark.MakeInt(v.CacheRead),
			"cache_write": starlark.MakeInt(v.CacheWrite), "reasoning": starlark.MakeInt(v.Reasoning),
		}), nil
	case []message.Message:
		return listOf(v, path, depth)
	case []string:
		return listOf(v, path, depth)
	case []int:
		return listOf(v, path, depth)
	case []float64:
		return listOf(v, path, depth)
	case []any:
		return listOf(v, path, depth)
	case map[string]string:
		return dictOf(v, path, depth)
	case map[string]any:
		return dictOf(v, path, depth)
	case journal.Vars:
		return dictOf(v, path, depth)
	case json.Number:
		return number(v, path)
	case json.RawMessage:
		if v == nil {
			return starlark.None, nil
		}
		in, err := decode(v)
		if err != nil {
			return nil, wrong(path, "%w", err)
		}
		return to(in, path, depth)
	}
	return nil, wrong(path, "a %T is no value of a script", v)
}

func listOf[T any](l []T, path string, depth int) (starlark.Value, error) {
	out := make([]starlark.Value, len(l))
	for i, v := range l {
		var err error
		if out[i], err = to(v, fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
			return nil, err
		}
	}
	return starlark.NewList(out), nil
}

func dictOf[M ~map[string]T, T any](m M, path string, depth int) (starlark.Value, error) {
	out := starlark.NewDict(len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		v, err := to(m[k], member(path, k), depth+1)
		if err != nil {
			return nil, err
		}
		if err := out.SetKey(starlark.String(k), v); err != nil {
			return nil, wrong(path, "%w", err)
		}
	}
	return out, nil
}

func number(n json.Number, path string) (starlark.Value, error) {
	if i, err := n.Int64(); err == nil {
		return starlark.MakeInt64(i), nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, wrong(path, "the number %s: %w", n, err)
	}
	return starlark.Float(f), nil
}

// decode reads one JSON value, numbers as they are written.
func decode(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err = d.Decode(&v); err != nil {
		return v, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("there is more behind the JSON value")
	}
	return v, nil
}

// From makes a value that journal.Vars takes of one of Starlark's: an int is an int, a list or a tuple an []any, a dict a map[string]any, bytes a []byte, a message
// a message.Message. errdefs.Validation with the path of what is wrong: an int beyond 64 bits, a float that is no number, a dict with keys that are no strings, a function
// or any other value without a place in a journal, what nests deeper than 100 or contains itself, and what is larger than 64 MiB with all that it has more than once.
func From(v starlark.Value) (any, error) {
	if _, err := measure(v, 64<<20); err != nil {
		return nil, wrong("", "%w", err)
	}
	return from(v, "", 0)
}

func from(v starlark.Value, path string, depth int) (any, error) {
	if depth > deepest {
		return nil, wrong(path, "it nests deeper than %d", deepest)
	}
	switch v := v.(type) {
	case starlark.NoneType:
		return nil, nil
	case starlark.Bool:
		return bool(v), nil
	case starlark.String:
		return string(v), nil
	case starlark.Bytes:
		return []byte(v), nil
	case starlark.Int:
		i, ok := v.Int64()
		if !ok {
			return nil, wrong(path, "the int is too large: 64 bits are kept; make it a string or a float")
		}
		return int(i), nil
	case starlark.Float:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, wrong(path, "the float %v is no number", f)
		}
		return float64(v), nil
	case Message:
		return v.Message, nil
	case *starlark.List:
		return items(v, path, depth)
	case starlark.Tuple:
		return items(v, path, depth)
	case *starlark.Dict:
		out := make(map[string]any, v.Len())
		for k, x := range v.Entries() {
			name, ok := starlark.AsString(k)
			if !ok {
				return nil, wrong(path, "a key of the dict is a %s: only strings are kept", k.Type())
			}
			var err error
			if out[name], err = from(x, member(path, name), depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, wrong(path, "a %s can't be kept: make it a string, a list or a dict", v.Type())
}

func items(l starlark.Indexable, path string, depth int) (any, error) {
	out := make([]any, l.Len())
	for i := range out {
		var err error
		if out[i], err = from(l.Index(i), fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Back is From for a value that was before: what says the same comes back as it was, with its type, and without a copy. So an int64 that a script gave back untouched stays one.
func Back(v starlark.Value, before any) (any, error) {
	switch before.(type) {
	case nil, bool, string, int, float64:
		return From(v) // these come back by themselves
	}
	was, err := To(before)
	if err == nil {
		if _, err := measure(v, 64<<20); err != nil {
			return nil, wrong("", "%w", err)
		}
		if same(v, was, 0) {
			return before, nil
		}
	}
	return From(v)
}

// same tells apart what Starlark's == doesn't: 1 and 1.0.
func same(a, b starlark.Value, depth int) bool {
	if depth > deepest || a.Type() != b.Type() {
		return false
	}
	switch a := a.(type) {
	case *starlark.List:
		b := b.(*starlark.List)
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i), depth+1) {
				return false
			}
		}
		return true
	case *starlark.Dict:
		b := b.(*starlark.Dict)
		if a.Len() != b.Len() {
			return false
		}
		for k, v := range a.Entries() {
			w, ok, err := b.Get(k)
			if err != nil || !ok || !same(v, w, depth+1) {
				return false
			}
		}
		return true
	case Message:
		return a.Message == b.(Message).Message
	case *Struct:
		b := b.(*Struct)
		if !slices.Equal(a.names, b.names) {
			return false
		}
		for i := range a.values {
			if !same(a.values[i], b.values[i], depth+1) {
				return false
			}
		}
		return true
	}
	ok, err := starlark.Equal(a, b)
	return err == nil && ok
}

// wrong is Validation for what stands at path; "" is the value itself.
func wrong(path, format string, args ...any) error {
	if path != "" {
		return errdefs.Validation.Errorf("%s: %w", strings.TrimPrefix(path, "."), fmt.Errorf(format, args...))
	}
	return errdefs.Validation.Errorf(format, args...)
}

func member(path, name string) string {
	const most = 60 // of a name, which may be anything
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return path + "." + name
}
