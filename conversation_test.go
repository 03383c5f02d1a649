package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
)

// The pack says the rest: five lines to hello world.
func ExampleOpen() {
	hello := scripted.New(scripted.Text("Hello, Ada!")) // leave it out to talk to the model of the key in your environment
	ctx := context.Background()

	conv, err := pawl.Open("testdata/support.pack.json", "chat", pawl.WithModel(hello))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conv.Close() }()
	conv.SetVar("name", "Ada")
	conv.OnTool("lookup_order", func(args map[string]any) (any, error) {
		return map[string]any{"id": args["order_id"], "state": "shipped"}, nil
	})
	resp, err := conv.Send(ctx, "Hello")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Text())
	// Output: Hello, Ada!
}

// heeding is a model that keeps what it was asked.
type heeding struct {
	model.Model
	mu   sync.Mutex
	reqs []model.Request
}

func listening(turns ...scripted.Turn) *heeding { return &heeding{Model: scripted.New(turns...)} }

func (a *heeding) Capabilities() model.Capabilities {
	c, _ := model.CapabilitiesOf(a.Model)
	return c
}

func (a *heeding) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	a.note(req)
	return a.Model.Complete(ctx, req)
}

func (a *heeding) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	a.note(req)
	return a.Model.CompleteStream(ctx, req, cb)
}

func (a *heeding) note(req model.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reqs = append(a.reqs, req)
}

func (a *heeding) asked() []model.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.reqs)
}

func (a *heeding) systems() (all []string) {
	for _, r := range a.asked() {
		all = append(all, r.System)
	}
	return all
}

// packOf writes a pack with one prompt, chat, of these members, and two tools.
func packOf(t *testing.T, members string, top ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.pack.json")
	text := `{
	  "id": "test", "name": "Test", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"}, ` + strings.Join(top, "") + `
	  "prompts": {"chat": {"id": "chat", "name": "Chat", "version": "1.0.0", ` + members + `}},
	  "tools": {
	    "look": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}, "required": ["city"]}},
	    "pay": {"name": "pay", "description": "Pay.", "parameters": {"type": "object", "properties": {"amount": {"type": "integer"}, "to": {"type": "string"}}}}
	  }
	}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func converse(t *testing.T, file string, m model.Model, opts ...pawl.Option) *pawl.Conversation {
	t.Helper()
	c, err := pawl.Open(file, "chat", append([]pawl.Option{pawl.WithModel(m)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func send(t *testing.T, c *pawl.Conversation, text string) *pawl.Response {
	t.Helper()
	resp, err := c.Send(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func transcript(t *testing.T, c *pawl.Conversation) (all []string) {
	t.Helper()
	h, err := c.Messages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range h.All() {
		line := string(m.Role()) + ": " + m.Text()
		for _, call := range m.ToolCalls() {
			line += fmt.Sprintf("[%s %s]", call.Name, call.Input)
		}
		for r := range message.Of[message.ToolResult](m) {
			line += fmt.Sprintf("[%s = %s]", r.Name, r.Content)
		}
		all = append(all, line)
	}
	return all
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

const (
	plain = `"system_template": "Be brief."`
	looks = `"system_template": "Be brief.", "tools": ["look", "pay"]`
)

func callOf(id, name, input string) scripted.Call {
	return scripted.Call{ID: id, Name: name, Input: input}
}

func TestAVariableSetNowIsInTheNextPrompt(t *testing.T) {
	m := listening(scripted.Text("1"), scripted.Calls(callOf("c", "look", `{"city":"Bern"}`)), scripted.Text("2"), scripted.Text("3"))
	c := converse(t, packOf(t, `"system_template": "About {{ topic }}.", "tools": ["look"], "variables": [{"name": "topic", "type": "string", "required": true}]`), m)
	c.OnTool("look", func(map[string]any) (any, error) {
		c.SetVar("topic", "three") // from a handler: the turn under way keeps its prompt
		return "snow", nil
	})
	c.SetVar("topic", "one")
	send(t, c, "a")
	c.SetVars(map[string]any{"topic": "two"})
	send(t, c, "b")
	send(t, c, "c")
	wantLines(t, m.systems(), "About one.", "About two.", "About two.", "About three.")
	if v, ok := c.GetVar("topic"); !ok || v != "three" {
		t.Errorf("topic is %v, %v", v, ok)
	}
	if v, ok := c.GetVar("other"); ok {
		t.Errorf("other is %v", v)
	}
}

func TestAMissingVariableFailsBeforeAnyCallAndBeforeAnythingIsOnRecord(t *testing.T) {
	m := listening(scripted.Text("1"))
	c := converse(t, packOf(t, `"system_template": "About {{topic}}.", "variables": [{"name": "topic", "type": "string", "required": true}]`), m)
	_, err := c.Send(t.Context(), "a")
	if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "topic") {
		t.Errorf("got %v", err)
	}
	var streamed error
	for _, err := range c.Stream(t.Context(), "a") {
		streamed = err
	}
	if !errdefs.Validation.Is(streamed) {
		t.Errorf("the stream gave %v", streamed)
	}
	if n := len(m.asked()); n > 0 {
		t.Errorf("the model was called %d times", n)
	}
	wantLines(t, transcript(t, c))
	c.SetVar("topic", "x")
	if got := send(t, c, "a").Text(); got != "1" {
		t.Errorf("then: %q", got)
	}
}

func TestWhatAUserSaysIsNoTemplate(t *testing.T) {
	m := listening(scripted.Text("1"))
	c := converse(t, packOf(t, `"system_template": "About {{topic}}.", "variables": [{"name": "topic", "type": "string", "required": true}]`), m)
	c.SetVar("topic", "{{secret}}")
	c.SetVar("secret", "S3CR3T")
	send(t, c, "echo {{secret}}")
	wantLines(t, m.systems(), "About {{secret}}.")
	wantLines(t, transcript(t, c), "user: echo {{secret}}", "assistant: 1")
}

func TestHandlersAnswerTheToolsOfThePack(t *testing.T) {
	m := listening(
		scripted.Calls(callOf("1", "look", `{"city":"Bern","n":2}`), callOf("2", "look", `{"n":2}`), callOf("3", "look", `{"city":"Rome"}`), callOf("4", "pay", `{"amount":3}`)),
		scripted.Text("done"))
	c := converse(t, packOf(t, looks), m)
	c.OnTools(map[string]func(map[string]any) (any, error){
		"look": func(args map[string]any) (any, error) {
			if args["city"] == "Rome" {
				return args["n"].(float64), nil // a panic, as people write it
			}
			return map[string]any{"city": args["city"], "n": args["n"]}, nil
		},
		"pay": func(map[string]any) (any, error) { return nil, errors.New("replaced below") },
	})
	pawl.OnTyped(c, "pay", func(_ context.Context, in struct{ Amount int }) (any, error) {
		return fmt.Sprint("paid ", in.Amount), nil
	})
	send(t, c, "go")
	all := transcript(t, c)
	for _, want := range []string{`[look = {"city":"Bern","n":2}]`, `city`, `panicked`, `[pay = paid 3]`} {
		if !strings.Contains(all[2], want) {
			t.Errorf("the results have no %s: %s", want, all[2])
		}
	}
	if got := m.asked()[0].Tools; len(got) != 2 || got[0].Name != "look" || !strings.Contains(string(got[0].Schema), "city") {
		t.Errorf("the model was told of %+v", got)
	}
}

func TestAToolWithoutAHandlerFailsBeforeAnyCall(t *testing.T) {
	m := listening(scripted.Text("1"))
	c := converse(t, packOf(t, looks), m)
	c.OnToolCtx("look", func(context.Context, map[string]any) (any, error) { return "x", nil })
	if _, err := c.Send(t.Context(), "a"); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "pay") || strings.Contains(err.Error(), "look,") {
		t.Errorf("got %v", err)
	}
	c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
	c.OnTool("fly", func(map[string]any) (any, error) { return "x", nil })
	if _, err := c.Send(t.Context(), "a"); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "fly") {
		t.Errorf("got %v", err)
	}
	if n := len(m.asked()); n > 0 {
		t.Errorf("the model was called %d times", n)
	}
}

func TestTheToolPolicyBinds(t *testing.T) {
	look := func(ids ...string) scripted.Turn {
		var calls []scripted.Call
		for _, id := range ids {
			calls = append(calls, callOf(id, "look", `{"city":"`+id+`"}`))
		}
		return scripted.Calls(calls...)
	}
	for name, tc := range map[string]struct {
		policy string
		turns  []scripted.Turn
		ran    int
		tools  int
		choice []model.ToolChoice
		class  *errdefs.Class
	}{
		"rounds":             {`{"max_rounds": 2}`, []scripted.Turn{look("1"), look("2"), scripted.Text("x")}, 2, 2, []model.ToolChoice{"", "", model.ToolsNone}, nil},
		"rounds, unheeded":   {`{"max_rounds": 1}`, []scripted.Turn{look("1"), look("2"), scripted.Text("x")}, 1, 2, []model.ToolChoice{"", model.ToolsNone}, errdefs.BudgetExceeded},
		"five by default":    {`{}`, []scripted.Turn{look("1"), look("2"), look("3"), look("4"), look("5"), look("6")}, 5, 2, []model.ToolChoice{"", "", "", "", "", model.ToolsNone}, errdefs.BudgetExceeded},
		"calls":              {`{"max_tool_calls_per_turn": 2}`, []scripted.Turn{look("1", "2"), look("3")}, 2, 2, []model.ToolChoice{"", ""}, errdefs.BudgetExceeded},
		"blocklist":          {`{"blocklist": ["look"]}`, []scripted.Turn{look("1"), scripted.Text("x")}, 0, 1, []model.ToolChoice{"", ""}, nil},
		"none":               {`{"tool_choice": "none"}`, []scripted.Turn{scripted.Text("x")}, 0, 0, []model.ToolChoice{""}, nil},
		"required, at first": {`{"tool_choice": "required"}`, []scripted.Turn{look("1"), scripted.Text("x")}, 1, 2, []model.ToolChoice{model.ToolsRequired, ""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := listening(tc.turns...)
			c := converse(t, packOf(t, looks+`, "tool_policy": `+tc.policy), m)
			ran := 0
			c.OnTool("look", func(map[string]any) (any, error) { ran++; return "x", nil })
			c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
			_, err := c.Send(t.Context(), "go")
			if errdefs.Of(err) != tc.class {
				t.Errorf("got %v, want %v", err, tc.class)
			}
			if ran != tc.ran {
				t.Errorf("ran %d calls, want %d", ran, tc.ran)
			}
			var choices []model.ToolChoice
			for _, r := range m.asked() {
				choices = append(choices, r.ToolChoice)
				if len(r.Tools) != tc.tools {
					t.Errorf("the model has %d tools, want %d", len(r.Tools), tc.tools)
				}
			}
			if !slices.Equal(choices, tc.choice) {
				t.Errorf("choices %q, want %q", choices, tc.choice)
			}
		})
	}
}

func TestParametersAndOverridesReachTheModel(t *testing.T) {
	m := listening(scripted.Text("1"))
	c := converse(t, packOf(t, plain+`, "parameters": {"temperature": 0.5, "max_tokens": 7, "top_p": 0.5, "top_k": 3, "frequency_penalty": 0.25, "presence_penalty": 0.75}, "model_overrides": {"scripted/test": {"system_template_suffix": " Really.", "parameters": {"temperature": 0.1}}}`), m)
	send(t, c, "a")
	r := m.asked()[0]
	if r.System != "Be brief. Really." || r.Temperature == nil || *r.Temperature != 0.1 || r.MaxTokens != 7 || r.TopP == nil || *r.TopP != 0.5 ||
		r.TopK == nil || *r.TopK != 3 || r.FrequencyPenalty == nil || *r.FrequencyPenalty != 0.25 || r.PresencePenalty == nil || *r.PresencePenalty != 0.75 {
		t.Errorf("asked with %+v", r)
	}
}

func TestAddedMessagesAreOnRecordAndInTheNextPrompt(t *testing.T) {
	store := journal.Memory()
	m := listening(scripted.Text("1"))
	file := packOf(t, plain)
	c := converse(t, file, m, pawl.WithJournal(store))
	for _, add := range []message.Message{message.User("I am Ada."), message.Assistant("Hello, Ada.")} {
		if err := c.AddMessage(t.Context(), add); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.asked()) > 0 {
		t.Error("the model was called")
	}
	again := converse(t, file, m, pawl.WithJournal(store), pawl.WithSession(c.Session()))
	wantLines(t, transcript(t, again), "user: I am Ada.", "assistant: Hello, Ada.")
	if err := c.AddMessage(t.Context(), message.Results()); !errdefs.Validation.Is(err) {
		t.Errorf("results: %v", err)
	}
	again.Send(t.Context(), "Who am I?") //nolint:errcheck // the script has nothing more to say
	if h := m.asked()[0].Messages; h.Len() != 3 || h.At(1).Text() != "Hello, Ada." {
		t.Errorf("the model was told %d messages", h.Len())
	}
}

func TestAStreamShowsTheTurnAndBreakingOutCancelsIt(t *testing.T) {
	m := listening(scripted.Text("one two three four"), scripted.Text("again"))
	c := converse(t, packOf(t, plain), m)
	for e, err := range c.Stream(t.Context(), "a") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Delta == event.TextDelta {
			break
		}
	}
	all := transcript(t, c)
	if len(all) != 2 || !strings.HasPrefix(all[1], "assistant: one") || strings.Contains(all[1], "four") {
		t.Errorf("on record: %q", all)
	}
	text := ""
	for e, err := range c.Stream(t.Context(), "b") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Delta == event.TextDelta {
			text += e.Text
		}
	}
	if text != "again" {
		t.Errorf("streamed %q", text)
	}
}

func TestConcurrentSendsQueueInOrderAndHandlersSetVariables(t *testing.T) {
	const n = 20
	var turns []scripted.Turn
	for i := range n {
		turns = append(turns, scripted.Calls(callOf(fmt.Sprint("c", i), "look", `{"city":"x"}`)), scripted.Text(fmt.Sprint("answer ", i)))
	}
	m := listening(turns...)
	c := converse(t, packOf(t, looks), m)
	inside := 0 // -race sees two at once
	c.OnTool("look", func(map[string]any) (any, error) {
		inside++
		c.SetVar("seen", inside)
		return "x", nil
	})
	c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			c.SetVar(fmt.Sprintf("key_%d", i), i)
			if _, err := c.Send(t.Context(), fmt.Sprint("question ", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if inside != n {
		t.Errorf("%d calls", inside)
	}
	all := transcript(t, c)
	if len(all) != 4*n {
		t.Fatalf("%d messages", len(all))
	}
	for i := range n {
		if !strings.HasPrefix(all[4*i], "user: question") || all[4*i+3] != fmt.Sprint("assistant: answer ", i) {
			t.Errorf("turn %d: %q", i, all[4*i:4*i+4])
		}
	}
}

func TestVariablesAreSafeForConcurrentUse(t *testing.T) {
	conv := converse(t, packOf(t, plain), listening(scripted.Text("1")))
	// Safe concurrent access
	var wg sync.WaitGroup

	for i := 0; i < 10; i++ {
		wg.Add(1)
		go func(n int) {
			defer wg.Done()
			conv.SetVar(fmt.Sprintf("key_%d", n), n)
		}(i)
	}

	wg.Wait()
	for i := range 10 {
		if v, _ := conv.GetVar(fmt.Sprintf("key_%d", i)); v != i {
			t.Errorf("key_%d is %v", i, v)
		}
	}
}

func TestCloseWhileSendingIsClean(t *testing.T) {
	c := converse(t, packOf(t, looks), listening(scripted.Calls(callOf("c", "look", `{"city":"x"}`)), scripted.Text("never")))
	begun := make(chan struct{})
	c.OnToolCtx("look", func(ctx context.Context, _ map[string]any) (any, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			if _, err := c.Send(t.Context(), fmt.Sprint(i)); err == nil {
				t.Error("a turn was completed")
			}
		})
	}
	<-begun
	for range 3 {
		wg.Go(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := c.Send(t.Context(), "x"); !errdefs.NotAvailable.Is(err) {
		t.Errorf("after Close: %v", err)
	}
}

func TestAHandlerThatTakesATurnOfItsOwnConversationIsRefused(t *testing.T) {
	c := converse(t, packOf(t, looks), listening(scripted.Calls(callOf("c", "look", `{"city":"x"}`)), scripted.Text("x")))
	c.OnToolCtx("look", func(ctx context.Context, _ map[string]any) (any, error) {
		_, err := c.Send(ctx, "inner")
		return nil, err
	})
	c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
	send(t, c, "outer")
	if all := transcript(t, c); !strings.Contains(all[2], "wait for itself") {
		t.Errorf("got %q", all)
	}
}

func TestATurnThatFailedIsOnRecord(t *testing.T) {
	c := converse(t, packOf(t, looks), listening(scripted.Calls(callOf("c", "look", `{"city":"x"}`)), scripted.Fail(400)))
	c.OnTool("look", func(map[string]any) (any, error) { return "snow", nil })
	c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
	resp, err := c.Send(t.Context(), "a")
	if err == nil || resp.Status != agent.StatusFailed {
		t.Errorf("got %v", err)
	}
	wantLines(t, transcript(t, c), "user: a", `assistant: [look {"city":"x"}]`, "tool: [look = snow]")
}

func TestAHundredConversationsTakeAThousandOperationsAtOnce(t *testing.T) {
	file, store := packOf(t, looks), journal.Memory()
	var wg sync.WaitGroup
	for range 100 {
		c := converse(t, file, scripted.New(scripted.Calls(callOf("c", "look", `{"city":"x"}`)), scripted.Text("one"), scripted.Text("two")), pawl.WithJournal(store))
		c.OnTool("look", func(map[string]any) (any, error) { c.SetVar("seen", true); return "x", nil })
		c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
		ops := []func() error{
			func() error { _, err := c.Send(t.Context(), "a"); return err },
			func() error {
				for _, err := range c.Stream(t.Context(), "b") {
					if err != nil {
						return err
					}
				}
				return nil
			},
			func() error { c.SetVar("k", 1); return nil },
			func() error { c.SetVars(map[string]any{"l": 2}); return nil },
			func() error { c.GetVar("k"); return nil },
			func() error { _, err := c.Messages(t.Context()); return err },
			func() error { _, err := c.PendingTools(t.Context()); return err },
			func() error { return c.AddMessage(t.Context(), message.User("c")) },
			func() error { c.OnTool("pay", func(map[string]any) (any, error) { return "y", nil }); return nil },
			func() error {
				f, err := c.Fork(t.Context())
				if err != nil {
					return err
				}
				return f.Close()
			},
		}
		for _, op := range ops {
			wg.Go(func() {
				if err := op(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
}
