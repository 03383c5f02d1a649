package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// mcpConfig is where MCP servers are looked for.
type mcpConfig struct {
	dir       string
	flags     []string
	trust     bool
	noSandbox bool
}

func (c *mcpConfig) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.dir, "dir", "", "the project's `directory`; default: the nearest directory upward with .agents, .git or go.mod, else the current one")
	f.BoolVar(&c.trust, "trust", false, "let all settings of the project count, approved or not: see pawl trust")
}

// mcpServer is a line of the list.
type mcpServer struct {
	Name      string       `json:"name"`
	Layer     string       `json:"layer"` // flag, user, project, local
	Place     string       `json:"place,omitempty"`
	State     string       `json:"state"` // connected, failed, waiting
	Reason    string       `json:"reason,omitempty"`
	Transport string       `json:"transport"` // stdio, http, sse
	Command   string       `json:"command,omitempty"`
	Args      []string     `json:"args,omitempty"`
	URL       string       `json:"url,omitempty"`
	Required  bool         `json:"required"`
	Tools     []listedTool `json:"tools"`
}

type listedTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	ReadOnly    bool   `json:"read_only"`
	Deferred    bool   `json:"deferred"`
}

// described is a server as it is configured: with variables and secrets left out.
func described(s mcp.Server, layer, state string) mcpServer {
	out := mcpServer{Name: s.Name, Layer: layer, Place: s.Place, State: state, Transport: "stdio", Command: s.Command, Args: s.Args, URL: quietAddress(s.URL), Required: s.Required, Tools: []listedTool{}}
	switch {
	case s.SSE:
		out.Transport = "sse"
	case s.URL != "":
		out.Transport = "http"
	}
	return out
}

// mcpServers are the configured servers, in the order in which their tools are offered. Those that count are connected.
func mcpServers(ctx context.Context, s streams, c mcpConfig) (all []mcpServer, err error) {
	live := newLive(s)
	defer live.end()
	o := pawl.Options{Trusted: c.trust, Logger: live.logger()}
	if o.ProjectRoot, err = projectRoot(c.dir); err != nil {
		return nil, err
	}
	if c.noSandbox {
		o.Sandbox = &sandbox.Policy{Off: true}
	}
	if o.MCP, err = mcpFlags(c.flags); err != nil {
		return nil, err
	}
	var opts []project.Option
	if c.trust {
		opts = append(opts, project.WithTrusted())
	}
	p, err := project.Load(ctx, o.ProjectRoot, opts...)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	status, err := pawl.MCPServers(ctx, o)
	if err != nil {
		return nil, wrongUse(err)
	}
	configured := map[string]mcp.Server{}
	for _, s := range slices.Concat(p.Settings.MCP, o.MCP) {
		configured[strings.ToLower(s.Name)] = s
	}
	values := p.Values()
	for _, s := range status {
		layer := "flag"
		if conf := configured[strings.ToLower(s.Server.Name)]; conf.Place != "" {
			i := slices.IndexFunc(values, func(v project.Value) bool { return v.Key == "mcp.servers."+conf.Name && v.State == project.StateActive })
			layer = string(values[i].Layer)
		}
		one := described(configured[strings.ToLower(s.Server.Name)], layer, "connected")
		if s.Err != nil {
			one.State, one.Reason = "failed", strings.TrimPrefix(s.Err.Error(), "mcp: server "+s.Server.Name+": ")
		}
		for _, t := range s.Tools {
			d := t.Definition()
			one.Tools = append(one.Tools, listedTool{d.Name, d.Description, d.ReadOnly, d.Deferred})
		}
		all = append(all, one)
	}
	for _, v := range values {
		if name, ok := strings.CutPrefix(v.Key, "mcp.servers."); ok && v.State == project.StateWaiting {
			var said struct {
				Type, Command, URL string
				Args               []string
				Required           bool
			}
			if err := json.Unmarshal([]byte(v.Text), &said); err != nil {
				return nil, err
			}
			s := mcp.Server{Name: name, Place: v.Place.String(), Command: said.Command, Args: said.Args, URL: said.URL, SSE: said.Type == "sse", Required: said.Required}
			one := described(s, string(v.Layer), "waiting")
			one.Reason = "it waits for approval: see pawl trust"
			all = append(all, one)
		}
	}
	return all, nil
}

// quietAddress is an address without a name, a password and what stands behind a question mark. There may be variables in it.
func quietAddress(text string) string {
	text, _, query := strings.Cut(text, "?")
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		host, path, slash := strings.Cut(rest, "/")
		if i := strings.LastIndexByte(host, '@'); i >= 0 {
			host = "…" + host[i:]
		}
		if text = scheme + "://" + host; slash {
			text += "/" + path
		}
	}
	if query {
		text += "?…"
	}
	return text
}

func mcpFlags(texts []string) (out []mcp.Server, err error) {
	for _, text := range texts {
		server, err := mcp.ParseServer(text)
		if err != nil {
			return nil, usage("--mcp: %v", err)
		}
		out = append(out, server)
	}
	return out, nil
}

func mcpList(s streams) *cobra.Command {
	var c mcpConfig
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "The configured MCP servers and their tools",
		Long: `Prints the servers of the settings and of --mcp: where each is configured, how it is reached, whether it can be connected or why not, and its tools.
To find that out they are started, in the sandbox in which runs have them. One that waits for approval is not. The exit code is 1 when one failed.`,
		Example: "  pawl mcp list\n  pawl mcp list --json --mcp 'files=mcp-server-filesystem .'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := mcpServers(cmd.Context(), s, c)
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(s.out)
				for _, one := range all {
					if err := enc.Encode(one); err != nil {
						return err
					}
				}
				return failures(cmd.Context(), all)
			}
			if len(all) == 0 {
				_, err := fmt.Fprintln(s.err, "no MCP server is configured: put one into .agents/settings.json, or give --mcp NAME=COMMAND|URL")
				return err
			}
			for _, one := range all {
				if _, err := fmt.Fprint(s.out, one); err != nil {
					return err
				}
			}
			return failures(cmd.Context(), all)
		},
	}
	c.add(cmd)
	cmd.Flags().StringArrayVar(&c.flags, "mcp", nil, "one more server, as `NAME=COMMAND|URL` (repeat)")
	cmd.Flags().BoolVar(&c.noSandbox, "no-sandbox", false, "start commands without a sandbox")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line: name, layer, place, state, reason, transport, command, args, url, required, tools")
	return cmd
}

// failures is what a list with servers that don't work ends with. What waits for approval has not failed.
func failures(ctx context.Context, all []mcpServer) error {
	if slices.ContainsFunc(all, func(s mcpServer) bool { return s.State == "failed" }) {
		return cmp.Or[error](ctx.Err(), &exitError{code: exitFailed})
	}
	return nil
}

// String is the server and its tools, a line each.
func (m mcpServer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  (%s)  %s\n", m.Name, m.State, strings.Trim(m.Layer+", "+m.Place, ", "), m.how())
	if m.Reason != "" {
		fmt.Fprintf(&b, "  %s\n", clean(m.Reason))
	}
	for _, t := range m.Tools {
		marks := ""
		if t.ReadOnly {
			marks += " [read-only]"
		}
		if t.Deferred {
			marks += " [found by search]"
		}
		fmt.Fprintf(&b, "  %s%s %s\n", t.Name, marks, clip(clean(t.Description), 100))
	}
	return b.String()
}

func (m mcpServer) how() string {
	words := []string{m.Transport, cmp.Or(m.Command, m.URL)}
	for _, a := range m.Args {
		words = append(words, quoted(a))
	}
	return clip(clean(strings.Join(words, " ")), 120)
}

// mcpFindings are the doctor's lines about MCP servers. failed says that one doesn't work, or none can.
func mcpFindings(ctx context.Context, s streams, dir string) (all []finding, failed bool) {
	servers, err := mcpServers(ctx, s, mcpConfig{dir: dir})
	if err != nil {
		return []finding{{"MCP servers", false, clean(err.Error())}}, true
	}
	for _, s := range servers {
		text := fmt.Sprintf("%s, %d tools", s.how(), len(s.Tools))
		if s.State != "connected" {
			text = queries.ReplaceAllString(clean(s.Reason), "$1?…")
		}
		all, failed = append(all, finding{"MCP server " + s.Name, s.State == "connected", text}), failed || s.State == "failed"
	}
	return all, failed
}

// queries are those of addresses in a text: keys may be in them.
var queries = regexp.MustCompile(`(https?://[^\s"?]+)\?[^\s"]+`)

// mcpConfigured is the server of a login: from the settings, unless its address is given.
func mcpConfigured(ctx context.Context, c mcpConfig, given mcp.Server) (mcp.Server, error) {
	if given.URL != "" {
		return given, nil
	}
	root, err := projectRoot(c.dir)
	if err != nil {
		return given, err
	}
	var opts []project.Option
	if c.trust {
		opts = append(opts, project.WithTrusted())
	}
	p, err := project.Load(ctx, root, opts...)
	if err != nil {
		return given, &exitError{exitUsage, err}
	}
	i := slices.IndexFunc(p.Settings.MCP, func(s mcp.Server) bool { return strings.EqualFold(s.Name, given.Name) })
	if i < 0 {
		for _, v := range p.Untrusted() {
			if v.Key == "mcp.servers."+given.Name {
				return given, &exitError{exitWaiting, fmt.Errorf("the server %s waits for approval: approve it with pawl trust, or once with --trust", given.Name)}
			}
		}
		return given, usage("no server %s is configured in %s: name one of the settings, or give its address with --url", given.Name, root)
	}
	s, err := p.Settings.MCP[i].Expand(p.Settings.Lookup)
	if err != nil {
		return s, wrongUse(err)
	}
	s.OAuth.ClientID, s.OAuth.ClientSecret = cmp.Or(given.OAuth.ClientID, s.OAuth.ClientID), cmp.Or(given.OAuth.ClientSecret, s.OAuth.ClientSecret)
	return s, nil
}
