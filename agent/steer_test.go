package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

// says is a tool during whose first run somebody says something, in another process.
func says(t testing.TB, store journal.Store, texts ...string) tool.Tool {
	return tool.Func("wait", "", func(ctx context.Context, _ struct{}) (string, error) {
		for _, text := range texts {
			if err := agent.Steer(ctx, store, "s", message.User(text)); err != nil {
				t.Error(err)
			}
		}
		texts = nil
		return "waited", nil
	})
}

// talkative is a model during whose replies somebody says something.
type talkative struct {
	script
	before map[int]func() // by the number of the call
	n      *int
	asked  *[][]string
}

func (m talkative) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	*m.n++
	*m.asked = append(*m.asked, history(req.Messages))
	if f := m.before[*m.n]; f != nil {
		f()
	}
	return m.script.Complete(ctx, req)
}

func TestTheModelHearsSteeringBehindTheResultsOfTheStep(t *testing.T) {
	store := disk{journal.Memory()}
	m := talkative{script{message.Assistant("", call("c1", "wait", `{}`), call("c2", "wait", `{}`)), message.Assistant("end")}, nil, new(int), new([][]string)}
	res := run(t, agent.Agent{}, looping(t, m, says(t, store, "faster", "and better")), asking("s", "go"), agent.WithJournal(store))
	want := []string{"user: go", "assistant:  <c1 wait> <c2 wait>", "tool:  [c1 waited] [c2 waited]", "user: faster", "user: and better"}
	same(t, "what the model was asked", want, (*m.asked)[1])
	want = append(want, "assistant: end")
	same(t, "the board", want, history(res.LastBoard.Channel(engine.MainChannel)))
	same(t, "the fold", want, history(state(t, store, "s").Messages))
	if len(*m.asked) != 2 || len(state(t, store, "s").Steering) != 0 {
		t.Errorf("%d calls, %d not heard", len(*m.asked), len(state(t, store, "s").Steering))
	}
	if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, saying(t), "s", agent.WithJournal(store)); err != nil {
		t.Error(err)
	}
}

// What comes while the last reply is made is heard too; the hooks that judge the end wait for the real one, and steering is no reason to send the model
// back less often.
func TestARunThatWasAboutToEndHearsSteering(t *testing.T) {
	store := disk{journal.Memory()}
	stops := 0
	count := hook.Middleware{Name: "count", PostGeneration: func(_ context.Context, g *hook.Generation) error {
		if stops++; stops <= 3 {
			g.Again("sure?")
		}
		return nil
	}}
	m := talkative{script{message.Assistant("one"), message.Assistant("two"), message.Assistant("three"), message.Assistant("four"), message.Assistant("five"), message.Assistant("six")}, map[int]func(){}, new(int), new([][]string)}
	for _, n := range []int{1, 2} {
		m.before[n] = func() {
			if err := agent.Steer(t.Context(), store, "s", message.User(fmt.Sprint("wait ", n))); err != nil {
				t.Error(err)
			}
		}
	}
	res := run(t, agent.Agent{Hooks: []hook.Middleware{count}}, looping(t, m), asking("s", "go"), agent.WithJournal(store))
	want := []string{
		"user: go", "assistant: one", "user: wait 1", "assistant: two", "user: wait 2", "assistant: three", "user: sure?", "assistant: four",
		"user: sure?", "assistant: five", "user: sure?", "assistant: six",
	}
	same(t, "the board", want, history(res.LastBoard.Channel(engine.MainChannel)))
	same(t, "the fold", want, history(state(t, store, "s").Messages))
	if stops != 4 {
		t.Errorf("the hooks were asked at %d stops", stops)
	}
}

func TestSteeringIsHeardOnceWhateverDies(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n, killed := 1, true; killed; n++ {
			store := disk{journal.Memory()}
			d := &dying{Store: store, n: n, after: after}
			var w works
			said := 0
			wait := tool.Func("wait", "", func(ctx context.Context, _ struct{}) (string, error) {
				said++
				return "waited", agent.Steer(ctx, store, "s", message.User(fmt.Sprint("faster ", said)))
			}, tool.Idempotent)
			eng := looping(t, script{message.Assistant("", call("c1", "wait", `{}`)), message.Assistant("", call("c2", "pay", `{}`)), message.Assistant("end")}, wait, w.tool("pay"))
			_, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(d))
			if killed = d.dead; killed && err == nil {
				t.Fatal("it died, and says nothing")
			}
			if state(t, store, "s").Run != "" {
				resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store))
			} else if killed && state(t, store, "s").Seq <= 1 {
				continue // nothing had begun
			}
			text := strings.Join(history(state(t, store, "s").Messages), "\n")
			for i := 1; i <= said; i++ {
				if strings.Count(text, fmt.Sprint("user: faster ", i)) != 1 {
					t.Errorf("killed at append %d, after=%v: said %d times\n%s", n, after, said, text)
				}
			}
			if strings.Index(text, "user: faster 1") < strings.Index(text, "[c1 waited]") || !strings.HasSuffix(text, "assistant: end") {
				t.Errorf("killed at append %d, after=%v\n%s", n, after, text)
			}
		}
	}
}

func TestAnotherAttemptHearsWhatTheOneBeforeHeard(t *testing.T) {
	store := disk{journal.Memory()}
	once := agent.DeciderFunc(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
		return agent.FinalizeDecision{Revise: res.Attempts < 2}, nil
	})
	eng := looping(t, script{message.Assistant("", call("c1", "wait", `{}`)), message.Assistant("end")}, says(t, store, "faster"))
	run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store), agent.WithMaxRevise(2), agent.WithDecider(once))
	same(t, "the fold", []string{"user: go", "user: faster", "assistant:  <c1_1_1 wait>", "tool:  [c1_1_1 waited]", "assistant: end"}, history(state(t, store, "s").Messages))
}

func TestSteeringThatNobodyHeardWaitsForTheNextRun(t *testing.T) {
	store := disk{journal.Memory()}
	fails := looping(t, talkative{script{}, map[int]func(){1: func() {
		if err := agent.Steer(t.Context(), store, "s", message.User("stop it")); err != nil {
			t.Error(err)
		}
		panic("the model broke")
	}}, new(int), new([][]string)})
	if res := run(t, agent.Agent{}, fails, asking("s", "go"), agent.WithJournal(store)); res.Status != agent.StatusFailed {
		t.Fatal(res.Status)
	}
	if queued := state(t, store, "s").Steering; len(queued) != 1 {
		t.Fatal(queued)
	}
	run(t, agent.Agent{}, saying(t, "hello"), asking("s", "again"), agent.WithJournal(store))
	same(t, "the fold", []string{"user: go", "user: again", "user: stop it", "assistant: hello"}, history(state(t, store, "s").Messages))
}

func TestSteeringTakesARunAndAMessage(t *testing.T) {
	store := journal.Memory()
	ctx := t.Context()
	if err := agent.Steer(ctx, store, "s", message.User("hi")); !errdefs.Conflict.Is(err) {
		t.Error(err)
	}
	run(t, agent.Agent{}, saying(t, "hello"), asking("s", "go"), agent.WithJournal(store))
	n := len(read(t, store, "s"))
	for m, class := range map[message.Message]*errdefs.Class{
		message.User("hi"): errdefs.Conflict, message.User(" "): errdefs.Validation, message.Assistant("hi"): errdefs.Validation, {}: errdefs.Validation,
	} {
		if err := agent.Steer(ctx, store, "s", m); !class.Is(err) || len(read(t, store, "s")) != n {
			t.Errorf("%v: %v", m, err)
		}
	}
	if err := agent.Steer(ctx, store, "", message.User("hi")); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}

// Whoever does not know whether it was heard says it again, under the same name.
func TestSteeringUnderANameIsSaidOnce(t *testing.T) {
	store := journal.Memory()
	said := 0
	tools := tool.Func("look", "", func(ctx context.Context, _ struct{}) (string, error) {
		for range 3 {
			if err := agent.SteerOnce(ctx, store, "s", "m1", message.User("be quick")); err != nil {
				return "", err
			}
		}
		if err := agent.SteerOnce(ctx, store, "s", "m2", message.User("be quick")); err != nil {
			return "", err
		}
		return "seen", nil
	})
	m := scripted.New(scripted.Calls(scripted.Call{Name: "look"}), scripted.Text("done"))
	e, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{tools}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, e, agent.Request{ContextID: "s", Message: message.User("look")}, agent.WithJournal(store)); err != nil {
		t.Fatal(err)
	}
	for e, err := range store.Read(t.Context(), "s", 0) {
		if d, ok := e.Data.(journal.Said); ok && err == nil && d.Message.Text() == "be quick" {
			said++
		}
	}
	if said != 2 {
		t.Errorf("it was said %d times", said)
	}
	for _, name := range []string{"", "result/c1"} {
		if err := agent.SteerOnce(t.Context(), store, "s", name, message.User("hi")); !errdefs.Validation.Is(err) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := agent.SteerOnce(t.Context(), store, "s", "m3", message.User("hi")); !errdefs.Conflict.Is(err) {
		t.Error(err)
	}
}
