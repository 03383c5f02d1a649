package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
)

var (
	sessions = flag.Int("sessions", 1000, "sessions that are on record in TestThePredictionHolds")
	atOnce   = flag.Int("at-once", 12, "runs at the same time in TestThePredictionHolds")
	crewSize = flag.Int("crew", 3, "worker processes in TestThePredictionHolds")
	think    = flag.Duration("think", 200*time.Millisecond, "what the model takes in TestThePredictionHolds")
	timed    = flag.Bool("timed", false, "TestThePredictionHolds fails when times are not as predicted, too: for a machine that has nothing else to do")
)

// hire starts a worker process until the test is over, and gives its number.
func hire(t *testing.T, address, dsn string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PAWL_SCALE_WORKER="+address, "PAWL_DSN="+dsn)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close() // it ends by that
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatal(line, err)
	}
	return cmd.Process.Pid
}

// within fails where something is not as predicted, by a factor.
func within(t *testing.T, what string, predicted, is, factor float64) {
	t.Helper()
	t.Logf("%-32s predicted %12.0f, is %12.0f: %.2f times", what, predicted, is, is/predicted)
	if math.Abs(math.Log(is/predicted)) > math.Log(factor)+1e-9 {
		t.Errorf("%s: predicted were %.0f, it is %.0f, and a factor of %v is allowed", what, predicted, is, factor)
	}
}

// What is reckoned from what one run costs is what many cost, in worker processes of their own, at the same time, beside many sessions on record: counts exactly, sizes within a factor.
func TestThePredictionHolds(t *testing.T) {
	needAll(t)
	costs, err := measured()
	must(t, err)
	pg := pgtest.New(t)
	l := &lab{t: t, server: devserver.InMemory(t), dsn: pg.DSN(t), asked: &requests{}}
	tapped, wire := tap(t, l.dsn)
	l.wire = wire
	l.client = l.server.Client(t)
	l.store, err = postgres.Open(t.Context(), l.dsn)
	must(t, err)
	t.Cleanup(func() { _ = l.store.Close() })
	l.db, err = pgx.Connect(t.Context(), l.dsn)
	must(t, err)
	t.Cleanup(func() { _ = l.db.Close(context.Background()) })
	var crew []int
	for range *crewSize {
		crew = append(crew, hire(t, l.server.Address, tapped))
	}
	j := job{Steps: 5, Calls: 1, Tool: "write", Think: *think, Work: 100 * time.Millisecond}
	load := Load{Workers: *crewSize, Sessions: *atOnce, Active: 1, Runs: 1, Steps: j.Steps, Model: j.Think, Tool: j.Work}
	run := load.run(costs)

	// One run alone says how fast this machine is.
	l.leave(1, j)
	began, used := time.Now(), l.processor(crew)
	l.leave(1, j)
	alone := time.Since(began)
	machine := Machine{
		Dispatch: max((alone-load.works())/time.Duration(2*run.Activities), time.Millisecond), Poll: time.Millisecond, Pollers: pollersEach, Even: true,
		Cores: postgresCores, Commit: seconds(commitSeconds), Read: seconds(readSeconds), Flush: seconds(flushSeconds),
		Processor: postgresCores, Effect: (l.processor(crew) - used) / time.Duration(run.Activities),
	}
	t.Logf("a run alone takes %v, and %v of processors for each effect", alone.Round(time.Millisecond), machine.Effect.Round(time.Millisecond/10))

	// Sessions on record.
	var copied []journal.Entry
	for e, err := range l.store.Read(t.Context(), "session-000002", 0) {
		must(t, err)
		copied = append(copied, e)
	}
	within(t, "rows of a run", run.Entries, float64(len(copied)), 1)
	l.load(copied)
	var size float64
	must(t, l.db.QueryRow(t.Context(), `SELECT sum(pg_table_size(oid) + pg_indexes_size(oid)) FROM pg_class WHERE relnamespace = 'pawl'::regnamespace AND relkind = 'r'`).Scan(&size))
	within(t, "bytes of the journal", run.Disk*float64(*sessions+2), size, 1.5)

	l.statements()

	// Runs at the same time.
	before, used := l.stand(), l.processor(crew)
	began = time.Now()
	ids := l.leave(*atOnce, j)
	took := time.Since(began)
	after, n := l.stand(), float64(*atOnce)
	var u Unit
	for _, one := range ids {
		for _, id := range one {
			l.history(id, &u)
		}
	}
	within(t, "rows", n*run.Entries, float64(after.entries-before.entries), 1)
	demand, d := load.demand(costs), after.minus(before.said)
	within(t, "appends", n*float64(costs.Answer.Appends+j.Steps*costs.Step.Appends), float64(d.Appends), 1)
	within(t, "transactions", n*run.Commits, float64(d.Appends+d.Leases), 1.2)
	within(t, "other statements", n*(run.Reads+run.Activities*demand.Cold*(costs.OpenReads-1)), float64(d.Reads), 1.3)
	within(t, "bytes from the database", n*(run.Received+run.Activities*demand.Cold*run.Entries/2*costs.OpenBytesPerEntry), float64(d.Received), 1.3)
	within(t, "activities", n*run.Activities, float64(u.Activities), 1)
	within(t, "actions", n*Total{}.plus(costs.Answer, 1).plus(costs.Step, float64(j.Steps)).Actions, float64(u.Actions), 1) // heartbeats stand in no history
	within(t, "events", n*run.Events, float64(u.Events), 1.1)
	within(t, "bytes of history", n*run.History, u.History, 1.2)
	within(t, "bytes of WAL", n*run.WAL, after.bytes-before.bytes, 3) // pages are written whole once after each checkpoint
	times := simulate(load, costs, machine, 0, 1)
	t.Logf("processors for each effect: %v", ((l.processor(crew) - used) / time.Duration(u.Activities)).Round(time.Millisecond/10))
	if *timed {
		within(t, "milliseconds until all are over", float64(times.Finished.Milliseconds()), float64(took.Milliseconds()), 2)
	} else {
		t.Logf("%d runs at once: predicted %v, took %v", *atOnce, times.Finished.Round(time.Millisecond), took.Round(time.Millisecond))
	}
}

// load puts copies of a session on record, many at once.
func (l *lab) load(entries []journal.Entry) {
	l.t.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	next := make(chan int)
	for range 4 {
		wg.Go(func() {
			for n := range next {
				if err := l.store.Append(l.t.Context(), fmt.Sprintf("loaded-%07d", n), 0, entries...); err != nil {
					l.t.Error(err)
				}
			}
		})
	}
	for n := range *sessions {
		next <- n
	}
	close(next)
	wg.Wait()
	l.t.Logf("%d sessions on record in %v", *sessions, time.Since(began).Round(time.Millisecond))
}

// statements says what statements take of the database's processors: what commitSeconds and readSeconds are here.
func (l *lab) statements() {
	l.t.Helper()
	const each, at = 1000, 4
	took := func(do func(session string, n int64) error) time.Duration {
		before := l.processor(nil)
		var wg sync.WaitGroup
		for i := range at {
			wg.Go(func() {
				for n := range int64(each) {
					if err := do(fmt.Sprint("statements-", i), n); err != nil {
						l.t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		return (l.processor(nil) - before) / (each * at)
	}
	commit := took(func(session string, n int64) error {
		return l.store.Append(l.t.Context(), session, n, journal.Entry{Data: journal.Said{Message: message.User(strings.Repeat("x", 500))}})
	})
	read := took(func(session string, _ int64) error {
		for _, err := range l.store.Read(l.t.Context(), session, each-1) {
			if err != nil {
				return err
			}
		}
		return nil
	}) / 2 // the session and its entries
	l.t.Logf("of the database's processors a transaction takes %v, another statement %v", commit, read)
}

// processor is what workers, Temporal's server and the database's have taken of processors so far. Where there is no /proc it is nothing.
func (l *lab) processor(crew []int) (d time.Duration) {
	l.t.Helper()
	pids := append([]int{l.server.PID()}, crew...)
	rows, err := l.db.Query(l.t.Context(), "SELECT pid FROM pg_stat_activity")
	must(l.t, err)
	more, err := pgx.CollectRows(rows, pgx.RowTo[int])
	must(l.t, err)
	for _, pid := range append(pids, more...) {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ") // its name, in brackets, has none
		fields := strings.Fields(rest)
		for _, f := range fields[11:13] { // in user and in system, in hundredths of a second
			ticks, err := strconv.Atoi(f)
			must(l.t, err)
			d += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return d
}
