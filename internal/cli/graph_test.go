package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const flow = `name: flow
entry: write
vars: [topic]
nodes:
- {id: write, type: model, config: {prompt: "Write about ${vars.get('topic', last.text)}.", output: draft}}
- {id: note, type: tool, config: {tool: write, args: {file_path: out.txt, content: "${draft}"}}}
- {id: may, type: approval, config: {prompt: "Publish this?", output: ok, text: why}}
- {id: gate, type: gate, config: {condition: ok, message: "not approved: ${why}"}}
- {id: say, type: template, config: {template: "Published: ${draft}", role: assistant}}
edges:
- {from: write, to: note}
- {from: note, to: may}
- {from: may, to: gate}
- {from: gate, to: say}
- {from: say, to: __end__}
`

func TestGraphsAreCheckedAndDrawn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.file("flow.yaml", flow)
	bad := w.file("bad.yaml", strings.Replace(strings.Replace(flow, "entry: write", "entry: writ", 1), "output: draft", "outputs: draft", 1))
	doubtful := w.file("doubtful.yaml", strings.Replace(flow, "{from: gate, to: say}", "{from: gate, to: say, condition: ok}", 1))
	if r := w.pawl("graph", "validate", good); r.code != 0 || r.out != "" || r.err != "" {
		t.Errorf("%+v", r)
	}
	r := w.pawl("graph", "validate", good, bad)
	for _, want := range []string{bad + `: nodes[0].config.outputs: unknown field "outputs": did you mean output? (line 5)`, bad + `: entry: there is no node "writ": did you mean write? (line 2)`} {
		if r.code != exitFailed || !strings.Contains(r.out, want+"\n") {
			t.Errorf("%+v lacks %s", r, want)
		}
	}
	if r := w.pawl("graph", "validate", doubtful); r.code != 0 || !strings.HasPrefix(r.out, "warning: nodes[3]: when no condition holds") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("graph", "validate", "none.yaml"); r.code != exitUsage || !strings.Contains(r.err, "none.yaml") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("graph", "draw", good); r.code != 0 || !strings.HasPrefix(r.out, "flowchart TD\n  n1[\"write: model\"]\n") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("graph", "draw", "--dot", good); r.code != 0 || !strings.HasPrefix(r.out, "digraph \"flow\" {\n") {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"graph"}, {"graph", "validate"}, {"graph", "draw"}, {"graph", "run"}, {"graph", "run", "--engine", "loop", good}, {"graph", "run", "--var", "x", good}, {"run", "--engine", "graph", "go"}, {"run", "--engine", "graph:none.yaml", "go"}} {
		if r := w.pawl(args...); r.code != exitUsage {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := w.pawl("graph", "run", "--journal", w.journal, "--dir", w.dir, bad, "go"); r.code != exitUsage || !strings.Contains(r.err, "did you mean output?") {
		t.Errorf("%+v", r)
	}
}

// A graph runs with the tools, the journal and the flags of any run: it waits for its approval, and goes on by the lines that are printed, in another process.
func TestAGraphRunsWaitsAndGoesOnByThePrintedLines(t *testing.T) {
	for _, answer := range []string{"approve", "reject"} {
		w := newWorld(t)
		file := w.file("flow.yaml", flow)
		script := w.file("turns.yaml", "turns: [{text: Foxes hunt.}]\n")
		t.Chdir(w.dir)
		r := w.pawl("graph", "run", "--session", "s", "--dir", ".", "--journal", w.journal, "--model", "scripted/turns.yaml", "--permission-mode", "acceptEdits", "--var", "topic=foxes", "flow.yaml")
		if r.code != exitWaiting || r.out != "" || !strings.Contains(r.err, "\n  Publish this?: pawl approve s may_") || !strings.Contains(r.err, "[write] Foxes hunt.\n") {
			t.Fatalf("%+v", r)
		}
		lines := regexp.MustCompile(`pawl (approve|reject|resume) .*?(, or |\n|$)`).FindAllString(r.err, -1)
		if len(lines) != 3 || !strings.Contains(lines[2], "--engine "+quoted("graph:"+file)) {
			t.Fatalf("%q", lines)
		}
		t.Chdir(t.TempDir())
		pasted := func(line string) ran {
			return w.pawl(typed(strings.TrimRight(strings.TrimSuffix(line, ", or "), "\n"))...)
		}
		for _, line := range lines[:2] {
			if !strings.HasPrefix(line, "pawl "+answer) {
				continue
			}
			if r := pasted(line); r.code != 0 || !strings.Contains(r.err, "go on with: "+strings.TrimSpace(lines[2])) {
				t.Fatalf("%s: %+v", line, r)
			}
		}
		if r := w.pawl("resume", "s", "--journal", w.journal, "--dir", w.dir); r.code != exitUsage || !strings.Contains(r.err, "--engine graph:FILE") {
			t.Errorf("without the engine: %+v", r)
		}
		changed := filepath.Join(w.dir, "flow.changed.yaml")
		w.file("flow.changed.yaml", strings.Replace(flow, "Publish this?", "Really?", 1))
		if r := w.pawl("resume", "s", "--journal", w.journal, "--engine", "graph:"+changed, "--model", "scripted/"+script); r.code == 0 || !strings.Contains(r.err, "was begun by another definition of graph:flow") {
			t.Errorf("with another graph: %+v", r)
		}
		r = pasted(lines[2])
		if answer == "approve" && (r.code != 0 || r.out != "Published: Foxes hunt.\n") {
			t.Errorf("%+v", r)
		}
		if answer == "reject" && (r.code != exitFailed || !strings.Contains(r.err, "node gate: not approved")) {
			t.Errorf("%+v", r)
		}
		if r := w.pawl("replay", "s", "--journal", w.journal, "--engine", "graph:"+file); r.code != 0 || !strings.Contains(r.out, " effects as on record, ") {
			t.Errorf("%+v", r)
		}
		if r := w.pawl("replay", "s", "--journal", w.journal); r.code != exitUsage || !strings.Contains(r.err, "give --engine graph:FILE") {
			t.Errorf("with the loop: %+v", r)
		}
		if b, err := os.ReadFile(filepath.Join(w.dir, "out.txt")); err != nil || string(b) != "Foxes hunt." {
			t.Errorf("%q, %v", b, err)
		}
	}
}

func TestAGraphsLinesHaveEachMessageOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	simple := w.file("simple.yaml", `entry: write
nodes:
- {id: write, type: model, config: {prompt: "Write.", output: draft}}
- {id: say, type: template, config: {template: "It is: ${draft}", role: assistant}}
edges: [{from: write, to: say}, {from: say, to: __end__}]
`)
	lines, r := w.run("turns: [{text: Foxes.}]\n", "go", "--engine", "graph:"+simple)
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	var said []string
	for _, l := range lines {
		if l["type"] == "run.started" && l["engine"] != "graph:simple" {
			t.Error(l)
		}
		if l["type"] != "message" {
			continue
		}
		m := l["message"].(map[string]any)
		said = append(said, m["role"].(string)+": "+m["parts"].([]any)[0].(map[string]any)["text"].(string))
	}
	if got := strings.Join(said, "\n"); got != "user: go\nassistant: Foxes.\nuser: Write.\nassistant: It is: Foxes." {
		t.Error(got)
	}
	if last := lines[len(lines)-1]; last["text"] != "It is: Foxes." {
		t.Error(last)
	}
}

// A graph without models needs none.
func TestAGraphWithoutModelsNeedsNoKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := w.file("plain.yaml", "entry: say\nnodes: [{id: say, type: template, config: {template: 'you said ${last.text}', role: assistant}}]\nedges: [{from: say, to: __end__}]\n")
	if r := w.pawl("graph", "run", "--dir", w.dir, "--journal", w.journal, file, "hello"); r.code != 0 || r.out != "you said hello\n" {
		t.Errorf("%+v", r)
	}
	with := w.file("talks.yaml", "entry: say\nnodes: [{id: say, type: model}]\nedges: [{from: say, to: __end__}]\n")
	if r := w.pawl("graph", "run", "--dir", w.dir, "--journal", w.journal, with, "hello"); r.code != exitUsage || !strings.Contains(r.err, "there is no model") {
		t.Errorf("%+v", r)
	}
}

// What began without a model goes on without one.
func TestWhatNeedsNoModelIsResumedWithoutOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for engine, text := range map[string]string{
		"graph":  "entry: may\nnodes: [{id: may, type: approval, config: {prompt: 'Sure?', output: ok}}, {id: say, type: template, config: {template: '${ok}', role: assistant}}]\nedges: [{from: may, to: say}, {from: say, to: __end__}]\n",
		"script": "emit(str(bool(ask('Sure?'))))\n",
	} {
		how, flags := engine+":"+w.file(engine, text), []string{"--dir", w.dir, "--journal", w.journal}
		r := w.pawl(append([]string{"run", "--session", engine, "--engine", how, "go"}, flags...)...)
		asked := regexp.MustCompile(`pawl approve ` + engine + ` (\w+) .*, or pawl reject`).FindStringSubmatch(r.err)
		if r.code != exitWaiting || asked == nil {
			t.Fatalf("%+v", r)
		}
		if r := w.pawl("answer", engine, asked[1], "no", "--journal", w.journal); r.code != exitUsage || !strings.Contains(r.err, "is answered by yes or no") {
			t.Errorf("%+v", r)
		}
		if r := w.pawl("reject", engine, asked[1], "--journal", w.journal); r.code != 0 {
			t.Errorf("%+v", r)
		}
		if r := w.pawl(append([]string{"resume", engine, "--engine", how}, flags...)...); r.code != 0 || r.out != "False\n" {
			t.Errorf("%+v", r)
		}
	}
}

func TestAReplayIsByTheFileThatTheRunBeganWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := "name: g\nentry: a\nnodes: [{id: a, type: model, config: {prompt: Write.}}]\nedges: [{from: a, to: __end__}]\n"
	file, other := w.file("g.yaml", text), w.file("other.yaml", strings.ReplaceAll(text, "Write.", "Sing."))
	if _, r := w.run("turns: [{text: Foxes.}]", "go", "--session", "s", "--engine", "graph:"+file); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("replay", "s", "--journal", w.journal, "--engine", "graph:"+file); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("replay", "s", "--journal", w.journal, "--engine", "graph:"+other); r.code != exitFailed || !strings.Contains(r.err, "another definition or program of the engine graph:g") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("replay", "s", "--journal", w.journal); r.code != exitUsage || !strings.Contains(r.err, "give --engine graph:FILE") {
		t.Errorf("%+v", r)
	}
}

// A node's call that is refused is not on record before: there is no name to show but the reason's.
func TestWhatANodeMayNotCallIsToldOnOneLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := w.file("g.yaml", "entry: a\nnodes: [{id: a, type: tool, config: {tool: bash, args: {comand: ls}}}]\nedges: [{from: a, to: __end__}]\n")
	if r := w.pawl("graph", "run", "--dir", w.dir, "--journal", w.journal, file); r.code != exitFailed || !strings.Contains(r.err, "[a] ✗ not run: bash: ") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("graph", "run"); r.code != exitUsage || !strings.Contains(r.err, "want a file, and a prompt in quotes if there is one, got 0") {
		t.Errorf("%+v", r)
	}
}

// What docs/graphs.md shows of the program is what it does: the checks, the drawing, and a run with an approval.
func TestTheGraphOfThePageRuns(t *testing.T) {
	w := newWorld(t)
	text := page(t, "docs/graphs.md")
	m := regexp.MustCompile("(?s)```yaml story.yaml\n(.*?)```").FindStringSubmatch(text)
	if m == nil {
		t.Fatal("the page has no story.yaml")
	}
	w.file("story.yaml", m[1])
	t.Chdir(w.dir)
	console := regexp.MustCompile("(?s)```console\n(.*?)```").FindStringSubmatch(text)
	shown := ""
	for _, line := range []string{"graph validate story.yaml", "graph draw story.yaml"} {
		r := w.pawl(strings.Fields(line)...)
		if shown += "$ pawl " + line + "\n" + r.out; r.code != 0 {
			t.Errorf("%+v", r)
		}
	}
	if console == nil || shown != console[1] {
		t.Errorf("the page shows\n%s\nthe program\n%s", console, shown)
	}
	script := w.file("turns.yaml", "turns: [{text: Foxes.}, {text: 'no'}, {text: Foxes hunt.}, {text: 'yes'}]\n")
	flags := []string{"--journal", w.journal, "--dir", w.dir, "--model", "scripted/" + script}
	r := w.pawl(append([]string{"graph", "run", "--session", "story", "--var", "topic=foxes", "story.yaml"}, flags...)...)
	call := regexp.MustCompile(`pawl approve story (may_\w+)`).FindStringSubmatch(r.err)
	if r.code != exitWaiting || call == nil {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("answer", "story", call[1], "yes", "--journal", w.journal); r.code != exitUsage || !strings.Contains(r.err, "pawl approve or pawl reject") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("approve", "story", call[1], "--journal", w.journal); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if r := w.pawl(append([]string{"resume", "story", "--engine", "graph:story.yaml"}, flags...)...); r.code != 0 || r.out != "Published: Foxes hunt.\n" {
		t.Errorf("%+v", r)
	}
	r = w.pawl("sessions", "show", "story", "--journal", w.journal)
	for _, want := range []string{"changed", "vars: draft", "assistant: Published: Foxes hunt."} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%s lacks %s", r.out, want)
		}
	}
}

// A question with choices is answered by pawl answer, in other processes: one that is none of them is asked again.
func TestAGraphAsksAgainUntilAnAnswerIsAChoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := w.file("when.yaml", `entry: when
nodes:
- {id: when, type: approval, config: {prompt: "When?", choices: [now, tonight], output: ok, text: time}}
- {id: say, type: template, config: {template: "${ok}: ${time}", role: assistant}}
edges: [{from: when, to: say}, {from: say, to: __end__}]
`)
	flags := []string{"--dir", w.dir, "--journal", w.journal}
	r := w.pawl(append([]string{"graph", "run", "--session", "s", file}, flags...)...)
	call := regexp.MustCompile(`When\?\n +1\. now\n +2\. tonight\n +pawl answer s (when_\w+) TEXT`).FindStringSubmatch(r.err)
	if r.code != exitWaiting || call == nil {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("answer", "s", call[1], "later", "--journal", w.journal); r.code != 0 {
		t.Errorf("%+v", r)
	}
	resume := append([]string{"resume", "s", "--engine", "graph:" + file}, flags...)
	r = w.pawl(resume...)
	again := regexp.MustCompile(`"later" is none of the choices: [^?]*When\?\n +1\. now\n +2\. tonight\n +pawl answer s (when_2_\w+) TEXT`).FindStringSubmatch(r.err)
	if r.code != exitWaiting || again == nil {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("answer", "s", again[1], "2", "--journal", w.journal); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if r := w.pawl(resume...); r.code != 0 || r.out != "True: tonight\n" {
		t.Errorf("%+v", r)
	}
	other := w.pawl(append([]string{"graph", "run", "--session", "t", file}, flags...)...)
	call = regexp.MustCompile(`pawl answer t (when_\w+)`).FindStringSubmatch(other.err)
	if call == nil {
		t.Fatalf("%+v", other)
	}
	if r := w.pawl("reject", "t", call[1], "--reason", "not at all", "--journal", w.journal); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if r := w.pawl(append([]string{"resume", "t", "--engine", "graph:" + file}, flags...)...); r.code != 0 || r.out != "False: not at all\n" {
		t.Errorf("%+v", r)
	}
}

// What a node took from its cache is shown as that.
func TestSessionsShowWhatCameFromACache(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := w.file("twice.yaml", `entry: ask
nodes: [{id: ask, type: model, cache: {key: "1"}, config: {prompt: "Well?", output: got}}]
edges: [{from: ask, to: ask, condition: 'visits["ask"] < 2'}, {from: ask, to: __end__}]
`)
	_, r := w.run("turns: [{text: Foxes.}]\n", "go", "--engine", "graph:"+file, "--session", "s")
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("sessions", "show", "s", "--journal", w.journal); strings.Count(r.out, "node ask · from its cache") != 1 {
		t.Errorf("%+v", r)
	}
}
