package pawl_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/cassette"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

func TestARunIsReplayedFromACassetteAndAChangeOfItIsFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.cassette")
	run := func(m model.Model, describe, prompt string) (string, error) {
		add := tool.Func("add", describe,
			func(_ context.Context, in struct{ A, B int }) (int, error) { return in.A + in.B, nil }, tool.ReadOnly)
		rt, err := pawl.New(t.Context(), pawl.Options{Model: m, Tools: []tool.Tool{add}, NoProject: true, Journal: journal.Memory()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rt.Close() }()
		r, err := rt.Run(t.Context(), pawl.Request{Prompt: prompt})
		if r == nil {
			return "", err
		}
		return r.Text(), err
	}
	r, err := cassette.Record(scripted.New(
		scripted.Turn{Text: "Let me see.", Calls: []scripted.Call{{Name: "add", Input: `{"A":2,"B":3}`}}},
		scripted.Text("It is five."),
	), file)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := run(r, "Add.", "How much is 2 + 3?"); text != "It is five." || err != nil {
		t.Fatal(text, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ describe, prompt, want string }{
		{"Add.", "How much is 2 + 3?", ""},
		{"Add two.", "How much is 2 + 3?", "tools"},
		{"Add.", "How much is 2 + 4?", "messages[0].parts[0].text"},
	} {
		p, err := cassette.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := run(p, c.describe, c.prompt)
		if c.want == "" && (text != "It is five." || err != nil || p.Done() != nil) {
			t.Errorf("%q %v %v", text, err, p.Done())
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), "differs from that of exchange 1 at "+c.want) || p.Done() == nil) {
			t.Errorf("%s %s: %v, want %s", c.describe, c.prompt, err, c.want)
		}
	}
}
