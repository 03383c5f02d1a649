// Package ages is what the tests of stores write into a journal that all later versions have to read, and what they read there.
package ages

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/journaltest"
	"github.com/pawl-dev/pawl/message"
)

// Write appends an entry of each kind, a task, a fork, and what is so long that stores keep it apart, more than once.
func Write(t *testing.T, s journal.Store) {
	t.Helper()
	entries := journaltest.Samples()
	long := entries[3] // what a person said
	long.Data = journal.Said{Message: message.User(strings.Repeat("a long story. ", 400))}
	for _, add := range []struct {
		session string
		after   int64
		entries []journal.Entry
	}{
		{"whole", 0, append(entries, long)},
		{"whole/task", 0, []journal.Entry{{Time: long.Time, Data: journal.SessionCreated{TaskOf: "whole"}}, long}},
		{"fork", 4, []journal.Entry{{Time: long.Time, Data: journal.SessionCreated{Parent: "whole", At: 4}}, long}},
	} {
		if err := s.Append(t.Context(), add.session, add.after, add.entries...); err != nil {
			t.Fatal(err)
		}
	}
}

// Says is all that the journal says, a line for each session's name before its entries.
func Says(t *testing.T, s journal.Store) string {
	t.Helper()
	var out bytes.Buffer
	for _, name := range []string{"whole", "whole/task", "fork"} {
		out.WriteString(name + "\n")
		if err := journal.Export(t.Context(), s, name, &out); err != nil {
			t.Fatal(err)
		}
	}
	for i, err := range s.Sessions(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s of %q up to %d in %q: %s\n", i.Session, i.Parent, i.Seq, i.Dir, i.Status)
	}
	return out.String()
}
