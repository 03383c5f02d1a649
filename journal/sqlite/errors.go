package sqlite

import (
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/errdefs"
	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// code gives SQLite's primary result code, or 0 when err is none of its.
func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return lib.SQLITE_OK
}

func locked(err error) bool {
	c := code(err)
	return c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED
}

// unusable is failed for the first look at a file: what is no database there is no damaged one, but the wrong path.
func (s *Store) unusable(err error) error {
	if code(err) == lib.SQLITE_NOTADB {
		return errdefs.Validation.Errorf("journal/sqlite: open %s: it is not a journal: choose another path (%w)", s.path, err)
	}
	return s.failed("open", err)
}

// failed classes an error of SQLite and says what to do about it. An error that has a class already, or a context's, keeps it.
func (s *Store) failed(action string, err error) error {
	if errdefs.Of(err) != nil || errdefs.Canceled(err) {
		return fmt.Errorf("journal/sqlite: %s: %s: %w", action, s.path, err)
	}
	class, remedy := errdefs.Internal, ""
	switch code(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		class, remedy = errdefs.NotAvailable, fmt.Sprintf("another process has been writing to it for more than %v: try again, or end that process", s.patience)
	case lib.SQLITE_FULL:
		class, remedy = errdefs.NotAvailable, "the disk is full: make room and try again"
	case lib.SQLITE_READONLY, lib.SQLITE_PERM:
		class, remedy = errdefs.NotAvailable, "it can't be written: make the file and its directory writable"
	case lib.SQLITE_CANTOPEN:
		class, remedy = errdefs.NotAvailable, "it can't be opened: look at its permissions, its directory's, and the limit of open files"
	case lib.SQLITE_IOERR:
		class, remedy = errdefs.NotAvailable, "the disk failed to do it: look at its health, its space and its quotas, then try again"
	case lib.SQLITE_NOMEM:
		class, remedy = errdefs.NotAvailable, "memory is short"
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		remedy = "the file is damaged: restore it from a copy, or save what can be read with sqlite3's .recover"
	}
	if remedy == "" {
		return class.Errorf("journal/sqlite: %s: %s: %w", action, s.path, err)
	}
	return class.Errorf("journal/sqlite: %s: %s: %s (%w)", action, s.path, remedy, err)
}
