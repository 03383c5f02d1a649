package engine_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

func texts(h message.History) (out []string) {
	for _, m := range h.All() {
		out = append(out, m.Text())
	}
	return out
}

func TestASnapshotDoesNotChangeWithTheBoard(t *testing.T) {
	b := engine.NewBoard(engine.Snapshot{})
	if b.Channel("main").Len() != 0 || b.Var("x") != nil {
		t.Error("a new board is empty")
	}
	b.Append("main", message.User("a"))
	b.SetVar("x", 1)
	s := b.Snapshot()
	b.Append("main", message.User("b"))
	b.Append("other", message.User("c"))
	b.SetVar("x", 2)
	b.SetVar("y", 3)
	same(t, "the snapshot's messages", []string{"a"}, texts(s.Channels["main"]))
	same(t, "the snapshot's vars", journal.Vars{"x": 1}, s.Vars)
	same(t, "the board's messages", []string{"a", "b"}, texts(b.Channel("main")))
	if b.Var("x") != 2 || len(s.Channels) != 1 {
		t.Error(b.Var("x"), len(s.Channels))
	}
	b.SetChannel("main", message.History{})
	if again := b.Snapshot(); again.Channels["main"].Len() != 0 || s.Channels["main"].Len() != 1 {
		t.Error("SetChannel")
	}
}

func TestABoardNeverWritesToTheMapsThatItWasMadeOf(t *testing.T) {
	in := engine.Snapshot{Channels: map[string]message.History{}, Vars: map[string]any{"x": 1}}
	b := engine.NewBoard(in)
	b.SetVar("x", 2)
	b.Append("main", message.User("a"))
	if in.Vars["x"] != 1 || len(in.Channels) != 0 {
		t.Error(in)
	}
}

func TestASnapshotCostsTheSameAtAnySize(t *testing.T) {
	for _, n := range []int{1, 10_000} {
		b := engine.NewBoard(engine.Snapshot{})
		for i := range n {
			b.SetVar(fmt.Sprint(i), i)
		}
		if allocs := testing.AllocsPerRun(100, func() { _ = b.Snapshot(); _ = b.Var("1"); _ = b.Channel("main") }); allocs != 0 {
			t.Errorf("%d vars: %v allocations", n, allocs)
		}
	}
}

func TestABoardServesManyGoroutines(t *testing.T) {
	b := engine.NewBoard(engine.Snapshot{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				b.Append("main", message.User("x"))
				b.SetVar(fmt.Sprint(i), b.Snapshot().Channels["main"].Len())
			}
		})
	}
	wg.Wait()
	if n := b.Channel("main").Len(); n != 400 {
		t.Error(n)
	}
}

func TestABoardGoesThroughJSON(t *testing.T) {
	b := engine.NewBoard(engine.Snapshot{Vars: map[string]any{"n": 1}})
	b.Append("main", message.User("hello"))
	j, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "as JSON", `{"channels":{"main":[{"role":"user","parts":[{"type":"text","text":"hello"}]}]},"vars":{"n":1}}`, string(j))
	again := engine.NewBoard(engine.Snapshot{Vars: map[string]any{"old": true}})
	if err := json.Unmarshal(j, again); err != nil {
		t.Fatal(err)
	}
	again.SetVar("n", again.Var("n").(int)+1)
	if b.Var("n") != 1 || again.Var("n") != 2 || again.Var("old") != nil || again.Channel("main").Last().Text() != "hello" {
		t.Errorf("%v", again.Snapshot())
	}
}

// A board that has the conversation alone keeps it beside its maps: nothing of that is to be seen.
func TestABoardOfTheConversationAloneIsLikeAnyOther(t *testing.T) {
	talk := message.NewHistory(message.User("a"))
	board := func() *engine.Board {
		return engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{"main": talk}, Vars: journal.Vars{"x": 1}})
	}
	for name, write := range map[string]func(*engine.Board){
		"nothing":           func(*engine.Board) {},
		"another channel":   func(b *engine.Board) { b.Append("side", message.User("b")) },
		"a var":             func(b *engine.Board) { b.SetVar("x", 2) },
		"a snapshot":        func(b *engine.Board) { b.Snapshot() },
		"a change":          func(b *engine.Board) { b.Apply(journal.Board{Set: journal.Vars{"y": 3}}) },
		"its own JSON":      func(b *engine.Board) { data, _ := b.MarshalJSON(); _ = b.UnmarshalJSON(data) },
		"a channel emptied": func(b *engine.Board) { b.SetChannel("side", message.History{}) },
	} {
		b := board()
		write(b)
		same(t, name+": the conversation", []string{"a"}, texts(b.Channel("main")))
		before := b.Snapshot()
		b.Append("main", message.User("c"))
		same(t, name+": appended to", []string{"a", "c"}, texts(b.Channel("main")))
		same(t, name+": a snapshot after it", []string{"a", "c"}, texts(b.Snapshot().Channels["main"]))
		same(t, name+": the snapshot before", []string{"a"}, texts(before.Channels["main"]))
		write(b)
		same(t, name+": and again", []string{"a", "c"}, texts(b.Channel("main")))
		if x := b.Var("x"); x == nil {
			t.Errorf("%s: the var is gone", name)
		}
	}
	same(t, "what the boards were made of", []string{"a"}, texts(talk))
}
