package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/remote"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/internal/traced"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

// What a model said before it failed is void: what it says then takes its place.
func TestWhatIsVoidIsReplaced(t *testing.T) {
	m := model.Wrap(scripted.New(
		scripted.Turn{Text: "Half of this is shown, before it fails.", Error: &scripted.Failure{Status: 529, MidStream: true}},
		scripted.Turn{Text: "Let me see.", Calls: call("look")},
		scripted.Turn{Text: "It is a long", Stop: model.StopLength},
		scripted.Text(" story."),
	), resilience.Retry(resilience.RetryPolicy{Wait: time.Millisecond, Restart: true}))
	look := tool.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	p := peer{serves(t, journal.Memory(), m, serve.Options{}, look), a2a.V1}
	all := p.events(a2a.OpStream, user("m1", "Tell me."), 0)
	answer, states := told(t, all)
	if answer != "It is a long story." || states[len(states)-1] != a2a.StateCompleted {
		t.Errorf("it was told %q, %v", answer, states)
	}
	var texts []string
	last := 0
	for _, e := range all {
		if e.Artifact == nil {
			continue
		}
		text := textOf(e.Artifact.Artifact.Parts)
		if e.Artifact.Append {
			text = "+" + text
		}
		if texts = append(texts, text); e.Artifact.LastChunk {
			last++
		}
	}
	shown := strings.Join(texts, "|")
	if !strings.HasPrefix(shown, "Half |+of ") || !strings.Contains(shown, "|Let |+me |+see.|It |+is |+a |+long|+ ") || last != 1 {
		t.Errorf("it was told %s, %d times to the end", shown, last)
	}
}

// A channel of a graph's board is an artifact, when it is to be one; what nodes say among themselves is not.
func TestChannelsAreArtifacts(t *testing.T) {
	eng, err := graph.Compile(graph.Definition{
		Name: "story", Entry: "draft",
		Nodes: []graph.Node{
			{ID: "draft", Type: "model", Config: map[string]any{"prompt": "Write.", "channel": "drafts"}},
			{ID: "again", Type: "model", Config: map[string]any{"prompt": "Better.", "channel": "drafts"}},
			{ID: "secret", Type: "model", Config: map[string]any{"prompt": "Judge.", "channel": "inner"}},
			{ID: "say", Type: "template", Config: map[string]any{"template": "Here it is.", "role": "assistant", "channel": "main"}},
		},
		Edges: []graph.Edge{{From: "draft", To: "again"}, {From: "again", To: "secret"}, {From: "secret", To: "say"}, {From: "say", To: graph.End}},
	}, graph.Kinds{Loop: loop.Config{Model: byChannel{}}})
	if err != nil {
		t.Fatal(err)
	}
	p := peer{open(t, serve.Of(agent.Agent{ID: "writer"}, eng, journal.Memory()), serve.Options{Artifacts: []string{"drafts"}}), a2a.V1}
	all := p.events(a2a.OpStream, user("m1", "foxes"), 0)
	for _, seen := range []a2a.Task{seenBy(all), p.get(all[0].TaskID())} {
		got := map[string]string{}
		for _, a := range seen.Artifacts {
			got[a.ID+"="+a.Name] = textOf(a.Parts)
		}
		if len(got) != 2 || got["answer=answer"] != "Here it is." || !strings.Contains(got["board/drafts=drafts"], "said after 1") || !strings.Contains(got["board/drafts=drafts"], "said after 3") {
			t.Errorf("it has %v", got)
		}
	}
}

// byChannel says how much it heard.
type byChannel struct{}

func (byChannel) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	return &model.Response{Message: message.Assistant(fmt.Sprintf("said after %d. ", req.Messages.Len())), Stop: model.StopEnd}, nil
}

func (b byChannel) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := b.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: r})
}

// seenBy is the task as a client has it that kept what it was told.
func seenBy(all []a2a.Event) (task a2a.Task) {
	for _, e := range all {
		switch {
		case e.Task != nil:
			task = *e.Task
		case e.Status != nil:
			task.Status = e.Status.Status
		case e.Artifact != nil:
			at := slices.IndexFunc(task.Artifacts, func(a a2a.Artifact) bool { return a.ID == e.Artifact.Artifact.ID })
			switch {
			case at < 0:
				task.Artifacts = append(task.Artifacts, e.Artifact.Artifact)
			case e.Artifact.Append:
				task.Artifacts[at].Parts = append(task.Artifacts[at].Parts, e.Artifact.Artifact.Parts...)
			default:
				task.Artifacts[at] = e.Artifact.Artifact
			}
		}
	}
	return task
}

// An answer that is to fit a schema is data.
func TestAnAnswerWithASchemaIsData(t *testing.T) {
	e, err := loop.New(loop.Config{Model: scripted.New(scripted.Text(`{"sum": 5}`)), Output: json.RawMessage(`{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		p := peer{open(t, serve.Of(agent.Agent{ID: "a"}, e, journal.Memory()), serve.Options{}), v}
		all := p.events(a2a.OpStream, user("m1", "2 + 3?"), 0)
		for _, task := range []a2a.Task{seenBy(all), p.get(all[0].TaskID())} {
			if len(task.Artifacts) != 1 || len(task.Artifacts[0].Parts) != 1 || string(task.Artifacts[0].Parts[0].Data) != `{"sum":5}` && string(task.Artifacts[0].Parts[0].Data) != `{"sum": 5}` {
				t.Errorf("%s: it is %+v", v, task.Artifacts)
			}
		}
	}
}

// Whoever subscribes, and whenever, sees the answer once and whole.
func TestManySubscribe(t *testing.T) {
	words := strings.Repeat("word ", 40) + "end."
	g := gate("wait")
	p := peer{serves(t, journal.Memory(), scripted.New(scripted.Turn{Calls: call("wait")}, scripted.Text(words)), serve.Options{}, g), a2a.V1}
	task := p.send(atOnce(user("m1", "Tell me.")))
	<-g.started
	readers := 1000
	if !tier.All() {
		readers = 200
	}
	var all sync.WaitGroup
	began := make(chan struct{}, readers)
	for n := range readers {
		all.Go(func() {
			if n%10 == 0 { // some only look in
				ctx, cancel := context.WithCancel(t.Context())
				res := p.posts(ctx, a2a.OpSubscribe, a2a.SubscribeRequest{ID: task.ID})
				began <- struct{}{}
				cancel()
				_ = res.Body.Close()
				return
			}
			read := p.opens(a2a.OpSubscribe, a2a.SubscribeRequest{ID: task.ID})
			began <- struct{}{}
			events := read(0)
			if answer, states := told(t, events); answer != words || states[len(states)-1] != a2a.StateCompleted {
				t.Errorf("it was told %d bytes, %v", len(answer), states)
			}
		})
	}
	for range readers {
		<-began
	}
	close(g.goOn)
	all.Wait()
}

// halves says half of what it has to say, and the rest when it is let go on.
type halves struct{ said, goOn chan struct{} }

func (h halves) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	return &model.Response{Message: message.Assistant("one two three four"), Stop: model.StopEnd}, nil
}

func (h halves) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	for i, word := range []string{"one ", "two ", "three ", "four"} {
		if i == 2 {
			close(h.said)
			<-h.goOn
		}
		if err := cb(model.StreamResult{Text: word}); err != nil {
			return err
		}
	}
	r, err := h.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: r})
}

// Whoever comes in the middle of what is being said has it from its beginning.
func TestWhoComesLateHasItAll(t *testing.T) {
	m := halves{make(chan struct{}), make(chan struct{})}
	p := peer{serves(t, journal.Memory(), m, serve.Options{}), a2a.V1}
	task := p.send(atOnce(user("m1", "Count.")))
	<-m.said
	read := p.opens(a2a.OpSubscribe, a2a.SubscribeRequest{ID: task.ID})
	first := p.events(a2a.OpSubscribe, a2a.SubscribeRequest{ID: task.ID}, 3)
	if answer, _ := told(t, first); answer != "one two " {
		t.Errorf("before the rest it was told %q", answer)
	}
	close(m.goOn)
	all := read(0)
	if answer, _ := told(t, all); answer != "one two three four" {
		t.Errorf("it was told %q", answer)
	}
}

// Another server over the same journal gives the same answers, and does not interfere.
func TestTwoServersOverOneJournal(t *testing.T) {
	store, g := journal.Memory(), gate("wait")
	turns := []scripted.Turn{{Calls: call("wait")}, scripted.Text("It waited.")}
	p := peer{serves(t, store, scripted.New(turns...), serve.Options{}, g), a2a.V1}
	other := peer{serves(t, store, scripted.New(turns...), serve.Options{}, g), a2a.V1}
	task := p.send(atOnce(user("m1", "Wait.")))
	<-g.started
	if st := other.get(task.ID).Status; st.State != a2a.StateWorking {
		t.Errorf("the other one says %+v", st)
	}
	other.refused(a2a.CodeTaskNotCancelable, a2a.OpCancel, a2a.CancelTaskRequest{ID: task.ID})
	if again := other.send(atOnce(user("m1", "Wait."))); again.ID != task.ID {
		t.Errorf("sent to the other one it is task %s", again.ID)
	}
	other.send(to(task.ID, atOnce(user("m2", "Be quick."))))
	read := other.opens(a2a.OpSubscribe, a2a.SubscribeRequest{ID: task.ID})
	close(g.goOn)
	if answer, states := told(t, read(0)); answer != "It waited." || states[len(states)-1] != a2a.StateCompleted {
		t.Errorf("it was told %q, %v", answer, states)
	}
	if n := g.runs.Load(); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
	if h := p.get(task.ID).History; len(h) < 2 || h[1].ID != "m2" {
		t.Errorf("%+v", h)
	}
}

func TestAListOfTasks(t *testing.T) {
	sub, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("Below."))})
	if err != nil {
		t.Fatal(err)
	}
	task, err := agent.Task(agent.Subagents{{Agent: agent.Agent{ID: "helper"}, Engine: sub, Description: "Helps."}})
	if err != nil {
		t.Fatal(err)
	}
	p := peer{serves(t, journal.Memory(), scripted.New(scripted.Calls(scripted.Call{Name: "task", Input: `{"agent":"helper","prompt":"Help."}`}), scripted.Text("One."), scripted.Text("Two."), scripted.Text("Three.")), serve.Options{}, task), a2a.V1}
	one := p.send(user("m1", "1?"))
	in := user("m2", "2?")
	in.Message.ContextID = one.ContextID
	two := p.send(in)
	if two.Status.State != a2a.StateCompleted {
		t.Fatalf("%+v", two)
	}
	if _, err := journal.Fork(t.Context(), p.store, one.ContextID, 0, "fork"); err != nil {
		t.Fatal(err)
	}
	in = user("m3", "3?")
	in.Message.ContextID = "fork"
	three := p.send(in)
	p.do(http.StatusOK, nil, "POST", "/v1/runs", `{"prompt":"By another door.","session":"own.session/1","wait":true}`)
	list := func(in a2a.ListTasksRequest) (ids []string, out a2a.ListTasksResponse) {
		p.must(a2a.OpList, in, &out)
		for _, t := range out.Tasks {
			ids = append(ids, t.ID)
		}
		return ids, out
	}
	for range 2 { // the second time by what was kept
		ids, out := list(a2a.ListTasksRequest{})
		if len(ids) != 4 || out.TotalSize != 4 || !slices.Equal(ids[1:], []string{three.ID, two.ID, one.ID}) {
			t.Errorf("it lists %v of %d", ids, out.TotalSize)
		}
		if got := p.get(ids[0]); got.ContextID != "own.session/1" {
			t.Errorf("task %s is of context %s", ids[0], got.ContextID)
		}
		if out.Tasks[0].Artifacts != nil || out.Tasks[0].History != nil {
			t.Errorf("it has more than was asked for: %+v", out.Tasks[0])
		}
	}
	if ids, _ := list(a2a.ListTasksRequest{ContextID: one.ContextID}); !slices.Equal(ids, []string{two.ID, one.ID}) {
		t.Errorf("of the context it lists %v", ids)
	}
	if ids, _ := list(a2a.ListTasksRequest{Status: a2a.StateFailed}); len(ids) != 0 {
		t.Errorf("it lists %v", ids)
	}
	if ids, out := list(a2a.ListTasksRequest{StatusTimestampAfter: three.Status.Timestamp}); !slices.Contains(ids, three.ID) || out.Tasks[len(ids)-1].Status.Timestamp.Before(three.Status.Timestamp) {
		t.Errorf("of late it lists %v", ids)
	}
	if ids, _ := list(a2a.ListTasksRequest{StatusTimestampAfter: time.Now().Add(time.Minute)}); len(ids) != 0 {
		t.Errorf("of later it lists %v", ids)
	}
	p.refused(a2a.CodeInvalidParams, a2a.OpList, a2a.ListTasksRequest{PageToken: "none"})
	p.do(http.StatusNoContent, nil, "DELETE", "/v1/sessions/own.session%2F1", "")
	if ids, _ := list(a2a.ListTasksRequest{}); len(ids) != 3 {
		t.Errorf("it lists %v", ids)
	}
}

// What was answered elsewhere, by a process that died before the task went on, goes on by any message.
func TestATaskThatWasLeftGoesOn(t *testing.T) {
	p := peer{asking(t, serve.Options{}, journal.Memory(), scripted.Calls(scripted.Call{Name: "add", Input: `{"A":2,"B":3}`}), scripted.Text("Done.")), a2a.V1}
	task := p.send(user("m1", "2 + 3?"))
	if err := agent.Answer(t.Context(), p.store, task.ContextID, journal.Answered{ID: questions(t, task)[0].ID, Approved: true}); err != nil {
		t.Fatal(err)
	}
	if left := p.get(task.ID); left.Status.State != a2a.StateInputRequired || !strings.Contains(textOf(left.Status.Message.Parts), "has it go on") {
		t.Fatalf("%+v", left.Status)
	}
	if done := p.send(to(task.ID, user("m2", "Go on."))); done.Status.State != a2a.StateCompleted || textOf(done.Artifacts[0].Parts) != "Done." {
		t.Errorf("%+v", done)
	}
}

// How a task ended is told without what nobody is to know.
func TestATaskFails(t *testing.T) {
	key := "sk-" + "ant-" + strings.Repeat("a1b2", 10)
	m := scripted.New(scripted.Turn{Error: &scripted.Failure{Status: 400, Message: "this key is bad: " + key}})
	p := peer{serves(t, journal.Memory(), m, serve.Options{}), a2a.V1}
	task := p.send(user("m1", "Hello?"))
	if task.Status.State != a2a.StateFailed || task.Status.Message == nil {
		t.Fatalf("%+v", task.Status)
	}
	if text := textOf(task.Status.Message.Parts); !strings.HasPrefix(text, "validation: ") || !strings.Contains(text, "this key is bad: [redacted]") || task.Status.Message.Metadata[a2a.ClassKey] != "validation" {
		t.Errorf("it failed: %s", text)
	}
}

// A run is of the trace of who asked for it.
func TestARunIsInTheClientsTrace(t *testing.T) {
	seen := make(chan string, 1)
	look := tool.Func("look", "Looks.", func(ctx context.Context, _ struct{}) (string, error) {
		parent, _ := traced.Remote(ctx)
		seen <- parent
		return "seen", nil
	})
	p := peer{serves(t, journal.Memory(), scripted.New(scripted.Turn{Calls: call("look")}, scripted.Text("Done.")), serve.Options{}, look), a2a.V1}
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	p.header.Set("Traceparent", parent)
	p.send(user("m1", "Look."))
	if got := <-seen; got != parent {
		t.Errorf("it is in %q", got)
	}
}

// An agent here, whose work an agent does that is served here, asks a person and goes on like any other.
func TestAnAgentElsewhereIsOneOfOurs(t *testing.T) {
	for _, v := range versions {
		t.Run(string(v), func(t *testing.T) {
			there := asking(t, serve.Options{}, journal.Memory(), scripted.Calls(scripted.Call{Name: "add", Input: `{"A":2,"B":3}`}), scripted.Text("It is five."))
			client, err := a2a.New(a2a.AgentCard{Name: "adder", Version: "1", Interfaces: []a2a.Interface{{URL: there.http.URL + "/a2a", ProtocolBinding: a2a.BindingJSONRPC, ProtocolVersion: string(v)}}, Capabilities: a2a.Capabilities{Streaming: true}})
			if err != nil {
				t.Fatal(err)
			}
			eng, err := remote.New(client)
			if err != nil {
				t.Fatal(err)
			}
			store := journal.Memory()
			ag := agent.Agent{ID: "here"}
			res, err := agent.Run(t.Context(), ag, eng, agent.Request{ContextID: "s", Message: message.User("2 + 3?")}, agent.WithJournal(store))
			if err != nil || res.Status != agent.StatusInterrupted || len(res.Pending) != 1 || !strings.Contains(res.Pending[0].Prompt, "It adds.") {
				t.Fatalf("%+v %v", res, err)
			}
			if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: res.Pending[0].ID, Approved: true}); err != nil {
				t.Fatal(err)
			}
			res, err = agent.Resume(t.Context(), ag, eng, "s", agent.WithJournal(store))
			if err != nil || res.Status != agent.StatusCompleted || res.Text() != "It is five." {
				t.Errorf("%+v %v", res, err)
			}
		})
	}
}

// echo says what it was given.
type echo struct{}

func (echo) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	var parts []message.Part
	text := ""
	for p := range req.Messages.Last().Parts() {
		switch p := p.(type) {
		case message.Text:
			text += "[" + p.Text + "]"
		case message.File:
			text += fmt.Sprintf("[%s %s %s %d]", p.MIME, p.Name, p.URL, len(p.Data))
			parts = append(parts, p)
		}
	}
	return &model.Response{Message: message.New(message.RoleAssistant, append([]message.Part{message.Text{Text: text}}, parts...)...), Stop: model.StopEnd}, nil
}

func (e echo) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := e.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: r})
}

// Text, data and files come in as what they are, and so they go out.
func TestPartsComeAndGo(t *testing.T) {
	for _, v := range versions {
		p := peer{serves(t, journal.Memory(), echo{}, serve.Options{Card: agent.AgentCard{DefaultInputModes: []string{"text/plain", "application/json", "image/*"}}}), v}
		in := user("m1", "Look:")
		in.Message.Parts = append(in.Message.Parts, a2a.Data(json.RawMessage(`{"a": [1, 2]}`)), a2a.Raw("image/png", "a.png", []byte("\x89PNG")), a2a.URL("image/jpeg", "b.jpg", "https://files.example/b.jpg"))
		task := p.send(in)
		want := `[Look:][{"a":[1,2]}][image/png a.png  4][image/jpeg b.jpg https://files.example/b.jpg 0]`
		if len(task.Artifacts) != 1 || len(task.Artifacts[0].Parts) != 3 {
			t.Fatalf("%s: %+v", v, task)
		}
		parts := task.Artifacts[0].Parts
		if parts[0].Text != want || string(parts[1].Raw) != "\x89PNG" || parts[1].MediaType != "image/png" || parts[1].Filename != "a.png" || parts[2].URL != "https://files.example/b.jpg" {
			t.Errorf("%s: it gives %+v", v, parts)
		}
		if said := task.History[0].Parts; len(said) != 4 || string(said[2].Raw) != "\x89PNG" || task.History[0].ID != "m1" {
			t.Errorf("%s: its history is %+v", v, task.History)
		}
	}
}
