// Package schema checks JSON against a JSON Schema, without ever loading anything from elsewhere.
package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is compiled once and may be used by many goroutines.
type Schema struct {
	compiled *jsonschema.Schema
	plain    *plain // nil: it is not of that kind
}

// name is the schema's own, which has nothing to do with the working directory.
const name = "schema:///schema"

// Compile reads a schema. References are followed only inside it. The same text gives the same Schema again, while it is among those that were compiled last.
func Compile(text []byte) (*Schema, error) {
	if s := compiled.find(text); s != nil {
		return s, nil
	}
	s, err := compile(text)
	if err == nil {
		compiled.keep(text, s)
	}
	return s, err
}

func compile(text []byte) (*Schema, error) {
	doc, err := Parse(text)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	s, err := c.Compile(name)
	var invalid *jsonschema.SchemaValidationError
	var ve *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &ve) {
		return nil, errors.New(first(ve))
	} else if err != nil {
		return nil, err
	}
	if work(s, map[*jsonschema.Schema]int{}) >= mostWork {
		return nil, fmt.Errorf("it checks one value by more than %d schemas: its references to each other multiply", mostWork)
	}
	// A schema that refers to itself without end compiles, and refuses everything.
	if err := s.Validate(map[string]any{}); endless(err) {
		return nil, err
	}
	return &Schema{s, plainOf(doc, 0)}, nil
}

// first is one line of what is wrong with a schema: the deepest fault, the first of them.
func first(ve *jsonschema.ValidationError) string {
	var all []Fault
	leaves(ve, false, &all)
	slices.SortFunc(all, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(len(b.At), len(a.At)), cmp.Compare(strings.Join(a.At, "/"), strings.Join(b.At, "/")), -cmp.Compare(a.Why(), b.Why()))
	})
	return "/" + strings.Join(all[0].At, "/") + ": " + all[0].Why()
}

// mostWork is by how many schemas a value may be checked, not counting its members: each of two references to a schema with two references checks it anew, and so on.
const mostWork = 100_000

// work counts the schemas that s checks a value by, up to mostWork; known are those that were counted, and, with 0, that are being counted.
func work(s *jsonschema.Schema, known map[*jsonschema.Schema]int) int {
	if s == nil {
		return 0
	}
	if n, ok := known[s]; ok {
		return n
	}
	known[s] = 0
	below := slices.Concat([]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf, slices.Collect(maps.Values(s.DependentSchemas)))
	if s.DynamicRef != nil {
		below = append(below, s.DynamicRef.Ref)
	}
	for _, d := range s.Dependencies {
		if d, ok := d.(*jsonschema.Schema); ok {
			below = append(below, d)
		}
	}
	n := 1
	for _, b := range below {
		n = min(n+work(b, known), mostWork)
	}
	known[s] = n
	return n
}

func endless(err error) bool {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return false
	}
	if _, ok := ve.ErrorKind.(*kind.RefCycle); ok {
		return true
	}
	return slices.ContainsFunc(ve.Causes, func(c *jsonschema.ValidationError) bool { return endless(c) })
}

// nothing refuses to load references: a schema never makes us read a file or open a connection.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to %s: only references inside the schema are followed", url)
}

// Parse decodes JSON for [Schema.Check], and refuses numbers that no float64 comes near: the validator computes exactly, which takes it
// forever or ends in a panic.
func Parse(text []byte) (any, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return v, bounded(v)
}

func bounded(v any) error {
	switch v := v.(type) {
	case map[string]any:
		for _, m := range v {
			if err := bounded(m); err != nil {
				return err
			}
		}
	case []any:
		for _, m := range v {
			if err := bounded(m); err != nil {
				return err
			}
		}
	case json.Number:
		if !Bounded(v) {
			return fmt.Errorf("the number %s is out of range", Clip(v.String()))
		}
	}
	return nil
}

// Bounded reports whether n has few enough digits, and an exponent near enough, to be computed with.
func Bounded(n json.Number) bool {
	const mostDigits, mostExponent = 1000, 400
	_, exponent, _ := strings.Cut(strings.ToLower(n.String()), "e")
	e, err := strconv.Atoi(exponent)
	return len(n) <= mostDigits && (exponent == "" || err == nil && e <= mostExponent && e >= -mostExponent)
}

// Clip shows a text to a model, shortened: it may be long, and bytes of any kind.
func Clip(s string) string {
	const most = 500
	n := len(s)
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + fmt.Sprintf("… (%d bytes)", n)
	}
	return s
}

// Fault is one place where a value is wrong.
type Fault struct {
	At   []string             // names and indexes down to it
	In   []string             // of the schema that refuses it, as a pointer into the schema's text
	Kind jsonschema.ErrorKind // what refuses it
}

// Why says in English what is wrong.
func (f Fault) Why() string { return f.Kind.LocalizedString(english) }

var english = message.NewPrinter(language.English)

// Problems lists so many faults at most, each once, in an order of its own: the validator's is not always the same.
func Problems(faults []Fault, most int) string {
	all := make([]string, 0, len(faults))
	for _, f := range faults {
		all = append(all, Clip("/"+strings.Join(f.At, "/")+": "+f.Why()))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if n := len(all); n > most {
		all = append(all[:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(all, "; ")
}

// Check gives every fault of v, which comes from [Parse], in no particular order. A value that is none of several alternatives (oneOf) has the faults of each, or with choices is itself
// the one fault.
func (s *Schema) Check(v any, choices bool) ([]Fault, error) {
	var ve *jsonschema.ValidationError
	if err := s.compiled.Validate(v); err == nil {
		return nil, nil
	} else if !errors.As(err, &ve) {
		return nil, err
	}
	var out []Fault
	leaves(ve, choices, &out)
	return out, nil
}

func leaves(e *jsonschema.ValidationError, choices bool, out *[]Fault) {
	_, fragment, _ := strings.Cut(e.SchemaURL, "#")
	f := Fault{At: e.InstanceLocation, In: pointer(fragment), Kind: e.ErrorKind}
	_, choice := e.ErrorKind.(*kind.OneOf)
	if len(e.Causes) == 0 || choice && choices {
		*out = append(*out, f)
		return
	}
	for _, c := range e.Causes {
		leaves(c, choices, out)
	}
}

// pointer splits a JSON pointer, as it stands in an address.
func pointer(p string) []string {
	if plain, err := url.PathUnescape(p); err == nil {
		p = plain
	}
	if p == "" {
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(p, "/"), "/")
	for i, part := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts
}
