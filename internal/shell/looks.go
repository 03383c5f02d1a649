package shell

import (
	"path"
	"slices"
	"strings"
)

// Programs that look at the system: of what they print, only the kind is known.

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
		if len(c.Args) == 1 && arg(0) == "+%s" {
			return number
		}
		return opaque
	case "wc", "nproc":
		if !slices.ContainsFunc(c.Args, func(w Word) bool { return !strings.HasPrefix(w.Text, "-") }) {
			return number
		}
		return opaque
	case "id", "whoami", "hostname", "uname", "arch", "uuidgen", "logname", "tty", "pgrep", "pidof", "lsof", "sha256sum", "md5sum", "sha1sum", "du", "df", "ps", "cksum", "getconf", "jobs":
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
