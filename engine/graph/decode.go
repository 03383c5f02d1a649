package graph

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// decode puts a value of JSON's types into a Go value, strictly: what does not fit, and each field that is not there, is a problem with its path.
func decode(p *problems, path string, from any, into reflect.Value) {
	wrong := func(want string) { p.add(path, "", "%s where %s has to stand", kindOf(from), want) }
	if from == nil && into.Kind() != reflect.Interface && into.Kind() != reflect.Pointer {
		wrong("a value")
		return
	}
	if into.CanAddr() {
		switch u := into.Addr().Interface().(type) {
		case json.Unmarshaler:
			b, err := json.Marshal(from)
			if err == nil {
				err = u.UnmarshalJSON(b)
			}
			if err != nil {
				p.add(path, "", "%v", err)
			}
			return
		case encoding.TextUnmarshaler:
			s, ok := from.(string)
			if !ok {
				wrong("a text")
			} else if err := u.UnmarshalText([]byte(s)); err != nil {
				p.add(path, "", "%v", err)
			}
			return
		}
	}
	switch into.Kind() {
	case reflect.Pointer:
		if from == nil {
			into.SetZero()
			return
		}
		v := reflect.New(into.Type().Elem())
		decode(p, path, from, v.Elem())
		into.Set(v)
	case reflect.Interface:
		if from == nil {
			into.SetZero()
		} else if v := reflect.ValueOf(from); v.Type().AssignableTo(into.Type()) {
			into.Set(v)
		} else {
			wrong("a " + into.Type().String())
		}
	case reflect.String:
		if s, ok := from.(string); ok {
			into.SetString(s)
		} else {
			wrong("a text")
		}
	case reflect.Bool:
		if b, ok := from.(bool); ok {
			into.SetBool(b)
		} else {
			wrong("true or false")
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, ok := whole(from)
		if !ok || into.OverflowInt(n) {
			wrong("a whole number")
			return
		}
		into.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, ok := whole(from)
		if !ok || n < 0 || into.OverflowUint(uint64(n)) {
			wrong("a whole number from 0")
			return
		}
		into.SetUint(uint64(n))
	case reflect.Float32, reflect.Float64:
		if f, ok := from.(float64); ok {
			into.SetFloat(f)
		} else if n, ok := whole(from); ok {
			into.SetFloat(float64(n))
		} else {
			wrong("a number")
		}
	case reflect.Slice:
		list, ok := from.([]any)
		if !ok {
			wrong("a list")
			return
		}
		v := reflect.MakeSlice(into.Type(), len(list), len(list))
		for i, x := range list {
			decode(p, fmt.Sprintf("%s[%d]", path, i), x, v.Index(i))
		}
		into.Set(v)
	case reflect.Map:
		m, ok := from.(map[string]any)
		if !ok || into.Type().Key().Kind() != reflect.String {
			wrong("a mapping")
			return
		}
		v := reflect.MakeMapWithSize(into.Type(), len(m))
		for _, name := range slices.Sorted(maps.Keys(m)) {
			x := reflect.New(into.Type().Elem()).Elem()
			decode(p, path+"."+name, m[name], x)
			v.SetMapIndex(reflect.ValueOf(name).Convert(into.Type().Key()), x)
		}
		into.Set(v)
	case reflect.Struct:
		m, ok := from.(map[string]any)
		if !ok {
			wrong("a mapping")
			return
		}
		decodeStruct(p, path, m, into)
	default:
		p.add(path, "", "a %s can't be read from a definition", into.Type())
	}
}

// member is the path of a field.
func member(path, name string) string {
	if path == "$" || path == "" {
		return name
	}
	return path + "." + name
}

func decodeStruct(p *problems, path string, from map[string]any, into reflect.Value) {
	fields := map[string]reflect.Value{}
	fieldsOf(into, fields)
	names := slices.Sorted(maps.Keys(fields))
	for _, name := range slices.Sorted(maps.Keys(from)) {
		f, ok := fields[name]
		if !ok {
			fix := "it may have " + strings.Join(names, ", ")
			if len(names) == 0 {
				fix = "leave it out"
			}
			p.add(member(path, name), meant(name, names, fix), "unknown field %q", name)
			continue
		}
		decode(p, member(path, name), from[name], f)
	}
}

// fieldsOf collects a struct's fields by their names in JSON, with those of embedded structs.
func fieldsOf(v reflect.Value, into map[string]reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-":
		case f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct:
			fieldsOf(v.Field(i), into)
		case f.IsExported() && tag != "":
			into[tag] = v.Field(i)
		case f.IsExported():
			into[f.Name] = v.Field(i)
		}
	}
}

func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case float64: // as encoding/json has all numbers
		return int64(v), v == math.Trunc(v) && math.Abs(v) <= 1<<53
	}
	return 0, false
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case int, int64, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}
	return fmt.Sprintf("a %T", v)
}
