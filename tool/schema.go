package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	textmessage "golang.org/x/text/message"
)

// checker checks inputs against one schema, compiled once. A nil checker accepts any JSON object.
type checker struct{ schema *jsonschema.Schema }

func compile(schema json.RawMessage) (*checker, error) {
	doc, err := parse(schema)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	if err := c.AddResource(resource, doc); err != nil {
		return nil, err
	}
	s, err := c.Compile(resource)
	if err != nil {
		return nil, err
	}
	// A schema that refers to itself without end compiles, and refuses everything.
	if err := s.Validate(map[string]any{}); endless(err) {
		return nil, err
	}
	return &checker{s}, nil
}

// resource is the schema's name, which has nothing to do with the working directory.
const resource = "schema:///input"

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

// parse decodes JSON, and refuses numbers that no float64 comes near: the validator computes exactly, which takes it forever or ends
// in a panic.
func parse(text []byte) (any, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return v, bounded(v)
}

func bounded(v any) error {
	const mostDigits, mostExponent = 1000, 400
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
		_, exponent, _ := strings.Cut(strings.ToLower(v.String()), "e")
		if n, err := strconv.Atoi(exponent); len(v) > mostDigits || exponent != "" && (err != nil || n > mostExponent || n < -mostExponent) {
			return fmt.Errorf("the number %s is out of range", quote([]byte(v.String())))
		}
	}
	return nil
}

// nothing refuses to load references: a schema never makes us read a file or open a connection.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to %s: only references inside the schema are followed", url)
}

// check gives one error that names every place where input is wrong, and why.
func (c *checker) check(input json.RawMessage) error {
	v, err := parse(input)
	if err != nil {
		return fmt.Errorf("the input is not valid JSON (%w): %s", err, quote(input))
	}
	if _, ok := v.(map[string]any); !ok {
		return fmt.Errorf("the input must be a JSON object, not %s", quote(input))
	}
	if c == nil {
		return nil
	}
	var ve *jsonschema.ValidationError
	if err := c.schema.Validate(v); errors.As(err, &ve) {
		return errors.New(problems(ve))
	} else if err != nil {
		return err
	}
	return nil
}

// problems lists what is wrong, in an order of its own: the validator's is not always the same.
func problems(ve *jsonschema.ValidationError) string {
	const most = 20
	var out []string
	leaves(ve, &out)
	slices.Sort(out)
	out = slices.Compact(out)
	if n := len(out); n > most {
		out = append(out[:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(out, "; ")
}

var english = textmessage.NewPrinter(language.English)

func leaves(e *jsonschema.ValidationError, out *[]string) {
	if len(e.Causes) == 0 {
		at := "/" + strings.Join(e.InstanceLocation, "/")
		*out = append(*out, quote([]byte(at+": "+e.ErrorKind.LocalizedString(english))))
		return
	}
	for _, c := range e.Causes {
		leaves(c, out)
	}
}

// quote shows an input, or what is said about it, to the model, shortened: it may be long.
func quote(input []byte) string {
	const most = 500
	s := strings.ToValidUTF8(string(input), "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + fmt.Sprintf("… (%d bytes)", len(input))
	}
	return s
}
