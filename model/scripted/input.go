package scripted

import (
	"encoding/json"
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/pawl-dev/pawl/internal/wire"
)

// input reads a call's input: a mapping becomes JSON with its members in their order, a text stays what it is.
func (p *file) input(n ast.Node, into *string) error {
	switch n := n.(type) {
	case *ast.StringNode:
		*into = n.Value
	case *ast.LiteralNode:
		*into = n.Value.Value
	case *ast.MappingNode:
		b, err := p.json(nil, n)
		if err != nil {
			return err
		}
		if !wire.Valid(b) {
			return p.fail(n, "input: a number in it is too large for JSON: write the input as a text with raw JSON")
		}
		*into = string(b)
	default:
		return p.wrong(n, "input", "a mapping, or a text with raw JSON,")
	}
	return nil
}

// json appends a YAML value as JSON.
func (p *file) json(b []byte, n ast.Node) ([]byte, error) {
	switch n := n.(type) {
	case *ast.MappingNode:
		b = append(b, '{')
		for i, v := range n.Values {
			if i > 0 {
				b = append(b, ',')
			}
			if _, ok := v.Key.(ast.ScalarNode); !ok {
				return nil, p.wrong(v.Key, "input", "a name")
			}
			b = append(wire.AppendString(b, key(v)), ':')
			var err error
			if b, err = p.json(b, v.Value); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	case *ast.SequenceNode:
		b = append(b, '[')
		for i, v := range n.Values {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = p.json(b, v); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case *ast.LiteralNode:
		return wire.AppendString(b, n.Value.Value), nil
	case *ast.StringNode:
		if n.Token.Type == token.StringType && isNumber(n.Value) { // 1e3 and very long numbers are plain texts to the YAML parser
			return append(b, n.Value...), nil
		}
		return wire.AppendString(b, n.Value), nil
	case *ast.IntegerNode:
		return p.numeral(b, n.Token.Value, n.Value), nil
	case *ast.FloatNode:
		return p.numeral(b, n.Token.Value, n.Value), nil
	case *ast.BoolNode:
		return fmt.Append(b, n.Value), nil
	case *ast.NullNode:
		return append(b, "null"...), nil
	}
	return nil, p.wrong(n, "input", "a value that JSON has")
}

// numeral keeps a number as it is written where JSON writes it so too.
func (p *file) numeral(b []byte, written string, value any) []byte {
	if isNumber(written) {
		return append(b, written...)
	}
	return fmt.Append(b, value) // hexadecimal and the like
}

func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}
