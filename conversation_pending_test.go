package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
)

// large asks a person about payments over 100.
func large(args map[string]any) pawl.Pending {
	if n, _ := args["amount"].(float64); n > 100 {
		return pawl.Pending{Reason: "large", Message: fmt.Sprintf("Pay %v?", n)}
	}
	return pawl.Pending{}
}

// paying has both tools answered; what is paid goes to paid.
func paying(c *pawl.Conversation, paid *[]string) *pawl.Conversation {
	c.OnTool("look", func(map[string]any) (any, error) { return "seen", nil })
	c.OnToolAsync("pay", large, func(args map[string]any) (any, error) {
		*paid = append(*paid, fmt.Sprint(args["amount"], " to ", args["to"]))
		return "paid", nil
	})
	return c
}

var twoPayments = []scripted.Turn{
	scripted.Calls(callOf("a", "pay", `{"amount":500,"to":"Ada"}`), callOf("b", "pay", `{"amount":5,"to":"Bob"}`), callOf("c", "pay", `{"amount":900,"to":"Cy"}`)),
	scripted.Text("done"),
}

func ids(all []journal.Pending) (out []string) {
	for _, p := range all {
		out = append(out, p.ID+" "+p.Prompt)
	}
	return out
}

func TestDefectContinueGoesOnWithHalfTheAnswers(t *testing.T) {
	m := listening(twoPayments...)
	var paid []string
	c := paying(converse(t, packOf(t, looks), m), &paid)
	resp := send(t, c, "pay them")
	if resp.Status != agent.StatusInterrupted {
		t.Errorf("the turn is %s", resp.Status)
	}
	wantLines(t, ids(resp.Pending), "a Pay 500?", "c Pay 900?")
	all, err := c.PendingTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, ids(all), "a Pay 500?", "c Pay 900?")
	wantLines(t, paid, "5 to Bob")

	// Neither a new turn nor Continue goes past a person.
	if _, err := c.Send(t.Context(), "and?"); !errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), "pay (a), pay (c)") {
		t.Errorf("Send: %v", err)
	}
	if err := c.AddMessage(t.Context(), message.User("and?")); !errdefs.Conflict.Is(err) {
		t.Errorf("AddMessage: %v", err)
	}
	if err := c.ResolveToolWithArgs(t.Context(), "a", map[string]any{"amount": 50, "to": nil}); err != nil {
		t.Fatal(err)
	}
	resp, err = c.Continue(t.Context())
	if err != nil || resp.Status != agent.StatusInterrupted {
		t.Errorf("Continue with one of two: %v, %v", resp, err)
	}
	wantLines(t, ids(resp.Pending), "c Pay 900?")
	if n := len(m.asked()); n != 1 {
		t.Errorf("the model was called %d times", n)
	}
	if err := c.RejectTool(t.Context(), "c", "too much"); err != nil {
		t.Fatal(err)
	}
	if err := c.ResolveTool(t.Context(), "c"); !errdefs.Conflict.Is(err) {
		t.Errorf("a second answer: %v", err)
	}
	if err := c.ResolveToolWithArgs(t.Context(), "c", nil); !errdefs.Conflict.Is(err) {
		t.Errorf("a second answer: %v", err)
	}
	if resp, err = c.Continue(t.Context()); err != nil || resp.Text() != "done" {
		t.Errorf("Continue: %v", err)
	}
	wantLines(t, paid, "5 to Bob", "50 to <nil>")
	h := m.asked()[1].Messages
	if h.Len() != 3 || len(m.asked()) != 2 {
		t.Fatalf("the model was told %d messages in %d calls", h.Len(), len(m.asked()))
	}
	var results []message.ToolResult
	for r := range message.Of[message.ToolResult](h.Last()) {
		results = append(results, r)
	}
	if len(results) != 3 || results[0].Name != "pay" || !strings.HasSuffix(results[0].Content, "paid") || !strings.Contains(results[0].Content, `{"amount":50}`) || !results[2].IsError || !strings.Contains(results[2].Content, "too much") {
		t.Errorf("the model was told %+v", results)
	}
	if _, err := c.Continue(t.Context()); !errdefs.NotFound.Is(err) {
		t.Errorf("nothing to continue: %v", err)
	}
}

// Whatever answers a tool, people are asked before: also when the handler comes later, and takes the place of another.
func TestDefectToolsWithAContextCantWaitForAPerson(t *testing.T) {
	type payment struct {
		Amount int    `json:"amount"`
		To     string `json:"to"`
	}
	type key struct{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append([]byte("http "), b...))
	}))
	defer server.Close()
	for kind, handle := range map[string]func(*pawl.Conversation){
		"any": func(c *pawl.Conversation) {
			c.OnTool("pay", func(args map[string]any) (any, error) { return fmt.Sprint("any ", args["to"]), nil })
		},
		"ctx": func(c *pawl.Conversation) {
			c.OnToolCtx("pay", func(ctx context.Context, args map[string]any) (any, error) {
				return fmt.Sprint("ctx ", args["to"], ctx.Value(key{})), nil
			})
		},
		"typed": func(c *pawl.Conversation) {
			pawl.OnTyped(c, "pay", func(_ context.Context, p payment) (any, error) { return "typed " + p.To, nil })
		},
		"http": func(c *pawl.Conversation) {
			if err := c.OnToolHTTP("pay", pawl.HTTPTool{URL: server.URL, Allow: []string{"127.0.0.1"}}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		ctx := context.WithValue(t.Context(), key{}, " of the turn")
		m := listening(scripted.Calls(callOf("a", "pay", `{"amount":500,"to":"Ada"}`), callOf("b", "pay", `{"amount":5,"to":"Bob"}`)), scripted.Text("done"))
		c := converse(t, packOf(t, looks), m)
		c.OnTool("look", func(map[string]any) (any, error) { return "seen", nil })
		c.OnTool("pay", func(map[string]any) (any, error) { return "the first one", nil })
		var seen []any
		c.AskBefore("pay", func(ctx context.Context, args map[string]any) pawl.Pending {
			seen = append(seen, ctx.Value(key{}))
			return large(args)
		})
		handle(c)
		resp, err := c.Send(ctx, "pay them")
		if err != nil || len(resp.Pending) != 1 || resp.Pending[0].ID != "a" {
			t.Fatalf("%s: %+v, %v", kind, resp, err)
		}
		if len(seen) == 0 || seen[0] != " of the turn" {
			t.Errorf("%s: the check has another context: %v", kind, seen)
		}
		if err := c.ResolveTool(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		if resp, err = c.Continue(ctx); err != nil || resp.Text() != "done" {
			t.Fatalf("%s: %v", kind, err)
		}
		h := m.asked()[1].Messages
		for r := range message.Of[message.ToolResult](h.Last()) {
			if !strings.HasPrefix(r.Content, kind+" ") || r.IsError {
				t.Errorf("%s: the model was told %q", kind, r.Content)
			}
		}
	}
	c := converse(t, packOf(t, looks), listening(twoPayments...))
	var paid []string
	paying(c, &paid).AskBefore("pay", nil)
	send(t, c, "pay them")
	wantLines(t, paid, "500 to Ada", "5 to Bob", "900 to Cy")
	c.AskBefore("nothing", large2)
	if _, err := c.Send(t.Context(), "x"); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("a check for no tool: %v", err)
	}
}

func large2(_ context.Context, args map[string]any) pawl.Pending { return large(args) }

func TestDefectAStreamHidesWhatWaits(t *testing.T) {
	var paid []string
	c := paying(converse(t, packOf(t, looks), listening(twoPayments...)), &paid)
	var asked []string
	for e, err := range c.Stream(t.Context(), "pay them") {
		if err != nil {
			t.Fatal(err)
		}
		if q, ok := e.Data.(journal.Asked); ok {
			asked = append(asked, q.ID+" "+q.Prompt)
		}
	}
	wantLines(t, asked, "a Pay 500?", "c Pay 900?")
	all, _ := c.PendingTools(t.Context())
	wantLines(t, ids(all), asked...)
	for _, id := range []string{"a", "c"} {
		if err := c.ResolveTool(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	text := ""
	for e, err := range c.ContinueStream(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Delta == event.TextDelta {
			text += e.Text
		}
	}
	if text != "done" || len(paid) != 3 {
		t.Errorf("streamed %q, paid %q", text, paid)
	}
}

func TestAnApprovalIsGivenInAnotherProcess(t *testing.T) {
	file, db := packOf(t, looks), filepath.Join(t.TempDir(), "journal.db")
	store := func() journal.Store {
		s, err := sqlite.Open(db)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	var before, after []string
	first := paying(converse(t, file, scripted.New(twoPayments...), pawl.WithJournal(store())), &before)
	send(t, first, "pay them")
	session := first.Session()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second, err := pawl.Resume(t.Context(), session, file, "chat", pawl.WithJournal(store()), pawl.WithModel(scripted.New(twoPayments...)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	paying(second, &after)
	var wg sync.WaitGroup // one answer wins
	won, mu := 0, sync.Mutex{}
	for range 8 {
		wg.Go(func() {
			if err := second.ResolveTool(t.Context(), "a"); err == nil {
				mu.Lock()
				defer mu.Unlock()
				won++
			} else if !errdefs.Conflict.Is(err) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := second.RejectTool(t.Context(), "c", "no"); err != nil || won != 1 {
		t.Errorf("%d answers won, %v", won, err)
	}
	if resp, err := second.Continue(t.Context()); err != nil || resp.Text() != "done" {
		t.Errorf("Continue: %v", err)
	}
	wantLines(t, before, "5 to Bob")
	wantLines(t, after, "500 to Ada")
	if _, err := pawl.Resume(t.Context(), "nobody", file, "chat", pawl.WithJournal(store()), pawl.WithModel(scripted.New())); !errdefs.NotFound.Is(err) {
		t.Errorf("no such session: %v", err)
	}
}

// broken is a journal that takes no questions.
type broken struct{ journal.Store }

func (b broken) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	for _, e := range entries {
		if _, ok := e.Data.(journal.Asked); ok {
			return errdefs.NotAvailable.Errorf("the disk is full")
		}
	}
	return b.Store.Append(ctx, session, after, entries...)
}

func TestDefectACallRunsThatNobodyCouldBeAskedAbout(t *testing.T) {
	t.Run("the journal is full", func(t *testing.T) {
		var paid []string
		c := paying(converse(t, packOf(t, looks), scripted.New(twoPayments...), pawl.WithJournal(broken{journal.Memory()})), &paid)
		if _, err := c.Send(t.Context(), "pay them"); err == nil {
			t.Error("the turn was completed")
		}
		wantLines(t, paid, "5 to Bob")
	})
	t.Run("the check panics", func(t *testing.T) {
		c := converse(t, packOf(t, looks), scripted.New(twoPayments...))
		c.OnTool("look", func(map[string]any) (any, error) { return "seen", nil })
		c.OnToolAsync("pay", func(args map[string]any) pawl.Pending { return pawl.Pending{Reason: args["why"].(string)} },
			func(map[string]any) (any, error) { return nil, errors.New("it ran") })
		send(t, c, "pay them")
		if all := transcript(t, c); strings.Contains(all[2], "it ran") {
			t.Errorf("got %s", all[2])
		}
	})
}

func TestDefectForksShareWhatTheyChange(t *testing.T) {
	m := listening(scripted.Text("1"), scripted.Calls(callOf("c", "look", `{"city":"x"}`)), scripted.Text("2"))
	c := converse(t, packOf(t, `"system_template": "For {{who}}.", "tools": ["look"]`+`, "variables": [{"name": "who", "type": "string", "required": true}]`), m)
	c.SetVar("who", "Ada")
	c.OnTool("look", func(map[string]any) (any, error) { return "the parent's", nil })
	send(t, c, "a")
	var forks []*pawl.Conversation
	for range 2 {
		f, err := c.Fork(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		forks = append(forks, f)
	}
	if forks[0].Session() == forks[1].Session() {
		t.Errorf("two forks are %s", forks[0].Session())
	}
	forks[0].SetVar("who", "Bob")
	forks[0].OnTool("look", func(map[string]any) (any, error) { return "the fork's", nil })
	send(t, forks[0], "b")
	send(t, forks[1], "b")
	for i, who := range []string{"the fork's", "the parent's"} {
		wantLines(t, transcript(t, forks[i]), "user: a", "assistant: 1", "user: b", `assistant: [look {"city":"x"}]`, "tool: [look = "+who+"]", "assistant: 2")
	}
	wantLines(t, transcript(t, c), "user: a", "assistant: 1")
	if err := forks[1].Close(); err != nil {
		t.Fatal(err)
	}
	send(t, c, "b")
	wantLines(t, m.systems(), "For Ada.", "For Bob.", "For Bob.", "For Ada.", "For Ada.", "For Ada.", "For Ada.")

	empty := converse(t, packOf(t, plain), scripted.New(scripted.Text("1")))
	f, err := empty.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	send(t, f, "a")
	wantLines(t, transcript(t, empty))
}

func TestDefectAForksQuestionsGoToItsParent(t *testing.T) {
	var paid []string
	c := paying(converse(t, packOf(t, looks), scripted.New(append([]scripted.Turn{scripted.Text("hello")}, twoPayments...)...)), &paid)
	send(t, c, "hello")
	f, err := c.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	send(t, f, "pay them")
	if err := c.ResolveTool(t.Context(), "a"); !errdefs.Conflict.Is(err) {
		t.Errorf("the parent answered: %v", err)
	}
	for _, id := range []string{"a", "c"} {
		if err := f.ResolveTool(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if resp, err := f.Continue(t.Context()); err != nil || resp.Text() != "done" {
		t.Errorf("got %v", err)
	}
}

func TestDefectClearWipesTheRecord(t *testing.T) {
	store := journal.Memory()
	var paid []string
	m := listening(append([]scripted.Turn{scripted.Text("hello")}, twoPayments...)...)
	file := packOf(t, looks)
	c := paying(converse(t, file, m, pawl.WithJournal(store)), &paid)
	if err := c.Clear(t.Context()); err != nil { // of nothing
		t.Fatal(err)
	}
	send(t, c, "hello")
	send(t, c, "pay them") // waits
	if err := c.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLines(t, transcript(t, c))
	again := paying(converse(t, file, m, pawl.WithJournal(store), pawl.WithSession(c.Session())), &paid)
	wantLines(t, transcript(t, again))
	if all, _ := c.PendingTools(t.Context()); len(all) > 0 {
		t.Errorf("pending: %v", ids(all))
	}
	send(t, again, "hello again")
	if h := m.asked()[2].Messages; h.Len() != 1 || h.At(0).Text() != "hello again" {
		t.Errorf("the model was told %d messages", h.Len())
	}
	found := false
	for e, err := range store.Read(t.Context(), c.Session(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		d, ok := e.Data.(journal.Said)
		found = found || ok && d.Message.Text() == "pay them"
	}
	if !found {
		t.Error("the journal has forgotten")
	}
}

// Whoever answers at once, in the loop over the stream or in another goroutine, has not to continue the turn: it goes on.
func TestATurnWhoseQuestionsWereAnsweredAtOnceGoesOn(t *testing.T) {
	t.Run("in the loop over the stream", func(t *testing.T) {
		var paid []string
		c := paying(converse(t, packOf(t, looks), listening(twoPayments...)), &paid)
		text := ""
		for e, err := range c.Stream(t.Context(), "pay them") {
			if err != nil {
				t.Fatal(err)
			}
			if q, ok := e.Data.(journal.Asked); ok {
				if err := c.ResolveTool(t.Context(), q.ID); err != nil {
					t.Error(err)
				}
			}
			if e.Delta == event.TextDelta {
				text += e.Text
			}
		}
		if text != "done" {
			t.Errorf("streamed %q", text)
		}
		wantLines(t, paid, "5 to Bob", "500 to Ada", "900 to Cy")
	})
	t.Run("while it is sent", func(t *testing.T) {
		var paid []string
		m := listening(twoPayments[0], scripted.Calls(callOf("d", "pay", `{"amount":700,"to":"Di"}`)), scripted.Text("done"))
		var c *pawl.Conversation
		c = paying(converse(t, packOf(t, looks), m, pawl.WithHost(engine.HostFuncs{PublishFunc: func(ctx context.Context, e event.Event) error {
			if q, ok := e.Data.(journal.Asked); ok {
				return c.RejectTool(ctx, q.ID, "no")
			}
			return nil
		}})), &paid)
		resp, err := c.Send(t.Context(), "pay them")
		if err != nil || resp.Status != agent.StatusCompleted || resp.Text() != "done" {
			t.Errorf("got %v, %v", resp, err)
		}
		wantLines(t, paid, "5 to Bob")
	})
}

// What the check sees is what a typed handler gets, however deep: a name in another case is no way around it.
func TestATypedHandlerGetsNothingThatTheCheckDidNotSee(t *testing.T) {
	type order struct {
		Order struct {
			Amount int `json:"amount"`
		} `json:"order"`
	}
	m := listening(scripted.Calls(callOf("a", "pay", `{"order":{"Amount":5000}}`), callOf("b", "pay", `{"order":{"amount":5}}`)), scripted.Text("done"))
	c := converse(t, packOf(t, `"system_template": "x", "tools": ["pay"]`), m)
	c.AskBefore("pay", func(_ context.Context, args map[string]any) pawl.Pending {
		o, _ := args["order"].(map[string]any)
		return large(o)
	})
	var paid []int
	pawl.OnTyped(c, "pay", func(_ context.Context, o order) (any, error) { paid = append(paid, o.Order.Amount); return "paid", nil })
	send(t, c, "pay")
	if len(paid) != 1 || paid[0] != 5 {
		t.Errorf("paid %v", paid)
	}
}
