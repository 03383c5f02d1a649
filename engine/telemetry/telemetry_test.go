package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	lognoop "go.opentelemetry.io/otel/log/noop"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/telemetry"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/traced"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/catalog"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

// run runs a prompt with the tracer.
func (w *world) run(eng engine.Engine, prompt string, opts ...agent.RunOption) *agent.Result {
	w.t.Helper()
	req := agent.Request{ContextID: "s", RunID: "run-1", Message: message.User(prompt)}
	res, err := agent.Run(context.Background(), agent.Agent{ID: "coder", Instructions: "be-brief"}, eng, req, append(opts, agent.WithTracer(w.Tracer))...)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

type none struct{}

// where is a tool that says in which span it is.
func where(name string, opts ...tool.Option) tool.Tool {
	return tool.Func(name, "says in which span it runs", func(ctx context.Context, _ none) (tool.Result, error) {
		return tool.Result{Content: "ran in " + trace.SpanContextFromContext(ctx).SpanID().String()}, nil
	}, opts...)
}

func broken(name string) tool.Tool {
	return tool.Func(name, "fails", func(context.Context, none) (tool.Result, error) {
		return tool.Result{}, errors.New("secret-of-the-tool")
	})
}

// seen is a model that notes the span that it is called in.
type seen struct {
	model.Model
	mu    sync.Mutex
	spans []trace.SpanContext
}

func (s *seen) Capabilities() model.Capabilities { c, _ := model.CapabilitiesOf(s.Model); return c }

func (s *seen) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	s.mu.Lock()
	s.spans = append(s.spans, trace.SpanContextFromContext(ctx))
	s.mu.Unlock()
	return s.Model.Complete(ctx, req)
}

// usage has every kind of token.
var usage = model.Usage{Input: 100, CacheRead: 30, CacheWrite: 7, Output: 20, Reasoning: 5}

func TestSpansLieInEachOtherAsWhatTheyTellOfDoes(t *testing.T) {
	w := newWorld(t, 0)
	below := engineOf(t, scripted.New(scripted.Calls(scripted.Call{ID: "b1", Name: "where"}), scripted.Text("found")), where("where"))
	task, err := agent.Task(agent.Subagents{{Agent: agent.Agent{ID: "explore"}, Engine: below, Description: "looks"}})
	if err != nil {
		t.Fatal(err)
	}
	m := &seen{Model: scripted.New(
		scripted.Turn{Calls: []scripted.Call{{ID: "a1", Name: "where"}, {ID: "a2", Name: "broken"}, {ID: "a3", Name: "where", Input: `{"x":1`}, {ID: "a4", Name: "task", Input: `{"agent":"explore","prompt":"look"}`}}, Usage: usage},
		scripted.Text("done"))}
	refuse := hook.Middleware{Name: "no", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if u.Call.ID == "a5" {
			return hook.Denied("no"), nil
		}
		return hook.Decision{}, nil
	}}
	res := w.run(engineOf(t, m, where("where"), broken("broken"), task), "go", agent.WithHooks(refuse))
	if res.Status != agent.StatusCompleted {
		t.Fatal(res.Err)
	}
	want := `invoke_agent coder
  chat test
  execute_tool where ! invalid
  execute_tool where
  execute_tool broken ! error
  execute_tool task
    invoke_agent explore
      chat test
      execute_tool where
      chat test
  chat test
`
	if got := w.tree(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, s := range w.spans.GetSpans() {
		kind := trace.SpanKindInternal
		if strings.HasPrefix(s.Name, "chat ") {
			kind = trace.SpanKindClient
		}
		if s.SpanKind != kind || s.EndTime.Before(s.StartTime) || s.InstrumentationScope.Name == "" {
			t.Errorf("%s: %v from %v to %v", s.Name, s.SpanKind, s.StartTime, s.EndTime)
		}
	}
	top := w.named("invoke_agent coder")[0]
	has(t, "run", top.Attributes, map[string]string{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": "coder", "gen_ai.agent.name": "coder", "gen_ai.conversation.id": "s", "gen_ai.provider.name": "scripted", "gen_ai.request.model": "test",
		"pawl.run.id": "run-1", "pawl.run.attempt": "1",
	})
	chat := w.named("chat test")
	first := chat[0]
	has(t, "chat", first.Attributes, map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "scripted", "gen_ai.request.model": "test", "gen_ai.response.model": "scripted/test", "gen_ai.conversation.id": "s", "gen_ai.agent.name": "coder",
		"gen_ai.usage.input_tokens": "137", "gen_ai.usage.output_tokens": "20", "gen_ai.usage.cache_read.input_tokens": "30", "gen_ai.usage.cache_creation.input_tokens": "7", "gen_ai.usage.reasoning.output_tokens": "5",
		"gen_ai.response.finish_reasons": `["tool_call"]`, "pawl.effect": "model/1",
	})
	has(t, "last chat", chat[len(chat)-1].Attributes, map[string]string{"gen_ai.response.finish_reasons": `["stop"]`, "pawl.effect": "model/2"})
	ran := w.named("execute_tool where")
	has(t, "tool", ran[1].Attributes, map[string]string{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "where", "gen_ai.tool.type": "function", "gen_ai.tool.call.id": "a1", "pawl.tool.outcome": "ok", "error.type": ""})
	if bad := w.named("execute_tool broken")[0]; bad.Status.Code != codes.Error || bad.Status.Description != "error" || first.Status.Code != codes.Unset {
		t.Errorf("%+v, %+v", bad.Status, first.Status)
	}
	// The context of models and tools has the span: what they send can say where it comes from.
	if len(m.spans) != 2 || m.spans[0].SpanID() != first.SpanContext.SpanID() {
		t.Errorf("the model was called in %v, its span is %v", m.spans, first.SpanContext.SpanID())
	}
	for r := range message.Of[message.ToolResult](res.Messages[1]) {
		if want := "ran in " + ran[1].SpanContext.SpanID().String(); r.Call == "a1" && r.Content != want {
			t.Errorf("the tool %s, want %s", r.Content, want)
		}
	}
}

func TestADeniedCallHasASpanThatSaysSo(t *testing.T) {
	w := newWorld(t, 0)
	deny := hook.Middleware{Name: "no", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) {
		return hook.Denied("secret-reason"), nil
	}}
	w.run(engineOf(t, scripted.New(scripted.Calls(scripted.Call{ID: "c", Name: "where"}), scripted.Text("ok")), where("where")), "go", agent.WithHooks(deny))
	if got, want := w.tree(), "invoke_agent coder\n  chat test\n  execute_tool where ! denied\n  chat test\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// secrets are what a conversation with tools says.
var secrets = []string{"be-brief", "secret-prompt", "secret-thought", "secret-words", "secret-argument", "secret-of-the-tool", "secret-result", "secret-end"}

func talk(t *testing.T, w *world) {
	t.Helper()
	echo := tool.Func("echo", "gives something back", func(context.Context, struct {
		Text string `json:"text"`
	},
	) (tool.Result, error) {
		return tool.Result{Content: "secret-result"}, nil
	})
	m := scripted.New(
		scripted.Turn{Text: "secret-words", Reasoning: "secret-thought", Calls: []scripted.Call{{ID: "c1", Name: "echo", Input: `{"text":"secret-argument"}`}, {ID: "c2", Name: "broken"}}},
		scripted.Text("secret-end"))
	if res := w.run(engineOf(t, m, echo, broken("broken")), "secret-prompt"); res.Status != agent.StatusCompleted {
		t.Fatal(res.Err)
	}
}

func TestWhatIsSaidStaysHereUnlessSomebodyAsksForIt(t *testing.T) {
	w := newWorld(t, 0)
	talk(t, w)
	for _, s := range secrets {
		if all := w.everything(); strings.Contains(all, s) {
			t.Errorf("%q was told:\n%s", s, all)
		}
	}
	if len(w.logs.all) > 0 {
		t.Errorf("%d events", len(w.logs.all))
	}
}

func TestWhatIsSaidOnSpans(t *testing.T) {
	w := newWorld(t, telemetry.OnSpans)
	talk(t, w)
	all := w.everything()
	for _, s := range secrets {
		if !strings.Contains(all, s) {
			t.Errorf("%q is not there", s)
		}
	}
	last := w.named("chat test")[1].Attributes
	for name, want := range map[string]string{
		"gen_ai.system_instructions": `[{"type":"text","content":"be-brief"}]`,
		"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":"secret-prompt"}]},
			{"role":"assistant","parts":[{"type":"reasoning","content":"secret-thought"},{"type":"text","content":"secret-words"},
				{"type":"tool_call","id":"c1","name":"echo","arguments":{"text":"secret-argument"}},{"type":"tool_call","id":"c2","name":"broken","arguments":{}}]},
			{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","result":"secret-result"},{"type":"tool_call_response","id":"c2","result":"secret-of-the-tool"}]}]`,
		"gen_ai.output.messages": `[{"role":"assistant","parts":[{"type":"text","content":"secret-end"}],"finish_reason":"stop"}]`,
	} {
		var got, wanted any
		if err := json.Unmarshal([]byte(attr(last, name)), &got); err != nil {
			t.Errorf("%s: %v in %q", name, err, attr(last, name))
		}
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(wanted) {
			t.Errorf("%s\ngot  %v\nwant %v", name, got, wanted)
		}
	}
	has(t, "tool", w.named("execute_tool echo")[0].Attributes, map[string]string{"gen_ai.tool.call.arguments": `{"text":"secret-argument"}`, "gen_ai.tool.call.result": "secret-result"})
	if len(w.logs.all) > 0 {
		t.Errorf("%d events: they were not asked for", len(w.logs.all))
	}
}

func TestWhatIsSaidInEvents(t *testing.T) {
	w := newWorld(t, telemetry.OnEvents)
	talk(t, w)
	if len(w.logs.all) != 2 {
		t.Fatalf("%d events: want one for each model call", len(w.logs.all))
	}
	r := w.logs.all[0]
	attrs := map[string]attribute.Value{}
	r.WalkAttributes(func(a attribute.KeyValue) bool { attrs[string(a.Key)] = a.Value; return true })
	if at := w.named("chat test")[0].SpanContext; r.EventName() != "gen_ai.client.inference.operation.details" || r.SpanID() != at.SpanID() || r.TraceID() != at.TraceID() {
		t.Errorf("%s in %v, want in %v", r.EventName(), r.SpanID(), at.SpanID())
	}
	if got := attrs["gen_ai.input.messages"]; got.Type() != attribute.SLICE || got.String() != `[{"parts":[{"content":"secret-prompt","type":"text"}],"role":"user"}]` {
		t.Errorf("%v %s", got.Type(), got)
	}
	if attrs["gen_ai.operation.name"].String() != "chat" || attrs["gen_ai.response.model"].String() != "scripted/test" {
		t.Error(attrs)
	}
	for _, s := range w.spans.GetSpans() {
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.String(), "secret") {
				t.Errorf("%s has it too: %v", s.Name, a)
			}
		}
	}
}

func TestTheEnvironmentCanAskForWhatIsSaid(t *testing.T) {
	for value, want := range map[string]telemetry.Content{
		"": 0, "false": 0, "no_content": 0, "true": telemetry.OnSpans, "span_only": telemetry.OnSpans, "EVENT_ONLY": telemetry.OnEvents, "SPAN_AND_EVENT": telemetry.OnSpans | telemetry.OnEvents,
	} {
		t.Setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
		if got := telemetry.ContentFromEnv(); got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
	}
}

// points are a histogram's, by attributes.
func points[N int64 | float64](t *testing.T, m metricdata.Metrics) map[string]metricdata.HistogramDataPoint[N] {
	t.Helper()
	h, ok := m.Data.(metricdata.Histogram[N])
	if !ok {
		t.Fatalf("%s is %T", m.Name, m.Data)
	}
	out := map[string]metricdata.HistogramDataPoint[N]{}
	for _, p := range h.DataPoints {
		out[p.Attributes.Encoded(attribute.DefaultEncoder())] = p
	}
	return out
}

func TestMeasurements(t *testing.T) {
	w := newWorld(t, 0)
	m := scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "a", Name: "where"}, {ID: "b", Name: "broken"}}, Usage: usage}, scripted.Turn{Text: "done", Usage: usage}, scripted.Fail(500))
	eng := engineOf(t, m, where("where"), broken("broken"))
	heard := engine.HostFuncs{PublishFunc: func(context.Context, event.Event) error { return nil }}
	if res := w.run(eng, "go", agent.WithEngineHost(heard)); res.Status != agent.StatusCompleted {
		t.Fatal(res.Err)
	}
	if _, err := agent.Run(context.Background(), agent.Agent{ID: "coder"}, engineOf(t, scripted.New(scripted.Fail(500))), agent.Request{Message: message.User("?")}, agent.WithTracer(w.Tracer)); err != nil {
		t.Fatal(err)
	}
	all := w.metrics()
	const chat = "gen_ai.operation.name=chat,gen_ai.provider.name=scripted,gen_ai.request.model=test"
	const answered = chat + ",gen_ai.response.model=scripted/test"
	tokens := points[int64](t, all["gen_ai.client.token.usage"])
	for attrs, sum := range map[string]int64{answered + ",gen_ai.token.type=input": 274, answered + ",gen_ai.token.type=output": 40} {
		if p := tokens[attrs]; p.Sum != sum || p.Count != 2 || len(p.Bounds) != 14 || p.Bounds[13] != 67108864 {
			t.Errorf("%s: %+v", attrs, p)
		}
	}
	if u := all["gen_ai.client.token.usage"].Unit; u != "{token}" || len(tokens) != 2 {
		t.Errorf("%s, %v", u, tokens)
	}
	for name, want := range map[string]map[string]uint64{
		"gen_ai.client.operation.duration":            {answered: 2, "error.type=not_available," + chat: 1},
		"gen_ai.client.operation.time_to_first_chunk": {answered: 1},
		"gen_ai.execute_tool.duration":                {"gen_ai.operation.name=execute_tool,gen_ai.tool.name=where": 1, "error.type=error,gen_ai.operation.name=execute_tool,gen_ai.tool.name=broken": 1},
		"gen_ai.invoke_agent.duration":                {"gen_ai.agent.name=coder,gen_ai.operation.name=invoke_agent": 1, "error.type=not_available,gen_ai.agent.name=coder,gen_ai.operation.name=invoke_agent": 1},
	} {
		got := points[float64](t, all[name])
		if all[name].Unit != "s" || len(got) != len(want) {
			t.Errorf("%s: %s, %v", name, all[name].Unit, got)
		}
		for attrs, n := range want {
			if p := got[attrs]; p.Count != n || p.Sum < 0 || len(p.Bounds) != 14 || p.Bounds[0] != 0.01 || p.Bounds[13] != 81.92 {
				t.Errorf("%s %s: %+v", name, attrs, p)
			}
		}
	}
	has(t, "a streamed reply", w.named("chat test")[1].Attributes, map[string]string{"gen_ai.request.stream": "true"})
}

func TestHowARunEndsIsOnItsSpan(t *testing.T) {
	parks := tool.Func("parks", "waits for something outside", func(context.Context, none) (tool.Result, error) {
		return tool.Result{}, engine.InterruptedError{Interrupt: engine.Interrupt{Cause: engine.CauseAwaitingPerson}}
	}, tool.Idempotent)
	calls := func(name string) model.Model {
		return scripted.New(scripted.Calls(scripted.Call{ID: "c", Name: name}), scripted.Text("ok"))
	}
	limited, err := loop.New(loop.Config{Model: calls("where"), Tools: []tool.Tool{where("where")}, Limits: loop.Limits{Steps: 1}})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	stops := tool.Func("stops", "ends the caller's context", func(context.Context, none) (tool.Result, error) {
		cancel()
		return tool.Result{Content: "ok"}, nil
	})
	for name, c := range map[string]struct {
		ctx         context.Context
		eng         engine.Engine
		kind, tree  string
		interrupted string
	}{
		"failed":      {context.Background(), engineOf(t, scripted.New(scripted.Fail(429))), "rate_limit", "invoke_agent coder ! rate_limit\n  chat test ! rate_limit\n", ""},
		"limit":       {context.Background(), limited, "budget_exceeded", "invoke_agent coder ! budget_exceeded\n  chat test\n  execute_tool where\n", ""},
		"canceled":    {ended, engineOf(t, calls("stops"), stops), "canceled", "invoke_agent coder ! canceled\n  chat test\n  execute_tool stops\n", ""},
		"interrupted": {context.Background(), engineOf(t, calls("parks"), parks), "", "invoke_agent coder\n  chat test\n  execute_tool parks\n", "awaiting_person"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0)
			if _, err := agent.Run(c.ctx, agent.Agent{ID: "coder"}, c.eng, agent.Request{Message: message.User("secret-prompt")}, agent.WithTracer(w.Tracer)); err != nil {
				t.Fatal(err)
			}
			if got := w.tree(); got != c.tree {
				t.Errorf("got\n%s\nwant\n%s", got, c.tree)
			}
			s := w.named("invoke_agent coder")[0]
			has(t, "run", s.Attributes, map[string]string{"error.type": c.kind, "pawl.run.interrupted": c.interrupted})
			if s.Status.Description != c.kind || (s.Status.Code == codes.Error) != (c.kind != "") {
				t.Errorf("%+v", s.Status)
			}
		})
	}
}

// What follows something is in its trace, and in its span where there is no nearer one; else it has a link.
func TestAResumedRunARevisedOneAndAHandoffAreInTheTraceOfWhatWasBefore(t *testing.T) {
	ctx := context.Background()
	t.Run("resume", func(t *testing.T) {
		w, store := newWorld(t, 0), journal.Memory()
		asks := where("where", tool.RequiresApproval)
		eng := engineOf(t, scripted.New(scripted.Calls(scripted.Call{ID: "c", Name: "where"}), scripted.Text("ok")), asks)
		if res := w.run(eng, "go", agent.WithJournal(store)); len(res.Pending) != 1 {
			t.Fatal(res)
		}
		if err := agent.Answer(ctx, store, "s", journal.Answered{ID: "c", Approved: true}); err != nil {
			t.Fatal(err)
		}
		if res, err := agent.Resume(ctx, agent.Agent{ID: "coder"}, eng, "s", agent.WithJournal(store), agent.WithTracer(w.Tracer)); err != nil || res.Status != agent.StatusCompleted {
			t.Fatal(res, err)
		}
		if got, want := w.tree(), "invoke_agent coder\n  chat test\n  ask_person\n  invoke_agent coder\n    execute_tool where\n    chat test\n"; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		runs := w.named("invoke_agent coder")
		if len(runs[1].Links) != 0 {
			t.Errorf("it lies in what it follows: %+v", runs[1].Links)
		}
		has(t, "resumed", runs[1].Attributes, map[string]string{"pawl.run.resumed": "true", "pawl.run.id": "run-1"})
		has(t, "before", runs[0].Attributes, map[string]string{"pawl.run.resumed": "", "pawl.run.id": "run-1"})
		has(t, "question", w.named("ask_person")[0].Attributes, map[string]string{"pawl.question.id": "c", "gen_ai.tool.name": "where", "pawl.question.waits": "true", "error.type": ""})
	})
	t.Run("resume in another process, below a request", func(t *testing.T) {
		for _, traced := range []bool{false, true} {
			w, other, store := newWorld(t, 0), newWorld(t, 0), journal.Memory()
			eng := engineOf(t, scripted.New(scripted.Calls(scripted.Call{ID: "c", Name: "where"}), scripted.Text("ok")), where("where", tool.RequiresApproval))
			w.run(eng, "go", agent.WithJournal(store))
			if err := agent.Answer(ctx, store, "s", journal.Answered{ID: "c", Approved: true}); err != nil {
				t.Fatal(err)
			}
			outer, span := ctx, trace.Span(nil)
			if traced {
				outer, span = other.traces.Tracer("caller").Start(ctx, "POST /resume")
			}
			if res, err := agent.Resume(outer, agent.Agent{ID: "coder"}, eng, "s", agent.WithJournal(store), agent.WithTracer(other.Tracer)); err != nil || res.Status != agent.StatusCompleted {
				t.Fatal(res, err)
			}
			before, after := w.named("invoke_agent coder")[0], other.named("invoke_agent coder")[0]
			if !traced {
				if after.Parent.SpanID() != before.SpanContext.SpanID() || after.SpanContext.TraceID() != before.SpanContext.TraceID() || !after.Parent.IsRemote() {
					t.Errorf("%+v is not below %+v", after.Parent, before.SpanContext)
				}
				continue
			}
			if span.End(); after.Parent.SpanID() != span.SpanContext().SpanID() {
				t.Errorf("%+v is not below %+v", after.Parent, span.SpanContext())
			}
			if l := after.Links; len(l) != 1 || l[0].SpanContext.SpanID() != before.SpanContext.SpanID() || attr(l[0].Attributes, "pawl.run.id") != "run-1" {
				t.Errorf("%+v", l)
			}
		}
	})
	t.Run("revise", func(t *testing.T) {
		w := newWorld(t, 0)
		again := agent.DeciderFunc(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
			return agent.FinalizeDecision{Revise: res.Attempts < 3}, nil
		})
		w.run(engineOf(t, scripted.New(scripted.Text("one"), scripted.Text("two"), scripted.Text("three"))), "go", agent.WithDecider(again), agent.WithMaxRevise(3))
		if got, want := w.tree(), "invoke_agent coder\n  chat test\n  invoke_agent coder\n    chat test\n    invoke_agent coder\n      chat test\n"; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("handoff that nobody called", func(t *testing.T) {
		w := newWorld(t, 0)
		if got, want := w.handOver(ctx), "invoke_agent desk\n  chat test\n  execute_tool transfer_to_billing\n  invoke_agent billing\n    chat test\n"; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("handoff", func(t *testing.T) {
		w := newWorld(t, 0)
		outer, span := w.traces.Tracer("caller").Start(ctx, "POST /chat")
		w.handOver(outer)
		span.End()
		a, b := w.named("invoke_agent desk")[0], w.named("invoke_agent billing")[0]
		if tree := w.tree(); tree != "POST /chat\n  invoke_agent desk\n    chat test\n    execute_tool transfer_to_billing\n  invoke_agent billing\n    chat test\n" {
			t.Error(tree)
		}
		if len(b.Links) != 1 || b.Links[0].SpanContext.SpanID() != a.SpanContext.SpanID() {
			t.Errorf("%+v", b.Links)
		}
	})
	t.Run("a task has its place, and no link", func(t *testing.T) {
		w := newWorld(t, 0)
		task, err := agent.Task(agent.Subagents{{Agent: agent.Agent{ID: "below"}, Engine: engineOf(t, scripted.New(scripted.Text("found")))}})
		if err != nil {
			t.Fatal(err)
		}
		in := `{"agent":"below","prompt":"look","background":true}`
		w.run(engineOf(t, scripted.New(scripted.Calls(scripted.Call{ID: "c", Name: "task", Input: in}), scripted.Text("I wait"), scripted.Text("done")), task), "go")
		s, above := w.named("invoke_agent below")[0], w.named("invoke_agent coder")[0]
		if len(s.Links) != 0 || s.Parent.SpanID() != above.SpanContext.SpanID() {
			t.Errorf("a task in the background lies in its run: %+v, links %+v\n%s", s.Parent, s.Links, w.tree())
		}
	})
}

// handOver has a team answer a prompt, and draws the spans.
func (w *world) handOver(ctx context.Context) string {
	t := w.t
	t.Helper()
	hs := []agent.Handoff{{ToAgentID: "billing", Description: "refunds"}}
	desk, err := loop.New(loop.Config{Model: scripted.New(scripted.Calls(scripted.Call{ID: "c", Name: "transfer_to_billing", Input: `{"note":"order 12"}`})), Tools: agent.HandoffTools(ctx, nil, hs)})
	if err != nil {
		t.Fatal(err)
	}
	team, err := agent.NewTeam(agent.TeamConfig{Members: []agent.Member{
		{Agent: agent.Agent{ID: "desk"}, Engine: desk, Handoffs: hs},
		{Agent: agent.Agent{ID: "billing"}, Engine: engineOf(t, scripted.New(scripted.Text("one moment"), scripted.Text("paid")))},
	}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := team.Run(ctx, agent.Request{Message: message.User("my money")}, agent.WithTracer(w.Tracer))
	if err != nil || res.Status != agent.StatusCompleted {
		t.Fatal(res, err)
	}
	return w.tree()
}

// A process that does an effect for the driver of a run has no span of its own around it: it lies in the run's, which is on record.
func TestAnEffectThatIsDoneElsewhereLiesInTheRunsSpan(t *testing.T) {
	w := newWorld(t, 0)
	run := engine.Run{ID: "r", AgentID: "a", Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	ctx, done := w.TraceEffect(context.Background(), run, engine.UseTool{Call: journal.Called{ID: "c", Name: "where"}})
	said := map[string]string{}
	w.Inject(ctx, func(name, value string) { said[name] = value })
	w.Note(ctx, "pawl.note", "noted")
	done(engine.Traced{Outcome: journal.ToolFinished{Outcome: journal.OutcomeOK}})
	s := w.named("execute_tool where")[0]
	if s.Parent.SpanID().String() != "b7ad6b7169203331" || s.SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" || attr(s.Attributes, "pawl.note") != "noted" {
		t.Errorf("%+v", s)
	}
	if want := "00-0af7651916cd43dd8448eb211c80319c-" + s.SpanContext.SpanID().String() + "-01"; len(said) != 1 || said["traceparent"] != want {
		t.Errorf("%q, want %s", said, want)
	}
	w.Inject(context.Background(), func(name, value string) { t.Errorf("in no span: %s %s", name, value) })
}

// Whoever asked for a run from elsewhere is above it, whatever library he traces with; who traces here is nearer.
func TestARunLiesInTheTraceOfWhoeverAskedForItFromElsewhere(t *testing.T) {
	w := newWorld(t, 0)
	asked := func(name string) string {
		return map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1"}[name]
	}
	ctx := traced.Extract(context.Background(), asked)
	where := tool.Func("where", "says in which trace it runs", func(ctx context.Context, _ none) (tool.Result, error) {
		var out tool.Result
		said := map[string]string{}
		traced.Inject(ctx, func(name, value string) { said[name] = value })
		out.Content = said["traceparent"] + " " + said["tracestate"]
		return out, nil
	})
	eng := engineOf(t, scripted.New(scripted.Calls(scripted.Call{ID: "c", Name: "where"}), scripted.Text("ok")), where)
	res, err := agent.Run(ctx, agent.Agent{ID: "coder"}, eng, agent.Request{Message: message.User("go")}, agent.WithTracer(panics{"run"}), agent.WithTracer(w.Tracer))
	if err != nil || res.Status != agent.StatusCompleted {
		t.Fatal(res, err)
	}
	top, ran := w.named("invoke_agent coder")[0], w.named("execute_tool where")[0]
	if top.Parent.SpanID().String() != "b7ad6b7169203331" || !top.Parent.IsRemote() {
		t.Errorf("%+v", top.Parent)
	}
	want := "00-0af7651916cd43dd8448eb211c80319c-" + ran.SpanContext.SpanID().String() + "-01 a=1"
	for r := range message.Of[message.ToolResult](res.Messages[1]) {
		if r.Content != want {
			t.Errorf("%q, want %q", r.Content, want)
		}
	}
	outer, span := w.traces.Tracer("caller").Start(ctx, "POST /run", trace.WithNewRoot())
	if _, err := agent.Run(outer, agent.Agent{ID: "near"}, engineOf(t, scripted.New(scripted.Text("ok"))), agent.Request{Message: message.User("go")}, agent.WithTracer(w.Tracer)); err != nil {
		t.Fatal(err)
	}
	if span.End(); w.named("invoke_agent near")[0].Parent.SpanID() != span.SpanContext().SpanID() {
		t.Error(w.tree())
	}
}

func TestManyRunsAtOnceHaveEachTheirOwnTrace(t *testing.T) {
	w := newWorld(t, telemetry.OnSpans|telemetry.OnEvents)
	task, err := agent.Task(agent.Subagents{{Agent: agent.Agent{ID: "below"}, Engine: engineOf(t, scripted.New(scripted.Text("found")))}})
	if err != nil {
		t.Fatal(err)
	}
	eng := engineOf(t, scripted.New(scripted.Calls(scripted.Call{ID: "c1", Name: "where"}, scripted.Call{ID: "c2", Name: "where"}, scripted.Call{ID: "c3", Name: "task", Input: `{"agent":"below","prompt":"look"}`}), scripted.Text("done")), where("where", tool.ReadOnly), task)
	var wg sync.WaitGroup
	const n = 16
	for i := range n {
		wg.Go(func() {
			res, err := agent.Run(context.Background(), agent.Agent{ID: "a"}, eng, agent.Request{ContextID: fmt.Sprint("s", i), Message: message.User("go")}, agent.WithTracer(w.Tracer))
			if err != nil || res.Status != agent.StatusCompleted {
				t.Error(res, err)
			}
		})
	}
	wg.Wait()
	session, of := map[trace.TraceID]string{}, map[trace.TraceID]int{}
	for _, s := range w.spans.GetSpans() {
		id := s.SpanContext.TraceID()
		of[id]++
		root, _, _ := strings.Cut(attr(s.Attributes, "gen_ai.conversation.id"), "/")
		if had, ok := session[id]; ok && had != root {
			t.Errorf("%s: session %s in the trace of %s", s.Name, root, had)
		}
		session[id] = root
	}
	for id, spans := range of {
		if spans != 8 { // 2 runs, 3 model calls, 3 tools
			t.Errorf("%s has %d spans", session[id], spans)
		}
	}
	if len(of) != n {
		t.Errorf("%d traces", len(of))
	}
}

// long is a model that calls a tool n times.
func long(n int) model.Model {
	turns := make([]scripted.Turn, 0, n+1)
	for range n {
		turns = append(turns, scripted.Calls(scripted.Call{Name: "where"}))
	}
	return scripted.New(append(turns, scripted.Text("done"))...)
}

// A run without a tracer pays nothing for there being such a thing; one with a tracer whose providers do nothing pays a few allocations for each step.
func TestWhatATracerCosts(t *testing.T) {
	idle, err := telemetry.New(telemetry.Config{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(), LoggerProvider: lognoop.NewLoggerProvider()})
	if err != nil {
		t.Fatal(err)
	}
	perStep := func(opts ...agent.RunOption) float64 {
		allocs := func(n int) float64 {
			eng, err := loop.New(loop.Config{Model: long(n), Tools: []tool.Tool{where("where")}, Limits: loop.Limits{Repeats: -1, Steps: 1000}, Prices: catalog.Default()})
			if err != nil {
				t.Fatal(err)
			}
			return testing.AllocsPerRun(5, func() {
				if res, err := agent.Run(context.Background(), agent.Agent{ID: "a"}, eng, agent.Request{Message: message.User("go")}, opts...); err != nil || res.Status != agent.StatusCompleted {
					t.Fatal(res, err)
				}
			})
		}
		return (allocs(50) - allocs(10)) / 40
	}
	without, with := perStep(), perStep(agent.WithTracer(idle))
	t.Logf("allocations for each step: %.1f without a tracer, %.1f with an idle one", without, with)
	if with-without > 6.1 { // the contexts of two spans, what ends them, and what the model call's needs for that
		t.Errorf("an idle tracer takes %.1f allocations for each step: at most 6", with-without)
	}
}

// Whoever does not use this package does not have OpenTelemetry in his program. The program pawl sends what it tells.
func TestNobodyElseImportsOpenTelemetry(t *testing.T) {
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		pkg, imports, _ := strings.Cut(line, " ")
		ours := strings.HasSuffix(pkg, "/engine/telemetry")
		if strings.HasSuffix(pkg, "/internal/cli/otlp") {
			continue
		}
		if !ours && (strings.Contains(imports, "go.opentelemetry.io/") || strings.Contains(imports, "/engine/telemetry")) {
			t.Errorf("%s imports OpenTelemetry: only engine/telemetry does", pkg)
		}
		if ours && strings.Contains(imports, "go.opentelemetry.io/otel/sdk") {
			t.Errorf("%s imports the SDK: it uses the API alone", pkg)
		}
	}
}

func TestACompactionIsAModelCall(t *testing.T) {
	w := newWorld(t, 0)
	eng, err := loop.New(loop.Config{
		Model: scripted.New(scripted.Calls(scripted.Call{ID: "c", Name: "where"}), scripted.Text(strings.Repeat("many words ", 3000)), scripted.Text("done")),
		Tools: []tool.Tool{where("where")}, Compact: loop.Compact{Enabled: true, Window: 3000, PreserveCount: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	store := journal.Memory()
	for i, prompt := range []string{"go", "and on"} {
		req := agent.Request{ContextID: "s", RunID: fmt.Sprint("run-", i), Message: message.User(prompt)}
		if _, err := agent.Run(context.Background(), agent.Agent{ID: "coder"}, eng, req, agent.WithJournal(store), agent.WithTracer(w.Tracer)); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range w.named("chat test") {
		if strings.HasPrefix(attr(s.Attributes, "pawl.effect"), "compact/") {
			has(t, "compaction", s.Attributes, map[string]string{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "scripted", "gen_ai.request.model": "test", "error.type": ""})
			if before, after := attr(s.Attributes, "pawl.compaction.tokens_before"), attr(s.Attributes, "pawl.compaction.tokens_after"); before == "" || after == "" || before == after {
				t.Errorf("from %s to %s", before, after)
			}
			return
		}
	}
	t.Errorf("no span of the compaction:\n%s", w.tree())
}

// panics is a tracer that can't be relied on.
type panics struct{ at string }

func (p panics) TraceRun(ctx context.Context, _ engine.Run) (context.Context, func(error)) {
	if p.at == "run" {
		panic("no")
	}
	return ctx, func(error) {
		if p.at == "run's end" {
			panic("no")
		}
	}
}

func (p panics) TraceEffect(context.Context, engine.Run, engine.Effect) (context.Context, func(engine.Traced)) {
	if p.at == "effect" {
		panic("no")
	}
	return nil, func(engine.Traced) {
		if p.at == "effect's end" {
			panic("no")
		}
	}
}

func TestATracerThatPanicsCostsNothingButItself(t *testing.T) {
	for _, at := range []string{"run", "run's end", "effect", "effect's end", "nowhere"} {
		w := newWorld(t, 0)
		res := w.run(engineOf(t, scripted.New(scripted.Calls(scripted.Call{ID: "c", Name: "where"}), scripted.Text("done")), where("where")), "go", agent.WithTracer(panics{at}), agent.WithTracer(nil))
		if res.Status != agent.StatusCompleted || w.tree() != "invoke_agent coder\n  chat test\n  execute_tool where\n  chat test\n" {
			t.Errorf("%s: %v\n%s", at, res.Err, w.tree())
		}
	}
}

func TestAPanicIsOnTheSpan(t *testing.T) {
	w := newWorld(t, 0)
	res := w.run(engineOf(t, explodes{}), "go")
	if !errdefs.Internal.Is(res.Err) || !strings.Contains(w.tree(), "! internal\n  chat") {
		t.Errorf("%v\n%s", res.Err, w.tree())
	}
}

type explodes struct{}

func (explodes) Complete(context.Context, model.Request) (*model.Response, error) { panic("boom") }
func (explodes) CompleteStream(context.Context, model.Request, model.StreamHandler) error {
	panic("boom")
}
