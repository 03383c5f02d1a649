package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// The environment says for all suites what no test should have in its code.
const (
	UpdateEnv = "PAWL_EVAL_UPDATE" // "1": as Suite.Update
	ReportEnv = "PAWL_EVAL_REPORT" // a directory: as Suite.ReportDir, where that is empty
)

// Suite says what is asked, how it is run, and what makes it good. [Run] runs it as a test, [Do] without one.
//
// The errors of a suite that can't be run (no name, two cases of one name, a case that asks nothing, a scorer that can't be made, a baseline that can't be read) are errdefs.Validation, before anything is run; of a baseline that is not there, NotFound.
type Suite struct {
	Name  string // stands in names of tests, reports and the baseline
	Cases []Case
	How   How // runs a case

	// Samples are sessions that are on record, such as [Recorded] gives, in place of Cases and How: nothing is run, each is scored once. Its Case, whose name is the session's, is yours to fill in: a Want, Scorers, another name.
	Samples []Sample

	// Scorers rate every sample, besides those of its case. One more is always there, unless AnyEnd: "completed" fails a run that did not come to its end: a limit was reached, the model refused or repeated itself, a hook ended it, it waits for a person.
	Scorers []Scorer
	AnyEnd  bool // runs may end as they like: the scorers say what that is worth

	Repeats  int           // how often each case is run. Default: 1. From one run nobody knows whether the next one comes to the same
	Parallel int           // how many samples are run and scored at the same time. Default: 8
	Timeout  time.Duration // of one sample, its scoring included; one that takes longer is an error. What does not end with its context is waited for. Default: none

	// PassRate is the share of a case's repeats that each scorer has to pass, from 0 to 1. Default: 1, or, with a baseline that has the case, whatever that has. Less than 0: none.
	PassRate float64
	// MaxErrors is the share of all samples of which nothing could be said, since a provider, a judge or a scorer failed, up to which the test passes. Such samples are in no rate. Default: 0.
	MaxErrors float64

	// Baseline is a file that says how the suite did before, such as testdata/NAME.json; "": none. Where a scorer passes less than it has, and that is a regression, the test fails: see [FalseAlarms] and docs/evals.md. A case that it doesn't have, or whose words
	// have changed since, is judged as without one; what it has and the suite has no more fails the test, since a check would be gone without a word. It has to be there, unless it is written.
	Baseline string
	// Strict takes any drop of a case's pass rate for a regression: for what has no chance in it, such as sessions on record, or a scripted model.
	Strict bool
	// Update writes the Baseline anew, in place of comparing: then only errors make the test fail, and a case with one keeps what the file has of it. Cases that a -run pattern left out keep theirs, too.
	Update bool
	// ReportDir is a directory that gets the report as NAME.md and NAME.json; it is made if need be. Default: that of [ReportEnv], or none.
	ReportDir string
}

// How runs a case once: in a session of its own, since repeats run at the same time. Its error, like a provider's that the Sample tells of, is an error of the eval and not a low score. [Agent], [Runtime] and [Conversation] make one; one of your own runs what it
// likes on a journal and gives what [Read] reads there.
type How func(ctx context.Context, c Case) (Sample, error)

// prepared gives the suite with its defaults, its samples as cases, or all that is wrong with it.
func (s Suite) prepared() (Suite, error) {
	var all []error
	wrong := func(format string, args ...any) { all = append(all, errdefs.Validation.Errorf(format, args...)) }
	if strings.TrimSpace(s.Name) == "" {
		wrong("it has no name")
	}
	if s.Samples != nil {
		if s.Cases != nil || s.How != nil || s.Repeats > 1 {
			wrong("it has samples that are on record, and Cases, How or Repeats: leave one or the other out")
		}
		s = s.recorded()
	} else if s.How == nil {
		wrong("nothing says how a case is run: give it a How, or Samples")
	}
	if len(s.Cases) == 0 {
		wrong("it has no cases")
	}
	for _, n := range []struct {
		what string
		f    float64
	}{{"Repeats", float64(s.Repeats)}, {"Parallel", float64(s.Parallel)}, {"Timeout", float64(s.Timeout)}, {"MaxErrors", s.MaxErrors}} {
		if !(n.f >= 0) {
			wrong("%s is less than 0", n.what)
		}
	}
	if !(s.PassRate <= 1) || s.MaxErrors > 1 { // NaN too
		wrong("PassRate and MaxErrors are shares, 1 at most")
	}
	s.Repeats = max(1, s.Repeats)
	if s.Parallel == 0 {
		s.Parallel = 8
	}
	s.Update = s.Baseline != "" && (s.Update || os.Getenv(UpdateEnv) == "1")
	if s.ReportDir == "" {
		s.ReportDir = os.Getenv(ReportEnv)
	}
	names := map[string]bool{}
	for _, c := range s.Cases {
		err := c.check()
		if s.Samples != nil {
			err = nil // it was asked
			if c.Name == "" {
				err = errdefs.Validation.Errorf("a sample has no name in its Case")
			}
		}
		if err == nil && names[c.Name] {
			err = errdefs.Validation.Errorf("there are two of that name")
		}
		if err == nil {
			err = s.checkScorers(c)
		}
		if err != nil {
			all = append(all, fmt.Errorf("case %q: %w", c.Name, err))
		}
		names[c.Name] = true
	}
	if err := errors.Join(all...); err != nil {
		return s, fmt.Errorf("eval: suite %q: %w", s.Name, err)
	}
	return s, nil
}

// recorded makes cases of the samples.
func (s Suite) recorded() Suite {
	of := map[string]Sample{}
	s.Cases = nil
	for _, sample := range s.Samples {
		of[sample.Case.Name] = sample
		s.Cases = append(s.Cases, sample.Case)
	}
	s.How = func(_ context.Context, c Case) (Sample, error) { return of[c.Name], nil }
	return s
}

// scorers are those of a case.
func (s Suite) scorers(c Case) []Scorer {
	if s.AnyEnd {
		return slices.Concat(s.Scorers, c.Scorers)
	}
	return slices.Concat([]Scorer{completed{}}, s.Scorers, c.Scorers)
}

func (s Suite) checkScorers(c Case) error {
	all := s.scorers(c)
	if len(all) == 0 {
		return errdefs.Validation.Errorf("nothing scores it: give the suite or the case a scorer")
	}
	names := map[string]bool{}
	for _, by := range all {
		if by == nil {
			return errdefs.Validation.Errorf("a scorer is nil")
		}
		name := nameOf(by)
		if err := checked(by); err != nil {
			return fmt.Errorf("scorer %q: %w", name, err)
		}
		if names[name] {
			return errdefs.Validation.Errorf("two scorers have the name %q: give one another name by eval.Named", name)
		}
		names[name] = true
	}
	return nil
}
