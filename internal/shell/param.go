package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Variables, and what ${…} makes of them.

// variable gives what is known of a variable.
func (r *reader) variable(f frame, name string) variable {
	if v, ok := f.sc.lookup(name); ok {
		return v
	}
	switch name {
	case "IFS":
		return variable{alts: []Word{{Text: " \t\n", Known: true}}}
	case "PWD":
		v, _ := f.sc.lookup(dirKey)
		return v
	case "?", "$", "!", "RANDOM", "SRANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID", "EPOCHSECONDS", "EPOCHREALTIME", "SHLVL", "OPTIND", "BASH_SUBSHELL":
		return variable{alts: number}
	case "HOSTNAME", "MACHTYPE", "HOSTTYPE", "OSTYPE", "BASH_VERSION":
		return variable{alts: opaque}
	case "0":
		if v, ok := f.sc.lookup(argZero); ok {
			return v
		}
		return variable{alts: []Word{{Text: "bash", Known: true}}}
	case "-":
		return variable{alts: []Word{{Text: "hBc", Known: true}}}
	}
	if n, err := strconv.Atoi(name); err == nil && n > 0 {
		args, ok := r.params(f)
		switch {
		case !ok:
			return variable{alts: unknown}
		case n <= len(args):
			return variable{alts: []Word{args[n-1]}}
		}
		return variable{alts: nothing}
	}
	if r.o.Env != nil && !f.remote {
		if v, ok := r.o.Env(name); ok {
			return variable{alts: []Word{{Text: v, Known: true}}}
		}
	}
	return variable{alts: unknown}
}

// params are the positional parameters; false when they are not known. A command has none.
func (r *reader) params(f frame) ([]Word, bool) {
	v, ok := f.sc.lookup(argsKey)
	return v.list, !ok || v.array
}

func (x *expander) param(p *syntax.ParamExp, quoted bool) {
	if p.Param == nil || p.Flags != nil || p.NestedParam != nil {
		x.value(Word{}, quoted)
		return
	}
	name := p.Param.Value
	v := x.r.variable(x.f, name)
	if name == "@" || name == "*" {
		args, ok := x.r.params(x.f)
		v = variable{list: args, array: ok, alts: unknown}
	}
	all := name == "@" || name == "*"
	if p.Index != nil {
		x.r.subscript(x.f, p.Index)
		w, _ := p.Index.(*syntax.Word)
		switch i, err := strconv.Atoi(wordLit(w)); {
		case wordLit(w) == "@" || wordLit(w) == "*":
			all = true
			name = wordLit(w)
			if !v.array && len(v.alts) == 1 {
				v.list, v.array = v.alts, true
			}
		case v.array && err == nil && i >= 0:
			v.alts = nothing
			if i < len(v.list) {
				v.alts = v.list[i : i+1]
			}
		case err == nil && i == 0:
		default:
			v.alts = unknown
		}
	} else if v.array && !all && name != "" {
		v.alts = nothing
		if len(v.list) > 0 {
			v.alts = v.list[:1]
		}
	}
	simple := !p.Excl && !p.Length && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
	switch {
	case all && simple && v.array:
		x.list(v.list, quoted, name == "*")
	case all && p.Length && v.array:
		x.value(Word{Text: strconv.Itoa(len(v.list)), Known: true}, quoted)
	case name == "#" && simple:
		if args, ok := x.r.params(x.f); ok {
			x.value(Word{Text: strconv.Itoa(len(args)), Known: true}, quoted)
			return
		}
		x.value(opaque[0], quoted)
	case simple:
		x.value(x.f.choice.pick(name, v.alts), quoted)
	default:
		x.value(x.operate(p, v, all), quoted)
	}
}

func wordLit(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	return w.Lit()
}

// operate gives ${name:-word} and its relatives.
func (x *expander) operate(p *syntax.ParamExp, v variable, all bool) Word {
	cur := x.f.choice.pick(p.Param.Value, v.alts)
	word := func() Word { return x.r.one(x.f, p.Exp.Word) }
	switch {
	case p.Excl:
		x.r.looked(x.f, p)
		if p.Names != 0 || p.Exp != nil || !cur.Known || cur.Glob || !syntax.ValidName(cur.Text) {
			return Word{}
		}
		return x.f.choice.pick(cur.Text, x.r.variable(x.f, cur.Text).alts)
	case p.Length:
		if cur.Known && !cur.Glob {
			return Word{Text: strconv.Itoa(len(cur.Text)), Known: true}
		}
		return opaque[0]
	case all:
		x.r.sweep(x.f, p)
		return Word{}
	case p.Exp != nil && p.Exp.Op <= syntax.AssignUnsetOrNull:
		w := word()
		switch p.Exp.Op {
		case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
			if cur.Known && cur.Text == "" {
				return Word{Known: true}
			}
			if cur.Known {
				return w
			}
			return x.f.choice.pickAt(p, []Word{w, {Known: true}})
		case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
			return cur
		}
		if cur.Known && cur.Text != "" {
			return cur
		}
		if !cur.Known { // it is what it is, or the default
			w = x.f.choice.pickAt(p, []Word{w, cur})
		}
		if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
			x.r.sets(x.f, p.Param.Value, []Word{w})
		}
		return w
	}
	if p.Exp != nil && p.Exp.Op == syntax.OtherParamOps && wordLit(p.Exp.Word) == "P" {
		x.r.doubt("${%s@P}, which runs what it expands to", p.Param.Value)
		return Word{}
	}
	x.r.sweep(x.f, p)
	if p.Slice != nil {
		x.r.arithmetic(x.f, p.Slice.Offset)
		x.r.arithmetic(x.f, p.Slice.Length)
	}
	if !cur.Known || len(cur.Text) > 4<<10 || p.Index != nil {
		return Word{}
	}
	e := &environ{r: x.r, f: x.f}
	out, err := expand.Literal(&expand.Config{Env: e}, &syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: []syntax.WordPart{p}}}})
	if err != nil || e.missed {
		return Word{}
	}
	return Word{Text: out, Known: true, Glob: cur.Glob}
}

// environ shows the variables to package expand, and notes when one is asked for that is not known.
type environ struct {
	r      *reader
	f      frame
	missed bool
	runs   bool // a value has a substitution in it, which arithmetic would run
}

// Get is of [expand.Environ].
func (e *environ) Get(name string) expand.Variable {
	if name == "" || !syntax.ValidName(name) && strings.Trim(name, "0123456789") != "" {
		return expand.Variable{}
	}
	w := e.f.choice.pick(name, e.r.variable(e.f, name).alts)
	if !w.Known {
		e.missed = true
		return expand.Variable{}
	}
	if strings.Contains(w.Text, "$(") || strings.Contains(w.Text, "`") {
		e.runs = true
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: w.Text}
}

// Each is of [expand.Environ]; nothing that is asked of package expand here needs it.
func (e *environ) Each(func(string, expand.Variable) bool) {}
