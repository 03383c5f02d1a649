package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

// with lets f use the journal, as a program of somebody's does that uses the SDK.
func (w world) with(t *testing.T, f func(store journal.Store) (*agent.Result, error)) *agent.Result {
	t.Helper()
	store, err := sqlite.Open(strings.TrimPrefix(w.journal, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	res, err := f(store)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// waits leaves a run in the journal that waits for two approvals, as a program of somebody's did that uses the SDK.
func waits(t *testing.T, w world) (resume func() *agent.Result, ran *[]string) {
	t.Helper()
	ran = new([]string)
	pay := tool.Func("pay", "", func(_ context.Context, in struct {
		To string `json:"to"`
	},
	) (string, error) {
		*ran = append(*ran, in.To)
		return "paid", nil
	}, tool.RequiresApproval)
	m := scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "pay", Input: `{"to":"ada"}`}, {ID: "c2", Name: "pay", Input: `{"to":"bob"}`}}}, scripted.Text("done"))
	eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{pay}})
	if err != nil {
		t.Fatal(err)
	}
	res := w.with(t, func(store journal.Store) (*agent.Result, error) {
		return agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, agent.Request{ContextID: "s", Message: message.User("pay them")}, agent.WithJournal(store))
	})
	if res.Status != agent.StatusInterrupted || len(res.Pending) != 2 {
		t.Fatalf("%+v", res)
	}
	return func() *agent.Result {
		return w.with(t, func(store journal.Store) (*agent.Result, error) {
			return agent.Resume(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store))
		})
	}, ran
}

func TestPendingCallsAreAnsweredFromAnotherProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	resume, ran := waits(t, w)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no such session":   {[]string{"approve", "x", "c1"}, `no session "x"`},
		"no such call":      {[]string{"approve", "s", "c9"}, "pending: c1, c2"},
		"no call":           {[]string{"approve", "s"}, "approve ID CALL"},
		"edit is no JSON":   {[]string{"approve", "s", "c1", "--edit", "{"}, "want a JSON object"},
		"edit is no object": {[]string{"approve", "s", "c1", "--edit", "5"}, "want a JSON object"},
		"edit is empty":     {[]string{"approve", "s", "c1", "--edit", ""}, "want a JSON object"},
		"asked each time":   {[]string{"approve", "s", "c1", "--session"}, "each time"},
		"answer to a call":  {[]string{"answer", "s", "c1", "yes"}, "pawl approve"},
	} {
		if r := w.pawl(append(c.args, "--journal", w.journal)...); r.code != exitUsage || !strings.Contains(r.err, c.want) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := w.pawl("approve", "s", "c1", "--edit", `{"to":"eve"}`, "--journal", w.journal); r.code != 0 || !strings.Contains(r.err, "still pending: c2") {
		t.Fatalf("%+v", r)
	}
	if res := resume(); res.Status != agent.StatusInterrupted || len(*ran) != 0 {
		t.Fatalf("one answer is missing: %+v %v", res.Status, *ran)
	}
	if r := w.pawl("approve", "s", "c1", "--journal", w.journal); r.code != exitUsage || !strings.Contains(r.err, "not pending") {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("reject", "s", "c2", "--reason", "too much", "--journal", w.journal); r.code != 0 || !strings.Contains(r.err, "the program that runs the agent a") {
		t.Fatalf("%+v", r)
	}
	if res := resume(); res.Text() != "done" || strings.Join(*ran, " ") != "eve" {
		t.Fatalf("%q %v", res.Text(), *ran)
	}
	show := w.pawl("sessions", "show", "s", "--journal", w.journal)
	for _, want := range []string{"approved c1", "rejected c2", "too much", "paid"} {
		if !strings.Contains(show.out, want) {
			t.Errorf("%q is missing in\n%s", want, show.out)
		}
	}
}

func TestACallThatWaitsInATaskIsApprovedFromAbove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ran := 0
	pay := tool.Func("pay", "", func(context.Context, struct{}) (string, error) { ran++; return "paid", nil }, tool.RequiresApproval)
	engineOf := func(tools []tool.Tool, turns ...scripted.Turn) *loop.Engine {
		eng, err := loop.New(loop.Config{Model: scripted.New(turns...), Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		return eng
	}
	kid := engineOf([]tool.Tool{pay}, scripted.Turn{Calls: []scripted.Call{{ID: "p1", Name: "pay", Input: `{}`}}}, scripted.Text("paid them"))
	task, err := agent.Task([]agent.Subagent{{Agent: agent.Agent{ID: "payer"}, Engine: kid, Description: "pays"}})
	if err != nil {
		t.Fatal(err)
	}
	lead := engineOf([]tool.Tool{task}, scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "task", Input: `{"agent":"payer","prompt":"pay"}`}}}, scripted.Text("done"))
	res := w.with(t, func(s journal.Store) (*agent.Result, error) {
		return agent.Run(t.Context(), agent.Agent{ID: "lead"}, lead, agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(s))
	})
	if len(res.Pending) != 1 || res.Pending[0].ID != "c1/p1" {
		t.Fatalf("%+v", res)
	}
	if r := w.pawl("approve", "s", "c1/p1", "--journal", w.journal); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	res = w.with(t, func(s journal.Store) (*agent.Result, error) {
		return agent.Resume(t.Context(), agent.Agent{ID: "lead"}, lead, "s", agent.WithJournal(s))
	})
	if res.Text() != "done" || ran != 1 {
		t.Errorf("%q, %d payments", res.Text(), ran)
	}
}
