package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

// uiEvent is an event of AG-UI.
type uiEvent struct {
	Type, Message, Code, Name, Role     string
	ThreadID                            string `json:"threadId"`
	RunID                               string `json:"runId"`
	ProtocolVersion                     string
	MessageID, ToolCallID, ToolCallName string
	ParentMessageID, StepName           string
	Delta, Value                        json.RawMessage
	Content                             string
	Snapshot                            json.RawMessage
	Messages                            []struct{ ID, Role, Content string }
	Outcome                             *struct {
		Type       string
		Interrupts []struct {
			ID, Reason, Message, ToolCallID string
			Schema                          json.RawMessage `json:"responseSchema"`
		}
	}
	Usage []map[string]any
}

func (e uiEvent) String() string {
	s := e.Type
	for _, x := range []string{e.StepName, e.MessageID, e.Role, e.ToolCallID, e.ToolCallName, string(e.Delta), e.Content, string(e.Snapshot), e.Name, e.Code} {
		if x != "" {
			s += " " + x
		}
	}
	if e.Outcome != nil {
		s += " " + e.Outcome.Type
	}
	return s
}

// ui asks for a run, and gives its events.
func (p *place) ui(body string) (all []uiEvent) {
	p.t.Helper()
	res := p.ask(p.t.Context(), "POST", "/ag-ui", body, "Accept", "text/event-stream")
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %d %v %s", body, res.StatusCode, err, b)
	}
	for event := range strings.SplitSeq(string(b), "\n\n") {
		if data, ok := strings.CutPrefix(event, "data: "); ok {
			var e uiEvent
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				p.t.Fatalf("%v: %s", err, data)
			}
			all = append(all, e)
		}
	}
	orderly(p.t, all)
	return all
}

// orderly holds events to the protocol's order: what begins ends, and the run's beginning and end stand around the rest.
func orderly(t *testing.T, all []uiEvent) {
	t.Helper()
	open := map[string]bool{}
	for i, e := range all {
		kind, what, _ := strings.Cut(e.Type, "_")
		key := kind + e.MessageID + e.ToolCallID + e.StepName
		switch {
		case (i == 0) != (e.Type == "RUN_STARTED"), (i == len(all)-1) != (e.Type == "RUN_FINISHED" || e.Type == "RUN_ERROR"):
			t.Errorf("event %d of %d is %s", i, len(all), e)
		case strings.HasSuffix(what, "RESULT"), kind == "RUN", kind == "CUSTOM", kind == "STATE", kind == "MESSAGES":
		case kind == "REASONING":
			key += strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(what, "START"), "END"), "CONTENT")
			fallthrough
		default:
			begins := strings.HasSuffix(what, "START") || strings.HasSuffix(what, "STARTED")
			if open[key] == begins {
				t.Errorf("event %d is out of its order: %s", i, e)
			}
			open[key] = begins || strings.HasSuffix(what, "CONTENT") || strings.HasSuffix(what, "ARGS")
		}
	}
	for key, on := range open {
		if on {
			t.Errorf("%s does not end", key)
		}
	}
}

func lines(all []uiEvent) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

func input(thread, run, more string) string {
	return fmt.Sprintf(`{"threadId":%q,"runId":%q,"protocolVersion":"1.0","messages":[{"id":"u1","role":"user","content":"Look."}],"tools":[],"context":[],"forwardedProps":{}%s}`, thread, run, more)
}

func TestARunIsToldInAGUI(t *testing.T) {
	m := scripted.New(
		scripted.Turn{Reasoning: "So then.", Text: "Let me.", Calls: []scripted.Call{{ID: "c1", Name: "look", Input: `{}`}}, Usage: model.Usage{Input: 10, CacheRead: 90, Output: 5, Reasoning: 3}},
		scripted.Turn{Text: "There.", Usage: model.Usage{Input: 20, Output: 6}},
	)
	p := serves(t, journal.Memory(), m, serve.Options{}, look())
	all := p.ui(input("t/1", "r1", ""))
	want := `RUN_STARTED
STEP_STARTED model/1
REASONING_START r1/model/1/reasoning
REASONING_MESSAGE_START r1/model/1/reasoning reasoning
REASONING_MESSAGE_CONTENT r1/model/1/reasoning "So "
REASONING_MESSAGE_CONTENT r1/model/1/reasoning "then."
REASONING_MESSAGE_END r1/model/1/reasoning
REASONING_END r1/model/1/reasoning
TEXT_MESSAGE_START r1/model/1 assistant
TEXT_MESSAGE_CONTENT r1/model/1 "Let "
TEXT_MESSAGE_CONTENT r1/model/1 "me."
TEXT_MESSAGE_END r1/model/1
TOOL_CALL_START c1 look
TOOL_CALL_ARGS c1 "{}"
TOOL_CALL_END c1
STEP_FINISHED model/1
TOOL_CALL_RESULT r1/result/c1 tool c1 there
STEP_STARTED model/2
TEXT_MESSAGE_START r1/model/2 assistant
TEXT_MESSAGE_CONTENT r1/model/2 "There."
TEXT_MESSAGE_END r1/model/2
STEP_FINISHED model/2
RUN_FINISHED success
`
	if d := cmp.Diff(want, lines(all)); d != "" {
		t.Error(d)
	}
	if s := all[0]; s.ThreadID != "t/1" || s.RunID != "r1" || s.ProtocolVersion != "1.0" {
		t.Errorf("%+v", s)
	}
	if u := all[len(all)-1].Usage; len(u) != 1 || u[0]["inputTokens"] != 120.0 || u[0]["outputTokens"] != 11.0 || u[0]["totalTokens"] != 131.0 || u[0]["cachedInputTokens"] != 90.0 || u[0]["reasoningTokens"] != 3.0 {
		t.Errorf("%v", u)
	}
	if again := p.ui(input("t/1", "r1", "")); texts(again) != texts(all) || again[len(again)-1].Outcome.Type != "success" {
		t.Errorf("asked for again it is\n%s", lines(again))
	}
	log, err := journal.Open(t.Context(), p.store, "t/1")
	if err != nil || log.State().Spent.Steps != 2 {
		t.Errorf("it ran again: %v %v", log.State().Spent, err)
	}
}

// texts are what the messages of a run say, by their ids.
func texts(all []uiEvent) string {
	said := map[string]string{}
	var order []string
	for _, e := range all {
		switch e.Type {
		case "TEXT_MESSAGE_START":
			order = append(order, e.MessageID)
		case "TEXT_MESSAGE_CONTENT":
			var s string
			_ = json.Unmarshal(e.Delta, &s)
			said[e.MessageID] += s
		case "MESSAGES_SNAPSHOT":
			order = slices.DeleteFunc(order, func(id string) bool {
				return !slices.ContainsFunc(e.Messages, func(m struct{ ID, Role, Content string }) bool { return m.ID == id })
			})
		}
	}
	var b strings.Builder
	for _, id := range order {
		fmt.Fprintf(&b, "%s: %s\n", id, said[id])
	}
	return b.String()
}

// A thread that is on record has what was said; one that isn't begins with what the client says was.
func TestAThreadIsASession(t *testing.T) {
	m := &asked{Model: scripted.New(scripted.Text("One."), scripted.Text("Two."), scripted.Text("Three."), scripted.Text("Four."))}
	p := serves(t, journal.Memory(), m, serve.Options{})
	body := func(run string) string {
		return fmt.Sprintf(`{"threadId":"t","runId":%q,"context":[{"description":"The page","value":"home"}],"messages":[
			{"id":"s","role":"system","content":"Be brief."},
			{"id":"1","role":"user","content":[{"type":"text","text":"What?"},{"type":"image","source":{"type":"data","value":"iVBORw==","mimeType":"image/png"}}]},
			{"id":"2","role":"reasoning","content":"Hm."},{"id":"3","role":"activity","activityType":"x","content":{}},
			{"id":"4","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"see","arguments":"{}"}}]},
			{"id":"5","role":"tool","toolCallId":"c","content":"a cat","error":"blurred"},
			{"id":"6","role":"user","content":"And now %s?","future":true}]}`, run, run)
	}
	p.ui(body("r1"))
	req := m.last()
	got, _ := json.MarshalIndent(req.Messages, "", " ")
	want, _ := json.MarshalIndent(message.NewHistory(
		message.New(message.RoleUser, message.Text{Text: "What?"}, message.File{MIME: "image/png", Data: "\x89PNG"}),
		message.Assistant("", message.ToolCall{ID: "c", Name: "see", Input: "{}"}),
		message.Results(message.ToolResult{Call: "c", Name: "see", Content: "blurred\na cat", IsError: true}),
		message.User("And now r1?"),
	), "", " ")
	if d := cmp.Diff(string(want), string(got)); d != "" || req.System != "Be brief.\n\nThe page: home" {
		t.Error(req.System, d)
	}
	p.ui(body("r2"))
	var said []string
	for _, m := range m.last().Messages.All() {
		said = append(said, m.Text())
	}
	if d := cmp.Diff([]string{"What?", "", "", "And now r1?", "Two.", "And now r2?"}, said); d != "" {
		t.Error(d)
	}
}

// What was shown of an attempt that broke off is taken back: the client's messages are those that count.
func TestWhatIsVoidIsTakenBack(t *testing.T) {
	m := streams(func(_ context.Context, _ model.Request, cb model.StreamHandler) error {
		for _, r := range []model.StreamResult{{Text: "It is f"}, {Void: errors.New("cut off")}, {Text: "It was"}, {Text: " six."}, {Final: true, Response: &model.Response{Message: message.Assistant("It was six."), Stop: model.StopEnd}}} {
			if err := cb(r); err != nil {
				return err
			}
		}
		return nil
	})
	p := serves(t, journal.Memory(), m, serve.Options{})
	all := p.ui(input("t", "r", ""))
	if got, want := texts(all), "r/model/1/1: It was six.\n"; got != want {
		t.Errorf("it said %q, want %q\n%s", got, want, lines(all))
	}
	i := slices.IndexFunc(all, func(e uiEvent) bool { return e.Type == "MESSAGES_SNAPSHOT" })
	if i < 0 || len(all[i].Messages) != 1 || all[i].Messages[0].ID != "u1" {
		t.Errorf("%+v", all[i])
	}
}

func TestAnInterruptIsAnswered(t *testing.T) {
	asks := hook.Middleware{Name: "asks", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Asking("It is far."), nil }}
	seen := tool.Func("look", "Looks.", func(_ context.Context, in struct {
		At string `json:"at,omitempty"`
	},
	) (string, error) {
		return "saw " + in.At, nil
	})
	for answer, want := range map[string]string{
		`{"interruptId":"c1","status":"resolved","payload":true}`:                                    "saw ",
		`{"interruptId":"c1","status":"resolved","payload":{"approved":true,"input":{"at":"home"}}}`: "saw home",
		`{"interruptId":"c1","status":"resolved","payload":{"approved":false,"text":"Too late."}}`:   "Too late.",
		`{"interruptId":"c1","status":"cancelled"}`:                                                  "Nobody answered this",
	} {
		t.Run(answer, func(t *testing.T) {
			e, err := loop.New(loop.Config{Model: scripted.New(scripted.Turn{Text: "Let me.", Calls: []scripted.Call{{ID: "c1", Name: "look", Input: `{}`}}}, scripted.Text("So it is.")), Tools: []tool.Tool{seen}})
			if err != nil {
				t.Fatal(err)
			}
			p := open(t, serve.Of(agent.Agent{ID: "a", Hooks: []hook.Middleware{asks}}, e, journal.Memory()), serve.Options{})
			all := p.ui(input("t", "r1", ""))
			o := all[len(all)-1].Outcome
			if o == nil || o.Type != "interrupt" || len(o.Interrupts) != 1 || o.Interrupts[0].ToolCallID != "c1" || o.Interrupts[0].Reason != "tool_call" || !strings.Contains(o.Interrupts[0].Message, "It is far.") || len(o.Interrupts[0].Schema) == 0 {
				t.Fatalf("it ends with %s: %+v", lines(all), o)
			}
			if again := p.ui(input("t", "r1", "")); again[len(again)-1].Outcome.Type != "interrupt" {
				t.Errorf("asked for again it is %s", lines(again))
			}
			id := o.Interrupts[0].ID
			answer := strings.ReplaceAll(answer, `"c1"`, fmt.Sprintf("%q", id))
			p.do(http.StatusBadRequest, nil, "POST", "/ag-ui", input("t", "r2", fmt.Sprintf(`,"resume":[{"interruptId":%q,"status":"resolved","payload":{"maybe":1}}]`, id)))
			p.do(http.StatusConflict, nil, "POST", "/ag-ui", input("t", "r2", `,"resume":[{"interruptId":"nothing","status":"cancelled"}]`))
			on := p.ui(input("t", "r2", `,"resume":[`+answer+`]`))
			var result string
			for _, e := range on {
				if e.Type == "TOOL_CALL_RESULT" {
					result += e.Content
				}
			}
			if !strings.Contains(result, want) || !strings.Contains(texts(on), "So it is.") || strings.Contains(texts(on), "Let me") || on[len(on)-1].Outcome.Type != "success" || on[0].RunID != "r2" {
				t.Errorf("the result is %q, want %q\n%s", result, want, lines(on))
			}
			p.do(http.StatusConflict, nil, "POST", "/ag-ui", input("t", "r2", `,"resume":[`+answer+`]`))
		})
	}
}

// With two questions, and an answer to one, the other is asked again.
func TestWhatIsStillToBeAnsweredIsAskedAgain(t *testing.T) {
	asks := hook.Middleware{Name: "asks", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Asking(""), nil }}
	e, err := loop.New(loop.Config{Model: scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "look", Input: `{}`}, {ID: "c2", Name: "look", Input: `{}`}}}, scripted.Text("Done.")), Tools: []tool.Tool{look()}})
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, serve.Of(agent.Agent{ID: "a", Hooks: []hook.Middleware{asks}}, e, journal.Memory()), serve.Options{})
	all := p.ui(input("t", "r1", ""))
	for n := 2; n > 0; n-- {
		waits := all[len(all)-1].Outcome.Interrupts
		if len(waits) != n {
			t.Fatalf("%d wait, want %d: %s", len(waits), n, lines(all))
		}
		all = p.ui(input("t", fmt.Sprint("a", n), fmt.Sprintf(`,"resume":[{"interruptId":%q,"status":"resolved","payload":true}]`, waits[0].ID)))
	}
	if texts(all) == "" || all[len(all)-1].Outcome.Type != "success" {
		t.Error(lines(all))
	}
}

func TestAQuestionIsAnInterrupt(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(
		scripted.Calls(scripted.Call{ID: "q", Name: "ask_user", Input: `{"question":"Which colour?"}`}),
		scripted.Turn{Text: "Blue it is.", When: scripted.When{Contains: "sky blue"}},
	), serve.Options{}, askuser.New(nil))
	all := p.ui(input("t", "r1", ""))
	i := all[len(all)-1].Outcome.Interrupts[0]
	if !strings.Contains(i.Message, "Which colour?") {
		t.Errorf("%+v", i)
	}
	on := p.ui(input("t", "r2", fmt.Sprintf(`,"resume":[{"interruptId":%q,"status":"resolved","payload":"sky blue"}]`, i.ID)))
	if !strings.Contains(texts(on), "Blue it is.") {
		t.Error(lines(on))
	}
}

// The board's vars are the state: the client's to begin with, and what becomes of them.
func TestTheBoardIsTheState(t *testing.T) {
	eng := engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		if b.Var("forwardedProps") == nil || b.Var("count") != 1 {
			return nil, fmt.Errorf("the board has %v and %v", b.Var("forwardedProps"), b.Var("count"))
		}
		return b, nil
	})
	p := open(t, serve.Of(agent.Agent{ID: "a"}, eng, journal.Memory()), serve.Options{})
	body := strings.Replace(input("t", "r", `,"state":{"count":1,"old":true}`), `"forwardedProps":{}`, `"forwardedProps":{"tenant":"x"}`, 1)
	all := p.ui(body)
	if i := slices.IndexFunc(all, func(e uiEvent) bool { return e.Type == "STATE_SNAPSHOT" }); i < 0 || string(all[i].Snapshot) != `{"count":1,"old":true}` {
		t.Error(lines(all))
	}
	p.do(http.StatusBadRequest, nil, "POST", "/ag-ui", input("t2", "r", `,"state":[1]`))
}

func TestARunThatFailsOrIsCancelledEndsSoInAGUI(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(scripted.Turn{Error: &scripted.Failure{Status: 401, Message: "no key"}}), serve.Options{})
	all := p.ui(input("t", "r", ""))
	if e := all[len(all)-1]; e.Type != "RUN_ERROR" || e.Code != "unauthorized" || !strings.Contains(e.Message, "no key") {
		t.Errorf("%+v", e)
	}
	g := gated1()
	p = serves(t, journal.Memory(), scripted.New(scripted.Turn{Text: "Wait.", Calls: callOf("wait")}, scripted.Text("Done.")), serve.Options{}, g.tool)
	var canceled sync.WaitGroup
	canceled.Go(func() {
		<-g.started
		p.do(http.StatusAccepted, nil, "POST", "/v1/sessions/t/cancel", "")
	})
	all = p.ui(input("t", "r", ""))
	canceled.Wait()
	if e := all[len(all)-1]; e.Type != "RUN_FINISHED" || e.Outcome.Type != "cancelled" {
		t.Errorf("%+v", e)
	}
}

// A client that goes away can come back: the run goes on, and is told from its beginning.
func TestAClientOfAGUIComesBack(t *testing.T) {
	g := make(chan struct{})
	started := make(chan struct{}, 1)
	wait := tool.Func("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		started <- struct{}{}
		select {
		case <-g:
			return "waited", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	p := serves(t, journal.Memory(), scripted.New(scripted.Turn{Text: "Let me wait.", Calls: callOf("wait")}, scripted.Text("Done.")), serve.Options{}, wait)
	ctx, cancel := context.WithCancel(t.Context())
	res := p.ask(ctx, "POST", "/ag-ui", input("t", "r", ""))
	<-started
	cancel()
	_ = res.Body.Close()
	close(g)
	all := p.ui(input("t", "r", ""))
	if got := texts(all); !strings.Contains(got, "Let me wait.") || !strings.Contains(got, "Done.") {
		t.Errorf("%s", lines(all))
	}
}

func TestWhatAGUICantHaveIsNamed(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(scripted.Text("No.")), serve.Options{MaxBody: 10000})
	for body, want := range map[string]string{
		`{`: "", `[]`: "object", `{"threadId":"t"}`: "runId", `{"threadId":"t","runId":"r"}`: "messages", `{"threadId":7,"runId":"r","messages":[]}`: "threadId",
		`{"ThreadId":"t","threadId":"t","runId":"r","messages":[]}`:                                                                                                    "threadId",
		`{"threadId":"t","runId":"r","messages":[]}`:                                                                                                                   "messages",
		`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"assistant","content":"x"}]}`:                                                                        "messages",
		`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"king","content":"x"}]}`:                                                                             "messages[0]",
		`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":""}]}`:                                                                              "messages[0]",
		`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":[{"type":"image"}]}]}`:                                                              "content[0]",
		`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":[{"type":"image","source":{"type":"file","value":"f"}}]}]}`:                         "content[0]",
		`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":[{"type":"image","source":{"type":"url","value":"file:///x"}}]}]}`:                  "messages[0]",
		`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":[{"type":"image","source":{"type":"data","value":"%%","mimeType":"image/png"}}]}]}`: "content[0]",
		`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"tool","toolCallId":"c","content":"x"}]}`:                                                            "messages[0]",
		strings.Replace(input("t", "r", ""), `"tools":[]`, `"tools":[{"name":"x","description":"y"}]`, 1):                                                              "leave the list empty",
		input("t", "r", `,"resume":[{"interruptId":"x","status":"maybe"}]`):                                                                                            "resume[0]",
		input("t", "r", `,"forwardedProps":{"$int64":"x"}`):                                                                                                            "forwardedProps",
		`{"threadId":"t","runId":"r","messages":[],"state":` + strings.Repeat(`{"a":`, 1000):                                                                           "",
		`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"x"}],"state":` + strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 201):     "nested",
		`{"threadId":"t` + "\\u0001" + `","runId":"r","messages":[{"id":"1","role":"user","content":"x"}]}`:                                                            "control",
	} {
		var f struct {
			Error struct{ Class, Message string }
		}
		p.do(http.StatusBadRequest, &f, "POST", "/ag-ui", body)
		if f.Error.Class != "validation" || !strings.Contains(f.Error.Message, want) {
			t.Errorf("%s: %+v, want %q", clip(body), f.Error, want)
		}
	}
	p.do(http.StatusRequestEntityTooLarge, nil, "POST", "/ag-ui", input(strings.Repeat("t", 10000), "r", ""))
	p.do(http.StatusBadRequest, nil, "POST", "/ag-ui", input("t", "r", ""), "Content-Type", "")
}

func FuzzAGUI(f *testing.F) {
	e, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("Yes."))})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		input("t", "r", ""), input("t", "r", `,"state":{"a":[1,null]}`), input("t", "r", `,"resume":[{"interruptId":"x","status":"cancelled"}]`), `{}`, `[`,
		`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"assistant","toolCalls":[{"id":"c","function":{"name":"x","arguments":"{"}}]},{"id":"2","role":"user","content":[{"type":"text","text":"x"}]}]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		p := open(t, serve.Of(agent.Agent{ID: "a"}, e, journal.Memory()), serve.Options{MaxBody: 1 << 16})
		res := p.ask(t.Context(), "POST", "/ag-ui", body, "Content-Type", "application/json")
		defer func() { _ = res.Body.Close() }()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains([]int{200, 400, 409, 413}, res.StatusCode) {
			t.Errorf("%q: %d %s", body, res.StatusCode, b)
		}
	})
}
