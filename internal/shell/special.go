package shell

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

var (
	awkShell  = lazy.Regexp(`(?:system\s*\(|\|&?)\s*"((?:[^"\\]|\\.)*)"|"((?:[^"\\]|\\.)*)"\s*\|&?\s*getline`)
	awkSystem = lazy.Regexp(`\bsystem\s*\(|\|&?\s*getline|\|&?\s*[a-z$(]`)
	awkFile   = lazy.Regexp(`>>?\s*"((?:[^"\\]|\\.)*)"`)
	sedRuns   = lazy.Regexp(`(?m)(?:^|[;{}\d/$ ])\s*e\s+(\S.*)$`)
	sedFlag   = lazy.Regexp(`(?s)^\s*(?:[\d,$/!]|/[^/]*/)*\s*s(.)(.*)$`)
	sedFile   = lazy.Regexp(`(?m)(?:^|[;{}\d/$ ])\s*w\s+(\S+)\s*$`)
	editShell = lazy.Regexp(`^\s*:?\s*(?:\d+|%|\.|\$|,)*\s*(?:!|silent!?\s*!|call system\(|r\s*!|w\s*!)\s*(.*)$`)
)

// special reads programs that run what an option or a small language of their own says. False in the second place: it runs nothing of the kind.
func (r *reader) special(f frame, c Command) ([]Word, bool) {
	value := func(names ...string) (Word, bool) { // of an option
		for i, a := range c.Args {
			for _, n := range names {
				if a.Text == n && i+1 < len(c.Args) {
					return c.Args[i+1], true
				}
				if s, ok := strings.CutPrefix(a.Text, n+"="); ok && strings.HasPrefix(n, "--") {
					return Word{Text: s, Known: a.Known, Source: a.Source}, true
				}
			}
		}
		return Word{}, false
	}
	after := func(name string) []Word {
		for i, a := range c.Args {
			if a.Text == name {
				return c.Args[i+1:]
			}
		}
		return nil
	}
	switch c.Name {
	case "awk", "gawk", "mawk", "nawk":
		r.awk(f, c)
		return r.looks(f, c), true
	case "sed", "gsed":
		r.sed(f, c)
		return r.prints(f, c), true
	case "vi", "vim", "nvim", "ex", "ed", "emacs":
		for i, a := range c.Args {
			s, plus := strings.CutPrefix(a.Text, "+")
			if !plus && (i == 0 || !Listed("-c --cmd -S", c.Args[i-1].Text)) {
				continue
			}
			if m := editShell.Get().FindStringSubmatch(s); m != nil {
				r.text(f, Word{Text: strings.Trim(strings.TrimSuffix(m[1], ")"), "'\""), Known: a.Known})
			}
			if strings.Contains(s, "py") && strings.Contains(s, "import") || strings.Contains(s, "lua") {
				r.doubt("%s runs code in an option", c.Name)
			}
		}
		for _, w := range f.in.alts {
			for line := range strings.Lines(w.Text) {
				if m := editShell.Get().FindStringSubmatch(strings.TrimSpace(line)); m != nil && (c.Name == "ed" || c.Name == "ex") {
					r.text(f, Word{Text: m[1], Known: w.Known})
				}
			}
		}
		if c.Name == "emacs" && slices.ContainsFunc(c.Args, func(w Word) bool {
			return strings.HasPrefix(w.Text, "--eval") || strings.Contains(w.Text, "shell-command")
		}) {
			r.doubt("emacs runs code in an option")
		}
	case "less", "more", "most":
		r.pages(f, c.Args)
		return nil, false
	case "rg":
		if w, ok := value("--pre", "--hostname-bin"); ok {
			if !w.Known || strings.ContainsAny(w.Text, " \t") {
				r.text(f, w)
			} else { // it is given the files that are searched
				r.exec(f.fork(), []Word{w, {Text: "./**/…", Known: true, Glob: true}}, nil, nil, c.Source)
			}
		}
		return nil, false
	case "openvpn":
		for i, a := range c.Args {
			if i+1 < len(c.Args) && Listed("--up --down --route-up --route-pre-down --ipchange --iproute --tls-verify --client-connect --client-disconnect --learn-address --auth-user-pass-verify --tls-crypt-v2-verify", a.Text) {
				r.text(f, c.Args[i+1])
			}
		}
	case "guile", "gosh", "csi", "racket", "sbcl", "clisp", "clojure", "clj", "bb":
		for i, a := range c.Args {
			if i+1 < len(c.Args) && Listed("-c -e -x --eval", a.Text) {
				r.lisp(f, c.Name, c.Args[i+1])
			}
		}
		if !f.in.file {
			for _, w := range f.in.alts {
				r.lisp(f, c.Name, w)
			}
		}
	case "git":
		r.git(f, c)
		return r.looks(f, c), true
	case "tar", "gtar", "bsdtar":
		for _, a := range c.Args {
			if s, ok := strings.CutPrefix(a.Text, "--checkpoint-action=exec="); ok {
				r.text(f, Word{Text: s, Known: a.Known})
			}
		}
		if w, ok := value("--checkpoint-action"); ok {
			r.text(f, Word{Text: strings.TrimPrefix(w.Text, "exec="), Known: w.Known})
		}
		if w, ok := value("--to-command", "-I", "--use-compress-program", "--info-script", "-F", "--new-volume-script", "--rmt-command", "--rsh-command"); ok {
			r.text(f, w)
		}
	case "rsync":
		if w, ok := value("-e", "--rsh", "--rsync-path"); ok {
			r.text(f, w)
		}
	case "scp":
		if w, ok := value("-S"); ok {
			r.text(f, w)
		}
		for _, a := range c.Args {
			if _, s, ok := strings.Cut(a.Text, "ProxyCommand"); ok {
				r.text(f, Word{Text: strings.TrimLeft(s, "= "), Known: a.Known})
			}
		}
	case "man":
		if w, ok := value("-P", "--pager", "-H", "--html"); ok {
			r.text(f, w)
		}
	case "dc":
		for _, a := range c.Args {
			if _, s, ok := strings.Cut(a.Text, "!"); ok {
				r.text(f, Word{Text: s, Known: a.Known})
			}
		}
	case "zip":
		if w, ok := value("-TT", "--unzip-command"); ok {
			r.text(f, w)
		}
	case "sort":
		if w, ok := value("--compress-program"); ok {
			r.text(f, w)
		}
		return nil, false
	case "split":
		if w, ok := value("--filter"); ok {
			r.text(f, w)
		}
	case "tcpdump":
		if w, ok := value("-z"); ok {
			r.text(f, w)
		}
	case "nodemon":
		if w, ok := value("-x", "--exec"); ok {
			r.text(f, w)
		}
	case "make":
		for _, a := range c.Args {
			for _, p := range []string{"--eval=", "SHELL="} {
				if strings.HasPrefix(a.Text, p) && !strings.HasSuffix(a.Text, "sh") {
					r.doubt("make runs what %s says", clip(a.Text))
				}
			}
		}
		if w, ok := value("-f", "--file", "--makefile"); ok && stdin(w) || slices.ContainsFunc(c.Args, func(w Word) bool { return w.Text == "-f-" }) {
			r.doubt("make runs what it reads")
		}
		if w, ok := value("--eval"); ok && !strings.Contains(w.Text, "=") {
			r.doubt("make runs what --eval says: %s", clip(w.Text))
		}
	case "socat":
		for _, a := range c.Args {
			for _, p := range []string{"EXEC:", "SYSTEM:", "SHELL:"} {
				if len(a.Text) > len(p) && strings.EqualFold(a.Text[:len(p)], p) {
					r.doubt("socat gives a program to whoever connects: %s", clip(a.Text))
				}
			}
		}
	case "nc", "ncat", "netcat":
		if w, ok := value("-e", "-c", "--exec", "--sh-exec"); ok {
			r.doubt("%s gives a program to whoever connects: %s", c.Name, short(w, ""))
		}
	case "sqlite3", "psql", "mysql":
		for _, a := range c.Args {
			for _, p := range []string{".shell ", ".system ", `\!`, "system "} {
				if s, ok := strings.CutPrefix(strings.TrimSpace(a.Text), p); ok {
					r.text(f, Word{Text: s, Known: a.Known})
				}
			}
		}
	case "docker", "podman":
		if len(c.Args) > 0 && c.Args[0].Text == "exec" {
			i := options(c.Args[1:], "euw", "env user workdir env-file detach-keys") + 2
			r.elsewhere(f.relabel(c.Name+" exec"), c.Args[min(i, len(c.Args)):], c.Source)
		} else if len(c.Args) > 1 && c.Args[0].Text == "compose" && c.Args[1].Text == "exec" {
			i := options(c.Args[2:], "euw", "env user workdir index") + 3
			r.elsewhere(f.relabel(c.Name+" exec"), c.Args[min(i, len(c.Args)):], c.Source)
		}
		return nil, false
	case "adb", "lxc", "incus", "multipass", "vagrant", "minikube":
		r.reaches(f, c)
		return nil, false
	case "fzf", "sk":
		r.finder(f, c)
		return nil, false
	case "hg":
		r.mercurial(f, c)
	case "svn":
		if w, ok := value("--diff-cmd", "--diff3-cmd", "--editor-cmd"); ok {
			r.text(f, w)
		}
	case "cmake":
		if len(c.Args) > 2 && c.Args[0].Text == "-E" {
			switch c.Args[1].Text {
			case "env":
				runEnv(r, f, Command{Name: "env", Args: c.Args[2:], Source: c.Source})
			case "time":
				r.exec(f.fork(), c.Args[2:], nil, nil, c.Source)
			case "chdir":
				f = f.fork()
				r.chdir(f, c.Args[2])
				r.exec(f, c.Args[3:], nil, nil, c.Source)
			}
		}
		return nil, false
	case "bazel", "bazelisk":
		if w, ok := value("--run_under"); ok {
			r.text(f, w)
		}
		return nil, false
	case "kubectl":
		if len(c.Args) > 0 && c.Args[0].Text == "exec" {
			r.elsewhere(f.relabel("kubectl exec"), after("--"), c.Source)
		}
	case "npm", "pnpm", "yarn", "uv", "poetry", "pipenv", "bundle", "conda", "mise", "direnv", "cargo", "go", "asdf", "rbenv", "pyenv", "nodenv", "goenv", "jenv", "rye", "pdm", "pixi", "devbox", "doppler":
		return r.packaged(f, c)
	case "nix-shell":
		if w, ok := value("--run", "--command"); ok {
			r.text(f, w)
		}
	case "nix":
		if ws := append(after("-c"), after("--command")...); len(ws) > 0 {
			r.exec(f, ws, nil, nil, c.Source)
		}
	case "at", "batch", "m4", "expect", "tclsh":
		if c.Name == "expect" {
			if w, ok := value("-c"); ok && strings.Contains(w.Text, "spawn") {
				_, s, _ := strings.Cut(w.Text, "spawn ")
				s, _, _ = strings.Cut(s, ";")
				r.text(f, Word{Text: s, Known: w.Known})
			}
			return unknown, true
		}
		if c.Name == "at" || c.Name == "batch" {
			return r.stdin(f), true
		}
		if len(f.in.alts) > 0 && (c.Name == "tclsh" || strings.Contains(f.in.alts[0].Text, "syscmd")) {
			r.doubt("%s runs what it reads", c.Name)
		}
	case "crontab":
		if len(c.Args) > 0 && stdin(c.Args[len(c.Args)-1]) && f.in.alts != nil {
			r.cron(f)
		}
	case "fd", "fdfind":
		for i, a := range c.Args {
			if slices.Contains([]string{"-x", "-X", "--exec", "--exec-batch"}, a.Text) {
				found := r.looks(f, Command{Name: "fd", Args: c.Args[:i]})[0]
				found.Text = strings.TrimSuffix(found.Text, "*") + "…" // what matched
				words := substituted(c.Args[i+1:], "{}", found)
				if !slices.ContainsFunc(c.Args[i+1:], func(w Word) bool { return strings.Contains(w.Text, "{") }) {
					words = append(words, found)
				}
				r.exec(f, words, nil, nil, c.Source)
				return unknown, true
			}
		}
		return nil, false
	case "sshpass":
		i := options(c.Args, "pfdP", "")
		r.exec(f, c.Args[min(i, len(c.Args)):], nil, nil, c.Source)
	}
	return unknown, true
}

var packageVerbs = map[string]string{
	"npm": "exec x", "pnpm": "exec dlx", "yarn": "exec dlx", "uv": "run", "poetry": "run", "pipenv": "run", "bundle": "exec", "conda": "run", "mise": "exec x", "direnv": "exec",
	"asdf": "exec", "rbenv": "exec", "pyenv": "exec", "nodenv": "exec", "goenv": "exec", "jenv": "exec", "rye": "run", "pdm": "run", "pixi": "run", "devbox": "run", "doppler": "run",
}

// packaged reads package managers that run programs: npm exec, uv run, poetry run, …
func (r *reader) packaged(f frame, c Command) ([]Word, bool) {
	verbs := packageVerbs[c.Name]
	i := options(c.Args, "C", "prefix cwd filter directory project with python name")
	if i >= len(c.Args) || !Listed(verbs, c.Args[i].Text) {
		for j, a := range c.Args { // go test -exec 'cmd', go vet -vettool, go build -toolexec
			name, v, ok := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a.Text, "-"), "-"), "=")
			if c.Name != "go" || !slices.Contains([]string{"exec", "toolexec", "vettool"}, name) || a.Text[0] != '-' {
				continue
			}
			w := Word{Text: v, Known: a.Known}
			if !ok && j+1 < len(c.Args) {
				w = c.Args[j+1]
			}
			r.text(f, w)
		}
		return nil, false
	}
	args := c.Args[i+1:]
	for j, a := range args {
		if c.Name == "npm" && (a.Text == "-c" || a.Text == "--call") && j+1 < len(args) {
			return r.text(f, args[j+1]), true
		}
		if a.Text == "--" {
			break
		}
	}
	args = args[min(options(args, "pn", "package name python with cwd"), len(args)):]
	if c.Name == "direnv" && len(args) > 0 {
		args = args[1:]
	}
	if c.Name == "mise" {
		for j, a := range args {
			if a.Text == "--" {
				args = args[j+1:]
				break
			}
		}
	}
	r.exec(f, args, nil, nil, c.Source)
	return unknown, true
}

// cron reads the commands of a table.
func (r *reader) cron(f frame) {
	for _, w := range f.in.alts {
		if !w.Known {
			continue // the hook asks about a new table anyway
		}
		for line := range strings.Lines(w.Text) {
			fields := strings.Fields(line)
			switch {
			case len(fields) > 1 && strings.HasPrefix(fields[0], "@"):
				r.text(f, lit(strings.Join(fields[1:], " ")))
			case len(fields) > 5 && !strings.HasPrefix(fields[0], "#"):
				r.text(f, lit(strings.Join(fields[5:], " ")))
			}
		}
	}
}

func (r *reader) awk(f frame, c Command) {
	i := options(c.Args, "Fvf", "field-separator assign file")
	if i >= len(c.Args) {
		return
	}
	for _, a := range c.Args[:i] {
		if strings.HasPrefix(a.Text, "-f") || strings.HasPrefix(a.Text, "--file") {
			return // a program in a file
		}
	}
	code := c.Args[i]
	rest := code.Text
	for _, m := range awkShell.Get().FindAllStringSubmatch(rest, -1) {
		text, ok := unescape(m[1] + m[2])
		f := f
		if strings.HasPrefix(m[0], "|") {
			f.in = stream{alts: unknown}
		}
		if r.text(f, Word{Text: text, Known: ok}); ok {
			rest = strings.Replace(rest, m[0], "", 1)
		}
	}
	for _, m := range awkFile.Get().FindAllStringSubmatch(rest, -1) {
		text, ok := unescape(m[1])
		r.show(f, Command{Name: ":", Path: lit(":"), Redirects: []Redirect{{Op: ">", Path: Word{Text: text, Known: ok}, Write: true}}, Source: c.Source})
	}
	if !code.Known {
		r.doubt("awk runs code that is not known")
	}
	noOr := strings.ReplaceAll(rest, "||", "")
	if awkSystem.Get().MatchString(stripStrings(noOr)) {
		r.doubt("awk runs a command that is not a literal")
	}
}

var literalText = lazy.Regexp(`"(?:[^"\\]|\\.)*"|/(?:[^/\\\n]|\\.)*/`)

func stripStrings(s string) string { return literalText.Get().ReplaceAllString(s, `""`) }

func (r *reader) sed(f frame, c Command) {
	var scripts []Word
	for i, a := range c.Args {
		switch {
		case a.Text == "-e" || a.Text == "--expression":
			if i+1 < len(c.Args) {
				scripts = append(scripts, c.Args[i+1])
			}
		case strings.HasPrefix(a.Text, "--expression="):
			scripts = append(scripts, Word{Text: strings.TrimPrefix(a.Text, "--expression="), Known: a.Known})
		case strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--") && strings.HasSuffix(a.Text, "e") && !strings.HasPrefix(a.Text, "-i") && i+1 < len(c.Args):
			scripts = append(scripts, c.Args[i+1])
		}
	}
	if len(scripts) == 0 {
		if i := options(c.Args, "fl", "file line-length"); i < len(c.Args) {
			scripts = c.Args[i : i+1]
		}
	}
	for _, s := range scripts {
		if !strings.ContainsAny(s.Text, "ew") {
			continue
		}
		for _, m := range sedRuns.Get().FindAllStringSubmatch(s.Text, -1) {
			if !strings.HasPrefix(strings.TrimSpace(s.Text), "s") {
				r.text(f, Word{Text: m[1], Known: s.Known})
			}
		}
		for _, m := range sedFile.Get().FindAllStringSubmatch(s.Text, -1) {
			r.show(f, Command{Name: ":", Path: lit(":"), Redirects: []Redirect{{Op: ">", Path: Word{Text: m[1], Known: s.Known}, Write: true}}, Source: c.Source})
		}
		if m := sedFlag.Get().FindStringSubmatch(s.Text); m != nil {
			parts := strings.Split(m[2], m[1])
			flags := parts[len(parts)-1]
			if name, ok := strings.CutPrefix(strings.TrimLeft(flags, "gpiIm0123456789"), "w "); ok && len(parts) > 2 {
				r.show(f, Command{Name: ":", Path: lit(":"), Redirects: []Redirect{{Op: ">", Path: lit(strings.TrimSpace(name)), Write: true}}, Source: c.Source})
			} else if len(parts) == 3 && strings.Contains(flags, "e") && strings.Trim(flags, "gpiImMe0123456789") == "" {
				if out := strings.TrimSpace(parts[1]); strings.ContainsAny(out, `\&`) {
					r.doubt("sed runs the lines that it makes")
				} else {
					r.text(f, Word{Text: out, Known: s.Known})
				}
			}
		}
	}
}

// gitConfigRuns are settings of git whose value is run; those that end in a point stand for all below.
var gitConfigRuns = []string{"core.pager", "core.editor", "core.sshcommand", "core.fsmonitor", "core.askpass", "sequence.editor", "diff.external", "credential.helper", "gpg.program", "core.gitproxy", "uploadpack.packobjectshook", "interactive.difffilter", "pager.", "alias.", "difftool.", "mergetool.", "filter.", "merge.", "diff.", "credential.", "gpg.", "trailer.", "remote.", "browser.", "man.", "tar.", "sendemail."}

// setting reads a setting of git.
func (r *reader) setting(f frame, name string, v Word) {
	key := strings.ToLower(name)
	if key == "core.hookspath" {
		if v.Text != "/dev/null" {
			r.doubt("git runs hooks from %s", short(v, v.Text))
		}
		return
	}
	for _, s := range gitConfigRuns {
		if key != s && (!strings.HasSuffix(s, ".") || !strings.HasPrefix(key, s)) {
			continue
		}
		last := key[strings.LastIndexByte(key, '.')+1:]
		text, bang := strings.CutPrefix(v.Text, "!")
		switch {
		case s == "alias." && !bang:
			args := []Word{lit("git")}
			for w := range strings.FieldsSeq(text) {
				args = append(args, Word{Text: w, Known: v.Known})
			}
			r.exec(f, args, nil, nil, v.Source)
		case strings.HasSuffix(s, ".") && !bang && !slices.Contains([]string{"cmd", "command", "textconv", "driver", "clean", "smudge", "process", "program", "uploadpack", "receivepack"}, last) && s != "pager.":
		case key == "credential.helper" && !bang && !strings.ContainsAny(text, "/ ;"):
		case key == "core.fsmonitor" && (text == "true" || text == "false" || text == ""), s == "pager." && (text == "true" || text == "false"):
		default:
			r.text(f.relabel("git "+key), Word{Text: text, Known: v.Known})
		}
		return
	}
	if strings.HasPrefix(key, "include") || strings.HasPrefix(key, "url.") && strings.HasPrefix(v.Text, "ext::") {
		r.doubt("git reads settings from %s", short(v, v.Text))
	}
}

func (r *reader) git(f frame, c Command) {
	f = f.fork()
	args := c.Args
global:
	for len(args) > 0 {
		a := args[0]
		switch {
		case a.Text == "-c" && len(args) > 1:
			name, v, _ := strings.Cut(args[1].Text, "=")
			r.setting(f, name, Word{Text: v, Known: args[1].Known, Source: args[1].Source})
			args = args[2:]
		case (a.Text == "-C" || a.Text == "--work-tree") && len(args) > 1:
			r.chdir(f, args[1])
			args = args[2:]
		case (a.Text == "--git-dir" || a.Text == "--namespace" || a.Text == "--config-env" || a.Text == "--exec-path") && len(args) > 1:
			args = args[2:]
		case strings.HasPrefix(a.Text, "--exec-path="):
			r.doubt("git runs programs from %s", clip(a.Text))
			args = args[1:]
		case strings.HasPrefix(a.Text, "-"):
			args = args[1:]
		default:
			break global
		}
	}
	if len(args) == 0 {
		return
	}
	sub, rest := args[0].Text, args[1:]
	for i, a := range rest {
		next := Word{}
		if i+1 < len(rest) {
			next = rest[i+1]
		}
		name, v, eq := strings.Cut(a.Text, "=")
		if eq {
			next = Word{Text: v, Known: a.Known, Source: a.Source}
		}
		switch {
		case sub == "rebase" && (name == "--exec" || name == "-x"), (sub == "difftool") && (name == "-x" || name == "--extcmd"), sub == "filter-branch" && strings.HasSuffix(name, "-filter"),
			(sub == "clone" || sub == "fetch" || sub == "pull" || sub == "ls-remote") && (name == "--upload-pack" || name == "-u"), sub == "push" && (name == "--receive-pack" || name == "--exec"), sub == "grep" && strings.HasPrefix(name, "--open-files-in-pager") && eq:
			r.text(f, next)
		case sub == "clone" && (name == "-c" || name == "--config"):
			name, v, _ := strings.Cut(next.Text, "=")
			r.setting(f, name, Word{Text: v, Known: next.Known})
		case strings.HasPrefix(a.Text, "ext::"):
			r.text(f, Word{Text: strings.TrimPrefix(a.Text, "ext::"), Known: a.Known})
		case sub == "grep" && strings.HasPrefix(a.Text, "-O") && len(a.Text) > 2:
			r.text(f, Word{Text: a.Text[2:], Known: a.Known})
		}
	}
	switch {
	case sub == "bisect" && len(rest) > 1 && rest[0].Text == "run":
		r.exec(f, rest[1:], nil, nil, c.Source)
	case sub == "submodule" && len(rest) > 1 && rest[0].Text == "foreach":
		i := 1 + options(rest[1:], "", "")
		r.joined(f, rest[min(i, len(rest)):])
	case sub == "config":
		i := options(rest, "f", "file blob type default comment")
		rest = rest[min(i, len(rest)):]
		if len(rest) > 0 && rest[0].Text == "set" {
			rest = rest[1:]
			rest = rest[min(options(rest, "f", "file"), len(rest)):]
		}
		if len(rest) > 1 {
			r.setting(f, rest[0].Text, rest[1])
		}
	}
}
