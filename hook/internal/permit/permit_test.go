package permit

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/shell"
)

func world(t testing.TB, fold bool) *World {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "p/src"), 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := NewWorld(filepath.Join(dir, "p"), filepath.Join(dir, "home"), fold, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func rule(t testing.TB, w *World, text string) *Rule {
	t.Helper()
	r, err := w.Parse(text, "here")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Where the file system does not tell case apart, a rule that refuses doesn't either; one that permits does in any case.
func TestCaseHidesNothingWhereItDoesNotCount(t *testing.T) {
	for _, fold := range []bool{true, false} {
		w := world(t, fold)
		want := No
		if fold {
			want = Yes
		}
		for deny, calls := range map[string][]string{
			"Read(src/Secret/**)": {"SRC/secret/x", "src/SECRET/X"},
			"Read(.env)":          {".ENV", "src/.Env"},
			"Read(*.PEM)":         {"a.pem"},
			"Read(caf\u00e9)":     {"cafe\u0301"}, // the same name in another normal form
		} {
			for _, file := range calls {
				if got := rule(t, w, deny).Binds(w.Read("read", `{"file_path":"`+file+`"}`, true)); got != want {
					t.Errorf("%s with %s, fold %v: %v", deny, file, fold, got)
				}
			}
		}
		if rule(t, w, "Edit(src/**)").Allows(w.Read("edit", `{"file_path":"SRC/x"}`, false)) {
			t.Error("an allow rule took another case, fold", fold)
		}
		if got := rule(t, w, "Bash(rm:*)").Binds(w.Read("bash", `{"command":"RM x"}`, false)); got != want {
			t.Errorf("RM, fold %v: %v", fold, got)
		}
	}
}

func TestAPathThatIsNoneIsNeverPermittedAndMayBeRefused(t *testing.T) {
	w := world(t, false)
	c := w.Read("read", `{"file_path":"a\u0000b"}`, true)
	if rule(t, w, "Read(src/**)").Binds(c) != May || rule(t, w, "Read(**)").Allows(c) || rule(t, w, "Read").Allows(c) || w.Inside(c, Further{}) {
		t.Error("a NUL passes")
	}
	if c := w.Read("read", `{}`, true); rule(t, w, "Read(src/**)").Binds(c) != No {
		t.Error("no path is", c)
	}
}

// What was made a link after the rule was read leads an allow rule nowhere, and a deny rule to where it leads.
func TestALinkThatIsMadeLaterWidensNoPermission(t *testing.T) {
	w := world(t, false)
	allow, deny := rule(t, w, "Edit(gen/**)"), rule(t, w, "Read(vault/**)")
	if !allow.Allows(w.Read("edit", `{"file_path":"gen/x"}`, false)) {
		t.Fatal("not even before")
	}
	for _, link := range []string{"gen", "vault"} {
		if err := os.Symlink("src", filepath.Join(w.dir, link)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	if allow.Allows(w.Read("edit", `{"file_path":"gen/x"}`, false)) {
		t.Error("Edit(gen/**) permits src/x through a link")
	}
	if deny.Binds(w.Read("read", `{"file_path":"src/x"}`, true)) != Yes {
		t.Error("Read(vault/**) lets src/x be read, which it is")
	}
}

func TestAProjectBehindALinkIsTheSameByBothNames(t *testing.T) {
	w := world(t, false)
	link := w.dir + "-link"
	if err := os.Symlink(w.dir, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	l, err := NewWorld(link, "", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"src/x", w.dir + "/src/x", link + "/src/x"} {
		c := l.Read("edit", `{"file_path":"`+file+`"}`, false)
		if !rule(t, l, "Edit(src/**)").Allows(c) || rule(t, l, "Edit(src/**)").Binds(c) != Yes || !l.Inside(c, Further{}) {
			t.Error(file)
		}
	}
}

func TestResolveFollowsLinksAsAKernelDoes(t *testing.T) {
	dir := world(t, false).dir
	for link, to := range map[string]string{"l": "src/../src", "loop": "loop", "abs": dir + "/src", "dangling": "none/deep"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	for name, want := range map[string]string{
		"/l/x": "/src/x", "/l/../x": "/x", "/abs/../y": "/y", "/dangling/z": "/none/deep/z", "/none/../src": "/src", "/src/./x": "/src/x",
	} {
		if got := resolve(dir + name); got != dir+want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := resolve(dir + "/loop/x"); !strings.HasPrefix(got, dir) {
		t.Error("a loop leads to", got)
	}
}

// A directory that is too large to be looked through may hold anything.
func TestATreeIsLookedThroughUpToABound(t *testing.T) {
	w := world(t, false)
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(w.dir, "src", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := w.Read("bash", `{"command":"grep -r x src"}`, false)
	if got := rule(t, w, "Read(*.pem)").Binds(c); got != No {
		t.Error(got)
	}
	w.most = 3 // src itself is one
	if got := rule(t, w, "Read(*.pem)").Binds(c); got != May {
		t.Error(got)
	}
}

func TestAnAddressHasOneName(t *testing.T) {
	for host, want := range map[string]string{
		"127.1": "127.0.0.1", "2130706433": "127.0.0.1", "0x7f000001": "127.0.0.1", "0177.0.0.01": "127.0.0.1", "::ffff:7f00:1": "127.0.0.1", "fe80::1%eth0": "fe80::1",
		"EXAMPLE.com.": "example.com", "1.2.3.4.5": "1.2.3.4.5", "256.1": "256.1", "0o7.1": "0o7.1", "1_0": "1_0", "0b1": "0b1", "": "", "4294967296": "4294967296",
	} {
		if got := hostOf(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
	if _, err := netip.ParseAddr(hostOf("017700000001")); err != nil {
		t.Error(err)
	}
}

func TestSetVariablesThatSteerOtherProgramsAreRisky(t *testing.T) {
	for name, want := range map[string]bool{
		"PATH": true, "LD_PRELOAD": true, "GIT_SSH_COMMAND": true, "GOFLAGS": true, "NODE_OPTIONS": true, "PYTHONPATH": true, "PAGER": true, "MANPAGER": true, "EDITOR": true, "BASH_ENV": true, "ENV": true,
		"IFS": true, "HOME": true, "npm_config_script_shell": true, "JAVA_TOOL_OPTIONS": true, "RUSTC_WRAPPER": true, "CC": true, "https_proxy": true, "MAKEFLAGS": true, "LESSOPEN": true, "GOTOOLCHAIN": true,
		"FOO": false, "CI": false, "GOOS": false, "CGO_ENABLED": false, "RUST_LOG": false, "NODE_ENV": false, "DEBUG": false, "TZ": false, "LANG": false, "NO_COLOR": false,
	} {
		if riskyName(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestATextWithStarsMatchesWhole(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"a*", "ab", true}, {"*b", "ab", true}, {"a*b", "ab", true}, {"a*b", "a", false}, {"a*a", "a", false}, {"a*b*c", "axbxc", true}, {"a*b*c", "acb", false}, {"**", "x", true},
	} {
		if wild(c.pattern, c.s) != c.want {
			t.Errorf("%q with %q", c.pattern, c.s)
		}
	}
}

func TestAProgramForSedReadsWhenNothingInItNamesAFileOrACommand(t *testing.T) {
	for program, want := range map[string]bool{
		"": true, "p": true, "1,20p": true, "$p": true, "1~2p": true, "/a/,/b/p": true, "/a/,+3p": true, "/a/I,$!d": true, "1d;$d": true, "5q": true, "q 3": true, "/x/{p;d}": true, "/x/ { p; q }": true, "s/a/b/": true, "s/a/b/g;s|c|d|2p": true,
		`s/\//x/`: true, "s/[0-9]*/N/g": true, "y/abc/xyz/": true, "N;P;D": true, "s/a/b/gp\n1d": true, "=": true, "0,/x/d": true,
		"w x": false, "wx": false, "1w x": false, "/x/w/etc/x": false, "e": false, "1e rm x": false, "r x": false, "R x": false, "W x": false, "s/a/b/w x": false, "s/a/b/e": false, "s/a/b/gew x": false, "s/[/]w x/b/": false, "s/a/b\nw x/": false,
		"s/a": false, "s": false, "s\\a\\b\\": false, "p x": false, "pw x": false, "a text": false, "i\\\nx": false, "b end": false, ": x": false, "#n": false, `\,x,w y`: false, "/x": false, "}w x": false, "1,/x/w y": false, "s/a/b/;w x": false, "v": false, "p;e": false, "y/a/b/w x": false,
	} {
		if sedReads(program) != want {
			t.Errorf("%q: %v", program, !want)
		}
	}
}

func TestAnOptionIsKnownByItsWholeName(t *testing.T) {
	o := parseOptions("bq n: f< u? # --lines= --file< --color? --quiet -name=")
	for words, want := range map[string]bool{
		"": true, "a b": true, "-bq": true, "-b -q": true, "-n 5 x": true, "-n5": true, "-n -5 x": true, "-n": true, "-uno": true, "-20": true, "-q20": true, "--lines=5": true, "--lines 5": true, "--color": true, "--color=always": true, "--quiet x --quiet": true, "-name x": true, "-f x": true, "-- -x --y": true, "-": true,
		"-x": false, "-bx": false, "--line=5": false, "--colo": false, "--quiet=x": false, "--lines --output=x": false, "-n -o": false, "-cames x": false, "---": false, "x -o": false, "-b=": false,
	} {
		var args []shell.Word
		for w := range strings.FieldsSeq(words) {
			args = append(args, shell.Word{Text: w, Known: true, Source: w})
		}
		if _, ok := o.split(args, false); ok != want {
			t.Errorf("%s: %v", words, ok)
		}
	}
	l, ok := o.split([]shell.Word{{Text: "-b"}, {Text: "ls"}, {Text: "-x"}}, true)
	if !ok || len(l.operands) != 2 || !l.has("-q -b") || l.has("-q") {
		t.Errorf("%+v %v", l, ok)
	}
}
