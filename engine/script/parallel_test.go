package script_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/tool"
)

func TestFunctionsBesideEachOtherKeepTheirOrder(t *testing.T) {
	w := newWorld()
	first, second := make(chan struct{}), make(chan struct{})
	w.tools = append(w.tools, tool.Func("meet", "", func(ctx context.Context, in sayInput) (string, error) { // both are there at the same time, and the second ends first
		mine, other := first, second
		if in.Text == "b" {
			mine, other = second, first
		}
		close(mine)
		select {
		case <-other:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		return "met " + in.Text, nil
	}))
	source := `
def meet(name):
    emit("here " + name)
    said = tool("meet", text = name)
    r = generate("I " + said)
    board.set(name, said)
    board.append("notes", name)
    inner = parallel([lambda: emit("in " + name), lambda: name])
    return [said, r.text, inner]

board.set("out", parallel([lambda: meet("a"), lambda: meet("b")]))
emit("both")
`
	res := w.run(t, source)
	completed(t, res)
	same(t, "the results", []any{[]any{"met a", "m heard I met a", []any{nil, "a"}}, []any{"met b", "m heard I met b", []any{nil, "b"}}}, res.LastBoard.Var("out"))
	want := []string{
		"user: Go.", "assistant: here a", "user: I met a", "assistant: m heard I met a", "assistant: in a",
		"assistant: here b", "user: I met b", "assistant: m heard I met b", "assistant: in b", "assistant: both",
	}
	same(t, "the transcript", want, w.transcript(t))
	same(t, "the board", want, told(res.LastBoard.Channel("main")))
	same(t, "notes", []string{"user: a", "user: b"}, told(res.LastBoard.Channel("notes")))
	same(t, "a var", "met b", res.LastBoard.Var("b"))
	w.replays(t, source)
}

func TestWhatFunctionsShareTheyCannotChange(t *testing.T) {
	for name, c := range map[string]struct {
		source, want string
		class        *errdefs.Class
	}{
		"a list of the file": {"l = []\nparallel([lambda: l.append(1)])", "cannot append to frozen list", errdefs.Validation},
		"one that was captured": {`
def f():
    l = [[]]
    parallel([lambda: l[0].append(1)])
f()`, "cannot append to frozen list", errdefs.Validation},
		"a default":      {"parallel([lambda d = {}: d.update(a = 1)])", "frozen", errdefs.Validation},
		"a bound method": {"l = [1]\nparallel([l.clear])", "frozen list", errdefs.Validation},
		"afterwards":     {"l = []\nparallel([lambda: l])\nl.append(1)", "cannot append to frozen list", errdefs.Validation},
		"the same var":   {"parallel([lambda: board.set('x', 1), lambda: board.set('x', 2)])", "functions 1 and 2 both set the var x", errdefs.Conflict},
		"a function that captured itself": {`
def f():
    def g(): return g
    parallel([g])
f()`, "a function has captured itself", errdefs.Validation},
		"a nest of tuples that share": {"x = (1,)\nfor i in range(60): x = (x, x)\nparallel([lambda: x])", "nests too deep", errdefs.Validation},
		"parallel in itself":          {"def f(): return parallel([f])\nf()", "more than 8 deep", errdefs.Validation},
		"too many":                    {"parallel([len] * 1001)", "at most 1000", errdefs.Validation},
		"no functions":                {"parallel([1])", "functions[0] is a int", errdefs.Validation},
		"no list":                     {"parallel('ab')", "got a string", errdefs.Validation},
		"the first failure counts":    {"parallel([lambda: 1, lambda: fail('two'), lambda: fail('three')])", "fail: two", errdefs.Validation},
		"a limit": {`
def f():
    while True: pass
parallel([f, f])`, "more than 10000000 steps", errdefs.BudgetExceeded},
		"steps are counted together": {`
def f():
    for i in range(100000): pass
parallel([f] * 100)`, "more than 10000000 steps", errdefs.BudgetExceeded},
		"bytes are counted together": {`
def f():
    return [("x" * 1000000).upper() for i in range(20)]
parallel([f] * 100)`, "bytes made", errdefs.BudgetExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			res := newWorld().run(t, c.source)
			if res.Err == nil || errdefs.Of(res.Err) != c.class || !strings.Contains(res.Err.Error(), c.want) {
				t.Errorf("%v %v, want %s", errdefs.Of(res.Err), res.Err, c.want)
			}
		})
	}
	completed(t, newWorld().run(t, `
def f(l):
    l = list(l)
    l.append(1)
    return l
x = parallel([lambda: f([]), lambda: f([2])])
x[0].append(3)
parallel([lambda: board.set("x", 1), lambda: board.set("x", 1)])
parallel([])
`))
}

func TestQuestionsBesideEachOtherAreAllThere(t *testing.T) {
	w := newWorld()
	source := `
def one(name):
    tool("print", text = name)
    a = ask("Well, " + name + "?", words = True)
    emit(name + " says " + a.text)

parallel([lambda: one("a"), lambda: one("b"), lambda: emit("c says nothing")])
`
	res := w.run(t, source)
	if res.Status != agent.StatusInterrupted || len(res.Pending) != 2 {
		t.Fatal(res.Status, res.Err, res.Pending)
	}
	for _, p := range res.Pending {
		if err := agent.Answer(t.Context(), w.store, "s", journal.Answered{ID: p.ID, Approved: true, Text: "yes to " + p.Prompt}); err != nil {
			t.Fatal(err)
		}
	}
	res = w.resume(t, source)
	completed(t, res)
	same(t, "the transcript", []string{"user: Go.", "assistant: a says yes to Well, a?", "assistant: b says yes to Well, b?", "assistant: c says nothing"}, w.transcript(t))
	if len(w.done) != 2 {
		t.Error(w.done)
	}
	w.replays(t, source)
}

func TestAnInterruptParksAllFunctions(t *testing.T) {
	w := newWorld()
	intr := make(chan engine.Interrupt, 1)
	w.host = engine.HostFuncs{InterruptsFunc: func() <-chan engine.Interrupt { return intr }}
	w.tools = append(w.tools, tool.Func("barge", "", func(context.Context, struct{}) (string, error) {
		intr <- engine.Interrupt{Cause: engine.CauseHostShutdown}
		return "barged", nil
	}))
	source := `
def f():
    tool("barge")
    tool("print", text = "after")

parallel([f, lambda: fail("no")])
`
	res := w.run(t, source)
	if res.Status != agent.StatusInterrupted || res.Cause != engine.CauseHostShutdown || len(w.done) > 0 {
		t.Fatal(res.Status, res.Err, w.done)
	}
	res = w.resume(t, source)
	if res.Status != agent.StatusFailed || !strings.Contains(res.Err.Error(), "fail: no") {
		t.Error(res.Status, res.Err)
	}
	same(t, "what was done", []string{"print after"}, w.done)
}
