package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/schema"
)

// checker checks inputs against one schema, compiled once. A nil checker accepts any JSON object.
type checker struct{ schema *schema.Schema }

func compile(text json.RawMessage) (*checker, error) {
	s, err := schema.Compile(text)
	if err != nil {
		return nil, err
	}
	return &checker{s}, nil
}

// check gives one error that names every place where input is wrong, and why.
func (c *checker) check(input json.RawMessage) error {
	v, err := schema.Parse(input)
	if err != nil {
		return fmt.Errorf("the input is not valid JSON (%w): %s", err, quote(input))
	}
	if _, ok := v.(map[string]any); !ok {
		return fmt.Errorf("the input must be a JSON object, not %s", quote(input))
	}
	if c == nil {
		return nil
	}
	faults, err := c.schema.Check(v, false)
	if len(faults) > 0 {
		return errors.New(problems(faults))
	}
	return err
}

// problems lists what is wrong, in an order of its own: the validator's is not always the same.
func problems(faults []schema.Fault) string {
	const most = 20
	var out []string
	for _, f := range faults {
		out = append(out, quote([]byte("/"+strings.Join(f.At, "/")+": "+f.Why())))
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if n := len(out); n > most {
		out = append(out[:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(out, "; ")
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
