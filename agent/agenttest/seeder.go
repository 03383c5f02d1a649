package agenttest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/message"
)

// Seeder checks a seeder: each attempt gets a board of its own, with a transcript that every provider takes, and the request's message in it, last of what people said.
func Seeder(t *testing.T, factory func(t *testing.T) agent.Seeder) {
	t.Helper()
	for name, run := range map[string]func(t *testing.T, seed agent.Seeder){
		"the board has the request's message, behind a valid history": func(t *testing.T, seed agent.Seeder) {
			info, req, _ := given(agent.StatusCompleted)
			talk := seeded(t, seed, info, req).Channel(engine.MainChannel)
			if !same(message.Repair(talk), talk) {
				t.Errorf("the transcript is not valid: calls without results, results without calls, or messages that say nothing: %s", text(talk))
			}
			var last message.Message
			for _, m := range talk.All() {
				if m.Role() == message.RoleUser {
					last = m
				}
			}
			if last.IsZero() || !bytes.Equal(last.AppendJSON(nil), req.Message.AppendJSON(nil)) || talk.Last().Role() == message.RoleAssistant {
				t.Errorf("the request's message is not the last that people said: %s", text(talk))
			}
		},
		"each call gives a board of its own": func(t *testing.T, seed agent.Seeder) {
			info, req, _ := given(agent.StatusCompleted)
			first := seeded(t, seed, info, req)
			before := seen(t, req, &agent.Result{LastBoard: first})
			first.Append(engine.MainChannel, message.Assistant("of the first attempt"))
			first.SetVar("n", "of the first attempt")
			first.SetVar("new", "of the first attempt")
			second := seeded(t, seed, info, req)
			if first == second {
				t.Fatal("the second call gave the board of the first")
			}
			if after := seen(t, req, &agent.Result{LastBoard: second}); after != before {
				t.Errorf("what the first attempt did is on the second board:\n now %s\n was %s", after, before)
			}
		},
		"the request stays as it is": func(t *testing.T, seed agent.Seeder) {
			info, req, _ := given(agent.StatusCompleted)
			stays(t, "the seeder, or its board,", req, nil, func() {
				b := seeded(t, seed, info, req)
				b.SetVar("n", 2)
				b.SetVar("new", true)
			})
		},
		"it takes the least that a run gives": func(t *testing.T, seed agent.Seeder) {
			soon(t, "the seeder", func() {
				if b, err := seed(t.Context(), agent.RunInfo{AgentID: "a", RunID: "r", ContextID: "r"}, &agent.Request{Message: message.User("hello")}); err == nil && b == nil {
					t.Error("it gave no board, and no error")
				}
			})
		},
		"it returns when the context has ended": func(t *testing.T, seed agent.Seeder) {
			info, req, _ := given(agent.StatusCompleted)
			soon(t, "the seeder", func() {
				if b, err := seed(ended(t), info, req); err == nil && b == nil {
					t.Error("it gave no board, and no error")
				}
			})
		},
		"runs call it at the same time": func(t *testing.T, seed agent.Seeder) {
			boards := make([]*engine.Board, together)
			atOnce(t, "the seeder", func(i int) {
				info, req, _ := given(agent.StatusCompleted)
				info.RunID = fmt.Sprint("run-", i)
				b, err := seed(t.Context(), info, req)
				if err != nil || b == nil {
					t.Errorf("it gave %v, %v", b, err)
					return
				}
				b.SetVar("mine", i)
				boards[i] = b
			})
			for i, b := range boards {
				if b != nil && !equal(b.Var("mine"), i) {
					t.Errorf("run %d found the var of another run on its board: %v", i, b.Var("mine"))
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, factory(t)) })
	}
}

func seeded(t *testing.T, seed agent.Seeder, info agent.RunInfo, req *agent.Request) (b *engine.Board) {
	t.Helper()
	var err error
	soon(t, "the seeder", func() { b, err = seed(t.Context(), info, req) })
	if err != nil || b == nil {
		t.Fatalf("the seeder gave the board %v and the error %v", b, err)
	}
	return b
}

func same(a, b message.History) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i, m := range a.All() {
		if m != b.At(i) {
			return false
		}
	}
	return true
}

func text(h message.History) string {
	var b []byte
	for _, m := range h.All() {
		b = append(m.AppendJSON(b), '\n')
	}
	return string(b)
}
