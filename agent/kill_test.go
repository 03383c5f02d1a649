package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// dying is a store whose process dies at append number n, before or after the append took effect.
type dying struct {
	journal.Store
	mu    sync.Mutex
	n     int
	after bool
	dead  bool
}

var errDead = errors.New("killed")

func (d *dying) Append(ctx context.Context, s string, at int64, es ...journal.Entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errDead
	}
	if d.n--; d.n == 0 {
		d.dead = true
		if d.after {
			_ = d.Store.Append(ctx, s, at, es...)
		}
		return errDead
	}
	return d.Store.Append(ctx, s, at, es...)
}

// disk is a store whose entries were written and read again, as by another process.
type disk struct{ journal.Store }

func (d disk) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range d.Store.Read(ctx, session, after) {
			var back journal.Entry
			if err == nil {
				var b []byte
				if b, err = e.MarshalJSON(); err == nil {
					err = back.UnmarshalJSON(b)
				}
			}
			if !yield(back, err) || err != nil {
				return
			}
		}
	}
}

// scene is what is killed: a model's replies, hooks and deciders around them.
type scene struct {
	replies  script
	hooks    []hook.Middleware
	deciders []agent.Decider
	pays     int // calls that write and are let through, over all attempts
}

func scenes() map[string]scene {
	deny := hook.Middleware{Name: "deny", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		switch u.Call.Name {
		case "ban":
			return hook.Denied("not allowed"), nil
		case "ask":
			return hook.Asking("may I?"), nil
		}
		return hook.Decision{}, nil
	}}
	inject := hook.Middleware{Name: "inject", PreGeneration: func(_ context.Context, g *hook.Generation) error {
		g.Messages = message.NewHistory(message.User("context")).Append(at(g.Messages)...)
		return nil
	}, PostGeneration: func(_ context.Context, g *hook.Generation) error {
		if g.Response.Message.Text() == "almost" {
			g.Again("are you sure?")
		}
		return nil
	}}
	revise := agent.DeciderFunc(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
		return agent.FinalizeDecision{Revise: res.Attempts < 2}, nil
	})
	end := message.Assistant("end")
	return map[string]scene{
		"sequential": {pays: 3, replies: script{
			message.Assistant("a", call("c1", "pay", `{}`), call("c2", "pay", `{}`)), message.Assistant("b", call("c3", "pay", `{}`)), end,
		}},
		"parallel": {pays: 1, replies: script{
			message.Assistant("a", call("c1", "look", `{}`), call("c2", "look", `{}`), call("c3", "pay", `{}`), call("c4", "look", `{}`), call("c5", "look", `{}`)), end,
		}},
		"idempotent": {replies: script{message.Assistant("a", call("c1", "put", `{}`), call("c2", "put", `{}`)), end}},
		"denied": {pays: 1, hooks: []hook.Middleware{deny}, replies: script{
			message.Assistant("a", call("c1", "ban", `{}`), call("c2", "pay", `{}`), call("c3", "pays", `{}`), call("c4", "pay", `{"x":1}`)), end,
		}},
		"asked": {pays: 4, hooks: []hook.Middleware{deny}, replies: script{
			message.Assistant("a", call("c1", "pay", `{}`), call("c2", "ask", `{}`), call("c3", "ask", `{}`)), message.Assistant("b", call("c4", "pay", `{}`)), end,
		}},
		"hooks": {pays: 1, hooks: []hook.Middleware{inject}, replies: script{
			message.Assistant("a", call("c1", "pay", `{}`)), message.Assistant("almost"), end,
		}},
		"revised": {pays: 4, deciders: []agent.Decider{revise}, replies: script{
			message.Assistant("a", call("c1", "pay", `{}`)), message.Assistant("b", call("c1", "pay", `{}`)), end,
		}},
	}
}

func at(h message.History) (ms []message.Message) {
	for _, m := range h.All() {
		ms = append(ms, m)
	}
	return ms
}

// stage is the world that a scene is played in: the tools keep their count over the deaths of the process.
type stage struct {
	scene
	pay, put, look works
	judged         map[string]int
	mu             sync.Mutex
	ag             agent.Agent
	eng            *loop.Engine
}

func (s scene) stage(t *testing.T) *stage {
	st := &stage{scene: s, judged: map[string]int{}}
	st.ag, st.eng = st.parts(t)
	return st
}

func (s *stage) parts(t *testing.T) (agent.Agent, *loop.Engine) {
	count := hook.Middleware{Name: "count", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.judged[u.Call.ID]++
		return hook.Decision{}, nil
	}}
	eng := looping(t, s.replies, s.pay.tool("pay"), s.pay.tool("ask"), s.pay.tool("ban"), s.put.tool("put", tool.Idempotent), s.look.tool("look", tool.ReadOnly))
	return agent.Agent{ID: "a", Hooks: append([]hook.Middleware{count}, s.hooks...), Deciders: s.deciders}, eng
}

// live is one life of the process: it starts the run, or goes on with it, until it is done, or the process dies.
func (s *stage) live(t *testing.T, store journal.Store) (res *agent.Result, err error) {
	with := []agent.RunOption{agent.WithJournal(store), agent.WithMaxRevise(2)}
	for range 5 {
		log, err := journal.Open(t.Context(), store, "s")
		if err != nil {
			return nil, err
		}
		switch st := log.State(); {
		case st.Seq <= 1:
			res, err = agent.Run(t.Context(), s.ag, s.eng, asking("s", "go"), with...)
		case len(st.Pending) > 0: // a person, somewhere
			if err := log.Answer(t.Context(), journal.Answered{ID: st.Pending[0].ID, Approved: true, By: "ada"}); err != nil {
				return nil, err
			}
			fallthrough
		default:
			res, err = agent.Resume(t.Context(), s.ag, s.eng, "s", with...)
		}
		if err != nil || res.Status != agent.StatusInterrupted {
			return res, err
		}
	}
	return nil, errors.New("it is asked again and again")
}

func TestAKillAtAnyAppendRepeatsNothingAndLosesNothing(t *testing.T) {
	points := 0
	for name, sc := range scenes() {
		t.Run(name, func(t *testing.T) {
			killed := true
			for n := 1; killed; n++ {
				for _, after := range []bool{false, true} {
					killed = kill(t, sc, 1, n, after, 0, false)
					if t.Failed() {
						t.Fatalf("killed at append %d, after=%v", n, after)
					}
					if !killed {
						break
					}
					points++
					for m := 1 + n%5; !testing.Short() && kill(t, sc, 2, n, after, m, m%2 == 0); m += 5 { // and once more while it is resumed
						if points++; t.Failed() {
							t.Fatalf("killed at append %d, after=%v, and at %d of the next life, after=%v", n, after, m, m%2 == 0)
						}
					}
				}
			}
		})
	}
	t.Logf("%d kill points", points)
}

// kill plays a scene that dies at append n, and in its second life at append m; then it is let live. It reports whether it died that often.
func kill(t *testing.T, sc scene, deaths, n int, after bool, m int, after2 bool) bool {
	t.Helper()
	s := sc.stage(t)
	store := disk{journal.Memory()}
	lives := []*dying{{Store: store, n: n, after: after}, {Store: store, n: m, after: after2}}[:deaths]
	for _, d := range lives {
		if _, err := s.live(t, d); !d.dead {
			return false
		} else if err == nil {
			t.Error("a run whose store died says nothing of it")
		}
	}
	res, err := s.live(t, store)
	if errdefs.NotFound.Is(err) { // it died behind its last append: nothing is left to do
		err = nil
	}
	if err != nil || res != nil && (res.Err != nil || res.Text() != "end") {
		t.Errorf("the run can't go on: %v %+v", err, res)
		return true
	}
	s.check(t, store, res, deaths)
	return true
}

func (s *stage) check(t *testing.T, store journal.Store, res *agent.Result, deaths int) {
	t.Helper()
	st := state(t, store, "s")
	if st.Status != "completed" || st.Run != "" {
		t.Errorf("the session is %q, its run %q", st.Status, st.Run)
	}
	if res != nil {
		same(t, "the fold and the board", history(res.LastBoard.Channel(engine.MainChannel)), history(st.Messages))
	}
	if _, err := agent.Replay(t.Context(), s.ag, s.eng, "s", agent.WithJournal(store)); err != nil {
		t.Error(err)
	}
	unknown := 0
	type fact struct {
		attempt int
		key     journal.Key
		intent  bool
	}
	attempt, seen := 0, map[fact]int{}
	for _, e := range read(t, store, "s") {
		switch d := e.Data.(type) {
		case journal.RunStarted:
			attempt = d.Attempt
		case journal.ToolFinished:
			if d.Outcome == journal.OutcomeUnknown {
				unknown++
			}
		}
		if e.Key != (journal.Key{}) {
			switch e.Data.(type) {
			case journal.ModelStarted, journal.ToolStarted, journal.Asked:
				seen[fact{attempt, e.Key, true}]++
			case journal.ModelFailed:
			default:
				seen[fact{attempt, e.Key, false}]++
			}
		}
	}
	for f, n := range seen {
		if n != 1 {
			t.Errorf("%+v is on record %d times", f, n)
		}
	}
	ran, most := s.pay.total()
	if most > 1 {
		t.Errorf("a tool that writes ran %d times for one call", most)
	}
	if unknown > deaths || ran > s.pays || ran+unknown < s.pays {
		t.Errorf("%d of %d calls ran, %d are unknown", ran, s.pays, unknown)
	}
	for id, n := range s.judged {
		if attempts := max(st.Attempt, 1); n > attempts+deaths {
			t.Errorf("the hooks were asked %d times about %s", n, id)
		}
	}
	if text := strings.Join(history(st.Messages), "\n"); strings.Contains(text, "Not run") {
		t.Errorf("a call was lost:\n%s", text)
	}
	if seenKeys := fmt.Sprint(s.look.runs); strings.Contains(seenKeys, "c1:") && len(s.look.runs) != 4 {
		t.Errorf("look ran with other keys: %s", seenKeys)
	}
}
