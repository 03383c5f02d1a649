package enginetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// Work is what a case has an engine do: steps 1 to Steps, one after the other, in each of the branches 1 to Branches, side by side. The engine does a step by [Work.Do], which
// gives its result, and puts the result on its board: into a message of any channel, or a var. Between two steps it looks for a cancel and an interrupt.
//
// An engine that talks to a model gets [Work.Model], and [Work.Tool] if it uses tools: they do the steps by themselves. Safe for concurrent use.
type Work struct {
	steps, branches int
	deps            engine.Dependencies
	over            chan struct{} // closed when the case is over, so that nothing waits for ever

	mu     sync.Mutex
	on     func(ctx context.Context, at Step) error  // within a step
	think  func(ctx context.Context, call int) error // within a model call; calls are counted from 1
	begun  map[Step]int                              // how often
	gave   map[Step][]string                         // results
	serial int                                       // of results
	models int                                       // model calls
	uses   bool                                      // the engine talks to Model
	fail   func(format string, args ...any)          // the case's own
}

// Step is a step's place. Branch is 0 in work without branches.
type Step struct{ Branch, Number int }

func newWork(t *testing.T, steps, branches int) *Work {
	w := &Work{steps: steps, branches: branches, over: make(chan struct{}), begun: map[Step]int{}, gave: map[Step][]string{}, fail: t.Errorf}
	t.Cleanup(func() { close(w.over) })
	return w
}

// Steps is how many steps there are, in each branch.
func (w *Work) Steps() int { return w.steps }

// Branches is how many branches there are; 0 is work without any. An engine without branches never gets such work: see [NoBranches].
func (w *Work) Branches() int { return w.branches }

// Dependencies are those that the engine will find in its run. What its Capabilities need, the factory provides here.
func (w *Work) Dependencies() *engine.Dependencies { return &w.deps }

// Do does a step and gives its result. ctx is the step's own, under the run's. An error fails the step; what the engine makes of that is its own affair, but it does
// not try again.
func (w *Work) Do(ctx context.Context, at Step) (string, error) {
	w.mu.Lock()
	w.begun[at]++
	on := w.on
	w.mu.Unlock()
	if at.Number < 1 || at.Number > w.steps || at.Branch < 0 || at.Branch > w.branches || (at.Branch == 0) != (w.branches == 0) {
		w.fail("there is no step %+v", at)
	}
	if on != nil {
		if err := on(ctx, at); err != nil {
			return "", err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serial++
	result := fmt.Sprintf("result %d of step %d.%d;", w.serial, at.Branch, at.Number)
	w.gave[at] = append(w.gave[at], result)
	return result, nil
}

// waits ends when ctx does, with its error; in a step it stands for work that heeds its context.
func (w *Work) waits(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-w.over: // the case failed already: the engine did not return
		return context.Canceled
	}
	return ctx.Err()
}

// done is how often each step was begun.
func (w *Work) done() map[Step]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[Step]int, len(w.begun))
	for at, n := range w.begun {
		all[at] = n
	}
	return all
}

// total is how many steps were begun.
func (w *Work) total() (n int) {
	for _, k := range w.done() {
		n += k
	}
	return n
}

// thoughts is how often the model was called, and whether the engine has it at all.
func (w *Work) thoughts() (n int, uses bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.models, w.uses
}

// results are what the steps gave.
func (w *Work) results() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.gave {
		all = append(all, r...)
	}
	return all
}

// ToolName is the name of [Work.Tool].
const ToolName = "work"

// Model is a model that has the next step done by a call of [Work.Tool] in each reply, whether or not it is told of that tool, and then says that it is done. It has no state: it
// goes by the transcript. Its replies take 10 tokens and give 5.
func (w *Work) Model() model.Model {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uses = true
	return thinker{w}
}

// Tool does the steps, for engines with tools.
func (w *Work) Tool(opts ...tool.Option) tool.Tool {
	type input struct {
		Step int `json:"step"`
	}
	return tool.Func(ToolName, "Does a step.", func(ctx context.Context, in input) (string, error) {
		return w.Do(ctx, Step{Number: in.Step})
	}, opts...)
}

type thinker struct{ w *Work }

func (m thinker) reply(ctx context.Context, req model.Request) (*model.Response, error) {
	m.w.mu.Lock()
	m.w.models++
	n, think := m.w.models, m.w.think
	m.w.mu.Unlock()
	if think != nil {
		if err := think(ctx, n); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	step := 1
	for _, said := range req.Messages.All() {
		if len(said.ToolCalls()) > 0 {
			step++
		}
	}
	resp := &model.Response{Message: message.Assistant("all is done"), Usage: model.Usage{Input: 10, Output: 5}, Stop: model.StopEnd}
	if step <= m.w.steps {
		resp.Stop = model.StopTools
		resp.Message = message.Assistant("", message.ToolCall{ID: fmt.Sprintf("c%d", step), Name: ToolName, Input: fmt.Sprintf(`{"step":%d}`, step)})
	}
	return resp, nil
}

func (m thinker) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	return m.reply(ctx, req)
}

func (m thinker) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := m.reply(ctx, req)
	if err != nil {
		return err
	}
	if err := cb(model.StreamResult{Text: resp.Message.Text()}); err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}
