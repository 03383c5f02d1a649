package httpapi_test

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/model"
)

func TestTheNameOfAToolThatWasOfferedCostsNothing(t *testing.T) {
	tools := []model.Tool{{Name: "read"}, {Name: "a_tool_with_a_long_name"}}
	for raw, want := range map[string]string{`"a_tool_with_a_long_name"`: "a_tool_with_a_long_name", `"read"`: "read", `"Read"`: "Read", `"\u0072ead"`: "read", `null`: "", ``: ""} {
		if got := httpapi.ToolName([]byte(raw), tools); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
	raw := []byte(`"a_tool_with_a_long_name"`)
	if n := testing.AllocsPerRun(100, func() { httpapi.ToolName(raw, tools) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
