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
	results, _, err := l.useTools(ctx, do, &run, nil, calls)
	return results, err
}

// Judge is what [Engine.Use] will hear of a call before it may run, as hooks and permissions say: for an engine that may do without the call. Use finds it on record.
func (l *Engine) Judge(ctx context.Context, do engine.Steps, run engine.Run, c message.ToolCall) (journal.ToolJudged, error) {
	c.ID, c.Input = run.CallID(c.ID), cmp.Or(c.Input, "{}")
	return engine.Do[journal.ToolJudged](ctx, do, engine.Judge{Call: c})
}

// Admits reports whether there is a tool of that name which the run's gate lets through.
func (l *Engine) Admits(run engine.Run, name string) bool {
	_, err := l.gate(&run, name)
	return err == nil
}

// useTools answers every call, in order: denied ones by the reason, allowed ones by their tool, the rest after a person was asked.
// With an error, the calls that were not reached say so. One of them may be the last word, so that the model is not asked again.
func (l *Engine) useTools(ctx context.Context, do engine.Steps, run *engine.Run, turn *engine.Turn, calls []message.ToolCall) (results []message.ToolResult, final bool, err error) {
	var allowed batch
	var judges []engine.Judge
	var verdicts []journal.ToolJudged
	if len(calls) == 1 { // the usual, in one piece
		var one struct {
			result  [1]message.ToolResult
			judge   [1]engine.Judge
			verdict [1]journal.ToolJudged
			use     [1]engine.UseTool
			done    [1]journal.ToolFinished
			at      [1]int
		}
		results, judges, verdicts = one.result[:], one.judge[:], one.verdict[:0]
		allowed.uses, allowed.done, allowed.at = one.use[:0], one.done[:0], one.at[:0]
	} else {
		results, judges = make([]message.ToolResult, len(calls)), make([]engine.Judge, len(calls))
		allowed.uses, allowed.done, allowed.at = make([]engine.UseTool, 0, len(calls)), make([]journal.ToolFinished, 0, 1), make([]int, 0, len(calls))
	}
	for i, c := range calls {
		results[i] = journal.NotRun(c)
		judges[i].Turn, judges[i].Call = turn, c
	}
	if verdicts, err = doAll(ctx, do, judges, verdicts); err != nil {
		return results, false, err
	}
	ask, err := l.sort(run, turn, calls, verdicts, results, &allowed)
	if err != nil {
		return results, false, err
	}
	if err := allowed.do(ctx, do, run, results); err != nil {
		return results, false, err
	}
	if len(ask) > 0 {
		final, err = l.useAsked(ctx, do, run, turn, calls, verdicts, ask, results)
	}
	return results, allowed.final || final, err
}

// sort parts calls that run from those that are refused, which have their results, and those that a person is asked about.
func (l *Engine) sort(
	run *engine.Run, turn *engine.Turn, calls []message.ToolCall, verdicts []journal.ToolJudged, results []message.ToolResult, allowed *batch,
) (ask []int, err error) {
	ends := ""
	for i := range verdicts {
		v := &verdicts[i]
		switch ends = cmp.Or(ends, v.Ends); {
		case v.Refused():
			results[i] = v.Result(calls[i])
		case v.Verdict == hook.Ask.String():
			ask = append(ask, i)
		default:
			l.use(allowed.add(i), run, turn, judgedCall(calls[i], v), v.Context)
		}
	}
	if ends != "" {
		return nil, endedBy(ends)
	}
	return ask, nil
}

// judgedCall is a call as it is to run, with the input that a hook may have given it.
func judgedCall(c message.ToolCall, v *journal.ToolJudged) journal.Called {
	call := journal.CalledOf(c)
	call.Input = cmp.Or(v.Input, call.Input)
	return call
}

// useAsked asks a person about some of the calls, and runs those that are approved.
func (l *Engine) useAsked(
	ctx context.Context, do engine.Steps, run *engine.Run, turn *engine.Turn, calls []message.ToolCall, verdicts []journal.ToolJudged, which []int, results []message.ToolResult,
) (final bool, err error) {
	ask := make([]engine.Ask, len(which))
	for k, i := range which {
		ask[k].Asked = run.Asks(verdicts[i].Reason, judgedCall(calls[i], &verdicts[i]))
		ask[k].Once = verdicts[i].Once
	}
	answers, err := engine.DoAll[journal.Answered](ctx, do, ask)
	if err != nil {
		return false, err // parked: the calls stay pending
	}
	var approved batch
	for k, a := range answers {
		i := which[k]
		if !a.Approved {
			results[i] = a.Result(calls[i])
			continue
		}
		var use engine.UseTool
		l.use(&use, run, turn, *ask[k].Call, verdicts[i].Context)
		refused, err := edited(ctx, do, &use, ask[k].Asked, a)
		if refused != nil {
			results[i] = refused.Result(calls[i])
		}
		switch {
		case err != nil:
			return false, err
		case refused != nil:
			continue
		}
		*approved.add(i) = use
	}
	err = approved.do(ctx, do, run, results)
	return approved.final, err
}

// edited puts a person's input in the place of the model's, judged as that was: what is denied stays denied. What would be asked was, as the person has seen this input. refused is the judgment when the call
// may not run; with an error too, when a hook ended the run.
func edited(ctx context.Context, do engine.Steps, u *engine.UseTool, q journal.Asked, a journal.Answered) (refused *journal.ToolJudged, err error) {
	if a.Input == "" || a.Input == u.Call.Input {
		return nil, nil
	}
	call := message.ToolCall{ID: u.Call.ID, Name: u.Call.Name, Input: a.Input}
	v, err := engine.Do[journal.ToolJudged](ctx, do, engine.Judge{Turn: u.Turn, Call: call, Edited: q.ID})
	switch {
	case err != nil:
		return nil, err
	case v.Ends != "":
		return &v, endedBy(v.Ends)
	case v.Refused():
		return &v, nil
	}
	u.Call.Input, u.Edited = cmp.Or(v.Input, a.Input), true
	return nil, nil
}

// endedBy is the error of a run that a hook ended.
func endedBy(reason string) error {
	return errdefs.Aborted.Errorf("loop: a hook ended the run: %s", reason)
}

// use makes u the effect of running a call; note is what hooks want the model to know of it.
func (l *Engine) use(u *engine.UseTool, run *engine.Run, turn *engine.Turn, c journal.Called, note string) {
	u.Turn, u.Call, u.Unknown, u.Context = turn, c, run.Unknown, note
	if _, def, ok := l.tools.Lookup(c.Name); ok {
		u.Annotations = def.Annotations
	}
}

// batch is a set of calls that run together, with the places of their results.
type batch struct {
	uses  []engine.UseTool
	at    []int
	done  []journal.ToolFinished // room for what the first of them comes to
	final bool                   // one of those that are done is the last word
}

// add makes room for one more.
func (b *batch) add(i int) *engine.UseTool {
	b.uses, b.at = append(b.uses, engine.UseTool{}), append(b.at, i)
	return &b.uses[len(b.uses)-1]
}

// do runs the calls: readers that stand side by side together, any other alone, so that what follows a call whose outcome is unknown waits
// until a person has said what to do about it.
func (b *batch) do(ctx context.Context, do engine.Steps, run *engine.Run, results []message.ToolResult) error {
	for from, to := 0, 0; from < len(b.uses); from = to {
		for to = from + 1; to < len(b.uses) && b.uses[from].Concurrent() && b.uses[to].Concurrent(); to++ {
		}
		done, err := doAll(ctx, do, b.uses[from:to], b.done)
		ends, ask := b.took(done, b.at[from:to], results)
		switch {
		case err != nil:
			return err
		case ends != "":
			return endedBy(ends)
		case !ask:
			continue
		}
		for k := range done {
			if done[k].Ask {
				if err := b.again(ctx, do, run, from+k, results); err != nil {
					return err
				}
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

// took takes over what calls came to. ends is the reason of a hook that wants the run to end; ask, that a person is to be asked about one of them.
func (b *batch) took(done []journal.ToolFinished, at []int, results []message.ToolResult) (ends string, ask bool) {
	for k := range done {
		d := &done[k]
		if d.Outcome != "" {
			results[at[k]] = d.Result()
		}
		ends, ask, b.final = cmp.Or(ends, d.Ends), ask || d.Ask, b.final || d.Final
	}
	return ends, ask
}

// again asks about call i, whose outcome is unknown.
func (b *batch) again(ctx context.Context, do engine.Steps, run *engine.Run, i int, results []message.ToolResult) (err error) {
	final := false
	results[b.at[i]], final, err = runAgain(ctx, do, run, &b.uses[i])
	b.final = b.final || err == nil && final
	return err
}

// runAgain asks a person whether to run a call again whose outcome is unknown, and does, as often as it is needed.
func runAgain(ctx context.Context, do engine.Steps, run *engine.Run, u *engine.UseTool) (result message.ToolResult, final bool, err error) {
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
		refused, err := edited(ctx, do, u, q.Asked, answer)
		switch {
		case refused != nil: // what the call did before stays unknown
			return refused.ResultAgain(call), false, err
		case err != nil:
			return journal.Unknown(call), false, err
		}
		d, err := engine.Do[journal.ToolFinished](ctx, do, *u)
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
