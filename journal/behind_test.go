package journal_test

import (
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

func TestWhoDrivesBehindAnEntryIsRefusedWhenTheSessionHasGotFurther(t *testing.T) {
	s := journal.Memory()
	stale, l := open(t, s), open(t, s)
	drive(t, l, "first")
	must(t, l.Append(ctx, finished(journal.RunFinished{Status: "completed"})))
	next := func(owner string) journal.Entry {
		return journal.Entry{Run: "r2", Data: journal.RunStarted{Owner: owner, Attempt: 1}}
	}
	if err := l.DriveBehind(ctx, "second", 2, next("other")); !errdefs.Validation.Is(err) {
		t.Error("another owner's entry:", err)
	}
	conflict(t, stale.DriveBehind(ctx, "second", 1, next("second")), "it saw only the first entry")
	must(t, l.DriveBehind(ctx, "second", 2, next("second")))
	conflict(t, stale.DriveBehind(ctx, "third", 2, next("third")), "somebody went on from there")
	if got := open(t, s).State(); got.Seq != 3 || got.Driver != "second" {
		t.Error(got.Seq, got.Driver)
	}
}
