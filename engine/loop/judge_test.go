package loop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

type path struct {
	Path string `json:"path"`
	N    int    `json:"n,omitempty"`
}

// reads is a tool with an alias; it notes the inputs that it got.
func reads(got *[]string, opts ...tool.Option) tool.Tool {
	return tool.Func("read", "", func(_ context.Context, in path) (string, error) {
		*got = append(*got, in.Path)
		return "content of " + in.Path, nil
	}, append(opts, tool.WithAliases(map[string]string{"file": "path"}))...)
}

func TestACallThatMayNotRunIsAnsweredWithWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		call  message.ToolCall
		tools []string // the agent's gate
		want  []string
	}{
		"an unknown tool, near names":  {call("c", "raed", `{}`), nil, []string{`no tool "raed"`, "did you mean read?"}},
		"an unknown tool, none near":   {call("c", "teleport", `{}`), nil, []string{"there are other, read"}},
		"malformed input":              {call("c", "read", `{"path": "a`), nil, []string{"not valid JSON", `{"path": "a`}},
		"input that is no object":      {call("c", "read", `"a"`), nil, []string{"must be a JSON object"}},
		"no input":                     {call("c", "read", ``), nil, []string{"not valid JSON"}},
		"a wrong type":                 {call("c", "read", `{"path":1}`), nil, []string{"/path"}},
		"a missing member":             {call("c", "read", `{}`), nil, []string{"path"}},
		"a member too many":            {call("c", "read", `{"path":"a","x":1}`), nil, []string{"x"}},
		"a member under both names":    {call("c", "read", `{"path":"a","file":"b"}`), nil, []string{"path", "file"}},
		"a tool behind the gate":       {call("c", "read", `{"path":"a"}`), []string{"other"}, []string{`no tool "read"`, "there are other"}},
		"an empty gate":                {call("c", "read", `{"path":"a"}`), []string{}, []string{"there are no tools"}},
		"hidden, and near to no other": {call("c", "Read", `{"path":"a"}`), []string{"other"}, []string{`no tool "Read"`, "there are other"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			m := plays(uses(c.call), says("sorry"))
			d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{reads(&got), constant("other")}}, run: engine.Run{Tools: c.tools}}.do(t)
			if d.err != nil || len(got) > 0 {
				t.Error(d.err, got)
			}
			judged := entries[journal.ToolJudged](t, d)
			if len(judged) != 1 || !judged[0].Refused() || len(entries[journal.ToolStarted](t, d)) > 0 {
				t.Fatal(judged)
			}
			result := d.since()[1]
			for _, want := range c.want {
				if !strings.Contains(result, want) || !strings.Contains(judged[0].Reason, want) {
					t.Errorf("%q doesn't say %q", result, want)
				}
			}
		})
	}
}

func TestTheGateHoldsAtExposureAndAtExecution(t *testing.T) {
	for name, c := range map[string]struct {
		gate  []string
		shown []string
		runs  bool
	}{
		"nil admits all":      {nil, []string{"read", "other"}, true},
		"a name":              {[]string{"read"}, []string{"read"}, true},
		"in another case":     {[]string{"READ"}, []string{"read"}, true},
		"another name":        {[]string{"other"}, []string{"other"}, false},
		"empty":               {[]string{}, nil, false},
		"a name that is none": {[]string{"teleport"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			m := plays(uses(call("c", "Read", `{"path":"a"}`)), says("done"))
			cfg := loop.Config{Model: m, Tools: []tool.Tool{reads(&got), constant("other")}}
			d := play{cfg: cfg, run: engine.Run{Tools: c.gate}}.do(t)
			var shown []string
			for _, tl := range m.asked[0].Tools {
				shown = append(shown, tl.Name)
			}
			if diff := cmp.Diff(c.shown, shown); diff != "" || (len(got) > 0) != c.runs || d.err != nil {
				t.Error(diff, got, d.err)
			}
			// an effect that came from elsewhere (a worker's queue, an older record) meets the gate too
			got = nil
			u := engine.UseTool{Call: journal.Called{ID: "late", Name: "read", Input: `{"path":"a"}`}}
			out, err := d.eng.Perform(t.Context(), d.run, engine.NoopHost{}, u)
			if err != nil || (len(got) > 0) != c.runs || (out.(journal.ToolFinished).Outcome == journal.OutcomeDenied) == c.runs {
				t.Error("at execution:", out, err)
			}
		})
	}
}

func TestHooksSeeTheCallAsItWillRun(t *testing.T) {
	var got, seen []string
	spy := hook.Middleware{Name: "spy", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		seen = append(seen, fmt.Sprintf("%s %s %s %s %s", u.Tool.Name, u.Call.Name, u.Call.Input, u.Session, u.Run))
		return hook.Decision{}, nil
	}, PostToolUse: func(_ context.Context, u *hook.ToolUse) error {
		seen = append(seen, u.Call.Name+" "+u.Call.Input+" "+u.Result.Content)
		return nil
	}}
	m := plays(uses(call("c", "READ", `{ "file" : "a" }`)), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{reads(&got)}, Hooks: []hook.Middleware{spy}}}.do(t)
	if d.err != nil {
		t.Fatal(d.err)
	}
	want := []string{`read read {"path":"a"} s r`, `read {"path":"a"} content of a`}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`assistant:  <c READ {"file":"a"}>`, "tool:  [c content of a]", "assistant: done"}, d.since()); diff != "" {
		t.Error("the transcript has the model's words, compact:", diff)
	}
	if j := entries[journal.ToolJudged](t, d); j[0].Input != `{"path":"a"}` {
		t.Error(j)
	}
}

func TestAllFourPointsRunInOrderTheRunsHooksBeforeTheEngines(t *testing.T) {
	var order []string
	trace := func(name string) hook.Middleware {
		log := func(point string) { order = append(order, point+" "+name) }
		return hook.Middleware{
			Name:          name,
			PreGeneration: func(context.Context, *hook.Generation) error { log("pre"); return nil },
			PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
				log("judge")
				n, _ := u.Values["n"].(int)
				u.Values["n"] = n + 1
				return hook.Decision{}, nil
			},
			PostToolUse: func(context.Context, *hook.ToolUse) error { log("after"); return nil },
			PostGeneration: func(_ context.Context, g *hook.Generation) error {
				log(fmt.Sprintf("post %v %d %q to %d messages with %d tool under %q", g.Values["n"], len(g.Output), g.Response.Message.Text(), g.Request.Messages.Len(), len(g.Request.Tools), g.Request.System+g.System))
				return nil
			},
		}
	}
	n := 0
	d := play{
		cfg: loop.Config{Model: plays(uses(call("c", "x", `{}`)), says("done")), Tools: []tool.Tool{counted("x", &n)}, Hooks: []hook.Middleware{trace("engine")}},
		run: engine.Run{System: "be brief", Bounds: engine.Bounds{Hooks: []hook.Middleware{trace("run")}}},
	}.do(t)
	want := []string{
		"pre run", "pre engine", "judge run", "judge engine", "after run", "after engine", `post 2 3 "done" to 3 messages with 1 tool under "be briefbe brief" run`, `post 2 3 "done" to 3 messages with 1 tool under "be briefbe brief" engine`,
	}
	if diff := cmp.Diff(want, order); diff != "" || d.err != nil {
		t.Error(d.err, diff)
	}
	order = nil
	d.execute(t, t.Context(), engine.NoopHost{}) // all of it is on record
	if d.err != nil || len(order) > 0 || n != 1 {
		t.Error("a hook is not asked again on resume:", d.err, order, n)
	}
}

func TestAPreToolUseHookDecides(t *testing.T) {
	gives := func(d hook.Decision, err error) hook.Middleware {
		return hook.Middleware{Name: "h", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			if d.Input != "" && u.Call.Input == d.Input { // the rewrite was taken up
				return hook.Decision{}, err
			}
			return d, err
		}}
	}
	for name, c := range map[string]struct {
		hook   hook.Middleware
		ran    []string
		result string
	}{
		"allow":             {gives(hook.Allowed("fine"), nil), []string{"a"}, "content of a"},
		"deny":              {gives(hook.Denied("secret"), nil), nil, "secret"},
		"error":             {gives(hook.Allowed("fine"), errors.New("no rules")), nil, "hook h: no rules"},
		"panic":             {hook.Middleware{Name: "h", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { panic("boom") }}, nil, "hook h panicked: boom"},
		"rewrite":           {gives(hook.Decision{Input: `{"path":"b"}`}, nil), []string{"b"}, "content of b"},
		"by an alias":       {gives(hook.Decision{Input: `{"file":"b"}`}, nil), []string{"b"}, "content of b"},
		"rewrite, invalid":  {gives(hook.Decision{Input: `{"path":2}`}, nil), nil, "not valid"},
		"rewrite and allow": {gives(hook.Decision{Verdict: hook.Allow, Input: `{"path":"b"}`}, nil), []string{"b"}, "content of b"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			m := plays(uses(call("c", "read", `{"path":"a"}`)), says("done"))
			d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{reads(&got)}, Hooks: []hook.Middleware{c.hook}}}.do(t)
			if diff := cmp.Diff(c.ran, got); diff != "" || d.err != nil || !strings.Contains(d.since()[1], c.result) {
				t.Error(d.err, diff, d.since())
			}
		})
	}
}

func TestARewriteIsJudgedAgainByTheHooksBeforeIt(t *testing.T) {
	guard := hook.Middleware{Name: "guard", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if strings.Contains(u.Call.Input, "secret") {
			return hook.Denied("no secrets"), nil
		}
		return hook.Allowed("harmless"), nil
	}}
	trick := hook.Middleware{Name: "trick", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) {
		return hook.Decision{Input: `{"path":"secret"}`}, nil
	}}
	var got []string
	d := play{cfg: loop.Config{Model: plays(uses(call("c", "read", `{"path":"a"}`)), says("done")), Tools: []tool.Tool{reads(&got)}, Hooks: []hook.Middleware{guard, trick}}}.do(t)
	if len(got) > 0 || !strings.Contains(d.since()[1], "no secrets") {
		t.Error(got, d.since())
	}
}

func TestPreGenerationChangesTheRunAndItsErrorEndsIt(t *testing.T) {
	edit := hook.Middleware{Name: "edit", PreGeneration: func(_ context.Context, g *hook.Generation) error {
		g.System += ", briefly"
		g.Messages = message.NewHistory(message.User("context"), message.Results(message.ToolResult{Call: "stray"})).Append(g.Messages.At(0))
		return nil
	}}
	m := plays(says("done"))
	d := play{cfg: loop.Config{Model: m, Hooks: []hook.Middleware{edit}}, run: engine.Run{System: "answer"}}.do(t)
	if d.err != nil || m.asked[0].System != "answer, briefly" {
		t.Error(d.err, m.asked[0].System)
	}
	if diff := cmp.Diff([]string{"user: context", "user: go", "assistant: done"}, dump(d.talk)); diff != "" {
		t.Error("what a hook made is mended:", diff)
	}
	stop := hook.Middleware{Name: "stop", PreGeneration: func(context.Context, *hook.Generation) error { return errdefs.PolicyDenied.Errorf("out of hours") }}
	m = plays(says("done"))
	d = play{cfg: loop.Config{Model: m, Hooks: []hook.Middleware{stop}}}.do(t)
	if wantErr(t, d.err, errdefs.Aborted, "hook stop: out of hours"); m.calls() > 0 {
		t.Error("the model was called")
	}
}

func TestAPostToolUseHookThatFailsWithholdsTheResult(t *testing.T) {
	leak := hook.Middleware{Name: "redact", PostToolUse: func(context.Context, *hook.ToolUse) error { return errors.New("content of a: cannot redact") }}
	var got []string
	d := play{cfg: loop.Config{Model: plays(uses(call("c", "read", `{"path":"a"}`)), says("done")), Tools: []tool.Tool{reads(&got)}, Hooks: []hook.Middleware{leak}}}.do(t)
	if diff := cmp.Diff("tool:  [c The result was withheld by redact. !]", d.since()[1]); diff != "" || len(got) != 1 {
		t.Error(diff, got)
	}
	if f := entries[journal.ToolFinished](t, d)[0]; f.Outcome != journal.OutcomeError || !strings.Contains(f.Warning, "cannot redact") {
		t.Error(f)
	}
}

func TestAStopHookSendsTheModelBackThreeTimesAtMost(t *testing.T) {
	asked := 0
	nag := hook.Middleware{Name: "nag", PostGeneration: func(_ context.Context, g *hook.Generation) error {
		asked++
		g.Again(fmt.Sprint("really? ", asked))
		return nil
	}}
	after := 0
	waits := hook.Middleware{Name: "waits", PostGeneration: func(context.Context, *hook.Generation) error { after++; return nil }}
	m := plays(says("a"), says("b"), says("c"), says("d"), says("e"))
	d := play{cfg: loop.Config{Model: m, Hooks: []hook.Middleware{nag, waits}}}.do(t)
	want := []string{"assistant: a", "user: really? 1", "assistant: b", "user: really? 2", "assistant: c", "user: really? 3", "assistant: d"}
	if diff := cmp.Diff(want, d.since()); diff != "" || d.err != nil || asked != 4 || after != 0 {
		t.Error(d.err, asked, after, diff)
	}
}

func TestAPostGenerationHookThatFailsLosesNothing(t *testing.T) {
	bad := hook.Middleware{Name: "bad", PostGeneration: func(context.Context, *hook.Generation) error { panic("boom") }}
	d := play{cfg: loop.Config{Model: plays(says("a")), Hooks: []hook.Middleware{bad}}}.do(t)
	want := []journal.Stopped{{Errors: []string{"hook bad: bad panicked: boom"}}}
	if diff := cmp.Diff(want, entries[journal.Stopped](t, d)); diff != "" || d.err != nil || d.talk.Last().Text() != "a" {
		t.Error(d.err, diff)
	}
}

func TestCallIDsAreUniqueInTheSessionAndNeverEmpty(t *testing.T) {
	m := plays(
		uses(call("c", "x", `{"a": 1}`), call("c", "x", `{}`), call("", "x", `{}`), call("", "x", `{}`)),
		uses(call("c", "x", `{}`), call("c_1_2", "x", `{}`), call("c_2_1", "x", `{}`), call("fresh", "x", "{}")), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{constant("x")}}}.do(t)
	want := []string{
		`assistant:  <c x {"a":1}> <c_1_2 x {}> <call_1_3 x {}> <call_1_4 x {}>`, "tool:  [c ok] [c_1_2 ok] [call_1_3 ok] [call_1_4 ok]",
		`assistant:  <c_2_1 x {}> <c_1_2_2_2 x {}> <c_2_1_2_3 x {}> <fresh x {}>`, "tool:  [c_2_1 ok] [c_1_2_2_2 ok] [c_2_1_2_3 ok] [fresh ok]",
		"assistant: done",
	}
	if diff := cmp.Diff(want, d.since()); diff != "" || d.err != nil {
		t.Error(d.err, diff)
	}
}

func TestAReplyThatNeedsNoChangeIsJournaledAsItIs(t *testing.T) {
	msg := message.New(message.RoleAssistant, message.Reasoning{Text: "hm", Signature: "s"}, message.Text{Text: "a"}, call("c", "x", `{"a":1}`))
	odd := message.New(message.RoleAssistant, message.Text{Text: "a", Origin: message.Origin{Provider: "p", Extra: `{"k":1}`}}, message.ToolCall{ID: "d", Name: "x", Input: `{ }`, Origin: message.Origin{Provider: "p"}}, message.Opaque{Provider: "p", JSON: `{}`})
	m := plays(answer(msg), answer(odd), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{constant("x")}}}.do(t)
	if d.talk.At(1) != msg {
		t.Error("another message")
	}
	var parts []message.Part
	for p := range d.talk.At(3).Parts() {
		parts = append(parts, p)
	}
	want := []message.Part{message.Text{Text: "a", Origin: message.Origin{Provider: "p", Extra: `{"k":1}`}}, message.ToolCall{ID: "d", Name: "x", Input: `{}`, Origin: message.Origin{Provider: "p"}}, message.Opaque{Provider: "p", JSON: `{}`}}
	if diff := cmp.Diff(want, parts); diff != "" {
		t.Error("only the input was made compact:", diff)
	}
}
