package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/journaltest"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(child(role))
	}
	goleak.VerifyTestMain(m)
}

var ctx = context.Background()

func open(t testing.TB, path string, opts ...sqlite.Option) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, opts...)
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

// sound lets SQLite check the whole file, and counts the references to parts.
func sound(t testing.TB, path string) {
	t.Helper()
	if got := raw(t, path, "PRAGMA integrity_check"); got != "ok" {
		t.Errorf("integrity check: %s", got)
	}
	const refs = "SELECT coalesce(sum(length(parts) - length(replace(parts, ':', ''))), 0) || ' references, ' || (SELECT count(*) FROM parts) FROM entries"
	if got, want := raw(t, path, "SELECT coalesce(sum(refs), 0) || ' references, ' || count(*) FROM part_refs"), raw(t, path, refs); got != want {
		t.Errorf("%s parts are counted, there are %s", got, want)
	}
}

// change changes the file directly, when no Store has it open in this process.
func change(t testing.TB, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer func() { _ = db.Close() }()
	for _, q := range statements {
		_, err := db.ExecContext(ctx, q)
		must(t, err)
	}
}

// raw asks the file directly, when no Store has it open in this process.
func raw(t testing.TB, path, query string) (answer string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer func() { _ = db.Close() }()
	must(t, db.QueryRowContext(ctx, query).Scan(&answer))
	return answer
}

func TestItIsAStore(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journal.Store { return open(t, filepath.Join(t.TempDir(), "j.db")) })
}

func TestItIsADurableStore(t *testing.T) {
	journaltest.RunDurable(t, func(t *testing.T, dir string) journal.Store { return open(t, filepath.Join(dir, "j.db")) })
}

// Nobody cuts the power here. What is looked at is what SQLite says it takes for a commit to outlive that: the log is flushed at each one (2 is FULL), on macOS past the disk's own cache.
func TestACommitIsFlushedToTheDisk(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "j.db"))
	defer func() { must(t, s.Close()) }()
	for name, want := range map[string]int64{"synchronous": 2, "fullfsync": 1} {
		if got, err := sqlite.Setting(s, name); err != nil || got != want {
			t.Errorf("%s is %d, want %d: %v", name, got, want, err)
		}
	}
}

func TestTheFileIsPrivateAndItsDirectoriesAreMade(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "new", "deep", "j.db")
	s := open(t, path)
	must(t, s.Append(ctx, "a", 0, said("x")))
	for p, want := range map[string]fs.FileMode{filepath.Join(root, "new"): 0o700, filepath.Dir(path): 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600} {
		info, err := os.Stat(p)
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", p, info.Mode().Perm(), want)
		}
	}
	must(t, s.Close())
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the write-ahead log stays after the last Close")
	}
	if app, v, mode := raw(t, path, "PRAGMA application_id"), raw(t, path, "PRAGMA user_version"), raw(t, path, "PRAGMA journal_mode"); app != "1348564844" || v != "3" || mode != "wal" {
		t.Error(app, v, mode)
	}
}

func TestAnyPathWillDo(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"plain", "with space.db", "a?b=c&d#e%20f", "ünï 会.db", "dir/../x;y'\"", "*"} {
		s := open(t, path)
		must(t, s.Append(ctx, "a", 0, said(path)))
		must(t, s.Close())
		if _, err := os.Stat(filepath.Clean(path)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if n := count(t, open(t, path), "a"); n != 1 {
			t.Errorf("%s: %d entries", path, n)
		}
	}
}

func TestWhatIsNoJournalIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	database := func(name string, statements ...string) string {
		path := filepath.Join(dir, name)
		change(t, path, statements...)
		return path
	}
	newer := filepath.Join(dir, "newer.db")
	must(t, open(t, newer).Close())
	database("newer.db", "PRAGMA user_version=4")
	for name, c := range map[string]struct {
		path  string
		class *errdefs.Class
		says  string
	}{
		"nothing":            {"", errdefs.Validation, "path of a file"},
		"memory":             {":memory:", errdefs.Validation, "journal.Memory"},
		"a URI":              {"file:x.db?mode=memory", errdefs.Validation, "path of a file"},
		"a directory":        {dir, errdefs.Validation, "it is a directory"},
		"a device":           {os.DevNull, errdefs.Validation, "no ordinary file"},
		"a text":             {file("text", strings.Repeat("hello world\n", 500)), errdefs.Validation, "not a journal"},
		"a short text":       {file("short", "hi"), errdefs.Validation, "not a journal"},
		"another's database": {database("other.db", "CREATE TABLE t(x)"), errdefs.Validation, "another program's"},
		"another's id":       {database("id.db", "PRAGMA application_id=7"), errdefs.Validation, "another program's"},
		"a newer one":        {newer, errdefs.NotAvailable, "version 4; this program knows up to 3"},
		"below a file":       {filepath.Join(file("f", ""), "j.db"), errdefs.NotAvailable, "directory"},
	} {
		before, _ := os.ReadFile(c.path)
		s, err := sqlite.Open(c.path)
		if errdefs.Of(err) != c.class || !strings.Contains(err.Error(), c.says) || s != nil {
			t.Errorf("%s: %v (%v), want %v that says %q", name, err, errdefs.Of(err), c.class, c.says)
		}
		if after, _ := os.ReadFile(c.path); string(before) != string(after) {
			t.Errorf("%s: it was changed", name)
		}
	}
	open(t, file("empty", "")) // as mktemp makes it
}

func TestManyOpenOneNewFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := sqlite.Open(path)
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
	s := open(t, path)
	for i := range 8 {
		if n := count(t, s, fmt.Sprint(i)); n != 1 {
			t.Errorf("session %d has %d entries", i, n)
		}
	}
}

// hold keeps the file's write lock, as another process that is writing does, until the function that it gives is called.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	conn, err := db.Conn(ctx)
	must(t, err)
	_, err = conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	must(t, err)
	release = sync.OnceFunc(func() {
		_, err := conn.ExecContext(ctx, "ROLLBACK")
		must(t, errors.Join(err, conn.Close(), db.Close()))
	})
	t.Cleanup(release)
	return release
}

func TestALockedFileIsWaitedForWithPatience(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path, sqlite.WithPatience(150*time.Millisecond))
	must(t, s.Append(ctx, "a", 0, said("1")))
	release := hold(t, path)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			err := s.Append(ctx, fmt.Sprint(i), 0, said("x"))
			if errdefs.Of(err) != errdefs.NotAvailable || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "another process") {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	if n := count(t, s, "a"); n != 1 { // readers don't care
		t.Errorf("%d entries", n)
	}
	other, err := sqlite.Open(path, sqlite.WithPatience(50*time.Millisecond)) // nor does opening
	must(t, err)
	must(t, other.Close())
	release()
	must(t, s.Append(ctx, "a", 1, said("2")))
}

func TestACancelledAppendInTheQueueIsNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	must(t, s.Append(ctx, "a", 0, said("1")))
	release := hold(t, path)
	// The first leads and waits for the lock; the others queue behind it.
	cancels := make([]context.CancelFunc, 6)
	errs := make([]chan error, 6)
	for i := range cancels {
		var c context.Context
		c, cancels[i] = context.WithCancel(ctx)
		errs[i] = make(chan error, 1)
		go func() { errs[i] <- s.Append(c, fmt.Sprint("s", i), 0, said("x"), said("y")) }()
	}
	for sqlite.Waiting(s) < len(errs) {
		time.Sleep(time.Millisecond)
	}
	for _, i := range []int{0, 3, 5} { // whichever of them leads
		cancels[i]()
		select {
		case err := <-errs[i]:
			if !errdefs.Canceled(err) {
				t.Errorf("%d: %v", i, err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("a cancelled append hangs while the file is locked")
		}
	}
	release()
	for _, i := range []int{1, 2, 4} {
		if err := <-errs[i]; err != nil {
			t.Errorf("%d: %v", i, err)
		}
		cancels[i]()
	}
	for i := range cancels {
		want := int64(2)
		if i == 0 || i == 3 || i == 5 {
			want = 0
		}
		if n := count(t, s, fmt.Sprint("s", i)); n != want {
			t.Errorf("session %d has %d entries, want %d", i, n, want)
		}
	}
}

func TestAppendsThatComeTogetherShareATransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	must(t, s.Append(ctx, "a", 0, said("1")))
	release, before := hold(t, path), sqlite.Commits(s)
	var wg sync.WaitGroup
	const n = 50
	for i := range n {
		wg.Go(func() {
			if err := s.Append(ctx, fmt.Sprint("s", i), 0, said("x")); err != nil {
				t.Error(err)
			}
		})
	}
	for sqlite.Waiting(s) < n {
		time.Sleep(time.Millisecond)
	}
	release()
	wg.Wait()
	if got := sqlite.Commits(s) - before; got > 3 { // one, if SQLite gets the lock at once
		t.Errorf("%d appends took %d transactions", n, got)
	}
}

func TestClosingWaitsForWhatIsQueued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	release := hold(t, path)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := s.Append(ctx, fmt.Sprint("s", i), 0, said("x")); err != nil {
				t.Error(err)
			}
		})
	}
	for sqlite.Waiting(s) < 8 {
		time.Sleep(time.Millisecond)
	}
	closed := make(chan error, 2)
	for range 2 {
		go func() { closed <- s.Close() }()
	}
	release()
	wg.Wait()
	must(t, errors.Join(<-closed, <-closed))
	if err := s.Append(ctx, "s0", 1, said("x")); errdefs.Of(err) != errdefs.NotAvailable || !strings.Contains(err.Error(), "closed") {
		t.Errorf("append after close: %v", err)
	}
	again := open(t, path)
	for i := range 8 {
		if n := count(t, again, fmt.Sprint("s", i)); n != 1 {
			t.Errorf("session %d: %d entries", i, n)
		}
	}
}

func TestReadersOfASessionThatIsDeletedAreTold(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "j.db"))
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
	if !errdefs.NotFound.Is(last) {
		t.Errorf("got %v", last)
	}
}

func TestDeletedEntriesLeaveNothingBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	fork := func(name, parent string, at int64) {
		must(t, s.Append(ctx, name, at, journal.Entry{Data: journal.SessionCreated{Parent: parent, At: at}}, said("mine")))
	}
	must(t, s.Append(ctx, "p", 0, said("1"), said("2"), said("3"), said("4")))
	fork("f", "p", 3)
	fork("g", "f", 5)
	fork("h", "g", 2) // shares from p alone
	rows := func(want string) {
		t.Helper()
		if got := sqlite.Rows(s); got != want {
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

func TestTimesOutOfRangeAndGiantsAreRefused(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "j.db"))
	for _, y := range []int{1, 1600, 2300} {
		e := said("x")
		e.Time = time.Date(y, 2, 1, 0, 0, 0, 0, time.UTC)
		if err := s.Append(ctx, "a", 0, said("ok"), e); !errdefs.Validation.Is(err) {
			t.Errorf("year %d: %v", y, err)
		}
	}
	defer sqlite.LimitEntries(1000)()
	if err := s.Append(ctx, "a", 0, said("ok"), said(strings.Repeat("x", 1000))); !errdefs.Validation.Is(err) {
		t.Errorf("a giant: %v", err)
	}
	if n := count(t, s, "a"); n != 0 {
		t.Errorf("%d entries", n)
	}
}

func TestADamagedFileIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	entries := make([]journal.Entry, 2000)
	for i := range entries {
		entries[i] = said(strings.Repeat("some text ", 30))
	}
	must(t, s.Append(ctx, "a", 0, entries...))
	must(t, s.Close())
	b, err := os.ReadFile(path)
	must(t, err)
	for i := 8 * 4096; i < len(b); i++ {
		b[i] ^= 0x5a
	}
	must(t, os.WriteFile(path, b, 0o600))
	s, err = sqlite.Open(path)
	if err == nil {
		defer func() { _ = s.Close() }()
		for _, e := range s.Read(ctx, "a", 0) {
			err = e
		}
	}
	if errdefs.Of(err) != errdefs.Internal || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v (%v)", err, errdefs.Of(err))
	}
}

func TestEntriesOfANewerProgramAreRefusedNotSkipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	must(t, s.Append(ctx, "a", 0, said("1"), said("2")))
	must(t, s.Close())
	db, err := sql.Open("sqlite", path)
	must(t, err)
	_, err = db.ExecContext(ctx, "UPDATE entries SET kind='dreamt' WHERE id = (SELECT max(id) FROM entries)")
	must(t, errors.Join(err, db.Close()))
	var last error
	for _, err := range open(t, path).Read(ctx, "a", 0) {
		last = err
	}
	if errdefs.Of(last) != errdefs.NotAvailable || !strings.Contains(last.Error(), "dreamt") {
		t.Errorf("got %v", last)
	}
}

func TestPeopleCanReadTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	e := said("héllo")
	e.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	must(t, s.Append(ctx, "a", 0, e))
	must(t, s.Close())
	got := raw(t, path, `SELECT session || ' ' || seq || ' ' || substr(time, 1, 19) || ' ' || kind || ' ' || data FROM journal`)
	if want := `a 1 2026-01-02T03:04:05 said {"message":{"role":"user","parts":[{"type":"text","text":"héllo"}]}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func Example() {
	dir, _ := os.MkdirTemp("", "")
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := sqlite.Open(filepath.Join(dir, "journal.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()

	hello := journal.Entry{Data: journal.Said{Message: message.User("hello")}}
	_ = store.Append(ctx, "session-1", 0, hello) // durable when it returns
	fmt.Println("a stale writer:", errors.Is(store.Append(ctx, "session-1", 0, hello), errdefs.Conflict))
	for info, err := range store.Sessions(ctx, journal.Query{Limit: 10}) {
		fmt.Println(info.Session, info.Seq, err)
	}
	// Output:
	// a stale writer: true
	// session-1 1 <nil>
}

func TestAMissingEntryIsDamageNotAnEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	must(t, s.Append(ctx, "a", 0, said("1"), said("2"), said("3")))
	must(t, s.Close())
	db, err := sql.Open("sqlite", path)
	must(t, err)
	_, err = db.ExecContext(ctx, "DELETE FROM entries WHERE id & 0xFFFFFFFF = 2")
	must(t, errors.Join(err, db.Close()))
	var n int
	var last error
	for _, err := range open(t, path).Read(ctx, "a", 0) {
		n++
		last = err
	}
	if n != 2 || errdefs.Of(last) != errdefs.Internal || !strings.Contains(last.Error(), "entry 2 of session a is missing") {
		t.Errorf("%d yields, the last with %v", n, last)
	}
}

func TestAStoreMayBeClosedWhileItIsRead(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "j.db"))
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
	if errdefs.Of(last) != errdefs.NotAvailable {
		t.Errorf("got %v", last)
	}
}
