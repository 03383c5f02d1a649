package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// attempt reads the one attempt on record.
func attempt(t *testing.T, store journal.Store) journal.Attempt {
	t.Helper()
	all, err := journal.Attempts(t.Context(), store, "s")
	if err != nil || len(all) != 1 {
		t.Fatal(err, all)
	}
	return all[0]
}

func TestReplayGivesWhatWasDoneAndNothingElse(t *testing.T) {
	store := journal.Memory()
	run := begun(t, store)
	var p performs
	all := []engine.Effect{engine.Stop{Step: 1}, use("a", readOnly), use("b", readOnly)}
	want, err := engine.Local(run, engine.NoopHost{}, p).Do(t.Context(), all...)
	if err != nil {
		t.Fatal(err)
	}
	r := engine.NewReplay(attempt(t, store))
	got, err := r.Do(t.Context(), all...)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "outcomes", want, got)
	if _, err := r.Do(t.Context(), engine.Stop{Step: 2}); !errdefs.Interrupted.Is(err) || r.End(nil, err) != nil {
		t.Errorf("behind the record: %v", err) // the process may have died here
	}
}

func TestReplayNamesTheFirstDifference(t *testing.T) {
	record := func(t *testing.T, end journal.Data) journal.Attempt {
		store := journal.Memory()
		run := begun(t, store)
		for _, e := range []engine.Effect{engine.Stop{Step: 1}, use("a", writes), engine.Scoped{Scope: "x", Effect: use("b", writes)}, engine.Ask{Asked: journal.Asked{ID: "q", Prompt: "sure?"}}} {
			if _, err := engine.Local(run, engine.NoopHost{}, performs(nil)).Do(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if end != nil {
			if err := run.Log.Append(t.Context(), journal.Entry{Run: "r", Data: end}); err != nil {
				t.Fatal(err)
			}
		}
		return attempt(t, store)
	}
	question := engine.Ask{Asked: journal.Asked{ID: "q", Prompt: "sure?"}}
	completed := journal.RunFinished{Status: "completed"}
	other := use("a", writes)
	other.Call.Input = `{"x":1}`
	type does func(ctx context.Context, s engine.Steps) error
	do := func(es ...engine.Effect) does {
		return func(ctx context.Context, s engine.Steps) error {
			for _, e := range es {
				if _, err := s.Do(ctx, e); err != nil {
					return err
				}
			}
			return nil
		}
	}
	branch := func(scope string, f does) does {
		return func(ctx context.Context, s engine.Steps) error {
			return s.Branch(ctx, engine.Branch{Scope: scope, Run: f})
		}
	}
	then := func(fs ...does) does {
		return func(ctx context.Context, s engine.Steps) error {
			for _, f := range fs {
				if err := f(ctx, s); err != nil {
					return err
				}
			}
			return nil
		}
	}
	whole := then(do(engine.Stop{Step: 1}, use("a", writes)), branch("x", do(use("b", writes))), do(question))
	fails := func(c *errdefs.Class) does {
		return func(context.Context, engine.Steps) error { return c.Errorf("broke") }
	}
	for name, c := range map[string]struct {
		end  journal.Data
		code does
		want string // "": no difference
	}{
		"the same":                           {completed, whole, ""},
		"a tool's concurrency is no matter":  {completed, then(do(engine.Stop{Step: 1}, use("a", readOnly)), branch("x", do(use("b", readOnly))), do(question)), ""},
		"another effect":                     {completed, do(engine.Stop{Step: 1}, use("c", writes)), `the code asks for tool/c, on record is tool/a (entry 4)`},
		"another input":                      {completed, do(engine.Stop{Step: 1}, other), `entry 3: the code asks for tool/a as tool.started {"call":{"id":"a","name":"t","input":"{\"x\":1}"}}, on record is tool.started {"call":{"id":"a","name":"t","input":"{}"}}`},
		"another question":                   {completed, then(do(engine.Stop{Step: 1}, use("a", writes)), branch("x", do(use("b", writes))), do(engine.Ask{Asked: journal.Asked{ID: "q", Prompt: "really?"}})), `entry 7: the code asks for ask/q as asked {"id":"q","prompt":"really?"}, on record is`},
		"another scope":                      {completed, then(do(engine.Stop{Step: 1}, use("a", writes)), branch("y", do(use("b", writes)))), `the code asks for y:tool/b, on record is x:tool/b`},
		"fewer":                              {completed, do(engine.Stop{Step: 1}), `entry 4: tool/a is on record, the code ends without it`},
		"fewer, when it died":                {nil, do(engine.Stop{Step: 1}), `entry 4: tool/a is on record, the code ends without it`},
		"more":                               {completed, then(whole, do(use("z", writes))), `the code asks for tool/z, then the run was completed`},
		"more, when it died":                 {nil, then(whole, do(use("z", writes))), ""},
		"more, when it failed":               {journal.RunFinished{Status: "failed", Class: "not_available"}, then(whole, do(use("z", writes))), ""},
		"it completes, it failed":            {journal.RunFinished{Status: "failed", Class: "internal"}, whole, `the code completes, then the run was failed`},
		"it completes, it was interrupted":   {journal.Parked{Cause: "user_input"}, whole, `the code completes, then the run was interrupted`},
		"it fails, it completed":             {completed, then(whole, fails(errdefs.NoProgress)), `the code ends with an error, then the run was completed: broke`},
		"it fails, it was interrupted":       {journal.Parked{Cause: "user_input"}, then(whole, fails(errdefs.NoProgress)), `the code ends with an error, then the run was interrupted: broke`},
		"it fails as it did":                 {journal.RunFinished{Status: "failed", Class: "no_progress"}, then(whole, fails(errdefs.NoProgress)), ""},
		"it fails in another way":            {journal.RunFinished{Status: "failed", Class: "no_progress", Error: "in circles"}, then(whole, fails(errdefs.Truncated)), `the code fails as broke, then the run was no_progress: in circles`},
		"it fails, nobody knows what it did": {nil, then(whole, fails(errdefs.Truncated)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			then := record(t, c.end)
			r := engine.NewReplay(then)
			err := c.code(t.Context(), r)
			err = r.End(engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: then.Last}}), err)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), "run r, attempt 1: "+c.want)):
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestReplayComparesTranscripts(t *testing.T) {
	store := journal.Memory()
	run := begun(t, store)
	hi := message.User("hi")
	if err := run.Log.Append(t.Context(), journal.Entry{Run: "r", Data: journal.Said{Message: hi}}); err != nil {
		t.Fatal(err)
	}
	reply := message.Assistant("hello")
	p := performs(func(context.Context, engine.Host, engine.Effect) (journal.Data, error) {
		return journal.ModelFinished{Message: reply}, nil
	})
	if _, err := engine.Local(run, engine.NoopHost{}, p).Do(t.Context(), engine.Generate{Step: 1, Model: "m", Messages: message.NewHistory(hi)}); err != nil {
		t.Fatal(err)
	}
	if err := run.Log.Append(t.Context(), journal.Entry{Run: "r", Data: journal.RunFinished{Status: "completed"}}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		asks, ends message.History
		want       string
	}{
		"the same, by another model": {message.NewHistory(message.User("hi")), message.NewHistory(hi, reply), ""},
		"a message changed":          {message.NewHistory(message.User("ho")), message.NewHistory(hi, reply), `message 1 is {"role":"user","parts":[{"type":"text","text":"ho"}]}, was {"role":"user","parts":[{"type":"text","text":"hi"}]}`},
		"a message is new":           {message.NewHistory(hi, hi), message.NewHistory(hi, reply), `message 2, {"role":"user"`},
		"a message is gone":          {message.History{}, message.NewHistory(hi, reply), `message 1, {"role":"user","parts":[{"type":"text","text":"hi"}]}, is missing now`},
		"it ends with another one":   {message.NewHistory(hi), message.NewHistory(hi, message.Assistant("bye")), `the code ends with another transcript: message 2 is {"role":"assistant"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := engine.NewReplay(attempt(t, store))
			_, err := r.Do(t.Context(), engine.Generate{Step: 1, Model: "n", Messages: c.asks})
			err = r.End(engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: c.ends}}), err)
			if c.want == "" && err != nil || c.want != "" && (!errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
