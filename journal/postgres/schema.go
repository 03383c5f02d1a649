package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/pgstore"
	"github.com/pawl-dev/pawl/journal"
)

// lock is the advisory lock under which the schema is made: "Pawljour".
const lock = 0x5061776C6A6F7572

// A fork has base_num and base: the session whose entries it shares, and up to which. That one's own entries reach base; it may share the ones
// before from a third. What is deleted stays as a row with deleted set as long as a fork shares from it. nums are never used again, so that a
// reader of a session that was deleted meanwhile never sees another's.
//
// Data is bytea, not jsonb, which would spoil the bytes, and times are nanoseconds since 1970, which timestamptz can't tell apart. No index
// has a column that appends change, so that they rewrite the row alone.
//
// Long strings are in parts, once each, as long as a row of entries has them: see journal/internal/layout. Who changes parts has locked all
// rows of sessions that it needs, and takes those of parts in the order of their hashes, so that nobody waits in a circle.
const schema = `
CREATE TABLE {s}.sessions (
	num bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id text COLLATE "C" NOT NULL,
	deleted boolean NOT NULL DEFAULT false,
	base_num bigint NOT NULL DEFAULT 0,
	base bigint NOT NULL DEFAULT 0,
	parent text COLLATE "C" NOT NULL DEFAULT '',
	seq bigint NOT NULL,
	agent text COLLATE "C" NOT NULL DEFAULT '',
	usr text COLLATE "C" NOT NULL DEFAULT '',
	status text COLLATE "C" NOT NULL DEFAULT '',
	created bigint NOT NULL,
	updated bigint NOT NULL,
	owner text COLLATE "C" NOT NULL DEFAULT '', -- of the lease
	until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX sessions_id ON {s}.sessions (id) WHERE NOT deleted;
CREATE INDEX sessions_base ON {s}.sessions (base_num) WHERE base_num > 0;
CREATE TABLE {s}.entries (
	session bigint NOT NULL, -- num
	seq bigint NOT NULL,
	time bigint NOT NULL,
	run text NOT NULL,
	kind text NOT NULL,
	scope text NOT NULL,
	op text NOT NULL,
	ref text NOT NULL,
	parts text COLLATE "C" NOT NULL DEFAULT '', -- what goes into data: "57+1398104:HASH …", 1398104 bytes at offset 57, and so on
	data bytea NOT NULL, -- JSON, its long strings empty
	PRIMARY KEY (session, seq)
);
CREATE TABLE {s}.parts (
	hash text COLLATE "C" PRIMARY KEY, -- SHA-256 of data
	refs bigint NOT NULL, -- how many times rows of entries have it
	data bytea NOT NULL -- what was between the quotes
) WITH (fillfactor = 70);
CREATE VIEW {s}.journal AS
	SELECT s.id AS session, e.seq, timestamptz 'epoch' + e.time / 1000 * interval '1 microsecond' AS time,
		e.run, e.kind, e.scope, e.op, e.ref, convert_from(e.data, 'UTF8') AS data, e.parts
	FROM {s}.entries e JOIN {s}.sessions s ON s.num = e.session WHERE NOT s.deleted;
CREATE TABLE {s}.schema_version (version integer NOT NULL);
INSERT INTO {s}.schema_version VALUES (1);
`

// migrations make of each version the next one. Programs that know the one before only go on where they have it open, and open it no more.
var migrations = []string{
	schema,
	// Who follows which session until when: an append to it notifies, others don't (see append). It says nothing that the next renewal wouldn't say again.
	`
CREATE UNLOGGED TABLE {s}.followed (
	session text COLLATE "C" NOT NULL,
	listener text COLLATE "C" NOT NULL, -- a Store
	until timestamptz NOT NULL,
	PRIMARY KEY (session, listener)
) WITH (fillfactor = 70);
`,
	`
ALTER TABLE {s}.sessions ADD COLUMN dir text COLLATE "C" NOT NULL DEFAULT ''; -- of the last run
`,
}

// directories is the version from which on rows of sessions have dir. Sessions that an older program begins, which had the journal open when it was brought up to date, have none until their next run.
const directories = 3

// statements are the SQL of one schema.
type statements struct {
	find, holder, lockSession, lockRow, create, append, newest string
	chain, page, list, named, lease                            string
	shared, bury, remove, removeEntries                        string
	all, place                                                 string

	appendCut, createCut, parts          string
	lockParts, releaseParts, removeParts string

	ring string
}

// ring notifies those of a session's followers that are with other Stores: this one wakes its own. PostgreSQL lets one transaction at a time commit that notifies, on the
// whole server, so that no append does for whom nobody follows.
const ring = `(SELECT pg_notify({channel}, $1::text) WHERE EXISTS (
			SELECT FROM {s}.followed WHERE session = $1::text AND listener <> {me} AND until > now()))`

// The beginnings of an append: the row of the session, if it can be had. $12 is the agent, the user and the directory of the last run, which change together or not at all.
const (
	advance = `WITH s AS (
			UPDATE {s}.sessions SET seq = seq + $10::bigint, parent = coalesce($11::text, parent), agent = coalesce(($12::text[])[1], agent),
				usr = coalesce(($12::text[])[2], usr), dir = coalesce(($12::text[])[3], dir), status = coalesce($13::text, status), created = coalesce($14::bigint, created), updated = $15::bigint
			WHERE id = $1::text AND NOT deleted AND seq = $2::bigint RETURNING num, ` + ring + `)`
	create = `WITH s AS (
			INSERT INTO {s}.sessions (id, seq, parent, agent, usr, dir, status, created, updated, base_num, base)
			VALUES ($1::text, $2::bigint + $10::bigint, $11::text, ($12::text[])[1], ($12::text[])[2], ($12::text[])[3], $13::text, $14::bigint, $15::bigint, $16::bigint, $17::bigint)
			ON CONFLICT (id) WHERE NOT deleted DO NOTHING RETURNING num, ` + ring + `)`
)

// The end of an append: a row for each entry, if the row of the session could be had.
const insertEntries = `
	INSERT INTO {s}.entries (session, seq, time, run, kind, scope, op, ref, data)
	SELECT s.num, $2::bigint + e.n, e.time, e.run, e.kind, e.scope, e.op, e.ref, e.data
	FROM s, unnest($3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bytea[])
		WITH ORDINALITY AS e(time, run, kind, scope, op, ref, data, n)`

// Likewise with parts, whose parameters follow the others. The bytes of one that is on record are sent and not written. One that a deletion is
// about to remove is waited for, and inserted when it is gone. They come in the order of their hashes, and are locked in it.
const insertCut = `, p AS (
	INSERT INTO {s}.parts AS had (hash, refs, data)
	SELECT n.hash, n.refs, n.data FROM s, unnest($%d::text[], $%d::bigint[], $%d::bytea[]) AS n(hash, refs, data)
	ON CONFLICT (hash) DO UPDATE SET refs = had.refs + excluded.refs)
	INSERT INTO {s}.entries (session, seq, time, run, kind, scope, op, ref, data, parts)
	SELECT s.num, $2::bigint + e.n, e.time, e.run, e.kind, e.scope, e.op, e.ref, e.data, e.parts
	FROM s, unnest($3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bytea[], $%d::text[])
		WITH ORDINALITY AS e(time, run, kind, scope, op, ref, data, parts, n)`

// listed are sessions that a Query is for, but for its name.
const listed = `SELECT id, agent, usr, dir, status, parent, seq, created, updated FROM {s}.sessions WHERE NOT deleted
	AND ($1::text = '' OR agent = $1::text) AND ($2::text = '' OR usr = $2::text) AND ($3::text = '' OR status = $3::text) AND ($4::text = '' OR dir = $4::text)`

// newStatements are those of a schema. in fills in its name, that of its channel, and that of the Store that listens.
func newStatements(in func(sql string) string) statements {
	return statements{
		find: in("SELECT seq, owner FROM {s}.sessions WHERE id = $1::text AND NOT deleted"),
		holder: in(`SELECT owner, CASE WHEN until > clock_timestamp() THEN (extract(epoch FROM until - clock_timestamp()) * 1000000)::bigint ELSE 0 END
			FROM {s}.sessions WHERE id = $1::text AND NOT deleted`),
		append:    in(advance + insertEntries),
		create:    in(create + insertEntries),
		appendCut: in(advance + fmt.Sprintf(insertCut, 16, 17, 18, 19)),
		createCut: in(create + fmt.Sprintf(insertCut, 18, 19, 20, 21)),

		// A fork keeps the rows from which it shares, a deletion has its row for itself. Appends change no key and wait for neither fork.
		lockSession: in("SELECT num, base_num, base, seq, agent, usr, dir, deleted FROM {s}.sessions WHERE id = $1::text AND NOT deleted FOR "),
		lockRow:     in("SELECT num, base_num, base, seq, agent, usr, dir, deleted FROM {s}.sessions WHERE num = $1::bigint FOR "),
		newest:      in("SELECT data FROM {s}.entries WHERE session = $1::bigint AND seq > $2::bigint AND seq <= $3::bigint AND kind = $4::text ORDER BY seq DESC LIMIT 1"),

		// A session and those that it shares from, itself first, each with the part that it has: after base, up to upto.
		chain: in(`WITH RECURSIVE chain(n, num, id, base_num, base, upto) AS (
			SELECT 1, num, id, base_num, base, seq FROM {s}.sessions WHERE id = $1::text AND NOT deleted
			UNION ALL
			SELECT chain.n + 1, s.num, s.id, s.base_num, s.base, chain.base FROM chain JOIN {s}.sessions s ON s.num = chain.base_num
		) SELECT num, id, base, upto FROM chain ORDER BY n`),
		page: in(`SELECT seq, time, run, kind, scope, op, ref, parts, data FROM (
			SELECT *, sum(octet_length(data) + octet_length(parts)) OVER (ORDER BY seq) - octet_length(data) - octet_length(parts) AS before FROM (
				SELECT * FROM {s}.entries WHERE session = $1::bigint AND seq > $2::bigint AND seq <= $3::bigint ORDER BY seq LIMIT $4::bigint
			) page
		) e WHERE before < $5::bigint ORDER BY seq`),
		parts: in("SELECT hash, data FROM {s}.parts WHERE hash = ANY($1::text[])"),
		list:  in(listed + ` ORDER BY updated DESC, id LIMIT $5::bigint`),
		named: in(listed + ` AND id = $6::text LIMIT $5::bigint`), // by the index of names
		lease: in(`UPDATE {s}.sessions SET owner = $2::text,
				until = CASE WHEN $3::bigint > 0 THEN clock_timestamp() + $3::bigint * interval '1 microsecond' ELSE '-infinity' END
			WHERE id = $1::text AND NOT deleted AND (owner = $2::text OR until <= clock_timestamp())`),

		shared:        in("SELECT coalesce(max(base), 0) FROM {s}.sessions WHERE base_num = $1::bigint AND base_num > 0"),
		bury:          in("UPDATE {s}.sessions SET deleted = true, agent = '', usr = '', dir = '', status = '', owner = '', until = '-infinity' WHERE num = $1::bigint"),
		remove:        in("DELETE FROM {s}.sessions WHERE num = $1::bigint"),
		removeEntries: in("WITH gone AS (DELETE FROM {s}.entries WHERE session = $1::bigint AND seq > $2::bigint RETURNING parts) SELECT parts FROM gone WHERE parts <> ''"),

		all:   in("SELECT id, num, base_num, base, seq, agent, usr, dir, deleted FROM {s}.sessions WHERE NOT deleted ORDER BY id"),
		place: in("UPDATE {s}.sessions s SET dir = n.dir FROM unnest($1::bigint[], $2::text[]) AS n(num, dir) WHERE s.num = n.num"),

		lockParts:    in("SELECT FROM {s}.parts WHERE hash = ANY($1::text[]) ORDER BY hash FOR UPDATE"),
		releaseParts: in("UPDATE {s}.parts p SET refs = p.refs - n.refs FROM unnest($1::text[], $2::bigint[]) AS n(hash, refs) WHERE p.hash = n.hash"),
		removeParts:  in("DELETE FROM {s}.parts WHERE hash = ANY($1::text[]) AND refs <= 0"),

		ring: in("SELECT " + ring),
	}
}

// prepare makes sure that the schema is there and of this version.
func (s *Store) prepare(ctx context.Context) error {
	tables := pgstore.Schema{Who: "journal/postgres", Name: s.schema, Where: s.where, Lock: lock, Migrations: migrations, Others: "another program's", Then: func(ctx context.Context, tx pgx.Tx, from int) error {
		if from >= directories {
			return nil
		}
		return s.noteDirs(ctx, tx)
	}}
	return s.use(ctx, "open", func(ctx context.Context, conn *pgx.Conn) error { return tables.Prepare(ctx, conn) })
}

// noteDirs fills in the directories of sessions from before they were noted: that of the last run, and for a task, whose runs had none, that of the session which gave it. What can't be read does not keep the journal from being opened: it has none.
func (s *Store) noteDirs(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, s.sql.all)
	if err != nil {
		return err
	}
	type named struct {
		id string
		row
	}
	all, err := pgx.CollectRows(rows, func(from pgx.CollectableRow) (n named, err error) {
		return n, from.Scan(&n.id, &n.num, &n.baseNum, &n.base, &n.seq, &n.agent, &n.user, &n.dir, &n.deleted)
	})
	if err != nil {
		return err
	}
	dirs, nums, found := map[string]string{}, []int64{}, []string{}
	for _, n := range all { // by name: a task's begins with that of the session above it
		run, err := s.lastRun(ctx, tx, n.row, n.seq)
		if err != nil && !errdefs.Internal.Is(err) {
			return err
		}
		dir := run.Dir
		if dir == "" && strings.Contains(n.id, "/") {
			var made journal.SessionCreated
			if made, err = s.made(ctx, tx, n.num); err != nil {
				return err
			}
			dir = dirs[made.TaskOf]
		}
		if dir != "" && pgstore.Plain(dir) {
			dirs[n.id], nums, found = dir, append(nums, n.num), append(found, dir)
		}
	}
	_, err = tx.Exec(ctx, s.sql.place, nums, found)
	return err
}

// made gives the first of a session's own entries, if that made it.
func (s *Store) made(ctx context.Context, tx pgx.Tx, num int64) (made journal.SessionCreated, err error) {
	var data []byte
	err = tx.QueryRow(ctx, s.sql.newest, num, 0, 1, string(made.Kind())).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		return made, nil
	}
	if d, broken := journal.DecodeData(made.Kind(), data); err == nil && broken == nil {
		made = d.(journal.SessionCreated)
	}
	return made, err
}
