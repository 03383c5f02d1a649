package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/journaltest"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/message"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(child(role))
	}
	code := pgtest.Main(m, "^Example$")
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var ctx = context.Background()

func open(t testing.TB, dsn string, opts ...postgres.Option) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(ctx, dsn, opts...)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails checks an error's class and words.
func fails(t *testing.T, what string, err error, class *errdefs.Class, says string) {
	t.Helper()
	if err == nil || errdefs.Of(err) != class || !strings.Contains(err.Error(), says) || errdefs.Canceled(err) {
		t.Errorf("%s: %v (%v), want %v that says %q", what, err, errdefs.Of(err), class, says)
	}
}

func said(text string) journal.Entry {
	return journal.Entry{Run: "r1", Data: journal.Said{Message: message.User(text)}}
}

func count(t testing.TB, s journal.Store, session string) (n int64) {
	t.Helper()
	for e, err := range s.Read(ctx, session, 0) {
		must(t, err)
		if n++; e.Seq != n {
			t.Fatalf("entry %d where %d belongs", e.Seq, n)
		}
	}
	return n
}

// execute does something to the database directly.
func execute(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	c, err := pgx.Connect(ctx, dsn)
	must(t, err)
	for _, q := range statements {
		_, err := c.Exec(ctx, q)
		must(t, err)
	}
	must(t, c.Close(ctx))
}

// ask asks the database directly.
func ask(t testing.TB, dsn, query string) (answer string) {
	t.Helper()
	c, err := pgx.Connect(ctx, dsn)
	must(t, err)
	must(t, c.QueryRow(ctx, query).Scan(&answer))
	must(t, c.Close(ctx))
	return answer
}

// named gives a name of a schema.
func named(text string) postgres.Option {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return postgres.WithSchema(fmt.Sprintf("j%x", h.Sum64()))
}

func TestItIsAStore(t *testing.T) {
	dsn := pgtest.DSN(t)
	journaltest.Run(t, func(t *testing.T) journal.Store { return open(t, dsn, named(t.Name())) })
}

func TestItIsADurableStore(t *testing.T) {
	dsn := pgtest.DSN(t)
	journaltest.RunDurable(t, func(t *testing.T, dir string) journal.Store { return open(t, dsn, named(dir)) })
}

func TestItWorksInEveryModeOfExecution(t *testing.T) {
	for _, mode := range []string{"cache_describe", "describe_exec", "exec", "simple_protocol"} {
		s := open(t, pgtest.DSN(t)+" default_query_exec_mode="+mode)
		for n, e := range journaltest.Samples() {
			must(t, s.Append(ctx, "a", int64(n), e))
		}
		must(t, s.Append(ctx, "f", 5, journal.Entry{Data: journal.SessionCreated{Parent: "a", At: 5}}, said(strings.Repeat("x", 5000))))
		must(t, s.Append(ctx, "g", 0, said(strings.Repeat("x", 5000))))
		must(t, s.Append(ctx, "g", 1, said(strings.Repeat("y", 5000))))
		must(t, s.Delete(ctx, "g"))
		must(t, s.Lease(ctx, "f", "me", time.Now().Add(time.Hour)))
		fails(t, mode, s.Lease(ctx, "f", "you", time.Now().Add(time.Hour)), errdefs.Conflict, "driven by me")
		must(t, s.Delete(ctx, "a"))
		if n := count(t, s, "f"); n != 7 {
			t.Errorf("%s: %d entries", mode, n)
		}
		for i, err := range s.Sessions(ctx, journal.Query{Limit: 1}) {
			if err != nil || i.Session != "f" || i.Seq != 7 {
				t.Errorf("%s: %+v, %v", mode, i, err)
			}
		}
	}
}

func TestWhatCannotBeOpenedSaysWhyAndKeepsThePassword(t *testing.T) {
	dsn := pgtest.DSN(t)
	newer, foreign, halves, ascii := pgtest.DSN(t), pgtest.DSN(t), pgtest.DSN(t), pgtest.DSN(t)
	must(t, open(t, newer).Close())
	execute(t, newer, "UPDATE pawl.schema_version SET version = 4")
	execute(t, foreign, "CREATE SCHEMA pawl", "CREATE TABLE pawl.sessions (x int)")
	execute(t, halves, "CREATE SCHEMA pawl", "CREATE TABLE pawl.schema_version (version int)")
	execute(t, ascii, "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
	execute(t, dsn, "CREATE ROLE locked LOGIN PASSWORD 'right'", "CREATE ROLE poor LOGIN")
	with := func(words string) string { return dsn + " " + words } // a later word counts
	for name, c := range map[string]struct {
		dsn    string
		schema string
		class  *errdefs.Class
		says   string
	}{
		"nothing":            {" ", "pawl", errdefs.Validation, "postgres://"},
		"no DSN":             {"s3cret", "pawl", errdefs.Validation, "postgres://"},
		"a bad port":         {"postgres://u:s3cret@h:port/db", "pawl", errdefs.Validation, "postgres://"},
		"a slash":            {"postgres://u:x/s3cret@h/db", "pawl", errdefs.Validation, "postgres://"},
		"a bad schema":       {dsn, "pg_x", errdefs.Validation, "no name of a schema"},
		"a schema with NUL":  {dsn, "a\x00", errdefs.Validation, "no name of a schema"},
		"a wrong password":   {with("user=locked password=s3cret"), "pawl", errdefs.Unauthorized, "the password"},
		"no such role":       {with("user=nobody password=s3cret"), "pawl", errdefs.Unauthorized, "the user"},
		"no such database":   {with("dbname=none password=s3cret"), "pawl", errdefs.Validation, "createdb"},
		"no server":          {"postgres://u:s3cret@127.0.0.1:1/db", "pawl", errdefs.NotAvailable, "can't be reached"},
		"no socket":          {"postgres://u:s3cret@/db?host=/nowhere", "pawl", errdefs.NotAvailable, "can't be reached"},
		"a role with rights": {with("user=poor password=s3cret"), "pawl", errdefs.Unauthorized, "grant"},
		"another encoding":   {with("dbname=ascii password=s3cret"), "pawl", errdefs.Validation, "SQL_ASCII"},
		"a newer one":        {newer + " password=s3cret", "pawl", errdefs.NotAvailable, "version 4; this program knows up to 3"},
		"another's tables":   {foreign + " password=s3cret", "pawl", errdefs.Validation, "another program's"},
		"no version":         {halves + " password=s3cret", "pawl", errdefs.Validation, "not made by this program"},
	} {
		s, err := postgres.Open(ctx, c.dsn, postgres.WithSchema(c.schema))
		fails(t, name, err, c.class, c.says)
		if s != nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "s3cret") {
			t.Errorf("%s: a store, or the password: %#v", name, err)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%+v", e), "s3cret") {
				t.Errorf("%s: the password is in %T", name, e)
			}
		}
	}
	if got := ask(t, foreign, "SELECT string_agg(tablename, ',') FROM pg_tables WHERE schemaname = 'pawl'"); got != "sessions" {
		t.Errorf("another's schema was changed: %s", got)
	}
	execute(t, dsn, "CREATE SCHEMA AUTHORIZATION locked")
	must(t, open(t, with("user=locked password=right"), postgres.WithSchema("locked")).Close()) // a schema of its own is enough
}

func TestManyOpenOneNewJournalAtOnce(t *testing.T) {
	dsn := pgtest.DSN(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := postgres.Open(ctx, dsn, postgres.WithSchema(`odd "name".x`))
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = s.Close() }()
			if err := s.Append(ctx, fmt.Sprint(i), 0, said("x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := open(t, dsn, postgres.WithSchema(`odd "name".x`))
	for i := range 8 {
		if n := count(t, s, fmt.Sprint(i)); n != 1 {
			t.Errorf("session %d has %d entries", i, n)
		}
	}
}

func TestARoleThatMayOnlyUseTheTablesCanUseThem(t *testing.T) {
	dsn := pgtest.DSN(t)
	must(t, open(t, dsn).Close())
	execute(t, dsn, "CREATE ROLE clerk LOGIN", "GRANT USAGE ON SCHEMA pawl TO clerk", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pawl TO clerk")
	s := open(t, dsn+" user=clerk")
	must(t, s.Append(ctx, "a", 0, said("1")))
	must(t, s.Append(ctx, "a", 1, said("2")))
	must(t, s.Lease(ctx, "a", "me", time.Now().Add(time.Hour)))
	must(t, s.Delete(ctx, "a"))
	execute(t, dsn, "REVOKE INSERT ON pawl.entries FROM clerk")
	fails(t, "without the right to insert", s.Append(ctx, "a", 0, said("1")), errdefs.Unauthorized, "grant")
}

func TestCommitsAreDurableWhateverTheDatabaseSays(t *testing.T) {
	dsn := pgtest.DSN(t)
	execute(t, dsn, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); "+
		"EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''serializable''', current_database()); END $$")
	if got := ask(t, dsn, "SHOW synchronous_commit"); got != "off" {
		t.Fatal(got)
	}
	s := open(t, dsn)
	for _, want := range []string{"on", "read committed"} {
		if got := postgres.Setting(t, s, map[string]string{"on": "synchronous_commit", "read committed": "transaction_isolation"}[want]); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestDeletedEntriesLeaveNothingBehind(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	fork := func(name, parent string, at int64) {
		must(t, s.Append(ctx, name, at, journal.Entry{Data: journal.SessionCreated{Parent: parent, At: at}}, said("mine")))
	}
	must(t, s.Append(ctx, "p", 0, said("1"), said("2"), said("3"), said("4")))
	fork("f", "p", 3)
	fork("g", "f", 5)
	fork("h", "g", 2) // shares from p alone
	rows := func(want string) {
		t.Helper()
		if got := ask(t, dsn, "SELECT (SELECT count(*) FROM pawl.sessions) || '/' || (SELECT count(*) FROM pawl.entries)"); got != want {
			t.Errorf("%s sessions/entries, want %s", got, want)
		}
	}
	rows("4/10")
	must(t, s.Delete(ctx, "p")) // its 4th entry is nobody's
	rows("4/9")
	must(t, s.Delete(ctx, "g"))
	rows("3/7")
	must(t, s.Delete(ctx, "f"))
	rows("2/4") // h and what it shares: the 3rd of p went with f
	must(t, s.Delete(ctx, "h"))
	rows("0/0")
}

// Whatever comes first, a fork has all that it shares, and in the end nothing is left.
func TestForksAndDeletionsAtOnceLoseNothing(t *testing.T) {
	dsn := pgtest.DSN(t) + " pool_max_conns=12"
	s := open(t, dsn)
	for round := range 25 {
		must(t, s.Append(ctx, "p", 0, said("1"), said("2"), said("3")))
		must(t, s.Append(ctx, "f", 3, journal.Entry{Data: journal.SessionCreated{Parent: "p", At: 3}}, said("5")))
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				name, parent := fmt.Sprint("c", i), []string{"p", "f"}[i%2]
				at := int64(1 + i%3)
				err := s.Append(ctx, name, at, journal.Entry{Data: journal.SessionCreated{Parent: parent, At: at}})
				if err != nil && !errdefs.NotFound.Is(err) {
					t.Errorf("fork: %v", err)
				}
				if n := count(t, s, name); err == nil && n != at+1 || err != nil && n != 0 {
					t.Errorf("round %d: fork of %s at %d: %v, and %d entries", round, parent, at, err, n)
				}
			})
		}
		for _, name := range []string{"p", "f"} {
			wg.Go(func() {
				if err := s.Delete(ctx, name); err != nil {
					t.Errorf("delete: %v", err)
				}
			})
		}
		wg.Wait()
		for i := range 6 {
			wg.Go(func() {
				if err := s.Delete(ctx, fmt.Sprint("c", i)); err != nil && !errdefs.NotFound.Is(err) {
					t.Errorf("delete: %v", err)
				}
			})
		}
		wg.Wait()
		if got := ask(t, dsn[:strings.Index(dsn, " pool")], "SELECT (SELECT count(*) FROM pawl.sessions) || '/' || (SELECT count(*) FROM pawl.entries)"); got != "0/0" {
			t.Fatalf("round %d: %s sessions/entries are left", round, got)
		}
	}
}

func TestReadersOfASessionThatIsDeletedAreTold(t *testing.T) {
	s := open(t, pgtest.DSN(t))
	entries := make([]journal.Entry, 700)
	for i := range entries {
		entries[i] = said("x")
	}
	must(t, s.Append(ctx, "a", 0, entries...))
	var last error
	for e, err := range s.Read(ctx, "a", 0) {
		if last = err; e.Seq == 10 {
			must(t, s.Delete(ctx, "a"))
			must(t, s.Append(ctx, "a", 0, entries...)) // another session of that name
		}
	}
	fails(t, "read", last, errdefs.NotFound, "deleted while it was read")
}

func TestAStoreMayBeClosedWhileItIsRead(t *testing.T) {
	s := open(t, pgtest.DSN(t))
	entries := make([]journal.Entry, 600)
	for i := range entries {
		entries[i] = said("x")
	}
	must(t, s.Append(ctx, "a", 0, entries...))
	var last error
	for e, err := range s.Read(ctx, "a", 0) {
		if last = err; e.Seq == 1 {
			must(t, s.Close())
		}
	}
	fails(t, "read", last, errdefs.NotAvailable, "closed")
}

func TestAReadHoldsNoConnectionAndALongOneIsRead(t *testing.T) {
	s := open(t, pgtest.DSN(t)+" pool_max_conns=1")
	big := strings.Repeat("x", 300_000)
	var entries []journal.Entry
	for range 30 { // pages of 4
		entries = append(entries, said(big))
	}
	must(t, s.Append(ctx, "a", 0, entries...))
	n := int64(0)
	for e, err := range s.Read(ctx, "a", 0) {
		must(t, err)
		if n++; e.Seq != n || n > 30 {
			t.Fatalf("entry %d where %d belongs", e.Seq, n)
		}
		must(t, s.Append(ctx, "b", n-1, said("the only connection is free")))
	}
	if n != 30 {
		t.Errorf("%d entries", n)
	}
}

func TestWhatPostgreSQLCannotKeepIsRefused(t *testing.T) {
	s := open(t, pgtest.DSN(t))
	must(t, s.Append(ctx, "ok", 0, said("\x00 in what is said is no trouble")))
	year := func(y int) journal.Entry {
		e := said("x")
		e.Time = time.Date(y, 2, 1, 0, 0, 0, 0, time.UTC)
		return e
	}
	for what, c := range map[string]struct {
		session string
		entry   journal.Entry
	}{
		"a name with NUL":     {"a\x00", said("x")},
		"a name in Latin-1":   {"\xe4", said("x")},
		"a long name":         {strings.Repeat("é", 1001), said("x")},
		"a run with NUL":      {"a", journal.Entry{Run: "\x00", Data: journal.Said{}}},
		"a key with NUL":      {"a", journal.Entry{Key: journal.Key{ID: "\x00"}, Data: journal.Said{}}},
		"an agent with NUL":   {"a", journal.Entry{Data: journal.RunStarted{Agent: "\x00"}}},
		"a year before times": {"a", year(1600)},
		"a year after times":  {"a", year(2300)},
	} {
		if err := s.Append(ctx, c.session, 0, said("ok"), c.entry); !errdefs.Validation.Is(err) {
			t.Errorf("%s: %v", what, err)
		}
		if n := count(t, s, c.session); n != 0 {
			t.Errorf("%s: %d entries", what, n)
		}
	}
	long := strings.Repeat("é", 1000)
	must(t, s.Append(ctx, long, 0, said("x")))
	must(t, s.Append(ctx, long, 1, said("y")))
	fails(t, "lease", s.Lease(ctx, "a\x00", "me", time.Now()), errdefs.NotFound, "no session")
	fails(t, "lease by NUL", s.Lease(ctx, "ok", "a\x00", time.Now()), errdefs.Validation, "owner")
	fails(t, "delete", s.Delete(ctx, "a\x00"), errdefs.NotFound, "no session")
	for i, err := range s.Sessions(ctx, journal.Query{Agent: "\x00"}) {
		t.Error("something matches NUL:", i, err)
	}
	defer postgres.Limit(1000, 1500)()
	if err := s.Append(ctx, "a", 0, said("ok"), said(strings.Repeat("x", 1000))); !errdefs.Validation.Is(err) {
		t.Errorf("a giant: %v", err)
	}
	if err := s.Append(ctx, "a", 0, said(strings.Repeat("x", 800)), said(strings.Repeat("x", 800))); !errdefs.Validation.Is(err) {
		t.Errorf("a giant together: %v", err)
	}
}

func TestDamageIsNamedAndNewerEntriesAreRefused(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	for name, c := range map[string]struct {
		sql   string
		class *errdefs.Class
		says  string
	}{
		"missing": {"DELETE FROM pawl.entries WHERE seq = 2", errdefs.Internal, "entry 2 of session missing is missing"},
		"newer":   {"UPDATE pawl.entries SET kind = 'dreamt' WHERE seq = 2", errdefs.NotAvailable, "dreamt"},
		"spoiled": {"UPDATE pawl.entries SET data = '{' WHERE seq = 2", errdefs.Internal, "entry 2 of session spoiled"},
	} {
		must(t, s.Append(ctx, name, 0, said("1"), said("2"), said("3")))
		execute(t, dsn, c.sql+" AND session = (SELECT num FROM pawl.sessions WHERE id = '"+name+"')")
		var last error
		for _, err := range s.Read(ctx, name, 0) {
			last = err
		}
		fails(t, name, last, c.class, c.says)
	}
	execute(t, dsn, "DROP SCHEMA pawl CASCADE")
	fails(t, "no tables", s.Append(ctx, "a", 0, said("x")), errdefs.NotAvailable, "open the journal again")
}

func TestPeopleCanReadTheTables(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	e := said("héllo")
	e.Time = time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
	must(t, s.Append(ctx, "a", 0, e))
	got := ask(t, dsn, `SELECT session || ' ' || seq || ' ' || (time AT TIME ZONE 'UTC') || ' ' || kind || ' ' || data FROM pawl.journal`)
	if want := `a 1 2026-01-02 03:04:05.678901 said {"message":{"role":"user","parts":[{"type":"text","text":"héllo"}]}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func Example() {
	dsn, err := pgtest.Database() // your own: "postgres://user@host/database"
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	store, err := postgres.Open(ctx, dsn)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()

	hello := journal.Entry{Data: journal.Said{Message: message.User("hello")}}
	_ = store.Append(ctx, "session-1", 0, hello) // committed when it returns
	fmt.Println("a stale writer:", errors.Is(store.Append(ctx, "session-1", 0, hello), errdefs.Conflict))
	for info, err := range store.Sessions(ctx, journal.Query{Limit: 10}) {
		fmt.Println(info.Session, info.Seq, err)
	}
	// Output:
	// a stale writer: true
	// session-1 1 <nil>
}
