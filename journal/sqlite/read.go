package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/internal/layout"
)

// narrowed is a Query, but for the name.
const narrowed = "(?1 = '' OR agent = ?1) AND (?2 = '' OR user = ?2) AND (?3 = '' OR status = ?3) AND (?4 = '' OR dir = ?4)"

// reading has the statements that read, prepared on each connection of the pool as it comes to it.
type reading struct {
	chain, page, parts, list, named *sql.Stmt
}

func (r *reading) prepare(ctx context.Context, db *sql.DB) error {
	for _, p := range []struct {
		to    **sql.Stmt
		query string
	}{
		// A session and those that it shares from, itself first, each with the part that it has: after base, up to upto.
		{&r.chain, `WITH RECURSIVE chain(num, id, base_num, base, upto) AS (
			SELECT num, id, base_num, base, ` + lastSeq + ` FROM sessions WHERE id = ? AND deleted = 0
			UNION ALL
			SELECT s.num, s.id, s.base_num, s.base, chain.base FROM chain JOIN sessions s ON s.num = chain.base_num
		) SELECT num, id, base, upto FROM chain`},
		{&r.page, "SELECT id, time, run, kind, scope, op, ref, parts, data FROM entries WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"},
		{&r.parts, "SELECT hash, data FROM parts WHERE hash IN (SELECT value FROM json_each(?))"},
		{&r.list, "SELECT " + rowColumns(lastSeq, lastTime) + " FROM sessions WHERE deleted = 0 AND " + narrowed + " ORDER BY updated DESC, id LIMIT ?5"},
		{&r.named, "SELECT " + rowColumns(lastSeq, lastTime) + " FROM sessions WHERE id = ?6 AND deleted = 0 AND " + narrowed + " LIMIT ?5"}, // by the index of names
	} {
		stmt, err := db.PrepareContext(ctx, p.query) //nolint:sqlclosecheck // close does
		if err != nil {
			return err
		}
		*p.to = stmt
	}
	return nil
}

func (r *reading) close() {
	for _, s := range []*sql.Stmt{r.chain, r.page, r.parts, r.list, r.named} {
		if s != nil {
			_ = s.Close() // the pool is closed right after
		}
	}
}

// Read implements [journal.Store]. It reads up to 256 entries or 1 MiB at a time, and holds neither a connection nor a lock while the consumer
// works. Entries that are appended meanwhile may be part of it. When the session is deleted meanwhile it ends with errdefs.NotFound.
func (s *Store) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	t := layout.Tables{Store: "journal/sqlite", Where: s.path, What: "the file", Stretches: s.stretches, Page: s.page, Parts: s.parts}
	return t.Read(ctx, session, after)
}

func (s *Store) stretches(ctx context.Context, session string) (all []layout.Stretch, err error) {
	err = s.query(ctx, "read", s.stmts.chain, func(rows *sql.Rows) error {
		l := layout.Stretch{Own: len(all) == 0}
		err := rows.Scan(&l.Num, &l.Session, &l.After, &l.UpTo)
		all = append(all, l)
		return err
	}, session)
	slices.Reverse(all)
	return all, err
}

// errEnough ends a query.
var errEnough = errors.New("enough")

func (s *Store) page(ctx context.Context, l layout.Stretch, p *layout.Page) error {
	upTo := l.UpTo
	if l.Own {
		upTo = maxSeq
	}
	if l.After >= upTo {
		return nil
	}
	var id, at int64
	var kind string
	var refs, data sql.RawBytes
	return s.query(ctx, "read", s.stmts.page, func(rows *sql.Rows) error {
		e := journal.Entry{Session: l.Session}
		if err := rows.Scan(&id, &at, &e.Run, &kind, &e.Key.Scope, &e.Key.Op, &e.Key.ID, &refs, &data); err != nil {
			return err
		}
		e.Seq, e.Time = id&maxSeq, time.Unix(0, at).UTC()
		if p.Add(e, kind, data, string(refs)) {
			return errEnough
		}
		return nil
	}, entryID(l.Num, l.After), entryID(l.Num, upTo), layout.PageEntries)
}

func (s *Store) parts(ctx context.Context, hashes []string, found func(string, []byte)) error {
	list, err := json.Marshal(hashes)
	if err != nil {
		return err
	}
	return s.query(ctx, "read", s.stmts.parts, func(rows *sql.Rows) error {
		var hash string
		var data []byte
		err := rows.Scan(&hash, &data)
		found(hash, data)
		return err
	}, string(list))
}

// query reads rows until there are no more or row ends it.
func (s *Store) query(ctx context.Context, action string, stmt *sql.Stmt, row func(*sql.Rows) error, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(action); err != nil {
		return err
	}
	defer s.users.Done()
	var err error
	for end := time.Now().Add(s.patience); ; {
		begun := false
		err = s.rows(ctx, stmt, func(rows *sql.Rows) error { begun = true; return row(rows) }, args)
		if begun || !locked(err) || time.Now().After(end) { // a reader waits only while another process recovers the log
			break
		}
	}
	if err != nil {
		return s.failed(action, err)
	}
	return nil
}

func (s *Store) rows(ctx context.Context, stmt *sql.Stmt, row func(*sql.Rows) error, args []any) (err error) {
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	for rows.Next() {
		if err := row(rows); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return rows.Err()
}

// Sessions implements [journal.Store]. It is a snapshot of the moment when the iteration begins.
func (s *Store) Sessions(ctx context.Context, q journal.Query) iter.Seq2[journal.Info, error] {
	return func(yield func(journal.Info, error) bool) {
		limit := q.Limit
		if limit <= 0 {
			limit = -1
		}
		stmt, args := s.stmts.list, []any{q.Agent, q.User, q.Status, q.Dir, limit}
		if q.Session != "" {
			stmt, args = s.stmts.named, append(args, q.Session)
		}
		var all []journal.Info
		err := s.query(ctx, "sessions", stmt, func(rows *sql.Rows) error {
			var r row
			err := r.scan(rows)
			all = append(all, r.Info)
			return err
		}, args...)
		if err != nil {
			yield(journal.Info{}, err)
			return
		}
		for _, i := range all {
			if !yield(i, nil) {
				return
			}
		}
	}
}
