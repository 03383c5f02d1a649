package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// A page is what one query reads. The consumer works on it when the query is over, so that it holds nothing.
const (
	pageEntries = 256
	pageBytes   = 1 << 20 // and at least one entry
)

// reading has the statements that read, prepared on each connection of the pool as it comes to it.
type reading struct {
	chain, page, list *sql.Stmt
}

func (r *reading) prepare(ctx context.Context, db *sql.DB) error {
	for _, p := range []struct {
		to    **sql.Stmt
		query string
	}{
		// A session and those that it shares from, itself first, each with the part that it has: after base, up to upto.
		{&r.chain, `WITH RECURSIVE chain(num, id, base_num, base, upto) AS (
			SELECT num, id, base_num, base, seq FROM sessions WHERE id = ? AND deleted = 0
			UNION ALL
			SELECT s.num, s.id, s.base_num, s.base, chain.base FROM chain JOIN sessions s ON s.num = chain.base_num
		) SELECT num, id, base, upto FROM chain`},
		{&r.page, "SELECT id, time, run, kind, scope, op, ref, data FROM entries WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"},
		{&r.list, "SELECT " + rowColumns + ` FROM sessions WHERE deleted = 0
			AND (?1 = '' OR agent = ?1) AND (?2 = '' OR user = ?2) AND (?3 = '' OR status = ?3) ORDER BY updated DESC, id LIMIT ?4`},
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
	for _, s := range []*sql.Stmt{r.chain, r.page, r.list} {
		if s != nil {
			_ = s.Close() // the pool is closed right after
		}
	}
}

// part is a stretch of a session's entries that lies in one piece.
type part struct {
	num         int64
	session     string
	after, upTo int64
	own         bool // the session's own: it may have grown meanwhile
}

// Read implements [journal.Store]. It reads up to 256 entries or 1 MiB at a time, and holds neither a connection nor a lock while the consumer
// works. Entries that are appended meanwhile may be part of it. When the session is deleted meanwhile it ends with errdefs.NotFound.
func (s *Store) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		parts, err := s.parts(ctx, session)
		if err != nil {
			yield(journal.Entry{}, err)
			return
		}
		for _, p := range parts {
			if p.after = max(p.after, after); !s.part(ctx, p, yield) {
				return
			}
		}
	}
}

// part yields a part and reports whether to go on.
func (s *Store) part(ctx context.Context, p part, yield func(journal.Entry, error) bool) bool {
	for full := true; full && (p.own || p.after < p.upTo); {
		var page []journal.Entry
		var err error
		if page, full, err = s.page(ctx, p); err != nil {
			return yield(journal.Entry{}, err) && false
		}
		for _, e := range page {
			if err := ctx.Err(); err != nil {
				return yield(journal.Entry{}, err) && false
			}
			if p.after++; e.Seq != p.after {
				err := errdefs.Internal.Errorf("journal/sqlite: read: %s: entry %d of session %s is missing: the file is damaged", s.path, p.after, p.session)
				return yield(journal.Entry{}, err) && false
			}
			if !yield(e, nil) {
				return false
			}
		}
	}
	if p.after < p.upTo {
		return yield(journal.Entry{}, errdefs.NotFound.Errorf("journal/sqlite: read: session %s was deleted while it was read", p.session)) && false
	}
	return true
}

// parts finds where the entries of a session lie, in their order.
func (s *Store) parts(ctx context.Context, session string) (parts []part, err error) {
	err = s.query(ctx, "read", s.stmts.chain, func(rows *sql.Rows) error {
		var p part
		if err := rows.Scan(&p.num, &p.session, &p.after, &p.upTo); err != nil {
			return err
		}
		p.own = len(parts) == 0
		parts = append(parts, p)
		return nil
	}, session)
	slices.Reverse(parts)
	return parts, err
}

// errEnough ends a query.
var errEnough = errors.New("enough")

// page reads entries of a part, and reports whether there may be more.
func (s *Store) page(ctx context.Context, p part) (page []journal.Entry, full bool, err error) {
	size, upTo := 0, p.upTo
	if p.own {
		upTo = maxSeq
	}
	if p.after >= upTo {
		return nil, false, nil
	}
	err = s.query(ctx, "read", s.stmts.page, func(rows *sql.Rows) error {
		var id, at int64
		var kind string
		var data sql.RawBytes
		e := journal.Entry{Session: p.session}
		if err := rows.Scan(&id, &at, &e.Run, &kind, &e.Key.Scope, &e.Key.Op, &e.Key.ID, &data); err != nil {
			return err
		}
		e.Seq, e.Time = id&maxSeq, time.Unix(0, at).UTC()
		var err error
		if e.Data, err = journal.DecodeData(journal.Kind(kind), data); err != nil {
			class := errdefs.Internal
			if errdefs.NotAvailable.Is(err) { // a newer program's kind is no damage
				class = errdefs.NotAvailable
			}
			return class.Errorf("entry %d of session %s: %w", e.Seq, p.session, err)
		}
		page = append(page, e)
		if size += len(data); size >= pageBytes || len(page) == pageEntries {
			full = true
			return errEnough
		}
		return nil
	}, entryID(p.num, p.after), entryID(p.num, upTo), pageEntries)
	return page, full, err
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
		var all []journal.Info
		err := s.query(ctx, "sessions", s.stmts.list, func(rows *sql.Rows) error {
			var r row
			err := r.scan(rows)
			all = append(all, r.Info)
			return err
		}, q.Agent, q.User, q.Status, limit)
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
