package postgres_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/journaltest"
	"github.com/pawl-dev/pawl/journal/postgres"
)

// shown are the blocks of SQL on the page for those who run the database, in its order, by what they begin with. Each test takes those that it runs.
var shown = []string{"CREATE ROLE", "GRANT USAGE", "SELECT id, owner", "SELECT application_name", "ALTER ROLE", "BEGIN", "VACUUM", "ALTER TABLE", "DROP SCHEMA", "START TRANSACTION", "SELECT relname"}

// page gives the statements of the block that begins so.
func page(t testing.TB, begins string) (statements []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/postgres.md")
	must(t, err)
	blocks := regexp.MustCompile("(?ms)^ *```sql\n(.*?)^ *```$").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != len(shown) {
		t.Fatalf("the page has %d blocks of SQL, the tests run %d", len(blocks), len(shown))
	}
	block := blocks[slices.Index(shown, begins)][1]
	if !strings.HasPrefix(strings.TrimSpace(block), begins) {
		t.Fatalf("the block does not begin with %s:\n%s", begins, block)
	}
	for _, s := range strings.Split(block, ";\n") {
		if s = strings.TrimSpace(s); s != "" {
			statements = append(statements, s)
		}
	}
	return statements
}

// granted makes a journal as the page says, with its roles, and gives its address for a role.
func granted(t *testing.T) (dsn string, as func(role string) string) {
	t.Helper()
	dsn = pgtest.DSN(t)
	as = func(role string) string { return dsn + " user=" + role }
	if number(t, dsn, "SELECT count(*) FROM pg_roles WHERE rolname = 'pawl_owner'") > 0 { // roles are the server's, and another test made them
		execute(t, dsn, page(t, "CREATE ROLE")[3])
	} else {
		execute(t, dsn, page(t, "CREATE ROLE")...)
	}
	must(t, open(t, as("pawl_owner")).Close())
	execute(t, as("pawl_owner"), page(t, "GRANT USAGE")...)
	return dsn, as
}

func TestAStoreWithTheRightsOfThePageIsOne(t *testing.T) {
	dsn, as := granted(t)
	execute(t, dsn, page(t, "ALTER ROLE")...)
	if !tier.All() { // the suite takes a minute
		must(t, uses(t, as("pawl_app"), dsn))
		return
	}
	journaltest.Run(t, func(t *testing.T) journal.Store {
		execute(t, dsn, "TRUNCATE pawl.sessions, pawl.entries, pawl.parts, pawl.followed")
		return open(t, as("pawl_app"))
	})
}

// uses does all that a store can do, and gives the first error.
func uses(t *testing.T, dsn, admin string) error {
	t.Helper()
	execute(t, admin, "TRUNCATE pawl.sessions, pawl.entries, pawl.parts, pawl.followed")
	s, err := postgres.Open(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { must(t, s.Close()) }()
	long := said(strings.Repeat("x", 5000))
	for _, do := range []func() error{
		func() error { return s.Append(ctx, "a", 0, said("1"), long) },
		func() error { return s.Append(ctx, "a", 2, long) },
		func() error {
			return s.Append(ctx, "f", 1, journal.Entry{Data: journal.SessionCreated{Parent: "a", At: 1}})
		},
		func() error { return s.Lease(ctx, "a", "me", time.Now().Add(time.Hour)) },
		func() error {
			for _, err := range s.Read(ctx, "a", 0) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		func() error {
			execute(t, admin, "INSERT INTO pawl.followed VALUES ('gone', 'x', now() - interval '2 hours'), ('kept', 'x', now())")
			for range 2 { // it is renewed, and what is over goes
				_, stop := s.Watch(ctx, "a")
				stop()
			}
			if got := ask(t, admin, "SELECT string_agg(session || ' ' || (until > now()), ',' ORDER BY session) FROM pawl.followed"); got != "a true,kept false" {
				return errdefs.Unauthorized.Errorf("followed: %s", got)
			}
			return nil
		},
		func() error { return s.Delete(ctx, "f") },
		func() error { return s.Delete(ctx, "a") },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

func TestNoRightOfThePageIsOneTooMany(t *testing.T) {
	dsn, as := granted(t)
	must(t, uses(t, as("pawl_app"), dsn))
	c, err := pgx.Connect(ctx, dsn)
	must(t, err)
	rows, err := c.Query(ctx, "SELECT table_name, privilege_type FROM information_schema.role_table_grants WHERE table_schema = 'pawl' AND grantee = 'pawl_app'")
	must(t, err)
	rights, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Table, Right string }])
	must(t, err)
	must(t, c.Close(ctx))
	if len(rights) != 16 {
		t.Errorf("%d rights: %v", len(rights), rights)
	}
	for _, r := range rights {
		execute(t, dsn, fmt.Sprintf("REVOKE %s ON pawl.%s FROM pawl_app", r.Right, r.Table))
		if err := uses(t, as("pawl_app"), dsn); !errdefs.Unauthorized.Is(err) {
			t.Errorf("without %s on %s: %v", r.Right, r.Table, err)
		}
		execute(t, dsn, fmt.Sprintf("GRANT %s ON pawl.%s TO pawl_app", r.Right, r.Table))
	}
}

func TestAReaderOfThePageReadsAndNoMore(t *testing.T) {
	_, as := granted(t)
	app, reader := open(t, as("pawl_app")), open(t, as("pawl_reader"))
	must(t, app.Append(ctx, "a", 0, said("1"), said(strings.Repeat("x", 5000))))
	for e, err := range journal.Follow(ctx, reader, "a", 0) {
		must(t, err)
		if e.Seq == 2 {
			break
		}
	}
	if line(t, reader, "a").Seq != 2 || ask(t, as("pawl_reader"), "SELECT count(*)::text FROM pawl.journal") != "2" {
		t.Error("it does not see two entries")
	}
	fails(t, "append", reader.Append(ctx, "a", 2, said("3")), errdefs.Unauthorized, "grant")
	fails(t, "delete", reader.Delete(ctx, "a"), errdefs.Unauthorized, "grant")
	_, err := postgres.Open(ctx, as("pawl_app"), postgres.WithSchema("another"))
	fails(t, "a schema of the program's own", err, errdefs.Unauthorized, "grant")
}

// A journal whose entries are parted as the page says is one, and what it had before is still there.
func TestEntriesArePartedByTheirSession(t *testing.T) {
	dsn, as := granted(t)
	before := open(t, as("pawl_app"))
	for i := range 20 {
		must(t, before.Append(ctx, fmt.Sprint("old ", i), 0, said("1"), said(strings.Repeat("x", 5000)), said("3")))
	}
	must(t, before.Close())
	execute(t, as("pawl_owner"), page(t, "START TRANSACTION")...)
	execute(t, as("pawl_owner"), page(t, "GRANT USAGE")...)
	s := open(t, as("pawl_app"))
	for i := range 20 {
		must(t, s.Append(ctx, fmt.Sprint("old ", i), 3, said("4")))
		if n := count(t, s, fmt.Sprint("old ", i)); n != 4 {
			t.Errorf("%d entries", n)
		}
	}
	if n := number(t, dsn, "SELECT count(DISTINCT tableoid) FROM pawl.entries"); n != 4 {
		t.Errorf("the entries are in %d parts", n)
	}
	if n := number(t, as("pawl_reader"), "SELECT count(*) FROM pawl.journal"); n != 80 {
		t.Errorf("the view has %d entries", n)
	}
	if plan := explained(t, dsn, "SELECT * FROM pawl.entries WHERE session = 1 AND seq > 2 ORDER BY seq LIMIT 100"); strings.Count(plan, "Scan") != 1 {
		t.Errorf("a page is read from more than one part:\n%s", plan)
	}
	must(t, s.Close())
	if !tier.All() { // the suite takes a minute
		must(t, uses(t, as("pawl_app"), dsn))
		return
	}
	journaltest.Run(t, func(t *testing.T) journal.Store {
		execute(t, dsn, "TRUNCATE pawl.sessions, pawl.entries, pawl.parts, pawl.followed")
		return open(t, as("pawl_app"))
	})
}

// explained is how the server goes about a query.
func explained(t *testing.T, dsn, query string) string {
	t.Helper()
	c, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer func() { must(t, c.Close(ctx)) }()
	rows, err := c.Query(ctx, "EXPLAIN "+query)
	must(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	return strings.Join(lines, "\n")
}

func line(t *testing.T, s journal.Store, session string) (found journal.Info) {
	t.Helper()
	for i, err := range s.Sessions(ctx, journal.Query{Session: session}) {
		must(t, err)
		found = i
	}
	return found
}

// What the page deletes is what it says, and what stays is whole.
func TestOldSessionsAreDeletedInBulk(t *testing.T) {
	dsn, as := granted(t)
	s := open(t, as("pawl_app"))
	old := time.Now().AddDate(0, 0, -91)
	shared, own := strings.Repeat("shared ", 1000), strings.Repeat("own ", 2000)
	add := func(session string, at time.Time, entries ...journal.Entry) {
		t.Helper()
		for i := range entries {
			entries[i].Time = at
		}
		must(t, s.Append(ctx, session, 0, entries...))
	}
	begun, over := journal.Entry{Run: "r", Data: journal.RunStarted{}}, journal.Entry{Run: "r", Data: journal.RunFinished{Status: "completed"}}
	going := []string{"old", "old too", "old, and a lease that is over"}
	for _, session := range going {
		add(session, old, begun, said(shared), said(shared), said(own), over)
	}
	must(t, s.Lease(ctx, going[2], "me", time.Now().Add(-time.Hour)))
	add("new", time.Now(), begun, said(shared), over)
	add("running", old, begun, said(shared))
	add("interrupted", old, begun, said(shared), journal.Entry{Run: "r", Data: journal.Parked{}})
	add("leased", old, begun, said(shared), over)
	must(t, s.Lease(ctx, "leased", "me", time.Now().Add(time.Hour)))
	add("with a task", old, begun, said(shared), over)
	add("with a task/c1", old, begun, said(shared), over)
	add("forked", old, begun, said(shared), over)
	must(t, s.Append(ctx, "fork", 2, journal.Entry{Time: old, Data: journal.SessionCreated{Parent: "forked", At: 2}}))
	must(t, s.Append(ctx, "fork of nothing", 0, journal.Entry{Time: old, Data: journal.SessionCreated{Parent: "forked"}}))
	staying := []string{"fork", "fork of nothing", "forked", "interrupted", "leased", "new", "running", "with a task", "with a task/c1"}

	bulk := page(t, "BEGIN")
	for range 2 {
		execute(t, as("pawl_app"), bulk...)
	}
	var left []string
	for i, err := range s.Sessions(ctx, journal.Query{}) {
		must(t, err)
		left = append(left, i.Session)
		if n := count(t, s, i.Session); n != i.Seq {
			t.Errorf("%s has %d entries of %d", i.Session, n, i.Seq)
		}
	}
	if slices.Sort(left); !slices.Equal(left, staying) {
		t.Errorf("%q are left, want %q", left, staying)
	}
	const counts = `SELECT (SELECT count(*) FROM pawl.parts) || ' parts, of ' || (SELECT sum(refs) FROM pawl.parts) || ' references, '
		|| (SELECT count(*) FROM pawl.entries, regexp_split_to_table(parts, ' ') WHERE parts <> '')`
	if got := ask(t, dsn, counts); got != "1 parts, of 7 references, 7" {
		t.Errorf("%s", got)
	}
	for _, session := range going {
		must(t, s.Append(ctx, session, 0, said(own)))
	}
	execute(t, as("pawl_owner"), page(t, "VACUUM")...)
	execute(t, as("pawl_owner"), page(t, "ALTER TABLE")...)
}

func TestTheRestOfThePageRuns(t *testing.T) {
	dsn, as := granted(t)
	tenant, err := postgres.Open(ctx, dsn, postgres.WithSchema("pawl_2026_08"))
	must(t, err)
	must(t, tenant.Append(ctx, "a", 0, said("x")))
	must(t, tenant.Close())
	execute(t, dsn, page(t, "DROP SCHEMA")...)
	if n := number(t, dsn, "SELECT count(*) FROM pg_namespace WHERE nspname = 'pawl_2026_08'"); n != 0 {
		t.Error("it is still there")
	}
	s := open(t, as("pawl_app")+" application_name=pawl-test")
	must(t, s.Append(ctx, "a", 0, said("x")))
	must(t, s.Append(ctx, "b", 0, said("x")))
	must(t, s.Lease(ctx, "a", "me", time.Now().Add(time.Hour)))
	must(t, s.Lease(ctx, "b", "you", time.Now().Add(-time.Hour)))
	c, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer func() { must(t, c.Close(ctx)) }()
	for begins, has := range map[string]string{"SELECT application_name": "pawl-test", "SELECT relname": "entries", "SELECT id, owner": "a"} {
		found := false
		rows, err := c.Query(ctx, page(t, begins)[0])
		must(t, err)
		for rows.Next() {
			row, err := rows.Values()
			must(t, err)
			found = found || row[0] == has
			if begins == "SELECT id, owner" && (row[0] != "a" || row[1] != "me") {
				t.Errorf("%v drives", row)
			}
		}
		must(t, rows.Err())
		if !found {
			t.Errorf("%s: no %s", begins, has)
		}
	}
}

// What is restored by the commands of the page is the journal, rights included, and goes on.
func TestAJournalIsRestoredFromItsDump(t *testing.T) {
	component.Command(t, "pg_dump", "scripts/test installs it: Debian's package postgresql")
	text, err := os.ReadFile("../../docs/postgres.md")
	must(t, err)
	commands := regexp.MustCompile("(?s)```sh\n(.*?)```").FindSubmatch(text)
	if commands == nil {
		t.Fatal("the page has no commands")
	}
	dsn, as := granted(t)
	before := open(t, as("pawl_app"))
	must(t, before.Append(ctx, "s", 0, said("1"), said(strings.Repeat("long ", 2000))))
	must(t, before.Append(ctx, "fork", 1, journal.Entry{Data: journal.SessionCreated{Parent: "s", At: 1}}))

	other := pgtest.DSN(t)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", string(commands[1]))
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "DSN="+dsn, "OTHER="+other)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	after := open(t, other+" user=pawl_app")
	for _, session := range []string{"s", "fork"} {
		var want, got bytes.Buffer
		must(t, journal.Export(ctx, before, session, &want))
		must(t, journal.Export(ctx, after, session, &got))
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Errorf("%s (-before +after):\n%s", session, diff)
		}
	}
	must(t, after.Append(ctx, "s", 2, said("3")))
}
