package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"time"
)

// lookEvery is how often a store that is followed asks whether other processes wrote to the file: see [Store.Watch].
const lookEvery = 100 * time.Millisecond

// Watch implements [journal.Watcher]. What this store appends wakes at once; what other stores append, of other processes most of all, within 100 ms. For that a store
// that is followed asks SQLite ten times a second whether the file changed, on a connection of its own: 7 µs. Only if it did, it looks how far the sessions are that are followed: 30 µs, and 4 µs for each (BenchmarkLook).
func (s *Store) Watch(_ context.Context, session string) (woken <-chan struct{}, stop func()) {
	return s.bell.Watch(session) //nolint:contextcheck // what listens serves all who watch: none of their contexts may end it
}

// listen rings for what other stores write, until ctx ends.
func (s *Store) listen(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var l *lookout
	for {
		if l == nil {
			l, _ = s.newLookout() //nolint:contextcheck // see conn. A file that can't be opened may be, the next time; followers look by themselves, too
		}
		if l != nil && l.look() != nil { //nolint:contextcheck // likewise
			l.close()
			l = nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if l != nil {
				l.close()
			}
			return
		}
	}
}

// lookout is a connection that sees what all others write. Who writes by it is nobody.
type lookout struct {
	*conn
	s                 *Store
	version, sessions driver.Stmt

	seen int64          // the file's version when it looked last
	last map[string]end // how far the followed sessions were then
}

// end is a session's last entry.
type end struct{ num, seq int64 }

func (s *Store) newLookout() (l *lookout, err error) {
	c, err := dial(s.dsn("query_only(1)"))
	if err != nil {
		return nil, err
	}
	l = &lookout{conn: c, s: s, seen: -1}
	if l.version, err = c.Prepare("PRAGMA data_version"); err == nil {
		l.sessions, err = c.Prepare("SELECT id, num, " + lastSeq + " FROM sessions WHERE deleted = 0 AND id IN (SELECT value FROM json_each(?))")
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lookout) close() {
	for _, s := range []driver.Stmt{l.version, l.sessions} {
		if s != nil {
			_ = s.Close() // its connection is closed right after, which wrote nothing
		}
	}
	_ = l.Close()
}

// look rings for the followed sessions that are not as they were. The first time that is all of them.
func (l *lookout) look() error {
	v, err := l.row(l.version)
	if err != nil {
		return err
	}
	seen := l.seen
	if err := v.Scan(&l.seen); err != nil || l.seen == seen {
		return err
	}
	followed := l.s.bell.Sessions()
	list, err := json.Marshal(followed)
	if err != nil {
		return err
	}
	now := make(map[string]end, len(followed))
	err = l.rows(l.sessions, func(v values) error {
		var session string
		var e end
		err := v.Scan(&session, &e.num, &e.seq)
		now[session] = e
		return err
	}, string(list))
	if err != nil {
		return err
	}
	for _, session := range followed {
		if had, known := l.last[session]; !known || had != now[session] {
			l.s.bell.Ring(session)
		}
		if _, there := now[session]; !there {
			now[session] = end{}
		}
	}
	l.last = now
	return nil
}
