package loop

import (
	"context"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/tokens"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// room is what a transcript takes of the model's window. It is counted from outcomes and from the transcript alone, each message once, so it is the same on resume and in replay.
type room struct {
	at        int     // where it is compacted; 0: never
	tokens    int     // that it takes: up to the last reply as the provider counted it, from there on estimated
	counted   int     // messages that are in tokens
	known     int     // what the provider counted last; 0: nothing yet
	guess     int     // the estimate of what came behind that, as it was before factor
	factor    float64 // by which estimates have been wrong
	later     int     // no attempt below this: the last one was not enough
	overflows int     // calls in a row that did not fit
	refused   bool    // the last one
	why       string  // that was, in the provider's words
}

func roomFor(p journal.Prepared, talk message.History) room {
	return room{at: p.CompactAt, tokens: p.Tokens, counted: talk.Len(), factor: 1}
}

// full reports whether the transcript has to be compacted before the next call.
func (r *room) full(talk message.History) bool {
	if r.at == 0 {
		return false
	}
	r.count(talk)
	return r.refused || r.tokens >= max(r.at, r.later)
}

func (r *room) count(talk message.History) {
	for ; r.counted < talk.Len(); r.counted++ {
		n := tokens.Of(talk.At(r.counted))
		r.guess += n
		r.tokens += int(r.factor * float64(n))
	}
}

// replied learns from what a provider counted. talk ends with the reply.
func (r *room) replied(d *journal.ModelFinished, talk message.History) {
	if d.Stop != model.StopWindow {
		r.overflows = 0
	}
	now := d.Usage.Context()
	if r.at == 0 || now == 0 {
		return
	}
	r.count(talk)
	if r.known > 0 && r.guess >= 200 { // of less there is nothing to learn
		r.factor = min(max(float64(now-r.known)/float64(r.guess), 0.5), 3)
	}
	r.known, r.tokens, r.guess = now, now, 0
}

// overflow notes a call that did not fit, and reports whether a compaction may help.
func (r *room) overflow(d *journal.ModelFinished) bool {
	if r.at == 0 {
		return false
	}
	r.overflows++
	r.why = because(d.Reason)
	r.refused = r.overflows <= maxOverflows
	return r.refused
}

// compacted notes what a compaction came to; talk is the transcript after it. It fails when the next call can't fit.
func (t *tally) compacted(d journal.Compacted, talk message.History) error {
	r := &t.room
	if d.Error != "" && r.refused {
		return errdefs.Overflow.Errorf("loop: the transcript does not fit the model's context window%s; it could not be compacted: %s", r.why, d.Error)
	}
	t.tokens += d.Usage.Total()
	r.tokens, r.counted, r.known, r.guess, r.refused = d.TokensAfter, talk.Len(), 0, 0, false
	r.later = r.tokens + r.at/10
	return nil
}

// ready fails when a limit forbids the next model call, and has the transcript compacted when the call could not take it. from is where the run's own messages begin in it.
func (t *tally) ready(ctx context.Context, do engine.Steps, step int, talk message.History, from int) (message.History, int, error) {
	if err := t.mayCall(step); err != nil || !t.room.full(talk) {
		return talk, from, err
	}
	short, err := engine.Do[journal.Compacted](ctx, do, engine.Compact{Step: step, Messages: talk, Tokens: t.room.tokens, Tight: t.room.overflows > 1})
	if err != nil {
		return talk, from, err
	}
	talk, from = talk.Edit(short.Edit), len(short.Edit.Head)+max(from-short.Edit.From, 0)
	return talk, from, t.compacted(short, talk)
}
