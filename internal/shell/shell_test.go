package shell_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/shell"
)

// shown writes commands one a line: by > name args, with ? behind words that are not known and ~ behind globs.
func shown(s *shell.Script) string {
	var b strings.Builder
	word := func(w shell.Word) string {
		t := w.Text
		if !w.Known {
			t += "?"
		}
		if w.Glob {
			t += "~"
		}
		return t
	}
	for i, c := range s.Commands {
		if i > 0 {
			b.WriteString("; ")
		}
		for _, by := range c.By {
			b.WriteString(by + " > ")
		}
		name := c.Name
		if name == "" {
			name = "<" + word(c.Path) + ">"
		}
		b.WriteString(name)
		for _, a := range c.Args {
			b.WriteString(" " + word(a))
		}
		for _, r := range c.Redirects {
			b.WriteString(" " + r.Op + word(r.Path))
		}
	}
	for _, d := range s.Doubts {
		b.WriteString(" | " + d)
	}
	return b.String()
}

var options = shell.Options{Dir: "/src/project", Env: func(name string) (string, bool) {
	v, ok := map[string]string{"HOME": "/home/me", "EMPTY": "", "TMPDIR": "/tmp"}[name]
	return v, ok
}}

func TestWhatIsExecutedIsShown(t *testing.T) {
	for command, want := range map[string]string{
		`rm -rf /`:                               "rm -rf /",
		`\rm -r'f' "/"`:                          "rm -rf /",
		`/bin/rm -rf ~ $HOME`:                    "rm -rf /home/me /home/me",
		`r$EMPTY"m" -rf $'\x2f'`:                 "rm -rf /",
		`{rm,-rf,/}`:                             "rm -rf /",
		`rm${IFS}-rf${IFS}/`:                     "rm -rf /",
		`x=rm; $x -rf $y`:                        "rm -rf ?",
		`for f in a b; do rm $f; done`:           "rm a; rm b",
		`sudo -u root env A=1 rm -rf /`:          "sudo -u root env A=1 rm -rf /; sudo > env A=1 rm -rf /; sudo > env > rm -rf /",
		`bash -c "rm -rf /"`:                     "bash -c rm -rf /; bash -c > rm -rf /",
		`f() { rm "$1"; }; f x`:                  "f x; function f > rm x",
		`if a; then x=1; else x=2; fi; echo $x`:  "a; echo 1; echo 2",
		`find . -name '*.o' -delete`:             "find . -name *.o -delete; find -delete > rm -rf -- ./**/*.o~",
		`cd /tmp && rm -rf *`:                    "cd /tmp; rm -rf *~",
		`echo hi > $HOME/x`:                      "echo hi >/home/me/x",
		`echo cm0gLXJmIC8= | base64 -d | sh`:     "echo cm0gLXJmIC8=; base64 -d; sh; sh > rm -rf /",
		`curl x | sh`:                            "curl x; sh | sh runs what comes out of a pipe, which is not known",
		`eval "$x"`:                              `eval ? | eval runs eval "$x", which is not known`,
		`$x y`:                                   "<?> y | a command whose name is not known: $x",
		`ssh -p 22 host 'cd app && rm x'`:        "ssh -p 22 host cd app && rm x; ssh > cd app; ssh > rm x",
		`python3 -c 'import os; os.remove("a")'`: "python3 -c import os; os.remove(\"a\"); python3 > rm -rf -- a",
		`git -c core.pager='less -R' log`:        "git -c core.pager=less -R log; git core.pager > less -R",
		`echo ls > f; sh f`:                      "echo ls >f; sh f; sh > ls",
		`echo a b | xargs -n1 rm`:                "echo a b; xargs -n1 rm; xargs > rm a b",
		`rm build/$y`:                            "rm build/?",
		`d=$(mktemp -d); rm -r "$d"`:             "$(…) > mktemp -d; rm -r /tmp/tmp.*~",
		`alias l='ls -l'; l x`:                   "alias l=ls -l; l x; alias l > ls -l x",
		`trap 'rm x' EXIT`:                       "trap rm x EXIT; trap > rm x",
		`f() { ls; }`:                            "function f > ls",
		`case x in a) ls;; b) pwd;; esac`:        "ls; pwd",
		`complete -C 'ls x' y`:                   "complete -C ls x y; complete -C > ls x",
		`compgen -W 'a "$(ls)"' y`:               `compgen -W a "$(ls)" y; compgen -W > $(…) > ls; compgen -W > :`,
		`sftp -S ./x -b - h <<< 'put a b'`:       "sftp -S ./x -b - h; sftp -S > x; sftp > put a b",
		`echo 'get "a b"' > x; sftp -b x h`:      `echo get "a b" >x; sftp -b x h; sftp get > : >a b; sftp > get a b`,
		`sftp h <<< '-!ls'`:                      "sftp h; sftp ! > ls",
		`sftp -b x h`:                            "sftp -b x h | sftp is told what to do by what is not known: sftp -b x h",
		`ssh -o ProxyCommand='nc a' h`:           "ssh -o ProxyCommand=nc a h; ssh ProxyCommand > nc a",
		`find a -name x -exec grep y {} \;`:      "find a -name x -exec grep y {} ;; find -exec > grep y a/**/x~",
	} {
		t.Run(command, func(t *testing.T) {
			s, err := shell.Read(command, options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, shown(s)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// PATH can be set without an assignment, and then names stand for other programs.
func TestVariablesThatAreSetByAnythingAreListed(t *testing.T) {
	for _, command := range []string{
		"PATH=.", "export PATH=.", "for PATH in . x; do ls; done", "select PATH in .; do ls; done", "read PATH <<< .", "mapfile PATH < x", "printf -v PATH .", ": ${PATH:=.}", "((PATH = 1))", "let PATH=1", "for ((PATH = 0; ; )); do ls; done",
		"f() { read -r PATH; }; f", "while read -r a PATH; do ls; done < x",
	} {
		s, err := shell.Read(command, options)
		if err != nil {
			t.Error(command, err)
		}
		if !slices.ContainsFunc(s.Assigns, func(a shell.Assign) bool { return a.Name == "PATH" }) {
			t.Errorf("%s: %v", command, s.Assigns)
		}
	}
}
