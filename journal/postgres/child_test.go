package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/message"
)

// The test binary runs itself as another process: roleVar says as what, dsnVar on which database, nameVar who it is.
const (
	roleVar = "PAWL_POSTGRES_ROLE"
	dsnVar  = "PAWL_POSTGRES_DSN"
	nameVar = "PAWL_POSTGRES_NAME"
)

// roles are what a child does with its database; its lines go to the parent, an error ends it.
var roles = map[string]func(s *postgres.Store, name string, report func(...any)) error{
	"contend": contend,
	"echo":    echo,
	"greet":   greet,
	"append": func(s *postgres.Store, name string, _ func(...any)) error {
		return s.Append(ctx, "s", 1, journal.Entry{Run: "r", Data: journal.Said{Message: message.User(name)}})
	},
}

func child(role string) int {
	s, err := postgres.Open(ctx, os.Getenv(dsnVar))
	if err == nil {
		err = errors.Join(roles[role](s, os.Getenv(nameVar), func(what ...any) { fmt.Println(what...) }), s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startChild runs a child; its report is on the reader, its errors in the buffer.
func startChild(t *testing.T, role, dsn, name string) (*exec.Cmd, io.Reader, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+role, dsnVar+"="+dsn, nameVar+"="+name)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	must(t, cmd.Start())
	return cmd, out, &stderr
}

const contendWins = 60

// contend appends in pairs at the end of one session, until it won often enough.
func contend(s *postgres.Store, name string, report func(...any)) error {
	n := int64(0)
	for wins := 0; wins < contendWins; {
		for _, err := range s.Read(ctx, "s", n) {
			if err != nil {
				return err
			}
			n++
		}
		switch err := s.Append(ctx, "s", n, said(name), said(name)); {
		case err == nil:
			report(n)
			wins++
			n += 2
		case !errdefs.Conflict.Is(err):
			return err
		}
	}
	return nil
}

func TestProcessesThatAppendToOneSessionAreFenced(t *testing.T) {
	dsn := pgtest.DSN(t)
	names := []string{"a", "b", "c"}
	won := make([][]int64, len(names))
	var wg sync.WaitGroup
	for i, name := range names { // each makes the tables, if it is the first
		cmd, out, stderr := startChild(t, "contend", dsn, name)
		wg.Go(func() {
			for {
				var at int64
				if _, err := fmt.Fscan(out, &at); err != nil {
					break
				}
				won[i] = append(won[i], at)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, stderr)
			}
		})
	}
	wg.Wait()
	s := open(t, dsn)
	var who []string
	for e, err := range s.Read(ctx, "s", 0) {
		must(t, err)
		who = append(who, e.Data.(journal.Said).Message.Text())
	}
	if want := len(names) * contendWins * 2; len(who) != want {
		t.Errorf("%d entries, want %d", len(who), want)
	}
	for i, name := range names {
		if len(won[i]) != contendWins || !slices.IsSorted(won[i]) {
			t.Errorf("%s won %v", name, won[i])
		}
		for _, at := range won[i] {
			if who[at] != name || who[at+1] != name {
				t.Errorf("%s won %d, and there is %v", name, at, who[at:at+2])
			}
		}
	}
}

// The server goes on with what a dead process told it. What comes of that is before the next driver's first entry, or not at all.
func TestWhatADeadProcessLeftUnderWayIsFenced(t *testing.T) {
	for name, c := range map[string]struct {
		nextFirst bool
		want      []journal.Kind
	}{
		"it comes before the next driver": {false, []journal.Kind{"run.started", "said", "resumed"}},
		"it comes too late":               {true, []journal.Kind{"run.started", "resumed"}},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			s := open(t, dsn)
			must(t, s.Append(ctx, "s", 0, journal.Entry{Run: "r", Data: journal.RunStarted{Owner: "dead", Attempt: 1}}))
			next, err := journal.Open(ctx, s, "s")
			must(t, err)
			release := hold(t, dsn, "s")
			driven := make(chan error, 1)
			drive := func() {
				driven <- next.Drive(ctx, "next", journal.Entry{Run: "r", Data: journal.Resumed{Owner: "next"}})
			}
			if c.nextFirst {
				go drive()
				waiting(t, dsn, 1)
			}
			cmd, _, _ := startChild(t, "append", dsn, "I was dead")
			n := 1
			if c.nextFirst {
				n++
			}
			waiting(t, dsn, n)
			must(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
			if !c.nextFirst {
				go drive()
			}
			waiting(t, dsn, 2) // the dead one's backend has noticed nothing
			release()
			must(t, <-driven)
			must(t, next.Append(ctx, journal.Entry{Run: "r", Data: journal.Parked{Cause: "custom"}}))
			var kinds []journal.Kind
			for e, err := range s.Read(ctx, "s", 0) {
				must(t, err)
				kinds = append(kinds, e.Data.Kind())
			}
			if want := append(c.want, "parked"); !slices.Equal(kinds, want) {
				t.Errorf("got %v, want %v", kinds, want)
			}
		})
	}
}
