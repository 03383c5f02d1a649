package sqlite_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
)

// The test binary runs itself as another process: roleVar says as what, pathVar on which file, nameVar who it is.
const (
	roleVar = "PAWL_SQLITE_ROLE"
	pathVar = "PAWL_SQLITE_PATH"
	nameVar = "PAWL_SQLITE_NAME"
)

// roles are what a child does with its file; its lines go to the parent, an error ends it.
var roles = map[string]func(s *sqlite.Store, name string, report func(...any)) error{
	"append for ever": appendForEver,
	"contend":         contend,
	"echo":            echo,
}

// openless are roles that open the file themselves.
var openless = map[string]func(path string, report func(...any)) error{}

func child(role string) int {
	var mu sync.Mutex
	report := func(what ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(what...)
	}
	path := os.Getenv(pathVar)
	do := openless[role]
	if do == nil {
		do = func(path string, report func(...any)) error {
			s, err := sqlite.Open(path)
			if err != nil {
				return err
			}
			return errors.Join(roles[role](s, os.Getenv(nameVar), report), s.Close())
		}
	}
	if err := do(path, report); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// start runs a child; its report is on the reader, its errors in the buffer.
func start(t *testing.T, role, path, name string) (*exec.Cmd, io.Reader, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+role, pathVar+"="+path, nameVar+"="+name)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	must(t, cmd.Start())
	return cmd, out, &stderr
}

const (
	killSessions = 4
	killBatch    = 3
)

func appendForEver(s *sqlite.Store, _ string, report func(...any)) error {
	errs := make(chan error)
	for i := range killSessions {
		session := fmt.Sprint("s", i)
		go func() {
			n := int64(0)
			for _, err := range s.Read(ctx, session, 0) {
				if err != nil {
					errs <- err
					return
				}
				n++
			}
			for {
				if err := s.Append(ctx, session, n, said("1"), said(strings.Repeat("x", 5000)), said("3")); err != nil {
					errs <- err
				}
				n += killBatch
				report(session, n)
			}
		}()
	}
	return <-errs
}

func TestAKilledProcessLosesNothingThatItReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	reported := map[string]int64{}
	for round := range 8 {
		cmd, out, stderr := start(t, "append for ever", path, "")
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			var session string
			var seq int64
			if _, err := fmt.Sscan(lines.Text(), &session, &seq); err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			reported[session] = max(reported[session], seq)
			if n == 10+7*round {
				must(t, cmd.Process.Kill()) // in the middle of its appends; what it still reported is read to the end
			}
		}
		if err := cmd.Wait(); err == nil || stderr.Len() > 0 {
			t.Fatalf("the child was not killed: %v, %s", err, stderr)
		}
		s := open(t, path)
		for i := range killSessions {
			session := fmt.Sprint("s", i)
			n := count(t, s, session)
			if n != reported[session] && n != reported[session]+killBatch {
				t.Errorf("round %d: %s has %d entries; %d were reported, in pieces of %d", round, session, n, reported[session], killBatch)
			}
			reported[session] = n
		}
		must(t, s.Close())
		sound(t, path)
	}
}

const contendWins = 60

// contend appends in pairs at the end of one session, until it won often enough.
func contend(s *sqlite.Store, name string, report func(...any)) error {
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
	path := filepath.Join(t.TempDir(), "j.db")
	names := []string{"a", "b", "c"}
	won := make([][]int64, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		cmd, out, stderr := start(t, "contend", path, name)
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
	s := open(t, path)
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
