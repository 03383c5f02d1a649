package crashtest_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/internal/crashtest"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

// The matrix is worth what it notices. Each of these breaks one promise.
func TestTheMatrixNotices(t *testing.T) {
	t.Parallel()
	if !crashtest.CanDie {
		t.Skip("there is no SIGKILL on this system")
	}
	tier.SkipQuick(t, "it needs all points of many scenarios")
	pay := func(p *crashtest.Process) tool.Tool { return p.Tool("pay") }
	cases := map[string]struct {
		crashtest.Scenario
		repeated, lost bool
		err            string
		says           string // a part of one of the problems
		sample         bool   // played in the middle tier too
	}{
		"a record that differs from what was done": {Scenario: crashtest.Scenario{Build: paying(pay), Open: forging}, lost: true, says: "the replay of session main differs"},
		"a call that runs again though a person is to be asked": {
			Scenario: crashtest.Scenario{Build: paying(pay), Unknown: engine.UnknownAsk, Options: func(*crashtest.Process) []agent.RunOption {
				return []agent.RunOption{agent.WithUnknown(engine.UnknownRetry)}
			}}, repeated: true,
		},
		"a call that is reported though it is to run again": {
			Scenario: crashtest.Scenario{Build: paying(pay), Unknown: engine.UnknownRetry, Options: func(*crashtest.Process) []agent.RunOption {
				return []agent.RunOption{agent.WithUnknown(engine.UnknownReport)}
			}}, lost: true,
		},
		"steering that is said at each try": {
			Scenario: crashtest.Scenario{Build: paying(func(p *crashtest.Process) tool.Tool {
				return tool.Func("pay", "", func(ctx context.Context, _ struct{}) (string, error) {
					at, _ := engine.InsideOf(ctx)
					return "said", agent.Steer(ctx, at.Run.Log.Store(), at.Run.Session, message.User("faster"))
				}, tool.Idempotent)
			})}, lost: true,
		},
		"a subagent's tool that writes and says that it reads": {
			Scenario: crashtest.Scenario{Build: giving(func(p *crashtest.Process) tool.Tool {
				return tool.Func("pay", "", func(ctx context.Context, _ struct{}) (string, error) {
					return "paid", p.Effect(ctx, false)
				}, tool.ReadOnly)
			})}, repeated: true,
		},
		"a subagent's transcript that depends on the process": {
			Scenario: crashtest.Scenario{Build: giving(func(p *crashtest.Process) tool.Tool {
				return tool.Func("pay", "", func(ctx context.Context, _ struct{}) (string, error) {
					return fmt.Sprint("paid by ", os.Getpid()), p.Effect(ctx, false)
				})
			})}, lost: true, says: "the transcript of main/c1 ",
		},
		"an engine that does not journal what it does": {
			Scenario: crashtest.Scenario{Build: func(p *crashtest.Process) (agent.Agent, engine.Engine, error) {
				eng, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("the end"))})
				return agent.Agent{}, hasty{eng, pay(p)}, err
			}}, repeated: true,
		},
		"a store that reports what it has not written": {
			Scenario: crashtest.Scenario{Build: paying(pay), Open: late(journal.ToolFinished{})}, lost: true, sample: true,
		},
		"a start that is on record behind the effect": {Scenario: crashtest.Scenario{Build: paying(pay), Open: late(journal.ToolStarted{})}, repeated: true},
		"a reply that is not on record at once":       {Scenario: crashtest.Scenario{Build: paying(pay), Open: late(journal.ModelFinished{})}, lost: true},
		"a tool that runs again but has another key": {
			Scenario: crashtest.Scenario{Build: paying(func(p *crashtest.Process) tool.Tool {
				return tool.Func("pay", "", func(ctx context.Context, _ struct{}) (string, error) {
					c := tool.FromContext(ctx)
					c.Key += fmt.Sprint(os.Getpid())
					return "paid", p.Effect(tool.WithCall(ctx, c), true)
				}, tool.Idempotent)
			})}, repeated: true,
		},
		"a tool that writes and says that it reads": {
			Scenario: crashtest.Scenario{Build: paying(func(p *crashtest.Process) tool.Tool {
				return tool.Func("pay", "", func(ctx context.Context, _ struct{}) (string, error) {
					return "paid", p.Effect(ctx, false)
				}, tool.ReadOnly)
			})}, repeated: true, sample: true,
		},
		"a transcript that depends on the process": {
			Scenario: crashtest.Scenario{Build: paying(func(p *crashtest.Process) tool.Tool {
				return tool.Func("pay", "", func(ctx context.Context, _ struct{}) (string, error) {
					return fmt.Sprint("paid by ", os.Getpid()), p.Effect(ctx, false)
				})
			})}, lost: true,
		},
		"a hook that runs twice for a verdict": {Scenario: crashtest.Scenario{Build: paying(pay), Runs: func(string) (map[string]int, error) {
			return map[string]int{"judge/": 20}, nil
		}}, repeated: true, says: "judge/ was run 20 times"},
		"a verdict that no hook was asked for": {Scenario: crashtest.Scenario{Build: paying(pay), Runs: func(string) (map[string]int, error) {
			return map[string]int{"judge/": 0}, nil
		}}, lost: true, says: "judge/ was run 0 times: it has 1 outcomes"},
		"another answer than the one wanted":   {Scenario: crashtest.Scenario{Build: paying(pay), Text: "something else"}, lost: true},
		"another status than the one wanted":   {Scenario: crashtest.Scenario{Build: paying(pay), Status: agent.StatusFailed}, lost: true},
		"a scenario that can't be built":       {Scenario: crashtest.Scenario{Build: broken}, err: "there is no engine today"},
		"points that are never the same twice": {Scenario: crashtest.Scenario{Build: wandering}, err: "is the scenario the same in every process?", sample: true},
		"a run that is interrupted for ever":   {Scenario: crashtest.Scenario{Build: interrupted}, err: "it takes more than"},
	}
	var scenarios []crashtest.Scenario
	for name, c := range cases {
		if !c.sample && !tier.All() {
			continue
		}
		c.Name = name
		if c.Text == "" {
			c.Text = "the end"
		}
		scenarios = append(scenarios, c.Scenario)
	}
	slices.SortFunc(scenarios, func(a, b crashtest.Scenario) int { return strings.Compare(a.Name, b.Name) })
	for name, got := range crashtest.Inspect(t, nil, scenarios...) {
		c := cases[name]
		if c.err != "" {
			if got.Err == nil || !strings.Contains(got.Err.Error(), c.err) {
				t.Errorf("%s: the error is %v: want %q", name, got.Err, c.err)
			}
			continue
		}
		if got.Err != nil || c.repeated && got.Repeated == 0 || c.lost && got.Lost == 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if !strings.Contains(strings.Join(got.Problems, "\n"), c.says) {
			t.Errorf("%s: nothing is said of %q: %q", name, c.says, got.Problems)
		}
		if len(got.Problems) > 0 && testing.Verbose() {
			t.Logf("%s: %s", name, got.Problems[0])
		}
	}
}

type builder = func(p *crashtest.Process) (agent.Agent, engine.Engine, error)

func paying(pay func(p *crashtest.Process) tool.Tool) builder {
	return func(p *crashtest.Process) (agent.Agent, engine.Engine, error) {
		m := scripted.New(scripted.Calls(scripted.Call{ID: "c1", Name: "pay"}), scripted.Text("the end"))
		eng, err := loop.New(loop.Config{Model: p.Model(m), Tools: []tool.Tool{pay(p)}})
		return agent.Agent{}, eng, err
	}
}

// giving is a run whose subagent pays.
func giving(pay func(p *crashtest.Process) tool.Tool) builder {
	return func(p *crashtest.Process) (agent.Agent, engine.Engine, error) {
		kid, err := loop.New(loop.Config{
			Model: p.Model(scripted.New(scripted.Calls(scripted.Call{ID: "k1", Name: "pay"}), scripted.Text("paid"))), Tools: []tool.Tool{pay(p)},
		})
		if err != nil {
			return agent.Agent{}, nil, err
		}
		task, err := p.Task([]agent.Subagent{{Agent: agent.Agent{ID: "kid"}, Engine: kid}})
		if err != nil {
			return agent.Agent{}, nil, err
		}
		m := scripted.New(scripted.Calls(scripted.Call{ID: "c1", Name: agent.TaskName, Input: `{"agent":"kid","prompt":"pay"}`}), scripted.Text("the end"))
		eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{task}})
		return agent.Agent{}, eng, err
	}
}

func broken(*crashtest.Process) (agent.Agent, engine.Engine, error) {
	return agent.Agent{}, nil, fmt.Errorf("there is no engine today")
}

func wandering(p *crashtest.Process) (agent.Agent, engine.Engine, error) {
	p.Point("in the case " + p.Dir())
	return paying(func(p *crashtest.Process) tool.Tool { return p.Tool("pay") })(p)
}

func interrupted(*crashtest.Process) (agent.Agent, engine.Engine, error) {
	return agent.Agent{}, parking{}, nil
}

// parking never comes to an end.
type parking struct{}

func (parking) Capabilities() engine.Capabilities { return engine.Capabilities{Resume: true} }

func (parking) Execute(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
	return b, engine.InterruptedError{Interrupt: engine.Interrupt{Cause: engine.CauseHostShutdown}}
}

// hasty runs its tool without telling the journal.
type hasty struct {
	*loop.Engine
	tool tool.Tool
}

func (h hasty) Execute(ctx context.Context, run engine.Run, host engine.Host, b *engine.Board) (*engine.Board, error) {
	if _, err := h.tool.Execute(tool.WithCall(ctx, tool.Call{ID: "c1", Name: "pay", Key: run.ID}), []byte(`{}`)); err != nil {
		return b, err
	}
	return h.Engine.Execute(ctx, run, host, b)
}

// forging is a store that writes another input than the tool gets.
func forging(ctx context.Context, dir string) (crashtest.Store, error) {
	s, err := crashtest.SQLite(ctx, dir)
	return forger{s}, err
}

type forger struct{ crashtest.Store }

func (s forger) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	entries = slices.Clone(entries)
	for i, e := range entries {
		if d, ok := e.Data.(journal.ToolStarted); ok {
			d.Call.Input = `{"note":"forged"}`
			entries[i].Data = d
		}
	}
	return s.Store.Append(ctx, session, after, entries...)
}

// late holds back appends with an entry of a kind until the next one comes.
func late(kind journal.Data) crashtest.Opener {
	return func(ctx context.Context, dir string) (crashtest.Store, error) {
		s, err := crashtest.SQLite(ctx, dir)
		return &lateStore{Store: s, kind: kind.Kind()}, err
	}
}

type lateStore struct {
	crashtest.Store
	kind journal.Kind
	held []journal.Entry
}

func (s *lateStore) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	hold := s.held == nil && slices.ContainsFunc(entries, func(e journal.Entry) bool { return e.Data.Kind() == s.kind })
	after -= int64(len(s.held))
	entries = append(s.held, entries...)
	if s.held = nil; hold {
		s.held = slices.Clone(entries)
		return nil
	}
	return s.Store.Append(ctx, session, after, entries...)
}
