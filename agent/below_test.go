package agent_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// What is below a run when things go wrong above it, and the other way round.

// failsOnce is a store that fails at the first entry that matches.
type failsOnce struct {
	journal.Store
	mu    sync.Mutex
	match func(session string, e journal.Entry) bool
	done  bool
}

func (f *failsOnce) Append(ctx context.Context, s string, at int64, es ...journal.Entry) error {
	f.mu.Lock()
	for _, e := range es {
		if !f.done && f.match(s, e) {
			f.done = true
			f.mu.Unlock()
			return errdefs.NotAvailable.Errorf("the disk is full")
		}
	}
	f.mu.Unlock()
	return f.Store.Append(ctx, s, at, es...)
}

// sleeper is a child that sleeps until it is let go or cancelled; began is closed when it does.
func sleeper(t testing.TB) (kid engine.Engine, began, hold chan struct{}) {
	began, hold = make(chan struct{}), make(chan struct{})
	var once sync.Once
	slow := tool.Func("slow", "", func(ctx context.Context, _ struct{}) (string, error) {
		once.Do(func() { close(began) })
		select {
		case <-hold:
			return "slept", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}, tool.Idempotent)
	return looping(t, script{message.Assistant("", call("z", "slow", `{}`)), message.Assistant("I am done")}, slow), began, hold
}

func transcript(t testing.TB, s journal.Store, session string) string {
	return strings.Join(history(state(t, s, session).Messages), "\n")
}

// A run that stays open because its journal failed leaves what is below it open, too.
func TestARunThatIsLeftOpenLeavesItsTasksOpen(t *testing.T) {
	mem := disk{journal.Memory()}
	store := &failsOnce{Store: mem, match: func(s string, e journal.Entry) bool { return s == "s" && finished("c2")(e) }}
	kid, began, hold := sleeper(t)
	wait := tool.Func("wait", "", func(context.Context, struct{}) (string, error) { <-began; return "ok", nil }, tool.Idempotent)
	eng := looping(t, script{message.Assistant("", background("c1", "sleep")), message.Assistant("", call("c2", "wait", `{}`)), message.Assistant("end"), message.Assistant("end")}, task(t, kid), wait)
	res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store))
	if err == nil || res.Cause != engine.CauseJournal || state(t, mem, "s/c1").Run == "" {
		t.Fatalf("%v; the child is %q", err, state(t, mem, "s/c1").Status)
	}
	close(hold)
	resume(t, agent.Agent{}, eng, "s", agent.WithJournal(mem))
	if text := transcript(t, mem, "s"); strings.Count(text, "I am done") != 1 || state(t, mem, "s/c1").Status != "completed" {
		t.Errorf("the child's work is lost:\n%s", text)
	}
}

// unleased is a store in which everybody may drive.
type unleased struct{ journal.Store }

func (unleased) Lease(context.Context, string, string, time.Time) error { return nil }

func TestAnOvertakenDriverLeavesTheTasksOfTheOtherAlone(t *testing.T) {
	waits, mem := make(chan struct{}), disk{journal.Memory()}
	var mu sync.Mutex
	slept, waited := 0, 0
	began, release, inSecond, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	slow := tool.Func("slow", "", func(ctx context.Context, _ struct{}) (string, error) {
		mu.Lock()
		slept++
		first := slept == 1
		mu.Unlock()
		if first { // the stale driver's
			close(began)
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "slept", nil
	}, tool.Idempotent)
	kid := looping(t, script{message.Assistant("", call("z", "slow", `{}`)), message.Assistant("I am done")}, slow)
	wait := tool.Func("wait", "", func(context.Context, struct{}) (string, error) {
		<-began
		mu.Lock()
		waited++
		first := waited == 1
		mu.Unlock()
		if first {
			close(waits)
			<-release
		} else {
			close(inSecond)
			<-goOn
		}
		return "ok", nil
	}, tool.Idempotent)
	eng := looping(t, script{message.Assistant("", background("c1", "sleep")), message.Assistant("", call("c2", "wait", `{}`)), message.Assistant("end"), message.Assistant("end")}, task(t, kid), wait)
	stale, over := make(chan error), make(chan error)
	go func() {
		_, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(unleased{mem}))
		stale <- err
	}()
	<-began
	<-waits
	go func() {
		_, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(unleased{mem}))
		over <- err
	}()
	select {
	case <-inSecond:
	case err := <-over:
		t.Fatal("it did not go on: ", err)
	}
	close(release)
	if err := <-stale; !errdefs.Conflict.Is(err) {
		t.Error(err)
	}
	close(goOn)
	if err := <-over; err != nil {
		t.Error(err)
	}
	if text := transcript(t, mem, "s"); strings.Count(text, "I am done") != 1 {
		t.Errorf("the stale driver closed the task:\n%s", text)
	}
}

// A late answer to the approval of a call is none to the question whether to run it again.
func TestALateApprovalDoesNotRunACallAgain(t *testing.T) {
	mem := disk{journal.Memory()}
	var w works
	eng := looping(t, script{message.Assistant("", call("p1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay", tool.RequiresApproval))
	run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(mem))
	yes := journal.Answered{ID: "p1", Approved: true}
	if err := agent.Answer(t.Context(), mem, "s", yes); err != nil {
		t.Fatal(err)
	}
	d := &dyingAt{Store: mem, match: finished("p1")}
	_, _ = agent.Resume(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(d), agent.WithUnknown(engine.UnknownAsk))
	if res := resume(t, agent.Agent{}, eng, "s", agent.WithJournal(mem), agent.WithUnknown(engine.UnknownAsk)); len(res.Pending) != 1 || res.Pending[0].ID != "p1/again-1" {
		t.Fatal(res.Pending)
	}
	if err := agent.Answer(t.Context(), mem, "s", yes); !errdefs.Conflict.Is(err) {
		t.Errorf("a second answer to the first question: %v", err)
	}
}

// No call's id looks like the way to a question below another one.
func TestNoCallTakesTheNameOfAQuestionBelow(t *testing.T) {
	mem := disk{journal.Memory()}
	var w works
	kid := looping(t, script{message.Assistant("", call("p1", "pay", `{}`)), message.Assistant("paid it")}, w.tool("pay", tool.RequiresApproval))
	eng := looping(t, script{message.Assistant("", gives("c1", "pay"), call("c1/p1", "rob", `{}`)), message.Assistant("end")}, task(t, kid), w.tool("rob", tool.RequiresApproval))
	seen := map[string]bool{}
	for range 2 {
		res := run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(mem))
		for _, p := range res.Pending {
			if p.Call.Name == "rob" && p.ID != "c1_p1" && p.ID != "c1_p1_1_2" || seen[p.ID] {
				t.Errorf("%s waits as %s", p.Call.Name, p.ID)
			}
			seen[p.ID] = true
		}
	}
}

// A task whose session was taken away may have taken effect: it is not done again.
func TestATaskWhoseSessionIsGoneIsUnknown(t *testing.T) {
	begin := func(t *testing.T) (mem journal.Store, eng engine.Engine, w *works) {
		mem, w = disk{journal.Memory()}, &works{}
		kid := looping(t, script{message.Assistant("", call("p1", "pay", `{}`)), message.Assistant("", call("p2", "ask", `{}`)), message.Assistant("paid")}, w.tool("pay"), w.tool("ask", tool.RequiresApproval))
		eng = looping(t, script{message.Assistant("", gives("c1", "pay")), message.Assistant("end")}, task(t, kid))
		run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(mem))
		return mem, eng, w
	}
	check := func(t *testing.T, mem journal.Store, eng engine.Engine, w *works) {
		res := resume(t, agent.Agent{}, eng, "s", agent.WithJournal(mem))
		if total, _ := w.total(); total != 1 || res.Text() != "end" || !strings.Contains(transcript(t, mem, "s"), "is gone: whether it took effect is unknown") {
			t.Errorf("paid %d times\n%s", total, transcript(t, mem, "s"))
		}
	}
	t.Run("deleted", func(t *testing.T) {
		mem, eng, w := begin(t)
		if err := mem.Delete(t.Context(), "s/c1"); err != nil {
			t.Fatal(err)
		}
		check(t, mem, eng, w)
	})
	t.Run("elsewhere", func(t *testing.T) {
		mem, eng, w := begin(t)
		var b bytes.Buffer
		if err := journal.Export(t.Context(), mem, "s", &b); err != nil {
			t.Fatal(err)
		}
		to := disk{journal.Memory()}
		if _, err := journal.Import(t.Context(), to, &b, ""); err != nil {
			t.Fatal(err)
		}
		check(t, to, eng, w)
	})
}

func TestPruneTakesTasksWithTheirParentsAndNotBefore(t *testing.T) {
	mem := disk{journal.Memory()}
	var w works
	kid := looping(t, script{message.Assistant("", call("p1", "pay", `{}`)), message.Assistant("paid")}, w.tool("pay"))
	eng := looping(t, script{message.Assistant("", gives("c1", "pay")), message.Assistant("end")}, task(t, kid))
	_, _ = agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(&dyingAt{Store: mem, match: finished("c1")}))
	all := journal.Retention{Before: time.Now().Add(time.Hour)}
	if gone, err := journal.Prune(t.Context(), mem, all); err != nil || len(gone) != 0 {
		t.Fatalf("the parent is unfinished: %v %v", gone, err)
	}
	resume(t, agent.Agent{}, eng, "s", agent.WithJournal(mem))
	if total, _ := w.total(); total != 1 {
		t.Errorf("paid %d times", total)
	}
	gone, err := journal.Prune(t.Context(), mem, all)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "pruned", []string{"s", "s/c1"}, gone)
	for i, err := range mem.Sessions(t.Context(), journal.Query{}) {
		t.Errorf("left: %s (%v)", i.Session, err)
	}
}

func TestACallInTheBackgroundThatIgnoresItsCancelIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, began := make(chan struct{}), make(chan struct{})
		deaf := tool.Func("deaf", "", func(ctx context.Context, _ struct{}) (tool.Result, error) {
			if !tool.FromContext(ctx).Background {
				return tool.Result{Content: "later", Background: true}, nil
			}
			close(began)
			<-hold
			return tool.Result{Content: "late"}, nil
		}, tool.Idempotent)
		eng := looping(t, script{message.Assistant("", call("c1", "deaf", `{}`)), message.Assistant("waiting"), message.Assistant("end")}, deaf)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			if res, err := agent.Run(ctx, agent.Agent{ID: "a"}, eng, asking("s", "go")); err != nil || res.Status != agent.StatusCanceled {
				t.Errorf("%+v %v", res, err)
			}
		}()
		<-began
		at := time.Now()
		cancel()
		<-over
		if waited := time.Since(at); waited > 6*time.Second {
			t.Errorf("it took %v", waited)
		}
		close(hold)
	})
}

// Hooks, gates and files are the same in the background.
func TestABackgroundIsNoWayAroundGates(t *testing.T) {
	for name, in := range map[string]func(id, prompt string) message.ToolCall{"foreground": gives, "background": background} {
		t.Run(name, func(t *testing.T) {
			redact := hook.Middleware{Name: "redact", PostToolUse: func(_ context.Context, u *hook.ToolUse) error {
				u.Result.Content = strings.ReplaceAll(u.Result.Content, "SECRET", "***")
				return nil
			}}
			mem := disk{journal.Memory()}
			eng := looping(t, script{message.Assistant("", in("c1", "tell")), message.Assistant("end"), message.Assistant("end")}, task(t, saying(t, "the SECRET")))
			run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(mem), agent.WithHooks(redact))
			if text := transcript(t, mem, "s"); strings.Contains(text, "SECRET") || !strings.Contains(text, "the ***") {
				t.Error(text)
			}

			mem = disk{journal.Memory()}
			var w works
			kid := looping(t, script{message.Assistant("", call("p1", "ask", `{}`)), message.Assistant("", call("p2", "pay", `{}`)), message.Assistant("paid")}, w.tool("pay"), w.tool("ask", tool.RequiresApproval))
			eng = looping(t, script{message.Assistant("", in("c1", "pay")), message.Assistant("end"), message.Assistant("end")}, task(t, kid))
			run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(mem))
			if err := agent.Answer(t.Context(), mem, "s", journal.Answered{ID: "c1/p1", Approved: true}); err != nil {
				t.Fatal(err)
			}
			resume(t, agent.Agent{Tools: []string{"other"}}, eng, "s", agent.WithJournal(mem))
			if total, _ := w.total(); total != 0 {
				t.Errorf("a task that is not admitted any more ran %d calls", total)
			}
		})
	}
	shot := tool.Func("shot", "", func(ctx context.Context, _ struct{}) (tool.Result, error) {
		if !tool.FromContext(ctx).Background {
			return tool.Result{Content: "later", Background: true}, nil
		}
		return tool.Result{Content: "here", Files: []message.File{{MIME: "image/png", Data: "xxx"}}}, nil
	}, tool.Idempotent)
	mem := disk{journal.Memory()}
	run(t, agent.Agent{}, looping(t, script{message.Assistant("", call("c1", "shot", "{}")), message.Assistant("end"), message.Assistant("end")}, shot), asking("s", "go"), agent.WithJournal(mem))
	files := 0
	for _, m := range state(t, mem, "s").Messages.All() {
		for range message.Of[message.File](m) {
			files++
		}
	}
	if files != 1 {
		t.Errorf("%d files reach the model", files)
	}
}

// A task in the background begins with the step that gave it, also when that step waits for a person.
func TestATaskInTheBackgroundBeginsAtOnce(t *testing.T) {
	mem := disk{journal.Memory()}
	var w works
	eng := looping(t, script{message.Assistant("", background("c1", "sleep"), call("c2", "pay", "{}")), message.Assistant("end"), message.Assistant("end")}, task(t, saying(t, "I am done")), w.tool("pay", tool.RequiresApproval))
	if res := run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(mem)); res.Status != agent.StatusInterrupted || state(t, mem, "s/c1").Seq == 0 {
		t.Errorf("%s; the child has %d entries", res.Status, state(t, mem, "s/c1").Seq)
	}
}

func TestABudgetRemembersFinishedTasksOfAResumedRun(t *testing.T) {
	mem := disk{journal.Memory()}
	var w works
	kid := looping(t, script{message.Assistant("", call("p1", "pay", `{}`)), message.Assistant("", call("p2", "pay", `{}`)), message.Assistant("paid")}, w.tool("pay"))
	eng := looping(t, script{message.Assistant("", gives("c1", "pay")), message.Assistant("", call("c2", "ask", `{}`)), message.Assistant("end")}, task(t, kid), w.tool("ask", tool.RequiresApproval))
	b := &engine.Budget{Calls: 5}
	run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(mem), agent.WithBudget(b))
	if left := b.Left().Calls; left != 0 {
		t.Fatal(left)
	}
	if err := agent.Answer(t.Context(), mem, "s", journal.Answered{ID: "c2", Approved: true}); err != nil {
		t.Fatal(err)
	}
	b = &engine.Budget{Calls: 5}
	if res := resume(t, agent.Agent{}, eng, "s", agent.WithJournal(mem), agent.WithBudget(b)); !errdefs.BudgetExceeded.Is(res.Err) {
		t.Errorf("a sixth call was made: %s, %d left", res.Status, b.Left().Calls)
	}
}

func TestAnotherAttemptDoesNotHearResultsOfTheOneBefore(t *testing.T) {
	asked := new([][]string)
	once := agent.DeciderFunc(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
		return agent.FinalizeDecision{Revise: res.Attempts < 2}, nil
	})
	m := talkative{script{message.Assistant("", background("c1", "sleep")), message.Assistant("waiting"), message.Assistant("end")}, nil, new(int), asked}
	run(t, agent.Agent{}, looping(t, m, task(t, saying(t, "I am done"))), asking("s", "go"), agent.WithJournal(disk{journal.Memory()}), agent.WithMaxRevise(2), agent.WithDecider(once))
	seconds := 0
	for _, a := range *asked {
		if len(a) == 1 && a[0] == "user: go" {
			seconds++
		}
	}
	if seconds != 2 {
		t.Errorf("the second attempt began with something else: %q", *asked)
	}
}

func TestReplayLeavesDecidersAndSeedersOut(t *testing.T) {
	mem := disk{journal.Memory()}
	eng := saying(t, "hi")
	_, _ = agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(mem), agent.WithDecider(agent.DeciderFunc(
		func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
			panic("boo")
		})))
	n := 0
	_, _ = agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("t", "go"), agent.WithJournal(mem), agent.WithMaxRevise(2), agent.WithDecider(decider(agent.FinalizeDecision{Revise: true})),
		agent.WithBoardSeed(func(_ context.Context, _ agent.RunInfo, r *agent.Request) (*engine.Board, error) {
			if n++; n > 1 {
				return nil, errors.New("no seed")
			}
			return agent.BoardWith(message.History{}, r), nil
		}))
	ask := looping(t, script{message.Assistant("", call("p1", "pay", `{}`)), message.Assistant("end")}, new(works).tool("pay", tool.RequiresApproval))
	run(t, agent.Agent{}, ask, asking("u", "go"), agent.WithJournal(mem), agent.WithAskTTL(time.Hour))
	for session, e := range map[string]engine.Engine{"s": eng, "t": eng, "u": ask} {
		if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, e, session, agent.WithJournal(mem)); err != nil {
			t.Errorf("%s: %v", session, err)
		}
	}
	for session, status := range map[string]string{"s": "failed", "t": "failed"} {
		if st := state(t, mem, session); st.Status != status {
			t.Errorf("%s is %s", session, st.Status)
		}
	}
}

func TestSteeringHasTextAndFiles(t *testing.T) {
	mem := disk{journal.Memory()}
	steers := tool.Func("steers", "", func(ctx context.Context, _ struct{}) (string, error) {
		return "ok", agent.Steer(ctx, mem, "s", message.New(message.RoleUser, message.Text{Text: "look"}, call("x9", "pay", "{}")))
	})
	run(t, agent.Agent{}, looping(t, script{message.Assistant("", call("c1", "steers", `{}`)), message.Assistant("end")}, steers), asking("s", "go"), agent.WithJournal(mem))
	if text := transcript(t, mem, "s"); !strings.Contains(text, "a user's message has text and files") || strings.Contains(text, "x9") {
		t.Error(text)
	}
}

func TestAVerdictThatNobodyKnowsRefuses(t *testing.T) {
	mem := disk{journal.Memory()}
	var w works
	eng := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
	d := &dyingAt{Store: mem, match: func(e journal.Entry) bool { return e.Data.Kind() == "tool.judged" }}
	_, _ = agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(d))
	st := state(t, mem, "s")
	if err := mem.Append(t.Context(), "s", st.Seq, journal.Entry{Run: st.Run, Key: journal.Key{Op: "judge", ID: "c1"}, Data: journal.ToolJudged{Call: "c1", Verdict: "quarantine"}}); err != nil {
		t.Fatal(err)
	}
	resume(t, agent.Agent{}, eng, "s", agent.WithJournal(mem))
	if n, _ := w.total(); n != 0 {
		t.Error("a call with the verdict quarantine ran")
	}
}

// hanging is a store whose leases are never given up: it does not answer.
type hanging struct {
	journal.Store
	hang chan struct{}
}

func (h *hanging) Lease(ctx context.Context, s, owner string, until time.Time) error {
	if until.IsZero() {
		select {
		case <-h.hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return h.Store.Lease(ctx, s, owner, until)
}

func TestAStoreThatDoesNotAnswerHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{Store: disk{journal.Memory()}, hang: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		if _, err := agent.Run(ctx, agent.Agent{ID: "a"}, looping(t, blocking{cancel}), asking("s", "go"), agent.WithJournal(h)); err != nil || time.Since(began) > 5*time.Second {
			t.Error(err, time.Since(began))
		}
	})
}

// Steering from another process is heard while a run waits at its end for the background.
func TestSteeringIsHeardWhileTheEndIsWaitedFor(t *testing.T) {
	waiting := make(chan struct{})
	mem := watching{disk{journal.Memory()}, func(session string, e journal.Entry) {
		if d, ok := e.Data.(journal.ModelFinished); ok && session == "s" && d.Message.Text() == "waiting" {
			close(waiting)
		}
	}}
	kid, began, hold := sleeper(t)
	var once sync.Once
	m := talkative{script{message.Assistant("", background("c1", "sleep")), message.Assistant("waiting"), message.Assistant("ok"), message.Assistant("end")}, map[int]func(){3: func() { once.Do(func() { close(hold) }) }}, new(int), new([][]string)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		run(t, agent.Agent{}, looping(t, m, task(t, kid)), asking("s", "go"), agent.WithJournal(mem))
	}()
	<-began
	<-waiting
	if err := agent.Steer(t.Context(), mem, "s", message.User("hurry")); err != nil {
		t.Fatal(err)
	}
	<-over // the third call, which lets the task end, is one that heard
	if text := transcript(t, mem, "s"); strings.Count(text, "user: hurry") != 1 || strings.Count(text, "I am done") != 1 {
		t.Error(text)
	}
}
