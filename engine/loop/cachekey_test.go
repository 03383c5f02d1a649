package loop_test

import (
	"context"
	"testing"
	"unsafe"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// keys are the cache keys that a model was asked with.
func keys(m *stub) (all []string) {
	for _, r := range m.asked {
		all = append(all, r.CacheKey)
	}
	return all
}

// wantKeys holds keys to a pattern: letters that are equal stand for keys that are; "-" for none.
func wantKeys(t *testing.T, got []string, pattern string) {
	t.Helper()
	if len(got) != len(pattern) {
		t.Fatalf("%d calls %q, want %q", len(got), got, pattern)
	}
	for i := range got {
		if (pattern[i] == '-') != (got[i] == "") {
			t.Errorf("key %d of %q, want %q", i+1, got, pattern)
		}
		for j := range i {
			if (pattern[i] == pattern[j]) != (got[i] == got[j]) {
				t.Errorf("keys %d and %d of %q, want %q", j+1, i+1, got, pattern)
			}
		}
	}
}

func TestTheCallsOfAConversationHaveOneCacheKey(t *testing.T) {
	x := tool.Func("x", "", func(context.Context, struct{}) (string, error) { return "ok", nil })
	m := plays(uses(call("1", "x", `{}`)), uses(call("2", "x", `{}`)), says("done"))
	play{cfg: loop.Config{Model: m, Tools: []tool.Tool{x}}}.do(t)
	all := keys(m)
	wantKeys(t, all, "aaa")
	if unsafe.StringData(all[0]) != unsafe.StringData(all[2]) {
		t.Error("the key was made more than once")
	}
}

func TestWhatMakesAnotherConversation(t *testing.T) {
	m := plays(times(9, says("done"))...)
	run := func(cfg loop.Config, run engine.Run, attempt int) {
		cfg.Model = m
		executes(t, cfg, run, func(r *engine.Run) { r.Attempt = attempt })
	}
	run(loop.Config{}, engine.Run{AgentID: "a"}, 1)
	run(loop.Config{}, engine.Run{AgentID: "a", System: "what is said is no part of it", Tools: []string{}}, 1)
	run(loop.Config{}, engine.Run{AgentID: "b"}, 1)
	run(loop.Config{Revision: 1}, engine.Run{AgentID: "a"}, 1)
	run(loop.Config{Channel: "aside"}, engine.Run{AgentID: "a"}, 1)
	run(loop.Config{Channel: "aside"}, engine.Run{AgentID: "a"}, 2)
	wantKeys(t, keys(m), "aabcde")
}

// The call that asks for a summary is no part of the conversation; the one behind it begins anew.
func TestACompactionMakesAnotherCacheKey(t *testing.T) {
	m := plays(takes(100, uses(look("1"))), takes(300, uses(look("2"))), takes(600, uses(look("3"))), takes(40, says("all of it")), takes(90, uses(look("4"))), says("done"))
	play{cfg: small(m, looks())}.do(t)
	wantKeys(t, keys(m), "aaa-bb")
}

func TestToolsThatWereFoundMakeAnotherCacheKey(t *testing.T) {
	hidden := tool.Func("hidden", "does it", func(context.Context, struct{}) (string, error) { return "ok", nil }, tool.Deferred)
	m := plays(uses(call("1", loop.SearchName, `{"query":"hidden"}`)), uses(call("2", "hidden", `{}`)), says("done"))
	play{cfg: loop.Config{Model: m, Tools: []tool.Tool{hidden}}}.do(t)
	wantKeys(t, keys(m), "abb")
	if n := len(m.asked[1].Tools); n != 2 {
		t.Errorf("%d tools after the search", n)
	}
}

// Without a journal nobody knows what was changed on purpose.
func TestWithoutAJournalThereIsNoCacheKey(t *testing.T) {
	m := plays(says("done"))
	eng, err := loop.New(loop.Config{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := eng.Perform(t.Context(), engine.Run{ID: "r", Session: "s"}, engine.NoopHost{}, engine.Generate{Step: 1, Messages: message.NewHistory(message.User("go"))}); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, keys(m), "-")
}

// executes runs a loop, with a run that was changed after it began.
func executes(t *testing.T, cfg loop.Config, run engine.Run, change func(*engine.Run)) {
	t.Helper()
	eng, err := loop.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	run = begun(t, journal.Memory(), run)
	change(&run)
	if _, err := eng.Execute(t.Context(), run, engine.NoopHost{}, engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: message.NewHistory(message.User("go"))}})); err != nil {
		t.Fatal(err)
	}
}
