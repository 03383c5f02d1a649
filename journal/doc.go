// Package journal remembers. A session is an append-only list of entries; sessions, checkpoints, forks, replays, costs and
// traces are readings of it, and events are its entries as they are written.
//
// An effect (a model call, a tool run, a question) is two entries of one [Key]: its intent, durable before it happens, and
// its outcome. An outcome on record is never produced again; an intent without one was lost, and the effect itself says what that means.
//
// A [Store] keeps entries: [Memory] here, a file in journal/sqlite, a database in journal/postgres. A [Log] is one session, open and folded to a [State]. [Follow] gives a
// session's entries as they get on record, whoever writes them.
package journal
