// Package frontmatter reads the YAML at the head of Markdown files, and what it says in a SKILL.md. It is shared by whoever reads such files, from projects and for packs.
package frontmatter

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Limits of front matter: the YAML parser recurses and takes quadratic time.
const (
	maxFrontMatter = 16 << 10
	maxBrackets    = 50
)

// Text is a Markdown file with front matter.
type Text struct {
	Fields []Field
	Body   string // what follows
}

// Field is a member of the front matter.
type Field struct {
	Name  string
	value ast.Node
	Place
}

// Place is where in a file something stands.
type Place struct {
	Line   int // from 1; 0: the whole file
	Column int // in characters, from 1; 0: the whole line
}

// Problem is what is wrong there, and what would be right.
type Problem struct {
	Place
	Reason, Remedy string
}

// Parse splits a file whose first line is ---.
func Parse(text string) (t Text, wrong *Problem) {
	fail := func(line, column int, reason, remedy string) (Text, *Problem) {
		return Text{}, &Problem{Place{line, column}, reason, remedy}
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return fail(1, 1, "it has no front matter", "begin it with a line ---, then name and description, then another line ---")
	}
	head, body, closed := "", "", false
	for line := range strings.Lines(rest) {
		if closed = strings.TrimRight(line, " \t\n") == "---"; closed {
			body = rest[len(head)+len(line):]
			break
		}
		head += line
		if len(head) > maxFrontMatter {
			return fail(1, 1, fmt.Sprintf("its front matter is larger than %d KiB", maxFrontMatter>>10), "end it with a line ---, or make it smaller")
		}
	}
	if !closed {
		return fail(1, 1, "its front matter has no end", "end it with a line ---")
	}
	t = Text{Body: strings.TrimSpace(body)}
	if depth(head) > maxBrackets {
		return fail(2, 0, "its front matter is nested too deeply", "make it flatter")
	}
	root, err := parseYAML(head)
	if err != nil {
		line, column, reason := 2, 0, err.Error()
		var e yaml.Error
		if errors.As(err, &e) {
			if reason = strings.TrimSpace(e.GetMessage()); e.GetToken() != nil && e.GetToken().Position != nil {
				line, column = e.GetToken().Position.Line+1, e.GetToken().Position.Column
			}
		}
		remedy := "correct it"
		if strings.Contains(reason, "mapping value is not allowed") {
			remedy = "put a text that has a colon in it into quotes"
		}
		return fail(line, column, "its front matter is no YAML: "+strings.Join(strings.Fields(reason), " "), remedy)
	}
	m, ok := root.(*ast.MappingNode)
	if root != nil && !ok {
		return fail(2, 1, "its front matter is no list of fields", "want lines such as name: reviewer")
	}
	if m == nil {
		return t, nil
	}
	for _, v := range m.Values {
		key, ok := v.Key.(ast.Node)
		if !ok {
			continue
		}
		place := Place{2, 0}
		if k := key.GetToken(); k != nil && k.Position != nil {
			place.Line, place.Column = k.Position.Line+1, k.Position.Column
		}
		name, ok := scalar(key)
		if !ok {
			return t, &Problem{place, "a field's name is no text", "write name: value"}
		}
		t.Fields = append(t.Fields, Field{name, v.Value, place})
	}
	return t, nil
}

// parseYAML gives the first document; nil when it is empty. The parser is somebody else's: a panic of it is an error.
func parseYAML(text string) (root ast.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, fmt.Errorf("it can't be parsed: %v", r)
		}
	}()
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		return nil, err
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, nil
	}
	if _, comments := file.Docs[0].Body.(*ast.CommentGroupNode); comments {
		return nil, nil
	}
	return file.Docs[0].Body, nil
}

// depth is no less than how deep a text nests, but for what its indentation says.
func depth(text string) (deepest int) {
	open, dashes, begins := 0, 0, true
	for _, c := range text {
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open = max(0, open-1)
		case '-', '?':
			if begins {
				dashes++
			}
		case '&', '*', '!':
			dashes++
		case '\n':
			dashes = 0
		}
		begins = c == '\n' || begins && (c == ' ' || c == '\t' || c == '-' || c == '?')
		deepest = max(deepest, open, dashes)
	}
	return deepest
}

// scalar is a value that is one text: numbers and true count as they are written.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	case *ast.NullNode:
		return "", true
	}
	return "", false
}

// Text reads a field of at most so many characters; 0: any.
func (f Field) Text(most int) (string, *Problem) {
	s, ok := scalar(f.value)
	switch {
	case !ok:
		return "", &Problem{f.Place, f.Name + " is no text", "write it on one line, or behind >"}
	case most > 0 && utf8.RuneCountInString(s) > most:
		return "", &Problem{f.Place, fmt.Sprintf("%s is longer than %d characters", f.Name, most), "make it shorter"}
	}
	return s, nil
}

// List reads a list of texts, however it is written: as YAML, with commas, or with blanks. Commas and blanks in parentheses are a part of their text.
func (f Field) List() ([]string, *Problem) {
	out := []string{}
	if seq, ok := f.value.(*ast.SequenceNode); ok {
		for _, v := range seq.Values {
			s, ok := scalar(v)
			if !ok {
				return nil, &Problem{f.Place, f.Name + " is no list of texts", "write a, b, c"}
			}
			if s = strings.TrimSpace(s); s != "" {
				out = append(out, s)
			}
		}
		return out, nil
	}
	s, ok := scalar(f.value)
	if !ok {
		return nil, &Problem{f.Place, f.Name + " is no list of texts", "write a, b, c"}
	}
	return split(s, f.Name != "keywords" && f.Name != "paths"), nil
}

// split splits at commas, and at blanks if they count, outside of parentheses.
func split(s string, blanks bool) []string {
	out, from, open := []string{}, 0, 0
	cut := func(to int) {
		if part := strings.TrimSpace(s[from:to]); part != "" {
			out = append(out, part)
		}
		from = to + 1
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '(' || c == '{':
			open++
		case c == ')' || c == '}':
			open = max(0, open-1)
		case open > 0:
		case c == ',', c == '\n', blanks && (c == ' ' || c == '\t'):
			cut(i)
		}
	}
	cut(len(s))
	return out
}

// Texts reads a map of texts.
func (f Field) Texts() (map[string]string, *Problem) {
	m, ok := f.value.(*ast.MappingNode)
	if !ok {
		return nil, &Problem{f.Place, f.Name + " is no map of texts", "write lines such as key: value below it"}
	}
	out := map[string]string{}
	for _, v := range m.Values {
		key, ok := v.Key.(ast.Node)
		if !ok {
			continue
		}
		k, keyOK := scalar(key)
		s, valueOK := scalar(v.Value)
		if !keyOK || !valueOK {
			return nil, &Problem{f.Place, f.Name + " is no map of texts", "write lines such as key: value below it"}
		}
		out[k] = s
	}
	return out, nil
}
