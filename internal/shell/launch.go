package shell

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// Programs that start another one in a way of their own, and programs that nothing is known of.

// loader matches the dynamic linker, which starts the program that it is given.
var loader = lazy.Regexp(`^ld(-linux[a-z0-9-]*|-musl-[a-z0-9_]+|64)?\.so(\.[0-9]+)?$`)

var loading = wrapper{long: "library-path preload audit inhibit-rpath argv0 glibc-hwcaps-prepend glibc-hwcaps-mask"}

// runDaemon reads start-stop-daemon: the program is the value of an option, its words stand behind --.
func runDaemon(r *reader, f frame, c Command) []Word {
	const valued = "pxnucsgkRdPIaOCNr"
	given := letters(c.Args, valued)
	programs := append(given['x'], given['a']...)
	for i, a := range c.Args {
		name, v, eq := strings.Cut(a.Text, "=")
		if a.Text == "--" {
			break
		}
		switch {
		case name != "--exec" && name != "--startas":
		case eq:
			programs = append(programs, Word{Text: v, Known: a.Known, Source: a.Source})
		case i+1 < len(c.Args):
			programs = append(programs, c.Args[i+1])
		}
	}
	rest := c.Args[min(options(c.Args, valued, "exec startas pidfile name user group chuid chroot chdir nicelevel procsched iosched umask signal retry output ppid pid"), len(c.Args)):]
	for _, p := range programs {
		r.exec(f.fork(), append([]Word{p}, rest...), nil, nil, c.Source)
	}
	return unknown
}

// runAgent reads ssh-agent, which runs the command behind its options, if there is one.
func runAgent(r *reader, f frame, c Command) []Word {
	if i := options(c.Args, "aEOPt", ""); i < len(c.Args) {
		return r.exec(f.fork(), c.Args[i:], nil, nil, c.Source)
	}
	return r.prints(f, c)
}

// bwrapValues are the options of bwrap by how many words they take.
var bwrapValues = map[int]string{
	1: "--args --argv0 --userns --userns2 --pidns --uid --gid --hostname --chdir --unsetenv --lock-file --sync-fd --remount-ro --overlay-src --tmp-overlay --ro-overlay --exec-label --file-label --proc --dev --tmpfs --mqueue --dir --seccomp --add-seccomp-fd --block-fd --userns-block-fd --info-fd --json-status-fd --cap-add --cap-drop --perms --size",
	2: "--setenv --bind --bind-try --dev-bind --dev-bind-try --ro-bind --ro-bind-try --bind-fd --ro-bind-fd --file --bind-data --ro-bind-data --symlink --chmod",
	3: "--overlay",
}

func runBwrap(r *reader, f frame, c Command) []Word {
	i := 0
	for i < len(c.Args) && strings.HasPrefix(c.Args[i].Text, "-") {
		word := c.Args[i].Text
		i++
		if word == "--" {
			break
		}
		for n, names := range bwrapValues {
			if Listed(names, word) {
				i += n
				break
			}
		}
	}
	return r.exec(f.fork(), c.Args[min(i, len(c.Args)):], nil, nil, c.Source)
}

// runMultitime reads multitime, which also runs the values of three of its options.
func runMultitime(r *reader, f frame, c Command) []Word {
	const valued = "fIinors"
	i := min(options(c.Args, valued, ""), len(c.Args))
	given := letters(c.Args[:i], valued)
	for _, w := range append(append(given['i'], given['o']...), given['r']...) {
		r.text(f.fork(), w)
	}
	return r.exec(f.fork(), c.Args[i:], nil, nil, c.Source)
}

var (
	lispRuns  = lazy.Regexp(`\(\s*(?:[\w.:/]*[:/])?(?:system|shell|open-pipe|open-input-pipe|open-output-pipe|process|sh)\s+"((?:[^"\\]|\\.)*)"`)
	lispDoubt = lazy.Regexp(`(?i)\b(system|shell|open-pipe|open-(in|out)put-pipe|execlp?e?|primitive-fork|spawn|run-program|delete-file|delete-directory|rmdir|rename-file|process|eval|sh)\b`)
)

// lisp reads code that a Lisp is given: what it gives to a shell, if that is a literal.
func (r *reader) lisp(f frame, name string, code Word) {
	rest := code.Text
	for _, m := range lispRuns.Get().FindAllStringSubmatch(rest, -1) {
		text, ok := unescape(m[1])
		r.text(f, Word{Text: text, Known: ok})
		rest = strings.Replace(rest, m[0], "", 1)
	}
	if !code.Known || lispDoubt.Get().MatchString(rest) {
		r.doubt("%s runs code that is not read here", name)
	}
}

// module reads python -m of the modules that take code.
func (r *reader) module(f frame, name string, args []Word) {
	if name != "timeit" && name != "pdb" {
		return
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		valued := map[string]string{"timeit": "-n -r -u --number --repeat --unit", "pdb": "-m"}[name]
		switch {
		case Listed(valued, a.Text):
			i++
		case name == "timeit" && (a.Text == "-s" || a.Text == "--setup"), name == "pdb" && (a.Text == "-c" || a.Text == "--command"):
			if i++; i < len(args) {
				r.code(f, &python, uncommanded(args[i]), 0)
			}
		case strings.HasPrefix(a.Text, "--setup="), strings.HasPrefix(a.Text, "--command="):
			_, s, _ := strings.Cut(a.Text, "=")
			r.code(f, &python, uncommanded(Word{Text: s, Known: a.Known}), 0)
		case len(a.Text) > 2 && (name == "timeit" && strings.HasPrefix(a.Text, "-s") || name == "pdb" && strings.HasPrefix(a.Text, "-c")):
			r.code(f, &python, uncommanded(Word{Text: a.Text[2:], Known: a.Known}), 0)
		case strings.HasPrefix(a.Text, "-") && a.Text != "-":
		case name == "timeit":
			r.code(f, &python, a, 0)
		default: // pdb's program
			return
		}
	}
}

// uncommanded takes the mark away by which pdb knows a statement.
func uncommanded(w Word) Word {
	w.Text = strings.TrimLeft(w.Text, "! ")
	return w
}

// pages reads the commands that a pager runs when it starts.
func (r *reader) pages(f frame, args []Word) {
	for _, a := range args {
		if s, ok := strings.CutPrefix(strings.TrimLeft(a.Text, "+"), "!"); ok && strings.HasPrefix(a.Text, "+") {
			r.text(f, Word{Text: s, Known: a.Known})
		}
	}
}

// naming are programs that take the names of programs, and text, without running them: what they are asked about, search, print or install.
var naming = fields(`echo printf man info apropos whatis which whereis type hash help tldr cheat locate mlocate plocate updatedb dpkg-query apt-cache apt-mark apt-file dnf yum port emerge eopkg nix-env nix-store nix-search scoop choco winget mas asdf-plugin
	grep egrep fgrep zgrep ag ack ugrep look strings cat tac nl head tail bat batcat cut paste join comm diff colordiff delta cmp sdiff uniq wc tr rev fold fmt column expand unexpand od xxd hexdump hexyl sum cksum md5sum shasum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum base64 base32
	ls dir vdir eza exa lsd tree stat file du df readlink realpath basename dirname pwd test [ [[ true false : expr seq date cal sleep yes id whoami groups users who w last uname hostname arch nproc uptime free vmstat iostat lscpu lsblk lsof lsmod lsusb lspci pgrep pidof pstree ps top htop getent getcap getfacl lsattr ldd nm objdump readelf size otool codesign checksec bsdiff bloaty
	jq yq xq gron tomlq fx dasel csvkit mlr yamllint shellcheck shfmt hadolint markdownlint prettier eslint tsc ruff black mypy flake8 pylint rubocop gofmt gofumpt goimports staticcheck golangci-lint typos codespell aspell hunspell wordlist cloc tokei scc ctags etags global cscope
	jj hg svn fossil bzr cvs tig lazygit pre-commit commitizen cz conventional-changelog
	export declare typeset local readonly alias unalias unset set shopt let getopts getopt history fc bind complete compgen compopt dirs jobs fg bg disown wait ulimit umask times caller logout
	logger wall notify-send say mail mailx sendmail curl wget http https xh httpie open xdg-open code cowsay figlet toilet lolcat banner pbcopy pbpaste xclip xsel wl-copy dialog whiptail zenity fzf sk peco tput stty clear reset
	pip pip3 gem cpan cpanm luarocks composer rustc gcc g++ cc clang ld as ar ranlib strip make cmake ninja meson bazel vagrant virsh lxc incus multipass adb fastboot minikube kind ansible-doc pydoc pydoc3 perldoc ri godoc gdb-doc llm claude aichat pawl skopeo buildah cosign crane trivy syft grype dive`)

// nameSet are names, separated by spaces, that are looked up quickly.
type nameSet struct {
	names string
	table lazy.Value[map[string]bool]
}

func fields(s string) *nameSet { return &nameSet{names: s} }

func (s *nameSet) has(name string) bool {
	return s.table.Of(func() map[string]bool {
		m := map[string]bool{}
		for name := range strings.FieldsSeq(s.names) {
			m[name] = true
		}
		return m
	})[name]
}

// grave are the programs that words of an unknown program are taken for. Words that are often a subcommand of something else (kill, mount, install, reboot) are not among them
// but by their path.
var grave = fields("rm dd shred unlink wipefs blkdiscard fdisk sfdisk sgdisk parted mkswap cryptsetup hdparm git docker podman kubectl systemctl crontab usermod chmod chown chgrp chattr mv cp tee truncate find xargs env eval nohup setsid sudo doas su pkexec busybox toybox killall pkill userdel passwd chpasswd iptables")

var programPath = lazy.Regexp(`^(/usr|/usr/local|/run/current-system/sw)?/s?bin/[^/]+$`)

// maxGuesses bounds how many words of one program are taken for a command.
const maxGuesses = 8

// runnable reports whether a word names a program that may do harm.
func runnable(w Word) bool {
	if !w.Known || w.Glob || w.Text == "" {
		return false
	}
	name := w.Text
	if strings.Contains(name, "/") {
		if programPath.Get().MatchString(name) {
			return true
		}
		name = base(name)
	}
	return grave.has(name) || shells[name] || languageOf(name) != nil || strings.HasPrefix(name, "mkfs")
}

// guess reads the words of a program that nothing is known of, from the first that names a program: it may run them. The same with the text behind -c and its like.
func (r *reader) guess(f frame, c Command) {
	if r.o.Plain == nil || naming.has(c.Name) || specials.has(c.Name) || languageOf(c.Name) != nil || r.o.Plain(c.Name) {
		return
	}
	if f.guessed { // the words are those of a guess, whose program has looked at all of them
		return
	}
	f = f.under(c.Name)
	f.guessed = true
	found := 0
	for i, a := range c.Args {
		switch {
		case found == maxGuesses:
			return
		case runnable(a) && i+1 < len(c.Args):
			found++
			rest := c.Args[i:]
			if rest[1].Text == "--" { // prog -x /bin/rm -- -rf /
				r.exec(f.fork(), append([]Word{a}, rest[2:]...), nil, nil, c.Source)
			}
			r.exec(f.fork(), rest, nil, nil, c.Source)
		case i > 0 && Listed(scripted, c.Args[i-1].Text):
			r.guessText(f, a)
		case strings.HasPrefix(a.Text, "--"):
			if name, v, ok := strings.Cut(a.Text, "="); ok && Listed(scripted, name) {
				r.guessText(f, Word{Text: v, Known: a.Known, Source: a.Source})
			}
		}
	}
}

// scripted are options whose value is often a command.
const scripted = "-c -e -x --command --cmd --exec --eval --run --shell"

// guessText reads a text as a script if it begins as one that may do harm.
func (r *reader) guessText(f frame, w Word) {
	if first := strings.Fields(w.Text); w.Known && len(first) > 1 && runnable(lit(strings.Trim(first[0], `'"\({;`))) {
		r.text(f.fork(), w)
	}
}
