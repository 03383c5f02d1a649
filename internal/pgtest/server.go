package pgtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a cluster with its running server. Make it with [New], or with [Start].
type Server struct {
	bin, dir string
	main     *process
	watchdog *exec.Cmd
	pipe     io.WriteCloser // to the watchdog; it ends when this process does

	mu        sync.Mutex
	databases int
}

// access lets everybody in through the socket, which only this user can reach, but for the role locked: it needs a password.
const access = "local all locked scram-sha-256\nlocal all all trust\n"

var settings = []string{
	"listen_addresses=", "unix_socket_permissions=0700", "fsync=on", "synchronous_commit=on", "full_page_writes=on",
	"shared_buffers=16MB", "max_connections=100", "max_wal_size=256MB", "dynamic_shared_memory_type=mmap", "lc_messages=C", "jit=off",
	"log_min_messages=warning", "log_min_error_statement=panic",
}

// Start is [New] for where there is no test: who starts it has to [Server.Stop] it. It fails with [ErrAbsent] where PostgreSQL is absent.
func Start() (s *Server, err error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	s = &Server{bin: bin}
	if s.dir, err = os.MkdirTemp(short(), "pawl-pg"); err != nil {
		return nil, err
	}
	if err := own(s.dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.watch(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.initialize(); err != nil {
		return nil, errors.Join(err, s.unwatch())
	}
	if s.main, err = s.run(); err != nil {
		return nil, errors.Join(err, s.unwatch())
	}
	return s, nil
}

// short is a directory for a socket, whose path may have about 100 bytes, and that another user may pass through.
func short() string {
	if info, err := os.Stat("/tmp"); err == nil && info.IsDir() {
		return "/tmp"
	}
	return os.TempDir()
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...) //nolint:gosec // programs of the system
	cmd.Dir = s.dir
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	detach(cmd)
	return cmd
}

func (s *Server) initialize() error {
	cmd := s.command(filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", "pawl", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return os.WriteFile(filepath.Join(s.data(), "pg_hba.conf"), []byte(access), 0o600) // it is there: its owner stays
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// watching is the watchdog: it reads the number of the process that has to die with us, - for none, until we close the pipe or are gone.
const watching = `
while read -r p; do pid=$p; done
case "$pid" in [0-9]*)
	kill -QUIT "$pid"
	n=0
	while kill -0 "$pid" && [ $n -lt 50 ]; do sleep 0.1; n=$((n+1)); done
	kill -KILL "$pid" ;;
esac 2>/dev/null
rm -rf "$1"
`

func (s *Server) watch() (err error) {
	s.watchdog = s.command("sh", "-c", watching, "watchdog", s.dir)
	s.watchdog.Dir = "/"
	if s.pipe, err = s.watchdog.StdinPipe(); err != nil {
		return err
	}
	return s.watchdog.Start()
}

// unwatch lets the watchdog remove the directory.
func (s *Server) unwatch() error {
	return errors.Join(s.pipe.Close(), s.watchdog.Wait())
}

// Stop stops the server and removes its files.
func (s *Server) Stop() error {
	var err error
	if s.main != nil {
		err = s.main.end()
	}
	return errors.Join(err, s.watchFor("-"), s.unwatch())
}

func (s *Server) watchFor(pid string) error {
	_, err := io.WriteString(s.pipe, pid+"\n")
	return err
}

// process is a running postgres.
type process struct {
	cmd  *exec.Cmd
	log  *log
	done chan struct{} // closed when it is gone and its log is read
	err  error         // how it ended, once done is closed
}

// run starts postgres and waits until it takes connections.
func (s *Server) run() (*process, error) {
	args := []string{"-D", s.data(), "-k", s.dir}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	p := &process{cmd: s.command(filepath.Join(s.bin, "postgres"), args...), log: &log{ready: make(chan struct{})}, done: make(chan struct{})}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		p.log.read(stderr)
		p.err = p.cmd.Wait()
	}()
	if err := s.watchFor(fmt.Sprint(p.cmd.Process.Pid)); err != nil {
		return nil, errors.Join(err, p.end())
	}
	select {
	case <-p.log.ready:
		return p, nil
	case <-p.done:
		return nil, errors.Join(fmt.Errorf("postgres ended: %w\n%s", p.err, p.log), s.watchFor("-"))
	case <-time.After(patience):
		return nil, errors.Join(fmt.Errorf("postgres is not ready after %v\n%s", patience, p.log), p.end(), s.watchFor("-"))
	}
}

// end stops the server at once, without a last checkpoint: nobody will read what it holds. By force when it does not.
func (p *process) end() error {
	select {
	case <-p.done:
		return nil // killed before
	default:
	}
	if err := p.cmd.Process.Signal(immediate); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("postgres does not stop\n%s", p.log), p.cmd.Process.Kill())
	}
}

// Crash is [Server.Kill] for where there is no test to fail.
func (s *Server) Crash() error {
	err := killAll(s.main.cmd.Process.Pid)
	<-s.main.done
	return errors.Join(err, s.watchFor("-"))
}

// Recover is [Server.Restart] for where there is no test to fail. It tries until the last process of the killed server has let go of its memory.
func (s *Server) Recover() (err error) {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if s.main, err = s.run(); err == nil || !strings.Contains(err.Error(), "still in use") || time.Now().After(end) {
			return err
		}
	}
}

// Database is [Server.DSN] for where there is no test to fail.
func (s *Server) Database() (dsn string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := within()
	defer cancel()
	c, err := pgx.Connect(ctx, s.dsn("postgres"))
	if err != nil {
		return "", err
	}
	s.databases++
	name := fmt.Sprint("test", s.databases)
	_, err = c.Exec(ctx, "CREATE DATABASE "+name)
	return s.dsn(name), errors.Join(err, c.Close(ctx))
}

func (s *Server) dsn(database string) string {
	return fmt.Sprintf("host=%s user=pawl dbname=%s sslmode=disable", s.dir, database)
}

// log keeps the last lines of the server's log, and closes ready when it takes connections.
type log struct {
	ready chan struct{}

	mu   sync.Mutex
	last []string
}

func (l *log) read(from io.Reader) {
	once := sync.OnceFunc(func() { close(l.ready) })
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if bytes.Contains(line, []byte("ready to accept connections")) {
			once()
		}
		l.mu.Lock()
		if l.last = append(l.last, string(line)); len(l.last) > 30 {
			l.last = l.last[1:]
		}
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// String gives the last lines.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, "")
}
