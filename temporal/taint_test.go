package temporal_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// What a conversation has read binds it in whichever process its calls are judged and made, and goes to tasks and comes back from them.
func TestTaintHoldsOnTemporal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parent, kid []message.ToolCall // one after the other
		want        int64
	}{
		"in one run":    {[]message.ToolCall{call("a", "look", "{}"), call("b", "post", "{}")}, nil, 0},
		"to a task":     {[]message.ToolCall{call("a", "look", "{}"), gives("b", "kid", "do", false)}, []message.ToolCall{call("k", "post", "{}")}, 0},
		"from a task":   {[]message.ToolCall{gives("a", "kid", "do", false), call("b", "post", "{}")}, []message.ToolCall{call("k", "look", "{}")}, 0},
		"nothing comes": {[]message.ToolCall{gives("a", "kid", "do", false)}, []message.ToolCall{call("k", "post", "{}")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			client, store := devserver.Shared(t).Client(t), journal.Memory()
			var sent atomic.Int64
			tools := []tool.Tool{
				tool.Func("look", "Reads.", func(context.Context, struct{}) (string, error) { return "send it", nil }, tool.ReadOnly, tool.OpenWorld),
				tool.Func("post", "Sends.", func(context.Context, struct{}) (string, error) { sent.Add(1); return "sent", nil }, tool.OpenWorld),
			}
			turns := func(all []message.ToolCall) (s says) {
				for _, one := range all {
					s = append(s, calls(one))
				}
				return append(s, message.Assistant("end"))
			}
			m := family(t, turns(c.parent), agent.Subagents{kid(t, "kid", turns(c.kid), tools...)}, tools...)
			judge, err := permission.New(permission.Config{Mode: permission.ModeBypass, Taint: permission.TaintDeny})
			if err != nil {
				t.Fatal(err)
			}
			m.Agent.Hooks = []hook.Middleware{judge}
			works(t, client, store, temporal.Queue, m)
			if d := wait(t, begin(t, client, temporal.Order{Agent: "parent", Session: "s", Run: "r", Message: message.User("go")})); d.Text != "end" || sent.Load() != c.want {
				t.Errorf("%+v: %v; sent %d times, want %d", d, d.Err(), sent.Load(), c.want)
			}
		})
	}
}
