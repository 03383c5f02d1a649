package shell

import (
	"path"
	"slices"
	"strings"
)

// Programs that run others, each in its own way.

// runSu reads su and runuser: -c, or with -u the rest.
func runSu(r *reader, f frame, c Command) []Word {
	for i, a := range c.Args {
		switch {
		case (a.Text == "-c" || a.Text == "--command" || strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--") && strings.HasSuffix(a.Text, "c")) && i+1 < len(c.Args):
			return r.text(f, c.Args[i+1])
		case strings.HasPrefix(a.Text, "--command="):
			return r.text(f, Word{Text: strings.TrimPrefix(a.Text, "--command="), Known: a.Known})
		case c.Name == "runuser" && (a.Text == "-u" || a.Text == "--user") && i+2 < len(c.Args):
			return r.unwrap(f, Command{Name: "runuser", Args: c.Args[i+2:]}, wrapper{})
		}
	}
	if len(f.in.alts) > 0 {
		return r.stdin(f)
	}
	return unknown
}

// joined runs words as one script, as programs do that hand them to a shell.
func (r *reader) joined(f frame, args []Word) []Word {
	s := Word{Known: true}
	for i, a := range args {
		if i > 0 {
			s.Text += " "
		}
		s.Text += a.Text
		s.Known, s.Source = s.Known && a.Known, s.Source+" "+a.Source
	}
	if len(args) == 0 {
		return nothing
	}
	return r.text(f, s)
}

func runWatch(r *reader, f frame, c Command) []Word {
	i := min(options(c.Args, "nq", "interval"), len(c.Args))
	for _, a := range c.Args[:i] {
		if a.Text == "-x" || a.Text == "--exec" {
			return r.exec(f, c.Args[i:], nil, nil, c.Source)
		}
	}
	return r.joined(f, c.Args[i:])
}

func runFlock(r *reader, f frame, c Command) []Word {
	i := options(c.Args, "wE", "timeout wait conflict-exit-code") + 1
	if i < len(c.Args) && (c.Args[i].Text == "-c" || c.Args[i].Text == "--command") {
		return r.joined(f, c.Args[i+1:])
	}
	if i < len(c.Args) {
		return r.exec(f, c.Args[i:], nil, nil, c.Source)
	}
	return nothing
}

// runDashC reads programs that give the value of -c to a shell.
func runDashC(r *reader, f frame, c Command) []Word {
	for i, a := range c.Args {
		if strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--") && strings.HasSuffix(a.Text, "c") && i+1 < len(c.Args) {
			r.text(f, c.Args[i+1])
		} else if s, ok := strings.CutPrefix(a.Text, "--command="); ok {
			r.text(f, Word{Text: s, Known: a.Known})
		}
	}
	return unknown
}

// sshValues are the options of ssh that have a value.
const sshValues = "bcDEeFIiJLlmOopQRSWwBP"

// connects reads the settings of ssh by which it starts programs here.
func (r *reader) connects(f frame, settings []Word) {
	for _, w := range settings {
		for _, name := range []string{"ProxyCommand", "LocalCommand", "KnownHostsCommand"} {
			if len(w.Text) > len(name) && strings.EqualFold(w.Text[:len(name)], name) {
				r.text(f.relabel("ssh "+name), Word{Text: strings.TrimLeft(w.Text[len(name):], "= "), Known: w.Known})
			}
		}
	}
}

func runSSH(r *reader, f frame, c Command) []Word {
	i := min(options(c.Args, sshValues, ""), len(c.Args))
	r.connects(f, letters(c.Args[:i], sshValues)['o'])
	g := f.far()
	g.sc.set("HOME", variable{alts: []Word{{Text: "/home/remote", Known: true}}})
	if i+1 >= len(c.Args) {
		if len(f.in.alts) > 0 && i < len(c.Args) {
			return r.stdin(g)
		}
		return unknown
	}
	rest := c.Args[i+1:]
	n := min(options(rest, sshValues, ""), len(rest))
	r.connects(f, letters(rest[:n], sshValues)['o'])
	if n < len(rest) {
		rest = rest[n:]
	}
	r.joined(g, rest)
	return unknown
}

// runTee shows the files that tee writes as they would be by redirections, and passes its input on.
func runTee(r *reader, f frame, c Command) []Word {
	i := min(options(c.Args, "", ""), len(c.Args))
	for _, a := range c.Args[i:] {
		r.keep(f, a, f.in.alts, false)
	}
	if f.in.alts == nil {
		return nothing
	}
	return f.in.alts
}

// runLast reads the command that terminal multiplexers start a session with.
func runLast(r *reader, f frame, c Command) []Word {
	for i, a := range c.Args {
		switch {
		case c.Name == "tmux" && (a.Text == "send-keys" || a.Text == "send"):
			rest := c.Args[i+1:]
			if n := min(options(rest, "tN", ""), len(rest)); n < len(rest) {
				return r.text(f, rest[n])
			}
		case c.Name == "tmux" && slices.Contains([]string{"new-session", "new", "new-window", "neww", "split-window", "splitw", "run-shell", "run", "respawn-pane", "if-shell"}, a.Text):
			rest := c.Args[i+1:]
			if n := min(options(rest, "censtxyFlp", ""), len(rest)); n < len(rest) {
				return r.joined(f, rest[n:])
			}
		case c.Name == "screen" && a.Text == "stuff":
			r.doubt("screen types into another terminal: %s", clip(c.Source))
		case c.Name == "screen" && strings.HasPrefix(a.Text, "-"):
		case c.Name == "screen" && i > 0 && !strings.HasSuffix(c.Args[i-1].Text, "S") && c.Args[i-1].Text != "-r":
			return r.exec(f, c.Args[i:], nil, nil, c.Source)
		}
	}
	return unknown
}

// runFetch notes the files that come from elsewhere: what is in them is not known.
func runFetch(r *reader, f frame, c Command) []Word {
	out := unknown
	save := func(w Word) {
		r.keep(f, w, unknown, false)
		out = nothing
	}
	named := false
	for i, a := range c.Args {
		short := strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--")
		last := byte(0)
		if short {
			last = a.Text[len(a.Text)-1]
		}
		switch {
		case i+1 < len(c.Args) && (a.Text == "--output" || a.Text == "--output-document" || c.Name == "curl" && last == 'o' || c.Name == "wget" && last == 'O'):
			save(c.Args[i+1])
			named = true
		case strings.HasPrefix(a.Text, "--output=") || strings.HasPrefix(a.Text, "--output-document="):
			_, v, _ := strings.Cut(a.Text, "=")
			save(Word{Text: v, Known: a.Known})
			named = true
		}
	}
	if c.Name == "wget" && named && slices.ContainsFunc(c.Args, stdin) || slices.ContainsFunc(c.Args, func(w Word) bool { return c.Name == "wget" && strings.HasSuffix(w.Text, "O-") }) {
		return unknown
	}
	for _, a := range c.Args {
		if strings.Contains(a.Text, "://") && !named && (c.Name == "wget" || slices.ContainsFunc(c.Args, func(w Word) bool {
			return w.Text == "--remote-name" || strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "--") && strings.Contains(w.Text, "O")
		})) {
			save(Word{Text: path.Base(a.Text), Known: a.Known})
		}
	}
	return out
}
