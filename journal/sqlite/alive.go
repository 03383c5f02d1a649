package sqlite

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// alive is how a store shows others that it is there: it holds a lock on a file of its own, which the system takes away when the
// process dies, however it dies. The files are in a directory beside the journal; one that is left behind by a process that died is removed
// by whoever finds it so.
type alive struct {
	dir string

	mu   sync.Mutex
	id   string
	file *os.File // locked
	over bool
}

// name gives the store's name among those that are alive, and makes it one of them the first time. "" where there are no such locks.
func (a *alive) name() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.id != "" || !haveLocks || a.over {
		return a.id, nil
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return "", err
	}
	id := strings.ToLower(rand.Text())
	f, err := os.OpenFile(filepath.Join(a.dir, id), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) //nolint:gosec // a name of ours in a directory of ours
	if err != nil {
		return "", err
	}
	if err := lock(f); err != nil {
		return "", errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	a.id, a.file = id, f
	return id, nil
}

// other reports whether the store of that name is alive, or may be.
func (a *alive) other(id string) bool {
	if id == "" || id != filepath.Base(id) {
		return true // nobody said who: the time alone counts
	}
	f, err := os.OpenFile(filepath.Join(a.dir, id), os.O_RDWR, 0) //nolint:gosec // a name of ours in a directory of ours
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer func() { _ = f.Close() }()
	if lock(f) != nil {
		return true
	}
	_ = os.Remove(f.Name()) // what its process left
	return false
}

// end gives the name up.
func (a *alive) end() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.file == nil {
		return nil
	}
	f := a.file
	a.file = nil
	_ = os.Remove(f.Name())
	return f.Close()
}
