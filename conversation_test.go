package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

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

func TestDefectVariablesAreFrozen(t *testing.T) {
	turns := []scripted.Turn{scripted.Text("1"), scripted.Calls(callOf("c", "look", `{"city":"Bern"}`)), scripted.Text("2"), scripted.Text("3")}
	m := &heeding{Model: (&scripted.Script{Name: "test", Moves: true, Turns: turns}).Model()} // a variable in the system prompt moves all behind it
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

func TestDefectThePromptIsReplacedOnAMissingVariable(t *testing.T) {
	for name, members := range map[string]string{
		"required":                 `"system_template": "About {{topic}}.", "variables": [{"name": "topic", "type": "string", "required": true}]`,
		"a placeholder of nothing": `"system_template": "About {{topic}}."`,
		"of the wrong type":        `"system_template": "About {{topic}}{{n}}.", "variables": [{"name": "topic", "type": "string", "required": false, "default": ""}, {"name": "n", "type": "number", "required": false, "default": 1, "validation": {"maximum": 5}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			m := listening(scripted.Text("1"))
			c := converse(t, packOf(t, members), m)
			want := "topic"
			if strings.Contains(members, "number") {
				want = "n: "
				c.SetVar("n", 6)
			}
			_, err := c.Send(t.Context(), "a")
			if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), want) {
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
			c.SetVars(map[string]any{"topic": "x", "n": nil})
			if got := send(t, c, "a").Text(); got != "1" {
				t.Errorf("then: %q", got)
			}
		})
	}
}

// Neither what a user says is a template, nor what a tool, a model or a program does, in this turn or a later one; and a value is none, either.
func TestDefectTemplateInjection(t *testing.T) {
	m := listening(scripted.Text("the program says this one"), scripted.Calls(callOf("c", "look", `{"city":"{{secret}}"}`)), scripted.Text("3 {{secret}}"), scripted.Text("4"), scripted.Text("5"))
	store, file := journal.Memory(), packOf(t, `"system_template": "About {{topic}}.", "tools": ["look"], "variables": [{"name": "topic", "type": "string", "required": true}]`)
	c := converse(t, file, m, pawl.WithJournal(store))
	c.OnTool("look", func(args map[string]any) (any, error) { return "{{secret}}, " + args["city"].(string), nil })
	vars := map[string]any{"topic": "{{secret}} {{fragments.x}}", "secret": "S3CR3T"}
	c.SetVars(vars)
	if err := c.AddMessage(t.Context(), message.Assistant("1 {{secret}}")); err != nil {
		t.Fatal(err)
	}
	send(t, c, "2 {{secret}}")
	send(t, c, "again")
	later := converse(t, file, m, pawl.WithJournal(store), pawl.WithSession(c.Session()), pawl.WithVars(vars))
	later.OnTool("look", func(map[string]any) (any, error) { return nil, nil })
	send(t, later, "and again")
	want := []string{
		"assistant: 1 {{secret}}", "user: 2 {{secret}}", `assistant: [look {"city":"{{secret}}"}]`, "tool: [look = {{secret}}, {{secret}}]", "assistant: 3 {{secret}}",
		"user: again", "assistant: 4", "user: and again", "assistant: 5",
	}
	wantLines(t, transcript(t, later), want...)
	for i, req := range m.asked() {
		if req.System != "About {{secret}} {{fragments.x}}." {
			t.Errorf("call %d: the prompt is %q", i, req.System)
		}
		for k, msg := range req.Messages.All() {
			if b, err := json.Marshal(msg); err != nil || strings.Contains(string(b), "S3CR3T") {
				t.Errorf("call %d: the model was told %s", i, want[k])
			}
		}
	}
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

func TestDefectToolPolicyIsIgnored(t *testing.T) {
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
		"ten by default":     {`{}`, []scripted.Turn{look("1", "2", "3", "4", "5", "6", "7", "8", "9", "10"), look("11")}, 10, 2, []model.ToolChoice{"", ""}, errdefs.BudgetExceeded},
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

// In every call of a conversation, not only in the first one.
func TestDefectParametersAndOverridesAreIgnored(t *testing.T) {
	m := listening(scripted.Calls(callOf("c", "look", `{"city":"x"}`)), scripted.Text("1"), scripted.Text("2"))
	c := converse(t, packOf(t, looks+`, "parameters": {"temperature": 0.5, "max_tokens": 7, "top_p": 0.5, "top_k": 40, "frequency_penalty": 1, "presence_penalty": -1},
		"model_overrides": {"scripted/test": {"system_template_prefix": "Now. ", "system_template_suffix": " Really.", "parameters": {"temperature": 0.1}}, "other": {"system_template": "Not me."}}`), m)
	c.OnTool("look", func(map[string]any) (any, error) { return "x", nil })
	c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
	send(t, c, "a")
	for _, err := range c.Stream(t.Context(), "b") {
		if err != nil {
			t.Fatal(err)
		}
	}
	all := m.asked()
	if len(all) != 3 {
		t.Errorf("%d calls", len(all))
	}
	want := func(temperature, topP, frequency, presence float64, topK int) model.Settings {
		return model.Settings{MaxTokens: 7, Temperature: &temperature, TopP: &topP, TopK: &topK, FrequencyPenalty: &frequency, PresencePenalty: &presence}
	}(0.1, 0.5, 1, -1, 40)
	for i, r := range all {
		if diff := cmp.Diff(want, r.Settings); diff != "" || r.System != "Now. Be brief. Really." {
			t.Errorf("call %d: %q, %s", i, r.System, diff)
		}
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

func TestDefectConcurrentSendsCrash(t *testing.T) {
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

func TestWhoWaitedForATurnIsToldWhetherHeLeftOrTheConversationWasClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := byFunc(func(ctx context.Context, _ model.Request) (*model.Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		for range 20 { // the turn may come at the same time
			c := converse(t, packOf(t, plain), m)
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := c.Send(t.Context(), "first"); !errors.Is(err, context.Canceled) {
					t.Errorf("the turn that ran: %v", err)
				}
			})
			synctest.Wait()
			ctx, leave := context.WithCancel(t.Context())
			wg.Go(func() {
				if _, err := c.Send(ctx, "left"); !errors.Is(err, context.Canceled) || errdefs.NotAvailable.Is(err) {
					t.Errorf("who left: %v", err)
				}
			})
			synctest.Wait()
			leave()
			synctest.Wait()
			for range 3 {
				wg.Go(func() {
					if resp, err := c.Send(t.Context(), "waited"); !errdefs.NotAvailable.Is(err) || resp != nil {
						t.Errorf("who waited: %v", err)
					}
				})
			}
			synctest.Wait()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
			wantLines(t, transcript(t, c), "user: first")
		}
	})
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

// What tools did is on record, however the turn ended, and the next turn is told of it.
func TestDefectAFailedTurnIsForgotten(t *testing.T) {
	look := func(id string) scripted.Turn { return scripted.Calls(callOf(id, "look", `{"city":"`+id+`"}`)) }
	said := func(id string) []string {
		return []string{`assistant: [look {"city":"` + id + `"}]`, "tool: [look = snow in " + id + "]"}
	}
	for name, tc := range map[string]struct {
		policy string
		turns  []scripted.Turn
		class  *errdefs.Class
		ids    []string
	}{
		"a request that is wrong": {`{}`, []scripted.Turn{look("1"), scripted.Fail(400)}, errdefs.Validation, []string{"1"}},
		"a provider that is down": {`{}`, []scripted.Turn{look("1"), look("2"), scripted.Fail(503)}, errdefs.NotAvailable, []string{"1", "2"}},
		"rounds":                  {`{"max_rounds": 2}`, []scripted.Turn{look("1"), look("2"), look("3")}, errdefs.BudgetExceeded, []string{"1", "2"}},
		"calls":                   {`{"max_tool_calls_per_turn": 1}`, []scripted.Turn{look("1"), look("2")}, errdefs.BudgetExceeded, []string{"1"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := listening(append(tc.turns, scripted.Text("then"))...)
			c := converse(t, packOf(t, looks+`, "tool_policy": `+tc.policy), m)
			c.OnTool("look", func(args map[string]any) (any, error) { return fmt.Sprint("snow in ", args["city"]), nil })
			c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
			resp, err := c.Send(t.Context(), "a")
			if errdefs.Of(err) != tc.class || resp == nil || resp.Status != agent.StatusFailed {
				t.Fatalf("got %v", err)
			}
			want := []string{"user: a"}
			for _, id := range tc.ids {
				want = append(want, said(id)...)
			}
			got := transcript(t, c)
			if len(got) < len(want) {
				t.Fatalf("on record is only %q", got)
			}
			wantLines(t, got[:len(want)], want...)
			if got := send(t, c, "b").Text(); got != "then" {
				t.Errorf("the next turn says %q", got)
			}
			all := m.asked()
			if h := all[len(all)-1].Messages; h.Len() < len(want)+1 || h.Last().Text() != "b" {
				t.Errorf("the next turn was told %d messages", h.Len())
			}
		})
	}
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
