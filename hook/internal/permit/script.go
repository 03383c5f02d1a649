package permit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/shell"
)

// readBash reads a command and gathers what its parts reach.
func (w *World) readBash(c *Call, command, workdir string) {
	dir := w.dir
	if workdir != "" {
		if dir = filepath.FromSlash(workdir); !filepath.IsAbs(dir) {
			dir = filepath.Join(w.dir, dir)
		}
	}
	s, err := shell.Read(command, shell.Options{Dir: dir, Env: w.env})
	if c.Unread = err; s == nil {
		return
	}
	c.script = *s
	dots := slices.ContainsFunc(s.Commands, func(cmd shell.Command) bool { return cmd.Name == "shopt" })
	known := map[[2]string]Path{}
	for i := range s.Commands {
		r := reached{w: w, cmd: &s.Commands[i], dots: dots, known: known}
		r.gather()
		c.commands = append(c.commands, r.cmd.Name)
		c.reads = append(c.reads, r.reads...)
		for _, p := range r.writes {
			p.any = true
			c.writes = append(c.writes, p)
		}
		c.urls = append(c.urls, r.urls...)
	}
}

// reached is what one command reads, writes and fetches, as far as its words tell.
type reached struct {
	w      *World
	cmd    *shell.Command
	dots   bool               // * may stand for names that begin with a dot
	known  map[[2]string]Path // by directory and text: looking a path up takes time, and scripts repeat themselves
	reads  []Path
	writes []Path
	urls   []target
}

func (r *reached) gather() {
	for _, f := range r.cmd.Redirects {
		if device(f.Path) {
			continue
		}
		paths := r.paths(f.Path)
		if f.Write {
			r.writes = append(r.writes, paths...)
		}
		if !f.Write || f.Op == "<>" {
			r.reads = append(r.reads, paths...)
		}
	}
	r.addresses()
	p := programs[r.cmd.Name]
	words := r.arguments(p.first)
	tree := p.below == "*" || slices.ContainsFunc(r.cmd.Args, func(a shell.Word) bool {
		return strings.HasPrefix(a.Text, "-") && (!strings.HasPrefix(a.Text, "--") && strings.ContainsAny(a.Text, p.below) || p.below != "" && strings.HasPrefix("--recursive", a.Text) && len(a.Text) > 2)
	})
	switch {
	case p.last:
		r.copies(words, tree, p.moves)
	case p.writes:
		for _, a := range words {
			r.writes = append(r.writes, treed(r.paths(a), tree)...)
		}
	case p.reads:
		for _, a := range words {
			paths := r.paths(a)
			if a.Glob && !tree { // what is in a directory that * stands for is not read
				paths = slices.DeleteFunc(paths, isDir)
			}
			r.reads = append(r.reads, treed(paths, tree)...)
		}
		if len(words) == 0 && tree && p.first { // rg PATTERN looks where it is
			r.reads = append(r.reads, treed(r.paths(shell.Word{Text: ".", Known: true, Source: "."}), true)...)
		}
	}
	if !p.mute {
		r.guesses()
	}
	r.inPlace(words)
	if w := writers[r.cmd.Name]; w != nil {
		w(r)
	} else {
		r.outputs()
	}
}

// device reports whether a word names no file that is kept.
func device(w shell.Word) bool {
	switch w.Text {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/zero":
		return w.Known
	}
	rest, fd := strings.CutPrefix(w.Text, "/dev/fd/")
	return w.Known && fd && rest == strings.Trim(rest, "/.")
}

// ownStream reports whether an argument stands for no file that is kept.
func ownStream(w shell.Word) bool { return device(w) || w.Known && w.Text == "-" }

// arguments are the words that are no options; without the first one, if that is a pattern or a program.
func (r *reached) arguments(first bool) (out []shell.Word) {
	ended := false
	for i, a := range r.cmd.Args {
		switch {
		case !ended && a.Known && a.Text == "--":
			ended = true
		case !ended && a.Known && strings.HasPrefix(a.Text, "-") && a.Text != "-":
			if a.Text == "-e" || a.Text == "-f" || strings.HasPrefix(a.Text, "--regexp") || strings.HasPrefix(a.Text, "--file") || strings.HasPrefix(a.Text, "--expression") {
				if first && i+1 < len(r.cmd.Args) { // the pattern is said there
					first = false
				}
			}
		case first:
			first = false
		default:
			out = append(out, a)
		}
	}
	return out
}

func isDir(p Path) bool {
	return !p.tree && slices.ContainsFunc(p.names, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.IsDir()
	})
}

func treed(paths []Path, tree bool) []Path {
	for i := range paths {
		paths[i].tree = paths[i].tree || tree
	}
	return paths
}

// copies is cp, mv, ln and their like: the last argument, or what -t names, is written, under the names of the others when it is a directory.
func (r *reached) copies(words []shell.Word, tree, moves bool) {
	var to []shell.Word
	for i, a := range r.cmd.Args {
		if v, ok := strings.CutPrefix(a.Text, "--target-directory="); ok {
			to = append(to, shell.Word{Text: v, Known: a.Known, Source: a.Source})
		} else if (a.Text == "-t" || a.Text == "--target-directory") && i+1 < len(r.cmd.Args) {
			to = append(to, r.cmd.Args[i+1])
		}
	}
	if to == nil && len(words) > 0 {
		last := len(words) - 1
		to, words = words[last:], words[:last]
		if last == 0 { // ln X makes X here
			words, to = to, append(to, shell.Word{Text: ".", Known: true, Source: "."})
		}
	}
	for _, from := range words {
		sources := treed(r.paths(from), tree)
		r.reads = append(r.reads, sources...)
		if moves {
			r.writes = append(r.writes, sources...)
		}
		for _, t := range to {
			under := shell.Word{Text: t.Text + "/" + filepath.Base(from.Text), Known: t.Known && from.Known, Glob: t.Glob || from.Glob, Source: t.Source + "/"}
			r.writes = append(r.writes, r.paths(under)...)
		}
	}
	for _, t := range to {
		r.writes = append(r.writes, treed(r.paths(t), tree)...)
	}
}

// guesses are the places in the words of any command where a path may stand: whole, behind = : and @, behind the letter of an option. Of a program that is
// known, whole words are no guess.
func (r *reached) guesses() {
	p := programs[r.cmd.Name]
	known := p.reads || p.last || p.writes
	if in := r.cmd.Input; in.Is && interpreter.MatchString(r.cmd.Name) {
		r.guess(inCode(in.Text.Text), false)
	}
	for i, a := range r.cmd.Args {
		if !a.Known {
			continue
		}
		if r.pattern(i) {
			r.guess(r.inCode(i), false)
			continue
		}
		var parts []string
		if !known {
			parts = append(parts, a.Text)
		}
		for _, piece := range strings.FieldsFunc(a.Text, func(c rune) bool { return strings.ContainsRune("=@:,", c) }) {
			if piece != a.Text {
				parts = append(parts, piece)
			}
		}
		if len(a.Text) > 2 && a.Text[0] == '-' && a.Text[1] != '-' {
			parts = append(parts, a.Text[2:])
		}
		parts = append(parts, r.inCode(i)...)
		r.guess(parts, a.Glob)
	}
}

func (r *reached) guess(parts []string, glob bool) {
	for _, part := range parts {
		if part = strings.TrimPrefix(part, "file://"); part == "" || part == "." || strings.HasPrefix(part, "-") {
			continue
		}
		for _, p := range r.paths(shell.Word{Text: part, Known: true, Glob: glob, Source: part}) {
			p.guess = true
			r.reads = append(r.reads, p)
		}
	}
}

// inCode are the words of an argument that is a program for an interpreter.
func (r *reached) inCode(i int) []string {
	if !interpreter.MatchString(r.cmd.Name) || !strings.ContainsAny(r.cmd.Args[i].Text, "'\"`( ") {
		return nil
	}
	return inCode(r.cmd.Args[i].Text)
}

// inCode are the words of a program: what is in quotes, mostly.
func inCode(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \t\r\n'\"`()[]{}<>|;,=", c) })
}

// pattern reports whether the argument is the pattern or the program of a command that begins with one.
func (r *reached) pattern(i int) bool {
	if !programs[r.cmd.Name].first {
		return false
	}
	for j, a := range r.cmd.Args[:i+1] {
		if a.Text == "-e" || a.Text == "-f" || !a.Known {
			return false
		}
		if !strings.HasPrefix(a.Text, "-") {
			return j == i
		}
	}
	return false
}

func (r *reached) addresses() {
	fetches := slices.Contains(fetchers, r.cmd.Name)
	for _, a := range r.cmd.Args {
		text := strings.TrimLeft(a.Text, "-")
		if i := strings.Index(text, "://"); i > 0 {
			text = text[strings.LastIndexAny(text[:i], "=@ '\"")+1:]
		} else if !fetches || strings.HasPrefix(a.Text, "-") || !strings.ContainsAny(text, ".:") {
			if fetches && !a.Known {
				r.urls = append(r.urls, target{text: a.Source})
			}
			continue
		} else {
			text = "http://" + text
		}
		t := readURL(text)
		if !a.Known && !strings.Contains(strings.SplitN(text, "://", 2)[1], "/") { // the host may go on
			t.u = nil
		}
		r.urls = append(r.urls, t)
	}
}

// paths are the files that a word stands for. What the shell expands is looked up now.
func (r *reached) paths(a shell.Word) []Path {
	const most = 1000
	dir := ""
	if r.cmd.Dir.Known && !r.cmd.Dir.Glob {
		dir = r.cmd.Dir.Text
	}
	switch {
	case !a.Known:
		return []Path{{Shown: a.Source, unknown: true}}
	case !a.Glob:
		p := r.path(a.Text, dir)
		p.tree = produced(a)
		return []Path{p}
	case produced(a) && !strings.ContainsAny(a.Text, "*?["):
		p := r.path(a.Text, dir)
		p.tree = true
		return []Path{p}
	}
	name := a.Text
	if !filepath.IsAbs(name) {
		if dir == "" {
			return []Path{{Shown: a.Text, unknown: true}}
		}
		name = globQuoted(dir) + "/" + name
	}
	front, _, deep := strings.Cut(name, "**")
	if deep { // any depth: what lies below the part in front
		if i := strings.IndexAny(front, "*?["); i >= 0 {
			front = front[:i]
		}
		p := r.path(strings.TrimSuffix(front, filepath.Base(front)), dir)
		p.tree = true
		return []Path{p}
	}
	hits, err := filepath.Glob(strings.ReplaceAll(name, "[!", "[^"))
	if err != nil || len(hits) > most {
		return []Path{{Shown: a.Text, unknown: true}}
	}
	out := []Path{r.path(a.Text, dir)}
	for _, hit := range hits {
		if !r.dots && !produced(a) && hidden(hit, name) {
			continue
		}
		out = append(out, r.path(hit, dir))
	}
	return out
}

// produced reports whether a word is what find or another program puts in its place: a directory stands for all that it found there.
func produced(a shell.Word) bool { return a.Source == "" || strings.Contains(a.Source, "{}") }

func (r *reached) path(text, dir string) Path {
	if p, ok := r.known[[2]string{dir, text}]; ok {
		return p
	}
	p := r.w.path(text, dir)
	if r.known != nil {
		r.known[[2]string{dir, text}] = p
	}
	return p
}

// hidden reports whether a part of hit begins with a dot where the pattern has none: a shell leaves that out.
func hidden(hit, pattern string) bool {
	pats, parts := strings.Split(pattern, "/"), strings.Split(hit, "/")
	for i := 1; i <= min(len(pats), len(parts)); i++ { // from behind: the fronts may be spelled differently
		if p := pats[len(pats)-i]; strings.HasPrefix(parts[len(parts)-i], ".") && p != "" && strings.ContainsRune("*?[", rune(p[0])) {
			return true
		}
	}
	return false
}

func globQuoted(dir string) string {
	if os.PathSeparator != '/' {
		return dir
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// Policy says which files may be read and written without asking.
type Policy struct {
	Readable, Writable func(Path) bool
}

// AllowsScript says whether rules that permit cover all of a script: each of its commands is permitted by one of them, or only reads; nothing is
// hidden; what it writes may be written; no variable and no option that the rule leaves open makes a program run another one. by is the first rule that was needed; without it, why
// says what is not covered.
func (w *World) AllowsScript(c *Call, rules []*Rule, p Policy) (by *Rule, why string) {
	if c.Unread != nil || c.tool != bash {
		return nil, "it can't be read"
	}
	for _, r := range rules {
		if r.bare && named(r.tool, bash) {
			return r, ""
		}
	}
	if why := hides(c); why != "" {
		return nil, why
	}
	for i := range c.script.Commands {
		cmd := &c.script.Commands[i]
		r, why := w.allowsCommand(c, cmd, rules, p)
		if why != "" {
			return nil, why
		}
		if by == nil {
			by = r
		}
	}
	if by == nil {
		return nil, "no rule is about it"
	}
	return by, ""
}

// hides says what is hidden in a script, or what it does to the shell that makes its commands other ones.
func hides(c *Call) string {
	if len(c.script.Doubts) > 0 {
		return c.script.Doubts[0]
	}
	for _, a := range c.script.Assigns {
		if riskyName(a.Name) {
			return "it sets " + a.Name
		}
	}
	return ""
}

func (w *World) allowsCommand(c *Call, cmd *shell.Command, rules []*Rule, p Policy) (by *Rule, why string) {
	said := strings.TrimSpace(cmd.Source)
	for _, a := range cmd.Env {
		if riskyName(a.Name) {
			return nil, "it sets " + a.Name
		}
	}
	if why := w.surroundings(cmd, p); why != "" {
		return nil, why
	}
	if cmd.Func || wrapping(c, cmd) {
		return nil, ""
	}
	for _, rule := range rules {
		if rule.cmd == nil {
			continue
		}
		free, ok := rule.cmd.permits(cmd)
		if !ok {
			continue
		}
		word, bad := risky(cmd.Name, free)
		if bad && strings.HasPrefix(word, "-") && strings.Contains(word, "exec") && cmd.Name == "find" && wraps(c, cmd.Name) {
			word, bad = risky(cmd.Name, slices.DeleteFunc(free, func(f string) bool { return f == word }))
		}
		if !bad {
			return rule, ""
		}
		why = "the rule " + rule.Text + " leaves " + word + " open, by which " + cmd.Name + " may run or write something else"
	}
	if why == "" && !w.reads(cmd, p) {
		why = "no rule permits " + said
	}
	return nil, why
}

// surroundings says what of a command's redirections, or of where it runs, may not be.
func (w *World) surroundings(cmd *shell.Command, p Policy) string {
	r := reached{w: w, cmd: &shell.Command{Name: ":", Redirects: cmd.Redirects, Dir: cmd.Dir}}
	r.gather()
	for _, path := range r.writes {
		if !p.Writable(path) {
			return "it writes " + path.Shown
		}
	}
	for _, path := range r.reads {
		if !p.Readable(path) {
			return "it reads " + path.Shown
		}
	}
	if !cmd.Dir.Known || cmd.Dir.Glob || !w.inside(w.path(cmd.Dir.Text, "")) {
		return "it runs outside of the project, or nobody knows where"
	}
	return ""
}

// wrapping reports whether a command does no more than run another one, which is among the commands.
func wrapping(c *Call, cmd *shell.Command) bool {
	o, is := transparent[cmd.Name]
	if !is || cmd.Path.Text != cmd.Name || !wraps(c, cmd.Name) || slices.ContainsFunc(cmd.Args, func(a shell.Word) bool { return !a.Known }) {
		return false
	}
	l, ok := o.split(cmd.Args, true)
	front := cmd.Args[:len(cmd.Args)-len(l.operands)+min(1, len(l.operands))]
	return ok && !slices.ContainsFunc(front, func(a shell.Word) bool { return a.Glob })
}

// wraps reports whether what a command of that name runs is among the commands.
func wraps(c *Call, name string) bool {
	return slices.ContainsFunc(c.script.Commands, func(in shell.Command) bool {
		return slices.ContainsFunc(in.By, func(by string) bool { return by == name || strings.HasPrefix(by, name+" ") })
	})
}
