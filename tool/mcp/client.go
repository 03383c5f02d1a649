package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool"
)

// Options of a Client.
type Options struct {
	// Command makes the commands of servers, such as fence.Fence.Command; the context has the policy that was in Connect's. Nil: they run as they are, with the
	// environment that fence.Environ picks.
	Command func(ctx context.Context, name string, args ...string) (*exec.Cmd, error)
	Dir     string // that commands run in: the current one
	// Lookup finds the variables of servers that have such (Server.Variables). Nil: os.LookupEnv.
	Lookup func(string) (string, bool)
	Tokens string // the directory with the tokens of servers that want a login: DefaultTokens()
	// Open shows a person the address of a login, in a browser or in words; the login goes on when it has returned. Nil: nobody is there, and a server that wants a login which
	// was not made by [Login] fails.
	Open func(ctx context.Context, url string) error
	// Logger gets the warnings as they come, and at level Info when a server is about to start or to be connected ([LogStarts]) and when that is over, well or not ([LogStarted], which has the time as "took", and an "error"). Both have its
	// name as "server". Nil: nobody.
	Logger *slog.Logger

	anew bool // what was kept of a login doesn't count
}

// What is logged of servers that start.
const (
	LogStarts  = "mcp: a server starts"
	LogStarted = "mcp: a server has started, or could not"
)

// Client is a connection to each of several servers. Safe for concurrent use.
type Client struct {
	opts    Options
	servers []*server
	policy  sandbox.Policy // that the servers run under
	ctx     context.Context
	cancel  context.CancelFunc
	closing sync.Once

	mu       sync.Mutex // guards what follows
	warnings []string
	tools    []tool.Tool
	made     []*listing // what tools was made of, by server

	listing sync.Mutex // held by Tools
}

// mostWarnings are kept; a server that goes on failing has said what there is to say.
const mostWarnings = 100

// Connect connects to all servers at once. One that does not start in its time is a warning ([Client.Warnings]) and has no tools; if it is Required, Connect fails. Other
// errors: errdefs.Validation for a Server that makes no sense, errdefs.Conflict for two of one name. ctx is for connecting; the servers live until Close.
//
// A policy in ctx (sandbox.With) is what the servers' commands run under: a call by a run whose own policy is narrower is refused, since it could not hold there.
func Connect(ctx context.Context, servers []Server, o Options) (*Client, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Command == nil {
		o.Command = unfenced
	}
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	c := &Client{opts: o, policy: sandbox.Policy{Off: true}}
	if p, ok := sandbox.From(ctx); ok {
		c.policy = p
	}
	for i, s := range servers {
		if err := s.Check(); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(servers[:i], func(other Server) bool { return sameName(other.Name, s.Name) }) {
			return nil, errdefs.Conflict.Errorf("mcp: two servers are named %q", s.Name)
		}
		c.servers = append(c.servers, newServer(c, s))
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	errs := make([]error, len(c.servers))
	var all sync.WaitGroup
	for i, s := range c.servers {
		all.Go(func() { _, errs[i] = s.session(ctx) })
	}
	all.Wait()
	var required error
	for i, s := range c.servers {
		switch {
		case errs[i] == nil:
		case ctx.Err() != nil || s.conf.Required:
			required = errors.Join(required, errs[i])
		default:
			c.warn(fmt.Sprintf("%v; it has no tools until it starts", errs[i]))
		}
	}
	if required != nil {
		return nil, errors.Join(required, c.Close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// unfenced makes a command that runs as it is.
func unfenced(_ context.Context, name string, args ...string) (*exec.Cmd, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, errdefs.NotFound.Errorf("command: %w", err)
	}
	cmd := exec.Command(path, args...) //nolint:gosec // running it is what it is for
	cmd.Env = fence.Environ(sandbox.Policy{Network: sandbox.Network{All: true}}, os.Environ())
	return cmd, nil
}

// Tools are the tools of all servers, in the order of the servers and then of their names. Servers that have said that their lists changed are asked for them again, and those that
// did not start are tried again when it is time; where that fails it is a warning, and what was there stays. With nothing new it is the same slice as before. Read-only.
func (c *Client) Tools(ctx context.Context) []tool.Tool {
	c.listing.Lock()
	defer c.listing.Unlock()
	var all sync.WaitGroup
	for _, s := range c.servers {
		if s.stale() {
			all.Go(func() {
				if err := s.refresh(ctx); err != nil {
					c.warn(err.Error())
				}
			})
		}
	}
	all.Wait()
	made := make([]*listing, len(c.servers))
	for i, s := range c.servers {
		made[i] = s.listed()
	}
	if c.made != nil && slices.Equal(made, c.made) {
		return c.tools
	}
	var tools []tool.Tool
	for _, l := range made {
		if l != nil {
			tools = append(tools, l.tools...)
		}
	}
	c.tools, c.made = slices.Clip(tools), made
	return c.tools
}

// Changed reports whether Tools would ask a server, because its list changed or because it is time to try it again.
func (c *Client) Changed() bool {
	return slices.ContainsFunc(c.servers, (*server).stale)
}

// Warnings are what went wrong so far without being an error, oldest first.
func (c *Client) Warnings() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.warnings)
}

func (c *Client) warn(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.warnings, text) || len(c.warnings) == mostWarnings {
		return
	}
	c.warnings = append(c.warnings, text)
	c.opts.Logger.Warn(text)
}

// Close ends all calls and all sessions: the input of processes is closed, those that don't end within 2 s get SIGTERM, and those that don't end then SIGKILL, each with all that it
// started. When ctx ends first Close returns, and the rest goes on behind it. Further Closes do nothing.
func (c *Client) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.closing.Do(func() {
			c.cancel()
			var all sync.WaitGroup
			for _, s := range c.servers {
				all.Go(s.close)
			}
			all.Wait()
		})
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("mcp: close: servers are still ending: %w", ctx.Err())
	}
}

// Status is how a server is.
type Status struct {
	Server Server      // with its variables in place: what is in it may be secret
	Err    error       // why it can't be used now; nil: it is connected
	Tools  []tool.Tool // as they were last; also of a server that has gone since
}

// Status tells how each server is, in their order. It asks none of them.
func (c *Client) Status() []Status {
	out := make([]Status, len(c.servers))
	for i, s := range c.servers {
		out[i] = s.status()
	}
	return out
}

// Names are the names of the servers, in their order.
func (c *Client) Names() []string {
	var out []string
	for _, s := range c.servers {
		out = append(out, s.conf.Name)
	}
	return out
}

// server finds one by name.
func (c *Client) server(name string) (*server, error) {
	for _, s := range c.servers {
		if sameName(s.conf.Name, name) {
			return s, nil
		}
	}
	return nil, errdefs.NotFound.Errorf("mcp: there is no server %q; there are %v", name, c.Names())
}

var errClosed = errdefs.NotAvailable.Errorf("mcp: the client is closed")
