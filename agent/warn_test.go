package agent_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// A warning reaches those who listen to its run, from a goroutine of a tool as from a hook, and from a task those of the run above.
func TestAWarningIsOneOfItsRun(t *testing.T) {
	if engine.Warn(t.Context(), "nobody") {
		t.Error("there is no run")
	}
	warns := tool.Func("warn", "", func(ctx context.Context, _ struct{}) (string, error) {
		var wg sync.WaitGroup
		wg.Go(func() { engine.Warn(ctx, "from a tool") })
		wg.Wait()
		return "", nil
	})
	stops := hook.Middleware{Name: "stops", PostGeneration: func(ctx context.Context, _ *hook.Generation) error {
		engine.Warn(ctx, "from a hook")
		return nil
	}}
	kid := looping(t, script{message.Assistant("", call("k1", "warn", `{}`)), message.Assistant("end")}, warns)
	eng := looping(t, script{message.Assistant("", gives("c1", "go")), message.Assistant("end")}, task(t, kid))
	var got []string
	host := engine.HostFuncs{PublishFunc: func(_ context.Context, e event.Event) error {
		if e.Delta == event.Warning {
			got = append(got, e.Session+" "+e.Text)
		}
		return nil
	}}
	run(t, agent.Agent{Hooks: []hook.Middleware{stops}}, eng, asking("s", "go"), agent.WithJournal(journal.Memory()), agent.WithEngineHost(host))
	if want := []string{"s/c1 from a tool", "s from a hook"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// What a hook puts around runs below stands around all of them, each with the run above it.
func TestWhatStandsAroundRunsBelowStandsAroundThoseBelowThem(t *testing.T) {
	var got []string
	around := hook.Middleware{Name: "around", Below: func(above hook.Where, id string) hook.Middleware {
		return hook.Middleware{
			PreGeneration: func(_ context.Context, g *hook.Generation) error {
				got = append(got, strings.Join([]string{above.Session, id, g.Session}, " "))
				return nil
			},
			PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) {
				t.Error("tool calls below are judged by the hooks above, as they are")
				return hook.Decision{}, nil
			},
		}
	}}
	leaf := looping(t, script{message.Assistant("end")})
	kid := looping(t, script{message.Assistant("", gives("k1", "go")), message.Assistant("end")}, task(t, leaf))
	eng := looping(t, script{message.Assistant("", gives("c1", "go")), message.Assistant("end")}, task(t, kid))
	run(t, agent.Agent{Hooks: []hook.Middleware{around}}, eng, asking("s", "go"), agent.WithJournal(journal.Memory()))
	if want := []string{"s kid s/c1", "s/c1 kid s/c1/k1"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
