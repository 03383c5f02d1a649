package serve_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
)

// Whatever the engine is, what it puts into the conversation is the answer, once, at each door.
func TestEveryEngineAnswersAtEveryDoor(t *testing.T) {
	for name, c := range map[string]struct {
		of   func(model.Model) (engine.Engine, error)
		want string
	}{
		"a loop": {func(m model.Model) (engine.Engine, error) { return loop.New(loop.Config{Model: m}) }, "Foxes."},
		"a graph": {func(m model.Model) (engine.Engine, error) {
			return graph.Compile(graph.Definition{
				Name: "story", Entry: "write",
				Nodes: []graph.Node{{ID: "write", Type: "model", Config: map[string]any{"prompt": "Write.", "output": "draft"}}, {ID: "more", Type: "model", Config: map[string]any{"prompt": "More."}}},
				Edges: []graph.Edge{{From: "write", To: "more"}, {From: "more", To: graph.End}},
			}, graph.Kinds{Loop: loop.Config{Model: m}})
		}, "Foxes.\n\nAnd owls."},
		"a script": {func(m model.Model) (engine.Engine, error) {
			return script.New(script.Config{Name: "r.star", Source: `emit("It says: " + generate("Write.").text)`, Loop: loop.Config{Model: m}})
		}, "Foxes.\n\nIt says: Foxes."},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := c.of(scripted.New(scripted.Text("Foxes."), scripted.Text("And owls.")))
			if err != nil {
				t.Fatal(err)
			}
			store := journal.Memory()
			p := open(t, serve.Of(agent.Agent{ID: "a"}, e, store), serve.Options{})
			var got completion
			h := p.do(http.StatusOK, &got, "POST", "/v1/chat/completions", `{"model":"pawl","messages":[{"role":"user","content":"Go."}]}`)
			text, _, _, _, _ := p.chunks(`{"model":"pawl","messages":[{"role":"user","content":"Go."}],"stream":true}`)
			if got.said() != c.want || text != c.want {
				t.Errorf("it said %q, streamed %q, want %q", got.said(), text, c.want)
				for e, err := range store.Read(t.Context(), h.Get("X-Pawl-Session"), 0) {
					if err != nil {
						t.Fatal(err)
					}
					t.Logf("%s %s %+v", e.Key, e.Data.Kind(), e.Data)
				}
			}
			all := p.ui(input("t", "r", ""))
			var said []string
			for line := range strings.Lines(texts(all)) {
				_, s, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
				said = append(said, s)
			}
			if got := strings.Join(said, "\n\n"); got != c.want {
				t.Errorf("in AG-UI it said %q, want %q\n%s", got, c.want, lines(all))
			}
		})
	}
}
