package temporal

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
)

// Team is a team whose prompts workers answer as one run ([Begin]): the run of each agent that has the conversation is a workflow below that. Its members are members of the worker.
type Team struct {
	ID      string // names it, as an agent's ID names a member
	Config  agent.TeamConfig
	Options []agent.RunOption // of each of the runs
}

// enlist takes up the members, those of teams, and subagents.
func (w *Worker) enlist(c Config) error {
	all := slices.Clone(c.Members)
	for _, t := range c.Teams {
		if _, err := agent.NewTeam(t.Config); err != nil {
			return err
		}
		if _, twice := w.teams[t.ID]; twice || t.ID == "" {
			return errdefs.Conflict.Errorf("temporal: a team needs an ID that no other has; this one is %q", t.ID)
		}
		w.teams[t.ID] = t
		for _, m := range t.Config.Members {
			all = append(all, Member{Agent: m.Agent, Engine: m.Engine, Options: t.Options})
		}
	}
	for _, m := range all {
		if err := m.check(); err != nil {
			return err
		}
		if _, twice := w.members[m.Agent.ID]; twice {
			return errdefs.Conflict.Errorf("temporal: two members have the ID %s", m.Agent.ID)
		}
		if _, twice := w.teams[m.Agent.ID]; twice {
			return errdefs.Conflict.Errorf("temporal: a member and a team have the ID %s", m.Agent.ID)
		}
		w.members[m.Agent.ID] = m
	}
	for _, m := range all {
		for _, s := range m.Subagents {
			sub := Member{Agent: s.Agent, Engine: s.Engine}
			if err := sub.check(); err != nil {
				return err
			}
			if other, there := w.members[s.Agent.ID]; there && !same(other.Engine, s.Engine) {
				return errdefs.Conflict.Errorf("temporal: the subagent %s of %s has the ID of a member with another engine", s.Agent.ID, m.Agent.ID)
			} else if !there {
				w.members[s.Agent.ID] = sub
			}
		}
	}
	return nil
}

// same reports whether two engines are one.
func same(a, b engine.Engine) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

func (m Member) check() error {
	switch _, performs := m.Engine.(engine.Performer); {
	case m.Agent.ID == "":
		return errdefs.Validation.Errorf("temporal: a member's agent has no ID")
	case m.Engine == nil:
		return errdefs.Validation.Errorf("temporal: the member %s has no engine", m.Agent.ID)
	case !performs:
		return errdefs.NotAvailable.Errorf("temporal: the engine of %s does its work by itself: one that performs effects is needed, as loop, graph and script are", m.Agent.ID)
	case !engine.CapabilitiesOf(m.Engine).Resume:
		return errdefs.NotAvailable.Errorf("temporal: the engine of %s can't resume", m.Agent.ID)
	}
	return nil
}

// gate is what of the agent's tools a caller admits. Its nil admits all.
func (m Member) gate(caller *[]string) []string {
	switch {
	case caller == nil:
		return slices.Clone(m.Agent.Tools)
	case m.Agent.Tools == nil:
		return append([]string{}, *caller...)
	}
	both := []string{}
	for _, name := range m.Agent.Tools {
		if slices.ContainsFunc(*caller, func(other string) bool { return strings.EqualFold(name, other) }) {
			both = append(both, name)
		}
	}
	return both
}

func (w *Worker) stranger(id string) error {
	var names []string
	for name := range w.members {
		names = append(names, name)
	}
	for name := range w.teams {
		names = append(names, name)
	}
	slices.Sort(names)
	return errdefs.NotFound.Errorf("temporal: the worker has no member %q; it has: %s", id, strings.Join(names, ", "))
}

// boundBy reports whether a run is bound here by no less than where it was begun.
func (p place) boundBy(here bound) error {
	if b := p.Bound; b != nil && (b.Hooks > here.Hooks || b.Budget && !here.Budget || b.Sandbox && !here.Sandbox) {
		return errdefs.Conflict.Errorf("temporal: the run of %s was begun with %s, and the worker's member has %s: what binds a run has to be given to the worker: see Member.Options", p.Member, b, &here)
	}
	return nil
}

func (b *bound) String() string {
	has := func(is bool, what string) string {
		if is {
			return "a " + what
		}
		return "no " + what
	}
	return fmt.Sprintf("%d hooks, ", b.Hooks) + has(b.Budget, "budget") + ", " + has(b.Sandbox, "sandbox")
}

// bounds are what binds a run that is about to be done in ctx.
func bounds(ctx context.Context, run *engine.Run) bound {
	_, sandboxed := sandbox.From(ctx)
	return bound{Hooks: len(run.Bounds.Hooks), Budget: run.Bounds.Budget != nil, Sandbox: sandboxed}
}
