package permission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// ExampleSafety shows that what a command would do is judged, not the words in it.
func ExampleSafety() {
	hooks := []hook.Middleware{permission.Safety(permission.SafetyIn("/src/project"))}
	for _, command := range []string{"rm -rf ./build", "git commit -m 'never rm -rf /'", "git reset --hard", "cd / && rm -rf *"} {
		input, _ := json.Marshal(map[string]string{"command": command})
		use := &hook.ToolUse{Call: message.ToolCall{Name: "bash", Input: string(input)}}
		fmt.Println(hook.Judge(context.Background(), hooks, use, nil).Verdict, command)
	}
	// Output:
	// continue rm -rf ./build
	// continue git commit -m 'never rm -rf /'
	// ask git reset --hard
	// deny cd / && rm -rf *
}

// corpus gives the commands of a file under testdata/safety: a line each, or the lines between two of ---. Each is behind a #, so that a shell that gets to see
// the file, by a slip of the hand or of a program, does nothing.
func corpus(t testing.TB, name string) (commands []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "safety", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	block, in, n := "", false, 0
	for line := range strings.Lines(string(b)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		command, marked := strings.CutPrefix(line, "# ")
		switch {
		case marked && command == "---":
			if in {
				commands = append(commands, strings.TrimSuffix(block, "\n"))
			}
			block, in = "", !in
		case in && line == "#":
			block += "\n"
		case in && marked:
			block += command + "\n"
		case !in && marked:
			commands = append(commands, command)
		case in || line != "" && !strings.HasPrefix(line, "##"):
			t.Fatalf("%s.txt:%d: every line of the corpus begins with # and a space, a heading with ##", name, n)
		}
	}
	if in {
		t.Fatalf("%s: a --- is not closed", name)
	}
	return commands
}

// home is who the corpus was written for.
func home(t testing.TB) {
	t.Helper()
	t.Setenv("HOME", "/home/me")
	t.Setenv("USER", "me")
	t.Setenv("TMPDIR", "/tmp")
}

// verdict judges a bash command in /src/project.
func verdict(check permission.SafetyHook, command string) (hook.Verdict, string) {
	err := check(context.Background(), "bash", map[string]any{"command": command})
	var ask *permission.AskError
	switch {
	case err == nil:
		return hook.Continue, ""
	case errors.As(err, &ask):
		return hook.Ask, err.Error()
	}
	return hook.Deny, err.Error()
}

func TestEveryLineOfTheCorpusGetsItsVerdict(t *testing.T) {
	home(t)
	check := permission.SafetyIn("/src/project")
	wrong, lines := map[string]int{}, 0
	for _, f := range []struct {
		name, counts string
		want         hook.Verdict
	}{{"deny", "catastrophic allowed", hook.Deny}, {"ask", "doubtful allowed", hook.Ask}, {"allow", "harmless stopped (denied or asked)", hook.Continue}} {
		for _, command := range corpus(t, f.name) {
			lines++
			if got, why := verdict(check, command); got != f.want {
				wrong[f.counts]++
				t.Errorf("%s.txt: %v, want %v: %s\n\t%s", f.name, got, f.want, command, why)
			}
		}
	}
	summary := fmt.Sprintf("catastrophic allowed: %d, doubtful allowed: %d, harmless stopped (denied or asked): %d", wrong["catastrophic allowed"], wrong["doubtful allowed"], wrong["harmless stopped (denied or asked)"])
	fmt.Println(summary)
	if lines < 300 || len(corpus(t, "allow")) < 200 {
		t.Errorf("the corpus has %d lines, %d of them harmless: it has shrunk", lines, len(corpus(t, "allow")))
	}
}

func TestToolsThatWriteAreJudgedByTheirPath(t *testing.T) {
	home(t)
	check := permission.SafetyIn("/src/project")
	for _, c := range []struct {
		name, tool, key, path string
		readOnly              bool
		want                  hook.Verdict
	}{
		{"in the project", "write", "path", "src/main.go", false, hook.Continue},
		{"absolute", "edit", "file_path", "/src/project/x", false, hook.Continue},
		{"temporary", "Write", "file_path", "/tmp/x", false, hook.Continue},
		{"outside", "write", "path", "/etc/passwd", false, hook.Deny},
		{"by its other name", "EDIT", "file_path", "../other/x", false, hook.Deny},
		{"at home", "write", "path", "~/.ssh/authorized_keys", false, hook.Deny},
		{"the history", "write", "path", ".git/hooks/pre-commit", false, hook.Ask},
		{"another tool", "notebook", "path", "/etc/passwd", false, hook.Deny},
		{"that reads", "read", "path", "/etc/passwd", true, hook.Continue},
	} {
		t.Run(c.name, func(t *testing.T) {
			use := &hook.ToolUse{
				Tool: tool.Definition{Tool: model.Tool{Name: c.tool}, Annotations: tool.Annotations{ReadOnly: c.readOnly}},
				Call: message.ToolCall{Name: c.tool, Input: fmt.Sprintf(`{%q:%q}`, c.key, c.path)},
			}
			if d := hook.Judge(t.Context(), []hook.Middleware{permission.Safety(check)}, use, nil); d.Verdict != c.want {
				t.Error(d)
			}
		})
	}
	for name, want := range map[string]bool{"write": false, "edit": false, "notebook": true, "read": true} { // alone, the check knows a tool by its name only
		if err := check(t.Context(), name, map[string]any{"path": "/etc/passwd"}); (err == nil) != want {
			t.Error(name, err)
		}
	}
}

func TestSafetyMakesDecisionsOfErrors(t *testing.T) {
	for name, c := range map[string]struct {
		check permission.SafetyHook
		input string
		want  hook.Decision
	}{
		"nil lets through": {func(context.Context, string, map[string]any) error { return nil }, `{}`, hook.Decision{}},
		"an AskError asks": {func(context.Context, string, map[string]any) error { return &permission.AskError{Reason: "sure?"} }, `{}`, hook.Asking("sure?")},
		"a wrapped AskError asks": {func(context.Context, string, map[string]any) error {
			return fmt.Errorf("x: %w", &permission.AskError{Reason: "sure?"})
		}, `{}`, hook.Asking("sure?")},
		"any other error denies":    {func(context.Context, string, map[string]any) error { return errors.New("never") }, `{}`, hook.Denied("never")},
		"a panic denies":            {func(context.Context, string, map[string]any) error { panic("oops") }, `{}`, hook.Denied("the safety check panicked: oops")},
		"input that is no object":   {func(context.Context, string, map[string]any) error { return nil }, `[]`, hook.Denied("the safety check can't read the input of bash: json: cannot unmarshal array into Go value of type map[string]interface {}")},
		"no check is the default":   {nil, `{"command":"rm -rf /"}`, hook.Denied("safety: rm removes /, which is outside the project and the directories for temporary files: stay inside, or let a person do it")},
		"which lets the rest pass":  {nil, `{"command":"rm -rf ./build"}`, hook.Decision{}},
		"a call without a command":  {nil, `{}`, hook.Decision{}},
		"a command that is no text": {nil, `{"command":["rm"]}`, hook.Denied("safety: the command is no text")},
	} {
		t.Run(name, func(t *testing.T) {
			use := &hook.ToolUse{Call: message.ToolCall{Name: "bash", Input: c.input}}
			if got, err := permission.Safety(c.check).PreToolUse(t.Context(), use); got != c.want || err != nil {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}

func TestADenialIsOfTheClassPolicyDenied(t *testing.T) {
	if err := permission.SafetyIn("/src/project")(t.Context(), "BASH", map[string]any{"command": "rm -rf /"}); !errdefs.PolicyDenied.Is(err) {
		t.Error(err)
	}
}

func TestTheWorkdirCounts(t *testing.T) {
	home(t)
	check := permission.SafetyIn("/src/project")
	for workdir, want := range map[string]bool{"": true, "sub": true, "/src/project/sub": true, "..": false, "/etc": false} {
		if err := check(t.Context(), "bash", map[string]any{"command": "rm -rf x", "workdir": workdir}); (err == nil) != want {
			t.Errorf("%q: %v", workdir, err)
		}
	}
}

func TestTheProjectIsKnownByTheNameThatALinkGivesIt(t *testing.T) {
	home(t)
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	check := permission.SafetyIn(link)
	for command, want := range map[string]hook.Verdict{"rm -rf " + dir + "/x": hook.Continue, "rm -rf " + link + "/x": hook.Continue, "rm -rf " + dir: hook.Ask} {
		if got, why := verdict(check, command); got != want {
			t.Error(command, got, why)
		}
	}
}

func TestSafety_HomeBelowTemporaryDirectory(t *testing.T) {
	home(t)
	t.Setenv("HOME", "/tmp/users/me")
	t.Setenv("TMPDIR", "/tmp/users/me/tmp")
	check := permission.SafetyIn("/src/project")
	for command, want := range map[string]hook.Verdict{
		"rm -rf ~":                hook.Deny,
		"rm -rf ~/*":              hook.Deny,
		"rm -rf $HOME/.ssh":       hook.Deny,
		"rm -rf /tmp/users":       hook.Deny, // the home directory lies in it
		"rm -rf /tmp/users/other": hook.Continue,
		"rm -rf /tmp/x":           hook.Continue,
		"rm -rf $TMPDIR/x":        hook.Continue,
		"rm -rf /tmp":             hook.Ask,
		"touch /tmp/users/x":      hook.Continue,
	} {
		if got, why := verdict(check, command); got != want {
			t.Errorf("%s: %v, want %v: %s", command, got, want, why)
		}
	}

	check = permission.SafetyIn("/tmp/users/me/project")
	if got, why := verdict(check, "rm -rf /tmp/users/me/project/build"); got != hook.Continue {
		t.Errorf("%v: %s", got, why)
	}

	t.Setenv("HOME", "/tmp") // as in containers that run as any user
	if got, why := verdict(permission.SafetyIn("/src/project"), "rm -rf /tmp/x"); got != hook.Continue {
		t.Errorf("%v: %s", got, why)
	}
}
