package shell

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
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
	if filter := filters[c.Name]; filter != nil {
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

var filterValues = map[string]string{"head": "-n -c", "tail": "-n -c", "base64": "-w --wrap", "xxd": "-c -l -s -g", "cut": "-d -f -c -b", "openssl": "-in", "sed": "-e"}

// operands are the words of a filter that name files.
func operands(c Command) (out []Word) {
	valued := filterValues[c.Name]
	for i := 0; i < len(c.Args); i++ {
		a := c.Args[i].Text
		switch {
		case slices.Contains(strings.Fields(valued), a):
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

var octal = regexp.MustCompile(`\\0([0-7]{1,3})`)

// unescape gives what echo -e and printf %b make of s.
func unescape(s string) (string, bool) {
	s, _, err := expand.Format(nil, octal.ReplaceAllString(s, `\$1`), nil)
	return s, err == nil
}

var wide = regexp.MustCompile(`%[-+ 0#]*(\d{4}|\*)`)

func format(args []Word) Word {
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) == 0 || wide.MatchString(args[0].Text) || len(args) > 200 {
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
				rest[i] = octal.ReplaceAllString(s, `\$1`)
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

// filters make known text of known text.
var filters = map[string]func(args []Word, in string) Word{
	"base64": func(args []Word, in string) Word {
		for _, a := range args {
			if a.Text == "--decode" || strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--") && strings.ContainsAny(a.Text, "dD") {
				return decoded(base64.StdEncoding.WithPadding(base64.NoPadding).DecodeString(strings.TrimRight(squeeze(in), "=")))
			}
		}
		return lit(base64.StdEncoding.EncodeToString([]byte(in)) + "\n")
	},
	"base32": func(args []Word, in string) Word {
		if len(args) > 0 {
			return decoded(base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.TrimRight(squeeze(in), "=")))
		}
		return lit(base32.StdEncoding.EncodeToString([]byte(in)) + "\n")
	},
	"openssl": func(args []Word, in string) Word {
		s := joinText(args)
		if (strings.HasPrefix(s, "base64 ") || strings.Contains(s, "-base64") || strings.Contains(s, "-a")) && strings.Contains(s+" ", "-d ") {
			return decoded(base64.StdEncoding.DecodeString(squeeze(in)))
		}
		return Word{}
	},
	"xxd": func(args []Word, in string) Word {
		s := joinText(args)
		switch {
		case strings.Contains(s, "r") && strings.Contains(s, "p"):
			return decoded(hex.DecodeString(squeeze(in)))
		case s == "-p" || s == "-ps":
			return lit(hex.EncodeToString([]byte(in)) + "\n")
		}
		return Word{}
	},
	"rev": func(_ []Word, in string) Word {
		var out []string
		for line := range strings.SplitSeq(in, "\n") {
			rs := []rune(line)
			slices.Reverse(rs)
			out = append(out, string(rs))
		}
		return lit(strings.Join(out, "\n"))
	},
	"tac": func(_ []Word, in string) Word {
		ls := strings.SplitAfter(strings.TrimSuffix(in, "\n")+"\n", "\n")
		slices.Reverse(ls)
		return lit(strings.Join(ls, ""))
	},
	"tr":   translate,
	"head": func(args []Word, in string) Word { return few(args, in, false) },
	"tail": func(args []Word, in string) Word { return few(args, in, true) },
	"sort": func(args []Word, in string) Word {
		if len(args) > 0 {
			return Word{}
		}
		ls := strings.SplitAfter(strings.TrimSuffix(in, "\n")+"\n", "\n")
		slices.Sort(ls)
		return lit(strings.Join(ls, ""))
	},
	"cut": func([]Word, string) Word { return Word{} },
	"sed": func(args []Word, in string) Word {
		if len(args) == 1 && args[0].Text == "" {
			return lit(in)
		}
		return Word{}
	},
}

// decoded is what a decoder gave; what it gave before an error was printed all the same, and is not known.
func decoded(b []byte, err error) Word {
	if err != nil {
		return Word{}
	}
	return lit(string(b))
}

func squeeze(s string) string {
	return strings.Map(func(c rune) rune {
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			return -1
		}
		return c
	}, s)
}

func joinText(args []Word) string {
	out := make([]string, 0, len(args))
	for _, a := range args {
		out = append(out, a.Text)
	}
	return strings.Join(out, " ")
}

func few(args []Word, in string, last bool) Word {
	n := 10
	for i, a := range args {
		s := a.Text
		if s == "-n" && i+1 < len(args) {
			s = args[i+1].Text
		}
		if v, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(s, "-n"), "-")); err == nil && v >= 0 {
			n = v
		} else if s != "-n" {
			return Word{}
		}
	}
	ls := strings.SplitAfter(strings.TrimSuffix(in, "\n")+"\n", "\n")
	ls = ls[:len(ls)-1]
	n = min(n, len(ls))
	if last {
		return lit(strings.Join(ls[len(ls)-n:], ""))
	}
	return lit(strings.Join(ls[:n], ""))
}

// set gives the characters of a tr set; false for what is not understood.
func set(s string) ([]byte, bool) {
	s = strings.NewReplacer("[:lower:]", "a-z", "[:upper:]", "A-Z", "[:digit:]", "0-9", "[:space:]", " \t\n\r\v\f").Replace(s)
	if strings.Contains(s, "[:") || strings.Contains(s, "[=") {
		return nil, false
	}
	s, ok := unescape(s)
	if !ok {
		return nil, false
	}
	var out []byte
	for i := 0; i < len(s); i++ {
		if i+2 < len(s) && s[i+1] == '-' && s[i] <= s[i+2] {
			for c := int(s[i]); c <= int(s[i+2]); c++ {
				out = append(out, byte(c)) //nolint:gosec // G115: between two bytes
			}
			i += 2
			continue
		}
		out = append(out, s[i])
	}
	return out, true
}

func translate(args []Word, in string) Word {
	remove := false
	for len(args) > 0 && len(args[0].Text) > 1 && args[0].Text[0] == '-' {
		flag := args[0].Text
		args = args[1:]
		if flag == "--" {
			break
		}
		if flag != "-d" {
			return Word{}
		}
		remove = true
	}
	if len(args) == 0 || !remove && len(args) < 2 {
		return Word{}
	}
	from, ok := set(args[0].Text)
	if !ok {
		return Word{}
	}
	var to []byte
	if !remove {
		if to, ok = set(args[1].Text); !ok || len(to) == 0 {
			return Word{}
		}
	}
	out := make([]byte, 0, len(in))
	for i := range len(in) {
		j := slices.Index(from, in[i])
		switch {
		case j < 0:
			out = append(out, in[i])
		case !remove:
			for k := len(from) - 1; k > j; k-- { // the last mention counts
				if from[k] == in[i] {
					j = k
					break
				}
			}
			out = append(out, to[min(j, len(to)-1)])
		}
	}
	return lit(string(out))
}

// looks gives what programs print that look at the system: a name or a number that has no "/" in it, or paths below a directory.
func (r *reader) looks(f frame, c Command) []Word {
	arg := func(i int) string {
		if i < len(c.Args) {
			return c.Args[i].Text
		}
		return ""
	}
	deep := []Word{{Text: "./**/*", Known: true, Glob: true}}
	switch c.Name {
	case "date":
		if strings.Contains(joinText(c.Args), "/") {
			return unknown
		}
		return opaque
	case "nproc", "id", "whoami", "hostname", "uname", "arch", "wc", "uuidgen", "logname", "tty", "pgrep", "pidof", "lsof", "sha256sum", "md5sum", "sha1sum", "du", "df", "ps", "cksum", "getconf", "jobs":
		return opaque
	case "mktemp":
		return temporary(c.Args)
	case "ls":
		return r.list(f, c)
	case "git":
		switch {
		case arg(0) == "rev-parse" && slices.ContainsFunc(c.Args, func(w Word) bool { return w.Text == "--short" || w.Text == "HEAD" }) && !slices.ContainsFunc(c.Args, func(w Word) bool { return strings.HasPrefix(w.Text, "--show") || strings.Contains(w.Text, "git") }):
			return opaque
		case arg(0) == "describe" || arg(0) == "rev-list" || arg(0) == "merge-base":
			return opaque
		case arg(0) == "ls-files", (arg(0) == "diff" || arg(0) == "show" || arg(0) == "log") && strings.Contains(joinText(c.Args), "--name-only"):
			return matching(c.Args[1:], deep)
		}
	case "grep", "egrep", "fgrep", "rg", "ag", "ack":
		names := c.Name == "rg" && strings.Contains(joinText(c.Args), "--files")
		for _, a := range c.Args {
			if strings.HasPrefix(a.Text, "--files-with") || strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--") && strings.ContainsAny(a.Text, "lL") {
				names = true
			}
		}
		if names {
			return below(f, c)
		}
		if in := f.choice.pick("stdin", f.in.alts); in.Known && in.Glob { // it leaves some of the lines
			return f.in.alts
		}
	case "fd", "fdfind":
		for _, a := range c.Args {
			if strings.HasPrefix(a.Text, "/") || strings.Contains(a.Text, "..") || strings.HasPrefix(a.Text, "~") {
				return unknown
			}
		}
		return deep
	case "sort", "uniq", "head", "tail", "xargs", "awk", "tr":
		if in := f.choice.pick("stdin", f.in.alts); in.Known && in.Glob && c.Name != "awk" && c.Name != "tr" && c.Name != "xargs" {
			return f.in.alts
		}
	case "docker", "podman":
		if slices.ContainsFunc(c.Args, func(w Word) bool { return w.Text == "-q" || w.Text == "-aq" || w.Text == "-qa" || w.Text == "--quiet" }) {
			return opaque
		}
	}
	return unknown
}

// matching are the patterns among the words, or all.
func matching(args, all []Word) []Word {
	var out []Word
	for _, a := range args {
		if strings.HasPrefix(a.Text, "-") || !a.Known {
			continue
		}
		if strings.HasPrefix(a.Text, "/") || strings.Contains(a.Text, "..") {
			return all
		}
		if p := a.Text; strings.ContainsAny(p, "*?[") {
			out = append(out, Word{Text: "./**/" + path.Base(p), Known: true, Glob: true})
		} else {
			out = append(out, Word{Text: p + "/**/*", Known: true, Glob: true})
		}
	}
	if out == nil {
		return all
	}
	return lines(out)
}

// below are the files below the words of grep -l behind the pattern.
func below(_ frame, c Command) []Word {
	var words []Word
	n := 0
	for i, a := range c.Args {
		if strings.HasPrefix(a.Text, "-") || i > 0 && slices.Contains([]string{"-e", "-g", "-t", "--glob", "--type", "-A", "-B", "-C", "-m", "-f"}, c.Args[i-1].Text) {
			continue
		}
		if n++; n == 1 {
			continue
		}
		if !a.Known {
			return unknown
		}
		if a.Glob {
			words = append(words, a)
			continue
		}
		words = append(words, Word{Text: strings.TrimSuffix(a.Text, "/") + "/**/…", Known: true, Glob: true})
	}
	if words == nil {
		words = []Word{{Text: "./**/…", Known: true, Glob: true}}
	}
	return lines(words)
}

func (r *reader) list(_ frame, c Command) []Word {
	var words []Word
	for _, a := range c.Args {
		switch {
		case strings.HasPrefix(a.Text, "-") && strings.ContainsAny(a.Text, "lR"):
			return unknown
		case strings.HasPrefix(a.Text, "-"):
		case !a.Known:
			return unknown
		default:
			words = append(words, a)
		}
	}
	if len(words) == 0 {
		return opaque
	}
	if len(words) == 1 && !words[0].Glob {
		return opaque // the names in a directory, without it
	}
	return lines(words)
}

// temporary is a fresh name in the directory for temporary files.
func temporary(args []Word) []Word {
	dir := "/tmp"
	for i, a := range args {
		switch {
		case (a.Text == "-p" || a.Text == "--tmpdir") && i+1 < len(args):
			dir = args[i+1].Text
		case strings.HasPrefix(a.Text, "--tmpdir="):
			dir = strings.TrimPrefix(a.Text, "--tmpdir=")
		case strings.Contains(a.Text, "XXX") && strings.Contains(a.Text, "/"):
			return []Word{{Text: a.Text[:strings.Index(a.Text, "XXX")] + "*", Known: true, Glob: true}}
		case strings.Contains(a.Text, "XXX") && !slices.ContainsFunc(args, func(w Word) bool { return w.Text == "-t" || strings.HasPrefix(w.Text, "--tmpdir") || w.Text == "-p" }):
			return []Word{{Text: a.Text[:strings.Index(a.Text, "XXX")] + "*", Known: true, Glob: true}}
		}
	}
	return []Word{{Text: dir + "/tmp.*", Known: true, Glob: true}}
}
