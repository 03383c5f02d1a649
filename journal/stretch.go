package journal

import (
	"slices"
	"time"
)

// stretch are entries of a session in memory, behind those before, which it shares with the sessions that are forks of it, or that it is a fork of.
type stretch struct {
	shared  *stretch // nil: none; full, or the other session's
	after   int64    // how many these are
	session string   // that the entries were appended to
	entries []kept   // immutable once appended, as are the words
	words   []string // what they say again and again: ids of runs, scopes and ops
}

// kept is an entry without what its place says: half as large, and a journal in memory has little else.
type kept struct {
	data  Data
	id    string // of its key
	sec   int64  // of its time
	nanos int32
	// Of the stretch's words; there are three to an entry at most.
	run, scope, op uint8
}

// most is how many entries a stretch takes before the next one begins: what a session has is not moved when it grows.
const most = 64

// add puts an entry behind the last.
func (s *stretch) add(e *Entry) {
	if len(s.entries) == most {
		full := *s
		*s = stretch{shared: &full, after: full.last(), session: s.session, entries: make([]kept, 0, most), words: make([]string, 0, cap(s.words))}
	}
	if n := len(s.entries); n == cap(s.entries) { // append would make room for more than there may be
		s.entries = append(make([]kept, 0, min(max(8, 2*n), most)), s.entries...)
	}
	s.entries = append(s.entries, kept{
		data: e.Data, id: e.Key.ID, sec: e.Time.Unix(), nanos: int32(e.Time.Nanosecond()), //nolint:gosec // below a billion
		run: s.word(e.Run), scope: s.word(e.Key.Scope), op: s.word(e.Key.Op),
	})
}

// word gives the number of a word, of which there are few.
func (s *stretch) word(w string) uint8 {
	i := slices.Index(s.words, w)
	if i < 0 {
		i, s.words = len(s.words), append(s.words, w)
	}
	return uint8(i) //nolint:gosec // three times most is below 256
}

// entry gives the entry at an index as it was appended.
func (s *stretch) entry(i int64) Entry {
	k := &s.entries[i]
	return Entry{
		Seq: s.after + i + 1, Time: time.Unix(k.sec, int64(k.nanos)).UTC(), Session: s.session, Run: s.words[k.run],
		Key: Key{Scope: s.words[k.scope], Op: s.words[k.op], ID: k.id}, Data: k.data,
	}
}

// upTo gives the entries up to number at, which is not behind the last.
func (s *stretch) upTo(at int64) *stretch {
	for s.shared != nil && at <= s.after { // what is shared of these the session shares itself
		s = s.shared
	}
	cut := *s
	cut.entries = s.entries[: at-s.after : at-s.after]
	return &cut
}

// last is the number of the last entry.
func (s *stretch) last() int64 { return s.after + int64(len(s.entries)) }

// behind gives the stretches with the entries behind number after, the first of them first.
func (s *stretch) behind(after int64) (all []stretch) {
	for ; s != nil && after < s.last(); s = s.shared {
		all = append(all, *s)
	}
	slices.Reverse(all)
	return all
}

// lastRun is the last run that was opened.
func (s *stretch) lastRun() (run RunStarted) {
	for ; s != nil; s = s.shared {
		for i := range slices.Backward(s.entries) {
			if d, ok := s.entries[i].data.(RunStarted); ok {
				return d
			}
		}
	}
	return run
}
