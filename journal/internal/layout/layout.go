// Package layout is what the stores that keep entries in tables do alike: a session is read stretch by stretch and page by page, whatever
// the tables are made of.
package layout

import (
	"context"
	"fmt"
	"iter"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// A page is what one query reads. The consumer works on it when the query is over, so that it holds nothing.
const (
	PageEntries = 256
	PageBytes   = 1 << 20 // and at least one entry
)

// Tables are a store's tables, as reading needs them.
type Tables struct {
	Store string // for errors: "journal/sqlite"
	Where string // likewise: which file, or which database
	What  string // likewise: what is damaged, "the file"

	// Stretches finds where the entries of a session lie, in their order: none when there is no such session.
	Stretches func(ctx context.Context, session string) ([]Stretch, error)
	// Page adds entries of a stretch to p, in order, until it has enough or there are no more.
	Page func(ctx context.Context, s Stretch, p *Page) error
}

// Stretch is a part of a session's entries that lies in one piece.
type Stretch struct {
	Num         int64  // of the session that they were written to
	Session     string // its name
	After, UpTo int64
	Own         bool // of the session that is read: it may have grown meanwhile, so that UpTo is no end
}

// Page collects entries of one query.
type Page struct {
	rows []journal.Entry
	size int
	full bool
	err  error
}

// Begin makes it empty: a query that failed is done again.
func (p *Page) Begin() { *p = Page{rows: p.rows[:0]} }

// Add adds an entry, whose data is looked at before it returns, and reports whether that is enough.
func (p *Page) Add(e journal.Entry, kind string, data []byte) (enough bool) {
	if p.full || p.err != nil {
		return true
	}
	if e.Data, p.err = decode(e, kind, data); p.err != nil {
		return true
	}
	p.rows = append(p.rows, e)
	p.size += len(data)
	p.full = len(p.rows) == PageEntries || p.size >= PageBytes
	return p.full
}

func decode(e journal.Entry, kind string, data []byte) (journal.Data, error) {
	d, err := journal.DecodeData(journal.Kind(kind), data)
	if err == nil {
		return d, nil
	}
	class := errdefs.Internal
	if errdefs.NotAvailable.Is(err) { // a newer program's kind is no damage
		class = errdefs.NotAvailable
	}
	return nil, class.Errorf("entry %d of session %s: %w", e.Seq, e.Session, err)
}

// Read is the Read of [journal.Store].
func (t Tables) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		stretches, err := t.Stretches(ctx, session)
		if err != nil {
			yield(journal.Entry{}, err)
			return
		}
		for _, s := range stretches {
			if s.After = max(s.After, after); !t.stretch(ctx, s, yield) {
				return
			}
		}
	}
}

// stretch yields a stretch and reports whether to go on.
func (t Tables) stretch(ctx context.Context, s Stretch, yield func(journal.Entry, error) bool) bool {
	stop := func(err error) bool { return yield(journal.Entry{}, err) && false }
	for more := true; more && (s.Own || s.After < s.UpTo); {
		var p Page
		if err := t.Page(ctx, s, &p); err != nil {
			return stop(err)
		}
		if p.err != nil {
			return stop(t.failed(p.err))
		}
		more = p.full
		for _, e := range p.rows {
			if err := ctx.Err(); err != nil {
				return stop(err)
			}
			if s.After++; e.Seq != s.After {
				return stop(t.failed(errdefs.Internal.Errorf("entry %d of session %s is missing: %s is damaged", s.After, s.Session, t.What)))
			}
			if !yield(e, nil) {
				return false
			}
		}
	}
	if s.After < s.UpTo {
		return stop(errdefs.NotFound.Errorf("%s: read: session %s was deleted while it was read", t.Store, s.Session))
	}
	return true
}

// failed says where an error comes from.
func (t Tables) failed(err error) error {
	return fmt.Errorf("%s: read: %s: %w", t.Store, t.Where, err)
}
