package eval

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// MaxCost asks for a sample to cost at most so many US dollars, tasks included. A price that is not known is an error, not a cost of nothing.
func MaxCost(usd float64) Scorer {
	return &scorer{name: fmt.Sprintf("cost <= $%v", usd), wrong: positive(usd), score: func(_ context.Context, s Sample) (Score, error) {
		if s.Cost == nil {
			return Score{}, errdefs.NotAvailable.Errorf("the price of a call is not known: give the model a price in the catalogue, or leave the limit out")
		}
		return within("US dollars", float64(*s.Cost)/1e6, usd, ""), nil
	}}
}

// MaxTokens asks for at most so many tokens, in and out, cached or not, tasks included.
func MaxTokens(n int) Scorer {
	return limit(fmt.Sprintf("tokens <= %d", n), float64(n), "tokens", "", func(s Sample) float64 { return float64(s.Usage.Total()) })
}

// MaxSteps asks for at most so many model calls, tasks included.
func MaxSteps(n int) Scorer {
	return limit(fmt.Sprintf("steps <= %d", n), float64(n), "model calls", "", func(s Sample) float64 { return float64(s.Steps) })
}

// MaxDuration asks for a sample to take at most so long: the sum of its turns, by the times of the record.
func MaxDuration(d time.Duration) Scorer {
	return limit(fmt.Sprintf("duration <= %v", d), d.Seconds(), "duration", " s", func(s Sample) float64 { return s.Duration.Seconds() })
}

func limit(name string, most float64, what, unit string, got func(Sample) float64) Scorer {
	return &scorer{name: name, wrong: positive(most), score: func(_ context.Context, s Sample) (Score, error) { return within(what, got(s), most, unit), nil }}
}

func positive(f float64) error {
	if !(f > 0) {
		return errdefs.Validation.Errorf("a limit has to be more than 0")
	}
	return nil
}
