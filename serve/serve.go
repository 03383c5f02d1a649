package serve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/netutil"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/traced"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/serve/internal/a2aserver"
	"github.com/pawl-dev/pawl/serve/internal/chat"
	"github.com/pawl-dev/pawl/serve/internal/inspector"
	"github.com/pawl-dev/pawl/serve/internal/live"
	"github.com/pawl-dev/pawl/serve/internal/web"
	"github.com/pawl-dev/pawl/stream"
)

// Agent is who is served. A [pawl.Runtime] is one; [Of] makes one of any agent and engine. Its Journal is what is served: whoever may come in reads, answers, resumes and deletes all sessions that are in it. Where a
// store has those of several projects, as a user's own has, give the Agent, and so its runs, what [journal.Within] makes of it. Safe for concurrent use.
type Agent interface {
	// Run runs a prompt to its end, as [pawl.Runtime.Run] does.
	Run(ctx context.Context, req pawl.Request, opts ...agent.RunOption) (*agent.Result, error)
	// Resume goes on with a session's unfinished run, as [pawl.Runtime.Resume] does.
	Resume(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error)
	// Journal is the store that the sessions are in.
	Journal() journal.Store
}

// Of makes an Agent of an agent and the engine that drives it, whose sessions are those of store: see [Agent]. The options are those of each of its runs.
func Of(a agent.Agent, e engine.Engine, store journal.Store, opts ...agent.RunOption) Agent {
	return &plain{a, e, store, opts}
}

type plain struct {
	agent  agent.Agent
	engine engine.Engine
	store  journal.Store
	opts   []agent.RunOption
}

func (p *plain) with(opts []agent.RunOption) []agent.RunOption {
	all := append([]agent.RunOption{agent.WithJournal(p.store)}, p.opts...)
	return append(all, opts...)
}

func (p *plain) Run(ctx context.Context, req pawl.Request, opts ...agent.RunOption) (*agent.Result, error) {
	return agent.Run(ctx, p.agent, p.engine, req.Request, p.with(opts)...)
}

func (p *plain) Resume(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error) {
	return agent.Resume(ctx, p.agent, p.engine, session, p.with(opts)...)
}

func (p *plain) Journal() journal.Store { return p.store }

// Options say how an agent is served. The zero Options serve whoever is on this machine.
type Options struct {
	Card agent.AgentCard // what others are told of the agent. Default: its Name is "pawl"

	// Tokens open everything that the agent can do, and all sessions of its journal, each of them, as "Authorization: Bearer TOKEN": 16 characters or more. None: nobody is asked for one, and only addresses of this machine are listened on.
	Tokens []string
	// Origins are sites whose pages may call, such as "https://chat.example". The server's own page may always, no other one may.
	Origins []string
	// Hosts are the names that the server is asked by when there are no tokens, besides addresses and localhost.
	Hosts []string

	// URL is where others reach the server, such as "https://agent.example": it stands in the agent's card. Default: what the request for the card was sent to.
	URL string
	// Artifacts are channels of boards that clients of A2A get as artifacts of a task, beside its answer. Default: none.
	Artifacts []string
	// Push keeps where clients of A2A want to be told of tasks. Default: in memory, so that a restart forgets it; see [PushFiles].
	Push PushStore
	// PushHosts are hosts and addresses that those clients may be told at although they are not of the public network, such as "localhost", and by http, too. Default: none.
	PushHosts []string

	// Stream keeps what runs say while they go on, for clients that come back: for as long as its Retention says. Default: in memory. One that is shared, such as that of package stream/postgres, lets a client come back to another process.
	Stream stream.Store
	// MaxRuns are under way at a time: beyond that a run is refused, with errdefs.RateLimit. Default: 64.
	MaxRuns int
	// MaxConns are open at a time, event streams among them: whoever comes then waits to be let in. Default: 512.
	MaxConns int
	// MaxBody is how long a request may be, in bytes, with the files that are in it. Default: 32 MiB.
	MaxBody int64
	// Grace is how long runs have to come to their next step when the server is to stop; what they are at then is broken off. Default: 10 s.
	Grace time.Duration
	// Logger is told what who runs a server may want to know. Default: nothing is logged.
	Logger *slog.Logger
}

// Server serves one agent. It is an http.Handler, for who has a server of his own; Serve is one. Safe for concurrent use.
type Server struct {
	opts    Options
	runs    *live.Runs
	glances glances
	a2a     *a2aserver.Server
	inner   http.Handler
	ctx     context.Context // of what clients wait for: it ends when the server is to stop
	stop    context.CancelFunc
	began   time.Time
}

// New makes a Server. It starts nothing. Close has to be called, by who doesn't call Serve. It fails with errdefs.Validation on options that can't be meant.
func New(a Agent, o Options) (*Server, error) {
	o.Card.Name = cmp.Or(o.Card.Name, "pawl")
	o.MaxRuns, o.MaxConns, o.MaxBody, o.Grace = cmp.Or(o.MaxRuns, 64), cmp.Or(o.MaxConns, 512), cmp.Or(o.MaxBody, 32<<20), cmp.Or(o.Grace, 10*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxRuns < 1 || o.MaxConns < 1 || o.MaxBody < 1 || o.Grace < 0 {
		return nil, errdefs.Validation.Errorf("serve: limits of %d runs, %d connections, %d bytes and %v: want more than 0 each, or 0 for the default", o.MaxRuns, o.MaxConns, o.MaxBody, o.Grace)
	}
	gate := web.Gate{Tokens: o.Tokens, Origins: o.Origins, Hosts: o.Hosts, Open: open}
	if err := gate.Check(); err != nil {
		return nil, err
	}
	if u, err := url.Parse(o.URL); o.URL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return nil, errdefs.Validation.Errorf("serve: URL %q: want one such as https://agent.example", o.URL)
	}
	s := &Server{opts: o, runs: live.New(a, o.Stream, o.MaxRuns, o.Logger), began: time.Now()}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.a2a = a2aserver.New(s.runs, a2aserver.Options{
		Card: o.Card, Secured: len(o.Tokens) > 0, URL: o.URL, MaxBody: o.MaxBody, Artifacts: o.Artifacts, Push: pushes(o.Push), PushHosts: o.PushHosts, Logger: o.Logger,
	})
	s.inner = web.Patient(s.traced(gate.Wrap(s.routes(), s.fail)))
	return s, nil
}

// routes are the doors.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	s.api(mux)
	s.chat(mux)
	mux.HandleFunc("POST /ag-ui", s.handled(s.agui))
	mux.HandleFunc("GET /openapi.json", document)
	s.a2a.Routes(mux)
	inspector.Register(mux)
	return mux
}

// open are pages without content of anybody's.
func open(r *http.Request) bool {
	return r.Method == http.MethodGet && (r.URL.Path == "/healthz" || r.URL.Path == "/openapi.json" || r.URL.Path == a2a.CardPath) || inspector.Open(r)
}

// fail writes an error in the words of the door that was asked for.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case inChat(r):
		chat.Fail(w, r, err)
	case r.URL.Path == a2aserver.Path:
		s.a2a.Fail(w, r, err)
	default:
		web.Fail(w, r, err)
	}
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.inner.ServeHTTP(w, r) }

var errStopping = errdefs.NotAvailable.Errorf("serve: the server is shutting down: come back later")

// traced has runs belong to the trace of who asked for them, where the request says which (W3C Trace Context). A request ends when the server is to stop.
func (s *Server) traced(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := traced.Extract(r.Context(), r.Header.Get)
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(s.ctx, func() { cancel(errStopping) })() //nolint:contextcheck // it is the server's own
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint,err113 // as net/http compares it
					panic(p)
				}
				err := errdefs.Recovered("the server", p)
				s.opts.Logger.Error("a request failed", "path", r.URL.Path, "error", err)
				s.fail(w, r, err)
			}
		}()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Serve answers who comes to l, until ctx ends; then it interrupts what runs, so that it can be resumed, and closes l and itself. It fails with errdefs.PolicyDenied when others than this machine can come to l and there is no token, and with what l fails with.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if len(s.opts.Tokens) == 0 && !web.Loopback(l.Addr()) {
		_ = l.Close()
		return errors.Join(errdefs.PolicyDenied.Errorf("serve: others can come to %s: give a token, or listen on 127.0.0.1", l.Addr()), s.Close()) //nolint:contextcheck // it has a time of its own
	}
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ReadTimeout:  5 * time.Minute, // of a body: a client that sends nothing more holds a connection no longer
		WriteTimeout: web.Patience,    // of what the handler doesn't write
		ErrorLog:     slog.NewLogLogger(s.opts.Logger.Handler(), slog.LevelDebug),
	}
	s.a2a.Begin() //nolint:contextcheck // it ends with Close
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(netutil.LimitListener(l, s.opts.MaxConns)) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	closed := s.Close() //nolint:contextcheck // ctx has ended: it has a time of its own
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if srv.Shutdown(last) != nil { // whoever does not take his answer
		_ = srv.Close()
	}
	if err == nil {
		err = <-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, closed)
}

// Resume goes on with the runs that servers which died or were shut down have left in the Agent's journal, and gives their sessions. It leaves those alone that wait for a person's answer, that were interrupted on purpose, or that another process drives. Beyond Options.MaxRuns it stops, with errdefs.RateLimit.
func (s *Server) Resume(ctx context.Context) (sessions []string, err error) {
	return s.runs.TakeUp(ctx)
}

// Close interrupts what runs, waits for it as long as Options.Grace says, and lets go of what is left, as if the process had died: all of it can be resumed. Clients that wait are told so; their streams end. The agent stays the caller's to close.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Grace)
	defer cancel()
	s.runs.Close(ctx)
	s.a2a.Close()
	s.stop()
	return nil
}
