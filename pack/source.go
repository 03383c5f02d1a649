package pack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/schema"
)

const (
	maxSize    = 8 << 20 // bytes of a file
	maxNesting = 100
)

// node is a value of the file, with its place.
type node struct {
	name     string // of a member
	at       int    // in bytes: of the value, or of its name
	value    any    // string, bool, json.Number or nil; of objects and lists: children
	kind     byte   // '{', '[', '"', '0', 'b' or 'n'
	children []*node
	raw      []byte
}

// member gives the value of a name; nil when it is not there, or n is no object.
func (n *node) member(name string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	for _, c := range n.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// element is a list's; nil when it is not there.
func (n *node) element(i int) *node {
	if n == nil || n.kind != '[' || i < 0 || i >= len(n.children) {
		return nil
	}
	return n.children[i]
}

// any is the value as Go has it: an integer is an int, any other number a float64.
func (n *node) any() any {
	switch n.kind {
	case '{':
		m := make(map[string]any, len(n.children))
		for _, c := range n.children {
			m[c.name] = c.any()
		}
		return m
	case '[':
		l := make([]any, 0, len(n.children))
		for _, c := range n.children {
			l = append(l, c.any())
		}
		return l
	case '0':
		text := string(n.value.(json.Number)) // as parse made it
		if i, err := strconv.Atoi(text); err == nil {
			return i
		}
		f, _ := strconv.ParseFloat(text, 64) // parse has seen that it is one
		return f
	}
	return n.value
}

// source is the text of a file, for places.
type source struct {
	data  []byte
	lines []int // offsets of their beginnings
}

func newSource(data []byte) *source {
	s := &source{data: data, lines: []int{0}}
	for i, c := range data {
		if c == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// place gives line and column, in characters, from 1. Of a line with very many it gives the column in bytes: counting would take too long for many places.
func (s *source) place(at int) (line, column int) {
	at = max(0, min(at, len(s.data)))
	line = sort.SearchInts(s.lines, at+1)
	before := s.data[s.lines[line-1]:at]
	if len(before) > 1<<16 {
		return line, 1 + len(before)
	}
	return line, 1 + utf8.RuneCount(before)
}

// parse reads the whole text as one JSON object. nil: it is none, and a problem says why.
func (s *source) parse(r *report) *node {
	switch {
	case len(s.data) > maxSize:
		r.problem(nil, fmt.Sprintf("it has more than %d bytes", maxSize), "make it smaller")
		return nil
	case bytes.HasPrefix(s.data, []byte("\uFEFF")):
		r.problem(nil, "it begins with a byte order mark", "save it as UTF-8 without one")
		return nil
	case !utf8.Valid(s.data):
		at := 0
		for rest := s.data; ; {
			c, size := utf8.DecodeRune(rest)
			if c == utf8.RuneError && size <= 1 {
				break
			}
			at, rest = at+size, rest[size:]
		}
		r.at(at, "$", "it is no UTF-8", "save it as UTF-8")
		return nil
	}
	var whole json.RawMessage
	if err := json.Unmarshal(s.data, &whole); err != nil {
		s.syntax(r, err)
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(s.data))
	d.UseNumber()
	root := s.value(d, r, path{})
	if root != nil && root.kind != '{' {
		r.problem(nil, "it is no object", "write a pack in braces")
		return nil
	}
	return root
}

// syntax says what is wrong with the JSON, and names what people write most often.
func (s *source) syntax(r *report, err error) {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		r.problem(nil, "it is no JSON: "+err.Error(), "correct it")
		return
	}
	at := max(0, int(syntax.Offset)-1)
	reason, remedy := syntax.Error(), "correct it"
	before := bytes.TrimRight(s.data[:min(at, len(s.data))], " \t\r\n")
	switch {
	case len(bytes.TrimSpace(s.data)) == 0:
		reason, remedy = "it is empty", "write a pack in braces"
	case at >= len(s.data)-1 && strings.Contains(reason, "unexpected end"):
		at, remedy = len(s.data), "write the rest"
	case strings.Contains(reason, "after top-level value"):
		reason, remedy = "there is more behind the pack", "remove it"
	case s.data[at] == '/' || s.data[at] == '#':
		reason, remedy = "there are no comments in JSON", "remove the comment"
	case (s.data[at] == '}' || s.data[at] == ']') && bytes.HasSuffix(before, []byte(",")):
		at, reason, remedy = len(before)-1, "there is a comma behind the last element", "remove the comma"
	}
	r.at(at, "$", "it is no JSON: "+reason, remedy)
}

// value reads the next value. The text is known to be JSON.
func (s *source) value(d *json.Decoder, r *report, p path) *node {
	n := &node{at: s.next(int(d.InputOffset()))}
	if len(p) > maxNesting {
		r.at(n.at, p.String(), fmt.Sprintf("it is nested more than %d deep", maxNesting), "make it flatter")
		return nil
	}
	begin := n.at
	tok, _ := d.Token()
	switch v := tok.(type) {
	case json.Delim:
		n.kind = byte(v) //nolint:gosec // a bracket
		seen := map[string]bool{}
		for i := 0; d.More(); i++ {
			var step any = i
			keyAt := s.next(int(d.InputOffset()))
			if n.kind == '{' {
				key, _ := d.Token()
				step = key
			}
			child := s.value(d, r, append(p, step))
			if child == nil {
				return nil
			}
			if name, ok := step.(string); ok {
				child.name, child.at = name, keyAt
				if seen[name] {
					r.at(keyAt, append(p, step).String(), "it is there twice", "leave one")
				}
				seen[name] = true
			}
			n.children = append(n.children, child)
		}
		_, _ = d.Token()
	case string:
		n.kind, n.value = '"', v
	case json.Number:
		n.kind, n.value = '0', v
		if f, err := v.Float64(); err != nil || !schema.Bounded(v) || f > 1e300 || f < -1e300 {
			r.at(n.at, p.String(), "the number is out of range", "write a smaller one")
			return nil
		}
	case bool:
		n.kind, n.value = 'b', v
	case nil:
		n.kind = 'n'
	}
	n.raw = s.data[begin:d.InputOffset()]
	return n
}

// next is the offset of the next token: white space, commas and colons are skipped.
func (s *source) next(at int) int {
	for at < len(s.data) && strings.IndexByte(" \t\r\n,:", s.data[at]) >= 0 {
		at++
	}
	return at
}
