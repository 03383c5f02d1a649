package graph_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// Whatever a definition says, reading, compiling, drawing and running it come to an end, without a panic, and what is wrong has a class.
func FuzzDefinitionsNeverHangOrPanic(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("there are no seeds", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := graph.Parse("fuzz", data)
		if err != nil {
			if !errdefs.Validation.Is(err) {
				t.Error(err)
			}
			return
		}
		_, _ = d.Mermaid(), d.Dot()
		if d.Limits.Nodes == 0 || d.Limits.Nodes > 50 {
			d.Limits.Nodes = 50
		}
		k := graph.Kinds{Loop: talks().Loop, Absent: true}
		g, err := graph.Compile(d, k)
		if err != nil {
			if !errdefs.Validation.Is(err) {
				t.Error(err)
			}
			return
		}
		at := 0
		steps := engine.StepsFunc(func(ctx context.Context, effects ...engine.Effect) ([]journal.Data, error) {
			out := make([]journal.Data, len(effects))
			for i, e := range effects {
				if at++; at > 500 {
					return out, errdefs.BudgetExceeded.Errorf("that was enough")
				}
				switch engine.Bare(e).(type) {
				case engine.Ask:
					out[i] = journal.Answered{Approved: at%2 == 0}
				default:
					if e.Key().Op == "wait" {
						out[i] = journal.Timed{}
						continue
					}
					d, err := g.Perform(ctx, engine.Run{ID: "r"}, engine.NoopHost{}, e)
					if out[i] = d; err != nil {
						return out, err
					}
				}
			}
			return out, nil
		})
		board := engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: message.NewHistory(message.User("go"))}})
		_, err = g.Execute(t.Context(), engine.Run{ID: "r", Attempt: 1, Steps: steps}, engine.NoopHost{}, board)
		if err != nil && errdefs.Of(err) == nil && !errors.Is(err, context.Canceled) {
			t.Errorf("an error without a class: %v", err)
		}
		if p := new(errdefs.Panic); errors.As(err, &p) {
			t.Error(p, p.Stack)
		}
	})
}
