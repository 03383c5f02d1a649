package pawl_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
)

// An answer as a value: the type says how it has to look.
func ExampleGenerate() {
	type review struct {
		Stars int      `json:"stars" jsonschema:"from 1 to 5"`
		Why   []string `json:"why"`
	}
	m := scripted.New(scripted.Text(`{"stars": 4, "why": ["quick", "kind"]}`))
	r, err := pawl.Generate[review](context.Background(), m, "Rate this shop: …")
	fmt.Println(r.Stars, r.Why, err)
	// Output: 4 [quick kind] <nil>
}

func TestGenerateGivesValuesOfAnyType(t *testing.T) {
	ctx := t.Context()
	if s, err := pawl.Generate[string](ctx, scripted.New(scripted.Text(`"Ada"`)), "Who?"); s != "Ada" || err != nil {
		t.Error(s, err)
	}
	if l, err := pawl.Generate[[]int](ctx, scripted.New(scripted.Text(`[1, "two"]`), scripted.Text(`[1, 2]`)), "Count."); fmt.Sprint(l) != "[1 2]" || err != nil {
		t.Error(l, err)
	}
	if m, err := pawl.Generate[map[string]float64](ctx, scripted.New(scripted.Text(`{"a": 0.5}`)), "Weigh."); m["a"] != 0.5 || err != nil {
		t.Error(m, err)
	}
	type in struct {
		Name string `json:"name"`
	}
	if v, err := pawl.Generate[in](ctx, (&inTurn{}).calls("final_answer", `{"name":"Ada"}`), "Who?"); v.Name != "Ada" || err != nil { // a model without a native mode
		t.Error(v, err)
	}
}

func TestWhatGenerateFailsWith(t *testing.T) {
	type in struct {
		Name string `json:"name"`
	}
	bad := scripted.New(scripted.Text(`{}`), scripted.Text(`{}`), scripted.Text(`{}`), scripted.Text(`{"name":"too late"}`))
	if v, err := pawl.Generate[in](t.Context(), bad, "Who?"); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "missing property 'name'") || v.Name != "" {
		t.Error(v, err)
	}
	if _, err := pawl.Generate[func()](t.Context(), bad, "Who?"); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
	down := scripted.New(scripted.Turn{Error: &scripted.Failure{Status: 503}})
	if _, err := pawl.Generate[in](t.Context(), down, "Who?"); !errdefs.NotAvailable.Is(err) {
		t.Error(err)
	}
	if _, err := pawl.Generate[in](t.Context(), bad, "Who?", agent.WithBudget(&engine.Budget{Calls: 1})); !errdefs.BudgetExceeded.Is(err) {
		t.Error(err)
	}
	if _, err := pawl.Generate[in](t.Context(), nil, "Who?"); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pawl.Generate[in](ctx, bad, "Who?"); !errdefs.Canceled(err) {
		t.Error(err)
	}
	store := journal.Memory()
	if _, err := pawl.Generate[in](t.Context(), scripted.New(scripted.Text(`{"name":"Ada"}`)), "Who?", agent.WithJournal(store)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range store.Sessions(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d sessions are on record", n)
	}
}
