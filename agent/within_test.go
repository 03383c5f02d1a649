package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// A name that a session has which the store does not show is taken, and nobody waits for it to be free.
func TestANameOfAnotherProjectsSessionIsTaken(t *testing.T) {
	mem := journal.Memory()
	theirs := []agent.RunOption{agent.WithJournal(mem), agent.WithDir("/a")}
	eng := looping(t, script{message.Assistant("done")})
	if _, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), theirs...); err != nil {
		t.Fatal(err)
	}
	before := transcript(t, mem, "s")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ours := []agent.RunOption{agent.WithJournal(journal.Within(mem, "/b")), agent.WithDir("/b")}
	seeds := agent.WithBoardSeed(once())
	for name, run := range map[string]func(context.Context) error{
		"a run": func(ctx context.Context) error {
			return errOf(agent.Run(ctx, agent.Agent{ID: "a"}, eng, asking("s", "go"), ours...))
		},
		"one that waits": func(ctx context.Context) error {
			return errOf(agent.Run(ctx, agent.Agent{ID: "a"}, eng, asking("s", "go"), append(ours, agent.WithWait())...))
		},
		"a seeded one": func(ctx context.Context) error {
			return errOf(agent.Run(ctx, agent.Agent{ID: "a"}, eng, asking("s", "go"), append(ours, seeds)...))
		},
		"a team": func(ctx context.Context) error {
			return errOf(team(t, 0, member(t, "a", persona{message.Assistant("x")}, nil)).Run(ctx, asking("s", "go"), ours...))
		},
	} {
		if err := run(ctx); !errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), "another project") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := agent.Resume(ctx, agent.Agent{ID: "a"}, eng, "s", ours...); !errdefs.NotFound.Is(err) {
		t.Errorf("resumed: %v", err)
	}
	if after := transcript(t, mem, "s"); after != before {
		t.Errorf("the session has\n%s", after)
	}
}

func errOf(_ *agent.Result, err error) error { return err }

// What a run's tasks do, and theirs, is of its directory.
func TestTasksAreOfTheDirectoryOfTheRunThatGivesThem(t *testing.T) {
	mem := journal.Memory()
	store := journal.Within(mem, "/b")
	grandchild := looping(t, script{message.Assistant("deep")})
	child := looping(t, script{message.Assistant("", gives("c2", "deeper")), message.Assistant("in between")}, task(t, grandchild))
	eng := looping(t, script{message.Assistant("", gives("c1", "deep")), message.Assistant("done")}, task(t, child))
	if _, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store), agent.WithDir("/b")); err != nil {
		t.Fatal(err)
	}
	if text := transcript(t, store, "s"); !strings.Contains(text, "in between") {
		t.Errorf("it says\n%s", text)
	}
	below, err := journal.Tasks(t.Context(), store, "s")
	if err != nil || strings.Join(below, " ") != "s/c1/c2 s/c1" {
		t.Errorf("%q, %v", below, err)
	}
	n := 0
	for i, err := range mem.Sessions(t.Context(), journal.Query{}) {
		if n++; err != nil || i.Dir != "/b" {
			t.Errorf("%+v, %v", i, err)
		}
	}
	if n != 3 {
		t.Errorf("%d sessions", n)
	}
	// A name that another project has is taken for a task, too.
	other := journal.Within(mem, "/c")
	if err := mem.Append(t.Context(), "t/c1", 0, journal.Entry{Data: journal.RunStarted{Agent: "a", Owner: "o", Dir: "/b"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("t", "go"), agent.WithJournal(other), agent.WithDir("/c")); err != nil {
		t.Fatal(err)
	}
	if text := transcript(t, other, "t"); !strings.Contains(text, "another project") {
		t.Errorf("the model is told\n%s", text)
	}
}
