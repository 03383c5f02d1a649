package anthropic

import (
	"strings"
	"testing"
)

// A version is read wherever it stands in a model's name, and what else stands there makes no other of it.
func FuzzVersion(f *testing.F) {
	for _, s := range []string{"claude-3-5-sonnet-20241022", "anthropic/claude-opus-4.5", "claude-sonnet-4@20250514", "claude-", "CLAUDE-OPUS-99.99", "eu.anthropic.claude-haiku-4-5-v1:0", "claude-+3--1", "claude-opus-٣"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		line, v := version(name)
		if v < 0 || v > 9999 || line != "" && !strings.Contains(strings.ToLower(name), line) {
			t.Fatalf("%q: %q %d", name, line, v)
		}
		if again, w := version("region/" + strings.ToUpper(name)); !strings.Contains(strings.ToLower(name), "claude-") && (again != "" || w != 0) {
			t.Fatalf("%q: %q %d", name, again, w)
		}
		if most := familyOf(name).maxTokens; most < 1 {
			t.Fatalf("%q: %d tokens", name, most)
		}
	})
}
