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
}

type effect struct {
	key Key
	record
}

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
		if at := f.table[i]; at == 0 || f.all[at-1].key == key {
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
		f.all = append(f.all, effect{key: key})
		f.table[i] = int32(len(f.all)) //nolint:gosec // so many would not fit into memory
	}
	return &f.all[f.table[i]-1].record
}

// fill makes the table anew.
func (f *effects) fill(size int) {
	f.table = make([]int32, size)
	for i := range f.all {
		f.table[f.slot(f.all[i].key)] = int32(i + 1) //nolint:gosec // as above
	}
}

// clone are the effects that f has now, to be changed by themselves. It looks at no table, which another copy may have put more into.
func (f *effects) clone() (c effects) {
	if f.table != nil {
		c.all = slices.Clone(f.all)
		c.fill(len(f.table))
	}
	return c
}
