package graph_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// chain is a graph of so many nodes that do nothing.
func chain(t testing.TB, nodes int) *graph.Engine {
	t.Helper()
	empty := graph.Typed(func(context.Context, struct{}, engine.Snapshot) (journal.Board, error) { return journal.Board{}, nil })
	d := graph.Definition{Name: "chain", Entry: "n0", Limits: graph.Limits{Nodes: nodes}}
	for i := range nodes {
		to := fmt.Sprint("n", i+1)
		if i == nodes-1 {
			to = graph.End
		}
		d.Nodes = append(d.Nodes, graph.Node{ID: fmt.Sprint("n", i), Type: "empty"})
		d.Edges = append(d.Edges, graph.Edge{From: fmt.Sprint("n", i), To: to})
	}
	g, err := graph.Compile(d, graph.Kinds{Types: map[string]graph.Type{"empty": empty}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// full is a board of so many bytes, half in messages, half in vars.
func full(size int) engine.Snapshot {
	h := message.NewHistory()
	for i := range max(1, size/2/1024) {
		h = h.Append(message.User(strings.Repeat("m", min(size/2, 1024))+fmt.Sprint(i)), message.Assistant("yes"))
	}
	return engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: h}, Vars: journal.Vars{"big": strings.Repeat("v", size/2)}}
}

// drive runs a graph on a board, and gives what it allocates a node.
func drive(t testing.TB, g *graph.Engine, nodes int, s engine.Snapshot, times int) float64 {
	t.Helper()
	var before, after runtime.MemStats
	var total uint64
	for range times {
		log, err := journal.Open(t.Context(), journal.Memory(), "s")
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Drive(t.Context(), "me", journal.Entry{Run: "r", Data: journal.RunStarted{Owner: "me", Attempt: 1}}); err != nil {
			t.Fatal(err)
		}
		run := engine.Run{ID: "r", Session: "s", Attempt: 1, Log: log}
		board := engine.NewBoard(s)
		runtime.ReadMemStats(&before)
		if _, err := g.Execute(t.Context(), run, engine.NoopHost{}, board); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		total += after.Mallocs - before.Mallocs
	}
	return float64(total) / float64(times*nodes)
}

// What a node costs grows neither with the graph nor with the board.
func TestTheCostOfANodeDoesNotGrow(t *testing.T) {
	least, most := 0.0, 0.0
	for _, nodes := range []int{10, 10_000} {
		g := chain(t, nodes)
		for _, size := range []int{1 << 10, 10 << 20} {
			n := drive(t, g, nodes, full(size), max(1, 200/nodes))
			t.Logf("%d nodes, a board of %d bytes: %.1f allocations a node", nodes, size, n)
			if least == 0 || n < least {
				least = n
			}
			most = max(most, n)
		}
	}
	if most > 1.3*least {
		t.Errorf("a node costs %.1f to %.1f allocations: want no more than 1.3 times the least", least, most)
	}
}

// wide is a graph with so many nodes side by side that do nothing, each with one behind it.
func wide(t testing.TB, nodes int) *graph.Engine {
	t.Helper()
	empty := graph.Typed(func(context.Context, struct{}, engine.Snapshot) (journal.Board, error) { return journal.Board{}, nil })
	d := graph.Definition{Name: "wide", Entry: "begin", Limits: graph.Limits{Nodes: 2*nodes + 1, Branches: nodes}, Nodes: []graph.Node{{ID: "begin", Type: "empty"}}}
	for i := range nodes {
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		d.Nodes = append(d.Nodes, graph.Node{ID: a, Type: "empty"}, graph.Node{ID: b, Type: "empty"})
		d.Edges = append(d.Edges, graph.Edge{From: "begin", To: a}, graph.Edge{From: a, To: b}, graph.Edge{From: b, To: graph.End})
	}
	g, err := graph.Compile(d, graph.Kinds{Types: map[string]graph.Type{"empty": empty}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Nor does it grow with how many nodes are due at once.
func TestTheCostOfANodeDoesNotGrowWithItsNeighbours(t *testing.T) {
	few, many := drive(t, wide(t, 10), 21, full(1<<10), 20), drive(t, wide(t, 1000), 2001, full(1<<10), 1)
	t.Logf("%.1f and %.1f allocations a node", few, many)
	if many > 1.5*few {
		t.Errorf("a node beside 999 others costs %.1f allocations, beside 9 others %.1f", many, few)
	}
}

func BenchmarkNodes(b *testing.B) {
	for _, nodes := range []int{10, 10_000} {
		g := chain(b, nodes)
		for _, size := range []int{1 << 10, 10 << 20} {
			s := full(size)
			b.Run(fmt.Sprintf("%d/%dKB", nodes, size>>10), func(b *testing.B) {
				for b.Loop() {
					b.ReportMetric(drive(b, g, nodes, s, 1), "allocs/node")
				}
			})
		}
	}
}
