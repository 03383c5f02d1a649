// Command collector is an OpenTelemetry Collector with the parts that the tests need: the Collector's own receiver of OTLP, by HTTP and by gRPC, and a file for what comes, in the Collector's own JSON, one request a line. It is a module of its own, since nobody else is to
// build its dependencies.
//
// It prints the addresses, `{"http":"http://…","grpc":"http://…"}`, once it listens there, and ends when its standard input does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "collector: want the file that is written")
		os.Exit(2)
	}
	if err := collect(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

// file takes what comes, one request a line.
type file struct {
	mu  sync.Mutex
	out *os.File
}

func (f *file) write(line []byte, err error) error {
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err = f.out.Write(append(line, '\n'))
	return err
}

func collect(path string) (err error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // the test names it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	to := &file{out: out}
	factory := otlpreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	web, rpc := free(), free()
	cfg.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = web
	cfg.Protocols.GRPC.GetOrInsertDefault().NetAddr.Endpoint = rpc
	set := receiver.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(), BuildInfo: component.NewDefaultBuildInfo()}
	ctx := context.Background()
	parts, err := receivers(ctx, factory, set, cfg, to)
	if err != nil {
		return err
	}
	for _, p := range parts { // the three are one server
		if err := p.Start(ctx, componenttest.NewNopHost()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Shutdown(ctx)) }()
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"http": "http://" + web, "grpc": "http://" + rpc}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// receivers take the three kinds of things.
func receivers(ctx context.Context, f receiver.Factory, set receiver.Settings, cfg component.Config, to *file) ([]component.Component, error) {
	spans, err1 := consumer.NewTraces(func(_ context.Context, d ptrace.Traces) error {
		return to.write((&ptrace.JSONMarshaler{}).MarshalTraces(d))
	})
	numbers, err2 := consumer.NewMetrics(func(_ context.Context, d pmetric.Metrics) error {
		return to.write((&pmetric.JSONMarshaler{}).MarshalMetrics(d))
	})
	events, err3 := consumer.NewLogs(func(_ context.Context, d plog.Logs) error {
		return to.write((&plog.JSONMarshaler{}).MarshalLogs(d))
	})
	traces, err4 := f.CreateTraces(ctx, set, cfg, spans)
	metrics, err5 := f.CreateMetrics(ctx, set, cfg, numbers)
	logs, err6 := f.CreateLogs(ctx, set, cfg, events)
	return []component.Component{traces, metrics, logs}, errors.Join(err1, err2, err3, err4, err5, err6)
}

// free is an address that nobody listens at.
func free() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
