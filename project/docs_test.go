package project_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/project"
)

func page(t *testing.T) string {
	b, err := os.ReadFile("../docs/project.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The files that docs/project.md shows are put into a directory and read.
func TestWhatThePageShowsWorks(t *testing.T) {
	w := newWorld(t)
	for i, block := range strings.Split(page(t), "\n```") {
		head, text, _ := strings.Cut(block, "\n")
		if lang, name, ok := strings.Cut(head, " "); i%2 == 1 && ok && lang != "go" { // which is an example's
			w.put(name, text+"\n")
		}
	}
	p := w.load(project.WithTrusted())
	wantNoProblem(t, p)
	s := p.Settings
	if s.Model == "" || len(s.Permissions.Rules) != 4 || len(s.Env)+len(s.Hooks)+len(s.MCP) != 3 || s.Sandbox.Network.All || len(s.Sandbox.Network.Hosts) != 1 {
		t.Errorf("%+v", s)
	}
	if _, err := permission.New(s.Permissions); err != nil {
		t.Error(err)
	}
	shells, err := shell.New(shell.Options{Dir: p.Root}, s.Hooks...)
	if err != nil {
		t.Fatal(err)
	}
	if err := shells.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if p.Memory != "Run the tests with `go test ./...`.\n\nErrors wrap what caused them." || p.Rules != "Write comments that say why." {
		t.Errorf("%q %q", p.Memory, p.Rules)
	}
	if found := p.Match("Make a release", nil); len(found) != 1 || found[0].Name != "release" {
		t.Errorf("%+v", found)
	}
	if a, ok := p.Subagent("reviewer"); !ok || a.MaxTurns != 20 || !slices.Equal(a.Tools, []string{"read", "grep", "glob"}) {
		t.Errorf("%+v", a)
	}
}

func TestWhatTheMCPPageShowsWorks(t *testing.T) {
	b, err := os.ReadFile("../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(b), "```json .agents/settings.json\n")
	block, _, _ = strings.Cut(block, "```")
	w := newWorld(t)
	w.put(".agents/settings.json", block)
	t.Setenv("TICKETS_HOST", "tickets.example.com")
	p := w.load(project.WithTrusted())
	wantNoProblem(t, p)
	if len(p.Settings.MCP) != 3 {
		t.Error(p.Settings.MCP)
	}
	var schema struct {
		Defs struct {
			Server struct {
				Properties map[string]struct{ Properties map[string]any }
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(project.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	for name, v := range schema.Defs.Server.Properties {
		for _, key := range append(slices.Collect(maps.Keys(v.Properties)), name) {
			if !strings.Contains(string(b), "`"+key+"`") {
				t.Errorf("docs/mcp.md has no %s", key)
			}
			if key == name && !strings.Contains(page(t), "`"+key+"`") {
				t.Errorf("docs/project.md has no %s", key)
			}
		}
	}
}

func TestThePageHasEveryKey(t *testing.T) {
	text := page(t)
	var keys func(at string, v any)
	keys = func(at string, v any) {
		m, _ := v.(map[string]any)
		props, _ := m["properties"].(map[string]any)
		if props == nil || at == "hooks." {
			if name := strings.TrimSuffix(at, "."); !strings.Contains(text, "`"+name+"`") {
				t.Errorf("docs/project.md has no %s", name)
			}
			return
		}
		for name, v := range props {
			keys(at+name+".", v)
		}
	}
	var schema map[string]any
	if err := json.Unmarshal(project.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	keys("", schema)
}
