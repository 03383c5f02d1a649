package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Variables for tests.
var (
	// followedFor is how long others notify us of a session without hearing of us again; renewEvery is how often they do.
	followedFor, renewEvery = time.Minute, 20 * time.Second
	// reconnectAfter is how long we wait before a lost connection is made again.
	reconnectAfter = time.Second
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
		return s.follow(ctx, conn, []string{session})
	})
	return woken, stop
}

// follow tells all that append that this store wants to be notified.
func (s *Store) follow(ctx context.Context, conn *pgx.Conn, sessions []string) error {
	_, err := conn.Exec(ctx, s.sql.follow, sessions, followedFor.Microseconds())
	return err
}

// listen rings for what others notify, until ctx ends. That it can't does not matter to followers, who look by themselves.
func (s *Store) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if conn, err := pgx.ConnectConfig(ctx, s.listening); err == nil {
			s.hear(ctx, conn)
			hangUp(ctx, conn)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectAfter):
		}
	}
}

// hear rings for what is notified on a connection, as long as it lasts.
func (s *Store) hear(ctx context.Context, conn *pgx.Conn) {
	if _, err := conn.Exec(ctx, s.sql.listen); err != nil {
		return
	}
	for first := true; !conn.IsClosed() && ctx.Err() == nil; first = false {
		s.renew(ctx, conn)
		if first {
			s.bell.RingAll() // nobody heard what was notified before
		}
		round, end := context.WithTimeout(ctx, renewEvery)
		for {
			n, err := conn.WaitForNotification(round)
			if err != nil {
				break
			}
			s.bell.Ring(n.Payload)
		}
		end()
	}
}

// renew says again what is followed, which shows as well whether the server is still there. A server that does not let us closes nothing: others may follow the same.
func (s *Store) renew(ctx context.Context, conn *pgx.Conn) {
	ctx, end := context.WithTimeout(ctx, s.patience)
	defer end()
	_ = s.follow(ctx, conn, s.bell.Sessions()) // see above; one that was lost is closed
}

// hangUp closes a connection, and waits until nothing of it is left.
func hangUp(ctx context.Context, conn *pgx.Conn) {
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer end()
	_ = conn.Close(ctx)
	select {
	case <-conn.PgConn().CleanupDone():
	case <-ctx.Done():
	}
}
