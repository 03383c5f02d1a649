package eval

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	if os.Getenv(innerEnv) != "" { // the program of a test that looks at tests from outside
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// said is a How without a model: it says what f does.
func said(f func(c Case) string) How {
	return func(_ context.Context, c Case) (Sample, error) {
		return Sample{Turn: Turn{Prompt: message.User(c.Prompt), Answer: f(c), Cost: new(int64)}}, nil
	}
}

func looping(t testing.TB, m model.Model, tools ...tool.Tool) *loop.Engine {
	t.Helper()
	eng, err := loop.New(loop.Config{Model: m, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	return eng
}

// desk is an agent that looks orders up.
func desk(t testing.TB, turns ...scripted.Turn) How {
	return Agent(nil, agent.Agent{ID: "desk"}, looping(t, scripted.New(turns...), lookup))
}

var lookup = tool.Func("lookup", "Look an order up.", func(_ context.Context, in struct {
	Order int `json:"order"`
},
) (string, error) {
	return "shipped", nil
}, tool.ReadOnly)

func asks(id, name, input string) scripted.Turn {
	return scripted.Calls(scripted.Call{ID: id, Name: name, Input: input})
}

// done runs a suite and fails the test where it can't be run.
func done(t testing.TB, s Suite) *Report {
	t.Helper()
	if s.Name == "" {
		s.Name = "s"
	}
	r, err := Do(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// one scores a sample.
func one(t testing.TB, by Scorer, s Sample) Score {
	t.Helper()
	if err := checked(by); err != nil {
		t.Fatal(err)
	}
	if len(s.Turns) == 0 {
		s.Turns = []Turn{s.Turn}
	}
	sc, err := score(context.Background(), by, s)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}
