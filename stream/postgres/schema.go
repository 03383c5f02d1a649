package postgres

import (
	"context"

	"github.com/pawl-dev/pawl/internal/pgstore"
)

// lock is the advisory lock under which the schema is made: "Pawlstre".
const lock = 0x5061776C73747265

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
var migrations = []string{schema}

// statements are the SQL of one schema.
type statements struct {
	count, insert, ring, read, last string
	lockRow, trim, stale, forget    string
}

// newStatements are those of a schema. in fills in its name, that of its channel, and that of the Store that listens.
func newStatements(in func(sql string) string) statements {
	return statements{
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

// prepare makes sure that the schema is there and of this version.
func (s *Store) prepare(ctx context.Context) error {
	tables := pgstore.Schema{Who: "stream/postgres", Name: s.schema, Where: s.where, Lock: lock, Migrations: migrations, Others: "another program's, or the journal's,"}
	return s.failed(ctx, "open", tables.Prepare(ctx, s.pool))
}
