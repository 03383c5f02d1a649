//go:build unix

package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/component"
)

// conversation is pawl chat in a real terminal, and the person there.
type conversation struct {
	t       *testing.T
	tmux    string
	socket  string
	dir     string
	journal string
	args    []string
	raw     string // what was written to the terminal, byte by byte
	open    bool   // it was seen that the conversation has begun: keys are read one by one
}

// talkTo makes a project with a script, and begins a conversation there.
func talkTo(t *testing.T, script string, flags ...string) *conversation {
	t.Helper()
	path := binary(t)
	c := &conversation{t: t, tmux: component.Command(t, "tmux", "install tmux"), dir: t.TempDir(), journal: "sqlite:" + filepath.Join(t.TempDir(), "j.db")}
	if err := os.WriteFile(filepath.Join(c.dir, "script.yaml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("", "tmux") // that of a test would be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	c.socket = filepath.Join(sockets, "s")
	t.Cleanup(func() {
		_, _ = c.does("kill-server")
		_ = os.RemoveAll(sockets)
	})
	c.args = append([]string{path, "chat", "--dir", c.dir, "--journal", c.journal, "--session", "s"}, flags...)
	if script != "" {
		c.args = append(c.args, "--model", "scripted/"+filepath.Join(c.dir, "script.yaml"))
	}
	c.begin(c.args...)
	return c
}

// another is somebody else at the same session, at a terminal of his own.
func (c *conversation) another(flags ...string) *conversation {
	c.t.Helper()
	sockets, err := os.MkdirTemp("", "tmux")
	if err != nil {
		c.t.Fatal(err)
	}
	d := &conversation{t: c.t, tmux: c.tmux, socket: filepath.Join(sockets, "s"), dir: c.dir, journal: c.journal, args: append(slices.Clip(c.args), flags...)}
	c.t.Cleanup(func() {
		_, _ = d.does("kill-server")
		_ = os.RemoveAll(sockets)
	})
	d.begin(d.args...)
	return d
}

// begin starts a program in a terminal of its own; what the one before left is gone.
func (c *conversation) begin(args ...string) {
	c.t.Helper()
	_, _ = c.does("kill-server")
	c.socket += "s" // of a server that ends nothing can be asked
	c.open = false
	c.raw = filepath.Join(c.t.TempDir(), "raw")
	line := ""
	for _, a := range args {
		line += " " + quoted(a)
	}
	ready := filepath.Join(c.t.TempDir(), "ready")
	shell := "while ! [ -f " + quoted(ready) + " ]; do sleep 0.02; done; " +
		"sh -c 'echo $$ >\"$0\"; exec \"$@\"' " + quoted(c.pidFile()) + line + "; echo exit=$?; sleep 600"
	c.must("-f", os.DevNull, "new-session", "-d", "-s", "x", "-x", "100", "-y", "30", "-c", c.dir, shell)
	c.must("pipe-pane", "-t", "x", "cat >"+quoted(c.raw))
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *conversation) pidFile() string { return filepath.Join(filepath.Dir(c.socket), "pid") }

func (c *conversation) does(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.tmux, append([]string{"-S", c.socket}, args...)...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TMUX") && !strings.HasPrefix(v, "NO_COLOR=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *conversation) must(args ...string) string {
	c.t.Helper()
	out, err := c.does(args...)
	if err != nil {
		c.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return out
}

// screen is what stands there, and all that was scrolled away.
func (c *conversation) screen() string {
	c.t.Helper()
	return c.must("capture-pane", "-p", "-t", "x", "-S", "-20000")
}

// sees waits for texts, in this order, and gives the screen.
func (c *conversation) sees(texts ...string) (screen string) {
	c.t.Helper()
	missing := ""
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		screen, missing = c.screen(), ""
		rest := screen
		for _, text := range texts {
			_, after, ok := strings.Cut(rest, text)
			if !ok {
				missing = text
				break
			}
			rest = after
		}
		if missing == "" {
			return screen
		}
	}
	c.t.Fatalf("%q is missing in\n%s", missing, screen)
	return ""
}

// bottom waits for what stands in the last rows alone.
func (c *conversation) bottom(text string) {
	c.t.Helper()
	last := ""
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		rows := strings.Split(strings.TrimRight(c.screen(), "\n "), "\n")
		if last = strings.Join(rows[max(len(rows)-6, 0):], "\n"); strings.Contains(last, text) {
			return
		}
	}
	c.t.Fatalf("%q is not at the bottom of\n%s", text, c.screen())
}

// ready waits until keys answer the question that was seen: its choices stay, and are not those of the one before.
func (c *conversation) ready() {
	c.t.Helper()
	since := time.Now()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		if !strings.Contains(c.screen(), "\n[y]es · [a]") {
			since = time.Now()
		} else if time.Since(since) > 300*time.Millisecond {
			return
		}
	}
	c.t.Fatalf("nothing can be answered:\n%s", c.screen())
}

// rests waits for the end of a run, and gives the screen.
func (c *conversation) rests() string {
	c.t.Helper()
	c.sees("✓ ")
	return c.rested()
}

// rested waits until nothing is under way.
func (c *conversation) rested() string {
	c.t.Helper()
	screen := ""
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		screen = c.screen()
		rows := strings.Split(strings.TrimRight(screen, "\n "), "\n")
		if n := len(rows); n > 2 && strings.HasPrefix(rows[n-2], ">") && !strings.Contains(rows[n-3], "Esc") && !strings.Contains(rows[n-3], "another process · ") {
			return screen
		}
	}
	c.t.Fatalf("it does not rest:\n%s", screen)
	return ""
}

// types has the person type a text; says, and send it.
func (c *conversation) types(text string) { c.t.Helper(); c.must("send-keys", "-t", "x", "-l", text) }

func (c *conversation) presses(keys ...string) {
	c.t.Helper()
	c.must(append([]string{"send-keys", "-t", "x"}, keys...)...)
}

func (c *conversation) says(text string) {
	c.t.Helper()
	if !c.open {
		c.sees("pawl chat ·", "/help", "\n>")
		c.open = true
	}
	c.types(text)
	c.presses("Enter")
}

// written is what the program wrote to the terminal.
func (c *conversation) written() string {
	c.t.Helper()
	b, err := os.ReadFile(c.raw)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

// onRecord waits until a text is in the session.
func (c *conversation) onRecord(text string) {
	c.t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		if out, _ := exec.Command(c.args[0], "sessions", "export", "s", "--journal", c.journal).Output(); strings.Contains(string(out), text) {
			return
		}
	}
	c.t.Fatalf("%q is not on record", text)
}

func (c *conversation) file(name string) string {
	b, _ := os.ReadFile(filepath.Join(c.dir, name))
	return string(b)
}

func (c *conversation) makes(name string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

const (
	free   = "--permission-mode=bypassPermissions"
	atOnce = "--no-sandbox"
)

// untilGo is a tool that works until there is a file.
const untilGo = `until [ -f go ]; do sleep 0.02; done; echo went`
