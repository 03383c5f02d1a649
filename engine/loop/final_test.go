package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// lastWord is a tool whose result is final, unless its input says otherwise.
type lastWord struct{}

func (lastWord) Definition() tool.Definition {
	return tool.Definition{Tool: model.Tool{Name: "last", Schema: json.RawMessage(`{"type":"object"}`)}}
}

func (lastWord) Execute(_ context.Context, input json.RawMessage) (tool.Result, error) {
	switch {
	case strings.Contains(string(input), "bad"):
		return tool.Result{Content: "no", IsError: true, Final: true}, nil
	case strings.Contains(string(input), "fail"):
		return tool.Result{Final: true}, errors.New("no")
	}
	return tool.Result{Content: "done", Final: true}, nil
}

func TestAFinalResultEndsTheRun(t *testing.T) {
	other := tool.Func("other", "", func(context.Context, struct{}) (string, error) { return "did it", nil })
	approves := engine.HostFuncs{AskUserFunc: func(_ context.Context, p engine.Prompt) (engine.Reply, error) {
		return engine.Reply{Answered: journal.Answered{ID: p.ID, Approved: true}}, nil
	}}
	again := hook.Middleware{Name: "again", PostGeneration: func(_ context.Context, g *hook.Generation) error {
		if g.Sent == 0 {
			g.Again("really?")
		}
		return nil
	}}
	for name, c := range map[string]struct {
		p     play
		final int // results on record
		last  []string
	}{
		"alone":                        {play{cfg: loop.Config{Model: plays(uses(call("1", "last", `{}`)))}}, 1, []string{"tool:  [1 done]"}},
		"beside others":                {play{cfg: loop.Config{Model: plays(uses(call("1", "last", `{}`), call("2", "other", `{}`)))}}, 1, []string{"tool:  [1 done] [2 did it]"}},
		"an error is not":              {play{cfg: loop.Config{Model: plays(uses(call("1", "last", `{"bad":1}`)), says("I see"))}}, 0, []string{"tool:  [1 no !]", "assistant: I see"}},
		"a failure is not":             {play{cfg: loop.Config{Model: plays(uses(call("1", "last", `{"fail":1}`)), says("I see"))}}, 0, []string{"tool:  [1 no !]", "assistant: I see"}},
		"a hook sends it back to work": {play{cfg: loop.Config{Model: plays(uses(call("1", "last", `{}`)), says("yes")), Hooks: []hook.Middleware{again}}}, 1, []string{"tool:  [1 done]", "user: really?", "assistant: yes"}},
		"approved by a person":         {play{cfg: loop.Config{Model: plays(uses(call("1", "last", `{}`))), Hooks: []hook.Middleware{asks("last")}}, host: approves}, 1, []string{"tool:  [1 done]"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.p.cfg.Tools = []tool.Tool{lastWord{}, other}
			d := c.p.do(t)
			if diff := cmp.Diff(c.last, d.since()[1:]); diff != "" || d.err != nil {
				t.Error(d.err, diff)
			}
			final := 0
			for _, f := range entries[journal.ToolFinished](t, d) {
				if f.Final {
					final++
				}
			}
			if final != c.final {
				t.Errorf("%d results are final on record, want %d", final, c.final)
			}
		})
	}
}
