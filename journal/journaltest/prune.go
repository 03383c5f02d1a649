package journaltest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/journal"
)

var prunings = []check{
	{"what is old goes, the oldest first, but nothing that is driven, unfinished or shared", func(t *testing.T, s journal.Store) {
		ctx := context.Background()
		done := journal.Entry{Data: journal.RunFinished{Status: "completed"}}
		text := big("one", 20_000)
		for i, name := range []string{"parent", "driven", "old", "unfinished", "new"} {
			add(t, s, name, 0, at(i, run("x", "u")), at(i, said(text)), at(10+i, done))
		}
		add(t, s, "unfinished", 3, at(13, run("x", "u")))
		add(t, s, "other's", 0, at(5, run("y", "u")), at(6, done))
		fork(t, s, "fork", "parent", 2)
		allowed(t, s.Lease(ctx, "driven", "me", time.Now().Add(time.Hour)), "lease")
		prunes := func(r journal.Retention, want ...string) {
			t.Helper()
			if got, err := journal.Prune(ctx, s, r); err != nil || !slices.Equal(got, want) {
				t.Errorf("%+v: pruned %q, want %q: %v", r, got, want, err)
			}
		}
		before := at(14, done).Time
		prunes(journal.Retention{Agent: "x", User: "u", Before: before, Keep: 6})
		prunes(journal.Retention{Agent: "x", User: "u", Before: before, DryRun: true}, "parent", "old")
		prunes(journal.Retention{Agent: "x", User: "u", Before: before}, "parent", "old")
		holds(t, s, "parent")
		holds(t, s, "old")
		holds(t, s, "fork", "[run.started]", text, "[session.created]")
		if got := names(t, s, journal.Query{}); !slices.Equal(got, []string{"fork", "new", "unfinished", "driven", "other's"}) {
			t.Errorf("%q are left", got)
		}
		allowed(t, s.Lease(ctx, "driven", "me", time.Time{}), "the driver ends")
		prunes(journal.Retention{Before: before, Unfinished: true}, "other's", "driven", "unfinished")
		prunes(journal.Retention{Keep: 1}, "new")
		holds(t, s, "fork", "[run.started]", text, "[session.created]")
	}},
}
