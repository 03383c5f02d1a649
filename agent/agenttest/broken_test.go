package agenttest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/agenttest"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/broken"
	"github.com/pawl-dev/pawl/message"
)

func deciders(f agent.DeciderFunc) func(*testing.T) {
	return func(t *testing.T) { agenttest.Decider(t, func(*testing.T) agent.Decider { return f }) }
}

func finders(f func(hs []agent.Handoff) agent.Decider) func(*testing.T) {
	return func(t *testing.T) {
		agenttest.HandoffDecider(t, func(_ *testing.T, hs []agent.Handoff) agent.Decider { return f(hs) })
	}
}

func seeders(make func() agent.Seeder) func(*testing.T) {
	return func(t *testing.T) { agenttest.Seeder(t, func(*testing.T) agent.Seeder { return make() }) }
}

func committers(make func() *archive) func(*testing.T) {
	return func(t *testing.T) {
		agenttest.Committer(t, func(*testing.T) agenttest.Committing { return make().committing() })
	}
}

func observers(make func() agent.Observer) func(*testing.T) {
	return func(t *testing.T) { agenttest.Observer(t, func(*testing.T) agent.Observer { return make() }) }
}

// The defects below are those of a public system of the same shape, numbered as they were found there, and what else breaks the contract. Of the first four only the first
// is one of a piece; the others were of the run itself, and what stands here is the piece that would bring the same about:
//
//	| 2 | history that was seeded, and ends in an assistant's words, counts as new | agent.Run counts from the seed: TestOnlyWhatTheRunSaidIsNew; here: a seeder that ends so |
//	| 3 | a decider's error leaves the run committed                               | agent.Run fails closed: agent has the test; here: a decider that commits by itself      |
//	| 4 | a seeder that fails on a further attempt loses the Result and the end    | agent.Run keeps both: agent has the test; here: a seeder that works once              |
var defects = map[string]broken.Piece{
	"1: handoffs are looked for in the assistant's last words": {
		Run: finders(func(hs []agent.Handoff) agent.Decider {
			return agent.DeciderFunc(func(ctx context.Context, info agent.RunInfo, req *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
				tail := *res
				for i, m := range slices.Backward(tail.Messages) {
					if m.Role() != message.RoleAssistant {
						tail.Messages = tail.Messages[i+1:]
						break
					}
				}
				return agent.HandoffDecider(hs).BeforeFinalize(ctx, info, req, &tail)
			})
		}),
		Fails: []string{"a call, its result, and words after it", "a call, and its result at the end", "a call in the middle of others"},
	},
	"1: a call counts whatever came of it": {
		Run: finders(func(hs []agent.Handoff) agent.Decider {
			return agent.DeciderFunc(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
				for _, m := range res.Messages {
					for _, c := range m.ToolCalls() {
						for _, h := range hs {
							if c.Name == h.ToolName || c.Name == agent.DefaultHandoffToolName(h.ToAgentID) {
								return agent.FinalizeDecision{Reason: agent.HandoffFinalizeReason + h.ToAgentID, State: map[string]any{agent.HandoffStateKey: agent.HandoffEvent{ToAgentID: h.ToAgentID}}}, nil
							}
						}
					}
				}
				return agent.FinalizeDecision{}, nil
			})
		}),
		Fails: []string{"the second of two calls", "a call that failed", "a call that is not open", "a run that did not complete"},
	},
	"2: the seed ends in an assistant's words": {
		Run: seeders(func() agent.Seeder {
			return func(context.Context, agent.RunInfo, *agent.Request) (*engine.Board, error) {
				b := engine.NewBoard(engine.Snapshot{})
				b.Append(engine.MainChannel, message.User("hello"), message.Assistant("hello"))
				return b, nil
			}
		}),
		Fails: []string{"the board has the request's message, behind a valid history"},
	},
	"3: a decider commits by itself, and fails": {
		Run: deciders(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
			res.Committed = true
			return agent.FinalizeDecision{}, errdefs.Internal.Errorf("the judge is ill")
		}),
		Fails: []string{"it changes nothing that it is given"},
	},
	"4: a seeder works once": {
		Run: seeders(func() agent.Seeder {
			used := make(chan struct{}, 1)
			used <- struct{}{}
			return func(ctx context.Context, info agent.RunInfo, req *agent.Request) (*engine.Board, error) {
				select {
				case <-used:
					return remembers(ctx, info, req)
				default:
					return nil, errdefs.NotAvailable.Errorf("the transcript was read already")
				}
			}
		}),
		Fails: []string{"each call gives a board of its own", "runs call it at the same time"},
	},
	"22: a seeder gives one board again": {
		Run: seeders(func() agent.Seeder {
			_, req := agent.RunInfo{}, &agent.Request{Message: message.User("where is my money?")}
			b := agent.BoardWith(message.History{}, req)
			return func(context.Context, agent.RunInfo, *agent.Request) (*engine.Board, error) { return b, nil }
		}),
		Fails: []string{"each call gives a board of its own"},
	},
	"22: a seeder's boards share the vars": {
		Run: seeders(func() agent.Seeder {
			var vars map[string]any
			return func(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
				if vars == nil {
					vars = map[string]any{}
				}
				b := agent.BoardWith(message.History{}, req)
				vars["calls"] = len(vars)
				for name, v := range vars {
					b.SetVar(name, v)
				}
				vars["more"] = true
				return b, nil
			}
		}),
		Fails: []string{"each call gives a board of its own"},
	},
	"a seeder gives nothing": {
		Run: seeders(func() agent.Seeder {
			return func(context.Context, agent.RunInfo, *agent.Request) (*engine.Board, error) { return nil, nil }
		}),
		Fails: []string{"it takes the least", "it returns when the context has ended", "each call gives a board"},
	},
	"a seeder cuts calls from their results": {
		Run: seeders(func() agent.Seeder {
			return func(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
				return agent.BoardWith(message.NewHistory(message.Results(message.ToolResult{Call: "c0", Content: "ok"})), req), nil
			}
		}),
		Fails: []string{"the board has the request's message, behind a valid history"},
	},
	"a seeder notes itself in the request": {
		Run: seeders(func() agent.Seeder {
			return func(ctx context.Context, info agent.RunInfo, req *agent.Request) (*engine.Board, error) {
				if req.Inputs != nil {
					req.Inputs["seeded"] = true
				}
				return remembers(ctx, info, req)
			}
		}),
		Fails: []string{"the request stays as it is"},
	},

	"a decider writes into the Result": {
		Run: deciders(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
			if res.State != nil {
				res.State[agent.HandoffStateKey] = "somebody"
			}
			return agent.FinalizeDecision{}, nil
		}),
		Fails: []string{"it changes nothing that it is given"},
	},
	"a decider gives the Result's own State": {
		Run: deciders(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
			return agent.FinalizeDecision{State: res.State}, nil
		}),
		Fails: []string{"it changes nothing that it is given"},
	},
	"a decider takes for granted that there is a reply": {
		Run: deciders(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
			return agent.FinalizeDecision{DiscardOutput: res.Messages[0].Blank()}, nil
		}),
		Fails: []string{"it takes the least that a run gives"},
	},
	"a decider waits for a context that has ended to end again": {
		Run: deciders(func(ctx context.Context, _ agent.RunInfo, _ *agent.Request, _ *agent.Result) (agent.FinalizeDecision, error) {
			if ctx.Err() != nil {
				select {}
			}
			return agent.FinalizeDecision{}, nil
		}),
		Fails: []string{"it returns when the context has ended"},
	},
	"a decider judges by how often it was asked": {
		Run: func(t *testing.T) {
			agenttest.Decider(t, func(*testing.T) agent.Decider {
				turn := make(chan bool, 1)
				turn <- false
				return agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
					odd := <-turn
					turn <- !odd
					return agent.FinalizeDecision{DiscardOutput: odd}, nil
				})
			})
		},
		Fails: []string{"it has something to say to every status, and the same each time"},
	},

	"an observer tidies the Result": {
		Run:   observers(func() agent.Observer { return tidy{} }),
		Fails: []string{"it changes nothing that it is given"},
	},
	"an observer waits for who reads": {
		Run:   observers(func() agent.Observer { return waiting{c: make(chan agent.Status)} }),
		Fails: []string{"it takes the least", "it returns when the context has ended", "it sees a run that is done again"},
	},

	"a committer stores as often as it is called": {
		Run:   committers(func() *archive { return &archive{again: true} }),
		Fails: []string{"a run is stored once", "runs are committed at the same time"},
	},
	"a committer swallows its error": {
		Run:   committers(func() *archive { return &archive{quiet: true} }),
		Fails: []string{"an error surfaces"},
	},
	"a committer marks the Result": {
		Run:   committers(func() *archive { return &archive{marks: true} }),
		Fails: []string{"it changes nothing that it is given"},
	},
}

type tidy struct{ agent.BaseObserver }

func (tidy) OnRunEnd(_ context.Context, _ agent.RunInfo, res *agent.Result) {
	if !res.Committed {
		res.Messages = nil
	}
}

type waiting struct {
	agent.BaseObserver
	c chan agent.Status
}

func (w waiting) OnRunEnd(_ context.Context, _ agent.RunInfo, res *agent.Result) { w.c <- res.Status }

func TestTheSuitesFailOnBrokenPieces(t *testing.T) {
	if broken.IsInner() {
		agenttest.ShortenWaits()
	}
	broken.Pieces(t, defects)
}
