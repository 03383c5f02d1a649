package fence

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/internal/reach"
)

// Resolve gives the policy with its paths absolute and without symbolic links. Whoever reads a policy from settings does it once, before any command has run: a
// command may put a symbolic link where it can write, and [Open] refuses those. A path that is not there is an error with class errdefs.NotFound.
func Resolve(p sandbox.Policy) (sandbox.Policy, error) {
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
func check(p sandbox.Policy) error {
	bad := func(format string, args ...any) error {
		return errdefs.Validation.Errorf("sandbox: policy: "+format, args...)
	}
	for field, paths := range map[string][]string{"Root": {p.Root}, "Write": p.Write, "Protect": p.Protect, "Hide": p.Hide, "Read": p.Read} {
		for _, path := range paths {
			if path == "" && field == "Root" {
				continue
			}
			if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0) {
				return bad("%s: %q is no absolute, clean path: call fence.Resolve first", field, path)
			}
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				return errdefs.NotFound.Errorf("sandbox: policy: %s: %w", field, err)
			}
			if real != path {
				return bad("%s: %s goes through a symbolic link to %s: name that, or call fence.Resolve first", field, path, real)
			}
		}
	}
	for _, path := range p.Protect {
		if !slices.ContainsFunc(writable(p), func(dir string) bool { return reach.Inside(dir, path) && dir != path }) {
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
func MayWrite(p sandbox.Policy, path string) bool {
	covers := func(dir string) bool { return reach.Inside(dir, path) }
	protects := func(text string) bool { return readPattern(text).covers(path) }
	return p.Off || slices.ContainsFunc(writable(p), covers) && !slices.ContainsFunc(p.Protect, covers) && !slices.ContainsFunc(p.ProtectPatterns, protects) && MayRead(p, path)
}

// MayRead reports whether the policy lets this file be read, in the same way. For many files, use [Readable].
func MayRead(p sandbox.Policy, path string) bool {
	return Readable(p)(path)
}

// writable is what the policy itself lets be written.
func writable(p sandbox.Policy) []string {
	if p.Root == "" {
		return p.Write
	}
	return append([]string{p.Root}, p.Write...)
}
