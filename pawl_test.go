package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool"
	"github.com/pawl-dev/pawl/tool/builtin"
)

func TestMain(m *testing.M) {
	if os.Getenv(probing) != "" {
		probe()
		return
	}
	goleak.VerifyTestMain(m)
}

// stub answers by how far the transcript is, so that it needs no state of its own.
type stub []message.Message

func (s stub) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	n := 0
	for _, m := range req.Messages.All() {
		if m.Role() == message.RoleAssistant {
			n++
		}
	}
	if n >= len(s) {
		return &model.Response{Message: message.Assistant("done")}, nil
	}
	return &model.Response{Message: s[n], Usage: model.Usage{Input: 10, Output: 5}}, nil
}

func (s stub) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := s.Complete(ctx, req)
	if err != nil {
		return err
	}
	for word := range strings.FieldsSeq(resp.Message.Text()) {
		if err := cb(model.StreamResult{Text: word + " "}); err != nil {
			return err
		}
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

func call(id, name, input string) message.ToolCall {
	return message.ToolCall{ID: id, Name: name, Input: input}
}

func open(t testing.TB, o pawl.Options) *pawl.Runtime {
	t.Helper()
	o.NoBuiltins, o.NoProject = true, true
	if o.Journal == nil {
		o.Journal = journal.Memory()
	}
	if o.Sandbox == nil && tier.Quick() { // it has no sandbox, without which a tool needs a rule
		o.Sandbox = &sandbox.Policy{Off: true}
		for _, tl := range o.Tools {
			o.Permissions.Allow = append(o.Permissions.Allow, tl.Definition().Name)
		}
	}
	rt, err := pawl.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	return rt
}

func Example() {
	ctx := context.Background()
	add := tool.Func("add", "Add two numbers.",
		func(_ context.Context, in struct{ A, B int }) (int, error) { return in.A + in.B, nil }, tool.ReadOnly)
	rt, err := pawl.New(ctx, pawl.Options{
		Model:      stub{message.Assistant("let me see", call("c1", "add", `{"A":2,"B":3}`)), message.Assistant("it is five")},
		Tools:      []tool.Tool{add},
		NoBuiltins: true,
		Journal:    journal.Memory(),
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()

	res, err := rt.Run(ctx, pawl.Request{Prompt: "2+3?", SessionID: "one"})
	fmt.Println(res.Text(), res.Status, len(res.Messages), err)

	for e, err := range rt.RunStream(ctx, pawl.Request{Prompt: "2+3?", SessionID: "two"}) {
		fmt.Print(e.Type(), " ", e.Text, "| ")
		_ = err
	}
	// Output:
	// it is five completed 3 <nil>
	// session.created | run.started | said | prepared | model.started | text.delta let | text.delta me | text.delta see | model.finished | tool.judged | tool.started | tool.finished | model.started | text.delta it | text.delta is | text.delta five | model.finished | stopped | run.finished |
}

// chatty streams n words.
type chatty struct{ n int }

func (c chatty) Complete(context.Context, model.Request) (*model.Response, error) {
	return &model.Response{Message: message.Assistant("x")}, nil
}

func (c chatty) CompleteStream(ctx context.Context, _ model.Request, cb model.StreamHandler) error {
	for range c.n {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := cb(model.StreamResult{Text: "word "}); err != nil {
			return err
		}
	}
	return cb(model.StreamResult{Final: true, Response: &model.Response{Message: message.Assistant("x")}})
}

func TestADeltaCostsNoAllocation(t *testing.T) {
	cost := func(n int) float64 {
		rt := open(t, pawl.Options{Model: chatty{n}})
		return testing.AllocsPerRun(20, func() {
			for _, err := range rt.RunStream(t.Context(), pawl.Request{Prompt: "go"}) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	// what is kept for a cancelled reply grows by doubling, which is not a cost per delta
	if few, many := cost(10), cost(10010); many-few > 25 {
		t.Fatalf("10,000 deltas more cost %.0f allocations more", many-few)
	}
}

func TestBreakingOutOfAStreamCancelsTheRunAndKeepsWhatWasSaid(t *testing.T) {
	store := journal.Memory()
	rt := open(t, pawl.Options{Model: chatty{1 << 30}, Journal: store})
	n := 0
	for e, err := range rt.RunStream(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Delta != "" {
			n++
		}
		if n == 5 {
			break
		}
	}
	log, err := journal.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	if st := log.State(); st.Status != "canceled" || st.Messages.Len() != 2 || !strings.HasPrefix(st.Messages.Last().Text(), "word word ") {
		t.Fatalf("status %q, %d messages, the last: %.40q", st.Status, st.Messages.Len(), st.Messages.Last().Text())
	}
}

func TestACallersPanicIsNotTakenForATools(t *testing.T) {
	talks := tool.Func("talk", "", func(ctx context.Context, _ struct{}) (string, error) {
		_, _ = fmt.Fprint(tool.FromContext(ctx).Output, "half way")
		return "ok", nil
	})
	rt := open(t, pawl.Options{Model: stub{message.Assistant("", call("c1", "talk", `{}`))}, Tools: []tool.Tool{talks}})
	defer func() {
		if p := recover(); p != "mine" {
			t.Fatal(p)
		}
	}()
	for e, err := range rt.RunStream(t.Context(), pawl.Request{Prompt: "go"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Text == "half way" {
			panic("mine")
		}
	}
	t.Fatal("the panic was swallowed")
}

func TestAStreamYieldsTheErrorOfItsRunLast(t *testing.T) {
	rt := open(t, pawl.Options{Model: stub{message.Assistant("", call("c", "nothing", `{}`))}, Limits: loop.Limits{Steps: 1}})
	var last error
	n := 0
	for _, err := range rt.RunStream(t.Context(), pawl.Request{Prompt: "go"}) {
		if last = err; err != nil {
			n++
		}
	}
	if !errors.Is(last, loop.ErrMaxSteps) || !errdefs.BudgetExceeded.Is(last) || n != 1 {
		t.Fatal(last, n)
	}
}

func TestTwoRunsOfOneSessionFollowEachOther(t *testing.T) {
	store := journal.Memory()
	rt := open(t, pawl.Options{Model: stub{}, Journal: store})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if res, err := rt.Run(t.Context(), pawl.Request{Prompt: "hi", SessionID: "s"}); err != nil || res.Status != agent.StatusCompleted {
				t.Error(res, err)
			}
		})
	}
	wg.Wait()
	log, _ := journal.Open(t.Context(), store, "s")
	want := message.RoleUser
	for i, m := range log.State().Messages.All() {
		if m.Role() != want {
			t.Fatalf("message %d is of the %s", i, m.Role())
		}
		if want = message.RoleAssistant; m.Role() == message.RoleAssistant {
			want = message.RoleUser
		}
	}
	if log.State().Messages.Len() != 16 {
		t.Fatal(log.State().Messages.Len())
	}
}

func TestAWaitForASessionEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		slow := tool.Func("slow", "", func(context.Context, struct{}) (string, error) { <-hold; return "", nil })
		rt := open(t, pawl.Options{Model: stub{message.Assistant("", call("c", "slow", `{}`))}, Tools: []tool.Tool{slow}})
		var first sync.WaitGroup
		first.Go(func() { _, _ = rt.Run(t.Context(), pawl.Request{Prompt: "a", SessionID: "s"}) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := rt.Run(ctx, pawl.Request{Prompt: "b", SessionID: "s"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		close(hold)
		first.Wait()
	})
}

func TestCloseCancelsWhatRunsAndRefusesWhatComes(t *testing.T) {
	started := make(chan struct{})
	wait := tool.Func("wait", "", func(ctx context.Context, _ struct{}) (string, error) {
		close(started)
		<-ctx.Done()
		return "", ctx.Err()
	})
	rt := open(t, pawl.Options{Model: stub{message.Assistant("", call("c", "wait", `{}`))}, Tools: []tool.Tool{wait}})
	var res *agent.Result
	var wg sync.WaitGroup
	wg.Go(func() { res, _ = rt.Run(t.Context(), pawl.Request{Prompt: "go"}) })
	<-started
	if err := errors.Join(rt.Close(), rt.Close()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if res.Status != agent.StatusCanceled {
		t.Error(res.Status, res.Err)
	}
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"}); !errdefs.NotAvailable.Is(err) {
		t.Error(err)
	}
}

func TestWhatIsMissingIsSaidAtOnce(t *testing.T) {
	if _, err := pawl.New(t.Context(), pawl.Options{}); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
	rt := open(t, pawl.Options{Model: stub{}})
	if _, err := rt.Run(t.Context(), pawl.Request{}); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
	if _, err := rt.Resume(t.Context(), "nothing"); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
}

func TestAnUnknownModelNamesTheKnownProviders(t *testing.T) {
	for _, name := range []string{"gpt", "", "acme/x", "anthropic/", "/x"} {
		if _, err := pawl.OpenModel(name); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "anthropic/…, openai/…, openai-responses/…, gemini/…, bedrock/…, vertex/…, azure/…, azure-responses/…, ollama/…, scripted/…") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := pawl.OpenModel("scripted/no-such-file.yaml"); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
	for _, p := range pawl.Providers() {
		if p.Name == "scripted" {
			continue
		}
		m, err := pawl.OpenModel(p.Name + "/some-model")
		can, ok := model.CapabilitiesOf(m)
		if err != nil || !ok || !strings.HasPrefix(can.Name, p.Name+"/") {
			t.Errorf("%s: %v %v %q", p.Name, err, ok, can.Name)
		}
	}
}

func TestTheFirstProviderWithAKeyIsTheDefault(t *testing.T) {
	for _, p := range pawl.Providers() {
		for _, k := range p.Keys {
			t.Setenv(k, "")
		}
	}
	if got := pawl.DefaultModel(); got != "" {
		t.Error(got)
	}
	if missing, err := pawl.Key("gemini/x"); err != nil || strings.Join(missing, " ") != "GEMINI_API_KEY GOOGLE_API_KEY" {
		t.Error(missing, err)
	}
	t.Setenv("GOOGLE_API_KEY", "k")
	if got := pawl.DefaultModel(); !strings.HasPrefix(got, "gemini/") {
		t.Error(got)
	}
	t.Setenv("ANTHROPIC_API_KEY", "k")
	if got := pawl.DefaultModel(); !strings.HasPrefix(got, "anthropic/") {
		t.Error(got)
	}
	if missing, err := pawl.Key("gemini/x"); err != nil || missing != nil {
		t.Error(missing, err)
	}
}

func TestAToolCannotRunItsOwnSession(t *testing.T) {
	var rt *pawl.Runtime
	var inner error
	self := tool.Func("self", "", func(ctx context.Context, _ struct{}) (string, error) {
		_, inner = rt.Run(ctx, pawl.Request{Prompt: "again", SessionID: "s"})
		res, err := rt.Run(ctx, pawl.Request{Prompt: "another", SessionID: "other"})
		return res.Text(), err
	})
	rt = open(t, pawl.Options{Model: stub{message.Assistant("", call("c", "self", `{}`))}, Tools: []tool.Tool{self}})
	if res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}); err != nil || res.Text() != "done" {
		t.Error(res.Text(), err)
	}
	if !errdefs.Conflict.Is(inner) {
		t.Error(inner)
	}
}

// answering approves what it is asked, and counts what it hears.
type answering struct {
	engine.NoopHost
	heard int
}

func (a *answering) Listening() bool { return true }

func (a *answering) Publish(context.Context, event.Event) error { a.heard++; return nil }

func (a *answering) AskUser(context.Context, engine.Prompt) (engine.Reply, error) {
	return engine.Reply{Answered: journal.Answered{Approved: true}}, nil
}

func TestAStreamAndAHostThatAnswersGoTogether(t *testing.T) {
	ran := 0
	pay := tool.Func("pay", "", func(context.Context, struct{}) (string, error) { ran++; return "paid", nil })
	asks := hook.Middleware{Name: "ask", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Asking("may I?"), nil }}
	host := &answering{}
	rt := open(t, pawl.Options{Model: stub{message.Assistant("", call("c", "pay", `{}`))}, Tools: []tool.Tool{pay}, Middleware: []hook.Middleware{asks}, Host: host})
	streamed := 0
	for _, err := range rt.RunStream(t.Context(), pawl.Request{Prompt: "go"}) {
		if err != nil {
			t.Fatal(err)
		}
		streamed++
	}
	if ran != 1 || streamed == 0 || host.heard != streamed {
		t.Errorf("ran %d, streamed %d, heard %d", ran, streamed, host.heard)
	}
}

func TestWithNobodyToAskTheRunIsInterruptedWithAllItsQuestions(t *testing.T) {
	pay := tool.Func("pay", "", func(context.Context, struct{}) (string, error) { return "paid", nil })
	asks := hook.Middleware{Name: "ask", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Asking("may I?"), nil }}
	rt := open(t, pawl.Options{Model: stub{message.Assistant("", call("a", "pay", `{}`), call("b", "pay", `{}`))}, Tools: []tool.Tool{pay}, Middleware: []hook.Middleware{asks}})
	res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"})
	if !errdefs.Interrupted.Is(err) || res.Status != agent.StatusInterrupted || res.Cause != engine.CauseAwaitingPerson || len(res.Pending) != 2 {
		t.Fatal(err, res.Status, res.Cause, res.Pending)
	}
	log, err := journal.Open(t.Context(), rt.Journal(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.Answer(t.Context(), journal.Answered{ID: "b", Approved: true}), log.Answer(t.Context(), journal.Answered{ID: "a", Text: "too much"})); err != nil {
		t.Fatal(err)
	}
	res, err = rt.Resume(t.Context(), "s")
	if err != nil || res.Text() != "done" {
		t.Fatal(err, res)
	}
}

func TestARuntimeSaysSomethingToARunUnderWay(t *testing.T) {
	var rt *pawl.Runtime
	ask := tool.Func("ask", "", func(ctx context.Context, _ struct{}) (string, error) {
		return "ok", rt.Steer(ctx, "s", "be quick")
	})
	rt = open(t, pawl.Options{Model: stub{message.Assistant("", call("c1", "ask", `{}`)), message.Assistant("done")}, Tools: []tool.Tool{ask}})
	res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(res.Messages); n != 4 || res.Messages[2].Text() != "be quick" || res.Messages[2].Role() != message.RoleUser {
		t.Errorf("%v", res.Messages)
	}
	if err := rt.Steer(t.Context(), "s", "too late"); !errdefs.Conflict.Is(err) {
		t.Error(err)
	}
}

// curious reads the file that a long output was kept in.
type curious struct{ stub }

func (c curious) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	for r := range message.Of[message.ToolResult](req.Messages.Last()) {
		if path := regexp.MustCompile(`/[^ ]*pawl-output-[^ \n)]*`).FindString(r.Content); path != "" && r.Call == "c1" {
			return &model.Response{Message: message.Assistant("", call("c2", "read", fmt.Sprintf(`{"path":%q,"limit":1}`, path)))}, nil
		}
	}
	return c.stub.Complete(ctx, req)
}

func TestALongOutputThatWasKeptIsReadUnasked(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	rt, err := pawl.New(t.Context(), pawl.Options{
		Model:       curious{stub{message.Assistant("", call("c1", "bash", `{"command":"seq 100000"}`)), message.Assistant("none"), message.Assistant("read it")}},
		ProjectRoot: t.TempDir(), Journal: journal.Memory(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close() }()
	res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"})
	if err != nil || len(res.Pending) > 0 || res.Text() != "read it" {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestARuntimeJudgesCallsAndFencesCommands(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	dir := t.TempDir()
	for name, c := range map[string]struct {
		o     pawl.Options
		calls []message.ToolCall
		says  string
		class *errdefs.Class
	}{
		"a catastrophe": {pawl.Options{}, []message.ToolCall{call("c1", "bash", `{"command":"rm -rf /"}`)}, "safety: rm removes /", nil},
		"in any mode": {
			pawl.Options{Permissions: permission.Config{Mode: permission.ModeBypass}}, []message.ToolCall{call("c1", "bash", `{"command":"rm -rf /"}`)}, "safety: rm removes /", nil,
		},
		"without the check":    {pawl.Options{Permissions: permission.Config{Safety: pawl.NoSafety}}, []message.ToolCall{call("c1", "bash", `{"command":"git push --force"}`)}, "not a git repository", nil},
		"a rule":               {pawl.Options{Permissions: permission.Config{Deny: []string{"Read(x)"}}}, []message.ToolCall{call("c1", "read", `{"path":"x"}`)}, "Read(x)", nil},
		"a wrong rule":         {pawl.Options{Permissions: permission.Config{Deny: []string{"Read("}}}, nil, "Read(", errdefs.Validation},
		"a sandbox of nowhere": {pawl.Options{Sandbox: &sandbox.Policy{Root: "not absolute"}}, nil, "Options.Sandbox", errdefs.Validation},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Model, c.o.ProjectRoot, c.o.Journal = stub{message.Assistant("", c.calls...), message.Assistant("done")}, dir, journal.Memory()
			rt, err := pawl.New(t.Context(), c.o)
			if c.class != nil {
				if !c.class.Is(err) || !strings.Contains(err.Error(), c.says) {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rt.Close() }()
			res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"})
			if err != nil || len(res.Messages) < 2 || !strings.Contains(string(res.Messages[1].AppendJSON(nil)), c.says) {
				t.Errorf("%s, %v", res.Messages[1].AppendJSON(nil), err)
			}
		})
	}
}

func TestToolsThatWereMadeElsewhereAreInTheFenceToo(t *testing.T) {
	if can := fence.Probe(); !can.Writes.Holds {
		component.Absent(t, "a sandbox", can.Writes.Why)
	}
	other := t.TempDir()
	ws, err := builtin.Open(other) // without a sandbox of its own
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	if err := os.WriteFile(filepath.Join(other, "build.sh"), []byte("echo x >made\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, off := range []bool{false, true} {
		rt, err := pawl.New(t.Context(), pawl.Options{
			Model: stub{message.Assistant("", call("c1", "bash", `{"command":"sh build.sh"}`)), message.Assistant("done")}, Tools: []tool.Tool{ws.Bash()}, NoBuiltins: true,
			ProjectRoot: t.TempDir(), Journal: journal.Memory(), Sandbox: &sandbox.Policy{Off: off}, Permissions: permission.Config{Mode: permission.ModeBypass},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"}); err != nil {
			t.Error(err)
		}
		_ = rt.Close()
		if _, err := os.Stat(filepath.Join(other, "made")); (err == nil) != off {
			t.Errorf("without a sandbox: %t, made: %v", off, err)
		}
	}
}
