package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// commands are what a tool call of a run has as tool.Call.Commands.
type commands struct {
	log        *journal.Log
	run, call  string
	below      bool // the run is another one's task
	background *Background
}

// held has the commands that this process runs, by session and id.
var held sync.Map

func holding(log *journal.Log, id string) [2]string { return [2]string{log.Session(), id} }

// Started implements [tool.Commands].
func (c *commands) Started(ctx context.Context, cmd tool.Command) error {
	entry := []journal.Entry{{Run: c.run, Key: journal.CommandKey(cmd.ID), Data: journal.CommandStarted{ID: cmd.ID, Call: c.call, Command: cmd.Text, Dir: cmd.Dir}}}
	held.Store(holding(c.log, cmd.ID), true)
	if err := c.log.Append(ctx, entry...); err != nil {
		held.Delete(holding(c.log, cmd.ID))
		return err
	}
	c.publish(entry)
	return nil
}

// Ended implements [tool.Commands].
func (c *commands) Ended(ctx context.Context, cmd tool.Command, e tool.CommandEnd) error {
	defer held.Delete(holding(c.log, cmd.ID)) // not before it is on record: nobody else takes it for lost meanwhile
	return c.end(ctx, cmd, e)
}

func (c *commands) end(ctx context.Context, cmd tool.Command, e tool.CommandEnd) error {
	ended := journal.CommandEnded{ID: cmd.ID, Reason: string(e.Reason), Code: e.Code, Signal: e.Signal, Millis: e.Took.Milliseconds()}
	entries, err := c.log.EndCommand(ctx, ended, c.told(cmd, e))
	if err == nil {
		c.publish(entries)
	}
	return err
}

// told is what the model hears of an end. Of one that it brought about it knows; what ended with the run of a task, nobody asks about any more.
func (c *commands) told(cmd tool.Command, e tool.CommandEnd) (none message.Message) {
	how := ""
	switch e.Reason {
	case tool.CommandKilled, tool.CommandFailed:
		return none
	case tool.CommandStopped:
		if c.below {
			return none
		}
		how = "was stopped with the program that ran it, or with its session. Start it again if it is needed."
	case tool.CommandTimeout:
		how = "was stopped, since its time was over. bash_output has its output."
	case tool.CommandLost:
		how = "is out of reach: the process that ran it has ended, and it with that, or this is another process. Start it again if it is needed."
	default:
		how = fmt.Sprintf("ended by itself with exit code %d. bash_output has its output.", e.Code)
		if e.Signal != "" {
			how = "was killed by the signal " + e.Signal + ". bash_output has its output."
		}
	}
	return Tell{Text: fmt.Sprintf("[The background command %s (%s) %s]", cmd.ID, clip(strings.Join(strings.Fields(cmd.Text), " ")), how), Why: WhyCommand}.Message()
}

// publish hands entries to the run's own goroutine. Once the run is over nobody asks for them.
func (c *commands) publish(entries []journal.Entry) {
	if c.background == nil {
		return
	}
	for _, e := range entries {
		c.background.Publish(event.Event{Entry: e})
	}
}

// Open implements [tool.Commands].
func (c *commands) Open() (all []tool.Command) {
	for _, d := range c.log.Commands() {
		all = append(all, tool.Command{ID: d.ID, Text: d.Command, Dir: d.Dir})
	}
	return all
}

// Lifetime implements [tool.Commands].
func (c *commands) Lifetime() context.Context {
	if c.below && c.background != nil {
		return c.background.ctx
	}
	return context.Background()
}

// EndLost puts on record which commands of the run's session are not running in this process: after a crash, they are gone. The model hears of it. A Performer calls it before a model
// call.
func EndLost(ctx context.Context, run *Run) error {
	c := commands{log: run.Log, background: run.Background}
	for _, cmd := range c.Open() {
		if _, here := held.Load(holding(run.Log, cmd.ID)); here {
			continue
		}
		if err := c.end(ctx, cmd, tool.CommandEnd{Reason: tool.CommandLost}); err != nil && !errdefs.Conflict.Is(err) {
			return err
		}
	}
	return nil
}
