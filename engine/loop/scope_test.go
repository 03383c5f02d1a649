package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

// sideBySide is an engine of two loops that talk at the same time, each in a scope and on a channel of its own.
type sideBySide struct{ left, right *loop.Engine }

func (s sideBySide) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	branch := func(scope string, l *loop.Engine) engine.Branch {
		return engine.Branch{Scope: scope, Run: func(ctx context.Context, do engine.Steps) error { return l.Converse(ctx, do, run, board) }}
	}
	return board, engine.Local(run, host, s).Branch(ctx, branch("left", s.left), branch("right", s.right))
}

func (s sideBySide) Perform(ctx context.Context, run engine.Run, host engine.Host, e engine.Effect) (journal.Data, error) {
	if e.Key().Scope == "left" {
		return s.left.Perform(ctx, run, host, e)
	}
	return s.right.Perform(ctx, run, host, e)
}

func TestLoopsSideBySideKeepApart(t *testing.T) {
	var mu sync.Mutex
	var keys []string
	x := tool.Func("x", "", func(ctx context.Context, _ none) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, tool.FromContext(ctx).Key)
		return "ok", nil
	})
	side := func(name string) *loop.Engine {
		l, err := loop.New(loop.Config{Model: plays(uses(call("c", "x", `{}`)), says(name)), Tools: []tool.Tool{x}, Hooks: []hook.Middleware{asks("x")}, Channel: name})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	eng := sideBySide{side("left"), side("right")}
	store := journal.Memory()
	run := begun(t, store, engine.Run{})
	chat := message.NewHistory(message.User("go"))
	board := func() *engine.Board {
		return engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{"left": chat, "right": chat}})
	}
	if _, err := eng.Execute(t.Context(), run, engine.NoopHost{}, board()); !errdefs.Interrupted.Is(err) {
		t.Fatal(err)
	}
	pending := run.Log.State().Pending
	if len(pending) != 2 || pending[0].ID == pending[1].ID {
		t.Fatalf("two questions, each of which can be answered: %+v", pending)
	}
	for _, p := range pending {
		if err := run.Log.Answer(t.Context(), journal.Answered{ID: p.ID, Approved: true}); err != nil {
			t.Fatal(err)
		}
	}
	end, err := eng.Execute(t.Context(), run, engine.NoopHost{}, board())
	if err != nil || end.Channel("left").Last().Text() != "left" || end.Channel("right").Last().Text() != "right" {
		t.Error(err)
	}
	if slices.Sort(keys); len(keys) != 2 || keys[0] == keys[1] {
		t.Error(keys)
	}
	if diff := cmp.Diff([]string{"user: go"}, dump(run.Log.State().Messages)); diff != "" {
		t.Error("their talk is not the session's:", diff)
	}
}

// A loop on a channel of its own leaves the session's transcript as it is: it took the user's message away, and put its own words there.
func TestALoopOnAChannelOfItsOwnLeavesTheTranscriptAlone(t *testing.T) {
	n := 0
	l, err := loop.New(loop.Config{Model: plays(uses(call("c", "x", `{}`)), says("done")), Tools: []tool.Tool{counted("x", &n)}, Channel: "side"})
	if err != nil {
		t.Fatal(err)
	}
	store := journal.Memory()
	run := begun(t, store, engine.Run{})
	seed := run.Log.State().Seed
	board := engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: seed, "side": message.NewHistory(message.User("psst"))}})
	if _, err := l.Execute(t.Context(), run, engine.NoopHost{}, board); err != nil || n != 1 {
		t.Fatal(err, n)
	}
	for what, h := range map[string]message.History{"on record": run.Log.State().Messages, "on the board": board.Channel(engine.MainChannel)} {
		if diff := cmp.Diff([]string{"user: go"}, dump(h)); diff != "" {
			t.Errorf("the session's transcript %s: %s", what, diff)
		}
	}
	if side := board.Channel("side"); side.Len() != 4 || side.At(0).Text() != "psst" || side.Last().Text() != "done" {
		t.Error(dump(side))
	}
}

func TestWhatBreaksBecauseTheRunWasCancelledIsACancel(t *testing.T) {
	for name, f := range map[string]func(cancel func()) (hook.Middleware, *listener){
		"a hook before the generation": func(cancel func()) (hook.Middleware, *listener) {
			return hook.Middleware{Name: "h", PreGeneration: func(context.Context, *hook.Generation) error { cancel(); return errors.New("cannot load") }}, &listener{}
		},
		"a prompt": func(cancel func()) (hook.Middleware, *listener) {
			return asks("x"), &listener{ask: func(engine.Prompt) (engine.Reply, error) { cancel(); return engine.Reply{}, errors.New("tty closed") }}
		},
		"a prompt with a class": func(cancel func()) (hook.Middleware, *listener) {
			return asks("x"), &listener{ask: func(engine.Prompt) (engine.Reply, error) {
				cancel()
				return engine.Reply{}, errdefs.Timeout.Errorf("no answer")
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			h, host := f(cancel)
			d := play{cfg: loop.Config{Model: plays(uses(call("c", "x", `{}`)), says("done")), Tools: []tool.Tool{counted("x", &n)}, Hooks: []hook.Middleware{h}}, ctx: ctx, host: host}.do(t)
			if !errors.Is(d.err, context.Canceled) || errdefs.Of(d.err) != nil || n > 0 {
				t.Error(d.err, n)
			}
		})
	}
}

func TestADenialWithoutAReasonStillSaysSomething(t *testing.T) {
	h := hook.Middleware{Name: "h", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Denied(""), nil }}
	d := play{cfg: loop.Config{Model: plays(uses(call("c", "x", `{}`)), says("done")), Tools: []tool.Tool{constant("x")}, Hooks: []hook.Middleware{h}}}.do(t)
	if diff := cmp.Diff("tool:  [c a hook refused this call !]", d.since()[1]); diff != "" {
		t.Error(fmt.Sprint(d.err), diff)
	}
}

// What loops say on the main channel one after the other is what one loop would have said there: the ids of calls are the model's, whatever the scope. Where loops run at the same time each id has its scope in it.
func TestTheIDOfACallHasItsScopeInItOnlyWhereLoopsRunSideBySide(t *testing.T) {
	ids := func(branches ...[]string) (ids []string) {
		l, err := loop.New(loop.Config{Model: scripted.New(scripted.Calls(scripted.Call{ID: "c", Name: "x"}), scripted.Text("done")), Tools: []tool.Tool{constant("x")}})
		if err != nil {
			t.Fatal(err)
		}
		run := begun(t, journal.Memory(), engine.Run{})
		do := engine.Local(run, engine.NoopHost{}, l)
		var mu sync.Mutex
		for _, scopes := range branches {
			var together []engine.Branch
			for _, scope := range scopes {
				talk := func(ctx context.Context, do engine.Steps) error {
					board := engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: message.NewHistory(message.User("go"))}})
					err := l.Converse(ctx, do, run, board)
					mu.Lock()
					defer mu.Unlock()
					ids = append(ids, board.Channel(engine.MainChannel).At(1).ToolCalls()[0].ID)
					return err
				}
				together = append(together, engine.Branch{Scope: scope, Run: func(ctx context.Context, do engine.Steps) error { // a scope within it
					return engine.Keep(do).Branch(ctx, engine.Branch{Scope: "in", Run: talk})
				}})
			}
			if err := do.Branch(t.Context(), together...); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(ids)
		return ids
	}
	if diff := cmp.Diff([]string{"c", "c_1_1"}, ids([]string{"one"}, []string{"two"})); diff != "" {
		t.Error("one after the other:", diff)
	}
	if got := ids([]string{"one", "two"}); len(got) != 2 || got[0] == got[1] || slices.Contains(got, "c") {
		t.Error("side by side:", got)
	}
}
