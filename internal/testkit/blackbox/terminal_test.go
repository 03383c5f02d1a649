package blackbox

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTerminal(t *testing.T) { runRows(t) }

// terminal is a tmux of its own in which a command runs.
type terminal struct {
	w      *world
	tmux   string
	socket string
}

// terminal runs the program at a terminal, with a script. The last line says its exit code.
func (w *world) terminal(env, script string, args ...string) *terminal {
	w.t.Helper()
	term := &terminal{w, needs(w.t, "tmux"), filepath.Join(w.temp, "tmux")}
	w.write("model.yaml", script)
	quoted := []string{"'" + binary("pawl") + "'"}
	for _, arg := range args {
		quoted = append(quoted, "'"+arg+"'")
	}
	w.write("run.sh", env+" "+strings.Join(quoted, " ")+"; echo exit=$?; sleep 1000\n")
	cmd := w.command(term.tmux, "-f", "/dev/null", "-S", term.socket, "new-session", "-d", "-x", "110", "-y", "40", "sh run.sh")
	if r := w.run(cmd); r.code != 0 {
		w.t.Fatal(r)
	}
	w.t.Cleanup(func() { _ = exec.Command(term.tmux, "-S", term.socket, "kill-server").Run() })
	return term
}

// screen is what stands at the terminal, with what was scrolled away.
func (t *terminal) screen(flags ...string) string {
	t.w.t.Helper()
	args := append([]string{"-S", t.socket, "capture-pane", "-p", "-J", "-S", "-"}, flags...)
	out, err := exec.Command(t.tmux, args...).Output()
	if err != nil {
		t.w.t.Fatalf("tmux capture-pane: %v", err)
	}
	return string(out)
}

// sees waits until these texts stand at the terminal.
func (t *terminal) sees(texts ...string) {
	t.w.t.Helper()
	screen := ""
	defer func() {
		if t.w.t.Failed() {
			t.w.t.Log(screen)
		}
	}()
	for _, text := range texts {
		t.w.until(fmt.Sprintf("%q stands at the terminal", text), func() bool {
			screen = t.screen()
			return strings.Contains(screen, text)
		})
	}
}

// types sends keys as tmux names them, such as Enter, or a text.
func (t *terminal) types(keys ...string) {
	t.w.t.Helper()
	for _, key := range keys {
		if err := exec.Command(t.tmux, "-S", t.socket, "send-keys", key).Run(); err != nil {
			t.w.t.Fatalf("tmux send-keys: %v", err)
		}
	}
}

// answers sends a key until it counted: what is typed before a question stood there for a
// while is no answer.
func (t *terminal) answers(key, seen string) {
	t.w.t.Helper()
	sent := 0
	defer func() {
		if t.w.t.Failed() {
			t.w.t.Log(t.screen())
		}
	}()
	t.w.until(fmt.Sprintf("%q answers", key), func() bool {
		if strings.Contains(t.screen(), seen) {
			return true
		}
		if sent++; sent%200 == 100 { // about a second apart
			t.types(key)
		}
		return false
	})
}

var _ = table("TestTerminal",
	row{"chat is a conversation", "a conversation at a terminal", "pawl chat", func(w *world) {
		term := w.terminal("", touches+"- {text: \"The second answer.\"}\n", append([]string{"chat", "--session", "s"}, free...)...)
		term.sees("pawl chat · scripted/", "/help")
		term.types("hello", "Enter")
		term.sees("> hello", "I write.", "✓ bash", "Done.")
		w.wants("effects", "one\n")
		term.types("and", "Enter")
		term.sees("> and", "The second answer.")
		term.types("/cost", "Enter")
		term.sees("3 calls")
		term.types("/quit", "Enter")
		term.sees("go on with: pawl chat --session s", "exit=0")
		if got := w.sessions(); len(got) != 1 || got[0]["session"] != "s" || got[0]["messages"] != 6.0 {
			w.t.Errorf("%v", got)
		}
	}},
	row{"chat asks, and runs what is approved", "chat.md: A call that needs an approval is shown whole (control characters as `\\x1b`), with the reason. `y` runs it", "pawl chat", func(w *world) {
		term := w.terminal("", touches, "chat", "--model", "scripted/model.yaml", "--no-sandbox", "--session", "s")
		term.sees("/help")
		term.types("hello", "Enter")
		term.sees("echo one >> effects", "without a sandbox")
		w.wants("effects", "")
		term.answers("y", "Done.")
		w.wants("effects", "one\n")
		term.types("/quit", "Enter")
		term.sees("exit=0")
	}},
	row{"chat ends with the code of its last run", "chat.md: Those of [`pawl run`], of the last run: 3 when it waits for a person", "pawl chat", func(w *world) {
		term := w.terminal("", touches, "chat", "--model", "scripted/model.yaml", "--no-sandbox", "--session", "s")
		term.sees("/help")
		term.types("hello", "Enter")
		term.sees("without a sandbox")
		term.answers("l", "it waits for an answer")
		term.types("C-d")
		term.sees("exit=3")
		w.wants("effects", "")
	}},
	row{"chat without colours", "chat.md: With `NO_COLOR` there are no colours, and Markdown stays as it was written", "pawl chat", func(w *world) {
		term := w.terminal("NO_COLOR=1", "turns: [{text: \"A **bold** word.\"}]", append([]string{"chat"}, free...)...)
		term.sees("/help")
		term.types("hello", "Enter")
		term.sees("A **bold** word.")
		if styled := term.screen("-e"); strings.Contains(styled, "\x1b[3") || strings.Contains(styled, "\x1b[1m") {
			w.t.Errorf("%q", styled)
		}
	}},
	row{"run has colours only at a terminal and without NO_COLOR", "`NO_COLOR` is honoured", "", func(w *world) {
		for _, env := range []string{"", "NO_COLOR=1"} {
			other := newWorld(w.t)
			term := other.terminal(env, touches, append(append([]string{"run"}, free...), "go")...)
			term.sees("Done.", "exit=0")
			if screen := term.screen("-e"); strings.Contains(screen, "\x1b[") != (env == "") {
				w.t.Errorf("with %q: %q", env, screen)
			}
		}
		if r := w.plays(touches, "go"); r.code != 0 || strings.Contains(r.err+r.out, "\x1b") {
			w.t.Errorf("without a terminal: %v", r)
		}
	}},
	row{"run asks at a terminal", "`run` and `resume` ask there: what would run", "pawl run", func(w *world) {
		term := w.terminal("", touches, "run", "--model", "scripted/model.yaml", "--no-sandbox", "go")
		term.sees("echo one >> effects", "without a sandbox")
		w.wants("effects", "")
		term.types("y", "Enter")
		term.sees("Done.", "exit=0")
		w.wants("effects", "one\n")
	}},
	row{"a no tells the model why", "`n` does not, and `n REASON` tells the model why", "", func(w *world) {
		term := w.terminal("", touches, "run", "--model", "scripted/model.yaml", "--no-sandbox", "--session", "s", "go")
		term.sees("without a sandbox")
		term.types("n not today", "Enter")
		term.sees("Done.", "exit=0")
		w.wants("effects", "")
		if r := w.ok("sessions", "show", "s"); !strings.Contains(r.out, "not today") {
			w.t.Error(r)
		}
	}},
	row{"later leaves the question", "`l`, and the end of the input, leave the question for later: the run waits", "exit 3", func(w *world) {
		term := w.terminal("", touches, "run", "--model", "scripted/model.yaml", "--no-sandbox", "--session", "s", "go")
		term.sees("without a sandbox")
		term.types("l", "Enter")
		term.sees("pawl approve s w", "exit=3")
		w.wants("effects", "")
	}},
	row{"an empty line allows nothing", "An empty line, what is none of these, and what was typed before the question stood there allow nothing", "", func(w *world) {
		term := w.terminal("", touches, "run", "--model", "scripted/model.yaml", "--no-sandbox", "go")
		term.sees("without a sandbox")
		term.types("", "Enter", "maybe", "Enter", "l", "Enter")
		term.sees("exit=3")
		w.wants("effects", "")
	}},
	row{"trust asks at a terminal first", "At a terminal it asks first", "pawl trust", func(w *world) {
		w.write(".agents/settings.json", hookSettings)
		term := w.terminal("", touches, "trust")
		term.sees("Approve all of it? [y/N]")
		term.types("n", "Enter")
		term.sees("not approved", "exit=3")
	}},
	row{"what is waited for stands in the last line", "What is waited for longer than a second stands in the terminal's last line, as long as it is waited for, and since when", "", func(w *world) {
		term := w.terminal("", `turns: [{tool_calls: [{name: bash, input: {command: "until test -e go; do sleep 0.05; done"}}]}, {text: Done.}]`, append([]string{"run"}, append(free, "go")...)...)
		since := regexp.MustCompile(`bash.* \d+ s\b`)
		last := ""
		w.until("the last line says since when", func() bool {
			screen := strings.TrimSpace(term.screen())
			last = screen[strings.LastIndex(screen, "\n")+1:]
			return since.MatchString(last)
		})
		w.write("go", "")
		term.sees("Done.", "exit=0")
		if strings.Contains(term.screen(), last) {
			w.t.Errorf("%q stands there still", last)
		}
	}},
)
