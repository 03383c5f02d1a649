package permission_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/message"
)

func TestARuleOfAnotherProjectNamesWhatItNamedThere(t *testing.T) {
	for text, want := range map[string][]string{
		"Bash":                           {"Bash"},
		"Bash(cat ./x)":                  {"Bash(cat ./x)"},
		"Read":                           {"Read"},
		"Read(*)":                        {"Read(*)"},
		"Read(.env)":                     {"Read(.env)"},
		"Edit(vendor/)":                  {"Edit(vendor/)"},
		"Read(**/x/y)":                   {"Read(**/x/y)"},
		"Read(~/.ssh/**)":                {"Read(~/.ssh/**)"},
		"Read(//etc/**)":                 {"Read(//etc/**)"},
		"WebFetch(https://example.com/)": {"WebFetch(https://example.com/)"},
		"Edit(src/**)":                   {"Edit(//w/a/src/**)"},
		" MultiEdit ( ./src/*.go ) ":     {"MultiEdit(//w/a/src/*.go)"},
		"Read(/secret)":                  {"Read(//w/a/secret)", "Read(//secret)"},
		"Read(../b/**)":                  {"Read(//w/b/**)"},
		"Read(./../../x/y)":              {"Read(//x/y)"},
		"Read(.)":                        {"Read(//w/a/)"},
		"Read(..)":                       {"Read(//w/)"},
		"Read(./**)":                     {"Read(//w/a/**)"},
	} {
		var got []string
		for _, r := range permission.DenyRule(text).From("/w/a") {
			got = append(got, r.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A directory's own name is no pattern.
func TestARuleOfAProjectWithAStrangeName(t *testing.T) {
	outer := filepath.Join(t.TempDir(), `a*b[c]{d}?\e`)
	inner := filepath.Join(outer, "sub")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Skipf("no such names here: %v", err)
	}
	for text, denied := range map[string]bool{"Read(./sub/secret/**)": true, "Read(../a*/**)": true, "Read(./secret/**)": false} {
		m, err := permission.New(permission.Config{Dir: inner, Rules: permission.DenyRule(text).From(outer)})
		if err != nil {
			t.Fatal(err)
		}
		d, err := m.PreToolUse(t.Context(), &hook.ToolUse{Call: message.ToolCall{Name: "read", Input: `{"file_path":"secret/x"}`}})
		if err != nil || (d.Verdict == hook.Deny) != denied {
			t.Errorf("%s: %v %v", text, d, err)
		}
	}
}
