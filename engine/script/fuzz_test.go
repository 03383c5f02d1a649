package script_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/tool"
)

// FuzzProgram: no program panics, hangs, or takes more than its limits; and what one came to, it comes to again.
func FuzzProgram(f *testing.F) {
	for _, s := range []string{
		"emit('x')", "x = 'x' * 1000000000", "while True: pass", "parallel([lambda: emit('a'), lambda: emit('b')])", "tool('count', n = 1)", "generate('x', check = False)",
		"ask('x?', choices = ['a', 'b'])", "board.set('x', board.vars())", "x = [1]\nfor i in range(60): x = [x, x]\nboard.set('x', x)", "agent('a', 'b', check = False)",
		"def f(*a, **k): return parallel([f])\nf(*range(100000000))", "json.decode('[' * 1000)", "d = {}\nd[(1, 2)] = d\nstr(d)", "x = (1,)\nfor i in range(99): x = (x, x)\nhash(x)",
		"l = [1, 2]\nl[0] += l[-1]\nl += l\nemit(str(l[::-1]))", "fail('%s' % struct(a = {1: set([2])}))", "emit(sorted([3, 1], key = lambda x: -x)[0:1])", "tool('count', args = {'n': 1 << 400})",
		"def f():\n    def g(): return g\n    parallel([g])\nf()", "'{0!r:>9}{a}'.format(1, a = 2)", "x = 1 << 511\nx *= x\nx *= x", "getattr('x', 'join')(['a'] * 9)", "for a, (b, c) in [(1, (2, 3))]: emit(str(a + b + c))",
	} {
		f.Add(s)
	}
	count := tool.Func("count", "", func(_ context.Context, in struct {
		N int `json:"n"`
	},
	) (int, error) {
		return in.N + 1, nil
	}, tool.ReadOnly)
	f.Fuzz(func(t *testing.T, source string) {
		eng, err := script.New(script.Config{Source: source, Loop: loop.Config{Tools: []tool.Tool{count}}, Limits: script.Limits{Steps: 50_000, Bytes: 8 << 20}})
		if err != nil {
			if !errdefs.Validation.Is(err) {
				t.Error(err)
			}
			return
		}
		log, err := journal.Open(t.Context(), journal.Memory(), "s")
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Drive(t.Context(), "d", journal.Entry{Data: journal.SessionCreated{}}, journal.Entry{Run: "r", Data: journal.RunStarted{Agent: "a", Owner: "d", Attempt: 1}}); err != nil {
			t.Fatal(err)
		}
		host := engine.HostFuncs{AskUserFunc: func(context.Context, engine.Prompt) (engine.Reply, error) {
			return engine.Reply{Answered: journal.Answered{Approved: true, Text: "1"}}, nil
		}}
		execute := func() (string, []string) {
			began := time.Now()
			run := engine.Run{ID: "r", Session: "s", Attempt: 1, Log: log, Values: new(engine.Values)}
			board, err := eng.Execute(t.Context(), run, host, engine.NewBoard(engine.Snapshot{}))
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if err == nil {
				return "", told(board.Channel("main"))
			}
			if errdefs.Of(err) == nil || errdefs.Internal.Is(err) {
				t.Errorf("%v: %v", errdefs.Of(err), err)
			}
			return err.Error(), told(board.Channel("main"))
		}
		err1, said1 := execute()
		err2, said2 := execute()
		same(t, "the second time", err1, err2)
		same(t, "what it said the second time", said1, said2)
	})
}
