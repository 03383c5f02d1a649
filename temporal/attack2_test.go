package temporal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

func short(events int) temporal.Timing { t := quick; t.Events = events; return t }

func TestXInterruptWhileItGoesOnAnew(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	came, on := make(chan bool, 1), make(chan bool)
	var after atomic.Int64
	slow := tool.Func("slow", "Takes long.", func(context.Context, struct{}) (string, error) { came <- true; <-on; return "did", nil })
	fast := tool.Func("fast", "Fast.", func(context.Context, struct{}) (string, error) { return "did", nil })
	late := tool.Func("late", "Comes late.", func(context.Context, struct{}) (string, error) { after.Add(1); return "did", nil })
	eng, err := script.New(script.Config{Source: `
def a():
    for i in range(20):
        tool("fast")
def b():
    tool("slow")
    tool("late")
parallel([a, b])
`, Loop: loop.Config{Tools: []tool.Tool{slow, fast, late}}})
	if err != nil {
		t.Fatal(err)
	}
	worksAt(t, c, store, temporal.Queue, short(40), temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: eng})
	h := begin(t, c, temporal.Order{Agent: "a", Session: "s", Run: "r", Message: message.User("go")})
	<-came
	for n := 0; ; time.Sleep(100 * time.Millisecond) { // until the other branch is at its end
		m := len(events(t, c, "pawl/s/r/1"))
		if m == n {
			break
		}
		n = m
	}
	if err := h.Interrupt(t.Context(), engine.Interrupt{Cause: engine.CauseUserInput}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	close(on)
	d, err := soon(t, h, 20*time.Second)
	if err != nil || d.Status != agent.StatusInterrupted || after.Load() != 0 {
		t.Errorf("%+v %v, late: %d", d, err, after.Load())
	}
}

func TestXPokes(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { return "did it", nil }, tool.RequiresApproval)
	worksAt(t, c, store, temporal.Queue, short(60), temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, says{calls(call("c1", "work", "{}")), message.Assistant("end")}, work)})
	h := begin(t, c, temporal.Order{Agent: "a", Session: "s", Run: "r", Message: message.User("go")})
	id := pending(t, store, "s")
	for range 20 {
		if err := c.SignalWorkflow(t.Context(), "pawl/s/r/1", "", "pawl.answered", "s"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if n := len(events(t, c, "pawl/s/r/1")); n > 100 {
		t.Errorf("%d events", n)
	}
	if err := h.Answer(t.Context(), journal.Answered{ID: id, Approved: true}); err != nil {
		t.Fatal(err)
	}
	if d, err := soon(t, h, 15*time.Second); err != nil || d.Text != "end" {
		t.Errorf("%+v %v", d, err)
	}
}

// The gate that a run was begun with binds it, whoever does its effects: also a worker whose agent has another one.
func TestXGateOfTheCaller(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var paid atomic.Int64
	read := tool.Func("read", "Reads.", func(_ context.Context, _ struct{ N int `json:"n"` }) (string, error) { return "read", nil })
	careful := tool.Func("careful", "Asks.", func(context.Context, struct{}) (string, error) { return "did", nil }, tool.RequiresApproval)
	pay := tool.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { paid.Add(1); return "paid", nil })
	var m says
	for i := range 6 {
		m = append(m, calls(call(fmt.Sprint("r", i), "read", fmt.Sprintf(`{"n":%d}`, i))))
	}
	eng := looping(t, append(m, calls(call("q", "careful", "{}")), calls(call("p", "pay", "{}")), message.Assistant("end")), read, careful, pay)
	ag := agent.Agent{ID: "a", Tools: []string{"read", "careful"}}
	start := func(ag agent.Agent) func() {
		w, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Members: []temporal.Member{{Agent: ag, Engine: eng}}, Timing: short(30), Options: worker.Options{StickyScheduleToStartTimeout: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		return func() { cancel(); <-done }
	}
	stop := start(ag)
	over := make(chan *agent.Result, 1)
	go func() {
		res, err := agent.Run(t.Context(), ag, temporal.NewEngine(c, eng), agent.Request{ContextID: "s", RunID: "r", Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(waits{}))
		if err != nil {
			t.Error(err)
		}
		over <- res
	}()
	id := pending(t, store, "s")
	stop()
	stop = start(agent.Agent{ID: "a"})
	defer func() { stop() }()
	if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: id, Approved: true}); err != nil {
		t.Fatal(err)
	}
	if res := <-over; res.Text() != "end" || paid.Load() != 0 {
		t.Errorf("%+v, paid %d times", res, paid.Load())
	}
}

type waits struct{ engine.NoopHost }

func (waits) AskUser(ctx context.Context, _ engine.Prompt) (engine.Reply, error) {
	<-ctx.Done()
	return engine.Reply{}, ctx.Err()
}

func TestXAgainEverywhere(t *testing.T) {
	c := devserver.Shared(t).Client(t)
	var mu sync.Mutex
	var store journal.Store
	counts := map[string]int{}
	note := func(ctx context.Context, _ struct{}) (string, error) {
		mu.Lock()
		counts[tool.FromContext(ctx).Key]++
		mu.Unlock()
		return "did it", nil
	}
	work := tool.Func("work", "Works.", note)
	careful := tool.Func("careful", "Works.", note, tool.RequiresApproval)
	dig := tool.Func("dig", "Digs.", func(ctx context.Context, in struct{}) (tool.Result, error) {
		if !tool.FromContext(ctx).Background {
			return tool.Result{Content: "digging", Background: true}, nil
		}
		_, _ = note(ctx, in)
		time.Sleep(200 * time.Millisecond)
		return tool.Result{Content: "dug it up"}, nil
	})
	ann := kid(t, "ann", says{calls(call("p1", "work", "{}"), call("p2", "work", "{}")), calls(call("p3", "work", "{}")), calls(call("p4", "careful", "{}")), message.Assistant("ann did")}, work, careful)
	m := family(t, says{
		calls(call("a1", "work", "{}"), call("a2", "work", "{}"), call("a3", "work", "{}")),
		calls(call("d1", "dig", "{}"), gives("t0", "ann", "do", true)),
		calls(call("q1", "careful", "{}"), call("q2", "careful", "{}")),
		calls(gives("t1", "ann", "do", false), gives("t2", "ann", "do", false), call("b2", "work", "{}")),
		calls(call("e1", "work", "{}")),
		message.Assistant("mid"), message.Assistant("end"), message.Assistant("end"), message.Assistant("end"), message.Assistant("end"),
	}, agent.Subagents{ann}, work, careful, dig)
	for _, n := range []int{8, 14, 20, 27, 33, 41} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			store = journal.Memory()
			clear(counts)
			q := fmt.Sprint("qa", n)
			worksAt(t, c, store, q, short(n), m)
			s := fmt.Sprint("s", n)
			h := begin(t, c, temporal.Order{Agent: "parent", Session: s, Run: "r", Queue: q, Message: message.User("go")})
			ctx, cancel := context.WithCancel(t.Context())
			var answering sync.WaitGroup
			answering.Go(func() {
				for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
					all, _ := agent.Pending(ctx, store, s)
					for _, p := range all {
						for range 2 { // twice at once
							answering.Go(func() { _ = h.Answer(ctx, journal.Answered{ID: p.ID, Approved: true}) })
						}
						_ = agent.Answer(ctx, store, s, journal.Answered{ID: p.ID, Approved: true})
					}
				}
			})
			d, err := soon(t, h, 40*time.Second)
			cancel()
			answering.Wait()
			if err != nil || d.Err() != nil || d.Text != "end" && d.Text != "mid" {
				dump(t, c, "pawl/"+s+"/r/1")
				t.Fatalf("%+v %v", d, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for k, n := range counts {
				if n != 1 {
					t.Errorf("%s ran %d times", k, n)
				}
			}
			if len(counts) != 20 {
				t.Errorf("%d effects: %v", len(counts), counts)
			}
		})
	}
}

func TestXBigThings(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	results := map[string]string{"big": strings.Repeat("x", 5<<20), "lines": strings.Repeat("line\n", 1e5), "bytes": "a\xff\xfeb"}
	big := tool.Func("big", "Big.", func(_ context.Context, in struct {
		What string `json:"what"`
	},
	) (string, error) {
		return results[in.What], nil
	})
	fails := tool.Func("fails", "Fails.", func(_ context.Context, in struct {
		What string `json:"what"`
	},
	) (string, error) {
		return "", fmt.Errorf("%s", results[in.What])
	})
	var m says
	for what := range results {
		m = append(m, calls(call("b"+what, "big", `{"what":"`+what+`"}`), call("f"+what, "fails", `{"what":"`+what+`"}`)))
	}
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, append(m, message.Assistant("end")), big, fails)}, temporal.Member{Agent: agent.Agent{ID: "talker"}, Engine: looping(t, answers(strings.Repeat("é", 3<<20)))})
	if d, err := soon(t, begin(t, c, temporal.Order{Agent: "a", Session: "s", Run: "r", Message: message.User("go")}), 20*time.Second); err != nil || d.Text != "end" {
		t.Errorf("%+v %v", d, err)
	}
	if d, err := soon(t, begin(t, c, temporal.Order{Agent: "talker", Session: "s2", Run: "r", Message: message.User("go")}), 20*time.Second); err != nil || !strings.HasPrefix(d.Text, "éé") || d.Status != agent.StatusCompleted {
		t.Errorf("%v", err)
	}
	for name, o := range map[string]temporal.Order{
		"message": {Message: message.User(strings.Repeat("x", 3<<20))}, "attrs": {Message: message.User("x"), Attributes: map[string]string{"a": strings.Repeat("x", 3<<20)}},
		"session": {Message: message.User("x"), Session: strings.Repeat("s", 3000)},
	} {
		o.Agent = "a"
		h, err := temporal.Begin(t.Context(), c, o)
		t.Log(name, fmt.Sprintf("%.200v", err))
		if name != "session" && !errdefs.Validation.Is(err) {
			t.Errorf("%s: %.200v", name, err)
		}
		if err == nil {
			d, err := soon(t, h, 10*time.Second)
			t.Log(d != nil, err)
		}
	}
	// A system prompt of 3 MB
	ag := agent.Agent{ID: "sys", Instructions: strings.Repeat("x", 3<<20)}
	works(t, c, store, "sysq", temporal.Member{Agent: ag, Engine: looping(t, answers("hi"))})
	d, err := soon(t, begin(t, c, temporal.Order{Agent: "sys", Session: "s9", Run: "r", Queue: "sysq", Message: message.User("go")}), 10*time.Second)
	t.Logf("%.300v %.300v", fmt.Sprint(d), err)
	if d == nil || d.Err() == nil && d.Text != "hi" {
		t.Error("the system prompt")
	}
}

func TestXTTL(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var ran atomic.Int64
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { ran.Add(1); return "did it", nil }, tool.RequiresApproval)
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, says{calls(call("c1", "work", "{}")), message.Assistant("end")}, work), Options: []agent.RunOption{agent.WithAskTTL(time.Second)}})
	h := begin(t, c, temporal.Order{Agent: "a", Session: "s", Run: "r", Message: message.User("go")})
	if d, err := soon(t, h, 15*time.Second); err != nil || d.Text != "end" || ran.Load() != 0 {
		t.Errorf("%+v %v ran %d", d, err, ran.Load())
	}
}

func TestXTerminate(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var ran atomic.Int64
	came, on := make(chan bool, 9), make(chan bool)
	slow := tool.Func("slow", "Takes long.", func(ctx context.Context, _ struct{}) (string, error) {
		ran.Add(1)
		came <- true
		select {
		case <-on:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		return "did", nil
	})
	deep := kid(t, "deep", says{calls(call("p1", "slow", "{}")), message.Assistant("deep did")}, slow)
	task, err := agent.Task(agent.Subagents{deep})
	if err != nil {
		t.Fatal(err)
	}
	mid := kid(t, "mid", says{calls(gives("d1", "deep", "do", false)), message.Assistant("mid did")}, task)
	m := family(t, says{calls(gives("c1", "mid", "do", false)), message.Assistant("end")}, agent.Subagents{mid})
	works(t, c, store, temporal.Queue, m, temporal.Member{Agent: mid.Agent, Engine: mid.Engine, Subagents: agent.Subagents{deep}})
	find := func(session string) string {
		log, err := journal.Open(t.Context(), store, session)
		if err != nil {
			t.Fatal(err)
		}
		st := log.State()
		return fmt.Sprintf("pawl/%s/%s/%d", session, st.Run, st.Attempt)
	}
	for name, session := range map[string]string{"child": "s1/c1", "grandchild": "s2/c1/d1", "parent": "s3", "run": "run"} {
		t.Run(name, func(t *testing.T) {
			s := map[string]string{"child": "s1", "grandchild": "s2", "parent": "s3", "run": "s4"}[name]
			o := temporal.Order{Agent: "parent", Session: s, Run: "r", Message: message.User("go")}
			h := begin(t, c, o)
			<-came
			id := "pawl-run/" + s + "/r"
			if name != "run" {
				id = find(session)
			}
			if err := c.TerminateWorkflow(t.Context(), id, "", "by hand"); err != nil {
				t.Fatal(err)
			}
			d, err := soon(t, h, 20*time.Second)
			t.Logf("%+v %v", d, err)
			if err != nil && name != "run" {
				dump(t, c, "pawl/"+s+"/r/1")
			}
			if name == "run" {
				o.Message = message.Message{}
				time.Sleep(time.Second)
				d, err := soon(t, begin(t, c, o), 30*time.Second)
				t.Logf("again: %+v %v; ran %d", d, err, ran.Load())
				if err != nil {
					t.Error(err)
				}
			}
			time.Sleep(2 * time.Second)
			for _, below := range []string{s, s + "/c1", s + "/c1/d1"} {
				log, _ := journal.Open(t.Context(), store, below)
				st := log.State()
				t.Logf("%s: %s unfinished %q", below, st.Status, st.Run)
			}
		})
	}
	l, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{})
	if err == nil {
		for _, e := range l.GetExecutions() {
			if e.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
				t.Errorf("%s still runs", e.GetExecution().GetWorkflowId())
			}
		}
	} else {
		t.Log(err)
	}
	_ = slices.Contains[[]int]
}
