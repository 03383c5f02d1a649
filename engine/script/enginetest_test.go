package script_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/enginetest"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/tool"
)

// work is the tool of the cases, for branches too.
func work(w *enginetest.Work, opts ...tool.Option) tool.Tool {
	type input struct {
		Branch int `json:"branch"`
		Step   int `json:"step"`
	}
	return tool.Func(enginetest.ToolName, "Does a step.", func(ctx context.Context, in input) (string, error) {
		return w.Do(ctx, enginetest.Step{Branch: in.Branch, Number: in.Step})
	}, opts...)
}

func TestAScriptIsAnEngine(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		model  bool
		tool   []tool.Option
		lacks  []enginetest.Lack
	}{
		"its results in vars": {source: `
def steps(branch):
    for step in range(1, STEPS + 1):
        board.set("result %d.%d" % (branch, step), tool("work", branch = branch, step = step))

if BRANCHES:
    parallel([lambda b = b: steps(b) for b in range(1, BRANCHES + 1)])
else:
    steps(0)
`, lacks: []enginetest.Lack{enginetest.NoUsage}},
		"its results in messages": {source: `
def steps(branch):
    for step in range(1, STEPS + 1):
        emit(tool("work", branch = branch, step = step))

if BRANCHES:
    parallel([lambda b = b: steps(b) for b in range(1, BRANCHES + 1)])
else:
    steps(0)
`, lacks: []enginetest.Lack{enginetest.NoUsage}, tool: []tool.Option{tool.ReadOnly}},
		"what fails is looked at": {source: `
def steps(branch):
    for step in range(1, STEPS + 1):
        r = tool("work", branch = branch, step = step, check = False)
        board.append("log", r.content)

if BRANCHES:
    parallel([lambda b = b: steps(b) for b in range(1, BRANCHES + 1)])
else:
    steps(0)
`, lacks: []enginetest.Lack{enginetest.NoUsage}, tool: []tool.Option{tool.RequiresApproval}},
		"a model on a channel": {source: `generate("do it", channel = "talk")`, model: true, lacks: []enginetest.Lack{enginetest.NoBranches}},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, func(t *testing.T, w *enginetest.Work) engine.Engine {
				cfg := script.Config{
					Source: fmt.Sprintf("STEPS = %d\nBRANCHES = %d\n", w.Steps(), w.Branches()) + c.source,
					Loop:   loop.Config{Tools: []tool.Tool{work(w, c.tool...)}},
				}
				if c.model {
					cfg.Loop.Model, cfg.Loop.Tools = w.Model(), []tool.Tool{w.Tool()}
				}
				eng, err := script.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				return eng
			}, c.lacks...)
		})
	}
}
