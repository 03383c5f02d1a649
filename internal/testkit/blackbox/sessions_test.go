package blackbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestSessions(t *testing.T) { runRows(t) }

// done runs touches as the session s.
func (w *world) done(flags ...string) result {
	w.t.Helper()
	r := w.plays(touches, append(append([]string{"--session", "s"}, flags...), "go")...)
	if r.code != 0 {
		w.t.Fatal(r)
	}
	return r
}

// waits leaves the session s waiting for an approval of the call w.
func (w *world) waits(flags ...string) result {
	w.t.Helper()
	w.write("model.yaml", touches)
	args := append([]string{"run", "--model", "scripted/model.yaml", "--no-sandbox", "--session", "s"}, flags...)
	r := w.pawl(append(args, "go")...)
	if r.code != 3 {
		w.t.Fatal(r)
	}
	return r
}

// status gives what sessions list says of a session, "" if it does not list it.
func (w *world) status(session string) string {
	w.t.Helper()
	for _, s := range w.sessions("--all") {
		if s["session"] == session {
			text, _ := s["status"].(string)
			return text
		}
	}
	return ""
}

var _ = table("TestSessions",
	row{"list shows a line a session", "one line a session, the newest first", "pawl sessions list", func(w *world) {
		w.done()
		w.plays(touches, "--session", "newer", "go")
		r := w.ok("sessions", "list")
		rows := strings.Split(strings.TrimSpace(r.out), "\n")
		if len(rows) != 3 || !strings.HasPrefix(rows[0], "SESSION") || !strings.HasPrefix(rows[1], "newer") || !strings.HasPrefix(rows[2], "s ") {
			w.t.Error(r)
		}
	}},
	row{"list --json has the fields", "`session`, `dir` (of its last run), `status`, `created`, `updated`, `messages`, `usage`, `cost_usd`", "pawl sessions list", func(w *world) {
		w.done()
		got := w.sessions()
		if len(got) != 1 || got[0]["dir"] != w.dir || got[0]["status"] != "completed" || got[0]["messages"] != 4.0 || at(got[0], "usage", "input_tokens") != 30.0 {
			w.t.Errorf("%v", got)
		}
	}},
	row{"list has subagents' tasks only with --all", "those of subagents' tasks only with `--all`", "pawl sessions --all", func(w *world) {
		w.delegates()
		if some, all := w.sessions(), w.sessions("--all"); len(some) != 1 || len(all) != 2 {
			w.t.Errorf("%v, with --all %v", some, all)
		}
	}},
	row{"list --dir has those of a directory", "with `--dir DIR` those whose last run was in that directory", "pawl sessions list", func(w *world) {
		w.done()
		w.write("other/go.mod", "module other\n")
		if here, there := w.sessions("--dir", "."), w.sessions("--dir", "other"); len(here) != 1 || len(there) != 0 {
			w.t.Errorf("%v, elsewhere %v", here, there)
		}
	}},
	row{"list tells statuses apart", "A status is `running`, `unfinished` (its process is gone), `forked` (it has had no run of its own), `completed`, `failed`, `canceled`, `aborted` or `interrupted`", "", func(w *world) {
		w.done()
		w.ok("sessions", "fork", "s", "--as", "forked")
		w.plays("turns: [{error: {status: 401}}]", "--session", "failed", "go")
		p := w.sleeps("unfinished")
		if got := w.status("unfinished"); got != "running" {
			w.t.Errorf("while it is driven it is %q", got)
		}
		p.end()
		for session, want := range map[string]string{"s": "completed", "forked": "forked", "failed": "failed", "unfinished": "unfinished"} {
			if got := w.status(session); got != want {
				w.t.Errorf("%s is %q, want %q", session, got, want)
			}
		}
	}},
	row{"show has the transcript with entry numbers", "the transcript, each entry with its number, and each call with the id that `approve` and `reject` take", "pawl sessions show", func(w *world) {
		w.done()
		want := `session s · completed · 42 tokens · cost unknown

#3 user
   go

#6 assistant
   I write.
   → w bash {"command":"echo one >> effects"}

#9 tool bash · ok · w
   (no output)

#11 assistant
   Done.

#13 run completed
`
		if r := w.ok("sessions", "show", "s"); strings.TrimSpace(r.out) != strings.TrimSpace(want) {
			w.t.Errorf("%s", r.out)
		}
	}},
	row{"show has what waits for a person", "what people answered, and what waits for a person still", "pawl sessions show", func(w *world) {
		w.waits()
		if r := w.ok("sessions", "show", "s"); !strings.Contains(r.out, "waiting for a person:\n   w: bash") {
			w.t.Error(r)
		}
	}},
	row{"show --system has the system prompts", "`--system`: the system prompts, too, with the rules, skills and memory that a run was told", "pawl sessions --system", func(w *world) {
		w.write("AGENTS.md", "Tests run with make check.\n")
		w.done("--system-prompt", "You are a lighthouse.")
		if r := w.ok("sessions", "show", "s", "--system"); !strings.Contains(r.out, "You are a lighthouse.") || !strings.Contains(r.out, "Tests run with make check.") {
			w.t.Error(r)
		}
	}},
	row{"show --at has it as it was", "`--at SEQ`: as it was when that entry was the last", "pawl sessions --at", func(w *world) {
		w.done()
		r := w.ok("sessions", "show", "s", "--at", "6")
		if !strings.Contains(r.out, "running at entry 6 · 15 tokens") || strings.Contains(r.out, "Done.") {
			w.t.Error(r)
		}
		if r := w.pawl("sessions", "show", "s", "--at", "99"); r.code != 2 || !strings.Contains(r.err, "has no entry 99: its last is 13") {
			w.t.Error(r)
		}
	}},
	row{"show --html writes one page", "writes [one page] instead, in place of a file that is there, as a whole or not at all; a new file is readable for you alone", "pawl sessions --html", func(w *world) {
		w.done()
		w.ok("sessions", "show", "s", "--html", "s.html")
		text := w.read("s.html")
		info, err := os.Stat(filepath.Join(w.dir, "s.html"))
		if err != nil || info.Mode().Perm() != 0o600 || !strings.HasPrefix(text, "<!doctype html>") || !strings.Contains(text, "Content-Security-Policy") || !strings.Contains(text, "echo one &gt;&gt; effects") {
			w.t.Errorf("%v %v: %.300s", info, err, text)
		}
		if r := w.ok("sessions", "show", "s", "--html", "-"); r.out != text {
			w.t.Error("standard output has another page")
		}
	}},
	row{"export has one entry a line, always with the same bytes", "JSON lines, one journal entry each, always with the same bytes", "pawl sessions export", func(w *world) {
		w.done()
		r := w.ok("sessions", "export", "s")
		w.ok("sessions", "export", "s", "s.jsonl")
		if w.read("s.jsonl") != r.out || strings.Count(r.out, "\n") != 13 {
			w.t.Errorf("%d lines", strings.Count(r.out, "\n"))
		}
		for i, line := range strings.Split(strings.TrimSpace(r.out), "\n") {
			var e struct {
				V, Seq        int
				Session, Kind string
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.V != 1 || e.Seq != i+1 || e.Session != "s" || e.Kind == "" {
				w.t.Errorf("%v: %s", err, line)
			}
		}
		if info, err := os.Stat(filepath.Join(w.dir, "s.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
			w.t.Errorf("%v %v", info, err)
		}
	}},
	row{"import makes the same session elsewhere", "makes a session of such a file (`-`: standard input) and prints its id", "pawl sessions import", func(w *world) {
		w.done()
		text := w.ok("sessions", "export", "s").out
		r := w.pawlWith(text, "sessions", "import", "-", "--journal", "sqlite:other.db")
		if again := w.ok("sessions", "export", "s", "--journal", "sqlite:other.db"); r.code != 0 || r.out != "s\n" || again.out != text {
			w.t.Error(r)
		}
	}},
	row{"import --as names it, and writes over nothing", "a session that is there is not written over", "pawl sessions --as", func(w *world) {
		w.done()
		w.ok("sessions", "export", "s", "s.jsonl")
		if r := w.pawl("sessions", "import", "s.jsonl"); r.code != 2 || !strings.Contains(r.err, "--as NAME") {
			w.t.Error(r)
		}
		if r := w.ok("sessions", "import", "--as", "copy", "s.jsonl"); r.out != "copy\n" || w.status("copy") != "completed" {
			w.t.Error(r)
		}
	}},
	row{"import checks all lines before anything is written", "are checked before anything is written", "pawl sessions import", func(w *world) {
		w.done()
		text := w.ok("sessions", "export", "s").out
		w.write("broken.jsonl", text[:len(text)-40]+"\n")
		if r := w.pawl("sessions", "import", "--as", "broken", "broken.jsonl"); r.code != 2 || w.status("broken") != "" {
			w.t.Error(r)
		}
	}},
	row{"fork shares the entries and goes its own way", "a new session that shares the entries up to `--at SEQ` (default: all); prints its id; `--as NAME` names it (default: `ID-fork`)", "pawl sessions fork, pawl sessions --at", func(w *world) {
		w.done()
		r := w.ok("sessions", "fork", "s", "--at", "2")
		if r.out != "s-fork\n" || !strings.Contains(r.err, "Files on disk are not rewound.") {
			w.t.Error(r)
		}
		w.ok("sessions", "delete", "s")
		if again := w.plays("turns: [{text: Again.}]", "--session", "s-fork", "more"); again.code != 0 || again.out != "Again.\n" {
			w.t.Error(again)
		}
	}},
	row{"delete removes a session and its tasks", "the session, and those of its subagents' tasks", "pawl sessions delete", func(w *world) {
		w.delegates()
		w.ok("sessions", "delete", "s")
		if all := w.sessions("--all"); len(all) != 0 {
			w.t.Errorf("%v", all)
		}
	}},
	row{"prune --older-than removes the old and prints their ids", "sessions whose last entry is older than `--older-than` (`30d`, `2w`, `1w12h`, `90m`), the oldest first; prints their ids", "pawl sessions prune, pawl sessions --older-than", func(w *world) {
		w.done()
		text := golden(w.t, filepath.Join(journals, "v1"), "plain.jsonl")
		for _, name := range []string{"2021", "2020"} {
			aged := regexp.MustCompile(`"time":"\d{4}`).ReplaceAllString(text, `"time":"`+name)
			if r := w.pawlWith(aged, "sessions", "import", "-", "--as", name); r.code != 0 {
				w.t.Fatal(r)
			}
		}
		if r := w.ok("sessions", "prune", "--older-than", "90m"); r.out != "2020\n2021\n" {
			w.t.Error(r)
		}
		if left := w.sessions("--all"); len(left) != 1 || left[0]["session"] != "s" {
			w.t.Errorf("%v are left", left)
		}
	}},
	row{"prune --keep keeps the newest", "`--keep N` keeps the newest N in any case, and may stand alone; `--dry-run` only prints", "pawl sessions --keep, pawl sessions --dry-run", func(w *world) {
		for _, name := range []string{"a", "b", "c"} {
			w.plays(touches, "--session", name, "go")
		}
		if r := w.ok("sessions", "prune", "--keep", "1", "--dry-run"); r.out != "a\nb\n" || len(w.sessions()) != 3 {
			w.t.Error(r)
		}
		if r := w.ok("sessions", "prune", "--keep", "1"); r.out != "a\nb\n" || len(w.sessions()) != 1 {
			w.t.Error(r)
		}
	}},
	row{"prune keeps what can still be finished, unless --unfinished", "one whose run can still be finished, unless `--unfinished` is given", "pawl sessions --unfinished", func(w *world) {
		w.waits()
		w.plays(touches, "--session", "newest", "go")
		if r := w.ok("sessions", "prune", "--keep", "1"); r.out != "" {
			w.t.Error(r)
		}
		if r := w.ok("sessions", "prune", "--keep", "1", "--unfinished"); r.out != "s\n" {
			w.t.Error(r)
		}
	}},
)

func TestSessions_PeopleAnswer(t *testing.T) { runRows(t) }

var _ = table("TestSessions_PeopleAnswer",
	row{"approve lets the call run at the resume", "lets a pending call run, or refuses it", "pawl approve, pawl resume", func(w *world) {
		w.waits()
		if r := w.ok("approve", "s", "w"); r.out != "" || !strings.Contains(r.err, "pawl resume s") {
			w.t.Error(r)
		}
		w.wants("effects", "")
		if r := w.ok("resume", "s", "--no-sandbox"); r.out != "Done.\n" {
			w.t.Error(r)
		}
		w.wants("effects", "one\n")
	}},
	row{"approve --edit runs it with another input", "`approve --edit JSON` lets the call run with another input", "pawl approve --edit", func(w *world) {
		w.waits()
		w.ok("approve", "s", "w", "--edit", `{"command": "echo two >> effects"}`)
		w.ok("resume", "s", "--no-sandbox")
		w.wants("effects", "two\n")
	}},
	row{"approve --session does not ask again", "`approve --session` approves for the rest of the session", "pawl approve", func(w *world) {
		w.waits()
		if r := w.ok("approve", "s", "w", "--session"); !strings.Contains(r.err, "approved for the session") {
			w.t.Error(r)
		}
		w.ok("resume", "s", "--no-sandbox")
		w.write("model.yaml", touches+"- {tool_calls: [{name: bash, input: {command: \"echo one >> effects\"}}]}\n- {text: Again.}\n")
		r := w.pawl("run", "--model", "scripted/model.yaml", "--no-sandbox", "--session", "s", "more")
		if w.wants("effects", "one\none\n"); r.code != 0 {
			w.t.Error(r)
		}
	}},
	row{"reject tells the model why", "`reject --reason TEXT` is what the model is told", "pawl reject, pawl approve --reason", func(w *world) {
		w.waits()
		w.ok("reject", "s", "w", "--reason", "Not on a Friday.")
		r := w.ok("resume", "s", "--no-sandbox", "--json")
		end := decode(w.t, r.out).of("tool.finished")
		if w.wants("effects", ""); len(end) != 1 || end[0]["outcome"] != "rejected" || !strings.Contains(end.text("content"), "Not on a Friday.") {
			w.t.Errorf("%v", end)
		}
	}},
	row{"one answer wins", "one answer wins, and `pawl resume` goes on with the run", "", func(w *world) {
		w.waits()
		w.ok("approve", "s", "w")
		if r := w.pawl("reject", "s", "w"); r.code == 0 || r.out != "" {
			w.t.Error(r)
		}
		w.ok("resume", "s", "--no-sandbox")
		w.wants("effects", "one\n")
	}},
	row{"a call that does not wait is wrong use", "From any process; one answer wins", "", func(w *world) {
		w.done()
		if r := w.pawl("approve", "s", "w"); r.code != 2 || !strings.Contains(r.err, `"w" is not pending in session s`) {
			w.t.Error(r)
		}
	}},
	row{"answer answers a question of a script", "answers a pending question", "pawl answer", func(w *world) {
		w.write("model.yaml", "turns: [{text: unused}]")
		w.write("flow.star", "a = ask(\"Which?\", choices = [\"red\", \"blue\"])\ntool(\"write\", file_path = \"effects\", content = a.text)\n")
		flags := append([]string{"--engine", "script:flow.star"}, free...)
		r := w.pawl(append(append([]string{"run", "--json", "--session", "s"}, flags...), "go")...)
		id, _ := at(decode(w.t, r.out).end(w.t), "pending", 0, "call_id").(string)
		if r.code != 3 || id == "" {
			w.t.Fatal(r)
		}
		w.ok("answer", "s", id, "blue")
		w.ok(append([]string{"resume", "s"}, flags...)...)
		w.wants("effects", "blue")
	}},
	row{"the lines to go on with have the flags that were given", "the lines of a run have those that it was given", "", func(w *world) {
		run := w.waits("--deny", "Bash(rm:*)")
		for _, line := range []string{"pawl approve s w --deny 'Bash(rm:*)' --no-sandbox", "pawl resume s --deny 'Bash(rm:*)' --no-sandbox"} {
			if !strings.Contains(run.err, line) {
				w.t.Errorf("the run does not print %q: %v", line, run)
			}
		}
		if r := w.ok("approve", "s", "w", "--allow", "Read"); !strings.Contains(r.err, "pawl resume s --allow Read") {
			w.t.Error(r)
		}
	}},
	row{"resume binds to what the run was not to do", "What it was not to do [binds it still]", "pawl resume", func(w *world) {
		w.waits("--deny", "Edit(other)")
		w.ok("approve", "s", "w")
		w.write("model.yaml", strings.Replace(touches, "- {text: \"Done.\"", "- {tool_calls: [{name: write, input: {file_path: other, content: two}}]}\n- {text: \"Done.\"", 1))
		w.ok(append([]string{"resume", "s"}, free...)...)
		w.wants("effects", "one\n")
		w.wants("other", "")
	}},
	row{"replay compares and calls nothing", "nothing is called, run or written, and no key is needed", "pawl replay", func(w *world) {
		w.done()
		w.write("model.yaml", "turns: [{text: Another.}]")
		r := w.ok("replay", "s")
		if w.wants("effects", "one\n"); !strings.HasSuffix(r.out, ": 6 effects as on record, completed\n") || r.err != "" {
			w.t.Error(r)
		}
	}},
	row{"replay by another definition is a difference", "another definition or program than the runs began with is a difference", "pawl replay", func(w *world) {
		w.write("flow.yaml", writeGraph)
		w.plays("turns: [{text: unused}]", "--engine", "graph:flow.yaml", "--var", "word=one", "--session", "s", "go")
		if r := w.pawl("replay", "s", "--engine", "graph:flow.yaml"); r.code != 0 {
			w.t.Error(r)
		}
		w.write("flow.yaml", strings.Replace(writeGraph, "${word}", "x${word}", 1))
		if r := w.pawl("replay", "s", "--engine", "graph:flow.yaml"); r.code != 1 {
			w.t.Error(r)
		}
		if r := w.pawl("replay", "s", "--engine", "loop"); r.code != 2 {
			w.t.Error(r)
		}
	}},
)
