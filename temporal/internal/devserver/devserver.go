// Package devserver runs a real Temporal server for tests, in a process of its own: one that all tests of a process share, in memory, or one of a test's own, which has a file for its data, so that it can be killed and started
// again. It is a development server with its limits: all workflows are in one shard.
package devserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// how says where the server's program is to be had.
const how = "scripts/test installs it; or name the program temporal in PAWL_TEMPORAL"

// Server is a server that runs, or was killed.
type Server struct {
	Address   string
	Namespace string

	data    string // its file; "": it has none
	program string
	cmd     *exec.Cmd
	exited  <-chan struct{} // closed when cmd has exited
}

// shared is the server of this process.
var shared struct {
	sync.Mutex
	server     *Server
	namespaces int
}

// Shared gives the server of this process, which the first call starts (about 1 s), with a namespace of the test's own: nothing else has its workflows. The package needs a TestMain that calls [Stop].
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		s := prepare(t)
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		shared.server = s
	}
	shared.namespaces++
	s := &Server{Address: shared.server.Address, Namespace: fmt.Sprint("test-", shared.namespaces), program: shared.server.program}
	if err := s.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Stop ends the server that [Shared] started, if it did.
func Stop() {
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.Kill()
		shared.server = nil
	}
}

// Start runs a server of the test's own until it is over.
func Start(t testing.TB) *Server {
	t.Helper()
	s := prepare(t)
	s.data = filepath.Join(t.TempDir(), "temporal.db")
	s.Again(t)
	t.Cleanup(s.Kill)
	return s
}

// InMemory runs a server of the test's own that waits for no disk, and keeps nothing once it is killed.
func InMemory(t testing.TB) *Server {
	t.Helper()
	s := prepare(t)
	s.Again(t)
	t.Cleanup(s.Kill)
	return s
}

// PID is the number of the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// prepare finds the program.
func prepare(t testing.TB) *Server {
	t.Helper()
	tier.SkipQuick(t, "it needs a Temporal server")
	program := os.Getenv("PAWL_TEMPORAL")
	if program == "" {
		path, err := exec.LookPath("temporal")
		if err != nil {
			component.Absent(t, "there is no Temporal server", how)
		}
		program = path
	}
	return &Server{Namespace: client.DefaultNamespace, program: program}
}

// free gives a port that nobody listens at.
func free() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("devserver: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Again starts the server that was killed, with its data.
func (s *Server) Again(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

// start starts the process, and waits until it answers. If the server's port is taken, which can
// happen between the look for a free one and its use, it tries again: a server that has not run
// yet gets another port, the others wait for theirs.
func (s *Server) start() error {
	deadline, isNew := time.Now().Add(time.Minute), s.Address == ""
	for {
		if isNew {
			port, err := free()
			if err != nil {
				return err
			}
			s.Address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		}
		exited, err := s.startProcess()
		if err != nil {
			return err
		}
		if err = s.untilReady(exited, deadline); err == nil {
			return nil
		}
		s.Kill()
		if time.Now().After(deadline) {
			return fmt.Errorf("devserver: the Temporal server does not answer: %w", err)
		}
	}
}

// startProcess starts the process. The channel is closed when the process exits.
func (s *Server) startProcess() (exited <-chan struct{}, err error) {
	_, port, _ := net.SplitHostPort(s.Address)
	metrics, err := free() // by default it is the port and 1000, which may be taken
	if err != nil {
		return nil, err
	}
	args := []string{
		"server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port,
		"--metrics-port", strconv.Itoa(metrics), "--log-level", "error",
		// By default a shard is looked at for tasks 20 times a second at most, and here there is
		// one: each task of a run that is alone would wait 50 ms.
		"--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000",
		// What is tried again after some milliseconds waits for a second by default.
		"--dynamic-config-value", `history.timerProcessorMaxTimeShift="10ms"`,
	}
	if s.data != "" {
		// What was written is there when the process is killed. A failure of power is not tried.
		args = append(args, "--db-filename", s.data, "--sqlite-pragma", "synchronous=off")
	}
	cmd := exec.Command(s.program, args...) //nolint:gosec // whoever runs the tests names it
	cmd.SysProcAttr = withUs()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("devserver: %w", err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }()
	s.cmd, s.exited = cmd, done
	return done, nil
}

// untilReady waits until the server answers. It fails when the process exits or the time is over.
func (s *Server) untilReady(exited <-chan struct{}, deadline time.Time) error {
	for {
		c, err := dial(context.Background(), s.Address, s.Namespace)
		if err == nil {
			c.Close()
			return nil
		}
		select {
		case <-exited:
			return errors.New("it exited")
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// register makes the namespace.
func (s *Server) register(ctx context.Context) error {
	c, err := client.NewNamespaceClient(client.Options{HostPort: s.Address, Logger: silent()})
	if err != nil {
		return fmt.Errorf("devserver: %w", err)
	}
	defer c.Close()
	err = c.Register(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: s.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		return fmt.Errorf("devserver: namespace %s: %w", s.Namespace, err)
	}
	return nil
}

// Kill ends the server at once.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		<-s.exited
		s.cmd = nil
	}
}

// Client connects to the server until the test is over.
func (s *Server) Client(t testing.TB) client.Client {
	t.Helper()
	c, err := dial(t.Context(), s.Address, s.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func dial(ctx context.Context, address, namespace string) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := client.DialContext(ctx, client.Options{HostPort: address, Namespace: namespace, Logger: silent()})
	if err != nil {
		return nil, fmt.Errorf("devserver: %w", err)
	}
	return c, nil
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
