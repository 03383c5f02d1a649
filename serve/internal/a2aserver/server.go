package a2aserver

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/serve/internal/live"
	"github.com/pawl-dev/pawl/serve/internal/web"
)

// Path is where calls are posted to.
const Path = "/a2a"

// Options say how. All but Push, PushHosts, URL and Artifacts are needed.
type Options struct {
	Card      agent.AgentCard
	Secured   bool   // callers need a bearer token
	URL       string // of the server, as others reach it; "": as the request for the card names it
	MaxBody   int64
	Artifacts []string // channels of the board that are shown as artifacts
	Push      PushStore
	PushHosts []string // hosts that notifications may go to although they are not public, and without TLS
	Logger    *slog.Logger
}

// Server answers calls. Safe for concurrent use.
type Server struct {
	runs  *live.Runs
	opts  Options
	in    modes
	out   modes
	lists lists
	push  *notifier
}

// New makes a Server. Close has to be called.
func New(runs *live.Runs, o Options) *Server {
	s := &Server{
		runs: runs, opts: o,
		in:  modes(or(o.Card.DefaultInputModes, "text/plain", "application/json", "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")),
		out: modes(or(o.Card.DefaultOutputModes, "text/plain", "application/json")),
	}
	s.push = newNotifier(s)
	return s
}

func or(modes []string, unset ...string) []string {
	if len(modes) > 0 {
		return modes
	}
	return unset
}

// Routes are the server's addresses.
func (s *Server) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+a2a.CardPath, s.card)
	mux.HandleFunc(Path, s.serve)
}

// Begin goes on with the notifications that were asked for before the process began. Calls do so, too.
func (s *Server) Begin() { s.push.start() }

// Close ends what is told to those who asked for notifications, and waits for it.
func (s *Server) Close() { s.push.close() }

// Fail answers with an error that kept a request from being read.
func (s *Server) Fail(w http.ResponseWriter, r *http.Request, err error) {
	version, bad := versionOf(r)
	if bad != nil {
		version = a2a.V1
	}
	s.refuse(w, version, web.Status(err), nil, &a2a.Error{Code: a2a.CodeInvalidRequest, Message: err.Error()})
}

func (s *Server) refuse(w http.ResponseWriter, v a2a.Version, status int, id json.RawMessage, e *a2a.Error) {
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	web.Bytes(w, status, "application/json", v.AppendError(nil, id, e))
}

// versionOf is what a request speaks.
func versionOf(r *http.Request) (a2a.Version, error) {
	return a2a.ParseVersion(cmp.Or(r.Header.Get(a2a.HeaderVersion), r.URL.Query().Get(a2a.HeaderVersion)))
}

// call is one that is answered.
type call struct {
	s       *Server
	w       http.ResponseWriter
	r       *http.Request
	version a2a.Version
	id      json.RawMessage
	params  json.RawMessage
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		s.refuse(w, a2a.V1, http.StatusMethodNotAllowed, nil, a2a.Errorf(a2a.CodeInvalidRequest, "calls are posted; the agent's card is at %s", a2a.CardPath))
		return
	}
	s.push.start() //nolint:contextcheck // it goes on behind the call
	version, unknown := versionOf(r)
	if unknown != nil {
		version = a2a.V1 // in whose words it is said
	}
	body, err := web.Body(w, r, s.opts.MaxBody)
	if err != nil {
		s.refuse(w, version, web.Status(err), nil, &a2a.Error{Code: a2a.CodeInvalidRequest, Message: err.Error()})
		return
	}
	in, bad := a2a.ParseCall(body)
	c := &call{s, w, r, version, in.ID, in.Params}
	switch {
	case bad != nil:
		c.fail("", bad)
	case in.ID == nil:
		c.fail("", a2a.Errorf(a2a.CodeInvalidRequest, "the call has no id: what is not answered is not done"))
	case unknown != nil:
		c.fail("", unknown)
	default:
		c.do(in.Method)
	}
}

func (c *call) do(method string) {
	op, ok := c.version.Operation(method)
	if !ok {
		e := a2a.Errorf(a2a.CodeMethodNotFound, "version %s of the protocol has no method %.80q", c.version, method)
		for _, other := range []a2a.Version{a2a.V03, a2a.V1} {
			if _, is := other.Operation(method); is {
				e.Message += ": it is one of " + string(other) + ", which is asked for by the header " + a2a.HeaderVersion
			}
		}
		c.fail("", e)
		return
	}
	result, err := operations[op](c)
	switch {
	case err != nil:
		c.fail(op, err)
	case !op.Streams():
		c.answer(result)
	}
}

// operations answer calls. Those that stream have done so when they return without an error.
var operations map[a2a.Operation]func(*call) (any, error)

func init() {
	operations = map[a2a.Operation]func(*call) (any, error){
		a2a.OpSend: (*call).send, a2a.OpStream: (*call).stream, a2a.OpGet: (*call).get, a2a.OpList: (*call).list, a2a.OpCancel: (*call).cancel, a2a.OpSubscribe: (*call).subscribe,
		a2a.OpCreatePush: (*call).createPush, a2a.OpGetPush: (*call).getPush, a2a.OpListPush: (*call).listPush, a2a.OpDeletePush: (*call).deletePush,
		a2a.OpExtendedCard: (*call).extendedCard,
	}
	for op, f := range operations {
		operations[op] = func(c *call) (any, error) {
			result, err := f(c)
			if cause := context.Cause(c.context()); cause != nil && errdefs.Canceled(err) { // the server stops
				err = cause
			}
			return result, err
		}
	}
}

// read reads the call's parameters.
func (c *call) read(into any, tenant *string) error {
	params := c.params
	if params == nil {
		params = json.RawMessage("{}")
	}
	if err := c.version.Unmarshal(params, into); err != nil {
		return a2a.Errorf(a2a.CodeInvalidParams, "%v", err)
	}
	if *tenant != "" {
		return a2a.Errorf(a2a.CodeInvalidParams, "tenant: there are no tenants here: leave it out, as the agent's card does")
	}
	return nil
}

func (c *call) context() context.Context { return c.r.Context() }

func (c *call) answer(result any) {
	line, err := c.version.AppendResult(nil, c.id, result)
	if err != nil {
		c.fail("", errdefs.Internal.Errorf("serve: the answer can't be written: %w", err))
		return
	}
	web.Bytes(c.w, http.StatusOK, "application/json", line)
}

// fail answers with an error. Clients of 0.3 that want a stream read nothing else: for them it is one event.
func (c *call) fail(op a2a.Operation, err error) {
	told := a2a.ErrorOf(err)
	if errdefs.RateLimit.Is(err) { // the call was right, and may be made again
		c.s.refuse(c.w, c.version, http.StatusTooManyRequests, c.id, told)
		return
	}
	if told.Code == a2a.CodeInternal {
		c.s.opts.Logger.Error("a call of A2A failed", "operation", string(op), "error", err)
	}
	if op.Streams() && c.version == a2a.V03 {
		events := web.Stream(c.w)
		defer events.Close()
		_ = events.Send("", "", c.version.AppendError(nil, c.id, told))
		return
	}
	c.s.refuse(c.w, c.version, http.StatusOK, c.id, told)
}

func (c *call) extendedCard() (any, error) {
	code := a2a.CodeUnsupportedOperation
	if c.version == a2a.V03 {
		code = a2a.CodeExtendedCardNotConfigured
	}
	return nil, a2a.Errorf(code, "there is no card beyond the one at %s", a2a.CardPath)
}
