package shell_test

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/shell"
)

// What is read is what bash does: each script ends in words that are printed, by bash, and shown, by Read. The scripts write nothing.
func TestWordsAreWhatBashMakesOfThem(t *testing.T) {
	bash := component.Command(t, "bash", "install bash")
	for _, script := range []string{
		`SHOW a 'b c' "d  e" \f g\ h`,
		`SHOW $'\x72\x6d' $'\162' $'a\tb' $'\u00e9' $'\'' $'a\\b'`,
		`SHOW {a,b}c {1..4} a{,b} {a,b}{c,d} "{a,b}" {a} a{b c}d`,
		`x='a b'; SHOW $x "$x" '$x' \$x ${x}y`,
		`x=a; x+=b; SHOW $x "${x}"'c'`,
		`x='a b' y=c; z=$x$y; SHOW "$z" $z`,
		`x=; SHOW $x "$x" "" ''`,
		`IFS=,; x=a,b,,c; SHOW $x "$x"`,
		`x=abcdef; SHOW ${x:1} ${x:1:2} ${x: -2} ${#x} ${x^^} ${x^} ${x/b/X} ${x//[a-c]/-}`,
		`x=/a/b.c.d; SHOW ${x##*/} ${x%/*} ${x%.*} ${x%%.*} ${x#*.}`,
		`SHOW "${u1:-a b}" ${u1:-a b} "${u1:+c}" ${u1-d}`,
		`SHOW ${u2:=v}; SHOW $u2`,
		`x=y; y=z; SHOW ${!x}`,
		`a=(x 'y z' w); SHOW "${a[@]}" ${a[1]} "${a[*]}" ${#a[@]} $a`,
		`a=(x); a+=(y); SHOW "${a[@]}"`,
		`set -- p 'q r'; SHOW "$@" "$*" $1 "$2" $# "a$@b"`,
		`set -- p q r; shift; SHOW "$@"`,
		`f() { SHOW "$1" "$#" "$@"; }; f a 'b c'`,
		`f() { local v=$1; shift; SHOW "$v" "$@"; }; f a b c`,
		`SHOW $((1 + 2 * 3)) $((7 % 4)) $(( (1 << 4) | 1 ))`,
		`x=4; SHOW $((x * 2)) $(($x + 1))`,
		`SHOW $(echo a b) "$(echo a b)" $(printf '%s-%s ' a b c) "$(printf 'x\n\n')"`,
		"SHOW `echo a` \"`echo 'b  c'`\"",
		`SHOW "$(echo "$(echo 'in  ner')")"`,
		`SHOW "$(echo -e 'a\tb\x41\0102')" "$(echo -n x)" "$(echo -E 'a\tb')" "$(echo -ne 'a\cb')"`,
		`SHOW "$(printf '%b' 'a\tb\0101')" "$(printf '%d %x %s' 10 255 z)" "$(printf '%5s|%-5s|' a b)"`,
		`SHOW "$(echo aGkgdGhlcmU= | base64 -d)" "$(echo hi | base64)"`,
		`SHOW "$(echo abc | rev)" "$(echo abc | tr a-c x-z)" "$(echo a-b | tr -d -- -)" "$(printf 'a\nb\n' | tac)"`,
		`SHOW "$(printf 'a\nb\nc\n' | head -n 2)" "$(printf 'a\nb\nc\n' | tail -n1)" "$(seq 3)" "$(printf 'b\na\n' | sort)"`,
		`SHOW "$(basename /a/b.c)" "$(basename /a/b.c .c)" "$(dirname /a/b)" "$(cat <<< hi)"`,
		`SHOW "$(cat <<E
a $((1+1)) \$x
E
)"`,
		`SHOW "$(cat <<'E'
a $((1+1)) \$x "q"
E
)"`,
		`cd /usr/lib; cd ..; SHOW "$(pwd)" $PWD`,
		`cd /; cd usr/bin; cd -  > /dev/null; SHOW $PWD`,
		`pushd /usr > /dev/null; popd > /dev/null; pushd /tmp > /dev/null; SHOW $PWD`,
		`read a b <<< 'x y z'; SHOW "$a" "$b"`,
		`IFS=: read a b <<< 'x:y'; SHOW "$a" "$b"`,
		`printf -v x '%s-' a b; SHOW "$x"`,
		`export x=1; declare y=2; readonly z=3; SHOW $x $y $z`,
		`x=1; (x=2); SHOW $x; { x=3; }; SHOW $x`,
		`x=1; echo | x=2; SHOW $x`,
		`eval 'x=5; SHOW "$x"'`,
		`bash -c 'printf "%s" "$0 $1"' a 'b c' > /dev/null; SHOW done`,
		`for i in a b; do :; done; SHOW x`,
		`unset x; SHOW "[$x]"`,
		`x='*'; SHOW "$x" '?' \*`,
		`SHOW ~root/x a~b "~" \~`,
		`SHOW "a\
b" c\
d`,
	} {
		t.Run(script, func(t *testing.T) {
			var want []string
			cmd := exec.CommandContext(t.Context(), bash, "--norc", "-c", `SHOW() { printf '%s\0' "$#" "$@"; }; `+script)
			cmd.Dir = "/"
			cmd.Env = []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			for b := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
				want = append(want, string(b))
			}
			s, err := shell.Read(script, shell.Options{Dir: "/", Env: func(name string) (string, bool) { return "", strings.HasPrefix(name, "u") || name == "x" }})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range s.Commands {
				if c.Name != "SHOW" {
					continue
				}
				got = append(got, strconv.Itoa(len(c.Args)))
				for _, a := range c.Args {
					if !a.Known || a.Glob {
						t.Errorf("%q is not known, or a pattern", a.Source)
					}
					got = append(got, a.Text)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
