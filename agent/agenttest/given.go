package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// prompt is how long a piece may take once its context has ended. The suite's own tests wait less.
var prompt = 2 * time.Second

// together is how many use a piece at the same time.
const together = 16

var statuses = []agent.Status{agent.StatusCompleted, agent.StatusInterrupted, agent.StatusCanceled, agent.StatusFailed, agent.StatusAborted}

// given is what a run gives to a piece, in memory of its own.
func given(status agent.Status) (agent.RunInfo, *agent.Request, *agent.Result) {
	info := agent.RunInfo{AgentID: "agent", RunID: "run-1", TaskID: "task", ContextID: "session"}
	call := message.ToolCall{ID: "c1", Name: "transfer_to_billing", Input: `{"reason":"money"}`}
	req := &agent.Request{
		TaskID: "task", ContextID: "session", RunID: "run-1", Message: message.User("where is my money?"),
		Inputs: map[string]any{"n": 1, "deep": map[string]any{"list": []any{1, "a"}}},
		Config: &agent.RequestConfig{AcceptedOutputModes: []string{"text/plain"}},
	}
	cost := int64(12)
	res := &agent.Result{
		TaskID: "task", ContextID: "session", RunID: "run-1", Status: status,
		Messages: []message.Message{
			message.Assistant("one moment", call), message.Results(message.ToolResult{Call: "c1", Name: call.Name, Content: "ok"}), message.Assistant("they will help"),
		},
		Artifacts: []agent.Artifact{{Name: "summary", Parts: message.Parts{message.Text{Text: "short"}}}}, State: map[string]any{agent.StateRunID: "run-1", "deep": map[string]any{"a": 1}},
		Usage: model.Usage{Input: 10, Output: 5}, Cost: &cost, Steps: 2, Attempts: 1,
	}
	res.LastBoard = agent.BoardWith(message.History{}, req)
	switch status {
	case agent.StatusCompleted:
		res.Committed = true
	case agent.StatusInterrupted:
		res.Cause, res.Err = engine.CauseUserInput, engine.InterruptedError{Interrupt: engine.Interrupt{Cause: engine.CauseUserInput}}
	case agent.StatusCanceled:
		res.Err = context.Canceled
	case agent.StatusFailed:
		res.Err = errdefs.Internal.Errorf("it broke")
	case agent.StatusAborted:
		res.Err = errdefs.Aborted.Errorf("a hook said no")
	}
	return info, req, res
}

// zero is the least that a run gives.
func zero() (agent.RunInfo, *agent.Request, *agent.Result) {
	return agent.RunInfo{}, &agent.Request{}, &agent.Result{}
}

// seen is all that can be seen of what was given, for comparing.
func seen(t *testing.T, req *agent.Request, res *agent.Result) string {
	t.Helper()
	r, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	if res == nil {
		return string(r)
	}
	out, err := json.Marshal(res)
	if err != nil {
		t.Fatalf("the result can't be written any more: %v", err)
	}
	board := []byte("none")
	if res.LastBoard != nil {
		if board, err = json.Marshal(res.LastBoard); err != nil {
			t.Fatalf("the board can't be written any more: %v", err)
		}
	}
	return fmt.Sprintf("%s\n%s\n%s\n%v", r, out, board, res.Err)
}

// stays fails if f changes what it was given.
func stays(t *testing.T, what string, req *agent.Request, res *agent.Result, f func()) {
	t.Helper()
	before := seen(t, req, res)
	f()
	if after := seen(t, req, res); after != before {
		t.Errorf("%s changed what it was given:\n now %s\n was %s", what, after, before)
	}
}

// safely fails if f panics.
func safely(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s panicked: %v", what, p)
		}
	}()
	f()
}

// soon fails unless f returns in time. f must not end its goroutine.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		safely(t, what, f)
	}()
	late := time.NewTimer(prompt)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		t.Fatalf("%s did not return within %v", what, prompt)
	}
}

// atOnce runs f many times at the same time.
func atOnce(t *testing.T, what string, f func(i int)) {
	t.Helper()
	soon(t, what, func() {
		var wg sync.WaitGroup
		for i := range together {
			wg.Go(func() { safely(t, what, func() { f(i) }) })
		}
		wg.Wait()
	})
}

func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }
