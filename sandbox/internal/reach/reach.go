// Package reach says what directories and addresses are to each other: for policies of the sandbox, and for what enforces them.
package reach

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Union is both lists, sorted, each once; nil when there is nothing.
func Union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	if out = slices.Compact(out); len(out) == 0 {
		return nil
	}
	return out
}

// Inside reports whether path is dir or lies in it. Both are absolute and clean.
func Inside(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]) || dir != "" && os.IsPathSeparator(dir[len(dir)-1]))
}

// special are the ranges that are nobody's on the public network, besides those that netip knows.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("168.63.129.16/32"), // a cloud's metadata, at a public address
	netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("fec0::/10"),
}

// embedded are ranges whose addresses stand for an IPv4 address, with the byte at which that begins.
var embedded = map[netip.Prefix]int{
	netip.MustParsePrefix("64:ff9b::/96"): 12, netip.MustParsePrefix("64:ff9b:1::/48"): 12, netip.MustParsePrefix("2002::/16"): 2, netip.MustParsePrefix("::/96"): 12,
}

// Guarded says why an address is not for everybody; "" when it is.
func Guarded(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	switch {
	case a.IsLoopback():
		return "this machine"
	case a.IsUnspecified():
		return "no address, which is this machine"
	case a.IsPrivate():
		return "a private network"
	case a.IsLinkLocalUnicast():
		return "the link's, or a cloud's metadata"
	case a.IsMulticast():
		return "multicast"
	}
	for _, p := range special {
		if p.Contains(a) {
			return "a reserved range"
		}
	}
	b := a.As16()
	for p, at := range embedded {
		if p.Contains(a) {
			return Guarded(netip.AddrFrom4([4]byte(b[at : at+4])))
		}
	}
	return ""
}

// OwnAddresses are those of this machine's interfaces, the public ones too.
func OwnAddresses() ([]netip.Addr, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, ip.Unmap())
			}
		}
	}
	return out, nil
}
