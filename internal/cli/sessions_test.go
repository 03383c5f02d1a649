package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

// sessions runs a subcommand of sessions over the world's journal.
func (w world) sessions(args ...string) ran {
	return w.pawl(append(append([]string{"sessions"}, args...), "--journal", w.journal)...)
}

// goesOn runs the next prompt of a session.
func (w world) goesOn(script, session string) ran {
	return w.pawl("run", "--model", "scripted/"+w.file("script.yaml", script), "--dir", w.dir, "--journal", w.journal, "--session", session, "go on")
}

// writes makes a file by the tool, changes it, tries what can't be done, and runs a command; then it goes on for a run.
const writes = `
turns:
  - tool_calls: [{id: a, name: write, input: {file_path: notes.txt, content: one}}]
  - tool_calls: [{id: b, name: edit, input: {file_path: notes.txt, old_string: one, new_string: two}}, {id: c, name: edit, input: {file_path: none.txt, old_string: x, new_string: y}}]
  - tool_calls: [{id: d, name: write, input: {file_path: more.txt, content: more}}, {id: e, name: bash, input: {command: "true"}}]
  - text: "The first run is done."
  - text: "The second run is done."
`

// entry gives the number that sessions show has before a line.
func (w world) entry(session, line string) string {
	w.t.Helper()
	show := w.sessions("show", session)
	for l := range strings.Lines(show.out) {
		if n, rest, ok := strings.Cut(strings.TrimPrefix(l, "#"), " "); ok && l[0] == '#' && strings.HasPrefix(rest, line) {
			return n
		}
	}
	w.t.Fatalf("no %q in\n%s", line, show.out)
	return ""
}

func TestASessionIsExportedAndImportedElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, r := w.run(writes, "write", "--session", "s"); r.code != 0 {
		t.Fatal(r)
	}
	lines := w.sessions("export", "s")
	if lines.code != 0 || lines.err != "" || strings.Count(lines.out, "\n") < 10 || !strings.HasPrefix(lines.out, `{"v":1,"seq":1,`) {
		t.Fatalf("%+v", lines)
	}
	file := filepath.Join(w.dir, "s.jsonl")
	if r := w.sessions("export", "s", file); r.code != 0 || r.out != "" {
		t.Fatalf("%+v", r)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != lines.out {
		t.Fatalf("%v: the file has %q", err, b)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read it: %v, %v", info.Mode(), err)
	}

	there := w
	there.journal = "sqlite:" + filepath.Join(t.TempDir(), "another.db")
	if r := there.sessions("import", file); r.code != 0 || r.out != "s\n" || !strings.Contains(r.err, "go on with: pawl run --session s") {
		t.Fatalf("%+v", r)
	}
	if r := there.sessions("export", "s"); r.out != lines.out {
		t.Errorf("exported again it is\n%s, not\n%s", r.out, lines.out)
	}
	if r := there.pawlIn(lines.out, "sessions", "import", "-", "--as", "copy", "--journal", there.journal); r.code != 0 || r.out != "copy\n" {
		t.Fatalf("%+v", r)
	}
	if r := there.sessions("export", "copy"); strings.ReplaceAll(r.out, `"session":"copy"`, `"session":"s"`) != lines.out {
		t.Errorf("the copy is\n%s", r.out)
	}
	for _, session := range []string{"s", "copy"} {
		if r := there.goesOn(writes, session); r.code != 0 || r.out != "The second run is done.\n" {
			t.Errorf("%s: %+v", session, r)
		}
	}
	if again := w.sessions("export", "s"); again.out != lines.out {
		t.Errorf("the original changed: %s", again.out)
	}
}

func TestAForkGoesOnFromItsEntryAndItsParentToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, r := w.run(writes, "write", "--session", "s"); r.code != 0 {
		t.Fatal(r)
	}
	before := w.sessions("export", "s").out
	at := w.entry("s", "tool write")
	fork := w.sessions("fork", "s", "--at", at)
	if fork.code != 0 || fork.out != "s-fork\n" {
		t.Fatalf("%+v", fork)
	}
	for _, want := range []string{"Files on disk are not rewound", "after entry " + at + ":\n  notes.txt\n  more.txt\n", "A command (bash) ran", "pawl run --session s-fork"} {
		if !strings.Contains(fork.err, want) {
			t.Errorf("%q is missing in\n%s", want, fork.err)
		}
	}
	if strings.Contains(fork.err, "none.txt") {
		t.Errorf("an edit that failed has written nothing:\n%s", fork.err)
	}
	if r := w.sessions("fork", "s", "--as", "end"); r.code != 0 || r.out != "end\n" || !strings.Contains(r.err, "not rewound") || strings.Contains(r.err, "notes.txt") {
		t.Errorf("%+v", r)
	}
	if r := w.goesOn(`turns: [{text: x}, {text: "The fork's own way."}]`, "s-fork"); r.code != 0 || r.out != "The fork's own way.\n" {
		t.Fatalf("%+v\n%s", r, w.sessions("show", "s-fork").out)
	}
	for _, session := range []string{"end", "s"} {
		if r := w.goesOn(writes, session); r.code != 0 || r.out != "The second run is done.\n" {
			t.Errorf("%s: %+v", session, r)
		}
	}
	if after := w.sessions("export", "s").out; !strings.HasPrefix(after, before) || strings.Contains(after, "own way") {
		t.Errorf("the parent has\n%s", after)
	}

	whole := w.sessions("export", "s-fork").out
	if r := w.sessions("delete", "s"); r.code != 0 {
		t.Fatal(r)
	}
	if again := w.sessions("export", "s-fork"); again.code != 0 || again.out != whole || !strings.Contains(whole, `"parent":"s","at":`+at) {
		t.Errorf("without its parent the fork is %+v", again)
	}
	if r := w.pawlIn(whole, "sessions", "import", "-", "--as", "alone", "--journal", w.journal); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := w.goesOn(`turns: [{text: x}, {text: x}, {text: "On its own."}]`, "alone"); r.code != 0 || r.out != "On its own.\n" {
		t.Errorf("%+v", r)
	}
}

func TestAForkCanBeMadeAtEveryEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, r := w.run(writes, "write", "--session", "s"); r.code != 0 {
		t.Fatal(r)
	}
	for at := range strings.Count(w.sessions("export", "s").out, "\n") {
		if tier.Quick() && at%4 != 2 {
			continue
		}
		name := fmt.Sprint("at", at+1)
		if r := w.sessions("fork", "s", "--at", fmt.Sprint(at+1), "--as", name); r.code != 0 || r.out != name+"\n" {
			t.Fatalf("%+v", r)
		}
		if r := w.goesOn(`turns: [`+strings.Repeat(`{text: "on"},`, 6)+`]`, name); r.code != 0 || r.out != "on\n" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestAKilledRunIsImportedAndFinishedByResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := w.file("s.yaml", `turns: [{tool_calls: [{id: a, name: bash, input: {command: "echo a >> done.txt"}}]}, {text: "All done."}]`)
	call := message.ToolCall{ID: "a", Name: "bash", Input: `{"command":"echo a >> done.txt"}`}
	store, err := sqlite.Open(strings.TrimPrefix(w.journal, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	err = store.Append(t.Context(), "s", 0,
		journal.Entry{Data: journal.SessionCreated{}},
		journal.Entry{Run: "r", Data: journal.RunStarted{Agent: "pawl", Owner: "o", Attempt: 1, Model: "scripted/" + script, Dir: w.dir}},
		journal.Entry{Run: "r", Data: journal.Said{Message: message.User("go")}},
		journal.Entry{Run: "r", Key: journal.Key{Op: "prepare"}, Data: journal.Prepared{System: "x", Edit: message.Edit{To: 1}}},
		journal.Entry{Run: "r", Key: journal.Key{Op: "model", ID: "1"}, Data: journal.ModelStarted{}},
		journal.Entry{Run: "r", Key: journal.Key{Op: "model", ID: "1"}, Data: journal.ModelFinished{Message: message.Assistant("", call)}},
	)
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	lines := w.sessions("export", "s").out
	w.journal = "sqlite:" + filepath.Join(t.TempDir(), "another.db")
	if r := w.pawlIn(lines, "sessions", "import", "-", "--as", "t", "--journal", w.journal); r.code != 0 || r.out != "t\n" || !strings.Contains(r.err, "pawl resume t") {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl(append([]string{"resume", "t", "--journal", w.journal}, unfenced()...)...); r.code != exitCompleted || r.out != "All done.\n" {
		t.Fatalf("%+v", r)
	}
	if b, err := os.ReadFile(filepath.Join(w.dir, "done.txt")); err != nil || string(b) != "a\n" {
		t.Errorf("%q %v", b, err)
	}
}

func TestWrongUseOfSessionsSaysWhatWouldBeRightAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, r := w.run(`turns: [{text: ok}]`, "hi", "--session", "s"); r.code != 0 {
		t.Fatal(r)
	}
	lines := w.sessions("export", "s").out
	good, half := w.file("good.jsonl", lines), w.file("half.jsonl", lines[:len(lines)-9])
	newer := w.file("newer.jsonl", strings.Replace(lines, `{"v":1`, `{"v":7`, 1))
	n := strings.Count(lines, "\n")
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"export without an id":      {[]string{"export"}, []string{"session ID"}},
		"export too much":           {[]string{"export", "a", "b", "c"}, []string{"got 3"}},
		"export of nothing":         {[]string{"export", "none"}, []string{`no session "none"`, "sessions list"}},
		"export to a directory":     {[]string{"export", "s", w.dir}, []string{w.dir, "name a file in it"}},
		"export to nowhere":         {[]string{"export", "s", "no/where"}, []string{"no/where", "no such file"}},
		"import without a file":     {[]string{"import"}, []string{"one file", "- for standard input"}},
		"import of no file":         {[]string{"import", "none.jsonl"}, []string{"none.jsonl", "no such file"}},
		"import of a directory":     {[]string{"import", w.dir}, []string{w.dir, "sessions export"}},
		"import of a half":          {[]string{"import", half, "--as", "t"}, []string{fmt.Sprintf("line %d:", n), "unexpected end"}},
		"import of nothing":         {[]string{"import", "-", "--as", "t"}, []string{"nothing to read"}},
		"import of a newer release": {[]string{"import", newer, "--as", "t"}, []string{"line 1:", "version 7", "newer"}},
		"import of what is there":   {[]string{"import", good}, []string{`session "s" already`, "--as NAME"}},
		"import as what is there":   {[]string{"import", good, "--as", "s"}, []string{`session "s" already`, "--as NAME"}},
		"import without a name":     {[]string{"import", good, "--as", ""}, []string{"--as", "empty"}},
		"import by a bad name":      {[]string{"import", good, "--as", "a\nb"}, []string{"--as", "control"}},
		"fork without an id":        {[]string{"fork"}, []string{"session ID"}},
		"fork of nothing":           {[]string{"fork", "none"}, []string{`no session "none"`, "sessions list"}},
		"fork at 0":                 {[]string{"fork", "s", "--at", "0"}, []string{"--at 0", "1 or more", "sessions show s"}},
		"fork before the beginning": {[]string{"fork", "s", "--at", "-1"}, []string{"--at -1", "1 or more"}},
		"fork past the end":         {[]string{"fork", "s", "--at", "999"}, []string{"no entry 999", fmt.Sprint("its last is ", n)}},
		"fork at a word":            {[]string{"fork", "s", "--at", "end"}, []string{"end", "--at", "--help"}},
		"fork as what is there":     {[]string{"fork", "s", "--as", "s"}, []string{`session "s" already`, "--as NAME"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.sessions(c.args...)
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
	if r := w.pawl("sessions", "import", good, "--journal", "memory"); r.code != exitUsage || !strings.Contains(r.err, "sqlite:PATH") {
		t.Errorf("%+v", r)
	}
	if list := w.sessions("list", "--json"); strings.Count(list.out, "\n") != 1 || w.sessions("export", "s").out != lines {
		t.Errorf("something changed:\n%s", list.out)
	}
}

func TestSessionsAreListedByTheirDirectory(t *testing.T) {
	w := newWorld(t)
	there := newWorld(t)
	there.journal = w.journal
	for name, at := range map[string]world{"here": w, "there": there} {
		if _, r := at.run(`turns: [{text: ok}]`, "hi", "--session", name); r.code != 0 {
			t.Fatal(r)
		}
	}
	if r := w.sessions("list", "--json"); strings.Count(r.out, "\n") != 2 || !strings.Contains(r.out, `"session":"there","dir":"`+there.dir+`"`) {
		t.Errorf("all: %+v", r)
	}
	for dir, want := range map[string]string{w.dir: "here", there.dir + "/": "there", w.dir + "/../" + filepath.Base(w.dir): "here", t.TempDir(): ""} {
		r := w.sessions("list", "--json", "--dir", dir)
		if n := strings.Count(r.out, "\n"); r.code != 0 || n != min(len(want), 1) || !strings.Contains(r.out, `"session":"`+want) && want != "" {
			t.Errorf("--dir %s: %+v", dir, r)
		}
	}
	t.Chdir(w.dir)
	if r := w.sessions("list", "--dir", "."); !strings.Contains(r.out, "here") || strings.Contains(r.out, "there") {
		t.Errorf("--dir .: %+v", r)
	}
}

func TestAnExportThatFailsLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, r := w.run(`turns: [{text: ok}]`, "hi", "--session", "s"); r.code != 0 {
		t.Fatal(r)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "s.jsonl")
	if err := os.WriteFile(file, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no space left")
	if err := replaceFile(file, func(w io.Writer) error { fmt.Fprint(w, "half"); return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "old" {
		t.Errorf("%q %v", b, err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	if r := w.sessions("export", "s", link); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 || info.Size() < 100 {
		t.Errorf("%v %v", info, err)
	}
	all, err := os.ReadDir(dir)
	if names := slices.Collect(func(yield func(string) bool) {
		for _, e := range all {
			if !yield(e.Name()) {
				return
			}
		}
	}); err != nil || !slices.Equal(names, []string{"link", "s.jsonl"}) {
		t.Errorf("%q %v", names, err)
	}
	var errs bytes.Buffer
	if code := program(t.Context(), streams{strings.NewReader(""), full{}, &errs}, []string{"sessions", "export", "s", "--journal", w.journal}); code != exitFailed || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("exit %d: %s", code, &errs)
	}
}

func TestACancelEndsTheWaitForAnImport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	cancel()
	code := program(ctx, streams{read, &out, &errs}, []string{"sessions", "import", "-", "--journal", w.journal})
	_ = write.Close()
	if code != exitCanceled || out.Len() > 0 {
		t.Errorf("exit %d: %s %s", code, &out, &errs)
	}
}

func TestASessionIsShownAsItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, r := w.run(work, "write a file", "--session", "s"); r.code != 0 {
		t.Fatal(r)
	}
	show := func(flags ...string) ran {
		return w.pawl(append([]string{"sessions", "show", "s", "--journal", w.journal}, flags...)...)
	}
	whole := show()
	_, rest, _ := strings.Cut(whole.out, "\n")
	before, _, _ := strings.Cut(rest, "\n#11 ") // the answer
	head, body, _ := strings.Cut(show("--at", "10").out, "\n")
	if head != "session s · running at entry 10 · 15 tokens · cost unknown" || body != before {
		t.Errorf("%s\n%s\nwant\n%s\nof\n%s", head, body, before, whole.out)
	}
	for _, at := range []string{"0", "-1", "99"} {
		if r := show("--at", at); r.code != exitUsage || !strings.Contains(r.err, "entry") {
			t.Errorf("%s: %+v", at, r)
		}
	}
	if r := w.pawl("sessions", "show", "t", "--at", "1", "--journal", w.journal); r.code != exitUsage || !strings.Contains(r.err, "no session") {
		t.Errorf("%+v", r)
	}
}

func TestTheSessionsOfTasksGoWithTheirParents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store, err := sqlite.Open(strings.TrimPrefix(w.journal, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	kid, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("done"))})
	if err != nil {
		t.Fatal(err)
	}
	task, err := agent.Task([]agent.Subagent{{Agent: agent.Agent{ID: "kid"}, Engine: kid}})
	if err != nil {
		t.Fatal(err)
	}
	eng, err := loop.New(loop.Config{Model: scripted.New(scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "task", Input: `{"agent":"kid","prompt":"go"}`}}}, scripted.Text("end")), Tools: []tool.Tool{task}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"s", "s/other"} {
		res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, agent.Request{ContextID: s, Message: message.User("go")}, agent.WithJournal(store))
		if err != nil || res.Err != nil {
			t.Fatal(err, res.Err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	list := func(flags ...string) int {
		return strings.Count(w.pawl(append([]string{"sessions", "list", "--json", "--journal", w.journal}, flags...)...).out, "\n")
	}
	if list() != 2 || list("--all") != 4 {
		t.Errorf("%d listed, %d in all", list(), list("--all"))
	}
	if r := w.pawl("sessions", "delete", "s", "--journal", w.journal); r.code != 0 || list("--all") != 2 || list() != 1 {
		t.Errorf("%+v: %d in all", r, list("--all"))
	}
}

func TestASessionAsAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, r := w.run(writes, "write", "--session", "s"); r.code != 0 {
		t.Fatal(r)
	}
	show := w.sessions("show", "s", "--html", "-")
	for _, want := range []string{"<!doctype html>", "<h1>s</h1>", "notes.txt", "The first run is done.", "<span class=\"came\">+two", "</html>\n"} {
		if show.code != 0 || !strings.Contains(show.out, want) {
			t.Errorf("no %q in %v", want, show)
		}
	}
	file := filepath.Join(t.TempDir(), "s.html")
	if r := w.sessions("show", "s", "--html", file); r.code != 0 || r.out != "" {
		t.Fatal(r)
	}
	whole, err := os.ReadFile(file)
	if info, statErr := os.Stat(file); err != nil || statErr != nil || string(whole) != show.out || info.Mode().Perm() != 0o600 {
		t.Error("the file has to be the same page, readable for its owner alone", err, statErr, info)
	}
	if r := w.sessions("show", "s", "--html", file, "--at", w.entry("s", "assistant")); r.code != 0 {
		t.Error(r)
	}
	begin, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(begin), "The first run is done.") || !strings.Contains(string(begin), "as it was at entry") {
		t.Errorf("%v\n%s", err, begin)
	}
	for _, args := range [][]string{{"none", "--html", file}, {"s", "--html", file, "--at", "999"}, {"s", "--html", ""}, {"s", "--html", t.TempDir()}} {
		if r := w.sessions(append([]string{"show"}, args...)...); r.code != 2 || r.out != "" || r.err == "" {
			t.Errorf("%v: %v", args, r)
		}
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(begin) {
		t.Error("what can't be written must leave the file as it was", err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Error("nothing else may be left", left, err)
	}
}

// What a model was told beside the transcript can be looked up: of a run, and of a subagent's task.
func TestTheSystemPromptsOfASessionAreShownOnRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file("AGENTS.md", "Remember the milk.")
	if _, r := w.run("turns: [{tool_calls: [{id: c1, name: task, input: {agent: explore, prompt: look}}]}, {text: Done.}]\nagents: {explore: {turns: [{text: Seen.}]}}", "go", "--session", "s", "--system-prompt", "You are told this."); r.code != exitCompleted {
		t.Fatalf("%+v", r)
	}
	show := func(args ...string) ran {
		return w.pawl(append([]string{"sessions", "show", "--journal", w.journal}, args...)...)
	}
	for session, first := range map[string]string{"s": "You are told this.", "s/c1": "You explore a project"} {
		r := show(session, "--system")
		if i := strings.Index(r.out, " system prompt\n   "+first); r.code != 0 || i < 0 || !strings.Contains(r.out[i:], "\n   ## Memory\n   \n   Remember the milk.\n") || strings.Count(r.out, "system prompt") != 1 {
			t.Errorf("%s: %+v", session, r)
		}
		if r := show(session); r.code != 0 || strings.Contains(r.out, "milk") {
			t.Errorf("%s: %+v", session, r)
		}
	}
	if r := show("s", "--system", "--at", "2"); r.code != 0 || strings.Contains(r.out, "milk") {
		t.Errorf("before it was made: %+v", r)
	}
	if r := show("s", "--system", "--html", "-"); r.code != exitUsage || !strings.Contains(r.err, "--system") {
		t.Errorf("%+v", r)
	}
	if r := show("s", "--html", "-"); r.code != 0 || !strings.Contains(r.out, "Remember the milk.") {
		t.Errorf("%+v", r)
	}
}
