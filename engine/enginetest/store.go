package enginetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// CheckpointStore checks a store of checkpoints against the contract of [engine.CheckpointStore]. open gives an empty one for each case. Run it with -race.
func CheckpointStore(t *testing.T, open func(t *testing.T) engine.CheckpointStore) {
	t.Helper()
	for name, run := range map[string]func(t *testing.T, s engine.CheckpointStore){
		"what was never saved is not found": func(t *testing.T, s engine.CheckpointStore) {
			save(t, s, checkpoint("r", 1))
			for _, id := range []string{"", "other", "R", "r "} {
				if c, err := s.Load(t.Context(), id); !errdefs.NotFound.Is(err) || c != nil {
					t.Errorf("Load(%q) gave %+v and the error %v, want one of class not_found", id, c, err)
				}
			}
		},
		"everything comes back with its type": func(t *testing.T, s engine.CheckpointStore) {
			save(t, s, checkpoint("r", 7))
			alike(t, checkpoint("r", 7), load(t, s, "r"))
			bare := engine.Checkpoint{ExecID: "bare"}
			save(t, s, bare)
			alike(t, bare, load(t, s, "bare"))
		},
		"the last save wins": func(t *testing.T, s engine.CheckpointStore) {
			save(t, s, checkpoint("r", 1))
			save(t, s, checkpoint("q", 2))
			last := engine.Checkpoint{ExecID: "r", Step: "the last"} // nothing of the first shines through
			save(t, s, last)
			alike(t, last, load(t, s, "r"))
			alike(t, checkpoint("q", 2), load(t, s, "q"))
		},
		"what the caller does after a save does not reach the store": func(t *testing.T, s engine.CheckpointStore) {
			c := checkpoint("r", 1)
			save(t, s, c)
			spoil(c)
			alike(t, checkpoint("r", 1), load(t, s, "r"))
		},
		"each load is the caller's own": func(t *testing.T, s engine.CheckpointStore) {
			save(t, s, checkpoint("r", 1))
			c := load(t, s, "r")
			spoil(*c)
			c.Step = "spoilt"
			alike(t, checkpoint("r", 1), load(t, s, "r"))
		},
		"what can't be kept as it is is refused, and what was there stays": func(t *testing.T, s engine.CheckpointStore) {
			save(t, s, checkpoint("r", 1))
			if err := s.Save(t.Context(), engine.Checkpoint{Step: "nobody's"}); !errdefs.Validation.Is(err) {
				t.Errorf("a checkpoint without an ExecID: got %v, want an error of class validation", err)
			}
			around := map[string]any{}
			around["again"] = around
			for what, v := range map[string]any{"a value that contains itself": around, "a channel": make(chan int)} {
				c := checkpoint("r", 2)
				c.Board.Vars["bad"] = v
				if err := s.Save(t.Context(), c); err == nil {
					t.Errorf("%s was saved", what)
				}
			}
			alike(t, checkpoint("r", 1), load(t, s, "r"))
		},
		"nothing is saved once the context has ended": func(t *testing.T, s engine.CheckpointStore) {
			save(t, s, checkpoint("r", 1))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			soon(t, "Save", func() {
				if err := s.Save(ctx, checkpoint("r", 2)); !errdefs.Canceled(err) {
					t.Errorf("Save gave %v, want the context's error", err)
				}
			})
			soon(t, "Load", func() { _, _ = s.Load(ctx, "r") })
			alike(t, checkpoint("r", 1), load(t, s, "r"))
		},
		"saves and loads at the same time are whole": func(t *testing.T, s engine.CheckpointStore) {
			save(t, s, checkpoint("shared", 0))
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					for n := range 10 {
						own := fmt.Sprintf("r%d", i)
						if err := s.Save(t.Context(), checkpoint(own, n)); err != nil {
							t.Errorf("save: %v", err)
						}
						if err := s.Save(t.Context(), checkpoint("shared", 10*i+n)); err != nil {
							t.Errorf("save: %v", err)
						}
						for _, id := range []string{own, "shared"} {
							c, err := s.Load(t.Context(), id)
							if err != nil || c == nil || c.ExecID != id {
								t.Errorf("load of %s: %+v, %v", id, c, err)
								continue
							}
							if id == own && c.Iteration != n {
								t.Errorf("%s is at %d, saved was %d", id, c.Iteration, n)
							}
							alike(t, checkpoint(id, c.Iteration), c)
						}
					}
				})
			}
			wg.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

func save(t *testing.T, s engine.CheckpointStore, c engine.Checkpoint) {
	t.Helper()
	if err := s.Save(t.Context(), c); err != nil {
		t.Fatalf("save of %s: %v", c.ExecID, err)
	}
}

func load(t *testing.T, s engine.CheckpointStore, id string) *engine.Checkpoint {
	t.Helper()
	c, err := s.Load(t.Context(), id)
	if err != nil || c == nil {
		t.Fatalf("load of %s: %+v, %v", id, c, err)
	}
	return c
}

// checkpoint has something of everything, in memory of its own.
func checkpoint(id string, n int) engine.Checkpoint {
	return engine.Checkpoint{
		ExecID: id, Step: fmt.Sprintf("node %d", n), Iteration: n, Payload: json.RawMessage(`{"task":"t"}`), Attributes: map[string]string{"agent.id": "a"},
		Timestamp: time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC), OriginalStartedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		SpecVersion: "v1", Session: "s", Seq: int64(n) + 1<<60,
		Board: &engine.Snapshot{
			Channels: map[string]message.History{
				engine.MainChannel: message.NewHistory(
					message.User("<hello> & goodbye"), message.Assistant("", message.ToolCall{ID: "c", Name: "t", Input: `{"a":"<b>"}`}),
					message.Results(message.ToolResult{Call: "c", Name: "t", Content: "ok", Files: []message.File{{MIME: "image/png", Data: "\x00\xff"}}})),
				"notes": message.NewHistory(message.Assistant(fmt.Sprint("note ", n))),
			},
			Vars: map[string]any{
				"int": n, "int64": int64(n), "float": float64(n), "text": "x", "none": nil, "yes": true, "bytes": []byte{0, 255}, "time": time.Unix(1, 2).UTC(),
				"usage": model.Usage{Input: n, Output: 5}, "list": []any{1, 1.0, "a", []any{int64(2)}}, "texts": []string{"a"},
				"map": map[string]any{"deep": map[string]any{"n": n, "f": 2.0}}, "raw": json.RawMessage(`{"a": 1}`), "names": map[string]string{"a": "b"},
			},
		},
	}
}

// spoil writes to everything that a checkpoint refers to.
func spoil(c engine.Checkpoint) {
	c.Attributes["agent.id"] = "spoilt"
	c.Payload[2] = 'X'
	c.Board.Vars["map"].(map[string]any)["deep"].(map[string]any)["n"] = "spoilt"
	c.Board.Vars["list"].([]any)[0] = "spoilt"
	c.Board.Vars["bytes"].([]byte)[0] = 7
	c.Board.Vars["texts"].([]string)[0] = "spoilt"
	c.Board.Vars["new"] = "spoilt"
	delete(c.Board.Vars, "int")
	delete(c.Board.Channels, "notes")
	c.Board.Channels["new"] = message.NewHistory(message.User("spoilt"))
}

// alike fails unless two checkpoints are the same, types included. Messages count by what they say, times by the moment.
func alike(t *testing.T, want engine.Checkpoint, got *engine.Checkpoint) {
	t.Helper()
	g := *got
	if !want.Timestamp.Equal(g.Timestamp) || !want.OriginalStartedAt.Equal(g.OriginalStartedAt) {
		t.Errorf("the times are %v and %v, want %v and %v", g.Timestamp, g.OriginalStartedAt, want.Timestamp, want.OriginalStartedAt)
	}
	if !sameJSON(want.Payload, g.Payload) {
		t.Errorf("the payload is %s, want %s", g.Payload, want.Payload)
	}
	if (want.Board == nil) != (g.Board == nil) {
		t.Errorf("the board is %+v, want %+v", g.Board, want.Board)
	} else if want.Board != nil {
		likeBoards(t, *want.Board, *g.Board)
	}
	for _, c := range []*engine.Checkpoint{&want, &g} {
		c.Timestamp, c.OriginalStartedAt, c.Payload, c.Board = time.Time{}, time.Time{}, nil, nil
		if len(c.Attributes) == 0 {
			c.Attributes = nil
		}
	}
	if !reflect.DeepEqual(want, g) {
		t.Errorf("the checkpoint is %+v, want %+v", g, want)
	}
}

func likeBoards(t *testing.T, want, got engine.Snapshot) {
	t.Helper()
	for name, w := range want.Vars {
		g, ok := got.Vars[name]
		if at, is := w.(time.Time); is {
			if then, is := g.(time.Time); !is || !at.Equal(then) {
				t.Errorf("the var %s is %#v, want %v", name, g, at)
			}
		} else if !ok || !reflect.DeepEqual(w, g) {
			t.Errorf("the var %s is %#v, want %#v", name, g, w)
		}
	}
	if len(got.Vars) != len(want.Vars) || len(got.Channels) != len(want.Channels) {
		t.Errorf("there are %d vars and %d channels, want %d and %d", len(got.Vars), len(got.Channels), len(want.Vars), len(want.Channels))
	}
	for name, w := range want.Channels {
		g := got.Channels[name]
		if w.Len() != g.Len() {
			t.Errorf("the channel %s has %d messages, want %d", name, g.Len(), w.Len())
			continue
		}
		for i, m := range w.All() {
			if a, b := m.AppendJSON(nil), g.At(i).AppendJSON(nil); !bytes.Equal(a, b) {
				t.Errorf("message %d of the channel %s is %s, want %s", i+1, name, b, a)
			}
		}
	}
}

func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
