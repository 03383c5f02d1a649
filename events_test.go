//go:build unix

package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
	"github.com/pawl-dev/pawl/tool/mcp"
)

func TestAllSevenEventsOfARunReachTheHooksOfTheSettings(t *testing.T) {
	var hooks []string
	for _, event := range []string{"PreToolUse", "PostToolUse", "SessionStart", "SessionEnd", "Stop", "SubagentStart", "SubagentStop"} {
		hooks = append(hooks, fmt.Sprintf(`%q: [{"hooks": [{"type": "command", "command": "cat >>\"$CLAUDE_PROJECT_DIR/noted\""}]}]`, event))
	}
	for name, run := range map[string]func(*pawl.Runtime) (string, error){
		"Run": func(rt *pawl.Runtime) (string, error) {
			res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"})
			return res.Text(), err
		},
		"RunStream": func(rt *pawl.Runtime) (text string, last error) {
			for e, err := range rt.RunStream(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}) {
				if d, ok := e.Data.(journal.ModelFinished); ok && e.Session == "s" {
					text = d.Message.Text()
				}
				last = err
			}
			return text, last
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := world(t, map[string]string{
				".agents/settings.json": `{"hooks": {` + strings.Join(hooks, ", ") + `}}`,
				"script.yaml": `turns:
  - tool_calls: [{id: c1, name: glob, input: {pattern: "*"}}]
  - tool_calls: [{id: c2, name: read, input: {file_path: "nowhere"}}]
  - tool_calls: [{id: t1, name: task, input: {agent: explore, prompt: "look"}}]
  - text: done
agents:
  explore: {turns: [{tool_calls: [{id: k1, name: glob, input: {pattern: "*"}}]}, {text: explored}]}
`,
			})
			approve(t, dir)
			t.Chdir(dir)
			m, err := pawl.OpenModel("scripted/script.yaml")
			if err != nil {
				t.Fatal(err)
			}
			rt := serve(t, dir, m)
			if text, err := run(rt); text != "done" || err != nil {
				t.Fatal(text, err)
			}
			if err := errors.Join(rt.Close(), rt.Close()); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range noted(t, dir) {
				line := fmt.Sprint(l["hook_event_name"], " ", l["session_id"])
				for _, field := range []string{"source", "tool_name", "tool_use_id", "agent_type", "agent_id", "last_assistant_message", "reason"} {
					if v, ok := l[field]; ok {
						line += fmt.Sprint(" ", v)
					}
				}
				got = append(got, line)
			}
			want := []string{
				"SessionStart s startup",
				"PreToolUse s glob c1", "PostToolUse s glob c1", "PreToolUse s read c2", "PostToolUse s read c2",
				"PreToolUse s task t1",
				"SubagentStart s explore s/t1",
				"PreToolUse s/t1 glob k1 explore s/t1", "PostToolUse s/t1 glob k1 explore s/t1",
				"SubagentStop s explore s/t1 explored",
				"PostToolUse s task t1",
				"Stop s done",
				"SessionEnd s other",
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			count := map[string]int{}
			for _, line := range got {
				count[strings.Fields(line)[0]]++
			}
			if d := cmp.Diff(map[string]int{"PreToolUse": 4, "PostToolUse": 4, "SessionStart": 1, "SessionEnd": 1, "Stop": 1, "SubagentStart": 1, "SubagentStop": 1}, count); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestASessionEndsOnceHoweverItsRunEnds(t *testing.T) {
	panics := tool.Func("burst", "", func(context.Context, struct{}) (string, error) { panic("a tool") }, tool.ReadOnly)
	began := make(chan struct{}, 1)
	waits := tool.Func("wait", "", func(ctx context.Context, _ struct{}) (string, error) {
		began <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}, tool.ReadOnly)
	asks := tool.Func("pay", "", func(context.Context, struct{}) (string, error) { return "", nil }, tool.RequiresApproval)
	calls := func(name string) model.Model { return stub{message.Assistant("", call("c", name, `{}`))} }
	hooked1 := func(m hook.Middleware) func(*pawl.Options) {
		return func(o *pawl.Options) { o.Middleware = []hook.Middleware{m} }
	}
	for name, c := range map[string]struct {
		model  model.Model
		change func(*pawl.Options)
		cancel bool // by its context
		close  bool // by Close
		want   agent.Status
	}{
		"it completes":             {model: stub{}, want: agent.StatusCompleted},
		"a tool panics":            {model: calls("burst"), want: agent.StatusCompleted},
		"a hook panics at a call":  {model: calls("burst"), change: hooked1(hook.Middleware{Name: "m", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { panic("a hook") }}), want: agent.StatusCompleted},
		"a hook panics at its end": {model: stub{}, change: hooked1(hook.Middleware{Name: "m", PostGeneration: func(context.Context, *hook.Generation) error { panic("a hook") }}), want: agent.StatusCompleted},
		"a hook panics before":     {model: stub{}, change: hooked1(hook.Middleware{Name: "m", PreGeneration: func(context.Context, *hook.Generation) error { panic("a hook") }}), want: agent.StatusAborted},
		"the model panics":         {model: thinking(func(model.Request) message.Message { panic("a model") }), want: agent.StatusFailed},
		"it waits for a person":    {model: calls("pay"), want: agent.StatusInterrupted},
		"a limit":                  {model: calls("burst"), change: func(o *pawl.Options) { o.Limits = loop.Limits{Steps: 1} }, want: agent.StatusFailed},
		"it is cancelled":          {model: calls("wait"), cancel: true, want: agent.StatusCanceled},
		"the Runtime is closed":    {model: calls("wait"), close: true, want: agent.StatusCanceled},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", stream), func(t *testing.T) {
				o := pawl.Options{Model: c.model, Tools: []tool.Tool{panics, waits, asks}, Journal: journal.Memory()}
				if c.change != nil {
					c.change(&o)
				}
				rt, dir := hooked(t, o, shell.Hook{Event: shell.SessionStart, Command: noteIt}, shell.Hook{Event: shell.SessionEnd, Command: noteIt})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var run sync.WaitGroup
				run.Go(func() {
					if !stream {
						_, _ = rt.Run(ctx, pawl.Request{Prompt: "go", SessionID: "s"})
						return
					}
					for _, err := range rt.RunStream(ctx, pawl.Request{Prompt: "go", SessionID: "s"}) {
						_ = err // the journal says how it ended
					}
				})
				if c.cancel || c.close {
					<-began
				}
				if c.cancel {
					cancel()
				}
				if !c.close {
					run.Wait()
				}
				if err := errors.Join(rt.Close(), rt.Close()); err != nil {
					t.Error(err)
				}
				run.Wait()
				log, err := journal.Open(t.Context(), o.Journal, "s")
				if err != nil || log.State().Status != string(c.want) {
					t.Error(err, log.State().Status)
				}
				if d := cmp.Diff([]string{"SessionStart s startup", "SessionEnd s"}, starts(t, dir)); d != "" {
					t.Error(d)
				}
			})
		}
	}
}

func TestTheBuiltInAgentsThatLookCanDoNothingElse(t *testing.T) {
	var written atomic.Int32
	type none struct{}
	server := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "write"}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
		written.Add(1)
		return &sdk.CallToolResult{}, nil, nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	own := tool.Func("deploy", "", func(context.Context, struct{}) (string, error) { written.Add(1); return "", nil })
	child := `{turns: [
    {tool_calls: [{id: bash, name: bash, input: {command: "touch made"}}, {id: Bash, name: Bash, input: {command: "touch made"}}, {id: write, name: write, input: {file_path: made, content: x}},
      {id: edit, name: edit, input: {file_path: kept, old_string: a, new_string: b}}, {id: mcp, name: mcp__notes__write, input: {}}, {id: deploy, name: deploy, input: {}},
      {id: task, name: task, input: {agent: general-purpose, prompt: "touch made"}}, {id: skill, name: skill, input: {name: any}}, {id: read, name: read, input: {file_path: kept}}]},
    {text: looked}]}`
	dir := world(t, together(skillFile("any", ""), map[string]string{"kept": "a", "script.yaml": `turns:
  - tool_calls: [{id: t1, name: task, input: {agent: explore, prompt: "x"}}]
  - tool_calls: [{id: t2, name: task, input: {agent: plan, prompt: "x"}}]
  - text: done
agents:
  explore: ` + child + `
  plan: ` + child + `
  general-purpose: {turns: [{tool_calls: [{id: b, name: bash, input: {command: "touch made"}}]}, {text: "x"}]}
`}))
	t.Chdir(dir)
	m, err := pawl.OpenModel("scripted/script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rt := serve(t, dir, m, func(o *pawl.Options) { // even where nothing is asked, and everything is allowed
		o.MCP, o.Tools = []mcp.Server{{Name: "notes", URL: web.URL}}, []tool.Tool{own}
		o.Permissions.Allow = []string{"Bash", "Write", "Edit", "mcp__notes", "Task", "deploy"}
	})
	if text, warned := asks(t, rt, "s", "go"); text != "done" || len(warned) != 0 {
		t.Fatal(text, warned)
	}
	for _, session := range []string{"s/t1", "s/t2"} {
		want := map[string]string{"read": "allow", "task": "invalid"}
		for _, id := range []string{"bash", "Bash", "write", "edit", "mcp", "deploy", "skill"} {
			want[id] = "deny"
		}
		if d := cmp.Diff(want, verdicts(t, rt.Journal(), session)); d != "" {
			t.Error(session, d)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "kept")); string(b) != "a" || written.Load() != 0 {
		t.Error(string(b), written.Load())
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestAProgramHasSubagentsOfItsOwn(t *testing.T) {
	dir := world(t, map[string]string{
		".agents/agents/reviewer.md": "---\nname: reviewer\ndescription: That of the file.\n---\nYou are the file's.\n", ".agents/agents/helper.md": "---\nname: helper\ndescription: Helps.\n---\nYou are the helper.\n",
	})
	m := thinking(func(req model.Request) message.Message {
		if who, ok := strings.CutPrefix(req.System, "You are "); ok && !strings.Contains(who, "works in a project") {
			return stub{does("k", "glob", `{"pattern":"*"}`), message.Assistant("I am " + who)}[replies(req)]
		}
		return stub{
			does("a", "task", `{"agent":"reviewer","prompt":"x"}`), does("b", "task", `{"agent":"other","prompt":"x"}`), does("c", "task", `{"agent":"helper","prompt":"x"}`), message.Assistant("done"),
		}[replies(req)]
	})
	theirs, err := loop.New(loop.Config{Model: stub{message.Assistant("I have an engine of my own")}})
	if err != nil {
		t.Fatal(err)
	}
	subs := []agent.Subagent{
		{Agent: agent.Agent{ID: "reviewer", Instructions: "You are the program's.", Tools: []string{}}, Description: "That of the program."}, {Agent: agent.Agent{ID: "other"}, Engine: theirs, Description: "Another."},
	}
	for name, c := range map[string]struct {
		change func(*pawl.Options)
		want   map[string]string // what the calls gave
	}{
		"beside the project's":  {func(*pawl.Options) {}, map[string]string{"a": "I am the program's.", "b": "I have an engine of my own", "c": "I am the helper."}},
		"without the project's": {func(o *pawl.Options) { o.NoSubagents = true }, map[string]string{"a": "I am the program's.", "b": "I have an engine of my own", "c": ""}},
		"without a project":     {func(o *pawl.Options) { o.NoProject = true }, map[string]string{"a": "I am the program's.", "b": "I have an engine of my own", "c": ""}},
	} {
		rt := serve(t, dir, m, func(o *pawl.Options) { o.Subagents = subs; c.change(o) })
		if text, _ := asks(t, rt, "s", "go"); text != "done" {
			t.Error(name, text)
		}
		got := map[string]string{"a": "", "b": "", "c": ""}
		for e, err := range rt.Journal().Read(t.Context(), "s", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := e.Data.(journal.ToolFinished); ok {
				got[d.Call] = d.Content
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Error(name, d)
		}
		if v := verdicts(t, rt.Journal(), "s/a"); v["k"] != "deny" { // it may use nothing
			t.Error(name, v)
		}
	}
	_, err = pawl.New(t.Context(), pawl.Options{Model: m, ProjectRoot: dir, Journal: journal.Memory(), Subagents: append(subs, subs[0])})
	if !errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), "reviewer") {
		t.Error(err)
	}
}
