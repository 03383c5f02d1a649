package fence

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/internal/reach"
)

// ValidHost reports whether h can stand in [sandbox.Network].Hosts: a host, *.host, or an address; no scheme and no port.
func ValidHost(h string) bool {
	if _, err := netip.ParseAddr(strings.Trim(h, "[]")); err == nil {
		return true
	}
	name := strings.TrimPrefix(h, "*.")
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return false
		}
	}
	return len(name) <= 253
}

// A Dialer opens connections that a policy's Network allows. The zero Dialer opens none. Safe for concurrent use.
type Dialer struct {
	policy  sandbox.Policy
	lookUp  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	connect func(ctx context.Context, network, addr string) (net.Conn, error)
	own     func() ([]netip.Addr, error) // this machine's addresses
}

// Dial is the dialer for tools that run in this process, and the one that commands' proxy uses. It opens TCP connections.
//
// A host has to be in the list, or the Network All. It is looked up once, and the connection goes to an address that was found then and was checked: a name whose answer
// changes gets nowhere. Addresses of this machine (public ones too, as far as its interfaces have them), of private, shared (CGNAT), link-local and reserved networks and of clouds' metadata services are refused, with All
// too, unless the address itself is in Hosts, or "localhost" for this machine. Off refuses nothing.
//
// A refusal is an error with class errdefs.PolicyDenied; another failure has errdefs.NotAvailable.
func Dial(p sandbox.Policy) *Dialer {
	d := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &Dialer{policy: p, lookUp: net.DefaultResolver.LookupNetIP, connect: d.DialContext, own: reach.OwnAddresses}
}

// DialContext opens a connection; network is "tcp", "tcp4" or "tcp6".
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if d.connect == nil {
		return nil, errdefs.PolicyDenied.Errorf("sandbox: dial %s: the policy allows no network", addr)
	}
	if d.policy.Off {
		return d.connect(ctx, network, addr)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, errdefs.Validation.Errorf("sandbox: dial: %w", err)
	}
	ipVersion, ok := map[string]string{"tcp": "ip", "tcp4": "ip4", "tcp6": "ip6"}[network]
	if !ok {
		return nil, errdefs.PolicyDenied.Errorf("sandbox: dial %s: %s is not TCP", addr, network)
	}
	if !d.policy.Network.All && !(sandbox.Network{Hosts: d.policy.Network.Hosts}).Allows(host) {
		return nil, errdefs.PolicyDenied.Errorf("sandbox: dial %s: the host is not allowed: to allow it, add it to sandbox.network.hosts in the settings (Network.Hosts of the policy)", addr)
	}
	found, err := d.lookUp(ctx, ipVersion, host)
	if err != nil {
		return nil, errdefs.NotAvailable.Errorf("sandbox: dial %s: %w", addr, err)
	}
	var errs []error
	for _, ip := range found {
		ip = ip.Unmap()
		if why := d.refuses(host, ip); why != "" {
			errs = append(errs, errdefs.PolicyDenied.Errorf("sandbox: dial %s: %s is %s: to allow it, add the address to sandbox.network.hosts in the settings (Network.Hosts of the policy)", addr, ip, why))
			continue
		}
		conn, err := d.connect(ctx, network, net.JoinHostPort(ip.String(), port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, errdefs.NotAvailable.Errorf("sandbox: dial %s: %w", addr, err))
	}
	if len(errs) == 0 {
		return nil, errdefs.NotAvailable.Errorf("sandbox: dial %s: the host has no address", addr)
	}
	return nil, errors.Join(errs...)
}

// Refuses says of a host, without looking it up, why no connection goes there: an error with class errdefs.PolicyDenied for one that is not in the list, and for an address that is refused. A name that is allowed may still
// lead to such an address.
func (d *Dialer) Refuses(host string) error {
	switch {
	case d.policy.Off:
		return nil
	case d.policy.Network.None():
		return errdefs.PolicyDenied.Errorf("sandbox: dial %s: the policy allows no network", host)
	case !d.policy.Network.Allows(host):
		return errdefs.PolicyDenied.Errorf("sandbox: dial %s: the host is not allowed: to allow it, add it to sandbox.network.hosts in the settings (Network.Hosts of the policy)", host)
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil && localhost(host) {
		ip, err = netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	if err != nil {
		return nil //nolint:nilerr // it is a name
	}
	if why := d.refuses(host, ip.Unmap()); why != "" {
		return errdefs.PolicyDenied.Errorf("sandbox: dial %s: it is %s: to allow it, add the address to sandbox.network.hosts in the settings (Network.Hosts of the policy)", host, why)
	}
	return nil
}

// refuses says why not this address.
func (d *Dialer) refuses(host string, ip netip.Addr) string {
	why := reach.Guarded(ip)
	if why == "" {
		switch own, err := d.own(); {
		case err != nil:
			why = "perhaps this machine (its addresses can't be listed: " + err.Error() + ")"
		case slices.Contains(own, ip.WithZone("")):
			why = "this machine"
		}
	}
	named := sandbox.Network{Hosts: d.policy.Network.Hosts} // All doesn't name such addresses
	if why == "" || named.Allows(ip.String()) {
		return ""
	}
	if localhost(host) && ip.IsLoopback() && named.Allows(host) {
		return ""
	}
	return why
}

// Transport is an http.Transport whose connections the dialer opens: no proxy of the environment stands in between.
func (d *Dialer) Transport() *http.Transport {
	return &http.Transport{
		DialContext: d.DialContext, ForceAttemptHTTP2: true, MaxIdleConns: 100, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second,
	}
}

func localhost(host string) bool {
	return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}
