package permission_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
)

// mutations say the same in another way. Each keeps what a command does; "" means that it can't be applied.
var mutations = []func(string) string{
	around("(\n", "\n)"), around("{\n", "\n}"), around("true && {\n", "\n}"), around("false || {\n", "\n}"), around("! {\n", "\n}"), around("{\n", "\n} 2>/dev/null"), around(":; ", ""), around("time {\n", "\n}"), around("  ", ""),
	around("if true; then\n", "\nfi"), around("if false; then :; elif true; then\n", "\nfi"), around("for zi in 1; do\n", "\ndone"), around("while true; do\n", "\nbreak; done"), around("case x in x)\n", "\n;; esac"), around("zf() {\n", "\n}\nzf"), around("function zg {\n", "\n}; zg a b"),
	around("echo \"$(\n", "\n)\""), around(": $(\n", "\n)"), around("cat <(\n", "\n)"), around("{\n", "\n} | cat"), around("{\n", "\n} & wait"), around("[[ -n \"$(\n", "\n)\" ]]"), heredoc("bash <<'%s'\n", ""), heredoc("cat <<'%s' | bash\n", ""), heredoc("zx=$(cat <<'%s'\n", ")\neval \"$zx\""),
	around("{\n", "\n}; zy=1"), around("zh() (\n", "\n)\nzh"), around("coproc {\n", "\n} < /dev/null"),
	quotedIn("sh -c %s"), quotedIn("bash -c %s _ a"), quotedIn("eval %s"), quotedIn("env bash -c %s"), quotedIn("env -i A=b bash -ec %s"), quotedIn("nice -n 5 timeout 9 bash -lc %s"), quotedIn("nohup bash -c %s &"), quotedIn("command eval %s"), quotedIn("trap %s EXIT"), quotedIn("zx=%s; eval \"$zx\""), quotedIn("zx=%s; bash -c \"$zx\""),
	quotedIn("bash <<< %s"), quotedIn("printf %%s %s | bash"), quotedIn("printf '%%s' %s | xargs -0 bash -c"), quotedIn("set -- %s; eval \"$1\""), func(s string) string { // each in a file of its own: three that write over each other while they run are too large to be read
		return fmt.Sprintf("echo %s > /tmp/z%d.sh; sh /tmp/z%[2]d.sh", single(s), len(s))
	}, quotedIn("za=(%s); bash -c \"${za[0]}\""), quotedIn(". <(printf %%s %s)"), func(s string) string {
		if strings.Contains(s, "{}") {
			return "" // find would put a name there
		}
		return "find . -maxdepth 0 -exec bash -c " + single(s) + " \\;"
	}, quotedIn("busybox sh -c %s"), quotedIn("exec bash -c %s"), quotedIn("f() { eval \"$1\"; }; f %s"),
	quotedIn("python3 -c 'import os; os.system(\"\"\"zz\"\"\")' ; bash -c %s"),
	func(s string) string {
		return "echo " + base64.StdEncoding.EncodeToString([]byte(s)) + " | base64 -d | sh"
	},
	func(s string) string {
		return "eval \"$(base64 --decode <<< " + base64.StdEncoding.EncodeToString([]byte(s)) + ")\""
	},
	func(s string) string {
		return "echo " + hex.EncodeToString([]byte(s)) + " | xxd -r -p | bash"
	},
	func(s string) string { return "printf '" + escaped(s) + "' | sh" },
	func(s string) string { return "bash -c $'" + escaped(s) + "'" },
	func(s string) string { return "eval $'" + escaped(s) + "'" },
	func(s string) string { return "echo -ne '" + escaped(s) + "' | bash" },
	func(s string) string {
		if strings.Contains(s, "\n") {
			return ""
		}
		rs := []rune(s)
		slices.Reverse(rs)
		return "echo " + single(string(rs)) + " | rev | bash"
	},
	func(s string) string { // rot13
		return "printf %s " + single(strings.Map(func(c rune) rune {
			switch {
			case c >= 'a' && c <= 'z':
				return 'a' + (c-'a'+13)%26
			case c >= 'A' && c <= 'Z':
				return 'A' + (c-'A'+13)%26
			}
			return c
		}, s)) + " | tr 'A-Za-z' 'N-ZA-Mn-za-m' | bash"
	},
	first(func(w string) string { return "'" + w + "'" }), first(func(w string) string { return `"` + w + `"` }), first(func(w string) string { return `\` + w }), first(func(w string) string { return w[:1] + "''" + w[1:] }), first(func(w string) string { return "$'" + escaped(w) + "'" }), first(func(w string) string { return "$(echo " + w + ")" }), first(func(w string) string { return "zw=" + w + "; $zw" }), first(func(w string) string { return "command " + w }), first(func(w string) string { return "ZZ=1 " + w }),
	words(func(ws []string) string { return strings.Join(ws, "   ") }), words(func(ws []string) string { return strings.Join(ws, "\t") }), words(func(ws []string) string { return strings.Join(ws, " \\\n ") }), words(func(ws []string) string {
		if strings.Contains(strings.Join(ws, ""), "~") {
			return "" // behind ${IFS} it is no home directory
		}
		return strings.Join(ws, "${IFS}")
	}), words(func(ws []string) string {
		if len(ws) < 2 || strings.Contains(strings.Join(ws, ""), "*") {
			return ""
		}
		return "{" + strings.Join(ws, ",") + "}"
	}), words(func(ws []string) string { return "set -- " + strings.Join(ws[1:], " ") + "; " + ws[0] + ` "$@"` }),
	words(func(ws []string) string {
		if strings.ContainsAny(strings.Join(ws, ""), "~") {
			return "" // what is quoted is no home directory
		}
		return `"` + strings.Join(ws, `" "`) + `"`
	}),
}

func around(before, after string) func(string) string {
	return func(s string) string { return before + s + after }
}

// heredoc gives a script in a heredoc, whose delimiter nothing in it has.
func heredoc(before, after string) func(string) string {
	return func(s string) string {
		end := fmt.Sprintf("Z%dZ", len(s))
		return fmt.Sprintf(before, end) + s + "\n" + end + "\n" + after
	}
}

func quotedIn(format string) func(string) string {
	return func(s string) string { return fmt.Sprintf(format, single(s)) }
}

func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func escaped(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, `\x%02x`, s[i])
	}
	return b.String()
}

var (
	simple   = regexp.MustCompile(`^[a-z][a-z0-9.]* `)
	unquoted = regexp.MustCompile(`^[a-z][a-z0-9.]*( [A-Za-z0-9./_:=~+-]+)+$`)
	keyword  = regexp.MustCompile(`^(if|for|while|until|case|select|function|coproc|time|f|export|do|done|alias|exec|cd|pushd|trap|set|read|return|exit|break|command) `)
)

// first changes the name of the first command.
func first(change func(string) string) func(string) string {
	return func(s string) string {
		if !simple.MatchString(s) || keyword.MatchString(s) {
			return ""
		}
		name, rest, _ := strings.Cut(s, " ")
		return change(name) + " " + rest
	}
}

// words changes how the words of a single plain command stand behind each other.
func words(change func([]string) string) func(string) string {
	return func(s string) string {
		if !unquoted.MatchString(s) || keyword.MatchString(s) {
			return ""
		}
		return change(strings.Fields(s))
	}
}

// mutate applies the mutations that bytes stand for, at most four.
func mutate(command string, bytes []byte) string {
	for _, b := range bytes[:min(4, len(bytes))] {
		if next := mutations[int(b)%len(mutations)](command); next != "" && len(next) < 16<<10 {
			command = next
		}
	}
	return command
}

func TestNoMutationOfACatastropheIsAllowedAndNoneOfAHarmlessLineIsStopped(t *testing.T) {
	home(t)
	check := permission.SafetyIn("/src/project")
	deny, allow := corpus(t, "deny"), corpus(t, "allow")
	try := func(command string, bytes []byte, harmless bool) {
		m := mutate(command, bytes)
		if got, why := verdict(check, m); (got == hook.Continue) != harmless {
			t.Errorf("%v %v: %q\n\t%s", got, bytes, m, why)
		}
	}
	for b := range mutations {
		for i := b % 2; i < len(deny); i += 2 { // the others are tried by the next one
			try(deny[i], []byte{byte(b)}, false)
		}
		for i := b % 2; i < len(allow); i += 2 {
			try(allow[i], []byte{byte(b)}, true)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		bytes := []byte{byte(rnd.Uint32()), byte(rnd.Uint32()), byte(rnd.Uint32())}[:2+rnd.IntN(2)]
		try(deny[rnd.IntN(len(deny))], bytes, false)
		try(allow[rnd.IntN(len(allow))], bytes, true)
	}
}

func FuzzNoMutationOfACatastropheIsAllowed(f *testing.F) {
	f.Setenv("HOME", "/home/me")
	f.Setenv("TMPDIR", "/tmp")
	check := permission.SafetyIn("/src/project")
	deny, allow := corpus(f, "deny"), corpus(f, "allow")
	for i := range 64 {
		f.Add(uint16(i*7), []byte{byte(i), byte(i * 3), byte(i * 5)})
	}
	f.Fuzz(func(t *testing.T, line uint16, bytes []byte) {
		if m := mutate(deny[int(line)%len(deny)], bytes); m != "" {
			if got, _ := verdict(check, m); got == hook.Continue {
				t.Errorf("allowed: %q", m)
			}
		}
		if m := mutate(allow[int(line)%len(allow)], bytes); m != "" {
			if got, why := verdict(check, m); got != hook.Continue {
				t.Errorf("stopped: %q\n\t%s", m, why)
			}
		}
	})
}
