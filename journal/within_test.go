package journal_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
)

// in begins a run in a directory.
func in(dir string) journal.Entry {
	return journal.Entry{Run: "r", Data: journal.RunStarted{Agent: "a", User: "u", Owner: "o " + dir, Attempt: 1, Dir: dir}}
}

var over = journal.Entry{Run: "r", Data: journal.RunFinished{Status: "completed"}}

func heard(t *testing.T, s journal.Store, session string) (all []string) {
	t.Helper()
	for e, err := range s.Read(t.Context(), session, 0) {
		must(t, err)
		text := string(e.Data.Kind())
		if d, ok := e.Data.(journal.Said); ok {
			text = d.Message.Text()
		}
		all = append(all, text)
	}
	return all
}

func lists(t *testing.T, s journal.Store, q journal.Query) (all []string) {
	t.Helper()
	for i, err := range s.Sessions(t.Context(), q) {
		must(t, err)
		all = append(all, i.Session)
	}
	slices.Sort(all)
	return all
}

func refuses(t *testing.T, what string, err error, class *errdefs.Class, says string) {
	t.Helper()
	if !class.Is(err) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v, want %v that says %q", what, err, class, says)
	}
}

// A session of another directory, or of a program that says none, is not there.
func TestWithinAProjectOtherSessionsAreNotThere(t *testing.T) {
	for kind, s := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			a, b := journal.Within(s, "/a"), journal.Within(s, "/b")
			ctx, hour := t.Context(), time.Now().Add(time.Hour)
			must(t, a.Append(ctx, "its", 0, journal.Entry{Data: journal.SessionCreated{}}))
			must(t, a.Append(ctx, "its", 1, in("/a"), said("secret")))
			must(t, a.Append(ctx, "its-fork", 0, in("/a")))
			must(t, s.Append(ctx, "program", 0, in(""), said("x")))
			must(t, b.Append(ctx, "own", 0, in("/b"), said("hello")))
			for _, name := range []string{"its", "program"} {
				if got := heard(t, b, name); got != nil {
					t.Errorf("%s is read: %q", name, got)
				}
				before := heard(t, s, name)
				const taken = "a session of another project has that name: choose another name"
				refuses(t, "begin", b.Append(ctx, name, 0, in("/b")), errdefs.Conflict, taken)
				refuses(t, "go on", b.Append(ctx, name, int64(len(before)), in("/b")), errdefs.Conflict, taken)
				refuses(t, "lease", b.Lease(ctx, name, "me", hour), errdefs.NotFound, "there is no session")
				refuses(t, "delete", b.Delete(ctx, name), errdefs.NotFound, "there is no session")
				refuses(t, "fork", b.Append(ctx, "f", 1, journal.Entry{Data: journal.SessionCreated{Parent: name, At: 1}}), errdefs.NotFound, "there is no such entry")
				_, err := journal.Fork(ctx, b, name, 0, "")
				refuses(t, "Fork", err, errdefs.NotFound, "there is no session")
				if after := heard(t, s, name); !slices.Equal(after, before) {
					t.Errorf("%s was %q and is %q", name, before, after)
				}
				must(t, s.Lease(ctx, name, "its driver", time.Now().Add(time.Hour)))
			}
			for q, want := range map[journal.Query][]string{
				{}: {"own"}, {Dir: "/b"}: {"own"}, {Dir: "/a"}: nil, {Session: "own"}: {"own"}, {Session: "its"}: nil, {Session: "program"}: nil, {Session: "its", Dir: "/a"}: nil, {Agent: "a"}: {"own"}, {Status: "completed"}: nil,
			} {
				if got := lists(t, b, q); !slices.Equal(got, want) {
					t.Errorf("%+v lists %q, want %q", q, got, want)
				}
			}
			refuses(t, "a lease of none", b.Lease(ctx, "none", "me", hour), errdefs.NotFound, "")
			refuses(t, "no name", b.Append(ctx, "", 0, said("x")), errdefs.Validation, "")
			if got := lists(t, journal.Within(s, ""), journal.Query{}); got != nil {
				t.Errorf("of no directory: %q", got)
			}
			must(t, a.Delete(ctx, "its-fork"))
		})
	}
}

func TestWithinAProjectItsForksAndTasksAreThere(t *testing.T) {
	for kind, s := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			b, ctx := journal.Within(s, "/b"), t.Context()
			call := journal.Key{Op: "tool", ID: "call_1"}
			task := journal.TaskSession("own", call)
			must(t, b.Append(ctx, "own", 0, in("/b"), said("1")))
			must(t, b.Append(ctx, task, 0, journal.Entry{Data: journal.SessionCreated{TaskOf: "own"}}))
			must(t, b.Lease(ctx, task, "me", time.Now().Add(time.Hour))) // before its run has begun
			must(t, b.Append(ctx, "own", 2, journal.Entry{Run: "r", Key: journal.TaskKey(call), Data: journal.TaskStarted{Call: "call_1", Session: task}}))
			must(t, b.Append(ctx, task, 1, in("/b"), over))
			below, err := journal.Tasks(ctx, b, "own")
			must(t, err)
			if !slices.Equal(below, []string{task}) {
				t.Errorf("its tasks: %q", below)
			}
			must(t, s.Append(ctx, "own-fork", 0, in("/a"))) // another project's has the name that comes first
			name, err := journal.Fork(ctx, b, "own", 2, "")
			must(t, err)
			if name != "own-fork-2" || !slices.Equal(heard(t, b, name), []string{"run.started", "1", "session.created"}) {
				t.Errorf("the fork %s has %q", name, heard(t, b, name))
			}
			_, err = journal.Fork(ctx, b, "own", 2, "own-fork")
			refuses(t, "a name of another project's", err, errdefs.Conflict, "give the fork another name")
			must(t, b.Append(ctx, name, 3, in("/b"), said("2")))
			if got := lists(t, b, journal.Query{}); !slices.Equal(got, []string{"own", name, task}) {
				t.Errorf("listed are %q", got)
			}
			_, err = journal.Fork(ctx, &stuck{Store: b}, "own", 0, "")
			refuses(t, "a store that refuses all", err, errdefs.Conflict, "")
		})
	}
}

// A session is of the project that its last run was in; what was before belongs to it.
func TestASessionGoesOverToTheProjectThatGoesOnWithIt(t *testing.T) {
	for kind, s := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			a, b, ctx := journal.Within(s, "/a"), journal.Within(s, "/b"), t.Context()
			must(t, b.Append(ctx, "s", 0, in("/b"), said("1")))
			must(t, s.Append(ctx, "s", 2, in("/a"), said("2"))) // by a program that sees all
			refuses(t, "the driver before", b.Append(ctx, "s", 2, said("x")), errdefs.Conflict, "")
			if got := heard(t, b, "s"); got != nil {
				t.Errorf("it reads on: %q", got)
			}
			refuses(t, "lease", b.Lease(ctx, "s", "me", time.Now().Add(time.Hour)), errdefs.NotFound, "")
			if got := heard(t, a, "s"); len(got) != 4 {
				t.Errorf("/a has %q", got)
			}
			_, err := journal.Fork(ctx, a, "s", 2, "f")
			refuses(t, "a fork at what was /b's", err, errdefs.Validation, "another project's")
			if got := lists(t, s, journal.Query{}); !slices.Equal(got, []string{"s"}) {
				t.Errorf("it left %q", got)
			}
			must(t, a.Append(ctx, "s", 4, in("/a")))
			must(t, a.Append(ctx, "s", 5, over))
			must(t, s.Append(ctx, "s", 6, in("/b"), over))
			refuses(t, "when its run was over", a.Append(ctx, "s", 8, said("x")), errdefs.Conflict, "another project")
		})
	}
}

// looked counts looks into the list.
type looked struct {
	journal.Store
	times int
}

func (l *looked) Sessions(ctx context.Context, q journal.Query) iter.Seq2[journal.Info, error] {
	l.times++
	return l.Store.Sessions(ctx, q)
}

func TestAStepWithinAProjectCostsNoLook(t *testing.T) {
	count := &looked{Store: journal.Memory()}
	plain, within := journal.Memory(), journal.Within(count, "/b")
	ctx, n := t.Context(), int64(1)
	must(t, plain.Append(ctx, "s", 0, in("/b")))
	must(t, within.Append(ctx, "s", 0, in("/b")))
	step, before := []journal.Entry{said("x")}, count.times
	cost := func(s journal.Store) float64 {
		at := n
		return testing.AllocsPerRun(500, func() { must(t, s.Append(ctx, "s", at, step...)); at++ })
	}
	if direct, here := cost(plain), cost(within); here > direct || count.times != before {
		t.Errorf("a step takes %v allocations and %d looks, %v directly", here, count.times-before, direct)
	}
	for i := range 40_000 { // runs that were begun, and left
		must(t, within.Append(ctx, fmt.Sprint("run ", i), 0, in("/b")))
	}
	before = count.times
	must(t, within.Append(ctx, "run 39999", 1, said("x")))
	must(t, within.Append(ctx, "run 0", 1, said("x")))
	if n := count.times - before; n != 1 {
		t.Errorf("%d looks for the newest and the oldest run of many: what is kept has to have an end", n)
	}
}

func TestWithinKeepsWhatAStoreCanDoBesides(t *testing.T) {
	file, err := sqlite.Open(t.TempDir() + "/j.db")
	must(t, err)
	defer func() { must(t, file.Close()) }()
	type filed interface{ Path() string }
	for name, c := range map[string]struct {
		s              journal.Store
		watches, filed bool
	}{
		"sqlite": {file, true, true}, "memory": {journal.Memory(), true, false}, "neither": {struct{ journal.Store }{file}, false, false},
		"a file": {struct {
			journal.Store
			filed
		}{journal.Memory(), file}, false, true},
	} {
		s := journal.Within(c.s, "/b")
		_, watches := s.(journal.Watcher)
		f, is := s.(filed)
		if watches != c.watches || is != c.filed || is && f.Path() != file.Path() {
			t.Errorf("%s: watches %v, has a file %v", name, watches, is)
		}
	}
}

func TestWithinAProjectAStoreThatFailsIsToldOf(t *testing.T) {
	s := journal.Within(broken{journal.Memory()}, "/b")
	ctx := t.Context()
	var read error // the last one
	for _, read = range s.Read(ctx, "s", 0) {
	}
	for what, err := range map[string]error{
		"append": s.Append(ctx, "s", 0, in("/b")), "read": read, "delete": s.Delete(ctx, "s"), "lease": s.Lease(ctx, "s", "me", time.Now()),
		"fork": s.Append(ctx, "f", 1, journal.Entry{Data: journal.SessionCreated{Parent: "s", At: 1}}),
	} {
		if !errors.Is(err, errDisk) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// broken can't list.
type broken struct{ journal.Store }

func (broken) Sessions(context.Context, journal.Query) iter.Seq2[journal.Info, error] {
	return func(yield func(journal.Info, error) bool) { yield(journal.Info{}, errDisk) }
}
