package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/errdefs"
)

const (
	version = 1                  // of the schema
	lock    = 0x5061776C73747265 // "Pawlstre", the advisory lock under which it is made
)

// The number of a session's first item is the time in µs, so that it is behind all that a stream of this name had before it was forgotten. No index has a column of sessions that appends change.
const schema = `
CREATE TABLE {s}.sessions (
	id text COLLATE "C" PRIMARY KEY,
	last bigint NOT NULL, -- the newest item
	trimmed bigint NOT NULL, -- what is up to it was deleted
	bytes bigint NOT NULL, -- of items that are there, about
	said timestamptz NOT NULL,
	looked timestamptz NOT NULL -- for what is to be deleted
) WITH (fillfactor = 70);
CREATE TABLE {s}.items (
	session text COLLATE "C" NOT NULL,
	number bigint NOT NULL,
	time timestamptz NOT NULL,
	run text NOT NULL,
	scope text NOT NULL,
	op text NOT NULL,
	ref text NOT NULL,
	seq bigint NOT NULL, -- of the journal's entry that began the effect
	behind bigint NOT NULL, -- where the journal was when the attempt began
	parent text NOT NULL,
	attempt integer NOT NULL,
	writer text COLLATE "C" NOT NULL, -- the attempt's own name
	part integer NOT NULL,
	lost bigint NOT NULL,
	ended boolean NOT NULL,
	runs text NOT NULL, -- JSON: what data consists of
	data bytea NOT NULL, -- mostly UTF-8
	PRIMARY KEY (session, number)
);
CREATE UNIQUE INDEX items_part ON {s}.items (session, writer, part);
CREATE INDEX items_time ON {s}.items (time);
CREATE INDEX items_ended ON {s}.items (time) WHERE ended;
CREATE UNLOGGED TABLE {s}.followed (
	session text COLLATE "C" NOT NULL,
	listener text COLLATE "C" NOT NULL, -- a Store
	until timestamptz NOT NULL,
	PRIMARY KEY (session, listener)
) WITH (fillfactor = 70);
CREATE TABLE {s}.schema_version (version integer NOT NULL);
INSERT INTO {s}.schema_version VALUES (1);
`

// migrations make of each version the next one.
var migrations = map[int]string{0: schema}

// statements are the SQL of one schema.
type statements struct {
	version, count, insert, ring, read, last, listen, follow string
	lockRow, trim, stale, forget                             string
}

// newStatements are those of a schema, which is the name of its channel, too, and of a Store that listens as me, letters and digits.
func newStatements(name, me string) statements {
	in := strings.NewReplacer("{s}", pgx.Identifier{name}.Sanitize(), "{channel}", "'"+strings.ReplaceAll(name, "'", "''")+"'", "{me}", "'"+me+"'").Replace
	return statements{
		version: in("SELECT version FROM {s}.schema_version"),

		// The rows' locks are taken in the order of names, so that nobody waits in a circle, and held until the append has committed. What comes then sees what others had before.
		count: in(`INSERT INTO {s}.sessions AS s (id, last, trimmed, bytes, said, looked)
			SELECT n.id, (extract(epoch FROM now()) * 1000000)::bigint + n.items, (extract(epoch FROM now()) * 1000000)::bigint, n.bytes, now(), now()
			FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS n(id, items, bytes) ORDER BY n.id COLLATE "C"
			ON CONFLICT (id) DO UPDATE SET last = s.last + excluded.last - excluded.trimmed, bytes = s.bytes + excluded.bytes, said = excluded.said
			RETURNING id, bytes > $4::bigint OR looked < now() - $5::bigint * interval '1 microsecond'`),
		insert: in(`INSERT INTO {s}.items (session, number, time, run, scope, op, ref, seq, behind, parent, attempt, writer, part, lost, ended, runs, data)
			SELECT i.session, s.last - i.before, clock_timestamp(), i.run, i.scope, i.op, i.ref, i.seq, i.behind, i.parent, i.attempt, i.writer, i.part, i.lost, i.ended, i.runs, i.data
			FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::text[], $10::integer[], $11::text[], $12::integer[], $13::bigint[], $14::boolean[], $15::text[], $16::bytea[])
				AS i(session, before, run, scope, op, ref, seq, behind, parent, attempt, writer, part, lost, ended, runs, data) JOIN {s}.sessions s ON s.id = i.session
			ON CONFLICT (session, writer, part) DO NOTHING`),
		ring: in(`SELECT pg_notify({channel}, f.session) FROM (SELECT DISTINCT session FROM {s}.followed WHERE session = ANY($1::text[]) AND listener <> {me} AND until > now()) f`),

		read: in(`SELECT s.last, s.trimmed, i.number, i.time, i.run, i.scope, i.op, i.ref, i.seq, i.behind, i.parent, i.attempt, i.writer, i.part, i.lost, i.ended, i.runs, i.data
			FROM {s}.sessions s LEFT JOIN LATERAL (
				SELECT * FROM (
					SELECT *, sum(octet_length(data)) OVER (ORDER BY number) - octet_length(data) AS before FROM (
						SELECT * FROM {s}.items WHERE session = $1::text AND number > $2::bigint ORDER BY number LIMIT 256
					) page
				) p WHERE before < 4194304
			) i ON true WHERE s.id = $1::text ORDER BY i.number`),
		last: in("SELECT last FROM {s}.sessions WHERE id = $1::text"),

		listen: "LISTEN " + pgx.Identifier{name}.Sanitize(),
		follow: in(`WITH gone AS (DELETE FROM {s}.followed WHERE until < now() - interval '1 hour')
			INSERT INTO {s}.followed (session, listener, until)
			SELECT f, {me}, now() + $2::bigint * interval '1 microsecond' FROM unnest($1::text[]) f ORDER BY f
			ON CONFLICT (session, listener) DO UPDATE SET until = excluded.until`),

		lockRow: in("SELECT last FROM {s}.sessions WHERE id = $1::text FOR UPDATE SKIP LOCKED"),
		// From the front, as far as all is beyond retention: an item up to the one by which an attempt at its effect ended some time ago, an old one, and what the session has too much.
		trim: in(`WITH these AS (
				SELECT number, octet_length(data) + 200 AS bytes,
					time < now() - $3::bigint * interval '1 microsecond'
					OR bool_or(ended AND time < now() - $2::bigint * interval '1 microsecond') OVER (PARTITION BY run, scope, op, ref ORDER BY number DESC)
					OR sum(octet_length(data) + 200) OVER (ORDER BY number DESC) > $4::bigint AS over
				FROM {s}.items WHERE session = $1::text
			), kept AS (SELECT coalesce(min(number) FILTER (WHERE NOT over), $5::bigint + 1) AS first FROM these
			), gone AS (DELETE FROM {s}.items WHERE session = $1::text AND number < (SELECT first FROM kept) RETURNING number)
			UPDATE {s}.sessions SET looked = now(), trimmed = greatest(trimmed, (SELECT max(number) FROM gone)),
				bytes = (SELECT coalesce(sum(bytes), 0) FROM these WHERE number >= (SELECT first FROM kept)) WHERE id = $1::text`),
		stale: in(`SELECT DISTINCT session FROM (
				(SELECT session FROM {s}.items WHERE ended AND time < now() - $1::bigint * interval '1 microsecond' ORDER BY time LIMIT 10000)
				UNION ALL (SELECT session FROM {s}.items WHERE time < now() - $2::bigint * interval '1 microsecond' ORDER BY time LIMIT 10000)
			) old ORDER BY session`),
		forget: in(`DELETE FROM {s}.sessions s WHERE s.id IN (
				SELECT id FROM {s}.sessions WHERE said < now() - $1::bigint * interval '1 microsecond' AND NOT EXISTS (SELECT FROM {s}.items WHERE session = id) ORDER BY id LIMIT 10000 FOR UPDATE SKIP LOCKED)`),
	}
}

// prepare makes sure that the schema is there and of this version. Where it is, nothing but reading is done.
func (s *Store) prepare(ctx context.Context) error {
	have, err := s.inspect(ctx, s.pool)
	if absent := code(err) == "42P01" || code(err) == "3F000"; err != nil && !absent || have == version { // no table, no schema
		return s.failed(ctx, "open", err)
	}
	return s.failed(ctx, "open", pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.make(ctx, tx) }))
}

type asking interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// inspect gives the schema's version, and refuses what is none of ours, or newer.
func (s *Store) inspect(ctx context.Context, db asking) (have int, err error) {
	switch err := db.QueryRow(ctx, s.sql.version).Scan(&have); {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, errdefs.Validation.Errorf("stream/postgres: open: schema %s of %s has no version: it was not made by this program", s.schema, s.where)
	case err != nil:
		return 0, err
	case have > version:
		return 0, errdefs.NotAvailable.Errorf("stream/postgres: open: schema %s of %s has version %d; this program knows up to %d: use a newer one", s.schema, s.where, have, version)
	}
	return have, nil
}

// make makes what is missing; whoever comes at the same time waits.
func (s *Store) make(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::bigint)", int64(lock)); err != nil {
		return err
	}
	var schemaThere, made bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1::text), EXISTS (SELECT FROM pg_tables WHERE schemaname = $1::text AND tablename = 'schema_version')",
		s.schema).Scan(&schemaThere, &made); err != nil {
		return err
	}
	have := 0
	if made { // by an older program, or by another process meanwhile
		var err error
		if have, err = s.inspect(ctx, tx); err != nil || have == version {
			return err
		}
	}
	name := pgx.Identifier{s.schema}.Sanitize()
	var sql strings.Builder
	if !schemaThere {
		sql.WriteString("CREATE SCHEMA " + name + ";")
	}
	for v := have; v < version; v++ {
		sql.WriteString(strings.ReplaceAll(migrations[v], "{s}", name))
	}
	fmt.Fprintf(&sql, "UPDATE %s.schema_version SET version = %d;", name, version)
	_, err := tx.Exec(ctx, sql.String())
	if code(err) == "42P07" { // duplicate table
		return errdefs.Validation.Errorf("stream/postgres: open: schema %s of %s has another program's tables, the journal's perhaps: choose another one (%w)", s.schema, s.where, err)
	}
	return err
}
