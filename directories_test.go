//go:build unix

package pawl_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

// besides is a directory that is neither in a project nor in one for temporary files, where much is allowed anyway.
func besides(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp(".", ".besides-") // the go command leaves out such names
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	lay(t, dir, files)
	return dir
}

// once is one call in a session of its own.
func once(t *testing.T, rt *pawl.Runtime, name string, input any) *agent.Result {
	t.Helper()
	prompt := fmt.Sprint(input)
	if name != "bash" {
		b, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		prompt = string(b)
	}
	res, err := rt.Run(t.Context(), pawl.Request{Prompt: name + " " + prompt})
	if res == nil {
		t.Fatal(err)
	}
	return res
}

type in = map[string]any

func TestAnApprovedDirectoryIsAsTheProjectIs(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	if can := fence.Probe(); !can.Writes.Holds {
		component.Absent(t, "a sandbox", can.Writes.Why)
	}
	outside := besides(t, map[string]string{"secret": "s3cr3t"})
	data := besides(t, map[string]string{"notes": "alpha\nneedle\n", "ignored.log": "needle", ".gitignore": "*.log"})
	for link, to := range map[string]string{"out": outside, "file": filepath.Join(outside, "secret")} {
		if err := os.Symlink(to, filepath.Join(data, link)); err != nil {
			t.Fatal(err)
		}
	}
	dir := world(t, map[string]string{".agents/settings.json": fmt.Sprintf(`{"permissions": {"additionalDirectories": [%q]}}`, data), "a": "x"})
	rt := func() *pawl.Runtime {
		return serve(t, dir, says(), func(o *pawl.Options) { o.Sandbox, o.Permissions = nil, permission.Config{} })
	}
	at := func(name string) string { return filepath.Join(data, name) }
	content := func(name string) string {
		b, err := os.ReadFile(at(name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(b)
	}

	before := rt()
	for _, c := range []struct {
		name  string
		input any
	}{
		{"read", in{"file_path": at("notes")}},
		{"grep", in{"pattern": "needle", "path": data, "output_mode": "content"}},
		{"glob", in{"pattern": "*", "path": data}},
		{"write", in{"file_path": at("new"), "content": "x"}},
		{"edit", in{"file_path": at("notes"), "old_string": "alpha", "new_string": "beta"}},
		{"bash", "echo one >" + at("new")},
		{"bash", "cp a " + data + "/"},
		{"bash", "d=" + data + "; sh -c 'echo x >$0/new' $d"},
	} {
		res := once(t, before, c.name, c.input)
		if text := res.Text(); strings.Contains(text, "needle") || strings.Contains(text, "notes:") || res.Status == agent.StatusCompleted && !strings.Contains(text, "denied") && !strings.Contains(text, "outside of the project") && !strings.Contains(text, "safety") && !strings.Contains(text, "exit code") {
			t.Errorf("before approval: %s %v: %s %s", c.name, c.input, res.Status, text)
		}
	}
	if content("new")+content("a") != "" || content("notes") != "alpha\nneedle\n" {
		t.Fatal("it was written before approval")
	}

	approve(t, dir)
	after := rt()
	works := func(name string, input any, want string) {
		t.Helper()
		if res := once(t, after, name, input); res.Status != agent.StatusCompleted || !strings.Contains(res.Text(), want) || strings.Contains(res.Text(), "ignored") {
			t.Errorf("%s %v: %s %s", name, input, res.Status, res.Text())
		}
	}
	works("read", in{"file_path": at("notes")}, "needle")
	works("grep", in{"pattern": "needle", "path": data, "output_mode": "content"}, at("notes")+":2:needle")
	works("glob", in{"pattern": "*", "path": data}, at("notes"))
	works("write", in{"file_path": at("sub/new"), "content": "x"}, "created "+at("sub/new"))
	works("edit", in{"file_path": at("notes"), "old_string": "alpha", "new_string": "beta"}, at("notes"))
	works("bash", "echo two >"+at("new")+" && cp a "+data+"/ && cp a "+at("b")+" && rm "+at("b")+" && echo d''one", "done")
	works("bash", "sh -c 'cd "+data+" && echo x >plain' && echo d''one", "done")
	if content("sub/new") != "x" || content("notes") != "beta\nneedle\n" || content("new") != "two\n" || content("a") != "x" || content("plain") != "x\n" {
		t.Errorf("%q %q %q", content("sub/new"), content("notes"), content("new"))
	}
	for _, c := range []struct {
		name  string
		input any
	}{
		{"read", in{"file_path": at("file")}},
		{"read", in{"file_path": at("out/secret")}},
		{"grep", in{"pattern": ".", "path": at("out"), "output_mode": "content"}},
		{"write", in{"file_path": at("out/new"), "content": "x"}},
		{"edit", in{"file_path": at("file"), "old_string": "s3cr3t", "new_string": "x"}},
		{"bash", "echo x >" + filepath.Join(outside, "new")},
		{"bash", "cd " + data + " && echo x >out/new"},
		{"bash", "rm -r " + data},
		{"write", in{"file_path": at(".agents/settings.json"), "content": "{}"}},
		{"write", in{"file_path": at(".git/hooks/pre-commit"), "content": "x"}}, // as of the project: a person is asked
	} {
		if res := once(t, after, c.name, c.input); strings.Contains(res.Text(), "s3cr3t") || res.Status == agent.StatusCompleted && !strings.Contains(res.Text(), "which is outside of") && !strings.Contains(res.Text(), "denied") && !strings.Contains(res.Text(), "safety") && !strings.Contains(res.Text(), "exit code") {
			t.Errorf("%s %v: %s %s", c.name, c.input, res.Status, res.Text())
		}
	}
	// Waved through by the mode, the tool itself holds: by its Root.
	waved := serve(t, dir, says(), func(o *pawl.Options) { o.Sandbox = nil })
	for name, input := range map[string]in{"read": {"file_path": at("file")}, "write": {"file_path": at("out/new"), "content": "x"}} {
		if res := once(t, waved, name, input); !strings.Contains(res.Text(), "which is outside of "+data) {
			t.Errorf("%s %v: %s", name, input, res.Text())
		}
	}
	if b, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(b) != "s3cr3t" {
		t.Error(string(b), err)
	}
	if _, err := os.Stat(filepath.Join(outside, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a link led out:", err)
	}
}

func TestWhatTheProgramsSandboxDoesNotLetBeWrittenIsOnlyRead(t *testing.T) {
	if can := fence.Probe(); !can.Writes.Holds {
		component.Absent(t, "a sandbox", can.Writes.Why)
	}
	data := besides(t, map[string]string{"notes": "needle"})
	dir := world(t, map[string]string{".agents/settings.json": fmt.Sprintf(`{"permissions": {"additionalDirectories": [%q]}}`, data)})
	policy := pawl.DefaultSandbox()
	rt := serve(t, dir, says(), func(o *pawl.Options) { o.Sandbox, o.Permissions, o.Trusted = &policy, permission.Config{}, true })
	if res := once(t, rt, "read", in{"file_path": filepath.Join(data, "notes")}); !strings.Contains(res.Text(), "needle") {
		t.Error(res.Status, res.Text())
	}
	for name, input := range map[string]any{"write": in{"file_path": filepath.Join(data, "new"), "content": "x"}, "bash": "echo x >" + filepath.Join(data, "new")} {
		if res := once(t, rt, name, input); res.Status == agent.StatusCompleted && !strings.Contains(res.Text(), "safety") && !strings.Contains(res.Text(), "doesn't have it in what can be") && !strings.Contains(res.Text(), "exit code") {
			t.Error(name, res.Status, res.Text())
		}
	}
	if _, err := os.Stat(filepath.Join(data, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestADirectoryOfTheProgramsIsAsTheProjectIsToo(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	if can := fence.Probe(); !can.Writes.Holds {
		component.Absent(t, "a sandbox", can.Writes.Why)
	}
	data := besides(t, nil)
	rt := serve(t, world(t, nil), says(), func(o *pawl.Options) {
		o.Sandbox, o.Permissions, o.NoProject = nil, permission.Config{Writable: []string{data}}, true
	})
	for name, input := range map[string]any{"write": in{"file_path": filepath.Join(data, "one"), "content": "x"}, "bash": "echo x >" + filepath.Join(data, "two")} {
		if res := once(t, rt, name, input); res.Status != agent.StatusCompleted {
			t.Error(name, res.Status, res.Text())
		}
	}
	if _, err := os.Stat(filepath.Join(data, "one")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(data, "two")); err != nil {
		t.Error(err)
	}
}
