package blackbox

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// newest is the version that -update writes. A version that is there is never written
// again: a later binary has to read what an earlier one wrote.
const newest = "v1"

var update = flag.Bool("update", false, "write the fixtures of testdata/journals/"+newest+", which must not be there")

// recordedAt is where fixtures are written, so that they name no other place.
const recordedAt = "/tmp/pawl-blackbox"

// recorded are the project's files while fixtures are written. The model of a session
// plays the file of its name.
var recorded = map[string]string{
	"support.pack.json": `{
  "id": "support", "name": "Support", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"},
  "prompts": {
    "desk": {
      "id": "desk", "name": "Desk", "version": "1.0.0", "system_template": "You answer for {{shop}}.",
      "variables": [{"name": "shop", "type": "string", "required": true}], "tools": ["refund"]
    }
  },
  "tools": {
    "refund": {
      "name": "refund", "description": "Pay an order back.",
      "parameters": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
    }
  }
}
`,
	"flow.yaml": `vars: [topic]
entry: write
nodes:
- {id: write, type: model, config: {prompt: "Write about ${topic}.", output: draft}}
- {id: may, type: approval, config: {prompt: "Publish ${draft}?", output: ok}}
- {id: put, type: tool, config: {tool: write, args: {file_path: effects, content: "${draft}"}}}
- {id: say, type: template, config: {template: "Published: ${draft}", role: assistant}}
edges:
- {from: write, to: may}
- {from: may, to: put, condition: ok}
- {from: put, to: say}
- {from: say, to: __end__}
`,
	"flow.star": `facts = generate("What is it?").text
colour = ask(facts, choices = ["red", "blue"])
tool("write", file_path = "effects", content = colour.text)
emit("It is " + colour.text + ".")
`,
	".agents/agents/reviewer.md": "---\nname: reviewer\ndescription: Reviews.\n---\nYou review.\n",
	"note.txt":                   strings.Repeat("Otters hold hands while they sleep. ", 200),
	"dot.png":                    "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89",
	"plain.yaml":                 touches + "- {text: Again.}\n",
	"waiting.yaml":               touches,
	"killed.yaml": `turns:
- {tool_calls: [{id: a, name: bash, input: {command: "echo one >> effects; touch began; until test -e go; do sleep 0.02; done"}}]}
- {tool_calls: [{id: b, name: bash, input: {command: "echo two >> effects"}}]}
- {text: Done.}
`,
	"delegated.yaml": `turns:
- {text: "I delegate.", tool_calls: [{id: t, name: task, input: {agent: reviewer, prompt: "Look."}}]}
- {text: Done.}
agents:
  reviewer:
    turns:
    - {tool_calls: [{id: a, name: bash, input: {command: "echo sub one >> effects"}}]}
    - {tool_calls: [{id: b, name: bash, input: {command: "test -e go && exit 0; touch began-sub; sleep 300"}}]}
    - {tool_calls: [{id: c, name: bash, input: {command: "echo sub two >> effects"}}]}
    - {text: "Looks right."}
`,
	"graph.yaml":      "turns: [{text: foxes}]\n",
	"script.yaml":     "turns: [{text: A colour.}]\n",
	"compacted.yaml":  longScript() + "- {text: Again.}\n",
	"forked.yaml":     touches + "- {text: Again.}\n",
	"failed.yaml":     "turns: [{error: {status: 401, message: \"No such key.\"}}, {text: Again.}]\n",
	"files.yaml":      "turns: [{reasoning: \"Two files.\", text: Seen., tool_calls: [{id: l, name: bash, input: {command: \"seq 1 3000\"}}]}, {text: Counted.}, {text: Again.}]\n",
	"background.yaml": "turns: [{tool_calls: [{id: b, name: bash, input: {command: \"sleep 300\", background: true}}]}, {text: Done.}, {text: Again.}]\n",
	"pack.yaml":       "turns: [{text: \"What is wrong?\"}, {tool_calls: [{id: r, name: refund, input: {order: \"7\"}}]}, {text: It is on its way back.}]\n",
}

func TestJournals_Write(t *testing.T) {
	tier.SkipQuick(t, "it runs the built program")
	if !*update {
		t.Skip("only with -update")
	}
	to := filepath.Join(journals, newest)
	if _, err := os.Stat(to); err == nil {
		t.Fatalf("%s is there, and fixtures are never written over: raise newest", to)
	}
	if err := os.RemoveAll(recordedAt); err != nil {
		t.Fatal(err)
	}
	w := newWorldAt(t, recordedAt)
	for name, text := range recorded {
		w.write(name, text)
	}
	w.recordAll()
	for _, k := range kept {
		for suffix, args := range map[string][]string{".jsonl": {"sessions", "export", k.session}, ".txt": {"sessions", "show", k.session}} {
			writeFile(t, filepath.Join(to, k.session+suffix), w.ok(args...).out)
		}
	}
	writeFile(t, filepath.Join(to, "list.jsonl"), w.ok("sessions", "list", "--all", "--json").out)
	writeFile(t, filepath.Join(to, "journal.db"), w.read(w.journal))
	for name, text := range recorded {
		writeFile(t, filepath.Join(to, "project", name), text)
	}
	if left, _ := filepath.Glob(w.journal + "-wal"); len(left) > 0 {
		t.Errorf("the journal is not whole without %v", left)
	}
}

// recordAll makes the sessions of kept.
func (w *world) recordAll() {
	w.t.Helper()
	args := func(session string, flags ...string) []string {
		return append([]string{"run", "--session", session, "--model", "scripted/" + session + ".yaml", "--no-sandbox"}, flags...)
	}
	bypass := []string{"--permission-mode", "bypassPermissions"}
	want := func(code int, args ...string) {
		w.t.Helper()
		if r := w.pawl(args...); r.code != code {
			w.t.Fatalf("%v: %v", args, r)
		}
	}
	want(0, append(args("plain", bypass...), "go")...)
	want(3, append(args("waiting"), "go")...)
	want(3, append(args("graph", append(bypass, "--engine", "graph:flow.yaml", "--var", "topic=foxes")...), "go")...)
	want(3, append(args("script", append(bypass, "--engine", "script:flow.star")...), "go")...)
	want(0, append(args("compacted", bypass...), "go")...)
	want(0, "sessions", "fork", "plain", "--as", "forked")
	want(1, append(args("failed", bypass...), "go")...)
	want(0, append(args("files", append(bypass, "--file", "note.txt", "--file", "dot.png")...), "look")...)
	want(0, append(args("background", bypass...), "go")...)
	for session, began := range map[string]string{"killed": "began", "delegated": "began-sub"} {
		p := w.start(append(args(session, bypass...), "go")...)
		w.until(session+" began", w.has(began))
		p.end()
	}
	for _, text := range []string{"Order 7 came broken.", "Pay it back."} {
		if r := w.run(w.command(binary("conversation"), "-journal", w.journal, text)); r.code != 0 {
			w.t.Fatal(r)
		}
	}
}

// writeFile makes a file with its directories.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
