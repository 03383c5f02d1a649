package cli

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/serve"
	streampg "github.com/pawl-dev/pawl/stream/postgres"
)

// defaultAddr is where pawl serve listens when nothing else is said.
const defaultAddr = "127.0.0.1:7295"

// doors are the flags of what is opened to others over HTTP.
type doors struct {
	addr    string
	token   string
	origins []string
	hosts   []string
}

func (d *doors) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&d.token, "token", "", "what clients have to send as Authorization: Bearer `TOKEN`, or @FILE, 16 characters or more; default: $PAWL_TOKEN, which no other program can read, as it can a command line. Needed for an address that others can reach")
	f.StringArrayVar(&d.origins, "origin", nil, "let pages of another site call, such as `https://chat.example` (repeat)")
	f.StringArrayVar(&d.hosts, "host", nil, "a `NAME` that clients ask for the server by, besides addresses and localhost, when there is no token (repeat)")
}

// tokens are those that open the doors; none: nobody is asked for one.
func (d *doors) tokens() ([]string, error) {
	token := d.token
	if token == "" {
		token = os.Getenv("PAWL_TOKEN")
	}
	token, err := textOrFile("--token", token)
	if token = strings.TrimSpace(token); err != nil || token == "" {
		return nil, err
	}
	return []string{token}, nil
}

func serveCommand(s streams, p Program) *cobra.Command {
	c := common{program: p, begins: true}
	var d doors
	var limits serve.Options
	var resume bool
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Open the project's agent to others over HTTP",
		Long: `Serves the project's agent, as pawl run would have it there, over HTTP: a run API with server-sent events, chat completions as OpenAI has them, and AG-UI. A run goes on when its client is gone; whoever comes back reads
it from where he left. See docs/serve.md.

Without a token only this machine can come in, and no page of another site. When it is told to stop, by Ctrl-C or SIGTERM, what runs is interrupted at its next step, and can be resumed.`,
		Example: `  pawl serve
  PAWL_TOKEN=… pawl serve --addr 0.0.0.0:7295 --origin https://chat.example`,
		Args: cobra.NoArgs,
	}
	c.addKept(cmd)
	f := cmd.Flags()
	f.BoolVar(&c.json, "json", false, "say where it listens in one line of JSON, on standard output")
	f.StringVar(&d.addr, "addr", defaultAddr, "where to listen: `HOST:PORT`; port 0 is a free one")
	d.add(cmd)
	f.BoolVar(&resume, "resume", false, "go on with the runs of this project that servers, or other programs, which died or were shut down have left")
	f.StringVar(&limits.URL, "url", "", "where others reach the server, such as `https://agent.example`: it stands in the card that it shows to clients of A2A; default: what they asked by")
	f.StringArrayVar(&limits.Artifacts, "artifact", nil, "a `CHANNEL` of a graph's board that clients of A2A get as an artifact of a task (repeat)")
	f.StringArrayVar(&limits.PushHosts, "push-host", nil, "a `HOST` or address that clients of A2A may have notifications sent to although it is not of the public network, and by http (repeat)")
	f.IntVar(&limits.MaxRuns, "max-runs", 64, "refuse to begin another run while `N` are under way")
	f.IntVar(&limits.MaxConns, "max-conns", 512, "let `N` connections be open at a time")
	f.Int64Var(&limits.MaxBody, "max-body", 32<<20, "refuse requests of more than `N` bytes")
	f.DurationVar(&limits.Grace, "grace", 10*time.Second, "how much `time` runs have to come to their next step, once the server is told to stop")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if limits.MaxRuns < 1 || limits.MaxConns < 1 || limits.MaxBody < 1 || limits.Grace <= 0 {
			return usage("--max-runs %d, --max-conns %d, --max-body %d, --grace %v: want more than 0 of each", limits.MaxRuns, limits.MaxConns, limits.MaxBody, limits.Grace)
		}
		if err := c.handOver(); err != nil {
			return err
		}
		return c.serve(cmd.Context(), s, d, limits, resume)
	}
	return cmd
}

// serve serves until it is told to stop, which is no failure.
func (c *common) serve(ctx context.Context, s streams, d doors, so serve.Options, resume bool) error {
	var err error
	if so.Tokens, err = d.tokens(); err != nil {
		return err
	}
	so.Origins, so.Hosts = d.origins, d.hosts
	o, err := c.options(ctx)
	if err != nil {
		return err
	}
	store, closeStore, err := c.store(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }()
	if strings.HasPrefix(c.journal, "postgres") { // clients may come back to another process
		st, err := streampg.Open(ctx, c.journal)
		if err != nil {
			return wrongUse(err)
		}
		defer func() { _ = st.Close() }()
		so.Stream = st
	}
	o.Journal, o.OutputDir = journal.Within(store, o.ProjectRoot), c.outputs(o.ProjectRoot)
	if dir := c.beside("push", o.ProjectRoot); dir != "" {
		so.Push = serve.PushFiles(dir)
	}
	leave, err := c.atTemporal(ctx, s, &o)
	if err != nil {
		return err
	}
	defer leave()
	rt, err := pawl.New(ctx, o)
	if err != nil {
		return wrongUse(err)
	}
	defer func() { _ = rt.Close() }()
	parts, release := rt.Parts()
	so.Card = parts.Agent.Card
	release()
	for _, w := range parts.Warnings {
		c.note(s, "%s", w)
	}
	so.Logger = slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server, err := serve.New(rt, so)
	if err != nil {
		return wrongUse(err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", d.addr)
	if err != nil {
		_ = server.Close() //nolint:contextcheck // it has a time of its own
		return usage("--addr %s: %v", d.addr, reason(err))
	}
	if at, ok := l.Addr().(*net.TCPAddr); ok && len(so.Tokens) == 0 && !at.IP.IsLoopback() { // said before anything goes on, or is said to be served
		_ = l.Close()
		_ = server.Close() //nolint:contextcheck // it has a time of its own
		return usage("--addr %s: others can come there: give --token, or set PAWL_TOKEN, or listen on 127.0.0.1", d.addr)
	}
	if resume {
		left, err := server.Resume(ctx)
		if err != nil && !errdefs.RateLimit.Is(err) {
			_ = l.Close()
			_ = server.Close() //nolint:contextcheck // it has a time of its own
			return &exitError{exitFailed, err}
		}
		if len(left) > 0 {
			c.note(s, "going on with what was left: %s", strings.Join(left, ", "))
		}
		if err != nil {
			c.note(s, "further runs that were left wait to be resumed: %v", err)
		}
	}
	at := "http://" + l.Addr().String()
	if c.json {
		b, err := json.Marshal(struct {
			Type string `json:"type"`
			URL  string `json:"url"`
			Dir  string `json:"dir"`
		}{"serving", at, rt.Dir()})
		if err == nil {
			_, err = s.out.Write(append(b, '\n'))
		}
		if err != nil {
			_ = l.Close()
			_ = server.Close() //nolint:contextcheck // it has a time of its own
			return &exitError{exitFailed, err}
		}
	}
	c.note(s, "serving %s at %s: a browser sees and steers its runs there", rt.Dir(), at)
	if err = server.Serve(ctx, l); err != nil {
		return &exitError{exitFailed, err}
	}
	c.note(s, "stopped")
	return nil
}

var _ serve.Agent = (*pawl.Runtime)(nil)
