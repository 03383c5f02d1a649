package hook_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// Example shows a middleware: it keeps an agent out of a directory, and hides a secret from the model.
func Example() {
	secrets := hook.Middleware{
		Name: "secrets",
		PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			if strings.Contains(u.Call.Input, "/etc/") {
				return hook.Denied("system files are none of your business"), nil
			}
			return hook.Decision{}, nil // no opinion
		},
		PostToolUse: func(_ context.Context, u *hook.ToolUse) error {
			u.Result.Content = strings.ReplaceAll(u.Result.Content, "hunter2", "***")
			return nil
		},
	}
	ctx, hooks := context.Background(), []hook.Middleware{secrets}
	use := &hook.ToolUse{Call: message.ToolCall{Name: "read", Input: `{"path":"/etc/shadow"}`}}
	d := hook.Judge(ctx, hooks, use, nil)
	fmt.Println(d.Verdict, d.Reason)

	use = &hook.ToolUse{Call: message.ToolCall{Name: "read", Input: `{"path":".env"}`}}
	fmt.Println(hook.Judge(ctx, hooks, use, nil).Verdict)
	use.Result = &tool.Result{Content: "PASSWORD=hunter2"}
	fmt.Println(hook.After(ctx, hooks, use), use.Result.Content)
	// Output:
	// deny system files are none of your business
	// continue
	// <nil> PASSWORD=***
}

type judging = func(context.Context, *hook.ToolUse) (hook.Decision, error)

func gives(d hook.Decision) judging {
	return func(context.Context, *hook.ToolUse) (hook.Decision, error) { return d, nil }
}

func named(fs ...judging) (hs []hook.Middleware) {
	for i, f := range fs {
		hs = append(hs, hook.Middleware{Name: fmt.Sprintf("h%d", i), PreToolUse: f})
	}
	return append(hs, hook.Middleware{Name: "has no function"})
}

func TestJudgeTakesTheStrictestVerdictAndItsFirstReason(t *testing.T) {
	rewrite := func(input string) hook.Decision { return hook.Decision{Input: input} }
	undo := func(from, to string) judging {
		return func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			if u.Call.Input == from {
				return hook.Decision{Input: to}, nil
			}
			return hook.Decision{}, nil
		}
	}
	deniesInput := func(input string) judging {
		return func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			if u.Call.Input == input {
				return hook.Denied("not that"), nil
			}
			return hook.Decision{}, nil
		}
	}
	check := func(input string) (string, error) {
		if input == "bad" {
			return "", errors.New("no good")
		}
		return strings.TrimPrefix(input, "alias "), nil
	}
	for name, c := range map[string]struct {
		hooks []hook.Middleware
		want  hook.Decision
		input string // of the call, afterwards
	}{
		"nobody":            {nil, hook.Decision{}, "in"},
		"no opinion":        {named(gives(hook.Decision{})), hook.Decision{}, "in"},
		"allow":             {named(gives(hook.Decision{}), gives(hook.Allowed("a"))), hook.Allowed("a"), "in"},
		"ask beats allow":   {named(gives(hook.Allowed("a")), gives(hook.Asking("q")), gives(hook.Asking("p"))), hook.Asking("q"), "in"},
		"deny beats ask":    {named(gives(hook.Asking("q")), gives(hook.Denied("d")), gives(hook.Denied("e"))), hook.Denied("d"), "in"},
		"the first to deny": {named(gives(hook.Denied("d")), gives(hook.Allowed("a"))), hook.Denied("d"), "in"},
		"an error denies": {named(gives(hook.Allowed("a")), func(context.Context, *hook.ToolUse) (hook.Decision, error) {
			return hook.Allowed("x"), errors.New("oops")
		}), hook.Denied("hook h1: oops"), "in"},
		"a panic denies":     {named(gives(hook.Allowed("a")), func(context.Context, *hook.ToolUse) (hook.Decision, error) { panic("oops") }), hook.Denied("hook h1 panicked: oops"), "in"},
		"no verdict denies":  {named(gives(hook.Decision{Verdict: 9})), hook.Denied("hook h0 gave verdict 9, which is none"), "in"},
		"nor does a lesser":  {named(gives(hook.Decision{Verdict: -1})), hook.Denied("hook h0 gave verdict -1, which is none"), "in"},
		"a rewrite":          {named(undo("in", "out")), rewrite("out"), "out"},
		"is canonicalised":   {named(gives(rewrite("alias out"))), rewrite("out"), "out"},
		"to the same":        {named(gives(rewrite("in"))), hook.Decision{}, "in"},
		"of the same":        {named(gives(rewrite("alias in"))), hook.Decision{}, "in"},
		"is checked":         {named(gives(rewrite("bad"))), hook.Denied("a hook rewrote the input to one that is not valid: no good"), "in"},
		"is judged again":    {named(deniesInput("out"), undo("in", "out")), hook.Decision{Verdict: hook.Deny, Reason: "not that", Input: "out"}, "out"},
		"a denial is final":  {named(deniesInput("in"), undo("in", "out")), hook.Denied("not that"), "in"},
		"the last one":       {named(undo("in", "a"), undo("in", "b")), rewrite("b"), "b"},
		"and asked about":    {named(undo("in", "out"), gives(hook.Asking("q"))), hook.Decision{Verdict: hook.Ask, Reason: "q", Input: "out"}, "out"},
		"that never settles": {named(undo("in", "out"), undo("out", "in")), hook.Denied("hooks rewrote the input 5 times without agreeing"), "in"},
	} {
		t.Run(name, func(t *testing.T) {
			use := &hook.ToolUse{Call: message.ToolCall{Input: "in"}}
			got := hook.Judge(t.Context(), c.hooks, use, check)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if got.Verdict != hook.Deny && use.Call.Input != c.input {
				t.Errorf("input %q, want %q", use.Call.Input, c.input)
			}
		})
	}
}

func TestEveryHookMayTellTheModelSomething(t *testing.T) {
	tells := func(text string) judging { return gives(hook.Decision{Context: text}) }
	rewrites := func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if u.Call.Input == "in" {
			return hook.Decision{Input: "out", Context: "of what is not run"}, nil
		}
		return hook.Decision{Context: "it is " + u.Call.Input}, nil
	}
	for name, c := range map[string]struct {
		hooks []hook.Middleware
		want  hook.Decision
	}{
		"in order":          {named(tells("a"), gives(hook.Allowed("")), tells("b")), hook.Decision{Verdict: hook.Allow, Context: "a\nb"}},
		"with a denial":     {named(tells("a"), gives(hook.Denied("no"))), hook.Decision{Verdict: hook.Deny, Reason: "no", Context: "a"}},
		"of the last input": {named(rewrites), hook.Decision{Input: "out", Context: "it is out"}},
		"not of an error's": {named(func(context.Context, *hook.ToolUse) (hook.Decision, error) {
			return hook.Decision{Context: "a"}, errors.New("no")
		}), hook.Denied("hook h0: no")},
		"of one that ends all": {named(func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			u.EndRun("over")
			return hook.Decision{Verdict: hook.Allow, Context: "a"}, nil
		}), hook.Decision{Verdict: hook.Deny, Reason: "over", Context: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			use := &hook.ToolUse{Call: message.ToolCall{Input: "in"}}
			if diff := cmp.Diff(c.want, hook.Judge(t.Context(), c.hooks, use, nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAHookEndsTheRunAndTheFirstToSaySoWins(t *testing.T) {
	ends := func(reason string) hook.Middleware {
		return hook.Middleware{Name: reason, PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			u.EndRun(reason)
			return hook.Allowed("go on"), nil
		}, PostToolUse: func(_ context.Context, u *hook.ToolUse) error {
			u.EndRun(reason)
			return nil
		}}
	}
	use := &hook.ToolUse{}
	if d := hook.Judge(t.Context(), []hook.Middleware{{Name: "none"}, ends(""), ends("b")}, use, nil); d != hook.Denied("a hook ended the run") || use.Ends() != "a hook ended the run" {
		t.Error(d, use.Ends())
	}
	use = &hook.ToolUse{Result: &tool.Result{Content: "out"}}
	if err := hook.After(t.Context(), []hook.Middleware{ends("a"), ends("b")}, use); err != nil || use.Ends() != "a" || use.Result.Content != "out" {
		t.Error(err, use.Ends(), use.Result)
	}
	if d := hook.Judge(t.Context(), []hook.Middleware{{Name: "h", PreToolUse: gives(hook.Decision{})}}, &hook.ToolUse{}, nil); d != (hook.Decision{}) {
		t.Error(d)
	}
}

func TestAJudgeCannotChangeTheCallBehindTheOthersBacks(t *testing.T) {
	seen := ""
	use := &hook.ToolUse{Call: message.ToolCall{Name: "read", Input: "in"}}
	hook.Judge(t.Context(), named(
		func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			u.Call.Name, u.Call.Input = "bash", "rm -rf /"
			return hook.Decision{}, nil
		},
		func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			seen = u.Call.Name + " " + u.Call.Input
			return hook.Decision{}, nil
		}), use, nil)
	if seen != "read in" || use.Call.Name != "read" || use.Call.Input != "in" {
		t.Error(seen, use.Call)
	}
}

func TestPrepareStopsAtTheFirstErrorAndAborts(t *testing.T) {
	var order []string
	step := func(name string, err error, boom bool) hook.Middleware {
		return hook.Middleware{Name: name, PreGeneration: func(_ context.Context, g *hook.Generation) error {
			order = append(order, name)
			g.System += name
			if boom {
				panic("boom")
			}
			return err
		}}
	}
	for name, c := range map[string]struct {
		hooks []hook.Middleware
		says  string
		order []string
	}{
		"in order":   {[]hook.Middleware{step("a", nil, false), {Name: "none"}, step("b", nil, false)}, "", []string{"a", "b"}},
		"an error":   {[]hook.Middleware{step("a", errors.New("no"), false), step("b", nil, false)}, "hook a: no", []string{"a"}},
		"a panic":    {[]hook.Middleware{step("a", nil, true), step("b", nil, false)}, "hook a: a panicked: boom", []string{"a"}},
		"of a class": {[]hook.Middleware{step("a", errdefs.PolicyDenied.Errorf("never"), false)}, "hook a: never", []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			order = nil
			g := &hook.Generation{}
			err := hook.Prepare(t.Context(), c.hooks, g)
			if c.says == "" && err != nil || c.says != "" && (!errdefs.Aborted.Is(err) || errdefs.Of(err) != errdefs.Aborted || err.Error() != c.says) {
				t.Error(err)
			}
			if diff := cmp.Diff(c.order, order); diff != "" || g.System != strings.Join(c.order, "") {
				t.Error(diff, g.System)
			}
		})
	}
}

func TestAfterWithholdsTheResultOfAHookThatFails(t *testing.T) {
	type after = func(context.Context, *hook.ToolUse) error
	shout := func(_ context.Context, u *hook.ToolUse) error {
		u.Result.Content = strings.ToUpper(u.Result.Content)
		return nil
	}
	for name, c := range map[string]struct {
		hook after
		want tool.Result
		says string
	}{
		"a change":       {func(_ context.Context, u *hook.ToolUse) error { u.Result.Content = "changed"; return nil }, tool.Result{Content: "CHANGED"}, ""},
		"another result": {func(_ context.Context, u *hook.ToolUse) error { u.Result = &tool.Result{Content: "other"}; return nil }, tool.Result{Content: "OTHER"}, ""},
		"no result":      {func(_ context.Context, u *hook.ToolUse) error { u.Result = nil; return nil }, tool.Result{Content: "THE RESULT WAS WITHHELD BY H.", IsError: true}, "hook h: it left no result"},
		"an error":       {func(_ context.Context, u *hook.ToolUse) error { return errors.New("secret found") }, tool.Result{Content: "THE RESULT WAS WITHHELD BY H.", IsError: true}, "hook h: secret found"},
		"a panic":        {func(context.Context, *hook.ToolUse) error { panic("boom") }, tool.Result{Content: "THE RESULT WAS WITHHELD BY H.", IsError: true}, "hook h: h panicked: boom"},
		"an error on the way": {func(_ context.Context, u *hook.ToolUse) error {
			u.Result.Content = "secret, half hidden"
			return errors.New("x")
		}, tool.Result{Content: "THE RESULT WAS WITHHELD BY H.", IsError: true}, "hook h: x"},
	} {
		t.Run(name, func(t *testing.T) {
			use := &hook.ToolUse{Result: &tool.Result{Content: "secret"}}
			result := use.Result
			err := hook.After(t.Context(), []hook.Middleware{{Name: "none"}, {Name: "h", PostToolUse: c.hook}, {Name: "loud", PostToolUse: shout}}, use)
			if diff := cmp.Diff(c.want, *result); diff != "" || use.Result != result {
				t.Error("the result:", diff)
			}
			if c.says == "" && err != nil || c.says != "" && (err == nil || err.Error() != c.says) {
				t.Error(err)
			}
		})
	}
}

func TestFinishStopsAtTheFirstAgainAndGathersErrors(t *testing.T) {
	var order []string
	step := func(name, again string, err error) hook.Middleware {
		return hook.Middleware{Name: name, PostGeneration: func(_ context.Context, g *hook.Generation) error {
			order = append(order, name)
			g.Again(again)
			g.Again(again + " twice")
			if err == nil && name == "boom" {
				panic(name)
			}
			return err
		}}
	}
	quiet := hook.Middleware{Name: "quiet", PostGeneration: func(context.Context, *hook.Generation) error {
		order = append(order, "quiet")
		return errors.New("lost")
	}}
	again, errs := hook.Finish(t.Context(), []hook.Middleware{{Name: "none"}, quiet, step("boom", "more", nil), step("b", "less", nil)}, &hook.Generation{})
	if again != "more" || fmt.Sprint(errs) != "[hook quiet: lost hook boom: boom panicked: boom]" {
		t.Error(again, errs)
	}
	if diff := cmp.Diff([]string{"quiet", "boom"}, order); diff != "" {
		t.Error(diff)
	}
	if again, errs := hook.Finish(t.Context(), nil, &hook.Generation{}); again != "" || errs != nil {
		t.Error(again, errs)
	}
}

func TestAVerdictHasAName(t *testing.T) {
	for v, want := range map[hook.Verdict]string{hook.Continue: "continue", hook.Allow: "allow", hook.Ask: "ask", hook.Deny: "deny", 7: "deny", -1: "deny"} {
		if v.String() != want {
			t.Errorf("%d: %s", v, v)
		}
	}
}

func TestEveryHookIsAskedWhateverOthersSayAndTheFirstOfTheStrictestGivesTheReason(t *testing.T) {
	var asked []string
	says := func(name string, d hook.Decision) hook.Middleware {
		return hook.Middleware{Name: name, PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) {
			asked = append(asked, name)
			return d, nil
		}}
	}
	d := hook.Judge(t.Context(), []hook.Middleware{
		says("allows", hook.Allowed("fine")), says("denies", hook.Denied("first")), says("asks", hook.Asking("may I?")), says("denies too", hook.Denied("second")), says("last", hook.Decision{}),
	}, &hook.ToolUse{}, nil)
	if strings.Join(asked, ",") != "allows,denies,asks,denies too,last" || d.Verdict != hook.Deny || d.Reason != "first" {
		t.Error(asked, d)
	}
}

// By comes back to whoever's input it is, and to nobody who asked for another one.
func TestAHookKnowsTheInputThatItGaveItself(t *testing.T) {
	var seen []any
	gives := func(input, by string) hook.Middleware {
		return hook.Middleware{PreToolUse: func(_ context.Context, u *hook.ToolUse) (d hook.Decision, _ error) {
			seen = append(seen, u.By)
			if u.Call.Input == "{}" {
				d.Input, d.By = input, by
			}
			return d, nil
		}}
	}
	for name, c := range map[string]struct {
		second hook.Middleware
		want   any
	}{
		"the other has no opinion": {hook.Middleware{}, "first"},
		"the other says the same":  {gives(`{"a":1}`, "second"), "first"},
		"the other has another":    {gives(`{"a":2}`, "second"), "second"},
	} {
		seen = nil
		use := &hook.ToolUse{Call: message.ToolCall{ID: "c", Name: "t", Input: "{}"}, By: "what was there"}
		d := hook.Judge(t.Context(), []hook.Middleware{gives(`{"a":1}`, "first"), c.second}, use, func(input string) (string, error) { return input + " ", nil })
		if seen[0] != nil || seen[len(seen)-1] != c.want || d.By != nil || use.Call.Input == "{}" {
			t.Errorf("%s: %v %+v", name, seen, d)
		}
	}
	insists := hook.Middleware{PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) {
		return hook.Decision{Input: `{"a":1}`, By: "it"}, nil
	}}
	if d := hook.Judge(t.Context(), []hook.Middleware{insists}, &hook.ToolUse{Call: message.ToolCall{Input: "{}"}}, nil); d.Input != `{"a":1}` || d.By != nil {
		t.Errorf("what hooks say to themselves is nobody else's: %+v", d)
	}
}
