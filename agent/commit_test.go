package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// archive keeps what it is given, by run, and counts how often.
type archive struct {
	to   *[]string
	fail error
}

func (a *archive) Commit(_ context.Context, info agent.RunInfo, res *agent.Result) error {
	*a.to = append(*a.to, fmt.Sprintf("commit %s %q %t", info.RunID, res.Text(), res.Committed))
	return a.fail
}

func TestWhatIsCommittedComesBetweenTheLastDecisionAndTheEnd(t *testing.T) {
	var log []string
	again := agent.DeciderFunc(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
		log = append(log, fmt.Sprintf("decide %d %t", res.Attempts, res.Committed))
		return agent.FinalizeDecision{Revise: res.Attempts < 2}, nil
	})
	req := asking("s", "go")
	req.RunID = "r"
	res := run(t, agent.Agent{}, saying(t, "hi"), req, agent.WithDecider(again), agent.WithMaxRevise(2), agent.WithCommitter(&archive{to: &log}), agent.WithCommitter(nil), agent.WithDecider(nil),
		agent.WithObserver(&watcher{to: &log, name: "seen"}))
	same(t, "order", []string{
		"seen: start", "decide 1 true", "seen: revise 1 to 2, committed false", "seen: start", "decide 2 true", `commit r "hi" true`, "seen: end completed",
	}, log)
	if !res.Committed {
		t.Error("it is not committed")
	}
}

func TestARunThatDiedAroundItsCommitIsCommittedWhenItIsResumed(t *testing.T) {
	var w works
	eng := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
	store := disk{journal.Memory()}
	var log []string
	req := asking("s", "go")
	req.RunID = "r"
	d := &dyingAt{Store: store, match: func(e journal.Entry) bool { return e.Data.Kind() == "run.finished" }}
	_, _ = agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, req, agent.WithJournal(d), agent.WithCommitter(&archive{to: &log}))
	if res := resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store), agent.WithCommitter(&archive{to: &log})); !res.Committed || res.RunID != "r" {
		t.Errorf("%+v", res)
	}
	same(t, "commits", []string{`commit r "end" true`, `commit r "end" true`}, log)
	if total, _ := w.total(); total != 1 {
		t.Errorf("%d payments", total)
	}
}

func TestARunThatACommitterFailedToStoreStaysOpenAndIsCommittedWhenItIsResumed(t *testing.T) {
	for name, fail := range map[string]error{"an error": errdefs.NotAvailable.Errorf("the archive is full"), "a panic": nil} {
		t.Run(name, func(t *testing.T) {
			store := disk{journal.Memory()}
			var w works
			var log []string
			eng := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
			var first agent.Committer = &archive{to: &log, fail: fail}
			if fail == nil {
				first = commits(func() error { panic("boom") })
			}
			seen := &watcher{}
			res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store), agent.WithCommitter(first), agent.WithObserver(seen))
			if err == nil || fail != nil && !errors.Is(err, fail) || res.Status != agent.StatusCompleted || res.Committed || res.State[agent.StateFinalizeReason] != agent.CommitFailed {
				t.Fatalf("%+v %v", res, err)
			}
			parked := last[journal.Parked](t, store, "s")
			if parked.Cause != string(engine.CauseCommit) || parked.Detail == "" || (parked.Stack == "") != (fail != nil) {
				t.Errorf("%+v", parked)
			}
			if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store)); err != nil {
				t.Error(err)
			}
			log = nil
			if res := resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store), agent.WithCommitter(&archive{to: &log}), agent.WithObserver(seen)); !res.Committed || len(log) != 1 {
				t.Errorf("%+v, %v", res, log)
			}
			if total, _ := w.total(); total != 1 || state(t, store, "s").Status != "completed" {
				t.Errorf("%d payments, %s", total, state(t, store, "s").Status)
			}
			same(t, "observers", []string{"start", "end completed", "start", "end completed"}, seen.log)
		})
	}
}

func TestATeamWhoseFirstCommitFailedCommitsItBeforeItGoesOn(t *testing.T) {
	store := disk{journal.Memory()}
	var w works
	var log []string
	tm := support(t, w.tool("pay"))
	req := asking("s", "refund me")
	req.RunID = "r"
	_, err := tm.Run(t.Context(), req, agent.WithJournal(store), agent.WithCommitter(&archive{to: &log, fail: errdefs.NotAvailable.Errorf("full")}))
	if !errdefs.NotAvailable.Is(err) || len(log) != 1 {
		t.Fatal(err, log)
	}
	res, err := tm.Resume(t.Context(), "s", agent.WithJournal(store), agent.WithCommitter(&archive{to: &log}))
	if err != nil || res.Status != agent.StatusCompleted {
		t.Fatal(res, err)
	}
	for i, run := range []string{"r", "r", "r-hop-1", "r-hop-2"} {
		if i >= len(log) || !strings.HasPrefix(log[i], "commit "+run+" ") {
			t.Fatalf("%q", log)
		}
	}
}

func TestWhoWasOvertakenCommitsNothing(t *testing.T) {
	store := journal.Memory()
	var log []string
	takes := agent.DeciderFunc(func(ctx context.Context, info agent.RunInfo, _ *agent.Request, _ *agent.Result) (agent.FinalizeDecision, error) {
		other, err := journal.Open(ctx, store, "s")
		if err == nil {
			err = other.Drive(ctx, "another process", journal.Entry{Run: info.RunID, Data: journal.Resumed{Owner: "another process"}})
		}
		return agent.FinalizeDecision{}, err
	})
	res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), asking("s", "go"), agent.WithJournal(store), agent.WithDecider(takes), agent.WithCommitter(&archive{to: &log}))
	if !errdefs.Conflict.Is(err) || res.Committed || len(log) > 0 || state(t, store, "s").Run == "" {
		t.Errorf("%+v, %v, %v", res, err, log)
	}
}
