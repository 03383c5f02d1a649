package serve_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
)

// listed is a session as a list tells of it.
type listed struct {
	Session, Status, Title string
	Here, Driven, Waits    bool
}

// counted is a store that counts how many entries are read.
type counted struct {
	journal.Store
	read atomic.Int64
}

func (c *counted) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range c.Store.Read(ctx, session, after) {
			c.read.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

func list(p *place, query string) map[string]listed {
	p.t.Helper()
	var got struct{ Sessions []listed }
	p.do(http.StatusOK, &got, "GET", "/v1/sessions"+query, "")
	all := map[string]listed{}
	for _, s := range got.Sessions {
		all[s.Session] = s
	}
	return all
}

func write(t *testing.T, store journal.Store, session string, after int64, all ...journal.Data) {
	t.Helper()
	var entries []journal.Entry
	for _, d := range all {
		entries = append(entries, journal.Entry{Run: "r", Data: d})
	}
	if err := store.Append(t.Context(), session, after, entries...); err != nil {
		t.Fatal(err)
	}
}

// A list says what a session began with, and whether it waits; for that it reads a few entries of each, once for each that it ends with.
func TestAListTellsSessionsApart(t *testing.T) {
	store := &counted{Store: journal.Memory()}
	p := open(t, asksOnce(t, store), serve.Options{})
	var st status
	p.do(http.StatusOK, &st, "POST", "/v1/runs", `{"prompt":"Add\n two  numbers.","session":"waits","wait":true}`)
	write(t, store, "long", 0, journal.SessionCreated{}, journal.RunStarted{Agent: "a", Owner: "o", Attempt: 1}, journal.Said{Message: message.User(strings.Repeat("äh ", 1000))})
	for i := range 500 {
		write(t, store, "long", int64(3+i), journal.Parked{Cause: "user_cancel"})
	}
	write(t, store, "silent", 0, journal.SessionCreated{})
	store.read.Store(0)
	got := list(p, "")
	if s := got["waits"]; s.Title != "Add two numbers." || !s.Waits || s.Status != "interrupted" {
		t.Errorf("%+v", s)
	}
	if s := got["long"]; len([]rune(s.Title)) != 120 || !strings.HasSuffix(s.Title, "…") || s.Waits {
		t.Errorf("%+v", s)
	}
	if s := got["silent"]; s.Title != "" || s.Waits {
		t.Errorf("%+v", s)
	}
	if n := store.read.Swap(0); n > 3*40 {
		t.Errorf("%d entries were read for a list of three sessions", n)
	}
	list(p, "?q=a&limit=50")
	if n := store.read.Load(); n > 0 {
		t.Errorf("%d entries were read for the same list again", n)
	}
	if got := list(p, "?status=waiting"); len(got) != 1 || !got["waits"].Waits {
		t.Errorf("those that wait: %+v", got)
	}
	if err := store.Delete(t.Context(), "silent"); err != nil {
		t.Fatal(err)
	}
	if err := store.Append(t.Context(), "silent", 0, journal.Entry{Run: "r", Data: journal.Said{Message: message.User("It speaks.")}}); err != nil {
		t.Fatal(err)
	}
	if s := list(p, "")["silent"]; s.Title != "It speaks." {
		t.Errorf("made again under the name: %+v", s)
	}
	if err := agent.Answer(t.Context(), store, "waits", journal.Answered{ID: st.Pending[0].ID, Approved: true}); err != nil {
		t.Fatal(err)
	}
	if s := list(p, "")["waits"]; s.Waits || s.Title != "Add two numbers." {
		t.Errorf("answered, and not resumed: %+v", s)
	}
}

// Of two questions one that is answered leaves the other.
func TestASessionWaitsForItsLastAnswer(t *testing.T) {
	store := journal.Memory()
	p := open(t, asksOnce(t, store), serve.Options{})
	write(t, store, "s", 0, journal.SessionCreated{}, journal.RunStarted{Agent: "a", Owner: "o", Attempt: 1}, journal.Asked{ID: "q1", Prompt: "One?"}, journal.Asked{ID: "q2", Prompt: "Two?"}, journal.Parked{Cause: "awaiting_person"})
	for i, id := range []string{"q1", "q2"} {
		if !list(p, "")["s"].Waits {
			t.Errorf("it does not wait for %s", id)
		}
		write(t, store, "s", int64(5+i), journal.Answered{ID: id, Approved: true})
	}
	if list(p, "")["s"].Waits {
		t.Error("it waits for nothing")
	}
}

// A run is driven by who is alive: here, or where the lease is; one whose process died is left, although its status is running. To ask keeps nobody from taking it up.
func TestWhetherARunIsDriven(t *testing.T) {
	store := journal.Memory()
	p := serves(t, store, scripted.New(scripted.Text("x")), serve.Options{})
	write(t, store, "s", 0, journal.SessionCreated{}, journal.RunStarted{Agent: "a", Owner: "other", Attempt: 1})
	lease := func(until time.Time) {
		t.Helper()
		if err := store.Lease(t.Context(), "s", "other", until); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(want bool, when string) {
		t.Helper()
		var st listed
		p.do(http.StatusOK, &st, "GET", "/v1/sessions/s", "")
		if s := list(p, "")["s"]; s.Driven != want || s.Here || s.Status != "running" || st.Driven != want {
			t.Errorf("%s: %+v, %+v", when, s, st)
		}
	}
	lease(time.Now().Add(time.Hour))
	shows(true, "another process drives it")
	shows(true, "still")
	lease(time.Time{})
	shows(false, "it is gone")
	lease(time.Now().Add(time.Hour))
	write(t, store, "s", 2, journal.Resumed{Owner: "other"})
	shows(true, "it was taken up")
}

// What waits comes with the rule by which its like can be approved.
func TestWhatWaitsProposesARule(t *testing.T) {
	store := journal.Memory()
	p := serves(t, store, scripted.New(scripted.Text("x")), serve.Options{})
	call := &journal.Called{ID: "c", Name: "webfetch", Input: `{"url":"https://example.com/a"}`}
	for i, of := range []struct {
		dir  string
		ask  journal.Asked
		rule string
	}{
		{t.TempDir(), journal.Asked{Call: call}, "WebFetch(domain:example.com)"},
		{t.TempDir(), journal.Asked{Call: call, Once: true}, ""},
		{t.TempDir(), journal.Asked{Call: call, Unknown: true}, ""},
		{t.TempDir(), journal.Asked{Prompt: "Which?"}, ""},
		{"", journal.Asked{Call: call}, ""},
		{"/gone/for/good", journal.Asked{Call: call}, "WebFetch(domain:example.com)"},
	} {
		session := fmt.Sprint("s", i)
		of.ask.ID = "c"
		write(t, store, session, 0, journal.SessionCreated{}, journal.RunStarted{Agent: "a", Owner: "o", Attempt: 1, Dir: of.dir}, of.ask, journal.Parked{Cause: "awaiting_person"})
		var st struct{ Pending []struct{ ID, Rule string } }
		p.do(http.StatusOK, &st, "GET", "/v1/sessions/"+session, "")
		if len(st.Pending) != 1 || st.Pending[0].ID != "c" || st.Pending[0].Rule != of.rule {
			t.Errorf("%s: %+v, want the rule %q", session, st, of.rule)
		}
	}
}

// deletes is a store in which one session is deleted by somebody else as soon as it is read, as stores tell it.
type deletes struct {
	journal.Store
	session string
}

func (d deletes) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	if session != d.session {
		return d.Store.Read(ctx, session, after)
	}
	return func(yield func(journal.Entry, error) bool) {
		yield(journal.Entry{}, errdefs.NotFound.Errorf("session %s was deleted while it was read", session))
	}
}

func TestASessionThatIsDeletedMeanwhileIsLeftOut(t *testing.T) {
	store := journal.Memory()
	for _, session := range []string{"a", "b", "c"} {
		write(t, store, session, 0, journal.SessionCreated{}, journal.RunStarted{Agent: "pawl", Owner: "o", Attempt: 1}, journal.Said{Message: message.User("hello")}, journal.Parked{Cause: "host_shutdown"})
	}
	p := serves(t, deletes{store, "b"}, scripted.New(scripted.Text("done"), scripted.Text("done")), serve.Options{})
	for _, query := range []string{"", "?status=interrupted"} {
		if all := list(p, query); len(all) != 2 || all["a"].Title != "hello" || all["c"].Title != "hello" {
			t.Errorf("%q: %v", query, all)
		}
	}
	if _, err := p.server.Resume(t.Context()); err != nil { // it is not to keep the others from going on
		t.Error(err)
	}
}
