package project

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/secret"

	"github.com/pawl-dev/pawl/tool/mcp"
)

// ofServer are the members of an MCP server, ofOAuth those of its login.
var (
	ofServer = []string{"type", "command", "args", "env", "cwd", "url", "headers", "oauth", "enabledTools", "disabledTools", "timeout", "startup", "required", "defer"}
	ofOAuth  = []string{"clientId", "clientSecret", "grant", "privateKey"}
)

// servers reads MCP servers by name. A later server takes the place of an earlier one of its name.
func (d *decoder) servers(n node) {
	if n.kind != '{' {
		d.wrong(n, n.name, "an object of servers by name")
		return
	}
	for _, c := range n.children {
		d.server(c)
	}
}

func (d *decoder) server(n node) {
	key := "mcp.servers." + n.name
	if n.kind != '{' {
		d.wrong(n, key, "an object in braces")
		return
	}
	before := len(d.errs)
	s, kind := mcp.Server{Name: n.name, Place: d.place(n.keyAt).String(), Variables: true}, ""
	for _, c := range n.children {
		if c.kind != 'n' || !slices.Contains(ofServer, c.name) {
			d.serverField(&s, &kind, c, join(key, c.name))
		}
	}
	if len(d.errs) > before {
		return
	}
	s.SSE = kind == "sse"
	reason := ""
	switch kind {
	case "":
	case "stdio":
		if s.Command == "" {
			reason = "it has no command"
		}
	case "http", "streamable-http", "sse":
		if s.URL == "" {
			reason = "it has no url"
		}
	default:
		reason = fmt.Sprintf("it has the type %q", clip(kind))
	}
	if err := s.Check(); reason == "" && err != nil {
		reason = strings.TrimPrefix(err.Error(), fmt.Sprintf("mcp: server %q: ", s.Name))
	}
	if reason != "" {
		d.fail(Problem{d.place(n.keyAt), fmt.Sprintf("the MCP server %s: %s", clip(n.name), reason), "want a command, or a url with the type http or sse"})
		return
	}
	text := canonical(s)
	quiet := func(path, text string) string {
		switch path {
		case "url":
			return secret.Address(text)
		case "type", "command", "args", "cwd", "enabledTools", "disabledTools", "timeout", "startup", "defer", "oauth.clientId", "oauth.grant":
			return text
		}
		return "…" // variables, headers, secrets, and what we don't know
	}
	d.add(n, entry{
		key: key, text: text, said: written(n, "", nil), shown: written(n, "", quiet), single: true, apply: func(to *Settings) { to.mcp[s.Name] = s },
		loosens: func(to *Settings) bool { old, ok := to.mcp[s.Name]; return !ok || canonical(old) != text },
	})
}

func (d *decoder) serverField(s *mcp.Server, kind *string, n node, key string) {
	text := func(to *string) { *to, _ = d.text(n, key) }
	list := func(to *[]string) {
		d.texts(n, key, func(_ node, v string) { *to = append(*to, v) })
	}
	texts := func(to *map[string]string) {
		*to = map[string]string{}
		d.textMap(n, key, func(n node, v string) { (*to)[n.name] = v })
	}
	duration := func(to *time.Duration) {
		v, ok := d.duration(n, key)
		if n.kind == '0' && d.claude { // there a number is one of milliseconds
			v /= 1000
		}
		if ok {
			*to = v
		}
	}
	switch n.name {
	case "type":
		text(kind)
	case "command":
		text(&s.Command)
	case "args":
		if n.kind != '[' {
			list(&s.Args)
			return
		}
		for i, c := range n.children { // an empty argument is one
			if v, ok := d.text(c, fmt.Sprintf("%s[%d]", key, i)); ok {
				s.Args = append(s.Args, v)
			}
		}
	case "env":
		texts(&s.Env)
	case "cwd":
		text(&s.Dir)
	case "url":
		text(&s.URL)
	case "headers":
		texts(&s.Headers)
	case "oauth":
		of := fields{}
		for i, to := range []*string{&s.OAuth.ClientID, &s.OAuth.ClientSecret, &s.OAuth.Grant, &s.OAuth.PrivateKey} {
			of[ofOAuth[i]] = func(d *decoder, n node) { *to, _ = d.text(n, join(key, n.name)) }
		}
		d.object(n, key, of)
	case "enabledTools":
		list(&s.Allow)
	case "disabledTools":
		list(&s.Deny)
	case "timeout":
		duration(&s.Timeout)
	case "startup":
		duration(&s.Startup)
	case "required":
		s.Required, _ = d.boolean(n, key)
	case "defer":
		switch n.value {
		case true:
			s.Defer = mcp.DeferAlways
		case false:
			s.Defer = mcp.DeferNever
		case "auto":
			s.Defer = mcp.DeferAuto
		default:
			d.wrong(n, key, `true, false or "auto"`)
		}
	default:
		d.problem(unknownName(d.place(n.keyAt), "key", key, joinAll(strings.TrimSuffix(key, "."+n.name), slices.Clone(ofServer))))
	}
}
