package temporal

import (
	"context"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// references has what a workflow reads be in the journal: in its history stand positions only, and where one is decoded the entry is read. What is on record never changes, so a workflow that is
// replayed reads the same again. A journal that can't be read is no failure of the run: the workflow's task is tried again until it can.
type references struct {
	converter.DataConverter
	store   journal.Store
	session string
	ahead   *ahead
}

// ahead are entries that were read behind one that was asked for. Stores read many at a time, and a workflow that is replayed asks for most of them next: otherwise each would be read hundreds of times. One that goes on finds few.
type ahead struct{ entries []journal.Entry }

const aheadAtMost = 256

// take gives an entry that is there, or nil.
func (a *ahead) take(seq int64) *journal.Entry {
	if len(a.entries) == 0 || seq < a.entries[0].Seq || seq > a.entries[len(a.entries)-1].Seq {
		return nil
	}
	return &a.entries[seq-a.entries[0].Seq]
}

// outcome is what an activity gave, with what it put on record.
type outcome struct {
	did
	key  journal.Key
	data journal.Data
}

// record is what is on record of an attempt, up to a position.
type record struct {
	at   recorded
	seed journal.Attempt
	done map[journal.Key]journal.Data
}

// recorded is a record as it stands in the workflow's history.
type recorded struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
	Upto    int64  `json:"upto"`
	Limits  limits `json:"limits"`
}

// limits are how long the workflow's history may get: those of the worker that began it, so that it goes the same way with another one.
type limits struct {
	Events int `json:"events"`
	Bytes  int `json:"bytes"`
}

// withReferences is ctx for a workflow that reads a session. What it decodes may take a while: that is no deadlock.
func withReferences(ctx workflow.Context, store journal.Store, session string) workflow.Context {
	return workflow.WithDataConverter(ctx, workflow.DataConverterWithoutDeadlockDetection(references{converter.GetDefaultDataConverter(), store, session, new(ahead)}))
}

// readWithin is how long a read may take.
const readWithin = time.Minute

// FromPayload reads what is referred to.
func (r references) FromPayload(p *commonpb.Payload, to any) error {
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	switch to := to.(type) {
	case *outcome:
		if err := r.DataConverter.FromPayload(p, &to.did); err != nil || to.Seq == 0 {
			return err
		}
		return r.entry(ctx, to)
	case *record:
		if err := r.DataConverter.FromPayload(p, &to.at); err != nil {
			return err
		}
		return r.attempt(ctx, to)
	}
	return r.DataConverter.FromPayload(p, to)
}

// FromPayloads reads what is referred to.
func (r references) FromPayloads(ps *commonpb.Payloads, to ...any) error {
	for i, p := range ps.GetPayloads() {
		if i == len(to) {
			break
		}
		if err := r.FromPayload(p, to[i]); err != nil {
			return fmt.Errorf("value %d: %w", i, err)
		}
	}
	return nil
}

// entry gives one entry.
func (r references) entry(ctx context.Context, to *outcome) error {
	e := r.ahead.take(to.Seq)
	if e == nil {
		r.ahead.entries = nil
		for next, err := range r.store.Read(ctx, r.session, to.Seq-1) {
			if err != nil {
				return err
			}
			if r.ahead.entries = append(r.ahead.entries, next); len(r.ahead.entries) == aheadAtMost {
				break
			}
		}
		if e = r.ahead.take(to.Seq); e == nil {
			return errdefs.NotFound.Errorf("temporal: session %s has no entry %d: is this the journal that the workflow began with?", r.session, to.Seq)
		}
	}
	to.key, to.data = e.Key, e.Data
	return nil
}

// attempt reads what an attempt came to.
func (r references) attempt(ctx context.Context, to *record) error {
	all, err := journal.Attempts(ctx, r.store, r.session)
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.Run != to.at.Run || a.Started.Attempt != to.at.Attempt {
			continue
		}
		to.seed, to.done = a, map[journal.Key]journal.Data{}
		for _, e := range a.Effects {
			if e.Done > 0 && e.Done <= to.at.Upto {
				to.done[e.Key] = e.Outcome
			}
		}
		to.seed.Effects = nil
		return nil
	}
	return errdefs.NotFound.Errorf("temporal: session %s has no attempt %d of run %s: is this the journal that the workflow began with?", r.session, to.at.Attempt, to.at.Run)
}
