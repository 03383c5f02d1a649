package loop_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// A call that another engine makes goes the way of a model's call.
func TestCallsThatNoModelAskedForGoTheWholeWay(t *testing.T) {
	ran := map[string]int{}
	counts := func(name string) tool.Tool {
		return tool.Func(name, "", func(ctx context.Context, in struct {
			N int `json:"n,omitempty"`
		},
		) (string, error) {
			if ran[name]++; in.N > 1 {
				return "", errdefs.NotFound.Errorf("there is no %d", in.N)
			}
			return name + " ran", nil
		})
	}
	saw := ""
	watch := hook.Middleware{Name: "watch", PostToolUse: func(_ context.Context, u *hook.ToolUse) error {
		saw += u.Call.Name + " "
		u.Result.Content += "."
		return nil
	}}
	l, err := loop.New(loop.Config{Model: loop.NoModel(), Tools: []tool.Tool{counts("a"), counts("b"), counts("c")}, Hooks: []hook.Middleware{asks("b"), watch}})
	if err != nil {
		t.Fatal(err)
	}
	store := journal.Memory()
	run := begun(t, store, engine.Run{Tools: []string{"a", "b"}})
	use := func() ([]message.ToolResult, error) {
		var results []message.ToolResult
		err := engine.Local(run, engine.NoopHost{}, l).Branch(t.Context(), engine.Branch{Scope: "node", Run: func(ctx context.Context, do engine.Steps) (err error) {
			results, err = l.Use(ctx, do, run, call("node:one", "a", ""), call("node:two", "b", `{"n":1}`), call("node:three", "c", `{}`), call("node:four", "a", `{"n":2}`), call("node:five", "a", `{"n":"x"}`))
			return err
		}})
		return results, err
	}
	_, err = use()
	if !errdefs.Interrupted.Is(err) {
		t.Fatalf("b asks, and nobody is there: %v", err)
	}
	pending := run.Log.State().Pending
	if len(pending) != 1 || pending[0].ID != run.CallID("node:two") || pending[0].Call.Name != "b" {
		t.Fatalf("%+v", pending)
	}
	if err := run.Log.Answer(t.Context(), journal.Answered{ID: pending[0].ID, Approved: true}); err != nil {
		t.Fatal(err)
	}
	results, err := use()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, r := range results {
		if want := run.CallID([]string{"node:one", "node:two", "node:three", "node:four", "node:five"}[i]); r.Call != want {
			t.Errorf("result %d is of %s, want %s", i, r.Call, want)
		}
		how := "ok: "
		if r.IsError {
			how = "error: "
		}
		got = append(got, how+strings.SplitN(r.Content, "\n", 2)[0])
	}
	for i, want := range []string{"ok: a ran.", "ok: b ran.", "error: ", "error: there is no 2.", "error: a: "} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("result %d: %q, want %q", i, got[i], want)
		}
	}
	if ran["a"] != 2 || ran["b"] != 1 || ran["c"] != 0 || saw != "a a b " {
		t.Error(ran, saw)
	}
	if run.Log.State().Messages.Len() > 1 {
		t.Error("a call in a scope is none of the transcript's")
	}
}

func TestTheModelThatIsNoneRefuses(t *testing.T) {
	if _, err := loop.NoModel().Complete(t.Context(), model.Request{}); !errdefs.NotAvailable.Is(err) {
		t.Error(err)
	}
	if err := loop.NoModel().CompleteStream(t.Context(), model.Request{}, nil); !errdefs.NotAvailable.Is(err) {
		t.Error(err)
	}
}
