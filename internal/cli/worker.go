package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// Work is what a worker is made of.
type Work struct {
	Parts   pawl.Parts
	Store   journal.Store
	Grace   time.Duration // that what is under way has to end in, once ctx has ended
	Retries int           // of a model call that failed for a reason that may pass: the setting, which the service heeds in place of the model
}

// How long a worker waits: for a service that is not there yet, and between two tries.
const (
	dialWithin = time.Minute
	dialEvery  = time.Second
)

func workerCommand(s streams, p Program) *cobra.Command {
	c := common{program: p, begins: true}
	var at Service
	grace := 5 * time.Second
	cmd := &cobra.Command{
		Use:   "worker [flags]",
		Short: "Do the work of runs that Temporal schedules",
		Long: `Works for runs that are begun by pawl run --engine temporal://HOST:PORT, in the project directory, with the agent that pawl run would have there: its model, tools, rules,
hooks, subagents, MCP servers and sandbox. Any number of workers, on any number of machines, do runs together; one that dies is replaced by the others, from what is on record. All of
them and those who begin runs have the same journal: in PostgreSQL, or where all are on one machine in a file. See docs/temporal.md.

Where the service is, is said by --address, or as for Temporal's own tools: by TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS and the like, or a profile of its
configuration file. A service that does not answer is tried for a minute.

It works until it is told to stop, by Ctrl-C or SIGTERM. Then it takes up nothing new, gives what is under way the time of --grace to end, and lets go of the rest: other workers take that up.`,
		Example: `  pawl worker --journal postgres://pawl@db/pawl --address temporal:7233
  pawl worker --dir app --queue app --json`,
		Args: cobra.NoArgs,
	}
	c.addKept(cmd)
	cmd.Flags().Lookup("timeout").Hidden = true
	cmd.Flags().BoolVar(&c.json, "json", false, "say that it works in one line of JSON, on standard output")
	cmd.Flags().StringVar(&at.Address, "address", "", "where the service is: `HOST:PORT`; default: that of Temporal's environment, else 127.0.0.1:"+defaultPort)
	cmd.Flags().StringVar(&at.Namespace, "namespace", "", "the `NAME` of a namespace of it; default: that of Temporal's environment, else default")
	cmd.Flags().StringVar(&at.Queue, "queue", "", "the `NAME` of the task queue that runs come by; default: pawl")
	cmd.Flags().DurationVar(&grace, "grace", grace, "how much `time` what is under way has to end in, once the worker is told to stop")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		switch {
		case c.at != nil:
			return usage("--engine %s…: say where the service is with --address", scheme)
		case c.timeout != 0:
			return usage("--timeout: it is the time of a run: give it to pawl run")
		case grace < 0:
			return usage("--grace %v: want a time such as 10s, 0 for none", grace)
		}
		if at.Address != "" {
			if at.Address, err = addressOf(at.Address); err != nil {
				return usage("--address: %v", err)
			}
		}
		if err := p.handOver("worker"); err != nil {
			return err
		}
		return workAt(cmd.Context(), s, c, at, grace)
	}
	return cmd
}

// workAt works until it is told to stop, which is no failure.
func workAt(ctx context.Context, s streams, c common, at Service, grace time.Duration) error {
	at, err := c.settled(at)
	if err != nil {
		return err
	}
	o, err := c.options(ctx)
	if err != nil {
		return err
	}
	store, closeStore, err := c.store(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }()
	o.Journal, o.OutputDir = store, c.outputs(o.ProjectRoot)
	rt, err := pawl.New(ctx, o)
	if err != nil {
		return wrongUse(err)
	}
	defer func() { _ = rt.Close() }()
	conn, err := c.dial(ctx, s, at)
	if err != nil {
		return err
	}
	defer conn.Close()
	parts, release := rt.Parts()
	defer release()
	for _, w := range parts.Warnings {
		c.note(s, "%s", w)
	}
	ready := func() { c.works(s, at, rt, parts) }
	if err := conn.Work(ctx, Work{Parts: parts, Store: store, Grace: grace, Retries: c.settingsRetries}, ready); err != nil {
		return c.undialled(err)
	}
	c.note(s, "stopped")
	return nil
}

// dial connects to a service that may not be there yet: whatever starts a worker often starts its service, too.
func (c *common) dial(ctx context.Context, s streams, at Service) (Connection, error) {
	until, said := time.Now().Add(dialWithin), false
	for {
		conn, err := c.program.Temporal.Dial(ctx, at, func(text string) { c.note(s, "%s", text) })
		switch {
		case err == nil:
			return conn, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errdefs.NotAvailable.Is(err) || time.Now().After(until):
			return nil, c.undialled(err)
		}
		if !said {
			said = true
			c.note(s, "trying for %v: %v", dialWithin, err)
		}
		select {
		case <-time.After(dialEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// note tells a person of something.
func (c *common) note(s streams, format string, args ...any) {
	fmt.Fprintln(s.err, printable(c.program.Name+": "+fmt.Sprintf(format, args...)))
}

// works says that the worker does.
func (c *common) works(s streams, at Service, rt *pawl.Runtime, parts pawl.Parts) {
	can := engine.CapabilitiesOf(parts.Engine)
	if !c.json {
		c.note(s, "ready: agent %s of %s, engine %s, model %s; queue %s, namespace %s at %s", parts.Agent.ID, rt.Dir(), can.Name, orNone(can.Model), at.Queue, at.Namespace, at.Address)
		return
	}
	enc := json.NewEncoder(s.out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct { // who does not read it wants the work all the same
		Type      string    `json:"type"`
		Time      time.Time `json:"time"`
		Agent     string    `json:"agent"`
		Engine    string    `json:"engine"`
		Model     string    `json:"model"`
		Dir       string    `json:"dir"`
		Address   string    `json:"address"`
		Namespace string    `json:"namespace"`
		Queue     string    `json:"queue"`
	}{"worker.ready", time.Now().UTC(), parts.Agent.ID, can.Name, can.Model, rt.Dir(), at.Address, at.Namespace, at.Queue})
}

func orNone(name string) string {
	if strings.TrimSpace(name) == "" {
		return "none"
	}
	return name
}
