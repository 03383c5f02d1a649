package crashtest

import (
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
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
