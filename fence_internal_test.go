package pawl

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool"
)

// nothing is a system that can hold nothing.
var nothing = fence.Capabilities{Writes: fence.Status{Why: "the kernel has no Landlock"}}

func TestWithoutASandboxWhatDoesMoreThanReadIsAskedAboutAndItIsSaid(t *testing.T) {
	dir := t.TempDir()
	f, err := new(Options).fence(dir, project.Settings{}, nil, nil, nothing)
	if err != nil || !f.policy.Off || f.holds || !strings.Contains(f.warning, "the kernel has no Landlock") {
		t.Fatal(f, err)
	}
	if _, err := (&Options{Sandbox: &sandbox.Policy{}}).fence(dir, project.Settings{}, nil, nil, nothing); !errdefs.NotAvailable.Is(err) || !strings.Contains(err.Error(), "the kernel has no Landlock") {
		t.Error("one that was asked for:", err)
	}
	if f, err := (&Options{Sandbox: &sandbox.Policy{Off: true}}).fence(dir, project.Settings{}, nil, nil, nothing); err != nil || !f.policy.Off || f.holds || f.warning != "" {
		t.Error("one that was switched off:", f, err)
	}
	rules := new(Options).permissions(dir, project.Settings{})
	rules.Fence = f.holds
	judged, err := permission.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]hook.Verdict{"touch x": hook.Ask, "ls && make": hook.Ask, "ls": hook.Allow} {
		use := &hook.ToolUse{Tool: tool.Definition{}, Call: message.ToolCall{Name: "bash", Input: `{"command":"` + command + `"}`}}
		use.Tool.Name = "bash"
		if d := hook.Judge(t.Context(), []hook.Middleware{judged}, use, nil); d.Verdict != want {
			t.Errorf("%s: %v %s", command, d.Verdict, d.Reason)
		}
	}

	rt, err := New(t.Context(), Options{Model: scripted.New(scripted.Text("hi"), scripted.Text("hi")), ProjectRoot: dir, Journal: journal.Memory()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close() }()
	for _, warning := range []string{"", f.warning} {
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

func TestWhereTheSandboxCantHideWhatRulesDenyCommandsAreAskedAbout(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	yes, no := fence.Status{Holds: true}, fence.Status{Why: "it needs bubblewrap"}
	inside, outside := fence.HidePattern(dir, "**/.env"), fence.HidePattern("/srv/keys", "")
	for _, c := range []struct {
		hide   []string
		inside fence.Status
		holds  bool
		want   []string
	}{
		{nil, no, true, nil},
		{[]string{outside}, no, true, []string{outside}},
		{[]string{inside, outside}, yes, true, []string{inside, outside}},
		{[]string{inside, outside}, no, false, []string{outside}},
	} {
		can := fence.Capabilities{Writes: yes, Inside: c.inside}
		f, err := new(Options).fence(dir, project.Settings{}, c.hide, nil, can)
		if err != nil || f.holds != c.holds || !slices.Equal(f.policy.HidePatterns, c.want) || c.holds != (f.warning == "") || !c.holds && !strings.Contains(f.warning, no.Why) {
			t.Errorf("hidden %q: %+v %v", c.hide, f, err)
		}
		f, err = new(Options).fence(dir, project.Settings{}, nil, c.hide, can)
		if err != nil || f.holds != c.holds || !slices.Equal(f.policy.ProtectPatterns, c.want) || len(f.policy.HidePatterns) > 0 || c.holds != (f.warning == "") || !c.holds && !strings.Contains(f.warning, no.Why) {
			t.Errorf("protected %q: %+v %v", c.hide, f, err)
		}
	}
}

func TestASandboxThatSettingsAskForAndThatCantBeHadIsAnError(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for settings, fails := range map[string]bool{
		`{}`: false, `{"respectGitignore": false}`: false, `{"sandbox": {"enabled": false}}`: false,
		`{"sandbox": {"enabled": true}}`: true, `{"sandbox": {"limits": {"files": 64}}}`: true, `{"sandbox": {"network": {"all": false}}}`: true,
	} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, ".agents"), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".agents/settings.json"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := project.Load(t.Context(), dir, project.WithTrusted())
		if err != nil {
			t.Fatal(err)
		}
		f, err := new(Options).fence(dir, p.Settings, nil, nil, nothing)
		if fails != (err != nil) || fails && (!errdefs.NotAvailable.Is(err) || !strings.Contains(err.Error(), "the settings' sandbox")) || !fails && !f.policy.Off {
			t.Errorf("%s: %+v %v", settings, f, err)
		}
	}
}
