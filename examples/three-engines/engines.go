package main

import (
	"context"
	_ "embed"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/hook"
)

// way is one of the three.
type way struct {
	name string
	make func(loop.Config) (engine.Engine, error)
}

var ways = []way{{"loop", asLoop}, {"graph", asGraph}, {"script", asScript}}

// asLoop: the model goes on until it stops; then a hook says what comes next.
func asLoop(cfg loop.Config) (engine.Engine, error) {
	next := []string{
		"Write a report from what you found, three sentences at most.",
		"Review the report: what no note says goes. Publish the rest.",
	}
	cfg.Hooks = append(cfg.Hooks, hook.Middleware{Name: "next", PostGeneration: func(_ context.Context, g *hook.Generation) error {
		if g.Sent < len(next) {
			g.Again(next[g.Sent])
		}
		return nil
	}})
	return loop.New(cfg)
}

//go:embed report.yaml
var definition []byte

// asGraph: the nodes and edges say what comes next.
func asGraph(cfg loop.Config) (engine.Engine, error) {
	def, err := graph.Parse("report.yaml", definition)
	if err != nil {
		return nil, err
	}
	return graph.Compile(def, graph.Kinds{Loop: cfg})
}

//go:embed report.star
var source string

// asScript: the program says what comes next.
func asScript(cfg loop.Config) (engine.Engine, error) {
	return script.New(script.Config{Name: "report.star", Source: source, Loop: cfg})
}
