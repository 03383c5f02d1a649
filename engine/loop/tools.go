package loop

import (
	"context"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// useTools answers every call, in order: denied ones by the reason, allowed ones by their tool, the rest after a person was asked.
// With an error, the calls that were not reached say so.
func (l *Engine) useTools(ctx context.Context, do engine.Steps, calls []message.ToolCall) ([]message.ToolResult, error) {
	results := make([]message.ToolResult, len(calls))
	judges := make([]engine.Judge, len(calls))
	for i, c := range calls {
		judges[i].Call = c
		results[i] = journal.NotRun(c)
	}
	verdicts, err := engine.DoAll[journal.ToolJudged](ctx, do, judges)
	if err != nil {
		return results, err
	}
	var run, approved batch
	var ask []engine.Ask
	var asked []int
	for i, v := range verdicts {
		call := journal.CalledOf(calls[i])
		if v.Input != "" {
			call.Input = v.Input
		}
		switch {
		case v.Refused():
			results[i] = v.Result(calls[i])
		case v.Verdict == hook.Ask.String():
			ask, asked = append(ask, engine.Ask{Asked: journal.Asked{ID: call.ID, Prompt: v.Reason, Call: &call}}), append(asked, i)
		default:
			run.add(i, l.use(call))
		}
	}
	if err := run.do(ctx, do, results); err != nil {
		return results, err
	}
	answers, err := engine.DoAll[journal.Answered](ctx, do, ask)
	if err != nil {
		return results, err // parked: the calls stay pending
	}
	for k, a := range answers {
		i, call := asked[k], *ask[k].Call
		if !a.Approved {
			results[i] = a.Result(calls[i])
			continue
		}
		if a.Input != "" {
			call.Input = a.Input
		}
		approved.add(i, l.use(call))
	}
	return results, approved.do(ctx, do, results)
}

func (l *Engine) use(c journal.Called) engine.UseTool {
	u := engine.UseTool{Call: c}
	if _, def, ok := l.tools.Lookup(c.Name); ok {
		u.Annotations = def.Annotations
	}
	return u
}

// batch is a set of calls that run together, with the places of their results.
type batch struct {
	uses []engine.UseTool
	at   []int
}

func (b *batch) add(i int, u engine.UseTool) { b.uses, b.at = append(b.uses, u), append(b.at, i) }

func (b *batch) do(ctx context.Context, do engine.Steps, results []message.ToolResult) error {
	done, err := engine.DoAll[journal.ToolFinished](ctx, do, b.uses)
	for k, d := range done {
		if d.Outcome != "" {
			results[b.at[k]] = d.Result()
		}
	}
	return err
}
