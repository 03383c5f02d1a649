package star_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/star"
)

func TestNoSourceIsTooDeepForTheCompiler(t *testing.T) {
	for name, unit := range map[string][2]string{
		"parentheses": {"(", ")"}, "lists": {"[", "]"}, "dicts": {"{1:", "}"}, "calls": {"f(", ")"}, "negations": {"-", ""}, "nots": {"not ", ""}, "lambdas": {"lambda:", ""},
		"sums": {"1+", ""}, "conditions": {"1 if 1 else ", ""}, "indices": {"a[", "]"}, "slices": {"a[:", "]"}, "comprehensions": {"[a for a in ", "]"}, "indexed": {"", "[0]"},
		"called": {"", "()"}, "dotted": {"", ".a"}, "sliced": {"", "[:]"}, "unclosed": {"(", ""}, "ands": {"1 and ", ""}, "tuples": {"1,", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := (128<<10 - 1) / (len(unit[0]) + len(unit[1]))
			source := strings.Repeat(unit[0], n) + "1" + strings.Repeat(unit[1], n)
			e, err := star.Compile("deep", source, "a", "f")
			if err == nil {
				_, _ = e.Eval(values(t, map[string]any{"a": 1, "f": 1}))
			}
		})
	}
	if _, err := star.Compile("deep", strings.Repeat("1+", 64<<10)+"1"); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Error(err)
	}
}
