package permission_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
)

func TestWhatDenyRulesNameCanBeKeptFromPrograms(t *testing.T) {
	real, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := real + "/home/project"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real+"/home", real+"/link"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", real+"/home")
	for rule, want := range map[string][]string{
		"Read(.env)": {dir + "/**/.env"}, "Read(*.pem)": {dir + "/**/*.pem"}, "Read(./secret/**)": {dir + "/secret"}, "Read(secret/x)": {dir + "/secret/x"}, "Read(certs/*.pem)": {dir + "/certs/*.pem"},
		"Read(**/secret/**)": {dir + "/**/secret"}, "Read(~/x)": {real + "/home/x"}, "Read(//abs/**)": {"/abs"}, "Read(//abs/*.key)": {"/abs/*.key"}, "Read(/src)": {"/src", dir + "/src"},
		"Read(~/**/.env)": {dir + "/**/.env"}, `Read(./\[id])`: {dir + `/\[id]`}, "Read(./a b)": {dir + "/a b"},
		"Read": nil, "Read(**)": nil, "Read(./**)": nil, "Read(~/**)": nil, "Read(//**)": nil, "Read(//abs/**/x)": nil, "Read(../**)": nil, "Read(~/*)": nil, "Edit(.env)": nil, "Bash(cat:*)": nil, "Grep(.env)": nil,
	} {
		got, none, err := permission.Kept(permission.Config{Dir: real + "/link/project", Deny: []string{rule}})
		if diff := cmp.Diff(want, got); diff != "" || err != nil || strings.HasPrefix(rule, "Read") && none != nil {
			t.Errorf("%s: %v %s %q", rule, err, diff, none)
		}
		for _, name := range []string{"Edit", "Write"} { // as for reading, and it can be read
			rule := strings.Replace(rule, "Read", name, 1)
			none, got, err := permission.Kept(permission.Config{Dir: real + "/link/project", Deny: []string{rule}})
			if diff := cmp.Diff(want, got); strings.HasPrefix(rule, name+"(") && want != nil && (diff != "" || err != nil || none != nil) {
				t.Errorf("%s: %v %s %q", rule, err, diff, none)
			}
		}
	}
	if got, none, err := permission.Kept(permission.Config{Dir: dir, Ask: []string{"Read(.env)"}, Rules: []permission.Rule{permission.DenyRule("Read(a/b)"), permission.DenyRule("Read(a/b)")}}); err != nil || none != nil || !cmp.Equal(got, []string{dir + "/a/b"}) {
		t.Error(got, none, err)
	}
	if _, _, err := permission.Kept(permission.Config{Deny: []string{"Read("}}); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}

// Where the sandbox hides what a rule names, a search above it is nobody's question.
func TestWhatTheSandboxHidesIsNotGuessedAt(t *testing.T) {
	dir, out := project(t), t.TempDir()
	if err := errors.Join(os.Mkdir(out+"/deep", 0o755), os.WriteFile(out+"/deep/a.key", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rule, call string
		want       hook.Verdict
	}{
		{"Read(./secret/**)", "bash grep -r foo .", hook.Allow},
		{"Read(./secret/**)", "bash rg foo", hook.Allow},
		{"Read(./secret/**)", "bash cat $FILE", hook.Allow},
		{"Read(./secret/**)", "bash find . -type f | xargs wc -l", hook.Allow},
		{"Read(./secret/**)", "bash kill $PPID", hook.Allow},
		{"Read(.env)", "bash grep -rn foo --exclude=.env .", hook.Allow},
		{"Read(./secret/**)", "bash cat secret/key", hook.Deny},
		{"Read(./secret/**)", "bash xargs -a secret/key echo", hook.Deny},
		{"Read(./secret/**)", "bash <secret/key cat", hook.Deny},
		{"Read(/" + out + "/**/*.key)", "bash grep -r foo " + out, hook.Ask}, // it is looked for nowhere, so nothing hides it
		{"Edit(go.mod)", "bash git merge x", hook.Ask},                       // a new one can be made
	} {
		p := permission.Config{Dir: dir, Fence: true, Kept: true, Deny: []string{c.rule}}
		if d := judged(t, judging(t, p), call(c.call)); max(d.Verdict, hook.Allow) != c.want {
			t.Errorf("%s with %s: %v", c.call, c.rule, d)
		}
		p.Mode = permission.ModeBypass
		if d := judged(t, judging(t, p), call(c.call)); (d.Verdict == hook.Deny) != (c.want != hook.Allow) {
			t.Errorf("%s with %s in mode bypassPermissions: %v", c.call, c.rule, d)
		}
	}
}
