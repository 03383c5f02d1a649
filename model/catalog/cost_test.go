package catalog

import (
	"math"
	"testing"

	"github.com/pawl-dev/pawl/model"
)

func TestCostAddsUpTheFourKindsOfTokens(t *testing.T) {
	m := Model{Price: &Price{Input: 4, Output: 20, CacheRead: new(0.2), CacheWrite: new(5.0)}}
	for name, c := range map[string]struct {
		usage model.Usage
		want  int64
	}{
		"nothing":                       {model.Usage{}, 0},
		"input":                         {model.Usage{Input: 1000}, 4000},
		"output":                        {model.Usage{Output: 1000}, 20_000},
		"reasoning is part of output":   {model.Usage{Output: 1000, Reasoning: 900}, 20_000},
		"reads":                         {model.Usage{CacheRead: 1000}, 200},
		"writes":                        {model.Usage{CacheWrite: 1000}, 5000},
		"all":                           {model.Usage{Input: 1, Output: 2, CacheRead: 10, CacheWrite: 3}, 4 + 40 + 2 + 15},
		"a million of each":             {model.Usage{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheWrite: 1e6}, 29_200_000},
		"0.4 is rounded down":           {model.Usage{CacheRead: 2}, 0},
		"0.6 is rounded up":             {model.Usage{CacheRead: 3}, 1},
		"only the sum is rounded: 10.4": {model.Usage{CacheRead: 2, CacheWrite: 2}, 10},
	} {
		if got, known := m.Cost(c.usage); !known || got != c.want {
			t.Errorf("%s: %d, %t; want %d", name, got, known, c.want)
		}
	}
}

func TestCostRoundsHalvesUpExactly(t *testing.T) {
	for _, c := range []struct {
		price  float64
		tokens int
		want   int64
	}{
		{0.5, 1, 1},
		{0.5, 3, 2},
		{0.25, 2, 1},
		{0.025, 20, 1},
		{0.005, 100, 1},
		{0.005, 99, 0},
		{0.1, 5, 1},
		{0.7, 5, 4},
		{0.000001, 500_000, 1},
		{0.000001, 499_999, 0},
		{1.15, 10, 12},
		{1.005, 100, 101}, // floats have these two just below the half
		{0.075, 1_000_000_000_000, 75_000_000_000},
	} {
		if got, known := (Model{Price: &Price{Input: c.price}}).Cost(model.Usage{Input: c.tokens}); !known || got != c.want {
			t.Errorf("%v × %d = %d, %t; want %d", c.price, c.tokens, got, known, c.want)
		}
	}
}

func TestCostTakesTheTierOfTheWholePrompt(t *testing.T) {
	m := Model{Price: &Price{Input: 1, Output: 10, CacheRead: new(0.1), CacheWrite: new(1.25), Tiers: []Tier{
		{Over: 500}, // nothing is known up here
		{Over: 100, Input: new(2.0), Output: new(15.0), CacheRead: new(0.2)},
	}}}
	for name, c := range map[string]struct {
		usage model.Usage
		want  int64
		known bool
	}{
		"at the border":                    {model.Usage{Input: 100}, 100, true},
		"one more, all of it":              {model.Usage{Input: 101}, 202, true},
		"output too":                       {model.Usage{Input: 101, Output: 10}, 352, true},
		"output doesn't make it longer":    {model.Usage{Input: 100, Output: 900}, 9100, true},
		"cached tokens do":                 {model.Usage{Input: 1, CacheRead: 100}, 22, true},
		"written ones do, without a price": {model.Usage{Input: 100, CacheWrite: 1}, 0, false},
		"still the first tier":             {model.Usage{Input: 500}, 1000, true},
		"a tier without figures":           {model.Usage{Input: 501}, 0, false},
	} {
		if got, known := m.Cost(c.usage); known != c.known || got != c.want {
			t.Errorf("%s: %d, %t; want %d, %t", name, got, known, c.want, c.known)
		}
	}
}

func TestTheCostOfWhatIsNotKnownIsNotZero(t *testing.T) {
	bare := &Price{Input: 1, Output: 2}
	all := model.Usage{Input: 1 << 59, Output: 1 << 59, CacheRead: 1 << 59, CacheWrite: 1 << 59}
	for name, c := range map[string]struct {
		price *Price
		usage model.Usage
	}{
		"no price":             {nil, model.Usage{Input: 1}},
		"no price, no usage":   {nil, model.Usage{}},
		"reads":                {bare, model.Usage{Input: 10, CacheRead: 1}},
		"writes":               {bare, model.Usage{Input: 10, CacheWrite: 1}},
		"a count below zero":   {bare, model.Usage{Input: -1}},
		"a count beyond sense": {bare, model.Usage{Input: math.MaxInt}},
		"a negative price":     {&Price{Input: -1}, model.Usage{Input: 1}},
		"no number":            {&Price{Input: math.NaN()}, model.Usage{Input: 1}},
		"infinite":             {&Price{Input: math.Inf(1)}, model.Usage{Input: 1}},
		"more than 64 bits":    {&Price{Input: 1e6, Output: 1e6, CacheRead: new(1e6), CacheWrite: new(1e6)}, all},
		"more than 63 bits":    {&Price{Input: 16}, model.Usage{Input: 1 << 59}},
	} {
		if got, known := (Model{Price: c.price}).Cost(c.usage); known || got != 0 {
			t.Errorf("%s: %d, %t", name, got, known)
		}
	}
	if got, known := (Model{Price: bare}).Cost(model.Usage{Input: 3, Output: 1}); !known || got != 5 {
		t.Error("what isn't needed may be unknown")
	}
	if got, known := (Model{Price: &Price{}}).Cost(model.Usage{Input: 3}); !known || got != 0 {
		t.Error("a price of 0 is known")
	}
}

func TestShippedPricesGiveTheVendorsBills(t *testing.T) {
	for _, c := range []struct {
		name  string
		usage model.Usage
		want  int64
		known bool
	}{
		{"anthropic/claude-opus-5-5", model.Usage{Input: 1000, Output: 500, CacheRead: 100_000, CacheWrite: 2000}, 44_000, true},
		{"anthropic/claude-haiku-5-5", model.Usage{Input: 50_000, CacheRead: 50_000, Output: 1000}, 6000, true},
		{"anthropic/claude-haiku-5-5", model.Usage{Input: 50_000, CacheRead: 50_001, Output: 1000}, 30_000, true},
		{"openai/gpt-6.1-terra", model.Usage{Input: 270_000, Output: 20_000}, 370_000, true},
		{"openai/gpt-6.1-terra", model.Usage{Input: 300_000, Output: 20_000}, 750_000, true},
		{"openai/gpt-6.2-astra", model.Usage{Input: 272_000, Output: 1000}, 2_216_000, true},
		{"openai/gpt-6.2-astra", model.Usage{Input: 272_001, Output: 1000}, 0, false},
		{"openai/gpt-6.2-astra", model.Usage{Input: 1000, CacheRead: 1}, 0, false},
		{"gemini/gemini-2.5-pro", model.Usage{Input: 200_001, Output: 1000}, 515_003, true},
		{"deepseek/deepseek-chat", model.Usage{Input: 1}, 0, false},
	} {
		m, ok := Default().Lookup(c.name)
		if got, known := m.Cost(c.usage); !ok || known != c.known || got != c.want {
			t.Errorf("%s %+v: %d, %t; want %d, %t", c.name, c.usage, got, known, c.want, c.known)
		}
	}
}
