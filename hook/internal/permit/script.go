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
	p := programs()[r.cmd.Name]
	words := r.arguments(p.first)
	tree := p.below == "*" || slices.ContainsFunc(r.cmd.Args, func(a shell.Word) bool {
		return strings.HasPrefix(a.Text, "-") && (!strings.HasPrefix(a.Text, "--") && strings.ContainsAny(a.Text, p.below) || p.below != "" && strings.HasPrefix("--recursive", a.Text) && len(a.Text) > 2)
	})
	switch {
	case p.last:
		r.copies(words, tree, p.moves)
	case p.writes:
		for _, a := range words {
			r.writes = append(r.writes, standing(treed(r.paths(a), tree))...)
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
	if w := writers()[r.cmd.Name]; w != nil {
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
	return w.Known && fd && rest != "" && strings.Trim(rest, digits) == ""
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

// standing are paths of what is changed or removed where it stands.
func standing(paths []Path) []Path {
	for i := range paths {
		paths[i].there = true
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
	var all []Path
	for _, from := range words {
		sources := treed(r.paths(from), tree)
		r.reads = append(r.reads, sources...)
		if moves {
			r.writes = append(r.writes, standing(slices.Clone(sources))...)
		}
		all = append(all, sources...)
		for _, t := range to {
			under := shell.Word{Text: t.Text + "/" + filepath.Base(from.Text), Known: t.Known && from.Known, Glob: t.Glob || from.Glob, Source: t.Source + "/"}
			r.writes = append(r.writes, r.paths(under)...)
		}
	}
	for _, t := range to {
		paths := treed(r.paths(t), tree)
		for i := range paths {
			paths[i].from = all
		}
		r.writes = append(r.writes, paths...)
	}
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
