package main

import (
	"github.com/pawl-dev/pawl/bench/internal/load"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/gemini"
	"github.com/pawl-dev/pawl/model/openai"
)

// Pawl over the other wires, each beside the same loop by hand over the same wire.

// over gives pawl-memory another model.
func over(path string, make func(name string, opts ...model.Option) model.Model) func(*load.Task) (load.System, error) {
	return func(t *load.Task) (load.System, error) {
		return pawlWith(inMemory, func(cfg *loop.Config, _ *pawl) error {
			cfg.Model = make("bench", model.WithBaseURL(t.Upstream+path), model.WithKey("none"))
			return nil
		})(t)
	}
}

// otherWires are the systems, by name.
var otherWires = load.Systems{
	"f1-openai":      newF1OpenAI,
	"f1-responses":   newF1Responses,
	"f1-gemini":      newF1Gemini,
	"pawl-openai":    over("/v1", func(name string, opts ...model.Option) model.Model { return openai.New(name, opts...) }),
	"pawl-responses": over("/v1", func(name string, opts ...model.Option) model.Model { return openai.NewResponses(name, opts...) }),
	"pawl-gemini":    over("/v1beta", func(name string, opts ...model.Option) model.Model { return gemini.New(name, opts...) }),
}

func wireRows() (all []row) {
	for _, wire := range []string{"openai", "responses", "gemini"} {
		all = append(all,
			row{title: "W1", workload: "W1", system: "pawl-" + wire, base: "f1-" + wire, wants: []want{{cpuTurn, 0.70}, {allocTurn, 110}, {bytesTurn, 0}}},
			row{title: "W3", workload: "W3", system: "pawl-" + wire, base: "f1-" + wire, wants: []want{{cpuPiece, 0.20}, {allocPiece, 0.1}}},
		)
	}
	return all
}
