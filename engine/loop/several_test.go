package loop_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// A reply with eight calls, of a tool that runs alone: what each of them takes beside the reply.
func TestACallAmongEightTakesFewAllocations(t *testing.T) {
	type input struct {
		Value string `json:"value"`
	}
	x := tool.Func("x", "", func(context.Context, input) (string, error) { return "ok", nil })
	const turns, calls = 40, 8
	cost := func(calls int) (pieces, size float64) {
		var rs []reply
		for i := range turns {
			var cs []message.ToolCall
			for k := range calls {
				cs = append(cs, call(fmt.Sprint("c", i, "-", k), "x", fmt.Sprintf(`{"value":"%d/%d"}`, i, k)))
			}
			rs = append(rs, uses(cs...))
		}
		m := &stub{replies: append(rs, says("done"))}
		eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{x}, Limits: loop.Limits{Steps: -1, Repeats: -1}})
		if err != nil {
			t.Fatal(err)
		}
		return allocated(func() {
			m.asked = m.asked[:0]
			if err := once(t, eng, engine.NoopHost{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	one, sizeOne := cost(1)
	many, size := cost(calls)
	each, bytes := (many-one)/turns/(calls-1), (size-sizeOne)/turns/(calls-1)
	t.Logf("a further call: %.1f allocations, %.0f bytes", each, bytes)
	if each > 21 || bytes > 4100 {
		t.Errorf("a further call takes %.1f allocations and %.0f bytes, want at most 21 and 4,100", each, bytes)
	}
}
