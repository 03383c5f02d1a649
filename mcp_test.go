//go:build unix

package pawl_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// toolsSeen is a model that notes the tools it is offered, and calls one.
type toolsSeen struct {
	model.Model
	names *[]string
}

func (m toolsSeen) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	m.note(req)
	return m.Model.Complete(ctx, req)
}

func (m toolsSeen) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	m.note(req)
	return m.Model.CompleteStream(ctx, req, cb)
}

func (m toolsSeen) note(req model.Request) {
	*m.names = nil
	for _, t := range req.Tools {
		*m.names = append(*m.names, t.Name)
	}
}

// notes is a server with a tool that adds another one.
func notes(t *testing.T) string {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	type none struct{}
	sdk.AddTool(server, &sdk.Tool{Name: "add"}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
		sdk.AddTool(server, &sdk.Tool{Name: "added"}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{}, nil, nil
		})
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "noted"}}}, nil, nil
	})
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h.URL
}

func TestToolsOfMCPServersAreBoundByRules(t *testing.T) {
	servers := []mcp.Server{{Name: "notes", URL: notes(t)}, {Name: "gone", Command: "/no/such/program"}}
	call := message.New(message.RoleAssistant, message.ToolCall{ID: "c1", Name: "mcp__notes__add", Input: "{}"})
	for name, c := range map[string]struct {
		rules permission.Config
		want  agent.Status
		told  string
	}{
		"no rule is about it": {permission.Config{}, agent.StatusInterrupted, ""},
		"its server is":       {permission.Config{Allow: []string{"mcp__notes"}}, agent.StatusCompleted, "noted"},
		"it is denied":        {permission.Config{Allow: []string{"mcp__notes"}, Deny: []string{"mcp__notes__add"}}, agent.StatusCompleted, "mcp__notes__add"},
	} {
		var seen, warned []string
		rt := open(t, pawl.Options{Model: toolsSeen{stub{call}, &seen}, MCP: servers, Permissions: c.rules, NoBuiltins: true, Host: engine.HostFuncs{PublishFunc: func(_ context.Context, e event.Event) error {
			if e.Delta == event.Warning {
				warned = append(warned, e.Text)
			}
			return nil
		}}})
		res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"})
		if res == nil || res.Status != c.want {
			t.Fatalf("%s: %+v %v", name, res, err)
		}
		told := ""
		for _, m := range res.Messages {
			for r := range message.Of[message.ToolResult](m) {
				told += r.Content
			}
		}
		if !strings.Contains(told, c.told) {
			t.Errorf("%s: %q", name, told)
		}
		if len(warned) == 0 || !strings.Contains(warned[0], "server gone: start: ") {
			t.Errorf("%s: %q", name, warned)
		}
	}
}

func TestToolsThatAnMCPServerAddsAreThereInTheNextRun(t *testing.T) {
	call := message.New(message.RoleAssistant, message.ToolCall{ID: "c1", Name: "mcp__notes__add", Input: "{}"})
	var seen []string
	rt := open(t, pawl.Options{Model: toolsSeen{stub{call}, &seen}, MCP: []mcp.Server{{Name: "notes", URL: notes(t)}}, Permissions: permission.Config{Allow: []string{"mcp__notes"}}, NoBuiltins: true})
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "a"}); err != nil || !slices.Equal(seen, []string{"mcp__notes__add"}) {
		t.Error("the run under way keeps its tools:", seen, err)
	}
	eventually(t, "the tool that was added", func() bool { // the server says so when it likes
		if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "a"}); err != nil {
			t.Fatal(err)
		}
		return slices.Equal(seen, []string{"mcp__notes__add", "mcp__notes__added"})
	})
}

func TestServersOfTheSettingsHaveTheirVariablesAndTheProgramsComeFirst(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	lay(t, dir, map[string]string{".agents/settings.json": `{"env": {"NOTES_URL": "` + notes(t) + `"}, "mcpServers": {
		"notes": {"url": "${NOTES_URL}/mcp"}, "own": {"command": "/not/this/one", "required": true}, "unset": {"command": "${PAWL_TEST_UNSET}"}}}`})
	var seen, warned []string
	rt := serve(t, dir, toolsSeen{stub{message.Assistant("done")}, &seen}, func(o *pawl.Options) {
		o.Trusted, o.NoSubagents, o.NoBuiltins, o.MCP = true, true, true, []mcp.Server{{Name: "OWN", URL: notes(t)}}
		o.Host = engine.HostFuncs{PublishFunc: func(_ context.Context, e event.Event) error {
			if e.Delta == event.Warning {
				warned = append(warned, e.Text)
			}
			return nil
		}}
	})
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, []string{"mcp__OWN__add", "mcp__notes__add"}) {
		t.Error(seen)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "settings.json") || !strings.Contains(warned[0], "command: ${PAWL_TEST_UNSET} is not set") {
		t.Error(warned)
	}
}

// A session's tools are those that it has searched for, in every Runtime that goes on with it.
func TestDeferredToolsOfAnMCPServerAreFoundForTheSession(t *testing.T) {
	store, url := journal.Memory(), notes(t)
	options := func(m model.Model, seen *[]string) pawl.Options {
		return pawl.Options{
			Model: toolsSeen{m, seen}, MCP: []mcp.Server{{Name: "notes", URL: url, Defer: mcp.DeferAlways}}, Permissions: permission.Config{Allow: []string{"mcp__notes"}}, Journal: store,
		}
	}
	var seen []string
	script := scripted.New(
		scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "tool_search", Input: `{"query":"notes"}`}}}, scripted.Turn{Calls: []scripted.Call{{ID: "c2", Name: "mcp__notes__add", Input: "{}"}}}, scripted.Text("done"), scripted.Text("again"),
	)
	rt := open(t, options(script, &seen))
	res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"})
	if err != nil || !slices.Equal(seen, []string{"tool_search", "mcp__notes__add"}) {
		t.Fatal("nobody is asked about a search:", res, err, seen)
	}
	later := open(t, options(script, &seen))
	if _, err := later.Run(t.Context(), pawl.Request{Prompt: "go on", SessionID: "s"}); err != nil || !slices.Equal(seen, []string{"tool_search", "mcp__notes__add"}) {
		t.Error(seen, err)
	}
	other := open(t, options(scripted.New(scripted.Text("done")), &seen))
	if _, err := other.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "another"}); err != nil || !slices.Equal(seen, []string{"tool_search"}) {
		t.Error("what one session has found is not another's:", seen, err)
	}
}
