package pawl_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

// fills is a model that makes four calls; the last one took 600 tokens of the window.
func fills() *scripted.Model {
	var turns []scripted.Turn
	for i, tokens := range []int{100, 200, 300, 600} {
		turn := scripted.Calls(scripted.Call{Name: "look", Input: fmt.Sprintf(`{"what":"%d"}`, i)})
		turn.Usage.Input = tokens
		turns = append(turns, turn)
	}
	return scripted.New(append(turns, scripted.Text("done"))...)
}

func TestARuntimeCompactsAsItsOptionsSay(t *testing.T) {
	look := tool.Func("look", "", func(_ context.Context, in struct{ What string }) (string, error) {
		return in.What + strings.Repeat(" and so on", 50), nil
	}, tool.ReadOnly)
	for name, c := range map[string]struct {
		compact   *loop.Compact
		at        int // CompactAt
		preserved int // of the one compaction; 0: there is none
	}{
		"on by default, far from the window's end": {nil, 160_000, 0},
		"off":                           {&loop.Compact{}, 0, 0},
		"a small window":                {&loop.Compact{Enabled: true, Window: 700, PreserveCount: 2}, 560, 2},
		"with a threshold":              {&loop.Compact{Enabled: true, Window: 1100, Threshold: 0.5, PreserveCount: 4}, 550, 4},
		"a threshold that is not met":   {&loop.Compact{Enabled: true, Window: 5000, Threshold: 0.9, PreserveCount: 2}, 4500, 0},
		"the number kept by default, 5": {&loop.Compact{Enabled: true, Window: 1100, Threshold: 0.5}, 550, 6},
	} {
		rt := open(t, pawl.Options{Model: fills(), Tools: []tool.Tool{look}, Compact: c.compact})
		res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"})
		if err != nil || res.Text() != "done" {
			t.Fatalf("%s: %v %v", name, res, err)
		}
		at, compacted := -1, []journal.Compacted(nil)
		for e, err := range rt.Journal().Read(t.Context(), "s", 0) {
			if err != nil {
				t.Fatal(err)
			}
			switch d := e.Data.(type) {
			case journal.Prepared:
				at = d.CompactAt
			case journal.Compacted:
				compacted = append(compacted, d)
			}
		}
		if at != c.at {
			t.Errorf("%s: it compacts at %d tokens, want %d", name, at, c.at)
		}
		switch {
		case c.preserved == 0 && len(compacted) > 0:
			t.Errorf("%s: it was compacted: %+v", name, compacted)
		case c.preserved > 0 && (len(compacted) != 1 || compacted[0].Error != "" || compacted[0].Preserved != c.preserved || compacted[0].TokensAfter >= compacted[0].TokensBefore):
			t.Errorf("%s: want one compaction that keeps %d messages: %+v", name, c.preserved, compacted)
		}
	}
	if _, err := pawl.New(t.Context(), pawl.Options{Model: fills(), NoProject: true, NoBuiltins: true, Journal: journal.Memory(), Compact: &loop.Compact{Enabled: true, Threshold: 1.5}}); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}
