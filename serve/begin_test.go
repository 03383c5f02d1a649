package serve_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

// tardy is an agent whose runs begin when they are let.
type tardy struct {
	serve.Agent
	begin chan struct{}
}

func (y *tardy) Run(ctx context.Context, req pawl.Request, opts ...agent.RunOption) (*agent.Result, error) {
	<-y.begin
	return y.Agent.Run(ctx, req, opts...)
}

func (y *tardy) Resume(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error) {
	<-y.begin
	return y.Agent.Resume(ctx, session, opts...)
}

// beginning has a server of a tardy agent. Its session s waits for an answer to call.
func beginning(t *testing.T, do func(t *testing.T, s http.Handler, a *tardy, call string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		add := tool.Func("add", "Adds.", func(ctx context.Context, _ struct{}) (string, error) {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return "5", ctx.Err()
		})
		e, err := loop.New(loop.Config{Model: scripted.New(scripted.Turn{Calls: call("add")}, scripted.Text("Done.")), Tools: []tool.Tool{add}})
		if err != nil {
			t.Fatal(err)
		}
		asks := hook.Middleware{Name: "asks", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Asking("May it?"), nil }}
		a := &tardy{serve.Of(agent.Agent{ID: "a", Hooks: []hook.Middleware{asks}}, e, journal.Memory()), make(chan struct{})}
		var req pawl.Request
		req.ContextID, req.Message = "s", message.User("Add.")
		res, err := a.Agent.Run(t.Context(), req)
		if err != nil || len(res.Pending) != 1 {
			t.Fatal(res, err)
		}
		s, err := serve.New(a, serve.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		do(t, s, a, res.Pending[0].ID)
	})
}

// statusIn is a session's status once nothing goes on any more; "" when it isn't there.
func statusIn(t *testing.T, s http.Handler, session string) string {
	t.Helper()
	time.Sleep(time.Minute)
	synctest.Wait()
	var st status
	w := ask(t, s, "GET", "/v1/sessions/"+session, "", "")
	if w.Code == http.StatusNotFound {
		return ""
	}
	if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil || w.Code != http.StatusOK || st.Here {
		t.Fatalf("%d %s %v", w.Code, w.Body, err)
	}
	return st.Status
}

// Whoever cancels a run that is just going on again has it canceled, and who had it go on is told of no failure.
func TestARunIsCanceledWhileItBegins(t *testing.T) {
	beginning(t, func(t *testing.T, s http.Handler, a *tardy, call string) {
		var answered, canceled *httptest.ResponseRecorder
		go func() {
			answered = ask(t, s, "POST", "/v1/sessions/s/answers", `{"id":"`+call+`","approved":true}`, "")
		}()
		synctest.Wait()
		if w := ask(t, s, "DELETE", "/v1/sessions/s", "", ""); w.Code != http.StatusConflict {
			t.Errorf("it could be deleted: %d %s", w.Code, w.Body)
		}
		go func() { canceled = ask(t, s, "POST", "/v1/sessions/s/cancel", `{}`, "") }()
		synctest.Wait()
		close(a.begin)
		if got := statusIn(t, s, "s"); got != "canceled" {
			t.Errorf("it is %s", got)
		}
		if canceled.Code != http.StatusAccepted || answered.Code != http.StatusNoContent || strings.Contains(canceled.Body.String(), `"run":""`) {
			t.Errorf("canceled: %d %s, answered: %d %s", canceled.Code, canceled.Body, answered.Code, answered.Body)
		}
	})
}

// A client that is cut off before it knows of its run finds it when it comes back, as it would be without that.
func TestARunGoesOnWhoseClientIsGoneBeforeItBegan(t *testing.T) {
	for name, at := range map[string]struct{ path, body, session, want string }{
		"begun":            {"/v1/runs", `{"prompt":"Add.","session":"n","run":"r"}`, "n", "interrupted"},
		"gone on with":     {"/v1/sessions/s/resume", `{}`, "s", "completed"},
		"begun, by nobody": {"/v1/runs", `{"prompt":"Add.","session":"n"}`, "n", ""}, // who asks again begins another one
	} {
		t.Run(name, func(t *testing.T) {
			beginning(t, func(t *testing.T, s http.Handler, a *tardy, call string) {
				if err := agent.Answer(t.Context(), a.Journal(), "s", journal.Answered{ID: call, Approved: true}); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost"+at.path, strings.NewReader(at.body))
				r.Header.Set("Content-Type", "application/json")
				go s.ServeHTTP(httptest.NewRecorder(), r)
				synctest.Wait()
				cancel()
				synctest.Wait()
				close(a.begin)
				if got := statusIn(t, s, at.session); got != at.want {
					t.Errorf("it is %q, want %q", got, at.want)
				}
			})
		})
	}
}
