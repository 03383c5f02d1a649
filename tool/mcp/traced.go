package mcp

import (
	"context"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/internal/traced"
)

// tells has each request that belongs to a run say to which span: as the protocol has it, in _meta. What makes and keeps a session belongs to no run. Over HTTP, a header says it too.
func (l *session) tells(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch kind, _, _ := strings.Cut(method, "/"); kind {
		case "tools", "resources", "prompts": // all of them have params
			l.notes(ctx, method)
			traced.Inject(ctx, func(name, value string) {
				meta := req.GetParams().GetMeta()
				if meta == nil {
					meta = map[string]any{}
				}
				meta[name] = value
				req.GetParams().SetMeta(meta)
			})
		}
		return next(ctx, method, req)
	}
}

// notes puts onto the span of a tool what the conventions for MCP want of one of theirs, which it takes the place of.
func (l *session) notes(ctx context.Context, method string) {
	if _, ok := ctx.Value(callKey{}).(*asking); !ok {
		return
	}
	traced.Note(ctx, "mcp.method.name", method)
	traced.Note(ctx, "mcp.protocol.version", l.InitializeResult().ProtocolVersion)
	traced.Note(ctx, "pawl.mcp.server", l.server.conf.Name)
	if l.proc != nil {
		traced.Note(ctx, "network.transport", "pipe")
		return
	}
	traced.Note(ctx, "network.transport", "tcp")
	traced.Note(ctx, "mcp.session.id", l.ID())
	if u, err := url.Parse(l.server.conf.URL); err == nil {
		traced.Note(ctx, "server.address", u.Hostname())
		traced.Note(ctx, "server.port", u.Port())
	}
}
