package blackbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// touches is a script whose one call adds a line to effects.
const touches = `turns:
- {text: "I write.", tool_calls: [{id: w, name: bash, input: {command: "echo one >> effects"}}], usage: {input_tokens: 10, output_tokens: 5}}
- {text: "Done.", usage: {input_tokens: 20, output_tokens: 7}}
`

func TestRun_Flags(t *testing.T) { runRows(t) }

var _ = table("TestRun_Flags",
	row{"--model names the provider and the model", "`openai/…`", "--model", func(w *world) {
		p := newProvider(w.t, "Hello.")
		r := w.asks(p, "--model", "openai/some-model", "hi")
		if got := p.requests(); r.code != 0 || r.out != "Hello.\n" || len(got) != 1 || got[0].body["model"] != "some-model" {
			w.t.Errorf("%v, requests %v", r, got)
		}
	}},
	row{"without --model the settings say it", "that of the [settings]", "--model", func(w *world) {
		p := newProvider(w.t, "Hello.")
		w.write(".agents/settings.json", `{"model": "openai/of-the-settings"}`)
		r := w.asks(p, "hi")
		if got := p.requests(); r.code != 0 || len(got) != 1 || got[0].body["model"] != "of-the-settings" {
			w.t.Errorf("%v, requests %v", r, got)
		}
	}},
	row{"--base-url gets the provider's key", "it gets the provider's key, if there is one in the environment", "--base-url", func(w *world) {
		p := newProvider(w.t, "Hello.")
		w.asks(p, "--model", "openai/m", "hi")
		if got := p.requests(); len(got) != 1 || got[0].path != "/v1/chat/completions" || got[0].key != "Bearer sk-test-0123456789" {
			w.t.Errorf("requests %v", got)
		}
	}},
	row{"--dir is the project", "the project; what directories above it forbid", "--dir", func(w *world) {
		w.write("other/go.mod", "module other\n")
		r := w.plays(touches, "--dir", "other", "go")
		w.wants("other/effects", "one\n")
		if r.code != 0 || w.read("effects") != "" {
			w.t.Error(r)
		}
	}},
	row{"without --dir it is the nearest directory upward", "the nearest directory upward with `.agents`, `.git` or `go.mod`", "--dir", func(w *world) {
		w.write("deep/er/x", "")
		w.write("model.yaml", `turns: [{tool_calls: [{name: glob, input: {pattern: "go.*"}}]}, {text: "Done."}]`)
		cmd := w.command(binary("pawl"), "run", "--json", "--model", "scripted/../../model.yaml", "--no-sandbox", "go")
		cmd.Dir = filepath.Join(w.dir, "deep", "er")
		all := decode(w.t, w.run(cmd).out)
		if start := all.of("run.started"); len(start) != 1 || start[0]["dir"] != w.dir {
			w.t.Errorf("%v", start)
		}
	}},
	row{"--session names a session and goes on with it", "continue a session, or name a new one", "--session", func(w *world) {
		w.plays(touches, "--session", "mine", "go")
		r := w.plays(touches+"- {text: \"Again.\"}\n", "--session", "mine", "more")
		sessions := w.sessions()
		if r.out != "Again.\n" || len(sessions) != 1 || sessions[0]["session"] != "mine" || sessions[0]["messages"] != 6.0 {
			w.t.Errorf("%v, sessions %v", r, sessions)
		}
	}},
	row{"--journal sqlite:PATH is a file", "`sqlite:PATH`, `postgres://…` or `memory`", "--journal", func(w *world) {
		w.plays(touches, "--journal", "sqlite:own.db", "go")
		if b, err := os.ReadFile(filepath.Join(w.dir, "own.db")); err != nil || !strings.HasPrefix(string(b), "SQLite format 3") {
			w.t.Error("own.db is no journal")
		}
		if _, err := os.Stat(w.journal); err == nil {
			w.t.Error("the default journal was made, too")
		}
	}},
	row{"--journal memory leaves nothing", "`sqlite:PATH`, `postgres://…` or `memory`", "--journal", func(w *world) {
		if r := w.plays(touches, "--journal", "memory", "go"); r.code != 0 {
			w.t.Error(r)
		}
		if entries, _ := filepath.Glob(filepath.Join(w.home, "*", "*", "*.db*")); len(entries) > 0 {
			w.t.Errorf("%v", entries)
		}
	}},
	row{"without --journal it lies in the state directory", "`sqlite:` at `pawl/journal.db` in `$XDG_STATE_HOME`", "--journal", func(w *world) {
		w.plays(touches, "go")
		if info, err := os.Stat(w.journal); err != nil || info.Mode().Perm() != 0o600 {
			w.t.Errorf("%v %v", info, err)
		}
	}},
	row{"--json writes events", "events, one JSON object a line", "--json", func(w *world) {
		if all, r := w.lines(touches, "go"); r.code != 0 || all.end(w.t)["text"] != "Done." || r.err != "" {
			w.t.Error(r)
		}
	}},
	row{"--max-steps ends the run before the next model call", "model calls | 100", "--max-steps, exit 4", func(w *world) {
		r := w.plays(touches, "--max-steps", "1", "go")
		w.wants("effects", "one\n")
		if r.code != 4 || strings.Contains(r.out, "Done.") || !strings.Contains(r.err, "limit of model calls") {
			w.t.Error(r)
		}
	}},
	row{"--budget-usd ends the run before the next model call", "dollars; needs a model whose price is known", "--budget-usd", func(w *world) {
		p := newProvider(w.t, `CALL glob {"pattern":"*"}`, "Done.")
		r := w.asks(p, "--model", "openai/gpt-4o-mini", "--budget-usd", "0.0001", "hi")
		if n := len(p.requests()); r.code != 4 || n != 1 {
			w.t.Errorf("%v after %d requests", r, n)
		}
	}},
	row{"--budget-tokens ends the run before the next model call", "tokens, cached ones included", "--budget-tokens", func(w *world) {
		all, r := w.lines(touches, "--budget-tokens", "15", "go")
		w.wants("effects", "one\n")
		if r.code != 4 || at(all.end(w.t), "error", "class") != "budget_exceeded" || all.end(w.t)["steps"] != 1.0 {
			w.t.Error(r)
		}
	}},
	row{"--timeout ends a call under way", "`--timeout` ends a call under way", "--timeout", func(w *world) {
		r := w.plays(`turns: [{tool_calls: [{name: bash, input: {command: "echo one >> effects; sleep 300; echo two >> effects"}}]}, {text: x}]`, "--timeout", "1s", "go")
		w.wants("effects", "one\n")
		if r.code != 4 {
			w.t.Error(r)
		}
	}},
	row{"--mcp NAME=COMMAND gives its tools", "the tools of an MCP server, as `mcp__NAME__TOOL`", "--mcp", func(w *world) {
		w.write("seen.txt", "")
		server := "peer=" + binary("pawl") + " mcp serve --journal memory --no-agent --model scripted/model.yaml"
		all, r := w.lines(`turns: [{tool_calls: [{id: g, name: mcp__peer__glob, input: {pattern: "seen.*"}}]}, {text: Done.}]`, "--mcp", server, "--allow", "mcp__peer", "go")
		if end := all.of("tool.finished"); r.code != 0 || len(end) != 1 || !strings.Contains(end.text("content"), "seen.txt") {
			w.t.Errorf("%v\n%v", end, r)
		}
	}},
	row{"a call of an --mcp server is asked about", "each call is asked about unless a rule such as `--allow mcp__NAME` admits it", "--mcp", func(w *world) {
		server := "peer=" + binary("pawl") + " mcp serve --journal memory --no-agent --tools all --no-sandbox --permission-mode bypassPermissions --model scripted/model.yaml"
		w.write("model.yaml", `turns: [{tool_calls: [{id: g, name: mcp__peer__write, input: {file_path: effects, content: one}}]}, {text: Done.}]`)
		r := w.pawl("run", "--model", "scripted/model.yaml", "--no-sandbox", "--mcp", server, "go")
		if w.wants("effects", ""); r.code != 3 {
			w.t.Error(r)
		}
	}},
	row{"--system-prompt TEXT is sent", "or `@FILE`", "--system-prompt", func(w *world) {
		p := newProvider(w.t, "Hello.")
		w.asks(p, "--model", "openai/m", "--system-prompt", "You are a lighthouse.", "hi")
		if got := p.requests(); !strings.Contains(systemOf(got), "You are a lighthouse.") {
			w.t.Errorf("%v", got)
		}
	}},
	row{"--system-prompt @FILE is read", "or `@FILE`", "--system-prompt", func(w *world) {
		p := newProvider(w.t, "Hello.")
		w.write("system.txt", "You are a ferry.")
		w.asks(p, "--model", "openai/m", "--system-prompt", "@system.txt", "hi")
		if got := p.requests(); !strings.Contains(systemOf(got), "You are a ferry.") {
			w.t.Errorf("%v", got)
		}
	}},
	row{"--reasoning is sent", "how much the model thinks]: `none`, `minimal`, `low`, `medium`, `high` or `max`", "--reasoning", func(w *world) {
		p := newProvider(w.t, "Hello.")
		r := w.asks(p, "--model", "openai-responses/gpt-5", "--reasoning", "low", "hi")
		if got := p.requests(); len(got) != 1 || at(got[0].body, "reasoning", "effort") != "low" {
			w.t.Errorf("%v, requests %v", r, got)
		}
	}},
	row{"--provider-tool is sent", "tool that the provider runs itself], unasked, such as `web_search`", "--provider-tool", func(w *world) {
		p := newProvider(w.t, "Hello.")
		r := w.asks(p, "--model", "openai-responses/gpt-5", "--provider-tool", "web_search", "hi")
		got := p.requests()
		if len(got) != 1 || !strings.Contains(asJSON(got[0].body["tools"]), `"web_search`) {
			w.t.Errorf("%v, requests %v", r, got)
		}
	}},
	row{"--output-schema has an answer that fits", "one that does not is sent back to the model, twice at most", "--output-schema", func(w *world) {
		w.write("schema.json", `{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}`)
		r := w.plays(`turns: [{text: "seven"}, {text: '{"n": "x"}'}, {text: '{"n": 7}'}]`, "--output-schema", "schema.json", "go")
		if r.code != 0 || r.out != `{"n": 7}`+"\n" {
			w.t.Error(r)
		}
	}},
	row{"--output-schema fails at the third misfit", "and then the run fails", "--output-schema", func(w *world) {
		w.write("schema.json", `{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}`)
		all, r := w.lines(`turns: [{text: a}, {text: b}, {text: c}, {text: '{"n": 7}'}]`, "--output-schema", "schema.json", "go")
		if r.code != 1 || all.end(w.t)["steps"] != 3.0 {
			w.t.Error(r)
		}
	}},
	row{"--engine loop is the default", "how the agent runs: `loop`", "--engine", func(w *world) {
		all, r := w.lines(touches, "--engine", "loop", "go")
		if w.wants("effects", "one\n"); r.code != 0 || all[0]["engine"] != "loop" {
			w.t.Error(r)
		}
	}},
	row{"--engine graph:FILE runs a graph", "`graph:FILE` for [a graph]", "--engine", func(w *world) {
		w.write("flow.yaml", writeGraph)
		all, r := w.lines("turns: [{text: unused}]", "--engine", "graph:flow.yaml", "--var", "word=one", "go")
		if w.wants("effects", "one"); r.code != 0 || all[0]["engine"] != "graph:flow" {
			w.t.Error(r)
		}
	}},
	row{"--engine script:FILE runs a script", "`script:FILE` for [a script]", "--engine", func(w *world) {
		w.write("flow.star", "tool(\"write\", file_path = \"effects\", content = \"one\")\nemit(\"Written.\")\n")
		all, r := w.lines("turns: [{text: unused}]", "--engine", "script:flow.star", "go")
		if w.wants("effects", "one"); r.code != 0 || all.end(w.t)["text"] != "Written." {
			w.t.Error(r)
		}
	}},
	row{"--engine temporal needs pawl-worker", "to which `pawl-worker` is needed beside this program or on PATH", "--engine", func(w *world) {
		w.hideWorker()
		r := w.plays(touches, "--engine", "temporal://127.0.0.1:1", "go")
		if r.code != 2 || r.out != "" || !strings.Contains(r.err, "go install ") {
			w.t.Error(r)
		}
	}},
	row{"--var sets a var", "sets a var at the beginning (repeat)", "--var", func(w *world) {
		w.write("flow.yaml", writeGraph)
		w.plays("turns: [{text: unused}]", "--engine", "graph:flow.yaml", "--var", "word=two=three", "go")
		w.wants("effects", "two=three")
	}},
	row{"--taint deny refuses what may send data out", "`off`, `ask` or `deny`, see [untrusted content]", "--taint", func(w *world) { w.taint("deny", 0, "") }},
	row{"--taint ask has a person asked", "`off`, `ask` or `deny`, see [untrusted content]", "--taint", func(w *world) { w.taint("ask", 3, "") }},
	row{"--taint off does nothing", "that of the settings, else `off`", "--taint", func(w *world) { w.taint("off", 0, "one\n") }},
	row{"--permission-mode default asks without a sandbox", "that of the settings, else `default`", "--permission-mode, exit 3", func(w *world) { w.mode("default", 3, "") }},
	row{"--permission-mode plan only reads", "`default`, `plan`, `acceptEdits`, `bypassPermissions` or `dontAsk`", "--permission-mode", func(w *world) { w.mode("plan", 0, "") }},
	row{"--permission-mode acceptEdits lets files be written", "`default`, `plan`, `acceptEdits`, `bypassPermissions` or `dontAsk`", "--permission-mode", func(w *world) { w.mode("acceptEdits", 0, "one") }},
	row{"--permission-mode bypassPermissions asks nothing", "`default`, `plan`, `acceptEdits`, `bypassPermissions` or `dontAsk`", "--permission-mode", func(w *world) { w.mode("bypassPermissions", 0, "one") }},
	row{"--permission-mode dontAsk denies what it would ask", "`default`, `plan`, `acceptEdits`, `bypassPermissions` or `dontAsk`", "--permission-mode", func(w *world) { w.mode("dontAsk", 0, "") }},
	row{"--allow lets a call run", "permission rules], such as `Bash(go test:*)`", "--allow", func(w *world) { w.rule("one\n", 0, "--allow", "Bash(echo:*)", "--allow", "Edit(effects)") }},
	row{"--deny refuses a call in every mode", "permission rules], such as `Bash(go test:*)`", "--deny", func(w *world) {
		w.rule("", 0, "--deny", "Bash(echo:*)", "--permission-mode", "bypassPermissions")
	}},
	row{"--ask has a person asked", "permission rules], such as `Bash(go test:*)`", "--ask", func(w *world) {
		w.rule("", 3, "--ask", "Bash(echo:*)", "--allow", "Bash(echo:*)")
	}},
	row{"--trust has all settings count once", "all settings of the project count for this once, approved or not", "--trust", func(w *world) {
		w.write(".agents/settings.json", `{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "echo hook >> hooks"}]}]}}`)
		without := w.plays(touches, "go")
		if w.wants("effects", ""); without.code != 3 || without.out != "" || !strings.Contains(without.err, "pawl trust") {
			w.t.Error(without)
		}
		with := w.plays(touches, "--trust", "go")
		w.wants("hooks", "hook\n")
		if again := w.plays(touches, "go"); with.code != 0 || again.code != 3 {
			w.t.Errorf("%v\n%v", with, again)
		}
	}},
	row{"--file attaches a file", "attaches an image, PDF, sound, or text file", "--file", func(w *world) {
		p := newProvider(w.t, "Seen.")
		w.write("note.sql", "select 1;")
		w.write("dot.png", "\x89PNG\r\n\x1a\n0000IHDR")
		r := w.asks(p, "--model", "openai/gpt-4o-mini", "--file", "note.sql", "--file", "dot.png", "look")
		if text := asJSON(p.requests()[0].body["messages"]); r.code != 0 || !strings.Contains(text, "select 1;") || !strings.Contains(text, "data:image/png;base64,iVBORw0K") {
			w.t.Errorf("%v, messages %s", r, text)
		}
	}},
	row{"--no-sandbox asks about what does more than read", "commands run without a sandbox; those that do more than read, and edits, are asked about", "--no-sandbox", func(w *world) { w.rule("", 3) }},
	row{"--no-sandbox does not ask about what only reads", "those that do more than read", "--no-sandbox", func(w *world) {
		w.write("model.yaml", `turns: [{tool_calls: [{name: bash, input: {command: "cat go.mod"}}]}, {text: Done.}]`)
		if r := w.pawl("run", "--model", "scripted/model.yaml", "--no-sandbox", "go"); r.code != 0 || r.out != "Done.\n" {
			w.t.Error(r)
		}
	}},
)

// writeGraph writes the var word to effects.
const writeGraph = `vars: [word]
entry: put
nodes:
- {id: put, type: tool, config: {tool: write, args: {file_path: effects, content: "${word}"}}}
edges: [{from: put, to: __end__}]
`

// mode writes a file in a permission mode, without a sandbox.
func (w *world) mode(mode string, code int, effects string) {
	w.t.Helper()
	w.write("model.yaml", `turns: [{tool_calls: [{name: write, input: {file_path: effects, content: one}}]}, {text: Done.}]`)
	r := w.pawl("run", "--model", "scripted/model.yaml", "--no-sandbox", "--permission-mode", mode, "go")
	if w.wants("effects", effects); r.code != code {
		w.t.Errorf("exit %d, want %d: %s", r.code, code, r.err)
	}
}

// rule runs a command that writes, without a sandbox, under permission rules.
func (w *world) rule(effects string, code int, flags ...string) {
	w.t.Helper()
	w.write("model.yaml", touches)
	r := w.pawl(slices.Concat([]string{"run", "--model", "scripted/model.yaml", "--no-sandbox"}, flags, []string{"go"})...)
	if w.wants("effects", effects); r.code != code {
		w.t.Errorf("exit %d, want %d: %s", r.code, code, r.err)
	}
}

// taint reads what a stranger may have written, by a tool of an MCP server, and then
// runs a command.
func (w *world) taint(what string, code int, effects string) {
	w.t.Helper()
	server := "peer=" + binary("pawl") + " mcp serve --journal memory --no-agent --model scripted/model.yaml"
	r := w.plays(`turns:
- {tool_calls: [{name: mcp__peer__glob, input: {pattern: "*"}}]}
- {tool_calls: [{name: bash, input: {command: "echo one >> effects"}}]}
- {text: Done.}
`, "--mcp", server, "--allow", "mcp__peer__glob", "--taint", what, "go")
	if w.wants("effects", effects); r.code != code {
		w.t.Errorf("exit %d, want %d: %s", r.code, code, r.err)
	}
}

// sessions are those that pawl sessions list --json has.
func (w *world) sessions(flags ...string) (all []object) {
	w.t.Helper()
	for line := range strings.Lines(w.ok(append([]string{"sessions", "list", "--json"}, flags...)...).out) {
		var o object
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			w.t.Fatal(err)
		}
		if why := misfit(o, sessionMembers); why != "" {
			w.t.Errorf("sessions list --json: %s: %s", why, line)
		}
		all = append(all, o)
	}
	return all
}

// sessionMembers are the fields of sessions list --json.
var sessionMembers = []member{
	{"session", isText},
	{"dir", isText},
	{"status", isText},
	{"created", isTime},
	{"updated", isTime},
	{"messages", isWhole},
	{"usage", fits(usageMembers...)},
	{"cost_usd", isDollars},
}

// systemOf gives the system prompt of the first request.
func systemOf(requests []asked) string {
	if len(requests) == 0 {
		return ""
	}
	return asJSON(at(requests[0].body, "messages", 0))
}

// asJSON writes a value as JSON.
func asJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return b.String()
}
