package eval

import "math"

// z95 is the 97.5th percentile of the normal distribution: 95 % lie between -z95 and z95.
const z95 = 1.959963984540054

// Interval is an estimate with its 95 % confidence interval, all from 0 to 1.
//
// It is the score interval of E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the American Statistical Association 22 (1927), which keeps near to 95 % for few repeats, and at 0 and 1 too, where the usual one
// (mean ± 1.96 standard errors) has no width: Brown, Cai, DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16 (2001). Of values between 0 and 1 it is used for the mean, and then rather too wide: a value in
// [0, 1] of mean m varies at most as much as one that is 1 with probability m, and 0 else. The same holds for samples of several cases together, whose rates differ.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Wilson is the Interval of the mean of n values from 0 to 1, such as of a pass rate. Without values it says nothing: 0 to 1.
func Wilson(mean float64, n int) Interval {
	if n <= 0 {
		return Interval{0, 0, 1}
	}
	k, z2 := float64(n), z95*z95
	middle := (mean + z2/(2*k)) / (1 + z2/k)
	half := z95 / (1 + z2/k) * math.Sqrt(mean*(1-mean)/k+z2/(4*k*k))
	return Interval{mean, min(mean, max(0, middle-half)), max(mean, min(1, middle+half))}
}

// change is what passed of a case, now and in the baseline.
type change struct{ passed, of, wasPassed, wasOf int }

// chance is how probable it is that so few or fewer passed now, in all cases together, if in none of them anything changed.
//
// It is Fisher's exact test, of one side, stratified by case: given how many passed of a case's repeats, then and now together, chance alone says how many of them are now's (a hypergeometric distribution), and what passed in all cases is the sum of
// these. See Mehta, Patel, Gray, "Computing an exact confidence interval for the common odds ratio in several 2×2 contingency tables", Journal of the American Statistical Association 80 (1985). It holds for any number of repeats, then and now, and cases
// that always pass, or never, take no part. With one repeat each it is the sign test.
func chance(cases []change) float64 {
	sum, least := []float64{1}, 0 // the distribution of how many passed now, from least on
	seen := 0
	for _, c := range cases {
		k, n := c.passed+c.wasPassed, c.of+c.wasOf
		if k == 0 || k == n || c.of == 0 || c.wasOf == 0 {
			continue
		}
		seen += c.passed
		low, high := max(0, k-c.wasOf), min(c.of, k)
		all := choose(n, k)
		next := make([]float64, len(sum)+high-low)
		for a := low; a <= high; a++ {
			p := math.Exp(choose(c.of, a) + choose(c.wasOf, k-a) - all)
			for i, q := range sum {
				next[i+a-low] += p * q
			}
		}
		sum, least = next, least+low
	}
	p := 0.0
	for i := 0; i < len(sum) && least+i <= seen; i++ {
		p += sum[i]
	}
	return min(1, p)
}

// choose is the logarithm of the binomial coefficient.
func choose(n, k int) float64 {
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return lg(n) - lg(k) - lg(n-k)
}

// FalseAlarms is how probable it is, at most, that chance alone makes a run of a suite fail that has as many repeats as you like and in which nothing changed.
const FalseAlarms = 0.05

// levels are the probabilities under which a drop of a scorer is a regression: in all cases together, and in one case. Half of FalseAlarms is for the one, half for the other, and each half is shared by all that are looked at (Bonferroni).
func levels(scorers, pairs int) (all, one float64) {
	return FalseAlarms / 2 / float64(max(1, scorers)), FalseAlarms / 2 / float64(max(1, pairs))
}
