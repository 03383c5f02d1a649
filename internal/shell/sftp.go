package shell

import (
	"path"
	"strings"
)

// letters gives the values of options of one letter, together or apart, by their letter. valued are those that have one.
func letters(args []Word, valued string) map[byte][]Word {
	values := map[byte][]Word{}
	for i := 0; i < len(args); i++ {
		text := args[i].Text
		if text == "--" {
			break
		}
		if len(text) < 2 || text[0] != '-' || text[1] == '-' {
			continue
		}
		for j := 1; j < len(text); j++ {
			if strings.IndexByte(valued, text[j]) < 0 {
				continue
			}
			if j+1 < len(text) {
				values[text[j]] = append(values[text[j]], Word{Text: text[j+1:], Known: args[i].Known, Glob: args[i].Glob, Source: args[i].Source})
			} else if i++; i < len(args) {
				values[text[j]] = append(values[text[j]], args[i])
			}
			break
		}
	}
	return values
}

// runSFTP reads what sftp starts to connect, and the commands that it is given by a batch, a heredoc or a pipe.
func runSFTP(r *reader, f frame, c Command) []Word {
	given := letters(c.Args, "BbcDFiJloPRSsX")
	for _, w := range append(given['S'], given['D']...) {
		r.text(f.relabel("sftp -S"), w)
	}
	r.connects(f, given['o'])
	in := f.in.alts
	if batch := given['b']; len(batch) > 0 && !stdin(batch[0]) {
		in = r.file(f, batch[0])
	}
	for _, w := range in {
		if !w.Known || w.Glob {
			r.doubt("sftp is told what to do by what is not known: %s", clip(c.Source))
			continue
		}
		g := f.fork()
		for line := range strings.Lines(w.Text) {
			r.transfer(g, strings.TrimSpace(line), c.Source)
		}
	}
	return unknown
}

// transfer reads one command of sftp. What it does on the other machine is a command by sftp; what it does here is one of this machine.
func (r *reader) transfer(f frame, line, source string) {
	line = strings.TrimLeft(line, "-@ \t") // by which it goes on after an error, and doesn't print the line
	if command, local := strings.CutPrefix(line, "!"); local {
		r.text(f.relabel("sftp !"), lit(command))
		return
	}
	words := unquoted(line)
	if len(words) == 0 || strings.HasPrefix(line, "#") {
		return
	}
	var operands []Word
	for _, w := range words[1:] {
		if !strings.HasPrefix(w.Text, "-") {
			operands = append(operands, w)
		}
	}
	here := f.relabel("sftp " + words[0].Text)
	switch name := strings.ToLower(words[0].Text); {
	case name == "lcd" && len(operands) > 0:
		r.chdir(f, operands[0])
	case name == "lmkdir":
		r.exec(here, append([]Word{lit("mkdir")}, operands...), nil, nil, source)
	case (name == "get" || name == "reget" || name == "mget") && len(operands) > 0:
		to := lit(path.Base(operands[0].Text))
		if len(operands) > 1 {
			to = operands[1]
		}
		r.show(here, Command{Name: ":", Path: lit(":"), Redirects: []Redirect{{Op: ">", Path: to, Write: true}}, Source: source})
		fallthrough
	default:
		r.show(f, Command{Name: name, Path: words[0], Args: words[1:], Source: source})
	}
}

// unquoted splits a line at spaces, but for those in quotes and behind a backslash.
func unquoted(line string) (words []Word) {
	var word strings.Builder
	quote, in := byte(0), false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			in = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, in = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if in {
				words = append(words, lit(word.String()))
			}
			word.Reset()
			in = false
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if in {
		words = append(words, lit(word.String()))
	}
	return words
}

// runCompletion reads the command of -C, and the words of -W, which are expanded once more. What complete notes is run when somebody completes, which is as good as now.
func runCompletion(r *reader, f frame, c Command) []Word {
	given := letters(c.Args, "AGWFCXPSoV")
	for _, w := range given['C'] {
		r.text(f.relabel(c.Name+" -C"), w)
	}
	for _, w := range given['W'] {
		if w.Known && !strings.ContainsAny(w.Text, "$`<>") {
			continue
		}
		end := "Z"
		for strings.Contains(w.Text, end) {
			end += "Z"
		}
		w.Text = ": <<" + end + "\n" + w.Text + "\n" + end + "\n" // a text in which nothing but expansions counts
		r.text(f.relabel(c.Name+" -W"), w)
	}
	return unknown
}
