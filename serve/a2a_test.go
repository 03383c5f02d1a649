package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

// peer is a client of A2A that sends what it is told to.
type peer struct {
	*place
	v a2a.Version
}

// posts sends a call; the answer is the caller's to close.
func (p peer) posts(ctx context.Context, op a2a.Operation, params any) *http.Response {
	p.t.Helper()
	line, err := p.v.AppendCall(nil, "1", op, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.ask(ctx, "POST", "/a2a", string(line), "A2A-Version", string(p.v))
}

// call reads the answer of a call.
func (p peer) call(op a2a.Operation, params, into any) error {
	p.t.Helper()
	res := p.posts(p.t.Context(), op, params)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %d %s %v", op, res.StatusCode, b, err)
	}
	return p.v.ParseAnswer(b, "1", into)
}

// must is call without an error.
func (p peer) must(op a2a.Operation, params, into any) {
	p.t.Helper()
	if err := p.call(op, params, into); err != nil {
		p.t.Fatalf("%s: %v", op, err)
	}
}

// refused is a call that gets an error of a code.
func (p peer) refused(code int, op a2a.Operation, params any) {
	p.t.Helper()
	var e *a2a.Error
	if err := p.call(op, params, nil); err == nil || !asError(err, &e) || e.Code != code {
		p.t.Errorf("%s: %v, want code %d", op, err, code)
	}
}

func asError(err error, into **a2a.Error) bool {
	e, ok := err.(*a2a.Error) //nolint:errorlint // it is not wrapped
	*into = e
	return ok
}

// send sends a message, and gives the task.
func (p peer) send(in a2a.SendRequest) a2a.Task {
	p.t.Helper()
	var out a2a.Event
	p.must(a2a.OpSend, in, &out)
	if out.Task == nil {
		p.t.Fatalf("no task: %+v", out)
	}
	return *out.Task
}

func (p peer) get(id string) a2a.Task {
	p.t.Helper()
	var t a2a.Task
	p.must(a2a.OpGet, a2a.GetTaskRequest{ID: id}, &t)
	return t
}

// events reads a stream, up to a number of events if there is one.
func (p peer) events(op a2a.Operation, params any, most int) (all []a2a.Event) {
	p.t.Helper()
	return p.opens(op, params)(most)
}

// opens begins a stream; what it gives reads it, and closes it.
func (p peer) opens(op a2a.Operation, params any) func(most int) []a2a.Event {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	res := p.posts(ctx, op, params)
	return func(most int) []a2a.Event {
		defer cancel()
		return p.rest(op, res, most)
	}
}

func (p peer) rest(op a2a.Operation, res *http.Response, most int) (all []a2a.Event) {
	p.t.Helper()
	defer func() { _ = res.Body.Close() }()
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		b, _ := io.ReadAll(res.Body)
		p.t.Fatalf("%s: %s %s", op, kind, b)
	}
	for e := range reads(p.t, res.Body) {
		var ev a2a.Event
		if err := p.v.ParseAnswer([]byte(e.data), "1", &ev); err != nil {
			p.t.Fatalf("%s: %v in %s", op, err, e.data)
		}
		if all = append(all, ev); len(all) == most {
			break
		}
	}
	return all
}

// told is what a client makes of events: the answer as it stands in the end, and the states that it heard of.
func told(t *testing.T, all []a2a.Event) (answer string, states []a2a.TaskState) {
	t.Helper()
	artifacts := map[string]string{}
	for _, e := range all {
		if st := e.State(); st != "" {
			states = append(states, st)
		}
		if e.Task != nil {
			for _, a := range e.Task.Artifacts {
				artifacts[a.ID] = textOf(a.Parts)
			}
		}
		if u := e.Artifact; u != nil {
			if _, there := artifacts[u.Artifact.ID]; u.Append && !there {
				t.Errorf("a piece goes behind what is not there: %+v", u)
			}
			if !u.Append {
				artifacts[u.Artifact.ID] = ""
			}
			artifacts[u.Artifact.ID] += textOf(u.Artifact.Parts)
		}
	}
	return artifacts["answer"], states
}

func textOf(parts []a2a.Part) (text string) {
	for _, p := range parts {
		if p.Kind == a2a.PartData {
			text += string(p.Data)
		}
		text += p.Text
	}
	return text
}

func user(id, text string) a2a.SendRequest {
	return a2a.SendRequest{Message: a2a.Message{ID: id, Role: a2a.RoleUser, Parts: []a2a.Part{a2a.Text(text)}}}
}

// to addresses a message to a task.
func to(task string, in a2a.SendRequest) a2a.SendRequest {
	in.Message.TaskID = task
	return in
}

func atOnce(in a2a.SendRequest) a2a.SendRequest {
	in.Configuration.ReturnImmediately = true
	return in
}

var versions = []a2a.Version{a2a.V1, a2a.V03}

func TestATaskIsDone(t *testing.T) {
	for _, v := range versions {
		t.Run(string(v), func(t *testing.T) {
			p := peer{serves(t, journal.Memory(), scripted.New(scripted.Text("It is five."), scripted.Text("Six then.")), serve.Options{}), v}
			done := p.send(user("m1", "2 + 3?"))
			if done.Status.State != a2a.StateCompleted || len(done.Artifacts) != 1 || textOf(done.Artifacts[0].Parts) != "It is five." || done.ContextID == "" {
				t.Errorf("%+v", done)
			}
			if len(done.History) != 1 || done.History[0].ID != "m1" || textOf(done.History[0].Parts) != "2 + 3?" {
				t.Errorf("its history is %+v", done.History)
			}
			if again := p.send(user("m1", "2 + 3?")); again.ID != done.ID {
				t.Errorf("sent again it is task %s, not %s", again.ID, done.ID)
			}
			in := user("m2", "And one more?")
			in.Message.ContextID = done.ContextID
			next := p.events(a2a.OpStream, in, 0)
			if answer, states := told(t, next); answer != "Six then." || states[0] != a2a.StateWorking || states[len(states)-1] != a2a.StateCompleted || next[0].Task == nil || next[0].ContextID() != done.ContextID {
				t.Errorf("it was told %q, %v", answer, states)
			}
			pieces := 0
			for _, e := range next {
				if e.Artifact != nil {
					pieces++
				}
			}
			if pieces < 2 {
				t.Errorf("%d pieces: it did not stream", pieces)
			}
			if got := p.get(next[0].Task.ID); got.Status.State != a2a.StateCompleted || textOf(got.Artifacts[0].Parts) != "Six then." {
				t.Errorf("%+v", got)
			}
			none := 0
			var short a2a.Task
			p.must(a2a.OpGet, a2a.GetTaskRequest{ID: done.ID, HistoryLength: &none}, &short)
			if len(short.History) != 0 || short.ID != done.ID {
				t.Errorf("without history: %+v", short)
			}
			p.refused(a2a.CodeTaskNotFound, a2a.OpGet, a2a.GetTaskRequest{ID: "nothing"})
			p.refused(a2a.CodeUnsupportedOperation, a2a.OpSend, to(done.ID, user("m3", "More?")))
			p.refused(a2a.CodeTaskNotFound, a2a.OpSend, to("nothing", user("m3", "More?")))
			p.refused(a2a.CodeTaskNotCancelable, a2a.OpCancel, a2a.CancelTaskRequest{ID: done.ID})
		})
	}
}

func asking(t *testing.T, o serve.Options, store journal.Store, turns ...scripted.Turn) *place {
	t.Helper()
	add := tool.Func("add", "Adds.", func(_ context.Context, in struct{ A, B int }) (string, error) { return fmt.Sprint(in.A + in.B), nil })
	asks := hook.Middleware{Name: "asks", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if u.Call.Name == "add" {
			return hook.Asking("It adds."), nil
		}
		return hook.Decision{}, nil
	}}
	e, err := loop.New(loop.Config{Model: scripted.New(turns...), Tools: []tool.Tool{add, askuser.New(nil)}})
	if err != nil {
		t.Fatal(err)
	}
	return open(t, serve.Of(agent.Agent{ID: "a", Hooks: []hook.Middleware{asks}}, e, store), o)
}

type questionData struct {
	Type, ID, Prompt, Call string
	Input                  json.RawMessage
	Choices                []string
}

// questions are what a task asks.
func questions(t *testing.T, task a2a.Task) (all []questionData) {
	t.Helper()
	if task.Status.State != a2a.StateInputRequired || task.Status.Message == nil {
		t.Fatalf("the task is %+v", task.Status)
	}
	for _, p := range task.Status.Message.Parts {
		if p.Kind == a2a.PartData {
			var q questionData
			if err := json.Unmarshal(p.Data, &q); err != nil {
				t.Fatal(err)
			}
			all = append(all, q)
		}
	}
	return all
}

func TestATaskAsksAndIsAnswered(t *testing.T) {
	for _, v := range versions {
		t.Run(string(v), func(t *testing.T) {
			p := peer{asking(t, serve.Options{}, journal.Memory(),
				scripted.Calls(scripted.Call{ID: "c1", Name: "add", Input: `{"A":2,"B":3}`}, scripted.Call{ID: "c2", Name: "add", Input: `{"A":1,"B":1}`}),
				scripted.Calls(scripted.Call{ID: "c3", Name: "ask_user", Input: `{"question":"Which?","options":[{"label":"red"},{"label":"blue"}]}`}),
				scripted.Text("Done."),
			), v}
			task := p.send(user("m1", "2 + 3?"))
			q := questions(t, task)
			if len(q) != 2 || q[0].Call != "add" || q[0].Type != "approval" || string(q[0].Input) != `{"A":2,"B":3}` || !strings.Contains(textOf(task.Status.Message.Parts), "It adds.") {
				t.Fatalf("it asks %+v: %+v", q, task.Status.Message)
			}
			p.refused(a2a.CodeInvalidParams, a2a.OpSend, a2a.SendRequest{Message: a2a.Message{ID: "bad", Role: a2a.RoleUser, TaskID: task.ID, Parts: []a2a.Part{a2a.Data(json.RawMessage(`{"id":"nobody","approved":true}`))}}})
			p.refused(a2a.CodeInvalidParams, a2a.OpSend, a2a.SendRequest{Message: a2a.Message{ID: "bad", Role: a2a.RoleUser, TaskID: task.ID, Parts: []a2a.Part{a2a.Data(json.RawMessage(`{"text":"well"}`))}}})
			one := p.send(to(task.ID, user("m2", "Yes.")))
			if rest := questions(t, one); len(rest) != 1 || rest[0].ID != q[1].ID {
				t.Fatalf("then it asks %+v", rest)
			}
			if again := p.send(to(task.ID, user("m2", "Yes."))); len(questions(t, again)) != 1 { // it answers nothing twice
				t.Errorf("%+v", again.Status)
			}
			no := a2a.SendRequest{Message: a2a.Message{ID: "m3", Role: a2a.RoleUser, TaskID: task.ID, Parts: []a2a.Part{a2a.Data(json.RawMessage(`{"id":"` + q[1].ID + `","approved":false,"text":"Not that."}`))}}}
			two := questions(t, p.send(no))
			if len(two) != 1 || two[0].Type != "question" || strings.Join(two[0].Choices, " ") != "red blue" {
				t.Fatalf("then it asks %+v", two)
			}
			all := p.events(a2a.OpStream, to(task.ID, user("m4", "blue")), 0)
			if answer, states := told(t, all); answer != "Done." || states[len(states)-1] != a2a.StateCompleted {
				t.Errorf("it was told %q, %v", answer, states)
			}
			var results []string
			for e, err := range p.store.Read(t.Context(), task.ContextID, 0) {
				if d, ok := e.Data.(journal.ToolFinished); ok && err == nil {
					results = append(results, d.Content)
				}
			}
			log, err := journal.Open(t.Context(), p.store, task.ContextID)
			if err != nil {
				t.Fatal(err)
			}
			transcript, _ := json.Marshal(log.State().Messages)
			if strings.Join(results, "|") != "5|blue" || !strings.Contains(string(transcript), "Not that.") {
				t.Errorf("it came to %q in %s", results, transcript)
			}
			history := p.get(task.ID).History
			if n := len(history); n < 7 || history[0].ID != "m1" || textOf(history[n-1].Parts) != "blue" {
				t.Errorf("its history is %+v", history)
			}
		})
	}
}

// An answer may give a call another input: the history has it, and what is no object is refused and spends nothing.
func TestAnAnswerWithAnotherInputIsInTheHistory(t *testing.T) {
	for _, v := range versions {
		p := peer{asking(t, serve.Options{}, journal.Memory(), scripted.Calls(scripted.Call{ID: "c1", Name: "add", Input: `{"A":2,"B":3}`}), scripted.Text("Done.")), v}
		task := p.send(user("m1", "2 + 3?"))
		q := questions(t, task)
		if text := task.Status.Message.Parts[0].Text; !strings.HasPrefix(text, "May add run? Answer yes or no.\nIt adds.\n") {
			t.Errorf("it asks %q", text)
		}
		with := func(id, input string) a2a.SendRequest {
			return a2a.SendRequest{Message: a2a.Message{ID: id, Role: a2a.RoleUser, TaskID: task.ID, Parts: []a2a.Part{a2a.Data(json.RawMessage(`{"id":"` + q[0].ID + `","approved":true,"input":` + input + `}`))}}}
		}
		p.refused(a2a.CodeInvalidParams, a2a.OpSend, with("m2", `5`))
		p.send(with("m3", `{"A":20,"B":3}`))
		history := p.get(task.ID).History
		last := history[len(history)-1]
		if len(last.Parts) != 2 || last.Parts[0].Text != "yes" || !strings.Contains(string(last.Parts[1].Data), `"input":{"A":20,"B":3}`) {
			t.Errorf("%s: %+v", v, last)
		}
	}
}

func TestATaskIsSteeredAndCanceled(t *testing.T) {
	for _, v := range versions {
		t.Run(string(v), func(t *testing.T) {
			g := gate("wait")
			p := peer{serves(t, journal.Memory(), scripted.New(scripted.Turn{Text: "Let me see.", Calls: call("wait")}, scripted.Text("Heard."), scripted.Turn{Calls: call("wait")}), serve.Options{}, g), v}
			task := p.send(atOnce(user("m1", "Wait.")))
			if task.Status.State != a2a.StateWorking {
				t.Fatalf("%+v", task.Status)
			}
			<-g.started
			for range 2 { // sent again it is said once
				p.send(to(task.ID, atOnce(user("m2", "And be quick."))))
			}
			in := user("m3", "Something else?")
			in.Message.ContextID = task.ContextID
			p.refused(a2a.CodeUnsupportedOperation, a2a.OpSend, in)
			in.Message.ContextID, in.Message.TaskID = "another", task.ID
			p.refused(a2a.CodeInvalidParams, a2a.OpSend, in)
			read := p.opens(a2a.OpSubscribe, a2a.SubscribeRequest{ID: task.ID})
			close(g.goOn)
			all := read(0)
			if answer, states := told(t, all); answer != "Heard." || states[len(states)-1] != a2a.StateCompleted {
				t.Errorf("it was told %q, %v", answer, states)
			}
			heard := 0
			for _, m := range p.get(task.ID).History {
				if m.ID == "m2" {
					heard++
				}
			}
			if heard != 1 {
				t.Errorf("it was said %d times", heard)
			}
			g.goOn = make(chan struct{})
			in.Message = a2a.Message{ID: "m4", ContextID: task.ContextID, Role: a2a.RoleUser, Parts: []a2a.Part{a2a.Text("Once more.")}}
			next := p.send(atOnce(in))
			<-g.started
			var ended a2a.Task
			p.must(a2a.OpCancel, a2a.CancelTaskRequest{ID: next.ID}, &ended)
			if ended.Status.State != a2a.StateCanceled {
				t.Errorf("%+v", ended.Status)
			}
			p.refused(a2a.CodeTaskNotCancelable, a2a.OpCancel, a2a.CancelTaskRequest{ID: next.ID})
			if v == a2a.V1 {
				p.refused(a2a.CodeUnsupportedOperation, a2a.OpSubscribe, a2a.SubscribeRequest{ID: next.ID})
			} else if all := p.events(a2a.OpSubscribe, a2a.SubscribeRequest{ID: next.ID}, 0); len(all) != 1 || all[0].State() != a2a.StateCanceled {
				t.Errorf("%+v", all)
			}
		})
	}
}

func TestATaskThatWaitsIsCanceled(t *testing.T) {
	p := peer{asking(t, serve.Options{}, journal.Memory(), scripted.Calls(scripted.Call{Name: "add", Input: `{"A":2,"B":3}`}), scripted.Text("Done.")), a2a.V1}
	task := p.send(user("m1", "2 + 3?"))
	questions(t, task)
	in := user("m2", "Something else.")
	in.Message.ContextID = task.ContextID
	p.refused(a2a.CodeUnsupportedOperation, a2a.OpSend, in) // what waits is not given up
	questions(t, p.get(task.ID))
	var ended a2a.Task
	p.must(a2a.OpCancel, a2a.CancelTaskRequest{ID: task.ID}, &ended)
	if ended.Status.State != a2a.StateCanceled {
		t.Errorf("%+v", ended.Status)
	}
	for e, err := range p.store.Read(t.Context(), task.ContextID, 0) {
		if _, ran := e.Data.(journal.ToolStarted); ran || err != nil {
			t.Errorf("the tool ran: %v", err)
		}
	}
}

// heldBack is a store that has one of its readers wait: the one that comes when so many were there before.
type heldBack struct {
	journal.Store
	before  atomic.Int32
	reached chan struct{}
	goOn    chan struct{}
}

func (h *heldBack) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	if h.before.Add(-1) == -1 {
		close(h.reached)
		<-h.goOn
	}
	return h.Store.Read(ctx, session, after)
}

// A message that comes twice at once answers one question, however the two meet: the other question is not answered by somebody who never saw it.
func TestAMessageThatComesTwiceAtOnceIsHeardOnce(t *testing.T) {
	for n := range int32(8) {
		store := &heldBack{Store: journal.Memory(), reached: make(chan struct{}), goOn: make(chan struct{})}
		store.before.Store(1 << 30)
		p := peer{asking(t, serve.Options{}, store,
			scripted.Calls(scripted.Call{ID: "c1", Name: "add", Input: `{"A":2,"B":3}`}, scripted.Call{ID: "c2", Name: "add", Input: `{"A":1,"B":1}`}),
			scripted.Text("Done.")), a2a.V1}
		task := p.send(user("m1", "2 + 3?"))
		store.before.Store(n)
		done := make(chan error)
		go func() {
			var out a2a.Event
			done <- p.call(a2a.OpSend, to(task.ID, user("m2", "Yes.")), &out)
			close(done)
		}()
		select {
		case <-store.reached:
			p.send(to(task.ID, user("m2", "Yes.")))
			close(store.goOn)
			if err := <-done; err != nil {
				t.Error(err)
			}
		case err := <-done: // it does not read as often
			if err != nil {
				t.Error(err)
			}
		}
		store.before.Store(1 << 30)
		if rest := questions(t, p.get(task.ID)); len(rest) != 1 {
			t.Errorf("before its read %d: %d questions wait", n, len(rest))
		}
	}
}

// What answered a question far below is known when it comes again, and answers nothing else. Where it stands is a task's: in another task of the context the same id is another message.
func TestAnAnswerFarBelowIsHeardOnce(t *testing.T) {
	give := func(a agent.Agent, tools []tool.Tool, turns ...scripted.Turn) tool.Tool {
		e, err := loop.New(loop.Config{Model: scripted.New(turns...), Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		task, err := agent.Task(agent.Subagents{{Agent: a, Engine: e, Description: "Helps."}})
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	question := scripted.Calls(scripted.Call{Name: "ask_user", Input: `{"question":"Which?"}`})
	gives := func(to string) scripted.Turn {
		return scripted.Calls(scripted.Call{Name: "task", Input: `{"agent":"` + to + `","prompt":"Help."}`})
	}
	ask := askuser.New(nil)
	deep := give(agent.Agent{ID: "deep"}, []tool.Tool{ask}, question, scripted.Text("Deep."))
	mid := give(agent.Agent{ID: "mid"}, []tool.Tool{deep}, gives("deep"), scripted.Text("Mid."))
	p := peer{serves(t, journal.Memory(), scripted.New(gives("mid"), question, scripted.Text("One."), question, scripted.Text("Two.")), serve.Options{}, mid, ask), a2a.V1}
	one := p.send(user("m1", "1?"))
	first := questions(t, one)
	next := questions(t, p.send(to(one.ID, user("m2", "blue"))))
	if len(first) != 1 || len(next) != 1 || first[0].ID == next[0].ID {
		t.Fatalf("it asks %+v, then %+v", first, next)
	}
	if again := questions(t, p.send(to(one.ID, user("m2", "blue")))); again[0].ID != next[0].ID {
		t.Errorf("it was answered twice: %+v", again)
	}
	if done := p.send(to(one.ID, user("m3", "red"))); done.Status.State != a2a.StateCompleted {
		t.Fatalf("%+v", done.Status)
	}
	in := user("m4", "2?")
	in.Message.ContextID = one.ContextID
	two := p.send(in)
	questions(t, two)
	if done := p.send(to(two.ID, user("m3", "red"))); done.Status.State != a2a.StateCompleted {
		t.Errorf("%+v", done.Status)
	}
}
