package crashtest

import (
	"context"
	"maps"
	"slices"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// found is what a journal says between two lives of a case, over all its sessions.
type found struct {
	Seq     map[string]int64 `json:"seq"`               // the last entry, by session
	Invalid []string         `json:"invalid,omitempty"` // sessions whose transcript is one that a provider would not take
	Open    []string         `json:"open,omitempty"`    // ids of calls that were started and not finished
	Unbegun []string         `json:"unbegun,omitempty"` // ids of calls of which it is on record that their run was left before the tool began
	Done    []string         `json:"done,omitempty"`    // effects whose outcome is on record
	begun   int              // prompts of the main session
	states  map[string]journal.State
	written map[written]int // how many entries there are of an append
}

// written names an append by what is on record of it.
type written struct {
	session string
	time    int64
}

// look reads all of a journal.
func look(ctx context.Context, s *Scenario, store journal.Store) (*found, error) {
	f := &found{Seq: map[string]int64{}, states: map[string]journal.State{}, written: map[written]int{}}
	open, done := map[string]bool{}, map[string]bool{}
	for info, err := range store.Sessions(ctx, journal.Query{}) {
		if err == nil {
			err = f.read(ctx, store, info.Session, open, done)
		}
		if err != nil {
			return nil, err
		}
	}
	f.Open, f.Done = slices.Sorted(maps.Keys(open)), slices.Sorted(maps.Keys(done))
	f.begun = min(f.begun, len(s.prompts()))
	return f, nil
}

func (f *found) read(ctx context.Context, store journal.Store, session string, open, done map[string]bool) error {
	attempt := map[string]int{}
	var all []journal.Entry
	for e, err := range store.Read(ctx, session, 0) {
		if err != nil {
			return err
		}
		all = append(all, e)
		if e.Session == session { // not a fork's, of its parent
			f.written[written{session, e.Time.UnixNano()}]++
		}
		switch d := e.Data.(type) {
		case journal.RunStarted:
			attempt[e.Run] = d.Attempt
			if session == mainSession && e.Run == runID(f.begun) {
				f.begun++
			}
		case journal.ToolStarted:
			open[d.Call.ID] = true
		case journal.ToolFinished:
			if open[d.Call] && d.Outcome == journal.OutcomeCanceled && d.Content == journal.NotRun(message.ToolCall{}).Content {
				f.Unbegun = append(f.Unbegun, d.Call)
			}
			delete(open, d.Call)
		}
		if e.Key != (journal.Key{}) && isOutcome(e.Data) {
			done[effectID(e.Run, attempt[e.Run], e.Key)] = true
		}
	}
	st := journal.Fold(all...)
	if !slices.Equal(items(st.Messages), items(message.Repair(st.Messages))) {
		f.Invalid = append(f.Invalid, session)
	}
	f.Seq[session], f.states[session] = st.Seq, st
	return nil
}

func isOutcome(d journal.Data) bool {
	switch d.(type) {
	case journal.ModelStarted, journal.ToolStarted, journal.Asked, journal.ModelFailed:
		return false
	}
	return true
}
