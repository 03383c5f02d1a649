package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool"
)

func TestOutsideOfTheProjectIsReadOnlyWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	elsewhere := real(t, t.TempDir())
	lay(t, elsewhere, map[string]string{"x": "needle", "key/x": "s3cr3t"})
	at := func(name string) string { return filepath.Join(elsewhere, name) }
	w := open(t, map[string]string{"a": "of the project"})
	if _, err := call(t, w.Read(), in{"file_path": at("x")}); !errdefs.PolicyDenied.Is(err) {
		t.Error(err)
	}
	if strings.Contains(w.Read().Definition().Description, "elsewhere") {
		t.Error("the model is told of what is not there")
	}
	free := w.With(WithOutside(), WithSandbox(sandbox.Policy{Hide: []string{at("key")}}))
	if res, err := call(t, free.Read(), in{"file_path": at("x")}); err != nil || !strings.Contains(res.Content, "needle") || !strings.Contains(free.Read().Definition().Description, "elsewhere") {
		t.Error(res.Content, err)
	}
	if res, err := call(t, free.Read(), in{"file_path": "a"}); err != nil || !strings.Contains(res.Content, "of the project") {
		t.Error(res.Content, err)
	}
	if res, err := call(t, free.Grep(), in{"pattern": ".", "path": elsewhere}); err != nil || res.Content != at("x") {
		t.Error(res.Content, err)
	}
	if _, err := call(t, free.Read(), in{"file_path": at("key/x")}); !errdefs.PolicyDenied.Is(err) {
		t.Error(err)
	}
	for _, input := range []in{{"file_path": at("x"), "content": "changed"}, {"file_path": at("new"), "content": "x"}} {
		if _, err := call(t, free.Write(), input); !errdefs.PolicyDenied.Is(err) || !strings.Contains(err.Error(), "only be read") {
			t.Error(err)
		}
	}
	if _, err := call(t, free.Edit(), in{"file_path": at("x"), "old_string": "needle", "new_string": "x"}); !errdefs.PolicyDenied.Is(err) {
		t.Error(err)
	}
	if _, err := call(t, free.Bash(), in{"command": "true", "workdir": elsewhere}); !errdefs.PolicyDenied.Is(err) {
		t.Error(err)
	}
}

// Between the look at the policy and the opening of the file, a directory may become a link to what is hidden.
func TestAFileOutsideIsTheOneThatWasJudged(t *testing.T) {
	t.Parallel()
	elsewhere := real(t, t.TempDir())
	lay(t, elsewhere, map[string]string{"dir/x": "open", "key/x": "s3cr3t"})
	w := open(t, nil, WithOutside())
	p, err := w.locate(filepath.Join(elsewhere, "dir/x"))
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := w.openFile(p)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := os.Rename(filepath.Join(elsewhere, "dir"), filepath.Join(elsewhere, "was")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("key", filepath.Join(elsewhere, "dir")); err != nil {
		t.Skip(err)
	}
	if f, _, err := w.openFile(p); !errdefs.Conflict.Is(err) {
		_ = f.Close()
		t.Error("followed the link:", err)
	}
}

func TestWhatIsAskedAboutMayBeEditedThoughCommandsAreKeptFromIt(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"settings/a": "x", "kept/a": "x"})
	dir := real(t, w.Dir())
	at := func(name string) string { return filepath.Join(dir, name) }
	policy := sandbox.Policy{Root: dir, Protect: []string{at("settings"), at("kept")}}
	w = w.With(WithSandbox(policy), WithEditable(at("settings")))
	if _, err := call(t, w.Write(), in{"file_path": "settings/a", "content": "y"}); err != nil {
		t.Error(err)
	}
	if err := os.Symlink("settings", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"kept/a", "link/a"} { // by a link it is not what who was asked saw
		if _, err := call(t, w.Write(), in{"file_path": name, "content": "z"}); !errdefs.PolicyDenied.Is(err) {
			t.Error(name, err)
		}
	}
}

// real is a directory without symbolic links.
func real(t *testing.T, dir string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWhatIsRefusedAnyhowIsRefusedBeforeAnybodyIsAsked(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"a": "x"}, WithSandbox(sandbox.Policy{Network: sandbox.Network{Hosts: []string{"example.com"}}}))
	set, err := tool.NewSet(append(w.Tools(), w.WebFetch())...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, input string
		refused     bool
	}{
		{"web_fetch", `{"url":"https://example.com/x"}`, false},
		{"web_fetch", `{"url":"https://example.org/x"}`, true},
		{"web_fetch", `{"url":"https://user@example.com/x"}`, true},
		{"read", `{"file_path":"a"}`, false},
		{"read", `{"file_path":"../a"}`, true},
		{"read", `{"file_path":"missing"}`, false}, // it may be there when it is read
		{"grep", `{"pattern":"x","path":"/"}`, true},
		{"write", `{"file_path":"new/b","content":""}`, false},
		{"edit", `{"file_path":"/a","old_string":"x","new_string":"y"}`, true},
	} {
		if err := set.Vet(t.Context(), message.ToolCall{Name: c.name, Input: c.input}); c.refused != errdefs.PolicyDenied.Is(err) || !c.refused && err != nil {
			t.Errorf("%s %s: %v", c.name, c.input, err)
		}
	}
	if _, err := os.Stat(filepath.Join(w.Dir(), "new")); err == nil {
		t.Error("looking made a directory")
	}
}
