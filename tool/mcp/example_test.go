package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/tool/mcp"
)

func Example() {
	type place struct {
		City string `json:"city"`
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "forecast", Description: "Forecast the weather."}, func(_ context.Context, _ *sdk.CallToolRequest, in place) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "sun over " + in.City}}}, nil, nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	defer web.Close()

	ctx := context.Background()
	client, err := mcp.Connect(ctx, []mcp.Server{{Name: "weather", URL: web.URL}}, mcp.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close(ctx) }()

	for _, t := range client.Tools(ctx) {
		res, err := t.Execute(ctx, json.RawMessage(`{"city":"Bern"}`))
		fmt.Println(t.Definition().Name, "says", res.Content, err)
	}
	// Output: mcp__weather__forecast says sun over Bern <nil>
}
