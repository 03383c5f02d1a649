package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A variable has one of several values; a value that is not Known is one, too. Functions, aliases, files that the script wrote and the directory are kept as variables with
// names that no variable can have, so that branches and subshells treat them alike.
type variable struct {
	alts  []Word
	list  []Word // of an array, and of the positional parameters
	array bool
	body  []function
}

const (
	dirKey  = "\x00dir"
	argsKey = "\x00args"
	argZero = "\x00zero"
)

func funcKey(name string) string  { return "\x00function " + name }
func aliasKey(name string) string { return "\x00alias " + name }

// unknown is the value of which nothing is known, and name that of which it is known that it is no path: a number, a date, a hash.
var (
	unknown = []Word{{}}
	opaque  = []Word{{Text: "*", Known: true, Glob: true}}
	nothing = []Word{{Known: true}}
	number  = []Word{{Text: "*", Known: true, Glob: true, Number: true}}
)

// A scope holds what was set since it began; what it doesn't hold, the one above does.
type scope struct {
	up   *scope
	vars map[string]variable
	gone bool // it ended with exit, return, break or continue: what is behind it doesn't run in it
}

// A way out gathers in which states a function or a loop was left early.
type wayOut struct {
	base   *scope // where it began
	states []*scope
	rounds bool     // by continue: there may be another round
	locals []string // variables of the function's own
}

// leave notes the state of s, and that nothing more happens in it.
func (w *wayOut) leave(s *scope) {
	out := newScope(w.base)
	for at := s; at != nil && at != w.base; at = at.up {
		for name, v := range at.vars {
			if _, ok := out.vars[name]; !ok {
				out.set(name, v)
			}
		}
	}
	if len(w.states) < maxValues {
		w.states = append(w.states, out)
	}
	s.gone = true
}

func newScope(up *scope) *scope { return &scope{up: up} }

func (s *scope) lookup(name string) (variable, bool) {
	for ; s != nil; s = s.up {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	return variable{}, false
}

func (s *scope) set(name string, v variable) {
	if s.vars == nil {
		s.vars = map[string]variable{}
	}
	v.alts = settle(v.alts)
	s.vars[name] = v
}

// settle bounds the values of a variable: many become one that stands for them all.
func settle(alts []Word) []Word {
	for _, w := range alts {
		if len(w.Text) > maxSource/8 {
			return unknown
		}
	}
	if len(alts) <= maxValues {
		return alts
	}
	for _, w := range alts {
		if !w.Known || w.Text == "" || w.Text[0] == '-' || w.Text[0] == '.' || strings.ContainsAny(w.Text, "/ \t\n;&|<>$`\"'\\(){}") {
			return unknown
		}
	}
	return opaque
}

// absorb takes over what was set in child.
func (s *scope) absorb(child *scope) {
	for name, v := range child.vars {
		s.set(name, v)
	}
	s.gone = s.gone || child.gone
}

// join takes over what was set in one of the branches; or, if not all, in none of them.
func (s *scope) join(all bool, branches ...*scope) {
	live := branches[:0:0]
	for _, b := range branches {
		if !b.gone {
			live = append(live, b)
		}
	}
	if len(live) == 0 {
		s.gone = s.gone || all
		return
	}
	if all && len(live) == 1 {
		s.absorb(live[0])
		return
	}
	done := map[string]bool{}
	for _, b := range live {
		for name := range b.vars {
			if done[name] {
				continue
			}
			done[name] = true
			var from []variable
			if v, ok := s.lookup(name); !all {
				if !ok {
					v.alts = unknown
				}
				from = append(from, v)
			}
			for _, b := range live {
				v, ok := b.lookup(name)
				if !ok {
					v.alts = unknown
				}
				from = append(from, v)
			}
			s.set(name, union(from))
		}
	}
}

func union(vs []variable) variable {
	out := vs[0]
	out.alts, out.body = slices.Clone(out.alts), slices.Clone(out.body)
	for _, v := range vs[1:] {
		for _, w := range v.alts {
			if !slices.ContainsFunc(out.alts, func(o Word) bool { return same(o, w) }) {
				out.alts = append(out.alts, w)
			}
		}
		for _, f := range v.body {
			if !slices.ContainsFunc(out.body, func(o function) bool { return o.body == f.body }) {
				out.body = append(out.body, f)
			}
		}
		if v.array != out.array || !slices.EqualFunc(v.list, out.list, same) {
			out.list, out.array, out.alts = nil, false, unknown
		}
	}
	return out
}

func same(a, b Word) bool {
	return a.Text == b.Text && a.Known == b.Known && a.Glob == b.Glob && a.Number == b.Number
}

func equal(a, b variable) bool {
	return slices.EqualFunc(a.alts, b.alts, same) && slices.EqualFunc(a.list, b.list, same) && len(a.body) == len(b.body)
}

// A frame is where in the script the reader is.
type frame struct {
	sc      *scope
	src     string   // the text that positions refer to
	by      []string // see Command.By
	in      stream
	async   bool
	quiet   bool // seen before: show nothing
	depth   int
	choice  *choices
	again   int            // 1 + the index of the first command of the loop that is read again
	active  []*syntax.Stmt // bodies of functions that are being read
	fn      *wayOut        // of the function at hand
	loop    *wayOut        // of the loop
	remote  bool           // on another machine: its directory is not known
	marked  bool           // "{}" stands for what is not known, in quotes too
	guessed bool           // the words of an unknown program are read as a command
}

// A stream is what a command may read.
type stream struct {
	from []int
	alts []Word // nil: it is empty
	is   bool
	file bool // a file that the script didn't write
}

func (f frame) under(by string) frame {
	f.by = append(slices.Clip(f.by), by)
	f.depth++
	return f
}

func (f frame) fork() frame {
	f.sc = newScope(f.sc)
	return f
}

func (f frame) dir() Word {
	v, _ := f.sc.lookup(dirKey)
	return f.choice.pick(dirKey, v.alts)
}

// choices goes through the ways in which one command can be expanded: an odometer with a wheel for each variable that has several values.
type choices struct {
	wheels []wheel
	turns  int
}

type wheel struct {
	name string      // of the variable
	at   syntax.Node // or what stands in the script
	i, n int
}

// pick gives the value of a variable whose turn it is.
func (c *choices) pick(name string, alts []Word) Word { return c.turn(name, nil, alts) }

// pickAt gives the value of what stands in the script.
func (c *choices) pickAt(at syntax.Node, alts []Word) Word { return c.turn("", at, alts) }

func (c *choices) turn(name string, at syntax.Node, alts []Word) Word {
	switch {
	case len(alts) == 0:
		return Word{}
	case len(alts) == 1:
		return alts[0]
	case c == nil:
		return Word{}
	}
	for _, w := range c.wheels {
		if w.name == name && w.at == at {
			return alts[min(w.i, len(alts)-1)]
		}
	}
	c.wheels = append(c.wheels, wheel{name: name, at: at, n: len(alts)})
	return alts[0]
}

// next turns the odometer; false when every way was seen.
func (c *choices) next() bool {
	for len(c.wheels) > 0 {
		last := &c.wheels[len(c.wheels)-1]
		if last.i++; last.i < last.n {
			c.turns++
			return true
		}
		c.wheels = c.wheels[:len(c.wheels)-1]
	}
	return false
}

// bodyOf finds a function by its name.
func (f frame) bodyOf(name string) []function {
	v, _ := f.sc.lookup(funcKey(name))
	return v.body
}
