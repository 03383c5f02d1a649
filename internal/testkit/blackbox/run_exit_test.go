package blackbox

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestRun_ErrorClasses(t *testing.T) { runRows(t) }

// failing gives the row of a script that fails with a class.
func failing(class, how string, code int, script string, args ...string) row {
	return row{class + " " + how, "`error.class` is one of", "class " + class, func(w *world) { w.fails(class, code, script, args...) }}
}

// fails runs a script and checks how its failure is told.
func (w *world) fails(class string, code int, script string, args ...string) {
	w.t.Helper()
	all, r := w.lines(script, append(args, "go")...)
	end := all.end(w.t)
	text, _ := at(end, "error", "text").(string)
	if r.code != code || at(end, "error", "class") != class || text == "" || end["status"] == "completed" {
		w.t.Errorf("exit %d, want %d with class %s: %v", r.code, code, class, end)
	}
	if first, _, _ := strings.Cut(text, "\n"); class != "canceled" && class != "interrupted" && !strings.Contains(r.err, first) {
		w.t.Errorf("standard error says %q, want %q", r.err, text)
	}
}

var _ = table("TestRun_ErrorClasses",
	failing("validation", "of a request that the provider refuses", 1, "turns: [{error: {status: 400}}]"),
	failing("validation", "of a script that has no more turns", 1, `turns: [{tool_calls: [{name: glob, input: {pattern: x}}]}]`),
	failing("unauthorized", "of a wrong key", 1, "turns: [{error: {status: 401}}]"),
	failing("not_found", "of a model that is not there", 1, "turns: [{error: {status: 404}}]"),
	failing("conflict", "of what somebody else changed", 1, "turns: [{error: {status: 409}}]"),
	failing("context_overflow", "of a request that is too long", 1, "turns: [{error: {status: 413}}]"),
	failing("rate_limit", "of too many requests", 1, "turns: [{error: {status: 429}}]"),
	failing("not_available", "of a provider that is down", 1, "turns: [{error: {status: 503}}]"),
	failing("timeout", "of a provider that takes too long", 1, "turns: [{error: {status: 504}}]"),
	failing("refused", "of a model that will not answer", 1, "turns: [{text: no, stop: refusal}]"),
	failing("truncated", "of replies that are cut off again and again", 1, "turns: [{text: a, stop: max_tokens}, {text: b, stop: max_tokens}, {text: c, stop: max_tokens}, {text: d, stop: max_tokens}, {text: e, stop: max_tokens}]"),
	failing("no_progress", "of a model that repeats itself", 1, repeated(6)),
	failing("no_progress", "of empty replies", 1, `turns: [{text: " "}, {text: " "}, {text: " "}]`),
	failing("budget_exceeded", "of a limit of steps", 4, touches, "--max-steps", "1"),

	row{"interrupted of a run that waits", "`interrupted`, `aborted`", "class interrupted", func(w *world) {
		w.write("model.yaml", touches)
		r := w.pawl("run", "--json", "--model", "scripted/model.yaml", "--no-sandbox", "go")
		if end := decode(w.t, r.out).end(w.t); r.code != 3 || end["status"] != "interrupted" || at(end, "error", "class") != "interrupted" {
			w.t.Errorf("%v", end)
		}
	}},
	row{"policy_denied of a graph's gate", "`policy_denied`, `not_found`", "class policy_denied", func(w *world) {
		w.write("flow.yaml", "entry: g\nnodes: [{id: g, type: gate, config: {condition: \"1 > 2\", message: not today}}]\nedges: [{from: g, to: __end__}]\n")
		w.fails("policy_denied", 1, "turns: [{text: unused}]", "--engine", "graph:flow.yaml")
	}},
	row{"aborted of a graph's tool that fails", "`interrupted`, `aborted`", "class aborted", func(w *world) {
		w.write("flow.yaml", "entry: r\nnodes: [{id: r, type: tool, config: {tool: read, args: {file_path: nosuch}}}]\nedges: [{from: r, to: __end__}]\n")
		w.fails("aborted", 1, "turns: [{text: unused}]", "--engine", "graph:flow.yaml")
	}},
	row{"internal of a damaged journal", "`internal`, `no_progress`", "class internal", func(w *world) {
		w.plays(touches, "--journal", "sqlite:damaged.db", "go")
		b := []byte(w.read("damaged.db"))
		clear(b[4096:])
		w.write("damaged.db", string(b))
		w.fails("internal", 1, touches, "--journal", "sqlite:damaged.db")
	}},
	row{"conflict of a session that another process drives", "`conflict`, `interrupted`", "class conflict, --wait, exit 1", func(w *world) {
		first := w.sleeps("s")
		defer first.end()
		w.fails("conflict", 1, sleeps, "--session", "s")
	}},
	row{"canceled of an interrupt", "and `canceled`", "class canceled, exit 130", func(w *world) {
		first := w.sleeps("s")
		first.signal(syscall.SIGINT)
		r := first.wait()
		end := decode(w.t, r.out).end(w.t)
		if r.code != 130 || end["status"] != "canceled" || at(end, "error", "class") != "canceled" {
			w.t.Errorf("%d %v", r.code, end)
		}
	}},
)

// repeated is a script whose model makes the same call n times.
func repeated(n int) string {
	return "turns: [" + strings.Repeat("{tool_calls: [{name: bash, input: {command: \"true\"}}]}, ", n) + "{text: Done.}]"
}

func TestRun_Exit(t *testing.T) { runRows(t) }

var _ = table("TestRun_Exit",
	row{"0 prints the answer alone on standard output", "Standard output carries the result only", "exit 0", func(w *world) {
		r := w.plays(touches, "go")
		if r.code != 0 || r.out != "Done.\n" || !strings.Contains(r.err, "● bash") || !strings.Contains(r.err, "completed · 2 steps · 42 tokens · cost unknown · session ") {
			w.t.Error(r)
		}
	}},
	row{"1 prints nothing on standard output", "and nothing when there is none", "exit 1", func(w *world) {
		r := w.plays("turns: [{error: {status: 401}}]", "go")
		if r.code != 1 || r.out != "" || !strings.Contains(r.err, "pawl: scripted: HTTP 401") {
			w.t.Error(r)
		}
	}},
	row{"3 prints the lines to answer and to go on with", "the lines to answer and to go on with are printed", "exit 3", func(w *world) {
		w.write("model.yaml", touches)
		r := w.pawl("run", "--model", "scripted/model.yaml", "--no-sandbox", "--session", "s", "go")
		if r.code != 3 || r.out != "" || !strings.Contains(r.err, "pawl approve s w --no-sandbox, or pawl reject s w --no-sandbox") || !strings.Contains(r.err, "then: pawl resume s --no-sandbox") {
			w.t.Error(r)
		}
	}},
	row{"4 says which limit", "a budget or limit was reached", "exit 4", func(w *world) {
		r := w.plays(touches, "--max-steps", "1", "--session", "s", "go")
		if r.code != 4 || r.out != "" || !strings.Contains(r.err, "go on with: pawl run --session s") {
			w.t.Error(r)
		}
	}},
	row{"130 of a SIGTERM takes the commands along", "A cancelled run takes its commands with it", "exit 130", func(w *world) {
		first := w.sleeps("s")
		first.signal(syscall.SIGTERM)
		if r := first.wait(); r.code != 130 {
			w.t.Error(r)
		}
		w.gone("pid")
	}},
	row{"130 of a closed terminal", "canceled: an interrupt, a closed terminal", "exit 130", func(w *world) {
		first := w.sleeps("s")
		first.signal(syscall.SIGHUP)
		if r := first.wait(); r.code != 130 {
			w.t.Error(r)
		}
	}},
	row{"130 of a reader of standard output that went away", "a reader of standard output that went away", "exit 130", func(w *world) {
		w.write("model.yaml", `turns: [{text: "One.", tool_calls: [{id: s, name: bash, input: {command: "echo $$ > pid; sleep 300"}}]}, {text: Done.}]`)
		cmd := w.command(binary("pawl"), append(append([]string{"run", "--json"}, free...), "go")...)
		read, write, err := os.Pipe()
		if err != nil {
			w.t.Fatal(err)
		}
		cmd.Stdout = write
		if err := cmd.Start(); err != nil {
			w.t.Fatal(err)
		}
		_ = write.Close()
		buf := make([]byte, 16)
		_, _ = read.Read(buf)
		_ = read.Close()
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 130 {
			w.t.Errorf("exit %d, want 130", code)
		}
	}},
	row{"what was finished before an interrupt is in the journal", "what was finished is in the journal", "", func(w *world) {
		w.write("model.yaml", `turns: [{tool_calls: [{id: a, name: bash, input: {command: "echo one >> effects"}}]}, {tool_calls: [{id: s, name: bash, input: {command: "echo $$ > pid; sleep 300"}}]}, {text: Done.}]`)
		p := w.start(append(append([]string{"run", "--session", "s"}, free...), "go")...)
		w.until("the second call runs", func() bool { return w.read("pid") != "" })
		p.signal(os.Interrupt)
		p.wait()
		w.wants("effects", "one\n")
		if r := w.ok("sessions", "show", "s"); !strings.Contains(r.out, "tool bash · ok · a") || !strings.Contains(r.out, "run canceled") {
			w.t.Error(r)
		}
	}},
	row{"--wait waits for the other process", "wait while another process drives the session; without it that is an error", "--wait", func(w *world) {
		w.write("model.yaml", `turns: [{tool_calls: [{id: s, name: bash, input: {command: "echo $$ > pid; until test -e go; do sleep 0.05; done; echo one >> effects"}}]}, {text: First.}, {text: Second.}]`)
		first := w.start(append(append([]string{"run", "--session", "s"}, free...), "go")...)
		w.until("the first call runs", func() bool { return w.read("pid") != "" })
		second := w.start(append(append([]string{"run", "--session", "s", "--wait"}, free...), "more")...)
		w.write("go", "")
		if a, b := first.wait(), second.wait(); a.out != "First.\n" || b.code != 0 || b.out != "Second.\n" {
			w.t.Errorf("%v\n%v", a, b)
		}
		w.wants("effects", "one\n")
	}},
	row{"the prompt can come from standard input", "`-` reads the prompt from standard input (UTF-8, at most 4 MiB)", "pawl run", func(w *world) {
		p := newProvider(w.t, "Hello.")
		cmd := w.command(binary("pawl"), "run", "--base-url", p.url, "--model", "openai/m", "-")
		cmd.Env = append(cmd.Env, "OPENAI_API_KEY=sk-test-0123456789")
		cmd.Stdin = strings.NewReader("from a pipe\n")
		if r := w.run(cmd); r.code != 0 || !strings.Contains(asJSON(p.requests()[0].body["messages"]), "from a pipe") {
			w.t.Error(r)
		}
	}},
	row{"keys are kept from commands", "They are kept from the commands that a model runs", "", func(w *world) {
		w.write("model.yaml", `turns: [{tool_calls: [{id: e, name: bash, input: {command: "env > effects; true"}}]}, {text: Done.}]`)
		cmd := w.command(binary("pawl"), append(append([]string{"run"}, free...), "go")...)
		cmd.Env = append(cmd.Env, "ANTHROPIC_API_KEY=sk-secret", "GEMINI_API_KEY=sk-secret", "AWS_BEARER_TOKEN_BEDROCK=sk-secret", "MINE=seen")
		w.run(cmd)
		if env := w.read("effects"); strings.Contains(env, "sk-secret") || !strings.Contains(env, "PATH=") {
			w.t.Error(env)
		}
	}},
	row{"long outputs are kept beside the journal", "Long outputs of tools are kept beside the journal, in `JOURNAL.outputs`", "", func(w *world) {
		all, _ := w.lines(`turns: [{tool_calls: [{id: b, name: bash, input: {command: "seq 100000"}}]}, {text: Done.}]`, "go")
		_, rest, found := strings.Cut(all.of("tool.finished").text("content"), w.journal+".outputs/")
		if !found {
			w.t.Fatal("the result does not name the file")
		}
		name := strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(" :\n];", r) })[0]
		if text := w.read(w.journal + ".outputs/" + name); !strings.HasSuffix(text, "\n99999\n100000\n") {
			w.t.Errorf("%d bytes are kept", len(text))
		}
	}},
)

// sleeps is a script whose call waits until it is stopped.
const sleeps = `turns: [{tool_calls: [{id: s, name: bash, input: {command: "echo $$ > pid; sleep 300"}}]}, {text: Done.}]`

// sleeps starts a run with --json whose command waits, and waits until it does.
func (w *world) sleeps(session string) *process {
	w.t.Helper()
	onUnix(w.t)
	w.write("model.yaml", sleeps)
	p := w.start(append(append([]string{"run", "--json", "--session", session}, free...), "go")...)
	w.until("the command runs", func() bool { return w.read("pid") != "" })
	return p
}
