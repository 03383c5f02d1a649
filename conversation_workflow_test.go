package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// inTurn is a model that gives its replies one after the other, whatever the transcript has, and keeps what it was asked.
type inTurn struct {
	mu      sync.Mutex
	replies []model.Response
	reqs    []model.Request
}

func (m *inTurn) Capabilities() model.Capabilities {
	return model.Capabilities{Name: "scripted/in-turn", Tools: true, MaxTokens: true}
}

func (m *inTurn) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reqs = append(m.reqs, req)
	if len(m.reqs) > len(m.replies) {
		return nil, errdefs.Validation.Errorf("there are %d replies, and this is call %d", len(m.replies), len(m.reqs))
	}
	r := m.replies[len(m.reqs)-1]
	return &r, nil
}

func (m *inTurn) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := m.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Text: r.Message.Text(), Final: true, Response: r})
}

func (m *inTurn) says(text string) *inTurn {
	m.replies = append(m.replies, model.Response{Message: message.Assistant(text), Stop: model.StopEnd})
	return m
}

func (m *inTurn) calls(name, input string) *inTurn {
	m.replies = append(m.replies, model.Response{Message: message.Assistant("", message.ToolCall{ID: fmt.Sprint("c", len(m.replies)), Name: name, Input: input}), Stop: model.StopTools})
	return m
}

func (m *inTurn) moves(event string) *inTurn {
	return m.calls("workflow__transition", fmt.Sprintf(`{"event":%q,"context":"about %s"}`, event, event))
}

func (m *inTurn) asked() []model.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.reqs)
}

// systems are those of the calls, in order.
func (m *inTurn) systems() (all []string) {
	for _, r := range m.asked() {
		all = append(all, r.System)
	}
	return all
}

func offered(r model.Request) (names []string) {
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// workflowOf writes a pack with the prompts a, b and c, and a workflow.
func workflowOf(t testing.TB, workflow string, top ...string) string {
	t.Helper()
	var prompts []string
	for _, id := range []string{"a", "b", "c"} {
		prompts = append(prompts, fmt.Sprintf(`%q: {"id": %q, "name": %q, "version": "1.0.0", "system_template": "I am %s. {{workflow_context}}", "tools": ["look"]}`, id, id, strings.ToUpper(id), id))
	}
	file := filepath.Join(t.TempDir(), "flow.pack.json")
	text := `{"id": "flow", "name": "Flow", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"}, ` + strings.Join(top, "") + `
		"prompts": {` + strings.Join(prompts, ", ") + `}, "workflow": ` + workflow + `,
		"tools": {"look": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// circle goes from a to b and back, and from b to c, where it ends.
const circle = `{"version": 1, "entry": "a", "states": {
	"a": {"prompt_task": "a", "on_event": {"Go": "b"}},
	"b": {"prompt_task": "b", "description": "Works", "on_event": {"Back": "a", "Done": "c"}},
	"c": {"prompt_task": "c", "terminal": true}}}`

func flows(t testing.TB, file string, m model.Model, opts ...pawl.Option) *pawl.Conversation {
	t.Helper()
	c, err := pawl.OpenWorkflow(file, append([]pawl.Option{pawl.WithModel(m)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	c.OnTool("look", func(map[string]any) (any, error) { return "seen", nil })
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// stands fails unless the workflow is in a state, with these visits.
func stands(t *testing.T, c *pawl.Conversation, state string, visits map[string]int, ended pawl.WorkflowEnd, events ...string) pawl.WorkflowState {
	t.Helper()
	at, err := c.Workflow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if at.State != state || !maps.Equal(at.Visits, visits) || at.Ended != ended || !slices.Equal(at.Events, events) {
		t.Errorf("it is in %s, %v, %q, events %v; want %s, %v, %q, %v", at.State, at.Visits, at.Ended, at.Events, state, visits, ended, events)
	}
	return at
}

// The pack that somebody else wrote: a refund waits for a person, and who approved it is in another process; then the confirmation speaks for itself.
func TestTheWorkflowOfAPackWithAPersonInIt(t *testing.T) {
	dir := os.Getenv("PAWL_FIXTURES")
	if dir == "" {
		t.Skip("set PAWL_FIXTURES to a directory with promptpack/packs")
	}
	file := filepath.Join(dir, "promptpack", "packs", "sdk_examples_hitl_hitl-workflow.pack.json")
	m := (&inTurn{}).calls("process_refund", `{"order_id":"7","amount":50,"reason":"broken"}`).
		calls("workflow__transition", `{"event":"Approved","context":"Refunded 50 dollars of order 7."}`).
		says("Your 50 dollars are on their way.").says("You are welcome.")
	db := filepath.Join(t.TempDir(), "j.db")
	refunds := 0
	open := func() *pawl.Conversation {
		store, err := sqlite.Open(db)
		if err != nil {
			t.Fatal(err)
		}
		c, err := pawl.OpenWorkflow(file, pawl.WithModel(m), pawl.WithJournal(store), pawl.WithSession("s"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = c.Close(), store.Close() })
		c.OnToolAsync("process_refund", func(map[string]any) pawl.Pending { return pawl.Pending{Reason: "money", Message: "Refund?"} }, func(args map[string]any) (any, error) {
			refunds++
			return map[string]any{"refunded": args["amount"]}, nil
		})
		return c
	}
	c := open()
	stands(t, c, "triage", map[string]int{"triage": 1}, "", "Approved")
	resp := send(t, c, "My order 7 is broken.")
	if resp.Status != agent.StatusInterrupted || len(resp.Pending) != 1 || resp.Pending[0].Prompt != "Refund?" || refunds != 0 {
		t.Fatalf("%s %+v, %d refunds", resp.Status, resp.Pending, refunds)
	}
	stands(t, c, "triage", map[string]int{"triage": 1}, "", "Approved")

	again := open() // another process
	if err := again.ResolveTool(t.Context(), resp.Pending[0].ID); err != nil {
		t.Fatal(err)
	}
	resp, err := again.Continue(t.Context())
	if err != nil || resp.Text() != "Your 50 dollars are on their way." || refunds != 1 {
		t.Fatalf("%v, %d refunds, %v", resp, refunds, err)
	}
	at := stands(t, again, "confirmation", map[string]int{"triage": 1, "confirmation": 1}, pawl.WorkflowCompleted)
	if at.ToolCalls != 1 || at.Context != "Refunded 50 dollars of order 7." || at.Started.IsZero() {
		t.Errorf("%+v", at)
	}
	reqs := m.asked()
	if len(reqs) != 3 || !strings.HasPrefix(reqs[1].System, "You are a refund triage agent") || !strings.HasSuffix(reqs[2].System, "What the triage agent handed over: Refunded 50 dollars of order 7.") {
		t.Errorf("%q", m.systems())
	}
	wantLines(t, offered(reqs[0]), "process_refund", "workflow__transition")
	wantLines(t, offered(reqs[2]))
	wantLines(t, transcript(t, again),
		"user: My order 7 is broken.", `assistant: [process_refund {"order_id":"7","amount":50,"reason":"broken"}]`, `tool: [process_refund = {"refunded":50}]`,
		`assistant: [workflow__transition {"event":"Approved","context":"Refunded 50 dollars of order 7."}]`, "tool: [workflow__transition = The event is noted.]",
		"user: The event Approved moved this conversation on from the state triage to the state confirmation.\nWhat was said with it: Refunded 50 dollars of order 7.\nGo on from here, and answer the person.",
		"assistant: Your 50 dollars are on their way.")

	// Whoever says more is answered by the last state.
	if resp := send(t, again, "Thanks!"); resp.Text() != "You are welcome." || m.systems()[3] != m.systems()[2] {
		t.Errorf("%q", resp.Text())
	}
	if err := again.Transition(t.Context(), "Approved", ""); !errdefs.Conflict.Is(err) {
		t.Errorf("an event after the end: %v", err)
	}
}

// The program moves it on, and the model does; a turn is answered by the state that it is in.
func TestAWorkflowGoesByEvents(t *testing.T) {
	m := (&inTurn{}).says("one").says("two").moves("Back").says("three").moves("Go").moves("Done").says("four")
	c := flows(t, workflowOf(t, circle), m)
	if resp := send(t, c, "1"); resp.Text() != "one" {
		t.Error(resp.Text())
	}
	stands(t, c, "a", map[string]int{"a": 1}, "", "Go")
	before := transcript(t, c)
	for event, class := range map[string]*errdefs.Class{"Done": errdefs.Validation, "": errdefs.Validation, "go": errdefs.Validation} {
		if err := c.Transition(t.Context(), event, ""); !class.Is(err) || !strings.Contains(err.Error(), "want one of Go") {
			t.Errorf("%q: %v", event, err)
		}
	}
	var moved []string
	sub := c.Subscribe(t.Context(), event.Policy{Buffer: 100, Full: event.DropNewest}, pawl.EventTransition, pawl.EventSend)
	if err := c.Transition(t.Context(), "Go", "hurry"); err != nil {
		t.Fatal(err)
	}
	stands(t, c, "b", map[string]int{"a": 1, "b": 1}, "", "Back", "Done")
	wantLines(t, transcript(t, c), before...) // an event from outside is no message
	send(t, c, "2")
	resp := send(t, c, "3") // back to a
	if resp.Text() != "three" {
		t.Error(resp.Text())
	}
	send(t, c, "4")
	stands(t, c, "c", map[string]int{"a": 2, "b": 2, "c": 1}, pawl.WorkflowCompleted)
	wantLines(t, m.systems(), "I am a. ", "I am b. hurry", "I am b. hurry", "I am a. about Back", "I am a. about Back", "I am b. about Go", "I am c. about Done")
	reqs := m.asked()
	wantLines(t, offered(reqs[0]), "look", "workflow__transition")
	wantLines(t, offered(reqs[6]), "look")
	if about := reqs[0].Tools[1].Description; !strings.HasSuffix(about, "The events:\n- Go: to b: Works") {
		t.Errorf("%q", about)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for e := range sub.Events() {
		moved = append(moved, fmt.Sprint(e.Type, " ", e.Data["from"], " ", e.Data["event"], " ", e.Data["to"]))
	}
	const sent = "send <nil> <nil> <nil>" // of an event from outside nobody said anything
	wantLines(t, moved, "transition a Go b", sent, sent, "transition b Back a", sent, "transition a Go b", "transition b Done c")
}

// Who leads it on is what orchestration says.
func TestWhoLeadsAWorkflowOn(t *testing.T) {
	for orchestration, c := range map[string]struct{ model, program bool }{"": {true, true}, "hybrid": {true, true}, "internal": {true, false}, "external": {false, true}} {
		state := `"on_event": {"Go": "b"}`
		if orchestration != "" {
			state += fmt.Sprintf(`, "orchestration": %q`, orchestration)
		}
		m := (&inTurn{}).says("one")
		conv := flows(t, workflowOf(t, `{"version": 1, "entry": "a", "states": {"a": {"prompt_task": "a", `+state+`}, "b": {"prompt_task": "b"}}}`), m)
		send(t, conv, "1")
		if got := slices.Contains(offered(m.asked()[0]), "workflow__transition"); got != c.model {
			t.Errorf("%q: the model has the tool: %v", orchestration, got)
		}
		if err := conv.Transition(t.Context(), "Go", ""); (err == nil) != c.program || err != nil && !errdefs.Validation.Is(err) {
			t.Errorf("%q: %v", orchestration, err)
		}
	}
}

// A state is entered as often as it may be; then the workflow goes where the pack says, or ends.
func TestVisitsAndBudgetsBoundAWorkflow(t *testing.T) {
	bounded := func(b, engine string) string {
		return `{"version": 1, "entry": "a", "states": {"a": {"prompt_task": "a", "on_event": {"Go": "b"}}, "b": {"prompt_task": "b", "on_event": {"Back": "a"}` + b + `}, "c": {"prompt_task": "c"}}` + engine + `}`
	}
	for name, c := range map[string]struct {
		workflow string
		state    string
		visits   map[string]int
		ended    pawl.WorkflowEnd
		says     string
		calls    int
	}{
		"another state": {bounded(`, "max_visits": 2, "on_max_visits": "c"`, ""), "c", map[string]int{"a": 3, "b": 2, "c": 1}, pawl.WorkflowCompleted, "", 6},
		"the end":       {bounded(`, "max_visits": 2`, ""), "a", map[string]int{"a": 3, "b": 2}, pawl.WorkflowExhausted, "the workflow's state b was visited 2 times", 5},
		"all visits":    {bounded("", `, "engine": {"budget": {"max_total_visits": 4}}`), "b", map[string]int{"a": 2, "b": 2}, pawl.WorkflowExhausted, "max_total_visits is 4", 4},
		"tool calls":    {bounded("", `, "engine": {"budget": {"max_tool_calls": 1}}`), "b", map[string]int{"a": 1, "b": 1}, pawl.WorkflowExhausted, "max_tool_calls is 1", 3},
	} {
		t.Run(name, func(t *testing.T) {
			m := (&inTurn{}).moves("Go").moves("Back").moves("Go").moves("Back").moves("Go").says("the end")
			if name == "tool calls" {
				m = (&inTurn{}).moves("Go").calls("look", `{}`).moves("Back")
			}
			store := journal.Memory()
			conv := flows(t, workflowOf(t, c.workflow), m, pawl.WithJournal(store), pawl.WithSession("s"))
			_, err := conv.Send(t.Context(), "1")
			if c.says == "" && err != nil || c.says != "" && (!errdefs.BudgetExceeded.Is(err) || !strings.Contains(err.Error(), c.says)) {
				t.Fatalf("%v", err)
			}
			if n := len(m.asked()); n != c.calls {
				t.Errorf("%d calls, want %d", n, c.calls)
			}
			stands(t, conv, c.state, c.visits, c.ended)
			if c.ended == pawl.WorkflowCompleted {
				return
			}
			for _, err := range []error{failed(conv.Send(t.Context(), "2")), conv.Transition(t.Context(), "Go", "")} { // it is over, and nothing is called
				if !errdefs.BudgetExceeded.Is(err) || len(m.asked()) != c.calls {
					t.Errorf("%v after %d calls", err, len(m.asked()))
				}
			}
			stands(t, flows(t, workflowOf(t, c.workflow), m, pawl.WithJournal(store), pawl.WithSession("s")), c.state, c.visits, c.ended)
		})
	}
}

func failed(_ *pawl.Response, err error) error { return err }

func TestAWorkflowHasSoMuchTime(t *testing.T) {
	file := workflowOf(t, strings.Replace(circle, `"states"`, `"engine": {"budget": {"max_wall_time_sec": 60}}, "states"`, 1))
	synctest.Test(t, func(t *testing.T) {
		c := flows(t, file, (&inTurn{}).says("one").says("two"))
		send(t, c, "1")
		time.Sleep(59 * time.Second)
		if err := c.Transition(t.Context(), "Go", ""); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if err := c.Transition(t.Context(), "Back", ""); !errdefs.BudgetExceeded.Is(err) || !strings.Contains(err.Error(), "max_wall_time_sec is 60") {
			t.Error(err)
		}
		stands(t, c, "b", map[string]int{"a": 1, "b": 1}, pawl.WorkflowExhausted)
	})
}

// What a state keeps for those behind it stands in their prompts.
func TestArtifactsOfAWorkflow(t *testing.T) {
	file := workflowOf(t, `{"version": 1, "entry": "a", "states": {
		"a": {"prompt_task": "a", "on_event": {"Go": "b"}, "artifacts": {"log": {"type": "text/plain", "description": "What was done", "mode": "append"}, "plan": {"type": "application/json"}}},
		"b": {"prompt_task": "b", "on_event": {"Back": "a"}, "artifacts": {"log": {"type": "text/plain", "mode": "append"}}}}}`)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(b), "{{workflow_context}}", "log={{artifacts.log}} plan={{artifacts.plan}}")), 0o600); err != nil {
		t.Fatal(err)
	}
	m := (&inTurn{}).calls("workflow__set_artifact", `{"name":"plan","value":"{"}`).calls("workflow__set_artifact", `{"name":"plan","value":"{\"n\":1}"}`).calls("workflow__set_artifact", `{"name":"other","value":"x"}`).
		calls("workflow__set_artifact", `{"name":"log","value":"began"}`).moves("Go").calls("workflow__set_artifact", `{"name":"plan","value":"{}"}`).calls("workflow__set_artifact", `{"name":"log","value":"went on"}`).says("done").
		calls("workflow__set_artifact", `{"name":"log","value":"and on"}`).moves("Back").says("again")
	c := flows(t, file, m)
	resp := send(t, c, "1")
	want := map[string]string{"log": "began\nwent on", "plan": `{"n":1}`}
	if at := stands(t, c, "b", map[string]int{"a": 1, "b": 1}, "", "Back"); !maps.Equal(at.Artifacts, want) || at.ToolCalls != 0 {
		t.Errorf("%+v", at)
	}
	var results []string
	for _, msg := range resp.Messages {
		for r := range message.Of[message.ToolResult](msg) {
			results = append(results, fmt.Sprint(r.IsError, " ", strings.SplitN(r.Content, "\n", 2)[0]))
		}
	}
	if len(results) != 7 || results[0] != "true the value of plan is no JSON, and it is application/json" || results[1] != "false It is kept." || !strings.HasPrefix(results[2], "true ") || !strings.HasPrefix(results[5], "true ") {
		t.Errorf("%q", results)
	}
	send(t, c, "2")
	s := m.systems()
	wantLines(t, []string{s[0], s[5], s[8], s[10]}, "I am a. log= plan=", `I am b. log=began plan={"n":1}`, "I am b. log=began\nwent on plan={\"n\":1}", "I am a. log=began\nwent on\nand on plan={\"n\":1}")
}

// A transient state begins with what the user said in this turn, and a persistent one with all of it.
func TestATransientStateBeginsAnew(t *testing.T) {
	m := (&inTurn{}).says("one").moves("Go").says("two").says("three").moves("Back").says("four").says("five")
	c := flows(t, workflowOf(t, strings.Replace(circle, `"prompt_task": "b"`, `"prompt_task": "b", "persistence": "transient"`, 1)), m)
	send(t, c, "1")
	resp := send(t, c, "2")
	const toB = "user: The event Go moved this conversation on from the state a to the state b.\nWhat was said with it: about Go\nGo on from here, and answer the person."
	wantLines(t, transcript(t, c), "user: 2", toB, "assistant: two")
	if n := m.asked()[2].Messages.Len(); n != 2 {
		t.Errorf("the state begins with %d messages", n)
	}
	if len(resp.Messages) < 3 || resp.Text() != "two" {
		t.Errorf("%v", resp.Messages)
	}
	send(t, c, "3")
	wantLines(t, transcript(t, c), "user: 2", toB, "assistant: two", "user: 3", "assistant: three")
	send(t, c, "4")
	if n := len(transcript(t, c)); n != 10 { // what stood there, with the call, its result, and the new state
		t.Errorf("a persistent state begins with %d messages: %q", n, transcript(t, c))
	}
	if err := c.Transition(t.Context(), "Go", ""); err != nil {
		t.Fatal(err)
	}
	wantLines(t, transcript(t, c))
	send(t, c, "5")
	wantLines(t, transcript(t, c), "user: 5", "assistant: five")
}

// What is missing in a state that the turn may come to is told before any call.
func TestAWorkflowFailsBeforeTheFirstCall(t *testing.T) {
	m := (&inTurn{}).says("one")
	c, err := pawl.OpenWorkflow(workflowOf(t, circle), pawl.WithModel(m))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Send(t.Context(), "1"); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "nobody answers the tools of prompt b: look") || len(m.asked()) > 0 {
		t.Error(err)
	}
	if _, err := pawl.OpenWorkflow(packOf(t, plain), pawl.WithModel(m)); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "has no workflow") {
		t.Error(err)
	}
	plainly := converse(t, packOf(t, plain), m)
	if _, err := plainly.Workflow(t.Context()); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
	if err := plainly.Transition(t.Context(), "Go", ""); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
	if _, err := pawl.ResumeWorkflow(t.Context(), "nobody", workflowOf(t, circle), pawl.WithModel(m), pawl.WithJournal(journal.Memory())); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
}

// A turn that failed behind a transition leaves the workflow where it came to, and one that was cancelled before that was looked at is moved on by the next.
func TestNoTransitionIsLost(t *testing.T) {
	m := (&inTurn{}).moves("Go")
	c := flows(t, workflowOf(t, circle), m)
	if _, err := c.Send(t.Context(), "1"); err == nil { // b has no reply
		t.Fatal("the turn did not fail")
	}
	stands(t, c, "b", map[string]int{"a": 1, "b": 1}, "", "Back", "Done")
	m.says("").says("two") // the first one is the call that failed
	if resp := send(t, c, "2"); resp.Text() != "two" || m.systems()[2] != "I am b. about Go" {
		t.Errorf("%q", m.systems())
	}
}

// Killed at every entry that is written, the workflow comes to the same, and each tool is used once.
func TestAWorkflowKilledAnywhereGoesOn(t *testing.T) {
	file := workflowOf(t, strings.Replace(circle, `"on_event": {"Go": "b"}`, `"on_event": {"Go": "b"}, "artifacts": {"log": {"type": "text/plain", "mode": "append"}}`, 1))
	play := func(store journal.Store) (c *pawl.Conversation, m *inTurn, looks *int) {
		m, looks = &inTurn{}, new(int)
		c = flows(t, file, atTranscript{m}, pawl.WithJournal(store), pawl.WithSession("s"))
		c.OnTool("look", func(map[string]any) (any, error) { *looks++; return "seen", nil })
		return c, m, looks
	}
	c, _, looks := play(journal.Memory())
	resp := send(t, c, "1")
	want, end := transcript(t, c), stands(t, c, "c", map[string]int{"a": 2, "b": 2, "c": 1}, pawl.WorkflowCompleted)
	if *looks != 1 || end.Artifacts["log"] != "x\nx" {
		t.Fatalf("%d looks, %+v", *looks, end)
	}
	_ = resp
	points := 0
	for n := 1; ; n++ {
		mem := journal.Memory()
		dies := &cutOff{Store: mem, left: n}
		c, _, looks := play(dies)
		_, err := c.Send(t.Context(), "1")
		if err == nil {
			break
		}
		points++
		if !errors.Is(err, errDied) {
			t.Fatalf("point %d: %v", n, err)
		}
		before := *looks
		again, _, more := play(mem)
		if _, err := again.Continue(t.Context()); errdefs.NotFound.Is(err) { // nothing was on record
			_, err = again.Send(t.Context(), "1")
			if err != nil {
				t.Fatalf("point %d: %v", n, err)
			}
		} else if err != nil {
			t.Fatalf("point %d: %v", n, err)
		}
		now := stands(t, again, "c", map[string]int{"a": 2, "b": 2, "c": 1}, pawl.WorkflowCompleted)
		now.Started = end.Started
		if diff := cmp.Diff(end, now); diff != "" {
			t.Errorf("point %d: %s", n, diff)
		}
		got := transcript(t, again)
		for i := range got { // a call whose end is not known is not run again
			if strings.Contains(got[i], "It is not known") || strings.Contains(got[i], "unknown") {
				got[i] = "tool: [look = seen]"
			}
		}
		wantLines(t, got, want...)
		if before+*more > 1 {
			t.Errorf("point %d: it looked %d times", n, before+*more)
		}
	}
	if points < 20 {
		t.Errorf("only %d points", points)
	}
}

// atTranscript says what the transcript asks for: look, then round, then the end.
type atTranscript struct{ *inTurn }

func (m atTranscript) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	n := 0
	for _, msg := range req.Messages.All() {
		n += len(msg.ToolCalls())
	}
	call := func(name, input string) (*model.Response, error) {
		return &model.Response{Message: message.Assistant("", message.ToolCall{ID: fmt.Sprint("c", n), Name: name, Input: input}), Stop: model.StopTools}, nil
	}
	script := []string{"artifact", "Go", "look", "Back", "artifact", "Go", "Done"}
	switch {
	case n >= len(script):
		return &model.Response{Message: message.Assistant("done"), Stop: model.StopEnd}, nil
	case script[n] == "look":
		return call("look", `{}`)
	case script[n] == "artifact":
		return call("workflow__set_artifact", `{"name":"log","value":"x"}`)
	}
	return call("workflow__transition", fmt.Sprintf(`{"event":%q}`, script[n]))
}

func (m atTranscript) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := m.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Text: r.Message.Text(), Final: true, Response: r})
}

var errDied = errors.New("the store died")

// cutOff is a store that fails for good after some appends.
type cutOff struct {
	journal.Store
	mu   sync.Mutex
	left int
}

func (d *cutOff) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left--; d.left < 0 {
		return errDied
	}
	return d.Store.Append(ctx, session, after, entries...)
}

// A fork of a conversation has the workflow as it stood, and goes its own way.
func TestAForkHasTheWorkflowAsItStood(t *testing.T) {
	m := (&inTurn{}).moves("Go").says("one")
	c := flows(t, workflowOf(t, circle), m)
	send(t, c, "1")
	fork, err := c.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fork.Close() }()
	if err := fork.Transition(t.Context(), "Done", ""); err != nil {
		t.Fatal(err)
	}
	stands(t, fork, "c", map[string]int{"a": 1, "b": 1, "c": 1}, "")
	stands(t, c, "b", map[string]int{"a": 1, "b": 1}, "", "Back", "Done")
	if err := c.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLines(t, transcript(t, c))
	stands(t, c, "b", map[string]int{"a": 1, "b": 1}, "", "Back", "Done") // Clear empties the transcript
}

// A state has the skills of its scope, and what a skill of another one allows does not bind it.
func TestAStateHasTheSkillsOfItsScope(t *testing.T) {
	file := workflowOf(t, `{"version": 1, "entry": "a", "states": {
		"a": {"prompt_task": "a", "on_event": {"Go": "b"}, "skills": "./skills/refunds"},
		"b": {"prompt_task": "b", "on_event": {"Go": "c"}, "skills": "skills/sizes/SKILL.md"},
		"c": {"prompt_task": "c", "on_event": {"Go": "d"}, "skills": "none"},
		"d": {"prompt_task": "a"}}}`, `"skills": ["./skills", {"name": "tone", "description": "About tone.", "instructions": "Be kind."}],`)
	for name, text := range merged(skillMD("refunds", "allowed-tools: workflow__transition\n", "How to refund."), skillMD("sizes", "", "How to measure.")) {
		at := filepath.Join(filepath.Dir(file), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := (&inTurn{}).calls("skill", `{"name":"sizes"}`).calls("skill", `{"name":"refunds"}`).calls("look", `{}`).moves("Go").calls("look", `{}`).moves("Go").moves("Go").says("done")
	c := flows(t, file, m)
	resp := send(t, c, "1")
	var got []string
	for _, msg := range resp.Messages {
		for r := range message.Of[message.ToolResult](msg) {
			got = append(got, fmt.Sprint(r.Name, " ", r.IsError))
		}
	}
	wantLines(t, got, "skill true", "skill false", "look true", "workflow__transition false", "look false", "workflow__transition false", "workflow__transition false")
	lists := func(system string) (names []string) {
		for _, name := range []string{"refunds", "sizes", "tone"} {
			if strings.Contains(system, "About "+name) {
				names = append(names, name)
			}
		}
		return names
	}
	s := m.systems()
	wantLines(t, lists(s[0]), "refunds")
	wantLines(t, lists(s[4]), "sizes")
	wantLines(t, lists(s[6]))
	wantLines(t, lists(s[7]), "refunds", "sizes", "tone")
	wantLines(t, offered(m.asked()[6]), "look", "workflow__transition")

	wrong := workflowOf(t, `{"version": 1, "entry": "a", "states": {"a": {"prompt_task": "a", "skills": "./nowhere"}}}`, `"skills": [{"name": "tone", "description": "About tone.", "instructions": "Be kind."}],`)
	if _, err := pawl.OpenWorkflow(wrong, pawl.WithModel(m)); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "./nowhere") {
		t.Error(err)
	}
}
