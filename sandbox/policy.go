package sandbox

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/sandbox/internal/reach"
)

// Within narrows p to what outer allows too; nothing gets wider by it. It compares names only: paths have to be resolved (fence.Resolve).
func (p Policy) Within(outer Policy) Policy {
	if outer.Off {
		return p
	}
	if p.Off {
		return outer
	}
	writable := slices.Clone(outer.Write)
	if outer.Root != "" {
		writable = append(writable, outer.Root)
	}
	p.Write = common(p.Write, writable)
	if p.Root != "" {
		switch root := common([]string{p.Root}, writable); {
		case slices.Contains(root, p.Root), len(root) == 1:
			p.Root = root[0]
		default: // several directories of it, or none
			p.Write, p.Root = reach.Union(p.Write, root), ""
		}
	}
	p.Protect = reach.Union(p.Protect, outer.Protect)
	p.Hide = reach.Union(p.Hide, outer.Hide)
	p.HidePatterns = reach.Union(p.HidePatterns, outer.HidePatterns)
	p.ProtectPatterns = reach.Union(p.ProtectPatterns, outer.ProtectPatterns)
	p.Read = common(p.Read, outer.Read)
	p.Network = p.Network.within(outer.Network)
	p.Env = slices.DeleteFunc(slices.Clone(p.Env), func(v string) bool { // a value that the policy itself has tells nothing new
		return !strings.Contains(v, "=") && !slices.Contains(outer.Env, v)
	})
	p.Limits = p.Limits.within(outer.Limits)
	if p.Cache = ""; p.Root == outer.Root { // who may write less doesn't write what the others build from
		p.Cache = outer.Cache
	}
	return p
}

func (l Limits) within(outer Limits) Limits {
	least := func(a, b uint64) uint64 {
		if a == 0 || b != 0 && b < a {
			return b
		}
		return a
	}
	l, outer = l.OrDefault(), outer.OrDefault()
	return Limits{min(l.CPU, outer.CPU), min(l.Files, outer.Files), min(l.FileSize, outer.FileSize), least(l.Processes, outer.Processes)}
}

func (n Network) within(outer Network) Network {
	out := Network{All: n.All && outer.All}
	both := func(one, other Network) {
		for _, h := range one.Hosts {
			if other.All && !private(h) || matches(other.Hosts, h) { // All doesn't name private addresses
				out.Hosts = append(out.Hosts, h)
			}
		}
	}
	both(n, outer)
	both(outer, n)
	slices.Sort(out.Hosts)
	out.Hosts = slices.Compact(out.Hosts)
	if len(out.Hosts) == 0 {
		out.Hosts = nil
	}
	return out
}

// private reports whether a host of a list is an address that only being named makes reachable.
func private(host string) bool {
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return canonical(host) == "localhost"
	}
	own, err := reach.OwnAddresses()
	return reach.Guarded(a) != "" || err != nil || slices.Contains(own, a.Unmap().WithZone(""))
}

// common is what both lists of directories have: of two that lie in each other the inner one.
func common(a, b []string) []string {
	var out []string
	for _, x := range a {
		for _, y := range b {
			switch {
			case reach.Inside(y, x):
				out = append(out, x)
			case reach.Inside(x, y):
				out = append(out, y)
			}
		}
	}
	return reach.Union(out, nil)
}

// Allows reports whether connections to a host are allowed: it is in the list, or all are.
func (n Network) Allows(host string) bool { return n.All || matches(n.Hosts, host) }

// canonical is a host's name as names are compared: lower case, without the dot at the end.
func canonical(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// matches reports whether a list of hosts covers a host, or a pattern.
func matches(list []string, host string) bool {
	host = canonical(host)
	addr, addrErr := netip.ParseAddr(strings.Trim(host, "[]"))
	return slices.ContainsFunc(list, func(pattern string) bool {
		pattern = canonical(pattern)
		if a, err := netip.ParseAddr(strings.Trim(pattern, "[]")); err == nil || addrErr == nil {
			return err == nil && addrErr == nil && a.Unmap() == addr.Unmap()
		}
		if parent, ok := strings.CutPrefix(pattern, "*."); ok {
			return strings.HasSuffix(strings.TrimPrefix(host, "*"), "."+parent) // *.b covers *.b and *.a.b
		}
		return pattern == host
	})
}
