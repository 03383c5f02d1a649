package graph_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

var update = flag.Bool("update", false, "write golden files")

// forks has two branches that both append to two channels, both write one var, and each a var of its own. c edits what stands on a channel.
func forks() map[string]graph.NodeFunc {
	writes := func(id string) graph.NodeFunc {
		return func(_ context.Context, b engine.Snapshot) (journal.Board, error) {
			return journal.Board{
				Append: map[string][]message.Message{"main": {message.Assistant("main of " + id)}, "aside": {message.Assistant("aside of " + id)}},
				Set:    journal.Vars{"both": id, "same": 1, id: "own", "seen": b.Vars["kept"]},
			}, nil
		}
	}
	return map[string]graph.NodeFunc{
		"begin": func(context.Context, engine.Snapshot) (journal.Board, error) {
			return journal.Board{
				Append: map[string][]message.Message{"aside": {message.User("one"), message.Assistant("two")}},
				Set:    journal.Vars{"kept": "as it was", "gone": 1},
			}, nil
		},
		"a": writes("a"),
		"b": writes("b"),
		"c": func(_ context.Context, b engine.Snapshot) (journal.Board, error) {
			return journal.Board{
				Edit:   map[string]message.Edit{"aside": {Head: []message.Message{message.User("in short")}, From: 1, To: b.Channels["aside"].Len(), Tail: []message.Message{message.Assistant("aside of c")}}},
				Delete: []string{"gone"},
			}, nil
		},
	}
}

// shown is a board as text.
func shown(b engine.Snapshot) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(b.Channels)) {
		fmt.Fprintf(&out, "%s:\n", name)
		for _, line := range said(b.Channels[name]) {
			fmt.Fprintf(&out, "  %s\n", line)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Vars)) {
		v, err := json.Marshal(b.Vars[name])
		if err != nil {
			v = []byte(err.Error())
		}
		fmt.Fprintf(&out, "%s = %s\n", name, v)
	}
	return out.String()
}

func TestAForkIsMergedByItsDifferencesUnderEachPolicy(t *testing.T) {
	var out strings.Builder
	for _, policy := range []graph.Merge{graph.LastWins, graph.Namespace, graph.ErrorOnConflict} {
		for _, order := range []string{"a b c", "c b a", "a c", "a b"} {
			d := graph.Definition{Name: "fork", Entry: "begin", Merge: policy, Nodes: []graph.Node{{ID: "begin", Type: "func", Config: map[string]any{"func": "begin"}}}}
			for id := range strings.FieldsSeq(order) {
				d.Nodes = append(d.Nodes, graph.Node{ID: id, Type: "func", Config: map[string]any{"func": id}})
				d.Edges = append(d.Edges, graph.Edge{From: "begin", To: id}, graph.Edge{From: id, To: graph.End})
			}
			g, err := graph.Compile(d, graph.Kinds{Funcs: forks()})
			if err != nil {
				t.Fatal(err)
			}
			store := journal.Memory()
			res := run(t, g, store, nil)
			fmt.Fprintf(&out, "== %s: %s\n", policy, order)
			if res.Err != nil {
				fmt.Fprintf(&out, "%v\n", res.Err)
			} else {
				out.WriteString(shown(res.LastBoard.Snapshot()))
			}
			same(t, "the transcript on record", said(res.LastBoard.Channel("main")), transcript(t, store))
			replayed(t, g, store)
		}
	}
	golden := filepath.Join("testdata", "merge.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	same(t, golden, string(want), out.String())
}

// Of a wave in which a node fails, the board has what the others did, under the names that the merge gives.
func TestTheBoardOfAFailedRunHasTheNamesOfItsMerge(t *testing.T) {
	k := graph.Kinds{Funcs: forks()}
	k.Funcs["fails"] = func(context.Context, engine.Snapshot) (journal.Board, error) {
		return journal.Board{Set: journal.Vars{"x": 1}}, errdefs.NotFound.Errorf("nothing there")
	}
	for policy, prefix := range map[graph.Merge]string{graph.LastWins: "", graph.Namespace: "a."} {
		g := compile(t, `
entry: begin
merge: `+string(policy)+`
nodes: [{id: begin, type: func, config: {func: begin}}, {id: a, type: func, config: {func: a}}, {id: bad, type: func, config: {func: fails}}]
edges: [{from: begin, to: a}, {from: begin, to: bad}, {from: a, to: __end__}, {from: bad, to: __end__}]
`, k)
		res := run(t, g, journal.Memory(), nil)
		if res.LastBoard.Var(prefix+"both") != "a" || len(res.LastBoard.Snapshot().Vars) != 6 {
			t.Errorf("%s: %v", policy, res.LastBoard.Snapshot().Vars)
		}
	}
}
