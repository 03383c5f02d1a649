package postgres

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/pgstore"
)

// patience is how long the server may take to be told what is followed.
const patience = 5 * time.Second

// Watch implements [stream.Store], as the journal does: what this store appends wakes at once; what others append is notified, over one connection more than the pool has, which is there while somebody follows.
func (s *Store) Watch(ctx context.Context, session string) (woken <-chan struct{}, stop func()) {
	if session == "" || len(session) > pgstore.NameBytes || !pgstore.Plain(session) { // nothing will ever be there
		return nil, func() {}
	}
	woken, stop = s.bell.Watch(session) //nolint:contextcheck // what listens serves all who watch: none of their contexts may end it
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = s.others.Follow(ctx, s.pool, session) // where it fails, the listener says it again
	return woken, stop
}
