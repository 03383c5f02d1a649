package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/postgres"
)

const unknown = "it is not known whether it was done"

// settled checks what is there after an append of batch entries that may have failed, and that the fence says the same. It gives how many
// entries there are then.
func settled(t *testing.T, s journal.Store, session string, before, batch int64, err error) int64 {
	t.Helper()
	n := count(t, s, session)
	switch {
	case err == nil && n != before+batch:
		t.Errorf("%s: %d entries of %d that were reported", session, n, before+batch)
	case err != nil && n != before && (n != before+batch || !strings.Contains(err.Error(), unknown)):
		t.Errorf("%s: %d entries after %d and %v", session, n, before, err)
	}
	entries := make([]journal.Entry, batch)
	for i := range entries {
		entries[i] = said("again")
	}
	switch again := s.Append(ctx, session, before, entries...); {
	case n == before && again == nil:
		return before + batch
	case n == before || !errdefs.Conflict.Is(again):
		t.Errorf("%s: appended again after entry %d of %d: %v", session, before, n, again)
	}
	return n
}

func TestAKilledServerLosesNothingThatItAcknowledged(t *testing.T) {
	server := pgtest.New(t)
	dsn := server.DSN(t)
	const sessions, batch = 4, 3
	s := open(t, dsn)
	reported := make([]int64, sessions)
	for round := range 4 {
		errs := make([]error, sessions)
		var acknowledged atomic.Int64
		enough := make(chan struct{})
		var wg sync.WaitGroup
		for i := range sessions {
			wg.Go(func() {
				for {
					err := s.Append(ctx, fmt.Sprint("s", i), reported[i], said("1"), said(strings.Repeat("x", 5000)), said("3"))
					if err != nil {
						errs[i] = err
						return
					}
					reported[i] += batch
					if acknowledged.Add(1) == int64(10+7*round) {
						close(enough)
					}
				}
			})
		}
		<-enough
		server.Kill(t)
		wg.Wait()
		fails(t, "append to a server that is gone", s.Append(ctx, "x", 0, said("x")), errdefs.NotAvailable, "")
		_, err := postgres.Open(ctx, dsn)
		fails(t, "open of a server that is gone", err, errdefs.NotAvailable, "can't be reached")
		server.Restart(t)
		for i, err := range errs {
			fails(t, "append", err, errdefs.NotAvailable, "")
			reported[i] = settled(t, s, fmt.Sprint("s", i), reported[i], batch, err)
		}
		kept(t, dsn)
	}
}

// proxy stands between a store and its server and breaks what passes.
type proxy struct {
	dir, server string
	listener    net.Listener
	wg          sync.WaitGroup

	mu    sync.Mutex
	fault string // "", "cut the request", "cut the answer", "hang"
	conns []net.Conn
}

// newProxy gives a proxy and the address through it.
func newProxy(t *testing.T, dsn string) (*proxy, string) {
	t.Helper()
	host, rest, _ := strings.Cut(strings.TrimPrefix(dsn, "host="), " ")
	dir, err := os.MkdirTemp("/tmp", "pawl-proxy") // its path has to be short
	must(t, err)
	p := &proxy{dir: dir, server: filepath.Join(host, ".s.PGSQL.5432")}
	p.listener, err = net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	must(t, err)
	p.wg.Go(p.serve)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.breaks("")
		p.cut()
		p.wg.Wait()
		must(t, os.RemoveAll(dir))
	})
	return p, "host=" + dir + " " + rest
}

func (p *proxy) breaks(fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

func (p *proxy) now() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// cut cuts every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.wg.Go(func() { p.pass(server, client, "cut the request") })
		p.wg.Go(func() { p.pass(client, server, "cut the answer") })
	}
}

// pass copies until its fault cuts it, or the end.
func (p *proxy) pass(to, from net.Conn, fault string) {
	defer func() { _, _ = to.Close(), from.Close() }()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		switch p.now() {
		case fault:
			return
		case "hang":
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func TestACutConnectionLeavesAnAppendWholeOrAbsent(t *testing.T) {
	p, dsn := newProxy(t, pgtest.DSN(t))
	s := open(t, dsn)
	must(t, s.Append(ctx, "a", 0, said("1"), said("2")))
	n, known, written := int64(2), 0, 0
	for round := range 10 {
		fault := []string{"cut the request", "cut the answer"}[round%2]
		p.breaks(fault)
		err := s.Append(ctx, "a", n, said("3"), said("4"))
		fails(t, fault, err, errdefs.NotAvailable, "")
		p.breaks("")
		p.cut()
		if !strings.Contains(err.Error(), unknown) {
			known++
		}
		before := n
		if count(t, s, "a") == before+2 {
			written++
		}
		n = settled(t, s, "a", before, 2, err)
	}
	if known > 0 || written == 0 {
		t.Errorf("of 10 appends %d were written, and %d errors say that nothing was", written, known)
	}
}

func TestAConnectionThatWasLostWhileIdleIsReplaced(t *testing.T) {
	direct := pgtest.DSN(t)
	p, dsn := newProxy(t, direct)
	s := open(t, dsn)
	for n := range int64(5) {
		p.cut()
		if err := s.Append(ctx, "a", n, said("x")); err != nil { // it may have been sent into the cut
			fails(t, "append", err, errdefs.NotAvailable, "")
			settled(t, s, "a", n, 1, err)
		}
	}
	if n := count(t, s, "a"); n != 5 {
		t.Errorf("%d entries", n)
	}
}

func TestAServerThatDoesNotAnswerIsNotWaitedForForEver(t *testing.T) {
	p, dsn := newProxy(t, pgtest.DSN(t))
	for i, patient := 0, open(t, dsn); i < 2; i++ {
		must(t, patient.Append(ctx, fmt.Sprint("s", i), 0, said("1")))
	}
	s := open(t, dsn, postgres.WithPatience(time.Second))
	p.breaks("hang")
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			if i == 0 {
				ctx = context.Background() // patience ends it
			}
			errs[i] = s.Append(ctx, fmt.Sprint("s", i), 1, said("2"))
		})
	}
	wg.Wait()
	_, err := postgres.Open(ctx, dsn, postgres.WithPatience(100*time.Millisecond))
	fails(t, "open", err, errdefs.NotAvailable, "did not answer")
	p.breaks("")
	p.cut()
	for i, err := range errs {
		if i == 1 && errdefs.Canceled(err) { // it still waited for a connection
			continue
		}
		fails(t, "append", err, errdefs.NotAvailable, "")
		settled(t, s, fmt.Sprint("s", i), 1, 1, err)
	}
}

// hold locks a session's row, as an append that takes long does, until the function that it gives is called.
func hold(t *testing.T, dsn, session string) (release func()) {
	t.Helper()
	return begin(t, dsn, "SELECT FROM pawl.sessions WHERE id = $1 FOR UPDATE", session)
}

// begin does something in a transaction that is committed when the function that it gives is called.
func begin(t *testing.T, dsn, sql string, args ...any) (commit func()) {
	t.Helper()
	c, err := pgx.Connect(ctx, dsn)
	must(t, err)
	_, err = c.Exec(ctx, "BEGIN")
	must(t, err)
	_, err = c.Exec(ctx, sql, args...)
	must(t, err)
	commit = sync.OnceFunc(func() {
		_, err := c.Exec(ctx, "COMMIT")
		must(t, errors.Join(err, c.Close(ctx)))
	})
	t.Cleanup(commit)
	return commit
}

// waiting waits until n connections of the database wait for a lock.
func waiting(t *testing.T, dsn string, n int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ask(t, dsn, "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") != fmt.Sprint(n); {
		if time.Now().After(end) {
			t.Fatalf("%d don't wait", n)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAnAppendThatIsCancelledWhileItWaitsIsNotWritten(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn+" pool_max_conns=1")
	must(t, s.Append(ctx, "a", 0, said("1")))
	release := hold(t, dsn, "a")
	c, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Append(c, "a", 1, said("2")) }()
	waiting(t, dsn, 1)
	queued, cancelQueued := context.WithTimeout(ctx, 10*time.Millisecond) // the only connection is taken
	defer cancelQueued()
	if err := s.Append(queued, "b", 0, said("x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it waits for a connection: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	must(t, s.Append(ctx, "c", 0, said("the connection is still good")))
	release()
	for session, want := range map[string]int64{"a": 1, "b": 0, "c": 1} {
		if n := count(t, s, session); n != want {
			t.Errorf("%s has %d entries, want %d", session, n, want)
		}
	}
}

func TestWhatTheServerRefusesHasAClassAndARemedy(t *testing.T) {
	dsn := pgtest.DSN(t)
	impatient := open(t, dsn, postgres.WithPatience(time.Second)) // which is enough to open it on a busy machine
	must(t, impatient.Append(ctx, "a", 0, said("1")))
	limited := open(t, dsn+" statement_timeout=100")
	terminated := open(t, dsn+" application_name=victim")
	readOnly := open(t, dsn+" default_transaction_read_only=on")
	release := hold(t, dsn, "a")

	fails(t, "patience", impatient.Append(ctx, "a", 1, said("2")), errdefs.NotAvailable, "did not answer for 1s")
	fails(t, "statement_timeout", limited.Append(ctx, "a", 1, said("2")), errdefs.NotAvailable, "statement_timeout")
	fails(t, "deletion", limited.Delete(ctx, "a"), errdefs.NotAvailable, "statement_timeout")
	fails(t, "a standby", readOnly.Append(ctx, "a", 1, said("2")), errdefs.NotAvailable, "primary")
	done := make(chan error, 1)
	go func() { done <- terminated.Append(ctx, "a", 1, said("2")) }()
	waiting(t, dsn, 1)
	execute(t, dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'victim'")
	fails(t, "terminated", <-done, errdefs.NotAvailable, unknown)
	release()
	if n := count(t, terminated, "a"); n != 1 {
		t.Errorf("%d entries", n)
	}
	must(t, terminated.Append(ctx, "a", 1, said("2")))
}

func TestALeaseRunsByTheDatabasesClock(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	must(t, s.Append(ctx, "a", 0, said("x")))
	must(t, s.Lease(ctx, "a", "me", time.Now().Add(time.Hour)))
	if got := ask(t, dsn, "SELECT (until > now() + interval '59 min' AND until < now() + interval '61 min')::text FROM pawl.sessions"); got != "true" {
		t.Error("it is not an hour from the database's now")
	}
	must(t, s.Lease(ctx, "a", "me", time.Now().AddDate(9000, 0, 0))) // for ever
	fails(t, "another", s.Lease(ctx, "a", "you", time.Now().Add(time.Hour)), errdefs.Conflict, "driven by me")
	execute(t, dsn, "UPDATE pawl.sessions SET until = now() - interval '1 second'") // as if the time had passed there
	must(t, s.Lease(ctx, "a", "you", time.Now().Add(time.Hour)))
}
