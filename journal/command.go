package journal

import (
	"context"
	"slices"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
)

// commandOp is the Op of the keys of commands in the background: CommandStarted begins, CommandEnded ends one.
const commandOp = "command"

// CommandKey is the key of a command.
func CommandKey(id string) Key { return Key{Op: commandOp, ID: id} }

// Commands is the commands in the background that are not over on record, over all runs of the session.
func (l *Log) Commands() []CommandStarted {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.st.Commands)
}

// EndCommand puts on record that a command is over, from any process and at any time, with or without a run; tell, unless it is the zero message, is for the model, which hears it as
// it hears steering. The first counts: Conflict for a command that is over already, or was never started.
func (l *Log) EndCommand(ctx context.Context, d CommandEnded, tell message.Message) ([]Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.catchUp(ctx); err != nil {
		return nil, err
	}
	entries := []Entry{{Key: CommandKey(d.ID), Data: d}}
	if !tell.IsZero() {
		entries = append(entries, Entry{Key: Key{Op: steerOp, ID: commandOp + "/" + d.ID}, Data: Said{Message: tell, By: "pawl"}})
	}
	err := l.append(ctx, func(st *State) error {
		if !slices.ContainsFunc(st.Commands, func(c CommandStarted) bool { return c.ID == d.ID }) {
			return errdefs.Conflict.Errorf("journal: the command %s of session %s is not running: it is over, or was never started", d.ID, l.session)
		}
		for i := range entries {
			entries[i].Run = st.Run
		}
		return nil
	}, nil, entries)
	return entries, err
}
