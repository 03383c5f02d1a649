package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/pgstore"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/internal/layout"
)

// Delete implements [journal.Store]. Entries that a fork shares stay until the last such fork is deleted.
func (s *Store) Delete(ctx context.Context, session string) error {
	if err := errors.Join(ctx.Err(), absent("delete", session)); err != nil {
		return err
	}
	err := s.use(ctx, "delete", func(ctx context.Context, conn *pgx.Conn) error {
		return transact(ctx, conn, func(tx pgx.Tx) error {
			r, err := locked(ctx, tx, s.sql.lockSession, alone, session)
			if err != nil {
				return err
			}
			if r.num == 0 {
				return errdefs.NotFound.Errorf("journal/postgres: delete: there is no session %s", quoted(session))
			}
			if err := s.delete(ctx, tx, r); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, s.sql.ring, session)
			return err
		})
	})
	s.bell.Ring(session)
	return err
}

// delete removes a session, or what of it nobody shares, then those deleted before that only it shared from, and the parts that no other
// entry has.
func (s *Store) delete(ctx context.Context, tx pgx.Tx, r row) error {
	var parts layout.Parts
	for {
		var shared int64
		if err := tx.QueryRow(ctx, s.sql.shared, r.num).Scan(&shared); err != nil {
			return err
		}
		if err := s.removeEntries(ctx, tx, r.num, shared, &parts); err != nil {
			return err
		}
		if shared > 0 {
			if _, err := tx.Exec(ctx, s.sql.bury, r.num); err != nil {
				return err
			}
			break
		}
		if _, err := tx.Exec(ctx, s.sql.remove, r.num); err != nil {
			return err
		}
		if r.baseNum == 0 {
			break
		}
		base, err := s.shared(ctx, tx, alone, r.baseNum)
		if err != nil {
			return err
		}
		if !base.deleted {
			break
		}
		r = base
	}
	return s.release(ctx, tx, parts.Sorted())
}

// removeEntries removes a session's own entries after a number, and counts what they refer to.
func (s *Store) removeEntries(ctx context.Context, tx pgx.Tx, num, after int64, parts *layout.Parts) error {
	rows, err := tx.Query(ctx, s.sql.removeEntries, num, after)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var refs string
		if err := rows.Scan(&refs); err != nil {
			return err
		}
		if err := parts.Count(refs); err != nil {
			return errdefs.Internal.Errorf("journal/postgres: delete: %s: %w", s.where, err)
		}
	}
	return rows.Err()
}

// release takes references to parts back, and removes those that nobody has any more. It locks them first: an append that refers to one comes
// before, and is counted, or after, and finds it gone.
func (s *Store) release(ctx context.Context, tx pgx.Tx, parts []layout.Part) error {
	if parts == nil {
		return nil
	}
	hashes, counts := columns(parts)
	if _, err := tx.Exec(ctx, s.sql.lockParts, hashes); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, s.sql.releaseParts, hashes, counts); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, s.sql.removeParts, hashes)
	return err
}

// Lease implements [journal.Store]. It runs by the database's clock: until counts as so long from now.
func (s *Store) Lease(ctx context.Context, session, owner string, until time.Time) error {
	if err := errors.Join(ctx.Err(), absent("lease", session)); err != nil {
		return err
	}
	if !pgstore.Plain(owner) {
		return errdefs.Validation.Errorf("journal/postgres: lease: owner %s: give valid UTF-8 without NUL", quoted(owner))
	}
	return s.use(ctx, "lease", func(ctx context.Context, conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, s.sql.lease, session, owner, time.Until(until).Microseconds())
		if err != nil || tag.RowsAffected() > 0 {
			return doubt(err)
		}
		var held journal.Leased
		var left int64
		switch err := conn.QueryRow(ctx, s.sql.holder, session).Scan(&held.Owner, &left); {
		case errors.Is(err, pgx.ErrNoRows):
			return errdefs.NotFound.Errorf("journal/postgres: lease: there is no session %s", quoted(session))
		case err != nil:
			return err
		}
		held.Left = time.Duration(left) * time.Microsecond
		return errdefs.Conflict.Errorf("journal/postgres: lease: session %s is driven by %s: %w", session, held.Owner, &held)
	})
}
