package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// A runner reads what a program runs, given the frame that names the program.
type runner func(r *reader, f frame, c Command) []Word

// A wrapper runs the command that its words end with.
type wrapper struct {
	short  string // options of one letter that take a value
	long   string // long options that take the next word as their value
	skip   int    // words between the options and the command
	assign bool   // NAME=value may stand in front of the command
}

// wrappers are the programs that run the rest of their words.
var wrappers = map[string]wrapper{
	"nice": {short: "n", long: "adjustment"}, "ionice": {short: "cnpPu", long: "class classdata pid"}, "nohup": {}, "setsid": {},
	"timeout": {short: "sk", long: "signal kill-after", skip: 1}, "gtimeout": {short: "sk", long: "signal kill-after", skip: 1},
	"command": {}, "builtin": {}, "exec": {short: "a"}, "time": {short: "fo", long: "format output"}, "chrt": {short: "TPD", skip: 1}, "taskset": {skip: 1},
	"stdbuf": {short: "ioe", long: "input output error"}, "unbuffer": {}, "sudo": {short: "ugpCcrtTUDRh", long: "user group prompt close-from role type command-timeout other-user chdir chroot host", assign: true},
	"doas": {short: "uC"}, "pkexec": {long: "user"}, "sg": {skip: 1}, "chroot": {long: "userspec groups", skip: 1}, "unshare": {short: "RwSG", long: "root wd setuid setgid"}, "nsenter": {short: "tSG", long: "target setuid setgid"},
	"setarch": {skip: 1}, "linux32": {}, "linux64": {}, "i386": {}, "strace": {short: "oeaspPuSEIbOX", long: "output trace string-limit attach"}, "ltrace": {short: "oeasplnuxF"}, "valgrind": {}, "perf": {skip: 1},
	"fakeroot": {short: "lisb"}, "dbus-run-session": {}, "caffeinate": {short: "tw"}, "numactl": {short: "CNmpi"}, "prlimit": {}, "setpriv": {}, "systemd-run": {short: "pMHutG", long: "unit property machine uid gid slice description working-directory"},
	"systemd-inhibit": {}, "catchsegv": {}, "rlwrap": {}, "proxychains": {short: "f"}, "proxychains4": {short: "f"}, "torsocks": {}, "firejail": {}, "xvfb-run": {short: "nsefpw"}, "busybox": {}, "toybox": {}, "entr": {},
	"npx": {short: "p", long: "package"}, "bunx": {}, "uvx": {long: "from with python"}, "pipx": {skip: 1}, "cross-env": {assign: true}, "dotenv": {short: "ef"}, "chronic": {}, "ts": {}, "eatmydata": {}, "ccache": {}, "distcc": {}, "cpulimit": {short: "lpPe"}, "daemonize": {short: "acdeEluop"},
	"choom": {short: "np", long: "adjust pid"}, "proot": {short: "rbmqwvkRSi", long: "rootfs bind mount qemu cwd pwd verbose kernel-release change-id"}, "torify": {}, "tsocks": {}, "faketime": {short: "p", long: "date-prog", skip: 1}, "logsave": {skip: 1}, "with-readline": {},
	"softlimit": {short: "acdflmnoprst"}, "setlock": {skip: 1}, "setuidgid": {skip: 1}, "envuidgid": {skip: 1}, "envdir": {skip: 1}, "fghack": {}, "pgrphack": {}, "chpst": {short: "uUbenmdofpcrt/l"},
	"aa-exec": {short: "pn"}, "runcon": {short: "utrl", skip: 1}, "hyperfine": {}, "gdb": {short: "x"}, "rtk": {},
}

// runners are the programs that run something else than the rest of their words.
func runners() map[string]runner { return runnerTable.Of(makeRunners) }

var runnerTable lazy.Value[map[string]runner]

func makeRunners() map[string]runner {
	all := map[string]runner{
		"env": runEnv, "eval": runEval, "trap": runTrap, "alias": runAlias, "unalias": runUnalias, "source": runSource, ".": runSource, "xargs": runXargs, "find": runFind, "gfind": runFind,
		"cd": runCd, "pushd": runCd, "popd": runPopd, "exit": runExit, "return": runReturn, "break": runBreak, "continue": runBreak, "shift": runShift, "set": runSet, "unset": runUnset, "read": runRead, "mapfile": runRead, "readarray": runRead, "getopts": runRead,
		"su": runSu, "runuser": runSu, "watch": runWatch, "flock": runFlock, "script": runDashC, "parallel": runParallel, "ssh": runSSH, "tee": runTee, "printf": runPrintf, "export": runExport,
		"curl": runFetch, "wget": runFetch, "tmux": runLast, "screen": runLast, "sftp": runSFTP, "start-stop-daemon": runDaemon, "ssh-agent": runAgent, "bwrap": runBwrap, "multitime": runMultitime, "sponge": runTee, "complete": runCompletion, "compgen": runCompletion,
	}
	for name := range shells {
		all[name] = runShell
	}
	for name, w := range wrappers {
		all[name] = func(r *reader, f frame, c Command) []Word { return r.unwrap(f, c, w) }
	}
	return all
}

// options gives the index of the first word behind the options.
func options(args []Word, short, long string) int {
	i := 0
	for ; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.Known || len(a.Text) < 2 || a.Text[0] != '-' && a.Text[0] != '+':
			return i
		case a.Text == "--":
			return i + 1
		case strings.HasPrefix(a.Text, "--"):
			if Listed(long, a.Text[2:]) {
				i++
			}
		default:
			if j := strings.IndexAny(a.Text[1:], short); short != "" && j >= 0 && j == len(a.Text)-2 {
				i++ // the value is the next word; otherwise it is the rest of this one
			}
		}
	}
	return i
}

// Listed reports whether a word is among those of a list separated by spaces.
func Listed(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

func assignment(w Word) (name string, v Word, ok bool) {
	name, value, ok := strings.Cut(w.Text, "=")
	return name, Word{Text: value, Known: w.Known, Glob: w.Glob, Source: w.Source}, ok && syntax.ValidName(name)
}

func (r *reader) unwrap(f frame, c Command, w wrapper) []Word {
	i := options(c.Args, w.short, w.long)
	if c.Name == "command" && i > 0 && strings.ContainsAny(c.Args[0].Text, "vV") {
		return r.prints(f, Command{Name: "which", Args: c.Args[i:]})
	}
	var env []Assign
	for w.assign && i < len(c.Args) {
		name, v, ok := assignment(c.Args[i])
		if !ok {
			break
		}
		env = append(env, Assign{name, v})
		i++
	}
	if c.Name == "npx" {
		for j, a := range c.Args {
			if (a.Text == "-c" || a.Text == "--call") && j+1 < len(c.Args) {
				return r.text(f, c.Args[j+1])
			}
		}
	}
	if c.Name == "hyperfine" || c.Name == "gdb" {
		return r.strings(f, c)
	}
	i += w.skip
	if i < len(c.Args) && c.Args[i].Text == "--" && c.Args[i].Known {
		i++
	}
	if i >= len(c.Args) {
		return nothing
	}
	if c.Name != "command" && c.Name != "builtin" { // these two change the shell itself
		f = f.fork()
	}
	for _, a := range env {
		f.sc.set(a.Name, variable{alts: []Word{a.Value}})
	}
	return r.exec(f, c.Args[i:], env, nil, c.Source)
}

// strings reads the words that are scripts of programs that take several.
func (r *reader) strings(f frame, c Command) []Word {
	for i, a := range c.Args {
		switch {
		case c.Name == "hyperfine" && !strings.HasPrefix(a.Text, "-"):
			r.text(f, a)
		case c.Name == "gdb" && i > 0 && slices.Contains([]string{"-ex", "-iex", "--eval-command"}, c.Args[i-1].Text):
			for _, p := range []string{"shell ", "!", "pipe "} {
				if s, ok := strings.CutPrefix(a.Text, p); ok {
					r.text(f, Word{Text: s, Known: a.Known})
				}
			}
		case c.Name == "gdb" && i > 0 && c.Args[i-1].Text == "--args":
			return r.exec(f, c.Args[i:], nil, nil, c.Source)
		}
	}
	return unknown
}

func runEnv(r *reader, f frame, c Command) []Word {
	g := f.fork()
	var env []Assign
	args := c.Args
	for len(args) > 0 {
		a := args[0]
		name, v, ok := assignment(a)
		switch {
		case a.Known && (strings.HasPrefix(a.Text, "-S") || strings.HasPrefix(a.Text, "--split-string") || strings.HasPrefix(a.Text, "-vS")):
			s := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(a.Text, "--split-string"), "-vS"), "-S"), "=")
			args = args[1:]
			if s == "" && len(args) > 0 {
				if !args[0].Known {
					r.doubt("env runs %s, which is not known", short(args[0], c.Source))
					return unknown
				}
				s, args = args[0].Text, args[1:]
			}
			for _, w := range args {
				s += " " + quote(w)
			}
			return r.text(g, Word{Text: "env " + s, Known: true})
		case a.Known && (a.Text == "-C" || a.Text == "--chdir") && len(args) > 1:
			r.chdir(g, args[1])
			args = args[2:]
		case a.Known && strings.HasPrefix(a.Text, "--chdir="):
			r.chdir(g, Word{Text: strings.TrimPrefix(a.Text, "--chdir="), Known: true})
			args = args[1:]
		case a.Known && (a.Text == "-u" || a.Text == "--unset") && len(args) > 1:
			args = args[2:]
		case a.Known && strings.HasPrefix(a.Text, "-"):
			args = args[1:]
		case ok:
			env = append(env, Assign{name, v})
			args = args[1:]
		default:
			for _, e := range env {
				g.sc.set(e.Name, variable{alts: []Word{e.Value}})
			}
			return r.exec(g, args, env, nil, c.Source)
		}
	}
	return opaque
}

// commandVariables are variables whose value a program runs.
var commandVariables = []string{
	"GIT_PAGER", "PAGER", "GIT_EDITOR", "EDITOR", "VISUAL", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND", "MANPAGER", "LESSOPEN", "LESSCLOSE", "BROWSER", "PROMPT_COMMAND", "RSYNC_RSH", "CVS_RSH", "FCEDIT", "SYSTEMD_EDITOR", "KUBE_EDITOR", "SUDO_ASKPASS", "FZF_DEFAULT_COMMAND", "SKIM_DEFAULT_COMMAND", "HGEDITOR", "HGMERGE", "SVN_EDITOR", "SVN_SSH",
}

// commandsIn reads the values of variables that are commands.
func (r *reader) commandsIn(f frame, env []Assign) {
	for _, a := range env {
		if slices.Contains(commandVariables, a.Name) && a.Value.Text != "" {
			r.text(f.under(a.Name), a.Value)
		}
		if (a.Name == "FZF_DEFAULT_OPTS" || a.Name == "SKIM_DEFAULT_OPTIONS") && a.Value.Text != "" {
			r.text(f.under(a.Name), Word{Text: "fzf " + a.Value.Text, Known: a.Value.Known})
		}
		if _, s, ok := strings.Cut(a.Value.Text, "+!"); ok && (a.Name == "LESS" || a.Name == "MORE") {
			r.text(f.under(a.Name), Word{Text: s, Known: a.Value.Known})
		}
	}
}
