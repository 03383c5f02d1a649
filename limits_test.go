//go:build unix

package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// streamed is a run by RunStream: the error that it yields last, and how the journal says that it ended.
func streamed(t *testing.T, rt *pawl.Runtime, req pawl.Request) (end journal.RunFinished, last error) {
	t.Helper()
	for e, err := range rt.RunStream(t.Context(), req) {
		last = err
		if d, ok := e.Data.(journal.RunFinished); ok {
			end = d
		}
	}
	return end, last
}

func TestTheLimitOfModelCallsIsFoundInTheErrorHoweverTheRunCameToIt(t *testing.T) {
	if !errors.Is(pawl.ErrMaxIterations, loop.ErrMaxSteps) {
		t.Error("two errors")
	}
	pay := tool.Func("pay", "", func(context.Context, struct{}) (string, error) { return "paid", nil }, tool.RequiresApproval)
	forever := thinking(func(req model.Request) message.Message {
		n := replies(req)
		return message.Assistant("again", call(fmt.Sprintf("c%d", n), []string{"nothing", "pay"}[n%2], `{}`))
	})
	store := journal.Memory()
	o := pawl.Options{Model: forever, Tools: []tool.Tool{pay}, Limits: loop.Limits{Steps: 2}, Journal: store}
	rt := open(t, o)
	limited := func(how string, res *agent.Result, err error) {
		t.Helper()
		if !errors.Is(err, pawl.ErrMaxIterations) || !errdefs.BudgetExceeded.Is(err) || res == nil || res.Status != agent.StatusFailed || res.Steps != 2 || !errors.Is(res.Err, pawl.ErrMaxIterations) || res.Text() != "again" {
			t.Errorf("%s: %v %+v", how, err, res)
		}
	}
	res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"})
	if res == nil || res.Status != agent.StatusInterrupted || errors.Is(err, pawl.ErrMaxIterations) {
		t.Fatal(err, res) // it waits for the approval of its second call
	}
	if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: "c1", Approved: true}); err != nil {
		t.Fatal(err)
	}
	other := open(t, o) // another process: what it knows, it has from the journal
	res, err = other.Resume(t.Context(), "s")
	limited("resumed", res, err)
	o.Tools = nil
	rt = open(t, o)
	res, err = rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "t"})
	limited("run", res, err)
	if end, err := streamed(t, rt, pawl.Request{Prompt: "go", SessionID: "u"}); !errors.Is(err, pawl.ErrMaxIterations) || end.Class != errdefs.BudgetExceeded.Error() {
		t.Error(err, end)
	}
	o.Limits.Steps = 0
	o.Model = stub{}
	if res, err := open(t, o).Run(t.Context(), pawl.Request{Prompt: "go"}); err != nil || errors.Is(res.Err, pawl.ErrMaxIterations) {
		t.Error(err)
	}
}

func TestTheTimeOfARunIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := tool.Func("hang", "", func(ctx context.Context, _ struct{}) (string, error) { <-ctx.Done(); return "", ctx.Err() })
		rt := open(t, pawl.Options{Model: stub{message.Assistant("on it", call("c", "hang", `{}`))}, Tools: []tool.Tool{hangs}, Timeout: time.Minute})
		began := time.Now()
		res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"})
		if !errdefs.BudgetExceeded.Is(err) || res == nil || res.Status != agent.StatusFailed || res.Text() != "on it" || time.Since(began) != time.Minute {
			t.Error(err, res, time.Since(began))
		}
		began = time.Now()
		if end, err := streamed(t, rt, pawl.Request{Prompt: "go"}); !errdefs.BudgetExceeded.Is(err) || end.Status != string(agent.StatusFailed) || time.Since(began) != time.Minute {
			t.Error(err, end, time.Since(began))
		}
	})
}

// deaf is a model that ignores its context.
type deaf struct {
	stub
	hold chan struct{}
}

func (d deaf) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	<-d.hold
	return d.stub.Complete(ctx, req)
}

func TestCloseNamesWhatDoesNotEndAndDoesNotWaitForIt(t *testing.T) {
	for name, c := range map[string]struct {
		given, want time.Duration
	}{"by default": {0, 10 * time.Second}, "as long as is said": {time.Second, time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hold := make(chan struct{})
				store := journal.Memory()
				rt := open(t, pawl.Options{Model: deaf{hold: hold}, CloseTimeout: c.given, Journal: store})
				var runs sync.WaitGroup
				for _, session := range []string{"b", "a", ""} {
					runs.Go(func() {
						res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: session})
						if res == nil || res.Status != agent.StatusCanceled {
							t.Error(err, res)
						}
					})
				}
				synctest.Wait()
				runs.Go(func() { // it waits for its turn, and goes at once
					if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "a"}); !errdefs.Canceled(err) {
						t.Error(err)
					}
				})
				synctest.Wait()
				began := time.Now()
				err := rt.Close()
				if !errdefs.Timeout.Is(err) || time.Since(began) != c.want {
					t.Fatal(err, time.Since(began))
				}
				said := err.Error()
				if !strings.Contains(said, "a run in session a, a run in session b, a run in session run-") || strings.Count(said, "session a") != 1 {
					t.Error(said)
				}
				began = time.Now()
				if again := rt.Close(); again == nil || again.Error() != said || time.Since(began) != 0 {
					t.Error(again)
				}
				if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"}); !errdefs.NotAvailable.Is(err) {
					t.Error(err)
				}
				close(hold) // it comes back after all, and begins nothing more
				runs.Wait()
				log, err := journal.Open(t.Context(), store, "a")
				if err != nil || log.State().Spent.Steps > 1 {
					t.Error(err, log.State().Spent.Steps)
				}
			})
		})
	}
}

func TestCloseWaitsForAToolThatTakesItsTimeToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := tool.Func("slow", "", func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			time.Sleep(3 * time.Second) // it tidies up
			return "", ctx.Err()
		})
		rt := open(t, pawl.Options{Model: stub{message.Assistant("", call("c", "slow", `{}`))}, Tools: []tool.Tool{slow}})
		var run sync.WaitGroup
		run.Go(func() { _, _ = rt.Run(t.Context(), pawl.Request{Prompt: "go"}) })
		synctest.Wait()
		began := time.Now()
		if err := rt.Close(); err != nil || time.Since(began) != 3*time.Second {
			t.Error(err, time.Since(began))
		}
		run.Wait()
	})
}

// counting is a host that says yes, and counts how often it was asked.
type counting struct {
	engine.NoopHost
	mu    sync.Mutex
	asked []string
}

func (h *counting) AskUser(_ context.Context, p engine.Prompt) (engine.Reply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, p.ID)
	return engine.Reply{Answered: journal.Answered{Approved: true, Text: "yes, do"}}, nil
}

func TestTheEntryPointSaysWhoIsAsked(t *testing.T) {
	var paid, heard []string
	pay := tool.Func("pay", "", func(context.Context, struct{}) (string, error) { paid = append(paid, "paid"); return "paid", nil }, tool.RequiresApproval)
	wonders := tool.Func("wonder", "", func(ctx context.Context, _ struct{}) (string, error) { // a question of the tool's own
		at, _ := engine.InsideOf(ctx)
		reply, err := at.Ask(ctx, engine.Prompt{Asked: journal.Asked{Prompt: "really?"}})
		if err == nil {
			heard = append(heard, fmt.Sprint(reply.Approved, reply.By))
		}
		return "wondered", err
	}, tool.ReadOnly)
	m := stub{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("", call("c2", "wonder", `{}`))}
	for _, c := range []struct {
		entry  pawl.EntryPoint
		host   *counting
		status agent.Status
		asked  []string // of the host
		paid   int
		heard  []string
	}{
		{"", &counting{}, agent.StatusCompleted, []string{"c1", "c2"}, 1, []string{"true"}},
		{"", nil, agent.StatusInterrupted, nil, 0, nil},
		{pawl.EntryPointCLI, &counting{}, agent.StatusCompleted, []string{"c1", "c2"}, 1, []string{"true"}},
		{pawl.EntryPointCI, &counting{}, agent.StatusCompleted, nil, 0, []string{"false" + journal.ByNobody}},
		{pawl.EntryPointCI, nil, agent.StatusCompleted, nil, 0, []string{"false" + journal.ByNobody}},
		{pawl.EntryPointPlatform, &counting{}, agent.StatusInterrupted, nil, 0, nil},
	} {
		for _, stream := range []bool{false, true} {
			paid, heard = nil, nil
			store := journal.Memory()
			o := pawl.Options{Model: m, Tools: []tool.Tool{pay, wonders}, EntryPoint: c.entry, Journal: store}
			if c.host != nil {
				c.host.asked, o.Host = nil, c.host
			}
			rt := open(t, o)
			var err error
			if stream {
				_, err = streamed(t, rt, pawl.Request{Prompt: "go", SessionID: "s"})
			} else {
				_, err = rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"})
			}
			log, _ := journal.Open(t.Context(), store, "s")
			st := log.State()
			if st.Status != string(c.status) || len(paid) != c.paid || !slices.Equal(heard, c.heard) || c.host != nil && !slices.Equal(c.host.asked, c.asked) || (c.status == agent.StatusInterrupted) != (len(st.Pending) == 1) {
				t.Errorf("%q %v: %v: %s %v %q %+v %v", c.entry, stream, err, st.Status, paid, heard, c.host, st.Pending)
			}
			if c.entry == pawl.EntryPointCI {
				if text := st.Messages.At(2); !strings.Contains(string(text.AppendJSON(nil)), "nobody is asked here") {
					t.Errorf("the model is told: %s", text.AppendJSON(nil))
				}
			}
			if c.entry != pawl.EntryPointPlatform {
				continue
			}
			if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: "c1", Approved: true}); err != nil {
				t.Fatal(err)
			}
			if res, _ := rt.Resume(t.Context(), "s"); res == nil || res.Status != agent.StatusInterrupted || len(paid) != 1 || res.Pending[0].ID != "c2" {
				t.Errorf("answered: %+v %v", res, paid)
			}
		}
	}
	for _, o := range []pawl.Options{{EntryPoint: "browser"}, {EntryPoint: pawl.EntryPointCLI}, {EntryPoint: pawl.EntryPointCLI, Host: engine.NoopHost{}}, {MaxSessions: -1}, {CloseTimeout: -1}} {
		o.Model, o.NoProject, o.NoBuiltins, o.Journal = m, true, true, journal.Memory()
		if _, err := pawl.New(t.Context(), o); !errdefs.Validation.Is(err) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestOneRuntimeServesManySessionsAtOnce(t *testing.T) {
	note := tool.Func("note", "", func(ctx context.Context, in struct{ Text string }) (string, error) {
		at, _ := engine.InsideOf(ctx)
		return at.Run.Session + " notes " + in.Text, nil
	}, tool.ReadOnly)
	m := thinking(func(req model.Request) message.Message {
		if req.Messages.Last().Role() == message.RoleTool {
			return message.Assistant(last(req))
		}
		return message.Assistant("", call(fmt.Sprintf("c%d", req.Messages.Len()), "note", fmt.Sprintf(`{"Text":%q}`, req.Messages.Last().Text())))
	})
	rt := open(t, pawl.Options{Model: m, Tools: []tool.Tool{note}, MaxSessions: 7})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			session := fmt.Sprintf("s%d", i)
			for turn := range 4 {
				prompt := fmt.Sprintf("%d of %d", turn, i)
				var text string
				if turn%2 == 0 {
					res, err := rt.Run(t.Context(), pawl.Request{Prompt: prompt, SessionID: session})
					if text = res.Text(); err != nil {
						t.Error(err)
					}
				} else {
					text, _ = asks(t, rt, session, prompt)
				}
				if text != session+" notes "+prompt {
					t.Errorf("%s: %s", session, text)
				}
			}
			log, err := journal.Open(t.Context(), rt.Journal(), session)
			if err != nil || log.State().Messages.Len() != 16 {
				t.Error(session, err, log.State().Messages.Len())
			}
		})
	}
	wg.Wait()
}

func TestRunsOfASessionComeInTheOrderOfTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := open(t, pawl.Options{Model: thinking(func(model.Request) message.Message {
			time.Sleep(time.Second) // of the bubble's
			return message.Assistant("ok")
		})})
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				if _, err := rt.Run(t.Context(), pawl.Request{Prompt: fmt.Sprint(i), SessionID: "s"}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // it runs, or stands in the queue
		}
		wg.Wait()
		log, err := journal.Open(t.Context(), rt.Journal(), "s")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range log.State().Messages.All() {
			if m.Role() == message.RoleUser {
				got = append(got, m.Text())
			}
		}
		if !slices.Equal(got, []string{"0", "1", "2", "3", "4"}) {
			t.Error(got)
		}
	})
}
