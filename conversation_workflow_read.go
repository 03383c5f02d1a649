package pawl

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/pack"
)

// standing is where a workflow stands, by the entries of its session up to one.
type standing struct {
	seq   int64
	at    WorkflowState
	calls []saying // that place has not looked at yet
	began struct { // when the run under way began, which may turn out to be void
		at    WorkflowState
		calls []saying
	}
	inputs map[string]string // of calls that are under way
}

// saying is a call by which a model leads the workflow on.
type saying struct{ tool, input string }

// read follows the session to its end.
func (f *flow) read(ctx context.Context) (standing, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.seen
	s.inputs = maps.Clone(s.inputs)
	if s.at.Visits == nil {
		s.at = WorkflowState{State: f.def.Entry, Visits: map[string]int{f.def.Entry: 1}}
		s.began.at = s.at
	}
	for e, err := range f.conv.opts.store.Read(ctx, f.conv.session, s.seq) {
		if errdefs.NotFound.Is(err) { // nothing was said yet
			break
		}
		if err == nil {
			err = s.take(e)
		}
		if err != nil {
			return standing{}, err
		}
	}
	f.seen = s
	s.calls = slices.Clip(s.calls)
	return s, nil
}

func (s *standing) take(e journal.Entry) error {
	s.seq = e.Seq
	switch d := e.Data.(type) {
	case journal.RunStarted:
		if d.Attempt > 1 {
			s.void()
		} else {
			s.began.at, s.began.calls = s.at, slices.Clip(s.calls)
		}
		s.inputs = map[string]string{}
	case journal.RunFinished:
		if d.Discarded {
			s.void()
		}
	case journal.Visited:
		if d.Node != placeNode {
			return nil
		}
		s.calls = nil
		at, ok := d.Board.Set["workflow"]
		if !ok { // it is as it was
			return nil
		}
		b, err := json.Marshal(at)
		if err != nil {
			return err
		}
		now := WorkflowState{ToolCalls: s.at.ToolCalls}
		if err := json.Unmarshal(b, &now); err != nil {
			return errdefs.Internal.Errorf("pawl: entry %d: where the workflow stood can't be read: %w", e.Seq, err)
		}
		s.at = now
	case journal.ToolStarted:
		if leads(d.Call.Name) {
			s.inputs[d.Call.ID] = d.Call.Input
		}
	case journal.ToolFinished:
		switch {
		case d.Ask:
		case !leads(d.Name):
			s.at.ToolCalls++
		case d.Outcome == journal.OutcomeOK && !d.IsError: // a hook behind the call may have made an error of it: what the model is told counts
			s.calls = append(slices.Clip(s.calls), saying{strings.ToLower(d.Name), s.inputs[d.Call]})
		}
	case journal.ToolJudged:
		if d.Refused() && !leads(d.Name) {
			s.at.ToolCalls++
		}
	case journal.Answered:
		if !d.Approved && d.Name != "" && !leads(d.Name) {
			s.at.ToolCalls++
		}
	}
	return nil
}

// void takes back what a run did that does not count; its tools were called all the same.
func (s *standing) void() {
	calls := s.at.ToolCalls
	s.at, s.calls = s.began.at, s.began.calls
	s.at.ToolCalls = calls
}

// movedBy is where place moved the workflow; nil: it did not.
func movedBy(d journal.Visited) map[string]any {
	moved, _ := d.Board.Set["moved"].(map[string]any)
	return moved
}

// leads reports whether a call of that name leads the workflow on: on record it is as the model wrote it, in any case.
func leads(name string) bool {
	return strings.EqualFold(name, pack.TransitionTool) || strings.EqualFold(name, pack.ArtifactTool)
}

// MovedTo names the state that an entry of a conversation's session moved its workflow on to; ok is false for one that did not.
func MovedTo(d journal.Data) (state string, ok bool) {
	v, isVisit := d.(journal.Visited)
	if !isVisit || v.Node != placeNode {
		return "", false
	}
	state, ok = movedBy(v)["to"].(string)
	return state, ok
}
