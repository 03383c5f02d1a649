// Package pgstore is what the stores in PostgreSQL share: how a DSN is read, how the tables of a schema are made and brought up to date, and how a store hears what
// others append. What is in the tables is each store's own.
package pgstore

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pawl-dev/pawl/errdefs"
)

// NameBytes is how long a session's name may be: it has to fit into an index, and into a notification.
const NameBytes = 2000

// Plain reports whether PostgreSQL can keep texts.
func Plain(texts ...string) bool {
	for _, t := range texts {
		if strings.IndexByte(t, 0) >= 0 || !utf8.ValidString(t) {
			return false
		}
	}
	return true
}

// Code gives the SQLSTATE of an error, or "" when it is none of the server's.
func Code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Text is an error on one line. Errors are not wrapped: pgx's hold the configuration with its password, and those of a time that ran out would pass for the caller's
// own cancelling.
func Text(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// Configure reads what a store of package who was opened with. where is the host and the database, for errors. A schema that can't be, and a DSN that can't be read, are
// errdefs.Validation.
func Configure(who, dsn, schema string) (config *pgxpool.Config, where string, err error) {
	if schema == "" || len(schema) > 63 || strings.HasPrefix(schema, "pg_") || !Plain(schema) {
		return nil, "", errdefs.Validation.Errorf("%s: open: %q is no name of a schema: give up to 63 bytes that don't begin with pg_", who, schema)
	}
	config, err = pgxpool.ParseConfig(dsn)
	if err != nil || strings.TrimSpace(dsn) == "" { // pgx's error would show parts of the DSN, which may be parts of the password
		return nil, "", errdefs.Validation.Errorf("%s: open: the DSN can't be read: give postgres://user:password@host:5432/database, with special characters of the password as %%xx, or words like host=… dbname=…", who)
	}
	c := config.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 10 * time.Second
	}
	if strings.HasPrefix(c.Host, "/") {
		return config, c.Database + " at " + c.Host, nil
	}
	return config, c.Database + " at " + net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), nil
}
