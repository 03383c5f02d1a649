package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

const asProgram = "THREE_ENGINES_TEST_AS_PROGRAM" // set where the test binary is the program

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// encoded is a transcript as it is on record, byte for byte, a message a line.
func encoded(ms []message.Message) string {
	var b []byte
	for _, m := range ms {
		b = append(m.AppendJSON(b), '\n')
	}
	return string(b)
}

// answers is a person who is there. She looks whether anything was published before she was asked.
func answers(t *testing.T, dir string, a journal.Answered) engine.Host {
	return engine.HostFuncs{AskUserFunc: func(_ context.Context, q engine.Prompt) (engine.Reply, error) {
		if text := published(t, dir); text != "" {
			t.Errorf("published before anybody was asked: %s", text)
		}
		return engine.Reply{Answered: a}, nil
	}}
}

// published is the text of the report; "" when there is none.
func published(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "report.md"))
	if err != nil || len(files) > 1 {
		t.Fatal(files, err)
	}
	if len(files) == 0 {
		return ""
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const report = "Sea otters sleep on their backs, rolled in kelp. Some hold paws.\n"

// cases are the answers, and what they lead to.
var cases = map[string]struct {
	answer     journal.Answered
	told, last string // the call's result, the model's last words
	report     string
}{
	"approved":               {journal.Answered{Approved: true}, "Published as report.md.", "It is published, without the dreams.", report},
	"rejected":               {journal.Answered{}, "Rejected by a person. It was not run.", "It stays a draft.", ""},
	"rejected with a reason": {journal.Answered{Text: "It says too little."}, "Rejected by a person: It says too little.", "It stays a draft.", ""},
}

// undisturbed is the transcript that the loop leaves, by the case: what all have to come to.
func undisturbed(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	st, err := ways[0].drive(t.Context(), journal.Memory(), dir, answers(t, dir, cases[name].answer))
	if err != nil || st.Status != string(agent.StatusCompleted) {
		t.Fatal(st.Status, st.Error, err)
	}
	return encoded(st.Messages.Messages())
}

func TestThreeEnginesLeaveTheSameTranscript(t *testing.T) {
	for name, c := range cases {
		want := undisturbed(t, name)
		for _, part := range []string{task, "otters.md: Some hold each other's paws", "They dream of clams.", c.told, c.last} {
			if !strings.Contains(want, part) {
				t.Errorf("%s: %q is not in the transcript:\n%s", name, part, want)
			}
		}
		for _, w := range ways {
			t.Run(name+"/"+w.name, func(t *testing.T) {
				dir, store := t.TempDir(), journal.Memory()
				st, err := w.drive(t.Context(), store, dir, answers(t, dir, c.answer))
				if err != nil || st.Status != string(agent.StatusCompleted) || st.Agent != reporter.ID {
					t.Fatal(st.Status, st.Agent, st.Error, err)
				}
				if diff := cmp.Diff(want, encoded(st.Messages.Messages())); diff != "" {
					t.Error("on record:", diff)
				}
				if diff := cmp.Diff(c.report, published(t, dir)); diff != "" {
					t.Error("published:", diff)
				}
				eng := w.engine(t, dir)
				if _, err := agent.Replay(t.Context(), reporter, eng, w.name, agent.WithJournal(store)); err != nil {
					t.Error("a replay differs:", err)
				}
				res, err := agent.Run(t.Context(), reporter, eng, agent.Request{Message: message.User(task)}, agent.WithEngineHost(answers(t, t.TempDir(), c.answer)))
				if err != nil {
					t.Fatal(err)
				}
				_, said, _ := strings.Cut(want, "\n") // all but the task, which is the caller's
				if diff := cmp.Diff(said, encoded(res.Messages)); diff != "" || res.Text() != c.last {
					t.Error("the result:", res.Text(), diff)
				}
			})
		}
	}
}

// engine makes the way's engine as drive does.
func (w way) engine(t *testing.T, dir string) engine.Engine {
	t.Helper()
	m, err := openModel()
	if err != nil {
		t.Fatal(err)
	}
	eng, err := w.make(loop.Config{Model: m, Tools: []tool.Tool{library(filepath.Join(dir, w.name))}})
	if err != nil {
		t.Fatal(err)
	}
	return eng
}

// Nobody is there: the run parks. Somebody answers later, in another process, and another one goes on.
func TestARunWaitsForAnAnswerAndEndsTheSame(t *testing.T) {
	for name, c := range cases {
		want := undisturbed(t, name)
		for _, w := range ways {
			t.Run(name+"/"+w.name, func(t *testing.T) {
				dir := t.TempDir()
				in := func(f func(store journal.Store)) { // a process, as far as the journal knows
					store, err := sqlite.Open(filepath.Join(dir, "journal.db"))
					if err != nil {
						t.Fatal(err)
					}
					f(store)
					if err := store.Close(); err != nil {
						t.Fatal(err)
					}
				}
				in(func(store journal.Store) {
					st, err := w.drive(t.Context(), store, dir, engine.NoopHost{})
					if err != nil || st.Status != string(agent.StatusInterrupted) || published(t, dir) != "" {
						t.Fatalf("%s, %v; published: %q", st.Status, err, published(t, dir))
					}
				})
				in(func(store journal.Store) {
					all, err := agent.Pending(t.Context(), store, w.name)
					if err != nil || len(all) != 1 || all[0].Call == nil || all[0].Call.Name != "library" {
						t.Fatalf("%+v, %v", all, err)
					}
					a := c.answer
					a.ID = all[0].ID
					if err := agent.Answer(t.Context(), store, w.name, a); err != nil {
						t.Fatal(err)
					}
				})
				in(func(store journal.Store) {
					st, err := w.drive(t.Context(), store, dir, engine.NoopHost{})
					if err != nil || st.Status != string(agent.StatusCompleted) {
						t.Fatal(st.Status, st.Error, err)
					}
					if diff := cmp.Diff(want, encoded(st.Messages.Messages())); diff != "" {
						t.Error(diff)
					}
					if diff := cmp.Diff(c.report, published(t, dir)); diff != "" {
						t.Error("published:", diff)
					}
				})
			})
		}
	}
}

var errDied = errdefs.NotAvailable.Errorf("store: append: the process died")

// dying is a store that takes so many appends, and no more.
type dying struct {
	journal.Store
	left int
}

func (d *dying) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	if d.left--; d.left < 0 {
		return errDied
	}
	return d.Store.Append(ctx, session, after, entries...)
}

// Whatever the last thing is that came on record, the run goes on from there to the same end.
func TestARunThatDiesAnywhereEndsTheSame(t *testing.T) {
	for name, c := range cases {
		want := undisturbed(t, name)
		for _, w := range ways {
			t.Run(name+"/"+w.name, func(t *testing.T) {
				deaths := 0
				for n := 0; ; n++ {
					dir, store := t.TempDir(), journal.Memory()
					host := engine.HostFuncs{AskUserFunc: func(context.Context, engine.Prompt) (engine.Reply, error) {
						return engine.Reply{Answered: c.answer}, nil
					}}
					if _, err := w.drive(t.Context(), &dying{store, n}, dir, host); err == nil {
						break
					} else if !errors.Is(err, errDied) {
						t.Fatal(n, err)
					}
					deaths++
					st, err := w.drive(t.Context(), store, dir, host)
					if err != nil || st.Status != string(agent.StatusCompleted) {
						t.Fatal(n, st.Status, st.Error, err)
					}
					if diff := cmp.Diff(want, encoded(st.Messages.Messages())); diff != "" {
						t.Errorf("after %d appends: %s", n, diff)
					}
					if diff := cmp.Diff(c.report, published(t, dir)); diff != "" {
						t.Errorf("after %d appends, published: %s", n, diff)
					}
				}
				if deaths < 15 {
					t.Errorf("it died only %d times", deaths)
				}
			})
		}
	}
}

// The program itself is killed while it asks, and goes on where it was.
func TestTheProgramIsKilledAndGoesOn(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), self, "-out", dir, "-engine", w.name)
			cmd.Env, cmd.Stderr = append(os.Environ(), asProgram+"=1"), os.Stderr
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = stdin.Close() }() // until then nobody answers
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			asked, err := bufio.NewReader(stdout).ReadString('/') // of (y/n)
			if kill := cmd.Process.Kill(); err != nil || kill != nil {
				t.Fatal(asked, err, kill)
			}
			_ = cmd.Wait() // it was killed
			if !strings.HasPrefix(asked, "Publish this?") || published(t, dir) != "" {
				t.Fatalf("%q, published: %q", asked, published(t, dir))
			}
			if got, want := program(t, "", "-out", dir, "-engine", w.name, "-yes"), shown(t)[0]; behindTable(got) != behindTable(want) || published(t, dir) != report {
				t.Errorf("%s", got)
			}
		})
	}
}

// program runs the program in this process.
func program(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), args, strings.NewReader(stdin), &out); err != nil {
		t.Fatal(err, out.String())
	}
	return out.String()
}

// behindTable is the transcript that the program shows.
func behindTable(out string) string {
	_, text, _ := strings.Cut(out, "\n\n")
	return text
}

// shown are what README.md has of the program's output.
func shown(t *testing.T) (all []string) {
	t.Helper()
	for _, b := range blocks(t) {
		if b.kind == "text" {
			all = append(all, b.text)
		}
	}
	if len(all) == 0 {
		t.Fatal("README.md shows no output")
	}
	return all
}

func TestTheProgramShowsWhatREADMESays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for i, args := range [][]string{{"-yes"}, {"-no"}} { // the second time all is over, and shown again
		out := strings.ReplaceAll(program(t, "", append(args, "-out", dir)...), dir, "DIR")
		if diff := cmp.Diff(shown(t)[0], filepath.ToSlash(out)); diff != "" {
			t.Errorf("time %d: %s", i+1, diff)
		}
	}
}

func TestAnswersAtTheTerminal(t *testing.T) {
	dir := t.TempDir()
	out := program(t, "y\nno\n", "-out", dir) // the third question finds nobody
	for _, part := range []string{"loop    completed  10 messages  " + filepath.Join(dir, "loop", "report.md"), "graph   completed  10 messages  nothing is published", "script  interrupted", "-out " + dir + " -yes", "It stays a draft."} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in:\n%s", part, out)
		}
	}
	if out := program(t, "", "-out", dir, "-yes", "-engine", "script"); !strings.Contains(out, "script  completed") || strings.Contains(out, "waits") {
		t.Error(out)
	}
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{"-engine", "temporal"}, {"-yes", "-no"}, {"more"}, {"-nothing"}} {
		if err := run(t.Context(), append([]string{"-out", t.TempDir()}, args...), strings.NewReader(""), &strings.Builder{}); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}

func TestTheLibrary(t *testing.T) {
	dir := t.TempDir()
	for input, want := range map[string]string{
		`{"search": "PAWS"}`:                 "otters.md: Some hold each other's paws while they sleep.\n",
		`{"search": "sleep seals dive"}`:     "seals.md: They dive while they sleep, out of the reach of sharks.\n",
		`{"search": "whales"}`:               "No note has these words.",
		`{"search": "paws", "publish": "x"}`: "give either search or publish",
		`{}`:                                 "give either search or publish",
	} {
		r, err := library(dir).Execute(t.Context(), []byte(input))
		if err != nil {
			r.Content = err.Error()
		}
		if r.Content != want {
			t.Errorf("%s: %q, want %q", input, r.Content, want)
		}
	}
	if text := published(t, filepath.Dir(dir)); text != "" {
		t.Error("published:", text)
	}
}

type block struct{ kind, file, text string }

// blocks are the blocks of code in README.md: "```KIND FILE".
func blocks(t *testing.T) (all []block) {
	t.Helper()
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```([a-z]+)(?: (\\S+))?\n(.*?)^```$").FindAllStringSubmatch(string(b), -1) {
		all = append(all, block{m[1], m[2], m[3]})
	}
	return all
}

// What README.md shows is there: of Go files a part, other files whole.
func TestTheREADMEShowsTheFiles(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range blocks(t) {
		if b.file == "" {
			continue
		}
		seen[b.file] = true
		file, err := os.ReadFile(b.file)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(file); text != b.text && (b.kind != "go" || !strings.Contains(text, "\n"+b.text)) {
			t.Errorf("README.md shows another %s: %s", b.file, cmp.Diff(text, b.text))
		}
	}
	for _, file := range []string{"task.go", "engines.go", "report.yaml", "report.star"} {
		if !seen[file] {
			t.Errorf("README.md does not show %s", file)
		}
	}
}
