//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/internal/traced"
	"github.com/pawl-dev/pawl/tool"
)

// within is a span of somebody who traces.
type within struct {
	mu    sync.Mutex
	noted map[string]string
}

func (*within) Inject(_ context.Context, set func(name, value string)) {
	set(traced.Parent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	set(traced.State, "a=1")
}

func (w *within) Note(_ context.Context, name, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted[name] = value
}

// told is what a server was told of traces, by method: in _meta, and in the header of the request.
type told struct {
	mu           sync.Mutex
	meta, header map[string]string
}

func tracing(t *testing.T) (*told, string) {
	t.Helper()
	seen := &told{meta: map[string]string{}, header: map[string]string{}}
	server := newSDKServer(nil)
	server.AddResource(&sdk.Resource{URI: "mem://x", Name: "x"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "mem://x", Text: "x"}}}, nil
	})
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if p := req.GetParams(); p != nil && method != "notifications/initialized" {
				parent, _ := p.GetMeta()[traced.Parent].(string)
				state, _ := p.GetMeta()[traced.State].(string)
				seen.mu.Lock()
				seen.meta[method] = parent + " " + state
				if x := req.GetExtra(); x != nil {
					seen.header[method] = x.Header.Get(traced.Parent) + " " + x.Header.Get(traced.State)
				}
				seen.mu.Unlock()
			}
			return next(ctx, method, req)
		}
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(web.Close)
	return seen, web.URL
}

func TestAServerIsToldToWhichSpanARequestBelongs(t *testing.T) {
	t.Parallel()
	const where = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 a=1"
	seen, url := tracing(t)
	client, err := Connect(context.Background(), []Server{{Name: "srv", URL: url}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.Background()) }()
	for method, said := range seen.meta {
		if said != " " {
			t.Errorf("%s has %q, and belongs to no run", method, said)
		}
	}
	w := &within{noted: map[string]string{}}
	ctx := traced.With(context.Background(), w)
	for _, one := range client.Tools(ctx) {
		if one.Definition().Name == "mcp__srv__echo" {
			if out, err := one.Execute(tool.WithCall(ctx, tool.Call{}), json.RawMessage(`{"text":"hi"}`)); err != nil || out.IsError {
				t.Fatal(out, err)
			}
		}
	}
	w.mu.Lock()
	noted := maps.Clone(w.noted)
	w.mu.Unlock()
	for name, want := range map[string]string{"mcp.method.name": "tools/call", "pawl.mcp.server": "srv", "network.transport": "tcp", "server.address": "127.0.0.1"} {
		if noted[name] != want {
			t.Errorf("%s = %q, want %q", name, noted[name], want)
		}
	}
	if noted["mcp.protocol.version"] == "" || noted["server.port"] == "" {
		t.Error(noted)
	}
	if _, err := client.Resource(ctx, "srv", "mem://x"); err != nil {
		t.Fatal(err)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, method := range []string{"tools/call", "resources/read"} {
		if seen.meta[method] != where || seen.header[method] != where {
			t.Errorf("%s: _meta %q, header %q, want %q", method, seen.meta[method], seen.header[method], where)
		}
	}
}
