//go:build unix

package pgtest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"go.uber.org/goleak"
)

// As a child the test binary starts a server, says what it has, and waits for the end of its input.
const childVar = "PAWL_PGTEST_CHILD"

type child struct{}

func (child) Run() int {
	dsn, err := pgtest.Database()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(dsn)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		os.Exit(pgtest.Main(child{}))
	}
	code := pgtest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var ctx = context.Background()

func ask(t *testing.T, dsn, query string) (answer string) {
	t.Helper()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	if err := c.QueryRow(ctx, query).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestEachDatabaseIsNewAndWritesAreDurable(t *testing.T) {
	t.Parallel()
	a, b := pgtest.DSN(t), pgtest.DSN(t)
	if a == b {
		t.Errorf("the same twice: %s", a)
	}
	if got := ask(t, b, "SELECT current_setting('fsync') || current_setting('synchronous_commit') || '/' || current_setting('listen_addresses')"); got != "onon/" {
		t.Error(got)
	}
	if got := ask(t, a, "SELECT current_setting('server_encoding') || (SELECT count(*) FROM pg_tables WHERE schemaname = 'public')"); got != "UTF80" {
		t.Error(got)
	}
}

func TestAKilledServerStartsAgain(t *testing.T) {
	t.Parallel()
	s := pgtest.New(t)
	dsn := s.DSN(t)
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	if _, err := c.Exec(ctx, "CREATE TABLE kept (x int)"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.Kill(t)
		if err := c.Ping(ctx); err == nil {
			t.Error("the connection lives")
		}
		s.Restart(t)
		if got := ask(t, dsn, "SELECT count(*)::text FROM kept"); got != "0" {
			t.Error(got)
		}
	}
}

// gone waits until a server's directory and its main process are.
func gone(t *testing.T, dir string, pid int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(dir)
		running := syscall.Kill(pid, 0) == nil && !zombie(pid)
		if os.IsNotExist(err) && !running {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it stays: %s: %v; process %d runs: %v", dir, err, pid, running)
		}
	}
}

// zombie reports whether a process is over and only its parent, which is not us, doesn't look.
func zombie(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(stat), ") Z ")
}

func TestNoServerStaysBehindHoweverItsProcessEnds(t *testing.T) {
	t.Parallel()
	pgtest.DSN(t) // skips if there is none, or in the quick tier
	for how, end := range map[string]func(*exec.Cmd, io.Closer) error{
		"it ends":      func(_ *exec.Cmd, input io.Closer) error { return input.Close() },
		"it is killed": func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Kill() },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childVar+"=1")
			input, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			dsn, _ := bufio.NewReader(out).ReadString('\n')
			dir, _, ok := strings.Cut(strings.TrimPrefix(dsn, "host="), " ")
			if !ok {
				t.Fatal(dsn)
			}
			lock, err := os.ReadFile(dir + "/data/postmaster.pid")
			if err != nil {
				t.Fatal(err)
			}
			var pid int
			if _, err := fmt.Sscan(string(lock), &pid); err != nil || syscall.Kill(pid, 0) != nil {
				t.Fatalf("it does not run: %v\n%s", err, lock)
			}
			if err := end(cmd, input); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			gone(t, dir, pid)
		})
	}
}
