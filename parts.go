package pawl

import (
	"slices"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
)

// Parts are what a Runtime's runs are made of: for a process that does the effects of runs which others drive, as a worker of package temporal does. See [agent.PartOf].
type Parts struct {
	Agent     agent.Agent
	Engine    engine.Engine
	Options   []agent.RunOption // what binds each run: permissions, sandbox, budget, and so on
	Subagents agent.Subagents   // that the Agent can give tasks to
	Warnings  []string          // what each run of the Runtime's own begins with
}

// Parts gives what the next run would be made of. It stays as it is, whatever becomes of the project's files, until release is called or the Runtime is closed; what commands make of the project's rules, skills and agents in
// between is kept from being read, as during a run. Call release when nothing uses the Parts any more, and Close behind it.
//
// Nothing of a session is held for them in memory, but that the hooks of SessionStart ran: those of SessionEnd run at Close.
func (r *Runtime) Parts() (p Parts, release func()) {
	a := r.hold()
	done := r.guard(r.ctx)
	p = Parts{Agent: a.agent, Engine: a.engine, Options: r.runOptions(a, "", nil), Subagents: slices.Clone(a.subagents)}
	for _, w := range append([]string{join(a.warning, a.broken, a.servers.warnings())}, a.problems...) {
		if w != "" {
			p.Warnings = append(p.Warnings, w)
		}
	}
	p.Agent.Hooks, p.Agent.Observers = slices.Clip(p.Agent.Hooks), slices.Clip(p.Agent.Observers)
	return p, func() {
		done()
		r.drop(a)
	}
}
