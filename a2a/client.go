package a2a

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/traced"
	"github.com/pawl-dev/pawl/internal/wire"
)

// Limits of a client, against peers that are broken or hostile.
const (
	MaxBody   = 16 << 20         // bytes of a whole answer
	MaxEvent  = 16 << 20         // bytes of one event of a stream, with what stands around it
	MaxStream = 256 << 20        // bytes of a stream
	CallTime  = 2 * time.Minute  // of a call, its answer included; and until a stream's first byte
	EventTime = 10 * time.Minute // between two events of a stream
	cardTime  = 30 * time.Second
)

// A Client calls one agent, in the version that its card says. Make it with [Dial] or [New]. Safe for concurrent use.
//
// Errors that the agent gives are an [*Error]; those of HTTP have the class of the status, and what never reached the agent is
// [errdefs.NotAvailable]. Redirects are not followed: they would take the credentials along. The W3C trace context of a call's context
// (traceparent) is sent. Nothing is tried again: only the caller knows what may be.
type Client struct {
	http    *http.Client
	header  http.Header
	card    AgentCard
	iface   Interface
	version Version
	time    time.Duration
	silence time.Duration
}

// An Option changes how a client calls.
type Option func(*config)

type config struct {
	client  *http.Client
	header  http.Header
	time    time.Duration
	silence time.Duration
}

// WithHTTPClient has calls sent by a client of the caller's: its transport, proxy and certificates. It is copied, and follows no redirects.
func WithHTTPClient(c *http.Client) Option { return func(cfg *config) { cfg.client = c } }

// WithBearer authenticates calls by a token.
func WithBearer(token string) Option { return WithHeader("Authorization", "Bearer "+token) }

// WithHeader sends a header with each call: a key of the agent's, or extensions that the caller speaks.
func WithHeader(name, value string) Option { return func(cfg *config) { cfg.header.Set(name, value) } }

// WithTimes limits a call, and the time between two events of a stream, in place of [CallTime] and [EventTime]; 0 leaves one as it is. An
// agent without streaming answers [Client.Send] when it is done: it needs as much time.
func WithTimes(call, event time.Duration) Option {
	return func(cfg *config) {
		if call > 0 {
			cfg.time = call
		}
		if event > 0 {
			cfg.silence = event
		}
	}
}

// Dial fetches the card of the agent at an address and makes a client for it. The card lies at [CardPath] of the address's host, or at the
// address itself if that ends in .json. Where the client has headers to send, the interface that the card names has to be of the card's own
// origin: a card must not say to whom a key goes. Somebody who trusts the card makes the client with [New].
func Dial(ctx context.Context, address string, opts ...Option) (*Client, error) {
	at, err := cardAddress(address)
	if err != nil {
		return nil, err
	}
	c, err := configured(opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, min(c.time, cardTime))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, errdefs.Validation.Errorf("a2a: %w", err)
	}
	c.sign(ctx, req, "application/json")
	resp, err := c.do(req)
	if err != nil {
		return nil, fmt.Errorf("a2a: the card of %s: %w", at, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := whole(resp.Body, MaxBody)
	if err != nil {
		return nil, fmt.Errorf("a2a: the card of %s: %w", at, c.reason(ctx, err))
	}
	card, err := UnmarshalCard(body)
	if err != nil {
		return nil, broken("the card of %s: %w", at, err)
	}
	if err := c.use(card, at); err != nil {
		return nil, err
	}
	if target, _ := url.Parse(c.iface.URL); len(c.header) > 0 && (target.Scheme != at.Scheme || target.Host != at.Host) {
		return nil, errdefs.PolicyDenied.Errorf("a2a: the card of %s has calls go to %s://%s, another origin, and the client has headers to send there: fetch the card, look at it, and make the client with New", at, target.Scheme, target.Host)
	}
	return c, nil
}

// New makes a client for an agent whose card is known; it calls nobody. A card whose agent does not speak JSON-RPC in 1.0 or 0.3 is
// [errdefs.NotAvailable].
func New(card AgentCard, opts ...Option) (*Client, error) {
	c, err := configured(opts)
	if err != nil {
		return nil, err
	}
	return c, c.use(card, nil)
}

// cardAddress is where the card of an agent lies.
func cardAddress(address string) (*url.URL, error) {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, errdefs.Validation.Errorf("a2a: %.200q is no address of an agent: it begins with https:// or http://", address)
	}
	if !strings.HasSuffix(at.Path, ".json") {
		at.Path, at.RawQuery = CardPath, ""
	}
	at.Fragment = ""
	return at, nil
}

func configured(opts []Option) (*Client, error) {
	cfg := config{header: http.Header{}, time: CallTime, silence: EventTime}
	for _, o := range opts {
		o(&cfg)
	}
	c := &Client{http: &http.Client{Transport: httpapi.Transport()}, header: cfg.header, time: cfg.time, silence: cfg.silence}
	if cfg.client != nil {
		own := *cfg.client
		c.http = &own
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for name, values := range cfg.header {
		if strings.ContainsAny(name+strings.Join(values, ""), "\r\n") {
			return nil, errdefs.Validation.Errorf("a2a: the header %q has a line break in it", name)
		}
	}
	return c, nil
}

// use has the client call the interface of a card that it speaks. An address in it may be relative to the card's, at.
func (c *Client) use(card AgentCard, at *url.URL) error {
	iface, version, ok := card.Select()
	if !ok {
		return errdefs.NotAvailable.Errorf("a2a: the agent %q does not speak JSON-RPC in version 1.0 or 0.3", card.Name)
	}
	target, err := url.Parse(iface.URL)
	if err == nil && at != nil {
		target = at.ResolveReference(target)
	}
	if err != nil || target.Scheme != "http" && target.Scheme != "https" || target.Host == "" || target.User != nil {
		return broken("the card's interface has the address %.200q, which is none of HTTP", iface.URL)
	}
	iface.URL = target.String()
	c.card, c.iface, c.version = card, iface, version
	return nil
}

// Card is the agent's card. It is shared: read it only.
func (c *Client) Card() AgentCard { return c.card }

// Version is the version that the client speaks with the agent.
func (c *Client) Version() Version { return c.version }

// URL is where calls go.
func (c *Client) URL() string { return c.iface.URL }

// Send sends a message. The answer is a task or a message.
func (c *Client) Send(ctx context.Context, r SendRequest) (Event, error) {
	r.Tenant = c.iface.Tenant
	var e Event
	if err := c.call(ctx, OpSend, r, &e); err != nil {
		return e, err
	}
	if e.Task == nil && e.Message == nil {
		return Event{}, broken("the answer to a message is neither a task nor a message")
	}
	return e, nil
}

// Stream sends a message and gives the events that come of it. The range ends when the agent ends the stream, or with an error; to leave it
// ends the stream. That a stream ended does not say that the task did: look at its state, and go on with [Client.Subscribe].
func (c *Client) Stream(ctx context.Context, r SendRequest) iter.Seq2[Event, error] {
	r.Tenant = c.iface.Tenant
	return c.stream(ctx, OpStream, r)
}

// Subscribe gives the events of a task from now on, as [Client.Stream] does. In 1.0 the first is the task as it stands; a task that has ended
// is an [Error] of [CodeUnsupportedOperation]. In 0.3 what happened before is to be had by [Client.Get].
func (c *Client) Subscribe(ctx context.Context, id string) iter.Seq2[Event, error] {
	return c.stream(ctx, OpSubscribe, SubscribeRequest{Tenant: c.iface.Tenant, ID: id})
}

// Get gives a task as it stands.
func (c *Client) Get(ctx context.Context, r GetTaskRequest) (t Task, err error) {
	r.Tenant = c.iface.Tenant
	return t, c.call(ctx, OpGet, r, &t)
}

// List gives tasks, a page at a time. In 0.3 there is none: [errdefs.NotAvailable].
func (c *Client) List(ctx context.Context, r ListTasksRequest) (l ListTasksResponse, err error) {
	r.Tenant = c.iface.Tenant
	return l, c.call(ctx, OpList, r, &l)
}

// Cancel asks the agent to stop a task, and gives the task as it stands then.
func (c *Client) Cancel(ctx context.Context, id string) (t Task, err error) {
	return t, c.call(ctx, OpCancel, CancelTaskRequest{Tenant: c.iface.Tenant, ID: id}, &t)
}

// CreatePush has a task's events posted to an address.
func (c *Client) CreatePush(ctx context.Context, p PushConfig) (out PushConfig, err error) {
	p.Tenant = c.iface.Tenant
	return out, c.call(ctx, OpCreatePush, p, &out)
}

// GetPush gives one address of a task's.
func (c *Client) GetPush(ctx context.Context, task, id string) (p PushConfig, err error) {
	return p, c.call(ctx, OpGetPush, PushConfigRequest{Tenant: c.iface.Tenant, TaskID: task, ID: id}, &p)
}

// ListPush gives the addresses of a task's; in 1.0 a page of them.
func (c *Client) ListPush(ctx context.Context, r ListPushConfigsRequest) (l ListPushConfigsResponse, err error) {
	r.Tenant = c.iface.Tenant
	return l, c.call(ctx, OpListPush, r, &l)
}

// DeletePush takes one back.
func (c *Client) DeletePush(ctx context.Context, task, id string) error {
	return c.call(ctx, OpDeletePush, PushConfigRequest{Tenant: c.iface.Tenant, TaskID: task, ID: id}, nil)
}

// ExtendedCard gives the card that the agent shows to those who authenticate.
func (c *Client) ExtendedCard(ctx context.Context) (card AgentCard, err error) {
	return card, c.call(ctx, OpExtendedCard, ExtendedCardRequest{Tenant: c.iface.Tenant}, &card)
}

// call makes a call whose answer is one document.
func (c *Client) call(ctx context.Context, op Operation, params, result any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.time, errdefs.Timeout.Errorf("the agent did not answer within %v", c.time))
	defer cancel()
	id, resp, err := c.post(ctx, op, params, "application/json")
	if err != nil {
		return fmt.Errorf("a2a: %s: %w", op, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := c.answer(ctx, resp, id, result); err != nil {
		return fmt.Errorf("a2a: %s: %w", op, err)
	}
	return nil
}

func (c *Client) answer(ctx context.Context, resp *http.Response, id string, result any) error {
	body, err := whole(resp.Body, MaxBody)
	if err != nil {
		return c.reason(ctx, err)
	}
	return c.version.ParseAnswer(body, id, result)
}

// post sends a call and gives the answer's head, which is a success.
func (c *Client) post(ctx context.Context, op Operation, params any, accept string) (id string, _ *http.Response, _ error) {
	id = rand.Text()
	body, err := c.version.AppendCall(nil, id, op, params)
	if err != nil {
		return id, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.iface.URL, bytes.NewReader(body))
	if err != nil {
		return id, nil, errdefs.Validation.Errorf("%w", err)
	}
	c.sign(ctx, req, accept)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.do(req)
	return id, resp, err
}

// sign puts the headers of the caller, the version and the trace into a request.
func (c *Client) sign(ctx context.Context, req *http.Request, accept string) {
	for name, values := range c.header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", accept)
	req.Header.Set(HeaderVersion, string(V1))
	if c.version != "" {
		req.Header.Set(HeaderVersion, string(c.version))
	}
	traced.Inject(ctx, req.Header.Set)
}

// do gives a response of 200. A body of another one is an answer too, if it is one of JSON-RPC: some servers give errors a status.
func (c *Client) do(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.reason(req.Context(), err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	if to := resp.Header.Get("Location"); resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return nil, errdefs.PolicyDenied.Errorf("the agent redirects (%d) to %.200q: redirects are not followed, since they take credentials along; use that address, if you trust it", resp.StatusCode, to)
	}
	body, _ := whole(resp.Body, 64<<10) // of an error, as much as came
	var in struct {
		Error *Error `json:"error"`
	}
	if json.Unmarshal(body, &in) == nil && in.Error != nil && in.Error.Code != 0 {
		return nil, in.Error
	}
	return nil, status(resp.StatusCode).Errorf("the agent answered %s: %.300q", resp.Status, body)
}

// status is the class of an HTTP status.
func status(code int) *errdefs.Class {
	switch {
	case code == http.StatusUnauthorized, code == http.StatusProxyAuthRequired:
		return errdefs.Unauthorized
	case code == http.StatusForbidden:
		return errdefs.PolicyDenied
	case code == http.StatusNotFound, code == http.StatusGone:
		return errdefs.NotFound
	case code == http.StatusConflict:
		return errdefs.Conflict
	case code == http.StatusTooManyRequests:
		return errdefs.RateLimit
	case code == http.StatusRequestTimeout, code == http.StatusGatewayTimeout:
		return errdefs.Timeout
	case code >= 400 && code < 500:
		return errdefs.Validation
	}
	return errdefs.NotAvailable
}

// reason says why a connection failed: the end of ctx, with its cause, or the network. What has a class already keeps it.
func (c *Client) reason(ctx context.Context, err error) error {
	if end := ctx.Err(); end != nil {
		if cause := context.Cause(ctx); errdefs.Of(cause) != nil {
			return cause
		}
		return end
	}
	if errdefs.Of(err) != nil {
		return err
	}
	return errdefs.NotAvailable.Errorf("the agent can't be reached, or its answer broke off: %w", err)
}

// whole reads all of r, up to most bytes.
func whole(r io.Reader, most int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(body)) > most {
		err = errdefs.Internal.Errorf("the answer is larger than %d bytes: the limit", most)
	}
	return body, err
}

// stream makes a call whose answer is a stream of events.
func (c *Client) stream(ctx context.Context, op Operation, params any) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		late := errdefs.Timeout.Errorf("the agent said nothing for %v", c.silence)
		clock := time.AfterFunc(c.time, func() { cancel(errdefs.Timeout.Errorf("the agent did not answer within %v", c.time)) })
		defer clock.Stop()
		fail := func(err error) { yield(Event{}, fmt.Errorf("a2a: %s: %w", op, err)) }
		id, resp, err := c.post(ctx, op, params, "text/event-stream")
		if err != nil {
			fail(err)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
			// An agent that can't stream, or does not want to, answers once.
			var e Event
			if err := c.answer(ctx, resp, id, &e); err != nil {
				fail(err)
				return
			}
			yield(e, nil)
			return
		}
		in := &bounded{r: resp.Body, event: MaxEvent, all: MaxStream}
		events := wire.NewEvents(in)
		clock.Stop()
		for {
			clock := time.AfterFunc(c.silence, func() { cancel(late) })
			more := events.Next()
			clock.Stop()
			if !more {
				break
			}
			in.event = MaxEvent
			var e Event
			if err := c.version.ParseAnswer(events.Data(), id, &e); err != nil {
				fail(err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if err := events.Err(); err != nil {
			fail(c.reason(ctx, err))
		}
	}
}

// bounded is a reader that gives no more than event bytes until that is set anew, and all in all.
type bounded struct {
	r          io.Reader
	event, all int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.event <= 0 {
		return 0, errdefs.Internal.Errorf("an event of the stream is larger than %d bytes: the limit", int64(MaxEvent))
	}
	if b.all <= 0 {
		return 0, errdefs.Internal.Errorf("the stream is larger than %d bytes: the limit", int64(MaxStream))
	}
	p = p[:min(int64(len(p)), b.event, b.all)]
	n, err := b.r.Read(p)
	b.event -= int64(n)
	b.all -= int64(n)
	return n, err
}
