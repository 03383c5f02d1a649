package blackbox

import (
	"fmt"
	"strings"
	"testing"
)

func TestCommand_WrongUse(t *testing.T) { runRows(t) }

// wrong is a row of wrong use: exit 2, nothing on standard output, and on standard error
// what was wrong and what would be right. In args {model} is a script that works.
func wrong(name, says string, args ...string) row {
	return row{name, "Wrong use says what was wrong, where, and what would be right, with exit 2", "exit 2", func(w *world) {
		w.write("model.yaml", "turns: [{text: Done.}]")
		w.write("bad.yaml", "turns: [{colour: 1}]")
		w.write("bad.json", "{")
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, "{model}", "--model=scripted/model.yaml")
		}
		r := w.pawl(args...)
		if r.code != 2 || r.out != "" || !strings.HasPrefix(r.err, "pawl: ") || !strings.Contains(r.err, says) {
			w.t.Errorf("exit %d, standard output %q, standard error %q, want %q", r.code, r.out, r.err, says)
		}
	}}
}

// wrongRun is wrong use of run.
func wrongRun(name, says string, args ...string) row {
	return wrong(name, says, append([]string{"run", "{model}"}, append(args, "go")...)...)
}

var _ = table("TestCommand_WrongUse",
	wrong("an unknown command", `unknown command "nosuch" for "pawl"`, "nosuch"),
	wrong("an unknown flag", "unknown flag: --nosuch\nSee pawl --help", "--nosuch"),
	wrong("an unknown flag of a command", "unknown flag: --nosuch\nSee pawl run --help", "run", "--nosuch", "x"),
	wrong("a flag without its value", "flag needs an argument: --model", "run", "--model"),
	wrong("run without a prompt", "want one prompt, got 0 arguments: put it in quotes", "run"),
	wrong("run with two prompts", "want one prompt, got 2 arguments: put it in quotes", "run", "a", "b"),
	wrong("run with an empty prompt", "the prompt is empty", "run", "{model}", " "),
	wrong("run without a model", "name a model with --model PROVIDER/NAME", "run", "x"),
	wrong("a model without a provider", `model "x": want PROVIDER/NAME; the providers are anthropic/`, "run", "--model", "x", "p"),
	wrong("a provider that is not there", `there is no provider "nosuch"; there are anthropic/`, "run", "--model", "nosuch/x", "p"),
	wrong("a model without its key", "no key was found in ANTHROPIC_API_KEY", "run", "--model", "anthropic/x", "p"),
	wrong("a script that is not there", "none.yaml: no such file", "run", "--model", "scripted/none.yaml", "p"),
	wrong("a script with an unknown field", "bad.yaml", "run", "--model", "scripted/bad.yaml", "p"),
	wrongRun("a --base-url that is none", `--base-url "ftp://x": want a URL that begins with http:// or https://`, "--base-url", "ftp://x"),
	wrongRun("a --dir that is not there", "--dir none: there is no such directory", "--dir", "none"),
	wrongRun("a --dir that is a file", "--dir go.mod: it is not a directory", "--dir", "go.mod"),
	wrongRun("a --session with a line end", "no control characters", "--session", "a\nb"),
	wrongRun("a --journal that is none", "--journal: want sqlite:PATH, postgres://… or memory", "--journal", "x"),
	wrongRun("a --journal without a path", "want sqlite:PATH, postgres://… or memory", "--journal", "sqlite:"),
	wrongRun("a --journal that is no journal", "it is not a journal: choose another path", "--journal", "sqlite:model.yaml"),
	wrongRun("a --max-steps of nothing", "--max-steps 0: want 1 or more", "--max-steps", "0"),
	wrongRun("a --max-steps that is no number", `invalid argument "x" for "--max-steps"`, "--max-steps", "x"),
	wrongRun("a --budget-usd below nothing", "--budget-usd -1: want dollars, 0 for no limit", "--budget-usd", "-1"),
	wrongRun("a --budget-usd of an unknown price", "the price of scripted/", "--budget-usd", "1"),
	wrongRun("a --budget-tokens below nothing", "--budget-tokens -1: want 0 (no limit) or more", "--budget-tokens", "-1"),
	wrongRun("a --timeout below nothing", "--timeout -1s: want a time such as 10m", "--timeout", "-1s"),
	wrongRun("a --timeout that is none", `invalid argument "x" for "--timeout"`, "--timeout", "x"),
	wrongRun("a --mcp without a name", `"x": want NAME=COMMAND or NAME=URL`, "--mcp", "x"),
	wrongRun("a --mcp with a wrong name", "want 1 to 32 of a-z", "--mcp", "a b=x"),
	wrongRun("a --system-prompt of no file", "--system-prompt @none: no such file", "--system-prompt", "@none"),
	wrongRun("a --reasoning that is none", `want one of ["none" "minimal" "low" "medium" "high" "max"]`, "--reasoning", "x"),
	wrongRun("a --provider-tool that is none", `of ["web_search" "web_fetch" "code_execution"]`, "--provider-tool", "nosuch"),
	wrongRun("an --output-schema that is not there", "--output-schema none: no such file", "--output-schema", "none"),
	wrongRun("an --output-schema that is none", "--output-schema bad.json:", "--output-schema", "bad.json"),
	wrongRun("an --engine that is none", `--engine "x": want loop or graph:FILE or script:FILE or temporal://HOST:PORT`, "--engine", "x"),
	wrongRun("a graph that is not there", "none", "--engine", "graph:none"),
	wrongRun("a graph that is none", "bad.yaml", "--engine", "graph:bad.yaml"),
	wrongRun("a Starlark script that is not there", "none", "--engine", "script:none"),
	wrongRun("a --var without a value", `--var "a": want NAME=TEXT`, "--var", "a"),
	wrongRun("a --var of the loop", "the loop has no vars", "--engine", "loop", "--var", "a=b"),
	wrongRun("a --taint that is none", `--taint "x": want off, ask or deny`, "--taint", "x"),
	wrongRun("a --permission-mode that is none", "want one of default, plan, acceptEdits, bypassPermissions, dontAsk", "--permission-mode", "x"),
	wrongRun("an --allow that is no rule", `"x(" is no permission rule`, "--allow", "x("),
	wrongRun("a --deny that is no rule", `"x(" is no permission rule`, "--deny", "x("),
	wrongRun("an --ask that is no rule", `"" is no permission rule`, "--ask", ""),
	wrongRun("a --file that is not there", "--file none: no such file", "--file", "none"),
	wrongRun("a --file that is a directory", "--file .: it is not a file", "--file", "."),
	wrong("--unknown of run", "unknown flag: --unknown", "run", "--unknown", "ask", "p"),
	row{"settings that can't be understood", "Exit 2 when the settings can't be understood", "pawl doctor, exit 2", func(w *world) {
		w.write(".agents/settings.json", "{")
		if r := w.pawl("doctor"); r.code != 2 || !strings.Contains(r.out, ".agents/settings.json:1:2: it is no JSON") {
			w.t.Error(r)
		}
	}},
	wrong("chat without a terminal", "chat needs a terminal", "chat", "{model}"),
	wrong("chat --json", "use pawl run --json", "chat", "--json"),
	wrong("chat --file", "unknown flag: --file", "chat", "--file", "x"),
	wrong("chat --var", "unknown flag: --var", "chat", "--var", "a=b"),
	wrong("resume without a session", "want one session ID, got 0 arguments: see pawl sessions list", "resume"),
	wrong("resume of a session that is not there", `there is no session "none": see pawl sessions list`, "resume", "none"),
	wrong("resume with an --unknown that is none", `--unknown "x": want report, ask or retry`, "resume", "s", "--unknown", "x"),
	wrong("resume with a journal in memory", "name a file with sqlite:PATH", "resume", "s", "--journal", "memory"),
	wrong("resume with a journal that is not there", "--journal sqlite:none: no such file", "resume", "s", "--journal", "sqlite:none"),
	wrong("replay of a session that is not there", `there is no session "none"`, "replay", "none"),
	wrong("approve without a call", "want approve ID CALL, got 1 arguments", "approve", "s"),
	wrong("approve of a session that is not there", `there is no session "none"`, "approve", "none", "c"),
	wrong("reject without a call", "want reject ID CALL, got 1 arguments", "reject", "s"),
	wrong("answer without a text", "want answer ID CALL TEXT, got 2 arguments", "answer", "s", "c"),
	wrong("sessions without a command", "sessions what? list, show ID, export ID, import FILE, fork ID, delete ID or prune", "sessions"),
	wrong("sessions with an unknown command", `unknown command "x" for "pawl sessions"`, "sessions", "x"),
	wrong("sessions show of a session that is not there", `there is no session "none"`, "sessions", "show", "none"),
	wrong("sessions export of a session that is not there", `there is no session "none"`, "sessions", "export", "none"),
	wrong("sessions import of no file", "none: no such file", "sessions", "import", "none"),
	wrong("sessions import of another file", "import: line 1", "sessions", "import", "go.mod"),
	wrong("sessions fork of a session that is not there", `there is no session "none"`, "sessions", "fork", "none"),
	wrong("sessions delete of a session that is not there", `there is no session "none"`, "sessions", "delete", "none"),
	wrong("sessions prune of everything", "Give --older-than 30d, --keep 100, or both", "sessions", "prune"),
	wrong("sessions prune with a time that is none", "want a time such as 30d, 2w, 1w12h or 90m", "sessions", "prune", "--older-than", "x"),
	wrong("sessions prune that keeps nothing", "--keep -1: want 1 or more", "sessions", "prune", "--keep", "-1"),
	wrong("trust of no directory", "there is no such directory", "trust", "none"),
	wrong("permissions without a command", "permissions what? check TOOL INPUT", "permissions"),
	wrong("permissions check without an input", "want a tool and its input, got 1 arguments", "permissions", "check", "bash"),
	wrong("permissions check of no tool", `there is no tool "nosuch"; there are`, "permissions", "check", "nosuch", "{}"),
	wrong("permissions check of no JSON", "the input has to be a JSON object", "permissions", "check", "read", "{"),
	wrong("mcp with an unknown command", `unknown command "nosuch" for "pawl mcp"`, "mcp", "nosuch"),
	wrong("mcp without a command", "mcp what? list, login NAME or serve", "mcp"),
	wrong("mcp login without a name", "want the name of one server", "mcp", "login"),
	wrong("mcp login of an unknown server", "give its address with --url", "mcp", "login", "none"),
	wrong("mcp serve with flags of HTTP", "go with --http", "mcp", "serve", "{model}", "--stateless"),
	wrong("mcp serve for others without a token", "others can reach this address, so a token is needed", "mcp", "serve", "{model}", "--http", "0.0.0.0:0"),
	wrong("mcp serve with a short token", "a token needs 16 characters or more", "mcp", "serve", "{model}", "--http", "127.0.0.1:0", "--token", "short"),
	wrong("mcp serve of no such tool", "want none, read, all, or some of bash", "mcp", "serve", "{model}", "--tools", "nosuch"),
	wrong("pack without a command", "pack what? validate FILE, show FILE, or run FILE PROMPT TEXT", "pack"),
	wrong("pack validate of no file", "there is no file none", "pack", "validate", "none"),
	wrong("pack show of no file", "there is no file none", "pack", "show", "none"),
	wrong("pack run without a prompt", "want a file, a prompt of it and a text", "pack", "run", "none"),
	wrong("graph without a command", "graph what? validate FILE, draw FILE, or run FILE PROMPT", "graph"),
	wrong("graph validate of no file", "none", "graph", "validate", "none"),
	wrong("graph draw of no graph", `unknown field "turns"`, "graph", "draw", "model.yaml"),
	wrong("graph run of no file", "none", "graph", "run", "none"),
	wrong("serve with a word", `unknown command "x" for "pawl serve"`, "serve", "x"),
	wrong("serve at no address", "missing port in address", "serve", "{model}", "--addr", "x"),
	wrong("serve for others without a token", "others can come there: give --token", "serve", "{model}", "--addr", "0.0.0.0:0"),
	wrong("serve with a short token", "a token needs 16 characters or more", "serve", "{model}", "--token", "short"),
	wrong("serve with a token of no file", "--token @none: no such file", "serve", "{model}", "--token", "@none"),
	wrong("serve with an --origin that is none", `origin "x": want SCHEME://HOST[:PORT]`, "serve", "{model}", "--origin", "x"),
	wrong("serve with a --url that is none", `URL "x": want one such as`, "serve", "{model}", "--url", "x"),
	wrong("serve with a --max-runs below nothing", "want more than 0 of each", "serve", "{model}", "--max-runs", "-1"),
	wrong("serve with a --grace below nothing", "want more than 0 of each", "serve", "{model}", "--grace", "-1s"),
	wrong("version with a word", `unknown command "x" for "pawl version"`, "version", "x"),
	wrong("demo with a word", `unknown command "x" for "pawl demo"`, "demo", "x"),
	row{"a prompt of standard input over 4 MiB", "UTF-8, at most 4 MiB", "exit 2", func(w *world) {
		w.write("model.yaml", touches)
		r := w.pawlWith(strings.Repeat("x", 4<<20+1), append(append([]string{"run"}, free...), "-")...)
		if r.code != 2 || r.out != "" || !strings.Contains(r.err, "over the limit of 4 MiB") {
			w.t.Error(r)
		}
	}},
	row{"a prompt of standard input that is no UTF-8", "UTF-8, at most 4 MiB", "exit 2", func(w *world) {
		w.write("model.yaml", touches)
		r := w.pawlWith("good\nb\xffd", append(append([]string{"run"}, free...), "-")...)
		if r.code != 2 || r.out != "" || !strings.Contains(r.err, "line 2 is not UTF-8 text") {
			w.t.Error(r)
		}
	}},
	row{"a file over 20 MiB", "at most 20 MiB; repeat", "exit 2", func(w *world) {
		w.write("large.txt", strings.Repeat("x", 20<<20+1))
		if r := w.plays(touches, "--file", "large.txt", "go"); r.code != 2 || r.out != "" || !strings.Contains(r.err, "the limit is 20 MiB") {
			w.t.Error(r)
		}
	}},
	row{"a file of another kind", "text file, which is any that is UTF-8 without a zero byte", "exit 2", func(w *world) {
		w.write("x.bin", "\x00\x01\x02")
		if r := w.plays(touches, "--file", "x.bin", "go"); r.code != 2 || r.out != "" || !strings.Contains(r.err, "models take images, PDF, sound and text") {
			w.t.Error(r)
		}
	}},
	row{"a script over 1 MiB", "plays a YAML or JSON file of at most 1 MiB", "exit 2", func(w *world) {
		r := w.plays("turns: [{text: Done.}]\n#"+strings.Repeat("x", 1<<20), "go")
		if r.code != 2 || r.out != "" || !strings.Contains(r.err, "1 MiB") {
			w.t.Error(r)
		}
	}},
)

func TestCommand_Help(t *testing.T) {
	beyondQuick(t)
	w := newWorld(t)
	for _, name := range promised(t) {
		command, found := strings.CutPrefix(name, "pawl ")
		if !found || strings.Contains(command, "--") {
			continue
		}
		r := w.pawl(append(strings.Fields(command), "--help")...)
		if r.code != 0 || r.err != "" || !strings.Contains(r.out, "\nExamples:\n") || !strings.Contains(r.out, "pawl "+command) {
			t.Errorf("pawl %s --help: %v", command, r)
		}
	}
	absent := map[string]string{"run": "--unknown", "resume": "--session --var --file", "chat": "--json --file --var --unknown"}
	for command, without := range absent {
		help := w.ok(command, "--help").out
		for _, name := range promised(t) {
			if strings.HasPrefix(name, "--") {
				if want, got := !strings.Contains(without, name), strings.Contains(help, fmt.Sprintf("      %s ", name)); got != want {
					t.Errorf("pawl %s --help names %s: %v, want %v", command, name, got, want)
				}
			}
		}
	}
}
