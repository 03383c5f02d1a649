package tool

import (
	"encoding/json"
	"errors"
	"fmt"

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

// accepts reports whether input is seen at a sight to be right; what is not may be right all the same.
func (c *checker) accepts(input []byte) bool { return c != nil && c.schema.Accepts(input) }

// check gives one error that names every place where input is wrong, and why.
func (c *checker) check(input json.RawMessage) error {
	if c.accepts(input) {
		return nil
	}
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
		return errors.New(schema.Problems(faults, 20))
	}
	return err
}

// quote shows an input to the model.
func quote(input []byte) string { return schema.Clip(string(input)) }
