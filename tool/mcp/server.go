package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// Defaults of a Server.
const (
	DefaultTimeout = 2 * time.Minute  // of a call
	DefaultStartup = 30 * time.Second // until a server is ready
)

// Server is how a server is reached: by a Command or by a URL.
type Server struct {
	Name string // 1 to 32 of a-z, A-Z, 0-9, _ and -, without "__"

	Command string
	Args    []string
	Env     map[string]string // added to what the command gets
	Dir     string            // Options.Dir

	URL     string            // http or https: streamable HTTP, or the older HTTP with SSE where a server refuses that
	SSE     bool              // only the older one
	Headers map[string]string // sent to the URL's own host only
	OAuth   OAuth             // of a server that wants a login

	Allow, Deny []string      // names of tools as the server has them, or beginnings such as "read_*"; Deny counts more, and an empty Allow admits all
	Timeout     time.Duration // of a call, without the time that a person takes to answer: DefaultTimeout
	Startup     time.Duration // until it is ready: DefaultStartup
	Required    bool          // Connect fails when it does not start
}

// OAuth is the client that a server's authorization server knows us as. The zero value registers one by itself.
type OAuth struct {
	ClientID     string
	ClientSecret string // of a confidential client
}

var serverName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,32}$`)

func (s Server) check() error {
	bad := func(format string, args ...any) error {
		return errdefs.Validation.Errorf("mcp: server %q: "+format, append([]any{s.Name}, args...)...)
	}
	if !serverName.MatchString(s.Name) || strings.Contains(s.Name, "__") {
		return bad("the name: want 1 to 32 of a-z, A-Z, 0-9, _ and -, without two _ in a row")
	}
	switch {
	case s.Command == "" && s.URL == "":
		return bad("it has neither a command nor a URL: set one of them")
	case s.Command != "" && s.URL != "":
		return bad("it has a command and a URL: leave out one of them")
	case s.Command == "" && (len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != ""):
		return bad("arguments, environment and directory are for a command")
	case s.URL == "" && (len(s.Headers) > 0 || s.SSE || s.OAuth != OAuth{}):
		return bad("headers, SSE and OAuth are for a URL")
	case s.Timeout < 0 || s.Startup < 0:
		return bad("a time below 0: want a time such as 30s, or 0 for the default")
	}
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return bad("%q: want a URL that begins with http:// or https://", s.URL)
		}
	}
	return nil
}

func (s Server) timeout() time.Duration { return cmp.Or(s.Timeout, DefaultTimeout) }
func (s Server) startup() time.Duration { return cmp.Or(s.Startup, DefaultStartup) }

// admits reports whether the lists let a tool in.
func (s Server) admits(name string) bool {
	in := func(list []string) bool {
		for _, p := range list {
			if matches(p, name) {
				return true
			}
		}
		return false
	}
	return !in(s.Deny) && (len(s.Allow) == 0 || in(s.Allow))
}

// matches compares a name with one of a list.
func matches(pattern, name string) bool {
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, begin)
	}
	return pattern == name
}

// longestName is what providers take.
const longestName = 64

var strange = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// names gives the tools of one server names that providers take, each its own in any case. The same tools have the same names, in whatever order they come.
func names(server string, tools []string) map[string]string {
	full := func(tool string) string { return "mcp__" + server + "__" + tool }
	plain := func(tool string) string { return full(strange.ReplaceAllString(tool, "_")) }
	count := map[string]int{}
	for _, t := range tools {
		count[strings.ToLower(plain(t))]++
	}
	out := make(map[string]string, len(tools))
	for _, t := range tools {
		name := plain(t)
		if exact := name == full(t); len(name) > longestName || count[strings.ToLower(name)] > 1 && (!exact || t != strings.ToLower(t)) {
			sum := sha256.Sum256([]byte(t))
			end := "_" + hex.EncodeToString(sum[:4])
			name = name[:min(len(name), longestName-len(end))] + end
		}
		out[t] = name
	}
	return out
}
