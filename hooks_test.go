//go:build unix

package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// heard is a model that keeps what it is asked.
type heard struct {
	stub
	mu    sync.Mutex
	asked []string // the texts of each request's messages
}

func (h *heard) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	var texts []string
	for _, m := range req.Messages.All() {
		text := m.Text()
		for r := range message.Of[message.ToolResult](m) {
			text += r.Content
		}
		texts = append(texts, text)
	}
	h.mu.Lock()
	h.asked = append(h.asked, strings.Join(texts, " | "))
	h.mu.Unlock()
	return h.stub.Complete(ctx, req)
}

func (h *heard) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := h.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

func (h *heard) last() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[len(h.asked)-1]
}

// look is a reading tool that notes what it was given.
func look(ran *[]string) tool.Tool {
	var mu sync.Mutex
	return tool.Func("look", "", func(_ context.Context, in struct {
		Path string `json:"path"`
	},
	) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		*ran = append(*ran, in.Path)
		return "seen " + in.Path, nil
	}, tool.ReadOnly)
}

// hooked opens a Runtime with hooks, in a directory of its own.
func hooked(t *testing.T, o pawl.Options, hooks ...shell.Hook) (*pawl.Runtime, string) {
	t.Helper()
	if o.ProjectRoot == "" {
		o.ProjectRoot = t.TempDir()
	}
	o.ShellHooks = hooks
	return open(t, o), o.ProjectRoot
}

// noted is what hooks that run noteIt were told, one line each.
func noted(t *testing.T, dir string) (lines []map[string]any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "noted"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err, line)
		}
		lines = append(lines, l)
	}
	return lines
}

const noteIt = `cat >> "$PAWL_PROJECT_DIR/noted"`

func TestAShellHookRefusesACallAndTheModelIsToldWhy(t *testing.T) {
	var ran []string
	m := &heard{stub: stub{message.Assistant("", call("c1", "look", `{"path":"a"}`), call("c2", "look", `{"path":"b"}`))}}
	rt, _ := hooked(t, pawl.Options{Model: m, Tools: []tool.Tool{look(&ran)}},
		shell.Hook{Event: shell.PreToolUse, Selector: shell.Selector{Tool: "look", Payload: `"path":"a"`}, Command: "echo not this one >&2; exit 2"})
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ran, []string{"b"}) || !strings.Contains(m.last(), "not this one") {
		t.Errorf("%q %q", ran, m.last())
	}
}

func TestWhatAShellHookMakesOfAnInputIsJudgedByThePermissions(t *testing.T) {
	var ran []string
	m := &heard{stub: stub{message.Assistant("", call("c1", "look", `{"path":"a"}`)), message.Assistant("", call("c2", "look", `{"path":"b"}`))}}
	rewrite := `grep -q '"path":"a"' && to=.env || to=c; echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"path":"'$to'"}}}'`
	rt, _ := hooked(t, pawl.Options{Model: m, Tools: []tool.Tool{look(&ran)}, Permissions: permission.Config{Deny: []string{"Read(.env)"}}},
		shell.Hook{Event: shell.PreToolUse, Command: rewrite})
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ran, []string{"c"}) || !strings.Contains(m.last(), "denied by the rule Read(.env)") {
		t.Errorf("%q %q", ran, m.last())
	}
}

func TestTheRuleOfAShellHookIsReadLikeAPermission(t *testing.T) {
	var ran []string
	m := stub{message.Assistant("", call("c1", "look", `{"path":"a"}`), call("c2", "look", `{"path":"./x/../.env"}`))}
	rt, dir := hooked(t, pawl.Options{Model: m, Tools: []tool.Tool{look(&ran)}}, shell.Hook{Event: shell.PreToolUse, If: "Read(.env)", Command: noteIt})
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	if l := noted(t, dir); len(l) != 1 || l[0]["tool_use_id"] != "c2" {
		t.Errorf("%v", l)
	}
	if _, err := pawl.New(t.Context(), pawl.Options{Model: m, ProjectRoot: dir, NoBuiltins: true, Journal: journal.Memory(), ShellHooks: []shell.Hook{{Event: shell.PreToolUse, If: "Read(", Command: "true"}}}); !errdefs.Validation.Is(err) {
		t.Errorf("a rule that can't be read: %v", err)
	}
}

func TestASessionStartsOnceAndWhatItsHooksSayReachesTheModel(t *testing.T) {
	m := &heard{}
	o := pawl.Options{Model: m, Journal: journal.Memory(), ProjectRoot: t.TempDir()}
	hooks := []shell.Hook{{Event: shell.SessionStart, Command: noteIt + `; echo the build is red`}, {Event: shell.SessionEnd, Command: noteIt}}
	rt, dir := hooked(t, o, hooks...)
	for i, prompt := range []string{"one", "two"} {
		if _, err := rt.Run(t.Context(), pawl.Request{Prompt: prompt, SessionID: "s"}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(m.last(), "the build is red"); n != 1 || i == 0 && !strings.HasSuffix(m.last(), "the build is red | one") {
			t.Errorf("%d times in %q", n, m.last())
		}
	}
	res, err := rt.Run(t.Context(), pawl.Request{Prompt: "unnamed"})
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.EndSession(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if err := rt.EndSession(t.Context(), "never heard of"); err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if err := rt.EndSession(t.Context(), "s"); !errdefs.NotAvailable.Is(err) {
		t.Errorf("after Close: %v", err)
	}
	rt, _ = hooked(t, o, hooks...) // another process
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "three", SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range noted(t, dir) {
		source, _ := l["source"].(string)
		reason, _ := l["reason"].(string)
		got = append(got, strings.Replace(l["session_id"].(string), res.ContextID, "unnamed", 1)+" "+source+reason)
	}
	want := []string{"s startup", "unnamed startup", "s other", "unnamed other", "s resume", "s other"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestASessionThatAHookDoesNotLetStartDoesNothing(t *testing.T) {
	m := &heard{}
	store := journal.Memory()
	rt, dir := hooked(t, pawl.Options{Model: m, Journal: store},
		shell.Hook{Event: shell.SessionStart, Command: `test -e "$PAWL_PROJECT_DIR/open" || echo '{"continue":false,"stopReason":"it is closed"}'`}, shell.Hook{Event: shell.SessionEnd, Command: noteIt})
	if res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}); err == nil || res.Status != agent.StatusAborted || !strings.Contains(err.Error(), "it is closed") || len(m.asked) != 0 {
		t.Errorf("%v %+v", err, res)
	}
	// an unfinished run of another process
	eng, err := loop.New(loop.Config{Model: stub{message.Assistant("", call("q", "pay", `{}`))}, Tools: []tool.Tool{tool.Func("pay", "", func(context.Context, struct{}) (string, error) { return "", nil }, tool.RequiresApproval)}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := agent.Run(t.Context(), agent.Agent{ID: "pawl"}, eng, agent.Request{ContextID: "u", Message: message.User("go")}, agent.WithJournal(store)); err != nil || res.Status != agent.StatusInterrupted {
		t.Fatalf("%v %+v", err, res)
	}
	if err := agent.Answer(t.Context(), store, "u", journal.Answered{ID: "q"}); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Resume(t.Context(), "u"); !errdefs.Aborted.Is(err) || !strings.Contains(err.Error(), "it is closed") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "open"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if res, err := rt.Resume(t.Context(), "u"); err != nil || res.Text() != "done" { // it was left as it was
		t.Errorf("%v %+v", err, res)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if l := noted(t, dir); len(l) != 1 || l[0]["session_id"] != "u" {
		t.Errorf("only what began ends: %v", l)
	}
}

func TestShellHooksAreToldOfATaskAndSendItsAgentBack(t *testing.T) {
	var ran []string
	kid := &heard{stub: stub{message.Assistant("", call("k1", "look", `{"path":"secret"}`)), message.Assistant("I think so")}}
	below, err := loop.New(loop.Config{Model: kid, Tools: []tool.Tool{look(&ran)}})
	if err != nil {
		t.Fatal(err)
	}
	task, err := agent.Task(agent.Subagents{{Agent: agent.Agent{ID: "explore"}, Engine: below}})
	if err != nil {
		t.Fatal(err)
	}
	m := &heard{stub: stub{message.Assistant("", call("c1", "task", `{"agent":"explore","prompt":"find it"}`))}}
	rt, dir := hooked(t, pawl.Options{Model: m, Tools: []tool.Tool{task}},
		shell.Hook{Event: shell.SubagentStart, Selector: shell.Selector{Tool: "explore"}, Command: noteIt + `; echo '{"hookSpecificOutput":{"additionalContext":"look at a.go first"}}'`},
		shell.Hook{Event: shell.SubagentStart, Selector: shell.Selector{Tool: "reviewer"}, Command: "exit 1"},
		shell.Hook{Event: shell.SubagentStop, Command: `tee -a "$PAWL_PROJECT_DIR/noted" | grep -q '"stop_hook_active":true' || { echo are you sure >&2; exit 2; }`},
		shell.Hook{Event: shell.PreToolUse, Selector: shell.Selector{Tool: "look"}, Command: "exit 2"},
		shell.Hook{Event: shell.Stop, Command: noteIt},
		shell.Hook{Event: shell.SessionStart, Command: noteIt},
	)
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	if len(ran) != 0 || !strings.Contains(kid.asked[0], "look at a.go first | find it") || !strings.Contains(kid.last(), "I think so | are you sure") || !strings.Contains(m.last(), "done") {
		t.Errorf("%q %q %q", ran, kid.asked, m.last())
	}
	var got []string
	for _, l := range noted(t, dir) {
		if got = append(got, l["hook_event_name"].(string)+" "+l["session_id"].(string)); l["agent_type"] != nil {
			got[len(got)-1] += " " + l["agent_type"].(string) + " " + l["agent_id"].(string)
		}
	}
	want := []string{"SessionStart s", "SubagentStart s explore s/c1", "SubagentStop s explore s/c1", "SubagentStop s explore s/c1", "Stop s"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestNoSessionEndsWhileARunIsUnderWayInIt(t *testing.T) {
	for _, session := range []string{"s", ""} {
		began, goOn := make(chan string), make(chan struct{})
		waits := tool.Func("wait", "", func(ctx context.Context, _ struct{}) (string, error) {
			in, _ := engine.InsideOf(ctx)
			began <- in.Run.Session
			<-goOn
			return "", nil
		})
		grants := &permission.Grants{}
		rt, dir := hooked(t, pawl.Options{Model: stub{message.Assistant("", call("c1", "wait", `{}`))}, Tools: []tool.Tool{waits}, Permissions: permission.Config{Grants: grants, Allow: []string{"wait"}}},
			shell.Hook{Event: shell.SessionEnd, Command: noteIt})
		done := make(chan error)
		go func() {
			_, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: session})
			done <- err
		}()
		name := <-began
		if err := grants.Approve(name, hook.Grant{Rule: "Read"}); err != nil {
			t.Fatal(err)
		}
		if err := rt.EndSession(t.Context(), name); !errdefs.Conflict.Is(err) {
			t.Errorf("session %q: %v", session, err)
		}
		if l := noted(t, dir); len(l) != 0 || len(grants.List(name)) != 1 {
			t.Errorf("%v %v", l, grants.List(name))
		}
		close(goOn)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for range 2 { // once is enough
			if err := rt.EndSession(t.Context(), name); err != nil {
				t.Errorf("session %q: %v", session, err)
			}
		}
		if l := noted(t, dir); len(l) != 1 || len(grants.List(name)) != 0 {
			t.Errorf("%v %v", l, grants.List(name))
		}
	}
}

func TestAHookThatHangsWhenTheRuntimeIsClosedIsKilled(t *testing.T) {
	tier.SkipQuick(t, "it waits for a process that is killed")
	host := &warned{}
	rt, dir := hooked(t, pawl.Options{Model: stub{}, Host: host},
		shell.Hook{Event: shell.SessionEnd, Name: "hangs", Command: `trap '' TERM; sleep 1000 & echo $! > "$PAWL_PROJECT_DIR/pid"; wait`})
	for _, s := range []string{"a", "b"} {
		if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: s}); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if err := rt.Close(); err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	b, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // one that only waits to be reaped is gone
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("process %d lives on: %v %s", pid, err, stat)
	}
	if all := host.texts(); len(all) != 2 || !strings.Contains(all[0], "SessionEnd hook hangs: it was not done after 1.5s and was killed") {
		t.Errorf("%q", all)
	}
}

// warned is a host that keeps its warnings.
type warned struct {
	engine.NoopHost
	mu  sync.Mutex
	all []event.Event
}

func (w *warned) Listening() bool { return true }

func (w *warned) Publish(_ context.Context, e event.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Delta == event.Warning {
		w.all = append(w.all, e)
	}
	return nil
}

func (w *warned) texts() (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.all {
		out = append(out, e.Text)
	}
	return out
}

func TestWhatAHookTellsPeopleIsAWarningOfItsRun(t *testing.T) {
	var ran []string
	m := stub{message.Assistant("", call("c1", "look", `{"path":"a"}`), call("c2", "look", `{"path":"b"}`))}
	rt, _ := hooked(t, pawl.Options{Model: m, Tools: []tool.Tool{look(&ran)}, Permissions: permission.Config{Allow: []string{"look"}}},
		shell.Hook{Event: shell.PreToolUse, Name: "guard", StatusMessage: "looking", Once: true, Command: `echo '{"systemMessage":"be careful"}'`},
		shell.Hook{Event: shell.Stop, Name: "tests", Command: "echo no such test >&2; exit 1"})
	var got []string
	run := ""
	for e, err := range rt.RunStream(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, is := e.Data.(journal.RunStarted); is {
			run = e.Run
		}
		if _, is := e.Data.(journal.ToolStarted); is {
			got = append(got, e.Type())
		}
		if e.Delta == event.Warning {
			if got = append(got, e.Text); e.Run != run || e.Session != "s" {
				t.Errorf("%+v", e)
			}
		}
	}
	want := []string{
		"PreToolUse hook guard: looking", "PreToolUse hook guard: be careful", "tool.started", "tool.started",
		"Stop hook tests: it failed with exit code 1, which decides nothing (2 refuses): no such test",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestWhatAHookInTheBackgroundSaysIsForTheLog(t *testing.T) {
	var ran []string
	var log strings.Builder
	host := &warned{}
	rt, _ := hooked(t, pawl.Options{
		Model: stub{message.Assistant("", call("c1", "look", `{"path":"a"}`))}, Tools: []tool.Tool{look(&ran)},
		Host: host, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}, shell.Hook{Event: shell.PreToolUse, Name: "slow", Async: true, Command: `echo '{"systemMessage":"it took a while"}'`})
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if all := host.texts(); len(all) != 0 || !strings.Contains(log.String(), "PreToolUse hook slow: it took a while") {
		t.Errorf("%q %s", all, log.String())
	}
}

// starts are the hooks' lines about sessions, in short.
func starts(t *testing.T, dir string) (got []string) {
	t.Helper()
	for _, l := range noted(t, dir) {
		source, _ := l["source"].(string)
		got = append(got, strings.TrimSpace(fmt.Sprint(l["hook_event_name"], " ", l["session_id"], " ", source)))
	}
	return got
}

func TestASessionThatIsPutAwayEndsAndComesBackFromTheJournal(t *testing.T) {
	m := &heard{}
	var ran []string
	o := pawl.Options{Model: m, MaxSessions: 2, Journal: journal.Memory(), Tools: []tool.Tool{look(&ran)}}
	rt, dir := hooked(t, o, shell.Hook{Event: shell.SessionStart, Command: noteIt}, shell.Hook{Event: shell.SessionEnd, Command: noteIt})
	for i, session := range []string{"a", "b", "a", "c", "c/d", "b", "a"} { // the one that was used longest ago goes
		if _, err := rt.Run(t.Context(), pawl.Request{Prompt: fmt.Sprint("prompt ", i), SessionID: session}); err != nil {
			t.Fatal(err)
		}
	}
	if want := "prompt 0 | done | prompt 2 | done | prompt 6"; m.last() != want {
		t.Errorf("a comes back with %q, want %q", m.last(), want)
	}
	want := []string{
		"SessionStart a startup", "SessionStart b startup", "SessionStart c startup", "SessionEnd b", "SessionStart c/d startup", "SessionEnd a",
		"SessionStart b resume", "SessionEnd c", "SessionStart a resume", "SessionEnd c/d",
	}
	if d := cmp.Diff(want, starts(t, dir)); d != "" {
		t.Error(d)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if got := starts(t, dir); len(got) != len(want)+2 || !slices.Contains(got[len(want):], "SessionEnd a") || !slices.Contains(got[len(want):], "SessionEnd b") {
		t.Error("each ends once:", got)
	}
}

func TestASessionInUseIsNotPutAway(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	waits := tool.Func("wait", "", func(context.Context, struct{}) (string, error) {
		began <- struct{}{}
		<-goOn
		return "", nil
	}, tool.ReadOnly)
	m := thinking(func(req model.Request) message.Message {
		if req.Messages.Last().Role() == message.RoleUser {
			switch req.Messages.Last().Text() {
			case "wait":
				return message.Assistant("", call("w", "wait", `{}`))
			case "serve":
				return background("b", "sleep 300")
			}
		}
		return message.Assistant("done")
	})
	dir := t.TempDir()
	rt := serve(t, dir, m, func(o *pawl.Options) {
		o.NoProject, o.MaxSessions, o.Tools = true, 1, []tool.Tool{waits}
		o.ShellHooks = []shell.Hook{{Event: shell.SessionEnd, Command: noteIt}}
	})
	var run sync.WaitGroup
	run.Go(func() {
		if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "wait", SessionID: "busy"}); err != nil {
			t.Error(err)
		}
	})
	<-began
	for _, session := range []string{"server", "x", "y", "z"} {
		prompt := "go"
		if session == "server" {
			prompt = "serve"
		}
		if _, err := rt.Run(t.Context(), pawl.Request{Prompt: prompt, SessionID: session}); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{"SessionEnd x", "SessionEnd y", "SessionEnd z"}, starts(t, dir)); d != "" {
		t.Error(d) // busy and server are there beside what may be held
	}
	if d := cmp.Diff([]string{"command.started"}, kinds(t, rt.Journal(), "server", "command")); d != "" {
		t.Error(d)
	}
	close(goOn)
	run.Wait()
	if got := starts(t, dir); len(got) != 4 || got[3] != "SessionEnd busy" { // now nobody uses it
		t.Error(got)
	}
}

func TestAForkStartsAsOne(t *testing.T) {
	o := pawl.Options{Model: stub{}, Journal: journal.Memory(), ProjectRoot: t.TempDir()}
	note := shell.Hook{Event: shell.SessionStart, Command: noteIt}
	rt, dir := hooked(t, o, note)
	run := func(session string) {
		t.Helper()
		if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: session}); err != nil {
			t.Fatal(err)
		}
	}
	fork := func(session, as string) {
		t.Helper()
		if _, err := journal.Fork(t.Context(), o.Journal, session, 0, as); err != nil {
			t.Fatal(err)
		}
	}
	run("s")
	fork("s", "f")
	run("f")
	run("f")
	fork("f", "g")
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	rt, _ = hooked(t, o, note) // another process
	run("f")
	run("g")
	if d := cmp.Diff([]string{"SessionStart s startup", "SessionStart f fork", "SessionStart f resume", "SessionStart g fork"}, starts(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestEachStartOfASessionHasOneEnd(t *testing.T) {
	rt, dir := hooked(t, pawl.Options{Model: stub{}, MaxSessions: 2, Journal: journal.Memory()}, shell.Hook{Event: shell.SessionStart, Command: noteIt}, shell.Hook{Event: shell.SessionEnd, Command: noteIt})
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			session := fmt.Sprint("s", i%6)
			if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: session}); err != nil {
				t.Error(err)
			}
			if i%8 == 0 {
				if err := rt.EndSession(t.Context(), session); err != nil && !errdefs.Conflict.Is(err) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	begun := map[string]bool{}
	for _, line := range starts(t, dir) {
		event, session, _ := strings.Cut(line, " ")
		session, source, _ := strings.Cut(session, " ")
		if start := event == "SessionStart"; start == begun[session] || source == "fork" {
			t.Errorf("%s: %s", session, event)
		} else {
			begun[session] = start
		}
	}
	for session, open := range begun {
		if open {
			t.Error(session, "did not end")
		}
	}
	if len(begun) != 6 {
		t.Error(begun)
	}
}
