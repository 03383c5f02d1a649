package pawl_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

// unasked is a Runtime in the default fence, where nobody is there to be asked: what runs, runs unasked.
func unasked(t *testing.T, dir string, m model.Model, change ...func(*pawl.Options)) *pawl.Runtime {
	t.Helper()
	if can := fence.Probe(); !can.Inside.Holds {
		component.Absent(t, "a sandbox that protects what lies in the project", can.Inside.Why)
	}
	return serve(t, dir, m, append([]func(*pawl.Options){func(o *pawl.Options) {
		o.Sandbox, o.Permissions.Mode = nil, permission.ModeDontAsk
	}}, change...)...)
}

// outside is what a person, or an editor, does with git later, outside of the fence.
func outside(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command(component.Command(t, "git", "install git"), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("git %s: %v: %s", args, err, out)
	}
}

// made reports whether a mark is there: something ran that leaves it.
func made(t *testing.T, mark string) bool {
	t.Helper()
	_, err := os.Lstat(mark)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// What git runs outside of the fence later must not be for a command, or for a tool that edits files, to say.
func TestGitRunsNothingLaterThatACommandOrAnEditLeft(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	hooks := func(t *testing.T, dir string) {
		lay(t, dir, map[string]string{"hooks/pre-commit": "#!/bin/sh\n"})
		if err := os.Chmod(filepath.Join(dir, "hooks/pre-commit"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	commit := []string{"commit", "-q", "--allow-empty", "-m", "y"}
	for name, c := range map[string]struct {
		setup  func(t *testing.T, dir string)
		script string
		edit   string // of write, with the mark to leave
		later  []string
	}{
		"another .git of a worktree": {func(t *testing.T, dir string) {
			main := t.TempDir()
			outside(t, main, "init", "-q")
			outside(t, main, "commit", "-q", "--allow-empty", "-m", "x")
			if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
			outside(t, main, "worktree", "add", "-q", "-f", dir)
		}, "git init -q evil\ncp -r evil/.git .evilgit\ngit config -f .evilgit/config core.fsmonitor 'touch MARK; false'\necho 'gitdir: .evilgit' >.git\n", `{"file_path":".git","content":"gitdir: .evilgit"}`, []string{"status"}},
		"hooks that lie in the project": {func(t *testing.T, dir string) {
			hooks(t, dir)
			outside(t, dir, "config", "core.hooksPath", "hooks")
		}, "echo 'touch MARK' >>hooks/pre-commit\n", `{"file_path":"hooks/pre-commit","content":"#!/bin/sh\ntouch MARK\n"}`, commit},
		"hooks behind a link": {func(t *testing.T, dir string) {
			hooks(t, dir)
			link := filepath.Join(dir, ".git/hooks")
			if err := errors.Join(os.RemoveAll(link), os.Symlink("../hooks", link)); err != nil {
				t.Fatal(err)
			}
		}, "echo 'touch MARK' >>hooks/pre-commit\n", `{"file_path":"hooks/pre-commit","content":"#!/bin/sh\ntouch MARK\n"}`, commit},
		"configuration that is included": {func(t *testing.T, dir string) {
			lay(t, dir, map[string]string{"gitconfig": "[core]\n\tabbrev = 12\n"})
			outside(t, dir, "config", "include.path", "../gitconfig")
		}, "printf '[core]\\n\\tfsmonitor = \"touch MARK; false\"\\n' >gitconfig\n", `{"file_path":"gitconfig","content":"[core]\n\tfsmonitor = \"touch MARK; false\"\n"}`, []string{"status"}},
		"the repository of a submodule": {func(t *testing.T, dir string) {
			lib := t.TempDir()
			outside(t, lib, "init", "-q")
			outside(t, lib, "commit", "-q", "--allow-empty", "-m", "x")
			outside(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "lib")
		}, "git -C lib config core.fsmonitor 'touch MARK; false'\n", `{"file_path":".git/modules/lib/config","content":"[core]\n\tfsmonitor = \"touch MARK; false\"\n\trepositoryformatversion = 0\n"}`, []string{"status"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := world(t, nil)
			outside(t, dir, "init", "-q")
			outside(t, dir, "commit", "-q", "--allow-empty", "-m", "x")
			c.setup(t, dir)
			mark := filepath.Join(t.TempDir(), "MARK")
			with := func(text string) string { return strings.ReplaceAll(text, "MARK", mark) }
			lay(t, dir, map[string]string{"a.sh": with(c.script)})
			said, _ := asks(t, unasked(t, dir, says()), "s", "bash sh a.sh")
			outside(t, dir, c.later...)
			if made(t, mark) {
				t.Errorf("git ran what a command named, and nobody was asked: %s", said)
			}
			said, _ = asks(t, unasked(t, dir, says()), "e", "write "+with(c.edit))
			outside(t, dir, c.later...)
			if made(t, mark) || !strings.Contains(said, "nobody is asked, and this would have to be") {
				t.Errorf("git ran what an edit named, or nobody was to be asked: %s", said)
			}
		})
	}
}

// A virtual environment of the project, or node_modules/.bin, is often on PATH.
func TestTheFenceIsNoProgramOfTheProject(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	dir := world(t, nil)
	mark, real := filepath.Join(t.TempDir(), "MARK"), component.Command(t, "bwrap", "install the package bubblewrap")
	lay(t, dir, map[string]string{"a.sh": fmt.Sprintf("mkdir -p .venv/bin\nprintf '#!/bin/sh\\ntouch %s\\nexec %s \"$@\"\\n' >.venv/bin/bwrap\nchmod +x .venv/bin/bwrap\n", mark, real)})
	t.Setenv("PATH", filepath.Join(dir, ".venv/bin")+":"+os.Getenv("PATH"))
	said, _ := asks(t, unasked(t, dir, says()), "s", "bash sh a.sh && bwrap --version")
	if !strings.Contains(said, "bubblewrap") || made(t, mark) {
		t.Fatalf("there is no such program: %s", said)
	}
	if said, _ = asks(t, unasked(t, dir, says()), "s", "bash echo runs"); made(t, mark) || !strings.Contains(said, "runs") {
		t.Errorf("a program that a command had written as bwrap ran, without a fence: %s", said)
	}
}

// Tokens of logins, and what other projects' sessions said.
func TestACommandReadsNothingThatPawlKeeps(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	dir, config, state := world(t, nil), t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("XDG_STATE_HOME", state)
	lay(t, config, map[string]string{"pawl/mcp/wiki.json": "t0ken"})
	lay(t, state, map[string]string{"pawl/journal.db": "transcr1pt"})
	for _, does := range []string{"bash cat " + config + "/pawl/mcp/*", "bash cat " + state + "/pawl/journal.db", `read {"file_path":"` + config + `/pawl/mcp/wiki.json"}`} {
		rt := serve(t, dir, says(), func(o *pawl.Options) { o.Sandbox, o.Permissions.Mode = nil, permission.ModeBypass })
		if said, _ := asks(t, rt, "s", does); strings.Contains(said, "t0ken") || strings.Contains(said, "transcr1pt") {
			t.Errorf("%s: %s", does, said)
		}
	}
}

// Approvals may lie in a directory that commands may write.
func TestApprovalsInAWritableDirectoryAreNotForged(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	dir, state := world(t, map[string]string{".agents/settings.json": `{"permissions": {"deny": ["Bash(touch:*)"]}}`}), t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(state, "deep"))
	rt := func() *pawl.Runtime {
		return unasked(t, dir, says(), func(o *pawl.Options) { o.Permissions.Writable = []string{state} })
	}
	rt()
	file := filepath.Join(state, "deep/pawl/trust.json")
	for _, script := range []string{"echo {} >" + file, "mv " + state + "/deep " + state + "/d; mkdir -p " + filepath.Dir(file) + "; echo {} >" + file} {
		said, _ := asks(t, rt(), "a", "bash "+script)
		if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "touch") {
			t.Errorf("a command wrote the approvals: %s %s %v", said, b, err)
		}
	}
}
