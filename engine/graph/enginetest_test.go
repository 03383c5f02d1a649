package graph_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/enginetest"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// steps is a graph of functions that does a suite's work: a node a step, and a line of them for each branch.
func steps(t *testing.T, w *enginetest.Work, more func(*graph.Node)) engine.Engine {
	type place struct {
		Branch int `json:"branch"`
		Number int `json:"number"`
	}
	do := graph.Typed(func(ctx context.Context, at place, _ engine.Snapshot) (journal.Board, error) {
		result, err := w.Do(ctx, enginetest.Step{Branch: at.Branch, Number: at.Number})
		if err != nil {
			return journal.Board{}, err
		}
		return journal.Board{Append: map[string][]message.Message{"main": {message.Assistant(result)}}}, nil
	})
	d := graph.Definition{Name: "work", Entry: "begin", Nodes: []graph.Node{{ID: "begin", Type: "script", Config: map[string]any{"source": "return {'ready': True}", "outputs": []any{"ready"}}}}}
	for branch := min(1, w.Branches()); branch <= w.Branches(); branch++ {
		before := "begin"
		for n := 1; n <= w.Steps(); n++ {
			node := graph.Node{ID: fmt.Sprintf("step-%d-%d", branch, n), Type: "step", Config: map[string]any{"branch": branch, "number": n}}
			if more != nil {
				more(&node)
			}
			d.Nodes = append(d.Nodes, node)
			d.Edges = append(d.Edges, graph.Edge{From: before, To: node.ID})
			before = node.ID
		}
		d.Edges = append(d.Edges, graph.Edge{From: before, To: graph.End})
	}
	g, err := graph.Compile(d, graph.Kinds{Types: map[string]graph.Type{"step": do}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAGraphIsAnEngine(t *testing.T) {
	t.Run("functions", func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T, w *enginetest.Work) engine.Engine { return steps(t, w, nil) }, enginetest.NoTools, enginetest.NoUsage)
	})
	t.Run("with retries and limits of time", func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T, w *enginetest.Work) engine.Engine {
			return steps(t, w, func(n *graph.Node) {
				n.Retry, n.Timeout = &graph.Retry{Attempts: 3, On: []string{"timeout", "not_available"}}, graph.Duration(3600e9)
			})
		}, enginetest.NoTools, enginetest.NoUsage)
	})
	t.Run("a model", func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T, w *enginetest.Work) engine.Engine {
			d := graph.Definition{Name: "work", Entry: "talk", Nodes: []graph.Node{{ID: "talk", Type: "model"}}, Edges: []graph.Edge{{From: "talk", To: graph.End}}}
			g, err := graph.Compile(d, graph.Kinds{Loop: loop.Config{Model: w.Model(), Tools: []tool.Tool{w.Tool()}}})
			if err != nil {
				t.Fatal(err)
			}
			return g
		}, enginetest.NoBranches)
	})
}
