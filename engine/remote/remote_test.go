package remote_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/remote"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/traced"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

var who = agent.Agent{ID: "client"}

func ask(session, text string) agent.Request {
	return agent.Request{ContextID: session, Message: message.User(text)}
}

// run runs one message, and fails when the run could not begin.
func run(t *testing.T, ctx context.Context, e engine.Engine, req agent.Request, opts ...agent.RunOption) *agent.Result {
	t.Helper()
	res, err := agent.Run(ctx, who, e, req, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// story is an agent that streams two artifacts.
func story(_ context.Context, k *task, _ int, _ string) {
	k.update(a2a.StateWorking, "thinking")
	k.artifact("1", "story", "Once upon ", false)
	k.artifact("1", "story", "a time.", true)
	k.artifact("2", "", "The end.", false)
	k.update(a2a.StateCompleted, "Done.")
}

// heard is a host that listens, and has nobody who answers.
type heard struct {
	engine.NoopHost
	mu   sync.Mutex
	all  []event.Event
	tell func(event.Event)
}

func (*heard) Listening() bool { return true }

func (h *heard) Publish(_ context.Context, e event.Event) error {
	h.mu.Lock()
	h.all = append(h.all, e)
	h.mu.Unlock()
	if h.tell != nil {
		h.tell(e)
	}
	return nil
}

func (h *heard) text(kind event.Delta) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all strings.Builder
	for _, e := range h.all {
		if e.Delta == kind {
			all.WriteString(e.Text)
		}
	}
	return all.String()
}

func TestAnAnswerIsOneMessageAndEachArtifactAChannel(t *testing.T) {
	for _, streams := range []bool{true, false} {
		for _, v := range []a2a.Version{a2a.V1, a2a.V03} {
			a := newAgent(t, v, streams, story)
			host := &heard{}
			res := run(t, t.Context(), a.engine(t), ask("s", "tell me"), agent.WithEngineHost(host))
			if res.Status != agent.StatusCompleted || res.Usage.Total() != 0 || res.Steps != 0 {
				t.Fatalf("%s, streams %v: %v %v", v, streams, res.Status, res.Err)
			}
			var texts []string
			for x := range message.Of[message.Text](res.Messages[len(res.Messages)-1]) {
				texts = append(texts, x.Text)
			}
			if diff := cmp.Diff([]string{"Once upon a time.", "The end.", "Done."}, texts); diff != "" {
				t.Error(diff)
			}
			b := res.LastBoard
			if b.Channel("story").Last().Text() != "Once upon a time." || b.Channel("2").Last().Text() != "The end." {
				t.Errorf("the channels: %v, %v", b.Channel("story"), b.Channel("2"))
			}
			if b.Var(remote.VarTask) != "task-1" || b.Var(remote.VarContext) != "context-1" || b.Var(remote.VarState) != string(a2a.StateCompleted) {
				t.Errorf("the vars: %v %v %v", b.Var(remote.VarTask), b.Var(remote.VarContext), b.Var(remote.VarState))
			}
			if got := host.text(event.TextDelta); got != "Once upon a time.The end." {
				t.Errorf("listeners heard %q", got)
			}
			if streams && host.text(event.ReasoningDelta) != "thinking\n" {
				t.Errorf("of what it does meanwhile, listeners heard %q", host.text(event.ReasoningDelta))
			}
		}
	}
}

func TestTheNextRunGoesOnInTheSameConversation(t *testing.T) {
	a := newAgent(t, a2a.V1, true, story)
	e, store := a.engine(t), journal.Memory()
	for _, said := range []string{"one", "two"} {
		run(t, t.Context(), e, ask("s", said), agent.WithJournal(store))
	}
	run(t, t.Context(), e, ask("other", "three"), agent.WithJournal(store))
	_, sent := a.did()
	if sent[0].ContextID != "" || sent[1].ContextID != "context-1" || sent[1].TaskID != "" || sent[1].Parts[0].Text != "two" || len(sent[1].Parts) != 1 || sent[2].ContextID != "" {
		t.Errorf("sent: %s", compact(sent))
	}
	other := newAgent(t, a2a.V1, true, story) // at another address, what one agent remembers is not told to another
	other.url = "http://other.test"
	run(t, t.Context(), other.engine(t), ask("s", "four"), agent.WithJournal(store))
	if _, sent := other.did(); sent[0].ContextID != "" {
		t.Errorf("another agent was told of the context %q", sent[0].ContextID)
	}
}

// asks is an agent that asks once.
func asks(_ context.Context, k *task, turn int, text string) {
	if turn == 1 {
		k.update(a2a.StateInputRequired, "What is your name?")
		return
	}
	k.artifact("g", "greeting", "Hello "+text, false)
	k.update(a2a.StateCompleted, "")
}

func TestAQuestionParksTheRunAndItsAnswerGoesToTheSameTask(t *testing.T) {
	for _, streams := range []bool{true, false} {
		a := newAgent(t, a2a.V1, streams, asks)
		store := journal.Memory()
		res := run(t, t.Context(), a.engine(t), ask("s", "greet"), agent.WithJournal(store))
		if res.Status != agent.StatusInterrupted || res.Cause != engine.CauseAwaitingPerson || len(res.Pending) != 1 || res.Pending[0].Prompt != "What is your name?" {
			t.Fatalf("%v %v %+v %v", res.Status, res.Cause, res.Pending, res.Err)
		}
		if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: res.Pending[0].ID, Approved: true, Text: "Ada"}); err != nil {
			t.Fatal(err)
		}
		res, err := agent.Resume(t.Context(), who, a.engine(t), "s", agent.WithJournal(store)) // an engine of its own: another process
		if err != nil || res.Status != agent.StatusCompleted || res.Text() != "Hello Ada" {
			t.Fatalf("%v, %v: %q, %v", err, res.Status, res.Text(), res.Err)
		}
		_, sent := a.did()
		if len(sent) != 2 || sent[1].TaskID != "task-1" || sent[1].ContextID != "context-1" || sent[1].Parts[0].Text != "Ada" || sent[0].ID == sent[1].ID {
			t.Errorf("sent: %s", compact(sent))
		}
		log, err := journal.Open(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		var talk []string
		for _, m := range log.Transcript().All() {
			talk = append(talk, string(m.Role())+": "+m.Text())
		}
		if diff := cmp.Diff([]string{"user: greet", "assistant: What is your name?", "user: Ada", "assistant: Hello Ada"}, talk); diff != "" {
			t.Error(diff)
		}
		if _, err := agent.Replay(t.Context(), who, a.engine(t), "s", agent.WithJournal(store)); err != nil {
			t.Errorf("replay: %v", err)
		}
	}
}

// What an agent tells programs beside its question is not what it says: the answer of a run that waits is the question in words.
func TestWhatIsBesideAQuestionIsNotSaid(t *testing.T) {
	for words, want := range map[string]string{"May add run?": "May add run?", "": `{"type":"approval"}`} {
		a := newAgent(t, a2a.V1, true, func(_ context.Context, k *task, _ int, _ string) {
			parts := []a2a.Part{a2a.Data([]byte(`{"type":"approval"}`))}
			if words != "" {
				parts = append([]a2a.Part{a2a.Text(words)}, parts...)
			}
			k.updateParts(a2a.StateInputRequired, parts...)
		})
		res := run(t, t.Context(), a.engine(t), ask("s", "x"), agent.WithJournal(journal.Memory()))
		if res.Status != agent.StatusInterrupted || res.Text() != want {
			t.Errorf("%q: %s, %q", words, res.Status, res.Text())
		}
	}
}

func TestHowATaskEndsIsAnErrorOfAClassWithTheAgentsWords(t *testing.T) {
	for state, class := range map[a2a.TaskState]*errdefs.Class{
		a2a.StateFailed: errdefs.Internal, a2a.StateRejected: errdefs.Refused, a2a.StateCanceled: errdefs.Aborted, a2a.StateAuthRequired: errdefs.Unauthorized,
	} {
		a := newAgent(t, a2a.V1, true, func(_ context.Context, k *task, _ int, _ string) { k.update(state, "the moon is full") })
		res := run(t, t.Context(), a.engine(t), ask("s", "x"))
		if errdefs.Of(res.Err) != class || !strings.Contains(res.Err.Error(), "the moon is full") {
			t.Errorf("%s: %v is %v, want %v", state, res.Err, errdefs.Of(res.Err), class)
		}
		if canceled := a.count(a2a.OpCancel); canceled != map[bool]int{true: 1}[state == a2a.StateAuthRequired] {
			t.Errorf("%s: canceled %d times", state, canceled)
		}
	}
	for class, want := range map[string]*errdefs.Class{"rate_limit": errdefs.RateLimit, "interrupted": errdefs.Internal, "nonsense": errdefs.Internal} {
		a := newAgent(t, a2a.V1, true, func(_ context.Context, k *task, _ int, _ string) { k.update(a2a.StateFailed, "so", class) })
		if res := run(t, t.Context(), a.engine(t), ask("s", "x")); errdefs.Of(res.Err) != want {
			t.Errorf("%s: %v", class, errdefs.Of(res.Err))
		}
	}
}

func TestACancelCancelsTheTask(t *testing.T) {
	for _, streams := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		a := newAgent(t, a2a.V1, streams, func(ctx context.Context, _ *task, _ int, _ string) {
			cancel()
			<-ctx.Done()
			close(gone)
		})
		began := time.Now()
		res := run(t, ctx, a.engine(t), ask("s", "x"))
		select {
		case <-gone:
		case <-time.After(10 * time.Second):
			t.Errorf("streams %v: the agent never heard of it", streams)
		}
		if res.Status != agent.StatusCanceled || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %v: %v", res.Status, time.Since(began), res.Err)
		}
	}
}

func TestACancelWhileAPersonIsAskedCancelsTheTask(t *testing.T) {
	a := newAgent(t, a2a.V1, true, asks)
	ctx, cancel := context.WithCancel(t.Context())
	host := engine.HostFuncs{AskUserFunc: func(ctx context.Context, _ engine.Prompt) (engine.Reply, error) {
		cancel()
		return engine.Reply{}, ctx.Err()
	}}
	if res := run(t, ctx, a.engine(t), ask("s", "x"), agent.WithEngineHost(host)); res.Status != agent.StatusCanceled || a.count(a2a.OpCancel) != 1 {
		t.Errorf("%v, canceled %d times", res.Status, a.count(a2a.OpCancel))
	}
}

func TestAnInterruptLeavesTheTaskAtWorkAndTheRunGoesOnWithIt(t *testing.T) {
	work := make(chan struct{})
	interrupts := make(chan engine.Interrupt, 1)
	a := newAgent(t, a2a.V1, true, func(ctx context.Context, k *task, turn int, text string) {
		interrupts <- engine.Interrupt{Cause: engine.CauseHostShutdown}
		<-work
		story(ctx, k, turn, text)
	})
	store := journal.Memory()
	host := engine.HostFuncs{InterruptsFunc: func() <-chan engine.Interrupt { return interrupts }}
	res := run(t, t.Context(), a.engine(t), ask("s", "x"), agent.WithJournal(store), agent.WithEngineHost(host))
	if res.Status != agent.StatusInterrupted || res.Cause != engine.CauseHostShutdown || a.count(a2a.OpCancel) != 0 {
		t.Fatalf("%v %v %v", res.Status, res.Cause, res.Err)
	}
	close(work)
	res, err := agent.Resume(t.Context(), who, a.engine(t), "s", agent.WithJournal(store))
	if err != nil || res.Status != agent.StatusCompleted || !strings.Contains(res.Text(), "Once upon a time.") || a.count(a2a.OpStream) != 1 {
		t.Errorf("%v %v, sent %d times", err, res, a.count(a2a.OpStream))
	}
}

func TestABrokenStreamIsFollowedByASubscription(t *testing.T) {
	for _, v := range []a2a.Version{a2a.V1, a2a.V03} {
		broke := make(chan struct{})
		var once sync.Once
		a := newAgent(t, v, true, func(_ context.Context, k *task, _ int, _ string) {
			k.artifact("1", "story", "Once upon ", false)
			<-broke
			k.artifact("1", "story", "a time.", true)
			k.update(a2a.StateCompleted, "")
		})
		a.cut = func(op a2a.Operation, n int) bool {
			if op == a2a.OpSubscribe || n < 2 { // after the task, before what it makes
				return false
			}
			once.Do(func() { close(broke) })
			return true
		}
		host := &heard{}
		res := run(t, t.Context(), a.engine(t), ask("s", "x"), agent.WithEngineHost(host))
		if res.Status != agent.StatusCompleted || res.Text() != "Once upon a time." || a.count(a2a.OpStream) != 1 || host.text(event.TextDelta) != "Once upon a time." {
			t.Errorf("%s: %v %v: %q, listeners heard %q, sent %d times", v, res.Status, res.Err, res.Text(), host.text(event.TextDelta), a.count(a2a.OpStream))
		}
	}
}

func TestHooksSeeTheMessageBeforeItLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		decision hook.Decision
		answer   *journal.Answered
		sent     string
		class    *errdefs.Class
	}{
		"no opinion":         {hook.Decision{}, nil, "my secret", nil},
		"deny":               {hook.Denied("not to them"), nil, "", errdefs.PolicyDenied},
		"another text":       {hook.Decision{Input: `{"agent":"elsewhere","url":"http://agent.test/rpc","text":"my ***"}`}, nil, "my ***", nil},
		"another address":    {hook.Decision{Input: `{"agent":"elsewhere","url":"http://evil.test","text":"x"}`}, nil, "", errdefs.Validation},
		"ask, and yes":       {hook.Asking("send it?"), &journal.Answered{Approved: true}, "my secret", nil},
		"ask, and no":        {hook.Asking("send it?"), &journal.Answered{Text: "no way"}, "", errdefs.PolicyDenied},
		"ask, and an edit":   {hook.Asking("send it?"), &journal.Answered{Approved: true, Input: `{"agent":"elsewhere","url":"http://agent.test/rpc","text":"mine"}`}, "mine", nil},
		"ask, and elsewhere": {hook.Asking("send it?"), &journal.Answered{Approved: true, Input: `{"agent":"x","url":"http://agent.test/rpc","text":"mine"}`}, "", errdefs.Validation},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, a2a.V1, true, story)
			seen := 0
			h := hook.Middleware{Name: "h", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
				if seen++; u.Call.Name != remote.ToolName || seen == 1 && !strings.Contains(u.Call.Input, "my secret") {
					t.Errorf("the hook saw %+v", u.Call)
				}
				if seen > 1 && c.decision.Verdict != hook.Deny {
					return hook.Decision{}, nil
				}
				return c.decision, nil
			}}
			host := engine.HostFuncs{AskUserFunc: func(_ context.Context, p engine.Prompt) (engine.Reply, error) {
				if c.answer == nil || p.Prompt == "" {
					t.Errorf("somebody was asked: %+v", p)
				}
				return engine.Reply{Answered: *c.answer}, nil
			}}
			res := run(t, t.Context(), a.engine(t), ask("s", "my secret"), agent.WithHooks(h), agent.WithEngineHost(host))
			if errdefs.Of(res.Err) != c.class {
				t.Errorf("the run: %v", res.Err)
			}
			_, sent := a.did()
			if c.sent == "" && len(sent) > 0 || c.sent != "" && (len(sent) != 1 || sent[0].Parts[0].Text != c.sent) {
				t.Errorf("sent: %s", compact(sent))
			}
		})
	}
}

func TestABudgetBindsWhatCanBeBound(t *testing.T) {
	for name, c := range map[string]struct {
		budget *engine.Budget
		class  *errdefs.Class
		sent   int
	}{
		"calls":  {&engine.Budget{Calls: 1}, errdefs.BudgetExceeded, 1},
		"tokens": {&engine.Budget{Tokens: 1000}, errdefs.Validation, 0},
		"money":  {&engine.Budget{CostMicros: 1000}, errdefs.Validation, 0},
		"time":   {&engine.Budget{Time: 300 * time.Millisecond}, errdefs.BudgetExceeded, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, a2a.V1, true, func(ctx context.Context, k *task, turn int, text string) {
				if name == "time" {
					<-ctx.Done()
					return
				}
				asks(ctx, k, turn, text)
			})
			host := engine.HostFuncs{AskUserFunc: func(context.Context, engine.Prompt) (engine.Reply, error) {
				return engine.Reply{Answered: journal.Answered{Approved: true}}, nil
			}}
			res := run(t, t.Context(), a.engine(t), ask("s", "x"), agent.WithBudget(c.budget), agent.WithEngineHost(host))
			if _, sent := a.did(); res.Status != agent.StatusFailed || errdefs.Of(res.Err) != c.class || len(sent) != c.sent {
				t.Errorf("%v %v; sent %d", res.Status, res.Err, len(sent))
			}
			if name == "time" && a.count(a2a.OpCancel) != 1 {
				t.Error("the task goes on")
			}
		})
	}
}

func TestTheTraceAndTheMessagesIDGoAlong(t *testing.T) {
	a := newAgent(t, a2a.V1, true, story)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	run(t, traced.Extract(t.Context(), http.Header{"Traceparent": {parent}}.Get), a.engine(t), agent.Request{ContextID: "s", RunID: "r", Message: message.User("x"), Config: &agent.RequestConfig{AcceptedOutputModes: []string{"text/plain"}}})
	if got := a.heads[0].Get("traceparent"); got != parent {
		t.Errorf("traceparent: %q", got)
	}
	_, sent := a.did()
	b := newAgent(t, a2a.V1, true, story)
	run(t, t.Context(), b.engine(t), agent.Request{ContextID: "s", RunID: "r", Message: message.User("x")})
	if _, again := b.did(); sent[0].ID != again[0].ID || !strings.HasPrefix(sent[0].ID, "pawl-") {
		t.Errorf("ids of one effect differ: %q, %q", sent[0].ID, again[0].ID)
	}
}

func TestFilesGoBothWays(t *testing.T) {
	a := newAgent(t, a2a.V1, true, nil)
	a.work = func(_ context.Context, k *task, _ int, _ string) {
		a.mu.Lock()
		parts := a.sent[len(a.sent)-1].Parts
		k.now.Artifacts = []a2a.Artifact{{ID: "back", Name: "main", Parts: append(parts[1:], a2a.URL("", "x", "gopher://x"))}}
		k.add(a2a.Event{Artifact: &a2a.ArtifactUpdate{TaskID: k.now.ID, Artifact: k.now.Artifacts[0]}})
		a.mu.Unlock()
		k.update(a2a.StateCompleted, "")
	}
	in := []message.Part{message.Text{Text: "look"}, message.File{MIME: "image/png", Name: "a.png", Data: "\xff\x00"}, message.File{MIME: "text/csv", Name: "b", URL: "https://x/b"}}
	res := run(t, t.Context(), a.engine(t), agent.Request{Message: message.New(message.RoleUser, in...)})
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	var got []message.Part
	for p := range res.LastBoard.Channel("artifact:main").Last().Parts() {
		got = append(got, p)
	}
	if diff := cmp.Diff(append(in[1:], message.Text{Text: "gopher://x"}), got); diff != "" {
		t.Error(diff)
	}
}

func TestATaskOfAnotherAgentIsNotGoneOnWith(t *testing.T) {
	a := newAgent(t, a2a.V1, true, asks)
	store := journal.Memory()
	run(t, t.Context(), a.engine(t), ask("s", "greet"), agent.WithJournal(store))
	b := newAgent(t, a2a.V1, true, asks)
	b.url = "http://other.test"
	if _, err := agent.Resume(t.Context(), who, b.engine(t), "s", agent.WithJournal(store)); !errors.Is(err, errdefs.NotAvailable) {
		t.Errorf("resumed with another agent: %v", err)
	}
}

func TestAnAgentThatMixesUpTasksIsNotBelieved(t *testing.T) {
	a := newAgent(t, a2a.V1, true, func(_ context.Context, k *task, _ int, _ string) {
		k.a.mu.Lock()
		k.add(a2a.Event{Status: &a2a.StatusUpdate{TaskID: "another", ContextID: "c", Status: a2a.TaskStatus{State: a2a.StateCompleted}}})
		k.a.mu.Unlock()
	})
	if res := run(t, t.Context(), a.engine(t), ask("s", "x")); errdefs.Of(res.Err) != errdefs.Internal || !strings.Contains(res.Err.Error(), "another") {
		t.Errorf("%v", res.Err)
	}
}

func TestNoClientIsAnError(t *testing.T) {
	if _, err := remote.New(nil); !errors.Is(err, errdefs.Validation) {
		t.Error(err)
	}
}

func TestWhatWasMissedBetweenTwoStreamsIsReadAtTheEnd(t *testing.T) {
	joined := make(chan struct{})
	a := newAgent(t, a2a.V03, true, func(_ context.Context, k *task, _ int, _ string) {
		k.artifact("1", "story", "Once upon ", false)
		<-joined
		k.update(a2a.StateCompleted, "")
	})
	a.cut = func(op a2a.Operation, n int) bool { return op == a2a.OpStream && n > 1 }
	a.joins = func(k *task) { // after the task was read, before the stream begins: in 0.3 that is told to nobody
		k.artifact("1", "story", "a time.", true)
		close(joined)
	}
	if res := run(t, t.Context(), a.engine(t), ask("s", "x")); res.Text() != "Once upon a time." {
		t.Errorf("%v %v: %q", res.Status, res.Err, res.Text())
	}
}

func TestACancelDoesNotWaitForAnAgentThatSaysNothing(t *testing.T) {
	for _, streams := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		a := newAgent(t, a2a.V1, streams, func(ctx context.Context, _ *task, _ int, _ string) {
			cancel()
			<-ctx.Done()
		})
		a.begins = time.Minute
		began := time.Now()
		res := run(t, ctx, a.engine(t), ask("s", "x"))
		if res.Status != agent.StatusCanceled || time.Since(began) > 2*time.Second {
			t.Errorf("streams %v: %v after %v: %v", streams, res.Status, time.Since(began), res.Err)
		}
	}
}
