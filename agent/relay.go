package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// relay is what the runs of one prompt share, so that no other driver comes between two of them.
type relay struct {
	log    *journal.Log
	lease  lease
	behind int64  // the next run begins right behind this entry of the session, or not at all; 0: anywhere
	by     string // who says the next run's message; "": a person
}

// by is who says the run's message.
func (t *turn) by() string {
	if t.relay == nil {
		return ""
	}
	return t.relay.by
}

// trail is what the journal knows of a session's last prompt.
type trail struct {
	base   string          // the id of its first run
	path   []string        // the agents of its runs
	spent  []journal.Spent // by them, without their tasks
	inputs map[string]any  // of its last run
	with   string          // the agent that has the conversation
	next   *HandoffEvent   // a handoff that nobody has followed yet
}

// run is the id of the prompt's run number n, from 0.
func (tr *trail) run(n int) string {
	if n <= 0 {
		return tr.base
	}
	return fmt.Sprintf("%s-hop-%d", tr.base, n)
}

// parent names the run that handed over to run number n.
func (tr *trail) parent(n int) RunOption {
	if n <= 0 {
		return nil // the caller's
	}
	return WithParentRunID(tr.run(n - 1))
}

func (tr *trail) apply(e journal.Entry) error {
	switch d := e.Data.(type) {
	case journal.SessionCreated: // of a fork: what was under way is not the fork's, as with runs
		if tr.next != nil {
			tr.with = tr.next.ToAgentID
		}
		tr.path, tr.next, tr.spent = nil, nil, nil
	case journal.RunStarted:
		if d.Attempt > 1 {
			return nil
		}
		if n := len(tr.path); tr.next == nil || e.Run != tr.run(n) || d.ParentRun != tr.run(n-1) || d.Agent != tr.next.ToAgentID {
			tr.base, tr.path, tr.spent = e.Run, nil, nil
		}
		tr.spent = append(tr.spent, journal.Spent{})
		tr.path, tr.with, tr.inputs, tr.next = append(tr.path, d.Agent), d.Agent, d.Inputs, nil
	case journal.ModelFinished:
		if n := len(tr.spent); n > 0 {
			tr.spent[n-1] = tr.spent[n-1].Plus(journal.SpentBy(d))
		}
	case journal.RunFinished:
		if len(d.Handoff) == 0 || len(tr.path) == 0 {
			return nil
		}
		tr.next = new(HandoffEvent)
		if err := json.Unmarshal(d.Handoff, tr.next); err != nil {
			return errdefs.Internal.Errorf("agent: team: entry %d of session %s: the handoff can't be read: %w", e.Seq, e.Session, err)
		}
		tr.with = tr.next.ToAgentID
	}
	return nil
}

// prompt is a prompt that a team is at work on.
type prompt struct {
	*config
	team  *Team
	relay *relay
	trail trail
	req   Request
	opts  []RunOption
	limit error          // what the end of the prompt's time means; nil: there is no limit
	whole *engine.Budget // what binds the prompt: its own, and those above
}

// open leases the session, if there is one, and then looks at it: nobody changes it any more.
func (t *Team) open(ctx context.Context, c *config, limit error, session, run string, opts []RunOption) (*prompt, error) {
	p := &prompt{config: c, team: t, opts: opts, limit: limit, whole: c.bounds(ctx, &Agent{}).Budget, relay: &relay{lease: lease{store: c.store, session: session, owner: "team-" + name()}}}
	if err := p.take(ctx, session, run); err != nil {
		return nil, late(ctx, limit, err)
	}
	var err error
	if p.relay.log, err = c.open(ctx, c.store, session); err != nil {
		p.relay.lease.release() //nolint:contextcheck // the context may have ended by then
		return nil, err
	}
	return p, nil
}

// follows reads who has the conversation.
func (tr *trail) follows(st journal.State) error {
	if tr.with = st.Agent; len(st.Handoff) == 0 {
		return nil
	}
	tr.next = new(HandoffEvent)
	if err := json.Unmarshal(st.Handoff, tr.next); err != nil {
		return errdefs.Internal.Errorf("agent: team: the handoff that the last run ended with can't be read: %w", err)
	}
	tr.with = tr.next.ToAgentID
	return nil
}

// read reads all of the last prompt.
func (tr *trail) read(ctx context.Context, store journal.Store, session string) error {
	for e, err := range store.Read(ctx, session, 0) {
		if err != nil {
			return err
		}
		if err := tr.apply(e); err != nil {
			return err
		}
	}
	return nil
}

// take leases the session. A prompt, which has a run, makes it first when it is not there.
func (p *prompt) take(ctx context.Context, session, run string) error {
	if p.private {
		return nil
	}
	err := p.config.take(ctx, &p.relay.lease, session, run)
	if !errdefs.NotFound.Is(err) || run == "" {
		return err
	}
	log, err := journal.Open(ctx, p.store, session)
	if err != nil {
		return err
	}
	made := log.Append(ctx, journal.Entry{Data: journal.SessionCreated{}})
	if made != nil && !errdefs.Conflict.Is(made) {
		return made
	}
	if err = p.config.take(ctx, &p.relay.lease, session, run); made != nil && errdefs.NotFound.Is(err) {
		return made // the name is taken by a session that the store does not show: see journal.Within
	}
	return err
}

// entered counts what the prompt's first runs spent, and their tasks.
func (p *prompt) entered(ctx context.Context, runs int) error {
	if p.whole == nil {
		return nil
	}
	for i := range runs {
		below, err := tasksSpent(ctx, p.store, p.req.ContextID, p.trail.run(i))
		if err != nil {
			return err
		}
		p.whole.Enter(p.trail.run(i), p.trail.spent[i].Plus(below))
	}
	return nil
}

// over says that nothing of the prompt will be resumed.
func (p *prompt) over(res *Result, err error) {
	if err != nil || res == nil || res.Status == StatusInterrupted {
		return
	}
	for i := range p.trail.path {
		p.whole.Leave(p.trail.run(i))
	}
}

// follow runs the next agent as long as a completed run hands over.
func (p *prompt) follow(ctx context.Context, res *Result) (*Result, error) {
	for {
		ev, ok := HandoffFromResult(res)
		if !ok || res.Status != StatusCompleted {
			return res, nil
		}
		next, err := p.hop(ctx, ev)
		if next == nil {
			return res, err
		}
		if res = next; err != nil {
			return res, err
		}
	}
}

// hop runs the agent that the conversation was handed over to.
func (p *prompt) hop(ctx context.Context, ev HandoffEvent) (*Result, error) {
	if len(p.trail.path) > p.team.hops {
		return nil, errdefs.BudgetExceeded.Errorf("agent: team: the limit of %d handoffs for one prompt is reached: %s → %s: say in their instructions who answers what, or raise MaxHops",
			p.team.hops, strings.Join(p.trail.path, " → "), ev.ToAgentID)
	}
	who, ok := p.team.members[ev.ToAgentID]
	if !ok {
		return nil, p.team.stranger(ev.ToAgentID, p.req.ContextID)
	}
	n := len(p.trail.path)
	req := p.req
	req.RunID, req.Message = p.trail.run(n), taken(p.trail.path[n-1], ev)
	p.relay.behind, p.relay.by = p.relay.log.Seq(), "pawl"
	p.trail.path = append(p.trail.path, who.Agent.ID)
	return p.run(ctx, who, req, WithBoardSeed(nil), p.trail.parent(n))
}

// run runs one agent, with the prompt's own options behind the caller's.
func (p *prompt) run(ctx context.Context, who Member, req Request, opts ...RunOption) (*Result, error) {
	all := append(slices.Clip(p.opts), func(c *config) {
		c.relay, c.store, c.private = p.relay, p.store, p.private
		c.timeout, c.limit = 0, p.limit
	}, WithDecider(hops{HandoffDecider(who.Handoffs), slices.Clone(p.trail.path)}))
	return Run(ctx, who.Agent, who.Engine, req, append(all, opts...)...)
}

// hops is the HandoffDecider of one run, and notes the way to it.
type hops struct {
	Decider
	path []string
}

// BeforeFinalize implements [Decider].
func (h hops) BeforeFinalize(ctx context.Context, info RunInfo, req *Request, res *Result) (FinalizeDecision, error) {
	d, err := h.Decider.BeforeFinalize(ctx, info, req, res)
	state := map[string]any{StateTeamPath: h.path}
	maps.Copy(state, d.State)
	d.State = state
	return d, err
}

// taken is what the next agent is told. Providers want a user's message at the end; its origin says that no person wrote it.
func taken(from string, ev HandoffEvent) message.Message {
	var b strings.Builder
	fmt.Fprintf(&b, "The agent %s handed this conversation over to you.", from)
	if ev.Args.Reason != "" {
		fmt.Fprintf(&b, "\nIts reason: %s", ev.Args.Reason)
	}
	if ev.Args.Note != "" {
		fmt.Fprintf(&b, "\nIts note: %s", ev.Args.Note)
	}
	b.WriteString("\nGo on from here, and answer the person.")
	return engine.Tell{Text: b.String(), Why: engine.WhyHandoff}.Message()
}
