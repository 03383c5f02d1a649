package eval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// StatusUnfinished is a run on record that has no end: its process died, or it goes on elsewhere.
const StatusUnfinished agent.Status = "unfinished"

// Sample is what came of one repeat of a case, or of a session that was on record: what scorers look at. It must not be changed.
type Sample struct {
	// Turn is the conversation as a whole: the last answer, all messages and calls, the sums of what was spent, the end of the last turn. Turns whose output was discarded have a part in nothing but the sums.
	Turn
	Turns   []Turn // one for each run of the session, in order
	Session string // its name in the journal that it was read from
	Case    Case   // that it is of
	Repeat  int    // 1, 2, …; 0 for a session that was on record
	Data    any    // what a [How] of one's own leaves for scorers of one's own
}

// Turn is one run: what was asked, and what came of it.
type Turn struct {
	Run      string
	Prompt   message.Message
	Answer   string            // as agent.Result.Text
	Messages []message.Message // the prompt, and all that was said after it
	Calls    []Call            // that were made, in order; those of tasks below are in sessions of their own
	Vars     map[string]any    // the run's inputs; of a [Sample], those of its last turn
	Dir      string            // that the run worked in, if that is on record
	States   []string          // of a pack's workflow: those that it moved on to, in order

	Usage    model.Usage
	Cost     *int64        // millionths of a dollar; nil: the price of a call is not known
	Steps    int           // model calls that gave a reply. Usage, Cost and Steps are of all attempts, and of the tasks below
	Duration time.Duration // from the run's first entry to its last, what it waited for people included

	Status    agent.Status
	Err       error // nil when completed; read from the record: its class is kept, see errdefs.Of
	Discarded bool  // its output is no part of the conversation
	broken    bool  // it failed because a model call did
	waits     bool  // for a person
}

// Call is a tool call, whether it was run or not.
type Call struct {
	ID      string
	Name    string
	Input   string          // JSON; as the tool got it, or the model wrote it
	Output  string          // what the model was told
	IsError bool            // the model was told of an error: the tool's, or that it was not run
	Ran     bool            // it began; false for what was refused
	Outcome journal.Outcome // of what ran; "": it did not, or there is none
}

// At is the sample as it was after turn i, from 0, with that turn alone as its Turn.
func (s Sample) At(i int) Sample {
	s.Turn, s.Turns = s.Turns[i], s.Turns[:i+1]
	return s
}

// whole is the sample with all its turns as its Turn.
func (s Sample) whole() Sample {
	s.Turn = join(s.Turns)
	return s
}

// Read reads a session as a sample: its runs are the turns. No model is called. errdefs.NotFound where there is no such session, or nothing was run in it.
func Read(ctx context.Context, store journal.Store, session string) (Sample, error) {
	turns, err := read(ctx, store, session)
	if err == nil && len(turns) == 0 {
		err = errdefs.NotFound.Errorf("no run is on record under that name: see pawl sessions list")
	}
	if err != nil {
		return Sample{}, fmt.Errorf("eval: read session %q: %w", session, err)
	}
	s := Sample{Turns: turns, Session: session, Case: Case{Name: session}}
	for _, t := range turns {
		s.Case.Messages = append(s.Case.Messages, t.Prompt)
	}
	return s.whole(), nil
}

// spending is what a run took besides what an attempt of it came to.
type spending struct {
	spent       journal.Spent
	start, last time.Time
	states      []string // of the attempt that counts
}

func read(ctx context.Context, store journal.Store, session string) ([]Turn, error) {
	spent, err := spendings(ctx, store, session)
	if err != nil {
		return nil, err
	}
	attempts, err := journal.Attempts(ctx, store, session)
	if err != nil {
		return nil, err
	}
	var turns []Turn
	for _, a := range attempts {
		t := turnOf(a)
		if s := spent[a.Run]; s != nil {
			t.Usage, t.Cost, t.Steps, t.Duration, t.States = s.spent.Usage, s.spent.Cost(), s.spent.Steps, s.last.Sub(s.start), s.states
		}
		if n := len(turns); n > 0 && turns[n-1].Run == t.Run { // done again: the last attempt counts
			turns = turns[:n-1]
		}
		turns = append(turns, t)
	}
	return turns, nil
}

// spendings reads by run what the attempts don't tell.
func spendings(ctx context.Context, store journal.Store, session string) (map[string]*spending, error) {
	all := map[string]*spending{}
	for e, err := range store.Read(ctx, session, 0) {
		if err != nil {
			return nil, err
		}
		if e.Run == "" {
			continue
		}
		s := all[e.Run]
		if s == nil {
			s = &spending{start: e.Time}
			all[e.Run] = s
		}
		s.last = e.Time
		switch d := e.Data.(type) {
		case journal.RunStarted:
			s.states = nil
		case journal.ModelFinished:
			s.spent = s.spent.Plus(journal.SpentBy(d))
		case journal.Compacted:
			summary := journal.SpentBy(journal.ModelFinished{Usage: d.Usage, CostMicros: d.CostMicros})
			summary.Steps = 0
			s.spent = s.spent.Plus(summary)
		case journal.Visited:
			if state, ok := pawl.MovedTo(d); ok {
				s.states = append(s.states, state)
			}
		case journal.TaskStarted:
			if !strings.HasPrefix(d.Session, e.Session+"/") { // names grow longer downward: it comes to an end
				continue
			}
			below, err := spendings(ctx, store, d.Session)
			if err != nil && !errdefs.NotFound.Is(err) { // it may have been deleted since
				return nil, err
			}
			for _, b := range below {
				s.spent = s.spent.Plus(b.spent)
			}
		}
	}
	return all, nil
}

// turnOf reads an attempt of a run.
func turnOf(a journal.Attempt) Turn {
	t := Turn{Run: a.Run, Vars: a.Started.Inputs, Dir: a.Started.Dir, Calls: callsOf(a.Effects), Status: StatusUnfinished}
	if last := a.Seed.Last(); last.Role() == message.RoleUser {
		t.Prompt = last
		t.Messages = append(t.Messages, last)
	}
	e := message.Diff(a.Seed, a.Last)
	if e.From == e.To { // nothing of what was there before was kept
		t.Messages = append(t.Messages, e.Head...)
	}
	t.Messages = append(t.Messages, e.Tail...)
	t.Answer = engine.Answer(t.Messages)
	for _, f := range a.Effects {
		if _, ok := f.Intent.(journal.ModelStarted); ok {
			t.broken = f.Outcome == nil && f.Failed
		}
	}
	switch end := a.End.(type) {
	case journal.RunFinished:
		t.Status, t.Discarded = agent.Status(end.Status), end.Discarded
		if t.Status != agent.StatusCompleted {
			t.Err = classed(end.Class, end.Error)
		}
	case journal.Parked:
		t.waits = end.Cause == string(engine.CauseAwaitingPerson)
		t.Status, t.Err = agent.StatusInterrupted, errdefs.Interrupted.Errorf("it waits to be resumed: %s", strings.TrimSpace(end.Cause+" "+end.Detail))
	default:
		t.Err = errdefs.Interrupted.Errorf("the run has no end on record: its process died, or it goes on elsewhere")
	}
	return t
}

func classed(class, text string) error {
	if c := errdefs.Named(class); c != nil {
		return c.Errorf("%s", text)
	}
	return errors.New(text)
}

// callsOf lists the calls of models in their order, and those that an engine made itself, such as a graph's, where they began.
func callsOf(effects []journal.Effect) (calls []Call) {
	at := map[string]int{}
	find := func(id string) *Call {
		i, ok := at[id]
		if !ok {
			i = len(calls)
			at[id], calls = i, append(calls, Call{ID: id})
		}
		return &calls[i]
	}
	for _, f := range effects {
		if d, ok := f.Outcome.(journal.ModelFinished); ok {
			for _, c := range d.Message.ToolCalls() {
				to := find(c.ID)
				to.Name, to.Input = c.Name, c.Input
			}
		}
		if d, ok := f.Intent.(journal.ToolStarted); ok {
			to := find(d.Call.ID)
			to.Name, to.Input, to.Ran = d.Call.Name, d.Call.Input, true
		}
		switch d := f.Outcome.(type) {
		case journal.ToolFinished:
			to := find(d.Call)
			to.Output, to.IsError, to.Outcome = d.Content, d.IsError, d.Outcome
		case journal.ToolJudged:
			if d.Refused() {
				to := find(d.Call)
				to.Output, to.IsError = d.Reason, true
			}
		case journal.Answered:
			if i, ok := at[d.ID]; ok && !d.Approved {
				calls[i].Output, calls[i].IsError = d.Text, true
			}
		}
	}
	return calls
}

// noted reports whether the program put something on record, and nobody was asked: see pawl.Conversation.AddMessage and Transition.
func (t Turn) noted() bool {
	return t.Status == agent.StatusCompleted && t.Steps == 0 && t.Answer == ""
}

// join makes one turn of several.
func join(turns []Turn) Turn {
	var all Turn
	known := true
	var cost int64
	for _, t := range turns {
		all.Usage, all.Steps, all.Duration = all.Usage.Add(t.Usage), all.Steps+t.Steps, all.Duration+t.Duration
		if t.Cost == nil {
			known = false
		} else {
			cost += *t.Cost
		}
		all.Run, all.Status, all.Err, all.Vars, all.Dir, all.Discarded, all.broken, all.waits = t.Run, t.Status, t.Err, t.Vars, t.Dir, t.Discarded, t.broken, t.waits
		if t.Discarded {
			continue
		}
		all.Messages, all.Calls, all.States = append(all.Messages, t.Messages...), append(all.Calls, t.Calls...), append(all.States, t.States...)
		if !t.noted() {
			all.Prompt, all.Answer = t.Prompt, t.Answer
		}
	}
	if known {
		all.Cost = &cost
	}
	return all
}

// judgeable says why nothing can be said of the model's work by a turn: the machinery failed, not the agent. Nil: the turn is what the agent made of it.
func (t Turn) judgeable() error {
	switch t.Status {
	case agent.StatusCompleted, agent.StatusAborted:
		return nil
	case agent.StatusInterrupted:
		if t.waits {
			return nil
		}
	case agent.StatusFailed:
		switch errdefs.Of(t.Err) {
		case errdefs.PolicyDenied, errdefs.Aborted, errdefs.Overflow, errdefs.Refused, errdefs.Truncated, errdefs.BudgetExceeded, errdefs.NoProgress:
			return nil
		case errdefs.Validation: // an answer that does not fit what it has to be; or a request that a provider does not take
			if !t.broken {
				return nil
			}
		}
	}
	return t.Err
}
