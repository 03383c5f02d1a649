package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/pgstore"
)

// lost reports whether the connection is of no use any more.
func lost(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC"
	}
	var n net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.As(err, &n) && !errdefs.Canceled(err)
}

// again reports whether something certainly did not happen, and may the next time.
func again(err error) bool {
	var connect *pgconn.ConnectError
	switch pgstore.Code(err) {
	case "40001", "40P01": // serialization failure, deadlock
		return !uncertain(err)
	case "":
		return pgconn.SafeToRetry(err) && !errors.As(err, &connect)
	}
	return false
}

// doubtful is an error after which nobody knows whether something was committed.
type doubtful struct{ error }

func (d doubtful) Unwrap() error { return d.error }

func uncertain(err error) bool {
	var d doubtful
	return errors.As(err, &d)
}

// doubt judges the error of a statement that commits. The server's word that it failed is certain, unless it says so while it goes down: then
// it may have committed before.
func doubt(err error) error {
	var server *pgconn.PgError
	var prepare *pgconn.PrepareError
	switch {
	case err == nil, pgconn.SafeToRetry(err), errors.As(err, &prepare), errors.Is(err, pgx.ErrTxCommitRollback):
		return err
	case errors.As(err, &server) && server.SeverityUnlocalized == "ERROR":
		return err
	}
	return doubtful{err}
}

// remedies are what an error's class is and what to do about it, by SQLSTATE or by its first two characters.
var remedies = map[string]struct {
	class  *errdefs.Class
	remedy string
}{
	"08":    {errdefs.NotAvailable, "the connection failed: try again"},
	"25006": {errdefs.NotAvailable, "it can only be read: connect to the primary"},
	"28":    {errdefs.Unauthorized, "it does not let us in: look at the user and the password of the DSN, or PGPASSWORD, and the server's pg_hba.conf"},
	"3D000": {errdefs.Validation, "there is no such database: make it (createdb), or name another"},
	"3F000": {errdefs.NotAvailable, "the tables are gone: open the journal again"},
	"42P01": {errdefs.NotAvailable, "the tables are gone: open the journal again"},
	"42501": {errdefs.Unauthorized, "the role may not do it: grant it CREATE on the database, or USAGE on the schema and SELECT, INSERT, UPDATE, DELETE on its tables, and bring tables of an older version up to date as the role that owns the schema"},
	"40":    {errdefs.NotAvailable, "others were in the way too often: try again"},
	"53":    {errdefs.NotAvailable, "the server is short of something: free it, or try again later"},
	"54":    {errdefs.Validation, "it is too large for the server"},
	"55":    {errdefs.NotAvailable, "it is locked: try again"},
	"57014": {errdefs.NotAvailable, "the server cancelled it: look at its statement_timeout, and try again"},
	"57":    {errdefs.NotAvailable, "the server is stopping or starting: try again"},
	"58":    {errdefs.NotAvailable, "the server's disk failed to do it: look at its health and its space"},
	"XX001": {errdefs.Internal, "the data is damaged: restore it from a copy"},
	"XX002": {errdefs.Internal, "an index is damaged: REINDEX it"},
}

// failed classes an error and says what to do about it. ctx is the caller's own; late says that patience, or ctx, had run out.
func (s *Store) failed(ctx context.Context, action string, err error, late bool) error {
	if errdefs.Of(err) != nil {
		return err // one of ours
	}
	if uncertain(err) {
		return errdefs.NotAvailable.Errorf("journal/postgres: %s: %s: the connection was lost before the server answered, so that it is not known whether it was done: do the same again, an append after the same entry, and a conflict says that it was (%s)", action, s.where, pgstore.Text(err))
	}
	if ctx.Err() != nil {
		return fmt.Errorf("journal/postgres: %s: %s: %w", action, s.where, ctx.Err())
	}
	if c := pgstore.Code(err); c != "" && !late {
		r, ok := remedies[c]
		if !ok {
			r, ok = remedies[c[:2]]
		}
		if !ok {
			return errdefs.Internal.Errorf("journal/postgres: %s: %s: %s", action, s.where, pgstore.Text(err))
		}
		return r.class.Errorf("journal/postgres: %s: %s: %s (%s)", action, s.where, r.remedy, pgstore.Text(err))
	}
	var connect *pgconn.ConnectError
	switch {
	case late:
		return errdefs.NotAvailable.Errorf("journal/postgres: %s: %s did not answer for %v: look at the server's load, at who holds locks, and at the network, then try again (%s)", action, s.where, s.patience, pgstore.Text(err))
	case errors.As(err, &connect):
		return errdefs.NotAvailable.Errorf("journal/postgres: %s: %s can't be reached: look whether the server runs and the DSN names it (%s)", action, s.where, pgstore.Text(err))
	case lost(err), pgconn.Timeout(err), pgconn.SafeToRetry(err):
		return errdefs.NotAvailable.Errorf("journal/postgres: %s: %s: the connection was lost: look whether the server runs, then try again (%s)", action, s.where, pgstore.Text(err))
	}
	return errdefs.Internal.Errorf("journal/postgres: %s: %s: %s", action, s.where, pgstore.Text(err))
}
