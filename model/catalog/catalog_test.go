package catalog

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/model"
)

func TestEveryShippedRowIsSane(t *testing.T) {
	ids, names := make(map[string]string), []string(nil)
	for m := range Default().All() {
		t.Run(m.Name, func(t *testing.T) {
			if m.Source == "" || m.Date == "" {
				t.Error("no source or no date")
			}
			if m.Name != strings.ToLower(m.Name) || strings.Count(m.Name, "/") != 1 {
				t.Error("a name is provider/id in small letters")
			}
			if m.Window > 0 && m.MaxOutput > m.Window || m.Window > 0 && m.Window < 8_000 || m.MaxOutput > 0 && m.MaxOutput < 1_000 {
				t.Errorf("window %d, output %d", m.Window, m.MaxOutput)
			}
			if m.Until != "" && m.Price == nil {
				t.Error("nothing to expire")
			}
			if m.Until != "" && m.Until < m.Date {
				t.Error("expired before its source")
			}
			if m.Price != nil {
				checkPrice(t, m)
			}
			keys := []string{m.Name}
			for _, alias := range m.Aliases {
				keys = append(keys, aliasKey(m, alias))
			}
			for _, k := range keys {
				if ids[k] != "" {
					t.Errorf("%s is %s too", k, ids[k])
				}
				ids[k] = m.Name
				if got, ok := Default().Lookup(k); !ok || got.Name != m.Name {
					t.Errorf("Lookup(%q) = %q, %t", k, got.Name, ok)
				}
			}
		})
		names = append(names, m.Name)
	}
	if len(names) < 60 || !slices.IsSorted(names) {
		t.Errorf("%d rows, sorted: %t", len(names), slices.IsSorted(names))
	}
	var rows []string
	for line := range strings.SplitSeq(string(shipped), "\n") {
		if name, _, ok := strings.Cut(line, "\t"); ok && name != "name" {
			rows = append(rows, name)
		}
	}
	if diff := cmp.Diff(names, rows); diff != "" {
		t.Errorf("the file isn't sorted (-catalogue +file):\n%s", diff)
	}
}

// checkPrice holds a price to what all vendors do: output dearer than input, cache reads cheaper, writes not, long prompts dearer.
func checkPrice(t *testing.T, m Model) {
	t.Helper()
	p := m.Price
	check := func(what string, ok bool) {
		if !ok {
			t.Errorf("price: %s: %+v", what, p)
		}
	}
	check("above 0", p.Input > 0 && p.Output > 0)
	check("output over input", p.Output > p.Input)
	check("cache read below input", p.CacheRead == nil || *p.CacheRead > 0 && *p.CacheRead < p.Input)
	check("cache write from input up", p.CacheWrite == nil || *p.CacheWrite >= p.Input)
	for _, tier := range p.Tiers {
		check("a tier within the window", m.Window == 0 || tier.Over <= m.Window)
		check("all of input and output or none", (tier.Input == nil) == (tier.Output == nil))
		if tier.Input != nil {
			check("dearer", *tier.Input > p.Input && *tier.Output > p.Output)
		}
		if tier.CacheRead != nil {
			check("dearer reads", *tier.CacheRead > *p.CacheRead)
		}
		if tier.CacheWrite != nil {
			check("dearer writes", *tier.CacheWrite > *p.CacheWrite)
		}
	}
}

func TestLookupFindsAModelByWhatItIsCalled(t *testing.T) {
	for name, want := range map[string]string{
		"anthropic/claude-opus-5-5":               "anthropic/claude-opus-5-5",
		"Anthropic/Claude-Opus-5-5":               "anthropic/claude-opus-5-5",
		"anthropic/claude-opus-5-5-20260922":      "anthropic/claude-opus-5-5",
		"anthropic/claude-opus-5-5@20260922":      "anthropic/claude-opus-5-5",
		"anthropic/claude-opus-5-5-latest":        "anthropic/claude-opus-5-5",
		"anthropic/claude-opus-4-0":               "anthropic/claude-opus-4-20250514",
		"openai/gpt-5.6":                          "openai/gpt-5.6-sol",
		"openai/gpt-5.6-2026-07-09":               "openai/gpt-5.6-sol",
		"openai/gpt-4o-2024-11-20":                "openai/gpt-4o",
		"openai/gpt-4o-2024-05-13":                "openai/gpt-4o-2024-05-13", // dearer: its own row comes first
		"openai-responses/gpt-6.2-sol":            "openai/gpt-6.2-sol",
		"openai-responses/gpt-6.2-sol-2026-11-17": "openai/gpt-6.2-sol",
		"google/gemini-3.8-flash":                 "gemini/gemini-3.8-flash",
		"openrouter/google/gemini-3.8-flash":      "gemini/gemini-3.8-flash",
		"openrouter/anthropic/claude-sonnet-5":    "anthropic/claude-sonnet-5",
		"deepseek/deepseek-v4-flash":              "deepseek/deepseek-flash",
		"vertex/claude-haiku-4-5@20251001":        "anthropic/claude-haiku-4-5",
		"vertex/claude-opus-4@20250514":           "anthropic/claude-opus-4-20250514",
		"vertex/claude-fable-5-1@default":         "anthropic/claude-fable-5-1",
		"vertex/gemini-3.8-flash":                 "gemini/gemini-3.8-flash",

		"bedrock/eu.anthropic.claude-haiku-4-5-20251001-v1:0":                                                          "anthropic/claude-haiku-4-5",
		"bedrock/anthropic.claude-fable-5-1":                                                                           "anthropic/claude-fable-5-1",
		"bedrock/anthropic.claude-opus-4-1-20250805-v1:0":                                                              "anthropic/claude-opus-4-1",
		"bedrock/arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0": "anthropic/claude-haiku-4-5",
	} {
		if m, ok := Default().Lookup(name); !ok || m.Name != want {
			t.Errorf("Lookup(%q) = %q, %t; want %q", name, m.Name, ok, want)
		}
	}
}

func TestLookupGuessesNothing(t *testing.T) {
	for _, name := range []string{
		"", "/", "gpt-5", "claude-opus-5-5", "openai/", "openai", "openai/gpt-6-foo", "openai/gpt-6", "openai/gpt-5-mini-foo",
		"openai/gpt-5-20261301", "openai/gpt-5-2026-13-01", "openai/gpt-5-0806", "openai/gpt-5@2026-08-06", "openai/gpt-5-latest-2026-08-06",
		"openai/gpt-5-20260101-20260102", "azure/gpt-5", "bedrock/amazon.nova-pro-v1:0", "bedrock/anthropic.", "bedrock/claude-haiku-4-5", "vertex/gpt-5", "vertex/claude-foo@20251001", "ollama/gpt-5", "anthropic/gpt-5", "openrouter/gpt-5", "openrouter/openai/gpt-5:free",
		"-latest", "-20260101", "openrouter/openrouter/",
	} {
		if m, ok := Default().Lookup(name); ok {
			t.Errorf("Lookup(%q) = %q", name, m.Name)
		}
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	c := Default()
	for _, name := range []string{"anthropic/claude-opus-5-5", "openai/gpt-5-2025-08-07", "openai/gpt-5.6"} {
		if n := testing.AllocsPerRun(100, func() { c.Lookup(name) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestNilIsAnEmptyCatalogue(t *testing.T) {
	var c *Catalog
	if _, ok := c.Lookup("openai/gpt-5"); ok {
		t.Error("found something")
	}
	for m := range c.All() {
		t.Error(m.Name)
	}
	if _, ok := c.With(Model{Name: "a/b"}).Lookup("a/b"); !ok {
		t.Error("With on nil")
	}
}

func TestWithOverridesAndAdds(t *testing.T) {
	base := parse(t, "a/one\tuno,un\t100\t10", "a/two\tdos\t200\t20")
	got := base.With(
		Model{Name: "A/Two", Aliases: []string{"un"}, Window: 2},
		Model{Name: "a/one-20260101", Window: 3},
		Model{Name: "z/new", Window: 4},
		Model{Name: "z/new", Window: 5},
		Model{Window: 6},
	)
	for name, window := range map[string]int{
		"a/one": 100, "a/uno": 100, "a/two": 2, "a/un": 2, "a/one-20260101": 3, "a/one-20260102": 100, "z/new": 5,
		"a/dos": 0, "": 0,
	} {
		if m, _ := got.Lookup(name); m.Window != window {
			t.Errorf("%s: window %d, want %d", name, m.Window, window)
		}
	}
	var names []string
	for m := range got.All() {
		names = append(names, m.Name)
	}
	if diff := cmp.Diff([]string{"a/one", "a/one-20260101", "A/Two", "z/new"}, names); diff != "" {
		t.Errorf("All (-want +got):\n%s", diff)
	}
	if m, _ := got.Lookup("a/one"); !slices.Equal(m.Aliases, []string{"uno"}) {
		t.Errorf("the alias stays with its old owner: %q", m.Aliases)
	}
	if m, _ := base.Lookup("a/un"); m.Name != "a/one" || !slices.Equal(m.Aliases, []string{"uno", "un"}) {
		t.Errorf("the first catalogue changed: %+v", m)
	}
	if m, _ := base.With(Model{Name: "a/x", Aliases: []string{"two"}}).Lookup("a/two"); m.Name != "a/two" {
		t.Error("a name is nobody's alias")
	}
}

func TestWithCopiesItsModels(t *testing.T) {
	mine := Model{Name: "a/b", Aliases: []string{"c"}, Price: &Price{Input: 1, CacheRead: new(2.0), Tiers: []Tier{{Over: 9, Input: new(3.0)}}}}
	c := (*Catalog)(nil).With(mine)
	mine.Aliases[0], mine.Price.Input, *mine.Price.CacheRead, *mine.Price.Tiers[0].Input = "d", 7, 7, 7
	mine.Price.Tiers[0].Over = 7
	want := Model{Name: "a/b", Aliases: []string{"c"}, Price: &Price{Input: 1, CacheRead: new(2.0), Tiers: []Tier{{Over: 9, Input: new(3.0)}}}}
	got, _ := c.Lookup("a/b")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAllCanBeLeftEarly(t *testing.T) {
	for range Default().All() {
		break
	}
}

func TestAPriceExpiresAfterItsLastDay(t *testing.T) {
	m := Model{Until: "2026-12-31"}
	for day, want := range map[string]bool{"2026-12-31T23:59:59Z": false, "2027-01-01T00:00:00Z": true, "2027-01-01T00:00:00+09:00": false} {
		at, err := time.Parse(time.RFC3339, day)
		if err != nil {
			t.Fatal(err)
		}
		if m.Expired(at) != want {
			t.Errorf("%s: %t", day, !want)
		}
	}
	if (Model{}).Expired(time.Now()) {
		t.Error("no end is known")
	}
}

func TestSupportKnowsThreeAnswers(t *testing.T) {
	if !Yes.Or(false) || No.Or(true) || !Unknown.Or(true) || Unknown.Or(false) {
		t.Error("Or")
	}
	if Yes.String() != "yes" || No.String() != "no" || Unknown.String() != "unknown" {
		t.Error("String")
	}
}

// parse makes a catalogue of rows.
func parse(t *testing.T, rows ...string) *Catalog {
	t.Helper()
	c, err := Parse("test.tsv", []byte(strings.Join(append([]string{strings.Join(columns[:], "\t")}, rows...), "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func BenchmarkLookup(b *testing.B) {
	c := Default()
	for b.Loop() {
		if m, ok := c.Lookup("anthropic/claude-opus-5-5"); ok {
			m.Cost(model.Usage{Input: 1000, Output: 100})
		}
	}
}
