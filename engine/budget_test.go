package engine_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
)

func TestABudgetOfCallsIsKeptToTheCall(t *testing.T) {
	root := &engine.Budget{Calls: 10}
	tree := engine.Bounds{Budget: root}
	var began atomic.Int64
	var wg sync.WaitGroup
	for range 4 { // children with budgets of their own, at once
		child := tree.Child(engine.Bounds{Budget: &engine.Budget{Calls: 6}})
		wg.Go(func() {
			for range 100 {
				if err := child.Budget.Call(); err == nil {
					began.Add(1)
				} else if !errdefs.BudgetExceeded.Is(err) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := began.Load(); n != 10 {
		t.Errorf("%d calls began", n)
	}
	alone := engine.Bounds{Budget: root}.Child(engine.Bounds{Budget: &engine.Budget{Calls: 1}})
	if err := alone.Budget.Call(); err == nil {
		t.Error("the budget above is used up")
	}
	if left := alone.Budget.Left(); left.Calls != 0 || left.Tokens != -1 {
		t.Errorf("%+v", left)
	}
}

func TestARefusedCallIsNotCounted(t *testing.T) {
	root, own := &engine.Budget{Calls: 5}, &engine.Budget{Calls: 1}
	b := engine.Bounds{Budget: root}.Child(engine.Bounds{Budget: own}).Budget
	for i := range 3 {
		if err := b.Call(); (err == nil) != (i == 0) {
			t.Error(i, err)
		}
	}
	if left := root.Left(); left.Calls != 4 {
		t.Errorf("%+v", left)
	}
}

func TestABudgetOfTimeBeginsWithTheFirstRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &engine.Budget{Time: time.Hour}
		time.Sleep(2 * time.Hour)
		if err := b.Call(); err != nil || b.Left().Time != time.Hour {
			t.Error("before any run:", err, b.Left())
		}
		b.Enter("r", journal.Spent{})
		time.Sleep(59 * time.Minute)
		b.Enter("q", journal.Spent{})
		if err := b.Call(); err != nil || b.Left().Time != time.Minute {
			t.Error(err, b.Left())
		}
		time.Sleep(time.Minute)
		if err := b.Call(); !errdefs.BudgetExceeded.Is(err) || b.Left().Time != 0 {
			t.Error(err, b.Left())
		}
	})
}

func TestWhatIsLeftIsTheLeastOfAllAbove(t *testing.T) {
	root := &engine.Budget{Tokens: 100, CostMicros: 50}
	b := engine.Bounds{Budget: root}.Child(engine.Bounds{Budget: &engine.Budget{Tokens: 30}}).Budget
	b.Enter("r", journal.Spent{Steps: 2, Usage: model.Usage{Input: 5}, CostMicros: 7})
	b.Spend(model.Usage{Input: 10}, 60)
	if got, want := b.Left(), (engine.Left{Calls: -1, Tokens: 15, CostMicros: 0, Time: -1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := (*engine.Budget)(nil).Left(), (engine.Left{Calls: -1, Tokens: -1, CostMicros: -1, Time: -1}); got != want {
		t.Errorf("%+v", got)
	}
	counted := &engine.Budget{Calls: 3}
	counted.Enter("r", journal.Spent{Steps: 2}) // a resumed run brings what it has called
	if counted.Call() != nil || counted.Call() == nil {
		t.Error("a resumed run's calls count")
	}
}
