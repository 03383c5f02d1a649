package pawl_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
)

// A person who was away for a season is still heard.
func TestDefectAnApprovalExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paid []string
		c := paying(converse(t, packOf(t, looks), scripted.New(twoPayments...)), &paid)
		send(t, c, "pay them")
		time.Sleep(100 * 24 * time.Hour)
		all, err := c.PendingTools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantLines(t, ids(all), "a Pay 500?", "c Pay 900?")
		for _, id := range []string{"a", "c"} {
			if err := c.ResolveTool(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(100 * 24 * time.Hour) // nor does the answer
		if resp, err := c.Continue(t.Context()); err != nil || resp.Text() != "done" {
			t.Errorf("Continue: %v", err)
		}
		wantLines(t, paid, "5 to Bob", "500 to Ada", "900 to Cy")
	})
}

// dying is a journal that takes nothing any more once the result of a call is on record, as if the process had died there.
type dying struct {
	journal.Store
	call string

	mu   sync.Mutex
	dead bool
}

func (d *dying) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errdefs.NotAvailable.Errorf("the process is dead")
	}
	for _, e := range entries {
		f, ok := e.Data.(journal.ToolFinished)
		d.dead = d.dead || ok && f.Call == d.call
	}
	return d.Store.Append(ctx, session, after, entries...)
}

// results are those that a transcript has, by call.
func results(t *testing.T, c *pawl.Conversation) (all []string) {
	t.Helper()
	h, err := c.Messages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range h.All() {
		for r := range message.Of[message.ToolResult](m) {
			all = append(all, fmt.Sprint(r.Call, " ", r.Name, " ", r.IsError, " ", r.Content))
		}
	}
	return all
}

// What an approved call did is neither lost nor done again, though the process dies right after it, or the provider fails.
func TestDefectTheResultOfAnApprovedCallIsLost(t *testing.T) {
	turns := []scripted.Turn{scripted.Calls(callOf("a", "pay", `{"amount":500,"to":"Ada"}`)), scripted.Text("done")}
	want := []string{"a pay false paid"}
	file := packOf(t, looks)

	t.Run("the process dies", func(t *testing.T) {
		store := journal.Memory()
		var before, after []string
		first := paying(converse(t, file, scripted.New(turns...), pawl.WithJournal(&dying{Store: store, call: "a"})), &before)
		send(t, first, "pay")
		if err := first.ResolveTool(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := first.Continue(t.Context()); err == nil {
			t.Fatal("a dead process completed a turn")
		}
		second := paying(converse(t, file, scripted.New(turns...), pawl.WithJournal(store), pawl.WithSession(first.Session())), &after)
		if resp, err := second.Continue(t.Context()); err != nil || resp.Text() != "done" {
			t.Errorf("Continue: %v", err)
		}
		wantLines(t, before, "500 to Ada")
		wantLines(t, after)
		wantLines(t, results(t, second), want...)
	})

	t.Run("the provider fails", func(t *testing.T) {
		var paid []string
		m := listening(turns[0], scripted.Fail(503), scripted.Text("I have paid."))
		c := paying(converse(t, file, m), &paid)
		send(t, c, "pay")
		if err := c.ResolveTool(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Continue(t.Context()); !errdefs.NotAvailable.Is(err) {
			t.Fatalf("Continue: %v", err)
		}
		if got := send(t, c, "and?").Text(); got != "I have paid." {
			t.Errorf("then: %q", got)
		}
		wantLines(t, paid, "500 to Ada")
		wantLines(t, results(t, c), want...)
		if h := m.asked()[2].Messages; h.Len() != 4 || h.At(2).Role() != message.RoleTool {
			t.Errorf("the next turn was told %d messages", h.Len())
		}
	})

	t.Run("the handler fails", func(t *testing.T) { // the answer is spent, and the model is told
		c := converse(t, file, scripted.New(turns...))
		c.OnTool("look", func(map[string]any) (any, error) { return nil, nil })
		c.OnToolAsync("pay", large, func(map[string]any) (any, error) { return nil, errdefs.NotAvailable.Errorf("the bank is closed") })
		send(t, c, "pay")
		if err := c.ResolveTool(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if resp, err := c.Continue(t.Context()); err != nil || resp.Text() != "done" {
			t.Errorf("Continue: %v", err)
		}
		if all := results(t, c); len(all) != 1 || !strings.HasPrefix(all[0], "a pay true") || !strings.Contains(all[0], "the bank is closed") {
			t.Errorf("got %q", all)
		}
	})
}

// Hooks that the program gives to the turns ask people as AskBefore does, before any kind of handler and with the turn's context.
func TestAHookOfTheTurnsAsksPeople(t *testing.T) {
	type who struct{}
	var mu sync.Mutex
	var called []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		called = append(called, what)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		note("http")
		fmt.Fprint(w, "paid")
	}))
	defer s.Close()
	asks := hook.Middleware{Name: "asks", PreToolUse: func(ctx context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if name, _ := ctx.Value(who{}).(string); name != "Ada" {
			return hook.Denied("the context is not the caller's"), nil
		}
		return hook.Asking(u.Call.Name + "?"), nil
	}}
	c := converse(t, packOf(t, looks), scripted.New(scripted.Calls(callOf("1", "look", `{"city":"x"}`), callOf("2", "pay", `{"amount":1}`)), scripted.Text("done")),
		pawl.WithRunOptions(agent.WithHooks(asks)))
	c.OnToolCtx("look", func(ctx context.Context, _ map[string]any) (any, error) {
		note(fmt.Sprint("ctx of ", ctx.Value(who{})))
		return "seen", nil
	})
	if err := c.OnToolHTTP("pay", pawl.HTTPTool{URL: s.URL, Allow: []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithValue(t.Context(), who{}, "Ada")
	resp, err := c.Send(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, ids(resp.Pending), "1 look?", "2 pay?")
	wantLines(t, called)
	for _, id := range []string{"1", "2"} {
		if err := c.ResolveTool(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if resp, err = c.Continue(ctx); err != nil || resp.Text() != "done" {
		t.Errorf("Continue: %v", err)
	}
	slices.Sort(called)
	wantLines(t, called, "ctx of Ada", "http")
}

// Forks that are made at once, and forks of forks, each have a name and a history of their own, which grows, in the journal in memory too; their handlers of each kind are called; and closing one closes nothing else.
func TestDefectForksOverwriteEachOther(t *testing.T) {
	const n = 8
	m := scripted.New(scripted.Text("1"), scripted.Calls(callOf("c", "look", `{"city":"x"}`), callOf("d", "pay", `{"amount":1}`)), scripted.Text("2"), scripted.Text("3"), scripted.Text("4"))
	c := handled(converse(t, packOf(t, looks), m))
	send(t, c, "a")
	var wg sync.WaitGroup
	var mu sync.Mutex
	names := map[string]bool{c.Session(): true}
	fork := func(of *pawl.Conversation) *pawl.Conversation {
		f, err := of.Fork(t.Context())
		if err != nil {
			t.Error(err)
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if names[f.Session()] {
			t.Errorf("two are %s", f.Session())
		}
		names[f.Session()] = true
		return f
	}
	say := func(c *pawl.Conversation, text, want string) {
		if resp, err := c.Send(t.Context(), text); err != nil || resp.Text() != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for i := range n {
		wg.Go(func() {
			f := fork(c)
			if f == nil {
				return
			}
			f.OnToolCtx("look", func(context.Context, map[string]any) (any, error) { return fmt.Sprint("fork ", i), nil })
			say(f, "b", "2")
			g := fork(f)
			if g == nil {
				return
			}
			g.SetVar("g", i)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			say(g, "c", "3")
			h := fork(g)
			if h == nil {
				return
			}
			say(h, "d", "4")
			want := []string{"user: a", "assistant: 1", "user: b", `assistant: [look {"city":"x"}][pay {"amount":1}]`, fmt.Sprintf("tool: [look = fork %d][pay = x]", i), "assistant: 2", "user: c", "assistant: 3"}
			wantLines(t, transcript(t, g), want...)
			wantLines(t, transcript(t, h), append(want, "user: d", "assistant: 4")...)
			if v, _ := h.GetVar("g"); v != i {
				t.Errorf("the fork of fork %d has %v", i, v)
			}
			for _, c := range []*pawl.Conversation{g, h} {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(names) != 1+3*n {
		t.Errorf("%d sessions", len(names))
	}
	wantLines(t, transcript(t, c), "user: a", "assistant: 1")
	say(c, "b", "2")
	wantLines(t, results(t, c), "c look false x", "d pay false x")
}

// A fork asks the checks that are registered on it, and a question that waits at its parent is not its own.
func TestDefectAForkAsksItsParentsChecks(t *testing.T) {
	var paid []string
	c := paying(converse(t, packOf(t, looks), scripted.New(append([]scripted.Turn{scripted.Text("hello")}, append(slices.Clone(twoPayments), scripted.Text("later"))...)...)), &paid)
	send(t, c, "hello")
	f, err := c.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	f.OnToolAsync("pay", func(map[string]any) pawl.Pending { return pawl.Pending{Reason: "the fork's"} }, func(map[string]any) (any, error) { return "x", nil })
	wantLines(t, ids(send(t, f, "pay them").Pending), "a the fork's", "b the fork's", "c the fork's")
	wantLines(t, ids(send(t, c, "pay them").Pending), "a Pay 500?", "c Pay 900?")
	of, err := c.Fork(t.Context()) // while the parent waits
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = of.Close() }()
	if all, err := of.PendingTools(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("the fork has its parent's questions: %v, %v", ids(all), err)
	}
	if err := of.ResolveTool(t.Context(), "a"); !errdefs.Conflict.Is(err) {
		t.Errorf("the fork answered for its parent: %v", err)
	}
	if _, err := of.Send(t.Context(), "then don't"); err != nil {
		t.Error(err)
	}
	wantLines(t, paid, "5 to Bob")
	if all, err := c.PendingTools(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("the parent has %v, %v", ids(all), err)
	}
}
