// Package layout is what the stores that keep entries in tables do alike. A session is read stretch by stretch and page by page, whatever the
// tables are made of. Long strings (files in base64, outputs of tools, long texts) are cut out of an entry's data and kept once for the whole
// store, as parts under the SHA-256 of their bytes; the row says what goes in where, so that reading is splicing bytes.
package layout

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// A page is what one query reads, of entries or of parts. The consumer works on it when the query is over, so that it holds nothing.
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
	// Page adds entries of a stretch to p, which is empty, in order, until it has enough or there are no more.
	Page func(ctx context.Context, s Stretch, p *Page) error
	// Parts gives parts to found, those of hashes that are on record.
	Parts func(ctx context.Context, hashes []string, found func(hash string, data []byte)) error
}

// Stretch is a part of a session's entries that lies in one piece.
type Stretch struct {
	Num         int64  // of the session that they were written to
	Session     string // its name
	After, UpTo int64
	Own         bool // of the session that is read: it may have grown meanwhile, so that UpTo is no end of what is read in any case
}

// Page collects entries of one query.
type Page struct {
	rows []row
	size int
	full bool
	err  error

	parts map[string][]byte // of the rows before ready; nil for one that is damaged
	ready int
}

// row is an entry as it was read. One with parts is decoded when its turn comes: a page's rows are small, and their entries may not be.
type row struct {
	journal.Entry
	kind string
	data []byte
	refs []Ref
}

// Begin makes it empty, for a query that is done again.
func (p *Page) Begin() { *p = Page{rows: p.rows[:0]} }

// Add adds an entry as its row has it, whose bytes are the page's only until it returns, and reports whether that is enough.
func (p *Page) Add(e journal.Entry, kind string, data []byte, refs string) (enough bool) {
	if p.full || p.err != nil {
		return true
	}
	p.rows = append(p.rows, row{Entry: e})
	r := &p.rows[len(p.rows)-1]
	if refs == "" {
		p.err = r.decode(kind, data)
	} else if r.refs, p.err = parse(refs); p.err != nil {
		p.err = r.damaged(p.err)
	} else {
		r.kind, r.data = kind, bytes.Clone(data)
	}
	p.size += len(data) + len(refs)
	p.full = len(p.rows) == PageEntries || p.size >= PageBytes
	return p.full || p.err != nil
}

func (r *row) decode(kind string, data []byte) (err error) {
	if r.Data, err = journal.DecodeData(journal.Kind(kind), data); err == nil {
		return nil
	}
	class := errdefs.Internal
	if errdefs.NotAvailable.Is(err) { // a newer program's kind is no damage
		class = errdefs.NotAvailable
	}
	return class.Errorf("entry %d of session %s: %w", r.Seq, r.Session, err)
}

func (r *row) damaged(err error) error {
	return errdefs.Internal.Errorf("entry %d of session %s: %w", r.Seq, r.Session, err)
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
	var p Page
	for more := s.After < s.UpTo; more && (s.Own || s.After < s.UpTo); { // nothing, mostly: who has a session open looks again and again whether others went on
		p.Begin()
		if err := t.Page(ctx, s, &p); err != nil {
			return stop(err)
		}
		if p.err != nil {
			return stop(t.failed(p.err))
		}
		more = p.full
		for i := range p.rows {
			if err := ctx.Err(); err != nil {
				return stop(err)
			}
			r := &p.rows[i]
			if s.After++; r.Seq != s.After {
				return stop(t.failed(errdefs.Internal.Errorf("entry %d of session %s is missing: %s is damaged", s.After, s.Session, t.What)))
			}
			if err := t.complete(ctx, s, &p, i); err != nil {
				return stop(err)
			}
			if !yield(r.Entry, nil) {
				return false
			}
			*r = row{} // the consumer's now: a page may stand for much
		}
	}
	if s.After < s.UpTo {
		return stop(t.deleted(s))
	}
	return true
}

func (t Tables) deleted(s Stretch) error {
	return errdefs.NotFound.Errorf("%s: read: session %s was deleted while it was read", t.Store, s.Session)
}

var errMissing = errors.New("is missing")

// complete puts the parts of a page's row i in, and decodes it.
func (t Tables) complete(ctx context.Context, s Stretch, p *Page, i int) error {
	r := &p.rows[i]
	if r.refs == nil {
		return nil
	}
	if i >= p.ready {
		if err := t.fetch(ctx, p, i); err != nil {
			return err
		}
	}
	data, err := splice(r.data, r.refs, func(hash string) ([]byte, error) {
		switch b, ok := p.parts[hash]; {
		case !ok:
			return nil, errMissing
		case b == nil:
			return nil, errors.New("was altered")
		default:
			return b, nil
		}
	})
	if errors.Is(err, errMissing) { // it may have gone with its session after the rows were read; if the row is there still, so was the part
		var again Page
		if err := t.Page(ctx, Stretch{Num: s.Num, Session: s.Session, After: r.Seq - 1, UpTo: r.Seq}, &again); err != nil {
			return err
		}
		if len(again.rows) == 0 && again.err == nil {
			return t.deleted(s)
		}
	}
	if err != nil {
		return t.failed(r.damaged(fmt.Errorf("%w: %s is damaged", err, t.What)))
	}
	if err := r.decode(r.kind, data); err != nil {
		return t.failed(err)
	}
	return nil
}

// fetch reads the parts of row i, and those of the rows behind it as long as they all fit a page. A part is read once for all of them.
func (t Tables) fetch(ctx context.Context, p *Page, i int) error {
	need, size := map[string]bool{}, 0
	for first := i; i < len(p.rows); i++ {
		for _, r := range p.rows[i].refs {
			if !need[r.Hash] {
				size += r.Size
			}
		}
		if i > first && size > PageBytes {
			break
		}
		for _, r := range p.rows[i].refs {
			need[r.Hash] = true
		}
	}
	p.ready = i
	maps.DeleteFunc(p.parts, func(hash string, _ []byte) bool { return !need[hash] })
	var hashes []string
	for hash := range need {
		if _, ok := p.parts[hash]; !ok {
			hashes = append(hashes, hash)
		}
	}
	if len(hashes) == 0 {
		return nil
	}
	if p.parts == nil {
		p.parts = map[string][]byte{}
	}
	return t.Parts(ctx, hashes, func(hash string, data []byte) {
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hash {
			data = nil
		}
		p.parts[hash] = data
	})
}

// failed says where an error comes from.
func (t Tables) failed(err error) error {
	return fmt.Errorf("%s: read: %s: %w", t.Store, t.Where, err)
}
