package eval

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
)

// Score is what a scorer says of a sample.
type Score struct {
	Value   float64 // how good, from 0 to 1
	Pass    bool    // good enough
	Why     string  // in a few words, for people; needed where it isn't plain
	Skipped bool    // the scorer has nothing to say of this sample, which is not counted; Why says why
}

// Scorer rates samples. Implementations are safe for concurrent use. The error is that nothing could be said: it is an error of the eval, never a low score.
//
// A scorer's name stands in reports and baselines. It is what String gives, if there is such a method, or its type; [Named] gives another one.
type Scorer interface {
	Score(ctx context.Context, s Sample) (Score, error)
}

// ScorerFunc is a Scorer made of a function; give it a name by [Named].
type ScorerFunc func(ctx context.Context, s Sample) (Score, error)

// Score calls the function.
func (f ScorerFunc) Score(ctx context.Context, s Sample) (Score, error) { return f(ctx, s) }

// Named gives a scorer another name. A change of the name is another scorer to a baseline.
func Named(name string, s Scorer) Scorer { return named{s, name} }

type named struct {
	Scorer
	name string
}

func (n named) String() string { return n.name }
func (n named) check() error   { return checked(n.Scorer) }

// AtLeast is s, which passes where its value is at least least, from 0 to 1, whatever s says.
func AtLeast(least float64, s Scorer) Scorer { return atLeast{s, least} }

type atLeast struct {
	Scorer
	least float64
}

func (a atLeast) String() string { return fmt.Sprintf("%s >= %v", nameOf(a.Scorer), a.least) }

func (a atLeast) check() error {
	if !(a.least >= 0 && a.least <= 1) {
		return errdefs.Validation.Errorf("at least %v can't be: values are from 0 to 1", a.least)
	}
	return checked(a.Scorer)
}

func (a atLeast) Score(ctx context.Context, s Sample) (Score, error) {
	sc, err := a.Scorer.Score(ctx, s)
	sc.Pass = sc.Value >= a.least
	return sc, err
}

// nameOf is a scorer's name.
func nameOf(s Scorer) string {
	if n, ok := s.(fmt.Stringer); ok {
		return n.String()
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", s), "*")
}

// checked says what is wrong with how a scorer was made: known before anything is run.
func checked(s Scorer) error {
	if c, ok := s.(interface{ check() error }); ok {
		return c.check()
	}
	return nil
}

// score asks a scorer; what it can't mean, and a panic, is an error.
func score(ctx context.Context, by Scorer, s Sample) (sc Score, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errdefs.Recovered("the scorer "+nameOf(by), p)
		}
	}()
	sc, err = by.Score(ctx, s)
	if err == nil && !sc.Skipped && !(sc.Value >= 0 && sc.Value <= 1) { // NaN too
		err = errdefs.Validation.Errorf("its value is %v: it has to be from 0 to 1", sc.Value)
	}
	return sc, err
}

// verdict is a score of all or nothing.
func verdict(wrong string) Score {
	if wrong == "" {
		return Score{Value: 1, Pass: true}
	}
	return Score{Why: wrong}
}

// share is a score of so many of so many.
func share(n, of int, wrong string) Score {
	return Score{Value: float64(n) / float64(max(of, 1)), Pass: wrong == "", Why: wrong}
}

// within is a score by a limit: what is beyond it is worth the less the farther it is.
func within(what string, got, limit float64, unit string) Score {
	if got <= limit {
		return Score{Value: 1, Pass: true}
	}
	return Score{Value: limit / got, Why: fmt.Sprintf("%s: %s%s, the limit is %s%s", what, figure(got), unit, figure(limit), unit)}
}

func figure(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.4g", f)
}

// completed is the scorer that each suite has, unless it says otherwise: that the agent came to an end.
type completed struct{}

func (completed) String() string { return "completed" }

func (completed) Score(_ context.Context, s Sample) (Score, error) {
	for i, t := range s.Turns {
		if t.Status != agent.StatusCompleted && t.Status != "" && !t.Discarded { // "": a turn made by hand
			return Score{Why: strings.TrimSpace(fmt.Sprintf("turn %d is %s: %v", i+1, t.Status, t.Err))}, nil
		}
	}
	return verdict(""), nil
}

// clip shortens a text for a report, at characters.
func clip(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}
