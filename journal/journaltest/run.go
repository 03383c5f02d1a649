package journaltest

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// Run checks a store against the whole contract of [journal.Store]. open gives an empty one for each case; a store that has a Close is
// closed at the end of its case.
func Run(t *testing.T, open func(t *testing.T) journal.Store) {
	t.Helper()
	for _, group := range []struct {
		name  string
		cases []check
	}{
		{"append", appends},
		{"read", reads},
		{"fork", forks},
		{"delete", deletes},
		{"large contents", larges},
		{"sessions", listings},
		{"lease", leases},
		{"concurrency", races},
		{"follow", follows},
		{"prune", prunings},
		{"log", logs},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					s := open(t)
					t.Cleanup(func() { shut(t, s) })
					c.run(t, s)
				})
			}
		})
	}
}

// check is one case.
type check struct {
	name string
	run  func(t *testing.T, s journal.Store)
}

func shut(t *testing.T, s journal.Store) {
	t.Helper()
	if c, ok := s.(io.Closer); ok {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// said is an entry that says text.
func said(text string) journal.Entry {
	return journal.Entry{Run: "r1", Data: journal.Said{Message: message.User(text)}}
}

// add appends what must succeed.
func add(t *testing.T, s journal.Store, session string, after int64, entries ...journal.Entry) {
	t.Helper()
	if err := s.Append(context.Background(), session, after, entries...); err != nil {
		t.Fatalf("append of %d entries to %q after %d: %v", len(entries), session, after, err)
	}
}

// talk appends texts, one entry each, in one piece.
func talk(t *testing.T, s journal.Store, session string, after int64, texts ...string) {
	t.Helper()
	entries := make([]journal.Entry, len(texts))
	for i, text := range texts {
		entries[i] = said(text)
	}
	add(t, s, session, after, entries...)
}

// fork makes a fork that says text.
func fork(t *testing.T, s journal.Store, session, parent string, at int64, texts ...string) {
	t.Helper()
	entries := []journal.Entry{{Data: journal.SessionCreated{Parent: parent, At: at}}}
	for _, text := range texts {
		entries = append(entries, said(text))
	}
	add(t, s, session, at, entries...)
}

// read reads what must be readable.
func read(t *testing.T, s journal.Store, session string, after int64) (entries []journal.Entry) {
	t.Helper()
	for e, err := range s.Read(context.Background(), session, after) {
		if err != nil {
			t.Fatalf("read of %q after %d: %v", session, after, err)
		}
		entries = append(entries, e)
	}
	return entries
}

// heard is the texts of a session's entries; entries that say nothing are their kind in brackets.
func heard(t *testing.T, s journal.Store, session string, after int64) (texts []string) {
	t.Helper()
	for i, e := range read(t, s, session, after) {
		if want := max(after, 0) + int64(i) + 1; e.Seq != want {
			t.Fatalf("read of %q after %d: entry %d where %d belongs", session, after, e.Seq, want)
		}
		texts = append(texts, textOf(e))
	}
	return texts
}

// textOf is what an entry says, or its kind in brackets.
func textOf(e journal.Entry) string {
	switch d := e.Data.(type) {
	case nil:
		return ""
	case journal.Said:
		return d.Message.Text()
	default:
		return "[" + string(d.Kind()) + "]"
	}
}

// holds checks that a session has exactly these texts.
func holds(t *testing.T, s journal.Store, session string, want ...string) {
	t.Helper()
	if got := heard(t, s, session, 0); !slices.Equal(got, want) {
		t.Errorf("session %q has %q, want %q", session, got, want)
	}
}

// refused checks that err is of a class.
func refused(t *testing.T, err error, class *errdefs.Class, what string) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Errorf("%s: got %v, want an error of class %v", what, err, class)
	}
}

// line is an entry as it is written in JSON.
func line(t *testing.T, e journal.Entry) string {
	t.Helper()
	b, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// same checks entries by their bytes. want gets its numbers and its session here.
func same(t *testing.T, session string, after int64, got, want []journal.Entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("session %q has %d entries after %d, want %d", session, len(got), after, len(want))
	}
	for i, e := range want {
		e.Session, e.Seq = session, after+int64(i)+1
		if g, w := line(t, got[i]), line(t, e); g != w {
			t.Errorf("entry %d of %q changed:\n got %.2000s\nwant %.2000s", e.Seq, session, g, w)
		}
	}
}

// infos lists what must be listable.
func infos(t *testing.T, s journal.Store, q journal.Query) (all []journal.Info) {
	t.Helper()
	for i, err := range s.Sessions(context.Background(), q) {
		if err != nil {
			t.Fatalf("sessions %+v: %v", q, err)
		}
		all = append(all, i)
	}
	return all
}

// names are the sessions that q lists.
func names(t *testing.T, s journal.Store, q journal.Query) (all []string) {
	t.Helper()
	for _, i := range infos(t, s, q) {
		all = append(all, i.Session)
	}
	return all
}
