package guard_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/pack/guard"
)

// Characters that nobody sees hide no word.
func TestUnseenCharactersHideNoWord(t *testing.T) {
	g, err := guard.New(guard.Config{Type: "banned_words", FailOnViolation: true, Params: guard.Params{"words": []any{"guarantee"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, hidden := range map[string]string{
		"zero width": "\u200b", "soft hyphen": "\u00ad", "Hangul filler": "\u3164", "half width filler": "\uffa0", "initial filler": "\u115f", "Khmer vowel": "\u17b4", "null": "\x00", "delete": "\x7f",
		"control": "\u0081", "tag": "\U000e0061", "unassigned": "\U000e01f0", "ignorable": "\u2065", "variation": "\u180f", "joiner": "\u034f",
	} {
		if g.Judge(t.Context(), "I guar"+hidden+"antee"+hidden+" it") == nil {
			t.Errorf("%s: it is not found", name)
		}
	}
	for _, text := range []string{"I guar\tantee it", "I guar\nantee it", "I guar\u0085antee it"} { // they are seen
		if v := g.Judge(t.Context(), text); v != nil {
			t.Errorf("%q: %v", text, v)
		}
	}
}

func TestARuleThatPanicsLetsNothingThrough(t *testing.T) {
	g, err := guard.New(guard.Config{Type: "boo", FailOnViolation: true}, guard.Types{"boo": func(guard.Params) (guard.Rule, error) {
		return guard.RuleFunc(func(context.Context, string) (string, error) { panic("boo") }), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if v := g.Judge(t.Context(), "x"); v == nil || !errdefs.Internal.Is(v) || !errdefs.PolicyDenied.Is(v) {
		t.Errorf("got %v", v)
	}
}

// What is dear to look for is looked for only where it can be.
func BenchmarkLongTextsAreLookedThroughForPersonalData(b *testing.B) {
	for name, text := range map[string]string{"letters": strings.Repeat("x", 1<<20), "digits": strings.Repeat("2", 1<<20), "words": strings.Repeat("word 12 ", 1<<17), "ats": strings.Repeat("x@", 1<<19)} {
		b.Run(name, func(b *testing.B) {
			g, err := guard.New(guard.Config{Type: "pii_leakage"}, nil)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if v := g.Judge(b.Context(), text); v != nil {
					b.Fatal(v)
				}
			}
		})
	}
}
