package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// Replay drives an engine from what is on record of an attempt: it gives recorded outcomes, and does nothing. It fails with errdefs.Conflict
// at the first difference: where the code asks for an effect that was not done then, or for another one under its key (a call with another
// input, another question, a model call with another transcript; which model is called is not compared). Make it with [NewReplay], set it as Run.Steps, and ask [Replay.End] when
// the engine is done. Not safe for concurrent use; branches run one after the other.
type Replay struct {
	record journal.Attempt
	at     map[journal.Key]int
	given  []bool
	scopes []string
	diff   error  // the first difference
	asked  Effect // what a branch asked for first that is not on record
}

// NewReplay replays an attempt.
func NewReplay(a journal.Attempt) *Replay {
	r := &Replay{record: a, at: make(map[journal.Key]int, len(a.Effects)), given: make([]bool, len(a.Effects))}
	for i, e := range a.Effects {
		r.at[e.Key] = i
	}
	return r
}

// errRecordEnds ends the engine where the run ended then.
var errRecordEnds = errdefs.Interrupted.Errorf("engine: replay: the record ends here")

// Do gives what is on record.
func (r *Replay) Do(ctx context.Context, effects ...Effect) ([]journal.Data, error) {
	out := make([]journal.Data, len(effects))
	var missing Effect
	for i, e := range effects {
		for _, scope := range slices.Backward(r.scopes) {
			e = Scoped{Scope: scope, Effect: e}
		}
		if err := r.give(e, &out[i]); err != nil {
			return out, r.differs(err)
		}
		if out[i] == nil && missing == nil {
			missing = e
		}
	}
	if missing == nil {
		return out, ctx.Err()
	}
	if len(r.scopes) > 0 { // the branches beside it may have got further then
		if r.asked == nil {
			r.asked = missing
		}
		return out, errRecordEnds
	}
	if left := r.left(); left != nil {
		return out, r.differs(fmt.Errorf("the code asks for %v, on record is %v (entry %d)", missing.Key(), left.Key, left.Done))
	}
	if end, ok := r.record.End.(journal.RunFinished); ok && end.Status == "completed" {
		return out, r.differs(fmt.Errorf("the code asks for %v, then the run was completed", missing.Key()))
	}
	return out, errRecordEnds
}

// give looks an effect up, and compares what is asked for with what was. An effect that did not end has no outcome to give.
func (r *Replay) give(e Effect, out *journal.Data) error {
	i, ok := r.at[e.Key()]
	if !ok {
		return nil
	}
	was := r.record.Effects[i]
	r.given[i] = true
	*out = was.Outcome
	want := e.Intent()
	if want == nil || was.Intent == nil {
		return nil
	}
	if g, ok := e.(Generate); ok { // in a scope the transcript is not the session's
		if d := difference(was.Messages, g.Messages); d != "" {
			return fmt.Errorf("entry %d: the code asks for %v with another transcript: %s", was.Begun, e.Key(), d)
		}
	} else if _, ok := Bare(e).(Generate); !ok && !sameData(want, was.Intent) {
		return fmt.Errorf("entry %d: the code asks for %v as %s, on record is %s", was.Begun, e.Key(), dataText(want), dataText(was.Intent))
	}
	return nil
}

// left is the first outcome on record that the code has not asked for.
func (r *Replay) left() *journal.Effect {
	var first *journal.Effect
	for i := range r.record.Effects {
		if e := &r.record.Effects[i]; !r.given[i] && e.Done > 0 && (first == nil || e.Done < first.Done) {
			first = e
		}
	}
	return first
}

func (r *Replay) differs(err error) error {
	if r.diff == nil {
		r.diff = errdefs.Conflict.Errorf("engine: replay: run %s, attempt %d: %w", r.record.Run, r.record.Started.Attempt, err)
	}
	return r.diff
}

// Branch runs the branches in order, all of them, as they ran then.
func (r *Replay) Branch(ctx context.Context, branches ...Branch) error {
	outer := r.scopes
	defer func() { r.scopes = outer }()
	errs := make([]error, len(branches))
	for i, b := range branches {
		r.scopes = append(slices.Clip(outer), b.Scope)
		errs[i] = b.Run(ctx, r)
	}
	return join(errs)
}

// End compares how the engine ended, with the board and the error that it returned, with how it ended then. It gives the first difference of the whole replay.
func (r *Replay) End(board *Board, err error) error {
	if r.diff != nil {
		return r.diff
	}
	ended := errors.Is(err, errRecordEnds)
	left := r.left()
	switch {
	case left == nil:
	case r.asked != nil:
		return r.differs(fmt.Errorf("the code asks for %v, on record is %v (entry %d)", r.asked.Key(), left.Key, left.Done))
	case !ended:
		return r.differs(fmt.Errorf("entry %d: %v is on record, the code ends without it%s", left.Done, left.Key, because(err)))
	}
	finished, over := r.record.End.(journal.RunFinished)
	if finished.After { // what failed then takes no part
		finished.Status = "completed"
	}
	park, parked := r.record.End.(journal.Parked)
	if park.Cause == string(CauseCommit) { // the engine had ended, and it is not on record how
		parked = false
	}
	switch {
	case ended && r.asked != nil && over && finished.Status == "completed":
		return r.differs(fmt.Errorf("the code asks for %v, then the run was completed", r.asked.Key()))
	case ended:
		return nil // it was looked at where it ended
	case err == nil && (parked || over && finished.Status != "completed"):
		return r.differs(fmt.Errorf("the code completes, then the run was %s", r.status()))
	case err == nil && over && !finished.Discarded:
		if d := difference(r.record.Last, board.Channel(MainChannel)); d != "" {
			return r.differs(fmt.Errorf("the code ends with another transcript: %s", d))
		}
	case err == nil, !over && !parked: // what followed is not on record
	case parked || finished.Status == "completed":
		return r.differs(fmt.Errorf("the code ends with an error, then the run was %s%s", r.status(), because(err)))
	case errdefs.Of(err) != nil && finished.Class != errdefs.Of(err).Error():
		return r.differs(fmt.Errorf("the code fails as %w, then the run was %s: %s", err, finished.Class, finished.Error))
	}
	return nil
}

func (r *Replay) status() string {
	switch end := r.record.End.(type) {
	case journal.RunFinished:
		return end.Status
	case journal.Parked:
		return "interrupted"
	}
	return "unfinished"
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

func sameData(a, b journal.Data) bool {
	if q, ok := a.(journal.Asked); ok { // how long people have is no part of the question
		if p, ok := b.(journal.Asked); ok {
			q.TTL = p.TTL
			a = q
		}
	}
	x, errA := journal.EncodeData(a)
	y, errB := journal.EncodeData(b)
	return errA == nil && errB == nil && a.Kind() == b.Kind() && bytes.Equal(x, y)
}

func dataText(d journal.Data) string {
	b, err := journal.EncodeData(d)
	if err != nil {
		return string(d.Kind())
	}
	return clip(string(d.Kind()) + " " + string(b))
}

// difference names the first message in which two transcripts differ by content; "" for none.
func difference(then, now message.History) string {
	for i := range max(then.Len(), now.Len()) {
		switch {
		case i >= now.Len():
			return fmt.Sprintf("message %d, %s, is missing now", i+1, messageText(then.At(i)))
		case i >= then.Len():
			return fmt.Sprintf("message %d, %s, is new", i+1, messageText(now.At(i)))
		case then.At(i) != now.At(i) && !bytes.Equal(then.At(i).AppendJSON(nil), now.At(i).AppendJSON(nil)):
			return fmt.Sprintf("message %d is %s, was %s", i+1, messageText(now.At(i)), messageText(then.At(i)))
		}
	}
	return ""
}

func messageText(m message.Message) string { return clip(string(m.AppendJSON(nil))) }

// clip shortens what is quoted in an error.
func clip(s string) string {
	const most = 200
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
