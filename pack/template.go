package pack

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// template is a text with places for values, parsed once. Fragments are in it already.
type template []piece

// piece is a text, or the place of a value.
type piece struct {
	text string // as it stands in the template: of a place, its name and path
	name string // of the variable; "": a text
	path []any  // into its value: names (string) and indexes (int)
}

// maxTemplates bounds all templates of a pack with their fragments, which may have fragments in turn.
const maxTemplates = 8 << 20

// templates parses templates with the fragments of a pack.
type templates struct {
	fragments map[string]string
	size      *int     // of all that was parsed for this pack
	open      []string // fragments that are being put in
	own       int      // how many of them are the text itself: what is wrong in other fragments is told of those
	blocks    bool     // something of the form {{#if x}} was told
	bad       func(reason, remedy string)
}

func (t *templates) wrong(reason, remedy string) {
	if len(t.open) == t.own {
		t.bad(reason, remedy)
	}
}

// parse puts the template of a text behind another. What is wrong with it is told to bad.
//
// A place is {{name}} or {{name.member[0].member}}, white space inside the braces allowed; {{fragments.name}} is that fragment's text, whose places are the template's, too. Everything else
// between two braces is a mistake. There is no way to write two braces that mean nothing: a variable can have them as its value.
func (t *templates) parse(out template, text string) template {
	before := *t.size
	if *t.size += len(text); before > maxTemplates {
		return out
	} else if *t.size > maxTemplates {
		t.bad(fmt.Sprintf("with their fragments the pack's templates have more than %d bytes", maxTemplates), "have fewer fragments in fragments")
		return out
	}
	for {
		before, rest, found := strings.Cut(text, "{{")
		if before != "" {
			out = append(out, piece{text: before})
		}
		if !found {
			return out
		}
		inner, after, closed := strings.Cut(rest, "}}")
		if !closed {
			t.wrong(fmt.Sprintf("{{%s is not closed", clip(inner)), "write }} behind the name")
			return out
		}
		text = after
		name := strings.TrimSpace(inner)
		if fragment, ok := strings.CutPrefix(name, "fragments."); ok {
			out = t.fragment(out, fragment)
			continue
		}
		path, ok := placeholder(name)
		if closing := strings.HasPrefix(name, "/"); !ok && closing && t.blocks { // what it closes was told
			continue
		}
		if !ok {
			t.blocks = t.blocks || strings.HasPrefix(name, "#")
			t.wrong(fmt.Sprintf("{{%s}} is no placeholder", clip(inner)), "write {{name}}, {{name.member}} or {{fragments.name}}; braces of another meaning can be the value of a variable")
			continue
		}
		out = append(out, piece{text: name, name: path[0].(string), path: path[1:]})
	}
}

func (t *templates) fragment(out template, name string) template {
	text, ok := t.fragments[name]
	switch {
	case !ok:
		var known []string
		for name := range t.fragments {
			known = append(known, name)
		}
		slices.Sort(known)
		t.wrong(fmt.Sprintf("there is no fragment %q", clip(name)), meant(name, known, "add it to the pack's fragments"))
		return out
	case len(t.open) > maxNesting: // each would be looked for in all that are open
		t.bad(fmt.Sprintf("its fragments are nested more than %d deep", maxNesting), "make them flatter")
		return out
	case slices.Contains(t.open, name):
		if t.own > 0 && name == t.open[0] && name == slices.Min(t.open) { // once for all that are in each other
			t.bad(fmt.Sprintf("the fragment has itself in it: %s", clip(strings.Join(append(slices.Clone(t.open), name), " → "))), "take it out")
		}
		return out
	}
	t.open = append(t.open, name)
	out = t.parse(out, text)
	t.open = t.open[:len(t.open)-1]
	return out
}

// placeholder reads name.member[0].member.
func placeholder(s string) (path []any, ok bool) {
	name, rest := word(s, false)
	if name == "" || name == "fragments" {
		return nil, false
	}
	path = append(path, name)
	for rest != "" {
		switch rest[0] {
		case '.':
			if name, rest = word(rest[1:], true); name == "" {
				return nil, false
			}
			path = append(path, name)
		case '[':
			index, after, closed := strings.Cut(rest[1:], "]")
			i, err := strconv.Atoi(index)
			if !closed || err != nil || i < 0 || index[0] == '+' {
				return nil, false
			}
			path, rest = append(path, i), after
		default:
			return nil, false
		}
	}
	return path, true
}

// word cuts off a name. Below a variable, it may begin with a digit and have hyphens.
func word(s string, below bool) (name, rest string) {
	n := 0
	for n < len(s) {
		c := s[n]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (n == 0 && !below || (c < '0' || c > '9') && (c != '-' || !below)) {
			break
		}
		n++
	}
	return s[:n], s[n:]
}
