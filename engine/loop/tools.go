package loop

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// Use makes calls that no model asked for: another engine's own. They go the way of a model's: the agent's gate, the tools' schemas, hooks and permissions, people, and each tool's policy for an unknown
// outcome; results come in the order of the calls, and what a tool fails with, or who refused the call, is a result too. A call's ID is a name that is unique in the run; its result has what [engine.Run.CallID] makes
// of that. An empty input is {}. With an error, the calls that were not reached say so.
func (l *Engine) Use(ctx context.Context, do engine.Steps, run engine.Run, calls ...message.ToolCall) ([]message.ToolResult, error) {
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i].ID, calls[i].Input = run.CallID(calls[i].ID), cmp.Or(calls[i].Input, "{}")
	}
	results, _, err := l.useTools(ctx, do, run, nil, calls)
	return results, err
}

// Judge is what [Engine.Use] will hear of a call before it may run, as hooks and permissions say: for an engine that may do without the call. Use finds it on record.
func (l *Engine) Judge(ctx context.Context, do engine.Steps, run engine.Run, c message.ToolCall) (journal.ToolJudged, error) {
	c.ID, c.Input = run.CallID(c.ID), cmp.Or(c.Input, "{}")
	return engine.Do[journal.ToolJudged](ctx, do, engine.Judge{Call: c})
}

// Admits reports whether there is a tool of that name which the run's gate lets through.
func (l *Engine) Admits(run engine.Run, name string) bool {
	_, err := l.gate(run, name)
	return err == nil
}

// useTools answers every call, in order: denied ones by the reason, allowed ones by their tool, the rest after a person was asked.
// With an error, the calls that were not reached say so. One of them may be the last word, so that the model is not asked again.
func (l *Engine) useTools(ctx context.Context, do engine.Steps, run engine.Run, of *engine.Turn, calls []message.ToolCall) (results []message.ToolResult, final bool, err error) {
	var allowed, approved batch
	var judges []engine.Judge
	var verdicts []journal.ToolJudged
	var turn *engine.Turn
	if len(calls) == 1 { // the usual, in one piece
		var one struct {
			result  [1]message.ToolResult
			judge   [1]engine.Judge
			verdict [1]journal.ToolJudged
			use     [1]engine.UseTool
			done    [1]journal.ToolFinished
			at      [1]int
			turn    engine.Turn
		}
		results, judges, verdicts = one.result[:], one.judge[:], one.verdict[:0]
		allowed.uses, allowed.done, allowed.at = one.use[:0], one.done[:0], one.at[:0]
		if of != nil {
			one.turn = *of
			turn = &one.turn
		}
	} else {
		results, judges = make([]message.ToolResult, len(calls)), make([]engine.Judge, len(calls))
		if of != nil {
			all := *of
			turn = &all
		}
	}
	for i, c := range calls {
		judges[i].Turn, judges[i].Call = turn, c
		results[i] = journal.NotRun(c)
	}
	if verdicts, err = doAll(ctx, do, judges, verdicts); err != nil {
		return results, false, err
	}
	var ask []engine.Ask
	var asked []int
	ends := ""
	for i, v := range verdicts {
		ends = cmp.Or(ends, v.Ends)
		call := journal.CalledOf(calls[i])
		if v.Input != "" {
			call.Input = v.Input
		}
		switch {
		case v.Refused():
			results[i] = v.Result(calls[i])
		case v.Verdict == hook.Ask.String():
			q := engine.Ask{Asked: run.Asks(v.Reason, call)}
			q.Once = v.Once
			ask, asked = append(ask, q), append(asked, i)
		default:
			allowed.add(i, l.use(run, turn, call, v.Context))
		}
	}
	if ends != "" {
		return results, false, endedBy(ends)
	}
	if err := allowed.do(ctx, do, run, results); err != nil {
		return results, false, err
	}
	answers, err := engine.DoAll[journal.Answered](ctx, do, ask)
	if err != nil {
		return results, false, err // parked: the calls stay pending
	}
	for k, a := range answers {
		i, call := asked[k], *ask[k].Call
		if !a.Approved {
			results[i] = a.Result(calls[i])
			continue
		}
		use := l.use(run, turn, call, verdicts[i].Context)
		if refused, err := edited(ctx, do, &use, ask[k].Asked, a); err != nil {
			return results, false, err
		} else if refused != nil {
			results[i] = *refused
			continue
		}
		approved.add(i, use)
	}
	err = approved.do(ctx, do, run, results)
	return results, allowed.final || approved.final, err
}

// edited puts a person's input in the place of the model's, judged as that was: what is denied stays denied. What would be asked was, as the person has seen this input. refused is the call's result when it
// may not run.
func edited(ctx context.Context, do engine.Steps, u *engine.UseTool, q journal.Asked, a journal.Answered) (refused *message.ToolResult, err error) {
	if a.Input == "" || a.Input == u.Call.Input {
		return nil, nil
	}
	call := message.ToolCall{ID: u.Call.ID, Name: u.Call.Name, Input: a.Input}
	v, err := engine.Do[journal.ToolJudged](ctx, do, engine.Judge{Turn: u.Turn, Call: call, Edited: q.ID})
	switch {
	case err != nil:
		return nil, err
	case v.Refused():
		r := v.Result(call)
		return &r, nil
	case v.Ends != "":
		return nil, endedBy(v.Ends)
	}
	u.Call.Input, u.Edited = cmp.Or(v.Input, a.Input), true
	return nil, nil
}

// endedBy is the error of a run that a hook ended.
func endedBy(reason string) error {
	return errdefs.Aborted.Errorf("loop: a hook ended the run: %s", reason)
}

// use is the effect of running a call; note is what hooks want the model to know of it.
func (l *Engine) use(run engine.Run, turn *engine.Turn, c journal.Called, note string) engine.UseTool {
	u := engine.UseTool{Turn: turn, Call: c, Unknown: run.Unknown, Context: note}
	if _, def, ok := l.tools.Lookup(c.Name); ok {
		u.Annotations = def.Annotations
	}
	return u
}

// batch is a set of calls that run together, with the places of their results.
type batch struct {
	uses  []engine.UseTool
	at    []int
	done  []journal.ToolFinished // room for what the first of them comes to
	final bool                   // one of those that are done is the last word
}

func (b *batch) add(i int, u engine.UseTool) { b.uses, b.at = append(b.uses, u), append(b.at, i) }

// do runs the calls: readers that stand side by side together, any other alone, so that what follows a call whose outcome is unknown waits
// until a person has said what to do about it.
func (b *batch) do(ctx context.Context, do engine.Steps, run engine.Run, results []message.ToolResult) error {
	for from, to := 0, 0; from < len(b.uses); from = to {
		for to = from + 1; to < len(b.uses) && b.uses[from].Concurrent() && b.uses[to].Concurrent(); to++ {
		}
		done, err := doAll(ctx, do, b.uses[from:to], b.done)
		ends := ""
		for k, d := range done {
			if d.Outcome != "" {
				results[b.at[from+k]] = d.Result()
			}
			ends, b.final = cmp.Or(ends, d.Ends), b.final || d.Final
		}
		switch {
		case err != nil:
			return err
		case ends != "":
			return endedBy(ends)
		}
		for k, d := range done {
			if d.Ask {
				again := false
				if results[b.at[from+k]], again, err = runAgain(ctx, do, run, b.uses[from+k]); err != nil {
					return err
				}
				b.final = b.final || again
			}
		}
	}
	return nil
}

// doAll is engine.DoAll that puts the outcome of a single effect into room, if there is some.
func doAll[Out journal.Data, E engine.Effect](ctx context.Context, do engine.Steps, es []E, room []Out) ([]Out, error) {
	if len(es) != 1 || cap(room) == 0 {
		return engine.DoAll[Out](ctx, do, es)
	}
	out, err := engine.Do[Out](ctx, do, es[0])
	return append(room[:0], out), err
}

// runAgain asks a person whether to run a call again whose outcome is unknown, and does, as often as it is needed.
func runAgain(ctx context.Context, do engine.Steps, run engine.Run, u engine.UseTool) (result message.ToolResult, final bool, err error) {
	for {
		u.Again++
		q := engine.Ask{Asked: run.Asks(fmt.Sprintf(tellUnknown, u.Call.Name), u.Call), Again: u.Again}
		q.ID, q.Unknown = fmt.Sprintf("%s/again-%d", u.Call.ID, u.Again), true // a late answer to another question about the call is none to this one
		answer, err := engine.Do[journal.Answered](ctx, do, q)
		call := message.ToolCall{ID: u.Call.ID, Name: u.Call.Name, Input: u.Call.Input}
		switch {
		case err != nil:
			return journal.Unknown(call), false, err
		case !answer.Approved:
			return q.Result(call, answer), false, nil
		}
		if refused, err := edited(ctx, do, &u, q.Asked, answer); err != nil {
			return journal.Unknown(call), false, err
		} else if refused != nil { // what the call did before stays unknown
			refused.Content = journal.Unknown(call).Content + " It was not run again: " + refused.Content
			return *refused, false, nil
		}
		d, err := engine.Do[journal.ToolFinished](ctx, do, u)
		if d.Outcome == "" {
			return journal.Unknown(call), false, err
		}
		if err == nil && d.Ends != "" {
			err = endedBy(d.Ends)
		}
		if err != nil || !d.Ask {
			return d.Result(), d.Final, err
		}
	}
}
