package eval

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// prompts makes a case of each text.
func prompts(texts ...string) (all []Case) {
	for _, text := range texts {
		all = append(all, Case{Name: text, Prompt: text, Want: text})
	}
	return all
}

var echo = said(func(c Case) string { return c.Prompt })

// kinds are those of the problems, with case and scorer.
func kinds(r *Report) string {
	var all []string
	for _, p := range r.Problems {
		all = append(all, strings.Trim(strings.Join([]string{string(p.Kind), p.Case, p.Scorer}, " "), " "))
	}
	return strings.Join(all, "; ")
}

func TestASuiteThatCantBeRunSaysAllThatIsWrongBeforeAnythingRuns(t *testing.T) {
	ran := false
	how := said(func(Case) string { ran = true; return "" })
	for name, c := range map[string]struct {
		suite Suite
		want  []string
	}{
		"nothing":           {Suite{}, []string{"no name", "how a case is run", "no cases"}},
		"cases":             {Suite{Name: "s", How: how, Cases: []Case{{Name: "a", Prompt: "x"}, {Name: "a", Prompt: "y"}, {Name: "b"}, {Prompt: "z"}}}, []string{`case "a": there are two`, `case "b": nothing is asked`, `case "": it has no name`}},
		"scorers":           {Suite{Name: "s", How: how, Cases: prompts("a"), Scorers: []Scorer{Exact(), Exact()}}, []string{`two scorers have the name "exact"`}},
		"a bad schema":      {Suite{Name: "s", How: how, Cases: prompts("a"), Scorers: []Scorer{JSONSchema([]byte(`{"type": 7}`))}}, []string{`scorer "json schema": it is no JSON Schema`}},
		"named, no less":    {Suite{Name: "s", How: how, Cases: prompts("a"), Scorers: []Scorer{Named("x", AtLeast(2, MaxSteps(1)))}}, []string{`scorer "x": at least 2`}},
		"at least, no less": {Suite{Name: "s", How: how, Cases: prompts("a"), Scorers: []Scorer{AtLeast(0.5, MaxSteps(0))}}, []string{"more than 0"}},
		"vars":              {Suite{Name: "s", How: how, Cases: []Case{{Name: "a", Prompt: "x", Vars: map[string]any{"f": func() {}}}}}, []string{`case "a": `}},
		"shares":            {Suite{Name: "s", How: how, Cases: prompts("a"), PassRate: 2, MaxErrors: -1, Repeats: -1}, []string{"PassRate", "MaxErrors is less", "Repeats is less"}},
		"no scorer":         {Suite{Name: "s", How: how, Cases: prompts("a"), AnyEnd: true}, []string{"nothing scores it"}},
		"two sources":       {Suite{Name: "s", How: how, Samples: []Sample{{Case: Case{Name: "x"}}}}, []string{"leave one or the other out"}},
		"no baseline":       {Suite{Name: "s", How: how, Cases: prompts("a"), Baseline: "testdata/none.json"}, []string{"testdata/none.json is not there: write it with PAWL_EVAL_UPDATE=1"}},
	} {
		_, err := Do(t.Context(), c.suite)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
		if err != nil && !errors.Is(err, errdefs.Validation) && !errors.Is(err, errdefs.NotFound) {
			t.Errorf("%s: %v has no class", name, err)
		}
	}
	if ran {
		t.Error("a case was run")
	}
}

func TestEachRepeatIsScoredAndWithoutABaselineEachHasToPass(t *testing.T) {
	var n atomic.Int64
	how := said(func(c Case) string {
		if c.Name == "b" && n.Add(1) == 2 {
			return "no"
		}
		return c.Prompt
	})
	r := done(t, Suite{Cases: prompts("a", "b"), How: how, Scorers: []Scorer{Exact()}, Repeats: 4})
	if got := kinds(r); got != "low b exact" {
		t.Errorf("%s", got)
	}
	if s := r.Cases[1].Scores[1]; s.Passed != 3 || s.Of != 4 || s.Rate != Wilson(0.75, 4) || s.Mean.Value != 0.75 {
		t.Errorf("%+v", s)
	}
	if s := r.Scores[1]; s.Scorer != "exact" || s.Passed != 7 || s.Of != 8 || r.Samples != 8 || len(r.Cases[0].Samples) != 4 {
		t.Errorf("%+v", s)
	}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), `b: exact: 3/4 passed (75 %, 95 % interval 30.1 % to 95.4 %), at least 100 % is asked for: got "no", want "b"`) {
		t.Error(err)
	}
	for rate, want := range map[float64]string{0.75: "", 0.76: "low b exact", -1: ""} {
		n.Store(0)
		if got := kinds(done(t, Suite{Cases: prompts("a", "b"), How: how, Scorers: []Scorer{Exact()}, Repeats: 4, PassRate: rate})); got != want {
			t.Errorf("at %v: %s", rate, got)
		}
	}
}

func TestAHowOfOnesOwnLeavesWhatItLikesForScorers(t *testing.T) {
	how := func(_ context.Context, c Case) (Sample, error) {
		return Sample{Turn: Turn{Answer: c.Prompt}, Data: "left by " + c.Name}, nil
	}
	by := Named("data", ScorerFunc(func(_ context.Context, s Sample) (Score, error) {
		if s.Data != "left by a" || s.Case.Want != "a" || s.Repeat < 1 || s.Repeat > 2 {
			return Score{Why: "it is not there"}, nil
		}
		return verdict(""), nil
	}))
	if r := done(t, Suite{Cases: prompts("a"), How: how, Scorers: []Scorer{by}, Repeats: 2}); r.Err() != nil {
		t.Error(r.Err())
	}
}

// A provider that is down, a scorer that fails or panics, a How that panics: none of it is a low score.
func TestErrorsAreNoLowScores(t *testing.T) {
	fine := func(f func(n int64) (Sample, error)) How {
		var n atomic.Int64
		return func(_ context.Context, c Case) (Sample, error) {
			if k := n.Add(1); k == 1 {
				return f(k)
			}
			return Sample{Turn: Turn{Answer: c.Prompt}}, nil
		}
	}
	var n atomic.Int64
	for name, c := range map[string]struct {
		how  How
		by   Scorer
		want string
	}{
		"the How fails":         {fine(func(int64) (Sample, error) { return Sample{}, errdefs.NotAvailable.Errorf("down") }), Exact(), "down"},
		"the How panics":        {fine(func(int64) (Sample, error) { panic("oops") }), Exact(), "oops"},
		"a scorer fails":        {echo, Named("x", ScorerFunc(func(context.Context, Sample) (Score, error) { return failFirst(&n, Score{Value: 1, Pass: true}) })), "x: judge down"},
		"a scorer panics":       {echo, Named("x", ScorerFunc(func(context.Context, Sample) (Score, error) { return failFirst(&n, panics) })), "oops"},
		"a value that can't be": {echo, Named("x", ScorerFunc(func(context.Context, Sample) (Score, error) { return failFirst(&n, Score{Value: 2}) })), "from 0 to 1"},
	} {
		n.Store(0)
		if name == "a value that can't be" || name == "a scorer panics" {
			n.Store(-1)
		}
		r := done(t, Suite{Cases: prompts("a"), How: c.how, Scorers: []Scorer{c.by}, Repeats: 3, Parallel: 1})
		if got := kinds(r); got != "error a" || !strings.Contains(r.Problems[0].Text, c.want) {
			t.Errorf("%s: %s: %v", name, got, r.Problems)
		}
		last := r.Scores[len(r.Scores)-1]
		if r.Errors != 1 || last.Passed != 2 || last.Of != 2 {
			t.Errorf("%s: %d errors, %+v", name, r.Errors, last)
		}
		if r := done(t, Suite{Cases: prompts("a"), How: func(context.Context, Case) (Sample, error) { return Sample{}, errors.New("down") }, Scorers: []Scorer{Exact()}, Repeats: 3, MaxErrors: 0.5}); kinds(r) != "note a; error" {
			t.Errorf("half may fail: %s", kinds(r))
		}
	}
	one := fine(func(int64) (Sample, error) { return Sample{}, errors.New("down") })
	if r := done(t, Suite{Cases: prompts("a"), How: one, Scorers: []Scorer{Exact()}, Repeats: 3, MaxErrors: 0.5}); r.Err() != nil || r.Errors != 1 {
		t.Errorf("one of three: %v", r.Err())
	}
}

var panics = Score{Why: "panic"}

// failFirst fails the first time; with a count from -1 it gives sc then, and afterwards what passes.
func failFirst(n *atomic.Int64, sc Score) (Score, error) {
	switch n.Add(1) {
	case 0:
		if sc == panics {
			panic("oops")
		}
		return sc, nil
	case 1:
		if sc.Pass {
			return sc, errors.New("judge down")
		}
	}
	return Score{Value: 1, Pass: true}, nil
}

func TestSoManySamplesAreAtWorkAtOnceAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		how := func(_ context.Context, c Case) (Sample, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return Sample{Turn: Turn{Answer: c.Prompt}}, nil
		}
		begun := time.Now()
		r := done(t, Suite{Cases: prompts("a", "b", "c", "d"), How: how, Scorers: []Scorer{Exact()}, Repeats: 3, Parallel: 4})
		if took := time.Since(begun); r.Err() != nil || most.Load() != 4 || took != 3*time.Second {
			t.Errorf("%v, %d at once, %v", r.Err(), most.Load(), took)
		}
	})
}

func TestASampleHasItsTimeAndACanceledSuiteEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, _ Case) (Sample, error) {
			<-ctx.Done()
			return Sample{}, ctx.Err()
		}
		begun := time.Now()
		r := done(t, Suite{Cases: prompts("a"), How: slow, Scorers: []Scorer{Exact()}, Timeout: time.Minute})
		if kinds(r) != "error a" || time.Since(begun) != time.Minute {
			t.Errorf("%s after %v", kinds(r), time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := Do(ctx, Suite{Name: "s", Cases: prompts("a", "b", "c"), How: slow, Scorers: []Scorer{Exact()}, Parallel: 1})
		if err != nil || r.Errors != 3 {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

const innerEnv = "PAWL_EVAL_INNER"

// The tests below are run by the test after them, in a process of their own.
func TestInner(t *testing.T) {
	if os.Getenv(innerEnv) == "" {
		t.Skip("another test runs it")
	}
	var mu sync.Mutex
	how := said(func(c Case) string {
		mu.Lock()
		defer mu.Unlock()
		f, err := os.OpenFile(filepath.Join(os.Getenv(innerEnv), "ran"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(c.Name + "\n")
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			panic(err)
		}
		if c.Name == "low" {
			return "no"
		}
		return c.Prompt
	})
	Run(t, Suite{Name: "suite", Cases: prompts("fine", "low"), How: how, Scorers: []Scorer{Exact()}, Repeats: 2, Baseline: filepath.Join(os.Getenv(innerEnv), "base.json")})
}

// Each of two cases waits for the other one to be at work.
func TestInnerSideBySide(t *testing.T) {
	if os.Getenv(innerEnv) == "" {
		t.Skip("another test runs it")
	}
	here := make(chan struct{})
	meet := func(ctx context.Context, _ Case) (Sample, error) {
		select {
		case here <- struct{}{}:
		case <-here:
		case <-time.After(20 * time.Second):
			return Sample{}, errors.New("nobody else is at work")
		}
		return Sample{Turn: Turn{Answer: "x"}}, ctx.Err()
	}
	Run(t, Suite{Name: "suite", Cases: prompts("a", "b"), How: meet})
}

func TestItFailsTestsThatGoTestRuns(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	inner := func(pattern string, env ...string) (out, ran string, failed bool) {
		t.Helper()
		_ = os.Remove(filepath.Join(dir, "ran"))
		cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.parallel=1", "-test.run", pattern)
		cmd.Env = append(os.Environ(), append(env, innerEnv+"="+dir)...)
		b, err := cmd.CombinedOutput()
		said, _ := os.ReadFile(filepath.Join(dir, "ran"))
		return string(b), string(said), err != nil
	}
	has := func(what, out string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", what, want, out)
			}
		}
	}
	out, ran, failed := inner("^TestInner$")
	if has("no baseline", out, "base.json is not there: write it with PAWL_EVAL_UPDATE=1"); !failed || ran != "" {
		t.Errorf("without a baseline: failed %v, ran %q", failed, ran)
	}
	if out, _, failed = inner("^TestInner$", UpdateEnv+"=1"); failed {
		t.Errorf("update fails:\n%s", out)
	}
	if out, _, failed = inner("^TestInner$"); failed { // low fails now as it did then
		t.Errorf("as in the baseline, and it fails:\n%s", out)
	}
	has("the log", out, "--- PASS: TestInner/suite/low", "exact", "2/4", "suite: 2 cases × 2")

	b, err := os.ReadFile(filepath.Join(dir, "base.json"))
	if err != nil {
		t.Fatal(err)
	}
	good := strings.ReplaceAll(strings.ReplaceAll(string(b), `"passed": 0`, `"passed": 40`), `"of": 2`, `"of": 40`)
	good = strings.ReplaceAll(good, `"passed": 2`, `"passed": 40`)
	if err := os.WriteFile(filepath.Join(dir, "base.json"), []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, failed = inner("^TestInner$")
	if has("a regression", out, "--- FAIL: TestInner/suite/low", "--- PASS: TestInner/suite/fine", "exact: 0/2 passed, and the baseline has 40/40"); !failed {
		t.Error("a regression does not fail the test")
	}
	out, ran, failed = inner("^TestInner$/^suite$/^fine$")
	if failed || ran != "fine\nfine\n" {
		t.Errorf("one case alone: failed %v, ran %q\n%s", failed, ran, out)
	}
	if out, _, failed = inner("^TestInner$/^suite$/^low$", UpdateEnv+"=1"); failed {
		t.Error(out)
	}
	if out, _, failed = inner("^TestInnerSideBySide$"); failed {
		t.Errorf("cases wait for each other:\n%s", out)
	}
	base, err := ReadBaseline(filepath.Join(dir, "base.json"))
	if err != nil || base.Cases["fine"].Scores["exact"].Of != 40 || base.Cases["low"].Scores["exact"] != (Tally{0, 2, 0}) {
		t.Errorf("a case alone, written anew: %+v, %v", base, err)
	}
	base.Cases["gone"] = base.Cases["fine"]
	if err := base.write(filepath.Join(dir, "base.json")); err != nil {
		t.Fatal(err)
	}
	out, _, failed = inner("^TestInner$")
	if has("a case is gone", out, `the baseline has the case "gone"`, "--- PASS: TestInner/suite/fine", "--- FAIL: TestInner ("); !failed {
		t.Error("what holds for all cases does not fail the test")
	}
}

func TestWhatEndsAGoroutineOrTakesTooLongIsAnError(t *testing.T) {
	s := held(t, 1, map[string]int{"a": 1, "b": 1})
	s.How = answering(map[string]int{"a": 1, "b": 1})
	s.Baseline, s.Scorers = "", append(s.Scorers, Named("ends", ScorerFunc(func(context.Context, Sample) (Score, error) { runtime.Goexit(); return Score{}, nil })))
	if got := kinds(done(t, s)); got != "error a; error b" {
		t.Errorf("a scorer that ends its goroutine: %s", got)
	}
	s.Timeout = time.Millisecond
	s.Scorers = []Scorer{Named("late", ScorerFunc(func(ctx context.Context, _ Sample) (Score, error) {
		<-ctx.Done()
		return Score{Value: 1, Pass: true}, nil
	}))}
	r := done(t, s)
	if got := kinds(r); got != "error a; error b" || !strings.Contains(r.String(), "it took longer than 1ms") {
		t.Errorf("a scorer that takes too long: %s\n%s", got, r)
	}
	s.PassRate = math.NaN()
	if _, err := Do(t.Context(), s); !errdefs.Validation.Is(err) {
		t.Errorf("a rate that is none: %v", err)
	}
}

// Several processes may write one file: it is always one of theirs, whole, and its owner's alone.
func TestFilesAreWrittenWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.json")
	var at sync.WaitGroup
	for n := range 8 {
		at.Go(func() {
			for range 20 {
				if err := replace(path, bytes.Repeat([]byte{byte('a' + n)}, 1<<16)); err != nil {
					t.Error(err)
				}
				if b, err := os.ReadFile(path); err != nil || len(b) != 1<<16 || bytes.Count(b, b[:1]) != len(b) {
					t.Errorf("%d bytes, %v", len(b), err)
				}
			}
		})
	}
	at.Wait()
	if i, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && i.Mode().Perm() != 0o600 {
		t.Error(i, err)
	}
	if all, _ := os.ReadDir(filepath.Dir(path)); len(all) != 1 {
		t.Errorf("%d files are left", len(all))
	}
}
