package blackbox

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPack(t *testing.T) { runRows(t) }

// samplePack has a prompt with a variable, a tool and a validator, and a workflow.
const samplePack = `{
  "id": "support", "name": "Support", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"},
  "prompts": {
    "chat": {
      "id": "chat", "name": "Chat", "version": "1.0.0", "system_template": "You help {{name}}.",
      "variables": [
        {"name": "name", "type": "string", "required": true},
        {"name": "age", "type": "number", "required": false}
      ],
      "tools": ["lookup"],
      "validators": [{"type": "banned_words", "fail_on_violation": true, "message": "I can't promise that.", "params": {"words": ["guarantee"]}}]
    },
    "start": {"id": "start", "name": "Start", "version": "1.0.0", "system_template": "Begin."},
    "end": {"id": "end", "name": "End", "version": "1.0.0", "system_template": "End."}
  },
  "tools": {
    "lookup": {
      "name": "lookup", "description": "Look up.",
      "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    }
  },
  "workflow": {
    "version": 1, "entry": "start",
    "states": {"start": {"prompt_task": "start", "on_event": {"Done": "end"}}, "end": {"prompt_task": "end", "terminal": true}}
  }
}`

// packRun runs the prompt chat of the sample.
func (w *world) packRun(script string, args ...string) result {
	w.t.Helper()
	w.write("p.json", samplePack)
	w.write("model.yaml", script)
	return w.pawl(append([]string{"pack", "run", "--model", "scripted/model.yaml"}, args...)...)
}

var _ = table("TestPack",
	row{"validate is silent about a good pack", "says what is wrong with [packs]: `path: problem` a line, exit 1 when there is one", "pawl pack validate", func(w *world) {
		w.write("good.json", samplePack)
		w.write("bad.json", strings.Replace(samplePack, "banned_words", "banned_wordz", 1))
		if r := w.ok("pack", "validate", "good.json"); r.out != "" {
			w.t.Error(r)
		}
		if r := w.pawl("pack", "validate", "bad.json"); r.code != 1 || !strings.Contains(r.out, `prompts.chat.validators[0].type: there is no validator "banned_wordz"`) {
			w.t.Error(r)
		}
	}},
	row{"show has what is in a pack", "prompts with variables and what their values have to be like, tools and their policy", "pawl pack show", func(w *world) {
		w.write("p.json", samplePack)
		r := w.ok("pack", "show", "p.json", "chat")
		for _, want := range []string{"prompt chat 1.0.0: Chat\n", "  variable name (string, required)\n", "  validator banned_words: blocks", "    | You help {{name}}.\n"} {
			if !strings.Contains(r.out, want) {
				w.t.Errorf("it lacks %q: %v", want, r)
			}
		}
	}},
	row{"run answers by a prompt and calls its tools", "an address that its calls are posted to, with arguments as `{name}` in it", "pawl pack run, pawl pack --tool", func(w *world) {
		called := make(chan string, 1)
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { called <- r.URL.Path }))
		w.t.Cleanup(server.Close)
		port := server.URL[strings.LastIndex(server.URL, ":"):]
		r := w.packRun(`turns: [{tool_calls: [{name: lookup, input: {id: "7"}}]}, {text: It is there.}]`,
			"--var", "name=Ada", "--tool", "lookup=http://localhost"+port+"/orders/{id}", "--allow", "localhost", "p.json", "chat", "Where?")
		if r.code != 0 || r.out != "It is there.\n" || !strings.Contains(r.err, "● lookup") || len(called) != 1 || <-called != "/orders/7" {
			w.t.Error(r)
		}
	}},
	row{"run reaches no host that is not allowed", "`--allow HOST` is another host that tools may reach, such as `localhost`", "pawl pack run", func(w *world) {
		r := w.packRun(`turns: [{tool_calls: [{id: c, name: lookup, input: {id: "7"}}]}, {text: Gone.}]`,
			"--var", "name=Ada", "--tool", "lookup=http://127.0.0.1:9/{id}", "p.json", "chat", "Where?")
		if r.code != 0 || !strings.Contains(r.err, "127.0.0.1 is this machine") {
			w.t.Error(r)
		}
	}},
	row{"run is 1 when a validator blocks", "Exit 1 when the turn failed or a validator blocked the answer, whose message is printed then", "pawl pack run, exit 1", func(w *world) {
		r := w.packRun(`turns: [{text: guarantee}]`, "--var", "name=Ada", "--tool", "lookup=http://127.0.0.1:9/{id}", "p.json", "chat", "Sure?")
		if r.code != 1 || r.out != "I can't promise that.\n" {
			w.t.Error(r)
		}
	}},
	row{"run is 2 without a variable", "a required variable without a value", "pawl pack run, exit 2", func(w *world) {
		if r := w.packRun("turns: [{text: x}]", "p.json", "chat", "Hi"); r.code != 2 || r.out != "" || !strings.Contains(r.err, "give --var name=VALUE (string)") {
			w.t.Error(r)
		}
	}},
	row{"run is 2 for a value of another type", "A value of another type", "pawl pack run, exit 2", func(w *world) {
		if r := w.packRun("turns: [{text: x}]", "--var", "name=Ada", "--var", "age=x", "p.json", "chat", "Hi"); r.code != 2 || !strings.Contains(r.err, "--var age: the pack says number") {
			w.t.Error(r)
		}
	}},
	row{"run is 2 for the same --var twice", "the same `--var` or `--tool` twice are wrong use", "pawl pack run, exit 2", func(w *world) {
		if r := w.packRun("turns: [{text: x}]", "--var", "name=Ada", "--var", "name=Bob", "p.json", "chat", "Hi"); r.code != 2 || r.out != "" {
			w.t.Error(r)
		}
	}},
	row{"run --workflow goes through the states", "`--workflow`, without a PROMPT, goes by the pack's [workflow]", "pawl pack --workflow", func(w *world) {
		r := w.packRun(`turns: [{tool_calls: [{name: workflow__transition, input: {event: Done}}]}, {text: It has ended.}]`,
			"--workflow", "p.json", "Go")
		if r.code != 0 || r.out != "It has ended.\n" {
			w.t.Error(r)
		}
	}},
	row{"run reads the text from standard input", "says TEXT (`-`: standard input) to a model by a prompt of a pack", "pawl pack run", func(w *world) {
		w.write("p.json", samplePack)
		w.write("model.yaml", `turns: [{when: {contains: "from a pipe"}, text: Heard.}, {text: Not heard.}]`)
		r := w.pawlWith("from a pipe", "pack", "run", "--model", "scripted/model.yaml", "--var", "name=Ada", "--tool", "lookup=http://127.0.0.1:9/{id}", "p.json", "chat", "-")
		if r.out != "Heard.\n" {
			w.t.Error(r)
		}
	}},
)
