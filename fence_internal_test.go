package pawl

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool"
)

// nothing is a system that can hold nothing.
var nothing = sandbox.Capabilities{Writes: sandbox.Status{Why: "the kernel has no Landlock"}}

func TestWithoutASandboxWhatDoesMoreThanReadIsAskedAboutAndItIsSaid(t *testing.T) {
	dir := t.TempDir()
	policy, unfenced, err := new(Options).fence(dir, project.Settings{}, nothing)
	if err != nil || !policy.Off || !strings.Contains(unfenced, "the kernel has no Landlock") {
		t.Fatal(policy, unfenced, err)
	}
	if _, _, err := (&Options{Sandbox: &sandbox.Policy{}}).fence(dir, project.Settings{}, nothing); !errdefs.NotAvailable.Is(err) || !strings.Contains(err.Error(), "the kernel has no Landlock") {
		t.Error("one that was asked for:", err)
	}
	if policy, unfenced, err := (&Options{Sandbox: &sandbox.Policy{Off: true}}).fence(dir, project.Settings{}, nothing); err != nil || !policy.Off || unfenced != "" {
		t.Error("one that was switched off:", policy, unfenced, err)
	}
	permission, err := hook.Permission(new(Options).permissions(dir, project.Settings{}, !policy.Off))
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]hook.Verdict{"touch x": hook.Ask, "ls && make": hook.Ask, "ls": hook.Allow} {
		use := &hook.ToolUse{Tool: tool.Definition{}, Call: message.ToolCall{Name: "bash", Input: `{"command":"` + command + `"}`}}
		use.Tool.Name = "bash"
		if d := hook.Judge(t.Context(), []hook.Middleware{permission}, use, nil); d.Verdict != want {
			t.Errorf("%s: %v %s", command, d.Verdict, d.Reason)
		}
	}

	rt, err := New(t.Context(), Options{Model: scripted.New(scripted.Text("hi"), scripted.Text("hi")), ProjectRoot: dir, Journal: journal.Memory()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close() }()
	for _, warning := range []string{"", unfenced} {
		a := *rt.now.Load()
		a.warning = warning
		rt.now.Store(&a)
		var warned []string
		for e, err := range rt.RunStream(t.Context(), Request{Prompt: "go"}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Delta == event.Warning {
				warned = append(warned, e.Text)
			}
		}
		if strings.Join(warned, "|") != warning {
			t.Errorf("%q", warned)
		}
	}
}
