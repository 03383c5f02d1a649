package guard

import (
	"encoding/json"
	"strings"
	"testing"
)

// What is taken for the verdict of a model is JSON that stands in its answer, or all of it; and a fence that is taken away leaves what is in it.
func FuzzExtracted(f *testing.F) {
	for _, s := range []string{`{"passed":true}`, "Sure: ```json\n{\"score\": 0.5}\n```", `[[[[{`, `{"a":{"b":[1]}} {"c":2}`, "```\n[1]\n```", "````", "```{}```", `{"a":"}"}`, strings.Repeat("{", 200) + `{"passed":true}`, "{\xff}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := extracted(text)
		if !strings.Contains(text, got) || got != text && !json.Valid([]byte(got)) {
			t.Fatalf("%q: %q", text, got)
		}
		if json.Valid([]byte(strings.TrimSpace(text))) && strings.ContainsAny(text[:1], "{[") && strings.TrimSpace(got) != strings.TrimSpace(text) {
			t.Fatalf("%q: %q", text, got)
		}
		if inner := unwrapped(text); !strings.Contains(text, inner) || inner != text && unwrapped("```\n"+inner+"```") != inner && !strings.HasPrefix(strings.TrimSpace(inner), "```") && strings.TrimSpace(inner) != "" {
			t.Fatalf("%q: %q", text, inner)
		}
	})
}
