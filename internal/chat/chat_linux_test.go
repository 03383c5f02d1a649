package chat

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/internal/pty"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"go.uber.org/goleak"
)

// sitter is a terminal, and the person there.
type sitter struct {
	pty.Terminal
	t   *testing.T
	all string
}

func sits(t *testing.T) *sitter {
	t.Helper()
	return &sitter{Terminal: pty.Open(t), t: t}
}

// sees waits for a text, and gives what came before it.
func (p *sitter) sees(text string) (before string) {
	p.t.Helper()
	for late := time.After(20 * time.Second); !strings.Contains(p.all, text); {
		select {
		case chunk := <-p.Shown:
			p.all += chunk
		case <-late:
			p.t.Fatalf("%q is missing in %q", text, p.all)
		}
	}
	before, p.all, _ = strings.Cut(p.all, text)
	return before
}

func (p *sitter) types(text string) {
	p.t.Helper()
	if _, err := p.Keys.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *sitter) close() {
	_ = p.Slave.Close()
	for range p.Shown { // what is left
	}
	_ = p.Keys.Close()
}

// However a conversation ends, nothing of it is left.
func TestAConversationLeavesNothingBehind(t *testing.T) {
	turns := []scripted.Turn{{Delay: time.Hour, Text: "Never."}}
	for name, c := range map[string]struct {
		do   func(p *sitter, end context.CancelFunc)
		last agent.Status // of the last run; "": there was none
		err  bool
	}{
		"left at once": {do: func(p *sitter, _ context.CancelFunc) { p.types("\x04") }},
		"ended from outside in a run": {last: agent.StatusCanceled, do: func(p *sitter, end context.CancelFunc) {
			p.types("go\r")
			p.sees("waiting for the model")
			end()
		}},
		"left in a run": {last: agent.StatusCanceled, do: func(p *sitter, _ context.CancelFunc) {
			p.types("go\r")
			p.sees("waiting for the model")
			p.types("/quit\r")
		}},
		"no project": {err: true},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			p, store, dir := sits(t), journal.Memory(), t.TempDir()
			defer p.close()
			ctx, end := context.WithCancel(t.Context())
			defer end()
			if c.do != nil {
				go func() {
					p.sees("/help")
					c.do(p, end)
					for chunk := range p.Shown {
						p.all += chunk
					}
				}()
			} else {
				go func() {
					for chunk := range p.Shown {
						p.all += chunk
					}
				}()
			}
			left, err := Run(ctx, Config{
				In: p.Slave, Out: p.Slave, Store: store,
				Open: func(ctx context.Context, _ string, _ func(string, bool)) (*pawl.Runtime, string, error) {
					if c.err {
						return nil, "", errors.New("there is no project")
					}
					rt, err := pawl.New(ctx, pawl.Options{Model: scripted.New(turns...), ProjectRoot: dir, Journal: store})
					return rt, "scripted", err
				},
				Message: func(text string, _ []string) (message.Message, error) { return message.User(text), nil },
				Rule:    func(journal.Called) string { return "" },
				Alive:   func(context.Context, string) bool { return false },
			})
			if (err != nil) != c.err {
				t.Errorf("%v", err)
			}
			var status agent.Status
			if left.Result != nil {
				status = left.Result.Status
			}
			if status != c.last {
				t.Errorf("%q, want %q: %v", status, c.last, left.Err)
			}
		})
	}
}

// A session whose last run was in another project is shown for what it is, and its unfinished run is not done here.
func TestASessionOfAnotherProjectSaysSoBeforeAnythingRuns(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	ctx, store, dir := t.Context(), journal.Memory(), t.TempDir()
	add := func(session, dir string, more ...journal.Entry) {
		t.Helper()
		begin := []journal.Entry{
			{Data: journal.SessionCreated{}},
			{Run: "r-" + session, Data: journal.RunStarted{Agent: "pawl", Owner: "gone", Attempt: 1, Dir: dir}},
			{Run: "r-" + session, Data: journal.Said{Message: message.User("prompt of " + session)}},
		}
		if err := store.Append(ctx, session, 0, append(begin, more...)...); err != nil {
			t.Fatal(err)
		}
	}
	over := func(session string) journal.Entry {
		return journal.Entry{Run: "r-" + session, Data: journal.RunFinished{Status: "completed"}}
	}
	add("open", "/elsewhere")
	add("done", "/elsewhere", over("done"))
	add("own", dir, over("own"))
	add("moved", "/elsewhere", over("moved"), journal.Entry{Run: "r2", Data: journal.RunStarted{Agent: "pawl", Owner: "o", Attempt: 1, Dir: dir}}, journal.Entry{Run: "r2", Data: journal.RunFinished{Status: "completed"}})
	add("left", dir, over("left"), journal.Entry{Run: "r2", Data: journal.RunStarted{Agent: "pawl", Owner: "o", Attempt: 1, Dir: "/elsewhere"}}, journal.Entry{Run: "r2", Data: journal.RunFinished{Status: "completed"}})
	talk := func(session, here string, do func(p *sitter)) {
		t.Helper()
		p := sits(t)
		ctx, end := context.WithCancel(ctx)
		done := make(chan error, 1)
		defer p.close()
		defer func() {
			for end(); ; {
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
					return
				case <-p.Shown:
				}
			}
		}()
		go func() {
			_, err := Run(ctx, Config{
				In: p.Slave, Out: p.Slave, Store: store, Session: session, Here: here,
				Open: func(ctx context.Context, _ string, _ func(string, bool)) (*pawl.Runtime, string, error) {
					rt, err := pawl.New(ctx, pawl.Options{Model: scripted.New(scripted.Text("Here I am.")), ProjectRoot: dir, Journal: store, NoProject: true})
					return rt, "scripted", err
				},
				Message: func(text string, _ []string) (message.Message, error) { return message.User(text), nil },
				Rule:    func(journal.Called) string { return "" },
				Alive:   func(context.Context, string) bool { return false },
			})
			done <- err
		}()
		p.sees("/help")
		do(p)
	}
	reads := func(p *sitter, text string) { // wherever its lines break
		t.Helper()
		for word := range strings.FieldsSeq(text) {
			p.sees(word)
		}
	}
	unfinished := "its run was not finished in /elsewhere, and this conversation is in " + dir + " · to go on with it leave, then pawl resume open, or pawl chat --session open --dir there"
	talk("open", "", func(p *sitter) {
		reads(p, unfinished)
		p.types("\r")
		reads(p, unfinished)
		p.types("/resume\r")
		reads(p, unfinished)
		p.types("/sessions\r")
		if list := p.sees("prompt of moved") + p.sees("prompt of own") + p.sees("Esc"); strings.Contains(list, "prompt of ") {
			t.Errorf("the list has those of another project: %q", list)
		}
	})
	if st, err := journal.StateAt(ctx, store, "open", 3); err != nil || st.Run != "r-open" || st.Driver != "gone" {
		t.Errorf("%+v, %v", st.Run, err)
	}
	if log, err := journal.Open(ctx, store, "open"); err != nil || log.Seq() != 3 {
		t.Errorf("something was done in it: %d entries, %v", log.Seq(), err)
	}
	talk("done", "", func(p *sitter) {
		reads(p, "its last run was in /elsewhere · what is said here is done in "+dir)
		p.types("go on\r")
		p.sees("Here I am.")
		p.sees("✓")
	})
	talk("own", "/where/i/am", func(p *sitter) {
		reads(p, "the unfinished run of session own works in "+dir+": this conversation is there, not in /where/i/am")
		p.sees("session own")
	})
	for i, err := range store.Sessions(ctx, journal.Query{Session: "done"}) {
		if err != nil || i.Dir != dir {
			t.Errorf("%+v, %v", i, err)
		}
	}
}
