package mcp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// Options say what is offered, and under which name.
type Options struct {
	// Name and Version are what clients are told of the server. Default: "pawl", and no version.
	Name, Version string
	// Agent is the name of the tool that runs the agent. Default: "ask".
	Agent string
	// Description says to models what the agent is for. Default: that it works in a project directory.
	Description string
	// NoAgent leaves the agent out.
	NoAgent bool
	// NoAnswer leaves out the tool "answer", by which whoever calls tools, a model too, can let through what a person is asked about. Then only elicitation, and people elsewhere ([agent.Answer]), answer.
	NoAnswer bool
	// Tools says which of the Runtime's tools are offered; it is called again when the project has changed. Default: none. See [ReadOnly].
	Tools func(tool.Definition) bool
	// Prompts and Resources are offered beside the Runtime's skills and sessions.
	Prompts   []Prompt
	Resources []Resource
	// NoSkills and NoSessions leave out skills as prompts, and transcripts of sessions as resources.
	NoSkills, NoSessions bool
	// Completion proposes values for an argument of a prompt, or a place in the template of a resource, that begin as text does. Default: completion is not offered.
	Completion func(ctx context.Context, of, argument, text string) ([]string, error)
	// Logger is told of what goes wrong with connections. Default: nothing is logged.
	Logger *slog.Logger
}

// ReadOnly is for Options.Tools: the tools that change nothing, by what they say of themselves.
func ReadOnly(d tool.Definition) bool { return d.ReadOnly }

// All is for Options.Tools: all tools, but for those about commands in the background, which end with the call that started them.
func All(d tool.Definition) bool { return d.Name != "bash_output" && d.Name != "bash_kill" }

// Prompt is a text that a person chooses.
type Prompt struct {
	Name, Title, Description string
	Arguments                []Argument
	// Get makes its messages. Each part, of text or a file, is a message for the client; a file of text, or of a kind that is neither image nor sound, is a resource whose address is its Name.
	Get func(ctx context.Context, arguments map[string]string) ([]message.Message, error)
}

// Argument is one of a Prompt's. A Prompt is not asked without those that are required.
type Argument struct {
	Name, Description string
	Required          bool
}

// Resource is something that clients can read.
type Resource struct {
	// URI is its address, or with {places} a template of addresses (RFC 6570).
	URI                            string
	Name, Title, Description, MIME string
	// Read gives the content at an address. A file of a text's MIME type is a text. What is not there is errdefs.NotFound.
	Read func(ctx context.Context, uri string) (message.File, error)
}

// Server offers a Runtime. Safe for concurrent use; it serves any number of clients at a time, each by [Server.Stdio] or [Server.Handler].
type Server struct {
	rt  *pawl.Runtime
	o   Options
	sdk *sdk.Server

	requests requests

	mu                 sync.Mutex
	ctx                context.Context // ends, by engine.ErrLeft, with Close
	cancel             context.CancelCauseFunc
	closed             bool
	calls              sync.WaitGroup // requests that are being served
	last               []tool.Definition
	names              []string // of tools and prompts that are offered now, of what may change
	skills, skillTexts []string
}

// New makes a Server. It serves all sessions of the Runtime's journal to whoever can connect: give the Runtime what [journal.Within] makes of one that has other projects' sessions, too. The Runtime stays the caller's to close, after Close of the Server. It fails with errdefs.Validation where options contradict each other.
func New(rt *pawl.Runtime, o Options) (*Server, error) {
	o.Name, o.Agent = cmp.Or(o.Name, "pawl"), cmp.Or(o.Agent, "ask")
	o.Description = cmp.Or(o.Description, "Give a task to an agent that works in a project directory with its own tools, and get its answer. It remembers what was said before in the same session.")
	if o.Agent == answerName && !o.NoAnswer {
		return nil, errdefs.Validation.Errorf("mcp: Options.Agent is %q, which is the tool that answers questions: take another name", o.Agent)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{rt: rt, o: o}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	opts := &sdk.ServerOptions{Logger: o.Logger, Capabilities: &sdk.ServerCapabilities{}} // no logging
	if len(o.Resources) > 0 || !o.NoSessions {
		opts.SubscribeHandler = func(context.Context, *sdk.SubscribeRequest) error { return nil }
		opts.UnsubscribeHandler = func(context.Context, *sdk.UnsubscribeRequest) error { return nil }
	}
	if o.Completion != nil {
		opts.CompletionHandler = s.complete
	}
	s.sdk = sdk.NewServer(&sdk.Implementation{Name: o.Name, Version: o.Version}, opts)
	s.sdk.AddReceivingMiddleware(s.receiving)
	if err := s.offer(); err != nil {
		return nil, err
	}
	s.sync()
	return s, nil
}

// offer adds what stays the same.
func (s *Server) offer() error {
	if !s.o.NoAgent {
		s.addAgent()
	}
	if !s.o.NoAnswer {
		s.addAnswer()
	}
	for _, p := range s.o.Prompts {
		if p.Name == "" || p.Get == nil {
			return errdefs.Validation.Errorf("mcp: a prompt needs a Name and Get: %q has not both", p.Name)
		}
		s.addPrompt(p)
	}
	resources := s.o.Resources
	if !s.o.NoSessions {
		resources = append([]Resource{s.transcripts()}, resources...)
	}
	for _, r := range resources {
		if err := s.addResource(r); err != nil {
			return err
		}
	}
	return nil
}

// receiving is around each request: what is offered is brought up to date, and a server that is being closed begins nothing.
func (s *Server) receiving(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		switch method {
		case "tools/list", "tools/call", "prompts/list", "prompts/get":
			s.sync()
		case "logging/setLevel": // the library would take it, and nothing would follow
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "logging is not offered: what a run does is told by progress"}
		}
		return next(ctx, method, req)
	}
}

// enter begins a request that runs something. leave is nil when the server is closed.
func (s *Server) enter() (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.calls.Add(1)
	return s.calls.Done
}

// Close ends what runs, and waits for it. Runs stay open, and can be resumed. Whoever listens is told by the end of the connection: end [Server.Stdio] by its context, and shut the HTTP server down, before.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel(engine.ErrLeft)
	for one := range s.sdk.Sessions() {
		if err := one.Close(); err != nil {
			s.o.Logger.Debug("closing a session", "error", err)
		}
	}
	s.calls.Wait()
	return nil
}

// Updated tells clients that subscribed to a resource that there is something new.
func (s *Server) Updated(ctx context.Context, uri string) error {
	return s.sdk.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri})
}

// Stdio serves one client that writes to in and reads from out, one message a line, until in ends, or ctx does: then the error is nil. What runs then is left open, as by [Server.Close]. A line that is no message is answered by an error, and
// the next one is read; a message has at most 32 MiB. If in is an io.Closer, it is closed when ctx ends, which has to end its Read. A client that reads nothing any more keeps a Write to out, but not Stdio, which ends when ctx does, or 15 s after in.
func (s *Server) Stdio(ctx context.Context, in io.Reader, out io.Writer) error {
	conn := newStdio(s, in, out)
	session, err := s.sdk.Connect(ctx, conn, nil)
	if err != nil {
		_ = conn.Close()
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	err = session.Wait()
	_ = conn.Close()
	conn.wait()
	if errors.Is(err, io.EOF) || errors.Is(err, sdk.ErrConnectionClosed) || ctx.Err() != nil || s.ctx.Err() != nil {
		return nil
	}
	return err
}
