package script_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

func TestALimitEndsTheRun(t *testing.T) {
	for source, want := range map[string]string{
		"while True: pass":                                        "test.star:1:1: more than 100000 steps",
		"x = [0] * 1000000":                                       "a value of more than 250000 bytes",
		"x = 'x' * 200000\nwhile True: x.upper()":                 "bytes made",
		"for i in range(1000000): board.append('c', 'x')":         "bytes made",
		"for i in range(100): board.set('x%d' % i, ['y'] * 1000)": "bytes made",
		"for i in range(2000): board.append('c', 'x')\nl = []\nfor i in range(2000): l.append(board.channel('c'))": "bytes made",
	} {
		w := newWorld()
		w.cfg.Limits = script.Limits{Steps: 100_000, Bytes: 1_000_000}
		if res := w.run(t, source); !errdefs.BudgetExceeded.Is(res.Err) || !strings.Contains(res.Err.Error(), want) {
			t.Errorf("%s: %v, want %s", source, res.Err, want)
		}
	}
	for _, source := range []string{
		"while True: emit('x')", "while True: tool('look', text = 'x' * 10000)", "while True: generate('x', channel = 'c')", "while True: ask('x?')",
		"def g(): parallel([len] * 1000)\ndef f(): parallel([g] * 1000)\nparallel([f] * 1000)",
	} {
		w := newWorld()
		w.cfg.Limits = script.Limits{Bytes: 2 << 20}
		w.host = engine.HostFuncs{AskUserFunc: func(context.Context, engine.Prompt) (engine.Reply, error) {
			return engine.Reply{Answered: journal.Answered{Approved: true}}, nil
		}}
		if res := w.run(t, source); !errdefs.BudgetExceeded.Is(res.Err) {
			t.Errorf("%s: effects are counted: %v", source, res.Err)
		}
	}
	if _, err := script.New(script.Config{Source: "x = 1", Limits: script.Limits{Steps: -1}}); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
	if _, err := script.New(script.Config{Source: strings.Repeat("#", 200<<10)}); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}

func TestTimeIsALimitToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.cfg.Limits.Time = time.Minute
		w.tools = append(w.tools, tool.Func("sleep", "", func(ctx context.Context, _ struct{}) (string, error) {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return "slept", ctx.Err()
		}))
		began := time.Now()
		res := w.run(t, `tool("sleep", check = False)`+"\n"+`tool("print", text = "x")`)
		if res.Status != agent.StatusFailed || !errdefs.BudgetExceeded.Is(res.Err) || !strings.Contains(res.Err.Error(), "longer than 1m0s") || time.Since(began) != time.Minute || len(w.done) > 0 {
			t.Error(res.Status, res.Err, time.Since(began), w.done)
		}
		w.store = journal.Memory()
		w.cfg.Limits.Steps = 1 << 40
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := w.engine(t, `tool("sleep")`).Execute(ctx, engine.Run{ID: "r", Log: opened(t, w.store)}, engine.NoopHost{}, engine.NewBoard(engine.Snapshot{}))
		if !errors.Is(err, context.Canceled) || errdefs.BudgetExceeded.Is(err) {
			t.Error("the caller's cancel is one:", err)
		}
	})
}

func TestACancelEndsALoop(t *testing.T) {
	w := newWorld()
	w.cfg.Limits.Steps = 1 << 40
	ctx, cancel := context.WithCancel(t.Context())
	w.tools = append(w.tools, tool.Func("cancel", "", func(context.Context, struct{}) (string, error) { cancel(); return "cancelled", nil }))
	res, err := agent.Run(ctx, w.agent, w.engine(t, "emit('before')\ntool('cancel')\nwhile True: pass"), agent.Request{ContextID: "s", Message: message.User("Go.")}, w.options()...)
	if err != nil || res.Status != agent.StatusCanceled || !errors.Is(res.Err, context.Canceled) {
		t.Error(res, err)
	}
}

func opened(t *testing.T, store journal.Store) *journal.Log {
	t.Helper()
	log, err := journal.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Drive(t.Context(), "d", journal.Entry{Data: journal.SessionCreated{}}, journal.Entry{Run: "r", Data: journal.RunStarted{Agent: "a", Owner: "d", Attempt: 1}}); err != nil {
		t.Fatal(err)
	}
	return log
}

func TestAFileIsAProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hello.star")
	if _, err := script.Load(file, script.Config{}); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte("emit('hello')\nx = nope"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := script.Load(file, script.Config{}); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "hello.star:2:5: undefined: nope") {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte("emit('hello')"), 0o600); err != nil {
		t.Fatal(err)
	}
	eng, err := script.Load(file, script.Config{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, agent.Request{Message: message.User("Go.")})
	if err != nil || res.Text() != "hello" {
		t.Error(res, err)
	}
	if c := eng.Capabilities(); c.Name != "script" || c.Model != "" || !c.Resume || !strings.HasPrefix(c.Version, "sha256:") {
		t.Errorf("%+v", c)
	}
	eng, err = script.New(script.Config{Source: `generate("x")`})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, agent.Request{Message: message.User("Go.")}); err != nil || !errdefs.NotAvailable.Is(res.Err) {
		t.Error("without a model:", res, err)
	}
}
