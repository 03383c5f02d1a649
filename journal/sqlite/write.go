package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/internal/layout"
)

// row is a session as its table has it. The zero num means that there is none.
type row struct {
	journal.Info
	num           int64
	deleted       bool
	baseNum, base int64
	owner, holder string
	until         int64
}

// rowColumns are those that scan takes, given where seq and updated come from.
func rowColumns(seq, updated string) string {
	return "num, id, deleted, base_num, base, parent, " + seq + ", agent, user, status, created, " + updated + " AS updated, owner, until, holder, dir"
}

func (r *row) scan(from interface{ Scan(...any) error }) error {
	var created, updated int64
	err := from.Scan(&r.num, &r.Session, &r.deleted, &r.baseNum, &r.base, &r.Parent, &r.Seq, &r.Agent, &r.User, &r.Status, &created, &updated, &r.owner, &r.until, &r.holder, &r.Dir)
	r.Created, r.Updated = time.Unix(0, created).UTC(), time.Unix(0, updated).UTC()
	return err
}

// writing is the connection that writes, with its statements.
type writing struct {
	*conn
	all []driver.Stmt

	// known has sessions that a run is under way in, as this connection left them. Others may have been there since: see follow.
	known map[string]*row

	beginStmt, commitStmt, rollbackStmt           driver.Stmt
	findStmt, rowStmt, createStmt, updateStmt     driver.Stmt
	insertStmt, followStmt, newestStmt, leaseStmt driver.Stmt
	sharedStmt, buryStmt, removeStmt              driver.Stmt
	removeEntriesStmt, referredStmt               driver.Stmt
	referStmt, insertPartStmt, releaseStmt        driver.Stmt
	removeRefsStmt, removePartStmt                driver.Stmt
}

// maxKnown bounds known: some 300 bytes each.
const maxKnown = 1 << 14

// newWriting prepares what is done on c. When it fails c is as before.
func newWriting(c *conn) (*writing, error) {
	tx := &writing{conn: c, known: map[string]*row{}}
	for _, p := range []struct {
		to    *driver.Stmt
		query string
	}{
		{&tx.beginStmt, "BEGIN IMMEDIATE"},
		{&tx.commitStmt, "COMMIT"},
		{&tx.rollbackStmt, "ROLLBACK"},
		{&tx.findStmt, "SELECT " + rowColumns(lastSeq, "updated") + " FROM sessions WHERE id = ? AND deleted = 0"},
		{&tx.rowStmt, "SELECT " + rowColumns(lastSeq, "updated") + " FROM sessions WHERE num = ?"},
		{&tx.createStmt, "INSERT INTO sessions (id, base_num, base, seq, agent, user, dir, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"},
		{&tx.insertStmt, "INSERT INTO entries (id, time, run, kind, scope, op, ref, parts, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"},
		{&tx.followStmt, "INSERT OR IGNORE INTO entries (id, time, run, kind, scope, op, ref, parts, data) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? FROM sessions WHERE num = ? AND deleted = 0"},
		{&tx.updateStmt, "UPDATE sessions SET seq = ?, updated = ?, parent = ?, agent = ?, user = ?, dir = ?, status = ?, created = ? WHERE num = ?"},
		{&tx.newestStmt, "SELECT data FROM entries WHERE id > ? AND id <= ? AND kind = ? ORDER BY id DESC LIMIT 1"},
		{&tx.leaseStmt, "UPDATE sessions SET owner = ?, until = ?, holder = ? WHERE num = ?"},
		{&tx.sharedStmt, "SELECT coalesce(max(base), 0) FROM sessions WHERE base_num = ? AND base_num > 0"},
		{&tx.buryStmt, "UPDATE sessions SET deleted = 1, agent = '', user = '', dir = '', status = '', owner = '', until = 0, holder = '' WHERE num = ?"},
		{&tx.removeStmt, "DELETE FROM sessions WHERE num = ?"},
		{&tx.removeEntriesStmt, "DELETE FROM entries WHERE id > ? AND id <= ?"},

		{&tx.referStmt, "INSERT INTO part_refs (hash, refs) VALUES (?, ?) ON CONFLICT (hash) DO UPDATE SET refs = refs + excluded.refs RETURNING refs"},
		{&tx.insertPartStmt, "INSERT INTO parts (hash, data) VALUES (?, ?)"},
		{&tx.referredStmt, "SELECT parts FROM entries WHERE id > ? AND id <= ? AND parts IS NOT NULL"},
		{&tx.releaseStmt, "UPDATE part_refs SET refs = refs - ? WHERE hash = ? RETURNING refs"},
		{&tx.removeRefsStmt, "DELETE FROM part_refs WHERE hash = ?"},
		{&tx.removePartStmt, "DELETE FROM parts WHERE hash = ?"},
	} {
		stmt, err := c.Prepare(p.query)
		if err != nil {
			return nil, errors.Join(err, tx.finish())
		}
		*p.to = stmt
		tx.all = append(tx.all, stmt)
	}
	return tx, nil
}

// finish ends the statements.
func (tx *writing) finish() error {
	var errs []error
	for _, s := range tx.all {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

func (tx *writing) close() error { return errors.Join(tx.finish(), tx.Close()) }

func (tx *writing) begin() error  { return tx.do(tx.beginStmt) }
func (tx *writing) commit() error { return tx.do(tx.commitStmt) }

// rollback ends a transaction that failed. SQLite may have ended it itself, so its error says nothing.
func (tx *writing) rollback() {
	clear(tx.known)
	_ = tx.do(tx.rollbackStmt)
}

// find gives the row of a session, the zero row when there is none.
func (tx *writing) find(session string) (r row, err error) {
	v, err := tx.row(tx.findStmt, session)
	if err != nil || v == nil {
		return row{}, err
	}
	return r, r.scan(v)
}

// numbered gives the row with a num, of a deleted session too.
func (tx *writing) numbered(num int64) (r row, err error) {
	v, err := tx.row(tx.rowStmt, num)
	if err != nil {
		return row{}, err
	}
	if v == nil {
		return row{}, errdefs.Internal.Errorf("session number %d, which others share entries with, is missing: the file is damaged", num)
	}
	return r, r.scan(v)
}

// create makes the row of a session that is about to have entries behind those that it shares.
func (tx *writing) create(r row) (num int64, err error) {
	res, err := tx.exec(tx.createStmt, r.Session, r.baseNum, r.base, r.Seq, r.Agent, r.User, r.Dir, r.Created.UnixNano())
	if err != nil {
		return 0, err
	}
	if num, err = res.LastInsertId(); num > maxNum {
		return 0, errdefs.NotAvailable.Errorf("it has had %d sessions: begin another file", int64(maxNum))
	}
	return num, err
}

// insert writes an entry.
func (tx *writing) insert(num int64, e *encoded) error {
	_, err := tx.put(tx.insertStmt, num, e)
	return err
}

// follow writes an entry behind one that this connection wrote, and reports whether it could: unless there is an entry of that number, or the session was deleted, all is as this connection left it.
// Entries go with their session only, and no other session ever gets its num.
func (tx *writing) follow(num int64, e *encoded) (bool, error) {
	res, err := tx.put(tx.followStmt, num, e, num)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

func (tx *writing) put(stmt driver.Stmt, num int64, e *encoded, more ...driver.Value) (driver.Result, error) {
	var parts driver.Value
	if e.parts != "" {
		parts = e.parts
	}
	args := [10]driver.Value{entryID(num, e.Seq), e.Time.UnixNano(), e.Run, string(e.Data.Kind()), e.Key.Scope, e.Key.Op, e.Key.ID, parts, e.data}
	return tx.exec(stmt, append(args[:9], more...)...)
}

func (tx *writing) update(r row) error {
	return tx.do(tx.updateStmt, r.Seq, r.Updated.UnixNano(), r.Parent, r.Agent, r.User, r.Dir, r.Status, r.Created.UnixNano(), r.num)
}

// newest gives the data of a session's last own entry of a kind, after one number and up to another; nil when there is none.
func (tx *writing) newest(num, after, upTo int64, kind journal.Kind) (data []byte, err error) {
	v, err := tx.row(tx.newestStmt, entryID(num, after), entryID(num, max(after, upTo)), string(kind))
	if err != nil || v == nil {
		return nil, err
	}
	return data, v.Scan(&data)
}

// Delete implements [journal.Store]. Entries that a fork shares stay until the last such fork is deleted.
func (s *Store) Delete(ctx context.Context, session string) error {
	err := s.write(ctx, "delete", 0, wish(func(tx *writing) error { //nolint:contextcheck // likewise: see conn
		r, err := tx.find(session)
		if err != nil {
			return err
		}
		if r.num == 0 {
			return refusal{errdefs.NotFound.Errorf("journal/sqlite: delete: there is no session %q", session)}
		}
		delete(tx.known, session)
		return tx.delete(r)
	}))
	if err == nil {
		s.bell.Ring(session)
	}
	return err
}

// delete removes a session, or what of it nobody shares, and then those deleted before that only it shared from.
func (tx *writing) delete(r row) error {
	for {
		var shared int64
		v, err := tx.row(tx.sharedStmt, r.num)
		if err == nil {
			err = v.Scan(&shared)
		}
		if err != nil {
			return err
		}
		if err := tx.removeEntries(entryID(r.num, shared), entryID(r.num, maxSeq)); err != nil {
			return err
		}
		if shared > 0 {
			return tx.do(tx.buryStmt, r.num)
		}
		if err := tx.do(tx.removeStmt, r.num); err != nil {
			return err
		}
		if r.baseNum == 0 {
			return nil
		}
		base, err := tx.numbered(r.baseNum)
		if err != nil || !base.deleted {
			return err
		}
		r = base
	}
}

// removeEntries removes those after one id and up to another, with the parts that no other entry has.
func (tx *writing) removeEntries(after, upTo int64) error {
	parts, err := tx.referred(after, upTo)
	if err != nil {
		return err
	}
	if err := tx.do(tx.removeEntriesStmt, after, upTo); err != nil {
		return err
	}
	for _, p := range parts.Sorted() {
		if err := tx.release(p); err != nil {
			return err
		}
	}
	return nil
}

// referred counts what entries refer to.
func (tx *writing) referred(after, upTo int64) (parts layout.Parts, err error) {
	err = tx.rows(tx.referredStmt, func(v values) error {
		var refs string
		if err := v.Scan(&refs); err != nil {
			return err
		}
		if err := parts.Count(refs); err != nil {
			return errdefs.Internal.Errorf("%w", err)
		}
		return nil
	}, after, upTo)
	return parts, err
}

// refer counts references to a part, and keeps its bytes if they aren't there.
func (tx *writing) refer(p layout.Part) error {
	var refs int64
	v, err := tx.row(tx.referStmt, p.Hash, p.Refs)
	if err == nil {
		err = v.Scan(&refs)
	}
	if err != nil || refs > p.Refs {
		return err
	}
	return tx.do(tx.insertPartStmt, p.Hash, p.Data)
}

// release takes references to a part back, and removes it with the last. One that is missing already was damage to whoever would read it.
func (tx *writing) release(p layout.Part) error {
	v, err := tx.row(tx.releaseStmt, p.Refs, p.Hash)
	if err != nil || v == nil {
		return err
	}
	var refs int64
	if err := v.Scan(&refs); err != nil || refs > 0 {
		return err
	}
	if err := tx.do(tx.removeRefsStmt, p.Hash); err != nil {
		return err
	}
	return tx.do(tx.removePartStmt, p.Hash)
}

// Lease implements [journal.Store]. Processes compare by the clock of their machine. A lease also ends when the store that took it is closed
// or its process dies, at once and however long it was to run, where the system has file locks that end with their process. One that could not be given up, because
// the file could not be written, has ended for this store all the same.
func (s *Store) Lease(ctx context.Context, session, owner string, until time.Time) error {
	over := !until.After(time.Now())
	err := s.write(ctx, "lease", 0, wish(func(tx *writing) error { //nolint:contextcheck // likewise: see conn
		holder, err := s.live.name()
		if err != nil {
			return err
		}
		r, err := tx.find(session)
		if err != nil {
			return err
		}
		now := time.Now()
		switch {
		case r.num == 0:
			return refusal{errdefs.NotFound.Errorf("journal/sqlite: lease: there is no session %q", session)}
		case r.owner != owner && r.until > now.UnixNano() && !s.left.has(session, r.owner) && (r.holder == holder || s.live.other(r.holder)):
			return refusal{errdefs.Conflict.Errorf("journal/sqlite: lease: session %s is driven by %s", session, r.owner)}
		}
		end := int64(0)
		switch {
		case until.Year() > lastYear:
			end = 1<<63 - 1
		case until.After(now):
			end = until.UnixNano()
		}
		return tx.do(tx.leaseStmt, owner, end, holder, r.num)
	}))
	s.left.note(session, owner, over && err != nil)
	return err
}

// left is the leases that were given up, and are in the file still.
type left struct {
	mu     sync.Mutex
	owners map[string]string // by session
}

func (l *left) has(session, owner string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owners[session] == owner && owner != ""
}

// note remembers that an owner's lease is one of them, or is not.
func (l *left) note(session, owner string, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case is && l.owners == nil:
		l.owners = map[string]string{session: owner}
	case is:
		l.owners[session] = owner
	case l.owners[session] == owner:
		delete(l.owners, session)
	}
}
