package journal

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// Retention says which sessions [Prune] deletes: those to which all of it applies. It needs a Before or a Keep.
type Retention struct {
	Agent, User string    // whose: "" is anybody's
	Before      time.Time // those whose last entry is older; zero: of any age
	Keep        int       // all but the newest so many of that Agent and User, whatever their status; 0: none is kept for that
	Unfinished  bool      // those too whose run is unfinished: it can't be resumed then, nor its questions be answered
	DryRun      bool      // only name them
}

// pruneLease is how long a session is kept from drivers while it is deleted.
const pruneLease = time.Minute

// Prune deletes sessions that are too old or too many, the oldest first, and names those that it deleted. Entries that a fork shares stay with
// the fork. A session is left alone while a driver is alive in it: Prune takes its lease, so that nobody begins to drive it meanwhile, and looks
// whether it is still as it was listed. One that somebody else deletes meanwhile is not named. The sessions of a session's tasks go with it, and only with it.
//
// It ends with ctx, and with the first error; deleted says how far it came. A Retention that would delete everything, or has a negative
// Keep, is Validation.
func Prune(ctx context.Context, store Store, r Retention) (deleted []string, err error) {
	if r.Keep < 0 || r.Keep == 0 && r.Before.IsZero() {
		return nil, errdefs.Validation.Errorf("journal: prune: keep %d, before %v: say before which time, or how many to keep", r.Keep, r.Before)
	}
	var old []Info
	n := 0
	for i, err := range store.Sessions(ctx, Query{Agent: r.Agent, User: r.User}) {
		if err != nil {
			return nil, fmt.Errorf("journal: prune: %w", err)
		}
		if mine, err := belongs(ctx, store, i.Session); err != nil {
			return nil, err
		} else if mine {
			continue
		}
		if n++; n > r.Keep && r.covers(i) {
			old = append(old, i)
		}
	}
	owner := "prune " + rand.Text()
	for _, i := range slices.Backward(old) {
		below, err := Tasks(ctx, store, i.Session)
		if err != nil {
			return deleted, err
		}
		done, err := prune(ctx, store, i, owner, r.DryRun)
		if err != nil {
			return deleted, fmt.Errorf("journal: prune: session %s: %w", i.Session, err)
		}
		if !done {
			continue
		}
		deleted = append(deleted, i.Session)
		for _, task := range below { // nobody drives them: their parent was driven by nobody
			err := error(nil)
			if !r.DryRun {
				err = store.Delete(ctx, task)
			}
			if err != nil && !errdefs.NotFound.Is(err) {
				return deleted, fmt.Errorf("journal: prune: session %s: %w", task, err)
			}
			deleted = append(deleted, task)
		}
	}
	return deleted, nil
}

// belongs reports whether a session is a task's of one that is there: it goes with that one, which may need it to go on.
func belongs(ctx context.Context, store Store, session string) (bool, error) {
	if !strings.Contains(session, "/") { // a task's name has one
		return false, nil
	}
	of, err := taskOf(ctx, store, session)
	return of != "" && exists(ctx, store, of), err
}

func (r Retention) covers(i Info) bool {
	unfinished := i.Status == "running" || i.Status == "interrupted"
	return (r.Unfinished || !unfinished) && (r.Before.IsZero() || i.Updated.Before(r.Before))
}

// prune deletes a session that nobody drives and that is as it was listed, and reports whether it was.
func prune(ctx context.Context, store Store, i Info, owner string, dry bool) (done bool, err error) {
	switch err := store.Lease(ctx, i.Session, owner, time.Now().Add(pruneLease)); {
	case errdefs.Conflict.Is(err), errdefs.NotFound.Is(err):
		return false, nil
	case err != nil:
		return false, err
	}
	if done, err = unchanged(ctx, store, i); done && !dry {
		if err = store.Delete(ctx, i.Session); err == nil {
			return true, nil
		}
		done = false
		if errdefs.NotFound.Is(err) {
			return false, nil
		}
	}
	_ = store.Lease(context.WithoutCancel(ctx), i.Session, owner, time.Time{}) // it runs out by itself
	return done, err
}

// unchanged reports whether a session's last entry is the one that was listed.
func unchanged(ctx context.Context, store Store, i Info) (same bool, err error) {
	for e, err := range store.Read(ctx, i.Session, i.Seq-1) {
		switch {
		case errdefs.NotFound.Is(err): // deleted while it was read
			return false, nil
		case err != nil:
			return false, err
		}
		same = e.Seq == i.Seq && e.Time.Equal(i.Updated)
	}
	return same, nil
}
