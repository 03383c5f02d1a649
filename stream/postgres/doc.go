// Package postgres keeps streams in a PostgreSQL database, for the workers and readers of several machines. It may be the journal's: the tables are in a schema of their own, "pawl_stream".
//
//	st, err := postgres.Open(ctx, "postgres://pawl@db.example.com/app")
//	defer st.Close()
//
// Writing: an append is one transaction and one round trip, whatever the number of sessions that a worker has something of. It moves on a counter in each session's row, and holds that row's lock until it has committed: so offsets are visible in their order, and writers of one session wait
// for each other, for as long as a commit takes. A worker whose connection was lost appends again; what was there is left out.
//
// Cost: 10 rows a second for each effect that says something without a pause, and none for one that is silent; a worker makes one transaction of what all of its effects have to say: 64 items of 1 KB in about 4 ms, measured on a machine with two cores beside its clients (BenchmarkAppend in package stream). Rows are deleted as writers go along: in a session that somebody writes to, every 30 s and whenever it is too long; and
// once a minute each process looks for other sessions that have something to be deleted. Rows come and go: leave autovacuum on. The tables could be unlogged if a crash of the server did not take offsets back with it; so they are not.
//
// Waking: appends notify on the channel that has the schema's name, in their transaction, only where a reader with another Store follows their session, since a server lets one notifying transaction commit at a time. What listens is one connection more than the pool has, while somebody follows. A pooler that passes no
// notifications on makes readers look by themselves, after 1 s to 10 s.
//
// Versions: Open makes the tables, and brings those of an older version up to date, once, while whoever opens at the same time waits. That takes a role that may create the schema; to use it, USAGE on the schema and SELECT, INSERT, UPDATE, DELETE on its tables are enough. Whoever may read the tables reads what models say.
//
// Errors: errdefs.Validation for a DSN or a schema that is wrong; errdefs.Unauthorized when the server does not let us in; errdefs.NotAvailable else, also when tables were made by a newer version. Tested with PostgreSQL 15.
package postgres
