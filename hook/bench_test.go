package hook_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/message"
)

// judged judges a call with n hooks of no opinion.
func judges(n int) func() hook.Decision {
	var hooks []hook.Middleware
	for i := range n {
		hooks = append(hooks, hook.Middleware{Name: fmt.Sprint(i), PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			if u.Call.Name == "" {
				return hook.Denied("no name"), nil
			}
			return hook.Decision{}, nil
		}})
	}
	ctx, use := context.Background(), &hook.ToolUse{Call: message.ToolCall{ID: "c", Name: "bash", Input: `{"command":"ls"}`}}
	return func() hook.Decision { return hook.Judge(ctx, hooks, use, nil) }
}

func TestJudgingACallAllocatesOnceHoweverManyHooksThereAre(t *testing.T) {
	for n, most := range map[int]float64{0: 0, 1: 1, 10: 1, 100: 1} {
		f := judges(n)
		if got := testing.AllocsPerRun(100, func() { f() }); got > most {
			t.Errorf("%d hooks: %v allocations, at most %v", n, got, most)
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{0, 10} {
		b.Run(fmt.Sprintf("%d hooks", n), func(b *testing.B) {
			f := judges(n)
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}
