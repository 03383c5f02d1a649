package eval

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
)

// answering says for each case which of its repeats pass: the first so many.
func answering(passing map[string]int) How {
	left := make(chan map[string]int, 1)
	of := map[string]int{}
	for name, n := range passing {
		of[name] = n
	}
	left <- of
	return said(func(c Case) string {
		m := <-left
		defer func() { left <- m }()
		if m[c.Name]--; m[c.Name] >= 0 {
			return c.Want
		}
		return "no"
	})
}

// held is a suite with a baseline, in which so many repeats of each case passed.
func held(t *testing.T, repeats int, passed map[string]int) Suite {
	t.Helper()
	s := Suite{Name: "s", Scorers: []Scorer{Exact()}, Repeats: repeats, Baseline: filepath.Join(t.TempDir(), "base.json")}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		if _, ok := passed[name]; ok {
			s.Cases = append(s.Cases, prompts(name)...)
		}
	}
	first := s
	first.How, first.Update = answering(passed), true
	if r := done(t, first); r.Err() != nil || !r.Updated {
		t.Fatal(r.Err())
	}
	return s
}

func TestARegressionIsADropThatIsNotByChance(t *testing.T) {
	for name, c := range map[string]struct {
		repeats   int
		was, now  map[string]int
		strict    bool
		want, why string
	}{
		"the same":                            {5, map[string]int{"a": 3}, map[string]int{"a": 3}, false, "", ""},
		"one of five more fails":              {5, map[string]int{"a": 5}, map[string]int{"a": 4}, false, "", ""},
		"strictly, that is one":               {5, map[string]int{"a": 5}, map[string]int{"a": 4}, true, "regression a exact", "4/5 passed, and the baseline has 5/5"},
		"better is none":                      {5, map[string]int{"a": 0}, map[string]int{"a": 5}, true, "", ""},
		"none of ten is left":                 {10, map[string]int{"a": 10}, map[string]int{"a": 0}, false, "regression a exact; regression  exact", "by chance it would be so few with a probability of <0.1 %"},
		"five, to one":                        {5, map[string]int{"a": 5}, map[string]int{"a": 1}, false, "", ""}, // docs/evals.md says from where on
		"five, to none":                       {5, map[string]int{"a": 5}, map[string]int{"a": 0}, false, "regression a exact; regression  exact", ""},
		"ten, to five":                        {10, map[string]int{"a": 10}, map[string]int{"a": 5}, false, "", ""},
		"ten, to four":                        {10, map[string]int{"a": 10}, map[string]int{"a": 4}, false, "regression a exact; regression  exact", ""},
		"one repeat each, six of seven fall":  {1, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1}, map[string]int{"a": 1}, false, "", ""},
		"one repeat each, one of seven falls": {1, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1}, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1}, false, "", ""},
		"one repeat each, all seven fall":     {1, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1}, nil, false, "regression  exact", "over all cases of the baseline 0/7 passed, and it has 7/7"},
	} {
		s := held(t, c.repeats, c.was)
		s.How, s.Strict = answering(c.now), c.strict
		r := done(t, s)
		if got := kinds(r); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if err := r.Err(); c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatTheBaselineDoesNotHaveIsJudgedWithoutAndWhatIsGoneIsTold(t *testing.T) {
	s := held(t, 2, map[string]int{"a": 1, "b": 2})
	s.How = answering(map[string]int{"a": 1, "b": 2})
	if r := done(t, s); r.Err() != nil {
		t.Errorf("as it was: %v", r.Err())
	}
	changed := s
	changed.Cases = prompts("a", "b")
	changed.Cases[0].Want += " "
	changed.How = answering(map[string]int{"a": 1, "b": 2})
	if got := kinds(done(t, changed)); got != "note a; low a exact" {
		t.Errorf("other words: %s", got)
	}
	fewer := s
	fewer.Cases = prompts("b", "new")
	fewer.How = answering(map[string]int{"b": 2, "new": 2})
	if got := kinds(done(t, fewer)); got != "note new; baseline" {
		t.Errorf("a case less, and another one: %s", got)
	}
	unscored := s
	unscored.Scorers = nil
	if got := kinds(done(t, unscored)); got != "baseline a exact; baseline b exact" {
		t.Errorf("a scorer less: %s", got)
	}
	more := s
	more.Scorers = []Scorer{Exact(), Contains("zzz")}
	more.How = answering(map[string]int{"a": 1, "b": 2})
	if got := kinds(done(t, more)); got != "low a contains zzz; low b contains zzz" {
		t.Errorf("a scorer more: %s", got)
	}
	asked := s
	asked.PassRate = 0.9
	asked.How = answering(map[string]int{"a": 1, "b": 2})
	if got := kinds(done(t, asked)); got != "low a exact" {
		t.Errorf("with a pass rate: %s", got)
	}
}

func TestTheBaselineIsWrittenOfWhatRanAndIsTheSameBytes(t *testing.T) {
	s := held(t, 4, map[string]int{"a": 3, "b": 4})
	b, err := os.ReadFile(s.Baseline)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "baseline.json", string(b))

	t.Setenv(UpdateEnv, "1")
	s.Cases = append(prompts("a", "new"), Case{Name: "down", Prompt: "x", Want: "x"})
	how := answering(map[string]int{"a": 1, "new": 4})
	s.How = how
	if r := done(t, s); r.Err() != nil || kinds(r) != "note a exact" || !strings.Contains(r.String(), "exact: the baseline is written with 1/4, where it had 3/4") {
		t.Errorf("an update fails by low scores, or does not tell of one: %v %s\n%s", r.Err(), kinds(r), r)
	}
	base, err := ReadBaseline(s.Baseline)
	if err != nil || len(base.Cases) != 3 || base.Cases["a"].Scores["exact"] != (Tally{1, 4, 0.25}) || base.Cases["new"].Scores["exact"].Passed != 4 {
		t.Errorf("%+v, %v", base, err)
	}
	s.How = func(ctx context.Context, c Case) (Sample, error) {
		if c.Name == "a" {
			return Sample{}, errdefs.NotAvailable.Errorf("down")
		}
		return how(ctx, c)
	}
	if got := kinds(done(t, s)); got != "error a; note new exact" {
		t.Errorf("an update with errors: %s", got)
	}
	if base, err = ReadBaseline(s.Baseline); err != nil || base.Cases["a"].Scores["exact"] != (Tally{1, 4, 0.25}) || base.Cases["new"].Scores["exact"].Passed != 0 {
		t.Errorf("a case with an error keeps what the file has: %+v, %v", base, err)
	}
}

func TestABaselineIsReadStrictly(t *testing.T) {
	for text, want := range map[string]string{
		`{"version":1,"suite":"s","cases":{"a":{"hash":"x","scores":{"exact":{"passed":1,"of":2,"mean":0.5}}}}}`: "",
		`{"version":2,"suite":"s"}`:                                        "it has version 2, and this program reads 1 to 1",
		`{"suite":"s"}`:                                                    "it has version 0",
		`{"version":1,"suite":"s","case":{}}`:                              `unknown field "case"`,
		`{"version":1,"suite":"s","Cases":{}}`:                             "Cases",
		`{"version":1,"suite":"s","suite":"t"}`:                            "suite",
		`{"version":1,"cases":{"a":{"scores":{"x":{"passed":3,"of":2}}}}}`: `case "a", scorer "x": 3 of 2 passed`,
		`{"version":1`:                                                     "unexpected",
	} {
		path := filepath.Join(t.TempDir(), "b.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadBaseline(path)
		if want == "" && err != nil || want != "" && (!errdefs.Validation.Is(err) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	s := held(t, 1, map[string]int{"a": 1})
	s.How, s.Name = echo, "other"
	if _, err := Do(t.Context(), s); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), `is of the suite "s"`) {
		t.Error(err)
	}
}
