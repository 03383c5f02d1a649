package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/journaltest"
	"github.com/pawl-dev/pawl/message"
)

func branch(t testing.TB, s journal.Store, session string, at int64, as string) string {
	t.Helper()
	name, err := journal.Fork(t.Context(), s, session, at, as)
	must(t, err)
	return name
}

func TestAForkIsValidWhereverItIsCut(t *testing.T) {
	for kind, s := range stores(t) {
		work := toolWork()
		write(t, s, "p", work...)
		for at := int64(1); at <= int64(len(work)); at++ {
			name := branch(t, s, "p", at, fmt.Sprint(kind, at))
			l, err := journal.Open(t.Context(), s, name)
			must(t, err)
			st := l.State()
			if !identical(message.Repair(st.Messages), st.Messages) || !identical(st.Messages, st.Seed) {
				t.Errorf("%s: at %d it is not valid: %s", kind, at, shape(st.Messages))
			}
			if before := journal.Fold(numbered(work...)[:at]...); shape(before.Messages) != shape(st.Messages) || st.Seq != at+1 {
				t.Errorf("%s: at %d it has %q in %d entries, want %q", kind, at, shape(st.Messages), st.Seq, shape(before.Messages))
			}
			if st.Run != "" || st.Pending != nil {
				t.Errorf("%s: at %d it has the parent's run: %+v", kind, at, st)
			}
			must(t, l.Drive(t.Context(), "o", started("r9", 1), journal.Entry{Run: "r9", Data: journal.Said{Message: message.User("on")}}))
			if st := l.State(); !identical(message.Repair(st.Messages), st.Messages) {
				t.Errorf("%s: at %d it goes on as %s", kind, at, shape(st.Messages))
			}
		}
	}
}

func TestParentAndForkGoTheirOwnWays(t *testing.T) {
	for kind, s := range stores(t) {
		write(t, s, "s", toolWork()...)
		if name := branch(t, s, "s", 0, "f"); name != "f" {
			t.Errorf("%s: it is called %q", kind, name)
		}
		parent := export(t, s, "s")
		must(t, s.Append(t.Context(), "f", int64(len(toolWork()))+1, said("only the fork")))
		if again := export(t, s, "s"); again != parent {
			t.Errorf("%s: the fork changed its parent: %s", kind, cmp.Diff(parent, again))
		}
		fork := export(t, s, "f")
		must(t, open(t, s).Drive(t.Context(), "new", journal.Entry{Run: "r2", Data: journal.Resumed{Owner: "new"}}))
		must(t, s.Delete(t.Context(), "s"))
		if again := export(t, s, "f"); again != fork || !strings.HasSuffix(strings.TrimSpace(fork), `"only the fork"}]}}}`) {
			t.Errorf("%s: without its parent the fork is %s", kind, again)
		}
		branch(t, s, "f", 3, "s") // of what the one that is gone wrote
		if st := open(t, s).State(); shape(st.Messages) != "umake a file" {
			t.Errorf("%s: the fork's fork has %s", kind, shape(st.Messages))
		}
	}
}

func TestAForkIsNamedAfterItsSession(t *testing.T) {
	for kind, s := range stores(t) {
		write(t, s, "s", said("one"), said("two"))
		var got []string
		for _, of := range []string{"s", "s", "s-fork", "s"} {
			got = append(got, branch(t, s, of, 1, ""))
		}
		if want := []string{"s-fork", "s-fork-2", "s-fork-fork", "s-fork-3"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

func TestAForkOfNothingIsRefused(t *testing.T) {
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for kind, s := range stores(t) {
		write(t, s, "s", said("one"), said("two"))
		for name, c := range map[string]struct {
			ctx         context.Context
			store       journal.Store
			session, as string
			at          int64
			want        error
			says        string
		}{
			"no session":      {t.Context(), s, "t", "", 0, errdefs.NotFound, `no session "t"`},
			"past the end":    {t.Context(), s, "s", "", 3, errdefs.NotFound, "no entry 3: its last is 2"},
			"negative":        {t.Context(), s, "s", "", -1, errdefs.Validation, "from 1 to 2"},
			"taken":           {t.Context(), s, "s", "s", 1, errdefs.Conflict, "another name"},
			"cancelled":       {stopped, s, "s", "", 1, context.Canceled, ""},
			"the store fails": {t.Context(), &failing{Store: s, write: true}, "s", "", 1, errDisk, ""},
			"under a name":    {t.Context(), &failing{Store: s, write: true}, "s", "f", 1, errDisk, ""},
			"a conflict that no name explains": {
				t.Context(), &stuck{Store: s}, "s", "", 1, errdefs.Conflict, "",
			},
		} {
			got, err := journal.Fork(c.ctx, c.store, c.session, c.at, c.as)
			if err == nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || got != "" {
				t.Errorf("%s: %s: %q, %v", kind, name, got, err)
			}
		}
		if left := sessions(t, s); !slices.Equal(left, []string{"s"}) {
			t.Errorf("%s: they left %q", kind, left)
		}
	}
}

func TestWhatWasWrittenAfterAnEntryIsKnown(t *testing.T) {
	for kind, s := range stores(t) {
		work := toolWork()
		write(t, s, "s", work...)
		of := func(id string, kind journal.Kind) int64 {
			return int64(slices.IndexFunc(work, func(e journal.Entry) bool { return e.Key.ID == id && e.Data.Kind() == kind })) + 1
		}
		for name, c := range map[string]struct {
			at   int64
			want journal.Written
		}{
			"from the beginning":           {0, journal.Written{Files: []string{"a.txt", "dir/f.txt"}, Commands: 1}},
			"before the calls":             {of("1", "model.finished"), journal.Written{Files: []string{"a.txt", "dir/f.txt"}, Commands: 1}},
			"while they were under way":    {of("b", "tool.started"), journal.Written{Files: []string{"a.txt", "dir/f.txt"}, Commands: 1}},
			"when one of them was done":    {of("b", "tool.finished"), journal.Written{Files: []string{"a.txt", "dir/f.txt"}}},
			"when both were":               {of("a", "tool.finished"), journal.Written{Files: []string{"a.txt", "dir/f.txt"}}},
			"before one that failed":       {of("c", "tool.finished"), journal.Written{Files: []string{"dir/f.txt"}}},
			"at the end, in a killed call": {int64(len(work)), journal.Written{Files: []string{"dir/f.txt"}}},
		} {
			got, err := journal.WrittenAfter(t.Context(), s, "s", c.at)
			must(t, err)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s: %s (entry %d): -want +got\n%s", kind, name, c.at, d)
			}
		}
		must(t, s.Append(t.Context(), "s", int64(len(work)), started("r3", 1)))
		got, err := journal.WrittenAfter(t.Context(), s, "s", int64(len(work))+1)
		must(t, err)
		if d := cmp.Diff(journal.Written{}, got); d != "" {
			t.Errorf("%s: a call of an earlier run is said to go on: %s", kind, d)
		}
		if _, err := journal.WrittenAfter(t.Context(), &failing{Store: s, read: true}, "s", 0); !errors.Is(err, errDisk) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func ExampleFork() {
	ctx, store := context.Background(), journal.Memory()
	say := func(text string) journal.Entry { return journal.Entry{Data: journal.Said{Message: message.User(text)}} }
	_ = store.Append(ctx, "main", 0, say("one"), say("two"), say("three"))

	name, err := journal.Fork(ctx, store, "main", 2, "what-if")
	fmt.Println(name, err)
	_ = store.Delete(ctx, "main")
	fork, _ := journal.Open(ctx, store, name)
	for _, m := range fork.State().Messages.All() {
		fmt.Println(m.Text())
	}
	// Output:
	// what-if <nil>
	// one
	// two
}

func TestTheStateAtAnEntryIsWhatItWasThen(t *testing.T) {
	store := journal.Memory()
	entries := journaltest.Samples()
	if err := store.Append(t.Context(), "s", 0, entries...); err != nil {
		t.Fatal(err)
	}
	for at := range int64(len(entries)) {
		got, err := journal.StateAt(t.Context(), store, "s", at+1)
		if err != nil {
			t.Fatal(err)
		}
		log := journal.Memory()
		if err := log.Append(t.Context(), "s", 0, entries[:at+1]...); err != nil {
			t.Fatal(err)
		}
		then, err := journal.Open(t.Context(), log, "s")
		if err != nil {
			t.Fatal(err)
		}
		if want := then.State(); got.Seq != at+1 || got.Status != want.Status || !slices.Equal(texts(got.Messages), texts(want.Messages)) || got.Spent != want.Spent {
			t.Errorf("at %d: %+v, was %+v", at+1, got, want)
		}
	}
	for session, at := range map[string]int64{"s": int64(len(entries)) + 1, "t": 1} {
		if _, err := journal.StateAt(t.Context(), store, session, at); !errdefs.NotFound.Is(err) {
			t.Errorf("%s at %d: %v", session, at, err)
		}
	}
}
