// Package sqlite keeps a journal in one file.
//
//	store, err := sqlite.Open("/home/ann/.local/share/pawl/journal.db")
//	defer store.Close()
//
// Durability: [Store.Append] returns when the entries are on the disk (write-ahead log, synchronous=FULL; on macOS fullfsync, too); a process that is killed, or a
// machine that loses power, loses nothing that was reported and leaves nothing half. What was being appended at that moment is there whole or not
// at all.
//
// Concurrency: a Store is safe for use by many goroutines, and a file by many processes. One transaction writes at a time. Appends that
// arrive while another one is being written, to whatever session, share the next transaction and its one fsync: a group of sessions
// costs little more disk than one. An append that is refused does not hurt its neighbours. Readers never wait for writers, nor writers for
// readers, however slowly a consumer goes through what it reads.
//
// Followers: what a store appends wakes its followers at once, what others append within 100 ms: see [Store.Watch].
//
// Large contents: a string of more than 4 KiB (a file in base64, the output of a tool, a long text) is kept once for the whole file, however
// many entries of whatever sessions have it, under its SHA-256, until the last of them is deleted. An append without one has no
// part in that. A content that is missing or altered is found out when it is read, and named.
//
// Limits: 256 MiB an entry, 4 billion entries a session. The file has to be on a disk of this machine: file systems of the network don't
// lock well enough. Deleted sessions make room for new entries; the file itself does not shrink and what was deleted is not
// overwritten at once. Beside the file live its -wal and -shm, and a directory .live in which stores show that they are there; copy a journal that is in use with sqlite3's .backup, never with cp, and never
// open the file by other means in a process that has it open here.
//
// Errors: besides those of [journal.Store], errdefs.NotAvailable when the file can't be used now (locked by another process for longer than
// [WithPatience], disk full, read-only, closed), with what to do about it, and errdefs.Internal when it is damaged.
//
// For people, the file has a view: sqlite3 journal.db 'select * from journal where session = "…"'. Its column parts says what goes into data at which
// offset, "58+1398104:HASH"; select cast(data as text) from parts where hash = 'HASH' shows it.
package sqlite
