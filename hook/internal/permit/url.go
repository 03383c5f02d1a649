package permit

import (
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/pawl-dev/pawl/errdefs"
)

// address is the specifier of a WebFetch rule: a host ("domain:example.com", "domain:*.example.com"), or a URL whose path may end in *.
type address struct {
	host   string
	sub    bool   // the hosts below host, not itself
	any    bool   // every host
	scheme string // "" for a host alone
	port   string
	path   string // "" for all
}

// target is a URL of a call.
type target struct {
	text string
	u    *url.URL // nil when it can't be read
	host string
}

func parseAddress(spec string) (*address, error) {
	a := &address{}
	host, isDomain := strings.CutPrefix(spec, "domain:")
	if !isDomain {
		u, err := url.Parse(spec)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, errdefs.Validation.Errorf("%q is no address: write domain:example.com, domain:*.example.com or https://example.com/path/*, without a name, query or fragment", spec)
		}
		host, a.scheme, a.port, a.path = u.Hostname(), u.Scheme, portOf(u), u.Path
		if a.path == "/*" || a.path == "/**" {
			a.path = ""
		}
	}
	if strings.Contains(strings.TrimPrefix(a.path, "/"), "*") && strings.Index(a.path, "*") != len(a.path)-1 {
		return nil, errdefs.Validation.Errorf("%q: only the end of a path can be *", spec)
	}
	host = hostOf(host)
	if host == "*" {
		a.any = true
		return a, nil
	}
	host, a.sub = strings.CutPrefix(host, "*.")
	if host == "" || strings.ContainsAny(host, "*/@?#\\ ") || strings.Contains(host, ":") && !isIP(host) {
		return nil, errdefs.Validation.Errorf("%q is no host: write domain:example.com, or domain:*.example.com for the hosts below it, without scheme, port and path", host)
	}
	a.host = host
	return a, nil
}

func isIP(host string) bool { _, err := netip.ParseAddr(host); return err == nil }

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// hostOf is a host by its one name: in lower case, in plain characters, without a last dot, an address in its usual form.
func hostOf(host string) string {
	host = strings.Map(func(r rune) rune {
		if r == '。' || r == '．' || r == '｡' {
			return '.'
		}
		return r
	}, host)
	host = strings.TrimSuffix(strings.ToLower(norm.NFKC.String(host)), ".")
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	if ip, ok := oldIP(host); ok {
		return ip.String()
	}
	return host
}

// oldIP reads an IPv4 address as C libraries do: 1 to 4 numbers, decimal, octal or hexadecimal, the last of which fills the rest.
func oldIP(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var all uint64
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 0, 32)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if err != nil || strings.ContainsAny(p, "_o") || strings.HasPrefix(p, "0b") || n >= 1<<bits {
			return netip.Addr{}, false
		}
		all = all<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)}), true
}

func readURL(text string) target {
	t := target{text: text}
	u, err := url.Parse(strings.TrimSpace(text))
	if err == nil && u.Host != "" {
		t.u, t.host = u, hostOf(u.Hostname())
	}
	return t
}

func (a *address) isHost(host string) bool {
	if a.sub {
		return strings.HasSuffix(host, "."+a.host)
	}
	return a.any || host == a.host
}

// binds: a URL that can't be read may be any.
func (a *address) binds(t target) Match {
	switch {
	case t.u == nil:
		return May
	case !a.isHost(t.host):
		return No
	case a.scheme == "":
		return Yes
	case a.port != portOf(t.u) || !a.below(t.u):
		return No
	}
	return Yes
}

// permits takes only what is plain: a host in ASCII, http or https at its own port unless the rule says another, nobody's name in front.
func (a *address) permits(t target) bool {
	if t.u == nil || t.u.User != nil || t.u.Scheme != "http" && t.u.Scheme != "https" || !a.isHost(t.host) ||
		!strings.EqualFold(strings.TrimSuffix(t.u.Hostname(), "."), t.host) || strings.ContainsAny(t.text, "\\\t\r\n") {
		return false
	}
	if a.scheme == "" {
		return slices.Contains([]string{"", "80", "443"}, t.u.Port()) && (t.u.Port() == "" || t.u.Port() == portOf(&url.URL{Scheme: t.u.Scheme}))
	}
	return t.u.Scheme == a.scheme && portOf(t.u) == a.port && a.below(t.u)
}

// below compares the path, cleaned as a server may do it.
func (a *address) below(u *url.URL) bool {
	clean := path.Clean("/" + strings.TrimPrefix(u.Path, "/"))
	front, open := strings.CutSuffix(a.path, "*")
	if a.path == "" {
		return true
	}
	if open {
		return strings.HasPrefix(clean, front) || clean+"/" == front
	}
	return clean == path.Clean("/"+a.path)
}

func (r *Rule) bindsURLs(c *Call) (m Match) {
	if r.bare {
		if c.tool == bash && slices.ContainsFunc(c.commands, func(name string) bool { return slices.Contains(fetchers, name) }) {
			return Yes
		}
		return No
	}
	for _, t := range c.urls {
		m = max(m, r.url.binds(t))
	}
	return m
}
