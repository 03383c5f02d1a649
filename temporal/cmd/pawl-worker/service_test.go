package main

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/cli"
)

// The setting says how often a model call is tried again, 0 for never, which for a worker is -1.
func TestTheSettingsRetriesAreTheWorkers(t *testing.T) {
	for setting, want := range map[int]int{0: -1, 1: 1, 3: 3} {
		if got := new(connection).config(cli.Work{Retries: setting}).Timing.Retries; got != want {
			t.Errorf("%d: %d, want %d", setting, got, want)
		}
	}
}
