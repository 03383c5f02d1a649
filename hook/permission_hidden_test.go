package hook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
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
		got, none, err := hook.Kept(hook.Permissions{Dir: real + "/link/project", Deny: []string{rule}})
		if diff := cmp.Diff(want, got); diff != "" || err != nil || strings.HasPrefix(rule, "Read") && none != nil {
			t.Errorf("%s: %v %s %q", rule, err, diff, none)
		}
		for _, name := range []string{"Edit", "Write"} { // as for reading, and it can be read
			rule := strings.Replace(rule, "Read", name, 1)
			none, got, err := hook.Kept(hook.Permissions{Dir: real + "/link/project", Deny: []string{rule}})
			if diff := cmp.Diff(want, got); strings.HasPrefix(rule, name+"(") && want != nil && (diff != "" || err != nil || none != nil) {
				t.Errorf("%s: %v %s %q", rule, err, diff, none)
			}
		}
	}
	if got, none, err := hook.Kept(hook.Permissions{Dir: dir, Ask: []string{"Read(.env)"}, Rules: []hook.Rule{hook.DenyRule("Read(a/b)"), hook.DenyRule("Read(a/b)")}}); err != nil || none != nil || !cmp.Equal(got, []string{dir + "/a/b"}) {
		t.Error(got, none, err)
	}
	if _, _, err := hook.Kept(hook.Permissions{Deny: []string{"Read("}}); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}
