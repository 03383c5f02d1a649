package project

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// node is a value of a JSON file, with the place that it stands at.
type node struct {
	at       int // of the value, in bytes
	keyAt    int // of its key, if it is a member
	end      int
	name     string // of a member
	value    any    // string, bool, json.Number or nil; of objects and lists: see kind
	kind     byte   // '{', '[', '"', '0', 'b' or 'n'
	children []node
}

// maxNesting is far more than any settings have.
const maxNesting = 64

// source is the text of a JSON file, for places.
type source struct {
	file  string
	data  []byte
	lines []int // offsets of their beginnings
	runes []int // how many characters begin before each stretch of the text: one long line may have many places
	whole bool  // no text that somebody has: places are the file's alone
}

const stretch = 1024

func newSource(file string, data []byte) *source {
	s := &source{file: file, data: data, lines: []int{0}}
	runes := 0
	for i, c := range data {
		if i%stretch == 0 {
			s.runes = append(s.runes, runes)
		}
		if utf8.RuneStart(c) {
			runes++
		}
		if c == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	s.runes = append(s.runes, runes) // for the end of the text, if it is that of a stretch
	return s
}

func (s *source) place(at int) Place {
	if s.whole {
		return Place{File: s.file}
	}
	at = max(0, min(at, len(s.data)))
	line := sort.SearchInts(s.lines, at+1)
	return Place{s.file, line, 1 + s.before(at) - s.before(s.lines[line-1])}
}

// before is how many characters begin before an offset.
func (s *source) before(at int) int {
	n := s.runes[at/stretch]
	for _, c := range s.data[at-at%stretch : at] {
		if utf8.RuneStart(c) {
			n++
		}
	}
	return n
}

// parse reads the whole text as one JSON object. A member that is there twice is a problem, and each of the two counts: so nothing that forbids something is lost.
func (s *source) parse(r *report) (root node, ok bool) {
	var whole json.RawMessage
	if err := json.Unmarshal(s.data, &whole); err != nil {
		r.fail(s.syntax(err))
		return root, false
	}
	d := json.NewDecoder(bytes.NewReader(s.data))
	d.UseNumber()
	root, err := s.value(d, r, 0)
	if err != nil {
		var p *fileError
		if !errors.As(err, &p) {
			p = &fileError{err.Error(), "correct it"}
		}
		r.fail(p.at(s.place(int(d.InputOffset()))))
		return root, false
	}
	if root.kind != '{' {
		r.fail(Problem{s.place(root.at), "it is no object", "want settings in braces"})
		return root, false
	}
	return root, true
}

// syntax says what is wrong with the JSON, and names what people write most often.
func (s *source) syntax(err error) Problem {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return Problem{Place{File: s.file}, "it is no JSON: " + err.Error(), "correct it"}
	}
	at := max(0, int(syntax.Offset)-1)
	p := Problem{s.place(at), "it is no JSON: " + syntax.Error(), "correct it"}
	before := bytes.TrimRight(s.data[:min(at, len(s.data))], " \t\r\n")
	switch {
	case len(bytes.TrimSpace(s.data)) == 0:
		p.Reason, p.Remedy = "it is empty", "write {} or remove it"
	case at >= len(s.data)-1 && strings.Contains(p.Reason, "unexpected end"):
		p.Place = s.place(len(s.data))
	case s.data[at] == '/' || s.data[at] == '#':
		p.Reason, p.Remedy = "it is no JSON: there are no comments in JSON", "remove the comment"
	case (s.data[at] == '}' || s.data[at] == ']') && bytes.HasSuffix(before, []byte(",")):
		p.Place, p.Reason, p.Remedy = s.place(len(before)-1), "it is no JSON: there is a comma behind the last element", "remove the comma"
	}
	return p
}

// value reads the next value. The text is known to be JSON.
func (s *source) value(d *json.Decoder, r *report, depth int) (n node, err error) {
	if depth > maxNesting {
		return n, &fileError{fmt.Sprintf("it is nested more than %d deep", maxNesting), "make it flatter"}
	}
	n.at = s.next(int(d.InputOffset()))
	tok, err := d.Token()
	if err != nil {
		return n, err
	}
	switch v := tok.(type) {
	case json.Delim:
		n.kind = '['
		if v == '{' {
			n.kind = '{'
		}
		seen := map[string]bool{}
		for d.More() {
			var name string
			keyAt := s.next(int(d.InputOffset()))
			if n.kind == '{' {
				key, err := d.Token()
				if err != nil {
					return n, err
				}
				name, _ = key.(string)
				if seen[name] {
					r.problem(Problem{s.place(keyAt), fmt.Sprintf("%q is there twice: lists and objects add up, of other values the last counts", clip(name)), "leave one"})
				}
				seen[name] = true
			}
			child, err := s.value(d, r, depth+1)
			if err != nil {
				return n, err
			}
			child.name, child.keyAt = name, keyAt
			n.children = append(n.children, child)
		}
		if _, err = d.Token(); err != nil {
			return n, err
		}
	case string:
		n.kind, n.value = '"', v
	case json.Number:
		n.kind, n.value = '0', v
	case bool:
		n.kind, n.value = 'b', v
	case nil:
		n.kind = 'n'
	}
	n.end = int(d.InputOffset())
	return n, nil
}

// next is the offset of the next token: white space, commas and colons are skipped.
func (s *source) next(at int) int {
	for at < len(s.data) && strings.IndexByte(" \t\r\n,:", s.data[at]) >= 0 {
		at++
	}
	return at
}

// canonical is the value as JSON, the same however it was formatted: members in the order of their names, no white space.
func canonical(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprintf("%q", err) // what came out of JSON goes into it
	}
	return strings.TrimSuffix(b.String(), "\n")
}
