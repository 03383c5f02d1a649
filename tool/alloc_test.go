package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

type wanted struct {
	Path  string   `json:"path"`
	Limit int      `json:"limit,omitempty"`
	Tags  []string `json:"tags,omitempty"`
}

func TestACallOfAnOrdinaryToolTakesFewAllocations(t *testing.T) {
	read := tool.Func("read", "", func(_ context.Context, in wanted) (string, error) { return in.Path, nil })
	set, err := tool.NewSet(read)
	if err != nil {
		t.Fatal(err)
	}
	call := message.ToolCall{ID: "c", Name: "read", Input: `{"path":"a.txt","limit":3}`}
	if n := testing.AllocsPerRun(100, func() {
		if got, err := set.Check(call); err != nil || got != call.Input {
			t.Fatal(got, err)
		}
	}); n > 1 {
		t.Errorf("to check an input takes %.0f allocations, want at most 1", n)
	}
	ctx := tool.WithCall(t.Context(), tool.Call{ID: "c", Name: "read"})
	input := json.RawMessage(call.Input)
	if n := testing.AllocsPerRun(100, func() {
		if got, err := read.Execute(ctx, input); err != nil || got.Content != "a.txt" {
			t.Fatal(got, err)
		}
	}); n > 6 { // encoding/json's, but for the input itself
		t.Errorf("to run it takes %.0f allocations, want at most 6", n)
	}
}

// What is accepted at a sight is what the long way accepts, and as it gives it.
func TestAnInputIsCheckedAlikeAtASightAndTheLongWay(t *testing.T) {
	aliased := tool.Func("aliased", "", func(_ context.Context, in wanted) (string, error) { return in.Path, nil }, tool.WithAliases(map[string]string{"file": "path", "limit": "path"}))
	plain := tool.Func("plain", "", func(_ context.Context, in wanted) (string, error) { return in.Path, nil })
	set, err := tool.NewSet(aliased, plain)
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string][2]string{ // by the tool with aliases, and by the other one
		`{"path":"a"}`:                    {`{"path":"a"}`, `{"path":"a"}`},
		`{"file":"a"}`:                    {`{"path":"a"}`, ""},
		`{"Path":"a"}`:                    {`{"path":"a"}`, `{"path":"a"}`},
		`{"path":"a","path":"b"}`:         {"", ""},
		`{"path":"a","Path":"b"}`:         {"", ""},
		`{"path":"a","limit":3}`:          {"", `{"path":"a","limit":3}`},
		`{"path":"a","limit":3.0}`:        {"", `{"path":"a","limit":3.0}`},
		`{"path":"a","tags":["x","y"]}`:   {`{"path":"a","tags":["x","y"]}`, `{"path":"a","tags":["x","y"]}`},
		`{"path":"a","tags":["x",1]}`:     {"", ""},
		`{"path":"a","further":1}`:        {"", ""},
		`{"limit":3}`:                     {"", ""},
		` {"path":"a"}`:                   {` {"path":"a"}`, ` {"path":"a"}`},
		`{"path":"a"`:                     {"", ""},
		`["path"]`:                        {"", ""},
		`{"\u0070ath":"a"}`:               {`{"\u0070ath":"a"}`, `{"\u0070ath":"a"}`},
		`{"path":"a","tags":null}`:        {"", ""},
		`{"path":"a","limit":1e99999999}`: {"", ""},
	} {
		for i, name := range []string{"aliased", "plain"} {
			got, err := set.Check(message.ToolCall{ID: "c", Name: name, Input: input})
			if (err == nil) != (want[i] != "") || err == nil && got != want[i] {
				t.Errorf("%s %s: %q, %v, want %q", name, input, got, err, want[i])
			}
		}
	}
}
