package engine_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

type client interface{ Do() string }

type clock struct{}

func (clock) Do() string { return "tick" }

func TestDependenciesAreFoundByTheTypeTheyWereProvidedAs(t *testing.T) {
	var d engine.Dependencies
	engine.Provide[client](&d, clock{})
	if c, err := engine.Need[client](&d); err != nil || c.Do() != "tick" {
		t.Error(err)
	}
	if _, err := engine.Need[clock](&d); !errdefs.NotFound.Is(err) || !strings.Contains(err.Error(), "clock") {
		t.Error("only the type it was provided as:", err)
	}
	if _, err := engine.Need[client](nil); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
	var none *engine.Dependencies
	if none.Has(reflect.TypeFor[client]()) || !d.Has(reflect.TypeFor[client]()) || d.Has(reflect.TypeFor[clock]()) {
		t.Error("Has")
	}
}

func TestValuesAreSharedAndTheirUsersTakeTurns(t *testing.T) {
	v := new(engine.Values)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			v.Do(func(m map[string]any) {
				n, _ := m["n"].(int)
				m["n"] = n + 1
			})
		})
	}
	wg.Wait()
	v.Do(func(m map[string]any) {
		if m["n"] != 100 {
			t.Error(m)
		}
	})
	func() {
		defer func() { _ = recover() }()
		v.Do(func(map[string]any) { panic("boom") })
	}()
	v.Do(func(map[string]any) {}) // not locked for ever
	var none *engine.Values
	none.Do(func(m map[string]any) { m["x"] = 1 })
}

func TestABudgetCountsHereAndAbove(t *testing.T) {
	root, mid := &engine.Budget{Tokens: 100}, &engine.Budget{CostMicros: 50}
	top := engine.Bounds{Budget: root}
	child := top.Child(engine.Bounds{Budget: mid})
	grandchild := child.Child(engine.Bounds{})
	if child.Depth != 1 || grandchild.Depth != 2 {
		t.Error("depth", child.Depth, grandchild.Depth)
	}
	grandchild.Budget.Spend(model.Usage{Input: 10, Output: 20, CacheRead: 5, CacheWrite: 5, Reasoning: 20}, 30)
	for name, c := range map[string]struct {
		b            *engine.Budget
		tokens, cost int64
	}{"root": {root, 40, 30}, "mid": {mid, 40, 30}, "link": {grandchild.Budget, 40, 30}, "nil": {nil, 0, 0}} {
		if tokens, cost := c.b.Spent(); tokens != c.tokens || cost != c.cost {
			t.Errorf("%s: %d tokens, %d micros", name, tokens, cost)
		}
	}
	if err := grandchild.Budget.Call(); err != nil {
		t.Error(err)
	}
	child.Budget.Spend(model.Usage{}, 20)
	if err := grandchild.Budget.Call(); !errdefs.BudgetExceeded.Is(err) || !strings.Contains(err.Error(), "$5e-05") {
		t.Error("mid's money binds below:", err)
	}
	if root.Call() != nil {
		t.Error("but not above")
	}
	root.Spend(model.Usage{Input: 60}, 0)
	sibling := top.Child(engine.Bounds{Budget: &engine.Budget{Tokens: 1000}})
	if err := sibling.Budget.Call(); !errdefs.BudgetExceeded.Is(err) {
		t.Error("root's tokens bind everywhere:", err)
	}
	if root.LimitsCost() || !grandchild.Budget.LimitsCost() || sibling.Budget.LimitsCost() {
		t.Error("LimitsCost")
	}
	if (&engine.Budget{}).Call() != nil || (*engine.Budget)(nil).Call() != nil || (*engine.Budget)(nil).LimitsCost() {
		t.Error("no limits")
	}
	(*engine.Budget)(nil).Spend(model.Usage{Input: 1}, 1)
}

func TestABudgetThatComesBackBelowItselfIsCountedOnce(t *testing.T) {
	root, mid := &engine.Budget{Tokens: 100}, &engine.Budget{Tokens: 100}
	b := engine.Bounds{Budget: root}.Child(engine.Bounds{Budget: mid}).Child(engine.Bounds{Budget: root})
	b = b.Child(engine.Bounds{Budget: b.Budget}) // a tool that passes on what binds it
	b.Budget.Spend(model.Usage{Input: 1}, 0)
	for name, l := range map[string]*engine.Budget{"root": root, "mid": mid} {
		if tokens, _ := l.Spent(); tokens != 1 {
			t.Errorf("%s counted %d", name, tokens)
		}
	}
	if b.Budget.Call() != nil {
		t.Error("Check")
	}
}

func TestABudgetMayBindTwoTreesAtTheSameTime(t *testing.T) {
	shared := &engine.Budget{}
	roots := [2]*engine.Budget{{}, {}}
	var wg sync.WaitGroup
	for _, root := range roots {
		for range 10 {
			wg.Go(func() {
				engine.Bounds{Budget: root}.Child(engine.Bounds{Budget: shared}).Budget.Spend(model.Usage{Input: 1}, 0)
			})
		}
	}
	wg.Wait()
	a, _ := roots[0].Spent()
	b, _ := roots[1].Spent()
	if s, _ := shared.Spent(); a != 10 || b != 10 || s != 20 {
		t.Error(a, b, s)
	}
}

func TestAResumedRunIsCountedOnceWhereItIsKnown(t *testing.T) {
	before := journal.Spent{Usage: model.Usage{Input: 10}, CostMicros: 5}
	here, fresh := &engine.Budget{}, &engine.Budget{}
	here.Enter("r", journal.Spent{})
	here.Spend(before.Usage, before.CostMicros)
	engine.Bounds{Budget: here}.Child(engine.Bounds{Budget: fresh}).Budget.Enter("r", before) // resumed under a new budget of its own
	for name, b := range map[string]*engine.Budget{"where it ran": here, "a new one": fresh} {
		if tokens, cost := b.Spent(); tokens != 10 || cost != 5 {
			t.Errorf("%s: %d tokens, %d micros", name, tokens, cost)
		}
	}
	here.Leave("r")
	here.Enter("r", journal.Spent{})
	if tokens, _ := here.Spent(); tokens != 10 {
		t.Error(tokens)
	}
	(*engine.Budget)(nil).Enter("r", before)
	(*engine.Budget)(nil).Leave("r")
}

func TestAChildIsBoundByItsParentsGatesOnly(t *testing.T) {
	pre := func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Decision{}, nil }
	gen := func(context.Context, *hook.Generation) error { return nil }
	parent := engine.Bounds{Hooks: []hook.Middleware{{Name: "both", PreToolUse: pre, PreGeneration: gen, PostGeneration: gen}, {Name: "gen", PreGeneration: gen}}}
	child := parent.Child(engine.Bounds{Hooks: []hook.Middleware{{Name: "own", PreGeneration: gen}}})
	var got []string
	for _, h := range child.Hooks {
		got = append(got, h.Name)
		if h.Name == "both" && (h.PreToolUse == nil || h.PreGeneration != nil || h.PostGeneration != nil) {
			t.Error("only the tool points are inherited")
		}
	}
	same(t, "hooks", []string{"both", "own"}, got)
	if _, ok := engine.BoundsFrom(t.Context()); ok {
		t.Error("nothing binds yet")
	}
	in, ok := engine.BoundsFrom(engine.WithBounds(t.Context(), parent))
	if !ok || len(in.Hooks) != 2 {
		t.Error(ok, in)
	}
	_ = append(in.Hooks, hook.Middleware{Name: "mine"}) // must not be written behind the parent's
}

func TestARecordOfAnotherTypeComesFromOtherCode(t *testing.T) {
	run := begun(t, journal.Memory())
	var p performs
	steps := engine.Local(run, engine.NoopHost{}, p)
	if _, err := engine.Do[journal.ToolJudged](t.Context(), steps, engine.Stop{Step: 1}); !errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), "stopped") {
		t.Error(err)
	}
	if out, err := engine.DoAll[journal.Stopped](t.Context(), steps, []engine.Stop(nil)); out != nil || err != nil {
		t.Error(out, err)
	}
}

func TestRunStepsComeBeforeLocalOnes(t *testing.T) {
	mine := errors.New("mine")
	run := engine.Run{Steps: engine.StepsFunc(func(context.Context, ...engine.Effect) ([]journal.Data, error) { return nil, mine })}
	if _, err := engine.Do[journal.Stopped](t.Context(), engine.StepsOf(run, nil, nil), engine.Stop{}); !errors.Is(err, mine) {
		t.Error(err)
	}
}

func TestAnAnswerIsJoinedOverTheOutputLimitOnly(t *testing.T) {
	more := engine.Tell{Text: "go on", Why: engine.WhyContinue}.Message()
	for name, c := range map[string]struct {
		talk []message.Message
		want string
	}{
		"nothing":                     {nil, ""},
		"one":                         {[]message.Message{message.Assistant("a")}, "a"},
		"the last":                    {[]message.Message{message.Assistant("a"), message.User("?"), message.Assistant("b")}, "b"},
		"continued twice":             {[]message.Message{message.Assistant("a"), more, message.Assistant("b"), more, message.Assistant("c")}, "abc"},
		"a person who says the same":  {[]message.Message{message.Assistant("a"), message.User("go on"), message.Assistant("b")}, "b"},
		"a last message without text": {[]message.Message{message.Assistant("a"), message.Assistant("", message.ToolCall{ID: "c"})}, "a"},
		"asked for more, none came":   {[]message.Message{message.Assistant("a"), more}, "a"},
		"more of nothing":             {[]message.Message{more, message.Assistant("b")}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := engine.Answer(c.talk); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestListeningIsAskedOfTheHost(t *testing.T) {
	if engine.Listening(engine.NoopHost{}) || !engine.Listening(&place{}) || !engine.Listening(struct{ engine.Host }{engine.NoopHost{}}) {
		t.Error("Listening")
	}
	if _, err := (engine.NoopHost{}).AskUser(t.Context(), engine.Prompt{}); !errdefs.NotAvailable.Is(err) {
		t.Error(err)
	}
}
