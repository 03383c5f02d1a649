package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/pgstore"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/internal/layout"
)

// How many bytes the data of an entry, and of an append, may have: PostgreSQL takes up to 1 GB in a message. Variables for tests.
var maxEntry, maxAppend = 256 << 20, 512 << 20

// years that nanoseconds in an int64 can tell apart.
const firstYear, lastYear = 1678, 2261

// Append implements [journal.Store]. It returns when the server has committed. See the package's comment for a context that ends and a
// connection that is lost meanwhile.
func (s *Store) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	a, err := newAddition(session, after, entries)
	if err != nil {
		return err
	}
	err = s.use(ctx, "append", func(ctx context.Context, conn *pgx.Conn) error {
		if a.fork.Parent != "" {
			return s.forkOff(ctx, conn, a)
		}
		done, err := s.add(ctx, conn, a)
		if err != nil {
			return doubt(err)
		}
		if !done {
			return s.behind(ctx, conn, a)
		}
		return nil
	})
	s.bell.Ring(session) // also where nobody knows what became of it
	return err
}

// addition is what an append adds, in columns.
type addition struct {
	session string
	after   int64
	fork    journal.SessionCreated // with a parent, if it makes one
	entries []journal.Entry

	times                         []int64
	runs, kinds, scopes, ops, ids []string
	data                          [][]byte

	parts []layout.Part
	refs  []string // of each entry, if there are parts
}

func newAddition(session string, after int64, entries []journal.Entry) (*addition, error) {
	if session == "" || len(entries) == 0 {
		return nil, errdefs.Validation.Errorf("journal/postgres: append: give a session and entries")
	}
	if len(session) > pgstore.NameBytes || !pgstore.Plain(session) {
		return nil, errdefs.Validation.Errorf("journal/postgres: append: session %s: a name has up to %d bytes, of valid UTF-8 without NUL", quoted(session), pgstore.NameBytes)
	}
	a := &addition{session: session, after: after, entries: make([]journal.Entry, len(entries))}
	size, now := 0, time.Now()
	var parts layout.Parts
	for i, e := range entries {
		data, err := encode(e)
		if err != nil {
			return nil, err
		}
		if size += len(data); size > maxAppend {
			return nil, errdefs.Validation.Errorf("journal/postgres: append: more than %d bytes at once: append them in several pieces", maxAppend)
		}
		if e.Time.IsZero() {
			e.Time = now
		}
		e.Time, e.Session, e.Seq = e.Time.UTC().Round(0), session, after+int64(i)+1
		a.entries[i] = e
		a.times, a.runs, a.kinds = append(a.times, e.Time.UnixNano()), append(a.runs, e.Run), append(a.kinds, string(e.Data.Kind()))
		a.scopes, a.ops, a.ids = append(a.scopes, e.Key.Scope), append(a.ops, e.Key.Op), append(a.ids, e.Key.ID)
		rest, refs := parts.Cut(e.Data.Kind(), data)
		if a.data = append(a.data, rest); refs != "" {
			if a.refs == nil {
				a.refs = make([]string, len(entries))
			}
			a.refs[i] = refs
		}
	}
	a.parts = parts.Sorted()
	if fork, ok := entries[0].Data.(journal.SessionCreated); ok {
		a.fork = fork
	}
	return a, nil
}

func encode(e journal.Entry) ([]byte, error) {
	data, err := journal.EncodeData(e.Data)
	if err != nil {
		return nil, err
	}
	if len(data) > maxEntry {
		return nil, errdefs.Validation.Errorf("journal/postgres: append: an entry of %d bytes: the limit is %d", len(data), maxEntry)
	}
	if y := e.Time.Year(); !e.Time.IsZero() && (y < firstYear || y > lastYear) {
		return nil, errdefs.Validation.Errorf("journal/postgres: append: an entry of the year %d: use one from %d to %d", y, firstYear, lastYear)
	}
	var noted journal.Info // what goes into columns beside it
	noted.Apply(e)
	if !pgstore.Plain(e.Run, e.Key.Scope, e.Key.Op, e.Key.ID, noted.Agent, noted.User, noted.Dir, noted.Status, noted.Parent) {
		return nil, errdefs.Validation.Errorf("journal/postgres: append: a %s with an id or a name that is not valid UTF-8 without NUL", e.Data.Kind())
	}
	return data, nil
}

// asking is a connection or a transaction.
type asking interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// add adds entries to a session that has the one before, or that is not there when there is none before. It reports whether it could.
func (s *Store) add(ctx context.Context, db asking, a *addition) (bool, error) {
	if a.after == 0 {
		return s.create(ctx, db, a, base{})
	}
	change := journal.Info{Session: a.session, Agent: same, Status: same, Parent: same}
	for _, e := range a.entries {
		change.Apply(e)
	}
	var created any
	if !change.Created.IsZero() {
		created = change.Created.UnixNano()
	}
	var run any
	if change.Agent != same {
		run = ofRun(change)
	}
	tag, err := db.Exec(ctx, a.either(s.sql.append, s.sql.appendCut), a.args(changed(change.Parent), run, changed(change.Status),
		created, change.Updated.UnixNano())...)
	return tag.RowsAffected() > 0, err
}

// create makes the session with its first entries. It reports false when there is one of that name.
func (s *Store) create(ctx context.Context, db asking, a *addition, b base) (bool, error) {
	info := b.info
	for _, e := range a.entries {
		info.Apply(e)
	}
	tag, err := db.Exec(ctx, a.either(s.sql.create, s.sql.createCut), a.args(info.Parent, ofRun(info), info.Status, info.Created.UnixNano(), info.Updated.UnixNano(), b.num, b.at)...)
	return tag.RowsAffected() > 0, err
}

// either chooses the statement: without parts there is no word of them.
func (a *addition) either(plain, cut string) string {
	if a.parts == nil {
		return plain
	}
	return cut
}

// args are the parameters of all of them: the entries in columns, then more, then the parts.
func (a *addition) args(more ...any) []any {
	args := append([]any{a.session, a.after, a.times, a.runs, a.kinds, a.scopes, a.ops, a.ids, a.data, int64(len(a.entries))}, more...)
	if a.parts == nil {
		return args
	}
	hashes, counts := columns(a.parts)
	data := make([][]byte, len(a.parts))
	for i, p := range a.parts {
		data[i] = p.Data
	}
	return append(args, hashes, counts, data, a.refs)
}

// ofRun are the columns that only the beginning of a run changes.
func ofRun(i journal.Info) []string { return []string{i.Agent, i.User, i.Dir} }

func columns(parts []layout.Part) (hashes []string, counts []int64) {
	for _, p := range parts {
		hashes, counts = append(hashes, p.Hash), append(counts, p.Refs)
	}
	return hashes, counts
}

// same stands for a column that the entries don't change; no name can be it.
const same = "\x00"

func changed(text string) any {
	if text == same {
		return nil
	}
	return text
}

// behind is the Conflict of an append that did not follow the last entry.
func (s *Store) behind(ctx context.Context, db asking, a *addition) error {
	var last int64
	var owner string
	if err := db.QueryRow(ctx, s.sql.find, a.session).Scan(&last, &owner); err != nil {
		last = 0 // there is none; or we can't ask, and the Conflict is certain all the same
	}
	return errdefs.Conflict.Errorf("journal/postgres: append to %s after entry %d: its last is %d", a.session, a.after, last)
}
