package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
)

func TestFileToolsReachFurtherDirectories(t *testing.T) {
	t.Parallel()
	data, outside := t.TempDir(), t.TempDir()
	lay(t, data, map[string]string{"notes": "needle", "sub/x": "needle", "b.log": "needle", ".gitignore": "*.log"})
	lay(t, outside, map[string]string{"x": "needle"})
	w := open(t, map[string]string{"notes": "of the project"}, WithDirectories(data, "way", "missing"))
	for link, to := range map[string]string{filepath.Join(data, "out"): outside, filepath.Join(data, "up"): "../" + filepath.Base(outside), filepath.Join(data, "in"): filepath.Join(data, "sub"), filepath.Join(w.Dir(), "way"): outside, filepath.Join(w.Dir(), "other"): data} {
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
	}
	at := func(name string) string { return filepath.Join(data, name) }
	for _, c := range []struct {
		input in
		want  string // "": refused
	}{
		{in{"file_path": "notes"}, "of the project"},
		{in{"file_path": at("notes")}, "needle"},
		{in{"file_path": at("in/x")}, "needle"},
		{in{"file_path": "../" + filepath.Base(data) + "/notes"}, "needle"},
		{in{"file_path": at("out/x")}, ""},
		{in{"file_path": at("up/x")}, ""},
		{in{"file_path": at("../" + filepath.Base(outside) + "/x")}, ""},
		{in{"file_path": "other/notes"}, ""},
		{in{"file_path": "way/x"}, ""},
	} {
		res, err := call(t, w.Read(), c.input)
		if c.want == "" && (!errdefs.PolicyDenied.Is(err) || !strings.Contains(err.Error(), "inside "+data)) || c.want != "" && (err != nil || !strings.Contains(res.Content, c.want)) {
			t.Errorf("%v: %q %v", c.input, res.Content, err)
		}
	}
	if res, err := call(t, w.Grep(), in{"pattern": "needle", "path": data}); err != nil || res.Content != at("notes")+"\n"+at("sub/x") {
		t.Errorf("%q %v", res.Content, err)
	}
	if res, err := call(t, w.Glob(), in{"pattern": data + "/**/x"}); err != nil || res.Content != at("sub/x") {
		t.Errorf("%q %v", res.Content, err)
	}
	if _, err := call(t, w.Read(), in{"file_path": at("note")}); err == nil || !strings.Contains(err.Error(), "did you mean "+at("notes")) {
		t.Error(err)
	}
	if res, err := call(t, w.Bash(), in{"command": "pwd -P", "workdir": at("sub")}); err != nil || !strings.HasSuffix(strings.TrimSpace(res.Content), filepath.Join(filepath.Base(data), "sub")) {
		t.Errorf("%q %v", res.Content, err)
	}

	// A directory that is a link in the project is one when it is there at the start, and stays the one that it was.
	linked := w.With(WithDirectories("way"))
	if res, err := call(t, linked.Read(), in{"file_path": "way/x"}); err != nil || !strings.Contains(res.Content, "needle") {
		t.Errorf("%q %v", res.Content, err)
	}
	if _, err := call(t, linked.Read(), in{"file_path": at("notes")}); !errdefs.PolicyDenied.Is(err) {
		t.Error("one that this workspace was not given:", err)
	}
	if n := len(w.opened); n != 2 || len(w.With(WithDirectories(data, "way")).opened) != n {
		t.Error("each directory is opened once:", n)
	}
}

func TestAPolicyBindsFileToolsInFurtherDirectories(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	lay(t, data, map[string]string{"kept/x": "1", "x": "1"})
	real, err := filepath.EvalSymlinks(data)
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, nil, WithDirectories(data), WithSandbox(sandbox.Policy{Write: []string{data}, Protect: []string{filepath.Join(real, "kept")}}))
	if _, err := call(t, w.Write(), in{"file_path": filepath.Join(data, "x"), "content": "2"}); err != nil {
		t.Error(err)
	}
	if _, err := call(t, w.Edit(), in{"file_path": filepath.Join(data, "kept/x"), "old_string": "1", "new_string": "2"}); !errdefs.PolicyDenied.Is(err) {
		t.Error(err)
	}
	narrow := w.With(WithSandbox(sandbox.Policy{}))
	if _, err := call(t, narrow.Write(), in{"file_path": filepath.Join(data, "x"), "content": "3"}); !errdefs.PolicyDenied.Is(err) {
		t.Error(err)
	}
	if note := w.Bash().Definition().Description; !strings.Contains(note, "write the project, "+real+" and $TMPDIR only") {
		t.Error(note)
	}
	for _, f := range w.Tools()[1:6] {
		if def := f.Definition(); !strings.Contains(def.Description, data) {
			t.Errorf("%s: the model isn't told of the directory: %s", def.Name, def.Description)
		}
	}
}
