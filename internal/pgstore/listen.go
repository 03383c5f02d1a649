package pgstore

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pawl-dev/pawl/internal/wake"
)

// Variables for tests.
var (
	// FollowedFor is how long others notify us of a session without hearing of us again.
	FollowedFor = time.Minute
	// RenewEvery is how often they hear of us.
	RenewEvery = 20 * time.Second
	// ReconnectAfter is how long we wait before a lost connection is made again.
	ReconnectAfter = time.Second
)

// grace is how long the server may take to take leave of us.
const grace = 3 * time.Second

// Listener rings a store's bell for what others append. They notify whoever stands in the table followed of the schema, on the channel that is named as it is.
type Listener struct {
	Bell     *wake.Bell
	Conn     *pgx.ConnConfig // of one connection more than the pool has
	Patience time.Duration   // how long the server may take to be told what is followed

	listen, follow string
}

// Filled gives what fills in the SQL of a schema for a store that listens as me, which is letters and digits: {s} is the schema, {channel} its channel, {me} who listens.
func Filled(schema, me string) func(sql string) string {
	return strings.NewReplacer("{s}", pgx.Identifier{schema}.Sanitize(), "{channel}", "'"+strings.ReplaceAll(schema, "'", "''")+"'", "{me}", "'"+me+"'").Replace
}

// Begin makes the bell listen. in is [Filled].
func (l *Listener) Begin(schema string, in func(sql string) string) {
	l.listen = "LISTEN " + pgx.Identifier{schema}.Sanitize()
	l.follow = in(`WITH gone AS (DELETE FROM {s}.followed WHERE until < now() - interval '1 hour')
		INSERT INTO {s}.followed (session, listener, until)
		SELECT f, {me}, now() + $2::bigint * interval '1 microsecond' FROM unnest($1::text[]) f ORDER BY f
		ON CONFLICT (session, listener) DO UPDATE SET until = excluded.until`)
	l.Bell.Listen = l.run
}

// Follow tells all that append that this store wants to be notified.
func (l *Listener) Follow(ctx context.Context, on interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}, sessions ...string,
) error {
	_, err := on.Exec(ctx, l.follow, sessions, FollowedFor.Microseconds())
	return err
}

// run rings for what others notify, until ctx ends. That it can't does not matter to followers, who look by themselves.
func (l *Listener) run(ctx context.Context) {
	for ctx.Err() == nil {
		if conn, err := pgx.ConnectConfig(ctx, l.Conn); err == nil {
			l.hear(ctx, conn)
			hangUp(ctx, conn)
		}
		select {
		case <-ctx.Done():
		case <-time.After(ReconnectAfter):
		}
	}
}

// hear rings for what is notified on a connection, as long as it lasts.
func (l *Listener) hear(ctx context.Context, conn *pgx.Conn) {
	if _, err := conn.Exec(ctx, l.listen); err != nil {
		return
	}
	for first := true; !conn.IsClosed() && ctx.Err() == nil; first = false {
		l.renew(ctx, conn)
		if first {
			l.Bell.RingAll() // nobody heard what was notified before
		}
		round, end := context.WithTimeout(ctx, RenewEvery)
		for {
			n, err := conn.WaitForNotification(round)
			if err != nil {
				break
			}
			l.Bell.Ring(n.Payload)
		}
		end()
	}
}

// renew says again what is followed, which shows as well whether the server is still there. A server that does not let us closes nothing: others may follow the same.
func (l *Listener) renew(ctx context.Context, conn *pgx.Conn) {
	ctx, end := context.WithTimeout(ctx, l.Patience)
	defer end()
	_ = l.Follow(ctx, conn, l.Bell.Sessions()...) // see above; one that was lost is closed
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
