package engine_test

import (
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/tool"
)

func TestAToolsContextHasItsCallAndWhatItNeedsBelow(t *testing.T) {
	type key struct{}
	run := begun(t, journal.Memory())
	outer := tool.WithCall(t.Context(), tool.Call{ID: "outer"})
	in, b, call := engine.Inside{Run: run, Host: engine.NoopHost{}, Key: journal.Key{Op: "tool", ID: "c"}}, engine.Bounds{Depth: 3}, tool.Call{ID: "c", Name: "read", Key: "k"}
	ctx := engine.WithInside(outer, &in, &b, &call)
	call.ID, b.Depth, in.Key.ID = "another", 4, "another" // the context has its own

	got := tool.FromContext(ctx)
	if got.ID != "c" || got.Name != "read" || got.Key != "k" || got.Output == nil || got.Errors == nil || got.Commands == nil {
		t.Errorf("the call is %+v", got)
	}
	if at, ok := engine.InsideOf(ctx); !ok || at.Key.ID != "c" || at.Run.ID != run.ID {
		t.Errorf("%v: inside is %+v", ok, at.Key)
	}
	if bound, ok := engine.BoundsFrom(ctx); !ok || bound.Depth != 3 {
		t.Errorf("%v: bounds are %+v", ok, bound)
	}
	if ctx.Value(key{}) != nil || tool.FromContext(outer).ID != "outer" {
		t.Error("it answers for what is not its own")
	}
	none := engine.WithInside(t.Context(), &engine.Inside{}, &b, &call)
	if c := tool.FromContext(none); c.ID != "another" || c.Commands != nil {
		t.Errorf("without a journal the call is %+v", c)
	}
}

func TestAToolsContextIsOnePiece(t *testing.T) {
	run := begun(t, journal.Memory())
	in, b, call := engine.Inside{Run: run}, engine.Bounds{}, tool.Call{ID: "c"}
	if n := testing.AllocsPerRun(100, func() { engine.WithInside(t.Context(), &in, &b, &call) }); n > 1 {
		t.Errorf("%.0f allocations, want 1", n)
	}
}
