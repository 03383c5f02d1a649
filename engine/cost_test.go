package engine_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

// embeds has a checkpoint of its own, whatever it embeds.
type embeds struct {
	engine.HostFuncs
	steps *[]string
}

func (h embeds) Checkpoint(_ context.Context, c engine.Checkpoint) error {
	*h.steps = append(*h.steps, c.Step)
	return nil
}

func TestACheckpointReachesWhoeverKeepsIt(t *testing.T) {
	var got []string
	keeps := engine.HostFuncs{CheckpointFunc: func(_ context.Context, c engine.Checkpoint) error {
		got = append(got, c.Step)
		return nil
	}}
	for name, tc := range map[string]struct {
		host engine.Host
		want []string
	}{
		"a function":                   {keeps, []string{"tool/a"}},
		"behind another one":           {engine.HostFuncs{Inner: keeps}, []string{"tool/a"}},
		"a pointer":                    {&keeps, []string{"tool/a"}},
		"what embeds one":              {embeds{steps: &got}, []string{"tool/a"}},
		"behind what publishes only":   {engine.HostFuncs{Inner: embeds{steps: &got}, PublishFunc: func(context.Context, event.Event) error { return nil }}, []string{"tool/a"}},
		"a relay":                      {engine.Relay{Host: keeps, To: nobody{}}, []string{"tool/a"}},
		"nobody":                       {engine.HostFuncs{}, nil},
		"nobody, and nobody behind it": {engine.HostFuncs{Inner: engine.NoopHost{}}, nil},
	} {
		got = nil
		if _, err := engine.Local(begun(t, journal.Memory()), tc.host, performs(nil)).Do(t.Context(), use("a", writes)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// What is told of an outcome is told with the context of its own step, without its end.
func TestEachStepIsToldWithItsOwnContext(t *testing.T) {
	type key struct{}
	var got []any
	host := engine.HostFuncs{PublishFunc: func(ctx context.Context, e event.Event) error {
		if _, ok := e.Data.(journal.ToolFinished); ok {
			got = append(got, ctx.Value(key{}))
			if ctx.Err() != nil {
				t.Error("it has ended")
			}
		}
		return nil
	}}
	ends := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) { return fine(e), nil })
	steps := engine.Local(begun(t, journal.Memory()), host, ends)
	for i := range 4 {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, i/2))
		out, err := engine.Do[journal.ToolFinished](ctx, steps, use(strconv.Itoa(i), writes))
		if cancel(); err != nil || out.Call != strconv.Itoa(i) {
			t.Fatal(out, err)
		}
	}
	if want := []any{0, 0, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAnEffectTakesFewAllocations(t *testing.T) {
	var ids []string
	for i := range 300 {
		ids = append(ids, strconv.Itoa(i))
	}
	done := journal.Data(journal.ToolFinished{Outcome: journal.OutcomeOK})
	steps := engine.Local(begun(t, journal.Memory()), engine.NoopHost{}, performs(func(context.Context, engine.Host, engine.Effect) (journal.Data, error) { return done, nil }))
	if n := testing.AllocsPerRun(200, func() {
		if _, err := engine.Do[journal.ToolFinished](t.Context(), steps, use(ids[0], writes)); err != nil {
			t.Fatal(err)
		}
		ids = ids[1:]
	}); n > 6 { // the effect, its intent, what it needs, and now and then more room in the journal
		t.Errorf("%.0f allocations, want at most 6", n)
	}
}
