package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/traced"
)

const sessionHeader = "Mcp-Session-Id"

// largestMessage is how long a message of a server may be, in bytes.
const largestMessage = 32 << 20

// delivery is what is known about a request on its way: whether the server may have begun to work on it.
type delivery struct {
	begun   atomic.Bool // bytes of it may have reached the server
	refused atomic.Bool // the server said that it did not take it
	status  atomic.Int32
}

// certain reports whether the server surely did not run it.
func (d *delivery) certain() bool { return !d.begun.Load() || d.refused.Load() }

type deliveryKey struct{}

func deliveryOf(ctx context.Context) *delivery {
	if d, ok := ctx.Value(deliveryKey{}).(*delivery); ok {
		return d
	}
	return &delivery{}
}

// roundTripper carries the requests of one server. The library takes every failed request for one that did not arrive, and only some expired sessions for expired; this is
// where the difference is seen.
type roundTripper struct {
	base    http.RoundTripper
	origin  *url.URL
	headers map[string]string
	noticed func()      // a cancelled call was told of
	strayed func(error) // a request that led away was refused: the library may say only that the connection was closed
	login   *login      // sets the token; nil: the library does, or there is none
}

func (r *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if !sameOrigin(req.URL, r.origin) { // the address that an old server gives for messages may be anything
		err := errdefs.PolicyDenied.Errorf("mcp: %s leads away from %s: it is not followed", req.URL.Host, r.origin.Host)
		r.strayed(err)
		return nil, err
	}
	d := deliveryOf(req.Context())
	req = req.Clone(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { d.begun.Store(true) }}))
	if req.Method == http.MethodPost { // a stream, and the end of a session, belong to no run
		traced.Inject(req.Context(), req.Header.Set) //nolint:contextcheck // the clone has it, too
	}
	for name, value := range r.headers {
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	if r.login != nil {
		r.login.bearer(req)
	}
	if cancels(req) {
		defer r.noticed()
	}
	resp, err := r.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") { // of that the library bounds each event, of others nothing
		resp.Body = &limited{resp.Body, largestMessage + 1}
	}
	d.status.Store(int32(resp.StatusCode)) //nolint:gosec // three digits
	d.refused.Store(resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusRequestTimeout)
	if req.Header.Get(sessionHeader) != "" && req.Method == http.MethodPost && expired(resp) {
		_ = resp.Body.Close()
		resp.StatusCode, resp.Body = http.StatusNotFound, http.NoBody // with a body the library takes it for the answer to this request alone
	}
	return resp, nil
}

// limited is a body that may not be longer than a message.
type limited struct {
	io.ReadCloser
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("a message of more than %d MiB", largestMessage>>20)
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// cancels reports whether a request tells of a cancelled call.
func cancels(req *http.Request) bool {
	if req.Method != http.MethodPost || req.GetBody == nil || req.ContentLength > 4<<10 {
		return false
	}
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	b, _ := io.ReadAll(body)
	return bytes.Contains(b, []byte(`"notifications/cancelled"`))
}

// expired reports whether a session is gone. Servers that were restarted also say so with 400 and a text.
func expired(resp *http.Response) bool {
	if resp.StatusCode != http.StatusBadRequest {
		return resp.StatusCode == http.StatusNotFound
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	return err == nil && strings.Contains(strings.ToLower(string(head)), "session")
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host) }

// httpTransport is a way to a server, the older one or not. free closes its connections.
func (s *server) httpTransport(life context.Context, cancel func(), old bool, live *session) (way sdk.Transport, free func(), err error) {
	u, err := url.Parse(s.conf.URL)
	if err != nil {
		return nil, nil, err
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	rt := &roundTripper{base: base, origin: u, headers: s.conf.Headers, noticed: live.noticed, strayed: func(err error) { live.away.Store(&err) }}
	live.login = newLogin(s)
	client := &http.Client{Transport: rt, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) >= 5 {
			return errors.New("more than 5 redirects")
		}
		return nil // roundTripper holds them to the origin
	}}
	if old {
		rt.login = live.login
		return lasting{&sdk.SSEClientTransport{Endpoint: s.conf.URL, HTTPClient: client, MaxEventSize: largestMessage}, life, cancel}, base.CloseIdleConnections, nil
	}
	newer := &sdk.StreamableClientTransport{Endpoint: s.conf.URL, HTTPClient: client, MaxEventSize: largestMessage}
	if live.login != nil {
		newer.OAuthHandler = live.login
	}
	return newer, base.CloseIdleConnections, nil
}

// lasting connects for as long as life lasts, and not as long as the time that there is for connecting.
type lasting struct {
	sdk.Transport
	life   context.Context
	cancel func()
}

func (l lasting) Connect(ctx context.Context) (sdk.Connection, error) {
	defer context.AfterFunc(ctx, l.cancel)()
	conn, err := l.Transport.Connect(l.life) //nolint:contextcheck // ctx cancels it
	if ctx.Err() != nil && err == nil {
		_ = conn.Close()
		err = context.Cause(ctx)
	}
	return conn, err
}
