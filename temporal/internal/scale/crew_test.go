package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/tool"
)

// The test program is also a worker: see TestThePredictionHolds.
func TestMain(m *testing.M) {
	if os.Getenv("PAWL_SCALE_WORKER") != "" {
		if err := workAsProcess(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(pgtest.Main(m))
}

// needAll skips a test of the reckoning unless the whole suite runs: what it holds changes rarely,
// and measuring takes minutes.
func needAll(t *testing.T) {
	t.Helper()
	tier.SkipUnlessAll(t, "it measures what a load costs, and what docs/scale.md says of it")
}

// job is what a prompt has an agent do: so many steps, of so many calls each, of a tool.
type job struct {
	Steps, Calls int
	Tool         string
	Think, Work  time.Duration // that the model and a tool take
}

func (j job) prompt() string {
	return fmt.Sprintf("%d %d %s %s %s", j.Steps, j.Calls, j.Tool, j.Think, j.Work)
}

// parse reads a prompt.
func parse(prompt string) (j job, err error) {
	var think, work string
	if _, err = fmt.Sscan(prompt, &j.Steps, &j.Calls, &j.Tool, &think, &work); err != nil {
		return j, err
	}
	if j.Think, err = time.ParseDuration(think); err == nil {
		j.Work, err = time.ParseDuration(work)
	}
	return j, err
}

// doing is a model that does the job that it is asked for. What it says is as long as what models say beside calls.
type doing struct{}

const aside = "Now the next file, then the tests that go with it; what they need is in the same directory, as far as I can see from here."

func (doing) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	var j job
	var err error
	results := 0
	for i, m := range req.Messages.All() {
		if i == 0 {
			if j, err = parse(m.Text()); err != nil {
				return nil, err
			}
		}
		for range message.Of[message.ToolResult](m) {
			results++
		}
	}
	if err := sleep(ctx, j.Think); err != nil {
		return nil, err
	}
	last := j.Steps * j.Calls
	usage := model.Usage{Input: 1234, Output: 56}
	if j.Tool == "mixed" {
		last++
	}
	if results >= last {
		return &model.Response{Message: message.Assistant("done"), Usage: usage}, nil
	}
	name := j.Tool
	if name == "mixed" { // somebody is asked at the end
		name = "write"
		if results >= j.Steps {
			name = "careful"
		}
	}
	var calls []message.ToolCall
	for i := range j.Calls {
		calls = append(calls, message.ToolCall{ID: fmt.Sprintf("toolu_%06d", results+i), Name: name, Input: fmt.Sprintf(`{"path":"internal/part%06d.go","wait":%q}`, results+i, j.Work)})
	}
	return &model.Response{Message: message.Assistant(aside, calls...), Usage: usage}, nil
}

func (d doing) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := d.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Text: r.Message.Text(), Final: true, Response: r})
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// resultBytes is how long each tool's result is.
const resultBytes = 1024

func member() (temporal.Member, error) {
	type input struct {
		Path string `json:"path"`
		Wait string `json:"wait"`
	}
	work := func(ctx context.Context, in input) (string, error) {
		d, err := time.ParseDuration(in.Wait)
		if err == nil {
			err = sleep(ctx, d)
		}
		return strings.Repeat(fmt.Sprintf("%-32s", in.Path), resultBytes/32), err
	}
	eng, err := loop.New(loop.Config{Model: doing{}, Limits: loop.Limits{Steps: -1, Repeats: -1}, Tools: []tool.Tool{
		tool.Func("write", "Writes.", work),
		tool.Func("read", "Reads.", work, tool.ReadOnly),
		tool.Func("careful", "Asks before.", work, tool.RequiresApproval),
	}})
	return temporal.Member{Agent: agent.Agent{ID: "coder", Instructions: "You work."}, Engine: eng}, err
}

// dial is a client whose requests are counted.
func dial(address string, r *requests) (client.Client, error) {
	o := client.Options{HostPort: address, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if r != nil {
		o.MetricsHandler = r.handler()
	}
	return client.Dial(o)
}

// newWorker is a worker of a journal, which asks for tasks of either kind so many times at once; 0: as it does by itself.
func newWorker(c client.Client, store journal.Store, timing temporal.Timing, pollers int) (*temporal.Worker, error) {
	m, err := member()
	if err != nil {
		return nil, err
	}
	return temporal.NewWorker(temporal.Config{Client: c, Store: store, Members: []temporal.Member{m}, Timing: timing, Options: worker.Options{
		WorkerStopTimeout: time.Second, MaxConcurrentActivityTaskPollers: pollers, MaxConcurrentWorkflowTaskPollers: pollers,
	}})
}

// workAsProcess works until its standard input ends, and then says what it took.
func workAsProcess() error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c, err := dial(os.Getenv("PAWL_SCALE_WORKER"), nil)
	if err != nil {
		return err
	}
	defer c.Close()
	store, err := postgres.Open(ctx, os.Getenv("PAWL_DSN"))
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	w, err := newWorker(c, store, temporal.Timing{}, 0)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	return w.Run(ctx)
}
