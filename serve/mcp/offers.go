package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/project"
)

// invalid is an error of the protocol's own, for what is asked with wrong parameters.
func invalid(err error) error {
	code := int64(jsonrpc.CodeInternalError)
	if errdefs.Validation.Is(err) || errdefs.NotFound.Is(err) {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: err.Error()}
}

func (s *Server) addPrompt(p Prompt) {
	out := &sdk.Prompt{Name: p.Name, Title: p.Title, Description: p.Description}
	for _, a := range p.Arguments {
		out.Arguments = append(out.Arguments, &sdk.PromptArgument{Name: a.Name, Description: a.Description, Required: a.Required})
	}
	s.sdk.AddPrompt(out, func(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		for _, a := range p.Arguments {
			if a.Required && req.Params.Arguments[a.Name] == "" {
				return nil, invalid(errdefs.Validation.Errorf("the prompt %s needs the argument %s", p.Name, a.Name))
			}
		}
		all, err := p.Get(ctx, req.Params.Arguments)
		if err != nil {
			return nil, invalid(err)
		}
		return &sdk.GetPromptResult{Description: p.Description, Messages: messages(all)}, nil
	})
}

func (s *Server) offeredSkills() []project.Skill {
	if s.o.NoSkills {
		return nil
	}
	return slices.DeleteFunc(s.rt.Skills(), func(k project.Skill) bool { return k.Broken != "" })
}

// syncSkills offers the skills that there are now. s.mu is held.
func (s *Server) syncSkills(all []project.Skill) {
	taken := func(name string) bool {
		return slices.ContainsFunc(s.o.Prompts, func(p Prompt) bool { return p.Name == name })
	}
	var now, names []string
	for _, k := range all {
		if taken(k.Name) {
			continue
		}
		names = append(names, k.Name)
		now = append(now, k.Name, k.Description, k.Instructions())
	}
	if slices.Equal(now, s.skillTexts) {
		return
	}
	s.sdk.RemovePrompts(slices.DeleteFunc(s.skills, func(n string) bool { return slices.Contains(names, n) })...)
	for _, k := range all {
		if taken(k.Name) {
			continue
		}
		s.addPrompt(Prompt{Name: k.Name, Description: k.Description, Arguments: []Argument{{Name: "task", Description: "what to use the skill for"}}, Get: func(_ context.Context, args map[string]string) ([]message.Message, error) {
			text := k.Instructions()
			if task := strings.TrimSpace(args["task"]); task != "" {
				text += "\n\n" + task
			}
			return []message.Message{message.User(text)}, nil
		}})
	}
	s.skills, s.skillTexts = names, now
}

func (s *Server) addResource(r Resource) (err error) {
	if r.URI == "" || r.Name == "" || r.Read == nil {
		return errdefs.Validation.Errorf("mcp: a resource needs a URI, a Name and Read: %q has not all three", r.URI)
	}
	defer func() { // the library panics for what is no address
		if p := recover(); p != nil {
			err = errdefs.Validation.Errorf("mcp: the resource %s: %v", r.Name, p)
		}
	}()
	read := func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		f, err := r.Read(ctx, req.Params.URI)
		switch {
		case errdefs.NotFound.Is(err):
			return nil, sdk.ResourceNotFoundError(req.Params.URI)
		case err != nil:
			return nil, invalid(err)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{resource(req.Params.URI, f)}}, nil
	}
	if strings.Contains(r.URI, "{") {
		s.sdk.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MIME}, read)
	} else {
		s.sdk.AddResource(&sdk.Resource{URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MIME}, read)
	}
	return nil
}

func (s *Server) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	of := ""
	if req.Params.Ref != nil {
		if of = req.Params.Ref.Name; req.Params.Ref.URI != "" {
			of = req.Params.Ref.URI
		}
	}
	all, err := s.o.Completion(ctx, of, req.Params.Argument.Name, req.Params.Argument.Value)
	if err != nil {
		return nil, invalid(err)
	}
	const most = 100 // of the protocol
	out := sdk.CompletionResultDetails{Values: []string{}, Total: len(all), HasMore: len(all) > most}
	out.Values = append(out.Values, all[:min(len(all), most)]...)
	return &sdk.CompleteResult{Completion: out}, nil
}

// sessionURI is where transcripts are.
const sessionURI = "pawl://session/"

// transcripts are sessions as texts, for who knows their names.
func (s *Server) transcripts() Resource {
	return Resource{
		URI: sessionURI + "{session}", Name: "session", Title: "Session", Description: "The transcript of a session: what was said, which tools were used, and what they gave", MIME: "text/plain",
		Read: func(ctx context.Context, uri string) (message.File, error) {
			name := strings.TrimPrefix(uri, sessionURI)
			if err := checkSession(name); err != nil {
				return message.File{}, errdefs.Validation.Errorf("%w", err)
			}
			log, err := journal.Open(ctx, s.rt.Journal(), name)
			if err != nil {
				return message.File{}, err
			}
			st := log.State()
			if st.Seq == 0 {
				return message.File{}, errdefs.NotFound.Errorf("there is no session %q", name)
			}
			return message.File{MIME: "text/plain", Data: transcript(st.Messages)}, nil
		},
	}
}

func transcript(all message.History) string {
	var b strings.Builder
	for _, m := range all.All() {
		for p := range m.Parts() {
			switch p := p.(type) {
			case message.Text:
				fmt.Fprintf(&b, "%s: %s\n\n", m.Role(), p.Text)
			case message.File:
				fmt.Fprintf(&b, "%s: [file %s %s]\n\n", m.Role(), p.Name, p.MIME)
			case message.ToolCall:
				fmt.Fprintf(&b, "%s: [%s] %s %s\n\n", m.Role(), p.ID, p.Name, p.Input)
			case message.ToolResult:
				outcome := ""
				if p.IsError {
					outcome = " error"
				}
				fmt.Fprintf(&b, "%s: [%s]%s %s\n\n", m.Role(), p.Call, outcome, p.Content)
			}
		}
	}
	return b.String()
}
