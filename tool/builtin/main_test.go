package builtin

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/parallel"
	"github.com/pawl-dev/pawl/tool"
)

func TestMain(m *testing.M) {
	parallel.RaiseLimit()
	goleak.VerifyTestMain(m)
}

// in is an input, by the names of its members.
type in map[string]any

// open makes a workspace over a fresh directory with these files.
func open(t testing.TB, files map[string]string, opts ...Option) *Workspace {
	t.Helper()
	dir := t.TempDir()
	lay(t, dir, files)
	w, err := Open(dir, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func lay(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func link(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func content(t testing.TB, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// call executes a tool with an input that has to be valid.
func call(t testing.TB, f tool.Tool, input in) (tool.Result, error) {
	t.Helper()
	return callWith(t, t.Context(), f, input)
}

// errNoBash says at the start, before a test changes PATH, that there is no bash here.
var _, errNoBash = exec.LookPath("bash")

func callWith(t testing.TB, ctx context.Context, f tool.Tool, input in) (tool.Result, error) {
	t.Helper()
	if f.Definition().Name == "bash" && errNoBash != nil {
		component.Absent(t, "there is no bash", "install bash")
	}
	b, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return f.Execute(ctx, b)
}

// ok is call for what has to work.
func ok(t testing.TB, f tool.Tool, input in) string {
	t.Helper()
	res, err := call(t, f, input)
	if err != nil || res.IsError {
		t.Fatalf("%s %v: %v %s", f.Definition().Name, input, err, res.Content)
	}
	return res.Content
}

// refused is call for what must fail, with an error that has all these texts.
func refused(t testing.TB, f tool.Tool, input in, texts ...string) {
	t.Helper()
	_ = refusal(t, f, input, texts...)
}

// refusal is refused for those who want to see the error too.
func refusal(t testing.TB, f tool.Tool, input in, texts ...string) error {
	t.Helper()
	res, err := call(t, f, input)
	if err == nil {
		t.Errorf("%s %v: %s", f.Definition().Name, input, res.Content)
		return nil
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s %v: %v; it should say %s", f.Definition().Name, input, err, text)
		}
	}
	return err
}
