package chat

import (
	"slices"
	"time"
)

// sayings are what was said to a run, the oldest first.
type sayings []told

type told struct {
	text  string
	at    time.Time // since when it is on record; zero: it is not yet
	shown bool      // above, before the reply under way
}

// recorded says since when a text is on record.
func (all sayings) recorded(text string, at time.Time) {
	if i := slices.IndexFunc(all, func(s told) bool { return s.text == text && s.at.IsZero() }); i >= 0 {
		all[i].at = at
	}
}

// hears has the texts that a model call is about to hear, as they were on record before it began, and were not shown.
func (all sayings) hears(began time.Time) (texts []string) {
	for i := range all {
		if s := &all[i]; !s.shown && !s.at.IsZero() && !s.at.After(began) {
			s.shown, texts = true, append(texts, s.text)
		}
	}
	return texts
}

// heard says that a text was heard, and reports whether it was shown already.
func (all *sayings) heard(text string) (shown bool) {
	i := slices.IndexFunc(*all, func(s told) bool { return s.text == text })
	if i < 0 {
		return false
	}
	shown = (*all)[i].shown
	*all = slices.Delete(*all, i, i+1)
	return shown
}
