package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/secret"

	"github.com/pawl-dev/pawl/errdefs"
)

// Defaults of a Server.
const (
	DefaultTimeout = 2 * time.Minute  // of a call
	DefaultStartup = 30 * time.Second // until a server is ready
)

// Server is how a server is reached: by a Command or by a URL.
type Server struct {
	Name string `json:"-"` // 1 to 32 of a-z, A-Z, 0-9, _ and -; without "__", and without _ at its ends

	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"` // added to what the command gets
	Dir     string            `json:"cwd,omitempty"` // Options.Dir; a relative one is in there

	URL     string            `json:"url,omitempty"`     // http or https: streamable HTTP, or the older HTTP with SSE where a server refuses that
	SSE     bool              `json:"sse,omitempty"`     // only the older one
	Headers map[string]string `json:"headers,omitempty"` // sent to the URL's own host only
	OAuth   OAuth             `json:"oauth,omitzero"`    // of a server that wants a login

	Allow    []string      `json:"enabledTools,omitempty"`  // names of tools as the server has them, or beginnings such as "read_*"; empty: all
	Deny     []string      `json:"disabledTools,omitempty"` // likewise; it counts more
	Timeout  time.Duration `json:"timeout,omitempty"`       // of a call, without the time that a person takes to answer: DefaultTimeout
	Startup  time.Duration `json:"startup,omitempty"`       // until it is ready: DefaultStartup
	Required bool          `json:"required,omitempty"`      // Connect fails when it does not start
	Defer    Defer         `json:"defer,omitempty"`         // whether its tools are offered only once they were searched for: DeferAuto

	// Variables says that ${VAR} and ${VAR:-default} in Command, Args, Env, Dir, URL, Headers and OAuth are variables: see Server.Expand, which Connect calls.
	Variables bool   `json:"-"`
	Place     string `json:"-"` // where it is configured, for messages
}

// OAuth is the client that a server's authorization server knows us as. The zero value registers one by itself.
type OAuth struct {
	ClientID     string `json:"clientId,omitempty"`
	ClientSecret string `json:"clientSecret,omitempty"` // of a confidential client
	Grant        string `json:"grant,omitempty"`        // "": a person logs in; GrantClientCredentials: the client does, with its ClientSecret or its PrivateKey
	PrivateKey   string `json:"privateKey,omitempty"`   // PEM (PKCS #8, P-256 or RSA), for GrantClientCredentials: it signs, and no secret is sent
}

// Defer says when the tools of a server are deferred: a model is not shown them in every request, but finds them with the tool tool_search (see loop.SearchName).
type Defer string

// The kinds of Defer.
const (
	DeferAuto   Defer = "" // when what a model is shown of the server's tools takes more than DeferAbove
	DeferAlways Defer = "always"
	DeferNever  Defer = "never"
)

// DeferAbove is the size of a server's tools, in tokens (estimated), above which DeferAuto defers them.
const DeferAbove = 5000

// serverName makes the name of a tool, mcp__SERVER__TOOL, say which server's it is: what stands before the first two _ behind mcp__.
var serverName = regexp.MustCompile(`^[a-zA-Z0-9-](_?[a-zA-Z0-9-])*$`)

// Check says what of a server makes no sense (errdefs.Validation). What has variables in it is checked when they are known.
func (s Server) Check() error {
	bad := func(format string, args ...any) error {
		return errdefs.Validation.Errorf("mcp: server %q: "+format, append([]any{s.Name}, args...)...)
	}
	if !serverName.MatchString(s.Name) || len(s.Name) > 32 {
		return bad("the name: want 1 to 32 of a-z, A-Z, 0-9, _ and -, without _ at its ends and two _ in a row")
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
	case s.Defer != DeferAuto && s.Defer != DeferAlways && s.Defer != DeferNever:
		return bad("Defer is %q: want DeferAlways, DeferNever or DeferAuto", s.Defer)
	case s.OAuth.Grant != "" && s.OAuth.Grant != GrantClientCredentials:
		return bad("the grant %q: want %s, or none for a person's login", s.OAuth.Grant, GrantClientCredentials)
	case s.OAuth.Grant != "" && (s.OAuth.ClientID == "" || (s.OAuth.ClientSecret == "") == (s.OAuth.PrivateKey == "")):
		return bad("a client that logs in by itself needs a client ID, and a secret or a private key")
	case s.OAuth.Grant == "" && s.OAuth.PrivateKey != "":
		return bad("a private key is for the grant %s", GrantClientCredentials)
	case s.Timeout < 0 || s.Startup < 0:
		return bad("a time below 0: want a time such as 30s, or 0 for the default")
	}
	if s.URL != "" && (!s.Variables || !variable.MatchString(s.URL)) {
		u, err := url.Parse(s.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return bad("%q: want a URL that begins with http:// or https://, without spaces and control characters", secret.Address(s.URL))
		}
	}
	return nil
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

// Expand gives the server with its Variables in place, and without the mark: ${VAR} is a variable that has to be set, ${VAR:-default} one that need not be, nor have a value. The error
// (errdefs.Validation) names the server's Place, the field and the variable. What is replaced is not looked at again.
func (s Server) Expand(look func(string) (string, bool)) (Server, error) {
	if !s.Variables {
		return s, nil
	}
	var errs []error
	x := func(field, text string) string {
		return variable.ReplaceAllStringFunc(text, func(v string) string {
			m := variable.FindStringSubmatch(v)
			if value, ok := look(m[1]); ok && (value != "" || m[2] == "") {
				return value
			}
			if m[2] == "" {
				errs = append(errs, errdefs.Validation.Errorf("%s: %s is not set: set it, or write ${%s:-default}", field, v, m[1]))
			}
			return strings.TrimPrefix(m[2], ":-")
		})
	}
	all := func(field string, m map[string]string) map[string]string {
		out := make(map[string]string, len(m))
		for _, k := range sortedKeys(m) {
			out[k] = x(field+"."+k, m[k])
		}
		return out
	}
	s.Command, s.Dir, s.URL = x("command", s.Command), x("cwd", s.Dir), x("url", s.URL)
	s.OAuth.ClientID, s.OAuth.ClientSecret = x("oauth.clientId", s.OAuth.ClientID), x("oauth.clientSecret", s.OAuth.ClientSecret)
	s.OAuth.PrivateKey = x("oauth.privateKey", s.OAuth.PrivateKey)
	s.Args = slices.Clone(s.Args)
	for i, a := range s.Args {
		s.Args[i] = x(fmt.Sprintf("args[%d]", i), a)
	}
	if s.Env != nil {
		s.Env = all("env", s.Env)
	}
	if s.Headers != nil {
		s.Headers = all("headers", s.Headers)
	}
	if s.Variables = false; len(errs) > 0 {
		return s, errdefs.Validation.Errorf("%s%w", s.at(), errors.Join(errs...))
	}
	return s, s.Check()
}

// at is where the server is configured, as the beginning of a message.
func (s Server) at() string {
	if s.Place == "" {
		return ""
	}
	return s.Place + ": "
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
