// Package devserver runs a real Temporal server for tests, in a process of its own with a file for its data, so that it can be killed and started again.
package devserver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/internal/component"
)

// how says where the server's program is to be had.
const how = "scripts/test installs it; or name the program temporal in PAWL_TEMPORAL"

// Server is a server that runs, or was killed.
type Server struct {
	Address string
	data    string
	program string
	cmd     *exec.Cmd
}

// Start runs a server until the test is over.
func Start(t testing.TB) *Server {
	t.Helper()
	return start(t, filepath.Join(t.TempDir(), "temporal.db"))
}

// InMemory runs a server that keeps nothing once it is killed, and waits for no disk.
func InMemory(t testing.TB) *Server {
	t.Helper()
	return start(t, "")
}

func start(t testing.TB, data string) *Server {
	t.Helper()
	program := os.Getenv("PAWL_TEMPORAL")
	if program == "" {
		path, err := exec.LookPath("temporal")
		if err != nil {
			component.Absent(t, "there is no Temporal server", how)
		}
		program = path
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Address: l.Addr().String(), data: data, program: program}
	_ = l.Close()
	s.Again(t)
	t.Cleanup(s.Kill)
	return s
}

// Again starts the server that was killed, with its data.
func (s *Server) Again(t testing.TB) {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.Address)
	metrics, err := net.Listen("tcp", "127.0.0.1:0") // by default it is the port and 1000, which may be taken
	if err != nil {
		t.Fatal(err)
	}
	free := metrics.Addr().(*net.TCPAddr).Port
	_ = metrics.Close()
	args := []string{"server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port, "--metrics-port", strconv.Itoa(free), "--log-level", "error"}
	if s.data != "" {
		args = append(args, "--db-filename", s.data)
	}
	s.cmd = exec.Command(s.program, args...) //nolint:gosec // the program that was found, with what stands above
	s.cmd.SysProcAttr = withUs()
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		c, err := dial(t.Context(), s.Address)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the Temporal server does not answer: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Kill ends the server at once.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// PID is the number of the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Client connects to the server until the test is over.
func (s *Server) Client(t testing.TB) client.Client {
	t.Helper()
	c, err := dial(t.Context(), s.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func dial(ctx context.Context, address string) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := client.DialContext(ctx, client.Options{HostPort: address, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return nil, fmt.Errorf("devserver: %w", err)
	}
	return c, nil
}
