package catalog

import (
	"math"
	"math/bits"

	"github.com/pawl-dev/pawl/model"
)

const (
	perDollar = 1_000_000 // prices are counted in millionths of a dollar per million tokens: exact, where floats would drift
	maxPrice  = 1_000_000 // dollars per million tokens
	maxTokens = 1 << 60   // of one kind, far beyond any usage, so that sums can't overflow
)

// Cost is what u costs in millionths of a dollar, halves rounded up. It is unknown, and micros then 0, when the model has no price
// or lacks the one of a kind of token that u has: reads from a cache without a price for them, or a prompt in a tier whose rates
// are not known. Counts below zero and prices that are none (negative, NaN) are unknown as well.
//
// The tier follows the length of one prompt, so u has to be the usage of one call: sum up costs, not usages.
//
// Prices count to six decimals.
func (m Model) Cost(u model.Usage) (micros int64, known bool) {
	if m.Price == nil {
		return 0, false
	}
	for _, n := range [...]int{u.Input, u.Output, u.CacheRead, u.CacheWrite} {
		if n < 0 || int64(n) > maxTokens {
			return 0, false
		}
	}
	at := m.Price.at(int64(u.Input) + int64(u.CacheRead) + int64(u.CacheWrite))
	var sum total
	if !sum.add(u.Input, at.Input) || !sum.add(u.Output, at.Output) || !sum.add(u.CacheRead, at.CacheRead) || !sum.add(u.CacheWrite, at.CacheWrite) {
		return 0, false
	}
	return sum.micros()
}

// at gives the rates for a prompt of that many tokens: those of the highest tier that it is over.
func (p *Price) at(prompt int64) Tier {
	best := Tier{Over: -1, Input: &p.Input, Output: &p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	for _, t := range p.Tiers {
		if prompt > int64(t.Over) && t.Over > best.Over {
			best = t
		}
	}
	return best
}

// total is a sum of tokens times price, in millionths of a millionth of a dollar, of 128 bits.
type total struct{ hi, lo uint64 }

// add is false when a price is needed and there is none.
func (s *total) add(tokens int, price *float64) bool {
	if tokens == 0 {
		return true
	}
	if price == nil || !(*price >= 0 && *price <= maxPrice) { // in this form, NaN fails too
		return false
	}
	hi, lo := bits.Mul64(uint64(tokens), uint64(math.Round(*price*perDollar))) //nolint:gosec // both are checked to be small and not negative
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi, _ = bits.Add64(s.hi, hi, carry)
	return true
}

func (s total) micros() (int64, bool) {
	lo, carry := bits.Add64(s.lo, perDollar/2, 0)
	hi := s.hi + carry
	if hi >= perDollar {
		return 0, false // more than 64 bits can hold
	}
	q, _ := bits.Div64(hi, lo, perDollar)
	if q > math.MaxInt64 {
		return 0, false
	}
	return int64(q), true
}
