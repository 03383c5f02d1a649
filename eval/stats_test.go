package eval

import (
	"math"
	"math/rand/v2"
	"testing"
)

func about(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if math.Abs(got-want) > by {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestTheIntervalIsWilsons(t *testing.T) {
	for _, c := range []struct {
		passed, of int
		low, high  float64
	}{ // from the formula, by hand and to four digits; 0/10 and 10/10 are in Brown, Cai, DasGupta
		{8, 10, 0.4902, 0.9433}, {0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {1, 1, 0.2065, 1}, {50, 100, 0.4038, 0.5962}, {0, 0, 0, 1},
	} {
		i := Wilson(float64(c.passed)/math.Max(1, float64(c.of)), c.of)
		about(t, "low", i.Low, c.low, 0.0001)
		about(t, "high", i.High, c.high, 0.0001)
	}
}

// Of many suites, the interval has the true rate in it 19 times of 20, over the rates; and of values between 0 and 1 no less often.
func TestTheIntervalHasTheTruthInIt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{5, 20, 100} {
		rates, values, tries := 0, 0, 40000
		for range tries {
			p := r.Float64()
			passed, sum := 0, 0.0
			for range n {
				if r.Float64() < p {
					passed++
				}
				sum += p + (r.Float64()-0.5)*2*math.Min(p, 1-p) // anything of mean p
			}
			if i := Wilson(float64(passed)/float64(n), n); i.Low <= p && p <= i.High {
				rates++
			}
			if i := Wilson(sum/float64(n), n); i.Low <= p && p <= i.High {
				values++
			}
		}
		about(t, "coverage of rates", float64(rates)/float64(tries), 0.95, 0.01)
		if share := float64(values) / float64(tries); share < 0.95 {
			t.Errorf("of means of %d values only %v are in their interval", n, share)
		}
	}
}

func TestTheChanceIsFishers(t *testing.T) {
	for _, c := range []struct {
		name  string
		cases []change
		want  float64
	}{
		{"the lady tasting tea", []change{{1, 4, 3, 4}}, 17.0 / 70}, // Fisher's own example: (1 + 16) / 70
		{"all to none", []change{{0, 5, 5, 5}}, 1.0 / 252},
		{"nothing changed: of 6 passes in 10, C(5,a) C(5,6-a) / C(10,6), a up to 3", []change{{3, 5, 3, 5}}, (5*1 + 10*5 + 10*10) / 210.0},
		{"better", []change{{5, 5, 0, 5}}, 1},
		{"one repeat each, five fell: the sign test", []change{{0, 1, 1, 1}, {0, 1, 1, 1}, {0, 1, 1, 1}, {0, 1, 1, 1}, {0, 1, 1, 1}, {1, 1, 1, 1}, {0, 1, 0, 1}}, 1.0 / 32},
		{"and one rose", []change{{0, 1, 1, 1}, {0, 1, 1, 1}, {0, 1, 1, 1}, {0, 1, 1, 1}, {0, 1, 1, 1}, {1, 1, 0, 1}}, 7.0 / 64},
		{"one that is not there", []change{{0, 0, 5, 5}}, 1},
		{"no cases", nil, 1},
	} {
		about(t, c.name, chance(c.cases), c.want, 1e-9)
	}
}

// A suite in which nothing changes, run again and again against a baseline that was itself run once: the rule says regression no more often than FalseAlarms, however many cases, repeats and rates there are. And where much has changed it says so.
func TestNoiseIsNoRegressionAndADropIsOne(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(p float64, n int) (passed int) {
		for range n {
			if r.Float64() < p {
				passed++
			}
		}
		return passed
	}
	regressed := func(rates []float64, n int, drop float64) bool {
		var all []change
		levelAll, levelOne := levels(1, len(rates))
		one := false
		for _, p := range rates {
			c := change{draw(math.Max(0, p-drop), n), n, draw(p, n), n}
			one = one || chance([]change{c}) <= levelOne
			all = append(all, c)
		}
		return one || chance(all) <= levelAll
	}
	for _, c := range []struct {
		cases, repeats int
		finds          float64 // of drops by 0.4
	}{{1, 20, 0.5}, {10, 5, 0.8}, {40, 1, 0.8}, {30, 10, 0.99}} {
		falsely, rightly, tries := 0, 0, 2000
		for range tries {
			rates := make([]float64, c.cases)
			for i := range rates {
				rates[i] = 0.5 + r.Float64()/2
			}
			if regressed(rates, c.repeats, 0) {
				falsely++
			}
			if regressed(rates, c.repeats, 0.4) {
				rightly++
			}
		}
		if share := float64(falsely) / float64(tries); share > FalseAlarms {
			t.Errorf("%d cases × %d: noise is a regression in %v of all runs", c.cases, c.repeats, share)
		}
		if share := float64(rightly) / float64(tries); share < c.finds {
			t.Errorf("%d cases × %d: a drop by 0.4 is found in %v of all runs, want %v", c.cases, c.repeats, share, c.finds)
		}
	}
}
