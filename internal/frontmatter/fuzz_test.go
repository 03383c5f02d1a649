package frontmatter_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/frontmatter"
)

// A skill that is taken keeps the format's limits, and what is wrong or has no effect says so in one line, at a place that is there.
func FuzzSkill(f *testing.F) {
	for _, s := range []string{
		"---\nname: a-b\ndescription: does things\nallowed-tools: [Read, \"Bash(ls:*)\"]\nmetadata:\n  x: 1\npaths: src/**\n---\n# Body\n", "---\r\nname: a\r\ndescription: |\r\n  x\r\n---", "---\n---\n", "---\nname: &a [*a]\n---\n",
		"---\n? {a: b}\n: c\n---\n", "---\nname: a\nname: b\ndescription: d\n---\n", "---\nnaem: a\n---\nx", "no", "---\n# only a comment\n---\n", "---\ndescription: \"\\x00\"\nname: a\n---\n", "---\n- a\n---\n", "---\nmetadata: {a: [b]}\n---\n", "---\n!!binary x: y\n---\n",
	} {
		f.Add(s, "a")
	}
	f.Fuzz(func(t *testing.T, text, dir string) {
		k, idle, wrong := frontmatter.ReadSkill(text, dir)
		lines := strings.Count(text, "\n") + 1
		for _, p := range idle {
			if p.Reason == "" || p.Remedy == "" || p.Line < 0 || p.Line > lines || strings.Contains(p.Reason, "\n") {
				t.Fatalf("%q: %+v", text, p)
			}
		}
		if wrong != nil {
			if wrong.Reason == "" || wrong.Remedy == "" || wrong.Line < 0 || wrong.Line > lines+1 || strings.Contains(wrong.Reason, "\n") {
				t.Fatalf("%q: %+v", text, wrong)
			}
			return
		}
		if frontmatter.CheckName(k.Name, dir) != nil || strings.TrimSpace(k.Description) == "" || utf8.RuneCountInString(k.Description) > frontmatter.MaxDescription || frontmatter.CheckPatterns(k.Paths) != nil {
			t.Fatalf("%q: %+v", text, k)
		}
		if !strings.Contains(strings.ReplaceAll(text, "\r\n", "\n"), k.Body) {
			t.Fatalf("%q: its body is %q", text, k.Body)
		}
	})
}
