package temporal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// crew are worker processes.
type crew struct {
	t       *testing.T
	env     []string
	members []*exec.Cmd
}

func (c *crew) hire() {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	_, _ = bufio.NewReader(out).ReadString('\n')
	c.members = append(c.members, cmd)
}

// kill kills one, and hires another.
func (c *crew) kill() {
	i := rand.IntN(len(c.members))
	_ = c.members[i].Process.Kill()
	_ = c.members[i].Wait()
	c.members = append(c.members[:i], c.members[i+1:]...)
	c.hire()
}

func (c *crew) dismiss() {
	for _, m := range c.members {
		_ = m.Process.Kill()
		_ = m.Wait()
	}
}

// Twenty runs of twenty steps go on while workers are killed at random, thirty times, and the server once. Each of them ends, and no call that has an effect is made twice.
func TestWorkersAreKilled(t *testing.T) {
	runs, kills := 20, 30
	if testing.Short() {
		runs, kills = 4, 5
	}
	server := devserver.Start(t)
	dsn := pgtest.DSN(t)
	store, err := postgres.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	ledger := filepath.Join(t.TempDir(), "ledger")
	c := &crew{t: t, env: []string{"PAWL_WORKER=" + server.Address, "PAWL_DSN=" + dsn, "PAWL_LEDGER=" + ledger}}
	for range 3 {
		c.hire()
	}
	t.Cleanup(c.dismiss)
	m, err := laborer("laborer", ledger, 20)
	if err != nil {
		t.Fatal(err)
	}
	eng := temporal.NewEngine(server.Client(t), m.Engine)
	var all sync.WaitGroup
	began := time.Now()
	unknown := make([]int, runs)
	for i := range runs {
		all.Go(func() {
			res, err := agent.Run(t.Context(), m.Agent, eng, agent.Request{ContextID: fmt.Sprint("s", i), Message: message.User("go")}, agent.WithJournal(store))
			if err != nil || res.Err != nil || res.Text() != "done" {
				t.Errorf("run %d: %v, %+v", i, err, res)
				return
			}
			for _, m := range res.Messages {
				for r := range message.Of[message.ToolResult](m) {
					if strings.Contains(r.Content, "unknown") {
						unknown[i]++
					}
				}
			}
		})
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	killed := 0
	for done := false; !done; {
		select {
		case <-over:
			done = true
		case <-time.After(time.Duration(200+rand.IntN(600)) * time.Millisecond):
			if killed < kills {
				if killed++; killed == kills/2 {
					server.Kill()
					server.Again(t)
				}
				c.kill()
			}
		}
	}
	b, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	times, repeated := map[string]int{}, 0
	for line := range strings.Lines(string(b)) {
		if times[line]++; times[line] > 1 && strings.HasPrefix(line, "work ") {
			repeated++
		}
	}
	lost := 0
	for _, n := range unknown {
		lost += n
	}
	t.Logf("%v: %d kills, %d calls, repeated non-idempotent: %d, unknown: %d", time.Since(began).Round(time.Second), killed, len(times), repeated, lost)
	if repeated > 0 || killed < kills {
		t.Errorf("repeated non-idempotent: %d, after %d kills", repeated, killed)
	}
	for i := range runs {
		log, err := journal.Open(t.Context(), store, fmt.Sprint("s", i))
		if err != nil {
			t.Fatal(err)
		}
		if st := log.State(); st.Status != "completed" || st.Messages.Len() != 42 {
			t.Errorf("session %d: %s, %d messages", i, st.Status, st.Messages.Len())
		}
	}
}

// asked is a host that says when it is asked, and answers when it is told to.
type asked struct {
	engine.NoopHost
	came   chan string
	answer chan bool
}

func (a asked) AskUser(ctx context.Context, p engine.Prompt) (engine.Reply, error) {
	a.came <- p.ID
	select {
	case yes := <-a.answer:
		return engine.Reply{Answered: journal.Answered{Approved: yes}}, nil
	case <-ctx.Done():
		return engine.Reply{}, ctx.Err()
	}
}

// A person is asked; then the program that asked, all workers and the server die. Whoever goes on with the run asks again, and it goes on where it was.
func TestAnApprovalAfterEverythingDied(t *testing.T) {
	server := devserver.Start(t)
	dsn := pgtest.DSN(t)
	ledger := filepath.Join(t.TempDir(), "ledger")
	c := &crew{t: t, env: []string{"PAWL_WORKER=" + server.Address, "PAWL_DSN=" + dsn, "PAWL_LEDGER=" + ledger}}
	c.hire()
	t.Cleanup(func() { c.dismiss() })
	m, err := laborer("careful", ledger, 2, tool.RequiresApproval)
	if err != nil {
		t.Fatal(err)
	}
	open := func() journal.Store {
		store, err := postgres.Open(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return store
	}
	before := asked{came: make(chan string, 9), answer: make(chan bool)}
	ctx, die := context.WithCancelCause(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := agent.Run(ctx, m.Agent, temporal.NewEngine(server.Client(t), m.Engine), agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(open()), agent.WithEngineHost(before))
		gone <- err
	}()
	<-before.came
	c.dismiss()
	c.members = nil
	die(engine.ErrLeft) // as a process does that dies: nothing is closed, nothing cancelled
	if err := <-gone; err != nil && !errors.Is(err, engine.ErrLeft) {
		t.Fatal(err)
	}
	server.Kill()
	server.Again(t)
	c.hire()
	after := asked{came: make(chan string, 9), answer: make(chan bool, 2)}
	after.answer <- true
	after.answer <- true
	res, err := agent.Resume(t.Context(), m.Agent, temporal.NewEngine(server.Client(t), m.Engine), "s", agent.WithJournal(open()), agent.WithEngineHost(after), agent.WithWait())
	if err != nil || res.Err != nil || res.Text() != "done" {
		t.Fatal(err, res)
	}
	b, _ := os.ReadFile(ledger)
	if n := strings.Count(string(b), "work "); n != 2 {
		t.Errorf("the tool ran %d times: %s", n, b)
	}
}
