package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// Report is what came of a suite.
type Report struct {
	Version  int          `json:"version"`
	Suite    string       `json:"suite"`
	Repeats  int          `json:"repeats"`
	Scores   []Stat       `json:"scores"` // of all cases together, in the order of the scorers
	Cases    []CaseReport `json:"cases"`  // that were run, in the order of the suite
	Problems []Problem    `json:"problems,omitempty"`
	Samples  int          `json:"samples"`
	Errors   int          `json:"errors"` // samples of which not all could be said
	Usage    model.Usage  `json:"usage"`
	Cost     *int64       `json:"cost_micros"` // millionths of a dollar; nil: the price of a call is not known. What judges cost is not in it
	Updated  bool         `json:"updated,omitempty"`
}

// CaseReport is what came of a case.
type CaseReport struct {
	Name    string         `json:"name"`
	Tags    []string       `json:"tags,omitempty"`
	Scores  []Stat         `json:"scores"`
	Samples []SampleReport `json:"samples"`

	errors int
}

// SampleReport is what came of a repeat.
type SampleReport struct {
	Repeat  int          `json:"repeat"`
	Session string       `json:"session,omitempty"`
	Status  agent.Status `json:"status,omitempty"`
	Answer  string       `json:"answer"`
	Scores  []Scored     `json:"scores,omitempty"`
	Errors  []string     `json:"errors,omitempty"` // why nothing could be said, by the run as a whole or by a scorer
	Usage   model.Usage  `json:"usage"`
	Cost    *int64       `json:"cost_micros"`
	Steps   int          `json:"steps"`
	Millis  int64        `json:"ms"`
	Sample  Sample       `json:"-"`
}

// Scored is a Score with its scorer's name.
type Scored struct {
	Scorer string
	Score
}

// MarshalJSON writes the score as reports have it.
func (s Scored) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Scorer  string  `json:"scorer"`
		Value   float64 `json:"value"`
		Pass    bool    `json:"pass"`
		Why     string  `json:"why,omitempty"`
		Skipped bool    `json:"skipped,omitempty"`
	}{s.Scorer, s.Value, s.Pass, s.Why, s.Skipped})
}

// Stat is what a scorer said of several samples.
type Stat struct {
	Scorer  string   `json:"scorer"`
	Passed  int      `json:"passed"`
	Of      int      `json:"of"` // that were scored
	Skipped int      `json:"skipped,omitempty"`
	Rate    Interval `json:"rate"`             // of those that passed
	Mean    Interval `json:"mean"`             // of the values
	Was     *Tally   `json:"was,omitempty"`    // in the baseline, of the cases that it has
	Chance  *float64 `json:"chance,omitempty"` // how probable it is that so few pass if nothing changed; where the baseline has it
	Metric  *Metric  `json:"metric,omitempty"` // of a pack's eval

	sum     float64
	changes []change
	why     string // of the first that did not pass
}

// Metric is a Stat under the name that a pack gives it.
type Metric struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Value float64 `json:"value"` // a counter: how many passed; boolean: the share that did; gauge and histogram: the mean, on the scale of the metric's range if that goes beyond 0 to 1
}

// Kind says what a Problem is.
type Kind string

// The kinds.
const (
	KindError      Kind = "error"      // something could not be run or scored
	KindLow        Kind = "low"        // less passed than PassRate asks for
	KindRegression Kind = "regression" // less passed than in the baseline, by more than chance
	KindBaseline   Kind = "baseline"   // the baseline and the suite don't fit
	KindNote       Kind = "note"       // does not fail the test
)

// Problem is something wrong.
type Problem struct {
	Kind   Kind   `json:"kind"`
	Case   string `json:"case,omitempty"` // "": all together
	Scorer string `json:"scorer,omitempty"`
	Text   string `json:"text"`
}

func (p Problem) fails() bool { return p.Kind != KindNote }

// Err is nil when nothing makes the suite fail, and else tells of all that does.
func (r *Report) Err() error {
	var all []error
	for _, p := range r.Problems {
		if p.fails() {
			all = append(all, errors.New(strings.TrimPrefix(p.Case+": "+p.Text, ": ")))
		}
	}
	return errors.Join(all...)
}

// add counts a score.
func (s *Stat) add(sc Score) {
	if sc.Skipped {
		s.Skipped++
		return
	}
	s.Of++
	s.sum += sc.Value
	if sc.Pass {
		s.Passed++
	} else if s.why == "" {
		s.why = sc.Why
	}
}

// settle reckons what follows from the counts.
func (s *Stat) settle(by Scorer) {
	n := float64(max(1, s.Of))
	s.Rate, s.Mean = Wilson(float64(s.Passed)/n, s.Of), Wilson(min(1, s.sum/n), s.Of)
	if m, ok := by.(interface{ metric(s *Stat) *Metric }); ok {
		s.Metric = m.metric(s)
	}
}

func (s *Stat) tally() Tally {
	return Tally{s.Passed, s.Of, math.Round(s.Mean.Value*1e6) / 1e6}
}

// String is the report as a test's log has it: the scorers, then each case that is not all right.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d cases × %d, %d tokens%s", r.Suite, len(r.Cases), r.Repeats, r.Usage.Total(), dollars(r.Cost))
	if r.Errors > 0 {
		fmt.Fprintf(&b, ", %d of %d samples with errors", r.Errors, r.Samples)
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scorer\tpassed\trate\t95 %\tmean\tbaseline")
	for _, s := range r.Scores {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.2f\t%s\n", s.Scorer, s.counts(), percent(s.Rate.Value), s.Rate.span(), s.Mean.Value, s.before())
	}
	_ = w.Flush() // a Builder takes all
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "%s: %s\n", p.Kind, strings.TrimPrefix(p.Case+": "+p.Text, ": "))
	}
	return b.String()
}

// Markdown is the report as a page: a table of the scorers, one of the cases, what is wrong, and why samples did not pass.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%d cases, %d samples, %d tokens%s. ", cell(r.Suite), len(r.Cases), r.Samples, r.Usage.Total(), dollars(r.Cost))
	switch {
	case r.Err() != nil:
		b.WriteString("**Failed.**\n")
	case r.Updated:
		b.WriteString("The baseline is written anew.\n")
	default:
		b.WriteString("Passed.\n")
	}
	b.WriteString("\n| scorer | passed | rate | 95 % interval | mean | baseline |\n|---|---|---|---|---|---|\n")
	for _, s := range r.Scores {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.2f | %s |\n", cell(s.Scorer), s.counts(), percent(s.Rate.Value), s.Rate.span(), s.Mean.Value, s.before())
	}
	if len(r.Problems) > 0 {
		b.WriteString("\n## Problems\n\n")
		for _, p := range r.Problems {
			fmt.Fprintf(&b, "- %s: %s\n", p.Kind, cell(strings.TrimPrefix(p.Case+": "+p.Text, ": ")))
		}
	}
	b.WriteString("\n## Cases\n\n| case | scorer | passed | 95 % interval | mean | baseline | why not |\n|---|---|---|---|---|---|---|\n")
	for _, c := range r.Cases {
		name := strings.TrimSuffix(c.Name+" #"+strings.Join(c.Tags, " #"), " #")
		for _, s := range c.Scores {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %.2f | %s | %s |\n", cell(name), cell(s.Scorer), s.counts(), s.Rate.span(), s.Mean.Value, s.before(), cell(clip(s.why, 200)))
		}
		if c.errors > 0 {
			fmt.Fprintf(&b, "| %s | *errors* | %d of %d samples | | | | %s |\n", cell(name), c.errors, len(c.Samples), cell(clip(c.firstError(), 200)))
		}
	}
	return b.String()
}

func (s Stat) counts() string {
	text := fmt.Sprintf("%d/%d", s.Passed, s.Of)
	if s.Skipped > 0 {
		text += fmt.Sprintf(" (%d skipped)", s.Skipped)
	}
	return text
}

func (s Stat) before() string {
	if s.Was == nil {
		return "–"
	}
	text := fmt.Sprintf("%d/%d", s.Was.Passed, s.Was.Of)
	if s.Chance != nil && *s.Chance < 1 {
		text += fmt.Sprintf(", chance %s", percent(*s.Chance))
	}
	return text
}

func (i Interval) span() string { return percent(i.Low) + " to " + percent(i.High) }

func percent(f float64) string {
	if f > 0 && f < 0.001 {
		return "<0.1 %"
	}
	return fmt.Sprintf("%.4g %%", math.Round(f*1000)/10)
}

func dollars(micros *int64) string {
	if micros == nil {
		return ", at a price that is not known"
	}
	return fmt.Sprintf(", $%.4f", float64(*micros)/1e6)
}

// cell is a text that stays in its cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(text)
}

func (c *CaseReport) firstError() string {
	for _, s := range c.Samples {
		if len(s.Errors) > 0 {
			return s.Errors[0]
		}
	}
	return ""
}

// Write writes the report into a directory, which it makes if need be: SUITE.md and SUITE.json, of the suite's name with "-" for what file names can't have everywhere.
func (r *Report) Write(dir string) error {
	name := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c) {
			return c
		}
		return '-'
	}, r.Suite)
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.MkdirAll(dir, 0o750)
	}
	if err == nil {
		err = replace(filepath.Join(dir, name+".json"), append(text, '\n'))
	}
	if err == nil {
		err = replace(filepath.Join(dir, name+".md"), []byte(r.Markdown()))
	}
	if err != nil {
		return errdefs.Internal.Errorf("eval: report: %w", err)
	}
	return nil
}
