package blackbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommand(t *testing.T) { runRows(t) }

// objects reads one JSON object a line with these members.
func (w *world) objects(text string, members ...member) (all []object) {
	w.t.Helper()
	for line := range strings.Lines(text) {
		var o object
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			w.t.Fatalf("%v: %s", err, line)
		}
		if why := misfit(o, members); why != "" {
			w.t.Errorf("%s: %s", why, line)
		}
		all = append(all, o)
	}
	return all
}

func orNull(is func(any) bool) func(any) bool {
	return func(v any) bool { return v == nil || is(v) }
}

var (
	priceMembers  = []member{{"input", orNull(isNumber)}, {"output", orNull(isNumber)}, {"cache_read", orNull(isNumber)}, {"cache_write", orNull(isNumber)}}
	modelsMembers = []member{
		{"name", isText},
		{"aliases", each(isText)},
		{"window", orNull(isWhole)},
		{"max_output", orNull(isWhole)},
		{"price", orNull(fits(append([]member{{"tiers", each(fits(append([]member{{"over", isWhole}}, priceMembers...)...))}, {"until", orNull(isText)}}, priceMembers...)...))},
		{"images", orNull(isBool)},
		{"documents", orNull(isBool)},
		{"reasoning", orNull(isBool)},
		{"source", isText},
		{"date", isText},
		{"note", orNull(isText)},
	}
	doctorMembers = []member{
		{"name", isText},
		{"ok", isBool},
		{"text", isText},
		{"layer?", oneOf("default", "user", "project", "local", "outer")},
		{"place?", isText},
		{"state?", oneOf("active", "overridden", "repeated", "waiting", "removed")},
		{"value?", isAny},
	}
	checkMembers = []member{
		{"tool", isText},
		{"input", isAny},
		{"verdict", oneOf("allow", "ask", "deny")},
		{"reason", isText},
		{"rule?", isText},
		{"place?", isText},
		{"mode", isText},
	}
	serverMembers = []member{
		{"name", isText},
		{"layer", isText},
		{"place?", isText},
		{"state", oneOf("connected", "failed", "waiting")},
		{"reason?", isText},
		{"transport", isText},
		{"command?", isText},
		{"args?", each(isText)},
		{"url?", isText},
		{"required", isBool},
		{"tools", each(fits(member{"name", isText}, member{"description", isText}, member{"read_only", isBool}, member{"deferred", isBool}))},
	}
)

// hideWorker gives commands a PATH without pawl-worker. It skips the test if pawl-worker
// lies beside the program, which looks there first.
func (w *world) hideWorker() {
	w.t.Helper()
	if path, err := exec.LookPath(binary("pawl-worker")); err == nil {
		w.t.Skipf("%s is beside the program. Test a pawl without one to run this test", path)
	}
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if _, err := exec.LookPath(filepath.Join(dir, "pawl-worker")); err != nil {
			dirs = append(dirs, dir)
		}
	}
	w.env = append(w.env, "PATH="+strings.Join(dirs, string(filepath.ListSeparator)))
}

// hookSettings want a hook, which waits for approval.
const hookSettings = `{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "echo hook >> hooks"}]}]}}`

var _ = table("TestCommand",
	row{"version says version, commit and Go version", "version, commit, Go version", "pawl version", func(w *world) {
		r := w.ok("version")
		if lines := strings.Split(r.out, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[0], "pawl ") || !strings.HasPrefix(lines[1], "commit ") || !strings.HasPrefix(lines[2], "go1.") {
			w.t.Error(r)
		}
	}},
	row{"worker without pawl-worker says how to install it", "without it the error says how to install it (exit 2)", "pawl worker, pawl worker --address, pawl worker --namespace, pawl worker --queue, pawl worker --grace, exit 2", func(w *world) {
		w.hideWorker()
		r := w.pawl("worker", "--address", "127.0.0.1:1", "--namespace", "n", "--queue", "q", "--grace", "1s", "--engine", "loop")
		if r.code != 2 || r.out != "" || !strings.Contains(r.err, "Install it: go install github.com/pawl-dev/pawl/temporal/cmd/pawl-worker@latest") {
			w.t.Error(r)
		}
	}},
	row{"trust shows what waits and approves it", "shows what a project's files would run or allow, and approves that content", "pawl trust", func(w *world) {
		w.write(".agents/settings.json", hookSettings)
		r := w.ok("trust")
		if !strings.Contains(r.out, `hooks.SessionStart {"hooks":[{"type":"command","command":"echo hook >> hooks"}]}`) || !strings.HasSuffix(r.out, "Approved.\n") {
			w.t.Error(r)
		}
		w.done()
		w.wants("hooks", "hook\n")
		w.write(".agents/settings.json", strings.Replace(hookSettings, "echo hook", "echo other", 1))
		if r := w.plays(touches, "go"); r.code != 3 {
			w.t.Error(r)
		}
	}},
	row{"trust --list only shows it", "`--list` only shows it, `--revoke` forgets approvals", "pawl trust --list", func(w *world) {
		w.write(".agents/settings.json", hookSettings)
		if r := w.ok("trust", "--list"); !strings.Contains(r.out, "echo hook") || strings.Contains(r.out, "Approved") {
			w.t.Error(r)
		}
		if r := w.plays(touches, "go"); r.code != 3 {
			w.t.Error(r)
		}
	}},
	row{"trust --revoke forgets approvals", "`--list` only shows it, `--revoke` forgets approvals", "pawl trust --revoke", func(w *world) {
		w.write(".agents/settings.json", hookSettings)
		w.ok("trust")
		w.ok("trust", "--revoke")
		r := w.plays(touches, "go")
		if w.wants("hooks", ""); r.code != 3 {
			w.t.Error(r)
		}
	}},
	row{"trust names what can't be seen", `Characters that can't be seen are shown as`, "pawl trust", func(w *world) {
		w.write(".agents/settings.json", strings.Replace(hookSettings, "echo hook", "echo h\u200book", 1))
		if r := w.ok("trust", "--list"); !strings.Contains(r.out, `h\u200book`) {
			w.t.Error(r)
		}
	}},
	row{"doctor says what is set up and what is missing", "what is set up and what is missing; every setting with the place that it comes from", "pawl doctor", func(w *world) {
		w.write(".agents/settings.json", `{"respectGitignore": false, "colour": 1}`)
		cmd := w.command(binary("pawl"), "doctor")
		cmd.Env = append(cmd.Env, "OPENAI_API_KEY=sk-secret")
		r := w.run(cmd)
		for _, want := range []string{"missing  key for anthropic: set ANTHROPIC_API_KEY", "ok       key for openai", "journal: sqlite:" + w.journal, "respectGitignore: false (project, .agents/settings.json:1", `there is no key "colour"`} {
			if !strings.Contains(r.out+r.err, want) {
				w.t.Errorf("it lacks %q: %v", want, r)
			}
		}
		if r.code != 0 || strings.Contains(r.out+r.err, "sk-secret") {
			w.t.Error(r)
		}
	}},
	row{"doctor --json has the fields", "`--json` has `name`, `ok`, `text`, and of settings `layer`, `place`, `state`, `value`", "pawl doctor", func(w *world) {
		w.write(".agents/settings.json", hookSettings)
		waiting := 0
		for _, o := range w.objects(w.ok("doctor", "--json").out, doctorMembers...) {
			if o["state"] == "waiting" && o["layer"] == "project" {
				waiting++
			}
		}
		if waiting != 1 {
			w.t.Errorf("%d settings wait, want 1", waiting)
		}
	}},
	row{"doctor is 1 when an MCP server does not work", "1 when an MCP server that counts doesn't work, else 0", "pawl doctor, exit 1", func(w *world) {
		w.write(filepath.Join(w.home, ".agents", "settings.json"), `{"mcpServers": {"gone": {"command": "no-such-program"}}, "sandbox": {"enabled": false}}`)
		if r := w.pawl("doctor"); r.code != 1 || !strings.Contains(r.out, "no-such-program") {
			w.t.Error(r)
		}
	}},
	row{"permissions check says the verdict and the reason", "`allow`, `ask` or `deny`, then the reason, on one line; nothing is run", "pawl permissions check", func(w *world) {
		for command, want := range map[string]string{"rm -rf /": "deny safety: ", "git push --force": "ask ", "cat go.mod": "allow "} {
			if r := w.ok("permissions", "check", "--no-sandbox", "bash", command); !strings.HasPrefix(r.out, want) || strings.Count(r.out, "\n") != 1 {
				w.t.Errorf("%s: %v", command, r)
			}
		}
	}},
	row{"permissions check reads commands of standard input", "`check bash -` reads one command a line and answers each with a line, in order", "pawl permissions check", func(w *world) {
		r := w.pawlWith("cat go.mod\nrm -rf /\n", "permissions", "check", "--no-sandbox", "bash", "-")
		if got := strings.Split(r.out, "\n"); r.code != 0 || len(got) != 3 || !strings.HasPrefix(got[0], "allow ") || !strings.HasPrefix(got[1], "deny ") {
			w.t.Error(r)
		}
	}},
	row{"permissions check --json has the fields", "`--json` has `tool`, `input`, `verdict`, `reason`, `rule`, `place`, `mode`", "pawl permissions check", func(w *world) {
		r := w.ok("permissions", "check", "--json", "--deny", "Read(.env)", "read", `{"file_path": ".env"}`)
		if got := w.objects(r.out, checkMembers...); len(got) != 1 || got[0]["verdict"] != "deny" || got[0]["rule"] != "Read(.env)" || got[0]["place"] != "--deny" || got[0]["mode"] != "default" {
			w.t.Error(r)
		}
	}},
	row{"permissions check goes by modes and rules", "what `--permission-mode`, `--taint` (which has no effect on one call alone), `--allow`, `--deny`, `--ask` (repeat) and `--no-sandbox` say", "pawl permissions check", func(w *world) {
		input := `{"file_path": "x", "content": "y"}`
		for want, flags := range map[string][]string{
			"ask ":   {"--no-sandbox"},
			"allow ": {"--no-sandbox", "--allow", "Edit(x)"},
			"deny ":  {"--no-sandbox", "--permission-mode", "dontAsk"},
		} {
			if r := w.ok(append(append([]string{"permissions", "check"}, flags...), "write", input)...); !strings.HasPrefix(r.out, want) {
				w.t.Errorf("%v: %v", flags, r)
			}
		}
	}},
	row{"models lists the catalogue", "A line for each model of the catalogue that comes with the program", "pawl models", func(w *world) {
		r := w.ok("models")
		if !strings.HasPrefix(r.out, "MODEL ") || !strings.Contains(r.out, "\nopenai/gpt-4o-mini ") || strings.Count(r.out, "\n") < 50 {
			w.t.Error(r)
		}
		if r := w.ok("models", "GPT-4o-MINI"); !strings.Contains(r.out, "openai/gpt-4o-mini ") || strings.Contains(r.out, "anthropic/") {
			w.t.Error(r)
		}
	}},
	row{"models --json has the fields", "`--json` has `name`, `aliases`, `window`, `max_output`, `price`", "pawl models", func(w *world) {
		if all := w.objects(w.ok("models", "--json").out, modelsMembers...); len(all) < 50 {
			w.t.Errorf("%d models", len(all))
		}
	}},
	row{"models is 1 when there is none", "Exit 1 when there is none", "pawl models, exit 1", func(w *world) {
		if r := w.pawl("models", "no-such-model"); r.code != 1 || r.out != "" || !strings.Contains(r.err, "pawl models lists all") {
			w.t.Error(r)
		}
	}},
	row{"graph validate is silent about a good graph", "says what is wrong with [graphs]: `path: problem` a line, exit 1 when there is one", "pawl graph validate", func(w *world) {
		w.write("good.yaml", writeGraph)
		w.write("bad.yaml", strings.Replace(writeGraph, "entry: put", "entry: putt", 1))
		if r := w.ok("graph", "validate", "good.yaml"); r.out != "" {
			w.t.Error(r)
		}
		if r := w.pawl("graph", "validate", "good.yaml", "bad.yaml"); r.code != 1 || !strings.Contains(r.out, `bad.yaml: entry: there is no node "putt": did you mean put?`) {
			w.t.Error(r)
		}
	}},
	row{"graph draw draws Mermaid, and Graphviz with --dot", "draws one, as a Mermaid flowchart, or with `--dot` for Graphviz", "pawl graph draw, pawl graph --dot", func(w *world) {
		w.write("flow.yaml", writeGraph)
		if r := w.ok("graph", "draw", "flow.yaml"); r.out != "flowchart TD\n  n1[\"put: tool\"]\n  end_((end))\n  n1 --> end_\n" {
			w.t.Error(r)
		}
		if r := w.ok("graph", "draw", "--dot", "flow.yaml"); !strings.HasPrefix(r.out, `digraph "flow" {`) {
			w.t.Error(r)
		}
	}},
	row{"graph run needs no key without models", "is `pawl run --engine graph:FILE`, with all its flags. Without a prompt that is \"Go.\". A graph without models needs no key", "pawl graph run", func(w *world) {
		w.write("flow.yaml", "vars: [word]\nentry: say\nnodes: [{id: say, type: template, config: {template: \"${last.text} ${word}\", role: assistant}}]\nedges: [{from: say, to: __end__}]\n")
		if r := w.ok("graph", "run", "--var", "word=now", "flow.yaml"); r.out != "Go. now\n" {
			w.t.Error(r)
		}
	}},
	row{"mcp list says how servers are", "where each is configured, how it is reached, whether it is `connected`, `failed` and why, or `waiting` for approval, and its tools", "pawl mcp list", func(w *world) {
		w.write("model.yaml", "turns: [{text: x}]")
		w.write(".agents/settings.json", `{"mcpServers": {"later": {"command": "no-such-program"}}}`)
		r := w.pawl("mcp", "list", "--json", "--no-sandbox", "--mcp", "gone=no-such-program",
			"--mcp", "peer="+binary("pawl")+" mcp serve --trust --no-agent --journal memory --model scripted/model.yaml")
		got := map[any]any{}
		for _, o := range w.objects(r.out, serverMembers...) {
			got[o["name"]] = o["state"]
			if o["name"] == "peer" && !strings.Contains(asJSON(o["tools"]), `"name":"mcp__peer__glob"`) {
				w.t.Errorf("%v", o["tools"])
			}
		}
		if r.code != 1 || got["peer"] != "connected" || got["gone"] != "failed" || got["later"] != "waiting" {
			w.t.Errorf("%v\n%v", got, r)
		}
	}},
	row{"mcp list of no servers", "Standard output carries the result only, and nothing when there is none", "pawl mcp list", func(w *world) {
		if r := w.ok("mcp", "list"); r.out != "" || !strings.Contains(r.err, "no MCP server is configured") {
			w.t.Error(r)
		}
	}},
	row{"demo shows an agent at work", "shows an agent at work, without a key and without a network", "pawl demo", func(w *world) { w.demo() }},
	row{"demo --crash does nothing twice", "kills the process while its edit is under way, lets another one resume the run, and shows from the journal that nothing was done twice", "pawl demo", func(w *world) { w.demo("--crash") }},
)

// demo runs the demo. A small program stands for go, which would compile its library.
func (w *world) demo(flags ...string) {
	w.t.Helper()
	onUnix(w.t)
	stand := "#!/bin/sh\nif grep -q 'middle :=' stats.go; then echo 'ok   example.com/stats 0.002s'; else echo '--- FAIL: TestMedian'; exit 1; fi\n"
	w.write(filepath.Join(w.home, "bin", "go"), stand)
	if err := os.Chmod(filepath.Join(w.home, "bin", "go"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	cmd := w.command(binary("pawl"), append([]string{"demo"}, flags...)...)
	cmd.Env = append(cmd.Env, "PATH="+filepath.Join(w.home, "bin")+":"+os.Getenv("PATH"))
	r := w.run(cmd)
	if r.code != 0 || !strings.Contains(r.out, "--- FAIL: TestMedian") || !strings.Contains(r.out, "go test passes") {
		w.t.Fatal(r)
	}
	changed, _ := filepath.Glob(filepath.Join(w.temp, "pawl-demo-*", "stats.go"))
	if len(changed) != 1 || strings.Count(w.read(changed[0]), "middle := len(sorted) / 2") != 1 {
		w.t.Errorf("%v", changed)
	}
	if len(flags) > 0 && !strings.Contains(r.out, "repeated: 0, lost: 0\n") {
		w.t.Error(r)
	}
}
