// Package postgres keeps a journal in a PostgreSQL database, for programs that run on several machines.
//
//	store, err := postgres.Open(ctx, "postgres://pawl@db.example.com/app")
//	defer store.Close()
//
// Durability: [Store.Append] returns when the server has committed, which is when its write-ahead log is on its disk: connections switch
// synchronous_commit on where the database has it off. (A server with fsync=off keeps no such promise.) Appends to different sessions
// that come together share one flush of the log; that is the server's own group commit.
//
// Concurrency: a Store is safe for use by many goroutines, and a database by many processes and machines. An append is one statement and one
// round trip; it compares the session's last entry and moves it on under the row's lock, so that one appender wins each position. Readers never
// wait for writers, nor writers for readers; a read holds a connection for one page, never while the consumer works. How many
// connections there are is the DSN's pool_max_conns: by default 4, or one for each CPU where there are more.
//
// Cancelling: a context that ends before an append was sent, or while it waits on the server, leaves nothing, and its error comes back. An append
// that was committed nevertheless is reported as such. When the connection is lost, or the server does not answer for [WithPatience],
// between the two, nobody can know which it was: the entries are there whole or not at all, and the error, of class errdefs.NotAvailable, says
// that it is not known. Append again after the same entry: the fence lets it in if the first one was lost, and answers Conflict if it was not.
// Delete and Lease say so too, and may simply be done again.
//
// Leases run by the database's clock alone: what goes over the wire is how long, counted from the moment of sending.
//
// Large contents: a string of more than 4 KiB (a file in base64, the output of a tool, a long text) is kept once for the whole schema, however
// many entries of whatever sessions have it, under its SHA-256, until the last of them is deleted. Its bytes go over the wire with each append, still
// in one round trip. An append without one has no part in that. A content that is missing or altered is found out when it is read, and named.
//
// Versions: Open makes the tables, and brings those of an older version up to date, once, while whoever opens the journal at the same time waits. That takes a role that owns the schema; to use it takes less:
// docs/postgres.md has the grants, and what else those want to know who run the database.
//
// Limits: 256 MiB an entry and 512 MiB an append; names of sessions have up to 2,000 bytes. Names, run ids, keys, agents and users are text as
// PostgreSQL has it: valid UTF-8 without NUL. The database's encoding is UTF8. Tested with PostgreSQL 15; the SQL is that of 12 and later.
//
// Followers: a store that follows sessions listens on the channel that has the schema's name, over one connection more than the pool has; appends notify, in their transaction, only where another store follows
// their session, since a server lets one notifying transaction commit at a time. Measured with 64 sessions at once: 6,300 appends a second without, 420 if each one notified, 5,900 to 7,600 as it is while nobody follows, and 730 while all are followed from
// elsewhere. See [Store.Watch], and docs/postgres.md.
//
// Poolers that don't keep prepared statements between transactions (PgBouncer's transaction mode) want default_query_exec_mode=exec in the DSN. They keep no settings of a connection either: give synchronous_commit=on and
// default_transaction_isolation='read committed' to the role. And they pass no notifications on: followers look by themselves then, after 1 s to 10 s; where that is too late, follow by a second Store whose DSN goes to the server directly.
//
// Errors: besides those of [journal.Store], errdefs.NotAvailable when the server can't be reached or can't do it now, with what to do about it;
// errdefs.Unauthorized when it does not let us in, or not do it; errdefs.Validation for a DSN or a schema that is wrong;
// errdefs.Internal for damage. No error has the password in it.
//
// For people, the schema has a view: SELECT * FROM pawl.journal WHERE session = '…' ORDER BY seq. Its column parts says what goes into data at which
// offset, "58+1398104:HASH"; SELECT convert_from(data, 'UTF8') FROM pawl.parts WHERE hash = 'HASH' shows it.
package postgres
