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
	a := addition{session: session, after: after, entries: make([]encoded, len(entries))}
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
	return s.write(ctx, "append", size, a.do)
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
	parts   []layout.Part
}

func (a *addition) do(tx *writing) error {
	fork, isFork := a.entries[0].Data.(journal.SessionCreated)
	isFork = isFork && fork.Parent != ""
	if known := tx.known[a.session]; known != nil && known.Seq == a.after && !isFork {
		if added, err := a.add(tx, *known); added || err != nil {
			return err
		}
		delete(tx.known, a.session) // somebody else went on, or it was deleted
	}
	row, err := tx.find(a.session)
	if err != nil {
		return err
	}
	if isFork {
		if row.num != 0 {
			return refusal{errdefs.Conflict.Errorf("journal/sqlite: fork of %s to %s: there is a session of that name", fork.Parent, a.session)}
		}
		if row, err = tx.base(fork); err != nil {
			return err
		}
	}
	if row.Seq != a.after {
		return refusal{errdefs.Conflict.Errorf("journal/sqlite: append to %s after entry %d: its last is %d", a.session, a.after, row.Seq)}
	}
	if a.after > maxSeq-int64(len(a.entries)) {
		return refusal{errdefs.Validation.Errorf("journal/sqlite: append to %s: a session has up to %d entries", a.session, int64(maxSeq))}
	}
	if row.num == 0 {
		row.Session, row.Created = a.session, a.entries[0].Time
		if row.num, err = tx.create(row); err != nil {
			return err
		}
	}
	added, err := a.add(tx, row)
	if err == nil && !added {
		err = errdefs.Internal.Errorf("session number %d is another one than a moment ago: the file is damaged", row.num)
	}
	return err
}

// add writes the entries behind before, and reports whether that is how the session is: it may have been long ago that somebody looked. If it isn't, nothing was changed.
// The number of the last entry says it all: whatever else appends change of a row, they change with it.
func (a *addition) add(tx *writing, before row) (added bool, err error) {
	row := before
	for _, e := range a.entries {
		row.Apply(e.Entry)
	}
	if added, err = tx.update(&before, &row); err != nil || !added {
		return false, err
	}
	for _, e := range a.entries {
		if err := tx.insert(row.num, e); err != nil {
			return false, err
		}
	}
	for _, p := range a.parts {
		if err := tx.refer(p); err != nil {
			return false, err
		}
	}
	tx.note(a.session, row)
	return true, nil
}

// note keeps the row of a session that a run is under way in: entries will follow.
func (tx *writing) note(session string, r row) {
	known := tx.known[session]
	switch {
	case r.Status != running:
		delete(tx.known, session)
	case known != nil:
		*known = r
	default:
		if len(tx.known) >= maxKnown {
			clear(tx.known)
		}
		known = new(row)
		*known = r
		tx.known[session] = known
	}
}

// running is the status of a session that a run is under way in.
var running = func() string {
	var i journal.Info
	i.Apply(journal.Entry{Data: journal.RunStarted{}})
	return i.Status
}()

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
		row.Agent, row.User = parent.Agent, parent.User
		return row, nil
	}
	last, err := tx.lastRun(from, fork.At)
	row.Agent, row.User = last.Agent, last.User
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
