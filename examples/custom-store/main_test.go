package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/internal/raced"
	"github.com/pawl-dev/pawl/internal/readme"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/journaltest"
)

func TestMain(m *testing.M) { readme.Main(m, main) }

func open(t *testing.T, dir string) journal.Store {
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestItIsAStore(t *testing.T) {
	tier.SkipQuick(t, "the store writes each entry durably, which takes ten seconds")
	if raced.Enabled {
		t.Skip("with -race it takes a minute: scripts/test --all runs it without")
	}
	journaltest.Run(t, func(t *testing.T) journal.Store { return open(t, t.TempDir()) })
}

func TestItOutlivesItsProcess(t *testing.T) { journaltest.RunDurable(t, open) }

func TestTheSecondProcessKnowsWhatTheFirstWasTold(t *testing.T) {
	page := readme.Open(t, "examples/custom-store")
	page.Run()
	lists, err := filepath.Glob(filepath.Join(page.Dir, "tmp/*/list.txt"))
	if err != nil || len(lists) != 1 {
		t.Fatal(lists, err)
	}
	if b, err := os.ReadFile(lists[0]); err != nil || string(b) != "bread\nmilk\napples\n" {
		t.Errorf("%q %v", b, err)
	}
}
