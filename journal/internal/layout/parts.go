package layout

import (
	"cmp"
	"slices"

	"github.com/pawl-dev/pawl/journal"
)

// Threshold is the length, in bytes, up to which a string stays in its entry.
//
// A part costs two more rows, some 300 bytes, and in SQLite 50 µs when it is new: half as much again as the whole append of 1 KiB, a fifth of that of
// 4 KiB. One that is on record already costs next to nothing. What is shorter than this is rarely said twice and cheap to keep.
const Threshold = 4 << 10

// Part is what is kept once, however many entries have it.
type Part struct {
	Hash string
	Refs int64  // how many times the entries in question have it
	Data []byte // nil where it was only counted
}

// Parts are those that some entries refer to. The zero Parts is ready for use and costs nothing while there are none.
type Parts struct{ byHash map[string]*Part }

// Cut takes the long strings out of an entry's data. It gives what lies in the row, and the references for the row's column; without a long
// string that is data itself, and "". The parts share data's bytes.
//
// A run.started stays whole: stores look into it themselves when a fork is made.
func (p *Parts) Cut(kind journal.Kind, data []byte) (rest []byte, refs string) {
	if len(data) <= Threshold || kind == (journal.RunStarted{}).Kind() {
		return data, ""
	}
	rest, all := cut(data, Threshold, func(hash string, b []byte) { p.at(hash).Data = b })
	if all == nil {
		return data, ""
	}
	p.count(all)
	return rest, format(all)
}

// Count counts the references of a row that goes.
func (p *Parts) Count(refs string) error {
	all, err := parse(refs)
	p.count(all)
	return err
}

func (p *Parts) count(refs []Ref) {
	for _, r := range refs {
		p.at(r.Hash).Refs++
	}
}

func (p *Parts) at(hash string) *Part {
	if p.byHash == nil {
		p.byHash = map[string]*Part{}
	}
	if p.byHash[hash] == nil {
		p.byHash[hash] = &Part{Hash: hash}
	}
	return p.byHash[hash]
}

// Sorted gives them in the order of their hashes, in which everybody locks them.
func (p *Parts) Sorted() []Part {
	if len(p.byHash) == 0 {
		return nil
	}
	all := make([]Part, 0, len(p.byHash))
	for _, part := range p.byHash {
		all = append(all, *part)
	}
	slices.SortFunc(all, func(a, b Part) int { return cmp.Compare(a.Hash, b.Hash) })
	return all
}
