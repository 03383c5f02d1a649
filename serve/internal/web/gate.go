package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// Gate says who may come in. The zero Gate lets in who asks by an address or as localhost, from no other site's page.
type Gate struct {
	// Tokens open everything, each of them, as "Authorization: Bearer TOKEN". None: nobody is asked for one.
	Tokens []string
	// Origins are sites whose pages may call, such as "https://chat.example"; the server's own may always.
	Origins []string
	// Hosts are names that the server is asked by, without a port. Where there are tokens, any will do. Else those that are not here are refused unless they are addresses, or localhost: a page whose name somebody lets lead here is not to be taken for a local one.
	Hosts []string
	// Open reports what needs no token: pages without content of anybody's.
	Open func(*http.Request) bool
}

// Check refuses a Gate that can't be meant.
func (g Gate) Check() error {
	for _, t := range g.Tokens {
		if len(t) < 16 || strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return errdefs.Validation.Errorf("serve: a token needs 16 characters or more, without blanks, that can stand in a header")
		}
	}
	for _, o := range g.Origins {
		if u, err := url.Parse(o); err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || o != u.Scheme+"://"+u.Host {
			return errdefs.Validation.Errorf("serve: origin %q: want SCHEME://HOST[:PORT], such as https://chat.example", o)
		}
	}
	return nil
}

// Wrap puts the gate before a handler. fail writes an error in the words of the door that was asked for.
func (g Gate) Wrap(h http.Handler, fail func(http.ResponseWriter, *http.Request, error)) http.Handler {
	sums := make([][sha256.Size]byte, len(g.Tokens))
	for i, t := range g.Tokens {
		sums[i] = sha256.Sum256([]byte(t))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(sums) == 0 && !g.named(r.Host) {
			fail(w, r, errdefs.PolicyDenied.Errorf("serve: the host %q is not a name of this server: ask by its address or by localhost, or give the name to the server as one of its hosts", r.Host))
			return
		}
		foreign, err := g.origin(r)
		if err != nil {
			fail(w, r, err)
			return
		}
		if foreign != "" {
			w.Header().Set("Access-Control-Allow-Origin", foreign)
			w.Header().Add("Vary", "Origin")
			w.Header().Set("Access-Control-Expose-Headers", "Location, Retry-After, WWW-Authenticate, X-Pawl-Session, Mcp-Session-Id, Mcp-Protocol-Version")
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				w.Header().Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
				w.Header().Set("Access-Control-Allow-Headers", "*, Authorization")
				w.Header().Set("Access-Control-Max-Age", "600")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		if len(sums) > 0 && (g.Open == nil || !g.Open(r)) && !admitted(r, sums) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="pawl"`)
			fail(w, r, errdefs.Unauthorized.Errorf("serve: a token is needed: send Authorization: Bearer TOKEN"))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// admitted compares tokens by their sums: neither what is in them nor how long they are can be told by the time that takes.
func admitted(r *http.Request, sums [][sha256.Size]byte) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	sum, ok := sha256.Sum256([]byte(strings.TrimSpace(token))), 0
	for i := range sums {
		ok |= subtle.ConstantTimeCompare(sum[:], sums[i][:])
	}
	return ok == 1
}

// named reports whether a Host header names this server.
func (g Gate) named(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return slices.ContainsFunc(g.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// origin is the site whose page asks, "" when it is none, or the server's own.
func (g Gate) origin(r *http.Request) (foreign string, err error) {
	all := r.Header.Values("Origin")
	if len(all) == 0 {
		return "", nil
	}
	o := all[0]
	if u, err := url.Parse(o); len(all) == 1 && err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) && (u.Scheme == "http" || u.Scheme == "https") {
		return "", nil
	}
	if len(all) == 1 && slices.Contains(g.Origins, o) {
		return o, nil
	}
	return "", errdefs.PolicyDenied.Errorf("serve: pages of %q may not call this server: allow it as an origin if they are to", strings.Join(all, ", "))
}

// Loopback reports whether nobody but this machine can reach an address that is listened on.
func Loopback(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}
