package crashtest

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
)

// Scenario is a session that is killed. It promises to be the same in every process: the same points, effects, ids and texts.
type Scenario struct {
	Name  string // unique among those of one Matrix
	Build func(p *Process) (agent.Agent, engine.Engine, error)
	Team  func(p *Process) (*agent.Team, error) // in place of Build
	// Unknown is what is done about calls of unknown outcome: agent.WithUnknown, and what the verdict goes by.
	Unknown engine.Unknown
	// Options are for agent.Run and agent.Resume, beside the journal and the host. May be nil.
	Options func(p *Process) []agent.RunOption
	Prompts []string // one a run, the next when the one before is over, however it ended; nil: one, "Go."
	// Answer answers a question of any session, in the parent's process. Nil approves everything.
	Answer func(q journal.Pending) journal.Answered
	Text   string       // the answer of the last run
	Status agent.Status // of the last run; "" is agent.StatusCompleted
	// Writers is how many calls that must not be repeated may be under way at the same time, in all sessions, and so unknown after a kill; 0 is 1.
	Writers int
	// Runs counts what was run for effects of the engine and is not the process's own doing, such as a shell hook: by the beginning of the effects' keys ("judge/c1", "stop/"). dir is
	// that of a case that is over. It was run once for each outcome, and no more often than such effects were begun. May be nil.
	Runs func(dir string) (map[string]int, error)
	Open Opener // nil: SQLite
	// Settle waits, in the parent, until what a process that died had under way is over; nil: it died with it.
	Settle func(ctx context.Context, dir string) error
}

// Store is a journal that a process opened.
type Store interface {
	journal.Store
	Close() error
}

// Opener opens the journal of one case. dir is the case's own and there already; its base name is unique, for stores elsewhere. Every
// process of the case opens it, one at a time, and mostly dies without closing it. The next one takes over at once: where a store can't tell
// that the holder of a lease is gone, its Opener gives one whose Lease does nothing.
type Opener func(ctx context.Context, dir string) (Store, error)

// SQLite is a file in the case's directory.
func SQLite(_ context.Context, dir string) (Store, error) {
	return sqlite.Open(sqlitePath(dir)) //nolint:contextcheck // it takes none: a file opens at once
}

func sqlitePath(dir string) string { return filepath.Join(dir, "journal.db") }

// On plays scenarios on another store, whose name becomes part of theirs.
func On(store string, open Opener, scenarios ...Scenario) []Scenario {
	out := make([]Scenario, len(scenarios))
	for i, s := range scenarios {
		s.Name, s.Open = s.Name+" on "+store, open
		out[i] = s
	}
	return out
}

// mainSession is the session of every case.
const mainSession = "main"

func (s *Scenario) prompts() []string {
	if s.Prompts == nil {
		return []string{"Go."}
	}
	return s.Prompts
}

func (s *Scenario) answer(q journal.Pending) journal.Answered {
	if s.Answer == nil {
		return journal.Answered{ID: q.ID, Approved: true, By: "crashtest"}
	}
	a := s.Answer(q)
	a.ID = q.ID
	return a
}

// runID names the run of a prompt. It is fixed, so that what is made of it (idempotency keys) can be compared.
func runID(prompt int) string { return fmt.Sprintf("prompt-%d", prompt+1) }
