// Package exact reads JSON into Go values as it is written: encoding/json takes a member for a field whose name differs in case, so that what one reader of a text sees is not what another one gets.
package exact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// Unmarshal is json.Unmarshal, but for a member that is a field of a struct in another spelling than its tag has: it is an error that names the field. A field without a tag has no
// spelling of its own; two members for one are an error.
func Unmarshal(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	t := reflect.TypeOf(v)
	if !named(t, map[reflect.Type]bool{}) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return err
	}
	return check(t, tree, "")
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// named reports whether there are fields of structs in values of a type.
func named(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || reads(t) {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return named(t.Elem(), seen)
	case reflect.Struct:
		return len(fieldsOf(t)) > 0
	default:
		return false
	}
}

// reads reports whether a type reads its JSON itself.
func reads(t reflect.Type) bool {
	return t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler)
}

func check(t reflect.Type, tree any, at string) error {
	for t.Kind() == reflect.Pointer {
		if reads(t) {
			return nil
		}
		t = t.Elem()
	}
	if reads(t) {
		return nil
	}
	switch tree := tree.(type) {
	case []any:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			return nil
		}
		for i, c := range tree {
			if err := check(t.Elem(), c, fmt.Sprintf("%s/%d", at, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		switch t.Kind() {
		case reflect.Map:
			for name, c := range tree {
				if err := check(t.Elem(), c, at+"/"+name); err != nil {
					return err
				}
			}
		case reflect.Struct:
			fields, given := fieldsOf(t), map[string]bool{}
			for name := range tree {
				given[name] = true
			}
			for name, c := range tree {
				f, ok := fields[name]
				for own, other := range fields {
					switch {
					case ok || !strings.EqualFold(own, name):
					case other.tagged || given[own]:
						return fmt.Errorf("%s/%s: its name is %q", at, name, own)
					default:
						f, ok, given[own] = other, true, true
					}
				}
				if ok {
					if err := check(f.of, c, at+"/"+name); err != nil {
						return err
					}
				}
			}
		default:
		}
	}
	return nil
}

var known sync.Map // reflect.Type -> map[string]field

type field struct {
	of     reflect.Type
	tagged bool
}

// fieldsOf are the members that encoding/json reads into a struct, with their types. Of two of a name, embedded ones among them, either may be named: both have to be spelled alike.
func fieldsOf(t reflect.Type) map[string]field {
	if f, ok := known.Load(t); ok {
		return f.(map[string]field)
	}
	all := map[string]field{}
	add(t, all, map[reflect.Type]bool{})
	known.Store(t, all)
	return all
}

func add(t reflect.Type, all map[string]field, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			add(inner, all, seen)
		case !f.IsExported():
		case name == "":
			all[f.Name] = field{f.Type, false}
		default:
			all[name] = field{f.Type, true}
		}
	}
}
