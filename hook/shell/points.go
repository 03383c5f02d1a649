package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/message"
)

// Middleware is [New] and [Hooks.Middleware] for hooks that need nothing else: of PreToolUse, PostToolUse and Stop, and none in the background. Any other is an error.
// What they leave behind without holding their output is not stopped.
func Middleware(o Options, hooks ...Hook) (hook.Middleware, error) {
	for i, h := range hooks {
		if !h.Event.tool() && h.Event != Stop || h.Async {
			return hook.Middleware{}, errdefs.Validation.Errorf("hook: hook %d (%s %s) is of a session or a subagent, or runs in the background: somebody has to fire or to close it, use shell.New", i+1, h.Event, h.title())
		}
	}
	s, err := New(o, hooks...)
	if err != nil {
		return hook.Middleware{}, err
	}
	return s.Middleware(), nil
}

// Middleware has the hooks of PreToolUse, PostToolUse and Stop at their points, and those of SubagentStart and SubagentStop around runs below; at PreGeneration it gives the model what
// hooks of SessionStart and Stop have to say to it. A point without hooks is nil, and costs nothing.
func (s *Hooks) Middleware() hook.Middleware {
	m := hook.Middleware{Name: s.opts.Name, Forget: s.Forget}
	if len(s.hooks[PreToolUse]) > 0 {
		m.PreToolUse = s.before
	}
	if len(s.hooks[PostToolUse]) > 0 {
		m.PostToolUse = s.after
	}
	if len(s.hooks[Stop]) > 0 {
		m.PostGeneration = s.stop
	}
	if len(s.hooks[SubagentStart])+len(s.hooks[SubagentStop]) > 0 {
		m.Below = s.Subagent
	}
	if len(s.hooks[SessionStart])+len(s.hooks[Stop]) > 0 {
		m.PreGeneration = func(_ context.Context, g *hook.Generation) error {
			inform(g, s.take(g.Session))
			return nil
		}
	}
	return m
}

// rewrite is what a hook made of a call's input, kept for when the call is judged again.
type rewrite struct {
	of     *Hooks
	answer answer
}

func (s *Hooks) before(ctx context.Context, u *hook.ToolUse) (d hook.Decision, err error) {
	f := fired(PreToolUse, u.Where, ToolUsePayload{u.Call.Name, json.RawMessage(u.Call.Input), u.Call.ID})
	var known *answer
	if r, ok := u.By.(*rewrite); ok && r.of == s { // a hook is not asked about what it made itself
		known = &r.answer
	}
	answers, err := s.fire(ctx, f, known)
	if err != nil {
		return d, err
	}
	for _, a := range answers {
		if a.err != nil {
			a.verdict, a.reason = hook.Deny, fmt.Sprintf("The hook %s did not give its answer, so the call is refused: %v", a.by.name, a.err)
		}
		if a.ends {
			a.verdict = hook.Deny
			if a.ending == "" {
				a.ending = "the hook " + a.by.name + " ended the run"
			}
			u.EndRun(a.ending)
			a.reason = a.ending
		}
		if a.verdict == hook.Deny && a.reason == "" {
			a.reason = "The hook " + a.by.name + " refuses this call."
		}
		if a.verdict > d.Verdict {
			d.Verdict, d.Reason = a.verdict, a.reason
		}
		if a.input != "" {
			d.Input = a.input
			r := &rewrite{s, a}
			r.answer.input = ""
			d.By = r
		}
		d.Context = lines(d.Context, a.context)
	}
	return d, nil
}

func (s *Hooks) after(ctx context.Context, u *hook.ToolUse) error {
	p := ToolResultPayload{
		ToolUsePayload: ToolUsePayload{u.Call.Name, json.RawMessage(u.Call.Input), u.Call.ID},
		Response:       ToolResponse{u.Result.Content, u.Result.IsError, len(u.Result.Files)},
		Result:         u.Result.Content, IsError: u.Result.IsError, Millis: u.Took.Milliseconds(),
	}
	if p.IsError {
		p.Error = p.Result
	}
	answers, err := s.fire(ctx, fired(PostToolUse, u.Where, p), nil)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range answers {
		if a.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", a.by.name, a.err))
			continue
		}
		if a.output != nil {
			u.Result.Content, u.Result.Files = *a.output, nil // a file may say what the text said
		}
		if a.ends {
			u.EndRun(a.ending)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, a := range answers { // behind the last new output
		if a.verdict == hook.Deny {
			if a.reason == "" {
				a.reason = "it objects, and does not say why"
			}
			u.Result.Content = lines(u.Result.Content, "The hook "+a.by.name+" says: "+a.reason)
		}
		u.Result.Content = lines(u.Result.Content, a.context)
	}
	return nil
}

func (s *Hooks) stop(ctx context.Context, g *hook.Generation) error {
	p := StopPayload{Active: g.Sent > 0}
	if g.Response != nil {
		p.Last = g.Response.Message.Text()
	}
	answers, err := s.fire(ctx, fired(Stop, g.Where, p), nil)
	if err != nil {
		return err
	}
	out := outcome(answers)
	s.keep(g.Session, out.Context)
	g.Again(out.Again)
	var errs []error
	for _, a := range answers {
		if a.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", a.by.name, a.err))
		}
	}
	return errors.Join(errs...)
}

// Outcome is what the hooks of an event want.
type Outcome struct {
	// Context is for the model. That of SessionStart the Middleware gives it, at the session's next run; that of SubagentStart [Hooks.Subagent] does, or the caller.
	Context string
	Again   string // of SubagentStop: what sends the subagent back to work
	Ended   bool   // a hook said continue: false; what the event announces should not begin
	Reason  string // of Ended
}

func outcome(answers []answer) (o Outcome) {
	for _, a := range answers {
		if a.ends && !o.Ended {
			o.Ended, o.Reason = true, a.ending
		}
		if a.verdict == hook.Deny {
			if a.reason == "" {
				a.reason = "The hook " + a.by.name + " does not let you stop yet."
			}
			o.Again = lines(o.Again, a.reason)
		}
		o.Context = lines(o.Context, a.context)
	}
	if o.Ended {
		o.Again = ""
	}
	return o
}

// Fire runs the hooks of SessionStart and SessionEnd (a [SessionPayload]) and of SubagentStart and SubagentStop (a [SubagentPayload]): for whoever runs sessions. w is the
// session, of subagents the one above. A hook that fails is a Notice; the error is that of ctx, errdefs.NotAvailable after Close, or errdefs.Validation for a payload of
// another event. After SessionEnd the Once hooks of the session may run again.
func (s *Hooks) Fire(ctx context.Context, e EventType, w hook.Where, p Payload) (Outcome, error) {
	if e.tool() || e == Stop || p == nil || !p.of(e) {
		return Outcome{}, errdefs.Validation.Errorf("hook: %s can't be fired with %T: sessions have a SessionPayload, with a source or a reason, subagents a SubagentPayload, with a Stop when they stop; the other events come from the Middleware", e, p)
	}
	answers, err := s.fire(ctx, fired(e, w, p), nil)
	if err != nil {
		return Outcome{}, err
	}
	o := outcome(answers)
	switch e {
	case SessionStart:
		s.keep(w.Session, o.Context)
	case SessionEnd:
		s.Forget(func(session string) bool { return session == w.Session })
	}
	return o, nil
}

// Subagent is for the runs of an agent that works below, when they don't inherit it ([hook.Middleware].Below): its hooks of SubagentStart and SubagentStop. Its tool calls are judged by the
// hooks of the run above, which it inherits.
// parent is the run above: session_id is its; the zero Where is the child itself.
func (s *Hooks) Subagent(parent hook.Where, agentType string) hook.Middleware {
	payload := func(g *hook.Generation) (hook.Where, SubagentPayload) {
		w := parent
		if w == (hook.Where{}) {
			w = g.Where
		}
		return w, SubagentPayload{Type: agentType, ID: g.Session, Name: g.Agent}
	}
	m := hook.Middleware{Name: s.opts.Name}
	if len(s.hooks[SubagentStart]) > 0 {
		m.PreGeneration = func(ctx context.Context, g *hook.Generation) error {
			w, p := payload(g)
			o, err := s.Fire(ctx, SubagentStart, w, p)
			if err == nil && o.Ended {
				err = errdefs.Aborted.Errorf("a SubagentStart hook ended it: %s", o.Reason)
			}
			inform(g, o.Context)
			return err
		}
	}
	if len(s.hooks[SubagentStop]) > 0 {
		m.PostGeneration = func(ctx context.Context, g *hook.Generation) error {
			w, p := payload(g)
			p.Stop = &StopPayload{Active: g.Sent > 0}
			if g.Response != nil {
				p.Stop.Last = g.Response.Message.Text()
			}
			o, err := s.Fire(ctx, SubagentStop, w, p)
			g.Again(o.Again)
			return err
		}
	}
	return m
}

// inform puts a text before the newest message, which is what the model is to answer.
func inform(g *hook.Generation, text string) {
	if text == "" {
		return
	}
	said, n := message.User("From the hooks of this project:\n"+text), g.Messages.Len()
	if n == 0 || g.Messages.Last().Role() != message.RoleUser {
		g.Messages = g.Messages.Append(said)
		return
	}
	g.Messages = g.Messages.Slice(0, n-1).Append(said, g.Messages.Last())
}

func (s *Hooks) keep(session, text string) {
	if text == "" || session == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[session] = lines(s.pending[session], text)
}

func (s *Hooks) take(session string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.pending[session]
	delete(s.pending, session)
	return text
}

// Forget drops what is kept of the sessions that of says yes to: what their model has to be told yet, and which Once hooks have run.
func (s *Hooks) Forget(of func(session string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.pending, func(session, _ string) bool { return of(session) })
	maps.DeleteFunc(s.once, func(k onceKey, _ string) bool { return k.session != "" && of(k.session) })
}

// lines joins texts that are there.
func lines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
