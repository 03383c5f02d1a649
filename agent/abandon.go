package agent

import (
	"context"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// tasksOn are the sessions of a session's tasks whose calls go on, as its record says. Of a run that is driven here they are over when it is, by its context. One that was resumed, or that a prompt takes the place of, may never have come to them.
func tasksOn(log *journal.Log) (sessions []string) {
	for _, call := range log.State().Unfinished() {
		noted, _ := log.Recorded(journal.TaskKey(call))
		if d, ok := noted.(journal.TaskStarted); ok {
			sessions = append(sessions, d.Session)
		}
	}
	return sessions
}

// above is a run that is over, by whom it was driven to its end: its tasks are his to end.
type above struct {
	log        *journal.Log
	run, owner string
}

// lost reports whether somebody else has the session by now: a process that stood still for so long that it lost its lease does not know until it looks.
func (a above) lost(ctx context.Context) (bool, error) {
	err := a.log.Refresh(ctx)
	return a.log.Driver() != a.owner, err
}

// abandon ends the runs of tasks, as canceled, with all below them: the run above is over, so nobody would go on with them. It leaves alone what is over, what somebody drives, and what is done elsewhere, where a cancel comes by another way.
func (c *config) abandon(ctx context.Context, of above, sessions []string) error {
	for _, session := range sessions {
		if err := c.abandonOne(ctx, of, session); err != nil && !errdefs.Conflict.Is(err) && !errdefs.NotFound.Is(err) {
			return err
		}
	}
	return nil
}

func (c *config) abandonOne(ctx context.Context, of above, session string) error {
	log, err := journal.Open(ctx, c.store, session)
	if err != nil || log.Run() == "" || log.State().ParentRun != of.run || strings.HasPrefix(log.Driver(), elsewhere) {
		return err
	}
	l := &lease{store: c.store, session: session, owner: "driver-" + name()}
	if err := l.take(ctx, false, func(error) {}); err != nil {
		return err
	}
	defer l.release()                                  //nolint:contextcheck // the context may have ended by then
	if lost, err := of.lost(ctx); err != nil || lost { // whoever has the session above needs this lease before he goes on with the task
		return err
	}
	if err := log.Refresh(ctx); err != nil || log.Run() == "" {
		return err
	}
	run, below := log.Run(), tasksOn(log)
	if err := log.Drive(ctx, l.owner, journal.Entry{Run: run, Data: journal.Resumed{Owner: l.owner}}); err != nil {
		return err
	}
	if err := c.abandon(ctx, above{log, run, l.owner}, below); err != nil {
		return err
	}
	return log.Append(ctx, journal.Entry{Run: run, Data: journal.RunFinished{Status: string(StatusCanceled), Class: "canceled", Error: "the run above is over"}})
}
