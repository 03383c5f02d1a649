package mcp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// resourcesName is the tool that lists and reads a server's resources, for the lists of a Server too.
const resourcesName = "resources"

// mostResources are listed to a model.
const mostResources = 500

type resourcesInput struct {
	URI string `json:"uri,omitempty" jsonschema:"the resource to read; without it, they are listed"`
}

// resourcesTool makes the tool. It is one of the server's own as for names and rules, so that what binds the server binds it.
func (s *server) resourcesTool(name string) tool.Tool {
	var def tool.Definition
	t := tool.Func(name, fmt.Sprintf("List the resources of the MCP server %s, or read one of them.", s.conf.Name), func(ctx context.Context, in resourcesInput) (out tool.Result, err error) {
		err = s.do(ctx, def, func(ctx context.Context, live *session, _ *call) error {
			if in.URI == "" {
				out.Content, err = live.resourceList(ctx)
			} else {
				out, err = live.read(ctx, in.URI)
			}
			return err
		})
		return out, err
	}, tool.ReadOnly, tool.OpenWorld)
	def = t.Definition()
	return t
}

// resourceList lists resources and the templates of such, one a line.
func (l *session) resourceList(ctx context.Context) (string, error) {
	var lines []string
	add := func(what string) error {
		if len(lines) == mostResources {
			lines = append(lines, "… and more")
		}
		if len(lines) < mostResources {
			lines = append(lines, what)
		}
		return nil
	}
	for r, err := range l.resources(ctx) {
		if err != nil {
			return "", err
		}
		_ = add(described(r.URI, r.Name, r.Description, r.MIMEType))
	}
	err := pages(func(cursor string) (string, error) {
		res, err := l.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
		if e, ok := answered(err); ok && e.Code == -32601 { // it has none
			return "", nil
		}
		if err != nil {
			return "", err
		}
		for _, t := range res.ResourceTemplates {
			_ = add("template " + described(t.URITemplate, t.Name, t.Description, t.MIMEType))
		}
		return res.NextCursor, nil
	})
	if err != nil {
		return "", err
	}
	if len(lines) == 0 {
		return "There are no resources.", nil
	}
	return strings.Join(lines, "\n"), nil
}

// resources are all resources, page by page.
func (l *session) resources(ctx context.Context) func(func(*sdk.Resource, error) bool) {
	return func(yield func(*sdk.Resource, error) bool) {
		stopped := false
		err := pages(func(cursor string) (string, error) {
			res, err := l.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
			if err != nil {
				return "", err
			}
			for _, r := range res.Resources {
				if stopped = !yield(r, nil); stopped {
					return "", nil
				}
			}
			return res.NextCursor, nil
		})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

func (l *session) read(ctx context.Context, uri string) (tool.Result, error) {
	res, err := l.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		return tool.Result{}, err
	}
	if res.InputRequests != nil {
		return tool.Result{}, l.server.errorf(errdefs.NotAvailable, "it asks a question before it gives %s, which is not offered", uri)
	}
	var out tool.Result
	var texts []string
	for _, c := range res.Contents {
		t, f := resource(c)
		texts, out.Files = append(texts, t), append(out.Files, f...)
	}
	out.Content = bounded(strings.Join(texts, "\n"))
	return out, nil
}

// Resource is what a server has to read.
type Resource struct {
	Server, URI, Name, Description, MIME string
}

// reads is how something that only reads is used.
var reads = tool.Definition{Annotations: tool.Annotations{ReadOnly: true}}

// Resources are the resources of all servers that have such.
func (c *Client) Resources(ctx context.Context) (out []Resource, err error) {
	err = c.each(ctx, func(caps *sdk.ServerCapabilities) bool { return caps.Resources != nil }, func(ctx context.Context, live *session) error {
		var found []Resource // a repetition begins anew
		for r, err := range live.resources(ctx) {
			if err != nil {
				return err
			}
			found = append(found, Resource{live.server.conf.Name, r.URI, r.Name, r.Description, r.MIMEType})
		}
		out = append(out, found...)
		return nil
	})
	return out, err
}

// Resource reads one.
func (c *Client) Resource(ctx context.Context, server, uri string) (out tool.Result, err error) {
	s, err := c.server(server)
	if err != nil {
		return out, err
	}
	err = s.do(ctx, reads, func(ctx context.Context, live *session, _ *call) error {
		out, err = live.read(ctx, uri)
		return err
	})
	return out, err
}

// Prompt is a message, or several, that a server writes for a person to begin with.
type Prompt struct {
	Server, Name, Description string
	Arguments                 []Argument
}

// Argument is what a Prompt is filled in with.
type Argument struct {
	Name, Description string
	Required          bool
}

// Prompts are the prompts of all servers that have such.
func (c *Client) Prompts(ctx context.Context) (out []Prompt, err error) {
	err = c.each(ctx, func(caps *sdk.ServerCapabilities) bool { return caps.Prompts != nil }, func(ctx context.Context, live *session) error {
		var found []Prompt
		err := pages(func(cursor string) (string, error) {
			res, err := live.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
			if err != nil {
				return "", err
			}
			for _, p := range res.Prompts {
				one := Prompt{Server: live.server.conf.Name, Name: p.Name, Description: p.Description}
				for _, a := range p.Arguments {
					one.Arguments = append(one.Arguments, Argument{a.Name, a.Description, a.Required})
				}
				found = append(found, one)
			}
			return res.NextCursor, nil
		})
		if err == nil {
			out = append(out, found...)
		}
		return err
	})
	return out, err
}

// Prompt has a server write one. The messages of both roles come as they are, one after the other.
func (c *Client) Prompt(ctx context.Context, server, name string, arguments map[string]string) (out []message.Message, err error) {
	s, err := c.server(server)
	if err != nil {
		return nil, err
	}
	err = s.do(ctx, reads, func(ctx context.Context, live *session, _ *call) error {
		res, err := live.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: arguments})
		if err != nil {
			return err
		}
		if res.InputRequests != nil {
			return s.errorf(errdefs.NotAvailable, "it asks a question before it gives the prompt %s, which is not offered", name)
		}
		out = nil
		for _, m := range res.Messages {
			role := message.RoleUser
			if m.Role == "assistant" {
				role = message.RoleAssistant
			}
			text, files := contents([]sdk.Content{m.Content})
			var parts []message.Part
			if text != "" {
				parts = append(parts, message.Text{Text: text})
			}
			for _, f := range files {
				parts = append(parts, f)
			}
			out = append(out, message.New(role, parts...))
		}
		return nil
	})
	return out, err
}

// each asks the servers that can, in their order; one that is not there is a warning.
func (c *Client) each(ctx context.Context, can func(*sdk.ServerCapabilities) bool, f func(context.Context, *session) error) error {
	for _, s := range c.servers {
		err := s.do(ctx, reads, func(ctx context.Context, live *session, _ *call) error {
			if caps := live.InitializeResult().Capabilities; caps == nil || !can(caps) {
				return nil
			}
			return f(ctx, live)
		})
		if err != nil && ctx.Err() != nil {
			return err
		} else if err != nil {
			c.warn(err.Error())
		}
	}
	return nil
}
