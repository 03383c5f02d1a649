// Package httpapi is what the providers share: one way to send bytes that were encoded before, and one classified error.
package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// MaxBody is the largest whole reply that is read, in bytes; MaxStream the largest stream, which says the same with more around it.
const (
	MaxBody   = 64 << 20
	MaxStream = 4 * MaxBody
)

// MaxIdle is how many connections are kept for the next calls, to one host and in all. Calls come in bursts to few hosts: with fewer than were needed at once, each burst would open its own. One that nobody uses for a minute and a half is closed.
const MaxIdle = 4096

// API is one provider's HTTP interface. Safe for concurrent use, once its fields are set: they are not changed after the first call.
type API struct {
	Provider string // for errors
	Base     string // without a trailing slash
	Header   http.Header
	// Explain reads a provider's error body into e: Code, Message, and Kind where it knows better than the status. nil: see Envelope.
	Explain func(body []byte, e *model.Error)

	send    sender
	last    atomic.Pointer[place]
	secrets []string // see redact
	keys    []string // the variables that a key was looked for in, when one is needed and none was found
}

// New makes an API. base is the provider's own server, which takes no call without a key; another base URL in opts may. env are the
// variables that may hold the key, the first one that is set wins, unless another vendor serves the protocol; auth gives the header that carries it.
func New(provider, base string, env []string, opts []model.Option, auth func(key string) (name, value string)) *API {
	var e model.Endpoint
	for _, o := range opts {
		o(&e)
	}
	own := e.BaseURL == "" || strings.TrimRight(e.BaseURL, "/") == base
	if !own {
		base = e.BaseURL
	}
	if e.Vendor != "" && e.Vendor != provider {
		provider, env = e.Vendor, nil
	}
	for _, name := range env {
		if e.Key == "" {
			e.Key = os.Getenv(name)
		}
	}
	a := &API{Provider: provider, Base: strings.TrimRight(base, "/"), Header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"pawl"}}, send: senderOf(e.HTTP)}
	name, value := auth(e.Key)
	if e.Key != "" {
		a.Header.Set(name, value)
	}
	for name, values := range e.Header {
		a.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	a.secrets = secrets(e.Key, e.Header)
	if own && a.Header.Get(name) == "" && a.Header.Get("Authorization") == "" {
		a.keys = env
	}
	return a
}

// At is the API at another place of its server.
func (a *API) At(base string) *API {
	return &API{Provider: a.Provider, Base: base, Header: a.Header, Explain: a.Explain, send: a.send, secrets: a.secrets, keys: a.keys}
}

// shared sends for all providers: model calls last for minutes and come in bursts to few hosts, so there is no overall timeout (the context has it) and idle
// connections are kept. It does not ask for compression: what is compressed on the way comes late, in pieces that are no events.
var shared = func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.DisableCompression = MaxIdle, MaxIdle, true
	if t.DialContext != nil {
		t.DialContext = dial(t.DialContext)
	}
	return t
}()

// Transport is what calls are sent with where the caller gives no client: for round trippers that stand before it.
func Transport() http.RoundTripper { return shared }

// CloseIdle closes the idle connections of the shared transport: for tests that count goroutines.
func CloseIdle() { shared.CloseIdleConnections() }

// Post sends body and gives a response with status 2xx. The caller closes its body, and before that calls [Finish] when it read all
// that it wanted. Anything else is an error, a *model.Error unless ctx ended or the base URL is none.
func (a *API) Post(ctx context.Context, path string, body Body, accept string) (*http.Response, error) {
	return a.Do(ctx, http.MethodPost, path, body.Content(), Accept(accept))
}

// Accept is the header of a call that wants a reply of that type; it is read only.
func Accept(kind string) http.Header {
	switch kind {
	case "":
		return nil
	case "text/event-stream":
		return streams
	case "application/json":
		return documents
	}
	return http.Header{"Accept": {kind}}
}

var (
	streams   = http.Header{"Accept": {"text/event-stream"}}
	documents = http.Header{"Accept": {"application/json"}}
)

// Do sends a request as [API.Post] does. What header has stands in place of the API's own headers of the same name; neither is written to any more. The zero Content is none.
func (a *API) Do(ctx context.Context, method, path string, content Content, header http.Header) (*http.Response, error) {
	if a.keys != nil {
		return nil, &model.Error{Provider: a.Provider, Kind: errdefs.Unauthorized, Code: "missing_key", Message: "no API key: set " + strings.Join(a.keys, " or ") + ", or give one with model.WithKey"}
	}
	at, err := a.place(path, header)
	if err != nil {
		return nil, err
	}
	req := at.request(ctx, method, content, a.send.client == nil)
	resp, err := a.send.do(req)
	if err != nil {
		return nil, a.broken(ctx, err, "no answer")
	}
	if resp.StatusCode/100 == 2 {
		return a.taken(req, resp)
	}
	return nil, a.refused(ctx, req, resp)
}

// taken is a response with status 2xx, if it is one of an API. What it and refused need on the stack is not there while Do waits.
func (a *API) taken(req *http.Request, resp *http.Response) (*http.Response, error) {
	resp.Body = &bounded{body: resp.Body, left: MaxStream, began: time.Now()}
	if mediaType(resp.Header) == "text/html" {
		defer Finish(resp)
		return nil, &model.Error{Provider: a.Provider, Kind: errdefs.NotAvailable, Code: "not_an_api", Message: req.URL.Redacted() + " answered with a web page: is the base URL right?"}
	}
	switch how := first(resp.Header, "Content-Encoding"); how {
	case "", "identity":
	case "gzip": // nobody asked for it, but all can read it
		resp.Body = &bounded{body: &unzipped{ReadCloser: resp.Body}, left: MaxStream, began: time.Now()}
	default:
		defer Finish(resp)
		return nil, &model.Error{Provider: a.Provider, Kind: errdefs.NotAvailable, Code: "content_encoding", Message: "the reply is encoded as " + strconv.Quote(clip(how, 40)) + ", which was not asked for"}
	}
	return resp, nil
}

// refused is the error of a response with another status than 2xx.
func (a *API) refused(ctx context.Context, req *http.Request, resp *http.Response) error {
	defer Finish(resp)
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	e := a.Failed(resp.StatusCode, resp.Header, text)
	if to, err := resp.Location(); err == nil && resp.StatusCode/100 == 3 {
		e.Message = "redirects are not followed, as they would take the key along: is the API at " + clip(to.Host, 200) + "? Give its own address as the base URL"
	}
	if resp.StatusCode == http.StatusNotFound && e.Code == "" { // no API said so: the path may be wrong
		e.Message += " (asked " + req.URL.Redacted() + ")"
	}
	return e
}

// Call is [API.Do] where the answer is a JSON document, which it gives.
func (a *API) Call(ctx context.Context, method, path string, content Content, header http.Header) ([]byte, error) {
	resp, err := a.Do(ctx, method, path, content, header) //nolint:bodyclose // ReadAll closes it
	if err != nil {
		return nil, err
	}
	return a.ReadAll(ctx, resp)
}

// IsJSON reports whether a response is a JSON document: some servers answer so to a request for a stream. It says so, or its first byte
// does, for which it waits: no line of an event stream begins with a bracket.
func IsJSON(resp *http.Response) bool {
	kind := mediaType(resp.Header)
	if kind == "application/json" || strings.HasSuffix(kind, "+json") {
		return true
	}
	b, ok := resp.Body.(*bounded)
	if !ok {
		b = &bounded{body: resp.Body, left: MaxStream}
		resp.Body = b
	}
	first := b.peek()
	return first == '{' || first == '['
}

// mediaType is what a response says that it is; the usual ones are known as they stand.
func mediaType(h http.Header) string {
	switch said := first(h, "Content-Type"); said {
	case "text/event-stream", "application/json":
		return said
	case "text/event-stream; charset=utf-8":
		return "text/event-stream"
	default:
		kind, _, _ := mime.ParseMediaType(said)
		return kind
	}
}

// first is h.Get for a name in the form in which headers have it: Get looks first whether it is.
func first(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// ReadAll reads a whole reply and finishes the response.
func (a *API) ReadAll(ctx context.Context, resp *http.Response) ([]byte, error) {
	defer Finish(resp)
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	if err != nil {
		return nil, WithID(a.broken(ctx, err, "the reply broke off"), resp)
	}
	if len(body) > MaxBody {
		return nil, WithID(&model.Error{Provider: a.Provider, Kind: errdefs.NotAvailable, Code: "reply_too_large", Message: "the reply is over 64 MiB"}, resp)
	}
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if !wire.Valid(body) {
		return nil, WithID(a.Malformed("the reply is not JSON", body), resp)
	}
	if !utf8.Valid(body) { // in its texts; what is kept of it is sent again, and written down
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	return body, nil
}

// WithID gives a failure inside of a reply the id of the call.
func WithID(err error, resp *http.Response) error {
	var e *model.Error
	if errors.As(err, &e) && e.RequestID == "" {
		e.RequestID = RequestID(resp.Header)
	}
	return err
}

// Tokens reads a count of tokens; 0 for what can be none: no number, below zero, or over a trillion.
func Tokens(raw []byte) int {
	n := wire.Int(raw)
	if n < 0 || n > 1e12 {
		return 0
	}
	return int(n)
}

// Finish gives the connection of a reply back that was read to its end: a well-behaved server closes the body right after its last
// event, and only then can the connection be used again. A server that has more to say, or says nothing for a quarter of a second,
// is cut off. Where a reply is given up in its middle, close its body instead.
func Finish(resp *http.Response) {
	if ended(resp.Body) { // as it came with the last event: a timer would wake a thread that waits for the network
		_ = resp.Body.Close()
		return
	}
	hangUp := time.AfterFunc(250*time.Millisecond, func() { _ = resp.Body.Close() })
	rest, ok := rests.Get().(*[512]byte)
	if !ok {
		rest = new([512]byte)
	}
	for n := 0; n < 4<<10; {
		more, err := resp.Body.Read(rest[:])
		if n += more; err != nil {
			break
		}
	}
	rests.Put(rest)
	hangUp.Stop()
	_ = resp.Body.Close()
}

// rests are for what is read and goes nowhere.
var rests sync.Pool

// Malformed is the error for bytes that the protocol doesn't allow; it quotes their beginning.
func (a *API) Malformed(what string, got []byte) *model.Error {
	return &model.Error{Provider: a.Provider, Kind: errdefs.NotAvailable, Code: "malformed_reply", Message: what + ": " + a.quote(got)}
}

// Truncated is the error for a stream that ended without its terminal event; cause may be nil.
func (a *API) Truncated(ctx context.Context, cause error) error {
	return a.broken(ctx, cause, "the stream ended before its last event")
}

// broken classifies a failure of the connection. A context that ended wins: its error is returned as it is, with its meaning.
func (a *API) broken(ctx context.Context, err error, what string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var said *model.Error
	if errors.As(err, &said) { // by a round tripper that knows better
		e := *said // whoever said it may say it to others
		a.redact(&e)
		return &e
	}
	e := &model.Error{Provider: a.Provider, Kind: errdefs.NotAvailable, Code: "connection", Message: what}
	if strings.HasPrefix(what, "the ") {
		e.Code = "truncated_stream"
	}
	var u *url.Error
	if errors.As(err, &u) { // its text has the whole URL, which may carry a key
		err = u.Err
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		e.Kind = errdefs.Timeout
	}
	e.Err = err
	return e
}

// Failed makes the error of a status that isn't 2xx.
func (a *API) Failed(status int, h http.Header, body []byte) *model.Error {
	e := &model.Error{Provider: a.Provider, Kind: model.ClassOfStatus(status), Status: status, RetryAfter: retryAfter(h, time.Now()), Rate: rate(h, time.Now())}
	e.RequestID = RequestID(h)
	a.explain(body, e)
	if e.Message == "" {
		e.Message = http.StatusText(status)
	}
	return e
}

// RequestID gives the id under which the provider's support finds a call; "" if there is none.
func RequestID(h http.Header) string {
	for _, name := range []string{"Request-Id", "X-Request-Id", "X-Goog-Request-Id", "X-Amzn-Requestid", "Apim-Request-Id"} {
		if id := h.Get(name); id != "" {
			return clip(strings.ToValidUTF8(id, "\uFFFD"), 200)
		}
	}
	return ""
}

// InStream makes the error that a provider sent inside a stream or a 200.
func (a *API) InStream(body []byte) *model.Error {
	e := &model.Error{Provider: a.Provider, Kind: errdefs.NotAvailable}
	a.explain(body, e)
	return e
}

func (a *API) explain(body []byte, e *model.Error) {
	Envelope(body, e)
	if a.Explain != nil {
		a.Explain(body, e)
	}
	if e.Kind != errdefs.Unauthorized && overflow(e.Code, e.Message) {
		e.Kind = errdefs.Overflow
	}
	if a.redact(e); e.Message == "" {
		e.Message = a.quote(body)
	}
	e.Message, e.Code, e.RequestID = clip(e.Message, 16<<10), clip(e.Code, 200), clip(e.RequestID, 200) // they go to logs and journals
}

// clip gives the beginning of a text that is longer than n bytes.
func clip(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// Envelope reads the error body that all of them share in shape: {"error": {"type"|"code"|"status", "message"}}.
func Envelope(body []byte, e *model.Error) {
	inner := wire.Get(body, "error")
	if wire.IsNull(inner) {
		inner = body
	}
	if s := wire.String(inner); s != "" { // {"error": "text"}, as small servers do
		e.Message = s
		return
	}
	for _, name := range []string{"code", "status", "type"} { // the last one that is a word wins: Anthropic's type, Google's status
		if s := wire.String(wire.Get(inner, name)); s != "" && (e.Code == "" || name != "type") {
			e.Code = s
		}
	}
	e.Message = wire.String(wire.Get(inner, "message"))
	if id := wire.String(wire.Get(body, "request_id")); id != "" && e.RequestID == "" {
		e.RequestID = id
	}
}

// overflow tells the errors apart that mean: the request does not fit the context window. Providers have a code for it at best.
func overflow(code, text string) bool {
	if code == "context_length_exceeded" {
		return true
	}
	text = strings.ToLower(text)
	for _, sign := range []string{
		"prompt is too long", "input is too long", "maximum context length", "context window", "context length", "exceeds the maximum number of tokens",
		"input token count", "too many input tokens", "reduce the length of the messages", "exceed context limit",
	} {
		if strings.Contains(text, sign) && !strings.Contains(text, "rate limit") {
			return true
		}
	}
	return false
}

// quote gives the beginning of what a provider sent, without our secrets.
func (a *API) quote(b []byte) string {
	e := model.Error{Message: string(b[:min(len(b), 16<<10)])}
	a.redact(&e)
	s := strings.TrimSpace(strings.ToValidUTF8(e.Message[:min(len(e.Message), 300)], "\uFFFD"))
	if len(e.Message) > 300 {
		s += "…"
	}
	return s
}
