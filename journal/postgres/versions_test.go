package postgres_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal/internal/ages"
	"github.com/pawl-dev/pawl/journal/postgres"
)

var update = flag.Bool("update", false, "write the SQL of this version anew")

// dumped is what a journal of a version has, as SQL, and says what is read of it, which no program may lose. Those of versions that are out are never changed.
func dumped(version any) string { return filepath.Join("testdata", fmt.Sprintf("v%v.sql", version)) }
func says(file string) string   { return strings.TrimSuffix(file, ".sql") + ".jsonl" }

// A journal that any version has written says the same to this one, and goes on.
func TestJournalsOfAllVersionsAreReadForever(t *testing.T) {
	made, now := postgres.Made()
	if *update {
		dsn := pgtest.DSN(t)
		s := open(t, dsn)
		ages.Write(t, s)
		must(t, os.WriteFile(says(dumped(now)), []byte(ages.Says(t, s)), 0o600))
		must(t, s.Close())
		must(t, os.WriteFile(dumped(now), []byte("CREATE SCHEMA pawl;\n"+made+rows(t, dsn)), 0o600))
	}
	if _, err := os.Stat(dumped(now)); err != nil {
		t.Errorf("version %d has no file: write it with -update, and leave those of other versions as they are: %v", now, err)
	}
	files, err := filepath.Glob(dumped("*"))
	must(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			must(t, err)
			golden, err := os.ReadFile(says(file))
			must(t, err)
			dsn := pgtest.DSN(t)
			execute(t, dsn, string(b))
			s := open(t, dsn)
			if d := cmp.Diff(string(golden), ages.Says(t, s)); d != "" {
				t.Errorf("-kept +read\n%s", d)
			}
			must(t, s.Append(ctx, "fork", count(t, s, "fork"), said("it goes on")))
			must(t, s.Append(ctx, "new", 0, said("begins")))
			if v := ask(t, dsn, "SELECT version::text FROM pawl.schema_version"); v != fmt.Sprint(now) {
				t.Errorf("it has version %s", v)
			}
		})
	}
}

// rows is what is in the tables, as SQL that puts it there.
func rows(t *testing.T, dsn string) (sql string) {
	t.Helper()
	c, err := pgx.Connect(ctx, dsn)
	must(t, err)
	for _, table := range []string{"sessions", "entries", "parts"} {
		found, err := c.Query(ctx, fmt.Sprintf("SELECT 'INSERT INTO pawl.%[1]s OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_record(NULL::pawl.%[1]s, ' || quote_literal(row_to_json(t)::text) || ');' FROM pawl.%[1]s t ORDER BY 1", table))
		must(t, err)
		lines, err := pgx.CollectRows(found, pgx.RowTo[string])
		must(t, err)
		sql += strings.Join(lines, "\n") + "\n"
	}
	must(t, c.Close(ctx))
	return sql + "SELECT setval(pg_get_serial_sequence('pawl.sessions', 'num'), (SELECT max(num) FROM pawl.sessions));\n"
}
