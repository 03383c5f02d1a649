package temporal_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/temporal"
	streams "github.com/pawl-dev/pawl/temporal/stream/postgres"
	"github.com/pawl-dev/pawl/tool"
)

// The test program is also a worker that is killed: see TestWorkersAreKilled.
func TestMain(m *testing.M) {
	if os.Getenv("PAWL_WORKER") != "" {
		if err := workAsProcess(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(pgtest.Main(m))
}

// workAsProcess works until it is told to stop, or killed.
func workAsProcess() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := client.Dial(client.Options{HostPort: os.Getenv("PAWL_WORKER"), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return err
	}
	defer c.Close()
	store, err := postgres.Open(ctx, os.Getenv("PAWL_DSN"))
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	m, err := laborer("laborer", os.Getenv("PAWL_LEDGER"), 20)
	if err != nil {
		return err
	}
	careful, err := laborer("careful", os.Getenv("PAWL_LEDGER"), 2, tool.RequiresApproval)
	if err != nil {
		return err
	}
	speaks, err := speaker()
	if err != nil {
		return err
	}
	said, err := streams.Open(ctx, os.Getenv("PAWL_DSN"))
	if err != nil {
		return err
	}
	defer func() { _ = said.Close() }()
	w, err := temporal.NewWorker(temporal.Config{
		Client: c, Store: store, Stream: said, Members: []temporal.Member{m, careful, speaks}, Timing: quick,
		Options: worker.Options{StickyScheduleToStartTimeout: time.Second, MaxConcurrentActivityExecutionSize: 10},
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return w.Run(ctx)
}

// laborer is an agent of so many steps, whose tools write down each time that they run, by the key of their call.
func laborer(id, ledger string, steps int, opts ...tool.Option) (temporal.Member, error) {
	type input struct {
		Step int `json:"step"`
	}
	note := func(kind string) func(ctx context.Context, in input) (string, error) {
		return func(ctx context.Context, in input) (string, error) {
			f, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return "", err
			}
			defer func() { _ = f.Close() }()
			if _, err := fmt.Fprintf(f, "%s %s\n", kind, tool.FromContext(ctx).Key); err != nil {
				return "", err
			}
			time.Sleep(20 * time.Millisecond) // the time to be killed in
			return fmt.Sprint("did step ", in.Step), nil
		}
	}
	eng, err := loop.New(loop.Config{Model: stepping(steps), Limits: loop.Limits{Repeats: -1}, Tools: []tool.Tool{
		tool.Func("work", "Works.", note("work"), opts...),
		tool.Func("read", "Reads.", note("read"), tool.ReadOnly),
	}})
	return temporal.Member{Agent: agent.Agent{ID: id, Instructions: "You work."}, Engine: eng}, err
}
