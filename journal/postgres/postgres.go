package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/pgstore"
	"github.com/pawl-dev/pawl/internal/wake"
	"github.com/pawl-dev/pawl/journal"
)

// Store is a journal in a database. Make it with [Open]; the zero Store is of no use. Safe for concurrent use.
type Store struct {
	schema   string
	patience time.Duration
	where    string // host and database, for errors
	pool     *pgxpool.Pool
	sql      statements

	bell   wake.Bell // for followers: see Watch
	others pgstore.Listener

	mu     sync.Mutex
	closed bool
	users  sync.WaitGroup // calls under way
}

var (
	_ journal.Store   = (*Store)(nil)
	_ journal.Watcher = (*Store)(nil)
)

// Option changes how a journal is opened.
type Option func(*Store)

// WithSchema names the schema that holds the tables, "pawl" by default. Journals of different schemas are different journals.
func WithSchema(name string) Option { return func(s *Store) { s.schema = name } }

// WithPatience sets how long the server may take to answer one request, waiting for a connection included; 30 s by default. Then the call
// fails with errdefs.NotAvailable. A context that ends first ends the waiting.
func WithPatience(d time.Duration) Option { return func(s *Store) { s.patience = d } }

const (
	// grace is how long the server may take to say what became of a statement that we cancel.
	grace = 3 * time.Second
	// hesitation is how long a statement may go on after its context ended, before the server is asked to cancel it: most are done by then.
	hesitation = 25 * time.Millisecond
)

// Open opens the journal in a database, and makes its schema and tables if they aren't there. dsn is as libpq takes it, a URL or
// words: "postgres://user@host:5432/database", "host=/run/postgresql dbname=app"; what it leaves out comes from PGHOST, PGPASSWORD, .pgpass
// and so on. It fails with errdefs.Validation when dsn can't be read, names no database that is there, or the schema has another program's
// tables; with errdefs.Unauthorized when the server does not let us in; and with errdefs.NotAvailable when it can't be reached, or the tables
// were made by a newer version.
func Open(ctx context.Context, dsn string, opts ...Option) (*Store, error) {
	s := &Store{schema: "pawl", patience: 30 * time.Second}
	for _, o := range opts {
		o(s)
	}
	config, where, err := pgstore.Configure("journal/postgres", dsn, s.schema)
	if err != nil {
		return nil, err
	}
	s.where = where
	s.configure(config)
	in := pgstore.Filled(s.schema, rand.Text())
	s.sql = newStatements(in)
	s.others.Begin(s.schema, in)
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, s.failed(ctx, "open", err, false)
	}
	if err := s.prepare(ctx); err != nil {
		s.pool.Close()
		return nil, err
	}
	return s, nil
}

// configure sets what a connection is like.
func (s *Store) configure(config *pgxpool.Config) {
	c := config.ConnConfig
	// A context that ends must not cut the connection, as is pgx's default: what became of the statement would not be known.
	c.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, CancelRequestDelay: hesitation, DeadlineDelay: grace}
	}
	s.others = pgstore.Listener{Bell: &s.bell, Conn: c.Copy(), Patience: s.patience}
	s.others.Conn.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler { // who stops waiting for a notification cancels nothing on the server
		return &pgconn.DeadlineContextWatcherHandler{Conn: conn.Conn()}
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, settle)
		return err
	}
}

// settle makes a new connection's commits durable, and its statements see what others committed while they waited for a lock.
const settle = `SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false),
	set_config('default_transaction_isolation', 'read committed', false)`

// Close ends the use of the database, after the calls under way. What comes later fails with errdefs.NotAvailable, followers too. Closing again does
// nothing. The error is always nil.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.bell.Close()
	s.users.Wait()
	s.pool.Close()
	return nil
}

// enter counts a call that uses the database; the caller calls s.users.Done.
func (s *Store) enter(action string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errdefs.NotAvailable.Errorf("journal/postgres: %s: the store of %s is closed", action, s.where)
	}
	s.users.Add(1)
	return nil
}

// attempts is how often something is tried that the server refused for reasons of timing, or never got.
const attempts = 5

// use does something on a connection, again while it certainly did not happen and may well the next time.
func (s *Store) use(ctx context.Context, action string, do func(context.Context, *pgx.Conn) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(action); err != nil {
		return err
	}
	defer s.users.Done()
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	for range attempts {
		err = s.once(limited, do)
		if err == nil {
			return nil
		}
		if lost(err) {
			s.pool.Reset() // its neighbours are probably lost too
		}
		if limited.Err() != nil || !again(err) {
			break
		}
	}
	return s.failed(ctx, action, err, limited.Err() != nil)
}

func (s *Store) once(ctx context.Context, do func(context.Context, *pgx.Conn) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return do(ctx, conn.Conn())
}

// absent refuses a name that no session can have.
func absent(action, session string) error {
	if session != "" && len(session) <= pgstore.NameBytes && pgstore.Plain(session) {
		return nil
	}
	return errdefs.NotFound.Errorf("journal/postgres: %s: there is no session %s", action, quoted(session))
}

// quoted is a name for an error, shortened.
func quoted(name string) string { return fmt.Sprintf("%.100q", name) }
