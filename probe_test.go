package pawl_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// probing has this test binary be an MCP server that tries what a fence should keep it from.
const probing = "PAWL_TEST_PROBE"

// pidsIn has it leave its process id in a directory.
const pidsIn = "PAWL_TEST_PIDS"

type asked struct {
	Path    string `json:"path,omitempty"`
	Address string `json:"address,omitempty"`
	Name    string `json:"name,omitempty"`
}

// probe serves MCP on standard input and output.
func probe() {
	if dir := os.Getenv(pidsIn); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(os.Getpid())), nil, 0o600); err != nil {
			panic(err)
		}
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "probe", Version: "1"}, nil)
	for name, do := range map[string]func(asked) (string, error){
		"write": func(a asked) (string, error) { return "written", os.WriteFile(a.Path, []byte("x"), 0o600) },
		"read": func(a asked) (string, error) { // a name: rules take it for nothing else
			b, err := os.ReadFile(a.Name)
			return string(b), err
		},
		"env": func(a asked) (string, error) { return os.Getenv(a.Name), nil },
		"dial": func(a asked) (string, error) {
			c, err := net.DialTimeout("tcp", a.Address, 10*time.Second)
			if err != nil {
				return "", err
			}
			return "connected", c.Close()
		},
		"get": func(a asked) (string, error) {
			proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
			if err != nil {
				return "", err
			}
			resp, err := (&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}).Get("http://" + a.Address)
			if err != nil {
				return "", err
			}
			defer func() { _ = resp.Body.Close() }()
			b, err := io.ReadAll(resp.Body)
			return resp.Status + " " + string(b), err
		},
	} {
		sdk.AddTool(server, &sdk.Tool{Name: name}, func(_ context.Context, _ *sdk.CallToolRequest, a asked) (*sdk.CallToolResult, any, error) {
			text, err := do(a)
			if err != nil {
				text = err.Error()
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, IsError: err != nil}, nil, nil
		})
	}
	_ = server.Run(context.Background(), &sdk.StdioTransport{})
}
