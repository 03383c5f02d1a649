package pack

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
)

// decode fills v, a pointer, with a value of the file. Names have to be exact, which encoding/json does not ask for; an integer may be written as 5.0, which it does not allow. What is of
// another type than v has it is left out: the schema has said so already.
func decode(r *report, n *node, p path, v reflect.Value) {
	if d, ok := v.Addr().Interface().(interface{ defaults() }); ok {
		d.defaults()
	}
	if d, ok := v.Addr().Interface().(interface{ decode(*report, *node, path) }); ok {
		d.decode(r, n, p)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		below := reflect.New(v.Type().Elem())
		decode(r, n, p, below.Elem())
		v.Set(below)
	case reflect.Struct:
		members(r, n, p, v)
	case reflect.Map:
		if n.kind != '{' {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for _, c := range n.children {
			below := reflect.New(v.Type().Elem()).Elem()
			decode(r, c, append(p, c.name), below)
			v.SetMapIndex(reflect.ValueOf(c.name), below)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			if n.kind == '{' {
				v.SetBytes(n.raw)
			}
			return
		}
		if n.kind != '[' {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.children), len(n.children)))
		for i, c := range n.children {
			decode(r, c, append(p, i), v.Index(i))
		}
	case reflect.Interface:
		if value := n.any(); value != nil {
			v.Set(reflect.ValueOf(value))
		}
	case reflect.String:
		if s, ok := n.value.(string); ok {
			v.SetString(s)
		}
	case reflect.Bool:
		if b, ok := n.value.(bool); ok {
			v.SetBool(b)
		}
	case reflect.Float64:
		if number, ok := n.value.(json.Number); ok {
			f, _ := number.Float64() // parse has seen that it is one
			v.SetFloat(f)
		}
	case reflect.Int:
		if number, ok := n.value.(json.Number); ok {
			f, _ := number.Float64()
			if math.Abs(f) > math.MaxInt32 {
				r.problem(p, fmt.Sprintf("the number %s is too large", clip(number.String())), fmt.Sprintf("write one up to %d", math.MaxInt32))
				return
			}
			v.SetInt(int64(f))
		}
	default:
		panic("pack: no way to decode a " + v.Type().String())
	}
}

// members fills a struct. A field with the name * takes what no other field takes.
func members(r *report, n *node, p path, v reflect.Value) {
	if n.kind != '{' {
		return
	}
	rest := reflect.Value{}
	taken := map[string]bool{}
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("json")
		switch name {
		case "", "-":
		case "*":
			rest = v.Field(i)
		default:
			taken[name] = true
			if d, ok := v.Field(i).Addr().Interface().(interface{ defaults() }); ok {
				d.defaults() // also when it is not there
			}
			if c := n.member(name); c != nil {
				decode(r, c, append(p, name), v.Field(i))
			}
		}
	}
	if !rest.IsValid() {
		return
	}
	for _, c := range n.children {
		if !taken[c.name] {
			if rest.IsNil() {
				rest.Set(reflect.MakeMap(rest.Type()))
			}
			below := reflect.New(rest.Type().Elem()).Elem()
			decode(r, c, append(p, c.name), below)
			rest.SetMapIndex(reflect.ValueOf(c.name), below)
		}
	}
}

// decode reads a skill, which may be a mere path.
func (s *Skill) decode(r *report, n *node, p path) {
	if text, ok := n.value.(string); ok {
		s.Path = text
		return
	}
	members(r, n, p, reflect.ValueOf(s).Elem())
}
