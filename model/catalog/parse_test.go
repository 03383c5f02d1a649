package catalog

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

const header = "name\taliases\twindow\tmax_output\tinput\toutput\tcache_read\tcache_write\ttiers\timages\tdocuments\treasoning\tsource\tdate\tuntil\tnote\n"

func TestParseReadsEveryColumn(t *testing.T) {
	c, err := Parse("x.tsv", []byte("# a comment\r\n\r\n"+header+
		"a/full\tone,two\t1000\t100\t1\t2\t0.1\t1.25\t>200:2/3/0.2/- >500:?\ty\tn\t\tsomewhere\t2026-01-02\t2026-12-31\ta note\r\n"+
		"  \n# another\na/bare"))
	if err != nil {
		t.Fatal(err)
	}
	var got []Model
	for m := range c.All() {
		got = append(got, m)
	}
	want := []Model{{Name: "a/bare"}, {
		Name: "a/full", Aliases: []string{"one", "two"}, Window: 1000, MaxOutput: 100,
		Price: &Price{Input: 1, Output: 2, CacheRead: new(0.1), CacheWrite: new(1.25), Tiers: []Tier{
			{Over: 200, Input: new(2.0), Output: new(3.0), CacheRead: new(0.2)}, {Over: 500},
		}},
		Images: Yes, Documents: No, Source: "somewhere", Date: "2026-01-02", Until: "2026-12-31", Note: "a note",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c, err := Parse("empty", nil); err != nil || len(c.models) != 0 {
		t.Errorf("an empty file: %v", err)
	}
}

func TestParseErrorsNameTheLineAndTheReason(t *testing.T) {
	for name, c := range map[string]struct{ rows, want string }{
		"no provider":       {"a", `:4: name: "a" is not of the form provider/id`},
		"no id":             {"a/", `:4: name: "a/" is not`},
		"a blank in a name": {"a/b c", `:4: name: "a/b c" is not`},
		"too many fields":   {"a/b" + strings.Repeat("\t", 16), ":4: 17 fields, want 16"},
		"an alias":          {"a/b\tx,,y", `:4: aliases: "" is not an id`},
		"window":            {"a/b\t\t1e6", `:4: window: "1e6" is not a number of tokens`},
		"a window of 0":     {"a/b\t\t0", `:4: window: "0" is not`},
		"output":            {"a/b\t\t\t-5", `:4: max_output: "-5" is not`},
		"a signed number":   {"a/b\t\t\t+5", `:4: max_output: "+5" is not`},
		"output > window":   {"a/b\t\t5\t6", ":4: max_output: 6 is more than the window, 5"},
		"price":             {"a/b\t\t\t\tcheap\t1", `:4: input: "cheap" is not a price`},
		"a negative price":  {"a/b\t\t\t\t1\t-1", `:4: output: "-1" is not a price`},
		"no number":         {"a/b\t\t\t\t1\tNaN", `:4: output: "NaN" is not a price`},
		"a price too fine":  {"a/b\t\t\t\t1\t0.0000001", `:4: output: "0.0000001" is not a price`},
		"a price too high":  {"a/b\t\t\t\t1\t1000001", `:4: output: "1000001" is not a price`},
		"only an input":     {"a/b\t\t\t\t1", ":4: a price needs both input and output"},
		"only a read":       {"a/b\t\t\t\t\t\t1", ":4: a price needs both"},
		"only a tier":       {"a/b\t\t\t\t\t\t\t\t>5:?", ":4: a price needs both"},
		"a tier's form":     {"a/b\t\t\t\t1\t1\t\t\t5:?", `:4: tiers: "5:?" is neither`},
		"a tier's end":      {"a/b\t\t\t\t1\t1\t\t\t>5", `:4: tiers: ">5" is neither`},
		"a tier's start":    {"a/b\t\t\t\t1\t1\t\t\t>x:?", `:4: tiers: "x" is not a number`},
		"a tier of three":   {"a/b\t\t\t\t1\t1\t\t\t>5:1/2/3", `:4: tiers: ">5:1/2/3" is neither`},
		"a tier's price":    {"a/b\t\t\t\t1\t1\t\t\t>5:1/2/3/x", `:4: tiers: "x" is not a price`},
		"tiers that fall":   {"a/b\t\t\t\t1\t1\t\t\t>5:? >5:?", `:4: tiers: ">5:?" is not over`},
		"neither y nor n":   {"a/b\t\t\t\t\t\t\t\t\tyes", `:4: images: "yes" is neither y nor n`},
		"a date":            {"a/b\t\t\t\t\t\t\t\t\t\t\t\t\t2026", `:4: date: "2026" is not a date`},
		"a day too many":    {"a/b\t\t\t\t\t\t\t\t\t\t\t\t\t2026-02-30", `:4: date: "2026-02-30" is not`},
		"until a month":     {"a/b\t\t\t\t\t\t\t\t\t\t\t\t\t\t2026-02", `:4: until: "2026-02" is not a date`},
		"the first of two":  {"a/b\t\tx\ty", `:4: window: "x" is not`},
		"a later line":      {"a/b\n\n# c\na/c\t\tx", `:7: window: "x" is not`},
		"twice":             {"a/b\na/c\nA/B", ":6: a/b is already in line 4"},
		"an alias twice":    {"a/b\tx\na/c\tX", ":5: a/x is already in line 4"},
		"a name as alias":   {"a/b\na/c\tb", ":5: a/b is already in line 4"},
		"its own alias":     {"a/b\tb", ":4: a/b is already in line 4"},
	} {
		_, err := Parse("x.tsv", []byte("# first\n\n"+header+c.rows))
		if err == nil || !strings.HasPrefix(err.Error(), "catalog: x.tsv"+c.want) {
			t.Errorf("%s: %v; want …%s", name, err, c.want)
		}
		if !errdefs.Validation.Is(err) {
			t.Errorf("%s: class %v", name, errdefs.Of(err))
		}
	}
	if _, err := Parse("x.tsv", []byte("# first\na/b\n")); err == nil || !strings.HasPrefix(err.Error(), "catalog: x.tsv:2: the first row has to be the header") {
		t.Errorf("no header: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	start := shipped[:4000] // all of it would slow the search down
	f.Add(start[:bytes.LastIndexByte(start, '\n')])
	for _, s := range []string{
		"", "# only a comment", header, header + "a/b", header + "a/b\tc,d\t9\t8\t1\t2\t0.1\t\t>5:1/2/3/4 >6:?\ty\tn\ty\ts\t2026-01\t2026-01-02\tn",
		header + "A/B\na/b", header + "a/b\t\t\t\t1\t1\t\t\t>", header + "a/b\r\n\r\n/\t",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data)
		if err != nil {
			if c != nil || !errdefs.Validation.Is(err) || !strings.HasPrefix(err.Error(), "catalog: f:") {
				t.Fatalf("%v, %v", c, err)
			}
			return
		}
		for m := range c.All() {
			if got, ok := c.Lookup(m.Name); !ok || key(got) != key(m) {
				t.Fatalf("%q isn't found by its name", m.Name)
			}
			for _, alias := range m.Aliases {
				if got, ok := c.Lookup(aliasKey(m, alias)); !ok || got.Name != m.Name {
					t.Fatalf("%q isn't found by its alias %q", m.Name, alias)
				}
			}
			if micros, known := m.Cost(model.Usage{Input: 1000, Output: 1000, CacheRead: 1000, CacheWrite: 1000}); micros < 0 || micros > 0 && !known {
				t.Fatalf("%q costs %d, %t", m.Name, micros, known)
			}
		}
	})
}
