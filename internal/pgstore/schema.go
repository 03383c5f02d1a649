package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pawl-dev/pawl/errdefs"
)

// Schema are the tables of a store.
type Schema struct {
	Who, Name, Where string
	Lock             int64                                                // the advisory lock under which they are made
	Migrations       []string                                             // the SQL that makes of each version the next one, from none on; {s} stands for the schema's name
	Others           string                                               // whose tables they are if they aren't ours, for the error
	Then             func(ctx context.Context, tx pgx.Tx, from int) error // what SQL can't say, if anything, after the migrations from a version on
}

// Version is what this program makes.
func (s *Schema) Version() int { return len(s.Migrations) }

// SQL is what makes of a version the newest one.
func (s *Schema) SQL(from int) string {
	name := pgx.Identifier{s.Name}.Sanitize()
	return strings.ReplaceAll(strings.Join(s.Migrations[from:], ""), "{s}", name) + fmt.Sprintf("UPDATE %s.schema_version SET version = %d;\n", name, s.Version())
}

// db is a connection, a pool or a transaction.
type db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Prepare makes sure that the schema is there and of this version. Where it is, nothing but reading is done: the role needs no right to make it.
func (s *Schema) Prepare(ctx context.Context, on db) error {
	have, err := s.inspect(ctx, on)
	if absent := Code(err) == "42P01" || Code(err) == "3F000"; err != nil && !absent || have == s.Version() { // no table, no schema
		return err
	}
	return pgx.BeginFunc(ctx, on, func(tx pgx.Tx) error { return s.make(ctx, tx) })
}

// inspect gives the schema's version, and refuses what is none of ours, or newer.
func (s *Schema) inspect(ctx context.Context, on db) (have int, err error) {
	var encoding string
	if err := on.QueryRow(ctx, "SELECT current_setting('server_encoding')").Scan(&encoding); err != nil {
		return 0, err
	}
	if encoding != "UTF8" {
		return 0, errdefs.Validation.Errorf("%s: open: the database %s has encoding %s: use one that was made with encoding UTF8", s.Who, s.Where, encoding)
	}
	switch err := on.QueryRow(ctx, "SELECT version FROM "+pgx.Identifier{s.Name, "schema_version"}.Sanitize()).Scan(&have); {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, errdefs.Validation.Errorf("%s: open: schema %s of %s has no version: it was not made by this program", s.Who, s.Name, s.Where)
	case err != nil:
		return 0, err
	case have > s.Version():
		return 0, errdefs.NotAvailable.Errorf("%s: open: schema %s of %s has version %d; this program knows up to %d: use a newer one", s.Who, s.Name, s.Where, have, s.Version())
	}
	return have, nil
}

// make makes what is missing; whoever comes at the same time waits.
func (s *Schema) make(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::bigint)", s.Lock); err != nil {
		return err
	}
	var there, made bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1::text), EXISTS (SELECT FROM pg_tables WHERE schemaname = $1::text AND tablename = 'schema_version')",
		s.Name).Scan(&there, &made); err != nil {
		return err
	}
	have := 0
	if made { // by an older program, or by another process meanwhile
		var err error
		if have, err = s.inspect(ctx, tx); err != nil || have == s.Version() {
			return err
		}
	}
	sql := s.SQL(have)
	if !there {
		sql = "CREATE SCHEMA " + pgx.Identifier{s.Name}.Sanitize() + ";" + sql
	}
	_, err := tx.Exec(ctx, sql)
	if Code(err) == "42P07" { // duplicate table
		return errdefs.Validation.Errorf("%s: open: schema %s of %s has %s tables: choose another one (%w)", s.Who, s.Name, s.Where, s.Others, err)
	}
	if err == nil && s.Then != nil {
		err = s.Then(ctx, tx, have)
	}
	return err
}
