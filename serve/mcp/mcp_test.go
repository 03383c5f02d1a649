package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/telemetry"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve/mcp"
	"github.com/pawl-dev/pawl/tool"
)

func TestTheAgentAnswersAndItsSessionGoesOn(t *testing.T) {
	p := newPlace(t, noProject(nil, ""), mcp.Options{})
	w := p.wire(t.Context())
	w.hello(`{}`)
	w.call(1, "ask", `{"prompt":"hi","session":"s1"}`, `{"progressToken":"p"}`)
	if m := w.next("notifications/progress"); !strings.Contains(m["params"].(map[string]any)["message"].(string), "in session s1") {
		t.Error(m)
	}
	w.next(`"message":"step 1"`)
	res := w.result(1)
	got := structured(t, res)
	if text(res) != "Hello there." || got["session"] != "s1" || got["status"] != "completed" || got["run"] == "" || got["text"] != "Hello there." || got["usage"].(map[string]any)["output_tokens"] == nil {
		t.Error(res)
	}
	w.call(2, "ask", `{"prompt":"and?","session":"s1"}`)
	if res := w.result(2); text(res) != "Again." {
		t.Error(res)
	}
	if st := p.state("s1"); st.Messages.Len() != 4 || st.Status != "completed" {
		t.Errorf("%d messages, %s", st.Messages.Len(), st.Status)
	}
	w.call(3, "ask", `{"prompt":"new"}`) // the script's first again: it is another session
	if res := w.result(3); text(res) != "Hello there." || structured(t, res)["session"] == "s1" {
		t.Error(res)
	}
	w.send(`{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"pawl://session/s1"}}`)
	if res := w.result(4); !strings.Contains(mustJSON(res), "user: and?") {
		t.Error(res)
	}
}

func mustJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// The gates of a model's calls are those of a client's: what a rule denies, a hook asks about or a schema refuses does not run, and all of it is on record.
func TestACallOfAToolIsJudgedAndOnRecordAsAModelsIs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("the text"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, pawl.Options{ProjectRoot: dir, Permissions: permission.Config{Allow: []string{"Write(other*)"}, Deny: []string{"Write(secret*)"}, Ask: []string{"Write(asked*)"}}}, mcp.Options{Tools: mcp.All})
	w := p.wire(t.Context())
	w.hello(`{}`)
	w.call(1, "read", `{"file_path":"a.txt"}`)
	res := w.result(1)
	meta := res["_meta"].(map[string]any)
	if !strings.Contains(text(res), "the text") || res["isError"] == true || meta["pawl/status"] != "completed" {
		t.Error(res)
	}
	st := p.state(meta["pawl/session"].(string))
	if st.Messages.Len() != 3 || st.Messages.At(1).ToolCalls()[0].Name != "read" {
		t.Error("not on record:", st.Messages.Len())
	}
	w.call(2, "write", `{"file_path":"secret.txt","content":"x"}`)
	if res := w.result(2); res["isError"] != true || !strings.Contains(text(res), "secret") {
		t.Error("a denied call:", res)
	}
	w.call(3, "write", `{"file_path":7}`)
	if res := w.result(3); res["isError"] != true {
		t.Error("wrong input:", res)
	}
	w.call(4, "write", `{"file_path":"asked.txt","content":"x"}`)
	res = w.result(4)
	if !strings.Contains(text(res), "waits for a person") || res["isError"] == true {
		t.Error("a call that is asked about:", res)
	}
	session := res["_meta"].(map[string]any)["pawl/session"].(string)
	for _, name := range []string{"secret.txt", "asked.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Error(name, "was written")
		}
	}
	pending, err := agent.Pending(t.Context(), p.store, session)
	if err != nil || len(pending) != 1 {
		t.Fatal(pending, err)
	}
	w.call(5, "answer", `{"session":"`+session+`","call_id":"`+pending[0].ID+`","approve":true}`)
	if res := w.result(5); res["isError"] == true || !strings.Contains(strings.ToLower(text(res)), "wrote") && text(res) == "" {
		t.Error(res)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "asked.txt")); err != nil || string(b) != "x" {
		t.Error(string(b), err)
	}
	if _, err := p.rt.Replay(t.Context(), session); err != nil {
		t.Error("replay:", err)
	}
}

func TestWhichToolsAreOffered(t *testing.T) {
	for name, c := range map[string]struct {
		tools    func(tool.Definition) bool
		has, not []string
	}{
		"none": {nil, []string{"ask", "answer"}, []string{"read", "bash"}},
		"read": {mcp.ReadOnly, []string{"ask", "read", "grep"}, []string{"bash", "write", "edit"}},
		"all":  {mcp.All, []string{"ask", "read", "bash", "write"}, []string{"bash_output"}},
	} {
		p := newPlace(t, pawl.Options{}, mcp.Options{Tools: c.tools})
		list, err := p.connect(nil).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]*sdk.Tool{}
		for _, d := range list.Tools {
			got[d.Name] = d
		}
		for _, n := range c.has {
			if got[n] == nil {
				t.Errorf("%s: %s is not offered", name, n)
			}
		}
		for _, n := range c.not {
			if got[n] != nil {
				t.Errorf("%s: %s is offered", name, n)
			}
		}
		if d := got["read"]; d != nil && (!d.Annotations.ReadOnlyHint || !strings.Contains(mustJSON(d.InputSchema), "file_path")) {
			t.Error(mustJSON(d))
		}
		if d := got["write"]; d != nil && d.Annotations.ReadOnlyHint {
			t.Error(mustJSON(d))
		}
	}
}

func asks(idempotent bool, ran *atomic.Int64) tool.Tool {
	return given{tool.Definition{Annotations: tool.Annotations{RequiresApproval: true, Idempotent: idempotent}, Tool: give("pay", `{"type":"object","properties":{"sum":{"type":"integer"}}}`, nil).Definition().Tool}, func(context.Context, json.RawMessage) (tool.Result, error) {
		ran.Add(1)
		return tool.Result{Content: "paid"}, nil
	}}
}

// By each way that the protocol has for it: a request of the server's, and, from 2026-07-28 on, a result that the client answers by calling again.
func TestAPersonIsAskedByElicitation(t *testing.T) {
	for name, newest := range map[string]bool{"while the call goes on": false, "by calling again": true} {
		t.Run(name, func(t *testing.T) {
			for _, approve := range []bool{true, false} {
				ran := new(atomic.Int64)
				model := scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "pay", Input: `{"sum":5}`}}}, scripted.Text("Done."))
				p := newPlace(t, noProject(model, "", asks(false, ran)), mcp.Options{Tools: mcp.All})
				var asked []string
				o := &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					asked = append(asked, req.Params.Message)
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": approve, "reason": "too dear"}}, nil
				}}
				c := p.connectAs(o, newest)
				for _, call := range []*sdk.CallToolParams{{Name: "ask", Arguments: map[string]any{"prompt": "pay", "session": "s"}}, {Name: "pay", Arguments: map[string]any{"sum": 5}}} {
					ran.Store(0)
					asked = nil
					res, err := c.CallTool(t.Context(), call)
					if err != nil {
						t.Fatal(err)
					}
					if len(asked) != 1 || !strings.Contains(asked[0], `pay {"sum":5}`) {
						t.Errorf("%s: asked %q: %s", call.Name, asked, mustJSON(res))
					}
					if (ran.Load() == 1) != approve || ran.Load() > 1 {
						t.Errorf("%s: approved %v, and it ran %d times", call.Name, approve, ran.Load())
					}
					if !approve && call.Name == "pay" && (!res.IsError || !strings.Contains(mustJSON(res), "too dear")) {
						t.Error(mustJSON(res))
					}
				}
			}
		})
	}
}

// A person who closes the question without an answer is not asked over and over: the call says what waits, and it still waits.
func TestAQuestionThatIsDismissedIsPutOnce(t *testing.T) {
	for name, newest := range map[string]bool{"while the call goes on": false, "by calling again": true} {
		t.Run(name, func(t *testing.T) {
			ran := new(atomic.Int64)
			model := scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "pay", Input: `{"sum":5}`}}}, scripted.Text("Done."))
			p := newPlace(t, noProject(model, "", asks(false, ran)), mcp.Options{})
			asked := 0
			c := p.connectAs(&sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				asked++
				return &sdk.ElicitResult{Action: "cancel"}, nil
			}}, newest)
			res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{"prompt": "pay", "session": "s"}})
			if err != nil || asked != 1 {
				t.Fatalf("asked %d times: %s %v", asked, mustJSON(res), err)
			}
			if got := mustJSON(res); !strings.Contains(got, "waits for a person") || !strings.Contains(got, `"status":"interrupted"`) {
				t.Error(got)
			}
			if waits, err := agent.Pending(t.Context(), p.store, "s"); err != nil || len(waits) != 1 || ran.Load() != 0 {
				t.Error(waits, err, ran.Load())
			}
		})
	}
}

// Without elicitation, a lost client among them, the call says that it waits; answers come by the tool, or from anywhere.
func TestWhatNobodyIsAskedAboutWaits(t *testing.T) {
	ran := new(atomic.Int64)
	model := scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "pay", Input: `{"sum":5}`}}}, scripted.Text("Done."), scripted.Turn{Calls: []scripted.Call{{ID: "c2", Name: "pay", Input: `{"sum":6}`}}}, scripted.Text("Done, too."))
	p := newPlace(t, noProject(model, "", asks(false, ran)), mcp.Options{})
	w := p.wire(t.Context())
	w.hello(`{}`)
	w.call(1, "ask", `{"prompt":"pay","session":"s"}`)
	got := structured(t, w.result(1))
	pending, _ := got["pending"].([]any)
	if got["status"] != "interrupted" || len(pending) != 1 || pending[0].(map[string]any)["name"] != "pay" {
		t.Fatal(got)
	}
	id := pending[0].(map[string]any)["call_id"].(string)
	for i, wrong := range []string{`{"session":"s","call_id":"nobody"}`, `{"session":"s","call_id":"` + id + `"}`, `{"session":"","call_id":"x"}`, `{"session":"other","call_id":"` + id + `","approve":true}`, `{"session":7}`, `{"session":"s","call_id":"` + id + `","approve":true,"more":1}`} {
		w.call(10+i, "answer", wrong)
		if res := w.result(10 + i); res["isError"] != true {
			t.Errorf("%s: %v", wrong, res)
		}
	}
	if ran.Load() > 0 {
		t.Fatal("it ran unasked")
	}
	w.call(2, "answer", `{"session":"s","call_id":"`+id+`","approve":true}`)
	if res := w.result(2); text(res) != "Done." || ran.Load() != 1 {
		t.Error(res, ran.Load())
	}
	w.call(3, "ask", `{"prompt":"once more","session":"s"}`)
	got = structured(t, w.result(3))
	id = got["pending"].([]any)[0].(map[string]any)["call_id"].(string)
	if err := agent.Answer(t.Context(), p.store, "s", journal.Answered{ID: id, Approved: true}); err != nil { // as pawl approve does
		t.Fatal(err)
	}
	w.call(4, "ask", `{"session":"s"}`)
	if res := w.result(4); text(res) != "Done, too." || ran.Load() != 2 {
		t.Error(res, ran.Load())
	}
	w.call(5, "ask", `{"session":"s"}`)
	if res := w.result(5); res["isError"] != true || !strings.Contains(text(res), "no unfinished run") {
		t.Error(res)
	}
}

// A client answers what its own call was asked, by a way that it has: no other call of it lets through what a run waits for.
func TestWhatWaitsIsNotAnsweredByAnotherCall(t *testing.T) {
	ran := new(atomic.Int64)
	look := tool.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil }, tool.ReadOnly)
	o := noProject(scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "pay", Input: `{"sum":5}`}}}, scripted.Text("Done.")), "", asks(false, ran), look)
	p := newPlace(t, o, mcp.Options{NoAgent: true, NoAnswer: true, Tools: mcp.ReadOnly})
	for session, begin := range map[string]func() (*agent.Result, error){
		"agent": func() (*agent.Result, error) {
			return p.rt.Run(t.Context(), pawl.Request{Prompt: "Pay.", SessionID: "agent"})
		},
		"tool": func() (*agent.Result, error) {
			return p.rt.UseTool(t.Context(), "tool", "pay", json.RawMessage(`{"sum":6}`))
		},
	} {
		res, err := begin()
		if res == nil || len(res.Pending) != 1 {
			t.Fatalf("%s: %+v %v", session, res, err)
		}
		w := p.wire(t.Context())
		forged := `{"name":"look","arguments":{},"requestState":"` + session + `","inputResponses":{"` + res.Pending[0].ID + `":{"action":"accept","content":{"approve":true}}}`
		const newest = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
		for id, params := range []string{forged + newest + "}", strings.Replace(forged+newest, `{"elicitation":{}}`, "{}", 1) + "}"} {
			w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, id, params))
			if got := w.result(id); got["isError"] != true {
				t.Errorf("%s: it came to %v", session, got)
			}
		}
		if st := p.state(session); st.Status != "interrupted" || len(st.Pending) != 1 {
			t.Errorf("%s is %s, and %d questions wait", session, st.Status, len(st.Pending))
		}
	}
	if ran.Load() > 0 {
		t.Error("the call that waited ran")
	}
}

func TestSkillsArePromptsAndChange(t *testing.T) {
	dir := t.TempDir()
	skill := func(name, body string) {
		at := filepath.Join(dir, ".agents", "skills", name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "SKILL.md"), []byte("---\nname: "+name+"\ndescription: about "+name+"\n---\n"+body+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	skill("release", "Tag it.")
	p := newPlace(t, pawl.Options{ProjectRoot: dir}, mcp.Options{})
	c := p.connect(nil)
	res, err := c.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "release", Arguments: map[string]string{"task": "of 1.2"}})
	if err != nil || !strings.Contains(mustJSON(res), "Tag it.") || !strings.Contains(mustJSON(res), "of 1.2") {
		t.Fatal(mustJSON(res), err)
	}
	skill("review", "Read it.")
	eventually(t, "the new skill is a prompt", func() bool {
		list, err := c.ListPrompts(t.Context(), nil)
		return err == nil && len(list.Prompts) == 2
	})
	if _, err := c.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "nothing"}); err == nil {
		t.Error("there is no such prompt")
	}
}

func TestARunBelongsToTheClientsTrace(t *testing.T) {
	rec := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(rec))
	tracer, err := telemetry.New(telemetry.Config{TracerProvider: provider})
	if err != nil {
		t.Fatal(err)
	}
	o := noProject(nil, "")
	o.Tracer = tracer
	p := newPlace(t, o, mcp.Options{})
	w := p.wire(t.Context())
	w.hello(`{}`)
	w.call(1, "ask", `{"prompt":"hi"}`, `{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`)
	w.result(1)
	found := false
	for _, span := range rec.GetSpans() {
		if span.Parent.SpanID().String() == "b7ad6b7169203331" {
			found = true
		}
		if span.SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
			t.Error("another trace:", span.Name)
		}
	}
	if !found {
		t.Error("no span is a child of the client's")
	}
	w.call(2, "ask", `{"prompt":"hi"}`, `{"traceparent":"no trace"}`)
	if res := w.result(2); res["isError"] == true {
		t.Error(res)
	}
}

// slow is a tool that says when it has begun, and waits for its end.
func slow(readOnly bool) (tool.Tool, chan struct{}) {
	began := make(chan struct{}, 10)
	return given{tool.Definition{Annotations: tool.Annotations{ReadOnly: readOnly}, Tool: give("slow", `{"type":"object"}`, nil).Definition().Tool}, func(ctx context.Context, _ json.RawMessage) (tool.Result, error) {
		began <- struct{}{}
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}}, began
}

// A call before the protocol has begun is refused with a code of JSON-RPC's, and does not end the connection.
func TestACallBeforeTheBeginningIsRefused(t *testing.T) {
	p := newPlace(t, noProject(scripted.New(), ""), mcp.Options{})
	w := p.wire(t.Context())
	w.call(1, "ask", `{"prompt":"go"}`)
	if e, _ := w.next(`"id":1,`)["error"].(map[string]any); e["code"] != -32600.0 {
		t.Error(e)
	}
	w.hello(`{}`)
}

func TestACancelledRequestCancelsTheRun(t *testing.T) {
	f, began := slow(true)
	p := newPlace(t, noProject(scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "slow", Input: `{}`}}}), permission.ModeBypass, f), mcp.Options{})
	w := p.wire(t.Context())
	w.hello(`{}`)
	w.call(1, "ask", `{"prompt":"go","session":"s"}`)
	<-began
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	eventually(t, "the run is canceled on record", func() bool { return p.state("s").Status == "canceled" })
	if st := p.state("s"); st.Run != "" {
		t.Error("it is unfinished:", st.Run)
	}
}

// The client is gone, or the server is told to stop: what runs stays open, and goes on where it was.
func TestARunWhoseClientIsGoneGoesOn(t *testing.T) {
	for _, how := range []string{"its input ends", "the program is told to stop", "the server is closed"} {
		t.Run(how, func(t *testing.T) {
			began, end := make(chan struct{}, 10), new(atomic.Bool)
			f := given{tool.Definition{Annotations: tool.Annotations{ReadOnly: true}, Tool: give("slow", `{"type":"object"}`, nil).Definition().Tool}, func(ctx context.Context, _ json.RawMessage) (tool.Result, error) {
				began <- struct{}{}
				if end.Load() {
					return tool.Result{Content: "at last"}, nil
				}
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}}
			p := newPlace(t, noProject(scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "slow", Input: `{}`}}}, scripted.Text("Done.")), permission.ModeBypass, f), mcp.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := p.wire(ctx)
			w.hello(`{}`)
			w.call(1, "ask", `{"prompt":"go","session":"s"}`)
			<-began
			switch how {
			case "its input ends":
				_ = w.in.Close()
			case "the program is told to stop":
				cancel()
			default:
				if err := p.s.Close(); err != nil {
					t.Error(err)
				}
				_ = w.in.Close()
			}
			if err := <-w.ended; err != nil {
				t.Error(err)
			}
			eventually(t, "nobody drives it", func() bool {
				st := p.state("s")
				return st.Run != "" && st.Status == ""
			})
			end.Store(true)
			res, err := p.rt.Resume(t.Context(), "s")
			if err != nil || res.Text() != "Done." || p.state("s").Status != "completed" {
				t.Errorf("%+v %v", res, err)
			}
		})
	}
}

func TestTwoCallsOfOneSessionQueue(t *testing.T) {
	var under, most atomic.Int64
	f := give("slow", `{"type":"object"}`, func(context.Context, json.RawMessage) (tool.Result, error) {
		most.Store(max(most.Load(), under.Add(1)))
		defer under.Add(-1)
		return tool.Result{Content: "ok"}, nil
	})
	p := newPlace(t, noProject(nil, permission.ModeBypass, f), mcp.Options{Tools: mcp.All})
	w := p.wire(t.Context())
	w.hello(`{}`)
	for i := range 5 {
		w.call(i+1, "slow", `{}`, `{"pawl/session":"s"}`)
	}
	for range 5 {
		if m := w.next(`"result"`); m["result"].(map[string]any)["isError"] == true {
			t.Error(m)
		}
	}
	if most.Load() != 1 || p.state("s").Messages.Len() != 15 {
		t.Error(most.Load(), p.state("s").Messages.Len())
	}
}

// What a call leaves behind in a session of its own ends with it; a session that the client named goes on.
func TestTheSessionOfACallEndsWithIt(t *testing.T) {
	look := tool.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil }, tool.ReadOnly)
	var mu sync.Mutex
	var ended []func(string) bool
	o := noProject(nil, "", look)
	o.Middleware = []hook.Middleware{{Name: "listens", Forget: func(of func(string) bool) {
		mu.Lock()
		defer mu.Unlock()
		ended = append(ended, of)
	}}}
	p := newPlace(t, o, mcp.Options{Tools: mcp.ReadOnly})
	w := p.wire(t.Context())
	w.hello(`{}`)
	w.call(1, "look", `{}`, `{"pawl/session":"mine"}`)
	w.result(1)
	mu.Lock()
	if len(ended) > 0 {
		t.Error("a session that the client named has ended")
	}
	mu.Unlock()
	w.call(2, "look", `{}`)
	session, _ := w.result(2)["_meta"].(map[string]any)["pawl/session"].(string)
	mu.Lock()
	defer mu.Unlock()
	if len(ended) != 1 || session == "" || !ended[0](session) || ended[0]("mine") {
		t.Errorf("%d sessions ended, %q is the call's", len(ended), session)
	}
}
