package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/tool"
)

// Member is an agent of a team, the engine that drives it, and whom it may hand the conversation over to. The engine must have the tools of
// the handoffs: HandoffTools(ctx, nil, handoffs).
type Member struct {
	Agent    Agent
	Engine   engine.Engine
	Handoffs []Handoff
}

// TeamConfig makes a team. Only Members is required.
type TeamConfig struct {
	Members []Member
	Entry   string // the id of the agent that a conversation begins with; "" is the first member
	MaxHops int    // how many handoffs are followed for one prompt; 0 is 8
}

// StateTeamPath is where Result.State has the ids of the agents that a team's prompt went through, a []string; the last one gave the Result.
const StateTeamPath = "team_path"

// Team runs agents that hand one conversation over to each other. It keeps one transcript, a session in the journal, and all that it knows between two
// runs is on record there: a process may die anywhere, and [Team.Resume] goes on. It is immutable and safe for concurrent use.
type Team struct {
	members map[string]Member
	entry   string
	hops    int
}

// NewTeam makes a team. It fails with errdefs.Validation on a member without an id or an engine, on two of one id, on a handoff to nobody, to
// the agent itself or to somebody who is no member, and on one whose tool the agent's own Tools don't admit; with errdefs.Conflict on two handoffs of a
// member whose tools have the same name.
func NewTeam(cfg TeamConfig) (*Team, error) {
	t := &Team{members: make(map[string]Member, len(cfg.Members)), entry: cfg.Entry, hops: cfg.MaxHops}
	if t.hops == 0 {
		t.hops = 8
	}
	if t.hops < 0 {
		return nil, errdefs.Validation.Errorf("agent: team: MaxHops is %d: want a number, or 0 for 8", cfg.MaxHops)
	}
	for i, m := range cfg.Members {
		switch _, dup := t.members[m.Agent.ID]; {
		case m.Agent.ID == "":
			return nil, errdefs.Validation.Errorf("agent: team: member %d needs an id", i+1)
		case m.Engine == nil:
			return nil, errdefs.Validation.Errorf("agent: team: %s needs an engine", m.Agent.ID)
		case dup:
			return nil, errdefs.Validation.Errorf("agent: team: two members have the id %s", m.Agent.ID)
		}
		m.Handoffs = slices.Clone(m.Handoffs)
		t.members[m.Agent.ID] = m
	}
	if len(cfg.Members) == 0 {
		return nil, errdefs.Validation.Errorf("agent: team: there are no members: give at least one")
	}
	if t.entry == "" {
		t.entry = cfg.Members[0].Agent.ID
	}
	if _, ok := t.members[t.entry]; !ok {
		return nil, errdefs.Validation.Errorf("agent: team: the entry %q is no member: want one of %s", cfg.Entry, t.names())
	}
	for _, m := range cfg.Members {
		if err := t.admit(m); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// admit checks a member's handoffs.
func (t *Team) admit(m Member) error {
	var tools []tool.Tool
	for _, h := range m.Handoffs {
		if _, ok := t.members[h.ToAgentID]; !ok {
			return errdefs.Validation.Errorf("agent: team: %s hands over to %q, who is no member: want one of %s", m.Agent.ID, h.ToAgentID, t.names())
		}
		if h.ToAgentID == m.Agent.ID {
			return errdefs.Validation.Errorf("agent: team: %s hands over to itself", m.Agent.ID)
		}
		if m.Agent.Tools != nil && !slices.ContainsFunc(m.Agent.Tools, func(name string) bool { return strings.EqualFold(name, h.toolName()) }) {
			return errdefs.Validation.Errorf("agent: team: %s can't hand over to %s: its Tools don't admit %s: add it", m.Agent.ID, h.ToAgentID, h.toolName())
		}
		if !h.OpenWorld && engine.CapabilitiesOf(t.members[h.ToAgentID].Engine).OpenWorld {
			return errdefs.Validation.Errorf("agent: team: %s hands over to %s, who works elsewhere: set OpenWorld of the Handoff that both the team and HandoffTools have, so that permissions know that what is said leaves", m.Agent.ID, h.ToAgentID)
		}
		tools = append(tools, HandoffTool(h))
	}
	if _, err := byTool(m.Handoffs); err != nil {
		return fmt.Errorf("agent: team: %s: %w", m.Agent.ID, err)
	}
	if _, err := tool.NewSet(tools...); err != nil { // a name that providers don't take
		return fmt.Errorf("agent: team: %s: %w", m.Agent.ID, err)
	}
	return nil
}

func (t *Team) names() string {
	all := make([]string, 0, len(t.members))
	for id := range t.members {
		all = append(all, id)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// Run answers a prompt. It is taken by the agent that has the conversation: the one of the session's last run, or whom that one handed over to; in a
// new session, or in one whose last agent is no member, the entry. As long as a completed run hands over, the next agent is run, on the same transcript, told
// who handed over, why, and with what note, as run "ID-hop-1", "ID-hop-2" … of the run ID of the prompt. The options are those of each of the runs;
// a seeder makes the board of the first only, and WithTimeout is the time of all together.
//
// The Result is the last run's: its messages, its usage; those of the runs before it are seen by observers, and are in the session. Run returns as
// the function [Run] does, and fails with errdefs.BudgetExceeded when there are more handoffs than MaxHops. When a run after the first can't begin, its error
// comes with the Result of the one before, and Resume tries again.
func (t *Team) Run(ctx context.Context, req Request, opts ...RunOption) (*Result, error) {
	c := configure(opts)
	if c.resume != nil {
		return nil, errdefs.Validation.Errorf("agent: team: run: a checkpoint is resumed by Team.Resume")
	}
	if req.RunID == "" {
		req.RunID = "run-" + name()
	}
	if req.ContextID == "" {
		req.ContextID = req.RunID
	}
	ctx, cancel, limit := limited(ctx, c.timeout)
	defer cancel()
	p, err := t.open(ctx, c, limit, req.ContextID, req.RunID, opts)
	if err != nil {
		return nil, err
	}
	defer p.relay.lease.release() //nolint:contextcheck // the context may have ended by then
	if err := p.trail.follows(p.relay.log.State()); err != nil {
		return nil, err
	}
	who, ok := t.members[p.trail.with]
	switch {
	case ok:
	case p.trail.next != nil:
		return nil, t.stranger(p.trail.with, req.ContextID)
	default:
		who = t.members[t.entry]
	}
	p.trail = trail{base: req.RunID, path: []string{who.Agent.ID}}
	p.req = req
	res, err := p.run(ctx, who, req)
	if err == nil {
		res, err = p.follow(ctx, res)
	}
	p.over(res, err)
	return res, err
}

// Resume goes on with the session's unfinished prompt, wherever it stopped: within a run, as the function [Resume] does, or between two of them.
// NotFound when nothing is left to do.
func (t *Team) Resume(ctx context.Context, session string, opts ...RunOption) (*Result, error) {
	c := configure(opts)
	ctx, cancel, limit := limited(ctx, c.timeout)
	defer cancel()
	p, err := t.open(ctx, c, limit, session, "", opts)
	if err != nil {
		return nil, err
	}
	defer p.relay.lease.release() //nolint:contextcheck // the context may have ended by then
	if err := p.trail.read(ctx, c.store, session); err != nil {
		return nil, late(ctx, limit, err)
	}
	st := p.relay.log.State()
	p.req = Request{ContextID: session, TaskID: st.Task, Inputs: p.trail.inputs}
	var res *Result
	switch next := p.trail.next; {
	case st.Run != "":
		who, ok := t.members[st.Agent]
		if !ok {
			return nil, t.stranger(st.Agent, session)
		}
		more := []RunOption{p.trail.parent(len(p.trail.path) - 1), WithResumeFrom(&engine.Checkpoint{Session: session})}
		if len(p.trail.path) > 1 {
			more = append(more, WithBoardSeed(nil))
		}
		if err = p.entered(ctx, len(p.trail.path)-1); err == nil {
			res, err = p.run(ctx, who, Request{ContextID: session}, more...)
		}
	case next != nil:
		if err = p.entered(ctx, len(p.trail.path)); err == nil {
			res, err = p.hop(ctx, *next)
		}
	default:
		return nil, errdefs.NotFound.Errorf("agent: team: session %s has nothing to resume", session)
	}
	if err == nil {
		res, err = p.follow(ctx, res)
	}
	p.over(res, err)
	return res, err
}

func (t *Team) stranger(id, session string) error {
	return errdefs.NotFound.Errorf("agent: team: session %s is with %s, who is no member: want one of %s", session, id, t.names())
}

// Replay is the function [Replay] for a session of the team: each run is driven by the engine of its agent.
func (t *Team) Replay(ctx context.Context, session string, opts ...RunOption) ([]Replayed, error) {
	return configure(opts).replayAll(ctx, session, func(id string) (Agent, engine.Engine, error) {
		m, ok := t.members[id]
		if !ok {
			return Agent{}, nil, t.stranger(id, session)
		}
		return m.Agent, m.Engine, nil
	})
}
