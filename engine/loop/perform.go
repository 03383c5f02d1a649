package loop

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Perform does one effect of the loop, here and now: in this process for local steps, in a worker for a workflow engine.
func (l *Engine) Perform(ctx context.Context, run engine.Run, host engine.Host, e engine.Effect) (journal.Data, error) {
	key, beside := e.Key(), ""
	if !engine.Alone(e) {
		beside = key.Scope
	}
	hears := l.cfg.Channel == engine.MainChannel && beside == "" && !engine.Kept(e) // in any other place what people say would be heard by one of many, or dropped with what failed
	e = engine.Bare(e)
	l.behind(&run, host)
	run.Background.Flush(ctx, host)
	switch t := e.(type) {
	case engine.Prepare:
		return l.prepare(ctx, &run, key.Scope, t)
	case engine.Generate:
		return l.generate(ctx, &run, host, key, beside, hears, t)
	case engine.Compact:
		return l.compact(ctx, &run, host, t)
	case engine.Tell:
		return journal.Said{Message: t.Message(), By: "pawl"}, nil
	case engine.Ask:
		return ask(ctx, &run, host, key, t)
	}
	switch e.(type) { // large ones, which would have their room here, too
	case engine.Judge:
		return l.performJudge(ctx, &run, e)
	case engine.UseTool:
		return l.useTool(ctx, &run, host, key, e)
	case engine.Stop:
		return l.performStop(ctx, &run, host, key.Scope, e)
	}
	return nil, errdefs.Internal.Errorf("loop: does not know the effect %T", e)
}

func (l *Engine) performJudge(ctx context.Context, run *engine.Run, e engine.Effect) (journal.Data, error) {
	j := e.(engine.Judge)
	judged := l.judge(ctx, run, &j)
	if judged.Refused() {
		judged.Name = j.Call.Name
	}
	if err := ctx.Err(); err != nil {
		return nil, err // what hooks said was that they were cancelled: a resumed run asks them again
	}
	return judged, nil
}

func (l *Engine) performStop(ctx context.Context, run *engine.Run, host engine.Host, scope string, e engine.Effect) (journal.Data, error) {
	if scope == "" {
		if again, err := l.steered(ctx, run, host); err != nil {
			return nil, err
		} else if again {
			return journal.Stopped{Steered: true}, nil
		}
	}
	stopped := l.stop(ctx, run, e)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return stopped, nil
}

// prepare runs the PreGeneration hooks, and mends a transcript that came from outside.
func (l *Engine) prepare(ctx context.Context, run *engine.Run, scope string, e engine.Prepare) (journal.Data, error) {
	g := &hook.Generation{Where: run.Where(), System: e.System, Messages: e.Messages}
	var err error
	run.Values.Do(func(values map[string]any) {
		g.Values = values
		err = hook.Prepare(ctx, l.hooks(run), g)
	})
	if err != nil {
		return nil, err
	}
	for i, m := range g.Messages.All() {
		if !m.IsZero() && !m.Role().Valid() {
			return nil, errdefs.Validation.Errorf("loop: message %d has the role %q: want user, assistant or tool; instructions go into the system prompt", i+1, m.Role())
		}
	}
	out := journal.Prepared{System: g.System, Moved: g.Moved, Edit: message.Diff(e.Messages, message.Repair(g.Messages)), Output: l.cfg.Output}
	if c := l.cfg.Compact; c.Enabled {
		out.CompactAt = int(float64(c.Window) * c.Threshold)
		out.Tokens = l.takes(run, scope, g.System, e.Messages.Edit(out.Edit))
	}
	return out, nil
}

func (l *Engine) stop(ctx context.Context, run *engine.Run, effect engine.Effect) journal.Data {
	e := effect.(engine.Stop)
	talk := e.Turn.Messages
	g := &hook.Generation{Where: run.Where(), System: e.Turn.System, Messages: talk, Sent: e.Sent, Output: talk.Slice(min(e.From, talk.Len()), talk.Len()).Messages()}
	g.Response = responseOf(e.Turn)
	asked := talk
	if n := asked.Len(); n > 0 && asked.Last() == e.Turn.Reply.Message {
		asked = asked.Slice(0, n-1)
	}
	req := l.request(run, e.Turn.System, asked)
	g.Request = &req
	if run.Log != nil {
		g.Usage = run.Log.State().RunSpent.Usage
	}
	var out journal.Stopped
	run.Values.Do(func(values map[string]any) {
		g.Values = values
		again, errs := hook.Finish(ctx, l.hooks(run), g)
		if !e.Last {
			out.Again = again
		}
		for _, err := range errs {
			l.log.WarnContext(ctx, "a hook failed after the generation", "run", run.ID, "error", err)
			out.Errors = append(out.Errors, err.Error())
		}
	})
	return out
}

// show has hooks see the transcript and its last reply, one for all of them, before each call and behind it.
func (l *Engine) show(run *engine.Run, t *engine.Turn, talk message.History) {
	t.Messages, t.Response = talk, nil
	if l.hooked(run) {
		t.Response = responseOf(t)
	}
}

// responseOf is the reply of a turn as hooks see it; nil where the turn is over, as for a call that goes on in the background.
func responseOf(t *engine.Turn) *model.Response {
	switch {
	case t == nil:
		return nil
	case t.Response != nil:
		return t.Response
	}
	r := &t.Reply
	return &model.Response{Message: r.Message, Usage: r.Usage, Stop: r.Stop, Reason: r.Reason, Model: r.Model, ID: r.ID}
}

// ask puts a question to whoever is there; nobody parks the run. One that can't be answered any more is a no.
func ask(ctx context.Context, run *engine.Run, host engine.Host, key journal.Key, e engine.Ask) (journal.Data, error) {
	outer := ctx
	if end := deadline(run.Log, key); !end.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	var reply engine.Reply
	err := ctx.Err()
	if err == nil {
		p := engine.Prompt{Asked: e.Asked}
		if e.Schema != "" {
			p.Schema = []byte(e.Schema)
		}
		reply, err = host.AskUser(ctx, p)
	}
	switch {
	case err != nil && ctx.Err() != nil && outer.Err() == nil:
		return journal.Answered{By: journal.ByDeadline}.To(e.Asked), nil
	case errdefs.NotAvailable.Is(err):
		return nil, engine.InterruptedError{Interrupt: engine.Interrupt{Cause: engine.CauseAwaitingPerson, Detail: e.ID}}
	case err != nil:
		return nil, err
	}
	return reply.To(e.Asked), nil
}

// deadline is when a question that is on record can be answered no more; zero for never.
func deadline(log *journal.Log, key journal.Key) time.Time {
	if log == nil {
		return time.Time{}
	}
	for _, p := range log.State().Pending {
		if p.Key == key {
			return p.Deadline()
		}
	}
	return time.Time{}
}

// hooked reports whether there are hooks.
func (l *Engine) hooked(run *engine.Run) bool { return len(l.cfg.Hooks)+len(run.Bounds.Hooks) > 0 }

// hooks are the run's, then the engine's own.
func (l *Engine) hooks(run *engine.Run) []hook.Middleware {
	switch {
	case len(l.cfg.Hooks) == 0:
		return run.Bounds.Hooks
	case len(run.Bounds.Hooks) == 0:
		return slices.Clip(l.cfg.Hooks)
	}
	return append(slices.Clip(run.Bounds.Hooks), l.cfg.Hooks...)
}

// admitted is the agent's gate; nil admits all. As in rules and hooks, Read names read. Who may use a deferred tool may search for it.
func (l *Engine) admitted(run *engine.Run) func(string) bool {
	names := run.Tools // a function that had the run would have it on the heap, gate or not
	if names == nil {
		return nil
	}
	in := func(name string) bool {
		return slices.ContainsFunc(names, func(t string) bool { return strings.EqualFold(t, name) })
	}
	searches := l.defers && slices.ContainsFunc(names, func(name string) bool {
		_, d, ok := l.tools.Lookup(name)
		return ok && d.Deferred
	})
	return func(name string) bool { return in(name) || searches && name == SearchName }
}

// generate calls the model once. What comes is published as it comes; a call that was cancelled keeps the text that came. beside is the scope when others may talk at the same time.
func (l *Engine) generate(ctx context.Context, run *engine.Run, host engine.Host, key journal.Key, beside string, hears bool, e engine.Generate) (journal.Data, error) {
	budget := run.Bounds.Budget
	if err := budget.Call(); err != nil {
		return nil, err
	}
	if budget.LimitsCost() && !l.Priced() {
		return nil, errdefs.Validation.Errorf("loop: a budget in money can't be kept: the price of %q is not known; add it to the catalogue or limit tokens", l.caps.Name)
	}
	out := journal.ModelFinished{Model: e.Model}
	if hears && run.Log != nil {
		if err := engine.EndLost(ctx, run); err != nil {
			return nil, err
		}
		for _, s := range steering(run.Log) {
			out.Heard, out.HeardTo = append(out.Heard, s.Message), s.Seq
		}
	}
	began := time.Now()
	var req model.Request
	l.fill(&req, run, e.System, e.Messages.Append(out.Heard...))
	req.CacheKey = l.cacheKey(run, key.Scope, len(req.Tools))
	resp, text, err := l.complete(ctx, &req, listening(ctx, run, host, key))
	out.Millis = time.Since(began).Milliseconds()
	if err != nil {
		return l.unreplied(ctx, &out, text, err)
	}
	return l.replied(ctx, run, host, &out, resp, beside, e.Step)
}

// unreplied is what is on record of a call that failed: the text that came before it was cancelled. A run that is left is not: whoever goes on with it makes the call again.
func (l *Engine) unreplied(ctx context.Context, out *journal.ModelFinished, text string, err error) (journal.Data, error) {
	if text != "" && ctx.Err() != nil && !errors.Is(context.Cause(ctx), engine.ErrLeft) {
		out.Message, out.Partial = message.Assistant(text), true
		return *out, err
	}
	if l.cfg.Compact.Enabled && errdefs.Overflow.Is(err) { // an outcome, which the loop does something about
		out.Stop, out.Reason, out.CostMicros = model.StopWindow, err.Error(), new(int64)
		return *out, nil
	}
	return nil, err
}

// replied is what is on record of a reply.
func (l *Engine) replied(ctx context.Context, run *engine.Run, host engine.Host, out *journal.ModelFinished, resp *model.Response, beside string, step int) (journal.Data, error) {
	out.Message, out.Usage, out.Stop, out.Reason, out.Model, out.ID = own(run.Log, resp.Message, beside, step), sane(resp.Usage), resp.Stop, resp.Reason, resp.Model, resp.ID
	var err error
	out.CostMicros, err = l.spend(run.Bounds.Budget, out.Usage, resp.By)
	return *out, cmp.Or(exceeded(report(ctx, host, out.Usage)), err)
}

// spend gives the cost of a call, in millionths of a dollar; nil: not known. by is who answered, if that is another model than was asked. It is an error when that leaves a
// budget in money that can't be kept.
func (l *Engine) spend(budget *engine.Budget, usage model.Usage, by string) (*int64, error) {
	price := l.price
	if by != "" && by != l.caps.Name {
		price = nil
		if m, ok := l.cfg.Prices.Lookup(by); ok && m.Price != nil {
			price = &m
		} else if budget.LimitsCost() {
			budget.Spend(usage, 0)
			return nil, errdefs.Validation.Errorf("loop: a budget in money can't be kept: %q answered, and its price is not known; add it to the catalogue or limit tokens", by)
		}
	}
	if price != nil {
		if micros, known := price.Cost(usage); known {
			budget.Spend(usage, micros)
			return &micros, nil
		}
	}
	budget.Spend(usage, 0)
	return nil, nil
}

// request is what the model is asked.
func (l *Engine) request(run *engine.Run, system string, messages message.History) (req model.Request) {
	l.fill(&req, run, system, messages)
	return req
}

// fill makes a request in its place: a call that waits has it on its stack once.
func (l *Engine) fill(req *model.Request, run *engine.Run, system string, messages message.History) {
	*req = model.Request{System: system, Messages: messages, Tools: l.shown(run, messages), Settings: l.cfg.Settings, Output: l.cfg.Output}
	if len(req.ProviderTools) > 0 {
		req.ProviderTools = l.providerTools(run)
	}
	if len(req.Tools)+len(req.ProviderTools) == 0 {
		req.ToolChoice = model.ToolsAuto // a choice among nothing is an error with most providers
	}
}

// providerTools are those that the agent's gate admits: nothing else stands before what they do.
func (l *Engine) providerTools(run *engine.Run) []model.ProviderTool {
	all := l.cfg.Settings.ProviderTools
	if run.Tools == nil {
		return all
	}
	shut := func(t model.ProviderTool) bool {
		return !slices.ContainsFunc(run.Tools, func(name string) bool { return strings.EqualFold(name, t.Name) })
	}
	if !slices.ContainsFunc(all, shut) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), shut)
}

// steered reports whether the model has to hear something before the run may end. It waits for what goes on in the background.
func (l *Engine) steered(ctx context.Context, run *engine.Run, host engine.Host) (bool, error) {
	heard := func() bool { return len(steering(run.Log)) > 0 }
	if run.Log == nil || run.Background == nil {
		return heard(), nil
	}
	err := run.Background.Wait(ctx, host, func() bool {
		_ = run.Log.Refresh(ctx) // what can't be read now is heard by the next call
		return heard()
	})
	return err == nil && heard(), err
}

// steering is what the run was told and has not heard.
func steering(log *journal.Log) []journal.Steering {
	if log == nil {
		return nil
	}
	return log.Steering()
}

// report tells the host what a call took. A host that panics does not cost the run its reply.
func report(ctx context.Context, host engine.Host, u model.Usage) (err error) {
	defer func() { _ = recover() }()
	return host.ReportUsage(ctx, u)
}

// exceeded is what of a host's error ends a run.
func exceeded(err error) error {
	if errdefs.BudgetExceeded.Is(err) {
		return err
	}
	return nil
}

// listener is who a stream is taken apart for, in one piece.
type listener struct {
	stream
	to engine.Deltas
}

// listening gives the listener to a model call; nil when nobody listens.
func listening(ctx context.Context, run *engine.Run, host engine.Host, key journal.Key) *listener {
	if !engine.Listening(host) {
		return nil
	}
	return &listener{to: engine.DeltasOf(run, host, key, model.Attempt(ctx))}
}

// complete calls the model, as a stream when somebody listens. With an error, text is what had come by then.
func (l *Engine) complete(ctx context.Context, req *model.Request, seen *listener) (resp *model.Response, text string, err error) {
	if seen == nil {
		resp, err = l.model.Complete(ctx, *req)
		return resp, "", reply(l.caps.Name, resp, err)
	}
	over := ctx.Done()
	err = l.model.CompleteStream(ctx, *req, func(r model.StreamResult) error {
		if seen.take(ctx, &seen.to, r); r.Final {
			return nil // all of it is here
		}
		select {
		case <-over: // for a model that does not look itself
			return ctx.Err()
		default:
			return nil
		}
	})
	if err != nil {
		text = string(seen.text)
	}
	seen.leave() // whatever the model still says has no room
	return seen.final, text, reply(l.caps.Name, seen.final, err)
}

// reply makes an error of a model that breaks its contract, and gives one that has no class its own.
func reply(name string, resp *model.Response, err error) error {
	if err == nil && resp == nil {
		return errdefs.Internal.Errorf("loop: the model %s gave neither a response nor an error", name)
	}
	if err == nil && resp.Message.Role() != message.RoleAssistant && !resp.Message.IsZero() {
		return errdefs.Internal.Errorf("loop: the model %s replied in the role %q", name, resp.Message.Role())
	}
	switch {
	case err == nil || errdefs.Of(err) != nil || errors.As(err, new(engine.InterruptedError)):
		return err
	case errors.Is(err, context.DeadlineExceeded): // the client's own, or else the run was cancelled
		return errdefs.Timeout.Errorf("loop: model %s: %w", name, err)
	}
	return errdefs.NotAvailable.Errorf("loop: model %s: %w", name, err)
}
