package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// worded is why a request's object can't be read into v, in the words of who wrote it: by members, and not by what reads them.
func worded(err error, b []byte, v any) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Errorf("%s: want %s, got a JSON %s", member(wrong.Field, v), kindOf(wrong.Type), wrong.Value)
	}
	var is map[string]json.RawMessage
	if json.Unmarshal(b, &is) != nil {
		return err
	}
	known := members(reflect.TypeOf(v).Elem())
	for name := range is {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no %.80q here: want %s", name, strings.Join(known, ", "))
		}
	}
	return err
}

// members are the names that a struct is read by.
func members(t reflect.Type) (all []string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			all = append(all, members(f.Type)...)
		case name != "" && name != "-":
			all = append(all, name)
		}
	}
	return all
}

// member is the path of a member. encoding/json puts the names of embedded structs before it, which nobody wrote.
func member(path string, v any) string {
	first, rest, more := strings.Cut(path, ".")
	if f, ok := reflect.TypeOf(v).Elem().FieldByName(first); ok && f.Anonymous && more {
		return rest
	}
	return path
}

func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Pointer:
		return kindOf(t.Elem())
	default:
		return "another type"
	}
}
