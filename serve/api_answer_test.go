package serve_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

// What waits for a person can be given up, like what is under way.
func TestARunThatWaitsIsCanceled(t *testing.T) {
	p := open(t, asksOnce(t, journal.Memory()), serve.Options{})
	var st status
	if p.do(http.StatusOK, &st, "POST", "/v1/runs", `{"prompt":"Add.","session":"s","wait":true}`); len(st.Pending) != 1 || st.Status != "interrupted" {
		t.Fatalf("%+v", st)
	}
	id := st.Pending[0].ID
	st = status{}
	if p.do(http.StatusOK, &st, "POST", "/v1/sessions/s/cancel", `{"wait":true}`); st.Status != "canceled" || st.Run != "" || len(st.Pending) != 0 {
		t.Errorf("%+v", st)
	}
	p.do(http.StatusConflict, nil, "POST", "/v1/sessions/s/answers", `{"id":"`+id+`","approved":true}`)
}

// What waits for a person is not thrown away by who says something else: by no door that begins runs.
func TestAPromptDoesNotCloseWhatWaits(t *testing.T) {
	p := open(t, asksOnce(t, journal.Memory()), serve.Options{})
	var st, now status
	p.do(http.StatusOK, &st, "POST", "/v1/runs", `{"prompt":"Add.","session":"s","run":"one","wait":true}`)
	var f failure
	p.do(http.StatusConflict, &f, "POST", "/v1/runs", `{"prompt":"Another.","session":"s","run":"two"}`)
	if n := len(st.Messages); n != 2 || st.Messages[1].Role() != message.RoleAssistant { // a call that waits has no result: that it was not run is no more than a guess
		t.Errorf("%v", st.Messages)
	}
	for _, says := range []string{st.Pending[0].ID + " (add)", "POST /v1/sessions/s/answers", "POST /v1/sessions/s/cancel"} {
		if !strings.Contains(f.Error.Message, says) {
			t.Errorf("%q does not say %q", f.Error.Message, says)
		}
	}
	p.do(http.StatusConflict, nil, "POST", "/ag-ui", input("s", "three", ""))
	p.do(http.StatusOK, nil, "POST", "/v1/runs", `{"prompt":"Add.","session":"s","run":"one"}`) // the same once more: it is known
	if p.do(http.StatusOK, &now, "GET", "/v1/sessions/s", ""); len(now.Pending) != 1 || now.Run != "one" {
		t.Fatalf("%+v", now)
	}
	p.do(http.StatusNoContent, nil, "POST", "/v1/sessions/s/answers", `{"id":"`+st.Pending[0].ID+`","approved":true}`)
	if got := shown(p.follow("/v1/sessions/s/events?run=one&deltas=false", "", 0)); !strings.HasSuffix(got, " run.finished\n") {
		t.Errorf("it came to\n%s", got)
	}
}

// An answer that can't be meant is refused, by each door, before it is on record: the approval is not spent on it.
func TestAnAnswerThatCannotBeMeantIsRefused(t *testing.T) {
	p := open(t, asksBy(t, journal.Memory(), hook.Decision{Verdict: hook.Ask, Reason: "May it?", Session: true}), serve.Options{})
	var st, now status
	p.do(http.StatusOK, &st, "POST", "/v1/runs", `{"prompt":"Add.","session":"s","run":"one","wait":true}`)
	id := st.Pending[0].ID
	for _, more := range []string{
		`"input":5`, `"input":[]`, `"input":"{"`, `"input":"5"`, `"input":""`, `"input":"null"`,
		`"rule":"add"`, `"session":true,"rule":"Blah((("`,
	} {
		var f failure
		if p.do(http.StatusBadRequest, &f, "POST", "/v1/sessions/s/answers", `{"id":"`+id+`","approved":true,`+more+`}`); f.Error.Class != "validation" {
			t.Errorf("%s: %+v", more, f)
		}
		if !strings.Contains(more, `"input":"`) { // this door takes an object only
			p.do(http.StatusBadRequest, nil, "POST", "/ag-ui", input("s", "two", `,"resume":[{"interruptId":"`+id+`","status":"resolved","payload":{"approved":true,`+more+`}}]`))
		}
	}
	if p.do(http.StatusOK, &now, "GET", "/v1/sessions/s", ""); len(now.Pending) != 1 {
		t.Fatalf("%+v", now)
	}
	p.do(http.StatusNoContent, nil, "POST", "/v1/sessions/s/answers", `{"id":"`+id+`","approved":true,"input":"{\"A\":20,\"B\":3}"}`) // as pending shows it
	p.follow("/v1/sessions/s/events?run=one&deltas=false", "", 0)
	if p.do(http.StatusOK, &now, "GET", "/v1/sessions/s", ""); len(now.Messages) != 4 || !strings.HasSuffix(resultOf(now.Messages[2]), "\n23") {
		t.Errorf("%s: %q", now.Messages, resultOf(now.Messages[2]))
	}
}

func resultOf(m message.Message) string {
	for r := range message.Of[message.ToolResult](m) {
		return r.Content
	}
	return ""
}

// asksOnce is an agent whose one call has to be approved.
func asksOnce(t *testing.T, store journal.Store) serve.Agent {
	t.Helper()
	return asksBy(t, store, hook.Asking("May it?"))
}

func asksBy(t *testing.T, store journal.Store, d hook.Decision) serve.Agent {
	t.Helper()
	add := tool.Func("add", "Adds.", func(_ context.Context, in struct{ A, B int }) (int, error) { return in.A + in.B, nil })
	asks := hook.Middleware{Name: "asks", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return d, nil }}
	e, err := loop.New(loop.Config{Model: scripted.New(scripted.Turn{Calls: []scripted.Call{{Name: "add", Input: `{"A":2,"B":3}`}}}, scripted.Text("Done.")), Tools: []tool.Tool{add}})
	if err != nil {
		t.Fatal(err)
	}
	return serve.Of(agent.Agent{ID: "a", Hooks: []hook.Middleware{asks}}, e, store)
}

// A run that waited, and has its answer, is taken up like one whose process died; one that still waits, or was canceled, is not.
func TestWhatWasAnsweredIsTakenUp(t *testing.T) {
	store := journal.Memory()
	p := open(t, asksOnce(t, store), serve.Options{})
	ids := map[string]string{}
	for _, s := range []string{"answered", "waits", "canceled", "died", "stopped"} {
		var st status
		p.do(http.StatusOK, &st, "POST", "/v1/runs", `{"prompt":"Add.","session":"`+s+`","wait":true}`)
		ids[s] = st.Pending[0].ID
	}
	p.do(http.StatusOK, nil, "POST", "/v1/sessions/canceled/cancel", `{"wait":true}`)
	p.close()
	for _, s := range []string{"answered", "died", "stopped"} {
		if err := agent.Answer(t.Context(), store, s, journal.Answered{ID: ids[s], Approved: true}); err != nil {
			t.Fatal(err)
		}
	}
	for s, after := range map[string][]journal.Data{
		"died":    {journal.Resumed{}}, // its process had gone on
		"stopped": {journal.Resumed{}, journal.Parked{Cause: string(engine.CauseUserCancel)}},
	} {
		log, err := journal.Open(t.Context(), store, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range after {
			if err := log.Append(t.Context(), journal.Entry{Run: log.Run(), Data: d}); err != nil {
				t.Fatal(err)
			}
		}
	}
	q := open(t, asksOnce(t, store), serve.Options{})
	got, err := q.server.Resume(t.Context())
	slices.Sort(got)
	if want := []string{"answered", "died"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	for _, s := range got {
		if q.settled(s); q.statusOf(s) != "completed" {
			t.Errorf("%s is %s", s, q.statusOf(s))
		}
	}
}

// settled waits until no run is under way in a session: its last entry is there a moment before.
func (p *place) settled(session string) {
	p.t.Helper()
	for p.statusOf(session) == "here" {
		time.Sleep(time.Millisecond)
	}
}

func (p *place) statusOf(session string) string {
	var st status
	p.do(http.StatusOK, &st, "GET", "/v1/sessions/"+session, "")
	if st.Here {
		return "here"
	}
	return st.Status
}

func TestAPersonAnswersAndTheRunGoesOn(t *testing.T) {
	add := tool.Func("add", "Adds.", func(_ context.Context, in struct{ A, B int }) (int, error) { return in.A + in.B, nil })
	asks := hook.Middleware{Name: "asks", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Asking("May it?"), nil }}
	e, err := loop.New(loop.Config{Model: scripted.New(scripted.Turn{Calls: []scripted.Call{{Name: "add", Input: `{"A":2,"B":3}`}, {Name: "add", Input: `{"A":1,"B":1}`}}}, scripted.Text("Done.")), Tools: []tool.Tool{add}})
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, serve.Of(agent.Agent{ID: "a", Hooks: []hook.Middleware{asks}}, e, journal.Memory()), serve.Options{})
	var b begun
	p.do(http.StatusAccepted, &b, "POST", "/v1/runs", `{"prompt":"Add.","session":"s"}`)
	first := p.follow(b.Events, "", 0) // until it waits
	if got := shown(first); !strings.HasSuffix(got, " parked\n") {
		t.Fatalf("it came to\n%s", got)
	}
	var st status
	if p.do(http.StatusOK, &st, "GET", "/v1/sessions/s", ""); len(st.Pending) != 2 || st.Pending[0].Prompt != "May it?" || st.Status != "interrupted" {
		t.Fatalf("%+v", st)
	}
	p.do(http.StatusConflict, nil, "POST", "/v1/sessions/s/answers", `{"id":"nobody","approved":true}`)
	p.do(http.StatusBadRequest, nil, "POST", "/v1/sessions/s/answers", `{"approved":true}`)
	p.do(http.StatusNoContent, nil, "POST", "/v1/sessions/s/answers", `{"id":"`+st.Pending[0].ID+`","approved":true,"input":{"A":20,"B":3},"by":"ann"}`)
	if got := p.statusOf("s"); got != "interrupted" { // one of them is still to be answered
		t.Errorf("it is %s", got)
	}
	p.do(http.StatusConflict, nil, "POST", "/v1/sessions/s/answers", `{"id":"`+st.Pending[0].ID+`","approved":false}`)
	p.do(http.StatusNoContent, nil, "POST", "/v1/sessions/s/answers", `{"id":"`+st.Pending[1].ID+`","approved":false,"text":"Not that."}`)
	rest := p.follow(b.Events, first[len(first)-1].id, 0)
	if got := shown(rest); !strings.HasSuffix(got, " run.finished\n") {
		t.Errorf("it came to\n%s", got)
	}
	p.do(http.StatusOK, &st, "GET", "/v1/sessions/s", "")
	b2, err := json.Marshal(st.Messages)
	if err != nil {
		t.Fatal(err)
	}
	results := string(b2)
	if st.Status != "completed" || !strings.Contains(results, "23") || !strings.Contains(results, "Not that.") {
		t.Errorf("%+v", st)
	}
}
