//go:build unix

package pawl_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// before is a hook that looks at each run before it begins, and knows how many there were.
func before(f func(run int, g *hook.Generation)) hook.Middleware {
	runs := 0
	return hook.Middleware{Name: "mine", PreGeneration: func(_ context.Context, g *hook.Generation) error {
		runs++
		f(runs, g)
		return nil
	}}
}

// A test with a scripted model fails when what a provider would have in its cache moves, and nobody has asked for that.
func TestAMovedPrefixFailsATest(t *testing.T) {
	early := func(g *hook.Generation, text string) {
		g.Messages = message.NewHistory(message.User(text)).Append(g.Messages.Slice(1, g.Messages.Len()).Messages()...)
	}
	tools := []tool.Tool{tool.Func("a", "", func(context.Context, struct{}) (string, error) { return "", nil }), tool.Func("b", "", func(context.Context, struct{}) (string, error) { return "", nil })}
	for name, c := range map[string]struct {
		change func(run int, o *pawl.Options)
		want   string
	}{
		"nothing moves": {func(int, *pawl.Options) {}, ""},
		"the time of day in the system prompt": {func(_ int, o *pawl.Options) {
			o.Middleware = []hook.Middleware{before(func(run int, g *hook.Generation) { g.System += fmt.Sprintf(" It is 10:0%d.", run) })}
		}, "the system prompt"},
		"a hook that rewrites an early message": {func(_ int, o *pawl.Options) {
			o.Middleware = []hook.Middleware{before(func(run int, g *hook.Generation) { early(g, fmt.Sprint("first said before run ", run)) })}
		}, "message 1 of 1"},
		"a hook that says so": {func(_ int, o *pawl.Options) {
			o.Middleware = []hook.Middleware{before(func(run int, g *hook.Generation) { g.Moved = true; early(g, fmt.Sprint("first said before run ", run)) })}
		}, ""},
		"a transcript that a hook shortens": {func(_ int, o *pawl.Options) {
			o.Middleware = []hook.Middleware{hook.Compaction(1, func(_ context.Context, h message.History) (message.History, error) {
				return h.Slice(h.Len()-1, h.Len()), nil
			}, nil)}
		}, ""},
		"what is injected changes": {func(_ int, o *pawl.Options) {
			n := 0
			o.Middleware = []hook.Middleware{{Name: "news", PreGeneration: func(ctx context.Context, g *hook.Generation) error {
				n++
				return hook.Inject("news", message.Text{Text: fmt.Sprint("news ", n)}).PreGeneration(ctx, g)
			}}}
		}, "message 1 of 2"},
		"tools in another order": {func(run int, o *pawl.Options) {
			if o.Tools = slices.Clone(tools); run == 2 {
				slices.Reverse(o.Tools)
			}
		}, "tool 1"},
	} {
		t.Run(name, func(t *testing.T) {
			o := pawl.Options{Model: scripted.New(scripted.Text("one"), scripted.Text("two")), Journal: journal.Memory()}
			c.change(1, &o)
			rt := open(t, o)
			if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(name, "tools") { // in another program
				c.change(2, &o)
				rt = open(t, o)
			}
			_, err := rt.Run(t.Context(), pawl.Request{Prompt: "go on", SessionID: "s"})
			if c.want == "" && err != nil || c.want != "" && (!errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "the beginning of the request moved") || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
}

// What a compaction takes away is meant to go, and behind it requests begin with the ones before them again.
func TestACompactionMovesThePrefixOnce(t *testing.T) {
	look := tool.Func("look", "", func(_ context.Context, in struct{ What string }) (string, error) {
		return in.What + strings.Repeat(" and so on", 50), nil
	}, tool.ReadOnly)
	compact := &loop.Compact{Enabled: true, Window: 700, PreserveCount: 2}
	rt := open(t, pawl.Options{Model: fills(), Tools: []tool.Tool{look}, Compact: compact})
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	log, err := journal.Open(t.Context(), rt.Journal(), "s")
	if err != nil || log.Moves("") != 1 {
		t.Errorf("%d moves, %v; want the one of the compaction", log.Moves(""), err)
	}
}

// A server that has a further tool changes what the next run offers: that is meant, too.
func TestToolsThatAreAddedMoveThePrefixOnPurpose(t *testing.T) {
	turns := []scripted.Turn{scripted.Calls(scripted.Call{Name: "mcp__notes__add"})}
	for range 200 {
		turns = append(turns, scripted.Text("done"))
	}
	var seen []string
	rt := open(t, pawl.Options{Model: toolsSeen{scripted.New(turns...), &seen}, MCP: []mcp.Server{{Name: "notes", URL: notes(t)}}, Permissions: permission.Config{Allow: []string{"mcp__notes"}}})
	eventually(t, "the tool that was added", func() bool {
		if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "a"}); err != nil {
			t.Fatal(err)
		}
		return slices.Contains(seen, "mcp__notes__added")
	})
}
