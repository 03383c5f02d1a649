package shell

import (
	"slices"
	"strings"
)

// specials are the programs that special reads.
var specials = fields(`awk gawk mawk nawk sed gsed vi vim nvim ex ed git tar gtar bsdtar rsync man dc scp zip make socat nc ncat netcat sqlite3 psql mysql docker podman kubectl npm pnpm yarn uv poetry pipenv bundle conda mise direnv nix-shell nix at batch fd fdfind nodemon tcpdump crontab emacs m4 sshpass go cargo split sort expect tclsh less more most rg openvpn guile gosh csi racket sbcl clisp clojure clj bb adb lxc incus multipass vagrant minikube fzf sk hg svn cmake bazel bazelisk asdf rbenv pyenv nodenv goenv jenv rye pdm pixi devbox doppler`)

// script reads programs in other languages: as far as they run commands, or remove and write files, by literal calls.
func (r *reader) script(f frame, c Command) ([]Word, bool) {
	if specials.has(c.Name) {
		return r.special(f.under(c.Name), c)
	}
	l := languageOf(c.Name)
	if l == nil {
		return nil, false
	}
	f = f.under(c.Name)
	var code []Word
	i := 0
	for ; i < len(c.Args); i++ {
		a := c.Args[i]
		if !a.Known || len(a.Text) < 2 || a.Text[0] != '-' {
			if a.Known && i == 0 && (a.Text == "eval" && c.Name == "deno") && i+1 < len(c.Args) {
				code = append(code, c.Args[len(c.Args)-1])
				i++
			}
			break
		}
		letters := !strings.HasPrefix(a.Text, "--") && l.letters != "" && strings.ContainsAny(a.Text[len(a.Text)-1:], l.letters) && !strings.HasPrefix(a.Text, "-M") && !strings.HasPrefix(a.Text, "-I")
		switch {
		case a.Text == "--":
		case (Listed(l.code, a.Text) || letters) && i+1 < len(c.Args):
			i++
			code = append(code, c.Args[i])
			if l == &python { // what follows are the code's own words
				i = len(c.Args)
			}
		case strings.HasPrefix(a.Text, "--eval="), strings.HasPrefix(a.Text, "--print="):
			_, s, _ := strings.Cut(a.Text, "=")
			code = append(code, Word{Text: s, Known: a.Known})
		case l == &python && strings.HasPrefix(a.Text, "-c"), l == &perl && (strings.HasPrefix(a.Text, "-e") || strings.HasPrefix(a.Text, "-E")), l == &ruby && strings.HasPrefix(a.Text, "-e"), l == &php && strings.HasPrefix(a.Text, "-r"):
			code = append(code, Word{Text: a.Text[2:], Known: a.Known})
		case l.stops != "" && strings.HasPrefix(a.Text, l.stops):
			if rest := c.Args[i+1:]; a.Text == l.stops && len(rest) > 0 {
				r.module(f, rest[0].Text, rest[1:])
			} else if a.Text != l.stops {
				r.module(f, a.Text[len(l.stops):], rest)
			}
			return unknown, true
		case Listed(l.valued, a.Text):
			i++
		case a.Text == "--version" || a.Text == "--help" || a.Text == "-V" || a.Text == "-v" && l != &perl:
			return opaque, true
		}
	}
	switch {
	case code != nil:
		for _, w := range code {
			r.code(f, l, w, 0)
		}
	case i >= len(c.Args) || stdin(c.Args[i]):
		if !f.in.file && f.in.alts != nil {
			for _, w := range f.in.alts {
				r.code(f, l, w, 0)
			}
		}
	default:
		if v := r.file(f, c.Args[i]); !r.stranger(f, c.Args[i]) {
			for _, w := range v {
				r.code(f, l, w, 0)
			}
		}
	}
	return unknown, true
}

// code reads a program. An argument that is no literal is a word that is not known.
func (r *reader) code(f frame, l *language, w Word, depth int) {
	if !w.Known || w.Glob {
		r.doubt("%s runs code that is not known", f.by[len(f.by)-1])
		return
	}
	if len(w.Text) > maxSource || depth > 4 {
		r.doubt("%s runs code that is too large to be read", f.by[len(f.by)-1])
		return
	}
	f = f.fork()
	f.choice, f.in = nil, stream{}
	p := &program{r: r, f: f, l: l, ts: tokens(l, w.Text), vars: map[string]Word{}, names: map[string]string{}, depth: depth}
	p.read()
}

type program struct {
	r     *reader
	f     frame
	l     *language
	ts    []token
	vars  map[string]Word
	names map[string]string // what imports call things
	stars []string          // modules whose names are known without them
	depth int
}

func (p *program) at(i int) token {
	if i >= 0 && i < len(p.ts) {
		return p.ts[i]
	}
	return token{}
}

func (p *program) read() {
	p.imports()
	for i, t := range p.ts {
		if !p.r.step() {
			return
		}
		switch {
		case t.shell:
			p.r.text(p.f, t.text)
		case t.name != "" && p.at(i+1).char == '=' && p.at(i+2).char != '=':
			if v, next := p.value(i + 2); p.ends(next) {
				p.vars[t.name] = v
			} else {
				p.vars[t.name] = Word{}
			}
		case t.name != "":
			p.call(i)
		}
	}
}

// imports notes the names under which things are known: from os import remove as r; import os as o.
func (p *program) imports() {
	for i, t := range p.ts {
		switch {
		case t.name == "import" && i >= 2 && p.at(i-2).name == "from":
			if p.at(i+1).char == '*' {
				p.stars = append(p.stars, p.at(i-1).name)
			}
			for j := i + 1; p.at(j).name != "" || p.at(j).char == ','; j++ {
				if name := p.at(j).name; name != "" {
					as := name
					if p.at(j+1).name == "as" {
						as = p.at(j + 2).name
						j += 2
					}
					p.names[as] = p.at(i-1).name + "." + name
				}
			}
		case t.name == "import" && p.l == &python:
			for j := i + 1; p.at(j).name != ""; j += 2 {
				if p.at(j+1).name == "as" {
					p.names[p.at(j+2).name] = p.at(j).name
					j += 2
				}
				if p.at(j+1).char != ',' {
					break
				}
			}
		case p.l == &node && p.l.calls.of(t.name) != "" && p.at(i+1).char == ':' && p.at(i+2).name != "": // {execSync: e}
			p.names[p.at(i+2).name] = t.name
		case t.name != "" && p.at(i+1).char == '=' && p.l.calls.of(p.at(i+2).name) != "" && p.at(i+3).char != '(':
			p.names[t.name] = p.at(i + 2).name
		}
	}
}

func (p *program) ends(i int) bool {
	c := p.at(i).char
	return i >= len(p.ts) || c == ';' || c == '\n' || c == ',' || c == ')'
}

// value reads an expression of literals, names of literals and + or . between them.
func (p *program) value(i int) (Word, int) {
	out, first := Word{Known: true}, true
	for {
		t := p.at(i)
		switch {
		case t.char == '-' && first && p.at(i+1).str && strings.Trim(p.at(i+1).text.Text, "0123456789") == "":
			out.Text = "-" + p.at(i+1).text.Text
			i += 2
		case t.str && !t.shell:
			out.Text, out.Known = out.Text+t.text.Text, out.Known && t.text.Known
			i++
		case t.name != "" && p.at(i+1).char != '(' && p.at(i+1).char != '[':
			v := p.vars[t.name]
			out.Text, out.Known = out.Text+v.Text, out.Known && v.Known
			i++
		case strings.HasSuffix(t.name, "expanduser") && p.at(i+1).char == '(' && p.at(i+2).str && p.at(i+3).char == ')':
			home := p.f.choice.pick("HOME", p.r.variable(p.f, "HOME").alts)
			s := p.at(i + 2).text
			if rest, ok := strings.CutPrefix(s.Text, "~"); ok {
				s = Word{Text: home.Text + rest, Known: home.Known && s.Known}
			}
			out.Text, out.Known = out.Text+s.Text, out.Known && s.Known
			i += 4
		case (t.name == "Path" || t.name == "pathlib.Path" || t.name == "Pathname" || t.name == "String") && p.at(i+1).char == '(':
			v, n := p.value(i + 2)
			out.Text, out.Known = out.Text+v.Text, out.Known && v.Known
			i = n + 1
		default:
			if first {
				return Word{}, i
			}
			return Word{Text: out.Text}, i
		}
		first = false
		switch c := p.at(i).char; {
		case c == '+', c == '.' && p.l != &python && p.l != &node && p.l != &ruby:
			i++
		case p.at(i).str && p.l == &python && !p.at(i).shell: // 'a' 'b'
		default:
			return out, i
		}
	}
}

// args reads the arguments of a call that begins behind its name: words, and the words of the list among them.
func (p *program) args(i int) (words, list []Word, end int) {
	depth, inList := 0, false
	if p.at(i).char == '(' {
		i++
		depth = 1
	}
	for i < len(p.ts) {
		t := p.at(i)
		switch {
		case t.char == ')' && depth <= 1, depth == 0 && (t.char == ';' || t.char == '\n' || t.char == '}'):
			return words, list, i
		case t.char == '[' && !inList:
			inList = true
			i++
		case t.char == ']':
			inList = false
			i++
		case t.char == ',' || t.char == '(' || t.char == '\n':
			i++
		case t.char == ')':
			i++
		default:
			v, n := p.value(i)
			if !v.Known || n == i || n < len(p.ts) && (p.at(n).char == 0 || !strings.ContainsRune(",)];\n}", rune(p.at(n).char))) {
				v = Word{Text: v.Text, Source: "an argument"}
				if t.name != "" && p.at(i+1).char == '=' { // a named argument
					v = Word{Text: t.name + "=" + p.at(i+2).name + p.at(i+2).text.Text, Source: "named"}
				}
				n = p.skip(max(n, i))
			}
			if inList {
				list = append(list, v)
			} else {
				words = append(words, v)
			}
			i = n
		}
		if len(words)+len(list) > 200 {
			return words, list, i
		}
	}
	return words, list, i
}

// skip gives the index behind an argument that is no literal.
func (p *program) skip(i int) int {
	depth := 0
	for ; i < len(p.ts); i++ {
		switch p.at(i).char {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth == 0 {
				return i
			}
			depth--
		case ',', ';', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// call looks whether a name is called that does harm.
func (p *program) call(i int) {
	name := p.at(i).name
	if p.at(i+1).char != '(' && !p.l.plain {
		return
	}
	if as, ok := p.names[name]; ok {
		name = as
	} else if head, rest, ok := strings.Cut(name, "."); ok && head != "" && p.names[head] != "" {
		name = p.names[head] + "." + rest
	}
	name = strings.ReplaceAll(name, "::", ".")
	kind := p.l.calls.of(name)
	for _, module := range p.stars {
		if kind == "" {
			kind = p.l.calls.of(module + "." + name)
		}
	}
	method := name[strings.LastIndexByte(name, '.')+1:]
	if kind == "" && strings.Contains(name, ".") {
		kind = p.l.calls.of("." + method)
		if kind == "" && strings.HasPrefix(name, ".") && (p.l == &python && (method == "system" || method == "popen" || method == "rmtree") || p.l == &node && method == "exec" && p.mentions("child_process")) {
			kind = p.l.calls.of(method)
		}
	}
	if kind == "" || p.at(i-1).name == "def" || p.at(i-1).name == "function" || p.at(i-1).name == "import" {
		return
	}
	if name == "exec" && p.l == &node && !p.mentions("child_process") {
		return
	}
	words, list, _ := p.args(i + 1)
	if len(words)+len(list) == 0 && kind != callPath && kind != callSave && kind != callSelf && kind != callDoubt {
		if p.at(i+1).char != '(' || p.at(i+2).char == ')' {
			return
		}
		words = []Word{{}}
	}
	p.does(kind, name, words, list, i)
}

func (p *program) mentions(s string) bool {
	return slices.ContainsFunc(p.ts, func(t token) bool { return strings.Contains(t.text.Text, s) || strings.Contains(t.name, s) })
}

func (p *program) does(kind, name string, words, list []Word, i int) {
	first := Word{}
	if len(words) > 0 {
		first = words[0]
	}
	positional := words[:0:0]
	for _, w := range words {
		if w.Source != "named" {
			positional = append(positional, w)
		}
	}
	run := func(ws ...Word) { p.r.exec(p.f, ws, nil, nil, name) }
	target := func() Word { // of a method: Path('x').unlink()
		if p.at(i-1).char == ')' && p.at(i-2).str && p.at(i-3).char == '(' {
			return p.at(i - 2).text
		}
		return p.vars[strings.TrimSuffix(name, name[strings.LastIndexByte(name, '.'):])]
	}
	switch kind {
	case callCd:
		p.r.chdir(p.f, first)
	case callShell:
		p.r.text(p.f, first)
	case callRun, callExec:
		switch {
		case len(list) > 0 && p.l == &python && strings.Contains(name, "exec"), len(list) > 0 && kind == callRun:
			run(list...)
		case len(list) > 0 && len(positional) > 0:
			run(append(positional[:1:1], list...)...)
		case len(list) > 0:
			run(list...)
		case kind == callExec && len(positional) > 1 && p.l == &python:
			run(positional[1:]...)
		case kind == callExec && len(positional) > 1:
			run(positional...)
		default:
			p.r.text(p.f, first)
		}
	case callRm:
		if positional = append(positional, list...); len(positional) == 0 {
			positional = unknown
		}
		if p.l == &node {
			positional = positional[:1]
		}
		for j := range positional {
			positional[j].Glob = positional[j].Glob || strings.ContainsAny(positional[j].Text, "*?[")
		}
		run(append([]Word{lit("rm"), lit("-rf"), lit("--")}, positional...)...)
	case callMv, callCp:
		run(append([]Word{lit(kind), lit("--")}, append(positional, list...)...)...)
	case callMode:
		positional = slices.DeleteFunc(positional, func(w Word) bool { return w.Known && strings.Trim(w.Text, "0123456789-") == "" })
		if p.l == &python || p.l == &node || p.l == &php {
			positional = positional[:min(1, len(positional))]
		}
		run(append([]Word{lit("chmod"), lit("--"), lit("0")}, positional...)...)
	case callKill:
		if len(positional) > 1 && (p.l == &perl || p.l == &ruby) {
			positional = positional[1:]
		}
		run(append([]Word{lit("kill"), lit("-9")}, positional...)...)
	case callWrite:
		p.writes(first, name)
	case callOpen:
		p.opens(positional, words, name)
	case callSelf:
		w := p.at(i - 1).text
		if !p.at(i - 1).str {
			w = p.vars[strings.TrimSuffix(name, name[strings.LastIndexByte(name, '.'):])]
		}
		p.r.text(p.f, w)
	case callPath:
		run(lit("rm"), lit("-rf"), lit("--"), target())
	case callSave:
		p.writes(target(), name)
	case callEval:
		if p.l == &perl && p.at(i+1).char == '{' {
			return
		}
		p.r.code(p.f, p.l, first, p.depth+1)
	case callDoubt:
		if p.l == &python && name == "__import__" && first.Known {
			return
		}
		p.r.doubt("%s calls %s", p.f.by[len(p.f.by)-1], name)
	}
}

func (p *program) writes(w Word, name string) {
	p.r.show(p.f, Command{Name: ":", Path: lit(":"), Redirects: []Redirect{{Op: ">", Path: w, Write: true}}, Source: name})
}

// opens shows a file that is opened for writing.
func (p *program) opens(positional, words []Word, name string) {
	if p.l == &perl { // open(F, ">", "x"), open(F, ">x"), open(F, "cmd|")
		for j, w := range positional {
			s := strings.TrimSpace(w.Text)
			switch {
			case s == "|-" || s == "-|":
				p.r.exec(p.f, positional[j+1:], nil, nil, name)
				return
			case strings.HasPrefix(s, "|") || len(s) > 1 && strings.HasSuffix(s, "|"):
				p.r.text(p.f, Word{Text: strings.Trim(s, "|"), Known: w.Known})
				return
			case (s == ">" || s == ">>" || s == "+<" || s == "+>") && j+1 < len(positional):
				p.writes(positional[j+1], name)
				return
			case strings.HasPrefix(s, ">"):
				p.writes(Word{Text: strings.TrimLeft(s, "> "), Known: w.Known}, name)
				return
			}
		}
		return
	}
	for _, w := range words[min(1, len(words)):] {
		mode := strings.TrimPrefix(w.Text, "mode=")
		if !w.Known && w.Source != "named" || mode != "" && strings.ContainsAny(mode, "wax+W") && len(mode) <= 4 {
			p.writes(words[0], name)
			return
		}
	}
}
