package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Results of a mutation.
const (
	resultKilled   = "killed"
	resultSurvived = "survived"
	resultTimeout  = "timed out" // counts as noticed, too
)

// mutant is a chosen mutation and what became of it.
type mutant struct {
	*mutation
	Number  int
	Result  string
	By      string   // test that failed
	Ran     []string // packages whose tests ran
	Skipped int      // covering test binaries that the budget left out

	covering []string // import paths
}

// checkUnmutated runs all binaries without an active mutation and notes how long they take.
// Tests that only the changed form of the code disturbs, such as those that count
// allocations, are left out from then on. It returns their names.
func (r *runner) checkUnmutated(ctx context.Context, binaries []*binary) ([]string, error) {
	failures, err := r.runUnmutated(ctx, binaries)
	if err != nil || len(failures) == 0 {
		return nil, err
	}
	var packages []string
	for b := range failures {
		packages = append(packages, b.pkg)
	}
	slices.Sort(packages)
	plain, err := r.build(ctx, "plain", packages, nil)
	if err != nil {
		return nil, err
	}
	broken, err := r.runUnmutated(ctx, plain)
	if err == nil && len(broken) > 0 {
		err = fmt.Errorf("mutate: tests fail without any mutation. Repair them first, or name them with -skip.\n%s",
			r.outputs(broken))
	}
	if err != nil {
		return nil, err
	}
	return r.leaveOut(ctx, failures)
}

// leaveOut leaves the failed tests out of their binaries, and runs the rest again.
func (r *runner) leaveOut(ctx context.Context, failures map[*binary]outcome) (names []string, err error) {
	var again []*binary
	for b, res := range failures {
		for _, match := range failure.FindAllStringSubmatch(res.output, -1) {
			if match[1] != "" {
				b.skip = append(b.skip, match[1])
				names = append(names, r.module.name(b.pkg)+" "+match[1])
			}
		}
		again = append(again, b)
	}
	slices.Sort(names)
	failures, err = r.runUnmutated(ctx, again)
	if err == nil && len(failures) > 0 {
		err = fmt.Errorf("mutate: tests fail in code with mutations, though none is active\n%s", r.outputs(failures))
	}
	return names, err
}

// runUnmutated runs binaries without an active mutation, and returns those that fail.
func (r *runner) runUnmutated(ctx context.Context, binaries []*binary) (map[*binary]outcome, error) {
	failures := map[*binary]outcome{}
	err := r.each(ctx, binaries, func(ctx context.Context, b *binary) error {
		res := r.execute(ctx, b, []string{"PAWL_MUTANT=0"}, 10*time.Minute, false)
		b.duration = res.duration
		if res.failed && res.err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			failures[b] = res
		}
		return res.err
	})
	return failures, err
}

func (r *runner) outputs(failures map[*binary]outcome) string {
	var parts []string
	for b, res := range failures {
		parts = append(parts, "--- "+r.module.name(b.pkg)+"\n"+res.output)
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// judge runs the covering tests of each mutant, until one notices it.
func (r *runner) judge(ctx context.Context, mutants []*mutant, binaries []*binary, budget time.Duration) error {
	byPackage := map[string]*binary{}
	for _, b := range binaries {
		byPackage[b.pkg] = b
	}
	done := 0
	return inParallel(ctx, r.atOnce, mutants, func(ctx context.Context, m *mutant) error {
		var list []*binary
		for _, p := range m.covering {
			list = append(list, byPackage[p])
		}
		err := r.judgeOne(ctx, m, ordered(list, m.pkg.ImportPath), budget)
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			done++
			r.logf("%d of %d: %s:%d %s: %s", done, len(mutants), m.fileName(r.module), m.Line, m.Kind, m.Result)
		}
		return err
	})
}

// ordered puts a package's own tests first, then the fastest.
func ordered(list []*binary, own string) []*binary {
	slices.SortStableFunc(list, func(a, b *binary) int {
		if (a.pkg == own) != (b.pkg == own) {
			if a.pkg == own {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.duration, b.duration)
	})
	return list
}

func (r *runner) judgeOne(ctx context.Context, m *mutant, list []*binary, budget time.Duration) error {
	m.Result = resultSurvived
	env := []string{"PAWL_MUTANT=" + strconv.Itoa(m.Number)}
	var spent time.Duration
	for i, b := range list {
		if spent += b.duration; i > 0 && spent > budget {
			m.Skipped = len(list) - i
			return nil
		}
		m.Ran = append(m.Ran, r.module.name(b.pkg))
		res := r.execute(ctx, b, env, 5*b.duration+10*time.Second, true)
		switch {
		case res.err != nil:
			return res.err
		case res.timedOut:
			m.Result, m.By = resultTimeout, r.module.name(b.pkg)
			return nil
		case res.failed:
			m.Result, m.By = resultKilled, r.module.name(b.pkg)+" "+res.failedTest()
			return nil
		}
	}
	return nil
}

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)|^(panic|fatal error):`)

// failedTest returns the first test that failed, or else how the process ended.
func (o *outcome) failedTest() string {
	if !o.failed {
		return ""
	}
	if match := failure.FindStringSubmatch(o.output); match != nil {
		return match[1] + match[2]
	}
	return "exit"
}

// isComplete reports whether all tests ran, though some may have failed.
func (o *outcome) isComplete() bool {
	return !o.failed || !o.timedOut && strings.HasPrefix(o.failedTest(), "Test") && !strings.Contains(o.output, "\ngoroutine ")
}
