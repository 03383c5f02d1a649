package tool_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// A hook that looks for "command" must see whatever the function will get as its command.
func TestEachMemberOfAnInputHasOneNameAndIsGivenOnce(t *testing.T) {
	type in struct {
		Command string `json:"command"`
		Dir     string `json:"workdir,omitempty"`
	}
	run := func(_ context.Context, in in) (string, error) { return in.Command, nil }
	loose := tool.WithSchema([]byte(`{"type":"object","properties":{"command":{"enum":["ls"]},"workdir":{"type":"string"}}}`))
	set, err := tool.NewSet(tool.Func("strict", "", run, tool.WithAliases(map[string]string{"cmd": "command"})), tool.Func("loose", "", run, loose))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ tool, input, want, err string }{
		"as it should be":               {"strict", `{"command":"ls"}`, `{"command":"ls"}`, ""},
		"in another case":               {"strict", `{"Command":"ls","WORKDIR":"x"}`, `{"command":"ls","workdir":"x"}`, ""},
		"an alias":                      {"strict", `{"cmd":"ls"}`, `{"command":"ls"}`, ""},
		"an alias in another case":      {"strict", `{"CMD":"ls"}`, `{"command":"ls"}`, ""},
		"an escaped name":               {"strict", `{"\u0063md":"ls"}`, `{"command":"ls"}`, ""},
		"twice":                         {"strict", `{"command":"ls","command":"rm"}`, "", `"command" is given twice`},
		"twice, in two cases":           {"loose", `{"command":"ls","COMMAND":"rm"}`, "", `"COMMAND" and "command" are the same`},
		"twice, by an alias":            {"strict", `{"command":"ls","cmd":"rm"}`, "", `"cmd" and "command" are the same`},
		"the schema sees the other one": {"loose", `{"COMMAND":"rm"}`, "", "/command"},
		"unknown members stay":          {"loose", `{"X":1,"Command":"ls"}`, `{"X":1,"command":"ls"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := set.Check(message.ToolCall{Name: c.tool, Input: c.input})
			if got != c.want || (err == nil) != (c.err == "") || err != nil && (!errdefs.Validation.Is(err) || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}
