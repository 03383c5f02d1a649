package cloud

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// exchange asks an OAuth server for a token. What is asked with is a secret: it goes by TLS, or stays on this machine, and to no other server that is answered with.
func (t *transport) exchange(ctx context.Context, uri string, form url.Values) (Token, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !local(u.Hostname())) {
		return Token{}, t.fail(errdefs.Validation, "token_url", "the address that tokens come from is none: want one that begins with https://")
	}
	for _, name := range []string{"assertion", "client_secret", "refresh_token"} {
		t.secrets.add(form.Get(name))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, uri, strings.NewReader(form.Encode()))
	if err != nil {
		return Token{}, t.fail(errdefs.Validation, "token_url", "the address that tokens come from is none: want one that begins with https://")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "pawl")
	unreached := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		e := t.fail(errdefs.NotAvailable, "token_connection", u.Host+" gave no token")
		e.Err = err
		return e
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return Token{}, unreached(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return Token{}, unreached(err)
	}
	if resp.StatusCode != http.StatusOK {
		return Token{}, t.unanswered(u.Host, resp.StatusCode, text)
	}
	return t.granted(text)
}

// local reports whether a host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// unanswered makes the error of a server that gave no token.
func (t *transport) unanswered(host string, status int, text []byte) *model.Error {
	e := t.fail(model.ClassOfStatus(status), cmp.Or(wire.String(wire.Get(text, "error")), "token_refused"), "")
	if status == http.StatusBadRequest { // invalid_grant, invalid_client: the credentials, not the request
		e.Kind = errdefs.Unauthorized
	}
	e.Code = t.secrets.redact(e.Code)
	e.Message = host + " gave no token (HTTP " + strconv.Itoa(status) + ")"
	if said := t.secrets.redact(wire.String(wire.Get(text, "error_description"))); said != "" {
		e.Message += ": " + said
	}
	if e.Code == "invalid_grant" && t.vendor == "vertex" {
		e.Message += ". A login that has ended is renewed by: gcloud auth application-default login"
	}
	return e
}

// granted reads a token.
func (t *transport) granted(text []byte) (Token, error) {
	token := Token{Value: wire.String(wire.Get(text, "access_token"))}
	if token.Value == "" || strings.ContainsAny(token.Value, "\r\n") {
		return token, t.fail(errdefs.NotAvailable, "no_token", "the answer of the server that gives tokens has none")
	}
	seconds := wire.Get(text, "expires_in")
	n := wire.Int(seconds)
	if said := wire.String(seconds); said != "" { // some servers quote it
		n, _ = strconv.ParseInt(said, 10, 64)
	}
	if n > 0 {
		token.Expires = time.Now().Add(time.Duration(min(n, 1<<31)) * time.Second)
	}
	t.secrets.add(token.Value)
	return token, nil
}
