package agent_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// What a step costs in a file: each commit is a wait for the disk.
func TestAStepTakesFewCommits(t *testing.T) {
	for name, c := range map[string]struct {
		calls int
		opts  []tool.Option
		want  int // each step
	}{
		"one call":                 {1, nil, 3},                           // the reply; what was judged, and begins; what came of it, with the next model call
		"eight calls, one by one":  {8, nil, 17},                          // the reply; all that was judged, with the first begin; an end and a begin for each further one; the last end
		"eight calls, all at once": {8, []tool.Option{tool.ReadOnly}, 11}, // the reply; all that was judged, and begins; eight ends, when none of them meets another; the next model call
	} {
		t.Run(name, func(t *testing.T) {
			few, many := commitsOf(t, 2, c.calls, c.opts...), commitsOf(t, 12, c.calls, c.opts...)
			got := math.Round(float64(many-few) / 10) // where a run took long, its lease was put on, which is no step's
			if got > float64(c.want) || c.opts == nil && got != float64(c.want) {
				t.Errorf("a step takes %v commits, want %d", got, c.want)
			}
		})
	}
}

// commitsOf counts the transactions of a run of n steps with so many calls each.
func commitsOf(t *testing.T, n, calls int, opts ...tool.Option) (commits int) {
	t.Helper()
	var s script
	for i := range n {
		var cs []message.Part
		for k := range calls {
			cs = append(cs, call(fmt.Sprintf("c%d-%d", i, k), "x", `{}`))
		}
		s = append(s, message.New(message.RoleAssistant, cs...))
	}
	eng, err := loop.New(loop.Config{
		Model: append(s, message.Assistant("end")), Limits: loop.Limits{Steps: -1, Repeats: -1},
		Tools: []tool.Tool{tool.Func("x", "", func(context.Context, struct{}) (string, error) { return "ok", nil }, opts...)},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "journal.db")
	store, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store))
	if err != nil || res.Text() != "end" {
		t.Fatal(res, err)
	}
	log, err := os.ReadFile(path + "-wal")
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	// By the format of the write-ahead log there are, after 32 bytes, frames of a page with 24 bytes before it; the second word of a frame that ends a transaction is the size of the file, 0 in any other.
	frame := 24 + int(binary.BigEndian.Uint32(log[8:]))
	for at := 32; at+frame <= len(log); at += frame {
		if binary.BigEndian.Uint32(log[at+4:]) > 0 {
			commits++
		}
	}
	return commits
}
