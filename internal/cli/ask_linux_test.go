package cli

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/pty"
)

// session is a program at a terminal, and the person there.
type session struct {
	pty.Terminal
	t    *testing.T
	cmd  *exec.Cmd
	all  strings.Builder
	seen int // of all: what was waited for
}

// atPTY starts a program whose standard streams are a new terminal, which it can be interrupted from.
func atPTY(t *testing.T, path string, args ...string) *session {
	t.Helper()
	return atPTYWith(t, nil, path, args...)
}

// atPTYWith starts it with further variables.
func atPTYWith(t *testing.T, env []string, path string, args ...string) *session {
	t.Helper()
	s := &session{Terminal: pty.Open(t), t: t, cmd: exec.Command(path, args...)}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = s.Slave, s.Slave, s.Slave
	s.cmd.Env = append(append(os.Environ(), "NO_COLOR=1"), env...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = s.Slave.Close()
	return s
}

// read takes what comes, until done says so or the terminal is gone.
func (s *session) read(done func() bool) bool {
	s.t.Helper()
	late := time.After(60 * time.Second)
	for !done() {
		select {
		case text, more := <-s.Shown:
			if !more {
				return done()
			}
			s.all.WriteString(text)
		case <-late:
			_ = s.cmd.Process.Kill()
			s.t.Fatalf("nothing comes any more:\n%s", s.all.String())
		}
	}
	return true
}

// sees waits for a text behind the one before.
func (s *session) sees(text string) {
	s.t.Helper()
	if !s.read(func() bool { return strings.Contains(s.all.String()[s.seen:], text) }) {
		s.t.Fatalf("%q is missing in\n%s", text, s.all.String()[s.seen:])
	}
	s.seen += strings.Index(s.all.String()[s.seen:], text) + len(text)
}

func (s *session) types(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.Keys, text); err != nil {
		s.t.Fatal(err)
	}
}

// ends gives the exit code, and what stood on the terminal.
func (s *session) ends() (int, string) {
	s.t.Helper()
	s.read(func() bool { return false })
	_ = s.cmd.Wait()
	_ = s.Keys.Close()
	return s.cmd.ProcessState.ExitCode(), s.all.String()
}

const asksTwice = `turns:
- text: I begin.
  tool_calls: [{id: c1, name: bash, input: {command: "git init one"}}]
- tool_calls: [{id: c2, name: bash, input: {command: "git init two"}}]
- text: Done.
`

func TestAPersonAtTheTerminalIsAsked(t *testing.T) {
	path := binary(t)
	const ready = "[l]ater?\r\n> "
	for name, c := range map[string]struct {
		script string
		talk   func(s *session)
		code   int
		made   string // by the commands
		shows  []string
		hides  string // is not shown
		hook   bool   // that asks each time
	}{
		"yes": {script: asksTwice, made: "one two", shows: []string{"Run bash?", "  | command: git init one", "commands run without a sandbox", "Done."}, talk: func(s *session) {
			s.sees(ready)
			s.types("y\n")
			s.sees(ready)
			s.types(" YES \n")
		}},
		"no, and why": {script: asksTwice, made: "two", talk: func(s *session) {
			s.sees(ready)
			s.types("no, use another name\n")
			s.sees(ready)
			s.types("y\n")
		}},
		"n, and why": {script: asksTwice, made: "two", shows: []string{"[y]es, [n]o, [n]o REASON (told to the model), for this [s]ession, [l]ater?"}, talk: func(s *session) {
			s.sees(ready)
			s.types("n use another name\n")
			s.sees(ready)
			s.types("y\n")
		}},
		"a hook asks each time": {
			script: asksTwice, made: "one two", hook: true, hides: "ession it would be", shows: []string{"[y]es, [n]o, [n]o REASON (told to the model), [l]ater?", "the hook wants to know"},
			talk: func(s *session) {
				s.sees(ready)
				s.types("s\n")
				s.sees("That is no answer.")
				s.sees(ready)
				s.types("y\n")
				s.sees(ready)
				s.types("y\n")
			},
		},
		"for the session": {script: asksTwice, made: "one two", talk: func(s *session) {
			s.sees("For this session it would be:\r\n  | Bash(git init:*)")
			s.sees(ready)
			s.types("s\n")
		}},
		"nothing is allowed by an empty line, or by what is none of the choices": {script: asksTwice, code: exitWaiting, talk: func(s *session) {
			s.sees(ready)
			for _, text := range []string{"\n", "yes please\n", "sure\n", "ja\n", "\x1b[A\n"} {
				s.types(text)
				s.sees("That is no answer.")
				s.sees(ready)
			}
			s.types("later\n")
		}},
		"the end of the input is later": {script: asksTwice, code: exitWaiting, shows: []string{"pawl approve s c1"}, talk: func(s *session) {
			s.sees(ready)
			s.types("\x04")
		}},
		"an interrupt cancels": {script: asksTwice, code: exitCanceled, talk: func(s *session) {
			s.sees(ready)
			s.types("\x03")
		}},
		"what was typed before the question is no answer": {script: "turns:\n- text: I wait.\n- " + asksTwice[len("turns:\n- "):], code: exitWaiting, talk: func(s *session) {
			s.types("y\ny\n")
			s.sees("y\r\ny\r\n") // the terminal has it
			s.sees(ready)
			s.types("l\n")
		}},
		"a question of the model's": {
			script: `turns:
- tool_calls: [{id: c1, name: ask_user, input: {question: "Which one?", options: [{label: red}, {label: blue}]}}]
- tool_calls: [{id: c2, name: ask_user, input: {question: "Sure?", type: confirm}}]
- text: Done.
`,
			shows: []string{"The agent asks:\r\n  | Which one?\r\n  |   1. red", "blue", "The user gave no answer"},
			talk: func(s *session) {
				s.sees("Ctrl-D is later.\r\n> ")
				s.types("2\n")
				s.sees("Ctrl-D is later.\r\n> ")
				s.types("\n")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script, journal := filepath.Join(dir, "s.yaml"), "sqlite:"+filepath.Join(t.TempDir(), "j.db")
			if name == "what was typed before the question is no answer" {
				c.script = strings.Replace(asksTwice, "- text: I begin.", "- delay: 1s\n  text: I begin.", 1)
			}
			if err := os.WriteFile(script, []byte(c.script), 0o600); err != nil {
				t.Fatal(err)
			}
			flags := []string{"--no-sandbox"}
			if c.hook {
				flags = []string{"--trust", "--permission-mode", "bypassPermissions"}
				askEachTime(t, dir)
			}
			s := atPTY(t, path, append([]string{"run", "--model", "scripted/" + script, "--dir", dir, "--journal", journal, "--session", "s", "go"}, flags...)...)
			c.talk(s)
			code, all := s.ends()
			if code != c.code {
				t.Errorf("exit %d\n%s", code, all)
			}
			for _, want := range c.shows {
				if !strings.Contains(all, want) {
					t.Errorf("%q is missing in\n%s", want, all)
				}
			}
			var made []string
			for _, d := range []string{"one", "two"} {
				if _, err := os.Stat(filepath.Join(dir, d)); err == nil {
					made = append(made, d)
				}
			}
			if got := strings.Join(made, " "); got != c.made {
				t.Errorf("made %q\n%s", got, all)
			}
			if c.hides != "" && strings.Contains(all, c.hides) {
				t.Errorf("%q stands in\n%s", c.hides, all)
			}
			if !strings.HasSuffix(name, "and why") {
				return
			}
			show, err := exec.Command(path, "sessions", "show", "s", "--journal", journal).Output()
			if err != nil || !strings.Contains(string(show), "use another name") {
				t.Errorf("the model was not told: %v\n%s", err, show)
			}
		})
	}
}

func TestAQuestionThatWasLeftIsAskedAgainByResume(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), t.TempDir()
	script, journal := filepath.Join(dir, "s.yaml"), "sqlite:"+filepath.Join(dir, "j.db")
	if err := os.WriteFile(script, []byte(asksTwice), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--model", "scripted/" + script, "--dir", dir, "--journal", journal, "--no-sandbox"}
	headless := exec.Command(path, append([]string{"run", "--session", "s", "go"}, flags...)...)
	if out, _ := headless.CombinedOutput(); headless.ProcessState.ExitCode() != exitWaiting {
		t.Fatalf("%v\n%s", headless.ProcessState, out)
	}
	lines := atPTY(t, path, append([]string{"resume", "s", "--json"}, flags...)...)
	if code, all := lines.ends(); code != exitWaiting {
		t.Fatalf("with --json nobody is asked: %d\n%s", code, all)
	}
	s := atPTY(t, path, append([]string{"resume", "s"}, flags...)...)
	s.sees("  | command: git init one")
	s.sees("> ")
	s.types("s\n")
	if code, all := s.ends(); code != 0 || strings.Count(all, "Run bash?") != 1 {
		t.Errorf("%d\n%s", code, all)
	}
}
