package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Watch implements [journal.Watcher]. What this store appends wakes at once. What others append is notified, over one connection more than the pool has: it is there while somebody
// follows, and is made again when it was lost, and then everybody is woken. A role that may not write to the table followed, and a pooler that passes no notifications on, make
// no difference but that followers look by themselves.
func (s *Store) Watch(ctx context.Context, session string) (woken <-chan struct{}, stop func()) {
	if absent("follow", session) != nil { // nothing will ever be there
		return nil, func() {}
	}
	woken, stop = s.bell.Watch(session) //nolint:contextcheck // what listens serves all who watch: none of their contexts may end it
	// Before the caller reads: what begins to be appended from then on is notified, and what was under way meanwhile is there when he looks by himself, a second later. Where it fails the listener tries again; should the store be gone, the caller's reading says so.
	_ = s.use(ctx, "follow", func(ctx context.Context, conn *pgx.Conn) error {
		return s.others.Follow(ctx, conn, session)
	})
	return woken, stop
}
