package project

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
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

// quietURL is an address without a name, a password and what stands behind a question mark.
func quietURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "…"
	}
	if u.User != nil {
		u.User = url.User("…")
	}
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	return u.String()
}

func (d *decoder) server(n node) {
	key := "mcp.servers." + n.name
	if n.kind != '{' {
		d.wrong(n, key, "an object in braces")
		return
	}
	if !plainName(n.name) {
		d.fail(Problem{d.place(n.keyAt), fmt.Sprintf("%q is no name for an MCP server", clip(n.name)), "use letters, digits, - and _, at most 64"})
		return
	}
	before := len(d.errs)
	s := MCPServer{Name: n.name, Place: d.place(n.keyAt)}
	for _, c := range n.children {
		d.serverField(&s, c, join(key, c.name))
	}
	if len(d.errs) > before {
		return
	}
	if s.Type == "" {
		if s.Type = "stdio"; s.Command == "" && s.URL != "" {
			s.Type = "http"
		}
	}
	if reason := s.wrong(); reason != "" {
		d.fail(Problem{d.place(n.keyAt), fmt.Sprintf("the MCP server %s %s", n.name, reason), "want a command, or a url with the type http or sse"})
		return
	}
	text := canonical(s)
	quiet := s
	quiet.Env, quiet.Headers, quiet.URL = hidden(s.Env), hidden(s.Headers), quietURL(s.URL)
	d.add(n, entry{
		key: key, text: text, shown: canonical(quiet), single: true, apply: func(to *Settings) { to.mcp[s.Name] = s },
		loosens: func(to *Settings) bool { old, ok := to.mcp[s.Name]; return !ok || canonical(old) != text },
	})
}

func (d *decoder) serverField(s *MCPServer, n node, key string) {
	list := func(to *[]string) {
		d.texts(n, key, func(_ node, v string) { *to = append(*to, v) })
	}
	texts := func(to *map[string]string) {
		*to = map[string]string{}
		d.textMap(n, key, func(n node, v string) { (*to)[n.name] = v })
	}
	switch {
	case n.kind == 'n' && slices.Contains(ofServer, n.name):
		return
	case n.name == "args" && n.kind == '[': // an empty argument is one
		for i, c := range n.children {
			if v, ok := d.text(c, fmt.Sprintf("%s[%d]", key, i)); ok {
				s.Args = append(s.Args, v)
			}
		}
		return
	}
	switch n.name {
	case "type":
		s.Type, _ = d.text(n, key)
		if s.Type == "streamable-http" { // what other programs call it
			s.Type = "http"
		}
	case "command":
		s.Command, _ = d.text(n, key)
	case "args":
		list(&s.Args)
	case "env":
		texts(&s.Env)
	case "url":
		s.URL, _ = d.text(n, key)
	case "headers":
		texts(&s.Headers)
	case "enabledTools":
		list(&s.EnabledTools)
	case "disabledTools":
		list(&s.DisabledTools)
	case "timeout":
		s.Timeout, _ = d.duration(n, key)
	default:
		d.problem(unknownName(d.place(n.keyAt), "key", key, joinAll(strings.TrimSuffix(key, "."+n.name), slices.Clone(ofServer))))
	}
}

// wrong says what of a server makes no sense.
func (s MCPServer) wrong() string {
	switch s.Type {
	case "stdio":
		switch {
		case s.Command == "":
			return "has no command"
		case s.URL != "" || len(s.Headers) > 0:
			return "is a command, and has a url or headers"
		}
	case "http", "sse":
		u, err := url.Parse(s.URL)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			return "has no url that begins with http:// or https://"
		case s.Command != "" || len(s.Args) > 0 || len(s.Env) > 0:
			return "has a url, and a command, args or env"
		}
	default:
		return fmt.Sprintf("has the type %q", clip(s.Type))
	}
	return ""
}

// plainName reports whether a name is made of letters, digits, - and _, so that it can stand in a permission rule and in a tool's name and means nothing else there.
func plainName(name string) bool {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool { return !ok(r) })
}
