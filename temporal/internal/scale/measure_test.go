package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/raced"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
)

var update = flag.Bool("update", false, "write what was measured, and the tables of the page that come of it, anew")

// lab is one worker, its Temporal server and its database, with everything between them counted.
type lab struct {
	t      *testing.T
	server *devserver.Server
	client client.Client // of those who begin runs
	dsn    string        // of the database itself
	wire   *wire         // of the worker's store
	asked  *requests     // of the worker
	store  *postgres.Store
	db     *pgx.Conn
	n      int
	idle   uint64
}

// newLab starts a worker. Nothing that goes on by itself is counted: no leases are renewed in so short a time, and the server does not clean up.
func newLab(t *testing.T) *lab {
	t.Helper()
	dsn := pgtest.New(t).DSN(t)
	l := &lab{t: t, server: devserver.InMemory(t), asked: &requests{}, dsn: dsn}
	l.client = l.server.Client(t)
	before := held()
	tapped, w := tap(t, dsn)
	l.wire = w
	store, err := postgres.Open(t.Context(), tapped)
	must(t, err)
	l.store = store
	t.Cleanup(func() { _ = store.Close() })
	l.db, err = pgx.Connect(t.Context(), dsn)
	must(t, err)
	t.Cleanup(func() { _ = l.db.Close(context.Background()) })
	for _, sql := range []string{
		"ALTER TABLE pawl.entries SET (autovacuum_enabled = off)", "ALTER TABLE pawl.sessions SET (autovacuum_enabled = off)",
		"ALTER SYSTEM SET fsync = off",                                       // nothing is to survive, and no time is measured
		"ALTER SYSTEM SET full_page_writes = off", "SELECT pg_reload_conf()", // else the first change of a page after a checkpoint writes all of it, and there is no telling when
	} {
		_, err = l.db.Exec(t.Context(), sql)
		must(t, err)
	}
	c, err := dial(l.server.Address, l.asked)
	must(t, err)
	t.Cleanup(c.Close)
	worker, err := newWorker(c, store, temporal.Timing{Heartbeat: heartbeat}, 16)
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	l.leave(8, job{Steps: 1, Calls: 2, Tool: "read"}) // until everything is there: connections, and what they prepare
	l.idle = held() - before
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// request is the next one.
func (l *lab) request(j job) agent.Request {
	l.n++
	return agent.Request{ContextID: fmt.Sprintf("session-%06d", l.n), RunID: fmt.Sprintf("run-%06d", l.n), Message: message.User(j.prompt())}
}

// begin leaves a run to the workers.
func (l *lab) begin(r agent.Request) *temporal.Handle {
	l.t.Helper()
	h, err := temporal.Begin(l.t.Context(), l.client, temporal.Order{Agent: "coder", Session: r.ContextID, Run: r.RunID, Message: r.Message})
	must(l.t, err)
	return h
}

func (l *lab) end(h *temporal.Handle) {
	l.t.Helper()
	done, err := h.Wait(l.t.Context())
	must(l.t, err)
	if done.Status != agent.StatusCompleted {
		l.t.Fatalf("%+v", done)
	}
}

// leave leaves runs to the workers, and answers what they ask. It gives the ids of each one's workflows.
func (l *lab) leave(n int, j job) (ids [][]string) {
	l.t.Helper()
	var hs []*temporal.Handle
	for range n {
		r := l.request(j)
		h := l.begin(r)
		hs = append(hs, h)
		ids = append(ids, []string{"pawl-run/" + r.ContextID + "/" + r.RunID, l.path(r)})
	}
	for _, h := range hs {
		for range l.asks(j) {
			l.answers(h, l.awaited(h.Session))
		}
	}
	for _, h := range hs {
		l.end(h)
	}
	return ids
}

func (l *lab) path(r agent.Request) string { return "pawl/" + r.ContextID + "/" + r.RunID + "/1" }

func (l *lab) asks(j job) int {
	if j.Tool != "careful" {
		return 0
	}
	return j.Steps * j.Calls
}

// awaited waits until a session has a question.
func (l *lab) awaited(session string) journal.Pending {
	l.t.Helper()
	for {
		log, err := journal.Open(l.t.Context(), l.direct(), session)
		if err == nil && len(log.State().Pending) > 0 {
			return log.State().Pending[0]
		}
		time.Sleep(10 * time.Millisecond)
		must(l.t, l.t.Context().Err())
	}
}

var others sync.Map // stores of those who answer, by address

// direct is a store whose work is not counted.
func (l *lab) direct() *postgres.Store {
	if s, ok := others.Load(l.dsn); ok {
		return s.(*postgres.Store)
	}
	s, err := postgres.Open(context.Background(), l.dsn)
	must(l.t, err)
	others.Store(l.dsn, s)
	l.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (l *lab) answers(h *temporal.Handle, p journal.Pending) {
	l.t.Helper()
	must(l.t, h.Answer(l.t.Context(), journal.Answered{ID: p.ID, Approved: true}))
}

// wait has runs done by the workers and waits for each, in this process.
func (l *lab) wait(n int, j job) (ids [][]string) {
	l.t.Helper()
	m, err := member()
	must(l.t, err)
	for range n {
		r := l.request(j)
		res, err := agent.Run(l.t.Context(), m.Agent, temporal.NewEngine(l.client, m.Engine), r, agent.WithJournal(l.store))
		must(l.t, err)
		must(l.t, res.Err)
		ids = append(ids, []string{l.path(r)})
	}
	return ids
}

// runs is how many are measured of each kind.
const runs = 3

// stand is everything there is to count. Sizes of tables and indexes are those of their rows: pages come whole, and so few rows would fill them by chance.
type stand struct {
	said
	requests               float64
	entries                int
	tables, indexes, bytes float64
}

func (l *lab) stand() (s stand) {
	l.t.Helper()
	s.said = l.wire.now()
	for op, n := range l.asked.now() {
		if op != "RecordActivityTaskHeartbeat" {
			s.requests += float64(n)
		}
	}
	row := l.db.QueryRow(l.t.Context(), `SELECT (SELECT count(*) FROM pawl.entries),
		(SELECT coalesce(sum(pg_column_size(e.*) + 4), 0) FROM pawl.entries e) + (SELECT coalesce(sum((pg_column_size(s.*) + 4) / 0.7), 0) FROM pawl.sessions s),
		(SELECT count(*) * 28 / 0.9 FROM pawl.entries) + (SELECT coalesce(sum((20 + 16 + length(id)) / 0.9), 0) FROM pawl.sessions),
		pg_current_wal_insert_lsn() - '0/0'`)
	must(l.t, row.Scan(&s.entries, &s.tables, &s.indexes, &s.bytes))
	return s
}

// history counts what stands in a workflow's histories.
func (l *lab) history(id string, u *Unit) {
	l.t.Helper()
	it := l.client.GetWorkflowHistory(l.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	marked := map[int64]bool{}
	child := false
	for it.HasNext() {
		e, err := it.Next()
		must(l.t, err)
		u.Events++
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			u.Workflows++
			if child = e.GetWorkflowExecutionStartedEventAttributes().GetParentWorkflowExecution() != nil; !child { // a child's start was counted where it was asked for
				u.Actions++
			}
		case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
			u.Actions += 2
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			u.Activities++
			u.Actions++
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			u.Actions += int(e.GetActivityTaskStartedEventAttributes().GetAttempt()) - 1
		case enumspb.EVENT_TYPE_MARKER_RECORDED: // those of one task are one
			if task := e.GetMarkerRecordedEventAttributes().GetWorkflowTaskCompletedEventId(); !marked[task] {
				marked[task] = true
				u.Actions++
			}
		case enumspb.EVENT_TYPE_TIMER_STARTED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
			u.Actions++
		}
	}
	d, err := l.client.DescribeWorkflowExecution(l.t.Context(), id, "")
	must(l.t, err)
	u.History += float64(d.GetWorkflowExecutionInfo().GetHistorySizeBytes())
}

// cost is what one run costs, as the mean of some.
func (l *lab) cost(run func(int, job) [][]string, j job) Unit {
	l.t.Helper()
	before := l.stand()
	var u Unit
	for _, ids := range run(runs, j) {
		var one Unit
		for _, id := range ids {
			l.history(id, &one)
		}
		if u.Events > 0 && (one.Activities != u.Activities || one.Actions != u.Actions) {
			l.t.Errorf("%+v: runs differ: %+v and %+v", j, u, one)
		}
		u.Activities, u.Actions, u.Workflows = one.Activities, one.Actions, one.Workflows
		u.Events = max(u.Events, one.Events) // results of calls beside each other may come in one task of the workflow
		u.History += one.History / runs
	}
	after := l.stand()
	const n = float64(runs)
	d := after.minus(before.said)
	u.Entries, u.Appends = (after.entries-before.entries)/runs, d.Appends/runs
	u.Leases, u.Reads, u.Received = float64(d.Leases)/n, float64(d.Reads)/n, float64(d.Received)/n
	u.Requests = (after.requests - before.requests) / n
	u.Tables, u.Indexes, u.WAL = (after.tables-before.tables)/n, (after.indexes-before.indexes)/n, (after.bytes-before.bytes)/n
	l.t.Logf("%-40s %+v", fmt.Sprintf("%+v", j), u)
	return u
}

// of gives a difference, for each of so many.
func (u Unit) of(base Unit, each int) Unit {
	n := float64(each)
	return Unit{
		(u.Activities - base.Activities) / each, (u.Events - base.Events) / each, (u.Actions - base.Actions) / each, (u.Workflows - base.Workflows) / each, (u.Entries - base.Entries) / each, (u.Appends - base.Appends) / each,
		(u.Leases - base.Leases) / n, (u.Reads - base.Reads) / n, (u.Received - base.Received) / n, (u.Requests - base.Requests) / n, (u.History - base.History) / n,
		(u.Tables - base.Tables) / n, (u.Indexes - base.Indexes) / n, (u.WAL - base.WAL) / n,
	}
}

// held is what this process holds in memory, its stacks included.
func held() uint64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// memory has so many runs wait for somebody after so many steps, and gives what one of them takes of the worker's memory, and what is kept of it when it is over.
func (l *lab) memory(steps int) (open, kept float64) {
	l.t.Helper()
	const runs = 20
	before := held()
	var hs []*temporal.Handle
	var questions []journal.Pending
	for range runs {
		hs = append(hs, l.begin(l.request(job{Steps: steps, Calls: 1, Tool: "mixed"})))
	}
	for _, h := range hs {
		questions = append(questions, l.awaited(h.Session))
	}
	time.Sleep(500 * time.Millisecond) // the last workflow is at rest
	open = float64(held()-before) / runs
	for i, h := range hs {
		l.answers(h, questions[i])
	}
	for _, h := range hs {
		l.end(h)
	}
	time.Sleep(500 * time.Millisecond)
	kept = float64(held()-before) / runs
	return open, kept
}

// heartbeat is the timeout of the lab: so short that an effect of some seconds is heard of, and so long that no other is.
const heartbeat = 6 * time.Second

// measure measures everything, or only what takes no time.
func measure(t *testing.T, everything bool) (c Costs) {
	l := newLab(t)
	left := func(j job) Unit { return l.cost(l.leave, j) }
	c.Answer = left(job{Tool: "write"})
	few, many := left(job{Steps: 2, Calls: 1, Tool: "write"}), left(job{Steps: 8, Calls: 1, Tool: "write"})
	c.Step = many.of(few, 6)
	short, one := l.reads(), left(job{Steps: 1, Calls: 1, Tool: "read"})
	c.Call = left(job{Steps: 1, Calls: 9, Tool: "read"}).of(one, 8)
	c.Approval = left(job{Steps: 2, Calls: 1, Tool: "careful"}).of(few, 2)
	c.Pool = l.wire.most
	c.Waited = l.cost(l.wait, job{Steps: 2, Calls: 1, Tool: "write"}).of(few, 1)
	l.leave(1, job{Steps: 10, Calls: 1, Tool: "write"})
	long := l.reads()
	c.OpenReads, c.OpenBytesPerEntry = short.Reads, (long.Received-short.Received)/float64(long.Entries-short.Entries)

	if !everything {
		return c
	}
	l.memory(2) // what is made once is there
	open2, kept2 := l.memory(2)
	open12, kept12 := l.memory(12)
	c.OpenPerStep, c.KeptPerStep = (open12-open2)/10, (kept12-kept2)/10
	c.Open, c.Kept, c.Idle = open2-2*c.OpenPerStep, kept2-2*c.KeptPerStep, float64(l.idle)

	for _, took := range []time.Duration{heartbeat / 8, heartbeat/2 + 700*time.Millisecond} {
		before := l.asked.now()["RecordActivityTaskHeartbeat"]
		l.leave(1, job{Steps: 1, Calls: 1, Tool: "read", Work: took})
		c.Heartbeats = append(c.Heartbeats, Beat{float64(took) / float64(heartbeat), int(l.asked.now()["RecordActivityTaskHeartbeat"] - before)})
	}
	return c
}

// reads is what it takes to read the last session from its start.
func (l *lab) reads() Unit {
	l.t.Helper()
	before := l.wire.now()
	log, err := journal.Open(l.t.Context(), l.store, fmt.Sprintf("session-%06d", l.n))
	must(l.t, err)
	d := l.wire.now().minus(before)
	return Unit{Entries: int(log.Seq()), Reads: float64(d.Reads), Received: float64(d.Received)}
}

// differs says where two costs differ by more than is chance. What is whole is the same, or something was changed. The race detector has memory of its own.
func differs(was, is Costs, everything bool) (where []string) {
	near := func(name string, was, is, part, least float64) {
		if math.Abs(was-is) > max(part*math.Abs(was), least) {
			where = append(where, fmt.Sprintf("%s: %.0f, and on record are %.0f", name, is, was))
		}
	}
	for _, u := range []struct {
		name    string
		was, is Unit
	}{{"answer", was.Answer, is.Answer}, {"step", was.Step, is.Step}, {"call", was.Call, is.Call}, {"approval", was.Approval, is.Approval}, {"waited", was.Waited, is.Waited}} {
		a, b := u.was.counts(), u.is.counts()
		if u.name == "call" || u.name == "approval" { // results, and an answer with them, may come in one task of the workflow, or each in one of its own
			a.Events, b.Events = 0, 0
		}
		if a != b {
			where = append(where, fmt.Sprintf("%s: %+v, and on record are %+v", u.name, b, a))
		}
		chance := 0.1
		if u.name == "waited" || u.name == "call" { // who follows reads as often as there are news
			chance = 0.6
		}
		near(u.name+"'s leases", u.was.Leases, u.is.Leases, chance, 1)
		near(u.name+"'s reads", u.was.Reads, u.is.Reads, chance, 2)
		near(u.name+"'s bytes received", u.was.Received, u.is.Received, chance, 2000)
		near(u.name+"'s requests", u.was.Requests, u.is.Requests, chance, 4)
		near(u.name+"'s bytes of history", u.was.History, u.is.History, chance, 300)
		near(u.name+"'s bytes of tables", u.was.Tables, u.is.Tables, chance, 100)
		near(u.name+"'s bytes of WAL", u.was.WAL, u.is.WAL, chance, 1500)
	}
	near("bytes of an entry that is read", was.OpenBytesPerEntry, is.OpenBytesPerEntry, 0.1, 0)
	near("statements of a session that is read", was.OpenReads, is.OpenReads, 0, 0)
	near("connections", float64(was.Pool), float64(is.Pool), 0, float64(max(runtime.NumCPU()-4, 0))) // more than 4 CPUs make a larger pool
	if everything && !slices.Equal(was.Heartbeats, is.Heartbeats) {
		where = append(where, fmt.Sprintf("heartbeats: %v, and on record are %v", is.Heartbeats, was.Heartbeats))
	}
	if everything && !raced.Enabled {
		near("bytes of memory of a run that waits", was.Open+10*was.OpenPerStep, is.Open+10*is.OpenPerStep, 1, 0) // of a heap, which is never the same
		near("bytes of memory of a session that is kept", was.Kept+10*was.KeptPerStep, is.Kept+10*is.KeptPerStep, 1, 0)
	}
	return where
}

// counts are what of it is whole.
func (u Unit) counts() Unit {
	return Unit{Activities: u.Activities, Events: u.Events, Actions: u.Actions, Workflows: u.Workflows, Entries: u.Entries, Appends: u.Appends}
}

// The paper stands on these costs: whoever changes one sees it here, and writes the paper anew.
func TestTheCostsAreWhatTheyAre(t *testing.T) {
	needAll(t)
	everything := *update || !testing.Short()
	is := measure(t, everything)
	was, err := measured()
	must(t, err)
	where := differs(was, is, everything)
	if *update {
		if len(where) > 0 { // what is the same but for chance stays as it is
			b, err := json.MarshalIndent(is, "", "\t")
			must(t, err)
			must(t, os.WriteFile("costs.json", append(b, '\n'), 0o644))
		}
		return
	}
	for _, w := range where {
		t.Error(w)
	}
	if t.Failed() {
		t.Log("if that is meant: go test -run TestTheCosts -update ., and then go test -run TestThePage -update .")
	}
}
