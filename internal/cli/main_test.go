package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/testkit/parallel"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
)

func TestMain(m *testing.M) {
	var err error
	if shared, err = isolate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	parallel.RaiseLimit()
	code := pgtest.Main(m)
	if err := errors.Join(goleak.Find(), shared.close()); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// shared is the environment of all tests.
var shared environment

// ran is what a command line gave.
type ran struct {
	code     int
	out, err string
}

// program runs a command line of pawl.
func program(ctx context.Context, s streams, args []string) int {
	return Program{Name: "pawl", Version: "devel"}.run(ctx, s, args)
}

// world is a place to run command lines in: a project and a journal. The environment is that of isolate.
type world struct {
	t       *testing.T
	dir     string
	journal string
}

func newWorld(t *testing.T) world {
	t.Helper()
	return world{t, t.TempDir(), "sqlite:" + filepath.Join(t.TempDir(), "journal.db")}
}

func (w world) file(name, text string) string {
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// settings writes those of the project.
func (w world) settings(text string) {
	if err := os.MkdirAll(filepath.Join(w.dir, ".agents"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	w.file(".agents/settings.json", text)
}

func (w world) pawl(args ...string) ran { return w.pawlIn("", args...) }

func (w world) pawlIn(stdin string, args ...string) ran {
	var out, errs bytes.Buffer
	code := program(w.t.Context(), streams{strings.NewReader(stdin), &out, &errs}, args)
	return ran{code, out.String(), errs.String()}
}

// run runs a script, with --json lines decoded.
func (w world) run(script, prompt string, flags ...string) ([]map[string]any, ran) {
	r := w.runs(script, prompt, append([]string{"--json"}, flags...)...)
	return w.decoded(r), r
}

// runs runs a script.
func (w world) runs(script, prompt string, flags ...string) ran {
	args := []string{"run", "--model", "scripted/" + w.file("script.yaml", script), "--dir", w.dir, "--journal", w.journal}
	return w.pawl(slices.Concat(args, flags, unfenced(), []string{prompt})...)
}

func (w world) decoded(r ran) (lines []map[string]any) {
	w.t.Helper()
	for text := range strings.Lines(r.out) {
		var l map[string]any
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			w.t.Fatalf("%v: %s", err, text)
		}
		lines = append(lines, l)
	}
	return lines
}

func types(lines []map[string]any) (out []string) {
	for _, l := range lines {
		if n := len(out); n == 0 || out[n-1] != l["type"] {
			out = append(out, l["type"].(string))
		}
	}
	return out
}

func find(lines []map[string]any, kind string) map[string]any {
	for _, l := range lines {
		if l["type"] == kind {
			return l
		}
	}
	return nil
}

const work = `
turns:
  - text: "I write a file."
    tool_calls: [{id: w, name: bash, input: {command: "echo one >> out.txt; echo two >&2"}}]
    usage: {input_tokens: 10, output_tokens: 5}
  - text: "It is written."
    usage: {input_tokens: 20, output_tokens: 7}
`

func TestARunDoesRealWorkAndSaysItInLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines, r := w.run(work, "write a file", "--session", "s1")
	if r.code != exitCompleted {
		t.Fatal(r)
	}
	if b, err := os.ReadFile(filepath.Join(w.dir, "out.txt")); err != nil || string(b) != "one\n" {
		t.Fatalf("%q %v", b, err)
	}
	want := []string{
		"run.started", "message", "text.delta", "message", "usage", "tool.started", "tool.output", "tool.finished",
		"text.delta", "message", "usage", "run.finished",
	}
	if got := types(lines); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	last, before := lines[len(lines)-1], int64(0)
	for _, l := range lines {
		if l["session"] != "s1" || l["run"] == "" || l["time"] == "" {
			t.Errorf("a line without its place: %v", l)
		}
		seq := int64(l["seq"].(float64))
		if seq < before && !strings.HasSuffix(l["type"].(string), ".delta") || seq == 0 {
			t.Errorf("seq %d after %d: %v", seq, before, l)
		}
		before = max(before, seq)
	}
	usage := last["usage"].(map[string]any)
	if last["status"] != "completed" || last["text"] != "It is written." || last["steps"] != 2.0 || usage["input_tokens"] != 30.0 || usage["output_tokens"] != 12.0 {
		t.Errorf("%v", last)
	}
	if cost, there := last["cost_usd"]; cost != nil || !there {
		t.Errorf("the price of a script is not known, and that is null: %v", last)
	}
	if s := find(lines, "run.started"); s["engine"] != "loop" || s["dir"] != w.dir || !strings.HasPrefix(s["model"].(string), "scripted/") {
		t.Errorf("%v", s)
	}
	if s := find(lines, "tool.started"); s["call_id"] != "w" || s["name"] != "bash" || s["input"].(map[string]any)["command"] == "" {
		t.Errorf("%v", s)
	}
	if f := find(lines, "tool.finished"); f["outcome"] != "ok" || f["is_error"] != false || !strings.Contains(f["content"].(string), "two") {
		t.Errorf("%v", f)
	}
	seen := map[string]bool{}
	for _, l := range lines {
		if l["type"] == "tool.output" {
			seen[l["stream"].(string)+" "+strings.TrimSpace(l["text"].(string))] = true
		}
	}
	if !seen["stderr two"] {
		t.Errorf("streams of the tool's output: %v", seen)
	}
}

func TestStandardOutputHasTheAnswerAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.runs(work, "go")
	if r.code != 0 || r.out != "It is written.\n" || !strings.Contains(r.err, "bash") || strings.Contains(r.err, "\x1b") {
		t.Errorf("%+v", r)
	}
}

func TestAPromptCanComeFromStandardInputAndASessionGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := w.file("s.yaml", `turns: [{text: "one"}, {text: "two"}]`)
	args := []string{"run", "--model", "scripted/" + script, "--dir", w.dir, "--journal", w.journal, "--session", "s", "-"}
	if r := w.pawlIn("first\n", args...); r.out != "one\n" {
		t.Fatal(r)
	}
	if r := w.pawlIn("second\n", args...); r.out != "two\n" {
		t.Fatal(r)
	}
	list := w.pawl("sessions", "list", "--json", "--journal", w.journal)
	var l map[string]any
	if err := json.Unmarshal([]byte(list.out), &l); err != nil || l["session"] != "s" || l["status"] != "completed" || l["messages"] != 4.0 || l["cost_usd"] != nil {
		t.Fatal(err, list)
	}
	for _, field := range []string{"created", "updated", "usage", "cost_usd"} {
		if _, ok := l[field]; !ok {
			t.Errorf("%s is missing: %v", field, l)
		}
	}
	show := w.pawl("sessions", "show", "s", "--journal", w.journal)
	for _, want := range []string{"#3 user", "first", "one", "second", "two"} {
		if !strings.Contains(show.out, want) {
			t.Errorf("%q is missing in\n%s", want, show.out)
		}
	}
	if r := w.pawl("sessions", "delete", "s", "--journal", w.journal); r.code != 0 {
		t.Fatal(r)
	}
	if r := w.pawl("sessions", "show", "s", "--journal", w.journal); r.code != exitUsage || !strings.Contains(r.err, `no session "s"`) {
		t.Fatal(r)
	}
	if r := w.pawl("sessions", "list", "--json", "--journal", w.journal); r.out != "" {
		t.Fatal(r)
	}
}

func TestHowARunEndsIsItsExitCode(t *testing.T) {
	t.Parallel()
	many := `turns: [` + strings.Repeat(`{tool_calls: [{name: glob, input: {pattern: "*.go"}}, {name: read, input: {file_path: script.yaml}}], usage: {input_tokens: 100}},`, 2) + `{text: "x"}]`
	for name, c := range map[string]struct {
		script string
		flags  []string
		code   int
		class  string
		status string
	}{
		"completed":     {`turns: [{text: ok}]`, nil, exitCompleted, "", "completed"},
		"provider":      {`turns: [{error: {status: 529}}]`, nil, exitFailed, "not_available", "failed"},
		"rate limit":    {`turns: [{error: {status: 429}}]`, nil, exitFailed, "rate_limit", "failed"},
		"refusal":       {`turns: [{text: "no", stop: refusal}]`, nil, exitFailed, "refused", "failed"},
		"steps":         {many, []string{"--max-steps", "1"}, exitLimit, "budget_exceeded", "failed"},
		"tokens":        {many, []string{"--budget-tokens", "100"}, exitLimit, "budget_exceeded", "failed"},
		"time":          {`turns: [{delay: 1h, text: late}]`, []string{"--timeout", "20ms"}, exitLimit, "budget_exceeded", "failed"},
		"end of script": {`turns: [{tool_calls: [{name: read, input: {file_path: script.yaml}}]}]`, nil, exitFailed, "validation", "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, r := newWorld(t).run(c.script, "go", c.flags...)
			last := lines[len(lines)-1]
			if r.code != c.code || last["type"] != "run.finished" || last["status"] != c.status {
				t.Fatalf("code %d, %v\n%s", r.code, last, r.err)
			}
			if c.class == "" {
				if last["error"] != nil {
					t.Fatal(last)
				}
				return
			}
			if e, _ := last["error"].(map[string]any); e["class"] != c.class || e["text"] == "" || r.err == "" {
				t.Fatalf("%v\n%s", last, r.err)
			}
		})
	}
}

func TestWrongUseSaysWhatWouldBeRightAndStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.file("good.yaml", `turns: [{text: ok}]`)
	big := w.file("big.txt", "")
	if err := os.Truncate(big, maxFile+1); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) []string {
		return append([]string{"run", "--journal", w.journal, "--dir", w.dir}, args...)
	}
	scripted := "scripted/" + good
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"no key":                 {run("hi"), []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "--model scripted/", "pawl demo"}},
		"no key for that":        {run("--model", "openai/gpt-x", "hi"), []string{"OPENAI_API_KEY", "--model scripted/", "pawl demo"}},
		"unknown provider":       {run("--model", "acme/x", "hi"), []string{`"acme"`, "anthropic/…", "gemini/…"}},
		"no provider":            {run("--model", "gpt", "hi"), []string{"PROVIDER/NAME", "anthropic/…"}},
		"no script":              {run("--model", "scripted/none.yaml", "hi"), []string{"none.yaml"}},
		"script with a mistake":  {run("--model", "scripted/"+w.file("bad.yaml", "turns:\n  - txet: hi\n"), "hi"), []string{"bad.yaml", "2", "txet"}},
		"script that is no YAML": {run("--model", "scripted/"+w.file("worse.yaml", "turns: [\n"), "hi"), []string{"worse.yaml"}},
		"empty prompt":           {run("--model", scripted, " "), []string{"empty"}},
		"no prompt":              {run("--model", scripted), []string{"one prompt"}},
		"two prompts":            {run("--model", scripted, "a", "b"), []string{"quotes"}},
		"no file":                {run("--model", scripted, "--file", "nope.png", "hi"), []string{"nope.png", "no such file"}},
		"file is a directory":    {run("--model", scripted, "--file", w.dir, "hi"), []string{w.dir, "not a file"}},
		"file over the limit":    {run("--model", scripted, "--file", big, "hi"), []string{big, "limit is 20 MiB"}},
		"file is binary":         {run("--model", scripted, "--file", w.file("x.bin", "\x00\x01\x02\xff"), "hi"), []string{"x.bin", "images"}},
		"system prompt file":     {run("--model", scripted, "--system-prompt", "@none.md", "hi"), []string{"none.md", "no such file"}},
		"system prompt is bad":   {run("--model", scripted, "--system-prompt", "@"+w.file("l1.md", "ok\nb\xffd"), "hi"), []string{"l1.md", "line 2", "UTF-8"}},
		"no directory":           {run("--model", scripted, "--dir", "nowhere", "hi"), []string{"nowhere", "no such directory"}},
		"directory is a file":    {run("--model", scripted, "--dir", good, "hi"), []string{"not a directory"}},
		"journal":                {[]string{"run", "--model", scripted, "--journal", "redis:x", "hi"}, []string{"--journal redis:…", "sqlite:PATH"}},
		"engine":                 {run("--model", scripted, "--engine", "warp", "hi"), []string{"warp", "loop"}},
		"steps":                  {run("--model", scripted, "--max-steps", "0", "hi"), []string{"--max-steps 0", "1 or more"}},
		"timeout":                {run("--model", scripted, "--timeout", "5", "hi"), []string{"timeout", "5"}},
		"money without a price":  {run("--model", scripted, "--budget-usd", "1", "hi"), []string{"not known", "--budget-tokens"}},
		"base url":               {run("--model", "openai/x", "--base-url", "localhost:1", "hi"), []string{"localhost:1", "http://"}},
		"unknown flag":           {run("--frobnicate", "hi"), []string{"--frobnicate", "--help"}},
		"unknown command":        {[]string{"frobnicate"}, []string{"frobnicate", "--help"}},
		"sessions":               {[]string{"sessions"}, []string{"list"}},
		"show without id":        {[]string{"sessions", "show"}, []string{"session ID"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.pawl(c.args...)
			if r.code != exitUsage || r.out != "" {
				t.Errorf("%+v", r)
			}
			for _, want := range c.want {
				if !strings.Contains(r.err, want) {
					t.Errorf("%q is missing in %q", want, r.err)
				}
			}
		})
	}
	if list := w.pawl("sessions", "list", "--json", "--journal", w.journal); list.out != "" {
		t.Errorf("something was started: %s", list.out)
	}
}

func TestTheLastLineIsWrittenEvenWhenNothingStarts(t *testing.T) {
	t.Parallel()
	lines, r := newWorld(t).run("turns: 5", "hi")
	if len(lines) != 1 || lines[0]["type"] != "run.finished" || lines[0]["status"] != "failed" || r.code != exitUsage {
		t.Fatal(lines, r)
	}
	if e := lines[0]["error"].(map[string]any); e["class"] != "validation" {
		t.Fatal(e)
	}
}

func TestAFileGoesAlongWithThePrompt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	png := w.file("dot.png", "\x89PNG\r\n\x1a\n0000")
	lines, r := w.run(`turns: [{text: "a dot"}]`, "what is it?", "--file", png)
	if r.code != 0 {
		t.Fatal(r)
	}
	parts := find(lines, "message")["message"].(map[string]any)["parts"].([]any)
	if f := parts[0].(map[string]any); f["type"] != "file" || f["mime"] != "image/png" || f["name"] != "dot.png" || f["data"] == "" {
		t.Error(f)
	}
}

// What people can read models can, whatever a system calls it by its name.
func TestAFileOfTextIsTextWhateverItIsCalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"a.yaml", "a.toml", "a.sh", "a.sql", "a.ts", "a.svg", "a.json", "a.tex", "a.unknown", "Makefile", "esc.log"} {
		f, err := attach(w.file(name, "a: b # é \x1b[1m\n"))
		if err != nil || f.MIME != "text/plain" && !strings.HasPrefix(f.MIME, "text/") || f.Name != name {
			t.Errorf("%s: %q %v", name, f.MIME, err)
		}
	}
	if f, err := attach(w.file("zero.yaml", "a: b\x00")); err == nil {
		t.Errorf("%q", f.MIME)
	}
	if _, err := said("see it", "@", []string{"nope.yaml"}); err == nil || !strings.HasPrefix(err.Error(), "@nope.yaml: ") {
		t.Error(err)
	}
}

func TestCallsThatCannotRunAreSaid(t *testing.T) {
	t.Parallel()
	lines, r := newWorld(t).run(`turns: [{tool_calls: [{id: a, name: reed, input: {}}, {id: b, name: read, input: {file_path: 5}}]}, {text: ok}]`, "go")
	var got []string
	for _, l := range lines {
		if l["type"] == "tool.finished" {
			got = append(got, l["call_id"].(string)+" "+l["name"].(string)+" "+l["outcome"].(string)+" "+l["content"].(string))
		}
	}
	if r.code != 0 || len(got) != 2 || !strings.HasPrefix(got[0], "a reed error") || !strings.Contains(got[0], "read") || !strings.Contains(got[1], "/file_path") {
		t.Error(r.code, got)
	}
}

func TestTheTerminalIsNotSteeredByWhatAModelSays(t *testing.T) {
	t.Parallel()
	if got := printable("a\x1b[2Jb\tc\nd\u202e\r\x07é"); got != "ab\tc\ndé" {
		t.Errorf("%q", got)
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, args := range [][]string{{}, {"run"}, {"resume"}, {"replay"}, {"approve"}, {"reject"}, {"answer"}, {"demo"}, {"sessions"}, {"sessions", "list"}, {"sessions", "show"}, {"sessions", "export"}, {"sessions", "import"}, {"sessions", "fork"}, {"sessions", "delete"}, {"version"}} {
		if r := w.pawl(append(args, "--help")...); r.code != 0 || !strings.Contains(r.out, "Examples:\n  pawl ") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if r := w.pawl("version"); r.code != 0 || !strings.HasPrefix(r.out, "pawl ") || !strings.Contains(r.out, "go1.") {
		t.Error(r)
	}
}

func TestTheDemoFixesAFailingTest(t *testing.T) {
	t.Parallel()
	tier.SkipQuick(t, "it builds and tests a Go module three times")
	w := newWorld(t)
	r := w.pawl("demo", "--journal", w.journal)
	removeDemo(t, r.out)
	if r.code != 0 {
		t.Fatal(r)
	}
	for _, want := range []string{"TestMedian fails", "● bash", "● edit", "exit code: 1", "completed after 5 steps", "go test passes", "pawl sessions show run-"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is missing in\n%s", want, r.out)
		}
	}
}

// removeDemo removes the project of a demo that wrote out. The demo leaves it for people to look at.
func removeDemo(t *testing.T, out string) {
	if project := regexp.MustCompile(`(?m)^project  (.+)$`).FindStringSubmatch(out); project != nil {
		t.Cleanup(func() { _ = os.RemoveAll(project[1]) })
	}
}

func TestACancelEndsTheWaitForStandardInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	cancel()
	code := program(ctx, streams{read, &out, &errs}, []string{"run", "--json", "--model", "scripted/" + w.file("s.yaml", `turns: [{text: x}]`), "--journal", w.journal, "-"})
	_ = write.Close()
	if code != exitCanceled || !strings.Contains(out.String(), `"status":"canceled"`) {
		t.Errorf("exit %d: %s %s", code, &out, &errs)
	}
}

// A cancel before anything began ends every command that does more than look as one that comes later does.
func TestACancelMeansTheSameInEveryCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := w.file("s.yaml", `turns: [{tool_calls: [{id: c1, name: bash, input: {command: touch made}}]}, {text: x}]`)
	if r := w.pawl("run", "--session", "s", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/"+script, "--ask", "Bash", "go"); r.code != exitWaiting {
		t.Fatalf("%+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, words := range [][]string{
		{"run", "--dir", w.dir, "--model", "scripted/" + script, "go"},
		{"resume", "s"},
		{"replay", "s"},
		{"approve", "s", "c1"},
		{"reject", "s", "c1"},
		{"answer", "s", "c1", "x"},
		{"sessions", "list"},
		{"sessions", "show", "s"},
		{"sessions", "export", "s"},
		{"sessions", "fork", "s"},
		{"sessions", "prune", "--keep", "1"},
		{"sessions", "delete", "s"},
		{"permissions", "check", "--dir", w.dir, "bash", "ls"},
		{"trust", w.dir},
		{"demo"},
	} {
		var out, errs bytes.Buffer
		args := words
		if !slices.Contains([]string{"permissions", "trust"}, words[0]) {
			args = append(slices.Clip(words), "--journal", w.journal)
		}
		code := program(ctx, streams{strings.NewReader(""), &out, &errs}, args)
		removeDemo(t, out.String())
		if out.String() == "0 sessions removed\n" { // prune says what it did until then
			out.Reset()
		}
		if code != exitCanceled || out.Len() > 0 && words[0] != "demo" || !strings.HasSuffix(errs.String(), "pawl: canceled\n") {
			t.Errorf("%v: exit %d: %s %s", words, code, &out, &errs)
		}
	}
	if r := w.pawl("sessions", "list", "--json", "--journal", w.journal); strings.Count(r.out, "\n") != 1 || !strings.Contains(r.out, "interrupted") {
		t.Errorf("%+v", r)
	}
}

// full is a place that nothing can be written to.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAnAnswerThatCannotBeWrittenIsAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, flags := range [][]string{{}, {"--json"}} {
		var errs bytes.Buffer
		args := append([]string{"run", "--model", "scripted/" + w.file("s.yaml", work), "--dir", w.dir, "--journal", w.journal}, flags...)
		args = append(args, unfenced()...)
		if code := program(t.Context(), streams{strings.NewReader(""), full{}, &errs}, append(args, "go")); code == exitCompleted || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: exit %d: %s", flags, code, &errs)
		}
	}
}

func TestTheLastLineIsWrittenForWrongFlagsToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, args := range [][]string{{"run", "--json", "--bogus", "hi"}, {"run", "--json"}, {"run", "--json", "--max-steps", "x", "hi"}} {
		if r := w.pawl(args...); r.code != exitUsage || !strings.Contains(r.out, `"type":"run.finished"`) || strings.Count(r.out, "\n") != 1 {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestStandardOutputIsEmptyWhenThereIsNoAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.runs(work, "go", "--session", "half", "--max-steps", "1")
	if r.code != exitLimit || r.out != "" || !strings.Contains(r.err, "I write a file.") || !strings.Contains(r.err, "go on with: pawl run --session half") {
		t.Errorf("%+v", r)
	}
}

func TestKeysDoNotReachCommands(t *testing.T) {
	w := newWorld(t)
	t.Setenv("ANTHROPIC_API_KEY", "sk-secret")
	lines, r := w.run(`turns: [{tool_calls: [{name: bash, input: {command: "env | grep -c _API_KEY"}}]}, {text: ok}]`, "go")
	if f := find(lines, "tool.finished"); r.code != 0 || strings.TrimSpace(strings.Split(f["content"].(string), "\n")[0]) != "0" {
		t.Errorf("%v %+v", f, r.code)
	}
}

func TestALongOutputIsThereForTheNextRunOfTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines, _ := w.run(`turns: [{tool_calls: [{name: bash, input: {command: "seq 100000"}}]}, {text: ok}]`, "go", "--session", "s")
	content := find(lines, "tool.finished")["content"].(string)
	_, rest, _ := strings.Cut(content, strings.TrimPrefix(w.journal, "sqlite:")+".outputs/")
	path := strings.TrimPrefix(w.journal, "sqlite:") + ".outputs/" + strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == ':' || r == '\n' || r == ']' })[0]
	if b, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(b), "100000\n") {
		t.Fatalf("%v: %.200s", err, content)
	}
	lines, r := w.run(`turns: [{text: a}, {text: a}, {tool_calls: [{name: grep, input: {pattern: "^77777$", path: "`+path+`", output_mode: content}}]}, {text: found}]`, "go on", "--session", "s")
	if f := find(lines, "tool.finished"); r.code != 0 || f == nil || f["is_error"] != false {
		t.Errorf("%+v %v", r, f)
	}
}

func TestACallThatBeganAndNeverEndedIsShownSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store, err := sqlite.Open(strings.TrimPrefix(w.journal, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	call := message.ToolCall{ID: "c", Name: "pay", Input: "{}"}
	err = store.Append(t.Context(), "s", 0,
		journal.Entry{Data: journal.SessionCreated{}},
		journal.Entry{Run: "r", Data: journal.RunStarted{Agent: "a", Owner: "o", Attempt: 1}},
		journal.Entry{Run: "r", Data: journal.Said{Message: message.User("go")}},
		journal.Entry{Run: "r", Key: journal.Key{Op: "model", ID: "1"}, Data: journal.ModelFinished{Message: message.Assistant("", call)}},
		journal.Entry{Run: "r", Key: journal.Key{Op: "tool", ID: "c"}, Data: journal.ToolStarted{Call: journal.CalledOf(call)}},
	)
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	if r := w.pawl("sessions", "show", "s", "--journal", w.journal); r.code != 0 || !strings.Contains(r.out, "tool pay · unknown") {
		t.Errorf("%+v", r)
	}
}

func TestTheDemoThatDiesNeedsAJournalThatStays(t *testing.T) {
	t.Parallel()
	if r := newWorld(t).pawl("demo", "--crash", "--journal", "memory"); r.code != exitUsage || !strings.Contains(r.err, "dies with the process") {
		t.Errorf("%+v", r)
	}
}

// pgURL is a database of the throwaway server as a URL, which is the form that --journal takes.
func pgURL(t *testing.T) string {
	t.Helper()
	tier.SkipQuick(t, "it needs PostgreSQL")
	q := url.Values{}
	for pair := range strings.FieldsSeq(pgtest.DSN(t)) {
		name, value, _ := strings.Cut(pair, "=")
		q.Set(name, value)
	}
	return "postgres:///" + q.Get("dbname") + "?" + q.Encode()
}

func TestASessionCanBeKeptInPostgreSQL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.journal = pgURL(t)
	lines, r := w.run(work, "write a file", "--session", "s")
	if r.code != exitCompleted || lines[len(lines)-1]["text"] != "It is written." {
		t.Fatal(r)
	}
	if r := w.pawl("sessions", "list", "--json", "--journal", w.journal); !strings.Contains(r.out, `"session":"s"`) || !strings.Contains(r.out, `"status":"completed"`) {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("sessions", "show", "s", "--journal", w.journal); r.code != 0 || !strings.Contains(r.out, "It is written.") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("run", "--journal", "postgres://nobody:hunter22@127.0.0.1:1/x?connect_timeout=1", "--model", "scripted/"+w.file("x.yaml", `turns: [{text: x}]`), "hi"); r.code != exitUsage || strings.Contains(r.err, "hunter22") {
		t.Errorf("%+v", r)
	}
}

func TestALineTellsOfACompaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := "turns:\n"
	for _, tokens := range []int{1000, 50_000, 100_000, 170_000} { // of the 200,000 of a model that nobody knows
		script += fmt.Sprintf("  - {text: %q, tool_calls: [{name: glob, input: {pattern: \"*.%d\"}}], usage: {input_tokens: %d}}\n", strings.Repeat("Let me look. ", 20), tokens, tokens)
	}
	lines, r := w.run(script+"  - text: Done.\n", "look")
	if last := lines[len(lines)-1]; r.code != exitCompleted || last["text"] != "Done." {
		t.Fatal(r)
	}
	got := map[string]float64{}
	for name, v := range find(lines, "compacted") {
		if n, ok := v.(float64); ok && name != "seq" {
			got[name] = n
		}
	}
	before, after := got["tokens_before"], got["tokens_after"]
	if len(got) != 4 || before < 170_000 || after <= 0 || after >= before || got["preserved_count"] != 6 || got["summary_size"] < 5 || got["summary_size"] > 20 {
		t.Errorf("%v", got)
	}
	n := 0
	for _, l := range lines {
		if l["type"] == "compacted" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d lines tell of it", n)
	}
}

// A command that goes on when its run is over ends with the program: who reads the lines is told of that, before the last one.
func TestACommandThatGoesOnBehindItsRunEndsInTheLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines, r := w.run(`
turns:
  - tool_calls:
      - {id: one, name: bash, input: {command: "exec sleep 300", background: true}}
      - {id: two, name: bash, input: {command: "exec sleep 301", background: true}}
      - {id: below, name: task, input: {agent: general-purpose, prompt: go}}
  - tool_calls: [{id: kill, name: bash_kill, input: {id: bg-two}}]
  - text: Done.
agents:
  general-purpose: {turns: [{tool_calls: [{id: three, name: bash, input: {command: "exec sleep 302", background: true}}]}, {text: Below.}]}
`, "go", "--session", "s", "--no-sandbox", "--permission-mode", "bypassPermissions")
	if r.code != exitCompleted {
		t.Fatalf("%+v", r)
	}
	began, ended := map[any]map[string]any{}, map[any]string{}
	for i, l := range lines {
		switch l["type"] {
		case "command.started":
			began[l["id"]] = l
		case "command.ended":
			if b := began[l["id"]]; b == nil || ended[l["id"]] != "" || b["run"] != l["run"] || b["session"] != l["session"] || b["parent_run"] != l["parent_run"] || b["seq"].(float64) >= l["seq"].(float64) {
				t.Errorf("%v after %v", l, b)
			}
			ended[l["id"]] = fmt.Sprint(l["reason"])
		case "run.finished":
			if i != len(lines)-1 || l["session"] != "s" {
				t.Errorf("line %d of %d: %v", i+1, len(lines), l)
			}
		}
	}
	if want := map[any]string{"bg-one": "stopped", "bg-two": "killed", "bg-three": "stopped"}; len(began) != 3 || !maps.Equal(ended, want) {
		t.Errorf("%v began, %v ended, want %v", len(began), ended, want)
	}
}
