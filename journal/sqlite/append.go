package sqlite

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/internal/layout"
)

// maxEntry is how many bytes an entry's data may have. A variable for tests.
var maxEntry = 256 << 20

// years that nanoseconds in an int64 can tell apart.
const firstYear, lastYear = 1678, 2261

// Append implements [journal.Store]. It returns when the entries are on the disk, together with those of other callers that came at the same
// time. When ctx ends while they are queued, nothing was written; once they are being written ctx is not looked at any more.
func (s *Store) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	if session == "" || len(entries) == 0 {
		return errdefs.Validation.Errorf("journal/sqlite: append: give a session and entries")
	}
	a := &addition{session: session, after: after}
	a.entries = append(a.one[:0], make([]encoded, len(entries))...)
	size := 0
	now := time.Now()
	var parts layout.Parts
	for i, e := range entries {
		data, err := encode(e)
		if err != nil {
			return err
		}
		if e.Time.IsZero() {
			e.Time = now
		}
		e.Time, e.Session, e.Seq = e.Time.UTC().Round(0), session, after+int64(i)+1
		size += len(data)
		rest, refs := parts.Cut(e.Data.Kind(), data)
		a.entries[i] = encoded{e, rest, refs}
	}
	a.parts = parts.Sorted()
	if err := s.write(ctx, "append", size, a); err != nil {
		return err
	}
	s.bell.Ring(session)
	return nil
}

func encode(e journal.Entry) ([]byte, error) {
	data, err := journal.EncodeData(e.Data)
	if err != nil {
		return nil, err
	}
	if len(data) > maxEntry {
		return nil, errdefs.Validation.Errorf("journal/sqlite: append: an entry of %d bytes: the limit is %d", len(data), maxEntry)
	}
	if y := e.Time.Year(); !e.Time.IsZero() && (y < firstYear || y > lastYear) {
		return nil, errdefs.Validation.Errorf("journal/sqlite: append: an entry of the year %d: use one from %d to %d", y, firstYear, lastYear)
	}
	return data, nil
}

// encoded is an entry as it will be, with its bytes.
type encoded struct {
	journal.Entry
	data  []byte
	parts string
}

// addition is an append that is queued.
type addition struct {
	session string
	after   int64
	entries []encoded
	one     [1]encoded // which entries is mostly
	parts   []layout.Part
}

func (a *addition) do(tx *writing) error {
	fork, isFork := a.entries[0].Data.(journal.SessionCreated)
	isFork = isFork && fork.Parent != ""
	if known := tx.known[a.session]; known != nil && !isFork && a.follows(*known) == nil {
		if row := a.apply(*known); onlyGrew(*known, row) {
			if added, err := a.insert(tx, row, true); added || err != nil {
				return err
			}
			delete(tx.known, a.session) // somebody else went on, or it was deleted
		}
	}
	before, err := tx.find(a.session)
	if err != nil {
		return err
	}
	if isFork {
		if before.num != 0 {
			return refusal{errdefs.Conflict.Errorf("journal/sqlite: fork of %s to %s: there is a session of that name", fork.Parent, a.session)}
		}
		if before, err = tx.base(fork); err != nil {
			return err
		}
	}
	if err := a.follows(before); err != nil {
		return refusal{err}
	}
	if before.num == 0 {
		before.Session, before.Created = a.session, a.entries[0].Time
		if before.num, err = tx.create(before); err != nil {
			return err
		}
	}
	row := a.apply(before)
	if !onlyGrew(before, row) {
		if err := tx.update(row); err != nil {
			return err
		}
	}
	_, err = a.insert(tx, row, false)
	return err
}

// follows says what is wrong with appending behind r.
func (a *addition) follows(r row) error {
	if r.Seq != a.after {
		return errdefs.Conflict.Errorf("journal/sqlite: append to %s after entry %d: its last is %d", a.session, a.after, r.Seq)
	}
	if a.after > maxSeq-int64(len(a.entries)) {
		return errdefs.Validation.Errorf("journal/sqlite: append to %s: a session has up to %d entries", a.session, int64(maxSeq))
	}
	return nil
}

// apply gives r as it is behind the entries.
func (a *addition) apply(r row) row {
	for _, e := range a.entries {
		r.Apply(e.Entry)
	}
	return r
}

// onlyGrew reports whether the row of a session may stay as it was before, though the session has got longer: see schema.
func onlyGrew(before, r row) bool {
	before.Seq, before.Updated = r.Seq, r.Updated
	return before.Info == r.Info && r.Status == running
}

// insert writes the entries, and reports whether it could: behind what the connection left, it may not be able to (see follow), and nothing was changed.
func (a *addition) insert(tx *writing, r row, known bool) (bool, error) {
	for i := range a.entries {
		if known && i == 0 {
			if done, err := tx.follow(r.num, &a.entries[0]); !done || err != nil {
				return false, err
			}
		} else if err := tx.insert(r.num, &a.entries[i]); err != nil {
			return false, err
		}
	}
	for _, p := range a.parts {
		if err := tx.refer(p); err != nil {
			return false, err
		}
	}
	tx.note(r)
	return true, nil
}

// note keeps the row of a session that a run is under way in: entries will follow.
func (tx *writing) note(r row) {
	known := tx.known[r.Session]
	switch {
	case r.Status != running:
		delete(tx.known, r.Session)
	case known != nil:
		*known = r
	default:
		if len(tx.known) >= maxKnown {
			clear(tx.known)
		}
		known = new(row)
		*known = r
		tx.known[r.Session] = known
	}
}

// base begins the row of a fork: what it shares, and who its parent was at that point.
func (tx *writing) base(fork journal.SessionCreated) (row row, err error) {
	parent, err := tx.find(fork.Parent)
	if err != nil {
		return row, err
	}
	if parent.num == 0 || fork.At < 0 || fork.At > parent.Seq {
		return row, refusal{errdefs.NotFound.Errorf("journal/sqlite: fork of %s at %d: there is no such entry", fork.Parent, fork.At)}
	}
	row.Seq = fork.At
	if fork.At == 0 {
		return row, nil
	}
	from := parent
	for fork.At <= from.base { // what it shares the parent shares itself
		if from, err = tx.numbered(from.baseNum); err != nil {
			return row, err
		}
	}
	row.baseNum, row.base = from.num, fork.At
	if fork.At == parent.Seq {
		row.Agent, row.User, row.Dir = parent.Agent, parent.User, parent.Dir
		return row, nil
	}
	last, err := tx.lastRun(from, fork.At)
	row.Agent, row.User, row.Dir = last.Agent, last.User, last.Dir
	return row, err
}

// lastRun finds the last run that was opened in a session up to an entry.
func (tx *writing) lastRun(from row, upTo int64) (run journal.RunStarted, err error) {
	for {
		data, err := tx.newest(from.num, from.base, upTo, run.Kind())
		if err != nil {
			return run, err
		}
		if data != nil {
			d, err := journal.DecodeData(run.Kind(), data)
			if err != nil {
				return run, errdefs.Internal.Errorf("a run.started of session %s can't be read: %w", from.Session, err)
			}
			return d.(journal.RunStarted), nil
		}
		if from.baseNum == 0 {
			return run, nil
		}
		if upTo = min(upTo, from.base); upTo == 0 {
			return run, nil
		}
		if from, err = tx.numbered(from.baseNum); err != nil {
			return run, err
		}
	}
}
