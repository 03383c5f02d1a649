package near_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/near"
)

func TestNearNamesAreFoundNearestFirst(t *testing.T) {
	tools := []string{"bash", "read", "write", "edit", "glob", "grep"}
	for want, names := range map[string][]string{
		"reed":                     {"read"},
		"READ":                     {"read"},
		"raed":                     {"read"},
		"read_file":                {"read"},
		"teleport":                 nil,
		"":                         nil,
		strings.Repeat("x", 10000): nil,
	} {
		if got := near.Names(want, tools); !slices.Equal(got, names) {
			t.Errorf("%.20q: %q, want %q", want, got, names)
		}
	}
	if got := near.Names("main.js", []string{"main.go", "name.txt", "Main.ts"}); len(got) == 0 || !slices.Contains(got, "main.go") || !slices.Contains(got, "Main.ts") {
		t.Errorf("another extension: %q", got)
	}
	var many []string
	for c := 'a'; c <= 'z'; c++ {
		many = append(many, "name"+string(c))
	}
	if got := near.Names("name", many); len(got) != 5 {
		t.Errorf("%q", got)
	}
}
