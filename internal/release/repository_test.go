//go:build unix

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// root is this repository, seen from this package.
const root = "../.."

// repository is a small one that a test makes.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T, files map[string]string) repository {
	t.Helper()
	r := repository{t, t.TempDir()}
	r.git("init", "-q", "-b", "main")
	r.write(files)
	r.commit()
	return r
}

// write makes files; an empty text removes one.
func (r repository) write(files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		path := filepath.Join(r.dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil && text == "" {
			err = os.Remove(path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r repository) commit() {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "change")
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = r.dir, alone()
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// alone is the environment without the user's git, and with an author and a time: the same files
// are the same commit, so that scripts/apidiff looks at what several tests begin with once.
func alone() []string {
	const author, email, date = "a", "a@example.com", "2026-01-01T00:00:00Z"
	return append(os.Environ(),
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		"GIT_AUTHOR_NAME="+author, "GIT_AUTHOR_EMAIL="+email, "GIT_AUTHOR_DATE="+date,
		"GIT_COMMITTER_NAME="+author, "GIT_COMMITTER_EMAIL="+email, "GIT_COMMITTER_DATE="+date)
}

// script runs one of scripts/ in the repository and gives what it said, and whether it succeeded.
func (r repository) script(name string, args ...string) (said string, ok bool) {
	r.t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "scripts", name))
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = r.dir, alone()
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}
