package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/secret"
	"github.com/pawl-dev/pawl/internal/tokens"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool"
)

// How long a server that failed is left alone: twice as long after each failure.
const (
	firstPause = time.Second
	lastPause  = 5 * time.Minute
)

// noticeTime is how long a server has to take notice of cancelled calls before its session is closed.
const noticeTime = time.Second

// mostPages is where a list ends of a server whose pages have no end.
const mostPages = 1000

// mostTools is how many tools a server may have.
const mostTools = 2000

// server is one server and its session, which is made again when it is lost.
type server struct {
	conf   Server // without variables
	broken error  // why it can't be connected, whatever happens
	client *Client
	turn   chan struct{} // held by who connects or lists

	secrets secrets

	mu       sync.Mutex // guards what follows
	live     *session   // nil: none was made, or the last one is gone
	last     *listing   // nil: it never started
	changed  bool       // it said that its list is another one
	failures int
	failed   error     // why it is not connected, if it was tried
	next     time.Time // not tried again before
	closed   bool
}

// listing is what a server said that it has.
type listing struct {
	tools []tool.Tool
	text  string // equal when the tools are
}

func newServer(c *Client, conf Server) *server {
	s := &server{client: c, turn: make(chan struct{}, 1)}
	s.conf, s.broken = conf.Expand(func(name string) (string, bool) {
		value, ok := c.opts.Lookup(name)
		if ok && (secret.Named(name) || secret.Header(name)) {
			s.secrets.add(value)
		}
		return value, ok
	})
	s.secrets.of(s.conf)
	if s.broken != nil {
		s.broken = s.errorf(errdefs.Validation, "%w", s.broken)
	}
	return s
}

// session is a connection to a server that is ready.
type session struct {
	*sdk.ClientSession
	server *server
	proc   *stdio // nil over HTTP
	login  *login // nil in a process
	conn   sdk.Connection
	cancel context.CancelFunc
	free   func()
	over   chan struct{}         // closed when the connection is
	away   atomic.Pointer[error] // why a request was refused that led away; nil: none was

	mu    sync.Mutex
	calls map[string]*call // in flight, by progress token
	seq   int
	owed  int // notices of cancelled calls, which the library sends behind them
}

func (s *server) errorf(class *errdefs.Class, format string, args ...any) error {
	return s.secrets.quiet(class.Errorf("mcp: server %s: "+format, append([]any{s.conf.Name}, args...)...))
}

func (s *server) warn(text string) {
	s.client.warn(s.secrets.out(fmt.Sprintf("mcp: server %s: %s", s.conf.Name, text)))
}

// current is the session that there is, if it lives.
func (s *server) current() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		return nil
	}
	select {
	case <-s.live.over:
		return nil
	default:
		return s.live
	}
}

// enter has one at a time connect and list.
func (s *server) enter(ctx context.Context) (leave func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.client.ctx.Done():
		return nil, errClosed
	}
}

// session gives the session, and connects when there is none.
func (s *server) session(ctx context.Context) (*session, error) {
	if live := s.current(); live != nil {
		return live, nil
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if live := s.current(); live != nil {
		return live, nil
	}
	s.mu.Lock()
	wait, closed, old := time.Until(s.next), s.closed, s.live
	s.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if old != nil {
		old.stop()
	}
	if wait > 0 {
		return nil, s.errorf(errdefs.NotAvailable, "it did not start, and is tried again in %v", wait.Round(100*time.Millisecond))
	}
	live, err := s.connect(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			s.failed = err
			s.failures++
			s.next = time.Now().Add(min(firstPause<<min(s.failures-1, 20), lastPause))
		}
		return nil, err
	}
	s.failures, s.failed, s.next, s.live = 0, nil, time.Time{}, live
	return live, nil
}

// connect makes a session, and asks for the tools: a server may have others now, and the library has to know them.
func (s *server) connect(ctx context.Context) (live *session, err error) {
	if s.broken != nil {
		return nil, s.broken
	}
	began, log := time.Now(), s.client.opts.Logger
	log.InfoContext(ctx, LogStarts, "server", s.conf.Name)
	defer func() {
		log.InfoContext(ctx, LogStarted, "server", s.conf.Name, "took", time.Since(began), "error", err)
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, s.conf.startup(), s.errorf(errdefs.Timeout, "it was not ready within %v", s.conf.startup()))
	defer cancel()
	defer context.AfterFunc(s.client.ctx, cancel)() //nolint:contextcheck // Close cancels
	live, err = s.open(ctx, s.conf.SSE)
	if err != nil && s.conf.URL != "" && !s.conf.SSE && ctx.Err() == nil && oldServer(err) {
		newer := err
		if live, err = s.open(ctx, true); err != nil {
			err = fmt.Errorf("%w; in the older way: %w", newer, err)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := s.list(ctx, live); err != nil {
		live.stop()
		return nil, s.failure(ctx, live, "list its tools", err)
	}
	return live, nil
}

// refusal is a connection that a server with this status did not want.
type refusal struct{ status int }

func (r refusal) Error() string { return fmt.Sprintf("%d %s", r.status, http.StatusText(r.status)) }

// oldServer reports whether a server may be one that only knows the older HTTP with SSE.
func oldServer(err error) bool {
	var r refusal
	return errors.As(err, &r) && (r.status == http.StatusBadRequest || r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed)
}

// open makes a connection and has the two sides introduce themselves.
func (s *server) open(ctx context.Context, old bool) (*session, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(s.client.ctx)) // stop ends it, when the server was told
	live := &session{server: s, cancel: cancel, free: func() {}, over: make(chan struct{}), calls: map[string]*call{}}
	var way sdk.Transport
	var err error
	if s.conf.Command != "" {
		if live.proc, err = s.start(ctx); err == nil {
			way = live.proc
		}
	} else {
		way, live.free, err = s.httpTransport(life, cancel, old, live) //nolint:contextcheck // it lives until Close
	}
	if err != nil {
		cancel()
		return nil, s.failure(ctx, live, "start", err)
	}
	var d delivery
	live.ClientSession, err = live.sdkClient().Connect(context.WithValue(ctx, deliveryKey{}, &d), noted{way, live}, nil)
	if err != nil {
		live.stop()
		if away := live.away.Load(); away != nil && !errors.Is(err, *away) {
			err = fmt.Errorf("%w: %w", *away, err)
		}
		if status := int(d.status.Load()); status >= 400 {
			err = fmt.Errorf("%w: %w", refusal{status}, err)
		}
		return nil, s.failure(ctx, live, "connect", err)
	}
	go func() {
		defer close(live.over)
		_ = live.Wait()
	}()
	return live, nil
}

// noted remembers a connection, which the library leaves open in one case in which it does not give a session.
type noted struct {
	sdk.Transport
	of *session
}

func (n noted) Connect(ctx context.Context) (conn sdk.Connection, err error) {
	n.of.conn, err = n.Transport.Connect(ctx)
	return n.of.conn, err
}

// start starts the server's process.
func (s *server) start(ctx context.Context) (*stdio, error) {
	if !s.client.policy.Off { // whoever's call starts it again
		ctx = sandbox.With(ctx, s.client.policy)
	}
	cmd, err := s.client.opts.Command(ctx, s.conf.Command, s.conf.Args...)
	if err != nil {
		return nil, err
	}
	if cmd.Dir = s.client.opts.Dir; s.conf.Dir != "" {
		if cmd.Dir = s.conf.Dir; !filepath.IsAbs(cmd.Dir) {
			cmd.Dir = filepath.Join(s.client.opts.Dir, cmd.Dir)
		}
	}
	for _, name := range sortedKeys(s.conf.Env) {
		cmd.Env = append(cmd.Env, name+"="+s.conf.Env[name])
	}
	mark := "mcp-" + rand.Text()         // whatever carries it is killed with this process: it must be no other client's, and no other server's
	return startStdio(cmd, mark, s.warn) //nolint:contextcheck // it goes on behind whoever starts it
}

// failure says why there is no session, with what the server had to say.
func (s *server) failure(ctx context.Context, live *session, what string, err error) error {
	class := errdefs.NotAvailable
	if cause := context.Cause(ctx); ctx.Err() != nil && cause != nil {
		if errdefs.Timeout.Is(cause) {
			err, class = errors.New(strings.TrimPrefix(cause.Error(), "mcp: server "+s.conf.Name+": ")), errdefs.Timeout
		} else {
			err = cause
		}
	}
	var r refusal
	if errors.As(err, &r) && (r.status == http.StatusUnauthorized || r.status == http.StatusForbidden) {
		if s.client.opts.Open != nil || s.conf.OAuth.Grant != "" { // a login was tried
			return s.errorf(errdefs.Unauthorized, "%s: %w", what, err)
		}
		login := s.conf.Name
		if s.conf.Place == "" {
			login = "--url " + s.conf.URL + " " + login
		}
		return s.errorf(errdefs.Unauthorized, "%s: it wants a login (%w): run pawl mcp login %s, or set its header Authorization", what, r, login)
	}
	said := ""
	if live != nil && live.proc != nil {
		if text := live.proc.stderr.String(); text != "" {
			said = "; it said: " + text
		}
	}
	return s.errorf(class, "%s: %w%s", what, err, said)
}

// sdkClient is the library's client of one session.
func (l *session) sdkClient() *sdk.Client {
	changed := func() {
		l.server.mu.Lock()
		defer l.server.mu.Unlock()
		l.server.changed = true
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "pawl", Title: "Pawl", Version: version()}, &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}},
		ElicitationHandler:          l.elicited,
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { changed() },
		ProgressNotificationHandler: l.progressed,
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true}, // its questions come in an order of chance: see [session.rounds]
	})
	client.AddSendingMiddleware(l.tells)
	return client
}

// stop ends the session and waits for its process.
func (l *session) stop() {
	l.mu.Lock()
	for _, c := range l.calls {
		c.cancel(errLost)
	}
	l.mu.Unlock()
	if l.proc == nil && l.ClientSession != nil { // once it is closed servers are not told of a cancel any more, and some go on
		for end := time.Now().Add(noticeTime); !l.settled() && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
	}
	if l.ClientSession != nil {
		_ = l.Close()
		<-l.over
	} else if l.conn != nil {
		_ = l.conn.Close()
	}
	if l.proc != nil {
		l.proc.stop()
	}
	l.cancel()
	l.free()
}

// settled reports whether nothing is under way, or the connection is gone.
func (l *session) settled() bool {
	select {
	case <-l.over:
		return true
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls) == 0 && l.owed <= 0
}

// noticed is called when the server was told of a cancelled call.
func (l *session) noticed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed--
}

// close ends the server for good.
func (s *server) close() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	live := s.live
	s.live, s.closed = nil, true
	s.mu.Unlock()
	if live != nil {
		live.stop()
	}
}

// stale reports whether there may be news of the server.
func (s *server) stale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && (s.changed || s.last == nil && !time.Now().Before(s.next))
}

func (s *server) status() Status {
	connected := s.current() != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Status{Server: s.conf}
	if s.last != nil {
		out.Tools = slices.Clone(s.last.tools)
	}
	switch {
	case s.closed:
		out.Err = errClosed
	case connected:
	case s.failed != nil:
		out.Err = s.failed
	case s.live != nil:
		out.Err = s.errorf(errdefs.NotAvailable, "the connection is gone; the next call makes it again")
	default:
		out.Err = s.errorf(errdefs.NotAvailable, "it was not connected yet")
	}
	return out
}

func (s *server) listed() *listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// refresh asks for the tools again.
func (s *server) refresh(ctx context.Context) error {
	live, err := s.session(ctx)
	if err != nil {
		return err
	}
	if !s.stale() { // connecting has asked
		return nil
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, s.conf.startup())
	defer cancel()
	if err := s.list(ctx, live); err != nil {
		return s.failure(ctx, live, "list its tools", err)
	}
	return nil
}

// list asks for all tools, page by page.
func (s *server) list(ctx context.Context, live *session) error {
	s.mu.Lock()
	s.changed = false // what changes from now on is asked for again
	s.mu.Unlock()
	caps := live.InitializeResult().Capabilities
	var found []*sdk.Tool
	if caps != nil && caps.Tools != nil {
		seen := map[string]bool{}
		err := pages(func(cursor string) (string, error) {
			res, err := live.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
			if err != nil {
				return "", err
			}
			for _, t := range res.Tools {
				if !seen[t.Name] {
					seen[t.Name] = true
					found = append(found, t)
				}
			}
			if len(found) > mostTools {
				return "", fmt.Errorf("it has more than %d tools", mostTools)
			}
			return res.NextCursor, nil
		})
		if err != nil {
			s.mu.Lock()
			s.changed = s.last != nil
			s.mu.Unlock()
			return err
		}
	}
	l := s.offer(found, caps != nil && caps.Resources != nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || s.last.text != l.text {
		s.last = l
	}
	return nil
}

// pages follows cursors to their end.
func pages(page func(cursor string) (next string, err error)) error {
	seen := map[string]bool{}
	for cursor, n := "", 0; ; n++ {
		next, err := page(cursor)
		if err != nil || next == "" {
			return err
		}
		if seen[next] || n == mostPages {
			return fmt.Errorf("its list has no end: page %q comes again, or there are more than %d", short(next, 100), mostPages)
		}
		seen[next], cursor = true, next
	}
}

// offer makes the tools that a model is shown, in the order of their names.
func (s *server) offer(found []*sdk.Tool, resources bool) *listing {
	slices.SortFunc(found, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	var all, in []string
	for _, t := range found {
		all = append(all, t.Name)
	}
	if resources && !slices.Contains(all, resourcesName) {
		all = append(all, resourcesName)
	}
	called := names(s.conf.Name, all)
	l := &listing{}
	for _, t := range found {
		if s.conf.admits(t.Name) {
			l.tools = append(l.tools, newTool(s, called[t.Name], t))
			in = append(in, t.Name)
		}
	}
	if resources && !slices.Contains(in, resourcesName) && s.conf.admits(resourcesName) {
		l.tools = append(l.tools, s.resourcesTool(called[resourcesName]))
	}
	for _, p := range slices.Concat(s.conf.Allow, s.conf.Deny) {
		if !slices.ContainsFunc(all, func(name string) bool { return matches(p, name) }) {
			s.warn(fmt.Sprintf("the list of tools has %q, which it does not have; it has %s", p, strings.Join(all, ", ")))
		}
	}
	s.postpone(l.tools)
	for _, t := range l.tools {
		b, err := json.Marshal(t.Definition())
		if err != nil {
			b = []byte(err.Error())
		}
		l.text += string(b) + "\n"
	}
	return l
}

// postpone defers the tools, if they are to be.
func (s *server) postpone(tools []tool.Tool) {
	size := 0
	for _, t := range tools {
		d := t.Definition()
		size += tokens.Text(d.Name) + tokens.Text(d.Description) + tokens.Text(string(d.Schema))
	}
	if s.conf.Defer == DeferNever || s.conf.Defer == DeferAuto && size <= DeferAbove {
		return
	}
	for _, t := range tools {
		if own, ok := t.(*serverTool); ok { // that for resources is small
			own.def.Deferred = true
		}
	}
}

// rejected is the code of the library's own error for a request that a server did not take, or that was lost: it can't tell.
const rejected = -32005

// answered reports whether an error is the server's answer: then it has seen the request, and is there.
func answered(err error) (*jsonrpc.Error, bool) {
	var e *jsonrpc.Error
	ok := errors.As(err, &e) && e.Code != rejected
	return e, ok
}
