package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// noting is a store that notes what each append has.
type noting struct {
	journal.Store
	mu      sync.Mutex
	appends []string
}

func (n *noting) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	var kinds []string
	for _, e := range entries {
		kind := strings.TrimPrefix(string(e.Data.Kind()), "tool.")
		if e.Key.Op == "judge" || e.Key.Op == "tool" {
			kind += " " + e.Key.ID
		}
		kinds = append(kinds, kind)
	}
	n.mu.Lock()
	n.appends = append(n.appends, strings.Join(kinds, ", "))
	n.mu.Unlock()
	return n.Store.Append(ctx, session, after, entries...)
}

// has reports what of entries, named by kind and key, a new process would find.
func has(t testing.TB, store journal.Store, entries ...string) (all bool) {
	t.Helper()
	var there []string
	for e, err := range store.Read(context.Background(), "s", 0) {
		if err != nil {
			t.Error(err)
		}
		there = append(there, string(e.Data.Kind())+" "+e.Key.String())
	}
	return !slices.ContainsFunc(entries, func(e string) bool { return !slices.Contains(there, e) })
}

// three calls of one tool.
func threeCalls() reply {
	return uses(call("c1", "x", `{}`), call("c2", "x", `{}`), call("c3", "x", `{}`))
}

// What a step of one call appends, and one of three.
func TestAStepTakesFewAppends(t *testing.T) {
	asks := hook.Middleware{Name: "asks", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if u.Call.ID == "c2" {
			return hook.Decision{Verdict: hook.Ask, Reason: "sure?"}, nil
		}
		return hook.Decision{}, nil
	}}
	refuses := hook.Middleware{Name: "refuses", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Denied("no"), nil }}
	for name, c := range map[string]struct {
		reply reply
		hooks []hook.Middleware
		opts  []tool.Option
		want  []string // between the replies
	}{
		"one call":                   {uses(call("c1", "x", `{}`)), nil, nil, []string{"judged c1, started c1", "finished c1, model.started"}},
		"three calls, one by one":    {threeCalls(), nil, nil, []string{"judged c1, judged c2, judged c3, started c1", "finished c1", "started c2", "finished c2", "started c3", "finished c3, model.started"}},
		"three calls, side by side":  {threeCalls(), nil, []tool.Option{tool.ReadOnly}, []string{"judged c1, judged c2, judged c3, started c1, started c2, started c3", "finished", "model.started"}},
		"one of three is asked for":  {threeCalls(), []hook.Middleware{asks}, nil, []string{"judged c1, judged c2, judged c3, started c1", "finished c1", "started c3", "finished c3, asked", "answered", "started c2", "finished c2, model.started"}},
		"three calls, none of which": {threeCalls(), []hook.Middleware{refuses}, nil, []string{"judged c1, judged c2, judged c3, model.started"}},
	} {
		t.Run(name, func(t *testing.T) {
			store := &noting{Store: journal.Memory()}
			host := &listener{ask: func(p engine.Prompt) (engine.Reply, error) {
				return engine.Reply{Answered: journal.Answered{ID: p.ID, Approved: true}}, nil
			}}
			d := play{cfg: loop.Config{Model: plays(c.reply, says("done")), Tools: []tool.Tool{constant("x", c.opts...)}, Hooks: c.hooks}, host: host, store: store}.do(t)
			want := slices.Concat([]string{"run.started, said", "prepared", "model.started", "model.finished"}, c.want, []string{"model.finished", "stopped"})
			got := store.appends
			if c.opts != nil { // which of them is done first is chance, and which meet
				for i, a := range got {
					if strings.HasPrefix(a, "finished ") {
						got[i] = "finished"
					}
				}
				got = slices.Compact(got)
			}
			if diff := cmp.Diff(want, got); diff != "" || d.err != nil {
				t.Errorf("%v, appends (-want +got):\n%s", d.err, diff)
			}
		})
	}
}

// At each thing that acts, a new process would find what came before it.
func TestWhateverActsFindsWhatCameBeforeItOnRecord(t *testing.T) {
	store := journal.Memory()
	acted := map[string]int{}
	acts := func(who string, entries ...string) {
		acted[who]++
		if !has(t, store, entries...) {
			t.Errorf("%s acts, and not all of %q is on record", who, entries)
		}
	}
	hooks := hook.Middleware{
		Name: "asks about c2",
		PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			acts("a hook before "+u.Call.ID, "model.finished model/1")
			if u.Call.ID == "c2" {
				return hook.Decision{Verdict: hook.Ask, Reason: "sure?"}, nil
			}
			return hook.Decision{}, nil
		},
		PostGeneration: func(context.Context, *hook.Generation) error {
			acts("the stop hook", "model.finished model/2")
			return nil
		},
	}
	x := tool.Func("x", "", func(ctx context.Context, _ none) (string, error) {
		switch id := tool.FromContext(ctx).ID; id {
		case "c1":
			acts(id, "tool.judged judge/c1", "tool.judged judge/c2", "tool.judged judge/c3", "tool.started tool/c1")
		case "c3":
			acts(id, "tool.finished tool/c1", "tool.started tool/c3")
		case "c2":
			acts(id, "tool.finished tool/c3", "answered ask/c2", "tool.started tool/c2")
		}
		return "ok", nil
	})
	host := &listener{ask: func(p engine.Prompt) (engine.Reply, error) {
		acts("a person", "tool.judged judge/c2", "tool.finished tool/c3", "asked ask/c2")
		return engine.Reply{Answered: journal.Answered{ID: p.ID, Approved: true}}, nil
	}}
	second := func(ctx context.Context, req model.Request) (*model.Response, error) {
		acts("the model", "tool.finished tool/c2", "model.started model/2")
		return says("done")(ctx, req)
	}
	host.on = func(e event.Event) {
		if e.Data != nil && e.Key != (journal.Key{}) {
			acts("a listener", string(e.Data.Kind())+" "+e.Key.String())
		}
	}
	d := play{cfg: loop.Config{Model: plays(threeCalls(), second), Tools: []tool.Tool{x}, Hooks: []hook.Middleware{hooks}}, host: host, store: store}.do(t)
	want := map[string]int{"a hook before c1": 1, "a hook before c2": 1, "a hook before c3": 1, "c1": 1, "c2": 1, "c3": 1, "a person": 1, "the model": 1, "the stop hook": 1, "a listener": 17}
	if diff := cmp.Diff(want, acted); diff != "" || d.err != nil {
		t.Error(d.err, diff)
	}
	var seqs []int64
	for _, e := range host.events {
		if e.Data != nil {
			seqs = append(seqs, e.Seq)
		}
	}
	if !slices.IsSorted(seqs) || len(slices.Compact(seqs)) != 17 {
		t.Error("entries are told as", seqs)
	}
}

// Who hears of an outcome can still stop what comes next, though it is on record together with that.
func TestWhoHearsOfAnOutcomeCanStopWhatFollows(t *testing.T) {
	for name, c := range map[string]struct {
		at     string // the first entry of this kind, or this kind and call
		cancel bool   // else an interrupt
		ran    int    // of two calls, by then
		want   string // their results, when the run is over
	}{
		"a cancel when a call is judged":     {"tool.judged", true, 0, "[c1 " + notRun + "] [c2 " + notRun + "]"},
		"a cancel when a call has begun":     {"tool.started", true, 0, "[c1 " + notRun + "] [c2 " + notRun + "]"},
		"a cancel when a call is done":       {"tool.finished", true, 1, "[c1 x 1] [c2 " + notRun + "]"},
		"a cancel when the last is done":     {"tool.finished c2", true, 2, "[c1 x 1] [c2 x 2]"},
		"an interrupt when there is a reply": {"model.finished", false, 0, "[c1 x 1] [c2 x 2]"},
		"an interrupt when a call is judged": {"tool.judged", false, 1, "[c1 x 1] [c2 x 2]"}, // that one has begun
		"an interrupt when a call is done":   {"tool.finished", false, 1, "[c1 x 1] [c2 x 2]"},
		"an interrupt when the last is done": {"tool.finished c2", false, 2, "[c1 x 1] [c2 x 2]"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			host := &interrupting{interrupts: make(chan engine.Interrupt, 1)}
			stop := sync.OnceFunc(func() {
				if c.cancel {
					cancel()
					return
				}
				host.interrupts <- engine.Interrupt{Cause: engine.CauseUserInput}
			})
			host.on = func(e event.Event) {
				if e.Data != nil && (c.at == string(e.Data.Kind()) || c.at == string(e.Data.Kind())+" "+e.Key.ID) {
					stop()
				}
			}
			n := 0
			m := plays(uses(call("c1", "x", `{}`), call("c2", "x", `{}`)), says("done"))
			d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{counted("x", &n)}}, ctx: ctx, host: host}.do(t)
			if n != c.ran || m.calls() != 1 {
				t.Errorf("%d calls ran and the model was asked %d times: want %d and 1", n, m.calls(), c.ran)
			}
			if c.cancel && !errors.Is(d.err, context.Canceled) || !c.cancel && !errdefs.Interrupted.Is(d.err) {
				t.Error(d.err)
			}
			if !c.cancel {
				d.goOn(t)
				if n != 2 || m.calls() != 2 {
					t.Errorf("in the end %d calls ran and the model was asked %d times, want 2 and 2", n, m.calls())
				}
			}
			if got := d.since()[1]; got != "tool:  "+c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// goOn resumes the run, as another process would.
func (d *played) goOn(t *testing.T) {
	t.Helper()
	log, err := journal.Open(t.Context(), d.store, "s")
	if err != nil {
		t.Fatal(err)
	}
	d.log, d.run.Log = log, log
	if d.execute(t, t.Context(), engine.NoopHost{}); d.err != nil {
		t.Fatal(d.err)
	}
}

// interrupting is a listener that interrupts.
type interrupting struct {
	listener
	interrupts chan engine.Interrupt
}

func (i *interrupting) Interrupts() <-chan engine.Interrupt { return i.interrupts }

// A process that dies in any append has done nothing that the next one does again.
func TestARunWhoseJournalEndsAtAnyAppendIsResumed(t *testing.T) {
	var ran map[string]int
	x := tool.Func("x", "", func(ctx context.Context, _ map[string]any) (string, error) {
		ran[tool.FromContext(ctx).ID]++
		return "ok", nil
	})
	for dead := 2; ; dead++ {
		ran = map[string]int{}
		store := &mortal{Store: journal.Memory(), left: dead}
		p := play{cfg: loop.Config{Model: &stub{replies: times(10, byLength)}, Tools: []tool.Tool{x}}, store: store}
		d := played{store: store, run: begun(t, store, engine.Run{})}
		var err error
		if d.eng, err = loop.New(p.cfg); err != nil {
			t.Fatal(err)
		}
		board := engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: d.run.Log.State().Seed}})
		if _, err := d.eng.Execute(t.Context(), d.run, engine.NoopHost{}, board); err == nil {
			if dead < 15 {
				t.Errorf("the run took %d appends", dead)
			}
			return
		} else if !errors.Is(err, errDied) {
			t.Fatalf("append %d: %v", dead, err)
		}
		store.left = 1 << 30
		d.goOn(t)
		got := strings.Join(d.since(), "\n")
		for id, n := range ran {
			if n > 1 {
				t.Errorf("append %d: %s ran %d times\n%s", dead, id, n, got)
			}
		}
		if lost := strings.Count(got, "Whether it took effect is unknown"); lost > 1 || len(ran)+lost < 4 || !strings.HasSuffix(got, "done") {
			t.Errorf("append %d: %d calls ran, of %d the outcome is unknown\n%s", dead, len(ran), lost, got)
		}
	}
}

// Journals of before have each entry by itself: a run goes on behind any of them.
func TestARunThatEndsBehindAnyEntryIsResumed(t *testing.T) {
	ran := map[string]int{}
	x := tool.Func("x", "", func(ctx context.Context, _ map[string]any) (string, error) {
		ran[tool.FromContext(ctx).ID]++
		return "ok", nil
	})
	cfg := loop.Config{Model: &stub{replies: times(100, byLength)}, Tools: []tool.Tool{x}}
	whole := play{cfg: cfg}.do(t)
	var all []journal.Entry
	for e, err := range whole.store.Read(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	for n := 2; n < len(all); n++ {
		d := played{store: journal.Memory(), eng: whole.eng, run: whole.run}
		if err := d.store.Append(t.Context(), "s", 0, all[:n]...); err != nil {
			t.Fatal(err)
		}
		clear(ran)
		d.goOn(t)
		begun, lost := 0, 0
		for _, e := range all[:n] {
			switch e.Data.(type) {
			case journal.ToolStarted:
				begun, lost = begun+1, lost+1
			case journal.ToolFinished:
				lost--
			}
		}
		got := strings.Join(d.since(), "\n")
		if len(ran) != 4-begun || strings.Count(got, "Whether it took effect is unknown") != lost || !strings.HasSuffix(got, "done") {
			t.Errorf("behind entry %d, %s: %d calls ran, and %d had begun\n%s", n, all[n-1].Data.Kind(), len(ran), begun, got)
		}
	}
}

// byLength is a reply that goes by the request: two calls, two more, and the answer.
func byLength(_ context.Context, req model.Request) (*model.Response, error) {
	n := req.Messages.Len()
	if n > 4 {
		return says("done")(context.Background(), req)
	}
	return uses(call(fmt.Sprint("a", n), "x", `{}`), call(fmt.Sprint("b", n), "x", fmt.Sprintf(`{"n":%d}`, n)))(context.Background(), req)
}

// mortal is a store that takes so many appends, and then nothing any more.
type mortal struct {
	journal.Store
	left int
}

func (m *mortal) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	if m.left--; m.left <= 0 {
		return errDied
	}
	return m.Store.Append(ctx, session, after, entries...)
}

var errDied = errors.New("the process died")
