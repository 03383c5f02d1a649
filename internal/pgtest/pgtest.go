// Package pgtest runs a real PostgreSQL server for tests: a throwaway cluster that belongs to the test process, reached through a Unix
// socket in a private directory and never through the network. Settings are small, but it writes durably (fsync on).
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
//	func TestIt(t *testing.T) { connect(pgtest.DSN(t)) }
//
// The quick tier has no server: there [DSN] and [New] skip the test.
//
// Nothing stays behind: [Main] stops the server that [DSN] started and removes its files, and a watchdog does so when the process is killed.
// PostgreSQL refuses to run as root; then it runs as the user nobody.
package pgtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// how says where a server is to be had.
const how = "scripts/test installs it: Debian's package postgresql"

// ErrAbsent says that the programs of a server are not on this machine.
var ErrAbsent = errors.New("no PostgreSQL server (postgres and initdb)")

// shared is the server of this process.
var shared struct {
	sync.Mutex
	started bool
	server  *Server
	err     error
}

// Main runs the tests, stops the server that [DSN] started, if one did, and gives the exit
// code. An Example can't skip itself. So Main skips the examples that need a server, given as
// a pattern of -test.skip, if there is none here and none is required.
func Main(m interface{ Run() int }, examples ...string) int {
	if len(examples) > 0 {
		flag.Parse()
		if Absent() && (tier.Quick() || !component.Required()) {
			_ = flag.Set("test.skip", examples[0])
		}
	}
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		if err := shared.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest: stop:", err)
			code = max(code, 1)
		}
		shared.server = nil
	}
	return code
}

// DSN gives the address of a new, empty database on the process's server, which the first call starts (about 2 s). Where PostgreSQL
// is absent the test is skipped, or fails: see package component. The package needs a TestMain that calls [Main].
func DSN(t testing.TB) string {
	t.Helper()
	tier.SkipQuick(t, needsServer)
	dsn, err := Database()
	check(t, err)
	return dsn
}

// Database is [DSN] for an Example. It fails with [ErrAbsent] where PostgreSQL is absent.
func Database() (dsn string, err error) {
	shared.Lock()
	defer shared.Unlock()
	if !shared.started {
		shared.started = true
		shared.server, shared.err = Start()
	}
	if shared.err != nil {
		return "", shared.err
	}
	return shared.server.Database()
}

func check(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrAbsent) {
		component.Absent(t, err.Error(), how)
	}
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
}

const needsServer = "it needs a PostgreSQL server"

// Absent reports whether there is no server to be had: its programs are missing here, or the
// quick tier runs, which uses none.
func Absent() bool {
	_, err := binaries()
	return tier.Quick() || err != nil
}

// New starts a server of the test's own, to be killed and started again. It is stopped when the test ends.
func New(t testing.TB) *Server {
	t.Helper()
	tier.SkipQuick(t, needsServer)
	s, err := Start()
	check(t, err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("pgtest: stop: %v", err)
		}
	})
	return s
}

// DSN gives the address of a new, empty database on this server.
func (s *Server) DSN(t testing.TB) string {
	t.Helper()
	dsn, err := s.Database()
	check(t, err)
	return dsn
}

// Kill kills every process of the server at once, as a failure of power does, and returns when its main process is gone.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	check(t, s.Crash())
}

// Restart starts the server again after [Server.Kill]; it has then recovered what was committed.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	check(t, s.Recover())
}

// Dir is the private directory that holds the server's files and its socket.
func (s *Server) Dir() string { return s.dir }

// Pid is the number of the server's main process.
func (s *Server) Pid() int { return s.main.cmd.Process.Pid }

// patience is how long a server may take to start or to stop.
const patience = time.Minute

// binaries finds the directory of the server's programs.
func binaries() (dir string, err error) {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // not on Debian's PATH
	for i := range debian {
		dirs = append(dirs, debian[len(debian)-1-i])
	}
	for _, dir := range dirs {
		if executable(filepath.Join(dir, "postgres")) && executable(filepath.Join(dir, "initdb")) {
			return dir, nil
		}
	}
	return "", ErrAbsent
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// within is a context for one action of a server.
func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}
