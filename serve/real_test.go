package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

const locked = "0123456789abcdef"

// node runs a script of testdata with the npm packages that it needs, and gives what it printed, by name.
func node(t *testing.T, script string, needs []string, args ...string) map[string][]json.RawMessage {
	t.Helper()
	tier.SkipQuick(t, "it runs packages of npm")
	const how = "run scripts/test, which installs it"
	dir := os.Getenv("PAWL_NPM")
	if dir == "" {
		component.Absent(t, "PAWL_NPM is not set", how)
	}
	for _, name := range needs {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", name)); err != nil {
			component.Absent(t, name+" is not in PAWL_NPM", how)
		}
	}
	program := filepath.Join(dir, "node_modules", ".bin", "node")
	if _, err := os.Stat(program); err != nil {
		program = component.Command(t, "node", "install Node.js")
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{filepath.Join("testdata", script)}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", script, err, out, stderr.String())
	}
	all := map[string][]json.RawMessage{}
	for line := range strings.Lines(string(out)) {
		var l struct {
			Name  string
			Value json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all[l.Name] = append(all[l.Name], l.Value)
	}
	return all
}

// said holds what a script printed to what is expected.
func said(t *testing.T, got []json.RawMessage, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d: %s", len(got), len(want), got)
	}
	for i := range want {
		var a, b any
		if json.Unmarshal(got[i], &a) != nil || json.Unmarshal([]byte(want[i]), &b) != nil {
			t.Fatalf("no JSON: %s, %s", got[i], want[i])
		}
		if d := cmp.Diff(b, a); d != "" {
			t.Errorf("value %d: %s", i, d)
		}
	}
}

func TestOpenAIsOwnClientTalksToIt(t *testing.T) {
	started := make(chan struct{}, 10)
	wait := tool.Func("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		started <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
	m := streams(func(ctx context.Context, req model.Request, cb model.StreamHandler) error {
		last := req.Messages.Last()
		switch {
		case strings.Contains(last.Text(), "Wait."):
			return scripted.New(scripted.Turn{Text: "I am waiting", Calls: callOf("wait")}).CompleteStream(ctx, model.Request{Messages: message.NewHistory(last)}, cb)
		case req.System != "Be brief.":
			return errors.New("the system prompt is " + req.System)
		}
		return scripted.New(
			scripted.Turn{Reasoning: "So then.", Text: "Let me.", Calls: callOf("look"), Usage: model.Usage{Input: 10, CacheRead: 90, Output: 5, Reasoning: 3}},
			scripted.Turn{Text: "There.", Usage: model.Usage{Input: 20, Output: 6}},
		).CompleteStream(ctx, req, cb)
	})
	p := serves(t, journal.Memory(), m, serve.Options{Tokens: []string{locked}}, look(), wait)
	got := node(t, "openai.mjs", []string{"openai"}, p.http.URL, locked)
	const usage = `{"prompt_tokens":120,"completion_tokens":11,"total_tokens":131,"prompt_tokens_details":{"cached_tokens":90},"completion_tokens_details":{"reasoning_tokens":3}}`
	said(t, got["models"], `["pawl"]`)
	said(t, got["model"], `"pawl"`)
	said(t, got["whole"], `{"text":"Let me.\n\nThere.","finish":"stop","usage":`+usage+`}`)
	said(t, got["streamed"], `{"text":"Let me.\n\nThere.","reasoning":"So then.\n\n[look {}]","finish":"stop","usage":`+usage+`}`)
	said(t, got["runner"], `{"text":"Let me.\n\nThere."}`)
	said(t, got["error"],
		`{"kind":"NotFoundError","status":404,"code":"model_not_found","param":"model","type":"invalid_request_error"}`,
		`{"kind":"BadRequestError","status":400,"code":"unsupported_parameter","param":"n","type":"invalid_request_error"}`,
		`{"kind":"BadRequestError","status":400,"code":"missing_required_parameter","param":"messages","type":"invalid_request_error"}`)
	said(t, got["locked"], `"AuthenticationError"`)
	if s := string(got["stopped"][0]); !strings.Contains(s, "I am waiting") {
		t.Errorf("it read %s", s)
	}
	for e, err := range journal.Follow(t.Context(), p.store, "stopped", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Data.(journal.RunFinished); ok {
			if d.Status != string(agent.StatusCanceled) {
				t.Errorf("the run that was stopped ended as %s", d.Status)
			}
			break
		}
	}
}

func TestAGUIsOwnClientRunsIt(t *testing.T) {
	asks := hook.Middleware{Name: "asks", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if u.Call.Name == "write" {
			return hook.Asking("It stays."), nil
		}
		return hook.Decision{}, nil
	}}
	write := tool.Func("write", "Writes.", func(context.Context, struct{}) (string, error) { return "written", nil })
	m := streams(func(_ context.Context, req model.Request, cb model.StreamHandler) error {
		last := req.Messages.Last()
		if !strings.HasSuffix(req.System, "The page: home") && req.Messages.Len() < 3 {
			return errors.New("the system prompt is " + req.System)
		}
		var pieces []model.StreamResult
		final := message.Assistant("There.")
		switch {
		case strings.Contains(last.Text(), "Look."):
			pieces, final = []model.StreamResult{{Reasoning: "So "}, {Reasoning: "then."}, {Text: "Let me."}}, message.New(message.RoleAssistant, message.Reasoning{Text: "So then."}, message.Text{Text: "Let me."}, message.ToolCall{ID: "l1", Name: "look", Input: "{}"})
		case strings.Contains(last.Text(), "Write."):
			final = message.Assistant("", message.ToolCall{ID: "w1", Name: "write", Input: "{}"})
		case strings.Contains(last.Text(), "Try."):
			pieces, final = []model.StreamResult{{Text: "Half a"}, {Void: errors.New("cut off")}, {Text: "All of it."}}, message.Assistant("All of it.")
		case strings.Contains(last.Text(), "Fail."):
			return errors.New("broken")
		}
		for _, r := range pieces {
			if err := cb(r); err != nil {
				return err
			}
		}
		stop := model.StopEnd
		if len(final.ToolCalls()) > 0 {
			stop = model.StopTools
		}
		return cb(model.StreamResult{Final: true, Response: &model.Response{Message: final, Stop: stop, Usage: model.Usage{Input: 10, Output: 5}}})
	})
	e, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{look(), write}})
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, serve.Of(agent.Agent{ID: "a", Hooks: []hook.Middleware{asks}}, e, journal.Memory()), serve.Options{Tokens: []string{locked}})
	got := node(t, "agui.mjs", []string{"@ag-ui/client", "@ag-ui/core"}, p.http.URL, locked)
	type result struct {
		Error    string
		Kinds    []string
		Pending  []struct{ ID, Reason string }
		Messages []struct {
			Role    string
			Content json.RawMessage
			Calls   []string
		}
		State json.RawMessage
	}
	read := func(name string) (r result) {
		t.Helper()
		if len(got[name]) != 1 {
			t.Fatalf("it printed no %s", name)
		}
		if err := json.Unmarshal(got[name][0], &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	shown := func(r result) string {
		var b strings.Builder
		for _, m := range r.Messages {
			b.WriteString(m.Role + " " + string(m.Content) + " " + strings.Join(m.Calls, ",") + "\n")
		}
		return b.String()
	}
	first := "user \"Look.\" \nreasoning \"So then.\" \nassistant \"Let me.\" look\ntool \"there\" \nassistant \"There.\" \n"
	r := read("run")
	if d := cmp.Diff(first, shown(r)); d != "" || string(r.State) != `{"count":1}` || !slices.Contains(r.Kinds, "STATE_SNAPSHOT") || !slices.Contains(r.Kinds, "STEP_STARTED") {
		t.Error(r.Kinds, string(r.State), r.Error, d)
	}
	if r := read("asked"); len(r.Pending) != 1 || r.Pending[0].Reason != "tool_call" {
		t.Errorf("%+v", r)
	}
	if r := read("unanswered"); !strings.Contains(r.Error, "pending interrupt") {
		t.Errorf("%+v", r)
	}
	r = read("answered")
	if !strings.HasSuffix(shown(r), "assistant null write\ntool \"written\" \nassistant \"There.\" \n") && !strings.HasSuffix(shown(r), "assistant  write\ntool \"written\" \nassistant \"There.\" \n") || len(r.Pending) != 0 {
		t.Errorf("%s%+v", shown(r), r.Pending)
	}
	if s := shown(read("again")); !strings.HasSuffix(s, "user \"Try.\" \nassistant \"All of it.\" \n") || !strings.HasPrefix(s, "user \"Look.\" \n") {
		t.Error(s)
	}
	if r := read("failed"); !strings.Contains(shown(r)+r.Error, "Fail.") && !strings.Contains(r.Error, "broken") {
		t.Errorf("%+v", r)
	}
	var schemas struct {
		Events          int
		Wrong, Warnings []json.RawMessage
	}
	if err := json.Unmarshal(got["schemas"][0], &schemas); err != nil || schemas.Events < 50 || len(schemas.Wrong) > 0 || len(schemas.Warnings) > 0 {
		t.Errorf("%v: %s", err, got["schemas"][0])
	}
}
