package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// row is a session's row as far as forks and deletions need it. The zero num means that there is none.
type row struct {
	num, baseNum, base, seq int64
	agent, user, dir        string
	deleted                 bool
}

// How a row is locked: kept from being deleted, or for oneself.
const keep, alone = "KEY SHARE", "UPDATE"

// locked gives a row and locks it until the transaction ends. Rows are locked from a fork to what it shares from, never the other way, so that
// nobody waits in a circle.
func locked(ctx context.Context, tx pgx.Tx, sql, how string, key any) (r row, err error) {
	err = tx.QueryRow(ctx, sql+how, key).Scan(&r.num, &r.baseNum, &r.base, &r.seq, &r.agent, &r.user, &r.dir, &r.deleted)
	if errors.Is(err, pgx.ErrNoRows) {
		return row{}, nil
	}
	return r, err
}

// shared gives the row that another one shares from.
func (s *Store) shared(ctx context.Context, tx pgx.Tx, how string, num int64) (row, error) {
	r, err := locked(ctx, tx, s.sql.lockRow, how, num)
	if err == nil && r.num == 0 {
		err = errdefs.Internal.Errorf("journal/postgres: session number %d of %s, which others share entries with, is missing: the data is damaged", num, s.where)
	}
	return r, err
}

// transact does something in one transaction. Only the error of its commit can be a doubtful one.
func transact(ctx context.Context, conn *pgx.Conn, do func(pgx.Tx) error) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		rollback(ctx, tx)
		return err
	}
	return doubt(tx.Commit(ctx))
}

// rollback ends a transaction whose context may be over. Where it can't, the connection is closed, and its error says nothing new.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// base is what a fork begins with: where its shared entries are, up to which, and who its parent was at that point.
type base struct {
	num, at int64
	info    journal.Info
}

func (s *Store) forkOff(ctx context.Context, conn *pgx.Conn, a *addition) error {
	taken := errdefs.Conflict.Errorf("journal/postgres: fork of %s to %s: there is a session of that name", a.fork.Parent, a.session)
	return transact(ctx, conn, func(tx pgx.Tx) error {
		var last int64
		var owner string
		switch err := tx.QueryRow(ctx, s.sql.find, a.session).Scan(&last, &owner); {
		case err == nil:
			return taken
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
		b, err := s.base(ctx, tx, a.fork)
		if err != nil {
			return err
		}
		if a.fork.At != a.after {
			return errdefs.Conflict.Errorf("journal/postgres: append to %s after entry %d: its last is %d", a.session, a.after, a.fork.At)
		}
		done, err := s.create(ctx, tx, a, b)
		if err == nil && !done { // another was faster
			err = taken
		}
		return err
	})
}

func (s *Store) base(ctx context.Context, tx pgx.Tx, fork journal.SessionCreated) (b base, err error) {
	parent, err := locked(ctx, tx, s.sql.lockSession, keep, fork.Parent)
	if err != nil {
		return b, err
	}
	if parent.num == 0 || fork.At < 0 || fork.At > parent.seq {
		return b, errdefs.NotFound.Errorf("journal/postgres: fork of %s at %d: there is no such entry", fork.Parent, fork.At)
	}
	if fork.At == 0 {
		return b, nil
	}
	from := parent
	for fork.At <= from.base { // what it shares the parent shares itself
		if from, err = s.shared(ctx, tx, keep, from.baseNum); err != nil {
			return b, err
		}
	}
	b.num, b.at = from.num, fork.At
	if fork.At == parent.seq {
		b.info.Agent, b.info.User, b.info.Dir = parent.agent, parent.user, parent.dir
		return b, nil
	}
	run, err := s.lastRun(ctx, tx, from, fork.At)
	b.info.Agent, b.info.User, b.info.Dir = run.Agent, run.User, run.Dir
	return b, err
}

// lastRun finds the last run that was opened in a session up to an entry.
func (s *Store) lastRun(ctx context.Context, tx pgx.Tx, from row, upTo int64) (run journal.RunStarted, err error) {
	for {
		var data []byte
		switch err := tx.QueryRow(ctx, s.sql.newest, from.num, from.base, upTo, string(run.Kind())).Scan(&data); {
		case err == nil:
			d, err := journal.DecodeData(run.Kind(), data)
			if err != nil {
				return run, errdefs.Internal.Errorf("journal/postgres: a run.started of session number %d can't be read: %w", from.num, err)
			}
			return d.(journal.RunStarted), nil
		case !errors.Is(err, pgx.ErrNoRows):
			return run, err
		}
		if upTo = min(upTo, from.base); upTo == 0 {
			return run, nil
		}
		if from, err = s.shared(ctx, tx, keep, from.baseNum); err != nil {
			return run, err
		}
	}
}
