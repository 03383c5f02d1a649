package exact

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/wire"
)

// Flat reads objects into structs of one type, whose fields are strings, booleans and numbers, as the inputs of most tools are: as encoding/json does, for a
// tenth of its cost. What is not plain it leaves to it.
type Flat struct{ fields []plainField }

type plainField struct {
	name string
	at   int
	kind reflect.Kind
}

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// FlatOf gives nil for a type that has more to it.
func FlatOf(t reflect.Type) *Flat {
	if t.Kind() != reflect.Struct || reads(t) {
		return nil
	}
	f := &Flat{}
	for i := range t.NumField() {
		of := t.Field(i)
		tag := of.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case of.Anonymous || tag == "-":
			return nil
		case !of.IsExported():
			continue
		case strings.Contains(options, "string") || strings.ContainsFunc(name, unusual) || !isPlain(of.Type):
			return nil
		case name == "":
			name = of.Name
		}
		for _, other := range f.fields {
			if other.name == name {
				return nil
			}
		}
		f.fields = append(f.fields, plainField{name, i, of.Type.Kind()})
	}
	return f
}

// unusual reports whether a name may not be what it looks like.
func unusual(r rune) bool {
	return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// isPlain reports whether values of a type have nothing of their own to say about their JSON.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return t != reflect.TypeFor[json.Number]() && !reads(t) && !reflect.PointerTo(t).Implements(textUnmarshaler)
	default:
		return false
	}
}

// Read reads data into to, which is new. When it is false, to counts no more, and encoding/json has to say what data is.
func (f *Flat) Read(data []byte, to reflect.Value) bool {
	m := wire.Object(data)
members:
	for m.Next() {
		for i := range f.fields {
			if f.fields[i].name == string(m.Key) {
				if !f.fields[i].read(m.Value, to) {
					return false
				}
				continue members
			}
		}
		return false // there may be one whose case differs
	}
	return m.Err() == nil
}

func (p *plainField) read(raw []byte, to reflect.Value) bool {
	c, v := raw[0], to.Field(p.at)
	switch {
	case c == 'n': // null changes nothing
		return true
	case p.kind == reflect.String:
		if c == '"' {
			v.SetString(wire.String(raw))
		}
		return c == '"'
	case p.kind == reflect.Bool:
		v.SetBool(c == 't')
		return c == 't' || c == 'f'
	case c != '-' && (c < '0' || c > '9'):
		return false
	case v.CanInt():
		n, err := strconv.ParseInt(string(raw), 10, v.Type().Bits())
		v.SetInt(n)
		return err == nil
	case v.CanUint():
		n, err := strconv.ParseUint(string(raw), 10, v.Type().Bits())
		v.SetUint(n)
		return err == nil
	}
	x, err := strconv.ParseFloat(string(raw), v.Type().Bits())
	v.SetFloat(x)
	return err == nil && !math.IsInf(x, 0)
}
