package permission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
)

// What bash evaluates may be a command although no command stands there: an index, in a value that arithmetic or the name of a variable is made of.
var evaluating = []string{
	": 'a[$(rm x)]'; echo $((_))", ": 'a[$(rm x)]'; echo $(( $_ ))", ": 'a[$(rm x)]'; echo $[_]", ": 'a[$(rm x)]'; ((_)); ls", ": 'a[$(rm x)]'; for ((_;0;0)); do :; done; ls", ": 'a[$(rm x)]'; [[ _ -eq 0 ]]; ls",
	": 'a[$(rm x)]'; [[ $_ -eq 0 ]]; ls", ": 'a[$(rm x)]'; c[_]=1; ls", ": 'a[$(rm x)]'; c=([_]=1); ls", ": 'a[$(rm x)]'; echo ${c[_]}", ": 'a[$(rm x)]'; echo ${PWD:_}", ": 'a[$(rm x)]'; [[ ${PWD:_} ]]; ls",
	": 'a[$(rm x)]'; [[ ${!_} ]]; ls", ": 'a[$(rm x)]'; case ${!_} in x) ls;; esac; ls", ": 'a[$(rm x)]'; [[ $((_)) ]]; ls", ": 'a[$(rm x)]'; cat <<E\n$((_))\nE", ": 'a[$(rm x)]'; RANDOM=_; ls", "let _; ls",
	`x='a[\044(rm x)]'; echo $((${x@E}))`, `x='a[Q(rm x)]'; echo $((${x/Q/\$}))`, `x='a[Q(rm x)]'; [[ ${x/Q/\$} -eq 1 ]]; ls`, `echo $((${BASH_EXECUTION_STRING##*X})) #Xa[$(rm x)]`, "a['$(rm x)']=1; ls", "echo ${#a['$(rm x)']}",
	"echo $(( $(cat main.go) ))", "echo $(($(<main.go)))", "[[ $(cat main.go) -eq 0 ]]; ls", "(( $(cat main.go) )); ls", "for ((i=$(cat main.go);0;)); do :; done; ls", "for f in *; do echo $((f)); done", "for f in a*; do [[ $f -eq 0 ]]; done; ls", "echo $((FOO))",
	"test -v 'a[$(rm x)]'", "test -v a*", "[ -v a* ]", "test *", "for f in a*; do test -v \"$f\"; done", "test -v 'a[PATH=5]'; ls",
}

// steering sets what steers the shell, without an assignment that stands in front.
var steering = []string{
	"echo $((PATH=5)); ls", "echo $((y++ + PATH--)); ls", "[[ PATH=5 -eq 5 ]]; ls", "[[ $((PATH=5)) ]]; ls", "a[PATH=5]=1; ls", "x=PATH; echo $((${x}=5)); ls", "x=PATH=5; echo $((x)); ls", "PATH=(5); ls", "PATH[0]=5; ls", "echo $((BASH_CMDS[ls]=5)); ls", "BASH_CMDS[ls]=./x; ls",
	": {PATH}>/dev/null; ls", "ls {PATH}>&1; ls", "{ ls; } {PATH}</dev/null; ls", "coproc PATH { cat; }; ls", "printf '12345%n' PATH; ls", "printf '%s%ln' x PATH; ls", "pushd src; DIRSTACK[1]=/etc; popd; cat passwd", "GLOBIGNORE=x; cat src/*", "set -a; MAGIC=/etc/passwd; file main.go",
}

// A program may take for a file what another one of the name takes for an option, and the other way round; a name may be another one's.
var taken = []string{
	"tree -Io x main.go", "tree -Po x main.go", "tree -LR 1", "xxd main.go -b", "xxd main.go -s/../x", "uniq main.go -c", "sed 's/[]/a/;/]/,/w x/p' main.go", "sed 's/[^]/a/;/]/,/w x/p' main.go", "sed 's/[[:alpha:]/a/;/]/,/w x/p' main.go",
	"git stash -u -- show .", "git stash --quiet -- list", "yes | git stash -p show", "git log --format=%G?", "git log --pretty=format:%GK", "git for-each-ref --format='%(signature)'", "git log --help", "git -C linked status", "cd linked && git status",
	"tee /dev/fd/3 3<main.go", "tee /dev/stdin < main.go", "echo x | tee /dev/stdout 3<main.go >&3", "{ tee /dev/stdout; } 1<main.go", "ls > /dev/stdin < main.go", "cat /dev/fd/0/../../../etc/passwd < .", "tee /dev/fd/3/../../x 3< .",
	"ls .*", "ls .?", "cat .*/outside/file", "cat src/../.[.]/outside/file",
	"ls\r#;rm x", "ls \\\r\nrm x", "cat <<E\r\nE\necho '\nE\r\nrm x\n#'",
}

func TestWhatBashEvaluatesTakesOrSetsUnseenIsNotReading(t *testing.T) {
	dir, _ := atReading(t)
	if err := os.Mkdir(filepath.Join(dir, "linked"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"linked/HEAD", "linked/commondir", "a[$(rm x)]"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../outside/file", filepath.Join(dir, "src/.hidden")); err != nil {
		t.Fatal(err)
	}
	m := judging(t, permission.Config{Dir: dir})
	ruled := judging(t, permission.Config{Dir: dir, Allow: []string{"Bash(go test:*)"}})
	plan := judging(t, permission.Config{Dir: dir, Fence: true, Mode: permission.ModePlan})
	for _, list := range [][]string{evaluating, steering, taken} {
		for _, command := range list {
			if d := judged(t, m, useOf("bash", in{"command": command})); d.Verdict != hook.Ask {
				t.Errorf("%q: %v", command, d)
			}
			if d := judged(t, ruled, useOf("bash", in{"command": "go test; " + command})); d.Verdict != hook.Ask {
				t.Errorf("%q with a rule: %v", command, d)
			}
			if d := judged(t, plan, useOf("bash", in{"command": command})); d.Verdict != hook.Deny {
				t.Errorf("%q in mode plan: %v", command, d)
			}
		}
	}
	for _, command := range []string{
		"for ((i=0;i<3;i++)); do echo $i; done", "[ $(wc -l < main.go) -gt 5 ] && ls", "echo $((1+2)) $((RANDOM % 3))", "x=3; (( x > 2 )) && ls", "for i in 1 2; do echo $((i*2)); done", "for i in {1..3}; do [[ $i -gt 1 ]] && ls; done", "a=(x y); echo ${a[0]}",
		"s=$(date +%s); echo $(( $(date +%s) - s ))", "n=$(wc -l < main.go); echo $((n+1))", `printf '%d%%n\n' 5`, "ls -d docs/.[a-z]*", "x=abc; echo ${x:1:2}", `x=5; [ "$x" -eq 5 ] && ls`, "git stash show -p", "uniq -c main.go", "sed 's/[[:space:]]*$//' main.go", "ls | tee /dev/stderr", "cat /dev/fd/3 3<main.go",
	} {
		if d := judged(t, m, useOf("bash", in{"command": command})); d.Verdict != hook.Allow {
			t.Errorf("%q: %v", command, d)
		}
	}
}

// The parser takes a carriage return for space. To bash it is a letter, so that no comment begins behind it, and no line goes on.
func TestACarriageReturnHidesNoCommand(t *testing.T) {
	dir := project(t)
	m := judging(t, permission.Config{Dir: dir, Fence: true, Safety: permission.SafetyIn(dir), Deny: []string{"Bash(git push:*)"}})
	for _, hidden := range []string{"rm -rf /etc", "git push"} {
		for _, command := range []string{"ls\r#;", "ls \\\r\n", "cat <<E\r\nE\necho '\nE\r\n", "sh -c 'ls\r#;' ; "} {
			if d := judged(t, m, useOf("bash", in{"command": command + hidden + strings.Repeat("\n#'", strings.Count(command, "'")%2)})); d.Verdict != hook.Deny {
				t.Errorf("%q: %v", command+hidden, d)
			}
		}
	}
}

// Where commands run in a sandbox, too, a rule that denies a command is asked about when the command may be what is evaluated.
func TestACommandInAnIndexPassesNoDenyRule(t *testing.T) {
	dir := project(t)
	m := judging(t, permission.Config{Dir: dir, Fence: true, Safety: permission.SafetyIn(dir), Deny: []string{"Bash(git push:*)"}})
	for _, command := range []string{": 'a[$(git push)]'; echo $((_))", ": 'a[$(git push)]'; [[ ${!_} ]]", "echo $((${BASH_EXECUTION_STRING##*X})) #Xa[$(git push)]", ": 'a[`git push`]'; c[_]=1"} {
		if d := judged(t, m, useOf("bash", in{"command": command})); d.Verdict == hook.Allow {
			t.Errorf("%s: %v", command, d)
		}
	}
}
