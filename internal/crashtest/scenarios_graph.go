package crashtest

import (
	"context"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

// graphs are those of a graph: a fork whose branches have a tool and a graph of their own, a join, a way back, and an approval. Every call is on_error: continue, as its outcome may be unknown.
func graphs() []Scenario {
	pays := func(id string) graph.Node {
		return graph.Node{ID: id, Type: "tool", Config: map[string]any{"tool": "pay", "on_error": "continue", "output": id}}
	}
	d := graph.Definition{
		Name: "crash", Entry: "draft",
		Nodes: []graph.Node{
			{ID: "draft", Type: "model", Config: map[string]any{"output": "text"}},
			pays("check"),
			{ID: "sub", Type: "subgraph", Config: map[string]any{"graph": graph.Definition{
				Entry: "peek",
				Nodes: []graph.Node{
					{ID: "peek", Type: "tool", Config: map[string]any{"tool": "look", "output": "seen"}},
					{ID: "tell", Type: "template", Config: map[string]any{"template": "${seen}", "role": "assistant", "channel": "aside"}},
				},
				Edges: []graph.Edge{{From: "peek", To: "tell"}, {From: "tell", To: graph.End}},
			}}},
			{ID: "join", Type: "script", Config: map[string]any{"source": `return {"rounds": visits["check"]}`, "outputs": []any{"rounds"}}},
			{ID: "may", Type: "approval", Config: map[string]any{"prompt": "May I, after ${rounds} rounds?", "output": "ok"}},
			{ID: "say", Type: "template", Config: map[string]any{"template": "${text}, and ${ok}", "role": "assistant"}},
		},
		Edges: []graph.Edge{
			{From: "draft", To: "check"},
			{From: "draft", To: "sub"},
			{From: "check", To: "join"},
			{From: "sub", To: "join"},
			{From: "join", To: "check", Condition: "rounds < 2"},
			{From: "join", To: "may"},
			{From: "may", To: "say"},
			{From: "say", To: graph.End},
		},
	}
	turns := counted([]scripted.Turn{calls("one", call("c1", "pay")), end})
	return []Scenario{{
		Name: "a graph with a fork, a join, a way back, an approval and a graph in it", Text: "the end, and True", Writers: 1,
		Build: func(p *Process) (agent.Agent, engine.Engine, error) {
			eng, err := graph.Compile(d, graph.Kinds{Loop: loop.Config{Model: p.Model(scripted.New(turns...)), Tools: []tool.Tool{p.Tool("pay"), p.Tool("look", tool.ReadOnly)}}})
			if err != nil {
				return agent.Agent{}, nil, err
			}
			return agent.Agent{ID: "crashtest", Instructions: "Work."}, eng, nil
		},
	}}
}

// Graphs are further ones of a graph: what is told apart in them is the graph's, and not the store's.
func Graphs() []Scenario { return []Scenario{cached(), handing()} }

// cached has a read-only tool whose second visit takes what the first came to, and an idempotent one that fails and is tried again.
func cached() Scenario {
	d := graph.Definition{
		Name: "cached", Entry: "peek",
		Nodes: []graph.Node{
			{ID: "peek", Type: "tool", Cache: &graph.Caching{}, Config: map[string]any{"tool": "look", "output": "seen"}},
			{ID: "send", Type: "tool", Retry: &graph.Retry{Attempts: 3}, Config: map[string]any{"tool": "send", "output": "sent"}},
			{ID: "say", Type: "template", Config: map[string]any{"template": "${sent}", "role": "assistant"}},
		},
		Edges: []graph.Edge{
			{From: "peek", To: "peek", Condition: `visits["peek"] < 2`},
			{From: "peek", To: "send"},
			{From: "send", To: "say"},
			{From: "say", To: graph.End},
		},
	}
	return Scenario{
		Name: "a graph with a cache and a retry", Text: "sent",
		Build: func(p *Process) (agent.Agent, engine.Engine, error) {
			send := tool.Func("send", "", func(ctx context.Context, _ struct{}) (string, error) {
				if err := p.Effect(ctx, true); err != nil {
					return "", err
				}
				if tool.FromContext(ctx).ID == (engine.Run{ID: runID(0), Attempt: 1}).CallID("send") { // by the call, so that it is the same in every process
					return "", errdefs.NotAvailable.Errorf("not yet")
				}
				return "sent", nil
			}, tool.Idempotent)
			eng, err := graph.Compile(d, graph.Kinds{Loop: loop.Config{Tools: []tool.Tool{p.Tool("look", tool.ReadOnly), send}}})
			return agent.Agent{ID: "crashtest"}, eng, err
		},
	}
}

// handing is a team whose first member is a graph: its model hands over.
func handing() Scenario {
	hs := []agent.Handoff{{ToAgentID: "billing"}}
	over := call("c2", agent.DefaultHandoffToolName("billing"))
	over.Input = `{"reason":"a refund"}`
	turns := counted([]scripted.Turn{calls("over", over), calls("I see", call("c3", "pay")), end})
	d := graph.Definition{
		Name: "desk", Entry: "draft",
		Nodes: []graph.Node{
			{ID: "draft", Type: "model", Config: map[string]any{"output": "text"}},
		},
		Edges: []graph.Edge{{From: "draft", To: graph.End}},
	}
	return Scenario{
		Name: "a team whose graph hands over", Text: "the end",
		Team: func(p *Process) (*agent.Team, error) {
			m := p.Model(scripted.New(turns...))
			desk, err := graph.Compile(d, graph.Kinds{Loop: loop.Config{Model: m, Tools: append(toolbox(p), agent.HandoffTools(context.Background(), nil, hs)...)}})
			if err != nil {
				return nil, err
			}
			billing, err := loop.New(loop.Config{Model: m, Tools: toolbox(p)})
			if err != nil {
				return nil, err
			}
			return agent.NewTeam(agent.TeamConfig{Members: []agent.Member{
				{Agent: agent.Agent{ID: "desk"}, Engine: p.Engine(desk), Handoffs: hs},
				{Agent: agent.Agent{ID: "billing"}, Engine: p.Engine(billing)},
			}})
		},
	}
}
