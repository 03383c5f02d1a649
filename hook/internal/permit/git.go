package permit

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/shell"
)

// What git makes of the files of a work tree. Which of them a commit, a patch or what was put aside is about is not looked up: it may be any.

// anyOf are the commands of git that may change any file of the work tree, with the words behind them by which they don't.
var anyOf = map[string]string{
	"merge": "", "pull": "", "rebase": "--show-current-patch", "cherry-pick": "", "revert": "", "am": "--show-current-patch", "bisect": "log view visualize terms", "checkout-index": "", "subtree": "split push",
	"submodule": "status summary foreach", "sparse-checkout": "list", "lfs": "ls-files status track untrack push fetch env logs locks version", "filter-branch": "", "filter-repo": "", "mergetool": "", "quiltimport": "",
}

// git gathers what a command of git changes in the work tree.
func (r *reached) git() {
	g := gitCommand{reached: reached{w: r.w, dots: r.dots, known: r.known, cmd: &shell.Command{Name: "git", Dir: r.cmd.Dir}}}
	for _, e := range r.cmd.Env {
		switch e.Name {
		case "GIT_WORK_TREE":
			g.top = &e.Value
		case "GIT_DIR":
			g.top = &shell.Word{Text: ".", Known: true}
		}
	}
	args := g.front(r.cmd.Args)
	switch {
	case len(args) == 0:
	case !args[0].Known:
		g.writes = append(g.writes, Path{Shown: args[0].Source, unknown: true})
	default:
		g.cmd.Args = args[1:]
		g.changes(args[0].Text)
	}
	r.reads, r.writes = append(r.reads, g.reads...), append(r.writes, g.writes...)
}

// gitCommand is what a command of git reaches from where its own options put it.
type gitCommand struct {
	reached
	top *shell.Word // the work tree, if it is said
}

// front reads the options in front of a command of git, and gives what is behind them.
func (g *gitCommand) front(args []shell.Word) []shell.Word {
	for len(args) > 0 && args[0].Known && strings.HasPrefix(args[0].Text, "-") {
		name, v, eq := strings.Cut(args[0].Text, "=")
		value, rest := shell.Word{Text: v, Known: true, Source: args[0].Source}, args[1:]
		if !eq && shell.Listed("-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source", name) && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		switch name {
		case "-C":
			g.cmd.Dir = joined(g.cmd.Dir, value)
		case "--work-tree":
			g.top = &value
		case "--git-dir":
			if g.top == nil {
				g.top = &shell.Word{Text: ".", Known: true}
			}
		}
		args = rest
	}
	return args
}

// joined is what a path means in a directory, either of which may not be known.
func joined(dir, to shell.Word) shell.Word {
	switch {
	case to.Known && !to.Glob && path.IsAbs(to.Text):
		return to
	case to.Known && dir.Known && !to.Glob && !dir.Glob:
		return shell.Word{Text: path.Join(dir.Text, to.Text), Known: true, Source: to.Source}
	}
	return shell.Word{Source: to.Source}
}

// changes gathers the files that a command changes.
func (g *gitCommand) changes(sub string) {
	args := g.cmd.Args
	if harmless, whole := anyOf[sub]; whole {
		if !slices.ContainsFunc(args[:min(1, len(args))], func(a shell.Word) bool { return shell.Listed(harmless, a.Text) }) {
			g.everything()
		}
		return
	}
	switch sub {
	case "checkout":
		g.checkout(tell(args, "-b -B --orphan --conflict --pathspec-from-file"))
	case "switch":
		if l := tell(args, "-c -C --create --force-create --orphan --conflict"); len(l.operands) > 0 || l.has("--discard-changes") {
			g.everything()
		}
	case "restore":
		if l := tell(args, "-s --source --conflict --pathspec-from-file"); !l.has("-S --staged") || l.has("-W --worktree") {
			g.named(l, l.operands)
		}
	case "rm":
		if l := tell(args, "--pathspec-from-file"); !l.has("--cached -n --dry-run") {
			g.removed(l, l.operands)
		}
	case "mv":
		if l := tell(args, ""); !l.has("-n --dry-run") {
			g.copies(l.operands, true, true)
		}
	case "clean":
		if l := tell(args, "-e --exclude"); !l.has("-n --dry-run") {
			if len(l.operands) == 0 {
				l.operands = []shell.Word{here}
			}
			g.removed(l, l.operands)
		}
	case "apply":
		if l := tell(args, "--directory --exclude --include -p -C --build-fake-ancestor"); !l.has("--check --stat --numstat --summary --cached") || l.has("--apply") {
			if dir, ok := l.value("--directory"); ok {
				g.tree(joined(shell.Word{Text: g.root(), Known: g.root() != ""}, dir))
			} else {
				g.everything()
			}
		}
	case "stash":
		l := tell(args, "-m --message --pathspec-from-file")
		switch files := l.operands[min(1, len(l.operands)):]; {
		case l.behind == 0 && len(l.operands) > 0:
			g.named(l, l.operands)
		case l.first() == "push" && len(files) > 0:
			g.named(l, files)
		case l.first() == "" || shell.Listed("push save pop apply branch", l.first()):
			g.everything()
		}
	case "reset", "read-tree":
		if tell(args, "").has("--hard --merge --keep -u --reset") {
			g.everything()
		}
	case "worktree":
		if l := tell(args, "-b -B --reason"); shell.Listed("add move remove", l.first()) {
			g.named(l, l.operands[1:])
		}
	case "clone":
		l := tell(args, "-b --branch -o --origin -u --upload-pack -c --config --depth --reference -j --jobs --template --separate-git-dir --filter")
		switch n := len(l.operands); {
		case n == 1:
			from := l.operands[0]
			g.tree(shell.Word{Text: strings.TrimSuffix(path.Base(from.Text), ".git"), Known: from.Known, Source: from.Source})
		case n > 1:
			g.tree(l.operands[1])
		}
	case "init":
		l := tell(args, "-b --initial-branch --template --separate-git-dir")
		g.named(l, l.operands)
	case "archive", "format-patch", "diff", "log", "show", "bundle":
		l := tell(args, "-o --output --output-directory")
		for _, w := range slices.Concat(l.values["-o"], l.values["--output"], l.values["--output-directory"]) {
			g.tree(w)
		}
		if sub == "bundle" && l.first() == "create" && len(l.operands) > 1 {
			g.tree(l.operands[1])
		}
	}
}

// checkout is of a branch, which may change anything, or of files.
func (g *gitCommand) checkout(l told) {
	starts := l.has("-b -B --orphan")
	switch ops := l.operands; {
	case l.behind >= 0:
		g.named(l, ops[l.behind:])
	case len(ops) == 0 && !starts && l.has("-f --force -p --patch -m --merge"), starts && len(ops) > 0, len(ops) == 1 && !g.there(ops[0]):
		g.everything()
		fallthrough
	default:
		if !starts {
			g.named(l, ops)
		}
	}
}

// there reports whether a word names a file, rather than a commit.
func (g *gitCommand) there(a shell.Word) bool {
	return slices.ContainsFunc(g.paths(a), func(p Path) bool { return p.unknown || slices.ContainsFunc(p.names, exists) })
}

// named gathers the files that the words of a command name, as git reads them: with patterns of its own.
func (g *gitCommand) named(l told, words []shell.Word) {
	if l.has("--pathspec-from-file") || len(words) == 0 && l.has("-p --patch") {
		g.everything()
	}
	for _, a := range words {
		special := strings.IndexAny(a.Text, "*?[")
		switch {
		case a.Known && strings.HasPrefix(a.Text, ":"): // from the top, or all but
			g.everything()
		case a.Known && !a.Glob && special >= 0:
			g.tree(shell.Word{Text: path.Dir(a.Text[:special] + "x"), Known: true, Source: a.Source})
		default:
			g.tree(a)
			if g.top != nil { // which it is relative to where git runs outside of it
				g.tree(joined(*g.top, a))
			}
		}
	}
}

// removed gathers the files that the words of a command name, as what is taken away.
func (g *gitCommand) removed(l told, words []shell.Word) {
	n := len(g.writes)
	g.named(l, words)
	standing(g.writes[n:])
}

func (g *gitCommand) tree(w shell.Word) {
	g.writes = append(g.writes, treed(g.paths(w), true)...)
}

// everything is the whole work tree.
func (g *gitCommand) everything() {
	root := g.root()
	g.tree(shell.Word{Text: root, Known: root != "", Source: "the work tree of git"})
}

// root is the work tree that git works on; "" when it is not known.
func (g *gitCommand) root() string {
	dir := g.cmd.Dir
	if g.top != nil {
		dir = joined(dir, *g.top)
	}
	if !dir.Known || dir.Glob {
		return ""
	}
	if g.top == nil {
		for at := filepath.FromSlash(dir.Text); ; at = filepath.Dir(at) {
			if exists(filepath.Join(at, ".git")) {
				return at
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return dir.Text
}
