package cli

import (
	"strings"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/model"
)

// maker makes an engine of what a run has: pawl.Options.Engine.
type maker = func(cfg loop.Config) (engine.Engine, error)

// opener makes a model of its name.
type opener = func(name string) (model.Model, error)

// fileEngine is a kind of engine that is read from a file, for --engine NAME:FILE.
type fileEngine struct {
	name string
	// load reads the file. replay is for going through what is on record: there are no tools and no models, and what the file names need not be there.
	load func(file string, models opener, replay bool) (maker, error)
}

// fileEngines are all there are.
var fileEngines = []fileEngine{graphEngine, {"script", scriptEngine}}

// scriptEngine reads a program in Starlark.
func scriptEngine(file string, models opener, _ bool) (maker, error) {
	if _, err := script.Load(file, script.Config{Models: models}); err != nil {
		return nil, err
	}
	return func(cfg loop.Config) (engine.Engine, error) {
		return script.Load(file, script.Config{Loop: cfg, Models: models})
	}, nil
}

// engineFlag is the value of --engine as the help has it.
func engineFlag() string {
	words := "loop"
	for _, e := range fileEngines {
		words += " or " + e.name + ":FILE"
	}
	return words + " or " + scheme + "HOST:PORT"
}

// maker is that of --engine; nil is the loop's.
func (c *common) maker(replay bool) (maker, error) {
	if c.engine == "" || c.engine == "loop" {
		return nil, nil
	}
	models := func(name string) (model.Model, error) { return c.steady(pawl.OpenModel(name)) }
	kind, file, _ := strings.Cut(c.engine, ":")
	for _, e := range fileEngines {
		if e.name == kind && file != "" {
			m, err := e.load(file, models, replay)
			return m, wrongUse(err)
		}
	}
	return nil, usage("--engine %q: want %s", c.engine, engineFlag())
}

// engineInFull is the flag as it was given, with the path of its file absolute.
func (c *common) engineInFull() string {
	kind, _, _ := strings.Cut(c.engine, ":")
	how := inFull(c.engine, kind+":")
	if c.at != nil {
		return c.at.flag(how)
	}
	return how
}
