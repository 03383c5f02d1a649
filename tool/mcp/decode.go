package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/shell"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/near"
)

// settings is a server as it stands in a file. Allow and Deny have the names of other programs too.
type settings struct {
	Type          string            `json:"type"`
	Command       string            `json:"command"`
	Args          []string          `json:"args"`
	Env           map[string]string `json:"env"`
	Dir           string            `json:"cwd"`
	URL           string            `json:"url"`
	Headers       map[string]string `json:"headers"`
	OAuth         oauthSettings     `json:"oauth"`
	Allow         []string          `json:"allow"`
	Deny          []string          `json:"deny"`
	EnabledTools  []string          `json:"enabledTools"`
	DisabledTools []string          `json:"disabledTools"`
	Timeout       duration          `json:"timeout"`
	Startup       duration          `json:"startup"`
	Required      bool              `json:"required"`
}

type oauthSettings struct {
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
}

var keys = []string{
	"type", "command", "args", "env", "cwd", "url", "headers", "oauth", "allow", "deny", "enabledTools", "disabledTools", "timeout", "startup", "required",
}

// duration is a number of milliseconds, or a text with a unit.
type duration time.Duration

func (d *duration) UnmarshalJSON(b []byte) error {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case float64:
		*d = duration(v * float64(time.Millisecond))
		return nil
	case string:
		t, err := time.ParseDuration(v)
		*d = duration(t)
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s is no time: want milliseconds, or a text with a unit such as \"30s\"", b)
}

// DecodeServers reads an object of servers by name, as it stands behind "mcpServers" in settings and in .mcp.json, in the order of the text:
//
//	{"files": {"command": "mcp-server-filesystem", "args": ["."]}, "wiki": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${WIKI_TOKEN}"}}}
//
// Of a server: type (stdio, http or sse; it follows from command or url), command, args, env, cwd, url, headers, oauth (clientId, clientSecret), allow and deny (or enabledTools and
// disabledTools), timeout and startup (milliseconds, or "30s"), required. In texts, ${VAR} is a variable of the environment, which must be set, and ${VAR:-default} one that need not be.
//
// Members that are not known are problems, and change nothing. What can't be understood, or makes no sense, is an error (errdefs.Validation) with all that is wrong. Both begin with the
// place, which names the file.
func DecodeServers(data []byte, place string) (servers []Server, problems []string, err error) {
	raw, order, err := members(data)
	if err != nil {
		return nil, nil, errdefs.Validation.Errorf("%s: mcpServers: %w: want an object of servers by name", place, err)
	}
	var errs []error
	for _, name := range order {
		at := place + ": mcpServers." + name
		s, odd, err := decodeServer(name, raw[name])
		for _, p := range odd {
			problems = append(problems, at+p)
		}
		if err == nil {
			err = s.check()
		}
		if err != nil {
			errs = append(errs, errdefs.Validation.Errorf("%s: %w", at, err))
			continue
		}
		servers = append(servers, s)
	}
	if len(errs) > 0 {
		return nil, problems, errdefs.Validation.Errorf("%w", errors.Join(errs...))
	}
	return servers, problems, nil
}

func decodeServer(name string, raw json.RawMessage) (s Server, problems []string, err error) {
	all, order, err := members(raw)
	if err != nil {
		return s, nil, err
	}
	for _, k := range order {
		if slices.Contains(keys, k) {
			continue
		}
		p := "." + k + ": it is not known, and has no effect"
		if meant := near.Names(k, keys); len(meant) > 0 {
			p += "; did you mean " + meant[0] + "?"
		}
		problems = append(problems, p)
		delete(all, k)
	}
	var in settings
	known, err := json.Marshal(all)
	if err != nil {
		return s, problems, err
	}
	if err := json.Unmarshal(known, &in); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			err = fmt.Errorf("%s: want %s, not a %s", wrong.Field, wrong.Type, wrong.Value)
		}
		return s, problems, err
	}
	var unset error
	x := func(text string) string {
		out, err := expand(text, os.LookupEnv)
		unset = errors.Join(unset, err)
		return out
	}
	s = Server{
		Name: name, Command: x(in.Command), Dir: x(in.Dir), URL: x(in.URL), Env: in.Env, Headers: in.Headers, OAuth: OAuth{x(in.OAuth.ClientID), x(in.OAuth.ClientSecret)},
		Allow: slices.Concat(in.Allow, in.EnabledTools), Deny: slices.Concat(in.Deny, in.DisabledTools),
		Timeout: time.Duration(in.Timeout), Startup: time.Duration(in.Startup), Required: in.Required,
	}
	for _, a := range in.Args {
		s.Args = append(s.Args, x(a))
	}
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			m[k] = x(m[k])
		}
	}
	if unset != nil {
		return s, problems, unset
	}
	switch in.Type {
	case "":
	case "stdio":
		if s.Command == "" {
			return s, problems, errors.New("type: stdio needs a command")
		}
	case "sse", "http", "streamable-http":
		if s.SSE = in.Type == "sse"; s.URL == "" {
			return s, problems, fmt.Errorf("type: %s needs a url", in.Type)
		}
	default:
		return s, problems, fmt.Errorf("type: %q: want stdio, http or sse", in.Type)
	}
	return s, problems, nil
}

// members reads an object: its members, and their names in the order of the text.
func members(data []byte) (all map[string]json.RawMessage, order []string, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil {
		return nil, nil, fmt.Errorf("not JSON: %w", err)
	} else if t != json.Delim('{') {
		return nil, nil, errors.New("it is not an object")
	}
	all = map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, nil, fmt.Errorf("not JSON: %w", err)
		}
		name, _ := t.(string)
		if _, twice := all[name]; twice {
			return nil, nil, fmt.Errorf("%q stands there twice: leave one out", name)
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, nil, fmt.Errorf("not JSON: %w", err)
		}
		all[name], order = v, append(order, name)
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("not JSON: something stands behind it")
	}
	return all, order, nil
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

// expand replaces variables.
func expand(text string, look func(string) (string, bool)) (string, error) {
	var errs []error
	out := variable.ReplaceAllStringFunc(text, func(v string) string {
		m := variable.FindStringSubmatch(v)
		if value, ok := look(m[1]); ok && (value != "" || m[2] == "") {
			return value
		}
		if m[2] == "" {
			errs = append(errs, fmt.Errorf("%s: the variable is not set: set it, or write ${%s:-default}", v, m[1]))
		}
		return strings.TrimPrefix(m[2], ":-")
	})
	return out, errors.Join(errs...)
}

// ParseServer reads a server as it stands behind the flag --mcp: NAME=URL, or NAME=COMMAND with arguments, quoted as for a shell.
func ParseServer(text string) (Server, error) {
	name, rest, ok := strings.Cut(text, "=")
	s := Server{Name: name}
	switch rest = strings.TrimSpace(rest); {
	case !ok || rest == "":
		return s, errdefs.Validation.Errorf("mcp: %q: want NAME=COMMAND or NAME=URL", text)
	case strings.HasPrefix(rest, "http://"), strings.HasPrefix(rest, "https://"):
		s.URL = rest
	default:
		words, err := shell.Fields(rest, nil)
		if err != nil || len(words) == 0 {
			return s, errdefs.Validation.Errorf("mcp: %q: the command can't be read: %w", text, err)
		}
		s.Command, s.Args = words[0], words[1:]
	}
	return s, s.check()
}
