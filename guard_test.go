//go:build unix

package pawl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

// tellsOrDoes is a model that says its system prompt when it is told to, and otherwise has the command run that the prompt is.
func tellsOrDoes() model.Model {
	return thinking(func(req model.Request) message.Message {
		prompt := req.Messages.Last().Text()
		command, is := strings.CutPrefix(prompt, "bash ")
		switch {
		case req.Messages.Last().Role() == message.RoleTool:
			return message.Assistant(last(req))
		case is:
			return message.Assistant("", call(fmt.Sprintf("c%d", req.Messages.Len()), "bash", fmt.Sprintf(`{"command":%q}`, command)))
		}
		return message.Assistant(req.System)
	})
}

func TestARuleThatACommandWroteIsNotReadUntilItIsApproved(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		sandbox *sandbox.Policy
		mode    permission.Mode
	}{
		"nothing was there to be protected": {map[string]string{"a": "x"}, nil, ""},
		"there is no sandbox":               {map[string]string{".agents/rules/1.md": "first"}, &sandbox.Policy{Off: true}, permission.ModeBypass},
	} {
		t.Run(name, func(t *testing.T) {
			if c.sandbox == nil {
				tier.SkipQuick(t, "it starts sandboxes")
			}
			if can := fence.Probe(); c.sandbox == nil && !can.Writes.Holds {
				component.Absent(t, "a sandbox", can.Writes.Why)
			}
			dir, store := world(t, c.files), journal.Memory()
			start := func() *pawl.Runtime {
				return serve(t, dir, tellsOrDoes(), func(o *pawl.Options) {
					o.Sandbox, o.Permissions, o.Journal = c.sandbox, permission.Config{Mode: c.mode}, store
				})
			}
			rt := start()
			text, _ := asks(t, rt, "a", "bash mkdir -p .agents/rules && echo second >.agents/rules/2.md; if test -f .agents/rules/1.md; then echo second >.agents/rules/1.md; fi; sleep 0.2; echo ok")
			if !strings.HasPrefix(text, "ok") {
				t.Fatal(text)
			}
			if text, _ := asks(t, rt, "a", "tell"); strings.Contains(text, "second") || strings.Contains(text, "first") != (c.files["a"] == "") {
				t.Error("the next turn:", text)
			}
			if err := rt.Close(); err != nil {
				t.Fatal(err)
			}
			rt = start()
			if text, warnings := asks(t, rt, "b", "tell"); strings.Contains(text, "second") || !strings.Contains(strings.Join(warnings, "\n"), ".agents/rules/2.md: it was changed while tools could write it") {
				t.Error("the next process:", text, warnings)
			}
			approve(t, dir)
			eventually(t, "it is read once it is approved", func() bool {
				text, _ := asks(t, rt, "b", "tell")
				return strings.Contains(text, "second")
			})
			if err := os.WriteFile(filepath.Join(dir, ".agents/rules/2.md"), []byte("third"), 0o600); err != nil {
				t.Fatal(err)
			}
			eventually(t, "a person's own change is read", func() bool {
				text, _ := asks(t, rt, "b", "tell")
				return strings.Contains(text, "third")
			})
			p, err := project.Load(t.Context(), dir)
			if err != nil || len(p.Untrusted()) > 0 {
				t.Error(p.Untrusted(), err)
			}
		})
	}
}
