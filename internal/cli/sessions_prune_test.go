package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
)

// aged fills the world's journal with sessions of some age, and keeps it open for as long as during runs.
func (w world) aged(ages map[string]time.Duration, status string, during func(journal.Store)) {
	w.t.Helper()
	store, err := sqlite.Open(strings.TrimPrefix(w.journal, "sqlite:"))
	if err != nil {
		w.t.Fatal(err)
	}
	for name, age := range ages {
		at := time.Now().Add(-age)
		entries := []journal.Entry{{Time: at, Data: journal.RunStarted{Agent: "pawl", Owner: "o", Attempt: 1}}}
		if status != "running" {
			entries = append(entries, journal.Entry{Time: at, Data: journal.RunFinished{Status: status}})
		}
		if err := store.Append(w.t.Context(), name, 0, entries...); err != nil {
			w.t.Fatal(err)
		}
	}
	if during != nil {
		during(store)
	}
	if err := store.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) listed() string {
	w.t.Helper()
	var names []string
	for i, l := range strings.Split(strings.TrimSpace(w.sessions("list").out), "\n") {
		if i > 0 {
			names = append(names, strings.Fields(l)[0])
		}
	}
	return strings.Join(names, " ")
}

func TestOldSessionsArePruned(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	w := newWorld(t)
	w.aged(map[string]time.Duration{"a": 40 * day, "b": 31 * day, "c": 29 * day, "d": time.Hour}, "completed", nil)
	w.aged(map[string]time.Duration{"open": 50 * day}, "running", nil)
	for _, step := range []struct {
		args           []string
		out, err, left string
	}{
		{[]string{"--older-than", "100d"}, "", "0 sessions removed\n", "d c b a open"},
		{[]string{"--older-than", "30d", "--dry-run"}, "a\nb\n", "2 sessions would be removed\n", "d c b a open"},
		{[]string{"--older-than", "30d", "--keep", "3"}, "a\n", "1 session removed\n", "d c b open"},
		{[]string{"--older-than", "4w2d"}, "b\n", "1 session removed\n", "d c open"},
		{[]string{"--older-than", "7w", "--unfinished"}, "open\n", "1 session removed\n", "d c"},
		{[]string{"--keep", "1"}, "c\n", "1 session removed\n", "d"},
	} {
		r := w.sessions(append([]string{"prune"}, step.args...)...)
		if r.code != 0 || r.out != step.out || r.err != step.err {
			t.Errorf("%q: %+v, want %q and %q", step.args, r, step.out, step.err)
		}
		if got := w.listed(); got != step.left {
			t.Errorf("%q left %q, want %q", step.args, got, step.left)
		}
	}
}

func TestASessionThatIsDrivenIsNotPruned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.aged(map[string]time.Duration{"a": time.Hour, "b": time.Hour}, "running", func(store journal.Store) {
		if err := store.Lease(t.Context(), "a", "driver", time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if r := w.sessions("prune", "--older-than", "1m", "--unfinished"); r.code != 0 || r.out != "b\n" {
			t.Errorf("%+v", r)
		}
	})
}

func TestWrongUseOfPruneRemovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.aged(map[string]time.Duration{"a": 1000 * time.Hour}, "completed", nil)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no flag":          {nil, "--older-than 30d, --keep 100"},
		"a dry run of all": {[]string{"--dry-run"}, "--older-than 30d, --keep 100"},
		"keep none":        {[]string{"--keep", "0"}, "--keep 0: want 1 or more"},
		"keep less":        {[]string{"--older-than", "1d", "--keep", "-1"}, "--keep -1: want 1 or more"},
		"keep a word":      {[]string{"--keep", "some"}, "--keep"},
		"no time":          {[]string{"--older-than", ""}, "such as 30d"},
		"a number":         {[]string{"--older-than", "30"}, "such as 30d"},
		"a month":          {[]string{"--older-than", "1mo"}, "such as 30d"},
		"the future":       {[]string{"--older-than", "-30d"}, "such as 30d"},
		"an id":            {[]string{"a", "--older-than", "1d"}, "sessions delete"},
	} {
		if r := w.sessions(append([]string{"prune"}, c.args...)...); r.code != exitUsage || r.out != "" || !strings.Contains(r.err, c.want) {
			t.Errorf("%s: %+v, want %q", name, r, c.want)
		}
	}
	if got := w.listed(); got != "a" {
		t.Errorf("%q are left", got)
	}
}

func TestAgesHaveWeeksAndDays(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30d": 30 * day, "2w": 14 * day, "1w2d": 9 * day, "1w12h": 7*day + 12*time.Hour, "1d1h30m": 25*time.Hour + 30*time.Minute, "90m": 90 * time.Minute,
		"1.5h": 90 * time.Minute, "9999w": 69993 * day, "99999d": 99999 * day,
		"": 0, "0d": 0, "0": 0, "d": 0, "w": 0, "30": 0, "30 d": 0, "1d2w": 0, "-1d": 0, "1d-2h": 0, "1d-48h": 0, "1.5d": 0, "100000d": 0, "9999w99999d": 0, "9999w99999d2000000h": 0, "9999w2000000h": 0, "1w\n": 0,
	} {
		got, err := parseAge(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

// halfway is a journal whose second deletion fails.
type halfway struct {
	journal.Store
	left *int
}

func (h halfway) Delete(ctx context.Context, session string) error {
	if *h.left--; *h.left < 0 {
		return errdefs.NotAvailable.Errorf("the disk is gone")
	}
	return h.Store.Delete(ctx, session)
}

func TestAPruneThatFailsSaysWhatItRemoved(t *testing.T) {
	t.Parallel()
	store := journal.Memory()
	for i := range 3 {
		if err := store.Append(t.Context(), fmt.Sprint("s", i), 0, journal.Entry{Time: time.Unix(int64(i), 0), Data: journal.SessionCreated{}}); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs strings.Builder
	one := 1
	err := pruneSessions(t.Context(), streams{nil, &out, &errs}, halfway{store, &one}, journal.Retention{Before: time.Now()})
	if !errors.Is(err, errdefs.NotAvailable) || out.String() != "s0\n" || errs.String() != "1 session removed\n" {
		t.Errorf("%v: %q, %q", err, &out, &errs)
	}
}
