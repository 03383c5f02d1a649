package mcp

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
)

func TestServersAreReadAsTheyStandInSettings(t *testing.T) {
	t.Setenv("MCP_TEST_A", "value")
	t.Setenv("MCP_TEST_EMPTY", "")
	got, problems, err := DecodeServers([]byte(`{
		"z": {"command": "run", "args": ["-e", "A=1", "-e", "B=2", "${MCP_TEST_A}"], "env": {"K": "${MCP_TEST_EMPTY:-none}-${MCP_TEST_NONE:-x}"}, "cwd": "/d", "timeout": 1500, "required": true, "argz": 1},
		"a": {"type": "http", "url": "https://example.com/${MCP_TEST_A}", "headers": {"Authorization": "Bearer ${MCP_TEST_A}$5"}, "allow": ["x"], "enabledTools": ["y"], "disabledTools": ["q*"], "timeout": "2m", "startup": "5s",
			"oauth": {"clientId": "id", "clientSecret": "${MCP_TEST_A}"}, "deferred": true},
		"o": {"type": "sse", "url": "http://localhost:1/sse"}
	}`), ".mcp.json")
	if err != nil {
		t.Fatal(err)
	}
	want := []Server{
		{Name: "z", Command: "run", Args: []string{"-e", "A=1", "-e", "B=2", "value"}, Env: map[string]string{"K": "none-x"}, Dir: "/d", Timeout: 1500 * time.Millisecond, Required: true},
		{
			Name: "a", URL: "https://example.com/value", Headers: map[string]string{"Authorization": "Bearer value$5"}, Allow: []string{"x", "y"}, Deny: []string{"q*"}, Timeout: 2 * time.Minute, Startup: 5 * time.Second,
			OAuth: OAuth{"id", "value"},
		},
		{Name: "o", URL: "http://localhost:1/sse", SSE: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		".mcp.json: mcpServers.z.argz: it is not known, and has no effect; did you mean args?",
		".mcp.json: mcpServers.a.deferred: it is not known, and has no effect",
	}, problems); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsWrongWithServersIsSaidWithItsPlace(t *testing.T) {
	for in, want := range map[string]string{
		`[]`:                          "s.json: mcpServers: it is not an object",
		`{`:                           "s.json: mcpServers: not JSON",
		`{} {}`:                       "something stands behind it",
		`{"a":{},"a":{}}`:             `"a" stands there twice`,
		`{"a":1}`:                     "s.json: mcpServers.a: it is not an object",
		`{"a":{}}`:                    "neither a command nor a URL",
		`{"a":{"command":3}}`:         "s.json: mcpServers.a: command: want string, not a number",
		`{"a":{"args":"x y"}}`:        "args: want []string, not a string",
		`{"a":{"type":"ws"}}`:         `type: "ws": want stdio, http or sse`,
		`{"a":{"type":"stdio"}}`:      "stdio needs a command",
		`{"a":{"type":"http"}}`:       "http needs a url",
		`{"a":{"timeout":"soon"}}`:    `"soon" is no time: want milliseconds`,
		`{"a__b":{"command":"x"}}`:    "two _ in a row",
		`{"a":{"command":"${NO_1}"}}`: "${NO_1}: the variable is not set: set it, or write ${NO_1:-default}",
		`{"a":{"command":"x"},"b":{"url":"x"},"c":{"url":"http://x","command":"y"}}`: "leave out one of them",
	} {
		got, _, err := DecodeServers([]byte(in), "s.json")
		if !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), want) || got != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestAServerIsReadFromAFlag(t *testing.T) {
	for in, want := range map[string]Server{
		"web=https://example.com/mcp?a=b":      {Name: "web", URL: "https://example.com/mcp?a=b"},
		`fs=npx -y server "my dir" 'b c' d\ e`: {Name: "fs", Command: "npx", Args: []string{"-y", "server", "my dir", "b c", "d e"}},
		"x=/bin/server":                        {Name: "x", Command: "/bin/server", Args: []string{}},
	} {
		if got, err := ParseServer(in); err != nil {
			t.Error(in, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Error(in, diff)
		}
	}
	for _, in := range []string{"", "a", "a=", "a= ", "=x", "a b=x", `a="x`, "a=$(rm x)"} {
		if _, err := ParseServer(in); !errors.Is(err, errdefs.Validation) {
			t.Error(in, err)
		}
	}
}

func FuzzDecodeServersNeverPanics(f *testing.F) {
	f.Add(`{"a":{"command":"x","args":["${A:-b}"],"timeout":1e9}}`, `a=b "c`)
	f.Fuzz(func(_ *testing.T, settings, flag string) {
		_, _, _ = DecodeServers([]byte(settings), "f")
		_, _ = ParseServer(flag)
	})
}
