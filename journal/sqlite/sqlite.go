package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wake"
	"github.com/pawl-dev/pawl/journal"
	_ "modernc.org/sqlite" // the driver, in pure Go
)

// Store is an open journal file. Make it with [Open]; the zero Store is of no use. Safe for concurrent use.
type Store struct {
	path     string
	patience time.Duration

	tx    *writing // whoever leads the queue has it
	queue queue

	reader *sql.DB
	stmts  reading

	live alive
	left left
	bell wake.Bell // for followers: see Watch

	mu     sync.Mutex
	closed bool
	users  sync.WaitGroup // calls under way
	close  func() error
}

var (
	_ journal.Store   = (*Store)(nil)
	_ journal.Watcher = (*Store)(nil)
)

// Option changes how a file is opened.
type Option func(*Store)

// WithPatience sets how long an append waits for another process that is writing; 10 s by default. Then it fails with
// errdefs.NotAvailable. A context that ends first ends the waiting.
func WithPatience(d time.Duration) Option { return func(s *Store) { s.patience = d } }

// slice is how long SQLite itself waits for a lock before our own loop looks at contexts again.
const slice = 25 * time.Millisecond

// readers is how many reads run at once; more of them queue. A read holds its connection for one page, never while a consumer works.
const readers = 4

// Path is the file of the journal, absolute.
func (s *Store) Path() string { return s.path }

// Open opens the journal in the file path, and makes it if it isn't there: directories with mode 0700, the file with 0600. It fails
// with errdefs.Validation when path is no journal, and errdefs.NotAvailable when the file can't be used, or was made by a newer version.
func Open(path string, opts ...Option) (*Store, error) {
	s := &Store{patience: 10 * time.Second}
	for _, o := range opts {
		o(s)
	}
	if path == "" || strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:") {
		return nil, errdefs.Validation.Errorf("journal/sqlite: open %q: give the path of a file; for a journal in memory use journal.Memory", path)
	}
	var err error
	if s.path, err = filepath.Abs(path); err != nil {
		return nil, errdefs.Validation.Errorf("journal/sqlite: open %s: %w", path, err)
	}
	s.live.dir = s.path + ".live"
	s.bell.Listen = s.listen
	if err := makeFile(s.path); err != nil {
		return nil, err
	}
	if err := s.connect(); err != nil {
		return nil, errors.Join(err, s.disconnect())
	}
	s.close = sync.OnceValue(s.disconnect)
	return s, nil
}

// Close ends the use of the file, after the appends and page reads under way. What comes later fails with errdefs.NotAvailable, followers too. Closing again
// does nothing and gives the same error. No goroutine is left.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.bell.Close()
	s.users.Wait()
	return s.close()
}

// enter counts a call that uses the file; the caller calls s.users.Done.
func (s *Store) enter(action string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errdefs.NotAvailable.Errorf("journal/sqlite: %s: %s is closed", action, s.path)
	}
	s.users.Add(1)
	return nil
}

// making keeps two Opens of this process from making the same file: closing a file drops all locks that the process has on it, those
// of SQLite too, so that a file that may be open already must never be opened by other means.
var making sync.Mutex

func makeFile(path string) error {
	making.Lock()
	defer making.Unlock()
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return errdefs.Validation.Errorf("journal/sqlite: open %s: it is a directory; give the path of a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		return errdefs.Validation.Errorf("journal/sqlite: open %s: it is no ordinary file", path)
	case err == nil:
		return nil
	}
	have := filepath.Dir(path) // the innermost directory that is there
	for _, err := os.Stat(have); err != nil && have != filepath.Dir(have); _, err = os.Stat(have) {
		have = filepath.Dir(have)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return errdefs.NotAvailable.Errorf("journal/sqlite: open %s: its directory can't be made: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) //nolint:gosec // the path is the caller's
	if errors.Is(err, fs.ErrExist) {
		return nil // another process was faster
	}
	if err != nil {
		return errdefs.NotAvailable.Errorf("journal/sqlite: open %s: the file can't be made: %w", path, err)
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) { // that the file exists has to survive a power failure too
		if d, err := os.Open(dir); err == nil { //nolint:gosec // the path is the caller's
			_ = d.Sync() // where directories can't be synced they needn't be
			_ = d.Close()
		}
		if len(dir) <= len(have) {
			return f.Close()
		}
	}
}

func (s *Store) connect() (err error) {
	var c *conn
	if err := s.insist(func() (err error) {
		c, err = dial(s.dsn("synchronous(FULL)", "fullfsync(1)", "journal_size_limit(67108864)")) // fullfsync: on macOS an fsync alone leaves it in the disk's own cache
		return err
	}); err != nil {
		return s.unusable(err)
	}
	if err := s.prepareFile(c); err != nil {
		return errors.Join(err, c.Close())
	}
	if err := s.insist(func() (err error) { s.tx, err = newWriting(c); return err }); err != nil {
		return errors.Join(s.failed("open", err), c.Close())
	}
	if s.reader, err = sql.Open("sqlite", s.dsn("query_only(1)")); err != nil {
		return s.failed("open", err)
	}
	s.reader.SetMaxOpenConns(readers)
	s.reader.SetMaxIdleConns(readers)
	if err := s.insist(func() error { return s.stmts.prepare(context.Background(), s.reader) }); err != nil {
		return s.failed("open", err)
	}
	return nil
}

// dsn names the file for the driver, whatever characters its path has.
func (s *Store) dsn(pragmas ...string) string {
	path := filepath.ToSlash(s.path)
	if !strings.HasPrefix(path, "/") { // C:/…
		path = "/" + path
	}
	q := url.Values{"_pragma": append([]string{"busy_timeout(" + milliseconds(slice) + ")"}, pragmas...)}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}

func (s *Store) disconnect() error {
	errs := []error{s.live.end()}
	if s.reader != nil {
		s.stmts.close()
		errs = append(errs, s.reader.Close())
	}
	if s.tx != nil {
		errs = append(errs, s.tx.close())
	}
	if err := errors.Join(errs...); err != nil {
		return s.failed("close", err)
	}
	return nil
}
