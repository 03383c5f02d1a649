package tool_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-dev/pawl/tool"
)

func Example() {
	type input struct {
		City string `json:"city" jsonschema:"name of the city"`
		Days int    `json:"days,omitempty" jsonschema:"how many days ahead; default 1"`
	}
	weather := tool.Func("weather", "Forecast the weather.", func(_ context.Context, in input) (string, error) {
		return fmt.Sprintf("sun over %s for %d days", in.City, max(1, in.Days)), nil
	}, tool.ReadOnly, tool.OpenWorld)

	fmt.Println(string(weather.Definition().Schema))

	res, err := weather.Execute(context.Background(), json.RawMessage(`{"city":"Bern","days":3}`))
	fmt.Println(res.Content, err)

	_, err = weather.Execute(context.Background(), json.RawMessage(`{"days":"3"}`))
	fmt.Println(err)
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"name of the city"},"days":{"type":"integer","description":"how many days ahead; default 1"}},"required":["city"],"additionalProperties":false}
	// sun over Bern for 3 days <nil>
	// tool weather: /: missing property 'city'; /days: got string, want integer
}
