package temporal_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// quick is a timing for tests.
var quick = temporal.Timing{Heartbeat: 3 * time.Second, Again: 50 * time.Millisecond, Slowest: time.Second}

// works runs a worker until the test is over.
func works(t *testing.T, c client.Client, store journal.Store, queue string, members ...temporal.Member) {
	t.Helper()
	worksAt(t, c, store, queue, quick, members...)
}

func worksAt(t *testing.T, c client.Client, store journal.Store, queue string, timing temporal.Timing, members ...temporal.Member) *temporal.Worker {
	t.Helper()
	w, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Members: members, Queue: queue, Timing: timing, Options: worker.Options{WorkerStopTimeout: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	runs(t, w)
	return w
}

// runs runs a worker until the test is over.
func runs(t *testing.T, w *temporal.Worker) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// stepping is a model that has the tool work called so often, and then says that it is done.
type stepping int

func (n stepping) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	results := 0
	for _, m := range req.Messages.All() {
		for range message.Of[message.ToolResult](m) {
			results++
		}
	}
	usage := model.Usage{Input: 10, Output: 5}
	if results == int(n) {
		return &model.Response{Message: message.Assistant("done"), Usage: usage}, nil
	}
	call := message.ToolCall{ID: fmt.Sprint("c", results), Name: "work", Input: fmt.Sprintf(`{"step":%d}`, results+1)}
	return &model.Response{Message: message.Assistant("", call), Usage: usage}, nil
}

func (n stepping) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := n.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Text: r.Message.Text(), Final: true, Response: r})
}

func TestARunOfToolSteps(t *testing.T) {
	t.Parallel()
	server := devserver.Shared(t)
	c := server.Client(t)
	store := journal.Memory()
	var did strings.Builder
	eng, err := loop.New(loop.Config{Model: stepping(3), Tools: []tool.Tool{tool.Func("work", "Works.", func(_ context.Context, in struct {
		Step int `json:"step"`
	},
	) (string, error) {
		did.WriteByte(byte('0' + in.Step))
		return "did it", nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	ag := agent.Agent{ID: "worker", Instructions: "You work."}
	works(t, c, store, "q", temporal.Member{Agent: ag, Engine: eng})
	began := time.Now()
	res, err := agent.Run(t.Context(), ag, temporal.NewEngine(c, eng, temporal.WithQueue("q")), agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store))
	if err != nil || res.Err != nil {
		t.Fatal(err, res)
	}
	t.Log(time.Since(began), res.Text(), res.Steps, did.String())
	if res.Text() != "done" || did.String() != "123" || res.Steps != 4 {
		t.Errorf("%q, %d steps, tools %q", res.Text(), res.Steps, did.String())
	}
}
