package journal

import (
	"hash/maphash"
	"slices"
)

// effects are what is on record of a run's effects, by key: a table of places in a list, which takes half of what a map with such long keys does. The zero effects are
// those of no run, and stay none.
type effects struct {
	all   []effect // in the order in which they were first heard of
	table []int32  // of a power of two, more than there are effects: the place in all, counted from 1; 0 where there is room
	kinds []*kind  // of the keys; one may be there twice
}

// effect is one of a run. What many keys have in common it shares with the last of them.
type effect struct {
	*kind
	id string
	record
}

// kind is a key without its id.
type kind struct{ scope, op string }

func (e *effect) key() Key { return Key{e.scope, e.op, e.id} }

// record is what is known of an effect.
type record struct {
	begun   int64 // number of the intent; 0: none
	outcome Data
}

var seed = maphash.MakeSeed()

// newEffects is room for those of a run.
func newEffects() effects { return effects{table: make([]int32, 8)} }

// slot is where a key stands in the table, or has room.
func (f *effects) slot(key Key) int {
	mask := len(f.table) - 1
	for i := int(maphash.Comparable(seed, key)) & mask; ; i = (i + 1) & mask { //nolint:gosec // any of its bits will do
		if at := f.table[i]; at == 0 || f.all[at-1].key() == key {
			return i
		}
	}
}

// of gives what is known of an effect; zero when that is nothing.
func (f *effects) of(key Key) record {
	if len(f.table) == 0 {
		return record{}
	}
	if at := f.table[f.slot(key)]; at > 0 {
		return f.all[at-1].record
	}
	return record{}
}

// put gives the record of an effect, to be changed before the next one is put.
func (f *effects) put(key Key) *record {
	if 4*(len(f.all)+1) > 3*len(f.table) {
		f.fill(2 * len(f.table))
	}
	i := f.slot(key)
	if f.table[i] == 0 {
		if n := len(f.all); n == cap(f.all) {
			f.all = slices.Grow(f.all, n/2+8) // append would double it
		}
		f.all = append(f.all, effect{kind: f.kind(key), id: key.ID})
		f.table[i] = int32(len(f.all)) //nolint:gosec // so many would not fit into memory
	}
	return &f.all[f.table[i]-1].record
}

// kind gives the kind of a key, if it is one of the last few.
func (f *effects) kind(key Key) *kind {
	const few = 8
	for _, k := range f.kinds[max(0, len(f.kinds)-few):] {
		if k.scope == key.Scope && k.op == key.Op {
			return k
		}
	}
	k := &kind{key.Scope, key.Op}
	f.kinds = append(f.kinds, k)
	return k
}

// fill makes the table anew.
func (f *effects) fill(size int) {
	f.table = make([]int32, size)
	for i := range f.all {
		f.table[f.slot(f.all[i].key())] = int32(i + 1)
	}
}

// clone are the effects that f has now, to be changed by themselves. It looks at no table, which another copy may have put more into.
func (f *effects) clone() (c effects) {
	if f.table != nil {
		c.all, c.kinds = slices.Clone(f.all), slices.Clip(f.kinds)
		c.fill(len(f.table))
	}
	return c
}
