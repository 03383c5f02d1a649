package temporal_test

import (
	"bufio"
	"context"
	"encoding/json"
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
	"github.com/pawl-dev/pawl/internal/testkit/tier"
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

// Twenty runs of twenty steps go on while workers are killed at random, thirty times, and the
// server once. Each of them ends, and no call that has an effect is made twice. The middle tier
// has fewer runs and kills.
func TestWorkersAreKilled(t *testing.T) {
	t.Parallel()
	runs, kills := 20, 30
	if !tier.All() {
		runs, kills = 5, 8
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
	for i := range runs {
		all.Go(func() {
			res, err := agent.Run(t.Context(), m.Agent, eng, agent.Request{ContextID: fmt.Sprint("s", i), Message: message.User("go")}, agent.WithJournal(store))
			if err != nil || res.Err != nil || res.Text() != "done" {
				t.Errorf("run %d: %v, %+v", i, err, res)
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
	if repeated > 0 || killed < kills {
		t.Errorf("repeated non-idempotent: %d, after %d kills", repeated, killed)
	}
	local := transcripts(t, localStore(t, m), "s", "s/c10")
	lost := 0
	for i := range runs {
		session := fmt.Sprint("s", i)
		for n, got := range transcripts(t, store, session, session+"/c10") {
			lost += alike(t, fmt.Sprintf("session %d, transcript %d", i, n), local[n], got)
		}
	}
	t.Logf("%v: %d kills, %d calls, repeated non-idempotent: %d, unknown: %d", time.Since(began).Round(time.Second), killed, len(times), repeated, lost)
	if lost > killed {
		t.Errorf("%d outcomes are unknown after %d kills", lost, killed)
	}
}

// localStore has a run as it is in one process that nobody kills.
func localStore(t *testing.T, m temporal.Member) journal.Store {
	store := journal.Memory()
	res, err := agent.Run(t.Context(), m.Agent, m.Engine, agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store))
	if err != nil || res.Text() != "done" {
		t.Fatal(err, res)
	}
	return store
}

// transcripts are what is on record of completed sessions.
func transcripts(t *testing.T, store journal.Store, sessions ...string) (all [][]string) {
	for _, s := range sessions {
		log, err := journal.Open(t.Context(), store, s)
		if err != nil {
			t.Fatal(err)
		}
		st := log.State()
		if st.Status != "completed" {
			t.Errorf("session %s: %q", s, st.Status)
		}
		var lines []string
		for _, m := range st.Messages.All() {
			b, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(b))
		}
		all = append(all, lines)
	}
	return all
}

// alike compares transcripts. Only the result of a call that somebody was killed at may be another one: it is unknown.
func alike(t *testing.T, what string, want, got []string) (unknown int) {
	if len(got) != len(want) {
		t.Errorf("%s has %d messages, want %d", what, len(got), len(want))
		return 0
	}
	for i := range want {
		switch {
		case got[i] == want[i]:
		case strings.Contains(want[i], "did step") && strings.Contains(got[i], "unknown"):
			unknown++
		default:
			t.Errorf("%s, message %d: %s, want %s", what, i, got[i], want[i])
		}
	}
	return unknown
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
	t.Parallel()
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

// The database goes away twice while runs go on, and comes back. They go on, too.
func TestTheDatabaseRestarts(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	c := devserver.Shared(t).Client(t)
	store, err := postgres.Open(t.Context(), db.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	ledger := filepath.Join(t.TempDir(), "ledger")
	m, err := laborer("laborer", ledger, 12)
	if err != nil {
		t.Fatal(err)
	}
	works(t, c, store, temporal.Queue, m)
	var all []*temporal.Handle
	for i := range 8 {
		all = append(all, begin(t, c, temporal.Order{Agent: "laborer", Session: fmt.Sprint("s", i), Message: message.User("go")}))
	}
	for range 2 {
		time.Sleep(500 * time.Millisecond)
		db.Kill(t)
		time.Sleep(time.Second)
		db.Restart(t)
	}
	for _, h := range all {
		if d := wait(t, h); d.Text != "done" {
			t.Errorf("%+v: %v", d, d.Err())
		}
	}
	b, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(b)) {
		if times[line]++; times[line] > 1 && strings.HasPrefix(line, "work ") {
			t.Errorf("repeated: %s", line)
		}
	}
	local, lost := transcripts(t, localStore(t, m), "s", "s/c10"), 0
	for _, h := range all {
		for n, got := range transcripts(t, store, h.Session, h.Session+"/c10") {
			lost += alike(t, fmt.Sprintf("session %s, transcript %d", h.Session, n), local[n], got)
		}
	}
	t.Logf("%d calls, %d outcomes unknown", len(times), lost)
}
