package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// errScheme is of a server that speaks no TLS.
var errScheme = errors.New("the server answered in HTTP to HTTPS: is it http://?")

// sender sends requests for an API. What a client of the caller's is, is his; our own transport needs none, and a request costs a fifth fewer allocations without.
type sender struct {
	client    *http.Client // the caller's; nil: transport
	transport http.RoundTripper
}

func senderOf(client *http.Client) sender {
	switch {
	case client == nil:
		return sender{transport: shared}
	case client.CheckRedirect == nil:
		own := *client
		own.CheckRedirect = stay
		client = &own
	}
	return sender{client: client}
}

// stay follows no redirect: it would carry the key to another host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (s sender) do(req *http.Request) (*http.Response, error) {
	if s.client != nil {
		return s.client.Do(owned(req))
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil && plain(err) {
		err = errScheme
	}
	return resp, err
}

// owned gives a request an address and a header of its own: a cookie jar or a round tripper of the caller's may write to them.
func owned(req *http.Request) *http.Request {
	u := *req.URL
	req.URL, req.Header = &u, req.Header.Clone()
	return req
}

// plain reports whether a server answered in HTTP where TLS was to begin.
func plain(err error) bool {
	var e tls.RecordHeaderError
	return errors.As(err, &e) && string(e.RecordHeader[:]) == "HTTP/"
}

// through is what requests go through.
func (s sender) through() http.RoundTripper {
	if s.client != nil {
		return s.client.Transport
	}
	return s.transport
}

// place is where a call goes, with its headers. They are read only.
type place struct {
	path   string
	extra  http.Header // that came with the call
	url    *url.URL
	header http.Header
}

// place finds where a call goes. That of the last call is kept: the calls of a model differ in what they send.
func (a *API) place(path string, extra http.Header) (*place, error) {
	if p := a.last.Load(); p != nil && p.path == path && maps.EqualFunc(p.extra, extra, slices.Equal) {
		return p, nil
	}
	u, err := url.Parse(a.Base + path)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) { // its text has the whole URL, which may carry a password
			err = of.Err
		}
		return nil, errdefs.Validation.Errorf("%s: the base URL is none: %w", a.Provider, err)
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		shown := a.Base
		if strings.Contains(shown, "@") { // there may be a password
			shown = "…"
		}
		return nil, errdefs.Validation.Errorf("%s: base URL %q is none: write it as https://host/path", a.Provider, shown)
	}
	u.Host = strings.TrimSuffix(u.Host, ":")
	p := &place{path: path, extra: maps.Clone(extra), url: u, header: a.Header.Clone()}
	maps.Copy(p.header, extra)
	if u.User != nil && p.header.Get("Authorization") == "" {
		word, _ := u.User.Password()
		r := http.Request{Header: p.header}
		r.SetBasicAuth(u.User.Username(), word)
	}
	a.last.Store(p)
	return p, nil
}

// request makes a request whose header nobody may write to. A transport of ours reads a body once, and says when it has.
func (p *place) request(ctx context.Context, method string, content Content, ours bool) *http.Request {
	var body io.ReadCloser
	if ours && content.small != nil {
		ctx, body = content.small.first(ctx)
	}
	req := (&http.Request{Method: method, URL: p.url, Host: p.url.Host, Header: p.header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if content.Open == nil {
		req.Header = p.header.Clone()
		req.Header.Del("Content-Type")
		return req
	}
	req.ContentLength, req.GetBody = content.Len, content.Open
	if req.Body = body; body == nil {
		req.Body, _ = content.Open()
	}
	return req
}
