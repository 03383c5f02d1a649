package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/near"
)

// Params are a validator's parameters as JSON has them: string, bool, int or float64, []any, map[string]any, nil.
type Params map[string]any

func asError(err error, own **Error) bool { return errors.As(err, own) && len((*own).Faults) > 0 }

// Read begins reading parameters: each by its type, then [Reader.Err].
func (p Params) Read() *Reader { return &Reader{params: p} }

// Reader reads parameters and collects what is wrong with them.
type Reader struct {
	params Params
	known  []string
	faults []Fault
}

func (r *Reader) fault(name, reason, remedy string) {
	r.faults = append(r.faults, Fault{name, reason, remedy})
}

// get gives the first of names that is there: later ones are older names of the same parameter.
func (r *Reader) get(names ...string) (string, any) {
	r.known = append(r.known, names...)
	for _, name := range names {
		if v, ok := r.params[name]; ok {
			return name, v
		}
	}
	return names[0], nil
}

// Text reads a string; "" when it is not there.
func (r *Reader) Text(names ...string) string {
	name, v := r.get(names...)
	s, ok := v.(string)
	if v != nil && !ok {
		r.fault(name, "it is "+kindOf(v), "write a string")
	}
	return s
}

// OneOf reads a string that is one of some; the first of them when it is not there.
func (r *Reader) OneOf(name string, words ...string) string {
	s := r.Text(name)
	if s == "" {
		return words[0]
	}
	if !slices.Contains(words, s) {
		r.fault(name, fmt.Sprintf("%q is none of %s", s, strings.Join(words, ", ")), "write one of them")
	}
	return s
}

// Texts reads a list of strings, none of them empty.
func (r *Reader) Texts(names ...string) []string {
	name, v := r.get(names...)
	if v == nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		r.fault(name, "it is "+kindOf(v), "write a list of strings")
	}
	var out []string
	for i, e := range list {
		s, ok := e.(string)
		if !ok || strings.TrimSpace(s) == "" {
			r.fault(name, fmt.Sprintf("its element %d is %s", i+1, kindOf(e)), "write strings that are not empty")
			continue
		}
		out = append(out, s)
	}
	return out
}

// Count reads a whole number, at least 1; 0 when it is not there.
func (r *Reader) Count(names ...string) int {
	name, v := r.get(names...)
	if v == nil {
		return 0
	}
	n, ok := number(v)
	if !ok || n != math.Trunc(n) || n < 1 || n > math.MaxInt32 {
		r.fault(name, "it is "+kindOf(v), "write a whole number, at least 1")
		return 0
	}
	return int(n)
}

// Number reads a number, and whether it is there.
func (r *Reader) Number(name string) (float64, bool) {
	_, v := r.get(name)
	n, ok := number(v)
	if v != nil && !ok {
		r.fault(name, "it is "+kindOf(v), "write a number")
	}
	return n, ok
}

// Flag reads a bool, unless it is not there.
func (r *Reader) Flag(name string, unless bool) bool {
	_, v := r.get(name)
	b, ok := v.(bool)
	if v != nil && !ok {
		r.fault(name, "it is "+kindOf(v), "write true or false")
	}
	if !ok {
		return unless
	}
	return b
}

// Object reads an object; nil when it is not there.
func (r *Reader) Object(name string) map[string]any {
	_, v := r.get(name)
	m, ok := v.(map[string]any)
	if v != nil && !ok {
		r.fault(name, "it is "+kindOf(v), "write an object")
	}
	return m
}

// Missing says that a parameter is needed and not there.
func (r *Reader) Missing(name, remedy string) {
	if len(r.faults) == 0 {
		r.fault(name, "it is missing", remedy)
	}
}

// Err gives an [*Error] with all that is wrong: what was read, and parameters that nobody read, which would have no effect.
func (r *Reader) Err() error {
	for _, name := range slices.Sorted(keys(r.params)) {
		if slices.Contains(r.known, name) {
			continue
		}
		f := Fault{Param: name, Reason: "there is no such parameter", Remedy: "remove it"}
		if names := near.Names(name, r.known); len(names) > 0 {
			f.Remedy = "did you mean " + names[0] + "?"
		}
		r.faults = append(r.faults, f)
	}
	if len(r.faults) == 0 {
		return nil
	}
	return &Error{Faults: r.faults}
}

func keys(p Params) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range p {
			if !yield(name) {
				return
			}
		}
	}
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	case json.Number:
		n, err := v.Float64()
		return n, err == nil
	}
	return 0, false
}

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		if strings.TrimSpace(v) == "" {
			return "empty"
		}
		return "a string"
	case bool:
		return "a bool"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("%v", v)
}
