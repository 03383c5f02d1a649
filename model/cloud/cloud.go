package cloud

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/secret"
	"github.com/pawl-dev/pawl/model"
)

// Token is an access token.
type Token struct {
	Value   string
	Expires time.Time // zero: it is good for one call, and asked for again at the next
}

// service is what one cloud does to a call.
type service interface {
	// prepare gives c.out its path, its headers and its credentials, and c.body its form. The credentials are other ones than c.refused.
	prepare(ctx context.Context, c *call) error
	// translate makes of an answer what the protocol knows.
	translate(c *call, resp *http.Response) error
}

// call is a request on its way.
type call struct {
	path    string // what the protocol asks for, behind the base URL
	body    httpapi.Body
	out     *http.Request
	stream  bool
	refused int // the number of the credentials that were refused; 0: none
	with    int // the number of the credentials that it goes with, if they were fetched for an earlier call; else 0
}

// transport stands between a protocol and a cloud.
type transport struct {
	vendor  string
	base    *url.URL
	fault   error // of the configuration
	next    http.RoundTripper
	service service
	secrets *vault
}

// option makes the option of a cloud. setup is given what was set before, and says where the cloud is.
func option(vendor string, setup func(e *model.Endpoint, t *transport) (base string, err error)) model.Option {
	return func(e *model.Endpoint) {
		client := &http.Client{}
		if e.HTTP != nil {
			*client = *e.HTTP
		}
		t := &transport{vendor: vendor, next: client.Transport, secrets: &vault{}}
		if e.Vendor != "" {
			t.vendor = e.Vendor
		}
		if t.next == nil {
			t.next = httpapi.Transport()
		}
		base, err := setup(e, t)
		if err == nil {
			base = strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1")
			t.base, err = url.Parse(base)
			if err != nil || t.base.Host == "" || t.base.Scheme != "http" && t.base.Scheme != "https" || t.base.RawQuery != "" || t.base.User != nil {
				shown := ""
				if !strings.ContainsAny(base, "@?") { // what may be a password or a token is not shown
					shown = " " + quoted(base)
				}
				err = t.fail(errdefs.Validation, "base_url", "the address of the cloud"+shown+" is none: write it as https://host, without a user and a query")
			}
		}
		if t.fault = err; err != nil {
			base = "https://" + vendor + ".invalid" // nothing is sent
		}
		client.Transport = t
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		e.Vendor, e.Key, e.BaseURL, e.HTTP = t.vendor, "", base, client
	}
}

// fail makes an error.
func (t *transport) fail(kind *errdefs.Class, code, text string) *model.Error {
	return &model.Error{Provider: t.vendor, Kind: kind, Code: code, Message: text}
}

// Secrets are what an error must not show.
func (t *transport) Secrets() []string { return t.secrets.all() }

// CloseIdleConnections closes those of the round tripper behind.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip sends a request of the protocol's to the cloud.
func (t *transport) RoundTrip(in *http.Request) (*http.Response, error) {
	if in.Body != nil {
		defer in.Body.Close() //nolint:errcheck // it was read
	}
	if t.fault != nil {
		return nil, t.fault
	}
	c := call{}
	var under bool
	if c.path, under = strings.CutPrefix(in.URL.EscapedPath(), t.base.EscapedPath()); !under || in.URL.Host != t.base.Host || in.URL.Scheme != t.base.Scheme {
		return nil, t.fail(errdefs.Validation, "other_host", "the request goes to "+in.URL.Host+", not to "+t.base.Host+": credentials are for the cloud alone. Set a base URL before the cloud's option, or in it")
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if in.Header.Get(name) != "" {
			return nil, t.fail(errdefs.Validation, "other_key", "the header "+name+" is set, and the cloud has credentials of its own: set a key before the cloud's option, or in it")
		}
	}
	sent, err := bodyOf(in)
	if err != nil {
		return nil, err
	}
	for {
		c.body, c.out = sent, in.Clone(in.Context())
		c.out.Body, c.out.GetBody = nil, nil
		if err := t.service.prepare(in.Context(), &c); err != nil {
			return nil, err
		}
		body := c.body
		c.out.Body, c.out.ContentLength = body.Reader(), body.Len()
		c.out.GetBody = func() (io.ReadCloser, error) { return body.Reader(), nil }
		resp, err := t.next.RoundTrip(c.out)
		if err != nil {
			return nil, err
		}
		if refused(resp) && c.with != 0 && c.refused == 0 {
			httpapi.Finish(resp)
			c.refused = c.with
			continue
		}
		if err := t.service.translate(&c, resp); err != nil {
			_ = resp.Body.Close()
			return nil, err
		}
		return resp, nil
	}
}

// refused reports whether other credentials might help.
func refused(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized || strings.HasPrefix(resp.Header.Get("X-Amzn-Errortype"), "ExpiredToken")
}

func bodyOf(in *http.Request) (httpapi.Body, error) {
	if in.Body == nil {
		return nil, nil
	}
	if pieces, ok := httpapi.Pieces(in.Body); ok {
		return pieces, nil
	}
	whole, err := io.ReadAll(in.Body) // from another client than ours
	return httpapi.Body{whole}, err
}

// to sets where a call goes: path, escaped, behind the base URL.
func (c *call) to(base *url.URL, path, query string) {
	path = base.EscapedPath() + path
	plain, err := url.PathUnescape(path)
	if err != nil {
		plain = path
	}
	c.out.URL = &url.URL{Scheme: base.Scheme, Host: base.Host, Path: plain, RawPath: path, RawQuery: query}
	c.out.Host = ""
}

// label reports whether s can be a part of a host's name, as regions are.
func label(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return s != ""
}

// vault holds the secrets that were used last.
type vault struct {
	mu   sync.Mutex
	list []string
}

func (v *vault) add(secrets ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range secrets {
		known := len(s) < secret.Least
		for _, old := range v.list {
			known = known || old == s
		}
		if !known {
			v.list = append(v.list, s)
		}
	}
	if over := len(v.list) - 16; over > 0 { // tokens that ended
		v.list = append([]string(nil), v.list[over:]...)
	}
}

func (v *vault) all() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.list...)
}

func (v *vault) redact(text string) string {
	for _, s := range v.all() {
		text = strings.ReplaceAll(text, s, secret.Redacted)
	}
	return text
}
