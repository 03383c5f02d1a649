package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// Store keeps sessions as files that people and programs can read: a directory for each session, and in it a file for each append, with an entry a line. A file is named after the number of its first entry; the directory after the hash of the session's name, which may be any text.
//
// The fence is the file system's. Of two that append behind the same entry, in whatever processes, one makes the file, and the other finds that it is there.
type Store struct {
	dir    string
	mu     sync.Mutex // one at a time in this process
	closed bool
}

// Open opens the store in a directory, which it makes if need be.
func Open(dir string) (*Store, error) {
	return &Store{dir: dir}, os.MkdirAll(dir, 0o700)
}

// Close has the store refuse whatever comes then.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// begin takes the lock, unless the store is closed or nobody waits any more.
func (s *Store) begin(ctx context.Context) (end func(), err error) {
	s.mu.Lock()
	if err = ctx.Err(); s.closed {
		err = errdefs.NotAvailable.Errorf("store: it is closed")
	}
	if err != nil {
		s.mu.Unlock()
	}
	return s.mu.Unlock, err
}

// Append implements [journal.Store]: one file, made in one piece.
func (s *Store) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if session == "" || len(entries) == 0 {
		return errdefs.Validation.Errorf("store: append needs a session and entries")
	}
	last, err := s.last(session)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	first := after + 1
	if fork, ok := entries[0].Data.(journal.SessionCreated); ok && fork.Parent != "" {
		if last > 0 {
			return errdefs.Conflict.Errorf("store: fork of %s to %s: there is a session of that name", fork.Parent, session)
		}
		if err := s.copyTo(&text, fork.Parent, fork.At); err != nil {
			return err
		}
		first, last = 1, fork.At
	}
	if last != after {
		return errdefs.Conflict.Errorf("store: append to %s after entry %d: its last is %d", session, after, last)
	}
	now := time.Now()
	for i, e := range entries {
		e.Session, e.Seq = session, after+int64(i)+1
		if e.Time.IsZero() {
			e.Time = now
		}
		line, err := e.MarshalJSON() // the journal's own format; what it can't read again it refuses
		if err != nil {
			return err
		}
		text.Write(append(line, '\n'))
	}
	return s.write(session, first, text.Bytes())
}

// copyTo gives a fork what it shares. It has a copy of its own, so its parent can be deleted.
func (s *Store) copyTo(text *bytes.Buffer, parent string, upTo int64) error {
	last, err := s.last(parent)
	if err != nil {
		return err
	}
	if last == 0 || upTo < 0 || upTo > last {
		return errdefs.NotFound.Errorf("store: fork of %s at %d: there is no such entry", parent, upTo)
	}
	for line, err := range s.lines(parent, 0) {
		if err != nil || upTo == 0 {
			return err
		}
		text.Write(line)
		upTo--
	}
	return nil
}

// write makes a file: whole, on disk, and never in the place of another one.
func (s *Store) write(session string, first int64, text []byte) error {
	if err := os.MkdirAll(s.path(session), 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(s.path(session), "new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(text)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	err = os.Link(temp.Name(), s.path(session, strconv.FormatInt(first, 10)))
	if errors.Is(err, fs.ErrExist) {
		return errdefs.Conflict.Errorf("store: append to %s: somebody else has written entry %d", session, first)
	}
	if err == nil {
		err = onDisk(s.path(session))
	}
	if err == nil && first == 1 {
		err = onDisk(s.dir)
	}
	return err
}

// onDisk returns when a directory's names are there for good.
func onDisk(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // one of the store's own
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// path is where a session is, or one of its files.
func (s *Store) path(session string, file ...string) string {
	hash := sha256.Sum256([]byte(session))
	return filepath.Join(slices.Concat([]string{s.dir, hex.EncodeToString(hash[:])}, file)...)
}

// Delete implements [journal.Store]: the session is gone in one piece, then its files are removed.
func (s *Store) Delete(ctx context.Context, session string) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	last, err := s.last(session)
	if err != nil {
		return err
	}
	if last == 0 {
		return errdefs.NotFound.Errorf("store: there is no session %q", session)
	}
	gone, err := os.MkdirTemp(s.dir, "gone-")
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(s.path(session), filepath.Join(gone, "session")), os.RemoveAll(gone), onDisk(s.dir))
}

// lease is a file beside a session's entries.
type lease struct {
	Owner string
	Until time.Time
}

// Lease implements [journal.Store]. Two processes that ask at the same moment may both get it: safety is Append's.
func (s *Store) Lease(ctx context.Context, session, owner string, until time.Time) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if last, err := s.last(session); err != nil || last == 0 {
		return errors.Join(err, errdefs.NotFound.Errorf("store: there is no session %q", session))
	}
	var now lease
	text, err := os.ReadFile(s.path(session, "lease"))
	if err == nil {
		err = json.Unmarshal(text, &now)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if left := time.Until(now.Until); now.Owner != owner && left > 0 {
		return errdefs.Conflict.Errorf("store: session %s: %w", session, &journal.Leased{Owner: now.Owner, Left: left}) // its process may be dead: nobody can tell here
	}
	if text, err = json.Marshal(lease{owner, until}); err != nil {
		return err
	}
	temp := s.path(session, "lease.new")
	return errors.Join(os.WriteFile(temp, text, 0o600), os.Rename(temp, s.path(session, "lease")))
}
