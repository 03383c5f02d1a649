package temporal

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// reads is a store that counts how often it is asked.
type reads struct {
	journal.Store
	times int
}

func (r *reads) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	r.times++
	return r.Store.Read(ctx, session, after)
}

// What a workflow refers to is read in stretches: one that is replayed after a thousand effects asks its store a few times, in whichever order they ended.
func TestWhatIsReferredToIsReadInStretches(t *testing.T) {
	store := &reads{Store: journal.Memory()}
	const n = 1000
	entries := make([]journal.Entry, n)
	for i := range entries {
		entries[i] = journal.Entry{Session: "s", Seq: int64(i + 1), Run: "r", Key: journal.Key{Op: "tool", ID: fmt.Sprint(i + 1)}, Data: journal.ToolFinished{Call: fmt.Sprint(i + 1)}}
	}
	if err := store.Append(t.Context(), "s", 0, entries...); err != nil {
		t.Fatal(err)
	}
	r := references{converter.GetDefaultDataConverter(), store, "s", new(ahead)}
	get := func(seq int64) (out outcome, err error) {
		p, err := r.ToPayload(did{Seq: seq})
		if err != nil {
			t.Fatal(err)
		}
		return out, r.FromPayload(p, &out)
	}
	for i := int64(1); i <= n; i += 2 { // two side by side
		for _, seq := range []int64{i + 1, i} {
			out, err := get(seq)
			if done, ok := out.data.(journal.ToolFinished); err != nil || !ok || done.Call != fmt.Sprint(seq) || out.key != entries[seq-1].Key {
				t.Fatalf("entry %d: %+v, %v", seq, out, err)
			}
		}
	}
	if most := 2*n/aheadAtMost + 3; store.times > most {
		t.Errorf("%d entries took %d reads: more than %d", n, store.times, most)
	}
	if _, err := get(n + 1); !errdefs.NotFound.Is(err) {
		t.Errorf("an entry that is not there: %v", err)
	}
}

// An effect is kept for its activity as long as its workflow waits for it, and no longer, whoever did it.
func TestEffectsAreLetGo(t *testing.T) {
	var all alive
	p := path{place: place{Session: "s", Run: "r"}, Attempt: 1}
	l := all.of(p)
	one, two := engine.Ask{Asked: journal.Asked{ID: "1"}}, engine.Ask{Asked: journal.Asked{ID: "2"}}
	l.put(one)
	l.put(two)
	for range 2 { // an activity that is tried again finds it, too
		if all.get(aliveKey{"s", "r", 1, one.Key()}) == nil {
			t.Fatal("an effect that is waited for is not there")
		}
	}
	if all.get(aliveKey{"s", "r", 2, one.Key()}) != nil {
		t.Error("an effect is taken for that of another attempt")
	}
	if l.done(one.Key()); len(all.all) != 1 {
		t.Errorf("%d effects are kept after one of two", len(all.all))
	}
	if l.end(); len(all.all) != 0 || len(l.mine) != 0 {
		t.Errorf("%d effects are kept after the path", len(all.all))
	}
}

// Who says how many pollers there are is heard; who does not has enough for all partitions of a queue.
func TestPollers(t *testing.T) {
	if o := polling(worker.Options{}); o.MaxConcurrentActivityTaskPollers != pollers || o.MaxConcurrentWorkflowTaskPollers != pollers {
		t.Errorf("by default: %d, %d", o.MaxConcurrentActivityTaskPollers, o.MaxConcurrentWorkflowTaskPollers)
	}
	if o := polling(worker.Options{MaxConcurrentActivityTaskPollers: 3, MaxConcurrentWorkflowTaskPollers: 4}); o.MaxConcurrentActivityTaskPollers != 3 || o.MaxConcurrentWorkflowTaskPollers != 4 {
		t.Errorf("as was said: %d, %d", o.MaxConcurrentActivityTaskPollers, o.MaxConcurrentWorkflowTaskPollers)
	}
	own := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
	if o := polling(worker.Options{ActivityTaskPollerBehavior: own, WorkflowTaskPollerBehavior: own}); o.MaxConcurrentActivityTaskPollers != 0 || o.MaxConcurrentWorkflowTaskPollers != 0 {
		t.Errorf("beside a behavior: %d, %d", o.MaxConcurrentActivityTaskPollers, o.MaxConcurrentWorkflowTaskPollers)
	}
}
