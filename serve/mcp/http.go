package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/serve/internal/web"
)

// HTTP says how clients are served by HTTP.
type HTTP struct {
	// Stateless serves each request for itself: no session of the protocol is kept, so any of several servers on one journal may get the next request. Clients of versions before 2026-07-28 can't be asked anything then, and can't cancel. Without
	// it, clients of version 2026-07-28, which has no sessions, are told to use an older one.
	Stateless bool
	// Tokens open the server, each of them, as a bearer token: 16 characters or more. None: nobody is asked for one, which is for addresses of this machine alone: whoever can connect can do what the Runtime can.
	Tokens []string
	// Hosts are the names that the server is asked by when there are no tokens, besides addresses and localhost.
	Hosts []string
	// Origins are sites whose pages may call, such as "https://app.example.com". The server's own may always, no other one may.
	Origins []string
	// MaxBody is the longest request, in bytes; MaxRequests is how many are served at a time; MaxSessions is how many clients have a session. Default: 0, which is 8 MiB, 256 and 1000; less is errdefs.Validation.
	MaxBody                  int64
	MaxRequests, MaxSessions int
	// SessionTimeout ends a session that sends nothing for so long; a client can begin another. Runs are not lost. Default: 0, which is an hour; less is errdefs.Validation.
	SessionTimeout time.Duration
}

// bodyTime is how long a client has for sending a request.
const bodyTime = 30 * time.Second

// Handler serves clients by streamable HTTP, at whatever path it is mounted. A request that was not taken is answered by an error of JSON-RPC, with a status of HTTP: 401 without the token, 403 for another Host or Origin, 404 for an unknown
// session, 413 for one that is too long, 503 when there are too many. A client that reads nothing of its answer for 15 s is cut off.
func (s *Server) Handler(o HTTP) (http.Handler, error) {
	if o.MaxBody < 0 || o.MaxRequests < 0 || o.MaxSessions < 0 || o.SessionTimeout < 0 {
		return nil, errdefs.Validation.Errorf("mcp: a limit is negative: 0 is the default")
	}
	if o.MaxBody == 0 {
		o.MaxBody = 8 << 20
	}
	if o.MaxRequests == 0 {
		o.MaxRequests = 256
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = 1000
	}
	if o.SessionTimeout == 0 {
		o.SessionTimeout = time.Hour
	}
	gate := web.Gate{Tokens: o.Tokens, Origins: o.Origins, Hosts: o.Hosts}
	if err := gate.Check(); err != nil {
		return nil, err
	}
	opts := &sdk.StreamableHTTPOptions{
		Stateless: o.Stateless, Logger: s.o.Logger, SessionTimeout: o.SessionTimeout, MaxRequestBodyBytes: o.MaxBody,
		DisableLocalhostProtection:   true, // ours says so in the protocol's form, and looks at Origin, too
		PropagateRequestCancellation: true,
	}
	if !o.Stateless {
		opts.EventStore = sdk.NewMemoryEventStore(nil)
	}
	h := &handler{s: s, o: o, room: make(chan struct{}, o.MaxRequests), next: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk }, opts)}
	return web.Patient(gate.Wrap(h, func(w http.ResponseWriter, _ *http.Request, err error) {
		refuse(w, err.Error(), web.Status(err), jsonrpc.CodeInvalidRequest)
	})), nil
}

type handler struct {
	s    *Server
	o    HTTP
	room chan struct{}
	next http.Handler
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it was for who may not come in: streams take longer
	leave := h.s.enter()
	if leave == nil {
		refuse(w, "the server is being closed", http.StatusServiceUnavailable, jsonrpc.CodeInternalError)
		return
	}
	defer leave()
	select {
	case h.room <- struct{}{}:
		defer func() { <-h.room }()
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, fmt.Sprintf("%d requests are under way: come back later", h.o.MaxRequests), http.StatusServiceUnavailable, jsonrpc.CodeInternalError)
		return
	}
	req = req.Clone(req.Context())
	req.Header.Del(numberHeader)
	if req.Method == http.MethodPost {
		number, ok := h.post(w, req)
		if !ok {
			return
		}
		if number != "" {
			req.Header.Set(numberHeader, number)
			defer h.s.requests.over(number)
		}
	}
	if session := req.Header.Get("Mcp-Session-Id"); req.Method == http.MethodDelete && session != "" {
		h.s.requests.leave(session) // the library waits for what is under way
	}
	if version := h.s.versionOf(req.Header.Get("Mcp-Session-Id")); version != "" { // whatever the request says: they agreed on it
		req.Header.Set("Mcp-Protocol-Version", version)
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(h.s.ctx, cancel)() //nolint:contextcheck // Close ends streams
	pw := &plain{ResponseWriter: w}
	h.next.ServeHTTP(pw, req.WithContext(ctx)) //nolint:contextcheck // it is the request's own, that Close ends, too
	pw.end()
}

// post reads and checks a request's body; ok is false when it was refused.
func (h *handler) post(w http.ResponseWriter, req *http.Request) (number string, ok bool) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTime)) // a writer that can't is a test's
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, h.o.MaxBody))
	_ = rc.SetReadDeadline(time.Time{})
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		refuse(w, fmt.Sprintf("the request is longer than %d bytes", long.Limit), http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest)
		return "", false
	case err != nil:
		refuse(w, "the request could not be read to its end", http.StatusBadRequest, jsonrpc.CodeInvalidRequest)
		return "", false
	}
	parts, err := split(body)
	if err != nil {
		refuse(w, err.Error(), http.StatusBadRequest, jsonrpc.CodeParseError)
		return "", false
	}
	var all []jsonrpc.Message
	for _, p := range parts {
		m, err := decode(p)
		if err != nil {
			refuse(w, err.Error(), http.StatusBadRequest, jsonrpc.CodeInvalidRequest)
			return "", false
		}
		all = append(all, m)
	}
	session := req.Header.Get("Mcp-Session-Id")
	if session == "" && !h.o.Stateless && h.s.full(h.o.MaxSessions) {
		w.Header().Set("Retry-After", "60")
		refuse(w, fmt.Sprintf("there are %d sessions: come back later", h.o.MaxSessions), http.StatusServiceUnavailable, jsonrpc.CodeInternalError)
		return "", false
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	gone := req.Context()
	if !h.o.Stateless { // a client with a session can come back for the rest
		gone = context.WithoutCancel(gone)
	}
	return h.s.requests.begin(session, gone, all...), true
}

// versionOf is the version of the protocol of a session, "" when it is not known.
func (s *Server) versionOf(session string) string {
	if session == "" {
		return ""
	}
	for one := range s.sdk.Sessions() {
		if one.ID() != session {
			continue
		}
		if p := one.InitializeParams(); p != nil && slices.Contains(sdk.SupportedProtocolVersions(), p.ProtocolVersion) && p.ProtocolVersion < inCalls {
			return p.ProtocolVersion
		}
	}
	return ""
}

// full reports whether there are as many sessions as may be.
func (s *Server) full(most int) bool {
	n := 0
	for range s.sdk.Sessions() {
		n++
	}
	return n >= most
}

// refuse answers a request that is not taken.
func refuse(w http.ResponseWriter, text string, status int, code int64) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(refusal(code, text), '\n'))
}

// plain has the library's errors, which are plain text, be errors of JSON-RPC, and says at the beginning of a stream when to come back for the rest.
type plain struct {
	http.ResponseWriter
	status int // of an error in plain text; 0: it is none
	text   []byte
	began  bool
}

// comeBack is how long a client waits until it connects again for the rest of a stream.
const comeBack = "retry: 1000\n\n"

func (p *plain) WriteHeader(status int) {
	if status >= 400 && strings.HasPrefix(p.Header().Get("Content-Type"), "text/plain") {
		p.status = status
		return
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *plain) Write(b []byte) (int, error) {
	if p.status == 0 {
		if !p.began && p.Header().Get("Content-Type") == "text/event-stream" {
			if _, err := io.WriteString(p.ResponseWriter, comeBack); err != nil {
				return 0, err
			}
		}
		p.began = true
		return p.ResponseWriter.Write(b)
	}
	p.text = append(p.text, b...)
	return len(b), nil
}

// Flush is for streams.
func (p *plain) Flush() {
	if p.status == 0 {
		_ = http.NewResponseController(p.ResponseWriter).Flush()
	}
}

// Unwrap is for http.ResponseController.
func (p *plain) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *plain) end() {
	if p.status != 0 {
		p.Header().Del("Content-Length")
		refuse(p.ResponseWriter, strings.TrimSpace(string(p.text)), p.status, jsonrpc.CodeInvalidRequest)
	}
}
