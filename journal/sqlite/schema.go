package sqlite

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

const (
	applicationID = 0x5061776C // "Pawl"
	version       = 3          // of the schema; PRAGMA user_version
)

// A session's entries lie side by side in one B-tree: an entry's id is its session's num and its own number in one integer. nums are never
// used again, so that a reader of a session that was deleted meanwhile never sees another's.
//
// A fork has base_num and base: the session whose entries it shares, and up to which. That one's own entries reach base; it may share the ones
// before from a third. What is deleted stays as a row with deleted = 1 as long as a fork shares from it.
//
// While a run is under way (status running), a session's seq and updated are those of the last entry that changed something else of its row, and the entries behind it say more: so an append changes
// one page of the file, not two. That came with version 2; in version 1 they were always those of the last entry. Version 3 has dir.
//
// Long strings are in parts, once each, as long as a row of entries has them: see journal/internal/layout.
const schema = `
CREATE TABLE sessions (
	num INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL,
	deleted INTEGER NOT NULL DEFAULT 0,
	base_num INTEGER NOT NULL DEFAULT 0,
	base INTEGER NOT NULL DEFAULT 0,
	parent TEXT NOT NULL DEFAULT '',
	seq INTEGER NOT NULL DEFAULT 0,
	agent TEXT NOT NULL DEFAULT '',
	user TEXT NOT NULL DEFAULT '',
	status TEXT NOT NULL DEFAULT '',
	created INTEGER NOT NULL DEFAULT 0, -- this and the times below: nanoseconds since 1970
	updated INTEGER NOT NULL DEFAULT 0,
	owner TEXT NOT NULL DEFAULT '', -- of the lease
	until INTEGER NOT NULL DEFAULT 0,
	holder TEXT NOT NULL DEFAULT '', -- the store that has the lease: see alive.go
	dir TEXT NOT NULL DEFAULT '' -- of the last run
) STRICT;
CREATE UNIQUE INDEX sessions_id ON sessions(id) WHERE deleted = 0;
CREATE INDEX sessions_base ON sessions(base_num) WHERE base_num > 0;
CREATE TABLE entries (
	id INTEGER PRIMARY KEY, -- num << 32 | seq
	time INTEGER NOT NULL,
	run TEXT NOT NULL,
	kind TEXT NOT NULL,
	scope TEXT NOT NULL,
	op TEXT NOT NULL,
	ref TEXT NOT NULL,
	parts TEXT, -- NULL, or what goes into data: "57+1398104:HASH …", 1398104 bytes at offset 57, and so on
	data BLOB NOT NULL -- JSON, its long strings empty
) STRICT;
CREATE TABLE parts (
	hash TEXT PRIMARY KEY, -- SHA-256 of data
	data BLOB NOT NULL -- what was between the quotes
) STRICT;
CREATE TABLE part_refs ( -- apart from the bytes, which SQLite would write again with each count
	hash TEXT PRIMARY KEY,
	refs INTEGER NOT NULL -- how many times rows of entries have it
) STRICT, WITHOUT ROWID;
CREATE VIEW journal AS
	SELECT s.id AS session, e.id & 0xFFFFFFFF AS seq, strftime('%Y-%m-%dT%H:%M:%fZ', e.time / 1e9, 'unixepoch') AS time,
		e.run, e.kind, e.scope, e.op, e.ref, CAST(e.data AS TEXT) AS data, e.parts
	FROM entries e JOIN sessions s ON s.num = e.id >> 32 WHERE s.deleted = 0;
`

const (
	seqBits = 32
	maxSeq  = 1<<seqBits - 1
	maxNum  = 1<<(63-seqBits) - 1
)

// running is the status of a session that a run is under way in.
const running = "running"

// lastSeq and lastTime are those of a session's last entry, in a query of sessions.
const (
	lastSeq  = "CASE status WHEN '" + running + "' THEN (SELECT e.id & 0xFFFFFFFF" + ofLast + " ELSE seq END"
	lastTime = "CASE status WHEN '" + running + "' THEN (SELECT e.time" + ofLast + " ELSE updated END"

	ofLast = " FROM entries e WHERE e.id > num << 32 AND e.id <= (num << 32 | 0xFFFFFFFF) ORDER BY e.id DESC LIMIT 1)"
)

// entryID is the key of an entry in the table.
func entryID(num, seq int64) int64 { return num<<seqBits | seq }

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// prepareFile makes sure that the file is a journal of this version, in WAL mode.
func (s *Store) prepareFile(conn *conn) error {
	have, err := s.inspect(conn)
	if err != nil {
		return err
	}
	var mode string
	if err := s.insist(func() error { return conn.ask("PRAGMA journal_mode=WAL", &mode) }); err != nil {
		return s.failed("open", err)
	}
	if !strings.EqualFold(mode, "wal") {
		return errdefs.NotAvailable.Errorf("journal/sqlite: open %s: a write-ahead log can't be had there (mode %s): put the file on a disk of this machine", s.path, mode)
	}
	if have == version {
		return nil
	}
	if err := s.insist(func() error { return conn.run("BEGIN IMMEDIATE") }); err != nil {
		return s.failed("open", err)
	}
	if have, err = s.inspect(conn); err == nil && have != version { // else another process made it meanwhile
		change := schema
		if have > 0 { // a file of version 1 is one of version 2 as it is; who knows version 1 only must not go on with it
			change = "ALTER TABLE sessions ADD COLUMN dir TEXT NOT NULL DEFAULT ''; -- of the last run\n"
		}
		if err = conn.run(change + fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", applicationID, version)); err == nil && have > 0 {
			err = noteDirs(conn)
		}
		if err != nil {
			err = s.failed("open", err)
		}
	}
	if err != nil {
		return errors.Join(err, conn.run("ROLLBACK"))
	}
	if err := conn.run("COMMIT"); err != nil {
		return s.failed("open", err)
	}
	return nil
}

// noteDirs fills in the directories of sessions from before they were noted: that of the last run, and for a task, whose runs had none, that of the session which gave it. What can't be read does not keep the file from being opened: it has none.
func noteDirs(conn *conn) (err error) {
	tx, err := newWriting(conn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.finish()) }()
	stmt, err := conn.Prepare("SELECT " + rowColumns(lastSeq, "updated") + " FROM sessions WHERE deleted = 0 ORDER BY id")
	if err != nil {
		return err
	}
	var all []row
	if err := errors.Join(tx.rows(stmt, func(v values) error {
		all = append(all, row{})
		return all[len(all)-1].scan(v)
	}), stmt.Close()); err != nil {
		return err
	}
	place, err := conn.Prepare("UPDATE sessions SET dir = ? WHERE num = ?")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	dirs := map[string]string{}
	for _, r := range all { // by name: a task's begins with that of the session above it
		run, err := tx.lastRun(r, r.Seq)
		if err != nil && !errdefs.Internal.Is(err) {
			return err
		}
		dir := run.Dir
		if dir == "" && strings.Contains(r.Session, "/") {
			made := journal.SessionCreated{}
			data, err := tx.newest(r.num, 0, 1, made.Kind())
			if err != nil {
				return err
			}
			if d, broken := journal.DecodeData(made.Kind(), data); data != nil && broken == nil {
				made = d.(journal.SessionCreated)
			}
			dir = dirs[made.TaskOf]
		}
		if dir == "" {
			continue
		}
		dirs[r.Session] = dir
		if err := tx.do(place, dir, r.num); err != nil {
			return err
		}
	}
	return nil
}

// inspect gives the version of a journal, 0 of a new file, and refuses all else.
func (s *Store) inspect(conn *conn) (have int64, err error) {
	var app, tables int64
	// One statement: another process may be making the file, and half of before and half of after is another program's.
	const query = "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)"
	if err := s.insist(func() error { return conn.ask(query, &app, &have, &tables) }); err != nil {
		return 0, s.unusable(err)
	}
	switch {
	case app == 0 && have == 0 && tables == 0:
		return 0, nil
	case app != applicationID:
		return 0, errdefs.Validation.Errorf("journal/sqlite: open %s: it is another program's database: choose another path", s.path)
	case have > version:
		return 0, errdefs.NotAvailable.Errorf("journal/sqlite: open %s: it has schema version %d; this program knows up to %d: use a newer one", s.path, have, version)
	case have < 1:
		return 0, errdefs.Internal.Errorf("journal/sqlite: open %s: it has no schema version: it was not made by this program", s.path)
	}
	return have, nil
}

// insist does something again while another process has the file locked, for as long as the store's patience. Mostly SQLite itself
// waits (busy_timeout); where it does not, as while the file becomes one with a write-ahead log, there is a short pause between two tries.
func (s *Store) insist(do func() error) error {
	for end := time.Now().Add(s.patience); ; {
		err := do()
		if !locked(err) || time.Now().After(end) {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}
