package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// dyingAt is a store whose process dies before the n-th entry that matches is appended.
type dyingAt struct {
	journal.Store
	mu    sync.Mutex
	match func(journal.Entry) bool
	n     int
	dead  bool
}

func (d *dyingAt) Append(ctx context.Context, s string, at int64, es ...journal.Entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range es {
		if d.match(e) {
			d.n--
			d.dead = d.dead || d.n < 0
		}
	}
	if d.dead {
		return errDead
	}
	return d.Store.Append(ctx, s, at, es...)
}

func finished(call string) func(journal.Entry) bool {
	return func(e journal.Entry) bool {
		d, ok := e.Data.(journal.ToolFinished)
		return ok && d.Call == call
	}
}

// payments is a session whose process died when c1 had run and its result was not on record; c2 comes after it.
type payments struct {
	store journal.Store
	eng   *loop.Engine
	ran   []string // call, key, note
}

func deadPayments(t *testing.T) *payments {
	t.Helper()
	p := &payments{store: disk{journal.Memory()}}
	type input struct {
		Note string `json:"note,omitempty"`
	}
	pay := tool.Func("pay", "", func(ctx context.Context, in input) (string, error) {
		c := tool.FromContext(ctx)
		p.ran = append(p.ran, strings.TrimSpace(c.ID+" "+c.Key+" "+in.Note))
		return "paid " + c.ID + in.Note, nil
	})
	p.eng = looping(t, script{message.Assistant("two", call("c1", "pay", `{}`), call("c2", "pay", `{}`)), message.Assistant("end")}, pay)
	p.die(t, finished("c1"), func(opts ...agent.RunOption) error {
		req := asking("s", "go")
		req.RunID = "r"
		_, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, p.eng, req, opts...)
		return err
	})
	return p
}

func (p *payments) die(t *testing.T, at func(journal.Entry) bool, live func(...agent.RunOption) error) {
	t.Helper()
	d := &dyingAt{Store: p.store, match: at}
	if err := live(agent.WithJournal(d)); err == nil || !d.dead {
		t.Fatalf("it did not die: %v", err)
	}
}

func (p *payments) resume(t *testing.T, policy engine.Unknown, more ...agent.RunOption) *agent.Result {
	t.Helper()
	return resume(t, agent.Agent{}, p.eng, "s", append([]agent.RunOption{agent.WithJournal(p.store), agent.WithUnknown(policy)}, more...)...)
}

func (p *payments) answer(t *testing.T, a journal.Answered) {
	t.Helper()
	log, err := journal.Open(t.Context(), p.store, "s")
	if err == nil {
		err = log.Answer(t.Context(), a)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const (
	firstRun  = "c1 r.1/tool/c1"
	secondRun = "c2 r.1/tool/c2"
	unknown   = "The process died while this call was under way. Whether it took effect is unknown: check before you repeat it."
)

// check compares what ran, and what the model was told of c1, with what was wanted; fold and board must agree.
func (p *payments) check(t *testing.T, res *agent.Result, told string, ran ...string) {
	t.Helper()
	same(t, "what ran", ran, p.ran)
	if res.Status != agent.StatusCompleted || res.Text() != "end" {
		t.Errorf("the run is %s: %v", res.Status, res.Err)
	}
	want := []string{"user: go", "assistant: two <c1 pay> <c2 pay>", "tool:  [c1 " + told + "] [c2 paid c2]", "assistant: end"}
	same(t, "the board", want, history(res.LastBoard.Channel(engine.MainChannel)))
	same(t, "the fold", want, history(state(t, p.store, "s").Messages))
}

func TestAnUnknownCallIsReportedOrRetried(t *testing.T) {
	for _, policy := range []engine.Unknown{"", engine.UnknownReport} {
		p := deadPayments(t)
		p.check(t, p.resume(t, policy), unknown, firstRun, secondRun)
	}
	p := deadPayments(t)
	p.check(t, p.resume(t, engine.UnknownRetry), "paid c1", firstRun, firstRun, secondRun)
}

func TestAPersonDecidesAboutAnUnknownCall(t *testing.T) {
	for name, c := range map[string]struct {
		answer journal.Answered
		told   string
		ran    []string
	}{
		"yes":               {journal.Answered{Approved: true}, "paid c1", []string{firstRun, firstRun, secondRun}},
		"yes, with an edit": {journal.Answered{Approved: true, Input: `{"note":"half"}`}, "[a person changed the input of this call to {\"note\":\"half\"}]\npaid c1half", []string{firstRun, firstRun + " half", secondRun}},
		"no":                {journal.Answered{}, unknown + " It was not run again.", []string{firstRun, secondRun}},
		"no, and why":       {journal.Answered{Text: "the bank has it"}, unknown + " It was not run again. A person says: the bank has it", []string{firstRun, secondRun}},
	} {
		c.answer.ID = "c1/again-1"
		t.Run(name+", later", func(t *testing.T) {
			p := deadPayments(t)
			res := p.resume(t, engine.UnknownAsk)
			if res.Status != agent.StatusInterrupted || res.Cause != engine.CauseAwaitingPerson || len(res.Pending) != 1 {
				t.Fatalf("the run is %s (%s), %d pending", res.Status, res.Cause, len(res.Pending))
			}
			q := res.Pending[0]
			same(t, "what is pending", journal.Asked{
				ID: "c1/again-1", Prompt: "the process died while pay was under way: whether it took effect is unknown; run it again?",
				Call: &journal.Called{ID: "c1", Name: "pay", Input: "{}"}, Unknown: true,
			}, q.Asked)
			same(t, "before the answer", []string{firstRun}, p.ran)
			p.answer(t, c.answer)
			p.check(t, p.resume(t, engine.UnknownReport), c.told, c.ran...) // the policy is on record
		})
		t.Run(name+", at once", func(t *testing.T) {
			p := deadPayments(t)
			p.check(t, p.resume(t, engine.UnknownAsk, agent.WithEngineHost(&there{reply: c.answer})), c.told, c.ran...)
		})
	}
}

// there is a host with a person who answers.
type there struct {
	engine.NoopHost
	reply journal.Answered
	asked int
}

func (h *there) AskUser(ctx context.Context, _ engine.Prompt) (engine.Reply, error) {
	if h.asked++; h.reply.ID == "" { // he went away
		<-ctx.Done()
		return engine.Reply{}, ctx.Err()
	}
	return engine.Reply{Answered: h.reply}, nil
}

func TestACallThatIsLostAgainIsAskedAboutAgain(t *testing.T) {
	p := deadPayments(t)
	yes := &there{reply: journal.Answered{ID: "c1", Approved: true}}
	for range 2 {
		p.die(t, func(e journal.Entry) bool {
			return finished("c1")(e) && e.Data.(journal.ToolFinished).Outcome == journal.OutcomeOK
		}, func(opts ...agent.RunOption) error {
			_, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, p.eng, "s", append(opts, agent.WithUnknown(engine.UnknownAsk), agent.WithEngineHost(yes))...)
			return err
		})
	}
	p.check(t, p.resume(t, engine.UnknownAsk, agent.WithEngineHost(yes)), "paid c1", firstRun, firstRun, firstRun, firstRun, secondRun)
	if yes.asked != 3 {
		t.Errorf("asked %d times", yes.asked)
	}
}

// An answer is on record, and the process dies before the call runs again: it is not asked about twice.
func TestAnAnswerAboutAnUnknownCallOutlivesTheProcess(t *testing.T) {
	p := deadPayments(t)
	p.resume(t, engine.UnknownAsk)
	p.answer(t, journal.Answered{ID: "c1/again-1", Approved: true})
	p.die(t, func(e journal.Entry) bool { return e.Data.Kind() == "tool.started" }, func(opts ...agent.RunOption) error {
		_, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, p.eng, "s", opts...)
		return err
	})
	p.check(t, p.resume(t, ""), "paid c1", firstRun, firstRun, secondRun)
}

// What a resume made of a call stands: the model may have gone on from it.
func TestTheFirstPolicyStands(t *testing.T) {
	p := deadPayments(t)
	p.die(t, func(e journal.Entry) bool { return e.Data.Kind() == "tool.started" }, func(opts ...agent.RunOption) error {
		_, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, p.eng, "s", opts...)
		return err
	})
	p.check(t, p.resume(t, engine.UnknownRetry), unknown, firstRun, secondRun)
}

// A run that ends while the question is open leaves the call as unknown, not as not run.
func TestAnOpenQuestionAboutAnUnknownCallIsLeftBehindAsUnknown(t *testing.T) {
	p := deadPayments(t)
	p.resume(t, engine.UnknownAsk)
	run(t, agent.Agent{}, saying(t, "", "", "ok"), asking("s", "never mind"), agent.WithJournal(p.store))
	same(t, "the fold", fmt.Sprintf("tool:  [c1 %s] [c2 Not run: the run ended before its turn came.]", unknown), history(state(t, p.store, "s").Messages)[2])
}

func TestAQuestionThatNobodyAnsweredInTimeIsANo(t *testing.T) {
	gate := hook.Middleware{Name: "gate", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Asking("may I?"), nil }}
	const late = "Not run: nobody approved it in time."
	begin := func(t *testing.T, host engine.Host) (store journal.Store, res *agent.Result, w *works) {
		w = &works{}
		eng := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
		store = disk{journal.Memory()}
		res = run(t, agent.Agent{Hooks: []hook.Middleware{gate}}, eng, asking("s", "go"),
			agent.WithJournal(store), agent.WithAskTTL(time.Hour), agent.WithEngineHost(host))
		return store, res, w
	}
	goOn := func(t *testing.T, store journal.Store, w *works) *agent.Result {
		eng := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
		return resume(t, agent.Agent{Hooks: []hook.Middleware{gate}}, eng, "s", agent.WithJournal(store))
	}
	answered := func(t *testing.T, store journal.Store) error {
		log, err := journal.Open(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		return log.Answer(t.Context(), journal.Answered{ID: "c1", Approved: true})
	}
	t.Run("by an answer in time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store, _, w := begin(t, engine.NoopHost{})
			time.Sleep(time.Hour - 1)
			if err := answered(t, store); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // what was answered in time holds
			if res := goOn(t, store, w); res.Text() != "end" || len(w.runs) != 1 {
				t.Errorf("%s, %v", res.Text(), w.runs)
			}
		})
	})
	t.Run("while nobody was there", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store, res, w := begin(t, engine.NoopHost{})
			if res.Status != agent.StatusInterrupted {
				t.Fatal(res.Status)
			}
			time.Sleep(time.Hour)
			if err := answered(t, store); !errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), "could be answered until") {
				t.Errorf("a late answer: %v", err)
			}
			if res := goOn(t, store, w); res.Text() != "end" || len(w.runs) != 0 {
				t.Errorf("%s, %v", res.Text(), w.runs)
			}
			same(t, "the model is told", "tool:  [c1 "+late+"]", history(state(t, store, "s").Messages)[2])
		})
	})
	t.Run("while somebody was asked", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store, res, w := begin(t, &there{})
			if res.Text() != "end" || len(w.runs) != 0 {
				t.Errorf("%s: %v, %v", res.Status, res.Err, w.runs)
			}
			same(t, "the model is told", "tool:  [c1 "+late+"]", history(state(t, store, "s").Messages)[2])
		})
	})
}

func TestPoliciesAreValidated(t *testing.T) {
	for _, o := range []agent.RunOption{agent.WithUnknown("rerun"), agent.WithAskTTL(-1)} {
		if _, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "x"), asking("s", "go"), o); !errdefs.Validation.Is(err) {
			t.Errorf("%v", err)
		}
	}
}

// What a person makes of a lost call is judged as the model's was. When it is refused, neither the model nor the record may say that the call was not run: it had begun.
func TestALostCallThatIsRefusedAsAPersonChangedItStaysUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		judge  func(*hook.ToolUse) hook.Decision
		told   string
		status agent.Status
	}{
		"denied":   {func(*hook.ToolUse) hook.Decision { return hook.Denied("not half") }, unknown + " It was not run again: not half", agent.StatusCompleted},
		"the end":  {func(u *hook.ToolUse) hook.Decision { u.EndRun("enough"); return hook.Decision{} }, unknown + " It was not run again: enough", agent.StatusAborted},
		"approved": {func(*hook.ToolUse) hook.Decision { return hook.Decision{} }, "[a person changed the input of this call to {\"note\":\"half\"}]\npaid c1half", agent.StatusCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			p := deadPayments(t)
			p.resume(t, engine.UnknownAsk)
			p.answer(t, journal.Answered{ID: "c1/again-1", Approved: true, Input: `{"note":"half"}`})
			judge := hook.Middleware{Name: "judge", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
				if strings.Contains(u.Call.Input, "half") {
					return c.judge(u), nil
				}
				return hook.Decision{}, nil
			}}
			res := p.resume(t, "", agent.WithHooks(judge))
			if res.Status != c.status || c.status == agent.StatusAborted && !errdefs.Aborted.Is(res.Err) {
				t.Errorf("the run is %s: %v", res.Status, res.Err)
			}
			board, fold := history(res.LastBoard.Channel(engine.MainChannel)), history(state(t, p.store, "s").Messages)
			same(t, "the fold and the board", board, fold)
			if !strings.Contains(fold[2], "[c1 "+c.told+"]") {
				t.Errorf("the model is told %q, want %q", fold[2], c.told)
			}
			if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, p.eng, "s", agent.WithJournal(p.store)); err != nil {
				t.Error(err)
			}
		})
	}
}

// A seeder sees what the session's next model call would: of a question that was left behind, that nobody answered it.
func TestASeederSeesAQuestionThatWasLeftBehindAsTheRecordDoes(t *testing.T) {
	asks := tool.Func("which", "", func(ctx context.Context, _ struct{}) (string, error) {
		in, _ := engine.InsideOf(ctx)
		r, err := in.Ask(ctx, engine.Prompt{Asked: journal.Asked{Prompt: "which?"}})
		return r.Text, err
	}, tool.Idempotent)
	store := disk{journal.Memory()}
	eng := looping(t, script{message.Assistant("", call("c1", "which", `{}`)), message.Assistant("end")}, asks)
	if res := run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store)); res.Status != agent.StatusInterrupted {
		t.Fatal(res.Status)
	}
	var seen []string
	res := run(t, agent.Agent{}, eng, asking("s", "never mind"), agent.WithJournal(store), agent.WithBoardSeed(func(ctx context.Context, _ agent.RunInfo, _ *agent.Request) (*engine.Board, error) {
		b := agent.DefaultBoard(ctx)
		seen = history(b.Channel(engine.MainChannel))
		return b, nil
	}))
	fold := history(state(t, store, "s").Messages)
	same(t, "what the seeder saw", []string{"user: go", "assistant:  <c1 which>", "tool:  [c1 Not answered: the person said something else instead.]", "user: never mind"}, seen)
	same(t, "the fold and the board", history(res.LastBoard.Channel(engine.MainChannel)), fold)
	if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store)); err != nil {
		t.Error(err)
	}
}
