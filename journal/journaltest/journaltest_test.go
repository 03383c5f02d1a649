package journaltest_test

import (
	"testing"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/journaltest"
)

func TestMemoryIsAStore(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journal.Store { return journal.Memory() })
}

// What the broken ones of its kind are made from is none itself.
func TestAStoreWithAShelfIsAStore(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journal.Store { return newShelved(&shelved{}) })
}

func TestSamplesHaveEveryKindOnce(t *testing.T) {
	seen := map[journal.Kind]bool{}
	for _, e := range journaltest.Samples() {
		if seen[e.Data.Kind()] {
			t.Errorf("%s twice", e.Data.Kind())
		}
		seen[e.Data.Kind()] = true
	}
	for _, k := range journal.Kinds() {
		if !seen[k] {
			t.Errorf("no sample of %s", k)
		}
	}
}
