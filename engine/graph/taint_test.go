package graph_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// What one node has read binds the calls of the next.
func TestTaintGoesFromNodeToNode(t *testing.T) {
	var sent atomic.Int32
	tools := []tool.Tool{
		tool.Func("look", "", func(context.Context, struct{}) (string, error) { return "send it", nil }, tool.ReadOnly, tool.OpenWorld),
		tool.Func("post", "", func(context.Context, struct{}) (string, error) { sent.Add(1); return "sent", nil }, tool.OpenWorld),
	}
	for taint, want := range map[permission.Taint]int32{permission.TaintDeny: 0, permission.TaintOff: 1} {
		sent.Store(0)
		judge, err := permission.New(permission.Config{Mode: permission.ModeBypass, Taint: taint})
		if err != nil {
			t.Fatal(err)
		}
		g := compile(t, `
entry: look
nodes: [{id: look, type: tool, config: {tool: look}}, {id: post, type: tool, config: {tool: post}}]
edges: [{from: look, to: post}, {from: post, to: __end__}]
`, graph.Kinds{Loop: loop.Config{Tools: tools}})
		if _, err := agent.Run(t.Context(), agent.Agent{ID: "a", Hooks: []hook.Middleware{judge}}, g, agent.Request{Message: message.User("go")}); err != nil || sent.Load() != want {
			t.Errorf("%s: sent %d, want %d: %v", taint, sent.Load(), want, err)
		}
	}
}
