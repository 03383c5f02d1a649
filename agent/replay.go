package agent

import (
	"context"
	"strconv"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// Replayed is an attempt of a run that the code goes through as it did then.
type Replayed struct {
	RunID   string
	Attempt int
	Effects int    // on record
	Status  string // how it ended then: a Status, or "" when its process died or a further attempt followed
}

// Replay drives the engine through all that is on record of a session, attempt by attempt, with recorded outcomes only: no model is called, no tool
// runs, nobody is asked, nothing is written. It tells whether the code still does what it did: the first difference (another effect, a call with another
// input, a model call with another transcript, another ending) is an errdefs.Conflict that names the run, the entry, and both sides; then what went well
// before it comes too. So is another engine than the one on record, and one whose Capabilities.Version is another: another graph's definition or
// script. No such session is NotFound.
//
// Where the record of a run ends early (its process died, it was cancelled, a model call failed, a limit ended it) the replay ends there, too.
// Deciders, committers, observers and hooks take no part: what hooks did is on record. The engine must be one that can resume, which keeps
// all it does in effects; else NotAvailable.
func Replay(ctx context.Context, ag Agent, eng engine.Engine, session string, opts ...RunOption) ([]Replayed, error) {
	c := configure(opts)
	if err := guard("the engine", func() error { return c.admitReplay(ag, eng) }); err != nil {
		return nil, err
	}
	return c.replayAll(ctx, session, func(string) (Agent, engine.Engine, error) { return ag, eng, nil })
}

// replayAll asks who did a run, and replays it with that agent's engine.
func (c *config) replayAll(ctx context.Context, session string, who func(agentID string) (Agent, engine.Engine, error)) ([]Replayed, error) {
	attempts, err := journal.Attempts(ctx, c.store, session)
	if err != nil {
		return nil, err
	}
	if len(attempts) == 0 {
		return nil, errdefs.NotFound.Errorf("agent: replay: session %s has no run", session)
	}
	var all []Replayed
	for _, a := range attempts {
		ag, eng, err := who(a.Started.Agent)
		if err == nil {
			err = guard("the engine", func() error { return c.admitReplay(ag, eng) })
		}
		if err == nil {
			err = sameWay(eng, a)
		}
		if err == nil {
			err = c.replay(ctx, ag, eng, session, a)
		}
		if err != nil {
			return all, err
		}
		r := Replayed{RunID: a.Run, Attempt: a.Started.Attempt, Effects: len(a.Effects)}
		switch end := a.End.(type) {
		case journal.RunFinished:
			r.Status = end.Status
		case journal.Parked:
			r.Status = string(StatusInterrupted)
		}
		all = append(all, r)
	}
	return all, nil
}

// admitReplay checks what can be checked before anything is replayed.
func (c *config) admitReplay(ag Agent, eng engine.Engine) error {
	if err := c.admitEngine(&ag, eng); err != nil {
		return err
	}
	if can := engine.CapabilitiesOf(eng); !can.Resume {
		return errdefs.NotAvailable.Errorf("agent: the engine %s can't be replayed: it does not resume either", engineName(eng))
	}
	return nil
}

// sameWay refuses an attempt that another engine drove, or the same one by another definition or program: much of what these decide comes from the record, and would hide the difference.
func sameWay(eng engine.Engine, a journal.Attempt) error {
	can, was := engine.CapabilitiesOf(eng), a.Started
	switch {
	case was.Engine != "" && was.Engine != can.Name:
		return errdefs.Conflict.Errorf("agent: replay: run %s was driven by the engine %q, not %q: replay it with that one", a.Run, was.Engine, can.Name)
	case was.Version != "" && was.Version != can.Version:
		return errdefs.Conflict.Errorf("agent: replay: run %s went by another definition or program of the engine %s than this one: replay it with what it began with", a.Run, was.Engine)
	}
	return nil
}

func (c *config) replay(ctx context.Context, ag Agent, eng engine.Engine, session string, a journal.Attempt) error {
	steps := engine.NewReplay(a)
	run := engine.Run{
		ID: a.Run, ParentRunID: a.Started.ParentRun, AgentID: ag.ID, Session: session, Attempt: a.Started.Attempt, System: ag.Instructions, Tools: ag.Tools,
		Deps: c.deps, Values: new(engine.Values), Steps: steps,
		Attributes: map[string]string{
			"agent.id": ag.ID, "run.id": a.Run, "conversation.id": session, "agent.attempt": strconv.Itoa(a.Started.Attempt), "user.id": a.Started.User,
		},
	}
	board := newBoard(a.Seed, a.Started.Inputs, a.Seeded)
	var last *engine.Board
	err := guard("the engine", func() (err error) {
		last, err = eng.Execute(ctx, run, engine.NoopHost{}, board)
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if last == nil {
		last = board
	}
	return steps.End(last, err)
}
