package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool"
)

// attempts is how often a call is tried whose server surely did not run it.
const attempts = 3

// How much a model is told of a tool, in bytes: beyond it a description is cut, and a schema left out.
const (
	longestDescription = 10_000
	longestSchema      = 100_000
)

// errLost is why a call ends whose connection was given up.
var errLost = errors.New("the connection is gone")

// serverTool is one tool of a server.
type serverTool struct {
	server *server
	name   string // as the server has it
	def    tool.Definition
}

func newTool(s *server, name string, t *sdk.Tool) *serverTool {
	def := tool.Definition{Tool: model.Tool{Name: name, Description: cmp.Or(t.Description, t.Title)}, Annotations: tool.Annotations{OpenWorld: true, Destructive: true}}
	def.Schema = s.schema(t)
	def.Description = short(def.Description, longestDescription)
	if a := t.Annotations; a != nil {
		def.Destructive = !a.ReadOnlyHint && (a.DestructiveHint == nil || *a.DestructiveHint)
		def.ReadOnly = a.ReadOnlyHint && (a.DestructiveHint == nil || !*a.DestructiveHint)
		def.Idempotent = a.IdempotentHint
		def.Description = cmp.Or(def.Description, a.Title)
	}
	return &serverTool{s, t.Name, def}
}

// schema gives the schema of a tool's input as providers take it: one of an object. nil is any object.
func (s *server) schema(t *sdk.Tool) json.RawMessage {
	b, err := encode(t.InputSchema)
	if err != nil || len(b) == 0 || string(b) == "null" {
		return nil
	}
	var of struct {
		Type *json.RawMessage `json:"type"`
	}
	wrong := ""
	switch err := json.Unmarshal(b, &of); {
	case b[0] != '{' || err != nil:
		wrong = "is no object"
	case len(b) > longestSchema:
		wrong = fmt.Sprintf("has more than %d bytes", longestSchema)
	case string(b) == "{}":
	case of.Type == nil:
		return slices.Concat([]byte(`{"type":"object",`), b[1:])
	case string(*of.Type) != `"object"`:
		wrong = "is not one of an object"
	default:
		return b
	}
	if wrong != "" {
		s.warn(fmt.Sprintf("the schema of its tool %q %s: its input is not checked here, and the model is not told what it is", short(t.Name, 100), wrong))
	}
	return nil
}

func (t *serverTool) Definition() tool.Definition { return t.def }

// Execute calls the tool. See [server.do] for what happens when the connection is lost.
func (t *serverTool) Execute(ctx context.Context, input json.RawMessage) (tool.Result, error) {
	var out tool.Result
	err := t.server.do(ctx, t.def, func(ctx context.Context, live *session, c *call) error {
		res, err := live.rounds(ctx, &sdk.CallToolParams{Name: t.name, Arguments: input}, c)
		if err == nil {
			out = result(res)
		}
		return err
	})
	return out, err
}

// call is one use of a server, while it is under way.
type call struct {
	ctx    context.Context // the caller's, with the call's end
	cancel context.CancelCauseFunc
	token  string
	limit  *time.Timer
	span   time.Duration
	again  bool // it may run again
	out    io.Writer

	mu   sync.Mutex
	over bool // nothing is written to out any more

	question sync.Mutex // a person is asked one thing at a time
}

// do has a server do something for a call, within its time. A connection that is lost is made again. What was asked for is asked for again when it is certain that the server did not
// begin with it, or when def may run again; otherwise the error says that the outcome is unknown.
func (s *server) do(ctx context.Context, def tool.Definition, f func(context.Context, *session, *call) error) error {
	if err := s.permits(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.client.ctx, func() { cancel(errClosed) })() //nolint:contextcheck // Close cancels
	span := s.conf.timeout()
	limit := time.AfterFunc(span, func() { cancel(s.errorf(errdefs.Timeout, "no answer within %v", span)) })
	defer limit.Stop()
	for try, stale := 1, false; ; try++ {
		live, err := s.session(ctx)
		var d delivery
		if err == nil {
			c := &call{cancel: cancel, limit: limit, span: span, again: def.Repeatable(), out: tool.FromContext(ctx).Output}
			err = live.run(ctx, c, &d, f)
		}
		if err == nil {
			return nil
		}
		if more, err := s.verdict(ctx, live, def, &d, err, try); !more {
			return err
		}
		select {
		case <-live.over: // another session is made; that this one was gone before the call is found out once
			if !d.begun.Load() && !stale {
				stale = true
				try--
			}
		case <-time.After(time.Duration(try) * 300 * time.Millisecond): // the server is away, not the session
		case <-ctx.Done():
		}
	}
}

// verdict says what becomes of a call that failed: it is tried again, or the error is told.
func (s *server) verdict(ctx context.Context, live *session, def tool.Definition, d *delivery, err error, try int) (again bool, told error) {
	open := func(err error) error {
		if d.begun.Load() && !d.certain() && !def.ReadOnly {
			return unknown{err}
		}
		return err
	}
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		if errors.As(cause, new(engine.InterruptedError)) {
			return false, cause
		}
		return false, open(cause)
	}
	if live == nil {
		return false, err
	}
	if e, ok := answered(err); ok {
		return false, s.errorf(classOf(e.Code), "%s (error %d)", e.Message, e.Code)
	}
	switch status := int(d.status.Load()); {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return false, s.failure(ctx, live, "call", refusal{status})
	case errdefs.Of(err) != nil:
		return false, err
	}
	if (d.certain() || def.Repeatable()) && try < attempts {
		return true, nil
	}
	if !d.certain() {
		return false, open(s.errorf(errdefs.NotAvailable, "the connection was lost during the call: %w", err))
	}
	return false, s.errorf(errdefs.NotAvailable, "the call was not taken: %w", err)
}

// unknown is the error of a call that the server may have begun with, and that may not run again.
type unknown struct{ error }

func (u unknown) Error() string {
	return u.error.Error() + ". Whether it took effect is unknown: check before you repeat it"
}

func (u unknown) Unwrap() []error { return []error{u.error, tool.ErrUnknown} }

// classOf gives the class of an error that a server answers with.
func classOf(code int64) *errdefs.Class {
	switch code {
	case -32602, -32600, -32700: // invalid params, invalid request, parse error
		return errdefs.Validation
	case -32601, -32002: // no such method, no such resource
		return errdefs.NotFound
	}
	return errdefs.Internal
}

// permits refuses what the sandbox of the run would not let a command do.
func (s *server) permits(ctx context.Context) error {
	p, ok := sandbox.From(ctx)
	if !ok || p.Off {
		return nil
	}
	if s.conf.URL != "" {
		if u, err := url.Parse(s.conf.URL); err != nil || !p.Network.Allows(u.Hostname()) {
			return s.errorf(errdefs.PolicyDenied, "the sandbox of this run does not let it reach %s", s.conf.URL)
		}
		return nil
	}
	base := s.client.policy
	if asked, err := json.Marshal(p.Within(base)); err != nil {
		return err
	} else if held, err := json.Marshal(base.Within(base)); err != nil || !bytes.Equal(asked, held) {
		return s.errorf(errdefs.PolicyDenied, "the sandbox of this run is narrower than the one that the server runs in: connect it with that policy in the context of mcp.Connect")
	}
	return nil
}

// run has f use the session, as a call that the server can refer to.
func (l *session) run(ctx context.Context, c *call, d *delivery, f func(context.Context, *session, *call) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	whole := c.cancel
	l.mu.Lock()
	l.seq++
	c.token = fmt.Sprintf("pawl-%d", l.seq)
	c.cancel = cancel
	c.ctx = context.WithValue(ctx, callKey{}, &asking{c, whole})
	l.calls[c.token] = c
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.calls, c.token)
		if ctx.Err() != nil {
			l.owed++
		}
		l.mu.Unlock()
		c.mu.Lock() // the library may still be about to tell of progress
		c.over = true
		c.mu.Unlock()
	}()
	err := f(context.WithValue(c.ctx, deliveryKey{}, d), l, c) //nolint:contextcheck // it is made of ctx
	if err != nil && errors.Is(context.Cause(ctx), errLost) {
		err = errLost
	}
	return err
}

// progressed shows how far a call is.
func (l *session) progressed(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	p := req.Params
	token, _ := p.ProgressToken.(string)
	l.mu.Lock()
	c := l.calls[token]
	l.mu.Unlock()
	if c == nil {
		return
	}
	text := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		text = fmt.Sprintf("%g/%g", p.Progress, p.Total)
	}
	if p.Message != "" {
		text = p.Message + " (" + text + ")"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		_, _ = io.WriteString(c.out, text+"\n")
	}
}

// encode is JSON without HTML escapes: models read it.
func encode(v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func sameName(a, b string) bool { return strings.EqualFold(a, b) }

// version is this module's, as the program was built with.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == "github.com/pawl-dev/pawl" && m.Version != "" {
				return m.Version
			}
		}
	}
	return "(devel)"
}
