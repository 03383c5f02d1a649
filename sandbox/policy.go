package sandbox

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// Within narrows p to what outer allows too; nothing gets wider by it. It compares names only: paths have to be resolved ([Policy.Resolve]).
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
			p.Write, p.Root = union(p.Write, root), ""
		}
	}
	p.Protect = union(p.Protect, outer.Protect)
	p.Hide = union(p.Hide, outer.Hide)
	p.HidePatterns = union(p.HidePatterns, outer.HidePatterns)
	p.ProtectPatterns = union(p.ProtectPatterns, outer.ProtectPatterns)
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
	l, outer = l.orDefault(), outer.orDefault()
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
	own, err := ownAddresses()
	return guarded(a) != "" || err != nil || slices.Contains(own, a.Unmap().WithZone(""))
}

// common is what both lists of directories have: of two that lie in each other the inner one.
func common(a, b []string) []string {
	var out []string
	for _, x := range a {
		for _, y := range b {
			switch {
			case inside(y, x):
				out = append(out, x)
			case inside(x, y):
				out = append(out, y)
			}
		}
	}
	return union(out, nil)
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	if out = slices.Compact(out); len(out) == 0 {
		return nil
	}
	return out
}

// inside reports whether path is dir or lies in it. Both are absolute and clean.
func inside(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]) || dir != "" && os.IsPathSeparator(dir[len(dir)-1]))
}

// Resolve gives the policy with its paths absolute and without symbolic links. Whoever reads a policy from settings does it once, before any command has run: a
// command may put a symbolic link where it can write, and [Open] refuses those. A path that is not there is an error with class errdefs.NotFound.
func (p Policy) Resolve() (Policy, error) {
	if p.Off {
		return p, nil
	}
	var err error
	resolve := func(path string) string {
		abs, e := filepath.Abs(path)
		if e == nil {
			abs, e = filepath.EvalSymlinks(abs)
		}
		if e != nil && err == nil {
			err = errdefs.NotFound.Errorf("sandbox: resolve %s: %w", path, e)
		}
		return abs
	}
	if p.Root != "" {
		p.Root = resolve(p.Root)
	}
	for _, list := range []*[]string{&p.Write, &p.Protect, &p.Hide, &p.Read} {
		*list = slices.Clone(*list)
		for i, path := range *list {
			(*list)[i] = resolve(path)
		}
	}
	for _, list := range []*[]string{&p.HidePatterns, &p.ProtectPatterns} {
		*list = slices.Clone(*list)
		for i, text := range *list {
			if validPattern(text) == "" { // else Open says what is wrong
				pat := readPattern(text)
				dir := filepath.Join(Resolved(filepath.Dir(pat.dir)), filepath.Base(pat.dir)) // a link that is hidden itself may be another one later
				if pat.rest != "" {
					dir = Resolved(pat.dir)
				}
				(*list)[i] = HidePattern(dir, pat.rest)
			}
		}
	}
	return p, err
}

// check says what is wrong with the policy.
func (p Policy) check() error {
	bad := func(format string, args ...any) error {
		return errdefs.Validation.Errorf("sandbox: policy: "+format, args...)
	}
	for field, paths := range map[string][]string{"Root": {p.Root}, "Write": p.Write, "Protect": p.Protect, "Hide": p.Hide, "Read": p.Read} {
		for _, path := range paths {
			if path == "" && field == "Root" {
				continue
			}
			if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0) {
				return bad("%s: %q is no absolute, clean path: call Policy.Resolve first", field, path)
			}
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				return errdefs.NotFound.Errorf("sandbox: policy: %s: %w", field, err)
			}
			if real != path {
				return bad("%s: %s goes through a symbolic link to %s: name that, or call Policy.Resolve first", field, path, real)
			}
		}
	}
	for _, path := range p.Protect {
		if !slices.ContainsFunc(p.writable(), func(dir string) bool { return inside(dir, path) && dir != path }) {
			return bad("Protect: %s is in no directory that may be written, so it needs no protection: leave it out", path)
		}
	}
	for field, patterns := range map[string][]string{"HidePatterns": p.HidePatterns, "ProtectPatterns": p.ProtectPatterns} {
		for _, text := range patterns {
			if why := validPattern(text); why != "" {
				return bad("%s: %q %s", field, text, why)
			}
		}
	}
	for _, h := range p.Network.Hosts {
		if !ValidHost(h) {
			return bad("Network.Hosts: %q is neither a host, nor *.host, nor an address (no scheme, no port)", h)
		}
	}
	for _, v := range p.Env {
		if name, _, _ := strings.Cut(v, "="); name == "" || strings.ContainsRune(v, 0) || loaded(name) {
			return bad("Env: %q can't be given: it has no name, or has code loaded before the fence stands", v)
		}
	}
	if p.Limits.CPU < 0 {
		return bad("Limits.CPU: %v is less than 0", p.Limits.CPU)
	}
	return nil
}

// MayWrite reports whether the policy lets this file be written: for tools that run in this process. path is absolute and resolved.
func (p Policy) MayWrite(path string) bool {
	covers := func(dir string) bool { return inside(dir, path) }
	protects := func(text string) bool { return readPattern(text).covers(path) }
	return p.Off || slices.ContainsFunc(p.writable(), covers) && !slices.ContainsFunc(p.Protect, covers) && !slices.ContainsFunc(p.ProtectPatterns, protects) && p.MayRead(path)
}

// MayRead reports whether the policy lets this file be read, in the same way. For many files, use [Policy.Readable].
func (p Policy) MayRead(path string) bool {
	return p.Readable()(path)
}

// writable is what the policy itself lets be written.
func (p Policy) writable() []string {
	if p.Root == "" {
		return p.Write
	}
	return append([]string{p.Root}, p.Write...)
}
