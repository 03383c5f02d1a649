package sqlite_test

import (
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-dev/pawl/journal/internal/ages"
)

var update = flag.Bool("update", false, "write a file of this version anew")

// dumped is what a file of a version has, as SQL, and read what it says, which no program may lose. Those of versions that are out are never changed.
func dumped(version string) string { return filepath.Join("testdata", "v"+version+".sql") }
func read(file string) string      { return strings.TrimSuffix(file, ".sql") + ".jsonl" }

// A file that any version has written says the same to this one, and goes on.
func TestFilesOfAllVersionsAreReadForever(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new.db")
	s := open(t, path)
	ages.Write(t, s)
	must(t, s.Append(ctx, "gone", 0, said(strings.Repeat("a long story. ", 400))))
	must(t, s.Delete(ctx, "gone"))
	says := ages.Says(t, s)
	must(t, s.Close())
	now := raw(t, path, "PRAGMA user_version")
	if *update {
		must(t, os.WriteFile(dumped(now), []byte(dump(t, path)), 0o600))
		must(t, os.WriteFile(read(dumped(now)), []byte(says), 0o600))
	}
	if _, err := os.Stat(dumped(now)); err != nil {
		t.Errorf("version %s has no file: write it with -update, and leave those of other versions as they are: %v", now, err)
	}
	files, err := filepath.Glob(dumped("*"))
	must(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			must(t, err)
			golden, err := os.ReadFile(read(file))
			must(t, err)
			path := filepath.Join(t.TempDir(), "old.db")
			change(t, path, string(b))
			s := open(t, path)
			if d := cmp.Diff(string(golden), ages.Says(t, s)); d != "" {
				t.Errorf("-kept +read\n%s", d)
			}
			after := count(t, s, "fork")
			must(t, s.Append(ctx, "fork", after, said("it goes on")))
			must(t, s.Close())
			sound(t, path)
			if v := raw(t, path, "PRAGMA user_version"); v != now {
				t.Errorf("it has version %s", v)
			}
		})
	}
}

// dump is a file as SQL that makes it again.
func dump(t *testing.T, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer func() { _ = db.Close() }()
	column := func(query string) (all []string) {
		rows, err := db.QueryContext(ctx, query)
		must(t, err)
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var text string
			must(t, rows.Scan(&text))
			all = append(all, text)
		}
		must(t, rows.Err())
		return all
	}
	lines := []string{"PRAGMA application_id=" + raw(t, path, "PRAGMA application_id"), "PRAGMA user_version=" + raw(t, path, "PRAGMA user_version")}
	lines = append(lines, column("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid")...)
	for _, table := range column("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid") {
		columns := column("SELECT name FROM pragma_table_info('" + table + "')")
		quoted := "quote(" + strings.Join(columns, ") || ', ' || quote(") + ")"
		if table == "sqlite_sequence" { // which numbers were used
			lines = append(lines, "DELETE FROM sqlite_sequence")
		}
		lines = append(lines, column("SELECT 'INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES (' || "+quoted+" || ')' FROM "+table+" ORDER BY 1")...)
	}
	return strings.Join(lines, ";\n") + ";\n"
}
