package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// meddled is a store in which something happens before a lease is taken, or in place of a deletion.
type meddled struct {
	journal.Store
	onLease  func(session string)
	onDelete func(session string) error
}

func (s meddled) Lease(ctx context.Context, session, owner string, until time.Time) error {
	if s.onLease != nil && until.After(time.Now()) {
		s.onLease(session)
	}
	return s.Store.Lease(ctx, session, owner, until)
}

func (s meddled) Delete(ctx context.Context, session string) error {
	if s.onDelete != nil {
		if err := s.onDelete(session); err != nil {
			return err
		}
	}
	return s.Store.Delete(ctx, session)
}

var day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// aged is a store with sessions s1, s2 …, the last entry of each a day younger, and completed.
func aged(t *testing.T, n int) journal.Store {
	t.Helper()
	s := journal.Memory()
	for i := 1; i <= n; i++ {
		age(t, s, fmt.Sprint("s", i), i, journal.RunFinished{Status: "completed"})
	}
	return s
}

// age makes a session whose last entry is of a day.
func age(t *testing.T, s journal.Store, session string, n int, last ...journal.Data) {
	t.Helper()
	at := day.AddDate(0, 0, n)
	entries := []journal.Entry{{Time: at, Data: journal.RunStarted{Agent: "agent " + session, User: "u", Owner: "o"}}}
	for _, d := range last {
		entries = append(entries, journal.Entry{Time: at, Data: d})
	}
	if err := s.Append(t.Context(), session, 0, entries...); err != nil {
		t.Fatal(err)
	}
}

func prunes(t *testing.T, s journal.Store, r journal.Retention, want ...string) {
	t.Helper()
	got, err := journal.Prune(t.Context(), s, r)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v deleted %q, want %q: %v", r, got, want, err)
	}
}

func left(t *testing.T, s journal.Store) (names []string) {
	t.Helper()
	for i, err := range s.Sessions(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, i.Session)
	}
	return names
}

func TestPruneDeletesWhatIsOldAndWhatIsTooMany(t *testing.T) {
	fourth := day.AddDate(0, 0, 4)
	for name, c := range map[string]struct {
		r    journal.Retention
		want []string
	}{
		"before":                {journal.Retention{Before: fourth}, []string{"s1", "s2", "s3"}},
		"before all":            {journal.Retention{Before: day}, nil},
		"all but some":          {journal.Retention{Keep: 4}, []string{"s1", "s2"}},
		"all but more":          {journal.Retention{Keep: 7}, nil},
		"both: old enough":      {journal.Retention{Before: fourth, Keep: 1}, []string{"s1", "s2", "s3"}},
		"both: few enough":      {journal.Retention{Before: fourth, Keep: 5}, []string{"s1"}},
		"an agent's":            {journal.Retention{Before: fourth, Agent: "agent s2"}, []string{"s2"}},
		"an agent's only one":   {journal.Retention{Keep: 1, Agent: "agent s2"}, nil},
		"a user's":              {journal.Retention{Before: fourth, User: "u"}, []string{"s1", "s2", "s3"}},
		"of somebody else":      {journal.Retention{Before: fourth, User: "v"}, nil},
		"the future is to come": {journal.Retention{Before: day.AddDate(1, 0, 0), Keep: 5}, []string{"s1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := aged(t, 6)
			dry := c.r
			dry.DryRun = true
			prunes(t, s, dry, c.want...)
			if got := left(t, s); len(got) != 6 {
				t.Errorf("a dry run left %q", got)
			}
			prunes(t, s, c.r, c.want...)
			if got := left(t, s); len(got) != 6-len(c.want) || slices.ContainsFunc(got, func(n string) bool { return slices.Contains(c.want, n) }) {
				t.Errorf("%q are left", got)
			}
			prunes(t, s, c.r)
		})
	}
}

func TestPruneOfEverythingIsRefused(t *testing.T) {
	s := aged(t, 2)
	for _, r := range []journal.Retention{{}, {Agent: "x"}, {Unfinished: true}, {Keep: -1}, {Keep: -1, Before: day}} {
		if got, err := journal.Prune(t.Context(), s, r); !errdefs.Validation.Is(err) || got != nil {
			t.Errorf("%+v: %q, %v", r, got, err)
		}
	}
	if got := left(t, s); len(got) != 2 {
		t.Errorf("%q are left", got)
	}
}

func TestPruneLeavesUnfinishedRunsUnlessAsked(t *testing.T) {
	s := journal.Memory()
	age(t, s, "running", 1)
	age(t, s, "parked", 2, journal.Parked{Cause: "awaiting_person"})
	age(t, s, "resumed", 3, journal.Parked{}, journal.Resumed{Owner: "o"})
	age(t, s, "failed", 4, journal.RunFinished{Status: "failed"})
	age(t, s, "canceled", 5, journal.RunFinished{Status: "canceled"})
	if err := s.Append(t.Context(), "fork", 1, journal.Entry{Time: day.AddDate(0, 0, 6), Data: journal.SessionCreated{Parent: "running", At: 1}}); err != nil {
		t.Fatal(err)
	}
	r := journal.Retention{Before: day.AddDate(0, 0, 7)}
	prunes(t, s, r, "failed", "canceled", "fork")
	r.Unfinished = true
	prunes(t, s, r, "running", "parked", "resumed")
}

func TestPruneLeavesWhatIsDrivenAndKeepsDriversOut(t *testing.T) {
	s := aged(t, 3)
	ctx, hour := t.Context(), time.Now().Add(time.Hour)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Lease(ctx, "s1", "driver", hour))
	must(s.Lease(ctx, "s2", "gone", time.Now().Add(-time.Hour)))
	tried := 0
	watched := meddled{Store: s, onDelete: func(session string) error {
		tried++
		if err := s.Lease(ctx, session, "driver", hour); !errdefs.Conflict.Is(err) {
			t.Errorf("a driver got %s while it was deleted: %v", session, err)
		}
		return nil
	}}
	r := journal.Retention{Before: day.AddDate(1, 0, 0), DryRun: true}
	prunes(t, watched, r, "s2", "s3")
	must(s.Lease(ctx, "s3", "driver", hour)) // a dry run leaves no lease
	must(s.Lease(ctx, "s3", "driver", time.Time{}))
	r.DryRun = false
	prunes(t, watched, r, "s2", "s3")
	if tried != 2 {
		t.Errorf("%d deletions", tried)
	}
	must(s.Lease(ctx, "s1", "driver", time.Time{}))
	prunes(t, watched, r, "s1")
}

func TestPruneLeavesWhatChangedSinceItWasListed(t *testing.T) {
	for name, change := range map[string]func(s journal.Store) error{
		"it went on": func(s journal.Store) error {
			return s.Append(context.Background(), "s2", 2, journal.Entry{Data: journal.Resumed{Owner: "o"}})
		},
		"it was made again": func(s journal.Store) error {
			return errors.Join(s.Delete(context.Background(), "s2"), s.Append(context.Background(), "s2", 0, journal.Entry{Data: journal.SessionCreated{}}, journal.Entry{Data: journal.Parked{}}))
		},
		"it was made again and is shorter": func(s journal.Store) error {
			return errors.Join(s.Delete(context.Background(), "s2"), s.Append(context.Background(), "s2", 0, journal.Entry{Data: journal.SessionCreated{}}))
		},
		"it was deleted": func(s journal.Store) error { return s.Delete(context.Background(), "s2") },
	} {
		t.Run(name, func(t *testing.T) {
			s := aged(t, 3)
			prunes(t, meddled{Store: s, onLease: func(session string) {
				if session == "s2" {
					if err := change(s); err != nil {
						t.Error(err)
					}
				}
			}}, journal.Retention{Before: day.AddDate(1, 0, 0)}, "s1", "s3")
			if got := left(t, s); strings.Contains(name, "deleted") != (len(got) == 0) {
				t.Errorf("%q are left", got)
			}
			if err := s.Lease(t.Context(), "s2", "driver", time.Now().Add(time.Hour)); err != nil && !errdefs.NotFound.Is(err) {
				t.Errorf("its lease was kept: %v", err)
			}
		})
	}
	s := aged(t, 3)
	prunes(t, meddled{Store: s, onDelete: func(session string) error { // as if another prune were faster
		if session == "s2" {
			return s.Delete(context.Background(), session)
		}
		return nil
	}}, journal.Retention{Before: day.AddDate(1, 0, 0)}, "s1", "s3")
}

func TestPruneSaysHowFarItCame(t *testing.T) {
	broken := errdefs.NotAvailable.Errorf("the disk is gone")
	ctx, cancel := context.WithCancel(t.Context())
	for name, c := range map[string]struct {
		ctx      context.Context
		onDelete func(session string) error
		fails    func(error) bool
	}{
		"an error": {t.Context(), func(session string) error {
			if session == "s3" {
				return broken
			}
			return nil
		}, func(err error) bool { return errors.Is(err, broken) && strings.Contains(err.Error(), "session s3") }},
		"a cancel": {ctx, func(session string) error {
			if session == "s3" {
				cancel()
			}
			return nil
		}, errdefs.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			s := aged(t, 5)
			got, err := journal.Prune(c.ctx, meddled{Store: s, onDelete: c.onDelete}, journal.Retention{Keep: 1})
			if !slices.Equal(got, []string{"s1", "s2"}) || !c.fails(err) {
				t.Errorf("%q, %v", got, err)
			}
			if err := s.Lease(t.Context(), "s3", "driver", time.Now().Add(time.Hour)); err != nil {
				t.Errorf("its lease was kept: %v", err)
			}
			if got := left(t, s); !slices.Equal(got, []string{"s5", "s4", "s3"}) {
				t.Errorf("%q are left", got)
			}
		})
	}
	if _, err := journal.Prune(ctx, aged(t, 2), journal.Retention{Keep: 1}); !errdefs.Canceled(err) {
		t.Errorf("cancelled before: %v", err)
	}
}
