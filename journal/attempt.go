package journal

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/message"
)

// Attempt is one attempt of a run as it is on record: what replay goes by.
type Attempt struct {
	Run     string
	Started RunStarted
	At      int64           // the number of its run.started
	Seed    message.History // the transcript that it began with
	Seeded  Board           // how its board differed from that of Seed and its inputs
	Effects []Effect        // in the order in which they are first on record
	Last    message.History // the transcript that it came to
	// End is how it ended: a RunFinished, a Parked, or nil when it was done again, its process died, or the record is cut there by a fork.
	End Data
}

// Effect is one effect as it is on record.
type Effect struct {
	Key         Key
	Begun, Done int64 // the numbers of its intent and of its outcome; 0: there is none
	Intent      Data
	Outcome     Data
	Failed      bool            // a call that gave nothing is noted
	Messages    message.History // the transcript when its intent was written
}

// Attempts reads all attempts of all runs of a session, in order; none when there is no such session. A fork has those that it shares.
func Attempts(ctx context.Context, store Store, session string) (all []Attempt, err error) {
	var st State
	var now *Attempt // the one that is under way
	var at map[Key]int
	leave := func() {
		if now != nil {
			st.join()
			now.Last = st.Messages
			all, now = append(all, *now), nil
		}
	}
	for e, err := range store.Read(ctx, session, 0) {
		if err != nil {
			return nil, fmt.Errorf("journal: attempts: %w", err)
		}
		switch d := e.Data.(type) {
		case RunStarted, SessionCreated:
			leave()
		case RunFinished:
			if now != nil {
				now.End = d
			}
			leave()
		}
		if now != nil {
			now.note(e, at, &st)
		}
		if st.apply(&e); now != nil && len(now.Effects) == 0 {
			now.Seed, now.Seeded = st.Seed, st.Seeded
		}
		if d, ok := e.Data.(RunStarted); ok {
			now, at = &Attempt{Run: e.Run, Started: d, At: e.Seq, Seed: st.Seed}, map[Key]int{}
		}
	}
	leave()
	return all, nil
}

// note adds an entry to the record.
func (a *Attempt) note(e Entry, at map[Key]int, st *State) {
	a.End = nil
	if parked, ok := e.Data.(Parked); ok {
		a.End = parked
	}
	switch {
	case e.Key == (Key{}):
		return
	case e.Key.Op == steerOp, e.Key.Op == questionOp, e.Key.Op == taskOp, e.Key.Op == commandOp: // said from outside, or asked by a tool within its call: the outcomes of that call have it
		return
	}
	i, known := at[e.Key]
	if !known {
		i = len(a.Effects)
		at[e.Key], a.Effects = i, append(a.Effects, Effect{Key: e.Key})
	}
	switch f := &a.Effects[i]; roleOf(e.Data) {
	case intent:
		if f.Begun == 0 {
			folded := *st
			folded.join()
			f.Begun, f.Intent, f.Messages = e.Seq, e.Data, folded.Messages
		}
	case outcome:
		if f.Done == 0 { // the first counts
			f.Done, f.Outcome = e.Seq, e.Data
		}
	case note:
		f.Failed = true
	}
}
