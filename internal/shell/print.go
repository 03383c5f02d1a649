package shell

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// prints gives what a program would print, if that can be told from its words and its input: known text, or, for programs that list files or say a number, what
// that stands for.
func (r *reader) prints(f frame, c Command) []Word {
	for _, a := range c.Args {
		if !a.Known {
			return r.looks(f, c)
		}
	}
	switch c.Name {
	case "echo":
		return printed(echo(c.Args))
	case "printf":
		return printed(format(c.Args))
	case "true", "false", ":", "test", "[", "mkdir", "touch", "rm", "cp", "mv", "ln", "chmod", "sleep", "wait", "kill", "rmdir", "shopt", "umask", "ulimit", "local":
		return nothing
	case "which":
		if len(c.Args) > 0 && !strings.ContainsAny(c.Args[0].Text, "/-") {
			return []Word{lit("/usr/bin/" + c.Args[0].Text + "\n")}
		}
		return unknown
	case "ssh-agent", "direnv", "pyenv", "rbenv", "nodenv", "fnm", "brew", "starship", "zoxide", "opam", "luarocks", "minikube", "mise", "dircolors", "keychain", "register-python-argcomplete", "goenv", "jenv", "fzf", "atuin": // what they are made for is to be evaluated
		if s := joinText(c.Args); c.Name == "ssh-agent" || c.Name == "dircolors" || slices.ContainsFunc([]string{"init", "env", "hook", "shellenv", "activate", "path", "docker-env", "export", "--bash", "--eval"}, func(w string) bool { return strings.Contains(s, w) }) {
			return nothing
		}
		return unknown
	case "pwd":
		return []Word{f.dir()}
	case "basename", "dirname":
		return each(c)
	case "seq":
		return seq(c.Args)
	case "cat":
		return r.cat(f, c.Args)
	}
	if filter := filters()[c.Name]; filter != nil {
		if in, ok := r.input(f, c); ok {
			if in.Glob {
				return r.looks(f, c)
			}
			return printed(filter(c.Args, in.Text))
		}
		return unknown
	}
	return r.looks(f, c)
}

func printed(w Word) []Word {
	if len(w.Text) > maxSource {
		return unknown
	}
	return []Word{w}
}

// input is what a filter reads: its standard input, if no word of it may be a file.
func (r *reader) input(f frame, c Command) (Word, bool) {
	w := f.choice.pick("stdin", f.in.alts)
	if files := operands(c); len(files) > 0 && c.Name != "tr" {
		w = f.choice.pick(c.Name+files[len(files)-1].Text, r.file(f, files[len(files)-1]))
	}
	return w, w.Known
}

// operands are the words of a filter that name files.
func operands(c Command) (out []Word) {
	valued := filterValues[c.Name]
	for i := 0; i < len(c.Args); i++ {
		a := c.Args[i].Text
		switch {
		case Listed(valued, a):
			i++
		case c.Name == "openssl", c.Name == "sed", strings.HasPrefix(a, "-") && a != "-", stdin(c.Args[i]):
		default:
			out = append(out, c.Args[i])
		}
	}
	return out
}

func echo(args []Word) Word {
	newline, escapes := "\n", false
	for len(args) > 0 && len(args[0].Text) > 1 && strings.Trim(args[0].Text[1:], "neE") == "" && args[0].Text[0] == '-' {
		if strings.Contains(args[0].Text, "n") {
			newline = ""
		}
		if strings.ContainsAny(args[0].Text, "eE") {
			escapes = strings.LastIndex(args[0].Text, "e") > strings.LastIndex(args[0].Text, "E")
		}
		args = args[1:]
	}
	out := Word{Known: true}
	for i, a := range args {
		if i > 0 {
			out.Text += " "
		}
		out.Text += a.Text
		out.Glob = out.Glob || a.Glob
	}
	if escapes {
		for i := 0; i+1 < len(out.Text); i++ {
			if out.Text[i] != '\\' {
				continue
			}
			if i++; out.Text[i] == 'c' { // nothing behind it is printed
				out.Text, newline = out.Text[:i-1], ""
			}
		}
		s, ok := unescape(out.Text)
		if !ok {
			return Word{}
		}
		out.Text = s
	}
	out.Text += newline
	return out
}

var octal = lazy.Regexp(`\\0([0-7]{1,3})`)

// unescape gives what echo -e and printf %b make of s.
func unescape(s string) (string, bool) {
	s, _, err := expand.Format(nil, octal.Get().ReplaceAllString(s, `\$1`), nil)
	return s, err == nil
}

var wide = lazy.Regexp(`%[-+ 0#]*(\d{4}|\*)`)

func format(args []Word) Word {
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) == 0 || wide.Get().MatchString(args[0].Text) || len(args) > 200 {
		return Word{}
	}
	out := Word{Known: true}
	rest := make([]string, 0, len(args))
	for _, a := range args[1:] {
		out.Glob = out.Glob || a.Glob
		rest = append(rest, a.Text)
	}
	for first := true; first || len(rest) > 0; first = false {
		text := args[0].Text
		if strings.Contains(text, "%b") {
			for i, s := range rest {
				rest[i] = octal.Get().ReplaceAllString(s, `\$1`)
			}
		}
		s, n, err := expand.Format(nil, text, rest)
		if err != nil || len(out.Text)+len(s) > maxSource {
			return Word{}
		}
		out.Text += s
		if n == 0 {
			break
		}
		rest = rest[n:]
	}
	return out
}

func each(c Command) []Word {
	if len(c.Args) == 0 || c.Args[0].Text == "" || strings.HasPrefix(c.Args[0].Text, "-") {
		return unknown
	}
	w := c.Args[0]
	if c.Name == "dirname" {
		w.Text = path.Dir(w.Text)
	} else {
		w.Text = path.Base(w.Text)
		if len(c.Args) > 1 {
			w.Text = strings.TrimSuffix(w.Text, c.Args[1].Text)
		}
	}
	return []Word{w}
}

func seq(args []Word) []Word {
	from, to, by := 1, 0, 1
	var ns []int
	for _, a := range args {
		n, err := strconv.Atoi(a.Text)
		if err != nil {
			return opaque
		}
		ns = append(ns, n)
	}
	switch len(ns) {
	case 1:
		to = ns[0]
	case 2:
		from, to = ns[0], ns[1]
	case 3:
		from, by, to = ns[0], ns[1], ns[2]
	}
	if by <= 0 || to-from > 8*maxValues || from < 0 {
		return opaque
	}
	var b strings.Builder
	for i := from; i <= to; i += by {
		b.WriteString(strconv.Itoa(i) + "\n")
	}
	return []Word{lit(b.String())}
}

func (r *reader) cat(f frame, args []Word) []Word {
	out, files := nothing, 0
	for _, a := range args {
		switch {
		case stdin(a):
			out = concat(out, r.stream(f))
		case strings.HasPrefix(a.Text, "-"):
			continue
		default:
			out = concat(out, r.file(f, a))
		}
		files++
	}
	if files == 0 {
		return r.stream(f)
	}
	return out
}

// stream is what stands in standard input.
func (r *reader) stream(f frame) []Word {
	if f.in.alts == nil {
		return nothing
	}
	return f.in.alts
}
