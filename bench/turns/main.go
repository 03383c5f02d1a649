// Command turns measures what a turn of an agent costs beside its transport: Pawl, and loops written by hand, over the same sessions with the same model. See bench/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/signal"

	"github.com/pawl-dev/pawl/bench/internal/child"
	"github.com/pawl-dev/pawl/bench/internal/load"
	"github.com/pawl-dev/pawl/bench/internal/upstream"
)

// The parts that this program runs itself as.
const (
	asUpstream = "upstream"
	asRun      = "run"
	asKept     = "kept"
)

// systems are what this program measures. A further one is a program of its own that answers to "run": see package load.
var systems = load.Systems{
	"f0":          newF0,
	"f1":          newF1,
	"f3":          newF3,
	"f3-sqlite":   newF3SQLite,
	"pawl":        pawlWith(nil, nil),
	"pawl-memory": pawlWith(inMemory, nil),
	"pawl-sqlite": pawlWith(inFile, nil),
	"pawl-full":   pawlWith(inMemory, full),
}

func init() { maps.Copy(systems, otherWires) }

func main() {
	if err := do(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "turns:", err)
		os.Exit(1)
	}
}

func do(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(args) > 0 {
		switch args[0] {
		case asUpstream:
			return upstreamMain(args[1:])
		case asRun:
			return load.Main(ctx, args[1:], systems, os.Stdout)
		case asKept:
			return keptMain(ctx, args[1:], os.Stdout)
		}
	}
	return benchMain(ctx, args, os.Stdout)
}

func upstreamMain(args []string) error {
	flags := flag.NewFlagSet(asUpstream, flag.ContinueOnError)
	latency := flags.Duration("latency", 0, "wait so long before each answer")
	protocol := flags.String("tls", "", "http1 or http2, over TLS")
	cert := flags.String("cert", "", "file of the certificate")
	key := flags.String("key", "", "file of its key")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := &http.Server{Handler: upstream.New(*latency).Handler()} //nolint:gosec // child.Serve sets its timeout
	if *protocol != "" {
		if err := secured(s, *protocol, *cert, *key); err != nil {
			return err
		}
	}
	return child.Serve(s)
}
