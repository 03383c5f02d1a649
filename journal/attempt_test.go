package journal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

func TestAttemptsAreReadAsTheyWere(t *testing.T) {
	store := journal.Memory()
	key := func(op, id string) journal.Key { return journal.Key{Op: op, ID: id} }
	call := message.ToolCall{ID: "c", Name: "t", Input: "{}"}
	ends := func(status string) journal.Entry {
		return journal.Entry{Run: "r", Data: journal.RunFinished{Status: status}}
	}
	entries := []journal.Entry{
		{Data: journal.SessionCreated{}},
		{Run: "r", Data: journal.RunStarted{Owner: "o", Attempt: 1, Inputs: map[string]any{"k": "v"}}}, // 2
		{Run: "r", Data: journal.Said{Message: message.User("one")}},
		{Run: "r", Key: key("model", "1"), Data: journal.ModelStarted{}}, // 4
		{Run: "r", Key: key("model", "1"), Data: journal.ModelFailed{}},
		{Run: "r", Data: journal.Parked{}},
		{Run: "r", Data: journal.Resumed{Owner: "p"}},
		{Run: "r", Key: key("model", "1"), Data: journal.ModelFinished{Message: message.Assistant("", call)}}, // 8
		{Run: "r", Key: key("tool", "c"), Data: journal.ToolStarted{Call: journal.CalledOf(call)}},            // 9
		{Run: "r", Data: journal.RunStarted{Owner: "p", Attempt: 2}},                                          // 10: a revise
		{Run: "r", Key: key("model", "1"), Data: journal.ModelStarted{}},
		{Run: "r", Key: key("model", "1"), Data: journal.ModelFinished{Message: message.Assistant("two")}},
		ends("completed"),
		{Run: "q", Data: journal.RunStarted{Owner: "q", Attempt: 1}}, // 14
		{Run: "q", Data: journal.Said{Message: message.User("three")}},
		{Run: "q", Data: journal.Parked{Cause: "user_input"}},
	}
	if err := store.Append(t.Context(), "s", 0, entries...); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Fork(t.Context(), store, "s", 8, "f"); err != nil {
		t.Fatal(err)
	}
	type view struct {
		run        string
		attempt    int
		at         int64
		seed, last []string
		effects    []string
		end        journal.Data
	}
	read := func(session string) (views []view) {
		all, err := journal.Attempts(t.Context(), store, session)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			v := view{run: a.Run, attempt: a.Started.Attempt, at: a.At, seed: texts(a.Seed), last: texts(a.Last), end: a.End}
			for _, e := range a.Effects {
				s := e.Key.String()
				if e.Failed {
					s += ", failed"
				}
				if e.Outcome != nil {
					s += ", done"
				}
				if e.Begun > 0 && e.Messages.Len() == 0 {
					t.Errorf("%v has no transcript", e.Key)
				}
				v.effects = append(v.effects, s)
			}
			views = append(views, v)
		}
		return views
	}
	first := view{"r", 1, 2, []string{"user: one"}, []string{"user: one", "assistant: ", "tool: "}, []string{"model/1, failed, done", "tool/c"}, nil}
	want := []view{
		first,
		{"r", 2, 10, []string{"user: one"}, []string{"user: one", "assistant: two"}, []string{"model/1, done"}, journal.RunFinished{Status: "completed"}},
		{"q", 1, 14, []string{"user: one", "assistant: two", "user: three"}, []string{"user: one", "assistant: two", "user: three"}, nil, journal.Parked{Cause: "user_input"}},
	}
	if d := cmp.Diff(want, read("s"), cmp.AllowUnexported(view{})); d != "" {
		t.Error(d)
	}
	first.effects = first.effects[:1]
	if d := cmp.Diff([]view{first}, read("f"), cmp.AllowUnexported(view{})); d != "" {
		t.Errorf("a fork: %s", d)
	}
	if all := read("none"); all != nil {
		t.Error(all)
	}
}

func texts(h message.History) (out []string) {
	for _, m := range h.All() {
		out = append(out, string(m.Role())+": "+m.Text())
	}
	return out
}
