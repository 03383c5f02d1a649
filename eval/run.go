package eval

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
)

// Run runs a suite as a test: a subtest for the suite, below it one for each case, so that -run TestName/suite/case runs that one alone. A case fails its subtest when it can't be scored, passes too little, or is worse than the baseline says; what holds for all
// cases together fails t. The report is logged (see it with -v, or when the test fails), and written where [Suite.ReportDir] says. A suite that can't be run ends the test.
//
// Cases are run side by side, as many samples at a time as [Suite.Parallel] says, whatever -parallel is. All of them have ended when Run returns.
func Run(t *testing.T, s Suite) *Report {
	t.Helper()
	r, err := begin(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Run(r.suite.Name, func(t *testing.T) {
		for i, c := range r.suite.Cases {
			t.Run(c.Name, func(t *testing.T) {
				wait := r.start(t.Context(), i)
				t.Parallel() // the work is under way; what waits for its turn is only this subtest
				for _, p := range r.concludeCase(i, wait()) {
					if p.fails() {
						t.Error(p.Text)
					} else {
						t.Log(p.Text)
					}
				}
			})
		}
	})
	rep, err := r.conclude()
	if err != nil {
		t.Error(err)
	}
	t.Log("\n" + rep.String())
	for _, p := range rep.Problems {
		if p.Case == "" && p.fails() {
			t.Error(p.Text)
		}
	}
	return rep
}

// Do runs a suite and gives its report, without a test: [Report.Err] says whether it failed. The error is of the suite, the baseline's file or the report's; what went wrong with samples is in the report. ctx ends what is under way, which is an error of the samples.
func Do(ctx context.Context, s Suite) (*Report, error) {
	r, err := begin(s)
	if err != nil {
		return nil, err
	}
	var waits []func() []SampleReport
	for i := range r.suite.Cases {
		waits = append(waits, r.start(ctx, i))
	}
	for i, wait := range waits {
		r.concludeCase(i, wait())
	}
	return r.conclude()
}

// runner is a suite under way.
type runner struct {
	suite Suite
	base  *Baseline     // nil: there is none
	slots chan struct{} // one for each sample at work

	scorers, pairs int // that are compared with the baseline: scorers, and pairs of a case and a scorer

	mu    sync.Mutex
	cases []*CaseReport // nil for those that are left out
}

func begin(s Suite) (*runner, error) {
	s, err := s.prepared()
	if err != nil {
		return nil, err
	}
	r := &runner{suite: s, slots: make(chan struct{}, s.Parallel), cases: make([]*CaseReport, len(s.Cases))}
	if s.Baseline == "" {
		return r, nil
	}
	r.base, err = ReadBaseline(s.Baseline)
	if err != nil && s.Update { // what can't be read is replaced
		r.base, err = nil, nil
	}
	if err == nil && r.base != nil && r.base.Suite != s.Name {
		err = errdefs.Validation.Errorf("eval: suite %q: the baseline %s is of the suite %q: give each its own file", s.Name, s.Baseline, r.base.Suite)
	}
	r.scorers, r.pairs = r.compared()
	return r, err
}

// start begins a case's samples, and gives what waits for them.
func (r *runner) start(ctx context.Context, i int) func() []SampleReport {
	c := r.suite.Cases[i]
	all := make([]SampleReport, r.suite.Repeats)
	var at sync.WaitGroup
	for n := range all {
		at.Go(func() {
			select {
			case r.slots <- struct{}{}:
				defer func() { <-r.slots }()
				all[n] = SampleReport{Repeat: n + 1, Errors: []string{"a scorer, or the How, ended its goroutine (runtime.Goexit), as t.FailNow does: give an error"}} // what is left when one does
				all[n] = r.sample(ctx, c, n+1)
			case <-ctx.Done():
				all[n] = SampleReport{Repeat: n + 1, Errors: []string{"it was not begun: " + context.Cause(ctx).Error()}}
			}
		})
	}
	return func() []SampleReport {
		at.Wait()
		return all
	}
}

// sample runs a case once, and scores what came of it.
func (r *runner) sample(ctx context.Context, c Case, repeat int) SampleReport {
	if r.suite.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.suite.Timeout)
		defer cancel()
	}
	s, err := r.run(ctx, c)
	s.Case = c
	if r.suite.Samples == nil {
		s.Repeat = repeat
	}
	out := SampleReport{Sample: s, Repeat: repeat, Session: s.Session, Status: s.Status, Answer: s.Answer, Usage: s.Usage, Cost: s.Cost, Steps: s.Steps, Millis: s.Duration.Milliseconds()}
	if err == nil {
		if err = s.judgeable(); err != nil {
			err = fmt.Errorf("the run is %s: %w", s.Status, err)
		}
	}
	if err != nil {
		out.Errors = append(out.Errors, err.Error())
		return out
	}
	for _, by := range r.suite.scorers(c) {
		sc, err := score(ctx, by, s)
		if err != nil {
			out.Errors = append(out.Errors, fmt.Sprintf("%s: %v", nameOf(by), err))
			continue
		}
		out.Scores = append(out.Scores, Scored{nameOf(by), sc})
	}
	if r.suite.Timeout > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		out.Errors = append(out.Errors, fmt.Sprintf("it took longer than %v", r.suite.Timeout))
	}
	return out
}

func (r *runner) run(ctx context.Context, c Case) (s Sample, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errdefs.Recovered("the How of the suite", p)
		}
	}()
	s, err = r.suite.How(ctx, c)
	if err == nil && len(s.Turns) == 0 { // made by hand
		if s.Status == "" {
			s.Status = agent.StatusCompleted
		}
		s.Turns = []Turn{s.Turn}
	}
	return s, err
}
