package permit

import (
	"path"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/shell"
)

// commands is the specifier of a Bash rule: the words of one command. "go test:*" is any that begins with them, a word * any number of
// words, and a * in a word any characters of it.
type commands struct {
	words []string
	open  bool // more words may follow
}

func parseCommands(spec string) (*commands, error) {
	c := &commands{}
	body, open := strings.CutSuffix(spec, ":*")
	if c.open = open; open {
		body = strings.TrimSpace(body)
	}
	words, err := fields(body)
	if err != nil {
		return nil, err
	}
	for _, w := range words {
		switch {
		case w == "&&" || w == "||" || w == "|" || w == ";" || w == "&" || strings.HasSuffix(w, ";"):
			return nil, errdefs.Validation.Errorf("%s stands between commands, and a rule is about one: write a rule for each", w)
		case strings.Contains(w, ":*"):
			return nil, errdefs.Validation.Errorf(":* can only be the end: write %s:*, or a * as a word of its own for any words", body)
		}
	}
	if len(words) == 0 || strings.Contains(words[0], "=") {
		return nil, errdefs.Validation.Errorf("it must begin with a program's name: write Bash(go test:*), or Bash for all commands")
	}
	last := len(words) - 1
	if strings.HasSuffix(words[last], "*") { // npm run test* is what begins so, too
		c.open = true
	}
	if last > 0 && words[last] == "*" {
		words = words[:last]
	}
	c.words = words
	return c, nil
}

// fields splits words at spaces, but for those in quotes.
func fields(s string) (words []string, err error) {
	var word strings.Builder
	quote, in := rune(0), false
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			word.WriteRune(r)
			in = true
		}
	}
	if quote != 0 {
		return nil, errdefs.Validation.Errorf("a quote %c is not closed", quote)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

func (r *Rule) bindsCommands(c *Call) (m Match) {
	if c.Unread != nil {
		m = May
	}
	for i := range c.script.Commands {
		m = max(m, r.cmd.binds(&c.script.Commands[i], r.world.fold))
	}
	return m
}

// binds reads a rule that refuses generously: a program is meant wherever it lies, options may stand anywhere, together or apart, long or short.
func (c *commands) binds(cmd *shell.Command, fold bool) Match {
	name, pats := base(c.words[0]), c.words[1:]
	if c.words[0] == "*" {
		name = "*"
	}
	if cmd.Name != "" {
		if n := cmd.Name; !wild(name, n) && (!fold || !wild(strings.ToLower(name), strings.ToLower(n))) {
			return No
		}
		text := cmd.Name
		for _, a := range cmd.Args {
			text += " " + a.Text
		}
		if whole := strings.Join(append([]string{name}, pats...), " "); wild(whole, text) || c.open && wild(whole+" *", text) {
			return Yes
		}
	}
	l := loose{open: c.open, args: cmd.Args, seen: map[[2]int]bool{}}
	letters := ""
	for _, p := range pats {
		if flags := cluster(strings.TrimSuffix(p, "*")); flags != "" {
			letters += flags
		} else {
			l.pats = append(l.pats, p)
		}
	}
	l.hidden = true
	if !hasLetters(letters, cmd.Args, true) || !l.match(0, 0) {
		return No
	}
	l.hidden, l.seen = false, map[[2]int]bool{}
	if cmd.Name == "" || !hasLetters(letters, cmd.Args, false) || !l.match(0, 0) {
		return May
	}
	return Yes
}

// cluster gives the letters of short options that are written together, as in -rf; "" for any other word.
func cluster(word string) string {
	if len(word) < 2 || len(word) > 4 || word[0] != '-' || strings.Trim(word[1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return word[1:]
}

// longFlags are the long options that say what a letter says, in the programs that such rules are written for.
var longFlags = map[rune]string{'r': "--recursive", 'R': "--recursive", 'f': "--force", 'd': "--delete", 'D': "--delete", 'a': "--all", 'i': "--in-place", 'm': "--message", 'n': "--dry-run"}

// hasLetters reports whether every letter is an option of args, in a word with others, alone, or as a long option that may be cut short.
func hasLetters(letters string, args []shell.Word, hidden bool) bool {
next:
	for _, l := range letters {
		for _, a := range args {
			if hidden && !a.Known {
				continue next
			}
			if len(a.Text) > 1 && a.Text[0] == '-' && a.Text[1] != '-' && strings.ContainsRune(a.Text[1:], l) {
				continue next
			}
			if word, _, _ := strings.Cut(a.Text, "="); len(word) > 2 && strings.HasPrefix(longFlags[l], word) {
				continue next
			}
			if l == 'r' && strings.HasPrefix(a.Text, "-") && strings.HasPrefix(a.Text, "-R") || l == 'R' && strings.HasPrefix(a.Text, "-r") {
				continue next
			}
		}
		return false
	}
	return true
}

// loose matches the words of a rule against those of a command, between which options may stand, with a value or without.
type loose struct {
	pats   []string
	args   []shell.Word
	open   bool
	hidden bool // a word that is not known may be any words
	seen   map[[2]int]bool
}

func (l *loose) match(p, a int) (ok bool) {
	at := [2]int{p, a}
	if ok, done := l.seen[at]; done {
		return ok
	}
	l.seen[at] = false
	defer func() { l.seen[at] = ok }()
	if p == len(l.pats) && l.open {
		return true
	}
	if a == len(l.args) {
		for ; p < len(l.pats) && l.pats[p] == "*"; p++ {
		}
		return p == len(l.pats)
	}
	arg := l.args[a]
	if p < len(l.pats) {
		if l.pats[p] == "*" && (l.match(p+1, a) || l.match(p, a+1)) {
			return true
		}
		if sameWord(l.pats[p], arg) && l.match(p+1, a+1) {
			return true
		}
	}
	if l.hidden && !arg.Known {
		return l.match(p, a+1) || p < len(l.pats) && (l.match(p+1, a+1) || l.match(p+1, a))
	}
	if strings.HasPrefix(arg.Text, "-") && arg.Text != "-" {
		return l.match(p, a+1) || p < len(l.pats) && a+1 < len(l.args) && l.match(p, a+2)
	}
	return false
}

// sameWord compares a word of a rule; paths are compared as what they mean, and what the shell expands as the pattern that it is.
func sameWord(pat string, arg shell.Word) bool {
	if !arg.Known {
		return false
	}
	if wild(pat, arg.Text) {
		return true
	}
	if arg.Glob && wild(strings.NewReplacer("?", "*", "[", "*").Replace(arg.Text), pat) {
		return true
	}
	return strings.Contains(pat, "/") && strings.Contains(arg.Text, "/") && wild(path.Clean(pat), path.Clean(arg.Text))
}

// permits reads a rule that permits to the letter: the program by its very name, the words in their places. free are the words that the rule leaves
// open. It fails when one of them is not known.
func (c *commands) permits(cmd *shell.Command) (free []string, ok bool) {
	if cmd.Name == "" || !cmd.Path.Known || cmd.Path.Glob || !strings.Contains(c.words[0], "/") && strings.Contains(cmd.Path.Text, "/") || !wild(c.words[0], cmd.Path.Text) {
		return nil, false
	}
	args := make([]string, len(cmd.Args))
	for i, a := range cmd.Args {
		if !a.Known || a.Glob && (a.Text == "" || strings.ContainsRune("-*?[", rune(a.Text[0]))) { // it may become an option
			return nil, false
		}
		args[i] = a.Text
	}
	return strict(c.words[1:], args, c.open, make(map[[2]int]bool))
}

func strict(pats, args []string, open bool, failed map[[2]int]bool) (free []string, ok bool) {
	at := [2]int{len(pats), len(args)}
	switch {
	case failed[at]:
		return nil, false
	case len(pats) == 0:
		return args, open || len(args) == 0
	case pats[0] == "*":
		if free, ok = strict(pats[1:], args, open, failed); ok {
			return free, true
		}
		if len(args) > 0 {
			if free, ok = strict(pats, args[1:], open, failed); ok {
				return append([]string{args[0]}, free...), true
			}
		}
	case len(args) > 0 && wild(pats[0], args[0]):
		if free, ok = strict(pats[1:], args[1:], open, failed); ok {
			if strings.Contains(pats[0], "*") {
				free = append([]string{args[0]}, free...)
			}
			return free, true
		}
	}
	failed[at] = true
	return nil, false
}
