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
	"github.com/pawl-dev/pawl/internal/testkit/parallel"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	streams "github.com/pawl-dev/pawl/stream/postgres"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
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
	parallel.RaiseLimit()
	code := pgtest.Main(m)
	devserver.Stop()
	os.Exit(code)
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

// laborer is an agent of so many steps, whose tools write down each time that they run, by the key of their call. Of one that has more than ten, the tenth is a task for a subagent.
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
	tools := []tool.Tool{tool.Func("work", "Works.", note("work"), opts...), tool.Func("read", "Reads.", note("read"), tool.ReadOnly)}
	helper, err := loop.New(loop.Config{Model: laboring(3), Limits: loop.Limits{Repeats: -1}, Tools: tools})
	if err != nil {
		return temporal.Member{}, err
	}
	subs := agent.Subagents{{Agent: agent.Agent{ID: "helper-of-" + id}, Engine: helper, Description: "helps"}}
	task, err := agent.Task(subs)
	if err != nil {
		return temporal.Member{}, err
	}
	eng, err := loop.New(loop.Config{Model: laboring(steps), Limits: loop.Limits{Repeats: -1}, Tools: append(tools, task)})
	return temporal.Member{Agent: agent.Agent{ID: id, Instructions: "You work."}, Engine: eng, Subagents: subs}, err
}

// laboring is a model that makes so many calls, one after the other, and then says that it is done.
type laboring int

func (n laboring) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	results := 0
	for _, m := range req.Messages.All() {
		for range message.Of[message.ToolResult](m) {
			results++
		}
	}
	step, usage := results+1, model.Usage{Input: 10, Output: 5}
	c := message.ToolCall{ID: fmt.Sprint("c", step), Name: "work", Input: fmt.Sprintf(`{"step":%d}`, step)}
	switch {
	case step > int(n):
		return &model.Response{Message: message.Assistant("done"), Usage: usage}, nil
	case step == 10:
		for _, t := range req.Tools {
			if t.Name == agent.TaskName {
				c.Name, c.Input = agent.TaskName, `{"agent":"helper-of-laborer","prompt":"help"}`
			}
		}
	case step%3 == 0:
		c.Name = "read"
	}
	return &model.Response{Message: message.Assistant("", c), Usage: usage}, nil
}

func (n laboring) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := n.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Text: r.Message.Text(), Final: true, Response: r})
}
