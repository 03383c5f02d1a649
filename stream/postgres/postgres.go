package postgres

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/pgstore"
	"github.com/pawl-dev/pawl/internal/wake"
	"github.com/pawl-dev/pawl/stream"
)

// Store keeps streams in a database. Make it with [Open]. Safe for concurrent use.
type Store struct {
	schema string
	keep   stream.Retention
	where  string // host and database, for errors
	pool   *pgxpool.Pool
	sql    statements

	bell   wake.Bell
	others pgstore.Listener

	life    context.Context // of what goes on beside calls
	end     func()
	pruned  atomic.Int64 // when all sessions were looked at, in ns since 1970
	pruning sync.WaitGroup
}

var _ stream.Store = (*Store)(nil)

// Option changes how streams are opened.
type Option func(*Store)

// WithSchema names the schema that holds the tables, "pawl_stream" by default.
func WithSchema(name string) Option { return func(s *Store) { s.schema = name } }

// WithRetention bounds what is kept. Give it in all processes that write.
func WithRetention(r stream.Retention) Option { return func(s *Store) { s.keep = r } }

// Open opens the streams in a database, and makes their schema and tables if they aren't there. dsn is as the journal's. Connections are as many as its pool_max_conns says, by default 4, or one for each CPU where there are more; a worker needs one.
func Open(ctx context.Context, dsn string, opts ...Option) (*Store, error) {
	s := &Store{schema: "pawl_stream"}
	s.life, s.end = context.WithCancel(context.Background())
	for _, o := range opts {
		o(s)
	}
	s.keep = s.keep.OrDefaults()
	config, where, err := pgstore.Configure("stream/postgres", dsn, s.schema)
	if err != nil {
		return nil, err
	}
	s.where = where
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, settle)
		return err
	}
	in := pgstore.Filled(s.schema, rand.Text())
	s.sql = newStatements(in)
	s.others = pgstore.Listener{Bell: &s.bell, Conn: config.ConnConfig.Copy(), Patience: patience}
	s.others.Begin(s.schema, in)
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, s.failed(ctx, "open", err)
	}
	if err := s.prepare(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// settle makes a connection's commits durable, so that a server that crashes takes no offset back, and its statements see what others committed while they waited for a lock.
const settle = `SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'local' ELSE current_setting('synchronous_commit') END, false),
	set_config('default_transaction_isolation', 'read committed', false)`

// Close ends the use of the database, after the calls under way. The error is always nil.
func (s *Store) Close() error {
	s.bell.Close()
	s.end()
	s.pruning.Wait()
	s.pool.Close()
	return nil
}

// Append implements [stream.Store].
func (s *Store) Append(ctx context.Context, items ...stream.Item) error {
	if len(items) == 0 {
		return nil
	}
	rows, err := columns(items)
	if err != nil {
		return err
	}
	var long []string
	err = s.use(ctx, "append", func(ctx context.Context) error {
		long = long[:0]
		b := &pgx.Batch{} // one transaction
		b.Queue(s.sql.count, rows.sessions, rows.items, rows.bytes, s.keep.Bytes+s.keep.Bytes/4, (s.keep.Ended / 2).Microseconds()).Query(func(r pgx.Rows) error {
			var id string
			var look bool
			_, err := pgx.ForEachRow(r, []any{&id, &look}, func() error {
				if look {
					long = append(long, id)
				}
				return nil
			})
			return err
		})
		b.Queue(s.sql.insert, rows.values()...)
		b.Queue(s.sql.ring, rows.sessions)
		return s.pool.SendBatch(ctx, b).Close()
	})
	for _, id := range rows.sessions { // also where nobody knows what became of it
		s.bell.Ring(id)
	}
	if err != nil {
		return err
	}
	s.tidy(ctx, long)
	return nil
}

// rows are items in columns.
type rows struct {
	sessions     []string // each once, in their order
	items, bytes []int64  // of each

	session, run, scope, op, ref, parent, by, runs []string
	before, seq, behind, lost                      []int64
	attempt, part                                  []int32
	ended                                          []bool
	data                                           [][]byte
}

func (r *rows) values() []any {
	return []any{r.session, r.before, r.run, r.scope, r.op, r.ref, r.seq, r.behind, r.parent, r.attempt, r.by, r.part, r.lost, r.ended, r.runs, r.data}
}

func columns(items []stream.Item) (*rows, error) {
	r := &rows{}
	for _, i := range items {
		if err := i.Check(); err != nil {
			return nil, err
		}
		if len(i.Session) > pgstore.NameBytes || !pgstore.Plain(i.Session, i.Run, i.Key.Scope, i.Key.Op, i.Key.ID, i.ParentRun, i.By) {
			return nil, errdefs.Validation.Errorf("stream/postgres: append: session %.100q: names are valid UTF-8 without NUL, a session's of up to %d bytes", i.Session, pgstore.NameBytes)
		}
		if !slices.Contains(r.sessions, i.Session) {
			r.sessions = append(r.sessions, i.Session)
		}
	}
	slices.Sort(r.sessions)
	r.items, r.bytes = make([]int64, len(r.sessions)), make([]int64, len(r.sessions))
	for _, i := range slices.Backward(items) { // the last item of a session gets its last offset
		runs, err := json.Marshal(i.Runs)
		if err != nil {
			return nil, errdefs.Internal.Errorf("stream/postgres: append: %w", err)
		}
		n, _ := slices.BinarySearch(r.sessions, i.Session)
		r.session, r.before = append(r.session, i.Session), append(r.before, r.items[n])
		r.items[n]++
		r.bytes[n] += int64(len(i.Text)) + 200
		r.run, r.scope, r.op, r.ref = append(r.run, i.Run), append(r.scope, i.Key.Scope), append(r.op, i.Key.Op), append(r.ref, i.Key.ID)
		r.seq, r.behind, r.parent, r.by, r.lost = append(r.seq, i.Seq), append(r.behind, i.Behind), append(r.parent, i.ParentRun), append(r.by, i.By), append(r.lost, i.Lost)
		r.attempt, r.part = append(r.attempt, int32(i.Attempt)), append(r.part, int32(i.Part)) //nolint:gosec // nobody counts so far
		r.ended, r.runs, r.data = append(r.ended, i.End), append(r.runs, string(runs)), append(r.data, []byte(i.Text))
	}
	return r, nil
}

// pruneEvery is how often a process that writes looks at the sessions of others.
const pruneEvery = time.Minute

// tidy deletes what is beyond retention in sessions that are long, and now and then in all, beside those who write. What can't be done now is done the next time.
func (s *Store) tidy(ctx context.Context, long []string) {
	for _, id := range long {
		_ = s.trim(ctx, id)
	}
	now, before := time.Now().UnixNano(), s.pruned.Load()
	if now-before > int64(min(pruneEvery, s.keep.Ended)) && s.life.Err() == nil && s.pruned.CompareAndSwap(before, now) {
		s.pruning.Go(func() { //nolint:contextcheck // it goes on when the append is done
			ctx, cancel := context.WithTimeout(s.life, pruneEvery)
			defer cancel()
			_ = s.Prune(ctx)
		})
	}
}

// trim deletes from the front of a session what is beyond retention, unless somebody is at the session.
func (s *Store) trim(ctx context.Context, session string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var last int64
		if err := tx.QueryRow(ctx, s.sql.lockRow, session).Scan(&last); errors.Is(err, pgx.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		_, err := tx.Exec(ctx, s.sql.trim, session, s.keep.Ended.Microseconds(), s.keep.Age.Microseconds(), s.keep.Bytes, last)
		return err
	})
}

// Prune deletes what is beyond retention in all sessions. Writers do that as they go along; where none is left, the last items stay until there is one again, or somebody calls this.
func (s *Store) Prune(ctx context.Context) error {
	return s.use(ctx, "prune", func(ctx context.Context) error {
		r, err := s.pool.Query(ctx, s.sql.stale, s.keep.Ended.Microseconds(), s.keep.Age.Microseconds())
		if err != nil {
			return err
		}
		old, err := pgx.CollectRows(r, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, id := range old {
			if err := s.trim(ctx, id); err != nil {
				return err
			}
		}
		_, err = s.pool.Exec(ctx, s.sql.forget, s.keep.Names.Microseconds())
		return err
	})
}

// Read implements [stream.Store].
func (s *Store) Read(ctx context.Context, session string, after int64) (items []stream.Item, err error) {
	err = s.use(ctx, "read", func(ctx context.Context) error {
		items = nil
		r, err := s.pool.Query(ctx, s.sql.read, session, after)
		if err != nil {
			return err
		}
		defer r.Close()
		for r.Next() {
			i, err := item(r, session, after)
			switch {
			case err != nil:
				return err
			case i != nil:
				items = append(items, *i)
			}
		}
		return r.Err()
	})
	return items, err
}

// item reads a row; nil is one of a session that has no items.
func item(r pgx.Rows, session string, after int64) (*stream.Item, error) {
	var last, trimmed int64
	var number, seq, behind, lost *int64
	var at *time.Time
	var run, scope, op, ref, parent, by, runs *string
	var attempt, part *int
	var ended *bool
	var data []byte
	if err := r.Scan(&last, &trimmed, &number, &at, &run, &scope, &op, &ref, &seq, &behind, &parent, &attempt, &by, &part, &lost, &ended, &runs, &data); err != nil {
		return nil, err
	}
	switch {
	case after > last:
		return nil, stream.GoneError{Session: session, After: after}
	case after > 0 && after < trimmed:
		return nil, stream.GoneError{Session: session, After: after, From: trimmed}
	case number == nil:
		return nil, nil
	}
	i := &stream.Item{
		Offset: *number, Time: *at, Session: session, Run: *run, Seq: *seq, Behind: *behind, ParentRun: *parent, Attempt: *attempt, By: *by, Part: *part, Lost: *lost, End: *ended, Text: string(data),
	}
	i.Key.Scope, i.Key.Op, i.Key.ID = *scope, *op, *ref
	if err := json.Unmarshal([]byte(*runs), &i.Runs); err != nil {
		return nil, errdefs.Internal.Errorf("stream/postgres: read: item %d of session %q is damaged: %w", i.Offset, session, err)
	}
	return i, nil
}

// Last implements [stream.Store].
func (s *Store) Last(ctx context.Context, session string) (last int64, err error) {
	err = s.use(ctx, "last", func(ctx context.Context) error {
		err := s.pool.QueryRow(ctx, s.sql.last, session).Scan(&last)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return last, err
}

// attempts is how often something is tried whose connection is lost. All of it may be done again, appends too.
const attempts = 3

// use does something, again when its connection was lost.
func (s *Store) use(ctx context.Context, action string, do func(context.Context) error) (err error) {
	for range attempts {
		var server *pgconn.PgError
		switch err = do(ctx); {
		case err == nil, ctx.Err() != nil, errdefs.Of(err) != nil, errors.As(err, new(stream.GoneError)), errors.As(err, new(*pgconn.ConnectError)):
			return s.failed(ctx, action, err)
		case errors.As(err, &server) && server.SeverityUnlocalized == "ERROR":
			return s.failed(ctx, action, err)
		}
		s.pool.Reset() // its neighbours are probably lost too
	}
	return s.failed(ctx, action, err)
}

// failed classes an error and says what to do about it. pgx's errors are not wrapped: they hold the configuration with its password.
func (s *Store) failed(ctx context.Context, action string, err error) error {
	switch {
	case err == nil || errdefs.Of(err) != nil || errors.As(err, new(stream.GoneError)):
		return err
	case ctx.Err() != nil:
		return errdefs.NotAvailable.Errorf("stream/postgres: %s: %s: %w", action, s.where, ctx.Err())
	}
	text := pgstore.Text(err)
	switch c := pgstore.Code(err); {
	case strings.HasPrefix(c, "28"), c == "42501":
		return errdefs.Unauthorized.Errorf("stream/postgres: %s: %s: look at the user and the password of the DSN; grant the role CREATE on the database, or USAGE on the schema and SELECT, INSERT, UPDATE, DELETE on its tables (%s)", action, s.where, text)
	case c == "3D000":
		return errdefs.Validation.Errorf("stream/postgres: %s: %s: there is no such database: make it, or name another (%s)", action, s.where, text)
	}
	return errdefs.NotAvailable.Errorf("stream/postgres: %s: %s: look whether the server runs and the DSN names it, then try again (%s)", action, s.where, text)
}
