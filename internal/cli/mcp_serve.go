package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/serve/mcp"
	"github.com/pawl-dev/pawl/tool"
)

// mcpServing are the flags of mcp serve.
type mcpServing struct {
	doors
	stateless bool
	tools     []string
	noAgent   bool
	noAnswer  bool
}

// mcpConnections is how many connections there may be at a time.
const mcpConnections = 512

func mcpServe(s streams, p Program) *cobra.Command {
	c := common{program: p, begins: true}
	var m mcpServing
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Offer the project's agent and its tools as an MCP server",
		Long: `Offers the project's agent, as pawl run would have it there, as the tool "ask", and tools of the project, to MCP clients: to one over standard input and output, or with --http to any number by streamable HTTP, at /mcp.
Everything is on record, and each call of a tool is judged as a model's is. See docs/mcp.md.

It ends, with exit 0, when standard input does, or when it is told to stop (Ctrl-C or SIGTERM). What runs then is left open, and goes on with pawl resume, or when a client asks again in its session.`,
		Example: `  pawl mcp serve --tools read
  PAWL_TOKEN=… pawl mcp serve --http 0.0.0.0:7296`,
		Args: cobra.NoArgs,
	}
	c.addKept(cmd)
	f := cmd.Flags()
	f.StringVar(&m.addr, "http", "", "serve by streamable HTTP at `HOST:PORT`; port 0 is a free one")
	f.BoolVar(&m.stateless, "stateless", false, "with --http: keep no sessions of the protocol, as its version 2026-07-28 has it")
	m.add(cmd)
	f.StringSliceVar(&m.tools, "tools", []string{"read"}, "which of the project's tools are offered: none, read (those that change nothing), all, or their `NAMES` with commas between")
	f.BoolVar(&m.noAgent, "no-agent", false, "offer tools alone")
	f.BoolVar(&m.noAnswer, "no-answer", false, `leave out the tool "answer": what waits for a person is then answered by elicitation, and with pawl approve, reject and answer`)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		tokens, err := m.check()
		if err != nil {
			return err
		}
		if err := c.handOver(); err != nil {
			return err
		}
		return c.serveMCP(cmd.Context(), s, m, tokens)
	}
	return cmd
}

// check looks at the flags, and gets the tokens.
func (m *mcpServing) check() (tokens []string, err error) {
	if m.addr == "" {
		if m.stateless || m.token != "" || len(m.origins) > 0 || len(m.hosts) > 0 {
			return nil, usage("--stateless, --token, --origin and --host go with --http")
		}
		return nil, nil
	}
	if tokens, err = m.tokens(); err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(m.addr)
	ip := net.ParseIP(host)
	switch {
	case err != nil:
		return nil, usage("--http %q: want HOST:PORT, such as 127.0.0.1:7296: %v", m.addr, err)
	case len(tokens) == 0 && host != "localhost" && (ip == nil || !ip.IsLoopback()):
		return nil, usage("--http %s: others can reach this address, so a token is needed: set PAWL_TOKEN, or give --token @FILE; or listen on 127.0.0.1", m.addr)
	}
	return tokens, nil
}

// serveMCP serves until it is told to stop, or nobody is there any more, which is no failure.
func (c *common) serveMCP(ctx context.Context, s streams, m mcpServing, tokens []string) (err error) {
	o, err := c.options(ctx)
	if err != nil {
		return err
	}
	store, closeStore, err := c.store(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }()
	o.Journal, o.OutputDir, o.Tools = journal.Within(store, o.ProjectRoot), c.outputs(o.ProjectRoot), append(o.Tools, askuser.New(nil))
	leave, err := c.atTemporal(ctx, s, &o)
	if err != nil {
		return err
	}
	defer leave()
	rt, err := pawl.New(ctx, o)
	if err != nil {
		return wrongUse(err)
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	offered, err := offeredTools(rt, m.tools)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server, err := mcp.New(rt, mcp.Options{Version: c.program.Version, NoAgent: m.noAgent, NoAnswer: m.noAnswer, Tools: offered, Logger: log})
	if err != nil {
		return wrongUse(err)
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if m.addr == "" {
		return server.Stdio(ctx, struct{ io.Reader }{s.in}, s.out) // a read of standard input can't be ended: it goes on to the end of the process
	}
	return m.listen(ctx, s, server, tokens)
}

// offeredTools says which tools are offered. Nobody but a model asks a person by a tool.
func offeredTools(rt *pawl.Runtime, names []string) (func(tool.Definition) bool, error) {
	asks := func(d tool.Definition) bool { return d.Name == askuser.Name }
	if len(names) == 1 {
		switch names[0] {
		case "none":
			return nil, nil
		case "read":
			return func(d tool.Definition) bool { return mcp.ReadOnly(d) && mcp.All(d) && !asks(d) }, nil
		case "all":
			return func(d tool.Definition) bool { return mcp.All(d) && !asks(d) }, nil
		}
	}
	var known []string
	for _, d := range rt.Tools() {
		if !asks(d) {
			known = append(known, d.Name)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, usage("--tools %s: there is no such tool; want none, read, all, or some of %s", name, strings.Join(known, ", "))
		}
	}
	return func(d tool.Definition) bool { return slices.Contains(names, d.Name) }, nil
}

// bounded is what a handler is served by. Nobody who may not come in holds one of its connections by sending nothing, or by reading nothing.
func bounded(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 15 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
}

// listen serves by HTTP.
func (m *mcpServing) listen(ctx context.Context, s streams, server *mcp.Server, tokens []string) error {
	handler, err := server.Handler(mcp.HTTP{Stateless: m.stateless, Tokens: tokens, Origins: m.origins, Hosts: m.hosts})
	if err != nil {
		return wrongUse(err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.addr)
	if err != nil {
		return usage("--http %s: %v", m.addr, err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	srv := bounded(mux)
	srv.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(s.err, nil), slog.LevelWarn)
	fmt.Fprintf(s.err, "serving MCP at http://%s/mcp\n", l.Addr())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(netutil.LimitListener(l, mcpConnections)) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	_ = l.Close()
	err = server.Close() // ends what runs, and streams
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if srv.Shutdown(late) != nil {
		_ = srv.Close()
	}
	if e := <-served; !errors.Is(e, http.ErrServerClosed) && !errors.Is(e, net.ErrClosed) {
		err = errors.Join(err, e)
	}
	return err
}
