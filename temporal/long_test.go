package temporal_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// counting is a store that counts the entries that are read.
type counting struct {
	journal.Store
	read atomic.Int64
}

func (c *counting) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range c.Store.Read(ctx, session, after) {
			c.read.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

// counted is a model that has it noted, at each step, how many entries were read so far.
type counted struct {
	model.Model
	store *counting
	mu    sync.Mutex
	read  []int64 // by step
}

func (c *counted) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	c.mu.Lock()
	c.read = append(c.read, c.store.read.Load())
	c.mu.Unlock()
	return c.Model.Complete(ctx, req)
}

// A run of a thousand steps whose results are 20 MB, with two workers: no history of a workflow has more than 10,000 events or 5 MB, for it has none of what was said; and a late step has as few entries read as an early one.
func TestALongRunHasShortHistories(t *testing.T) {
	steps, events := 1000, 0
	if !tier.All() {
		steps, events = 100, 300
	}
	server := devserver.Shared(t)
	c := server.Client(t)
	store := &counting{Store: journal.Memory()}
	mod := &counted{Model: stepping(steps), store: store}
	var workers []*temporal.Worker
	var waiting atomic.Int64
	eng, err := loop.New(loop.Config{Model: mod, Limits: loop.Limits{Steps: -1, Repeats: -1}, Tools: []tool.Tool{tool.Func("work", "Works.", func(context.Context, struct {
		Step int `json:"step"`
	},
	) (string, error) {
		for _, w := range workers {
			waiting.Store(max(waiting.Load(), int64(w.Waiting())))
		}
		return strings.Repeat("a result ", 20<<10/9), nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	m := temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: eng}
	timing := quick
	timing.Events = events
	workers = []*temporal.Worker{worksAt(t, c, store, "q", timing, m), worksAt(t, c, store, "q", timing, m)}
	began := time.Now()
	res, err := agent.Run(t.Context(), m.Agent, temporal.NewEngine(c, eng, temporal.WithQueue("q")), agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store.Store))
	if err != nil || res.Err != nil || res.Text() != "done" || res.Steps != steps+1 {
		t.Fatal(err, res.Err, res.Text(), res.Steps)
	}
	took := time.Since(began)
	if waiting.Load() != 1 {
		t.Errorf("a worker kept %d effects while one was done", waiting.Load())
	}
	h := histories(t, c, server.Namespace)
	t.Logf("%v: %d steps, %d histories, of at most %d events and %d KB; %d of %d activities waited for a worker", took.Round(time.Second), steps, h.workflows, h.events, h.bytes>>10, h.late, h.activities)
	if h.workflows < 2 || h.events > 10_000 || h.bytes > 5<<20 {
		t.Error("the histories are too long, or there is one only")
	}
	if h.late > 5+h.activities/200 {
		t.Error("activities wait for a worker, though there are workers that have nothing to do")
	}
	entries := int64(0)
	for _, err := range store.Store.Read(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		entries++
	}
	early, late, all := typical(mod.read[:steps/5]), typical(mod.read[len(mod.read)-steps/5:]), store.read.Load()
	t.Logf("%d entries; a step has %d read, a late one %d; %d in all", entries, early, late, all)
	const most = 20 // a step puts 5 entries on record: each worker reads them once, and the workflow the outcomes and what lies behind them
	if early > most || late > most {
		t.Errorf("a late step has %d entries read, an early one %d: more than %d", late, early, most)
	}
	if bound := int64(steps)*most + int64(2+h.workflows)*entries; all > bound { // each worker reads the session once, and each workflow
		t.Errorf("%d entries were read: more than %d", all, bound)
	}
}

// typical is how many entries a step has read, the median: what is read with a new workflow is no part of it.
func typical(read []int64) int64 {
	var steps []int64
	for i := range read[1:] {
		steps = append(steps, read[i+1]-read[i])
	}
	slices.Sort(steps)
	return steps[len(steps)/2]
}

// past is what workflows of a namespace left behind.
type past struct {
	workflows     int
	events, bytes int64 // of the longest
	activities    int
	late          int // activities that waited longer than a second for a worker
}

func histories(t *testing.T, c client.Client, namespace string) (p past) {
	t.Helper()
	all, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all.GetExecutions() {
		id, run := e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId()
		d, err := c.DescribeWorkflowExecution(t.Context(), id, run)
		if err != nil {
			t.Fatal(err)
		}
		p.workflows++
		p.events, p.bytes = max(p.events, d.GetWorkflowExecutionInfo().GetHistoryLength()), max(p.bytes, d.GetWorkflowExecutionInfo().GetHistorySizeBytes())
		scheduled := map[int64]time.Time{}
		for it := c.GetWorkflowHistory(t.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
			e, err := it.Next()
			if err != nil {
				t.Fatal(err)
			}
			switch e.GetEventType() {
			case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
				p.activities++
				scheduled[e.GetEventId()] = e.GetEventTime().AsTime()
			case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
				if e.GetEventTime().AsTime().Sub(scheduled[e.GetActivityTaskStartedEventAttributes().GetScheduledEventId()]) > time.Second {
					p.late++
				}
			}
		}
	}
	return p
}
