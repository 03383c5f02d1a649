package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/cli"
	"github.com/pawl-dev/pawl/stream/postgres"
	"github.com/pawl-dev/pawl/temporal"
)

// service is Temporal as the program has it.
type service struct{}

// Settle takes from Temporal's own environment and configuration file what the command line leaves open.
func (service) Settle(at cli.Service) (cli.Service, error) {
	o, err := options(at)
	return cli.Service{Address: o.HostPort, Namespace: o.Namespace, Queue: cmp.Or(at.Queue, temporal.Queue)}, err
}

// options are a client's: the command line before the environment, before the file.
func options(at cli.Service) (client.Options, error) {
	o, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return o, errdefs.Validation.Errorf("Temporal's configuration (TEMPORAL_…, or its file): %w", err)
	}
	o.HostPort = cmp.Or(at.Address, o.HostPort, "127.0.0.1:7233")
	o.Namespace = cmp.Or(at.Namespace, o.Namespace, client.DefaultNamespace)
	o.Logger = log.NewStructuredLogger(logger())
	return o, nil
}

// logger has what goes wrong in the background on standard error: progress is told otherwise.
func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// dialWithin is how long one try to connect may take.
const dialWithin = 10 * time.Second

// Dial connects, and looks whether the namespace is there.
func (service) Dial(ctx context.Context, at cli.Service, note func(string)) (cli.Connection, error) {
	o, err := options(at)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, refused(at, err)
	}
	conn := &connection{client: c, at: at}
	if _, err := conn.pollers(ctx); err != nil {
		conn.Close()
		return nil, refused(at, err)
	}
	if at.Database == "" {
		return conn, nil
	}
	if conn.stream, err = postgres.Open(ctx, at.Database); err != nil { // a run does without
		note(fmt.Sprintf("what models and tools say is shown only when it has been said: %v", err))
	}
	return conn, nil
}

// refused says what of a service can't be had, and whether another try may help.
func refused(at cli.Service, err error) error {
	class := errdefs.NotAvailable
	remedy := "is it running, and is the address right? See --address and TEMPORAL_ADDRESS"
	switch {
	case errors.As(err, new(*serviceerror.NamespaceNotFound)):
		class, remedy = errdefs.NotFound, fmt.Sprintf("it has no namespace %s: make it with temporal operator namespace create, or name another", at.Namespace)
	case errors.As(err, new(*serviceerror.PermissionDenied)):
		class, remedy = errdefs.PolicyDenied, "it does not admit this caller: see TEMPORAL_API_KEY and TEMPORAL_TLS_…"
	}
	return class.Errorf("the Temporal service at %s: %s: %w", at.Address, remedy, err)
}

// connection is a client, and where it is connected to.
type connection struct {
	client client.Client
	at     cli.Service
	stream *postgres.Store // nil: there is none
}

// Close closes the client, and the stream.
func (c *connection) Close() {
	c.client.Close()
	if c.stream != nil {
		_ = c.stream.Close() // it is always nil
	}
}

// Engine has the work of inner done by the workers of the queue.
func (c *connection) Engine(inner engine.Engine) engine.Engine {
	opts := []temporal.EngineOption{temporal.WithQueue(c.at.Queue)}
	if c.stream != nil {
		opts = append(opts, temporal.WithStream(c.stream))
	}
	return temporal.NewEngine(c.client, inner, opts...)
}

// Waits says that nobody is at the queue.
func (c *connection) Waits(ctx context.Context) string {
	n, err := c.pollers(ctx)
	if err != nil || n > 0 {
		return ""
	}
	return fmt.Sprintf("no worker is at the queue %s of %s: start one with pawl worker", c.at.Queue, c.at.Address)
}

// pollers is how many workers have been at the queue lately.
func (c *connection) pollers(ctx context.Context) (int, error) {
	d, err := c.client.DescribeTaskQueue(ctx, c.at.Queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	return len(d.GetPollers()), err
}

// Work works.
func (c *connection) Work(ctx context.Context, work cli.Work, ready func()) error {
	config := c.config(work)
	config.Ready = ready
	w, err := temporal.NewWorker(config)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// config is what a worker is made of.
func (c *connection) config(work cli.Work) temporal.Config {
	config := temporal.Config{
		Client: c.client, Store: work.Store, Queue: c.at.Queue, Log: logger(), Options: worker.Options{WorkerStopTimeout: work.Grace},
		Members: []temporal.Member{{Agent: work.Parts.Agent, Engine: work.Parts.Engine, Options: work.Parts.Options, Subagents: work.Parts.Subagents}},
	}
	if config.Timing.Retries = work.Retries; work.Retries == 0 {
		config.Timing.Retries = -1
	}
	if c.stream != nil {
		config.Stream = c.stream
	}
	return config
}
