package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	followedFor    = time.Minute // others notify us of a session without hearing of us again
	renewEvery     = 20 * time.Second
	reconnectAfter = time.Second
	// patience is how long the server may take to be told what is followed.
	patience = 5 * time.Second
)

// Watch implements [stream.Store], as the journal does: what this store appends wakes at once; what others append is notified, over one connection more than the pool has, which is there while somebody follows.
func (s *Store) Watch(ctx context.Context, session string) (woken <-chan struct{}, stop func()) {
	if session == "" || len(session) > nameBytes || !plain(session) { // nothing will ever be there
		return nil, func() {}
	}
	woken, stop = s.bell.Watch(session) //nolint:contextcheck // what listens serves all who watch: none of their contexts may end it
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, _ = s.pool.Exec(ctx, s.sql.follow, []string{session}, followedFor.Microseconds()) // where it fails, the listener says it again
	return woken, stop
}

// listen rings for what others notify, until ctx ends. That it can't does not matter to readers, who look by themselves.
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

// renew says again what is followed, which shows as well whether the server is still there.
func (s *Store) renew(ctx context.Context, conn *pgx.Conn) {
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	_, _ = conn.Exec(ctx, s.sql.follow, s.bell.Sessions(), followedFor.Microseconds()) // a connection that was lost is closed by it
}

// hangUp closes a connection, and waits until nothing of it is left.
func hangUp(ctx context.Context, conn *pgx.Conn) {
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer end()
	_ = conn.Close(ctx)
	select {
	case <-conn.PgConn().CleanupDone():
	case <-ctx.Done():
	}
}
