package a2aserver

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/agentcard"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/serve/internal/web"
)

// card shows what the agent is: to everybody, for it says how to be let in. Clients of both versions read it.
func (s *Server) card(w http.ResponseWriter, r *http.Request) {
	base := s.opts.URL
	if base == "" {
		base = "http://" + r.Host
		if r.TLS != nil {
			base = "https://" + r.Host
		}
	}
	b, err := a2a.MarshalCard(s.cardAt(strings.TrimSuffix(base, "/") + Path))
	if err != nil {
		web.Fail(w, r, errdefs.Internal.Errorf("serve: the agent's card can't be written: %w", err))
		return
	}
	sum := sha256.Sum256(b)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	h := w.Header()
	h.Set("ETag", tag)
	h.Add("Vary", "Host") // its addresses are those that it was asked by
	if r.Header.Get("If-None-Match") == tag {
		h.Set("Cache-Control", cacheCard)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	web.Cached(w, cacheCard, "application/json", b)
}

const cacheCard = "max-age=60"

// cardAt is the agent's card, for a server at an address.
func (s *Server) cardAt(url string) a2a.AgentCard {
	card := s.opts.Card
	card.DefaultInputModes, card.DefaultOutputModes = s.in, s.out
	out := agentcard.A2A(agent.Agent{ID: card.Name, Card: card}, version(),
		a2a.Interface{URL: url, ProtocolBinding: a2a.BindingJSONRPC, ProtocolVersion: string(a2a.V1)},
		a2a.Interface{URL: url, ProtocolBinding: a2a.BindingJSONRPC, ProtocolVersion: string(a2a.V03)})
	out.Capabilities = a2a.Capabilities{Streaming: true, PushNotifications: true}
	if s.opts.Secured {
		out.SecuritySchemes = map[string]a2a.SecurityScheme{"bearer": {HTTP: &a2a.HTTPScheme{Scheme: "Bearer", Description: "a token of the server's"}}}
		out.SecurityRequirements = []a2a.SecurityRequirement{{"bearer": {}}}
	}
	return out
}

// version is that of the program.
func version() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		return b.Main.Version
	}
	return "0.0.0-dev"
}
