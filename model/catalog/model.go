package catalog

import "time"

// Model is a row of the catalogue. Read-only when it comes from a [Catalog]: Aliases and Price are shared.
type Model struct {
	Name      string   // provider/id, the key: "anthropic/claude-opus-5-5"
	Aliases   []string // further ids of the same provider, without it: "claude-opus-4-0"
	Window    int      // context window in tokens, input and output together; 0: unknown
	MaxOutput int      // the most tokens of one reply; 0: unknown
	Price     *Price   // nil: unknown
	Images    Support  // image files in messages
	Documents Support  // PDF files in messages
	Reasoning Support  // the model can think before it answers
	Source    string   // where the figures are from, several separated by "; "
	Date      string   // YYYY-MM or YYYY-MM-DD: what the source speaks for, not when it was read
	Until     string   // YYYY-MM-DD: the last day that Price is known to hold, as with a promotion; "": no end is known
	Note      string   // what the columns can't say
}

// Expired reports whether t, in UTC, is after Until. [Model.Cost] looks at no clock: who wants no cost from an expired price asks
// here first.
func (m Model) Expired(t time.Time) bool {
	return m.Until != "" && t.UTC().Format(time.DateOnly) > m.Until
}

// Price is in US dollars per million tokens. A price of 0 is known, and free.
type Price struct {
	Input      float64  // tokens neither read from a cache nor written to one
	Output     float64  // reasoning included
	CacheRead  *float64 // nil: unknown
	CacheWrite *float64 // nil: unknown; a vendor that doesn't charge for writes doesn't report any either
	Tiers      []Tier   // dearer rates for long prompts; empty: one price at any length
}

// Tier holds the rates of a whole request, in US dollars per million tokens, once its prompt is longer than Over. Nil is unknown;
// a tier of four unknowns is one that is known to exist, but not what it costs.
type Tier struct {
	Over                                 int // tokens of the prompt, cached ones included; the tier begins with one more
	Input, Output, CacheRead, CacheWrite *float64
}

// Support says whether a model can do something. The zero value is [Unknown].
type Support uint8

// The values of a Support.
const (
	Unknown Support = iota
	No
	Yes
)

// Or gives what is known, and otherwise what the caller takes for granted.
func (s Support) Or(unknown bool) bool {
	if s == Unknown {
		return unknown
	}
	return s == Yes
}

// String gives "yes", "no" or "unknown".
func (s Support) String() string {
	switch s {
	case Yes:
		return "yes"
	case No:
		return "no"
	}
	return "unknown"
}
