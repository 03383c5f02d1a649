package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/textfile"
)

const (
	maxSize  = 1 << 20 // of a script, in bytes
	maxDepth = 5000    // of brackets or dashes: the YAML parser recurses, and takes quadratic time
)

// Load reads a script file, YAML or JSON, of at most 1 MiB. The script is named after path. A file that isn't there is errdefs.NotFound, a script that
// is wrong, and what is no ordinary file (a pipe could keep its reader waiting for ever), is errdefs.Validation.
func Load(path string) (*Script, error) {
	data, err := textfile.Read(path, "script", maxSize)
	if errdefs.NotFound.Is(err) {
		return nil, fmt.Errorf("scripted: no script file: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("scripted: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a script, YAML or JSON, named name. What is wrong is errdefs.Validation, with name and line.
func Parse(name string, data []byte) (*Script, error) {
	p := &file{name: name}
	if len(data) > maxSize {
		return nil, p.failAt(0, "the script is over 1 MiB: make it smaller")
	}
	if textfile.Depth(data) > maxDepth {
		return nil, p.failAt(0, "nested too deeply: stay under %d levels", maxDepth)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if json.Valid(data) {
		data = bytes.ReplaceAll(data, []byte("\t"), []byte(" ")) // YAML forbids some tabs; JSON has them between tokens only
	}
	doc, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, p.syntax(err)
	}
	var body ast.Node
	for _, d := range doc.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			return nil, p.fail(d.Body, "a second document: a script is one")
		}
		body = d.Body
	}
	if body == nil {
		return nil, p.failAt(1, "the script is empty: give turns, a list of entries")
	}
	return p.script(body)
}

// file makes errors that say where.
type file struct{ name string }

func (p *file) fail(n ast.Node, format string, args ...any) error {
	line := 0
	if t := n.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	return p.failAt(line, format, args...)
}

func (p *file) failAt(line int, format string, args ...any) error {
	if line > 0 {
		return errdefs.Validation.Errorf("%s:%d: "+format, append([]any{p.name, line}, args...)...)
	}
	return errdefs.Validation.Errorf("%s: "+format, append([]any{p.name}, args...)...)
}

// syntax takes the line out of a parser's error.
func (p *file) syntax(err error) error {
	var e yaml.Error
	if errors.As(err, &e) {
		line := 0
		if t := e.GetToken(); t != nil && t.Position != nil {
			line = t.Position.Line
		}
		return p.failAt(line, "neither YAML nor JSON: %s", strings.TrimSpace(e.GetMessage()))
	}
	return p.failAt(0, "neither YAML nor JSON: %v", err)
}
