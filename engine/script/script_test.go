package script_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func TestWhatModelsSayReachesTheTranscriptInTheScriptsOrder(t *testing.T) {
	w := newWorld()
	source := `
a = generate("one")
b = generate("use look {\"text\":\"x\"}", system = "Look.")
emit("between")
side = generate("aside", channel = "side", model = "other", tools = [])
c = generate()
board.set("out", [a.text, a.usage.input, len(b.messages), b.messages[0].calls[0].name, b.usage.input, side.text, c.text, bool(c)])
board.set("side", [m.role for m in board.channel("side")])
`
	res := w.run(t, source)
	completed(t, res)
	want := []string{
		"user: Go.", "user: one", "assistant: m heard one", `user: use look {"text":"x"}`, `assistant: [look {"text":"x"}]`, "tool: [looked x]", "assistant: done", "assistant: between",
		"assistant: m heard between",
	}
	same(t, "the transcript", want, w.transcript(t))
	same(t, "the board", want, told(res.LastBoard.Channel("main")))
	same(t, "the result has", len(want)-1, len(res.Messages))
	same(t, "the answer", "m heard between", res.Text())
	same(t, "the var", []any{"m heard one", 10, 3, "look", 20, "other heard aside", "m heard between", true}, res.LastBoard.Var("out"))
	same(t, "the side channel", []any{"user", "assistant"}, res.LastBoard.Var("side"))
	if s := w.model.asked[1].System; s != "Look." || w.model.asked[0].System != "Be good." {
		t.Error("system prompts:", s, w.model.asked[0].System)
	}
	if len(w.model.asked[0].Tools) != len(w.tools) {
		t.Error("without tools = … it has all")
	}
	w.replays(t, source)
}

func TestAReplyMayBeJSON(t *testing.T) {
	w := newWorld()
	res := w.run(t, `
r = generate("give {\"b\": [1], \"a\": 2}", output_schema = {"type": "object"}, tools = ["look"])
board.set("out", [r.data["b"], [k for k in r.data]])
`)
	completed(t, res)
	same(t, "the var", []any{[]any{1}, []any{"a", "b"}}, res.LastBoard.Var("out"))
	if req := w.model.asked[0]; string(req.Output) != `{"type":"object"}` || len(req.Tools) != 1 {
		t.Errorf("%s, %d tools", req.Output, len(req.Tools))
	}
	res = newWorld().run(t, `generate("give nonsense", output_schema = {"type": "object"})`)
	if !errdefs.Validation.Is(res.Err) {
		t.Error(res.Err)
	}
}

func TestAToolsCallGoesTheWholeWay(t *testing.T) {
	w := newWorld()
	w.agent.Tools = []string{"print", "look", "data", "careful"}
	w.agent.Hooks = []hook.Middleware{{Name: "no", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if strings.Contains(u.Call.Input, "secret") {
			return hook.Denied("not that"), nil
		}
		return hook.Decision{}, nil
	}}}
	asked := 0
	w.host = engine.HostFuncs{AskUserFunc: func(_ context.Context, p engine.Prompt) (engine.Reply, error) {
		asked++
		return engine.Reply{Answered: journal.Answered{Approved: strings.Contains(p.Call.Input, "yes"), Text: "because"}}, nil
	}}
	source := `
def row(name, **args):
    r = tool(name, check = False, **args)
    return [bool(r), r.outcome, r.error_class, r.content]

board.set("out", [
    [tool("print", text = "a"), tool("data", json = True), tool("look", args = {"text": "b"}, n = 2)],
    row("print", text = "wrong"), row("print", text = "away"), row("print", text = "secret"), row("print", nope = 1), row("put", text = "x"),
    row("careful", text = "yes"), row("careful", text = "no"),
])
`
	res := w.run(t, source)
	completed(t, res)
	out := res.LastBoard.Var("out").([]any)
	same(t, "what goes well", []any{"printed a", map[string]any{"z": 1, "a": []any{1, 2.5, nil}}, "looked b"}, out[0])
	for i, want := range []struct {
		ok             bool
		outcome, class string
		text           string
	}{
		{false, "error", "", "that is wrong"},
		{false, "error", "not_available", "the printer is away"},
		{false, "denied", "", "not that"},
		{false, "invalid", "", "nope"},
		{false, "denied", "", "put"},
		{true, "ok", "", "carefuled yes"},
		{false, "rejected", "", "because"},
	} {
		got := out[i+1].([]any)
		if got[0] != want.ok || got[1] != want.outcome || got[2] != want.class || !strings.Contains(got[3].(string), want.text) {
			t.Errorf("row %d: %v, want %v", i+1, got, want)
		}
	}
	same(t, "what was done", []string{"print a", "look b", "print wrong", "print away", "careful yes"}, w.done)
	if asked != 2 {
		t.Error("people were asked", asked)
	}
	same(t, "a call is no part of the conversation", []string{"user: Go."}, w.transcript(t))
	w.replays(t, source)
	for source, want := range map[string]*errdefs.Class{
		`tool("print", text = "wrong")`:  errdefs.Validation,
		`tool("print", text = "away")`:   errdefs.NotAvailable,
		`tool("print", text = "secret")`: errdefs.PolicyDenied,
		`tool("careful", text = "no")`:   errdefs.PolicyDenied,
		`tool("nothing")`:                errdefs.Validation,
		`tool("data", json = True)["q"]`: errdefs.Validation,
		`tool("print", json = True)`:     errdefs.Validation,
		`tool("print", lambda: 1)`:       errdefs.Validation,
		`tool("print", text = len)`:      errdefs.Validation,
		`agent("kid", "x")`:              errdefs.Validation,
	} {
		w.store = journal.Memory()
		res := w.run(t, source)
		if res.Status != agent.StatusFailed || errdefs.Of(res.Err) != want || !strings.HasPrefix(res.Err.Error(), "script: test.star:1:") {
			t.Errorf("%s: %s, %v %v, want %v", source, res.Status, errdefs.Of(res.Err), res.Err, want)
		}
	}
}

func TestAQuestionParksTheRunUntilItIsAnswered(t *testing.T) {
	w := newWorld()
	source := `
tool("print", text = "before")
a = ask("What colour?", choices = ["red", "blue"])
b = ask("Sure?")
emit("%s %s %s %s" % (a.text, bool(b), b.text, b.by))
`
	res := w.run(t, source)
	var prompts []string
	var confirms []bool
	for _, said := range []journal.Answered{{Approved: true, Text: "green"}, {Approved: true, Text: "2"}, {Approved: false, Text: "not today", By: "Ann"}} {
		if res.Status != agent.StatusInterrupted || res.Cause != engine.CauseAwaitingPerson || len(res.Pending) != 1 {
			t.Fatalf("the run is %s, %v, with %d questions", res.Status, res.Err, len(res.Pending))
		}
		said.ID = res.Pending[0].ID
		prompts = append(prompts, res.Pending[0].Prompt)
		confirms = append(confirms, res.Pending[0].Confirm)
		if err := agent.Answer(t.Context(), w.store, "s", said); err != nil {
			t.Fatal(err)
		}
		res = w.resume(t, source)
	}
	completed(t, res)
	same(t, "the questions", []string{
		"What colour?\n  1. red\n  2. blue", "\"green\" is none of the choices: answer by one of them, or by its number. What colour?\n  1. red\n  2. blue", "Sure?",
	}, prompts)
	same(t, "which of them are answered by yes or no", []bool{false, false, true}, confirms)
	same(t, "the answer", "blue False not today Ann", res.Text())
	same(t, "what was done", []string{"print before"}, w.done)
	w.replays(t, source)
	for _, source := range []string{`ask("")`, `ask("x", choices = ["a"])`, `ask("x", choices = ["a", "A"])`, `ask("x", choices = "ab")`, `ask("x", choices = [1, 2])`, `ask("x", choices = ["a", "b"], words = True)`} {
		w.store = journal.Memory()
		if res := w.run(t, source); !errdefs.Validation.Is(res.Err) {
			t.Errorf("%s: %v", source, res.Err)
		}
	}
}

func TestAnotherAgentDoesATask(t *testing.T) {
	w := newWorld()
	kid := newWorld()
	task, err := agent.Task(agent.Subagents{{Agent: agent.Agent{ID: "kid"}, Engine: kid.engine(t, `emit("I did: " + board.channel()[-1].text)`)}})
	if err != nil {
		t.Fatal(err)
	}
	w.tools = append(w.tools, task)
	source := `
emit(agent("kid", "the dishes"))
r = agent("nobody", "x", check = False)
emit("%s %s" % (bool(r), r.outcome))
`
	res := w.run(t, source)
	completed(t, res)
	same(t, "the transcript", []string{"user: Go.", "assistant: I did: the dishes", "assistant: False invalid"}, w.transcript(t))
	w.replays(t, source)
}

func TestTheBoardKeepsWhatItHas(t *testing.T) {
	w := newWorld()
	res := w.run(t, `
board.set("same", board.get("n"))
board.set("n", board.get("n"))
board.set("more", {"l": [1, (2, None)], "b": b"\x00", "m": board.channel()[0]})
board.set("all", sorted(board.vars().keys()))
board.set("none", [board.get("nothing"), board.get("nothing", 3)])
board.append("main", "a question", role = "user")
board.append("notes", "a note", role = "assistant")
v = board.get("more")
v["l"].append(3)
`)
	completed(t, res)
	b := res.LastBoard
	same(t, "an int64 is one", int64(7), b.Var("n"))
	same(t, "under another name it is an int", 7, b.Var("same"))
	same(t, "names", []any{"more", "n", "same", "topic"}, b.Var("all"))
	same(t, "defaults", []any{nil, 3}, b.Var("none"))
	more := b.Var("more").(map[string]any)
	same(t, "what was got is a copy", []any{1, []any{2, nil}}, more["l"])
	if more["m"].(message.Message).Text() != "Go." {
		t.Error(more["m"])
	}
	same(t, "the transcript", []string{"user: Go.", "user: a question"}, w.transcript(t))
	same(t, "notes", []string{"assistant: a note"}, told(b.Channel("notes")))
	for source, want := range map[string]string{
		`board.set("x", len)`:                     "the var x: a builtin_function_or_method can't be kept",
		`board.set("x", {1: 2})`:                  "the var x: a key of the dict is a int",
		`board.set("x", 1 << 70)`:                 "the var x: the int is too large",
		`board.append("main", " ")`:               "the text is empty",
		`board.append("", "x")`:                   "the channel has no name",
		`board.append("x", "x", role = "system")`: `the role is "system"`,
		`emit("")`:                              "the text is empty",
		`generate(" ")`:                         "the prompt is empty",
		`generate(1)`:                           "prompt is a int, want a string",
		`generate("x", tools = ["nope"])`:       `there is no tool "nope"`,
		`generate("x", model = "none")`:         `the model "none": no such model`,
		`generate("x", output_schema = {1: 2})`: "output_schema: a key of the dict",
		`generate("x", nope = 1)`:               "unexpected keyword argument",
		`board.nope`:                            "struct has no .nope",
		`board.set("x", generate("y"))`:         "a reply can't be kept",
	} {
		w := newWorld()
		if res := w.run(t, source); res.Err == nil || !strings.Contains(res.Err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, res.Err, want)
		}
	}
}

func TestAnErrorHasTheCallsThatLedThere(t *testing.T) {
	w := newWorld()
	res := w.run(t, `
def check(x):
    if x > 1:
        fail("too much:", x)
    return x

def all():
    return [check(x) for x in range(3)]

def beside():
    return all()

parallel([lambda: 1, beside])
`)
	same(t, "the error", `script: test.star:4:13: fail: too much: 2
  test.star:13:9: in <toplevel>
  in parallel.2:
  test.star:11:15: in beside
  test.star:8:18: in all
  test.star:4:13: in check`, res.Err.Error())
	if !errdefs.Validation.Is(res.Err) {
		t.Error(errdefs.Of(res.Err))
	}
	if res := newWorld().run(t, "x = 1\ngenerate('!no')"); !errdefs.NotAvailable.Is(res.Err) || !strings.HasPrefix(res.Err.Error(), "script: test.star:2:9: ") {
		t.Error(res.Err)
	}
	_, err := script.New(script.Config{Name: "bad.star", Source: "x = \ny = nope\nload('a', 'b')"})
	if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "bad.star:1:5") {
		t.Error(err)
	}
	_, err = script.New(script.Config{Name: "bad.star", Source: "y = nope\nprint(1)\nload('a', 'b')\ny.x = 1"})
	for _, want := range []string{"bad.star:1:5: undefined: nope", "bad.star:3:1: there is no load", "bad.star:4:2: fields can't be set"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestAQuestionInWordsIsNotAnsweredByYesOrNo(t *testing.T) {
	w := newWorld()
	source := `emit(ask("What is it called?", words = True).text)`
	res := w.run(t, source)
	if len(res.Pending) != 1 || res.Pending[0].Confirm {
		t.Fatal(res.Status, res.Err, res.Pending)
	}
	if err := agent.Answer(t.Context(), w.store, "s", journal.Answered{ID: res.Pending[0].ID, Approved: true, Text: "no"}); err != nil {
		t.Fatal(err)
	}
	res = w.resume(t, source)
	completed(t, res)
	same(t, "the answer", "no", res.Text())
	w.replays(t, source)
}

func TestAScriptGoesOnAfterAFailureThatIsOnRecord(t *testing.T) {
	w := newWorld()
	source := `
r = generate("!first", check = False)
if not r:
    emit("%s: %s" % (r.error_class, r.error))
    r = generate("again", model = "other")
ask("Go on?")
emit(r.text)
`
	res := w.run(t, source)
	if res.Status != agent.StatusInterrupted {
		t.Fatal(res.Status, res.Err)
	}
	if err := agent.Answer(t.Context(), w.store, "s", journal.Answered{ID: res.Pending[0].ID, Approved: true}); err != nil {
		t.Fatal(err)
	}
	res = w.resume(t, source)
	completed(t, res)
	if n := w.model.calls(); n != 1 {
		t.Errorf("the model that failed was called %d times", n)
	}
	same(t, "the transcript", []string{"user: Go.", "assistant: not_available: m is away: first", "user: again", "assistant: other heard again", "assistant: other heard again"}, w.transcript(t))
	w.replays(t, source)
	w = newWorld()
	w.cfg.Loop.Limits.Steps = 1
	if res := w.run(t, `generate("use look {}", check = False)`); !errdefs.BudgetExceeded.Is(res.Err) {
		t.Error("a limit ends the run:", res.Err)
	}
	w = newWorld()
	broken := &failing{Store: w.store, after: 8}
	w.store = broken
	eng := w.engine(t, `
generate("one", check = False)
generate("two", check = False)
tool("print", text = "done", check = False)
`)
	if res, err := agent.Run(t.Context(), w.agent, eng, agent.Request{ContextID: "s", Message: message.User("Go.")}, w.options()...); !errors.Is(err, errDisk) && (res == nil || !errors.Is(res.Err, errDisk)) || len(w.done) > 0 {
		t.Error("a journal that fails ends the run:", res, err, w.done)
	}
}

// failing is a store that stops working after so many appends.
type failing struct {
	journal.Store
	after int
}

var errDisk = errdefs.NotAvailable.Errorf("the disk is full")

func (f *failing) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	if f.after--; f.after < 0 {
		return errDisk
	}
	return f.Store.Append(ctx, session, after, entries...)
}

func TestARunGoesOnOnlyWithTheProgramThatBeganIt(t *testing.T) {
	w := newWorld()
	source := `
tool("print", text = "one")
ask("Go on?")
tool("print", text = "two")
`
	res := w.run(t, source)
	if err := agent.Answer(t.Context(), w.store, "s", journal.Answered{ID: res.Pending[0].ID, Approved: true}); err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(source, `ask("Go on?")`, `tool("print", text = "between")`, 1)
	_, err := agent.Resume(t.Context(), w.agent, w.engine(t, edited), "s", w.options()...)
	if !errdefs.NotAvailable.Is(err) || !strings.Contains(err.Error(), "test.star is not the program that began the run") {
		t.Fatal(err)
	}
	// The engine looks by itself too, whoever drives it.
	log, err := journal.Open(t.Context(), w.store, "s")
	if err != nil {
		t.Fatal(err)
	}
	board := engine.NewBoard(engine.Snapshot{})
	if _, err := w.engine(t, edited).Execute(t.Context(), engine.Run{ID: "r", Log: log, Values: new(engine.Values)}, engine.NoopHost{}, board); !errdefs.Conflict.Is(err) {
		t.Error(err)
	}
	same(t, "what was done meanwhile", []string{"print one"}, w.done)
	if _, err := agent.Replay(t.Context(), w.agent, w.engine(t, edited), "s", agent.WithJournal(w.store)); !errdefs.Conflict.Is(err) {
		t.Error("a replay of another program:", err)
	}
	completed(t, w.resume(t, source)) // with the program as it was it goes on
	same(t, "what was done", []string{"print one", "print two"}, w.done)
}

func TestKeysComeFromTheProgramsProgress(t *testing.T) {
	w := newWorld()
	source := `
def f(x = tool("look", text = "default")):
    return x

l = [tool("look", text = "c%d" % i) for i in range(2)]
d = {tool("look", text = "key"): tool("look", text = "value")}
f()
f()
keys = [k for k in tool("data", json = True)] + [k for k in {"z": 1, "a": 2}]
emit(",".join(keys))
tool("look", text = sorted({"b": 1, "a": 2})[0])
parallel([lambda: tool("look", text = "x"), lambda: [tool("look", text = "x"), parallel([lambda: tool("look", text = "x")])]])
`
	res := w.run(t, source)
	completed(t, res)
	same(t, "dicts are in their order", "a,z,z,a", res.Text())
	same(t, "what was done", 9, len(w.done))
	same(t, "in this order", []string{"look default", "look c0", "look c1", "look key", "look value", "look a"}, w.done[:6])
	seen := map[string]bool{}
	for e, err := range w.store.Read(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Data.(journal.ToolFinished); ok {
			if seen[e.Key.String()] {
				t.Error("twice:", e.Key)
			}
			seen[e.Key.String()] = true
			_ = d
		}
	}
	if len(seen) != 10 {
		t.Error(len(seen), "keys of calls")
	}
	w.replays(t, source)
}

func TestToolsOfACallBoundThoseOfTheProvider(t *testing.T) {
	w := newWorld()
	w.cfg.Loop.Settings.ProviderTools = []model.ProviderTool{{Name: model.WebSearch}, {Name: model.WebFetch}}
	completed(t, w.run(t, `
generate("all")
generate("none", tools = ["look"])
generate("one", tools = ["look", "Web_Fetch"])
`))
	var got [][]string
	for _, req := range w.model.asked {
		var names []string
		for _, p := range req.ProviderTools {
			names = append(names, p.Name)
		}
		got = append(got, names)
	}
	same(t, "tools of the provider", [][]string{{"web_search", "web_fetch"}, nil, {"web_fetch"}}, got)
}
