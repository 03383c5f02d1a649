package shell_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/shell"
)

// bombs are small commands of which a naive reading would be endless or huge.
var bombs = map[string]string{
	"braces in braces":             "echo " + strings.Repeat("{a,b}", 40),
	"a long sequence":              "echo {1..999999999}",
	"sequences in each other":      "echo {1..1000}{1..1000}{1..1000}",
	"a variable that doubles":      "x=aaaaaaaaaaaaaaaa;" + strings.Repeat("x=$x$x;", 64) + "$x",
	"a variable that appends":      "x=aaaaaaaaaaaaaaaa;" + strings.Repeat("x+=$x;", 64) + "$x",
	"functions that fan out":       fanOut(24),
	"loops in loops":               strings.Repeat("for i in 1 2 3; do x=$i; ", 25) + "rm $x" + strings.Repeat("; done", 25),
	"while in while":               strings.Repeat("while y=$x; do x=a$y; ", 25) + "rm $x" + strings.Repeat("; done", 25),
	"recursion":                    "f() { f $1$1; g; }; g() { f a; f b; }; f x",
	"alternatives of variables":    alternatives(30) + "rm $x0$x1$x2$x3$x4$x5$x6$x7$x8$x9",
	"alternatives of assignments":  alternatives(12) + "y=$x0$x1$x2$x3$x4$x5$x6; z=$y$y$x8; rm $z$y",
	"sh -c in sh -c":               nest(40),
	"eval of eval":                 strings.Repeat("eval ", 5000) + "ls",
	"env of env":                   strings.Repeat("env ", 5000) + "ls",
	"aliases in a circle":          "alias a=b b=a; a",
	"brackets":                     strings.Repeat("(", 30000),
	"quoted substitutions":         strings.Repeat(`"$(`, 10000),
	"if in if":                     strings.Repeat("if a; then ", 5000),
	"blocks":                       strings.Repeat("{ ", 20000),
	"functions in functions":       strings.Repeat("f() { ", 399) + "ls" + strings.Repeat("; }", 399),
	"a wide printf":                "printf '%999999999d' 1 | sh",
	"a printf without an end":      "printf '' a b c | sh",
	"a power":                      "echo $((9**999999999))",
	"numbers that name each other": "a=b; b=a; echo $((a))",
	"a sequence by seq":            "for i in $(seq 1 999999999); do rm $i; done",
	"xargs of much":                "echo " + strings.Repeat("a ", 20000) + "| xargs -n1 rm",
	"code in code":                 `python3 -c '` + strings.Repeat(`exec("`, 200) + `x` + strings.Repeat(`")`, 200) + `'`,
	"a replacement that grows":     "x=" + strings.Repeat("a", 4000) + "; x=${x//a/$x}; x=${x//a/$x}; $x",
	"much and":                     strings.Repeat("a && x=1 && ", 4000) + "b",
	"much or":                      strings.Repeat("x=1 || ", 8000) + "b",
	"a long pipe":                  strings.Repeat("a | ", 15000) + "b",
	"too long":                     strings.Repeat("a ", 40000),
	"negations":                    strings.Repeat("! ", 30000) + "a",
	"arithmetic":                   "echo $((" + strings.Repeat("-", 30000) + "1))",
	"case in case":                 strings.Repeat("case x in x) ", 390) + "ls" + strings.Repeat(";; esac", 390),
	"heredocs":                     strings.Repeat("cat <<a <<b\n", 2000),
	"expansions in each other":     "echo " + strings.Repeat("${x:-", 390) + "a" + strings.Repeat("}", 390),
	"time of time":                 strings.Repeat("time ", 12000) + "ls",
}

func fanOut(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "f%d() { f%d; f%d; }; ", i, i+1, i+1)
	}
	return b.String() + fmt.Sprintf("f%d() { ls; }; f0", n)
}

func alternatives(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "if a; then x%d=a; elif b; then x%d=b; else x%d=c; fi; ", i, i, i)
	}
	return b.String()
}

func nest(n int) string {
	s := "ls"
	for range n {
		if next := "sh -c '" + strings.ReplaceAll(s, "'", `'\''`) + "'"; len(next) < 60<<10 {
			s = next
		}
	}
	return s
}

// The bounds that the package promises, with room for what one command adds.
func bounded(t *testing.T, s *shell.Script) {
	t.Helper()
	if s == nil {
		t.Fatal("no script")
	}
	size := 0
	for _, c := range s.Commands {
		for _, a := range c.Args {
			size += len(a.Text)
		}
	}
	if len(s.Commands) > 1000 || len(s.Doubts) > 8 || size > 64<<20 {
		t.Errorf("%d commands, %d doubts, %d bytes of words", len(s.Commands), len(s.Doubts), size)
	}
}

func TestNoCommandIsTooMuch(t *testing.T) {
	for name, command := range bombs {
		t.Run(name, func(t *testing.T) {
			s, err := shell.Read(command, options)
			bounded(t, s)
			if err != nil && len(s.Doubts) == 0 {
				t.Error("an error without a doubt:", err)
			}
			if errdefs.Internal.Is(err) {
				t.Error(err)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, b := range bombs {
		if len(b) < 1000 {
			f.Add(b)
		}
	}
	for _, s := range []string{"rm -rf /", "f() { rm $1; }; f x", "for i in {1..3}; do echo ${i%.x} | xargs -I{} sh -c '{}'; done", "cat <<EOF | sh\n$(ls)\nEOF", "x=(a b); echo ${x[@]} ${!x} ${#x} $((x+1)) $'\\x72'", "python3 -c 'import os; os.system(\"ls\")'", "awk '{system(\"ls\")}'", "sed 's/a/b/e'", "git -c alias.x='!ls' x", "find . -exec rm {} +", "echo bHM= | base64 -d | sh", "case $1 in a) ;; esac", "while read a b; do :; done <<< 'x y'", "trap ls EXIT; alias x=y; x", "coproc a; a <(b) >(c) &> d", "printf -v a '%b' x; tr a-z n-za-m <<< $a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		s, err := shell.Read(command, options)
		bounded(t, s)
		if errdefs.Internal.Is(err) {
			t.Error(err)
		}
		if err != nil && len(s.Doubts) == 0 {
			t.Error("an error without a doubt")
		}
	})
}
