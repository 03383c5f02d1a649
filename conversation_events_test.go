package pawl_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
)

var five = []pawl.EventType{pawl.EventSend, pawl.EventResponse, pawl.EventToolCall, pawl.EventToolResult, pawl.EventError}

// collect reads what a subscription has once its conversation is closed.
func collect(t *testing.T, c *pawl.Conversation, s *pawl.Subscription) (all []pawl.Event) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for e := range s.Events() {
		if e.Timestamp.IsZero() || time.Since(e.Timestamp) > time.Hour {
			t.Errorf("%s was at %v", e.Type, e.Timestamp)
		}
		all = append(all, e)
	}
	return all
}

func TestDefectEventsAreOutOfOrder(t *testing.T) {
	c := converse(t, packOf(t, looks), scripted.New(
		scripted.Calls(callOf("c", "look", `{"city":"Bern"}`), callOf("d", "look", `{}`)), scripted.Text("It snows."), scripted.Fail(400)))
	s := c.Subscribe(t.Context(), event.Policy{}, five...)
	if _, err := c.Send(t.Context(), "0"); err == nil {
		t.Fatal("a tool has no handler")
	}
	c.OnTool("look", func(map[string]any) (any, error) { return "snow", nil })
	c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
	send(t, c, "Weather?")
	if _, err := c.Send(t.Context(), "And?"); err == nil {
		t.Fatal("the model fails")
	}
	var got []string
	for _, e := range collect(t, c, s) {
		id, name := e.Tool()
		line := strings.Join([]string{string(e.Type), e.Text(), id, name, fmt.Sprint(e.Args())}, "|")
		switch e.Type {
		case pawl.EventError:
			line = fmt.Sprint(e.Type, "|", e.Data["class"], "|", e.Error() != "")
		case pawl.EventToolResult:
			line += fmt.Sprint("|", e.Data["outcome"])
		}
		got = append(got, line)
	}
	wantLines(t, got,
		"error|validation|true",
		"send|Weather?|||map[]",
		"tool_result||d|look|map[]|denied",
		"tool_call||c|look|map[city:Bern]",
		"tool_result||c|look|map[]|ok",
		"response|It snows.|||map[]",
		"send|And?|||map[]",
		"error|validation|true")
}

// A call has its result for listeners, too, when a person refused it: before what became of the others, wherever he said so.
func TestListenersAreToldOfCallsThatPeopleRefused(t *testing.T) {
	store := journal.Memory()
	m := scripted.New(twoPayments...)
	var paid []string
	c := paying(converse(t, packOf(t, looks), m, pawl.WithJournal(store)), &paid)
	s := c.Subscribe(t.Context(), event.Policy{}, pawl.EventToolCall, pawl.EventToolResult)
	send(t, c, "pay them")
	if err := c.RejectTool(t.Context(), "a", "too much"); err != nil {
		t.Fatal(err)
	}
	if err := agent.Answer(t.Context(), store, c.Session(), journal.Answered{ID: "c", Approved: true}); err != nil { // elsewhere
		t.Fatal(err)
	}
	if _, err := c.Continue(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range collect(t, c, s) {
		id, name := e.Tool()
		got = append(got, strings.Join([]string{string(e.Type), id, name, fmt.Sprint(e.Data["content"]), fmt.Sprint(e.Data["outcome"])}, "|"))
	}
	wantLines(t, got,
		"tool_call|b|pay|<nil>|<nil>", "tool_result|b|pay|paid|ok",
		"tool_result|a|pay|Rejected by a person: too much|rejected",
		"tool_call|c|pay|<nil>|<nil>", "tool_result|c|pay|paid|ok")
}

func TestListenersAreToldTheFinerEventsOnlyWhenTheyAskForThem(t *testing.T) {
	c := converse(t, packOf(t, plain), scripted.New(scripted.Text("one two")))
	all, deltas := c.Subscribe(t.Context(), event.Policy{}), c.Subscribe(t.Context(), event.Policy{}, "text.delta")
	for _, err := range c.Stream(t.Context(), "a") {
		if err != nil {
			t.Fatal(err)
		}
	}
	var types []string
	for _, e := range collect(t, c, all) {
		types = append(types, string(e.Type))
		if _, ok := e.Raw.Data.(journal.ModelFinished); ok && e.Text() != "one two" {
			t.Errorf("the reply is %q", e.Text())
		}
	}
	for _, want := range []string{"session.created", "run.started", "send", "model.started", "text.delta", "model.finished", "run.finished", "response"} {
		if !slices.Contains(types, want) {
			t.Errorf("no %s in %q", want, types)
		}
	}
	text := ""
	for _, e := range collect(t, c, deltas) {
		text += e.Text()
	}
	if text != "one two" {
		t.Errorf("deltas %q", text)
	}
}

func TestASlowListenerLosesWhatItsPolicySays(t *testing.T) {
	var turns []scripted.Turn
	for i := range 10 {
		turns = append(turns, scripted.Text(fmt.Sprint(i)))
	}
	c := converse(t, packOf(t, plain), scripted.New(turns...))
	s := c.Subscribe(t.Context(), event.Policy{Full: event.DropOldest, Buffer: 2}, pawl.EventResponse)
	for range 10 {
		send(t, c, "a")
	}
	var texts []string
	for _, e := range collect(t, c, s) {
		texts = append(texts, e.Text())
	}
	wantLines(t, texts, "8", "9")
	if s.Lost() != 8 {
		t.Errorf("lost %d", s.Lost())
	}
}

func TestDefectListenersLeaveGoroutines(t *testing.T) {
	file := packOf(t, plain)
	before := runtime.NumGoroutine()
	for range 50 {
		c, err := pawl.Open(file, "chat", pawl.WithModel(scripted.New(scripted.Text("1"))))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.Subscribe(ctx, event.Policy{Full: event.DropNewest, Buffer: 1})
		}
		send(t, c, "a")
		if n := runtime.NumGoroutine(); n > before+20 { // those of other tests may end or begin
			t.Fatalf("%d goroutines, before %d", n, before)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOnlyACallThatIsRefusedIsToldAsDenied(t *testing.T) {
	var paid []string
	c := paying(converse(t, packOf(t, looks), scripted.New(
		scripted.Calls(callOf("a", "pay", `{"amount":500}`), callOf("b", "look", `{"city":"x"}`), callOf("c", "look", `{}`)), scripted.Text("done"))), &paid)
	s := c.Subscribe(t.Context(), event.Policy{}, "tool.judged")
	send(t, c, "go") // a waits, b runs, c is wrong
	var got []string
	for _, e := range collect(t, c, s) {
		id, _ := e.Tool()
		got = append(got, fmt.Sprint(id, " ", e.Data["outcome"], " ", e.Data["is_error"]))
	}
	wantLines(t, got, "a <nil> <nil>", "b <nil> <nil>", "c denied true")
}

// A subscriber who reads no more keeps no conversation from being closed, and gets the blame of nobody.
func TestCloseEndsASubscriptionThatATurnWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := pawl.Open(packOf(t, plain), "chat", pawl.WithModel(scripted.New(scripted.Text(strings.Repeat("word ", 600)))))
		if err != nil {
			t.Fatal(err)
		}
		s := c.Subscribe(t.Context(), event.Policy{})
		ended := make(chan error)
		go func() {
			_, err := c.Send(t.Context(), "go")
			ended <- err
		}()
		synctest.Wait() // the turn waits for the subscriber
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err == nil {
			t.Error("the turn was not cancelled")
		}
		n := 0
		for e := range s.Events() { // what came before is there still, and then it ends
			n += len(e.Type)
		}
		if n == 0 {
			t.Error("nothing was heard")
		}
	})
}
