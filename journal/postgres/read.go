package postgres

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/internal/pgstore"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/internal/layout"
)

// Read implements [journal.Store]. It reads up to 256 entries or 1 MiB at a time, and holds neither a connection nor a lock while the consumer
// works. Entries that are appended meanwhile may be part of it. When the session is deleted meanwhile it ends with errdefs.NotFound.
func (s *Store) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	t := layout.Tables{Store: "journal/postgres", Where: s.where, What: "the data", Stretches: s.stretches, Page: s.page, Parts: s.parts}
	return t.Read(ctx, session, after)
}

func (s *Store) stretches(ctx context.Context, session string) (all []layout.Stretch, err error) {
	if absent("read", session) != nil {
		return nil, ctx.Err()
	}
	err = s.query(ctx, "read", s.sql.chain, func() { all = nil }, func(rows pgx.Rows) error {
		l := layout.Stretch{Own: len(all) == 0}
		err := rows.Scan(&l.Num, &l.Session, &l.After, &l.UpTo)
		all = append(all, l)
		return err
	}, session)
	slices.Reverse(all)
	return all, err
}

// page's query ends by itself where the page is full.
func (s *Store) page(ctx context.Context, l layout.Stretch, p *layout.Page) error {
	upTo := l.UpTo
	if l.Own {
		upTo = math.MaxInt64
	}
	var at int64
	var kind, refs string
	var data []byte
	return s.query(ctx, "read", s.sql.page, p.Begin, func(rows pgx.Rows) error {
		e := journal.Entry{Session: l.Session}
		if err := rows.Scan(&e.Seq, &at, &e.Run, &kind, &e.Key.Scope, &e.Key.Op, &e.Key.ID, &refs, &data); err != nil {
			return err
		}
		e.Time = time.Unix(0, at).UTC()
		p.Add(e, kind, data, refs)
		return nil
	}, l.Num, l.After, upTo, layout.PageEntries, layout.PageBytes)
}

func (s *Store) parts(ctx context.Context, hashes []string, found func(string, []byte)) error {
	return s.query(ctx, "read", s.sql.parts, func() {}, func(rows pgx.Rows) error {
		var hash string
		var data []byte
		err := rows.Scan(&hash, &data)
		found(hash, data)
		return err
	}, hashes)
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
		if ctx.Err() == nil && !pgstore.Plain(q.Session, q.Agent, q.User, q.Status, q.Dir) {
			return // nothing can be of that name
		}
		sql, args := s.sql.list, []any{q.Agent, q.User, q.Status, q.Dir, limit}
		if q.Session != "" {
			sql, args = s.sql.named, append(args, q.Session)
		}
		var all []journal.Info
		err := s.query(ctx, "sessions", sql, func() { all = nil }, func(rows pgx.Rows) error {
			var i journal.Info
			var created, updated int64
			err := rows.Scan(&i.Session, &i.Agent, &i.User, &i.Dir, &i.Status, &i.Parent, &i.Seq, &created, &updated)
			i.Created, i.Updated = time.Unix(0, created).UTC(), time.Unix(0, updated).UTC()
			all = append(all, i)
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
