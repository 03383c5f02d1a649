package tool

import (
	"context"
	"time"
)

// Command is a process that goes on in the background, behind the call that started it.
type Command struct {
	ID   string // unique in its session
	Text string // what runs
	Dir  string
}

// CommandReason says why a command in the background is over.
type CommandReason string

// The reasons.
const (
	CommandExited  CommandReason = "exited"  // by itself
	CommandKilled  CommandReason = "killed"  // the model had it killed
	CommandTimeout CommandReason = "timeout" // its time was over
	CommandStopped CommandReason = "stopped" // with its session, with the run of its task, or with the program that ran it
	CommandFailed  CommandReason = "failed"  // it could not be started
	CommandLost    CommandReason = "lost"    // the process that ran it is gone, or is another one
)

// CommandEnd is how a command ended.
type CommandEnd struct {
	Reason CommandReason
	Code   int    // its exit code
	Signal string // that killed it
	Took   time.Duration
}

// Commands is where a tool puts on record what it leaves running, of one session. The engine gives it ([Call.Commands]). Safe for concurrent use, also after the call and its run.
type Commands interface {
	// Started is called before a command starts, and durable when it returns; when it fails the command is not started.
	Started(ctx context.Context, c Command) error
	// Ended is called once for each command that was Started, whenever it ends. The model is told of an end that it didn't bring about itself before its next reply, in this run
	// or in the session's next one.
	Ended(ctx context.Context, c Command, e CommandEnd) error
	// Open is what is on record without an end, from other processes too.
	Open() []Command
	// Lifetime ends when the command has to: with the run of a task, and never for a run that no run started.
	Lifetime() context.Context
}
