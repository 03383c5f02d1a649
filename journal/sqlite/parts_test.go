package sqlite_test

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
)

// shot is an entry with a file of n bytes.
func shot(n int) journal.Entry {
	return journal.Entry{Run: "r1", Data: journal.Said{Message: message.New(message.RoleUser, message.File{MIME: "image/png", Data: strings.Repeat("image", n/5)})}}
}

func size(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Size()
}

func TestWhatIsAppendedOftenIsWrittenOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	for n := range int64(10) {
		must(t, s.Append(ctx, "a", n, shot(1<<20)))
		must(t, s.Append(ctx, fmt.Sprint("b", n), 0, said("x"), shot(1<<20)))
	}
	if got := sqlite.Parts(s); got != "1/20" {
		t.Errorf("%s parts/references", got)
	}
	const once = 1 << 20 * 4 / 3 // in base64
	if n := size(t, path+"-wal"); n > once*3/2 {
		t.Errorf("%d bytes went into the log", n)
	}
	if n := count(t, s, "a"); n != 10 {
		t.Errorf("%d entries", n)
	}
	must(t, s.Close())
	if n := size(t, path); n < once || n > once*5/4 {
		t.Errorf("the file has %d bytes", n)
	}
	sound(t, path)
	s = open(t, path)
	must(t, s.Delete(ctx, "a"))
	if got := sqlite.Parts(s); got != "1/10" {
		t.Errorf("%s parts/references", got)
	}
	for n := range 10 {
		must(t, s.Delete(ctx, fmt.Sprint("b", n)))
	}
	if got := sqlite.Rows(s) + " " + sqlite.Parts(s); got != "0/0 0/0" {
		t.Errorf("%s are left", got)
	}
}

func TestPartsGoWithTheLastForkThatSharesThem(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "j.db"))
	must(t, s.Append(ctx, "p", 0, shot(10_000), shot(20_000), shot(30_000)))
	must(t, s.Append(ctx, "f", 2, journal.Entry{Data: journal.SessionCreated{Parent: "p", At: 2}}, shot(10_000)))
	for _, step := range []struct{ drop, want string }{{"", "3/4"}, {"p", "2/3"}, {"f", "0/0"}} {
		if step.drop != "" {
			must(t, s.Delete(ctx, step.drop))
		}
		if got := sqlite.Parts(s); got != step.want {
			t.Errorf("without %q there are %s parts/references, want %s", step.drop, got, step.want)
		}
	}
}

func TestPeopleCanFollowAReferenceInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	text := strings.Repeat("long ", 1000)
	must(t, s.Append(ctx, "a", 0, said(text)))
	must(t, s.Close())
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	want := fmt.Sprintf(`{"message":{"role":"user","parts":[{"type":"text","text":""}]}} 58+5000:%s`, hash)
	if got := raw(t, path, "SELECT data || ' ' || parts FROM journal"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := raw(t, path, "SELECT CAST(data AS TEXT) FROM parts WHERE hash = '"+hash+"'"); got != text {
		t.Errorf("the part is %.100s", got)
	}
}

func TestDamageOfAPartIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ sql, says string }{
		"missing":   {"DELETE FROM parts", "is missing: the file is damaged"},
		"altered":   {"UPDATE parts SET data = CAST(replace(CAST(data AS TEXT), 'l', 'L') AS BLOB)", "was altered: the file is damaged"},
		"cut short": {"UPDATE parts SET data = substr(data, 2)", "was altered: the file is damaged"},
		"misplaced": {"UPDATE entries SET parts = '7' || parts WHERE parts <> ''", "no string is empty: the file is damaged"},
		"no hash":   {"UPDATE entries SET parts = 'x' WHERE parts <> ''", "can't be read: its row is damaged"},
	} {
		path := filepath.Join(t.TempDir(), "j.db")
		s := open(t, path)
		text := strings.Repeat("long ", 1000)
		must(t, s.Append(ctx, "a", 0, said("short"), said(text)))
		must(t, s.Close())
		db, err := sql.Open("sqlite", path)
		must(t, err)
		_, err = db.ExecContext(ctx, c.sql)
		must(t, errors.Join(err, db.Close()))
		s = open(t, path)
		var last error
		for _, err := range s.Read(ctx, "a", 0) {
			last = err
		}
		if errdefs.Of(last) != errdefs.Internal || !strings.Contains(last.Error(), c.says) || !strings.Contains(last.Error(), path+": entry 2 of session a: ") {
			t.Errorf("%s: %v (%v)", name, last, errdefs.Of(last))
		}
		if name != "no hash" {
			must(t, s.Delete(ctx, "a"))
		} else if err := s.Delete(ctx, "a"); errdefs.Of(err) != errdefs.Internal {
			t.Errorf("delete: %v", err)
		}
	}
}

func TestASessionWithPartsThatIsDeletedWhileItIsReadIsNoDamage(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "j.db"))
	for n := range int64(4) {
		must(t, s.Append(ctx, "a", n, said(strings.Repeat(fmt.Sprint(n), 2<<20))))
	}
	var last error
	for e, err := range s.Read(ctx, "a", 0) {
		if last = err; e.Seq == 1 {
			must(t, s.Delete(ctx, "a"))
		}
	}
	if !errdefs.NotFound.Is(last) {
		t.Errorf("got %v", last)
	}
}

// BenchmarkAppendOfAText shows from which length on it pays to keep a text apart: it is in its entry, apart, or apart and on record already.
func BenchmarkAppendOfAText(b *testing.B) {
	for _, n := range []int{1 << 10, 4 << 10, 16 << 10, 256 << 10, 1 << 20} {
		for _, how := range []string{"new", "again"} {
			b.Run(fmt.Sprint(n, "/", how), func(b *testing.B) {
				s := open(b, filepath.Join(b.TempDir(), "j.db"))
				text := strings.Repeat("x", n)
				b.ReportAllocs()
				seq := int64(0)
				for b.Loop() {
					if how == "new" {
						text = fmt.Sprintf("%012d", seq) + text[12:]
					}
					must(b, s.Append(ctx, "a", seq, said(text)))
					seq++
				}
			})
		}
	}
}
