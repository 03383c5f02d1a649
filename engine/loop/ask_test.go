package loop_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// asks asks a person about every call of a tool.
func asks(name string) hook.Middleware {
	return hook.Middleware{Name: "asks", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if u.Call.Name == name {
			return hook.Asking("may I " + u.Call.Name + "?"), nil
		}
		return hook.Decision{}, nil
	}}
}

func TestAPersonDecidesAboutACall(t *testing.T) {
	for name, c := range map[string]struct {
		answer journal.Answered
		err    error
		ran    []string
		result string
		class  *errdefs.Class
	}{
		"yes":                       {answer: journal.Answered{Approved: true}, ran: []string{"a"}, result: "content of a"},
		"no":                        {answer: journal.Answered{}, result: "Rejected by a person. It was not run. !"},
		"no, and why":               {answer: journal.Answered{Text: "too early"}, result: "Rejected by a person: too early !"},
		"yes, with an edit":         {answer: journal.Answered{Approved: true, Input: `{"path":"b"}`}, ran: []string{"b"}, result: "content of b"},
		"an edit by an alias":       {answer: journal.Answered{Approved: true, Input: `{"file":"b"}`}, ran: []string{"b"}, result: "content of b"},
		"an edit that is not valid": {answer: journal.Answered{Approved: true, Input: `{"path":3}`}, result: "/path"},
		"an edit that is no JSON":   {answer: journal.Answered{Approved: true, Input: `path: b`}, result: "not valid JSON"},
		"no, with an edit":          {answer: journal.Answered{Input: `{"path":"b"}`}, result: "Rejected by a person"},
		"an answer that names no or another question": {answer: journal.Answered{ID: "other", Approved: true}, ran: []string{"a"}, result: "content of a"},
		"the terminal broke":                          {err: errors.New("tty closed"), class: errdefs.Internal, result: "Not run"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			var prompt engine.Prompt
			host := &listener{ask: func(p engine.Prompt) (engine.Reply, error) {
				prompt = p
				return engine.Reply{Answered: c.answer}, c.err
			}}
			m := plays(uses(call("c", "read", `{"path":"a"}`)), says("done"))
			d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{reads(&got)}, Hooks: []hook.Middleware{asks("read")}}, host: host}.do(t)
			if c.class == nil && d.err != nil || c.class != nil && (d.err == nil || !strings.Contains(d.err.Error(), "tty")) {
				t.Error(d.err)
			}
			if diff := cmp.Diff(c.ran, got); diff != "" || !strings.Contains(d.since()[1], c.result) {
				t.Error(diff, d.since())
			}
			if diff := cmp.Diff(journal.Asked{ID: "c", Prompt: "may I read?", Call: &journal.Called{ID: "c", Name: "read", Input: `{"path":"a"}`}, Once: true}, prompt.Asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheAllowedRunBeforeThePersonIsAskedAndTheApprovedAfter(t *testing.T) {
	var order []string
	note := func(name string) tool.Tool {
		return tool.Func(name, "", func(ctx context.Context, _ none) (string, error) {
			order = append(order, tool.FromContext(ctx).ID)
			return "ok", nil
		})
	}
	host := &listener{ask: func(p engine.Prompt) (engine.Reply, error) {
		order = append(order, "ask "+p.ID)
		return engine.Reply{Answered: journal.Answered{Approved: p.ID != "c3"}}, nil
	}}
	m := plays(uses(call("c1", "ask", `{}`), call("c2", "x", `{}`), call("c3", "ask", `{}`), call("c4", "x", `{}`), call("c5", "ask", `{}`)), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{note("ask"), note("x")}, Hooks: []hook.Middleware{asks("ask")}}, host: host}.do(t)
	if diff := cmp.Diff([]string{"c2", "c4", "ask c1", "ask c3", "ask c5", "c1", "c5"}, order); diff != "" || d.err != nil {
		t.Error(d.err, diff)
	}
	if diff := cmp.Diff("tool:  [c1 ok] [c2 ok] [c3 Rejected by a person. It was not run. !] [c4 ok] [c5 ok]", d.since()[1]); diff != "" {
		t.Error(diff)
	}
}

func TestNobodyThereParksTheRunAndALaterAnswerRunsTheCallOnce(t *testing.T) {
	for name, c := range map[string]struct {
		answer journal.Answered
		ran    int
		result string
	}{
		"yes": {journal.Answered{ID: "c1", Approved: true, By: "ada"}, 1, "[c1 ask 1] [c2 x 1]"},
		"no":  {journal.Answered{ID: "c1", Text: "no"}, 0, "[c1 Rejected by a person: no !] [c2 x 1]"},
	} {
		t.Run(name, func(t *testing.T) {
			asked, other := 0, 0
			m := plays(uses(call("c1", "ask", `{}`), call("c2", "x", `{}`)), says("done"))
			d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{counted("ask", &asked), counted("x", &other)}, Hooks: []hook.Middleware{asks("ask")}}}.do(t)
			var intr engine.InterruptedError
			if !errors.As(d.err, &intr) || intr.Cause != engine.CauseAwaitingPerson || intr.Detail != "c1" || asked != 0 || other != 1 {
				t.Fatal(d.err, asked, other)
			}
			if p := d.log.State().Pending; len(p) != 1 || p[0].ID != "c1" {
				t.Error(p)
			}
			d.execute(t, t.Context(), engine.NoopHost{}) // nobody answered yet: it parks again, and asks no second time in the journal
			if !errdefs.Interrupted.Is(d.err) || len(entries[journal.Asked](t, d)) != 1 {
				t.Fatal(d.err)
			}
			elsewhere, err := journal.Open(t.Context(), d.store, "s")
			if err != nil {
				t.Fatal(err)
			}
			if err := elsewhere.Answer(t.Context(), c.answer); err != nil {
				t.Fatal(err)
			}
			if err := elsewhere.Answer(t.Context(), c.answer); !errdefs.Conflict.Is(err) {
				t.Error("a second answer:", err)
			}
			if err := d.log.Drive(t.Context(), "you", journal.Entry{Run: "r", Data: journal.Resumed{Owner: "you"}}); err != nil {
				t.Fatal(err)
			}
			d.execute(t, t.Context(), engine.NoopHost{})
			if d.err != nil || asked != c.ran || other != 1 || m.calls() != 2 {
				t.Error(d.err, asked, other, m.calls())
			}
			if diff := cmp.Diff([]string{"assistant:  <c1 ask {}> <c2 x {}>", "tool:  " + c.result, "assistant: done"}, d.since()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAToolThatParksGoesOnWithTheSameKeyOnlyIfItMayRunAgain(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []tool.Option
		parks bool
	}{"idempotent": {[]tool.Option{tool.Idempotent}, true}, "writes": {nil, false}} {
		t.Run(name, func(t *testing.T) {
			var keys []string
			child := tool.Func("child", "", func(ctx context.Context, _ none) (string, error) {
				if keys = append(keys, tool.FromContext(ctx).Key); len(keys) == 1 {
					return "", engine.InterruptedError{Interrupt: engine.Interrupt{Cause: engine.CauseAwaitingPerson}}
				}
				return "it did", nil
			}, c.opts...)
			m := plays(uses(call("c", "child", `{}`)), says("done"))
			d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{child}}}.do(t)
			if errdefs.Interrupted.Is(d.err) != c.parks {
				t.Fatal(d.err)
			}
			if !c.parks {
				if !strings.Contains(d.since()[1], "awaiting_person !") {
					t.Error(d.since())
				}
				return
			}
			d.execute(t, t.Context(), engine.NoopHost{})
			if diff := cmp.Diff([]string{"r.1/tool/c", "r.1/tool/c"}, keys); diff != "" || d.err != nil || d.since()[1] != "tool:  [c it did]" {
				t.Error(d.err, diff, d.since())
			}
		})
	}
}

func TestAnInterruptBetweenStepsLosesAndRepeatsNothing(t *testing.T) {
	n := 0
	host := &shutdown{c: make(chan engine.Interrupt, 1)}
	work := tool.Func("x", "", func(context.Context, none) (string, error) {
		n++
		host.c <- engine.Interrupt{Cause: engine.CauseHostShutdown}
		return "worked", nil
	})
	m := plays(uses(call("c1", "x", `{}`), call("c2", "x", `{}`)), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{work}}, host: host}.do(t)
	if !errdefs.Interrupted.Is(d.err) || n != 1 || m.calls() != 1 {
		t.Fatal(d.err, n, m.calls())
	}
	if last := d.talk.Last(); last.Role() != message.RoleAssistant {
		t.Error("its calls are still open:", dump(d.talk))
	}
	d.execute(t, t.Context(), host)
	d.execute(t, t.Context(), engine.NoopHost{})
	if d.err != nil || n != 2 || m.calls() != 2 || d.talk.Last().Text() != "done" {
		t.Error(d.err, n, m.calls())
	}
}

type shutdown struct {
	engine.NoopHost
	c chan engine.Interrupt
}

func (s *shutdown) Interrupts() <-chan engine.Interrupt { return s.c }

func TestACancelWhileAPersonIsAskedIsCanceledAndTheCallDoesNotRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var got []string
	host := &listener{ask: func(engine.Prompt) (engine.Reply, error) {
		cancel()
		return engine.Reply{}, errors.New("the prompt was torn down") // whatever breaks then, it is a cancel
	}}
	m := plays(uses(call("c", "read", `{"path":"a"}`)), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{reads(&got)}, Hooks: []hook.Middleware{asks("read")}}, host: host, ctx: ctx}.do(t)
	if !errors.Is(d.err, context.Canceled) || errdefs.Of(d.err) != nil || len(got) != 0 || m.calls() != 1 {
		t.Errorf("%v, ran: %v, %d model calls", d.err, got, m.calls())
	}
	if text := strings.Join(d.since(), "\n"); !strings.Contains(text, "Not run") {
		t.Error(text)
	}
	if asked := entries[journal.Asked](t, d); len(asked) != 1 {
		t.Errorf("the question is not on record: %v", asked)
	}
}

// A person who approves something for the session is not asked about it again there: not in the run, not in a later one, and not when the session is read anew.
func TestWhatAPersonApprovesForTheSessionIsNotAskedAboutAgain(t *testing.T) {
	permissions, err := permission.New(permission.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	host := &listener{ask: func(p engine.Prompt) (engine.Reply, error) {
		asked = append(asked, p.ID)
		a := journal.Answered{Approved: true}
		switch p.ID {
		case "c1":
			a.Session = true
		case "c3":
			a.Session, a.Rule = true, "other"
		case "c6":
			a.Approved, a.Session, a.Rule = false, true, "never" // a no grants nothing
		}
		return engine.Reply{Answered: a}, nil
	}}
	var ran []string
	note := func(name string) tool.Tool {
		return tool.Func(name, "", func(ctx context.Context, _ struct {
			N int `json:"n"`
		},
		) (string, error) {
			ran = append(ran, tool.FromContext(ctx).ID)
			return "ok", nil
		}, tool.Destructive)
	}
	m := plays(
		uses(call("c1", "pay", `{"n":1}`)), uses(call("c2", "Pay", `{"n": 1}`)), // the same, in other words
		uses(call("c3", "other", `{"n":1}`)), uses(call("c4", "other", `{"n":2}`)), // by the rule
		uses(call("c5", "pay", `{"n":2}`)), uses(call("c6", "never", `{"n":1}`)), uses(call("c7", "never", `{"n":1}`)), says("done"),
	)
	d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{note("pay"), note("other"), note("never")}, Hooks: []hook.Middleware{permissions}}, host: host}.do(t)
	if diff := cmp.Diff([]string{"c1", "c3", "c5", "c6", "c7"}, asked); diff != "" || d.err != nil {
		t.Error(d.err, diff)
	}
	if diff := cmp.Diff([]string{"c1", "c2", "c3", "c4", "c5", "c7"}, ran); diff != "" {
		t.Error(diff)
	}
	again, err := journal.Open(t.Context(), d.store, "s")
	if err != nil {
		t.Fatal(err)
	}
	want := []journal.Granted{{Tool: "pay", Input: `{"n":1}`}, {Tool: "other", Input: `{"n":1}`, Rule: "other"}}
	if diff := cmp.Diff(want, again.State().Granted); diff != "" {
		t.Error(diff)
	}
}
