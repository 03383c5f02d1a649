package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/internal/waketest"
	"github.com/pawl-dev/pawl/journal/postgres"
)

const echoes = 10

// ping and pong are as long and as odd as names may be.
var ping, pong = strings.Repeat("'é\"\n", 400), strings.Repeat("é", 1000)

// echo answers in one session whatever is said in the other.
func echo(s *postgres.Store, _ string, _ func(...any)) error {
	for e, err := range journal.Follow(ctx, s, ping, 0) {
		if err != nil {
			return err
		}
		if err := s.Append(ctx, pong, e.Seq-1, said("pong")); err != nil || e.Seq == echoes {
			return err
		}
	}
	return nil
}

func TestFollowersHearOfOtherProcessesAtOnce(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	cmd, _, stderr := startChild(t, "echo", dsn, "")
	var begun time.Time
	must(t, s.Append(ctx, ping, 0, said("ping")))
	for e, err := range journal.Follow(ctx, s, pong, 0) {
		must(t, err)
		if e.Seq == 1 { // the process is there
			begun = time.Now()
		}
		if e.Seq == echoes {
			break
		}
		must(t, s.Append(ctx, ping, e.Seq, said("ping")))
	}
	if took := time.Since(begun); took > (echoes-1)*time.Second { // who has to look by himself takes 1 s, on either side
		t.Errorf("%d answers took %v", echoes-1, took)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
}

// wakes waits until somebody was woken.
func wakes(t *testing.T, woken <-chan struct{}, by string) {
	t.Helper()
	select {
	case <-woken:
	case <-time.After(30 * time.Second):
		t.Fatalf("nobody was woken by %s", by)
	}
}

// stores is how connections of stores are told from others, which may take a moment to be gone: give it with their DSN.
const stores = " application_name=store"

// backends waits until a database has so many connections of stores.
func backends(t *testing.T, dsn string, want int64) {
	t.Helper()
	const count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'store'"
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		got := number(t, dsn, count)
		if got == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d connections, want %d", got, want)
		}
	}
}

func TestOneConnectionListensWhileSomebodyFollows(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn+stores+" pool_max_conns=1")
	for range 2 {
		backends(t, dsn, 1)
		_, stopA := s.Watch(ctx, "a")
		_, stopB := s.Watch(ctx, "b")
		backends(t, dsn, 2)
		stopA()
		stopA()
		backends(t, dsn, 2) // b is followed
		stopB()
	}
	backends(t, dsn, 1)
}

// heard gives what others are told until now.
func heard(t *testing.T, dsn string, do func()) (told []string) {
	t.Helper()
	c, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer func() { must(t, c.Close(ctx)) }()
	_, err = c.Exec(ctx, "LISTEN pawl")
	must(t, err)
	do()
	execute(t, dsn, "NOTIFY pawl, 'that was all'") // notifications come in the order of commits
	for {
		n, err := c.WaitForNotification(ctx)
		must(t, err)
		if n.Payload == "that was all" {
			return told
		}
		told = append(told, n.Payload)
	}
}

func TestOnlyFollowersOfOtherStoresAreNotified(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, other := open(t, dsn), open(t, dsn)
	changes := func() {
		must(t, s.Append(ctx, "a", 0, said("1")))
		must(t, s.Append(ctx, "a", 1, said("2")))
		must(t, s.Append(ctx, "a", 2, said(strings.Repeat("x", 5000))))
		must(t, s.Append(ctx, "b", 1, journal.Entry{Data: journal.SessionCreated{Parent: "a", At: 1}}))
		must(t, s.Delete(ctx, "a"))
		must(t, s.Delete(ctx, "b"))
	}
	told := func(who string, want ...string) {
		t.Helper()
		if got := heard(t, dsn, changes); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: notified %v, want %v", who, got, want)
		}
	}
	told("nobody follows")
	_, stop := s.Watch(ctx, "a")
	defer stop()
	told("only this store follows")
	_, stop = other.Watch(ctx, "a")
	defer stop()
	told("another store follows", "a", "a", "a", "a")
	_, stop = other.Watch(ctx, "b")
	defer stop()
	told("it follows the fork too", "a", "a", "a", "b", "a", "b")
}

func TestWhoFollowsIsRenewedAndForgotten(t *testing.T) {
	defer postgres.Renew(400*time.Millisecond, 50*time.Millisecond)()
	dsn := pgtest.DSN(t)
	s, other := open(t, dsn), open(t, dsn+stores)
	const followed = "SELECT count(*) FROM pawl.followed WHERE until > now()"
	_, stop := other.Watch(ctx, "a")
	const listeners = "SELECT string_agg(pid::text, ' ' ORDER BY pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'store'"
	backends(t, dsn, 2)
	before := ask(t, dsn, listeners)
	time.Sleep(time.Second) // more than it lasts
	if now := ask(t, dsn, listeners); now != before {
		t.Errorf("renewing made new connections: %s, and before %s", now, before)
	}
	if n := number(t, dsn, followed); n != 1 {
		t.Errorf("%d are followed, want 1", n)
	}
	stop()
	for end := time.Now().Add(20 * time.Second); number(t, dsn, followed) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is followed for ever")
		}
	}
	if got := heard(t, dsn, func() { must(t, s.Append(ctx, "a", 0, said("1"))) }); got != nil {
		t.Errorf("notified %v, and nobody follows any more", got)
	}
	execute(t, dsn, "UPDATE pawl.followed SET until = now() - interval '2 hours'")
	_, stop = other.Watch(ctx, "b")
	defer stop()
	if n := number(t, dsn, "SELECT count(*) FROM pawl.followed"); n != 1 {
		t.Errorf("%d rows: what is long over stays", n)
	}
}

// What is appended while nobody listens is looked for as soon as somebody does, and from then on followers are notified again.
func TestALostConnectionIsMadeAgainAndEverybodyLooks(t *testing.T) {
	server := pgtest.New(t)
	dsn := server.DSN(t)
	for how, lose := range map[string]func(){
		"cut": func() {
			execute(t, dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		},
		"the server died": func() { server.Kill(t); server.Restart(t) },
	} {
		s := open(t, dsn)
		woken, stop := s.Watch(ctx, how)
		wakes(t, woken, how+": the beginning")
		lose()
		wakes(t, woken, how+": the end of a lost connection")
		other := open(t, dsn)
		must(t, other.Append(ctx, how, 0, said("x")))
		wakes(t, woken, how+": a notification after it")
		stop()
		must(t, s.Close())
		must(t, other.Close())
	}
}

func TestFollowersOfAStoreThatIsClosedAreTold(t *testing.T) {
	s := open(t, pgtest.DSN(t))
	must(t, s.Append(ctx, "a", 0, said("x")))
	var last error
	seen, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for e, err := range journal.Follow(ctx, s, "a", 0) {
			if last = err; err == nil {
				seen <- e.Seq == 1
			}
		}
	}()
	<-seen
	must(t, s.Close())
	<-ended
	fails(t, "follow", last, errdefs.NotAvailable, "closed")
}

// Where nothing is notified, followers look by themselves: a role that may only read can follow, and so can who follows by a pooler that passes nothing on.
func TestWithoutNotificationsFollowersLookByThemselves(t *testing.T) {
	dsn, as := granted(t)
	s, reader := open(t, as("pawl_app")), open(t, as("pawl_reader"))
	must(t, s.Append(ctx, "a", 0, said("1")))
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	n := int64(0)
	for e, err := range journal.Follow(limited, reader, "a", 0) {
		must(t, err)
		if n = e.Seq; n == 3 {
			break
		}
		must(t, s.Append(ctx, "a", n, said("more")))
	}
	if n != 3 {
		t.Errorf("it got to entry %d", n)
	}
	if got := heard(t, dsn, func() { must(t, s.Append(ctx, "a", 3, said("x"))) }); got != nil {
		t.Errorf("notified %v: then this test shows nothing", got)
	}
}

func TestFollowersOfAStoreAreWokenByItAtOnce(t *testing.T) {
	waketest.Run(t, func(t *testing.T) waketest.Store { return open(t, pgtest.DSN(t)) })
}
