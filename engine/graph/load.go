package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/textfile"
)

const (
	maxSize  = 1 << 20 // of a file, in bytes
	maxDepth = 100     // of lists and mappings
	maxOpen  = 1000    // of brackets and dashes: the YAML parser recurses
)

// Load reads a definition from a file, YAML or JSON, of at most 1 MiB. One that isn't there is errdefs.NotFound; what can't be read as a definition is an [*Error] with path and line, or
// errdefs.Validation for what is no ordinary file. A graph without a name gets the file's. What the definition says is checked by [Compile].
func Load(file string) (Definition, error) {
	data, err := textfile.Read(file, "definition", maxSize)
	if err != nil {
		return Definition{}, fmt.Errorf("graph: %w", err)
	}
	return Parse(file, data)
}

// Parse reads a definition, YAML or JSON, from a text named name. See [Load].
func Parse(name string, data []byte) (d Definition, err error) {
	p := &problems{lines: map[string]int{}}
	defer func() {
		if v := recover(); v != nil { // a defect of the parser's is no reason to end the program
			err = errdefs.Validation.Errorf("graph: %s: it can't be read: %v", name, v)
		}
	}()
	switch {
	case len(data) > maxSize:
		p.add("$", "make it smaller", "it is over 1 MiB")
	case !utf8.Valid(data):
		p.add("$", "save it as UTF-8", "it is no UTF-8")
	case textfile.Depth(data) > maxOpen:
		p.add("$", "make it flatter", "it is nested more than %d deep", maxOpen)
	}
	if p.failed() {
		return d, p.err(name)
	}
	body := document(p, data)
	if body == nil {
		return d, p.err(name)
	}
	tree := valueOf(p, "$", body, 0)
	if !p.failed() {
		decode(p, "$", tree, reflect.ValueOf(&d).Elem())
	}
	d.lines = p.lines
	if err := p.err(name); err != nil {
		return Definition{}, err
	}
	if d.Name == "" {
		d.Name = baseName(name)
	}
	return d, nil
}

// baseName is a file's name without directories and extensions.
func baseName(file string) string {
	file = file[strings.LastIndexAny(file, `/\`)+1:]
	name, _, _ := strings.Cut(file, ".")
	return name
}

// document is the one value of a file; nil with a problem.
func document(p *problems, data []byte) (body ast.Node) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if json.Valid(data) {
		data = bytes.ReplaceAll(data, []byte("\t"), []byte(" ")) // YAML forbids some tabs; JSON has them between tokens only
	}
	doc, err := parser.ParseBytes(data, 0)
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) {
			p.add("$", "", "neither YAML nor JSON: %s", strings.TrimSpace(e.GetMessage()))
			if t := e.GetToken(); t != nil && t.Position != nil {
				p.all[len(p.all)-1].Line = t.Position.Line
			}
			return nil
		}
		p.add("$", "", "neither YAML nor JSON: %v", err)
		return nil
	}
	for _, d := range doc.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			p.add("$", "write one graph in a file", "there is a second document")
			return nil
		}
		body = d.Body
	}
	if body == nil {
		p.add("$", "write name, entry, nodes and edges", "it is empty")
	}
	return body
}

// valueOf gives a node of the file in JSON's types, and notes its line.
func valueOf(p *problems, path string, n ast.Node, depth int) any {
	if t := n.GetToken(); t != nil && t.Position != nil {
		if _, known := p.lines[path]; !known { // of a member it is that of its name
			p.lines[path] = t.Position.Line
		}
	}
	if depth > maxDepth {
		p.add(path, "make it flatter", "it is nested more than %d deep", maxDepth)
		return nil
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return mappingOf(p, path, n.Values, depth)
	case *ast.MappingValueNode:
		return mappingOf(p, path, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		list := make([]any, len(n.Values))
		for i, v := range n.Values {
			list[i] = valueOf(p, fmt.Sprintf("%s[%d]", path, i), v, depth+1)
		}
		return list
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.BoolNode:
		return n.Value
	case *ast.NullNode:
		return nil
	case *ast.IntegerNode:
		switch i := n.Value.(type) {
		case int64:
			return int(i)
		case uint64:
			if i <= math.MaxInt64 {
				return int(i)
			}
		}
		p.add(path, "write a smaller one, or a text", "the number %s is out of range", n.Token.Value)
		return nil
	case *ast.FloatNode:
		return n.Value
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		p.add(path, "write the value itself", "anchors, aliases and tags are not for graphs")
		return nil
	}
	p.add(path, "", "%s can't stand here", strings.ToLower(n.Type().String()))
	return nil
}

func mappingOf(p *problems, path string, values []*ast.MappingValueNode, depth int) any {
	m := make(map[string]any, len(values))
	for _, v := range values {
		name := ""
		switch k := v.Key.(type) {
		case *ast.StringNode:
			name = k.Value
		case ast.ScalarNode:
			name = k.GetToken().Value
		default:
			p.add(path, "write a name", "a name of a field is no text")
			continue
		}
		at := member(path, name)
		if _, twice := m[name]; twice {
			p.add(at, "leave one", "it is there twice")
		}
		if t := v.Key.GetToken(); t != nil && t.Position != nil {
			p.lines[at] = t.Position.Line
		}
		m[name] = valueOf(p, at, v.Value, depth+1)
	}
	return m
}

// quote is a text for messages, not too long.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}
