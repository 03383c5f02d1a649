package agent_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// Drivers that meet in one session, and what a driver that goes on has from the one before.

// before is a store in which something happens just before the first entry that matches is appended.
type before struct {
	journal.Store
	once  sync.Once
	match func(session string, e journal.Entry) bool
	do    func()
}

func (b *before) Append(ctx context.Context, s string, at int64, es ...journal.Entry) error {
	for _, e := range es {
		if b.match(s, e) {
			b.once.Do(b.do)
		}
	}
	return b.Store.Append(ctx, s, at, es...)
}

// begins matches the beginning of a run, "" being any.
func begins(run string) func(string, journal.Entry) bool {
	return func(_ string, e journal.Entry) bool {
		_, ok := e.Data.(journal.RunStarted)
		return ok && (run == "" || e.Run == run)
	}
}

// closes matches the end of a run.
func closes(_ string, e journal.Entry) bool {
	_, ok := e.Data.(journal.RunFinished)
	return ok
}

// twice has a run done again once.
func twice(opts ...agent.RunOption) []agent.RunOption {
	return append(opts, agent.WithMaxRevise(2), agent.WithDecider(decider(agent.FinalizeDecision{Revise: true})))
}

// began is the ids of a session's runs, in the order in which their attempts began.
func began(t testing.TB, store journal.Store, session string) (runs []string) {
	t.Helper()
	for _, e := range read(t, store, session) {
		if begins("")(session, e) {
			runs = append(runs, e.Run)
		}
	}
	return runs
}

func TestADriverThatWasOvertakenRevisesNothing(t *testing.T) {
	for name, drive := range map[string]func(engine.Engine, ...agent.RunOption) (*agent.Result, error){
		"an agent": func(eng engine.Engine, opts ...agent.RunOption) (*agent.Result, error) {
			return agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "first"), opts...)
		},
		"a team": func(eng engine.Engine, opts ...agent.RunOption) (*agent.Result, error) {
			return team(t, 0, agent.Member{Agent: agent.Agent{ID: "a"}, Engine: eng}).Run(t.Context(), asking("s", "first"), opts...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w works
			var there string
			store := stale{disk{journal.Memory()}}
			eng := looping(t, persona{message.Assistant("", call("p", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
			late := agent.DeciderFunc(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
				if res.Attempts == 1 { // others finish the run, and go on with another
					resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store))
					run(t, agent.Agent{}, eng, asking("s", "second"), agent.WithJournal(store))
					there = transcript(t, store, "s")
				}
				return agent.FinalizeDecision{Revise: true}, nil
			})
			res, err := drive(eng, agent.WithJournal(store), agent.WithDecider(late), agent.WithMaxRevise(2))
			if !errdefs.Conflict.Is(err) || res == nil || res.Committed {
				t.Errorf("%+v %v", res, err)
			}
			if total, _ := w.total(); total != 2 {
				t.Errorf("%d payments", total)
			}
			same(t, "the transcript", there, transcript(t, store, "s"))
			if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestADriverThatWasOvertakenBeginsNoTaskAgain(t *testing.T) {
	for name, in := range map[string]func(id, prompt string) message.ToolCall{"foreground": gives, "background": background} {
		t.Run(name, func(t *testing.T) {
			var w works
			kid := looping(t, persona{message.Assistant("", call("p", "pay", `{}`)), message.Assistant("paid")}, w.tool("pay"))
			eng := looping(t, script{message.Assistant("", in("c1", "pay")), message.Assistant("end"), message.Assistant("end")}, task(t, kid))
			mem := stale{disk{journal.Memory()}}
			store := &before{Store: mem, match: func(s string, e journal.Entry) bool { return s == "s/c1" && begins("")(s, e) }, do: func() {
				if res := resume(t, agent.Agent{}, eng, "s", agent.WithJournal(mem)); res.Text() != "end" {
					t.Errorf("%+v", res)
				}
			}}
			res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store))
			if !errdefs.Conflict.Is(err) {
				t.Errorf("%+v %v", res, err)
			}
			if total, _ := w.total(); total != 1 || len(began(t, mem, "s/c1")) != 1 || state(t, mem, "s/c1").Status != "completed" {
				t.Errorf("%d payments by %v", total, began(t, mem, "s/c1"))
			}
		})
	}
}

// together is a store that two drivers find empty, both of them.
type together struct {
	journal.Store
	both sync.WaitGroup
}

func (s *together) Append(ctx context.Context, session string, after int64, es ...journal.Entry) error {
	if after == 0 {
		s.both.Done()
		s.both.Wait()
	}
	return s.Store.Append(ctx, session, after, es...)
}

// prompts is who takes two prompts, one after the other: the agents that run, in their order, the last of them for the second prompt.
type prompts struct {
	drive  func(agent.Request, ...agent.RunOption) (*agent.Result, error)
	agents []string
}

// first gives two prompts to one new session, both at once.
func (p prompts) first(t *testing.T, store journal.Store, wait bool) {
	t.Helper()
	opts := []agent.RunOption{agent.WithJournal(store)}
	if wait {
		opts = append(opts, agent.WithWait())
	}
	over := make(chan error, 2)
	for _, text := range []string{"one", "two"} {
		go func() {
			res, err := p.drive(asking("s", text), opts...)
			if err == nil && (res.Status != agent.StatusCompleted || strings.Count(strings.Join(history(res.LastBoard.Channel(engine.MainChannel)), "\n"), "user: "+text) != 1) {
				t.Errorf("%+v", res)
			}
			over <- err
		}()
	}
	refused := 0
	for range 2 {
		if err := <-over; errdefs.Conflict.Is(err) && !wait {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	created, agents := 0, []string{}
	for _, e := range read(t, store, "s") {
		switch d := e.Data.(type) {
		case journal.SessionCreated:
			created++
		case journal.RunStarted:
			agents = append(agents, d.Agent)
		}
	}
	if refused > 1 || created != 1 {
		t.Errorf("%d refused, %d sessions", refused, created)
	}
	same(t, "agents", p.agents[:len(p.agents)-min(refused, 1)], agents)
}

func TestTwoFirstPromptsMakeOneSession(t *testing.T) {
	tm := team(t, 0, member(t, "a", persona{over("h", "b", `{}`)}, to("b")), member(t, "b", persona{message.Assistant("I am b")}, nil))
	for name, p := range map[string]prompts{
		"an agent": {func(req agent.Request, opts ...agent.RunOption) (*agent.Result, error) {
			return agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t), req, opts...)
		}, []string{"a", "a"}},
		"a team": {func(req agent.Request, opts ...agent.RunOption) (*agent.Result, error) {
			return tm.Run(t.Context(), req, opts...)
		}, []string{"a", "b", "b"}},
	} {
		for what, wait := range map[string]bool{"who waits": true, "who does not": false} {
			t.Run(name+", "+what, func(t *testing.T) {
				store := &together{Store: journal.Memory()}
				store.both.Add(2)
				p.first(t, store, wait)
				for range 3 {
					p.first(t, journal.Memory(), wait)
					file, err := sqlite.Open(filepath.Join(t.TempDir(), "sessions.db"))
					if err != nil {
						t.Fatal(err)
					}
					p.first(t, file, wait)
					if err := file.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

func TestASeederThatWaitedSeesTheSessionAsItIsWhenItsRunBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hold, over := journal.Memory(), make(chan struct{}), make(chan error, 2)
		slow := tool.Func("slow", "", func(context.Context, struct{}) (string, error) { <-hold; return "slept", nil })
		eng := looping(t, script{message.Assistant("", call("c", "slow", `{}`)), message.Assistant("first answer")}, slow)
		go func() {
			over <- second(agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "first"), agent.WithJournal(store)))
		}()
		synctest.Wait()
		var seen [][]string
		seed := agent.WithBoardSeed(func(ctx context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
			seen = append(seen, history(agent.DefaultBoard(ctx).Channel(engine.MainChannel)))
			return agent.BoardWith(message.NewHistory(message.User("memory")), req), nil
		})
		go func() {
			over <- second(agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), asking("s", "second"), agent.WithJournal(store), agent.WithWait(), seed))
		}()
		synctest.Wait() // it waits
		close(hold)
		for range 2 {
			if err := <-over; err != nil {
				t.Error(err)
			}
		}
		same(t, "what it saw", [][]string{{"user: first", "assistant:  <c slow>", "tool:  [c slept]", "assistant: first answer", "user: second"}}, seen)
		same(t, "the transcript", []string{"user: memory", "user: second", "assistant: hi"}, history(state(t, store, "s").Messages))
	})
}

func TestWhatHappensWhileASeederLooksIsNotLost(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*testing.T, journal.Store)
		want      []string
	}{
		"somebody steers": {func(t *testing.T, store journal.Store) {
			if err := agent.Steer(t.Context(), store, "s", message.User("and quickly")); err != nil {
				t.Error(err)
			}
		}, []string{"user: memory", "user: go", "user: second", "user: and quickly", "assistant: hi"}},
		"somebody goes on": {func(t *testing.T, store journal.Store) {
			resume(t, agent.Agent{}, saying(t, "first answer"), "s", agent.WithJournal(store))
		}, []string{"user: memory", "user: go", "assistant: first answer", "user: second", "assistant: hi"}},
	} {
		t.Run(name, func(t *testing.T) {
			store := stale{disk{journal.Memory()}}
			parked(t, store)
			asked := 0
			seed := agent.WithBoardSeed(func(ctx context.Context, _ agent.RunInfo, _ *agent.Request) (*engine.Board, error) {
				b := agent.DefaultBoard(ctx)
				if asked++; asked == 1 {
					c.meanwhile(t, store)
				}
				b.SetChannel(engine.MainChannel, message.NewHistory(message.User("memory")).Append(at(b.Channel(engine.MainChannel))...))
				return b, nil
			})
			run(t, agent.Agent{}, looping(t, persona{message.Assistant("hi")}), asking("s", "second"), agent.WithJournal(store), seed)
			same(t, "the transcript", c.want, history(state(t, store, "s").Messages))
			if asked != 2 || len(state(t, store, "s").Steering) > 0 {
				t.Errorf("it was asked %d times", asked)
			}
		})
	}
	t.Run("somebody steers before a further attempt", func(t *testing.T) {
		store := disk{journal.Memory()}
		asked := 0
		seed := agent.WithBoardSeed(func(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
			if asked++; asked == 2 {
				if err := agent.Steer(t.Context(), store, "s", message.User("and quickly")); err != nil {
					t.Error(err)
				}
			}
			return agent.BoardWith(message.NewHistory(message.User("memory")), req), nil
		})
		res := run(t, agent.Agent{}, saying(t, "hi"), asking("s", "go"), twice(agent.WithJournal(store), seed)...)
		same(t, "the transcript", []string{"user: memory", "user: go", "user: and quickly", "assistant: hi"}, history(state(t, store, "s").Messages))
		if res.Attempts != 2 || res.Status != agent.StatusCompleted {
			t.Errorf("%+v", res)
		}
	})
}

func TestAResumeThatWaitedGoesOnWithTheAttemptThatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hold := disk{journal.Memory()}, make(chan struct{})
		var keys []string
		put := tool.Func("put", "", func(ctx context.Context, _ struct{}) (string, error) {
			switch keys = append(keys, tool.FromContext(ctx).Key); len(keys) {
			case 1:
				<-hold
			case 2: // of the second attempt
				return "", engine.InterruptedError{Interrupt: engine.Interrupt{Cause: engine.CauseHostShutdown}}
			}
			return "put", nil
		}, tool.Idempotent)
		eng := looping(t, script{message.Assistant("", call("c", "put", `{}`)), message.Assistant("end")}, put)
		opts := twice(agent.WithJournal(store), agent.WithWait())
		over := make(chan error, 2)
		go func() { over <- second(agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), opts...)) }()
		synctest.Wait()
		go func() {
			res, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, eng, "s", opts...)
			if err == nil && (res.Attempts != 2 || res.Status != agent.StatusCompleted) {
				t.Errorf("%+v", res)
			}
			over <- err
		}()
		synctest.Wait() // it waits
		close(hold)
		for range 2 {
			if err := <-over; err != nil {
				t.Error(err)
			}
		}
		if len(keys) != 3 || keys[0] == keys[1] || keys[1] != keys[2] || len(began(t, store, "s")) != 2 {
			t.Errorf("%q, attempts %v", keys, began(t, store, "s"))
		}
		if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store)); err != nil {
			t.Error(err)
		}
	})
}

func TestAFurtherAttemptAfterAResumeBeginsWithTheSeedersBoard(t *testing.T) {
	store := disk{journal.Memory()}
	seed := agent.WithBoardSeed(func(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
		b := agent.BoardWith(message.NewHistory(message.User("memory")), req)
		b.Append("notes", message.User("remember this"))
		b.SetVar("n", 42)
		return b, nil
	})
	var boards []string
	var w works
	eng := seeing{looping(t, script{message.Assistant("", call("c", "put", `{}`)), message.Assistant("end")}, w.tool("put", tool.Idempotent)), &boards}
	broken := &failsOnce{Store: store, match: func(_ string, e journal.Entry) bool { return finished("c")(e) }}
	_, _ = agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(broken), seed)
	res := resume(t, agent.Agent{}, eng, "s", twice(agent.WithJournal(store))...) // without the seeder
	if res.Attempts != 2 || len(boards) != 3 || !strings.Contains(boards[0], "remember this") || !strings.Contains(boards[0], `"n":42`) {
		t.Fatalf("%+v %q", res, boards)
	}
	same(t, "resumed", boards[0], boards[1])
	same(t, "and once more", boards[0], boards[2])
	if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store)); err != nil {
		t.Error(err)
	}
}

func TestThePromptOfAResumedRunIsThePersons(t *testing.T) {
	for name, crash := range map[string]bool{"resumed": true, "not resumed": false} {
		t.Run(name, func(t *testing.T) {
			mem := disk{journal.Memory()}
			var store journal.Store = mem
			if crash {
				store = &failsOnce{Store: mem, match: func(_ string, e journal.Entry) bool { _, ok := e.Data.(journal.Stopped); return ok }}
			}
			seed := agent.WithBoardSeed(func(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
				b := agent.BoardWith(message.History{}, req)
				b.Append(engine.MainChannel, message.User("a reminder"))
				return b, nil
			})
			judge := agent.WithDecider(agent.DeciderFunc(func(_ context.Context, _ agent.RunInfo, req *agent.Request, _ *agent.Result) (agent.FinalizeDecision, error) {
				if req.Message.Text() != "the question" {
					t.Errorf("a decider is told of %q", req.Message.Text())
				}
				return agent.FinalizeDecision{}, nil
			}))
			res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), asking("s", "the question"), twice(agent.WithJournal(store), seed, judge)...)
			if crash {
				res, err = agent.Resume(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), "s", twice(agent.WithJournal(mem), seed, judge)...)
			}
			if err != nil || res.Attempts != 2 {
				t.Fatalf("%+v %v", res, err)
			}
			same(t, "the transcript", []string{"user: the question", "user: a reminder", "assistant: hi"}, history(res.LastBoard.Channel(engine.MainChannel)))
		})
	}
}

// rude is a host one of whose methods panics.
type rude struct {
	engine.NoopHost
	in string
}

func (h rude) Listening() bool {
	if h.in == "Listening" {
		panic(h.in)
	}
	return true
}

func (h rude) Interrupts() <-chan engine.Interrupt {
	if h.in == "Interrupts" {
		panic(h.in)
	}
	return nil
}

func TestAHostThatPanicsWhenItIsAskedFailsNoCaller(t *testing.T) {
	for _, in := range []string{"Listening", "Interrupts"} {
		t.Run(in, func(t *testing.T) {
			var w works
			kid := looping(t, script{message.Assistant("", call("k", "pay", `{}`)), message.Assistant("paid")}, w.tool("pay"))
			eng := looping(t, script{message.Assistant("", gives("c1", "pay"), background("c2", "pay"), call("c3", "pay", `{}`)), message.Assistant("end"), message.Assistant("end")}, task(t, kid), w.tool("pay"))
			host := agent.WithEngineHost(rude{in: in})
			if res := run(t, agent.Agent{}, eng, asking("s", "go"), host); res.Text() != "end" {
				t.Errorf("%+v", res)
			}
			if total, _ := w.total(); total != 3 {
				t.Errorf("%d payments", total)
			}
			if res, err := support(t, w.tool("pay")).Run(t.Context(), asking("s", "go"), host); err != nil || res.Text() != "end" {
				t.Errorf("%+v %v", res, err)
			}
			store := journal.Memory()
			parked(t, store)
			if res := resume(t, agent.Agent{}, saying(t, "hi"), "s", host, agent.WithJournal(store)); res.Text() != "hi" {
				t.Errorf("%+v", res)
			}
		})
	}
}

// mute is an engine that panics when it is asked what it can do.
type mute struct{ engine.Engine }

func (mute) Capabilities() engine.Capabilities { panic("capabilities") }

func TestAnEngineThatPanicsWhenItIsAskedFailsNoCaller(t *testing.T) {
	eng, store := mute{saying(t, "hi")}, journal.Memory()
	parked(t, store)
	n := len(read(t, store, "s"))
	for name, f := range map[string]func() error{
		"run": func() error {
			return second(agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store)))
		},
		"resume": func() error {
			return second(agent.Resume(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store)))
		},
		"team": func() error {
			return second(team(t, 0, agent.Member{Agent: agent.Agent{ID: "a"}, Engine: eng}).Run(t.Context(), asking("s", "go"), agent.WithJournal(store)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("the panic came through: %v", p)
				}
			}()
			if err := f(); !errdefs.Internal.Is(err) || !strings.Contains(err.Error(), "capabilities") || len(read(t, store, "s")) != n {
				t.Error(err)
			}
		})
	}
}

func TestAChannelWhoseNameIsNoTextIsOnNoBoard(t *testing.T) {
	store := journal.Memory()
	seed := agent.WithBoardSeed(func(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
		b := agent.BoardWith(message.History{}, req)
		b.Append("\xff", message.User("aside"))
		return b, nil
	})
	err := second(agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), asking("s", "go"), agent.WithJournal(store), seed))
	if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), `"\xff"`) || len(read(t, store, "s")) > 0 {
		t.Error(err, kinds(read(t, store, "s")))
	}
}

// A call whose result comes while the engine looks at what goes on in the background is not made again.
func TestWhatHasEndedInTheBackgroundIsNotStartedAgain(t *testing.T) {
	for name, end := range map[string]error{"with a result": nil, "parked": engine.InterruptedError{}} {
		b, runs := engine.NewBackground(t.Context(), engine.NoopHost{}), 0
		for range 2 {
			b.Start("c1", func(context.Context) error { runs++; return end })
			_ = b.Wait(t.Context(), engine.NoopHost{}, func() bool { return false }) // until nothing runs
		}
		if b.End(); runs != 1 {
			t.Errorf("%s: it ran %d times", name, runs)
		}
	}
}

// A process that was away as long as its lease lasts does not begin a run that another one has begun meanwhile under the same id: its calls would have keys that others had.
func TestARunThatWasBegunElsewhereMeanwhileIsNotBegunAgain(t *testing.T) {
	for name, over := range map[string]bool{"and is under way": false, "and has ended": true} {
		t.Run(name, func(t *testing.T) {
			store := disk{journal.Memory()}
			var w works
			eng := looping(t, script{message.Assistant("hi"), message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
			run(t, agent.Agent{}, eng, asking("s", "before"), agent.WithJournal(store))
			req := asking("s", "go")
			req.RunID = "r"
			late := &behindHand{Store: store, first: func() {
				stop := agent.WithJournal(store)
				if !over {
					stop = agent.WithJournal(&dyingAt{Store: store, match: finished("c1")})
				}
				res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, req, stop)
				if over && (err != nil || res.Text() != "end") {
					t.Errorf("%+v, %v", res, err)
				}
			}}
			res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, req, agent.WithJournal(late))
			if !errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), "has a run r already") || res != nil {
				t.Errorf("%+v, %v", res, err)
			}
			if ran, most := w.total(); ran != 1 || most != 1 {
				t.Errorf("pay ran %d times, %d with one key", ran, most)
			}
		})
	}
}

// behindHand is a store in which something else happens before the first append, and that knows no leases.
type behindHand struct {
	journal.Store
	first func()
}

func (b *behindHand) Lease(context.Context, string, string, time.Time) error { return nil }

func (b *behindHand) Append(ctx context.Context, s string, at int64, es ...journal.Entry) error {
	if f := b.first; f != nil {
		b.first = nil
		f()
	}
	return b.Store.Append(ctx, s, at, es...)
}
