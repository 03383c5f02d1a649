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
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/catalog"
	"github.com/pawl-dev/pawl/tool"
)

const (
	goOn    = "user: Your reply was cut off at the output limit. Go on exactly where it stopped, without repeating what you said."
	shorter = "user: Your reply was cut off at the output limit before it said anything. Answer again, more briefly."
	nudge   = "user: Your reply was empty. Go on with the task, or say in a sentence that it is done."
	badCall = "user: Your tool call could not be read, and nothing was run. Make it again, with valid JSON as its input."
	circles = "user: You have made the same call several times in a row, with the same result each time. It will not change. Try something else, or say what stops you."
	cutOff  = "Not run: the reply with this call was cut off at the output limit, so the call may be incomplete. Make it again, with less text. !"
	notRun  = "Not run: the run ended before its turn came. !"
)

func TestEveryReplyHasItsEnding(t *testing.T) {
	opaque := func(context.Context, model.Request) (*model.Response, error) {
		return &model.Response{Message: message.New(message.RoleAssistant, message.Opaque{Provider: "anthropic", JSON: `{"type":"server_tool_use"}`}), Stop: model.StopPause}, nil
	}
	reasons := func(stop model.StopReason, why string) reply {
		return func(context.Context, model.Request) (*model.Response, error) {
			return &model.Response{Message: message.Assistant("I"), Stop: stop, Reason: why}, nil
		}
	}
	x := call("c1", "x", `{}`)
	for name, c := range map[string]struct {
		replies []reply
		limits  loop.Limits
		class   *errdefs.Class
		says    []string // in the error
		talk    []string
		text    string // the whole answer
	}{
		"a plain answer": {replies: []reply{says("hi")}, talk: []string{"assistant: hi"}, text: "hi"},
		"an unknown stop reason is an end": {
			replies: []reply{ends("some_new_reason", "hi")}, talk: []string{"assistant: hi"}, text: "hi",
		},
		"cut off three times, then whole": {
			replies: append(times(3, ends(model.StopLength, "a")), says("b")),
			talk:    []string{"assistant: a", goOn, "assistant: a", goOn, "assistant: a", goOn, "assistant: b"}, text: "aaab",
		},
		"cut off four times": {
			replies: times(4, ends(model.StopLength, "a")), class: errdefs.Truncated, says: []string{"4 times"},
			talk: []string{"assistant: a", goOn, "assistant: a", goOn, "assistant: a", goOn, "assistant: a"}, text: "aaaa",
		},
		"three cuts, an answer to a tool, and three more cuts are not six in a row": {
			replies: append(append(times(3, ends(model.StopLength, "a")), uses(x)), append(times(3, ends(model.StopLength, "b")), says("c"))...),
			talk: []string{
				"assistant: a", goOn, "assistant: a", goOn, "assistant: a", goOn, "assistant:  <c1 x {}>", "tool:  [c1 ok]",
				"assistant: b", goOn, "assistant: b", goOn, "assistant: b", goOn, "assistant: c",
			}, text: "bbbc",
		},
		"cut off before it said anything": {
			replies: []reply{ends(model.StopLength, ""), says("b")}, talk: []string{shorter, "assistant: b"}, text: "b",
		},
		"a half-written call never runs, nor do its neighbours": {
			replies: []reply{ends(model.StopLength, "a", x, call("c2", "x", `{"half":`)), says("b")},
			talk:    []string{`assistant: a <c1 x {}> <c2 x {"half":>`, "tool:  [c1 " + cutOff + "] [c2 " + cutOff + "]", "assistant: b"}, text: "b",
		},
		"cut off calls four times": {
			replies: times(4, ends(model.StopLength, "", x)), class: errdefs.Truncated,
			talk: []string{
				"assistant:  <c1 x {}>", "tool:  [c1 " + cutOff + "]", "assistant:  <c1_2_1 x {}>", "tool:  [c1_2_1 " + cutOff + "]",
				"assistant:  <c1_3_1 x {}>", "tool:  [c1_3_1 " + cutOff + "]", "assistant:  <c1_4_1 x {}>", "tool:  [c1_4_1 " + cutOff + "]",
			},
		},
		"a paused reply goes back as it is": {
			replies: []reply{ends(model.StopPause, "looking"), opaque, says("found")}, talk: []string{"assistant: looking", "assistant: ", "assistant: found"}, text: "found",
		},
		"a paused reply with a call waits for its result": {
			replies: []reply{ends(model.StopPause, "looking", x), says("found")}, talk: []string{"assistant: looking <c1 x {}>", "tool:  [c1 ok]", "assistant: found"}, text: "found",
		},
		"a pause that says nothing is an empty reply": {
			replies: times(2, ends(model.StopPause, "")), class: errdefs.NoProgress, talk: []string{nudge},
		},
		"refusal": {
			replies: []reply{reasons(model.StopRefusal, "violence")}, class: errdefs.Refused, says: []string{"refused", "violence"}, talk: []string{"assistant: I"}, text: "I",
		},
		"content filter": {
			replies: []reply{reasons(model.StopFilter, "SAFETY")}, class: errdefs.Refused, says: []string{"content filter", "SAFETY"}, talk: []string{"assistant: I"}, text: "I",
		},
		"a refusal with a call does not run it": {
			replies: []reply{ends(model.StopRefusal, "", x)}, class: errdefs.Refused, talk: []string{"assistant:  <c1 x {}>", "tool:  [c1 " + notRun + "]"},
		},
		"the window is full": {
			replies: []reply{ends(model.StopWindow, "a", x)}, class: errdefs.Overflow, talk: []string{"assistant: a <c1 x {}>", "tool:  [c1 " + notRun + "]"}, text: "a",
		},
		"an empty reply is asked for once more": {
			replies: []reply{says(" \n"), says("b")}, talk: []string{nudge, "assistant: b"}, text: "b",
		},
		"two empty replies": {replies: times(2, says("")), class: errdefs.NoProgress, says: []string{"2 empty"}, talk: []string{nudge}},
		"reasoning alone is empty": {
			replies: times(2, func(context.Context, model.Request) (*model.Response, error) {
				return &model.Response{Message: message.New(message.RoleAssistant, message.Reasoning{Text: "hm"})}, nil
			}), class: errdefs.NoProgress, talk: []string{nudge},
		},
		"no message at all is empty": {
			replies: times(2, func(context.Context, model.Request) (*model.Response, error) { return &model.Response{}, nil }), class: errdefs.NoProgress, talk: []string{nudge},
		},
		"a call that the provider could not read": {
			replies: []reply{ends(model.StopBadCall, ""), uses(x), says("b")},
			talk:    []string{badCall, "assistant:  <c1 x {}>", "tool:  [c1 ok]", "assistant: b"}, text: "b",
		},
		"two calls that could not be read": {
			replies: times(2, ends(model.StopBadCall, "I will")), class: errdefs.NoProgress, talk: []string{"assistant: I will", badCall, "assistant: I will"}, text: "I will",
		},
		"the model fails": {
			replies: []reply{fails(&model.Error{Provider: "p", Kind: errdefs.RateLimit, Status: 429, Message: "slow down"})},
			class:   errdefs.RateLimit, says: []string{"slow down"}, talk: []string{},
		},
		"the model fails without a class": {
			replies: []reply{fails(errors.New("broken pipe"))}, class: errdefs.NotAvailable, says: []string{"broken pipe"}, talk: []string{},
		},
		"the model's own deadline is no cancel": {
			replies: []reply{fails(fmt.Errorf("http: %w", context.DeadlineExceeded))}, class: errdefs.Timeout, talk: []string{},
		},
		"the model gives nothing": {
			replies: []reply{func(context.Context, model.Request) (*model.Response, error) { return nil, nil }}, class: errdefs.Internal, talk: []string{},
		},
		"the model speaks as somebody else": {
			replies: []reply{func(context.Context, model.Request) (*model.Response, error) {
				return &model.Response{Message: message.User("me")}, nil
			}}, class: errdefs.Internal, says: []string{`role "user"`}, talk: []string{},
		},
		"the model panics": {
			replies: []reply{func(context.Context, model.Request) (*model.Response, error) { panic("boom") }}, class: errdefs.Internal, says: []string{"boom"}, talk: []string{},
		},
		"the model fails after it worked: what was done stays": {
			replies: []reply{uses(x), fails(errdefs.Overflow.Errorf("too long"))}, class: errdefs.Overflow, talk: []string{"assistant:  <c1 x {}>", "tool:  [c1 ok]"},
		},
		"the same call three times, a word, and something else": {
			replies: append(times(3, uses(x)), says("I give up")),
			talk: []string{
				"assistant:  <c1 x {}>", "tool:  [c1 ok]", "assistant:  <c1_2_1 x {}>", "tool:  [c1_2_1 ok]",
				"assistant:  <c1_3_1 x {}>", "tool:  [c1_3_1 ok]", circles, "assistant: I give up",
			}, text: "I give up",
		},
		"the same call four times": {
			replies: times(4, uses(x)), class: errdefs.NoProgress, says: []string{"(x)", "4 times"},
			talk: []string{
				"assistant:  <c1 x {}>", "tool:  [c1 ok]", "assistant:  <c1_2_1 x {}>", "tool:  [c1_2_1 ok]",
				"assistant:  <c1_3_1 x {}>", "tool:  [c1_3_1 ok]", circles, "assistant:  <c1_4_1 x {}>", "tool:  [c1_4_1 ok]",
			},
		},
		"Repeats 1 tells at once and ends at the second": {
			replies: times(2, uses(x)), limits: loop.Limits{Repeats: 1}, class: errdefs.NoProgress,
			talk: []string{"assistant:  <c1 x {}>", "tool:  [c1 ok]", circles, "assistant:  <c1_2_1 x {}>", "tool:  [c1_2_1 ok]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := plays(c.replies...)
			d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{constant("x")}, Limits: c.limits}}.do(t)
			wantErr(t, d.err, c.class, c.says...)
			if diff := cmp.Diff(c.talk, d.since()); diff != "" {
				t.Errorf("talk (-want +got):\n%s", diff)
			}
			var ms []message.Message
			for _, m := range d.talk.All() {
				ms = append(ms, m)
			}
			if got := engine.Answer(ms); got != c.text {
				t.Errorf("the answer is %q, want %q", got, c.text)
			}
			if m.calls() != len(c.replies) {
				t.Errorf("%d model calls, want %d", m.calls(), len(c.replies))
			}
		})
	}
}

func TestAlternatingCallsAndChangingResultsAreNoCircle(t *testing.T) {
	n := 0
	x, y := call("c", "x", `{"a":1}`), call("c", "x", `{"a":2}`)
	for name, c := range map[string]struct {
		tool    tool.Tool
		replies []reply
		limits  loop.Limits
	}{
		"two calls in turns":       {tool: constant("x"), replies: []reply{uses(x), uses(y), uses(x), uses(y), uses(x), uses(y), uses(x), uses(y), says("done")}},
		"another result each time": {tool: counted("x", &n), replies: append(times(6, uses(call("c", "x", `{}`))), says("done"))},
		"Repeats switched off":     {tool: constant("x"), replies: append(times(6, uses(x)), says("done")), limits: loop.Limits{Repeats: -1}},
		"one call more in between": {tool: constant("x"), replies: []reply{uses(x), uses(x), uses(x, y), uses(x), uses(x), says("done")}},
	} {
		t.Run(name, func(t *testing.T) {
			d := play{cfg: loop.Config{Model: plays(c.replies...), Tools: []tool.Tool{c.tool}, Limits: c.limits}}.do(t)
			if d.err != nil || strings.Contains(strings.Join(d.since(), "\n"), circles) {
				t.Errorf("%v\n%s", d.err, strings.Join(d.since(), "\n"))
			}
		})
	}
}

func TestALimitEndsTheRunBeforeTheCallThatWouldGoOverIt(t *testing.T) {
	x := uses(call("c1", "x", `{"a":1}`))
	changing := func() (rs []reply) {
		for i := range 10 {
			rs = append(rs, uses(call("c1", "x", fmt.Sprintf(`{"a":%d}`, i))))
		}
		return rs
	}
	priced := (*catalog.Catalog)(nil).With(catalog.Model{Name: "p/m", Price: &catalog.Price{Input: 1, Output: 2}})
	for name, c := range map[string]struct {
		limits     loop.Limits
		budget     *engine.Budget
		model      string
		prices     *catalog.Catalog
		replies    []reply
		calls, ran int
		class      *errdefs.Class
		says       string
	}{
		"steps":                        {limits: loop.Limits{Steps: 3}, calls: 3, ran: 3, class: errdefs.BudgetExceeded, says: "3 model calls"},
		"one step":                     {limits: loop.Limits{Steps: 1}, calls: 1, ran: 1, class: errdefs.BudgetExceeded},
		"an end at the last step":      {limits: loop.Limits{Steps: 1}, replies: []reply{says("x")}, calls: 1},
		"tool calls":                   {limits: loop.Limits{ToolCalls: 2}, calls: 3, ran: 2, class: errdefs.BudgetExceeded, says: "3 tool calls"},
		"tool calls of one reply":      {limits: loop.Limits{ToolCalls: 1}, replies: []reply{uses(call("a", "x", `{}`), call("b", "x", `{}`))}, calls: 1, ran: 0, class: errdefs.BudgetExceeded},
		"tokens":                       {limits: loop.Limits{Tokens: 30}, calls: 2, ran: 2, class: errdefs.BudgetExceeded, says: "30 tokens"},
		"budget of tokens":             {budget: &engine.Budget{Tokens: 31}, calls: 3, ran: 3, class: errdefs.BudgetExceeded, says: "31 tokens"},
		"budget used up before":        {budget: spent(&engine.Budget{Tokens: 5}), calls: 0, class: errdefs.BudgetExceeded},
		"budget of money":              {budget: &engine.Budget{CostMicros: 40}, model: "p/m", prices: priced, calls: 2, ran: 2, class: errdefs.BudgetExceeded, says: "$4e-05"},
		"money without a known price":  {budget: &engine.Budget{CostMicros: 40}, model: "p/other", prices: priced, calls: 0, class: errdefs.Validation, says: "p/other"},
		"money above, tokens here":     {budget: engine.Bounds{Budget: &engine.Budget{CostMicros: 40}}.Child(engine.Bounds{Budget: &engine.Budget{Tokens: 1e6}}).Budget, model: "p/m", prices: priced, calls: 2, ran: 2, class: errdefs.BudgetExceeded},
		"no limits end by the default": {replies: changing(), calls: 11, ran: 10, class: errdefs.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			count := tool.Func("x", "", func(context.Context, map[string]any) (string, error) { n++; return fmt.Sprint(n), nil })
			if c.replies == nil {
				c.replies = times(10, x)
			}
			m := plays(c.replies...)
			m.name = c.model
			d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{count}, Limits: c.limits, Prices: c.prices}, run: engine.Run{Bounds: engine.Bounds{Budget: c.budget}}}.do(t)
			wantErr(t, d.err, c.class, c.says)
			if m.calls() != c.calls || n != c.ran {
				t.Errorf("%d model calls and %d tool runs, want %d and %d", m.calls(), n, c.calls, c.ran)
			}
			if c.limits.Steps > 0 && c.class != nil && !errors.Is(d.err, loop.ErrMaxSteps) {
				t.Errorf("%v is not ErrMaxSteps", d.err)
			}
		})
	}
}

// What a model takes that answered in another one's place is counted at its own price, and not at all when that is not known.
func TestWhoAnsweredIsPaid(t *testing.T) {
	prices := (*catalog.Catalog)(nil).With(
		catalog.Model{Name: "p/m", Price: &catalog.Price{Input: 1, Output: 2}},
		catalog.Model{Name: "p/dear", Price: &catalog.Price{Input: 10, Output: 20}},
	)
	micros := func(n int64) *int64 { return &n }
	for by, c := range map[string]struct {
		cost  *int64
		money *errdefs.Class // with a budget in money
	}{
		"": {micros(20), nil}, "p/m": {micros(20), nil}, "p/dear": {micros(200), errdefs.BudgetExceeded}, "p/unknown": {nil, errdefs.Validation},
	} {
		signed := func(context.Context, model.Request) (*model.Response, error) {
			return &model.Response{Message: message.Assistant("x"), Stop: model.StopEnd, Usage: model.Usage{Input: 10, Output: 5}, By: by}, nil
		}
		m := plays(signed)
		m.name = "p/m"
		d := play{cfg: loop.Config{Model: m, Prices: prices}}.do(t)
		if diff := cmp.Diff(c.cost, entries[journal.ModelFinished](t, d)[0].CostMicros); diff != "" || d.err != nil {
			t.Error(by, d.err, diff)
		}
		m = plays(ends(model.StopLength, "x"), says("y"))
		m.replies[0] = func(ctx context.Context, req model.Request) (*model.Response, error) {
			resp, err := signed(ctx, req)
			resp.Stop = model.StopLength
			return resp, err
		}
		m.name = "p/m"
		d = play{cfg: loop.Config{Model: m, Prices: prices}, run: engine.Run{Bounds: engine.Bounds{Budget: &engine.Budget{CostMicros: 100}}}}.do(t)
		says := ""
		if by == "p/unknown" {
			says = by
		}
		wantErr(t, d.err, c.money, says)
	}
}

func spent(b *engine.Budget) *engine.Budget {
	b.Spend(model.Usage{Input: 5}, 0)
	return b
}

func TestABudgetIsSharedByTheRunsThatItBinds(t *testing.T) {
	budget := &engine.Budget{Tokens: 45}
	m := plays(times(10, says("x"))...)
	for i, want := range []*errdefs.Class{nil, nil, nil, errdefs.BudgetExceeded} {
		d := play{cfg: loop.Config{Model: m}, run: engine.Run{Bounds: engine.Bounds{Budget: budget}}}.do(t)
		if wantErr(t, d.err, want); t.Failed() {
			t.Fatal("run", i+1)
		}
	}
	if tokens, cost := budget.Spent(); tokens != 45 || cost != 0 {
		t.Error(tokens, cost)
	}
}

func TestAHostMayEndARunThatCostsTooMuchAndTheReplyIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		report func() error
		class  *errdefs.Class
	}{
		"budget":      {func() error { return errdefs.BudgetExceeded.Errorf("enough") }, errdefs.BudgetExceeded},
		"other error": {func() error { return errors.New("the meter is broken") }, nil},
		"panic":       {func() error { panic("meter") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			m := plays(uses(call("c1", "x", `{}`)), says("done"))
			d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{counted("x", &n)}}, host: meter{report: c.report}}.do(t)
			wantErr(t, d.err, c.class)
			if replies := entries[journal.ModelFinished](t, d); len(replies) == 0 || c.class != nil && n > 0 {
				t.Errorf("%d replies, %d tool runs", len(replies), n)
			}
		})
	}
}

type meter struct {
	engine.NoopHost
	report func() error
}

func (m meter) ReportUsage(context.Context, model.Usage) error { return m.report() }

func TestAFailedCallIsNotedAndTriedAgainOnResume(t *testing.T) {
	m := plays(fails(errdefs.RateLimit.Errorf("slow down")), says("ok"))
	d := play{cfg: loop.Config{Model: m}}.do(t)
	wantErr(t, d.err, errdefs.RateLimit)
	want := []journal.ModelFailed{{Class: "rate_limit", Error: "slow down"}}
	if diff := cmp.Diff(want, entries[journal.ModelFailed](t, d)); diff != "" {
		t.Error(diff)
	}
	d.execute(t, t.Context(), engine.NoopHost{})
	if d.err != nil || d.talk.Last().Text() != "ok" || m.calls() != 2 {
		t.Error(d.err, dump(d.talk), m.calls())
	}
}
