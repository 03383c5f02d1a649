package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// TestMain lets the test binary stand for a tested one.
func TestMain(m *testing.M) {
	switch os.Getenv("PAWL_MUTATE_TEST_AS") {
	case "hang":
		time.Sleep(time.Hour) // until the runner kills it; select {} would be found a deadlock
	case "fail":
		_, _ = os.Stdout.WriteString("=== RUN\n--- FAIL: TestThat (0.00s)\nFAIL\n")
		os.Exit(1)
	case "pass":
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestRunner_Execute(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{scratch: t.TempDir(), env: os.Environ(), module: &module{path: "m"}}
	b := &binary{pkg: "m/a", path: self, dir: t.TempDir()}
	for _, tc := range []struct {
		as               string
		limit            time.Duration
		failed, timedOut bool
		test             string
	}{
		{"pass", time.Minute, false, false, ""},
		{"fail", time.Minute, true, false, "TestThat"},
		{"hang", 100 * time.Millisecond, true, true, "exit"},
	} {
		t.Run(tc.as, func(t *testing.T) {
			res := r.execute(t.Context(), b, []string{"PAWL_MUTATE_TEST_AS=" + tc.as}, tc.limit, true)
			if res.err != nil || res.failed != tc.failed || res.timedOut != tc.timedOut || res.failedTest() != tc.test {
				t.Errorf("%+v, failed test %q", res, res.failedTest())
			}
		})
	}
	left, err := os.ReadDir(r.scratch)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRunner_JudgeOne(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	list := []*binary{
		{pkg: "m/own", path: self, dir: t.TempDir(), duration: time.Second},
		{pkg: "m/fast", path: self, dir: t.TempDir(), duration: time.Second},
		{pkg: "m/slow", path: self, dir: t.TempDir(), duration: time.Hour},
	}
	for as, want := range map[string]mutant{
		"pass": {Result: resultSurvived, Ran: []string{"own", "fast"}, Skipped: 1},
		"fail": {Result: resultKilled, By: "own TestThat", Ran: []string{"own"}},
	} {
		r := &runner{
			scratch: t.TempDir(), module: &module{path: "m"}, env: append(os.Environ(), "PAWL_MUTATE_TEST_AS="+as),
		}
		got := &mutant{}
		if err := r.judgeOne(t.Context(), got, list, time.Minute); err != nil {
			t.Fatal(err)
		}
		if got.Result != want.Result || got.By != want.By || got.Skipped != want.Skipped || !cmp.Equal(got.Ran, want.Ran) {
			t.Errorf("%s: %+v", as, got)
		}
	}
}

func TestOrdered(t *testing.T) {
	list := ordered([]*binary{{pkg: "slow", duration: 3}, {pkg: "own", duration: 9}, {pkg: "fast", duration: 1}}, "own")
	if got := list[0].pkg + " " + list[1].pkg + " " + list[2].pkg; got != "own fast slow" {
		t.Errorf("order %s", got)
	}
}

func TestInParallel(t *testing.T) {
	var running, most, calls atomic.Int64
	fail := errors.New("fail")
	list := []int{1, 2, 3, 4, 5, 6}
	work := func(fails int) func(context.Context, int) error {
		return func(_ context.Context, n int) error {
			calls.Add(1)
			now := running.Add(1)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			running.Add(-1)
			if n == fails {
				return fail
			}
			return nil
		}
	}
	if err := inParallel(t.Context(), 2, list, work(0)); err != nil || calls.Load() != 6 || most.Load() > 2 {
		t.Errorf("%v after %d calls, %d at once", err, calls.Load(), most.Load())
	}
	calls.Store(0)
	if err := inParallel(t.Context(), 1, list, work(2)); !errors.Is(err, fail) || calls.Load() != 2 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

func TestBinary_Skipped(t *testing.T) {
	for _, tc := range []struct {
		everywhere, want string
		own              []string
	}{
		{"", "", nil},
		{"TestA", "TestA", nil},
		{"", "^(TestB|TestC)$", []string{"TestB", "TestC"}},
		{"TestA", "TestA|^(TestB)$", []string{"TestB"}},
	} {
		if got := (&binary{skip: tc.own}).skipped(tc.everywhere); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestLibraryFlags(t *testing.T) {
	const rapid = "pgregory.net/rapid"
	for _, p := range []*listed{{TestImports: []string{rapid}}, {XTestImports: []string{"testing", rapid}}} {
		if got := libraryFlags(p); !slices.Equal(got, []string{"-rapid.nofailfile"}) {
			t.Errorf("got %q", got)
		}
	}
	if got := libraryFlags(&listed{TestImports: []string{"testing"}}); got != nil {
		t.Errorf("a test without rapid does not know its flags: got %q", got)
	}
}

func TestTail(t *testing.T) {
	var out tail
	_, _ = out.Write([]byte("first" + strings.Repeat(".", 10*tailSize)))
	_, _ = out.Write([]byte("last"))
	if got := out.String(); !strings.HasPrefix(got, "first") || !strings.HasSuffix(got, "last") || len(got) > 4*tailSize {
		t.Errorf("%d bytes are kept, from %.9q", len(got), got)
	}
}

// The module of testdata has a package whose tests notice every mutation, and one whose own
// tests notice none.
func TestRun(t *testing.T) {
	tier.SkipQuick(t, "it builds and runs tests many times")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/tiny")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "report.json")
	var out, log bytes.Buffer
	status, err := run(t.Context(), []string{"-dir", dir, "-n", "100", "-fresh", "-json", file}, &out, &log)
	if status != 0 || err != nil {
		t.Fatalf("exit status %d: %v\n%s", status, err, &log)
	}
	rep, err := readReport(file)
	if err != nil {
		t.Fatal(err)
	}
	checkTiny(t, rep)
	if !strings.Contains(out.String(), "\t- return a < b\n\t+ return a <= b\n\ttests that passed: bad\n") {
		t.Errorf("the report lacks a survivor:\n%s", &out)
	}

	t.Run("the same seed chooses the same mutations", func(t *testing.T) {
		var list bytes.Buffer
		if status, err := run(t.Context(), []string{"-dir", dir, "-n", "100", "-list", "-json", file}, &list, &log); status != 0 || err != nil {
			t.Fatalf("exit status %d: %v\n%s", status, err, &log)
		}
		again, err := readReport(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rep.Mutants {
			if got, want := again.Mutants[i].Mutated, rep.Mutants[i].Mutated; got != want {
				t.Errorf("mutation %d is %q, was %q", i, got, want)
			}
		}
	})
	t.Run("a test that goes raises the share of survivors", func(t *testing.T) {
		if err := rep.write(file); err != nil {
			t.Fatal(err)
		}
		test := filepath.Join(dir, "user", "user_test.go")
		text, err := os.ReadFile(test)
		if err != nil {
			t.Fatal(err)
		}
		weaker := strings.ReplaceAll(string(text), "t.Errorf", "t.Logf")
		if err := os.WriteFile(test, []byte(weaker), 0o600); err != nil {
			t.Fatal(err)
		}
		status, err := run(t.Context(), []string{"-dir", dir, "-n", "100", "-baseline", file}, &out, &log)
		if status != 1 || err != nil || !strings.Contains(out.String(), "more survive than before: user: 3 of 3 survived") {
			t.Errorf("exit status %d: %v\n%s", status, err, &out)
		}
	})
	t.Run("failing tests stop the run", func(t *testing.T) {
		failing := "package bad\n\nimport \"testing\"\n\nfunc TestNo(t *testing.T) { t.Error(\"no\") }\n"
		if err := os.WriteFile(filepath.Join(dir, "bad", "no_test.go"), []byte(failing), 0o600); err != nil {
			t.Fatal(err)
		}
		status, err := run(t.Context(), []string{"-dir", dir, "-n", "100", "-in", "bad"}, &out, &log)
		if status != 2 || err == nil || !strings.Contains(err.Error(), "--- FAIL: TestNo") {
			t.Errorf("exit status %d: %v", status, err)
		}
		if status, err := run(t.Context(), []string{"-dir", dir, "-n", "100", "-in", "bad", "-skip", "TestNo"}, &out, &log); status != 0 {
			t.Errorf("with -skip: exit status %d: %v", status, err)
		}
	})
}

// checkTiny holds a report against what testdata/tiny is made for.
func checkTiny(t *testing.T, rep *report) {
	t.Helper()
	kinds := map[string]bool{}
	survivors := map[string]bool{}
	for _, m := range rep.Mutants {
		kinds[m.Kind] = true
		if m.Result != resultKilled {
			survivors[m.Function] = true
		}
	}
	if want := map[string]bool{"Smaller": true}; !cmp.Equal(survivors, want) {
		t.Errorf("mutations survive in %v, want %v", survivors, want)
	}
	all := []string{
		kindNegate, kindCompare, kindLogic, kindArithmetic, kindBound, kindDrop, kindDefer, kindNil, kindEarly, kindCase,
	}
	for _, kind := range all {
		if !kinds[kind] {
			t.Errorf("no mutation of the kind %q", kind)
		}
	}
	for _, p := range rep.Packages {
		if p.Package == "storetest" {
			t.Error("a kit for tests counts as product")
		}
		if unreached := p.NotCovered > 0; unreached != (p.Package == "bad") {
			t.Errorf("%d mutations of %s are not covered", p.NotCovered, p.Package)
		}
	}
}
