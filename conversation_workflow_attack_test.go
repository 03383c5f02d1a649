package pawl_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
)

// A tool's name is found in any case, and so is that of the call that moves the workflow on.
func TestAModelLeadsAWorkflowOnInAnyCase(t *testing.T) {
	m := (&inTurn{}).calls("Workflow__Set_Artifact", `{"name":"log","value":"x"}`).calls("WORKFLOW__TRANSITION", `{"event":"Go"}`).says("two")
	file := workflowOf(t, strings.Replace(circle, `"on_event": {"Go": "b"}`, `"on_event": {"Go": "b"}, "artifacts": {"log": {"type": "text/plain"}}`, 1))
	c := flows(t, file, m)
	if resp := send(t, c, "1"); resp.Text() != "two" {
		t.Errorf("%q", resp.Text())
	}
	if at := stands(t, c, "b", map[string]int{"a": 1, "b": 1}, "", "Back", "Done"); at.ToolCalls != 0 || at.Artifacts["log"] != "x" {
		t.Errorf("%+v", at)
	}
}

// What the model is told counts: a transition that a hook made an error of did not happen.
func TestAHookThatTakesATransitionBack(t *testing.T) {
	withheld := hook.Middleware{Name: "stay", PostToolUse: func(_ context.Context, u *hook.ToolUse) error {
		if u.Call.Name == "workflow__transition" {
			u.Result.IsError, u.Result.Content = true, "not now"
		}
		return nil
	}}
	m := (&inTurn{}).moves("Go").says("I stay")
	c := flows(t, workflowOf(t, circle), m, pawl.WithRunOptions(agent.WithHooks(withheld)))
	if resp := send(t, c, "1"); resp.Text() != "I stay" {
		t.Errorf("%q", resp.Text())
	}
	stands(t, c, "a", map[string]int{"a": 1}, "", "Go")
}

// An event that does not lead on from here is no answer of a person, as with the tools of the pack.
func TestAPersonChangesATransition(t *testing.T) {
	ask := hook.Middleware{Name: "ask", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if u.Call.Name == "workflow__transition" {
			return hook.Asking("may it?"), nil
		}
		return hook.Decision{}, nil
	}}
	m := (&inTurn{}).moves("Back").says("the end")
	c := flows(t, workflowOf(t, circle), m, pawl.WithRunOptions(agent.WithHooks(ask)))
	if err := c.Transition(t.Context(), "Go", ""); err != nil {
		t.Fatal(err)
	}
	id := send(t, c, "1").Pending[0].ID
	for _, args := range []map[string]any{{"event": "Go"}, {"event": 3}, {"event": nil}, {"other": "x"}} {
		if err := c.ResolveToolWithArgs(t.Context(), id, args); !errdefs.Validation.Is(err) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if err := c.ResolveToolWithArgs(t.Context(), id, map[string]any{"event": "Done"}); err != nil {
		t.Fatal(err)
	}
	if resp, err := c.Continue(t.Context()); err != nil || resp.Text() != "the end" {
		t.Error(resp, err)
	}
	stands(t, c, "c", map[string]int{"a": 1, "b": 1, "c": 1}, pawl.WorkflowCompleted)
}

// meanwhile is a store that does something once, before it gives a session to a driver.
type meanwhile struct {
	journal.Store
	once sync.Once
	do   func()
}

func (s *meanwhile) Lease(ctx context.Context, session, owner string, until time.Time) error {
	if s.do != nil {
		s.once.Do(s.do)
	}
	return s.Store.Lease(ctx, session, owner, until)
}

// Of two processes that say an event, the one that comes too late hears so.
func TestAnEventThatCameTooLateIsAnError(t *testing.T) {
	mem, file, m := journal.Memory(), workflowOf(t, circle), (&inTurn{}).says("one")
	store := &meanwhile{Store: mem}
	late := flows(t, file, m, pawl.WithJournal(store), pawl.WithSession("s"))
	other := flows(t, file, m, pawl.WithJournal(mem), pawl.WithSession("s"))
	send(t, other, "1")
	store.do = func() {
		if err := other.Transition(t.Context(), "Go", ""); err != nil {
			t.Error(err)
		}
	}
	if err := late.Transition(t.Context(), "Go", ""); !errdefs.Validation.Is(err) {
		t.Errorf("it is said to have moved: %v", err)
	}
	stands(t, late, "b", map[string]int{"a": 1, "b": 1}, "", "Back", "Done")
}

// An artifact that is appended to has its bound from the first value on: a text of so many characters may have more bytes.
func TestAnArtifactIsBoundInBytes(t *testing.T) {
	file := workflowOf(t, strings.Replace(circle, `"on_event": {"Go": "b"}`, `"on_event": {"Go": "b"}, "artifacts": {"log": {"type": "text/plain", "mode": "append"}}`, 1))
	m := (&inTurn{}).calls("workflow__set_artifact", fmt.Sprintf(`{"name":"log","value":%q}`, strings.Repeat("🦊", 60_000))).moves("Go").says("two")
	c := flows(t, file, m)
	send(t, c, "1")
	if at := stands(t, c, "b", map[string]int{"a": 1, "b": 1}, "", "Back", "Done"); len(at.Artifacts["log"]) != 64<<10 {
		t.Errorf("it has %d bytes", len(at.Artifacts["log"]))
	}
}

// Wherever a process died in a turn, and whatever the pack says of events when the next one goes on, the person is answered.
func TestAPackThatLostAnEventMeanwhile(t *testing.T) {
	stayed := 0
	for n := 1; n < 100; n++ {
		mem, file := journal.Memory(), workflowOf(t, circle)
		c := flows(t, file, (&inTurn{}).moves("Go").says("in b"), pawl.WithJournal(&cutOff{Store: mem, left: n}), pawl.WithSession("s"))
		if _, err := c.Send(t.Context(), "1"); err == nil {
			break
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(b), `{"Go": "b"}`, `{"Leave": "b"}`, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		again := flows(t, file, (&inTurn{}).says("here"), pawl.WithJournal(mem), pawl.WithSession("s"))
		resp, err := again.Continue(t.Context())
		if errdefs.NotFound.Is(err) { // nothing was on record
			continue
		}
		at, wrong := again.Workflow(t.Context())
		if err != nil || wrong != nil || resp.Text() == "" {
			t.Errorf("point %d: %v, %v, in %s", n, err, wrong, at.State)
		}
		if at.State == "a" {
			stayed++
			if at.Visits["a"] != 1 {
				t.Errorf("point %d: %+v", n, at)
			}
		}
	}
	if stayed == 0 {
		t.Error("no process died before the event was looked at")
	}
}
