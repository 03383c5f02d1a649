package permit

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// program is what is known of one: which of its arguments it reads and writes. Of any other, an argument that a rule names may be read.
type program struct {
	reads  bool   // its arguments are files that it shows or copies
	writes bool   // its arguments are files that it changes, makes or removes
	last   bool   // the last argument is written, those in front of it are read
	first  bool   // the first argument is no file, unless an option says it
	mute   bool   // it shows nothing of the files that it names
	below  string // letters of options by which it goes down directories; "*" always
	moves  bool   // what is read is gone afterwards
}

func programs() map[string]program { return programTable.Of(makePrograms) }

var programTable lazy.Value[map[string]program]

func makePrograms() map[string]program {
	all := map[string]program{}
	for names, p := range map[string]program{
		"cat tac nl head tail less more most bat batcat pg od xxd hexdump hd strings base64 base32 md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum shasum cksum sum md5 cmp comm join paste fold fmt pr shuf split csplit uniq wc rev sort cut expand unexpand column iconv file zcat gzcat bzcat xzcat zstdcat gunzip gzip bzip2 xz zstd openssl gpg look tsort ptx view source . vi vim nvim nano emacs ed ex": {reads: true},
		"sed gsed awk gawk mawk nawk jq yq xmllint": {reads: true, first: true},
		"grep egrep fgrep zgrep":                    {reads: true, first: true, below: "rR"},
		"rg ag ack ack-grep ugrep":                  {reads: true, first: true, below: "*"},
		"diff":                                      {reads: true, below: "r"},
		"tar zip 7z cpio":                           {reads: true, below: "*"},
		"cp install":                                {last: true, below: "rRa"},
		"rsync scp ln":                              {last: true, below: "*"},
		"mv":                                        {last: true, below: "*", moves: true},
		"rm unlink shred":                           {writes: true, mute: true, below: "rR"},
		"rmdir truncate touch mkdir mkfifo mknod": {writes: true, mute: true},
		"tee sponge":                       {writes: true, mute: true},
		"chmod chown chgrp setfacl chattr": {writes: true, mute: true, first: true, below: "R"},
		"patch unzip gofmt gofumpt goimports rustfmt black prettier clang-format": {reads: true},
		"echo printf ls dir vdir tree test [ [[ stat basename dirname realpath readlink cd pushd popd pwd which type true false : exit return export local declare set unset shift sleep date du df find fd": {mute: true},
	} {
		for _, name := range strings.Fields(names) {
			all[name] = p
		}
	}
	return all
}

// inPlace are the options by which a program writes the files that it otherwise reads.
func inPlace() map[string]*regexp.Regexp { return inPlaceTable.Of(makeInPlace) }

var inPlaceTable lazy.Value[map[string]*regexp.Regexp]

func makeInPlace() map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{
		"sed":          regexp.MustCompile(`^(-[a-zA-Z]*i.*|--in-place.*)$`),
		"perl":         regexp.MustCompile(`^-[a-zA-Z]*i.*$`),
		"ruby":         regexp.MustCompile(`^-[a-zA-Z]*i.*$`),
		"awk":          regexp.MustCompile(`^inplace$`),
		"yq":           regexp.MustCompile(`^(-i|--inplace)$`),
		"gofmt":        regexp.MustCompile(`^--?w$`),
		"prettier":     regexp.MustCompile(`^(-w|--write)$`),
		"eslint":       regexp.MustCompile(`^--fix$`),
		"clang-format": regexp.MustCompile(`^-i$`),
		"rustfmt":      regexp.MustCompile(``),
		"black":        regexp.MustCompile(``),
		"gzip":         regexp.MustCompile(``),
		"gunzip":       regexp.MustCompile(``),
		"vi":           regexp.MustCompile(``),
		"ed":           regexp.MustCompile(``),
	}
	for other, name := range map[string]string{"gsed": "sed", "gawk": "awk", "mawk": "awk", "nawk": "awk", "gofumpt": "gofmt", "goimports": "gofmt", "ex": "ed", "vim": "vi", "nvim": "vi", "nano": "vi", "emacs": "vi", "bzip2": "gzip", "xz": "gzip", "zstd": "gzip"} {
		all[other] = all[name]
	}
	return all
}

// interpreter is the name of one that may be given a program on its command line.
var interpreter = lazy.Regexp(`^(python[0-9.]*|pypy3?|node|nodejs|deno|bun|perl|ruby|php[0-9.]*|lua[0-9.]*|[gmn]?awk|g?sed|tclsh|osascript|sqlite3)$`)

// fetchers are the programs that get what a URL names.
var fetchers = []string{"curl", "wget", "wget2", "aria2c", "http", "https", "xh", "lynx", "w3m", "links", "elinks"}

// transparent are the wrappers that change nothing of what they run, with their options.
func transparent() map[string]options { return transparentTable.Of(makeTransparent) }

var transparentTable lazy.Value[map[string]options]

func makeTransparent() map[string]options {
	all := map[string]options{
		"time": parseOptions("pv"), "nice": parseOptions("# n: --adjustment="), "nohup": {}, "command": parseOptions("p"), "ionice": parseOptions("t c: n: --class= --classdata="),
		"timeout": parseOptions("vk:s: --foreground --kill-after= --preserve-status --signal= --verbose"), "stdbuf": parseOptions("i:o:e: --error= --input= --output="),
	}
	all["gtimeout"] = all["timeout"]
	return all
}

// runners are the options and subcommands by which a program runs others, or writes where it is told. Where a rule leaves words open, they
// are not among them.
func runners() map[string][]string { return runnerTable.Of(makeRunners) }

var runnerTable lazy.Value[map[string][]string]

func makeRunners() map[string][]string {
	all := map[string][]string{
		"git": {
			"-c", "--config-env", "--exec-path", "--upload-pack", "--receive-pack", "--exec", "-x", "--extcmd", "-O", "--open-files-in-pager", "--output", "--template", "--ext-diff", "--textconv", "-o", "--output-directory", "--git-dir", "--work-tree", "-C", "-i", "--interactive",
			"config", "bisect", "submodule", "filter-branch", "difftool", "mergetool", "daemon", "instaweb", "send-email", "hook", "credential", "fsmonitor--daemon", "web--browse", "remote-ext", "upload-pack", "receive-pack", "shell",
		},
		"go":     {"-exec", "-toolexec", "-vettool", "-overlay", "-modfile", "-o", "-C", "-w", "-cpuprofile", "-memprofile", "-blockprofile", "-mutexprofile", "-coverprofile", "-trace", "-outputdir", "-pkgdir", "-ldflags", "-gccgoflags"},
		"find":   {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"},
		"fd":     {"-x", "-X", "--exec", "--exec-batch"},
		"rg":     {"--pre", "--hostname-bin"},
		"ag":     {"--pager"},
		"tar":    {"--checkpoint-action", "--to-command", "--use-compress-program", "-I", "-F", "--info-script", "--new-volume-script", "--rmt-command", "--rsh-command"},
		"zip":    {"-TT", "--unzip-command", "-T"},
		"rsync":  {"-e", "--rsh", "--rsync-path"},
		"ssh":    {"-o", "-F", "-S", "-E", "-I", "-L", "-R", "-D", "-w"},
		"scp":    {"-o", "-F", "-S", "-D"},
		"sftp":   {"-o", "-F", "-S", "-b", "-D"},
		"sed":    {"-i", "--in-place", "-f", "--file"},
		"awk":    {"-f", "--file", "-i", "--include", "-l", "--load", "-E", "--exec"},
		"sort":   {"-o", "--output", "--compress-program", "-T", "--temporary-directory", "-S"},
		"make":   {"-f", "--file", "--makefile", "--eval", "-C", "--directory", "-I", "--include-dir"},
		"npm":    {"--script-shell", "--call", "-c", "--node-options", "--prefix", "--userconfig", "--globalconfig"},
		"man":    {"-P", "--pager", "-H", "--html", "-l"},
		"curl":   {"-o", "-O", "--output", "-K", "--config", "--output-dir", "-J", "--remote-name", "-D", "--dump-header", "-c", "--cookie-jar", "--trace", "--trace-ascii", "--stderr", "-F", "--form", "-T", "--upload-file", "-d", "--data"},
		"wget":   {"-e", "--execute", "-O", "--output-document", "-P", "--directory-prefix", "-o", "--output-file", "-a", "--append-output", "-i", "--input-file", "--use-askpass", "--post-file", "--body-file"},
		"cargo":  {"--config", "-Z", "-C"},
		"pytest": {"-p", "-c", "--rootdir", "-o", "--override-ini", "--confcutdir"},
		"gradle": {"-I", "--init-script", "-D", "-c", "-b", "--build-file"},
		"jq":     {"-f", "--from-file", "-L"},
		"eslint": {"-c", "--config", "--rulesdir", "--plugin", "--resolve-plugins-relative-to", "-o", "--output-file"},
		"less":   {"-o", "-O", "--log-file", "-k", "--lesskey-file"},
		"docker": {"--config", "-H", "--host", "--context", "-c", "--privileged", "-v", "--volume", "--mount"},
	}
	for other, name := range map[string]string{
		"gsed": "sed", "gawk": "awk", "mawk": "awk", "nawk": "awk", "gfind": "find", "gtar": "tar", "bsdtar": "tar", "gmake": "make", "npx": "npm", "yarn": "npm", "pnpm": "npm", "bunx": "npm", "bun": "npm", "gsort": "sort", "more": "less", "podman": "docker", "py.test": "pytest", "gradlew": "gradle",
	} {
		all[other] = all[name]
	}
	return all
}

// programText is what makes a program for sed or awk one that runs commands or writes files.
var programText = map[string]*regexp.Regexp{
	"sed": regexp.MustCompile(`(^|[;{}\n]|[0-9$/])\s*[eEwWrR](\s|$)|[^\w\s][gIiMmp0-9]*[ew][gIiMmp0-9]*(\s|[;}]|$)`),
	"awk": regexp.MustCompile(`system|getline|[|>@]`),
}

// risky finds the word, among those that a rule leaves open, by which a program may run another or write where it is told.
func risky(name string, free []string) (word string, found bool) {
	bad := runners()[name]
	text := programText[name]
	if strings.HasSuffix(name, "awk") {
		text = programText["awk"]
	} else if name == "gsed" {
		text = programText["sed"]
	}
	for _, w := range free {
		switch {
		case text != nil && text.MatchString(w):
			return w, true
		case strings.HasSuffix(name, "make") && !strings.HasPrefix(w, "-") && strings.Contains(w, "="):
			return w, true
		case name == "git" && strings.Contains(w, "::"): // a transport that runs a helper
			return w, true
		case name == "less" && strings.HasPrefix(w, "+"):
			return w, true
		case slices.ContainsFunc(bad, func(b string) bool { return isOption(w, b, slices.Contains(wholeWords, name)) }):
			return w, true
		}
	}
	return "", false
}

// wholeWords are the programs whose options are words behind one dash.
var wholeWords = []string{"go", "find", "gfind"}

// isOption reports whether a word is the option b: with a value behind it, cut short when it is a long one, in a cluster when it is a short one of a program that has
// clusters. A b without dashes is a subcommand.
func isOption(word, b string, whole bool) bool {
	name, _, _ := strings.Cut(word, "=")
	switch {
	case b[0] != '-':
		return word == b
	case strings.HasPrefix(b, "--"):
		return len(name) > 2 && strings.HasPrefix(b, name)
	case len(b) == 2 && !whole:
		return len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.Contains(cutLetters(word[1:]), b[1:])
	}
	return name == b || name == "-"+b
}

// cutLetters is the front of s that is letters: what is behind them is a value.
func cutLetters(s string) string {
	for i, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return s[:i]
		}
	}
	return s
}

var (
	riskyNames = lazy.Regexp(`(?i)^(LD_|DYLD_|GIT_|BASH|PYTHON|PERL|RUBY|NODE_|NPM_|JAVA|_JAVA|JDK_|GO[A-Z]|CGO_|CARGO|RUST|SSH_|XDG_|LESS|MAKE|DOCKER_|KUBE|MAVEN|GRADLE|ENV$|IFS$|PS4$|CC$|CXX$|AR$|LD$|AS$|SHELLOPTS|TMPDIR$|PROMPT_|GCONV|GLIBC|LOCPATH|NLSPATH|PHP|LUA|R_|TAR_|RSYNC_|CMAKE|PKG_|EMACS|VIM|BROWSER|TERMINFO|TERMCAP|DIRSTACK$|GLOBIGNORE$|EXECIGNORE$|POSIXLY_CORRECT$|_POSIX|S?RANDOM$|SECONDS$|LINENO$|HISTCMD$|OPTIND$)` +
		`|(?i)(PATH|PAGER|EDITOR|VISUAL|SHELL|OPTS|OPTIONS|FLAGS|HOME|ASKPASS|PRELOAD|COMMAND|_CMD|WRAPPER|PROXY)$`)
	harmlessNames = lazy.Regexp(`^(GOOS|GOARCH|GOARM|GOAMD64|GOMAXPROCS|CGO_ENABLED|GO111MODULE|RUST_BACKTRACE|RUST_LOG|NODE_ENV|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE)$`)
)

// riskyName reports whether a variable changes what programs run, or where they find what they run.
func riskyName(name string) bool {
	return riskyNames.Get().MatchString(name) && !harmlessNames.Get().MatchString(name)
}
