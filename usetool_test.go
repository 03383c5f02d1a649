package pawl_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
)

// A call that no model asked for passes hooks, permissions and schemas, is on record before it runs, and is replayed as any run is.
func TestAToolCallOfOnesOwnPassesTheGates(t *testing.T) {
	dir, store := t.TempDir(), journal.Memory()
	var judged []string
	rt, err := pawl.New(t.Context(), pawl.Options{
		Model: scripted.New(slices.Repeat([]scripted.Turn{scripted.Text("Hello.")}, 7)...), ProjectRoot: dir, Journal: store, Permissions: permission.Config{Mode: permission.ModeBypass, Deny: []string{"Write(no*)"}},
		Middleware: []hook.Middleware{{Name: "m", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			judged = append(judged, u.Tool.Name)
			return hook.Decision{}, nil
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close() }()
	use := func(name, input string) message.ToolResult {
		t.Helper()
		res, err := rt.UseTool(t.Context(), "s", name, json.RawMessage(input))
		if err != nil || !pawl.UsedTool(res) {
			t.Fatalf("%s %s: %v", name, input, err)
		}
		for r := range message.Of[message.ToolResult](res.Messages[len(res.Messages)-1]) {
			return r
		}
		t.Fatal("no result")
		return message.ToolResult{}
	}
	if r := use("Write", `{"file_path":"yes.txt","content":"x"}`); r.IsError {
		t.Error(r)
	}
	for _, c := range [][2]string{{"write", `{"file_path":"no.txt","content":"x"}`}, {"write", `{}`}, {"write", `[`}, {"nothing", `{}`}, {"write", ""}} {
		if r := use(c[0], c[1]); !r.IsError || r.Content == "" {
			t.Errorf("%q: %+v", c, r)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "no.txt")); err == nil {
		t.Error("a denied call ran")
	}
	if strings.Join(judged, " ") != "write write" {
		t.Error("the hook was asked about", judged)
	}
	if all, err := rt.Replay(t.Context(), "s"); err != nil || len(all) != 6 {
		t.Error(all, err)
	}
	if res, err := rt.Run(t.Context(), pawl.Request{Prompt: "hi", SessionID: "s"}); err != nil || res.Text() != "Hello." || pawl.UsedTool(res) {
		t.Error("the session is valid for a model:", err)
	}
	if _, err := rt.Resume(t.Context(), "s"); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
	if d := rt.Tools(); len(d) < 5 || &d[0] != &rt.Tools()[0] {
		t.Error(len(d))
	}
}
