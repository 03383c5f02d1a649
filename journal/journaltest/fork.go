package journaltest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

var forks = []check{
	{"a fork shares what was and then goes its own way", func(t *testing.T, s journal.Store) {
		talk(t, s, "p", 0, "1", "2", "3")
		fork(t, s, "f", "p", 2, "f4")
		talk(t, s, "p", 3, "p4")
		talk(t, s, "f", 4, "f5")
		holds(t, s, "p", "1", "2", "3", "p4")
		holds(t, s, "f", "1", "2", "[session.created]", "f4", "f5")
		for after, want := range [][]string{{"1", "2", "[session.created]", "f4", "f5"}, {"2", "[session.created]", "f4", "f5"}, {"[session.created]", "f4", "f5"}, {"f4", "f5"}, {"f5"}, nil} {
			if got := heard(t, s, "f", int64(after)); !slices.Equal(got, want) {
				t.Errorf("after %d: %q, want %q", after, got, want)
			}
		}
	}},
	{"shared entries are the parent's, byte for byte", func(t *testing.T, s journal.Store) {
		want := Samples()
		add(t, s, "p", 0, want...)
		fork(t, s, "f", "p", int64(len(want)))
		fork(t, s, "g", "f", int64(len(want)))
		for _, name := range []string{"f", "g"} {
			got := read(t, s, name, 0)
			if len(got) != len(want)+1 {
				t.Fatalf("%s has %d entries, want %d", name, len(got), len(want)+1)
			}
			same(t, "p", 0, got[:len(want)], want)
			if got[len(want)].Session != name {
				t.Errorf("the entry that made %s bears session %q", name, got[len(want)].Session)
			}
		}
	}},
	{"a fork begins at any position, 0 too", func(t *testing.T, s journal.Store) {
		talk(t, s, "p", 0, "1", "2", "3")
		for at := range int64(4) {
			name := fmt.Sprint("at ", at)
			fork(t, s, name, "p", at, "mine")
			holds(t, s, name, append([]string{"1", "2", "3"}[:at:at], "[session.created]", "mine")...)
		}
	}},
	{"a fork of a fork shares from both", func(t *testing.T, s journal.Store) {
		talk(t, s, "p", 0, "1", "2", "3", "4")
		fork(t, s, "f", "p", 3, "f5", "f6")
		talk(t, s, "p", 4, "p5")
		whole := []string{"1", "2", "3", "[session.created]", "f5", "f6"}
		for at := range int64(7) {
			name := fmt.Sprint("at ", at)
			fork(t, s, name, "f", at, "mine")
			holds(t, s, name, append(slices.Clone(whole[:at]), "[session.created]", "mine")...)
			fork(t, s, name+" again", name, at+1)
			holds(t, s, name+" again", append(slices.Clone(whole[:at]), "[session.created]", "[session.created]")...)
		}
		holds(t, s, "f", whole...)
		holds(t, s, "p", "1", "2", "3", "4", "p5")
	}},
	{"a fork of what is not there is NotFound and leaves nothing", func(t *testing.T, s journal.Store) {
		talk(t, s, "p", 0, "1", "2")
		for _, c := range []journal.SessionCreated{{Parent: "p", At: 3}, {Parent: "p", At: -1}, {Parent: "none", At: 0}, {Parent: "none", At: 1}, {Parent: "f", At: 0}} {
			refused(t, s.Append(context.Background(), "f", c.At, journal.Entry{Data: c}, said("x")), errdefs.NotFound, fmt.Sprintf("fork of %s at %d", c.Parent, c.At))
		}
		holds(t, s, "f")
		if got := names(t, s, journal.Query{}); !slices.Equal(got, []string{"p"}) {
			t.Errorf("there are sessions %q", got)
		}
		talk(t, s, "f", 0, "a session of its own")
	}},
	{"a fork that is not appended where it begins is a Conflict", func(t *testing.T, s journal.Store) {
		talk(t, s, "p", 0, "1", "2")
		for _, after := range []int64{0, 2, 3} {
			err := s.Append(context.Background(), "f", after, journal.Entry{Data: journal.SessionCreated{Parent: "p", At: 1}})
			refused(t, err, errdefs.Conflict, fmt.Sprintf("fork at 1 appended after %d", after))
		}
		holds(t, s, "f")
	}},
	{"a session that exists can't become a fork", func(t *testing.T, s journal.Store) {
		talk(t, s, "p", 0, "1", "2", "3")
		talk(t, s, "f", 0, "mine", "too")
		for _, at := range []int64{0, 1, 2} { // at 2 the numbers would fit
			err := s.Append(context.Background(), "f", at, journal.Entry{Data: journal.SessionCreated{Parent: "p", At: at}})
			refused(t, err, errdefs.Conflict, fmt.Sprintf("fork at %d into a session of 2", at))
		}
		refused(t, s.Append(context.Background(), "p", 3, journal.Entry{Data: journal.SessionCreated{Parent: "p", At: 3}}), errdefs.Conflict, "a fork of itself")
		holds(t, s, "f", "mine", "too")
		holds(t, s, "p", "1", "2", "3")
	}},
	{"deleting the parent keeps what the fork shares", func(t *testing.T, s journal.Store) {
		talk(t, s, "p", 0, "1", "2", "3")
		fork(t, s, "f", "p", 2, "f4")
		fork(t, s, "g", "f", 3, "g5")
		drop(t, s, "p")
		holds(t, s, "p")
		holds(t, s, "f", "1", "2", "[session.created]", "f4")
		holds(t, s, "g", "1", "2", "[session.created]", "[session.created]", "g5")
		drop(t, s, "f")
		holds(t, s, "f")
		holds(t, s, "g", "1", "2", "[session.created]", "[session.created]", "g5")
		refused(t, s.Append(context.Background(), "h", 1, journal.Entry{Data: journal.SessionCreated{Parent: "p", At: 1}}), errdefs.NotFound, "fork of a deleted session")
		fork(t, s, "h", "g", 2, "h4")
		drop(t, s, "g")
		holds(t, s, "h", "1", "2", "[session.created]", "h4")
		if got := names(t, s, journal.Query{}); !slices.Equal(got, []string{"h"}) {
			t.Errorf("there are sessions %q, want h", got)
		}
		drop(t, s, "h")
		for _, name := range []string{"p", "f", "g", "h"} {
			holds(t, s, name)
		}
	}},
	{"deleting a fork keeps the parent", func(t *testing.T, s journal.Store) {
		talk(t, s, "p", 0, "1", "2", "3")
		fork(t, s, "f", "p", 3, "f5")
		fork(t, s, "g", "p", 2, "g4")
		drop(t, s, "f")
		holds(t, s, "p", "1", "2", "3")
		holds(t, s, "g", "1", "2", "[session.created]", "g4")
		talk(t, s, "p", 3, "4")
		holds(t, s, "p", "1", "2", "3", "4")
	}},
	{"a parent made again is not the fork's parent", func(t *testing.T, s journal.Store) {
		talk(t, s, "p", 0, "1", "2", "3")
		fork(t, s, "f", "p", 2, "f4")
		drop(t, s, "p")
		talk(t, s, "p", 0, "new 1", "new 2", "new 3")
		holds(t, s, "f", "1", "2", "[session.created]", "f4")
		fork(t, s, "g", "p", 1)
		holds(t, s, "g", "new 1", "[session.created]")
		drop(t, s, "f")
		holds(t, s, "p", "new 1", "new 2", "new 3")
	}},
}

func drop(t *testing.T, s journal.Store, session string) {
	t.Helper()
	if err := s.Delete(context.Background(), session); err != nil {
		t.Fatalf("delete of %q: %v", session, err)
	}
}
