package project_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/project"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a project, a home directory and a file of approvals, all in directories of a test's own.
type world struct {
	t                 testing.TB
	root, home, trust string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t, filepath.Join(base, "project"), filepath.Join(base, "home"), filepath.Join(base, "state", "trust.json")}
	for _, dir := range []string{w.root, w.home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// put writes a file of the project, or with ~/ of the home directory.
func (w *world) put(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.root, filepath.FromSlash(name))
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		path = filepath.Join(w.home, filepath.FromSlash(rest))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) link(target, name string) {
	w.t.Helper()
	path := filepath.Join(w.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		w.t.Skipf("no symbolic links here: %v", err)
	}
}

func (w *world) options(opts ...project.Option) []project.Option {
	return append([]project.Option{project.WithHome(w.home), project.WithTrustFile(w.trust)}, opts...)
}

func (w *world) try(opts ...project.Option) (*project.Project, error) {
	w.t.Helper()
	return project.Load(w.t.Context(), w.root, w.options(opts...)...)
}

func (w *world) load(opts ...project.Option) *project.Project {
	w.t.Helper()
	p, err := w.try(opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// problems are the lines of a project's problems.
func problems(p *project.Project) string {
	var b strings.Builder
	for _, q := range p.Problems {
		b.WriteString(q.String() + "\n")
	}
	return b.String()
}

func wantProblem(t testing.TB, p *project.Project, parts ...string) {
	t.Helper()
	for line := range strings.Lines(problems(p)) {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			return
		}
	}
	t.Errorf("no problem has %q; there are:\n%s", parts, problems(p))
}

func wantNoProblem(t testing.TB, p *project.Project) {
	t.Helper()
	if len(p.Problems) > 0 {
		t.Errorf("problems:\n%s", problems(p))
	}
}
