package postgres

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// A page is what one query reads. The consumer works on it when the query is over, so that it holds nothing.
const (
	pageEntries = 256
	pageBytes   = 1 << 20 // and at least one entry
)

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
				err := errdefs.Internal.Errorf("journal/postgres: read: %s: entry %d of session %s is missing: the data is damaged", s.where, p.after, p.session)
				return yield(journal.Entry{}, err) && false
			}
			if !yield(e, nil) {
				return false
			}
		}
	}
	if p.after < p.upTo {
		return yield(journal.Entry{}, errdefs.NotFound.Errorf("journal/postgres: read: session %s was deleted while it was read", p.session)) && false
	}
	return true
}

// parts finds where the entries of a session lie, in their order.
func (s *Store) parts(ctx context.Context, session string) (parts []part, err error) {
	if absent("read", session) != nil {
		return nil, ctx.Err()
	}
	err = s.query(ctx, "read", s.sql.chain, func() { parts = nil }, func(rows pgx.Rows) error {
		p := part{own: len(parts) == 0}
		err := rows.Scan(&p.num, &p.session, &p.after, &p.upTo)
		parts = append(parts, p)
		return err
	}, session)
	slices.Reverse(parts)
	return parts, err
}

// page reads entries of a part, and reports whether there may be more.
func (s *Store) page(ctx context.Context, p part) (page []journal.Entry, full bool, err error) {
	size, upTo := 0, p.upTo
	if p.own {
		upTo = math.MaxInt64
	}
	err = s.query(ctx, "read", s.sql.page, func() { page, size = nil, 0 }, func(rows pgx.Rows) error {
		var at int64
		var kind string
		var data []byte
		e := journal.Entry{Session: p.session}
		if err := rows.Scan(&e.Seq, &at, &e.Run, &kind, &e.Key.Scope, &e.Key.Op, &e.Key.ID, &data); err != nil {
			return err
		}
		e.Time = time.Unix(0, at).UTC()
		var err error
		if e.Data, err = journal.DecodeData(journal.Kind(kind), data); err != nil {
			class := errdefs.Internal
			if errdefs.NotAvailable.Is(err) { // a newer program's kind is no damage
				class = errdefs.NotAvailable
			}
			return class.Errorf("journal/postgres: read: %s: entry %d of session %s: %w", s.where, e.Seq, p.session, err)
		}
		page, size = append(page, e), size+len(data)
		return nil
	}, p.num, p.after, upTo, pageEntries, pageBytes)
	return page, len(page) == pageEntries || size >= pageBytes, err
}

// query reads rows; begin is called before the first, again when the query is.
func (s *Store) query(ctx context.Context, action, sql string, begin func(), row func(pgx.Rows) error, args ...any) error {
	return s.use(ctx, action, func(ctx context.Context, conn *pgx.Conn) error {
		begin()
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := row(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// Sessions implements [journal.Store]. It is a snapshot of the moment when the iteration begins.
func (s *Store) Sessions(ctx context.Context, q journal.Query) iter.Seq2[journal.Info, error] {
	return func(yield func(journal.Info, error) bool) {
		limit := int64(math.MaxInt64)
		if q.Limit > 0 {
			limit = int64(q.Limit)
		}
		if ctx.Err() == nil && !plain(q.Agent, q.User, q.Status) {
			return // nothing can be of that name
		}
		var all []journal.Info
		err := s.query(ctx, "sessions", s.sql.list, func() { all = nil }, func(rows pgx.Rows) error {
			var i journal.Info
			var created, updated int64
			err := rows.Scan(&i.Session, &i.Agent, &i.User, &i.Status, &i.Parent, &i.Seq, &created, &updated)
			i.Created, i.Updated = time.Unix(0, created).UTC(), time.Unix(0, updated).UTC()
			all = append(all, i)
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
