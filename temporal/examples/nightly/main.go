// Nightly has an agent write a report each night. A schedule of a Temporal service orders the run, and workers do it: any number of processes, of which any may die on the way.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/tool"
)

var (
	name = flag.String("model", "scripted/examples/nightly/model.yaml", "PROVIDER/NAME")
	dir  = flag.String("dir", ".", "where the orders are, the reports and the journal")
	now  = flag.Bool("now", false, "of schedule: tonight's report now")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, what string) error {
	c, err := client.Dial(client.Options{HostPort: os.Getenv("TEMPORAL_ADDRESS")}) // "" is 127.0.0.1:7233
	if err != nil {
		return err
	}
	defer c.Close()
	switch what {
	case "worker":
		return work(ctx, c)
	case "schedule":
		return schedule(ctx, c)
	}
	return fmt.Errorf("say worker or schedule")
}

// work does what is ordered until ctx ends. A worker has all that is not data: models with their keys, tools, and the journal that all workers share.
func work(ctx context.Context, c client.Client) error {
	m, err := pawl.OpenModel(*name)
	if err != nil {
		return err
	}
	if missing, _ := pawl.Key(*name); len(missing) > 0 { // rather now than at night
		return fmt.Errorf("model %s needs a key: set %s", *name, strings.Join(missing, " or "))
	}
	store, err := sqlite.Open(filepath.Join(*dir, "journal.db")) //nolint:contextcheck // it takes none. On several machines: postgres.Open
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{orders(), report()}})
	if err != nil {
		return err
	}
	reporter := agent.Agent{ID: "reporter", Instructions: "You write reports of two lines: how many orders there were, and what they come to."}
	w, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Members: []temporal.Member{{Agent: reporter, Engine: eng}}})
	if err != nil {
		return err
	}

	// The schedule's own workflow is an ordinary one.
	nights := worker.New(c, queue, worker.Options{})
	nights.RegisterWorkflow(Nightly)
	nights.RegisterActivity(&Clerk{c})
	if err := nights.Start(); err != nil {
		return err
	}
	defer nights.Stop()
	return w.Run(ctx)
}

func orders() tool.Tool {
	return tool.Func("orders", "Read the orders of the day.", func(context.Context, struct{}) (string, error) {
		b, err := os.ReadFile(filepath.Join(*dir, "orders.csv"))
		return string(b), err
	}, tool.ReadOnly)
}

// report may be called twice for one night, should a worker die: the file is the same.
func report() tool.Tool {
	return tool.Func("report", "Write the report of a night.", func(_ context.Context, in struct {
		Text string `json:"text"`
	},
	) (string, error) {
		return "written", os.WriteFile(filepath.Join(*dir, "report.txt"), []byte(in.Text), 0o600)
	}, tool.Idempotent)
}
