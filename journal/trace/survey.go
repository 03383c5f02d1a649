package trace

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// survey is what the first reading finds out.
type survey struct {
	ctx   context.Context //nolint:containedctx // of the one call that makes it
	store journal.Store
	ends  map[string]int64 // the last entry of each session that is read
	until time.Time        // of the entry that the page ends with; zero: now
	runs  map[place]*run
	list  []*run // in the order in which they began, those of a task behind what gave it
}

// place is where an attempt of a run begins. A fork and its parent have the same entries, and are never on one page.
type place struct {
	session string
	seq     int64
}

// run is an attempt of a run in one line.
type run struct {
	n                             int // 1, 2, …: its place on the page
	depth                         int // of the task that it is
	session, agent, model, status string
	id                            string
	attempt                       int
	start                         time.Time
	active                        time.Duration // without the time in which nobody drove it
	spent                         journal.Spent
	calls, failed, warnings       int
}

// cut finds the entry that the page ends with.
func (s *survey) cut(session string, at int64) error {
	found := false
	for e, err := range s.store.Read(s.ctx, session, max(at-1, 0)) {
		if err != nil {
			return fmt.Errorf("trace: read session %s: %w", session, err)
		}
		if found = at >= 0; at > 0 {
			s.until = e.Time
		}
		break
	}
	switch {
	case found:
		return nil
	case at == 0:
		return errdefs.NotFound.Errorf("trace: there is no session %q", session)
	}
	return errdefs.NotFound.Errorf("trace: session %q has no entry %d", session, at)
}

// session reads a session up to an entry, and those of the tasks that were given in it. depth is how far below the page's own session it stands.
func (s *survey) session(id string, at int64, depth int) error {
	if _, seen := s.ends[id]; seen { // a record that says that it is its own task
		return nil
	}
	s.ends[id] = 0
	var now *run
	var clock clock
	for e, err := range s.store.Read(s.ctx, id, 0) {
		if err != nil {
			return fmt.Errorf("trace: read session %s: %w", id, err)
		}
		if at > 0 && e.Seq > at || depth > 0 && !s.until.IsZero() && e.Time.After(s.until) {
			break
		}
		s.ends[id] = e.Seq
		active := clock.tick(e)
		switch d := e.Data.(type) {
		case journal.RunStarted:
			now = &run{n: len(s.list) + 1, depth: depth, session: id, id: e.Run, agent: d.Agent, model: d.Model, attempt: d.Attempt, start: e.Time, status: unfinished}
			s.list, s.runs[place{id, e.Seq}] = append(s.list, now), now
			continue
		case journal.TaskStarted:
			if err := s.session(d.Session, 0, depth+1); err != nil {
				return err
			}
		}
		if now != nil {
			now.active = active
			now.count(e.Data)
		}
	}
	return nil
}

// unfinished is the status of a run whose end is not on record.
const unfinished = "not finished"

// count adds what an entry says of the run.
func (r *run) count(d journal.Data) {
	switch d := d.(type) {
	case journal.ModelFinished:
		r.spent = r.spent.Plus(journal.SpentBy(d))
		for range message.Of[message.ToolCall](d.Message) {
			r.calls++
		}
	case journal.Compacted:
		switch {
		case d.Usage.Total() == 0:
		case d.CostMicros == nil:
			r.spent = r.spent.Plus(journal.Spent{Usage: d.Usage, Unpriced: 1})
		default:
			r.spent = r.spent.Plus(journal.Spent{Usage: d.Usage, CostMicros: *d.CostMicros})
		}
		if d.Error != "" {
			r.warnings++
		}
	case journal.ToolJudged:
		if d.Refused() {
			r.failed++
		}
	case journal.ToolFinished:
		if d.Outcome != journal.OutcomeOK {
			r.failed++
		}
		if d.Warning != "" {
			r.warnings++
		}
	case journal.Stopped:
		r.warnings += len(d.Errors)
	case journal.ModelFailed:
		r.warnings++
	case journal.Answered:
		if d.By == journal.ByDeadline || !d.Approved {
			r.failed++
		}
	case journal.Resumed:
		r.status = unfinished
	case journal.Parked:
		r.status = "interrupted"
	case journal.RunFinished:
		r.status = d.Status
	}
}

// clock is the time that a run was driven: what passes until somebody resumes it does not count.
type clock struct {
	last   time.Time
	active time.Duration
	parked bool
}

// tick gives the time at an entry, from its run's beginning.
func (c *clock) tick(e journal.Entry) time.Duration {
	passed := max(0, e.Time.Sub(c.last))
	switch e.Data.(type) {
	case journal.RunStarted:
		c.active, passed, c.parked = 0, 0, false
	case journal.Resumed:
		passed, c.parked = 0, false
	}
	if !c.parked {
		c.active += passed
	}
	if _, ok := e.Data.(journal.Parked); ok {
		c.parked = true
	}
	c.last = e.Time
	return c.active
}
